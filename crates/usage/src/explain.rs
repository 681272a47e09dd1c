//! Why a record was counted, or was not.

use std::fmt;

use crate::figures::Tokens;
use crate::money::Money;

/// A record of a log that tells of a call, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The log.
    pub path: String,
    /// The line in it, counted from 1.
    pub line: u64,
    /// Where the line begins.
    pub byte_offset: u64,
    /// When the line was written, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The session that the call belongs to.
    pub session: String,
    /// The id of the message, if it has one.
    pub message_id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// What the record says it used.
    pub tokens: Tokens,
    /// What the call cost, if it was counted and has a price.
    pub cost: Option<Money>,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its figures were counted.
    Counted,
    /// They were not.
    Rejected(Reason),
}

/// Why a record was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Another line of the same reply has the figures.
    SameReply {
        /// The line that was counted.
        line: u64,
    },
    /// The call stands in another log, to which it belongs.
    Copy {
        /// That log.
        path: String,
        /// The line in it that was counted.
        line: u64,
        /// Whether this record's session inherited the call from another one.
        inherited: bool,
    },
    /// A progress line repeats what a sub-agent wrote in a log of its own.
    Progress {
        /// That log.
        path: String,
        /// The line in it that was counted.
        line: u64,
    },
    /// Claude Code wrote it itself; no model was asked.
    Synthetic,
    /// The call failed.
    ApiError,
    /// The reply has no figures.
    NoFigures,
    /// The line is no JSON.
    Broken,
}

impl Reason {
    /// A word for it that does not change.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SameReply { .. } => "same-reply",
            Self::Copy { inherited: true, .. } => "inherited",
            Self::Copy { .. } => "copy",
            Self::Progress { .. } => "progress",
            Self::Synthetic => "synthetic",
            Self::ApiError => "api-error",
            Self::NoFigures => "no-figures",
            Self::Broken => "broken",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameReply { line } => write!(f, "the same reply, counted at line {line}"),
            Self::Copy { path, line, inherited: true } => write!(f, "inherited, counted at {path}:{line}"),
            Self::Copy { path, line, .. } => write!(f, "a copy, counted at {path}:{line}"),
            Self::Progress { path, line } => write!(f, "progress of a sub-agent, counted at {path}:{line}"),
            Self::Synthetic => f.write_str("written by Claude Code itself, no call"),
            Self::ApiError => f.write_str("the call failed"),
            Self::NoFigures => f.write_str("the reply has no figures"),
            Self::Broken => f.write_str("the line is no JSON"),
        }
    }
}
