//! What a session did to files.
//!
//! Claude Code changes files in many ways: with its file tools, by shell commands, through sub-agents. Each
//! leaves another trace in the log. [`FileEvidence`] reads all of them, in one place, and answers which call
//! changed which file, and what is known of each file at each point.
//!
//! # Concepts
//!
//! - An *event* of a file is a call that read it, changed it, or may have changed it, or a backup.
//! - A content is derived forwards, from an earlier one and the events between, and backwards, from a later
//!   one. Both together say more than each alone: contents that agree confirm each other.
//! - A content is [`Certainty::Exact`] if a chain of recorded contents proves it, [`Certainty::Likely`] if it
//!   is derived from something that is not proven, and otherwise unknown ([`Certainty::Changed`]): something
//!   may have changed the file.
//! - Contents from outside of the log (backups, git, the disk) come through [`FileSources`]. With
//!   [`LogOnly`], the log alone counts.
//!
//! Commands are parsed, never run.

#![warn(missing_docs)]

mod backup;
mod change;
mod collect;
mod command;
mod content;
mod evidence;
mod git;
mod hunk;
mod line_alignment;
mod line_origin;
mod patch;
mod replacement;
mod sources;
mod text_form;
mod timeline;
mod tool;
mod tracking;

pub use backup::working_directory;
pub use command::uncertain_commands;
pub use content::{FileBytes, FileContent};
pub use evidence::{
    Certainty, ChangedPart, EvidenceBasis, FileEdit, FileEvidence, FileState, FileText, HistoryPoint,
    KnownContent, ModifiedFile, NetChange,
};
pub use hunk::LineHunk;
pub use line_origin::{LineHistory, LineOrigin, MAX_CANDIDATES, UnknownReason, same_lines};
pub use replacement::EditReplacement;
pub use sources::{FileOnDisk, FileScan, FileSources, LogOnly, ScannedChange};
pub use timeline::{CallPlace, EvidenceSource};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
