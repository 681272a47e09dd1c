//! One line of a Claude Code session log: its exact bytes, and typed accessors.
//!
//! A session log is a file of JSON lines. Claude Code appends to it, changes the format between releases, and
//! is sometimes killed within a line. This crate reads such a log without losing anything: whatever a line
//! contains, its bytes are kept, and writing them again yields the same file.
//!
//! # Concepts
//!
//! - A [`LineReader`] splits a stream into lines, and [`parse_line`] turns a line into [`Entry`] values: one,
//!   or several if the line contains concatenated objects. A [`ChunkReader`] does both for callers that keep
//!   the entries; [`log_lines`] is for logs in memory.
//! - The [`Kind`] of an entry is the `type` of its line. A type of a future release is [`Kind::Unknown`], and
//!   a line that is not a JSON object is [`Kind::Bad`].
//! - A *lens* is a set of known fields of an object, read from the bytes on demand. [`Entry::message`]
//!   returns the lens of the message, `entry.lens::<L>()` any other one in [`lens`]. A field that is missing
//!   or has an unexpected type is `None`. [`lens::drift`] reports the keys that no lens defines.
//! - A [`Finding`] is a problem of a line, with a stable [`Code`], a [`Severity`] and a [`Position`].
//!   Findings are returned beside the entry, never instead of it.
//! - [`mod@write`] creates new lines, with the keys in the order of Claude Code.
//!
//! # Example: the tools that a log calls
//!
//! ```
//! use threadline_entry::{Code, LineReader, parse_line};
//!
//! let log = concat!(
//!     r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"role":"user","content":"Why?"}}"#,
//!     "\n",
//!     r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"role":"assistant","content":["#,
//!     r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"time loom"}}]}}"#,
//!     "\n",
//!     r#"{"type":"user","uuid":"#,
//! );
//! let (mut tools, mut problems) = (Vec::new(), Vec::new());
//! let mut lines = LineReader::new(log.as_bytes());
//! while let Some(line) = lines.next()? {
//!     parse_line(&line, |entry, findings| {
//!         let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
//!         let calls = blocks.filter(|block| block.is("tool_use"));
//!         tools.extend(calls.filter_map(|call| Some(call.name()?.into_owned())));
//!         problems.extend(findings.into_iter().map(|finding| (entry.at().line_no, finding.code)));
//!     });
//! }
//! assert_eq!(tools, ["Bash"]);
//! assert_eq!(problems, [(3, Code::BrokenLine)]);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Example: fields that are new in the format
//!
//! ```
//! use threadline_entry::{Entry, Kind, lens};
//!
//! let line = br#"{"type":"user","message":{"role":"user","content":"hi","mood":"calm"}}"#;
//! let (entry, findings) = Entry::parse(line);
//! assert_eq!((entry.kind(), findings.len()), (Kind::User, 0));
//! assert_eq!(entry.message().unwrap().content().unwrap().text(), "hi");
//! let mut unknown = Vec::new();
//! lens::drift(&entry, &mut |path| unknown.push(path.to_owned()));
//! assert_eq!(unknown, ["user.message.mood"]);
//! ```
//!
//! # Caveats
//!
//! - Only a reader returns errors, and only those of its stream.
//! - Time is linear in the bytes of a log. A line is validated and indexed once; an accessor looks up one
//!   key.
//! - A line beyond the [limits](Entry::is_over_limit), which are far above those of real lines, is one
//!   [`Kind::Bad`] entry: it keeps its bytes, and its accessors return `None`.
//! - The entries of a [`Chunk`] share its memory, so one of them keeps all of it. A [`LineReader`] reuses one
//!   buffer, and an entry that [`parse_line`] makes of its lines has a copy.
//! - Timestamps are [`Millis`] since 1970, as the log has them. This crate reads no clock.

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
mod project;
mod sketch;
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
pub use project::{is_absolute_path, project_directory, worktree_of};
pub use sketch::{BlockKind, BlockSketch, LineSketch};
pub use text::{LineString, StringRole, visit_strings};
pub use timestamp::{Millis, SessionStartSearch, parse_timestamp, parse_timestamp_bytes};
pub use title::{FirstPromptSearch, TitleSources};
pub use tool_pattern::ToolPattern;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
