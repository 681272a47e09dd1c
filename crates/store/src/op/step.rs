//! Steps: the changes to files that an operation consists of.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{FileDigest, OpError};
use crate::disk::Visibility;

/// A change to a file.
pub struct Step<'a> {
    /// The file.
    pub path: PathBuf,
    /// Whether other programs append to it.
    pub kind: FileKind,
    /// The change.
    pub action: StepAction<'a>,
    /// The modification time that the new file gets; the current time if `None`.
    pub modified: Option<SystemTime>,
}

impl Step<'_> {
    /// Checks that receipts can contain the paths of this step.
    pub(super) fn check_paths(&self) -> Result<(), OpError> {
        check_path(&self.path)?;
        match &self.action {
            StepAction::Move { to, .. } => check_path(to),
            _ => Ok(()),
        }
    }
}

/// How other programs write a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// They append lines at any time. These lines are kept by every operation.
    Log,
    /// They replace it as a whole.
    Plain,
}

impl FileKind {
    /// The kind of a file in a Claude Code home: JSON lines are logs.
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|ext| ext == "jsonl") { Self::Log } else { Self::Plain }
    }
}

/// The change that a step makes to its file.
pub enum StepAction<'a> {
    /// Creates it. An existing file is an error.
    Create {
        /// The content.
        content: Box<dyn Read + 'a>,
        /// The permissions of the file.
        visibility: Visibility,
    },
    /// Replaces its content, if it still begins with the content that was read.
    Replace {
        /// The digest of the content that was read.
        read: FileDigest,
        /// The new content.
        content: Box<dyn Read + 'a>,
    },
    /// Appends lines, given without newlines, if it still begins with the content that was read.
    Append {
        /// The digest of the content that was read.
        read: FileDigest,
        /// The lines.
        lines: Vec<String>,
    },
    /// Removes it and creates another file, if it still begins with the content that was read.
    Move {
        /// The digest of the content that was read.
        read: FileDigest,
        /// The other file. An existing file is an error.
        to: PathBuf,
        /// The content of the other file.
        content: Box<dyn Read + 'a>,
    },
    /// Removes it. The receipt keeps its content.
    Remove,
    /// Removes a symbolic link, and not the file that it points to.
    Unlink,
}

fn check_path(path: &Path) -> Result<(), OpError> {
    let bad = |why| Err(OpError::BadPath { path: path.to_owned(), why });
    match path.to_str() {
        None => bad("receipts support only names in UTF-8"),
        Some(text) if text.contains('\0') => bad("it has a NUL byte"),
        Some(_) if !path.is_absolute() => bad("it is not an absolute path"),
        Some(_) if path.file_name().is_none() => bad("it is a folder"),
        Some(_) => Ok(()),
    }
}
