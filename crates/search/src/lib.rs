//! Searches logs by words, patterns and fields, directly over the files.
//!
//! There is no index to build or trust: the rarest text that every match must contain is searched for in the
//! raw bytes, and only the lines that may match are decoded and verified.
//!
//! # Concepts
//!
//! - A [`Query`] is parsed from text that a person typed:
//!
//!   | part | matches |
//!   |---|---|
//!   | `word` | a word anywhere in the text, also within words |
//!   | `"a phrase"` | consecutive whole words |
//!   | `/pattern/`, `/pattern/i` | a regular expression |
//!   | `kind:prompt`, `tool:Bash`, `path:loom.rs`, `since:yesterday`, … | a field |
//!   | `-term` | the opposite of any of these |
//!
//! - A [`TextPiece`] is a searchable text of a line, with its [kind](TextKind) and [role](PieceRole): a
//!   prompt, a reply, the input or the result of a call. A query matches a piece if it contains all words,
//!   phrases and patterns, and all fields match. [`text_pieces`] returns the pieces of a line.
//! - A [`Searcher`] runs a query over one log and passes each match to a callback;
//!   [`MatchRef::with_excerpt`] returns it as an owned [`SearchMatch`], with an excerpt and the ranges to
//!   highlight.
//! - A [`SessionScan`] runs a query over many sessions on all cores. It reports [events](ScanEvent) in the
//!   order of the sessions, without the copies in forks.
//!
//! # Example: search one log
//!
//! ```
//! use threadline_search::{Query, Searcher};
//!
//! let now = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC);
//! let query = Query::parse("slow kind:prompt", &now)?;
//! let log = br#"{"type":"user","message":{"role":"user","content":"Why is it slow?"}}"#;
//! let mut matches = Vec::new();
//! Searcher::new(&query).search(|| Ok(&log[..]), |found| {
//!     matches.push(found.with_excerpt(0));
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! assert_eq!(matches[0].anchor, "m1");
//! assert_eq!(matches[0].ranges, [10..14]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Example: an error in a query
//!
//! ```
//! use threadline_search::{Query, QueryError};
//!
//! let now = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC);
//! let error = Query::parse("slow /(/", &now).unwrap_err();
//! assert!(matches!(error, QueryError::Pattern { .. }));
//! assert_eq!(error.span(), Some(5..8));
//! ```
//!
//! # Caveats
//!
//! - Errors are those of the query, which name their part, and those of the reader. A line that is not JSON
//!   is no error. Lines of more than 32 MiB are not searched, and reported ([`SearchStats::skipped_lines`]).
//! - No disk, clock or environment: the caller opens the logs (possibly twice), and passes the time against
//!   which `since:yesterday` is resolved.
//! - Time is linear in the bytes of the logs, whatever the pattern.
//! - Copies of text are not searched: structured tool results, progress lines, images, file history.

#![warn(missing_docs)]

mod call;
mod fold;
mod fork;
mod head;
mod index;
mod moment;
mod needle;
mod piece;
mod query;
mod scan;
mod searcher;
mod snippet;
mod term;

pub use head::{FirstUuids, directories, read_first_uuid, retain_matching};
pub use index::index_text;
pub use moment::parse as moment;
pub use piece::{PieceRole, TextKind, TextPiece, text_pieces};
pub use query::{Query, QueryError, unknown_field};
pub use scan::{HitCount, LogEnds, LogMatch, LogProblem, OpenLog, ScanEvent, SearchedSession, SessionScan};
pub use searcher::{MatchRef, SearchMatch, SearchStats, Searcher, first_uuid};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
