//! `cargo xtask tidy`: statistics of the code by crate, and the longest files. It reports and never fails.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(crate) fn run() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for dir in ["crates", "xtask"] {
        collect(&root.join(dir), &mut files);
    }
    let mut crates: Vec<PathBuf> =
        fs::read_dir(root.join("crates")).into_iter().flatten().flatten().map(|e| e.path()).collect();
    crates.sort();
    println!("{:<12} {:>7} {:>7} {:>5} {:>5} {:>5}", "crate", "lines", "tests", "pub", "allow", "deps");
    for dir in crates {
        let own = files.iter().filter(|file| file.path.starts_with(&dir));
        let (mut lines, mut tests, mut public, mut allows) = (0, 0, 0, 0);
        for file in own {
            lines += file.lines;
            tests += file.tests;
            public += file.public;
            allows += file.allows;
        }
        let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap_or_default();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.lines().skip(1).take_while(|line| !line.is_empty()).count();
        let name = dir.file_name().unwrap_or_default().to_string_lossy().into_owned();
        println!("{name:<12} {lines:>7} {tests:>7} {public:>5} {allows:>5} {dependencies:>5}");
    }
    files.sort_by_key(|file| std::cmp::Reverse(file.lines));
    println!("\nlongest files");
    for file in files.iter().take(10) {
        println!("{:>7} {}", file.lines, file.path.strip_prefix(&root).unwrap_or(&file.path).display());
    }
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    println!("\npackages in the lock file: {}", lock.matches("[[package]]").count());
    ExitCode::SUCCESS
}

/// A source file with its counts.
struct SourceFile {
    path: PathBuf,
    lines: usize,
    tests: usize,
    /// Public functions, structs and enums.
    public: usize,
    /// `allow` and `expect` attributes.
    allows: usize,
}

/// Adds all Rust files below `dir`.
fn collect(dir: &Path, files: &mut Vec<SourceFile>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let count =
                |start: &str| text.lines().filter(|line| line.trim_start().starts_with(start)).count();
            files.push(SourceFile {
                lines: text.lines().count(),
                tests: count("#[test]"),
                public: count("pub fn") + count("pub struct") + count("pub enum"),
                allows: count("#[allow") + count("#![allow") + count("#[expect"),
                path,
            });
        }
    }
}
