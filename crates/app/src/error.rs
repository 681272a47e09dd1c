//! Errors of the application, with hints.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use threadline_store::{FindError, SessionCandidate};
use threadline_usage::PriceBookError;
use threadline_view::visible;

/// An error of the application. [`AppError::hints`] returns suggestions for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// No session, or more than one, matches the name.
    #[error(transparent)]
    Find(#[from] FindError),
    /// No session has this id.
    #[error("no session has the id `{id}`")]
    NoSession {
        /// The id.
        id: String,
    },
    /// No sub-agent of the session has an id that begins so.
    #[error("no sub-agent matches `{}`", visible(.id))]
    NoAgent {
        /// The id or prefix.
        id: String,
    },
    /// Several sub-agents of the session have an id that begins so.
    #[error("`{}` matches {} sub-agents", visible(.id), .found.len())]
    AmbiguousAgent {
        /// The prefix.
        id: String,
        /// The ids of the sub-agents.
        found: Vec<String>,
    },
    /// A file could not be read.
    #[error("cannot read `{}`: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A log is too large to be loaded.
    #[error("`{}` is larger than 4 GB, which is the limit for a log", .path.display())]
    LogTooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A price list is invalid.
    #[error("cannot read `{}`: {source}", .path.display())]
    Prices {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: PriceBookError,
    },
    /// A file without a line of a session.
    #[error("`{}` contains no session", .path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
    },
    /// The text is not a date or a time.
    #[error("`{text}` is not a date or time")]
    NotATime {
        /// The text.
        text: String,
    },
    /// A time range without any time in it.
    #[error("`{}` is not before `{}`", visible(.since), visible(.until))]
    EmptyRange {
        /// The start, as typed.
        since: String,
        /// The end, as typed.
        until: String,
    },
    /// The configuration has no folder for state.
    #[error("no folder for threadline's state: the home folder is unknown")]
    NoStateDir,
    /// A source of sessions cannot be read.
    #[error("{message}")]
    Source {
        /// The message.
        message: String,
        /// Suggestions for the user.
        hints: Vec<String>,
    },
    /// Git did not answer, so the commits of a file are not known.
    #[error("git did not answer within {} s and was ended; the commits of `{}` are not shown", .limit.as_secs(), .file.display())]
    GitTimeout {
        /// The file.
        file: PathBuf,
        /// The time limit.
        limit: Duration,
    },
    /// Reading or writing failed; the message contains the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Maximum number of candidates in the hints of an ambiguous name.
const MAX_CANDIDATES: usize = 8;

impl AppError {
    /// Wraps an error of reading the file at `path`.
    pub(crate) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }

    /// Returns a stable name of the kind of error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Find(FindError::Ambiguous { .. }) | Self::AmbiguousAgent { .. } => "ambiguous",
            Self::Find(_) | Self::NoSession { .. } | Self::NoAgent { .. } => "not_found",
            Self::NotASession { .. } => "not_a_session",
            Self::NotATime { .. } | Self::EmptyRange { .. } => "usage",
            Self::Read { .. } | Self::Io(_) => "io",
            Self::GitTimeout { .. } => "timeout",
            Self::LogTooLarge { .. } | Self::Prices { .. } | Self::NoStateDir | Self::Source { .. } => {
                "failed"
            }
        }
    }

    /// Returns suggestions for the user, best first.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Find(FindError::NoMatch { similar, .. }) if similar.is_empty() => {
                vec![LIST_HINT.to_owned()]
            }
            Self::Find(FindError::Empty { .. }) => vec![EMPTY_HINT.to_owned()],
            Self::Find(FindError::Folder { .. }) => vec![FOLDER_HINT.to_owned(), LIST_HINT.to_owned()],
            Self::Find(FindError::NoMatch { similar, .. }) => {
                similar.iter().map(|candidate| format!("did you mean {}", describe(candidate))).collect()
            }
            Self::Find(FindError::PartOfTitle { found, .. }) => {
                let names = candidates(found.iter().map(describe));
                std::iter::once(CHANGE_HINT.to_owned()).chain(names).collect()
            }
            Self::Find(FindError::Ambiguous { found, .. }) => candidates(found.iter().map(describe)),
            Self::NoSession { .. } => vec!["It was deleted or moved, or the id is wrong.".to_owned()],
            Self::NoAgent { .. } => vec![AGENTS_HINT.to_owned()],
            Self::AmbiguousAgent { found, .. } => candidates(found.iter().map(|id| visible(id).into_owned())),
            Self::NotASession { .. } => vec![LIST_HINT.to_owned()],
            Self::NotATime { .. } => vec![TIME_HINT.to_owned()],
            Self::EmptyRange { .. } => vec!["exchange the two times of since and until".to_owned()],
            Self::NoStateDir => vec!["set HOME".to_owned()],
            Self::Source { hints, .. } => hints.clone(),
            _ => Vec::new(),
        }
    }
}

const LIST_HINT: &str = "list sessions: `threadline list`";

const CHANGE_HINT: &str =
    "a command that changes files needs the id, the beginning of it, or the whole title";

const AGENTS_HINT: &str = "list sub-agents: `threadline context SESSION`";

/// Suggested where a home has no sessions.
pub const EMPTY_HINT: &str = "use --home DIR for another folder, or --demo for sample sessions";

const FOLDER_HINT: &str = "give the path of a log in it, such as DIR/SESSION_ID.jsonl";

const TIME_HINT: &str = "use 2026-11-01, 2026-11, today, yesterday, 7d, 2w or 12h";

/// Returns the first candidates, and how many others there are.
fn candidates(found: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let n_others = found.len().saturating_sub(MAX_CANDIDATES);
    let mut hints: Vec<String> = found.take(MAX_CANDIDATES).collect();
    if n_others > 0 {
        hints.push(format!("… and {n_others} more"));
    }
    hints
}

/// Formats a candidate for a hint: its id, its title in quotes, and the day it was last active, which
/// distinguishes sessions with the same title.
fn describe(candidate: &SessionCandidate) -> String {
    let day = match Timestamp::try_from(candidate.last_active) {
        Ok(time) => format!(" ({})", time.to_zoned(TimeZone::UTC).date()),
        Err(_) => String::new(),
    };
    match &candidate.title {
        Some(title) => format!("{} \"{}\"{day}", candidate.id, visible(title)),
        None => format!("{}{day}", candidate.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_that_are_left_out_are_counted() {
        let hints = |count: usize| {
            let found = (0..count).map(|number| number.to_string()).collect();
            AppError::AmbiguousAgent { id: String::new(), found }.hints()
        };
        assert_eq!(hints(8).len(), 8);
        assert_eq!(hints(10)[7..], ["7", "… and 2 more"]);
    }
}
