//! Undoing an operation.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use super::apply::{create, put_back};
use super::digest::Hashing;
use super::{FileDigest, OpError, Operations, Receipt, ReceiptFile, State, sweep};
use crate::replace::replace;
use crate::snapshot::Snapshot;

/// What an undo did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Undone {
    /// How many files are now as they were before.
    pub files: usize,
    /// How many were so already.
    pub untouched: usize,
}

/// What is to be done to a file to bring back what it was.
enum Way {
    /// Nothing.
    AsItWas,
    /// Remove it.
    Remove,
    /// Put the backup in its place.
    PutBack,
    /// Make it of the backup.
    Restore,
    /// Keep so many of its first bytes.
    Cut(u64),
}

impl Operations {
    /// Brings back what was before the operation, byte for byte, or does nothing at all and says why.
    pub fn undo(&self, receipt: &Receipt) -> Result<Undone, OpError> {
        if receipt.state == State::Undone {
            return Err(OpError::Undone { id: receipt.id.clone() });
        }
        let undone = self.revert(receipt)?;
        let receipt = Receipt { state: State::Undone, ..receipt.clone() };
        receipt.write(&self.folder(&receipt.id))?;
        Ok(undone)
    }

    /// Brings back what was before, without a word in the receipt.
    pub(super) fn revert(&self, receipt: &Receipt) -> Result<Undone, OpError> {
        let folder = self.folder(&receipt.id);
        let look = |file: &ReceiptFile| self.way_back(receipt, file, &folder);
        // All of them are looked at before the first is touched.
        let ways = receipt.files.iter().map(look).collect::<Result<Vec<_>, _>>()?;
        let mut undone = Undone::default();
        for (file, way) in receipt.files.iter().zip(ways).rev() {
            let backup = || folder.join(file.backup.as_deref().unwrap_or_default());
            if let Some(parent) = file.path.parent() {
                sweep(parent);
            }
            match way {
                Way::AsItWas => {
                    undone.untouched += 1;
                    continue;
                }
                Way::Remove => fs_err::remove_file(&file.path)?,
                Way::PutBack => put_back(&file.path, &backup())?,
                Way::Restore => {
                    fs_err::create_dir_all(file.path.parent().unwrap_or(Path::new("")))?;
                    let backup = fs_err::File::open(backup())?;
                    let permissions = backup.metadata()?.permissions();
                    create(&file.path, backup)?;
                    fs_err::set_permissions(&file.path, permissions)?;
                }
                Way::Cut(length) => {
                    let snapshot = Snapshot::take(&file.path)?;
                    replace(&snapshot, fs_err::File::open(&file.path)?.take(length), None)?;
                }
            }
            undone.files += 1;
            set_modified(file)?;
        }
        for folder in receipt.folders.iter().rev() {
            // Somebody else may have put something there.
            let _ = fs_err::remove_dir(folder);
        }
        Ok(undone)
    }

    /// How a file comes back; an error if that would lose something.
    fn way_back(&self, receipt: &Receipt, file: &ReceiptFile, folder: &Path) -> Result<Way, OpError> {
        let now = FileDigest::read(&file.path)?;
        let backup = file.backup.as_ref().map(|name| folder.join(name));
        let is_after = now.is_some() && now == file.after();
        let changed = |what: String| Err(OpError::Changed { path: file.path.clone(), what });
        let grown = |now: FileDigest| match file.length_after {
            Some(after) if now.length > after => format!("{} bytes were added", now.length - after),
            _ => "its content is another".to_owned(),
        };
        match (&*file.action, now) {
            // One that was there before is not ours.
            ("create", _) if file.length_before.is_some() => Ok(Way::AsItWas),
            ("create", None) => Ok(Way::AsItWas),
            ("create", Some(_)) if is_after || file.after().is_none() => Ok(Way::Remove),
            ("replace", Some(_)) if is_after => Ok(Way::PutBack),
            ("remove", None) if receipt.state == State::Begun && !exists(backup.as_deref()) => {
                changed("it is gone".to_owned())
            }
            ("remove", None) => Ok(Way::Restore),
            ("append", Some(now)) if Some(now.length) == file.length_before => Ok(Way::AsItWas),
            ("append", Some(now)) if is_after => Ok(Way::Cut(file.length_before.unwrap_or(now.length))),
            ("create" | "append", Some(now)) => changed(grown(now)),
            ("replace" | "remove", Some(now)) => {
                let has_grown = match file.after() {
                    Some(after) if now.length > after.length => begins_with(&file.path, after)?,
                    _ => false,
                };
                // If it died on the way, a file that is not the new one was never touched; else somebody may
                // have put the old one back by hand.
                let untouched = match &backup {
                    _ if has_grown => false,
                    _ if receipt.state == State::Begun => true,
                    Some(backup) if backup.exists() => same(&file.path, backup)?,
                    _ => false,
                };
                if untouched { Ok(Way::AsItWas) } else { changed(grown(now)) }
            }
            _ => changed("it is gone".to_owned()),
        }
    }
}

fn exists(path: Option<&Path>) -> bool {
    path.is_some_and(Path::exists)
}

/// Whether a file begins with what an operation left in it.
fn begins_with(path: &Path, after: FileDigest) -> io::Result<bool> {
    let mut start = Hashing::new(fs_err::File::open(path)?.take(after.length));
    io::copy(&mut start, &mut io::sink())?;
    Ok(start.digest() == after)
}

/// Whether two files hold the same.
fn same(a: &Path, b: &Path) -> io::Result<bool> {
    if fs_err::metadata(a)?.len() != fs_err::metadata(b)?.len() {
        return Ok(false);
    }
    Ok(FileDigest::read(a)? == FileDigest::read(b)?)
}

/// Gives a file the time that it had.
fn set_modified(file: &ReceiptFile) -> io::Result<()> {
    let Some(millis) = file.modified_before.and_then(|millis| u64::try_from(millis).ok()) else {
        return Ok(());
    };
    if file.path.exists() {
        let time = UNIX_EPOCH + Duration::from_millis(millis);
        File::options().write(true).open(&file.path)?.set_modified(time)?;
    }
    Ok(())
}
