//! The npm packages: one per platform with the binary, and one that selects among them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{DistOptions, DistResult, VERSION, check, copy, fill, root, target_dir, write};

/// A target as npm names it.
struct NpmPlatform {
    target: &'static str,
    name: &'static str,
    os: &'static str,
    cpu: &'static str,
    libc: Option<&'static str>,
}

const PLATFORMS: [NpmPlatform; 5] = [
    platform("x86_64-unknown-linux-gnu", "linux-x64", "linux", "x64", Some("glibc")),
    platform("x86_64-unknown-linux-musl", "linux-x64-musl", "linux", "x64", Some("musl")),
    platform("aarch64-apple-darwin", "darwin-arm64", "darwin", "arm64", None),
    platform("x86_64-apple-darwin", "darwin-x64", "darwin", "x64", None),
    platform("x86_64-pc-windows-msvc", "win32-x64", "win32", "x64", None),
];

const fn platform(
    target: &'static str,
    name: &'static str,
    os: &'static str,
    cpu: &'static str,
    libc: Option<&'static str>,
) -> NpmPlatform {
    NpmPlatform { target, name, os, cpu, libc }
}

/// Returns the file name that `npm pack` gives to the package of a platform.
fn package_file(platform: &NpmPlatform, owner: &str) -> String {
    format!("{owner}-threadline-{}-{VERSION}.tgz", platform.name)
}

/// Writes the package with the binary of one target, if npm has such a platform.
pub(super) fn write_platform(target: &str, binary: &Path, options: &DistOptions) -> DistResult<()> {
    let Some(platform) = PLATFORMS.iter().find(|platform| platform.target == target) else { return Ok(()) };
    let mut manifest = json!({
        "name": format!("@{}/threadline-{}", options.owner, platform.name),
        "version": VERSION,
        "description": format!("The binary of threadline for {target}"),
        "license": "MIT OR Apache-2.0",
        "os": [platform.os],
        "cpu": [platform.cpu],
        "preferUnplugged": true,
    });
    if let Some(libc) = platform.libc {
        manifest["libc"] = json!([libc]);
    }
    let folder = new_folder()?;
    fs::create_dir_all(folder.path().join("bin")).map_err(|error| error.to_string())?;
    copy(binary, &folder.path().join("bin").join(binary.file_name().unwrap_or_default()))?;
    pack(folder.path(), &manifest, &options.out)
}

/// Writes the package that users install. It depends on the packages of the platforms whose files are in the
/// folder. Returns the names of the platforms that are missing.
pub(super) fn write_main(options: &DistOptions) -> DistResult<Vec<&'static str>> {
    let exists = |platform: &&NpmPlatform| options.out.join(package_file(platform, &options.owner)).exists();
    let (found, missing): (Vec<_>, Vec<_>) = PLATFORMS.iter().partition(exists);
    let name = |platform: &NpmPlatform| format!("@{}/threadline-{}", options.owner, platform.name);
    let binaries: serde_json::Map<_, _> =
        found.iter().map(|platform| (name(platform), VERSION.into())).collect();
    let manifest = json!({
        "name": "threadline",
        "version": VERSION,
        "description": "Read, show, search, count, edit, repair and export Claude Code sessions",
        "license": "MIT OR Apache-2.0",
        "bin": { "threadline": "bin/threadline.js" },
        "man": "man/threadline.1",
        "engines": { "node": ">=18" },
        "optionalDependencies": binaries,
    });
    let folder = new_folder()?;
    let extras = target_dir().join("package-files");
    for below in ["bin", "completions", "man"] {
        fs::create_dir_all(folder.path().join(below)).map_err(|error| error.to_string())?;
        for file in fs::read_dir(extras.join(below)).into_iter().flatten().flatten() {
            copy(&file.path(), &folder.path().join(below).join(file.file_name()))?;
        }
    }
    let launcher = fill("npm/bin/threadline.js", &[("OWNER", &options.owner)])?;
    write(&folder.path().join("bin/threadline.js"), launcher.as_bytes())?;
    copy(&root().join("packaging/npm/README.md"), &folder.path().join("README.md"))?;
    pack(folder.path(), &manifest, &options.out)?;
    Ok(missing.iter().map(|platform| platform.name).collect())
}

fn new_folder() -> DistResult<tempfile::TempDir> {
    tempfile::tempdir().map_err(|error| error.to_string())
}

fn pack(folder: &Path, manifest: &serde_json::Value, out: &Path) -> DistResult<()> {
    let text = serde_json::to_string_pretty(manifest).map_err(|error| error.to_string())?;
    write(&folder.join("package.json"), format!("{text}\n").as_bytes())?;
    for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(licence), &folder.join(licence))?;
    }
    let out = std::path::absolute(out).map_err(|error| error.to_string())?;
    let mut npm = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    check(npm.args(["pack", "--silent", "--pack-destination"]).arg(out).current_dir(folder))
}
