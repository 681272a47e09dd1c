//! Why an edit is impossible.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use threadline_edit::{CompressError, CutError};
use threadline_store::OpError;

use crate::error::AppError;

/// Why an edit could not be planned or applied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The edit would change nothing.
    #[error(transparent)]
    NothingToDo(#[from] NothingToDo),

    /// The log is that of a sub-agent, which can only be edited with its session.
    #[error("{} is the log of a sub-agent", .path.display())]
    AgentLog {
        /// The log.
        path: PathBuf,
    },

    /// The result would break rules that Claude Code or the API rely on.
    #[error("the result would not be sound, so it is not written")]
    Unsound {
        /// The broken rules.
        reasons: Vec<String>,
    },

    /// Claude Code has the session open.
    #[error("session {id} is open in Claude Code (process {pid})")]
    Open {
        /// The session.
        id: String,
        /// The process.
        pid: u64,
    },

    /// The log was written a moment ago, so the session is probably open.
    #[error("session {id} seems to be open: its last line is {} seconds old", .ago.as_secs())]
    RecentlyWritten {
        /// The session.
        id: String,
        /// The age of the last line.
        ago: Duration,
    },

    /// The log was changed after it was read.
    #[error("{} has changed since it was read", .path.display())]
    LogChanged {
        /// The log.
        path: PathBuf,
    },

    /// The session cannot be cut there.
    #[error(transparent)]
    Cut(#[from] CutError),

    /// The session cannot be compressed.
    #[error(transparent)]
    Compress(#[from] CompressError),

    /// Only a session in a home can be moved to another project.
    #[error("{} is not inside a Claude Code home", .path.display())]
    NotInHome {
        /// The log.
        path: PathBuf,
    },

    /// No line of the session has a working directory.
    #[error("no line names a working directory")]
    NoWorkingDirectory,

    /// The directory to move to does not exist, and its path is not absolute.
    #[error("`{}` is not a directory here", .path.display())]
    NoSuchDirectory {
        /// The directory.
        path: PathBuf,
    },

    /// There is a log at the path that a session is to be moved to.
    #[error("{} exists already", .path.display())]
    TargetExists {
        /// The log.
        path: PathBuf,
    },

    /// The session is to be moved to the directory that it is in.
    #[error("the session is in {directory} already")]
    AlreadyIn {
        /// The directory.
        directory: String,
    },

    /// No line of the session was written in the directory that it is to be moved from.
    #[error("no line was written in {directory}")]
    NotWrittenIn {
        /// The directory.
        directory: String,
    },

    /// Files could not be changed.
    #[error(transparent)]
    Operation(#[from] OpError),

    /// Something else failed.
    #[error(transparent)]
    App(#[from] AppError),
}

impl From<io::Error> for EditError {
    fn from(error: io::Error) -> Self {
        Self::App(error.into())
    }
}

/// Why an edit would change nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NothingToDo {
    /// The result would equal the session.
    #[error("nothing to do")]
    NoChange,
    /// The session has none of the content that is to be removed.
    #[error("the session has no such content")]
    NoSuchContent,
    /// The session has no faults.
    #[error("nothing to repair")]
    NoFaults,
    /// The session has only faults that cannot be repaired.
    #[error("nothing here can be repaired: {}", .codes.join(", "))]
    NotRepairable {
        /// The codes of the faults.
        codes: Vec<String>,
    },
    /// The session has no secrets.
    #[error("no secrets found: nothing to do")]
    NoSecrets,
}
