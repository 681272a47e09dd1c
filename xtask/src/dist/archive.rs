//! The archive of one target: the program with its licences, completions and man page.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{DistResult, VERSION, check, copy, root};

/// Files of the repository that every archive contains.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Returns the name of the archive of a target.
pub(super) fn name(target: &str) -> String {
    let extension = if target.contains("windows") { "zip" } else { "tar.gz" };
    format!("threadline-{VERSION}-{target}.{extension}")
}

/// Writes the archive of a target. All files are in one folder.
pub(super) fn write(target: &str, binary: &Path, extras: &Path, out: &Path) -> DistResult<()> {
    let stage = tempfile::tempdir().map_err(|error| error.to_string())?;
    let folder = format!("threadline-{VERSION}-{target}");
    let content = stage.path().join(&folder);
    for below in ["completions", "man"] {
        fs::create_dir_all(content.join(below)).map_err(|error| error.to_string())?;
        for file in fs::read_dir(extras.join(below)).into_iter().flatten().flatten() {
            copy(&file.path(), &content.join(below).join(file.file_name()))?;
        }
    }
    copy(binary, &content.join(binary.file_name().unwrap_or_default()))?;
    for document in DOCUMENTS {
        copy(&root().join(document), &content.join(document))?;
    }
    let archive = std::path::absolute(out.join(name(target))).map_err(|error| error.to_string())?;
    let mut tar = Command::new("tar");
    match target.contains("windows") {
        // The tar of Windows writes the format that the name ends with.
        true => tar.arg("-a").arg("-cf"),
        false if cfg!(target_os = "linux") => {
            tar.args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name", "-czf"])
        }
        false => tar.arg("-czf"),
    };
    check(tar.arg(&archive).arg(&folder).current_dir(stage.path()))
}
