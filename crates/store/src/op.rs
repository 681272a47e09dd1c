//! Operations: changes to files that leave a receipt and can be undone.
//!
//! Each operation has a folder of its own with `receipt.json` and the files as they were before. The receipt is on
//! disk before anything is changed, and a file takes its name only when it is whole: whenever the process ends, each
//! file is either the old or the new one, and [`Operations::undo`] brings the old ones back.

mod apply;
mod digest;
mod receipt;
mod undo;

use std::io::{self, Read};
use std::path::{Path, PathBuf};

pub use digest::FileDigest;
pub use receipt::{Receipt, ReceiptFile, State};
pub use undo::Undone;

use crate::append::AppendError;
use crate::replace::ReplaceError;
use crate::snapshot::Snapshot;

/// Something to be done to a file.
pub struct Step<'a> {
    /// The file.
    pub path: PathBuf,
    /// What is to be done.
    pub action: Action<'a>,
}

/// What is to be done to a file.
pub enum Action<'a> {
    /// Make it. That it is there already is an error.
    Create(Box<dyn Read + 'a>),
    /// Put other content in its place, if it is still the file that the snapshot is of.
    Replace {
        /// The file as it was read.
        of: Snapshot,
        /// What it will hold.
        content: Box<dyn Read + 'a>,
        /// What `content` comes to.
        digest: FileDigest,
    },
    /// Add lines, given without newlines.
    Append {
        /// The file as it was read.
        of: Snapshot,
        /// The lines.
        lines: Vec<String>,
    },
    /// Take it away. The receipt keeps it.
    Remove,
}

/// Why an operation could not be done, undone or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// The file is not as the operation left it, so what it was before cannot come back without a loss.
    #[error("{} has changed since: {what}", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What is different.
        what: String,
    },

    /// No receipt has this id.
    #[error("no operation `{id}`")]
    NoSuch {
        /// What was asked for.
        id: String,
    },

    /// More than one receipt begins like this.
    #[error("`{id}` is the beginning of {n} operations")]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// How many there are.
        n: usize,
    },

    /// It was undone before.
    #[error("operation {id} is undone already")]
    Undone {
        /// The operation.
        id: String,
    },

    /// A receipt cannot be read.
    #[error("the receipt {} cannot be read: {why}", .path.display())]
    BadReceipt {
        /// The receipt.
        path: PathBuf,
        /// Why.
        why: String,
    },

    /// A file could not be replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),

    /// Lines could not be added.
    #[error(transparent)]
    Append(#[from] AppendError),

    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The receipts of a person's operations.
#[derive(Clone, Debug)]
pub struct Operations {
    dir: PathBuf,
}

impl Operations {
    /// The receipts in `dir`, which need not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The folder of an operation.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.dir.join(id)
    }

    /// Every receipt, the newest first, and what could not be read.
    pub fn list(&self) -> crate::Listing<Receipt> {
        let mut listing = crate::Listing::new();
        let Some(entries) = listing.note(fs_err::read_dir(&self.dir)) else { return listing };
        for entry in entries {
            let Some(entry) = listing.note(entry) else { continue };
            if !entry.path().join(receipt::FILE).exists() {
                continue;
            }
            match Receipt::read(&entry.path()) {
                Ok(receipt) => listing.found.push(receipt),
                Err(error) => listing.unread.push(io::Error::other(error.to_string())),
            }
        }
        listing.found.sort_by(|a, b| (&b.made_at, &b.id).cmp(&(&a.made_at, &a.id)));
        listing
    }

    /// The receipt with this id, or the beginning of it; `last` is the newest that is not undone.
    pub fn find(&self, id: &str) -> Result<Receipt, OpError> {
        let listing = self.list();
        let mut found: Vec<Receipt> = match id {
            "last" => {
                listing.found.into_iter().filter(|receipt| receipt.state != State::Undone).take(1).collect()
            }
            _ => listing
                .found
                .into_iter()
                .filter(|receipt| !id.is_empty() && receipt.id.starts_with(id))
                .collect(),
        };
        if let Some(exact) = found.iter().position(|receipt| receipt.id == id) {
            return Ok(found.swap_remove(exact));
        }
        match found.len() {
            0 => Err(OpError::NoSuch { id: id.to_owned() }),
            1 => Ok(found.swap_remove(0)),
            n => Err(OpError::Ambiguous { id: id.to_owned(), n }),
        }
    }

    /// Throws a receipt away, with the files that it kept. It can then not be undone any more.
    pub fn forget(&self, receipt: &Receipt) -> Result<(), OpError> {
        Ok(fs_err::remove_dir_all(self.folder(&receipt.id))?)
    }
}

/// Takes away what processes that died have left in a folder: temporary files that nobody holds.
fn sweep(folder: &Path) {
    for entry in fs_err::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_ours =
            name.to_str().is_some_and(|name| name.starts_with(".threadline-") && name.ends_with(".tmp"));
        if is_ours
            && let Ok(file) = fs_err::File::open(entry.path())
            && file.file().try_lock().is_ok()
        {
            // Whoever makes one locks it at once; one that can be locked is nobody's.
            let _ = fs_err::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests;
