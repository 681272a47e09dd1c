//! Compresses the files of the demo home, which the binary contains, and passes the commit to `--version`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

fn main() -> io::Result<()> {
    pass_commit();
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
    println!("cargo::rerun-if-changed={}", demo.display());
    let mut files = Vec::new();
    collect(&demo, &mut files)?;
    files.sort();
    // Names and sizes; the contents follow each other in one stream.
    let mut list = String::from("&[\n");
    let mut contents = DeflateEncoder::new(Vec::new(), Compression::best());
    for file in files {
        let name = file.strip_prefix(&demo).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        let content = fs::read(&file)?;
        list.push_str(&format!("({name:?}, {}),\n", content.len()));
        contents.write_all(&content)?;
    }
    list.push_str("]\n");
    #[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script where to write")]
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("demo_files.deflate"), contents.finish()?)?;
    fs::write(out.join("demo_files.rs"), list)
}

/// Sets `THREADLINE_COMMIT`; empty outside of a repository.
fn pass_commit() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=9", "HEAD"]).unwrap_or_default();
    println!("cargo::rustc-env=THREADLINE_COMMIT={commit}");
    // This file changes with every commit and checkout.
    let log = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    if let Some(log) = log.filter(|log| Path::new(log).exists()) {
        println!("cargo::rerun-if-changed={log}");
    }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}
