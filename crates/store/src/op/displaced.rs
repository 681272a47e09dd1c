//! Displaced files: files that lost their name to another version and are not in the operation's folder yet.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::executor::Executor;
use super::foreign_lines::Extent;
use super::install::cannot_write;
use super::version::{ContentMatch, Version, VersionFile, is_same_file, version_file};
use super::{ChangedFile, FileAction, FileDigest, OpError, Receipt, ReceiptFile};
use crate::append::lock;
use crate::disk::{Visibility, write_all};
use crate::identity::FileId;

/// Time between two checks whether a displaced file still grows.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Number of checks without growth before a file that another program has open counts as quiet.
const QUIET_POLLS_WHILE_OPEN: usize = 20;

/// Part of the name of a file in the operation's folder that other programs have written to.
const FOREIGN: &str = ".foreign";

/// The extension of an unfinished copy in the operation's folder.
const COPY: &str = "copy";

/// The space that copies of displaced files leave free for receipts.
const RECEIPT_MARGIN: usize = 64 << 10;

/// Number of checks before giving up.
const MAX_POLLS: usize = 200;

/// Identifies a displaced file of a receipt entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A version of the file.
    Version(Version),
    /// A log that another program created at the path of this version.
    Recreated(Version),
}

impl Slot {
    /// Returns the version of the file that receives the lines that are still written to this one.
    fn successor(self) -> Version {
        match self {
            Self::Version(version) => version.opposite(),
            Self::Recreated(version) => version,
        }
    }
}

/// A file that lost its name and is not in the operation's folder yet.
pub(super) struct Displaced {
    /// The index of the file in the receipt.
    pub(super) i: usize,
    pub(super) slot: Slot,
    pub(super) path: PathBuf,
    /// The file that receives the lines that are still written to this one.
    pub(super) successor: Option<PathBuf>,
    /// Up to which offset it was copied to the successor.
    pub(super) offset: u64,
    pub(super) grows: bool,
}

impl Executor<'_> {
    /// Finds the displaced files that an interrupted run left, and settles them.
    pub(super) fn recover(&mut self, receipt: &mut Receipt) -> Result<(), OpError> {
        for (i, file) in receipt.files.iter().enumerate() {
            if file.action == FileAction::Unlink {
                self.finish_unlink(i, file)?;
                continue;
            }
            for to in [Version::Before, Version::After] {
                self.recover_exchange(i, file, to)?;
            }
            for slot in [
                Slot::Version(Version::Before),
                Slot::Version(Version::After),
                Slot::Recreated(Version::Before),
                Slot::Recreated(Version::After),
            ] {
                self.recover_one(i, file, slot)?;
            }
            let target = file.target.as_ref().filter(|_| file.action == FileAction::Move);
            for path in [Some(&file.path), target].into_iter().flatten() {
                // A file of another program, which it has replaced by a later one.
                let exchanged = self.exchanged_path(path, i);
                if self.fs.metadata(&exchanged)?.is_some() {
                    self.keep_foreign_file(i, &exchanged)?;
                }
            }
        }
        self.settle(receipt)?;
        Ok(())
    }

    fn recover_one(&mut self, i: usize, file: &ReceiptFile, slot: Slot) -> Result<(), OpError> {
        let (own, successor) = match slot {
            Slot::Recreated(version) => match version_file(file, version) {
                None => return Ok(()),
                successor => (None, successor),
            },
            Slot::Version(_) if file.action == FileAction::Append => (None, None),
            Slot::Version(version) => {
                (self.resolve(i, file, version)?, self.resolve(i, file, version.opposite())?)
            }
        };
        let place = if let Slot::Recreated(_) = slot { &successor } else { &own };
        let path = place.as_ref().map_or(&*file.path, |place| place.path);
        let displaced = self.displaced_path(path, i, slot);
        let Some(metadata) = self.fs.metadata(&displaced)? else { return Ok(()) };
        if self.fs.metadata(path)?.is_some_and(|now| is_same_file(&now, &metadata)) {
            // The run was interrupted before another file took the name.
            return Ok(self.fs.remove_file(&displaced)?);
        }
        let mut offset = own.as_ref().map_or(0, VersionFile::length);
        let mut successor_path = successor.as_ref().map(|successor| successor.path.to_owned());
        if file.action == FileAction::Append {
            successor_path = Some(file.path.clone());
        }
        if let Some(successor_path) = &successor_path
            && self.fs.metadata(successor_path)?.is_none()
        {
            return match self.fs.rename_new(&displaced, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                renamed => Ok(renamed?),
            };
        }
        if let Some(successor_path) = &successor_path
            && file.grows
        {
            offset = if file.action == FileAction::Append {
                let range = self.find_appended(i, file, &mut self.fs.open(&displaced)?)?.unwrap_or_default();
                let range = range.unwrap_or_default();
                let end = self.end_of_appended(&displaced, range, successor_path)?;
                self.append_missing_lines(&displaced, end, successor_path, range.0)?
            } else {
                let successor_base = successor.as_ref().map_or(0, VersionFile::length);
                self.append_missing_lines(&displaced, offset, successor_path, successor_base)?
            };
        }
        self.displaced.push(Displaced {
            i,
            slot,
            path: displaced,
            successor: successor_path,
            offset,
            grows: file.grows,
        });
        Ok(())
    }

    /// Waits until the displaced files stop growing, copies their new lines, and moves them into the
    /// operation's folder. Returns the files that were put back because another program had changed them.
    pub(super) fn settle(&mut self, receipt: &mut Receipt) -> Result<Vec<ChangedFile>, OpError> {
        self.copy_late_lines(&receipt.files)?;
        let displaced = std::mem::take(&mut self.displaced);
        let backups = displaced.iter().map(|one| self.backup_path(one.i, &receipt.files[one.i], one.slot));
        let open = self.written_elsewhere(backups)?;
        let mut put_back = Vec::new();
        for displaced in displaced {
            put_back.extend(self.archive_displaced(&displaced, &mut receipt.files[displaced.i], &open)?);
        }
        Ok(put_back)
    }

    /// Copies lines that other programs still write to displaced files, until none of them grows.
    fn copy_late_lines(&mut self, files: &[ReceiptFile]) -> Result<(), OpError> {
        let mut displaced = std::mem::take(&mut self.displaced);
        let result = self.copy_late_lines_of(&mut displaced, files);
        self.displaced = displaced;
        result
    }

    fn copy_late_lines_of(
        &mut self,
        displaced: &mut [Displaced],
        files: &[ReceiptFile],
    ) -> Result<(), OpError> {
        if !displaced.iter().any(|displaced| displaced.grows) {
            return Ok(());
        }
        let mut lengths = Vec::new();
        let mut quiet = 0;
        for _ in 0..MAX_POLLS {
            let mut now = Vec::new();
            for displaced in displaced.iter_mut().filter(|displaced| displaced.grows) {
                now.push(self.copy_late_lines_of_one(displaced, Extent::WholeLines)?);
            }
            quiet = if now == lengths { quiet + 1 } else { 0 };
            let is_open = || {
                let files = displaced.iter().filter_map(|file| self.fs.metadata(&file.path).ok().flatten());
                !self.fs.written_elsewhere(&files.collect::<Vec<_>>()).is_empty()
            };
            if quiet >= QUIET_POLLS_WHILE_OPEN || quiet > 0 && !is_open() {
                for displaced in displaced.iter_mut().filter(|displaced| displaced.grows) {
                    let successor = version_file(&files[displaced.i], displaced.slot.successor());
                    let base = successor.map_or(0, |successor| successor.length());
                    self.copy_late_lines_of_one(displaced, Extent::AllAfter(base))?;
                }
                return Ok(());
            }
            lengths = now;
            self.fs.pause(POLL_INTERVAL);
        }
        let paths =
            displaced.iter().filter(|displaced| displaced.grows).map(|displaced| displaced.path.clone());
        Err(OpError::StillWritten { paths: paths.collect() })
    }

    /// Copies the new lines of a displaced file to its successor. Returns the length of the displaced file.
    fn copy_late_lines_of_one(&mut self, displaced: &mut Displaced, extent: Extent) -> io::Result<u64> {
        let mut old = self.fs.open(&displaced.path)?;
        let length = old.metadata()?.len();
        if length > displaced.offset
            && let Some(successor) = &displaced.successor
            && self.fs.metadata(successor)?.is_some()
        {
            let mut new = self.fs.open_append(successor)?;
            lock(&new)?;
            let offset = self.append_rest(&mut old, displaced.offset, &mut new, extent)?;
            if offset > displaced.offset {
                self.fs.sync(&new, successor)?;
            }
            displaced.offset = offset;
        }
        Ok(length)
    }

    /// Moves a displaced file into the operation's folder, or back to its path if another program changed it
    /// while it was being removed. `open` are the backups that other programs have open.
    fn archive_displaced(
        &mut self,
        displaced: &Displaced,
        file: &mut ReceiptFile,
        open: &HashSet<FileId>,
    ) -> Result<Option<ChangedFile>, OpError> {
        let i = displaced.i;
        if file.action == FileAction::Create && displaced.slot == Slot::Version(Version::After) {
            let length = file.length_after.unwrap_or(0);
            let now = self.match_file(&displaced.path, &[(Version::After, file.after())], file.grows)?;
            if !matches!(now, ContentMatch::Version(_, 0)) {
                // Another program wrote to it while it was being removed.
                match self.fs.rename_new(&displaced.path, &file.path) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        // The program also created the file again: the lines are appended there.
                        self.append_missing_lines(&displaced.path, length, &file.path, 0)?;
                    }
                    renamed => {
                        renamed?;
                        let what = "it was changed while it was being removed".to_owned();
                        return Ok(Some(ChangedFile { path: file.path.clone(), what }));
                    }
                }
            }
        }
        let backup = self.backup_path(i, file, displaced.slot);
        if let Some(previous) = self.fs.metadata(&backup)? {
            // A program that has the backup open may still write to it.
            self.keep_late_bytes(displaced, file, &backup, open.contains(&FileId::of(&previous)))?;
        }
        self.move_into_folder(&displaced.path, &backup)?;
        if file.action == FileAction::Remove
            && displaced.slot == Slot::Version(Version::Before)
            && let Some(digest) = FileDigest::read(&backup)?
        {
            file.set_before(digest);
        }
        Ok(None)
    }

    /// Keeps the bytes that another program wrote to a backup, before a displaced file replaces it: its
    /// lines are appended to the successor of that file, or to the file itself. Other bytes stay in a file
    /// with another name, and so does a backup that is still open.
    fn keep_late_bytes(
        &mut self,
        displaced: &Displaced,
        file: &ReceiptFile,
        backup: &Path,
        is_open: bool,
    ) -> Result<(), OpError> {
        if let Slot::Version(version) = displaced.slot
            && file.action != FileAction::Append
        {
            let kept = version_file(file, version);
            let base = kept.as_ref().map_or(0, VersionFile::length);
            let successor_base = version_file(file, version.opposite()).map_or(0, |kept| kept.length());
            match &displaced.successor {
                _ if !file.grows => {
                    let digest = kept.and_then(|kept| kept.digest);
                    if !is_open && digest.is_some() && FileDigest::read(backup)? != digest {
                        return self.keep_foreign_file(displaced.i, backup);
                    }
                }
                Some(successor) if self.fs.metadata(successor)?.is_some() => {
                    self.append_missing_lines(backup, base, successor, successor_base)?;
                }
                _ => {
                    self.append_missing_lines(backup, base, &displaced.path, base)?;
                }
            }
        }
        if is_open {
            self.fs.rename_new(backup, &self.free_name(backup)?)?;
        }
        Ok(())
    }

    /// Appends the lines that another program wrote to the backup of a removed log after it was restored.
    pub(super) fn add_late_backup_lines(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
    ) -> Result<(), OpError> {
        if file.action != FileAction::Remove || !file.grows || to == Version::After {
            return Ok(());
        }
        let backup = self.backup_path(i, file, Slot::Version(to));
        if let Some(before) = version_file(file, to)
            && self.fs.metadata(&backup)?.is_some()
            && self.fs.metadata(before.path)?.is_some()
        {
            self.append_missing_lines(&backup, before.length(), before.path, before.length())?;
        }
        Ok(())
    }

    /// Returns which of the files at `paths` another program has open, and may still write to.
    fn written_elsewhere(&self, paths: impl Iterator<Item = PathBuf>) -> Result<HashSet<FileId>, OpError> {
        let files: Vec<Metadata> =
            paths.filter_map(|path| self.fs.metadata(&path).transpose()).collect::<io::Result<_>>()?;
        Ok(self.fs.written_elsewhere(&files))
    }

    /// Returns the files in the operation's folder that another program has open, and may still write to.
    pub(super) fn open_backups(&self) -> Result<Vec<PathBuf>, OpError> {
        let entries = fs_err::read_dir(&self.folder)?;
        let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
        paths.sort();
        let open = self.written_elsewhere(paths.iter().cloned())?;
        if open.is_empty() {
            return Ok(Vec::new());
        }
        let is_open = |path: &PathBuf| {
            let file = self.fs.metadata(path).ok().flatten();
            file.is_some_and(|file| open.contains(&FileId::of(&file)))
        };
        paths.retain(is_open);
        Ok(paths)
    }

    /// Returns the path with a number appended: the first one for which there is no file.
    fn free_name(&self, path: &Path) -> io::Result<PathBuf> {
        let mut n = 1;
        loop {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{n}"));
            let name = PathBuf::from(name);
            if self.fs.metadata(&name)?.is_none() {
                return Ok(name);
            }
            n += 1;
        }
    }

    /// Moves a file that other programs have written to into the operation's folder.
    pub(super) fn keep_foreign_file(&self, i: usize, path: &Path) -> Result<(), OpError> {
        self.move_into_folder(path, &self.free_name(&self.folder.join(format!("{i}{FOREIGN}")))?)
    }

    /// Whether the operation's folder contains bytes that other programs wrote, or a file that they may still
    /// write to, once every file has its version before the operation again.
    pub(super) fn has_foreign_bytes(&mut self, receipt: &Receipt) -> Result<bool, OpError> {
        if !self.open_backups()?.is_empty() || self.has_foreign_file()? {
            return Ok(true);
        }
        for (i, file) in receipt.files.iter().enumerate() {
            let Some(before) = version_file(file, Version::Before) else { continue };
            let backup = self.backup_path(i, file, Slot::Version(Version::Before));
            if self.fs.metadata(&backup)?.is_none() {
                continue;
            }
            if !self.fs.finds_writers() {
                return Ok(true);
            }
            // No program writes to it any more.
            if FileDigest::read(&backup)? != before.digest {
                if !file.grows {
                    return Ok(true);
                }
                self.append_missing_lines(&backup, before.length(), before.path, before.length())?;
            }
        }
        Ok(false)
    }

    /// Whether the operation's folder contains a file that other programs have written to.
    fn has_foreign_file(&self) -> Result<bool, OpError> {
        for entry in fs_err::read_dir(&self.folder)? {
            if entry?.file_name().to_string_lossy().contains(FOREIGN) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Moves a file into the operation's folder, which may be on another file system. Replaces a file of that
    /// name.
    pub(super) fn move_into_folder(&self, path: &Path, to: &Path) -> Result<(), OpError> {
        match self.fs.rename(path, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            renamed => return Ok(renamed?),
        }
        let copy = to.with_extension(COPY);
        let mut old = self.fs.open(path)?;
        let mut new = match self.fs.metadata(&copy)? {
            Some(_) => self.fs.open_append(&copy)?,
            None => self.fs.create_new(&copy, Visibility::Private)?,
        };
        if !continue_copy(&mut old, &mut new)? {
            self.fs.truncate(&new, 0)?;
            old.rewind()?;
        }
        self.copy(&mut old, &mut new)?;
        self.fs.set_permissions(&new, old.metadata()?.permissions())?;
        self.fs.sync(&new, &copy)?;
        self.fs.rename(&copy, to)?;
        self.fs.sync_folder(&self.folder)?;
        self.fs.remove_file(path)?;
        // A program that still has the file open may have written until now.
        self.copy(&mut old, &mut new)?;
        Ok(())
    }

    /// The copy of a file that is made before the file is displaced.
    pub(super) fn copy_path(&self, i: usize) -> PathBuf {
        self.folder.join(format!("{i}.{COPY}"))
    }

    /// Copies the files that a change to version `to` will displace to the operation's folder, if that is on
    /// another file system. Without space for the copies, nothing has been changed yet.
    pub(super) fn copy_all_ahead(&self, receipt: &Receipt, to: Version) -> Result<(), OpError> {
        receipt.files.iter().enumerate().try_for_each(|(i, file)| self.copy_ahead(i, file, to))
    }

    fn copy_ahead(&self, i: usize, file: &ReceiptFile, to: Version) -> Result<(), OpError> {
        let path = file.current_path(to);
        let is_displaced = match (file.action, to) {
            (FileAction::Unlink, _) => false,
            (FileAction::Create | FileAction::Append, Version::After) => false,
            (FileAction::Remove, Version::Before) => false,
            _ => self.fs.metadata(path)?.is_some_and(|metadata| metadata.is_file()),
        };
        if !is_displaced || !self.fs.crosses_devices(path, &self.folder)? {
            return Ok(());
        }
        let copy = self.copy_path(i);
        if self.fs.metadata(&copy)?.is_some() {
            self.fs.remove_file(&copy)?;
        }
        let mut old = self.fs.open(path)?;
        let mut new = self.fs.create_new(&copy, Visibility::Private)?;
        // The receipt is written several times before this copy is of use.
        let margin = vec![0; RECEIPT_MARGIN];
        self.copy(&mut old, &mut new)
            .and_then(|length| {
                write_all(self.fs, &mut new, &margin)?;
                self.fs.sync(&new, &copy)?;
                self.fs.truncate(&new, length)
            })
            .map_err(|error| cannot_write(&copy, error))?;
        Ok(())
    }
}

/// Moves the position of `old` behind the content of `copy`, if `old` begins with it.
fn continue_copy(old: &mut File, copy: &mut File) -> io::Result<bool> {
    let length = copy.metadata()?.len();
    Ok(FileDigest::read_from(copy)? == FileDigest::read_from(old.take(length))?)
}
