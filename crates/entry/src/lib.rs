//! One line of a Claude Code session log: its exact bytes, and typed lenses over them.
//!
//! [`LineReader`] splits a stream into lines and [`parse_line`] turns a line into [`Entry`] values.
//! [`ChunkReader`] does both for callers that keep the entries. The lenses in [`lens`] read the fields of an
//! entry. No function here fails on malformed input: an unreadable line keeps its bytes and is reported as
//! a [`Finding`].
//!
//! ```
//! use threadline_entry::{Entry, Kind};
//!
//! let (entry, findings) = Entry::parse(br#"{"type":"user","message":{"role":"user","content":"hi"}}"#);
//! assert_eq!(entry.kind(), Kind::User);
//! assert!(findings.is_empty());
//! assert_eq!(entry.message().unwrap().content().unwrap().text(), "hi");
//! ```

#![warn(missing_docs)]

mod abridge;
mod agent_kind;
mod anchor;
mod chunk;
mod entry;
mod finding;
mod hash;
mod index;
mod json;
pub mod key;
mod kind;
pub mod lens;
mod limits;
mod lines;
mod metadata;
mod outline;
mod project;
mod text;
mod timestamp;
mod title;
mod tool_pattern;
pub mod value;
pub mod walk;
pub mod write;

pub use abridge::abridge;
pub use agent_kind::AgentKind;
pub use anchor::anchor;
pub use chunk::{Chunk, ChunkReader, parse_abridged};
pub use entry::{Ending, Entry, Position, parse_line};
pub use finding::{Code, Finding, Severity};
pub use hash::hash_of;
pub use json::{
    Json, JsonItems, JsonKey, JsonKind, JsonMembers, NestedJson, check, decode, decode_into,
    has_lone_surrogate, replace_lone_surrogates,
};
pub use kind::Kind;
pub use lines::{LineBlock, LineReader, LogLine, SkippedLine, log_lines};
pub use metadata::metadata_line;
pub use outline::{
    BlockForm, BlockKind, BlockOutline, LineOutline, NestedOutline, OutlineReader, ValuePlace,
};
pub use project::{is_absolute_path, project_directory, worktree_of};
pub use text::{LineString, StringRole, visit_strings};
pub use timestamp::{Millis, SessionStartSearch, parse_timestamp, parse_timestamp_bytes};
pub use title::{FirstPromptSearch, TitleSources};
pub use tool_pattern::ToolPattern;
