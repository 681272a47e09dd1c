//! Backups of files before they are changed, and the snapshots that name them.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use threadline_api::RawObject;
use threadline_entry::write::{FileBackup, timestamp};

use crate::clock::Clock;
use crate::session_writer::{SessionWriter, WriteError};

/// The backups of a session, and the files that it tracks.
#[derive(Debug)]
pub(crate) struct FileBackups {
    /// The folder of the backups; `None` if the session keeps none.
    folder: Option<PathBuf>,
    root: PathBuf,
    tracked: Vec<TrackedFile>,
    prompt: String,
}

/// A file with its newest backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TrackedFile {
    /// The path relative to the working folder, or absolute outside of it.
    pub(crate) name: String,
    /// The backup; `None` if the file did not exist.
    pub(crate) backup: Option<String>,
    pub(crate) version: u64,
    pub(crate) time: String,
}

impl FileBackups {
    pub(crate) fn new(folder: Option<PathBuf>, root: PathBuf, tracked: Vec<TrackedFile>) -> Self {
        Self { folder, root, tracked, prompt: String::new() }
    }

    /// Starts a snapshot for a prompt: tracked files that have changed get a new version.
    pub(crate) fn start_prompt(
        &mut self,
        prompt: &str,
        writer: &mut SessionWriter,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        self.prompt = prompt.to_owned();
        let root = self.root.clone();
        for file in &mut self.tracked {
            let path = root.join(&file.name);
            if is_unchanged(&folder, file.backup.as_deref(), &path) {
                continue;
            }
            file.version += 1;
            file.time = timestamp(clock.now());
            // A file that cannot be copied counts as absent: there is nothing to restore.
            file.backup = store(&folder, &path, file.version).unwrap_or_default();
        }
        writer.snapshot(prompt, prompt, &self.to_json(), false, clock)
    }

    /// Backs up a file before its first change, and writes the new snapshot. `call` is the line of the call.
    pub(crate) fn before_change(
        &mut self,
        path: &Path,
        call: &str,
        writer: &mut SessionWriter,
        clock: &dyn Clock,
    ) -> Result<(), WriteError> {
        let Some(folder) = self.folder.clone() else { return Ok(()) };
        let name = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned();
        if self.tracked.iter().any(|file| file.name == name) {
            return Ok(());
        }
        let backup = store(&folder, path, 1).unwrap_or_default();
        self.tracked.push(TrackedFile { name, backup, version: 1, time: timestamp(clock.now()) });
        writer.snapshot(call, &self.prompt, &self.to_json(), true, clock)
    }

    fn to_json(&self) -> RawObject {
        let mut object = RawObject::new();
        for file in &self.tracked {
            let backup = FileBackup {
                backup_file_name: file.backup.as_deref(),
                version: file.version,
                backup_time: &file.time,
            };
            if let Ok(json) = RawObject::parse(&backup.to_json()) {
                object.set(&file.name, json);
            }
        }
        object
    }
}

/// Copies the backups of tracked files to the folder of another session. Missing ones are left out.
pub(crate) fn copy_backups(tracked: &[TrackedFile], source: &Path, target: &Path) {
    for name in tracked.iter().filter_map(|file| file.backup.as_deref()) {
        // Without its backup, a file of the copy cannot be restored; that is no reason not to continue.
        let _ =
            fs_err::create_dir_all(target).and_then(|()| fs_err::copy(source.join(name), target.join(name)));
    }
}

/// Copies a file to its backup. Returns the name of the backup, or `None` if there is no such file.
fn store(folder: &Path, path: &Path, version: u64) -> io::Result<Option<String>> {
    let metadata = match fs_err::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        metadata => metadata?,
    };
    // The content behind a link is backed up; devices and folders have none.
    if !metadata.is_file() && !path.is_file() {
        return Ok(None);
    }
    let name = backup_name(path, version);
    fs_err::create_dir_all(folder)?;
    fs_err::copy(path, folder.join(&name))?;
    Ok(Some(name))
}

/// Returns the name of a backup: the beginning of the hash of the path, and the version.
fn backup_name(path: &Path, version: u64) -> String {
    let digest = Sha256::digest(path.to_string_lossy().as_bytes());
    format!("{}@v{version}", const_hex::encode(&digest[..8]))
}

/// Whether a file still equals its newest backup.
fn is_unchanged(folder: &Path, backup: Option<&str>, path: &Path) -> bool {
    // A pipe or a device would block, and has no backup.
    if path.exists() && !path.is_file() {
        return true;
    }
    match (backup, fs_err::read(path)) {
        (None, Err(error)) => error.kind() == io::ErrorKind::NotFound,
        (Some(backup), Ok(content)) => fs_err::read(folder.join(backup)).is_ok_and(|old| old == content),
        _ => false,
    }
}
