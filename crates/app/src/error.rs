//! Why the application could not do something, and what to try instead.

use std::io;
use std::path::PathBuf;

use threadline_store::FindError;

/// Why the application could not do something. [`AppError::hints`] says what to try instead.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// No session, or more than one, matches.
    #[error(transparent)]
    Find(#[from] FindError),
    /// A file could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The person has no folder for state.
    #[error("no folder for threadline's state: the home folder is unknown")]
    NoStateDir,
    /// Reading or writing failed; the error names the file.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl AppError {
    /// What the person can do or type next, most likely first.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoStateDir => vec!["set HOME".to_owned()],
            _ => Vec::new(),
        }
    }
}
