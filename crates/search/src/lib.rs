//! Searches logs by words, patterns and fields, directly over the files.
//!
//! A [`Query`] is parsed from user input. A [`Searcher`] runs it over one log: a search over the raw bytes
//! finds the lines that may match, only these are decoded, and each match is verified on the decoded text.
//! [`text_pieces`] returns the searchable text of a line. A [`SessionScan`] runs a query over many sessions
//! on all cores and reports matches in order, without the copies in forks.
//!
//! This crate does not access the disk, the clock or the environment. The caller opens the files, provides
//! the current time, and handles each [`SearchHit`].
//!
//! ```
//! use threadline_search::{Query, Searcher};
//!
//! let now = jiff::Zoned::new(jiff::Timestamp::UNIX_EPOCH, jiff::tz::TimeZone::UTC);
//! let query = Query::parse("slow kind:prompt", &now)?;
//! let log = br#"{"type":"user","message":{"role":"user","content":"Why is it slow?"}}"#;
//! let mut hits = Vec::new();
//! Searcher::new(&query).search(|| Ok(&log[..]), |found| {
//!     hits.push(found.hit(0));
//!     std::ops::ControlFlow::Continue(())
//! })?;
//! assert_eq!(hits[0].anchor, "m1");
//! assert_eq!(hits[0].ranges, [10..14]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use scan::{HitCount, LogEnds, LogHit, LogProblem, OpenLog, ScanEvent, SearchedSession, SessionScan};
pub use searcher::{MatchRef, SearchHit, SearchStats, Searcher, first_uuid};
