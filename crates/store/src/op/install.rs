//! Changes a file to its target version: stage the content, then rename it into place.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::digest::Hashing;
use super::displaced::{Displaced, Slot};
use super::error::changed;
use super::executor::Executor;
use super::foreign_lines::Extent;
use super::version::{
    ContentMatch, Version, VersionFile, is_link_to, is_metadata_of, is_same_file, match_open_file,
    version_file,
};
use super::{FileAction, FileDigest, OpError, ReceiptFile};
use crate::disk::{CAN_EXCHANGE, Visibility, describe};

/// The content of a staged file, without additions of other programs.
#[derive(Clone, Copy)]
enum OwnContent {
    /// The lines up to this offset.
    Lines(u64),
    /// Exactly this content.
    Whole(Option<FileDigest>),
    /// Nothing but lines of the file from which the lines of the operation are removed.
    Copied,
}

impl Executor<'_> {
    /// Changes a file with the status `Status::Ready` to version `to`. The displaced file is pending until
    /// [`Executor::settle`].
    pub(super) fn change(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        is_first: bool,
    ) -> Result<(), OpError> {
        self.touched.insert(i);
        match (file.action, to) {
            (FileAction::Unlink, Version::After) => return self.unlink(i, file),
            (FileAction::Unlink, Version::Before) => {
                self.make_folder(&file.path)?;
                let target = file.target.as_deref().unwrap_or(Path::new(""));
                return Ok(self.fs.symlink(target, &file.path)?);
            }
            (FileAction::Append, Version::After) => return self.append(i, file),
            (FileAction::Append, Version::Before) => return self.remove_appended(i, file),
            _ => {}
        }
        let from = to.opposite();
        let wanted = self.resolve(i, file, to)?;
        let current = self.resolve(i, file, from)?;
        let (path, successor, offset) = match (current, wanted) {
            (Some(current), Some(wanted)) if current.path == wanted.path => {
                self.install(i, file, to, Some(&current), &wanted)?;
                return Ok(());
            }
            (None, Some(wanted)) => {
                self.install(i, file, to, None, &wanted)?;
                return Ok(());
            }
            (Some(current), Some(wanted)) => {
                let is_installed = matches!(
                    self.match_file(wanted.path, &[(to, wanted.digest)], file.grows)?,
                    ContentMatch::Version(..)
                );
                let offset = if is_installed {
                    self.append_missing_lines(current.path, current.length(), wanted.path, wanted.length())?
                } else {
                    self.install(i, file, to, Some(&current), &wanted)?
                };
                (current.path, Some(wanted.path.to_owned()), offset)
            }
            (Some(current), None) => (current.path, None, if is_first { 0 } else { current.length() }),
            (None, None) => return Ok(()),
        };
        let slot = Slot::Version(from);
        let displaced = self.displaced_path(path, i, slot);
        self.fs.rename_new(path, &displaced)?;
        self.displaced.push(Displaced { i, slot, path: displaced, successor, offset, grows: file.grows });
        Ok(())
    }

    /// Removes a symbolic link. Another program may have given its name to a file since the last check, so it
    /// gets a private name first.
    fn unlink(&mut self, i: usize, file: &ReceiptFile) -> Result<(), OpError> {
        let displaced = self.displaced_path(&file.path, i, Slot::Version(Version::Before));
        self.fs.rename_new(&file.path, &displaced)?;
        if !self.finish_unlink(i, file)? {
            self.touched.remove(&i);
            return Err(changed(&file.path, "another program has replaced it"));
        }
        Ok(())
    }

    /// Removes a link that has its private name. Returns `false` if it is a file of another program, which
    /// gets its name back.
    pub(super) fn finish_unlink(&self, i: usize, file: &ReceiptFile) -> Result<bool, OpError> {
        let displaced = self.displaced_path(&file.path, i, Slot::Version(Version::Before));
        if self.fs.metadata(&displaced)?.is_none() {
            return Ok(true);
        }
        if is_link_to(&displaced, file.target.as_deref()) {
            self.fs.remove_file(&displaced)?;
            return Ok(true);
        }
        match self.fs.rename_new(&displaced, &file.path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // The program has replaced its file again: the later one keeps the name.
                self.keep_foreign_file(i, &displaced)?;
            }
            renamed => renamed?,
        }
        Ok(false)
    }

    /// Installs the target content, followed by the lines that other programs added to the current file.
    /// Returns up to which offset the current file was copied.
    fn install(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        current: Option<&VersionFile<'_>>,
        wanted: &VersionFile<'_>,
    ) -> Result<u64, OpError> {
        let (mut new, staged) = self.prepare(i, file, to, wanted)?;
        let from = to.opposite();
        let mut offset = 0;
        let mut old = None;
        if let Some(current) = current {
            let mut opened = self.open_locked(current.path)?;
            match current.digest.map(|digest| match_open_file(&mut opened, &[(from, digest)], file.grows)) {
                Some(Ok(ContentMatch::Version(..))) => {}
                Some(Err(error)) => return Err(error.into()),
                _ => return Err(changed(current.path, "its content is different")),
            }
            offset = self.append_rest(&mut opened, current.length(), &mut new, Extent::WholeLines)?;
            self.fs.set_permissions(&new, opened.metadata()?.permissions())?;
            old = Some(opened);
        }
        if file.grows {
            self.append_late_backup_lines(i, file, to, wanted, &mut new)?;
        }
        self.fs.sync(&new, &staged)?;
        match (&old, current) {
            (Some(old), Some(current)) if current.path == wanted.path => {
                let expected = current.digest.filter(|_| !file.grows);
                self.swap(i, Slot::Version(from), old, expected, &staged, wanted.path, offset)?;
            }
            _ => match self.fs.rename_new(&staged, wanted.path) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && self.absorbs_recreated_log(file, to) =>
                {
                    // Another program has created the log again since the operation removed it.
                    let mut recreated = self.open_locked(wanted.path)?;
                    let offset = self.append_rest(&mut recreated, 0, &mut new, Extent::WholeLines)?;
                    self.fs.sync(&new, &staged)?;
                    self.swap(i, Slot::Recreated(to), &recreated, None, &staged, wanted.path, offset)?;
                }
                renamed => {
                    renamed?;
                    self.sync_parent(wanted.path)?;
                }
            },
        }
        Ok(offset)
    }

    /// Replaces the file at `path` with the staged one. The displaced file keeps a private name.
    ///
    /// A file with an `expected` content does not grow: it is left if its content is another one.
    #[expect(clippy::too_many_arguments, reason = "the parts of one displaced file")]
    pub(super) fn swap(
        &mut self,
        i: usize,
        slot: Slot,
        old: &File,
        expected: Option<FileDigest>,
        staged: &Path,
        path: &Path,
        offset: u64,
    ) -> Result<(), OpError> {
        let displaced = self.displaced_path(path, i, slot);
        let is_linked = match self.fs.link(path, &displaced) {
            Ok(()) => true,
            // Without hard links, no file has the name for a moment.
            Err(error) if has_no_links(error.kind()) => {
                self.fs.rename_new(path, &displaced)?;
                false
            }
            Err(error) => return Err(error.into()),
        };
        let is_old = is_metadata_of(self.fs.metadata(&displaced)?.as_ref(), old)?;
        let is_replaced = match (is_old, is_linked) {
            (true, true) => self.exchange(i, old, expected, staged, path)?,
            (true, false) => {
                self.fs.rename_new(staged, path)?;
                true
            }
            (false, _) => false,
        };
        if !is_replaced {
            if is_linked {
                self.fs.remove_file(&displaced)?;
            } else {
                self.fs.rename_new(&displaced, path)?;
            }
            return Err(changed(path, "another program has replaced it"));
        }
        let (successor, grows) = (Some(path.to_owned()), expected.is_none());
        self.displaced.push(Displaced { i, slot, path: displaced, successor, offset, grows });
        self.sync_parent(path)
    }

    /// Gives the staged file the name of `old`, which has another name already. Returns `false` if another
    /// program has replaced `old` or changed its content: then its file keeps the name.
    ///
    /// A rename would remove a file that another program has given the name since the last check. So the
    /// names are exchanged, and exchanged back if the displaced file is not the expected one. The staged file
    /// keeps its private name meanwhile; [`Executor::recover_exchange`] continues from any state.
    fn exchange(
        &mut self,
        i: usize,
        old: &File,
        expected: Option<FileDigest>,
        staged: &Path,
        path: &Path,
    ) -> Result<bool, OpError> {
        if !CAN_EXCHANGE {
            self.fs.rename(staged, path)?;
            return Ok(true);
        }
        let own = match expected {
            None => OwnContent::Lines(self.fs.metadata(staged)?.map_or(0, |staged| staged.len())),
            Some(_) => OwnContent::Whole(FileDigest::read(staged)?),
        };
        let exchanged = self.exchanged_path(path, i);
        self.fs.link(staged, &exchanged)?;
        match self.fs.exchange(&exchanged, path) {
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.fs.remove_file(&exchanged)?;
                self.fs.rename(staged, path)?;
                return Ok(true);
            }
            result => result?,
        }
        let is_old = is_metadata_of(self.fs.metadata(&exchanged)?.as_ref(), old)?;
        let is_expected = is_old
            && match expected {
                None => true,
                Some(expected) => FileDigest::read(&exchanged)? == Some(expected),
            };
        if !is_expected {
            self.put_back(i, &exchanged, staged, path, own)?;
            return Ok(false);
        }
        self.fs.remove_file(&exchanged)?;
        self.fs.remove_file(staged)?;
        Ok(true)
    }

    /// Gives the file of another program its name back, which the staged file has.
    fn put_back(
        &mut self,
        i: usize,
        exchanged: &Path,
        staged: &Path,
        path: &Path,
        own: OwnContent,
    ) -> Result<(), OpError> {
        self.fs.exchange(exchanged, path)?;
        if self.is_one_file(exchanged, staged)? {
            return self.remove_exchanged(i, exchanged, path, own);
        }
        // The program has replaced its file again: the later one keeps the name.
        self.fs.exchange(exchanged, path)?;
        Ok(self.fs.remove_file(exchanged)?)
    }

    /// Removes the second name of the staged file. Bytes that other programs wrote to it while it had the
    /// name `path` are kept: lines are appended to the file that has the name now, another file is moved
    /// into the operation's folder.
    fn remove_exchanged(
        &mut self,
        i: usize,
        exchanged: &Path,
        path: &Path,
        own: OwnContent,
    ) -> Result<(), OpError> {
        let is_own = match own {
            OwnContent::Lines(length) if self.fs.metadata(path)?.is_some() => {
                self.append_missing_lines(exchanged, length, path, 0)?;
                true
            }
            OwnContent::Whole(digest) => FileDigest::read(exchanged)? == digest,
            OwnContent::Copied if self.fs.metadata(path)?.is_some() => self.has_lines_of(path, exchanged)?,
            OwnContent::Lines(_) | OwnContent::Copied => false,
        };
        if is_own { Ok(self.fs.remove_file(exchanged)?) } else { self.keep_foreign_file(i, exchanged) }
    }

    /// Completes or reverts an exchange to version `to` that was interrupted.
    pub(super) fn recover_exchange(
        &mut self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
    ) -> Result<(), OpError> {
        let Some(staged) = self.staged_path(i, file, to).filter(|_| CAN_EXCHANGE) else { return Ok(()) };
        let path = match file.action {
            FileAction::Append => &*file.path,
            _ => version_file(file, to).map_or(&*file.path, |version| version.path),
        };
        let exchanged = self.exchanged_path(path, i);
        let displaced = self.displaced_path(path, i, Slot::Version(to.opposite()));
        let recreated = self.displaced_path(path, i, Slot::Recreated(to));
        let own = match version_file(file, to) {
            _ if file.action == FileAction::Append => OwnContent::Copied,
            Some(version) if file.grows => OwnContent::Lines(version.length()),
            version => OwnContent::Whole(version.and_then(|version| version.digest)),
        };
        if self.fs.metadata(&exchanged)?.is_some() {
            if self.is_one_file(&exchanged, &staged)? {
                // Before the exchange, or after it was reverted.
                self.remove_exchanged(i, &exchanged, path, own)?;
            } else if self.is_one_file(&exchanged, &displaced)? || self.is_one_file(&exchanged, &recreated)? {
                // After the exchange.
                self.fs.remove_file(&exchanged)?;
            } else if self.is_one_file(&staged, path)? {
                // After the exchange with the file of another program.
                self.put_back(i, &exchanged, &staged, path, own)?;
            }
        }
        if self.is_one_file(&staged, path)? {
            self.fs.remove_file(&staged)?;
        }
        Ok(())
    }

    /// Whether both paths exist and are names of one file.
    fn is_one_file(&self, a: &Path, b: &Path) -> io::Result<bool> {
        let (a, b) = (self.fs.metadata(a)?, self.fs.metadata(b)?);
        Ok(a.zip(b).is_some_and(|(a, b)| is_same_file(&a, &b)))
    }

    /// Opens the staged file of a version, creating it from the backup if needed. It has exactly the
    /// version's content.
    fn prepare(
        &self,
        i: usize,
        file: &ReceiptFile,
        to: Version,
        wanted: &VersionFile<'_>,
    ) -> Result<(File, PathBuf), OpError> {
        let staged = self.private_path(wanted.path, i, &format!("new-{}", to.name()));
        if self.fs.metadata(&staged)?.is_some() {
            let mut new = self.fs.open_append(&staged)?;
            if let Some(digest) = wanted.digest
                && matches!(match_open_file(&mut new, &[(to, digest)], true)?, ContentMatch::Version(..))
            {
                if new.metadata()?.len() > digest.length {
                    self.fs.truncate(&new, digest.length)?;
                }
                return Ok((new, staged));
            }
            self.fs.remove_file(&staged)?;
        }
        self.make_folder(wanted.path)?;
        let backup = self.backup_path(i, file, Slot::Version(to));
        let mut kept = self.fs.open(&backup)?;
        let permissions = kept.metadata()?.permissions();
        let mut new = self.fs.create_new(&staged, Visibility::Private)?;
        let mut content = Hashing::new((&mut kept).take(wanted.length()));
        self.copy(&mut content, &mut new).map_err(|error| cannot_write(&staged, error))?;
        if Some(content.digest()) != wanted.digest {
            self.fs.remove_file(&staged)?;
            return Err(changed(&backup, "the backup has changed"));
        }
        self.fs.set_permissions(&new, permissions)?;
        Ok((new, staged))
    }

    /// Writes the content of a new version to its private file and returns its digest.
    pub(super) fn stage(
        &self,
        i: usize,
        file: &ReceiptFile,
        content: &mut dyn Read,
        visibility: Visibility,
    ) -> Result<FileDigest, OpError> {
        let Some(staged) = self.staged_path(i, file, Version::After) else {
            return Ok(FileDigest::of(b""));
        };
        self.make_folder(&staged)?;
        let mut new = self.fs.create_new(&staged, visibility)?;
        let mut content = Hashing::new(content);
        self.copy(&mut content, &mut new).map_err(|error| cannot_write(&staged, error))?;
        self.fs.sync(&new, &staged)?;
        Ok(content.digest())
    }
}

/// Whether an error of `link` means that the file system has no hard links.
fn has_no_links(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{PermissionDenied, TooManyLinks, Unsupported};
    matches!(kind, PermissionDenied | TooManyLinks | Unsupported)
}

/// Adds the path to an error of a write.
pub(super) fn cannot_write(path: &Path, error: io::Error) -> io::Error {
    describe(error, format!("cannot write {}", path.display()))
}
