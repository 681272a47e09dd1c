//! Converts errors of edits to messages with causes and hints.

use std::io;
use std::path::PathBuf;

use threadline_app::OperationError;
use threadline_app::edit::EditError;
use threadline_app::restore::RestoreError;
use threadline_store::{AppendError, OpError};
use threadline_term::visible;

use crate::error::CommandError;

/// Number of files or reasons that an error lists.
const MAX_LISTED: usize = 8;

impl From<EditError> for CommandError {
    fn from(error: EditError) -> Self {
        let message = Self::new(visible(&error.to_string()).into_owned());
        match error {
            EditError::App(error) => error.into(),
            EditError::Operation(error) => op_error(error),
            EditError::AgentLog { .. } => message.hint("edit the session that it belongs to"),
            EditError::Unsound { reasons } => reasons
                .into_iter()
                .take(MAX_LISTED)
                .fold(message, Self::cause)
                .hint("`threadline check` lists the faults of the session"),
            EditError::Open { .. } | EditError::RecentlyWritten { .. } => message
                .hint(
                    "Claude Code reads a session once, at its start, and would not see the change: leave it first",
                )
                .hint("--force changes it all the same"),
            EditError::LogChanged { .. } => message.hint("nothing was changed; run the command again"),
            EditError::Cut(_) => message.hint("`threadline show --outline` lists the turns"),
            EditError::Compress(_) => message.hint("`edit strip` removes tool output and more"),
            EditError::NotInHome { .. } => {
                message.hint("only a session of a home can be found from a directory")
            }
            EditError::NoSuchDirectory { .. } => message.hint("use an absolute path"),
            EditError::NotWrittenIn { .. } => {
                message.hint("--from names the directory that the project was in")
            }
            _ => message,
        }
    }
}

impl From<RestoreError> for CommandError {
    fn from(error: RestoreError) -> Self {
        let message = Self::new(visible(&error.to_string()).into_owned());
        match error {
            RestoreError::App(error) => error.into(),
            RestoreError::Write(error) => error.into(),
            RestoreError::NoTurn { .. } => {
                message.hint("`threadline restore SESSION` lists the turns that changed files")
            }
            RestoreError::NoSuchFile => {
                message.hint("without a file, `threadline restore` lists all it knows of")
            }
            RestoreError::TargetDiffers { .. } => message.hint("name an empty folder"),
            _ => message,
        }
    }
}

impl From<OperationError> for CommandError {
    fn from(error: OperationError) -> Self {
        const LIST: &str = "`threadline op log` lists the operations";
        match error {
            OperationError::App(error) => error.into(),
            OperationError::NotFound(OpError::NoSuch { id }) if id == "last" => {
                Self::new("nothing to undo").hint(LIST)
            }
            OperationError::NotFound(error) => Self::new(visible(&error.to_string()).into_owned()).hint(LIST),
            OperationError::Failed { source, .. } => op_error(source),
            error => Self::new(error.to_string()),
        }
    }
}

/// The message for an operation that failed.
fn op_error(error: OpError) -> CommandError {
    let message = CommandError::new(visible(&error.to_string()).into_owned());
    match &error {
        OpError::NotDone { source, reverted } => {
            let message = message.hint(match reverted {
                0 => "nothing was changed".to_owned(),
                1 => "the file that had been changed is as it was before".to_owned(),
                n => format!("the {n} files that had been changed are as they were before"),
            });
            with_remedy(message, source)
        }
        OpError::Stopped { id, source, changed, unchanged } => {
            let name = |path: &PathBuf| visible(&path.to_string_lossy()).into_owned();
            let mut message = with_remedy(message, source);
            message = message.cause(match (changed.len(), unchanged.len()) {
                (0, _) => "nothing was changed".to_owned(),
                (_, 0) => "all files were changed".to_owned(),
                (n, m) => format!("{n} of {} files were changed", n + m),
            });
            for path in changed.iter().take(MAX_LISTED) {
                message = message.cause(format!("new: {}", name(path)));
            }
            message
                .hint(format!("undo it: `threadline op undo {id}`"))
                .hint(format!("finish it: `threadline op redo {id}`"))
        }
        OpError::Changed { .. } | OpError::BadPath { .. } => message.hint("nothing was changed"),
        OpError::StillWritten { .. } => message.hint("end that program and run the command again"),
        OpError::Busy => message.hint("wait until it has ended"),
        error => with_remedy(message, error),
    }
}

/// Adds a hint against an error of the system.
fn with_remedy(message: CommandError, error: &OpError) -> CommandError {
    let kind = match error {
        OpError::Io(error) | OpError::Append(AppendError::Io(error)) => error.kind(),
        OpError::Changed { .. } => {
            return message.hint("run the command again to plan with the current files");
        }
        OpError::StillWritten { .. } => return message.hint("end that program first"),
        _ => return message,
    };
    match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            message.hint("there must be space for the new files; free some and try again")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            message.hint("you need permission to write to that folder")
        }
        _ => message,
    }
}
