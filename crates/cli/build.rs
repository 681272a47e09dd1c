//! Lists the files of the demo home, so that the binary can carry them.

use std::path::{Path, PathBuf};
use std::{fs, io};

fn main() -> io::Result<()> {
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../demo");
    println!("cargo::rerun-if-changed={}", demo.display());
    let mut files = Vec::new();
    collect(&demo, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in files {
        let name = file.strip_prefix(&demo).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        list.push_str(&format!("({name:?}, include_bytes!({:?})),\n", file.display().to_string()));
    }
    list.push_str("]\n");
    #[expect(clippy::disallowed_methods, reason = "this is how cargo tells a build script where to write")]
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(out.join("demo_files.rs"), list)
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
