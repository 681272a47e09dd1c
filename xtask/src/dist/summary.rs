//! Files that cover all targets of a release: npm launcher, Homebrew formula, installer, checksums.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::{DistOptions, DistResult, VERSION, archive, fill, npm, write};

/// The targets of the Homebrew formula, and the names of their checksums in the template.
const FORMULA_TARGETS: [(&str, &str); 3] = [
    ("aarch64-apple-darwin", "SHA256_MACOS_ARM64"),
    ("x86_64-apple-darwin", "SHA256_MACOS_X86_64"),
    ("x86_64-unknown-linux-musl", "SHA256_LINUX_X86_64"),
];

const CHECKSUMS: &str = "SHA256SUMS";

/// Writes the files. Those that need a target whose archive is not in the folder are left out, with a
/// message.
pub(super) fn finish(options: &DistOptions) -> DistResult<()> {
    let missing = npm::write_main(options)?;
    if !missing.is_empty() {
        println!("npm: the package has no binary for {}", missing.join(", "));
    }
    let installer = fill("install.sh", &[("OWNER", &options.owner)])?;
    write(&options.out.join("install.sh"), installer.as_bytes())?;
    write_formula(options)?;
    write_checksums(&options.out)
}

fn write_formula(options: &DistOptions) -> DistResult<()> {
    let mut values = vec![("OWNER", options.owner.clone()), ("VERSION", VERSION.to_owned())];
    for (target, name) in FORMULA_TARGETS {
        let archive = options.out.join(archive::name(target));
        if !archive.exists() {
            println!("homebrew: no formula, since there is no archive for {target}");
            return Ok(());
        }
        values.push((name, checksum(&archive)?));
    }
    let values: Vec<(&str, &str)> = values.iter().map(|(name, value)| (*name, &**value)).collect();
    write(&options.out.join("threadline.rb"), fill("homebrew/threadline.rb", &values)?.as_bytes())
}

/// Writes the checksums of all files, in the format of `sha256sum`.
fn write_checksums(out: &Path) -> DistResult<()> {
    let files = fs::read_dir(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut files: Vec<_> = files.flatten().map(|file| file.path()).filter(|path| path.is_file()).collect();
    files.sort();
    let mut sums = String::new();
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name != CHECKSUMS {
            let size = fs::metadata(&file).map_or(0, |file| file.len());
            println!("{:>10.2} MB  {name}", size as f64 / 1e6);
            writeln!(sums, "{}  {name}", checksum(&file)?).map_err(|error| error.to_string())?;
        }
    }
    write(&out.join(CHECKSUMS), sums.as_bytes())
}

fn checksum(path: &Path) -> DistResult<String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
