//! Explains for each record whether it was counted, and why not.

use std::fmt;

use crate::figures::TokenCounts;
use crate::money::Money;

/// A record of a call, and whether it was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordExplanation {
    /// The path of the log.
    pub path: String,
    /// The line number, counted from 1.
    pub line: u64,
    /// The byte offset of the line.
    pub byte_offset: u64,
    /// When the line was written, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The session that the call belongs to.
    pub session: String,
    /// The message id, if there is one.
    pub message_id: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The token counts of the record.
    pub tokens: TokenCounts,
    /// The cost of the call, if it was counted and has a price.
    pub cost: Option<Money>,
    /// Whether the record was counted.
    pub verdict: RecordVerdict,
}

/// Whether a record was counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordVerdict {
    /// The record was counted.
    Counted,
    /// The record was not counted.
    Rejected(RejectReason),
}

/// Why a record was not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// Another line of the same reply was counted.
    SameReply {
        /// The line that was counted.
        line: u64,
    },
    /// The call belongs to another log.
    Copy {
        /// The path of that log.
        path: String,
        /// The line that was counted.
        line: u64,
        /// Whether this record's session inherited the call from another session.
        inherited: bool,
    },
    /// A progress line that repeats the log of a sub-agent.
    Progress {
        /// The path of that log.
        path: String,
        /// The line that was counted.
        line: u64,
    },
    /// Claude Code wrote the message itself, without a model call.
    Synthetic,
    /// The call failed.
    ApiError,
    /// The reply has no figures.
    NoFigures,
    /// The line is not valid JSON.
    Broken,
}

impl RejectReason {
    /// Returns a stable identifier for the reason.
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

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SameReply { line } => write!(f, "same reply, counted at line {line}"),
            Self::Copy { path, line, inherited: true } => write!(f, "inherited, counted at {path}:{line}"),
            Self::Copy { path, line, .. } => write!(f, "copy, counted at {path}:{line}"),
            Self::Progress { path, line } => write!(f, "sub-agent progress, counted at {path}:{line}"),
            Self::Synthetic => f.write_str("synthetic message, no model call"),
            Self::ApiError => f.write_str("failed call"),
            Self::NoFigures => f.write_str("no usage data"),
            Self::Broken => f.write_str("invalid JSON"),
        }
    }
}
