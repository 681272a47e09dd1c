//! Errors of operations.

use std::io;
use std::path::{Path, PathBuf};

use super::OperationState;
use crate::append::AppendError;

/// A file that is not as an operation left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The file.
    pub path: PathBuf,
    /// The difference.
    pub what: String,
}

/// An attempt to change the files of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The operation was being applied.
    Apply,
    /// It was being undone.
    Undo,
    /// It was being redone or finished.
    Redo,
}

/// Why an operation could not be applied, undone, redone or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// Files are not as they were read, or as the operation left them. Nothing was changed.
    #[error("{}", list_changed(.files))]
    Changed {
        /// The files.
        files: Vec<ChangedFile>,
    },

    /// The operation failed, and every file is as it was before.
    #[error("{source}")]
    NotDone {
        /// Why it failed.
        source: Box<Self>,
        /// The number of files that had been changed and were changed back.
        reverted: usize,
    },

    /// The operation failed half-way, or its undo or redo failed.
    #[error("{source}")]
    Stopped {
        /// The operation.
        id: String,
        /// The attempt that failed.
        attempt: Attempt,
        /// The state that the operation is in.
        state: OperationState,
        /// Why it failed.
        source: Box<Self>,
        /// The files that the attempt changed, or that had the version that it was to create.
        changed: Vec<PathBuf>,
        /// The files that are as they were before the attempt.
        unchanged: Vec<PathBuf>,
    },

    /// Another program keeps writing to files that were replaced or removed.
    #[error("another program keeps writing to {}", list_paths(.paths))]
    StillWritten {
        /// The private paths of these files.
        paths: Vec<PathBuf>,
    },

    /// Another program has files of a receipt open, and may still write to them. They were not deleted.
    #[error("another program has {} open", list_paths(.paths))]
    OpenBackup {
        /// The files in the operation's folder.
        paths: Vec<PathBuf>,
    },

    /// No receipt has this id.
    #[error("no operation `{id}`")]
    NoSuch {
        /// The requested id.
        id: String,
    },

    /// More than one receipt has an id that begins like this.
    #[error("`{id}` is the beginning of {n} operations")]
    Ambiguous {
        /// The requested id.
        id: String,
        /// The number of matching receipts.
        n: usize,
    },

    /// The operation is undone.
    #[error("operation {id} is undone already")]
    AlreadyUndone {
        /// The operation.
        id: String,
    },

    /// The operation is done.
    #[error("operation {id} is not undone")]
    AlreadyDone {
        /// The operation.
        id: String,
    },

    /// The operation was interrupted before it changed a file, so its new content is lost. Its receipt is
    /// removed.
    #[error("operation {id} was interrupted before it changed anything")]
    NeverApplied {
        /// The operation.
        id: String,
    },

    /// Another operation is running.
    #[error("another threadline operation is running")]
    Busy,

    /// A receipt cannot be read.
    #[error("the receipt {} cannot be read: {why}", .path.display())]
    BadReceipt {
        /// The receipt.
        path: PathBuf,
        /// Why.
        why: String,
    },

    /// No file can have this name. Nothing was changed.
    #[error("no file can be called {path:?}: {why}")]
    BadPath {
        /// The name.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },

    /// Lines could not be appended.
    #[error(transparent)]
    Append(#[from] AppendError),

    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The error for one changed file.
pub(super) fn changed(path: &Path, what: &str) -> OpError {
    OpError::Changed { files: vec![ChangedFile { path: path.to_owned(), what: what.to_owned() }] }
}

fn list_changed(files: &[ChangedFile]) -> String {
    let files = files.iter().map(|file| format!("{} has changed since: {}", file.path.display(), file.what));
    files.collect::<Vec<_>>().join("; ")
}

fn list_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
