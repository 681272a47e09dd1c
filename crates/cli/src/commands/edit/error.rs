//! Converts errors of edits to messages with causes and hints.

use std::error::Error;
use std::io;

use threadline_app::OperationError;
use threadline_app::edit::EditError;
use threadline_app::restore::RestoreError;
use threadline_store::{AppendError, Attempt, OpError, OperationState};
use threadline_term::{visible, visible_name};

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
                .hint("`threadline check SESSION` lists the faults of the session"),
            EditError::Open { .. } | EditError::RecentlyWritten { .. } => message
                .hint(
                    "Claude Code reads a session once, at its start, and would not see the change: leave it first",
                )
                .hint("--force changes it all the same"),
            EditError::LogChanged { .. } => message.hint("nothing was changed; run the command again"),
            EditError::Cut(_) => message.hint("`threadline show SESSION --outline` lists the turns"),
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
            RestoreError::NoSuchFile => message
                .hint("without a file, `threadline restore SESSION` lists the turns that changed files"),
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
        OpError::Stopped { id, attempt, state, source, changed, unchanged } => {
            let mut message = with_remedy(message, source);
            let name = match attempt {
                Attempt::Apply => "the operation",
                Attempt::Undo => "the undo",
                Attempt::Redo => "the redo",
            };
            let all = changed.len() + unchanged.len();
            message = message.cause(match changed.len() {
                0 => "nothing was changed".to_owned(),
                1 if all == 1 => format!("{name} changed the file"),
                n if n == all => format!("{name} changed all {n} files"),
                n => format!("{name} changed {n} of {all} files"),
            });
            for (label, paths) in [("changed", changed), ("not changed", unchanged)] {
                for path in paths.iter().take(if changed.is_empty() { 0 } else { MAX_LISTED }) {
                    message = message.cause(format!("{label}: {}", visible_name(&path.to_string_lossy())));
                }
            }
            stopped_hints(id, *attempt, *state).into_iter().fold(message, CommandError::hint)
        }
        OpError::Changed { .. } | OpError::BadPath { .. } => message.hint("nothing was changed"),
        OpError::StillWritten { .. } => message.hint("end that program and run the command again"),
        OpError::OpenBackup { .. } => message
            .hint("it may still write to it; the receipt was not deleted")
            .hint("end that program and run the command again"),
        OpError::Busy => message.hint("wait until it has ended"),
        error => with_remedy(message, error),
    }
}

/// The commands that finish an attempt that failed, or take it back.
fn stopped_hints(id: &str, attempt: Attempt, state: OperationState) -> Vec<String> {
    use OperationState::{Applying, Begun, Done, Redoing, Undoing, Undone};
    let undo = |label: &str| format!("{label}: `threadline op undo {id}`");
    let redo = |label: &str| format!("{label}: `threadline op redo {id}`");
    match (attempt, state) {
        (_, Begun) => vec![undo("remove its private files")],
        (Attempt::Apply, _) => vec![undo("undo it"), redo("finish it")],
        (Attempt::Undo, Undone) => vec![redo("take it back")],
        (Attempt::Undo, Done) => vec![undo("try again")],
        (Attempt::Undo, Applying | Undoing | Redoing) => vec![undo("finish it"), redo("take it back")],
        (Attempt::Redo, Done) => vec![undo("take it back")],
        (Attempt::Redo, Undone) => vec![redo("try again")],
        (Attempt::Redo, Applying | Undoing | Redoing) => vec![redo("finish it"), undo("take it back")],
    }
}

/// Whether the storage device reported an error to the system.
fn is_device_error(error: &OpError) -> bool {
    const EIO: i32 = 5;
    let (OpError::Io(error) | OpError::Append(AppendError::Io(error))) = error else { return false };
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(current) = cause {
        let code = current.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error);
        if cfg!(unix) && code == Some(EIO) {
            return true;
        }
        cause = current.source();
    }
    false
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
    if is_device_error(error) {
        return message
            .hint("the disk or the connection to it failed: check it (`dmesg`) before you try again");
    }
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
