//! The executor changes files from one of their two versions to the other.
//!
//! Apply, undo, redo and roll back are the same: each file of a receipt is changed to its version before or
//! after the operation. Each step is chosen from the files on disk alone, so an interrupted run is continued
//! by running again. There are four kinds of private files, all in the folder of the file they belong to:
//!
//! - `.threadline-ID-N.new-after` (or `-before`): the *staged* content. One rename gives it the file's name,
//!   so while it exists that version is not installed.
//! - `.threadline-ID-N.old-before` (or `-after`): the *displaced* file. It keeps this name until every line
//!   that another program wrote to it is in the new file. Then it is moved into the operation's folder as the
//!   backup.
//! - `.threadline-ID-N.exchanged`: a second name of the staged file, which is exchanged with the file's name.
//!   If another program has given that name to a file of its own, the names are exchanged back.
//! - `.threadline-ID-N.old-stray`: a log that another program created where the operation had removed one.
//!
//! Its methods are in the modules of their subjects: `status`, `install`, `append_step`, `foreign_lines` and
//! `displaced`. `i` is always the index of a file in the receipt.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::displaced::{Displaced, Slot};
use super::error::changed;
use super::version::{Version, is_metadata_of, version_file};
use super::{FileAction, OpError, OperationState, Receipt, ReceiptFile};
use crate::append::lock;
use crate::disk::{FileSystem, Visibility, create_folders, write_all};
use crate::private_file::PRIVATE_PREFIX;

/// Buffer size of copies.
const CHUNK: usize = 1 << 18;

/// Changes the files of one operation.
pub(super) struct Executor<'a> {
    pub(super) fs: &'a dyn FileSystem,
    pub(super) id: String,
    pub(super) folder: PathBuf,
    pub(super) displaced: Vec<Displaced>,
    /// By file, the range of an append that a full disk cut short.
    pub(super) partial: HashMap<usize, (u64, u64)>,
    /// The files that were changed, completely or in part.
    pub(super) touched: HashSet<usize>,
    /// Whether the operation was interrupted while it was applied for the first time.
    pub(super) is_unfinished: bool,
    /// The number of bytes of other programs that were copied from one version to the other.
    pub(super) foreign_bytes: u64,
    /// The files that later operations changed, with the newest of these, if this one is being undone.
    pub(super) changed_later: HashMap<PathBuf, String>,
}

impl<'a> Executor<'a> {
    pub(super) fn new(fs: &'a dyn FileSystem, receipt: &Receipt, folder: PathBuf) -> Self {
        Self {
            fs,
            id: receipt.id.clone(),
            folder,
            displaced: Vec::new(),
            partial: HashMap::new(),
            touched: HashSet::new(),
            is_unfinished: matches!(receipt.state, OperationState::Begun | OperationState::Applying),
            foreign_bytes: 0,
            changed_later: HashMap::new(),
        }
    }
}

impl Executor<'_> {
    /// The path of a private file.
    pub(super) fn private_path(&self, path: &Path, i: usize, kind: &str) -> PathBuf {
        path.with_file_name(format!("{PRIVATE_PREFIX}{}-{i}.{kind}", self.id))
    }

    /// The path of the staged content of a version; `None` if no file exists in that version.
    pub(super) fn staged_path(&self, i: usize, file: &ReceiptFile, version: Version) -> Option<PathBuf> {
        let path = match file.action {
            FileAction::Append if version == Version::Before => &file.path,
            _ => version_file(file, version)?.path,
        };
        Some(self.private_path(path, i, &format!("new-{}", version.name())))
    }

    /// The private path of a displaced file.
    pub(super) fn displaced_path(&self, path: &Path, i: usize, slot: Slot) -> PathBuf {
        match slot {
            Slot::Version(version) => self.private_path(path, i, &format!("old-{}", version.name())),
            Slot::Recreated(_) => self.private_path(path, i, "old-stray"),
        }
    }

    /// The private path of the file that is exchanged with the one at `path`.
    pub(super) fn exchanged_path(&self, path: &Path, i: usize) -> PathBuf {
        self.private_path(path, i, "exchanged")
    }

    /// The path of a displaced file in the operation's folder.
    pub(super) fn backup_path(&self, i: usize, file: &ReceiptFile, slot: Slot) -> PathBuf {
        match (slot, &file.backup) {
            (Slot::Version(Version::Before), Some(name)) => self.folder.join(name),
            (Slot::Version(version), _) => self.folder.join(format!("{i}.{}", version.name())),
            (Slot::Recreated(_), _) => self.folder.join(format!("{i}.stray")),
        }
    }

    /// The file in the operation's folder with the lines of an append.
    pub(super) fn lines_path(&self, i: usize) -> PathBuf {
        self.folder.join(format!("{i}.lines"))
    }

    /// Whether a change to this file was started.
    pub(super) fn has_touched(&self, i: usize) -> bool {
        self.touched.contains(&i)
    }

    /// Drops the list of displaced files; [`Executor::recover`] finds them again.
    pub(super) fn forget_displaced(&mut self) {
        self.displaced.clear();
    }

    /// Checks that a log can be appended to, and that a private file can be created in its folder.
    pub(super) fn check_can_append(&self, i: usize, file: &ReceiptFile) -> io::Result<()> {
        self.fs.open_append(&file.path)?;
        let probe = self.private_path(&file.path, i, "new-before");
        self.fs.create_new(&probe, Visibility::Private)?;
        self.fs.remove_file(&probe)
    }

    /// Opens and locks the file that has this name now.
    pub(super) fn open_locked(&self, path: &Path) -> Result<File, OpError> {
        for _ in 0..crate::append::LOCK_ATTEMPTS {
            let file = self.fs.open(path)?;
            lock(&file)?;
            if is_metadata_of(self.fs.metadata(path)?.as_ref(), &file)? {
                return Ok(file);
            }
        }
        Err(changed(path, "another program keeps replacing it"))
    }

    /// Appends everything that `from` returns to `to`.
    pub(super) fn copy(&self, from: &mut dyn Read, to: &mut File) -> io::Result<u64> {
        let mut buffer = vec![0; CHUNK];
        let mut length = 0;
        loop {
            let n = match from.read(&mut buffer) {
                Ok(0) => return Ok(length),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            write_all(self.fs, to, &buffer[..n])?;
            length += n as u64;
        }
    }

    /// Creates the folder of a file.
    pub(super) fn make_folder(&self, path: &Path) -> io::Result<()> {
        create_folders(self.fs, path.parent().unwrap_or(Path::new("")), Visibility::Shared)
    }

    /// Waits until the name of a file is on disk.
    pub(super) fn sync_parent(&self, path: &Path) -> Result<(), OpError> {
        match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => Ok(self.fs.sync_folder(folder)?),
            _ => Ok(()),
        }
    }

    /// Removes staged content, and copies of files that were not displaced. With `keep`, staged content of
    /// the version after is moved into the operation's folder for a redo.
    pub(super) fn clear_staged(&self, receipt: &Receipt, keep: bool) -> Result<(), OpError> {
        for (i, file) in receipt.files.iter().enumerate() {
            for version in [Version::Before, Version::After] {
                let Some(staged) = self.staged_path(i, file, version) else { continue };
                if self.fs.metadata(&staged)?.is_none() {
                    continue;
                }
                let backup = self.backup_path(i, file, Slot::Version(version));
                if keep && version == Version::After && self.fs.metadata(&backup)?.is_none() {
                    self.move_into_folder(&staged, &backup)?;
                } else {
                    self.fs.remove_file(&staged)?;
                }
            }
            let copy = self.copy_path(i);
            if self.fs.metadata(&copy)?.is_some() {
                self.fs.remove_file(&copy)?;
            }
        }
        Ok(())
    }

    /// Sets the modification time of files that have version `version`, and nothing after it, to that of the
    /// version, where it is known and the system allows it.
    pub(super) fn set_times(&self, receipt: &Receipt, version: Version) -> Result<(), OpError> {
        for file in &receipt.files {
            let (path, millis, length) = match version {
                Version::Before => {
                    (Some(&*file.path), file.modified_before, file.size_before.or(file.length_before))
                }
                Version::After => {
                    let path = version_file(file, version).map(|version| version.path);
                    (path, file.modified_after, file.length_after)
                }
            };
            let millis = millis.and_then(|millis| u64::try_from(millis).ok());
            let (Some(path), Some(millis)) = (path, millis) else { continue };
            if let Some(metadata) = self.fs.metadata(path)?
                && metadata.is_file()
                && Some(metadata.len()) == length
            {
                match self.fs.set_modified(path, UNIX_EPOCH + Duration::from_millis(millis)) {
                    // Only the owner may set it. The content is right, so the operation has not failed.
                    Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                    set => set?,
                }
            }
        }
        Ok(())
    }
}
