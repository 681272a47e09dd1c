//! Tokens and money: one row per model call, de-duplicated, priced by a dated price book, every figure
//! explainable.
//!
//! The figures of a call are on several lines: a reply is written block by block, each line repeats the
//! figures, and the early ones are too low. Forks, resumes and sub-agents copy lines into other logs. Adding
//! up all lines counts most calls more than once.
//!
//! # Concepts
//!
//! - A [`UsageScan`] reads the lines of one log, described by a [`LogSource`], and keeps one row per model
//!   call: a [`ScannedLog`].
//! - A [`CallLedger`] takes the scans of many logs, in any order, and counts each call once. The result is
//!   [`ModelCalls`]: every [`ModelCall`] with the session that owns it, its time, its model and its
//!   [`TokenCounts`].
//! - A [`PriceBook`] contains the price of a model on a day, with its source. [`Money`] is an integer, so a
//!   total is exactly the sum of its parts.
//! - [`CallGroups`] adds calls up by day, week, month, session, project, model, tool or branch ([`GroupBy`])
//!   into [`UsageTotals`].
//! - [`ModelCalls::explain`] returns for every record whether it was counted, and if not, why: a
//!   [`RecordVerdict`].
//! - A [`LineUsage`] contains the figures of a single line, for callers that see one line at a time.
//!
//! # Example: the cost of a log
//!
//! ```
//! use threadline_entry::LineReader;
//! use threadline_usage::{CallGroups, CallLedger, GroupBy, LogSource, PriceBook, ScanOptions, UsageScan};
//!
//! let log = br#"{"type":"assistant","timestamp":"2026-11-01T10:00:00.000Z","sessionId":"s1","message":
//! {"id":"msg_1","model":"claude-opus-5","content":[],"usage":{"input_tokens":100000,"output_tokens":0}}}"#;
//! let line: Vec<u8> = log.iter().copied().filter(|byte| *byte != b'\n').collect();
//!
//! let mut scan = UsageScan::new(LogSource::session("s1.jsonl", "s1"), ScanOptions::default());
//! let mut lines = LineReader::new(&line[..]);
//! while let Some(block) = lines.next_block().unwrap() {
//!     scan.block(&block);
//! }
//! let mut ledger = CallLedger::default();
//! ledger.add(scan.finish());
//! let calls = ledger.finish();
//! let groups =
//!     CallGroups::of(&calls, GroupBy::Day, &PriceBook::embedded(), &jiff::tz::TimeZone::UTC, |_, _| true);
//! assert_eq!(groups.total.cost.to_string(), "0.5");
//! ```
//!
//! # Example: why a line was not counted
//!
//! ```
//! use threadline_entry::ChunkReader;
//! use threadline_usage::{CallLedger, LogSource, PriceBook, RecordVerdict, ScanOptions, UsageScan};
//!
//! # let log = threadline_testkit::log_of("s1", r#"
//! # u1        user "go"
//! # a1 <- u1  reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":1}
//! # a2 <- a1  reply msg_1 text "b" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":9}
//! # "#);
//! let options = ScanOptions { records: true, ..ScanOptions::default() };
//! let mut scan = UsageScan::new(LogSource::session("s1.jsonl", "s1"), options);
//! let mut chunks = ChunkReader::new(&log[..]);
//! while let Some(chunk) = chunks.next()? {
//!     chunk.parse(|entry, _| scan.entry(&entry));
//! }
//! let mut ledger = CallLedger::default();
//! ledger.add(scan.finish());
//! let records = ledger.finish().explain(&PriceBook::embedded(), |_, _| true);
//! let reasons = records.iter().map(|record| match &record.verdict {
//!     RecordVerdict::Counted => format!("line {}: counted", record.line),
//!     RecordVerdict::Rejected(reason) => format!("line {}: {reason}", record.line),
//! });
//! let expected = ["line 2: same reply, counted at line 3", "line 3: counted"];
//! assert_eq!(reasons.collect::<Vec<_>>(), expected);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Caveats
//!
//! - A model without a price is reported ([`UsageTotals::caveat`]), never guessed. A total with such calls,
//!   or with calls that no log contains, is a lower bound.
//! - All logs must be in the ledger before it is finished: only then is the owner of each call known.
//! - No disk, clock or environment. Days need a time zone, which is an argument. Time is linear in the logs.

#![warn(missing_docs)]

mod call_key;
mod calls;
mod days;
mod explain;
mod figures;
mod group;
mod ledger;
mod line_usage;
mod model;
mod money;
mod name_table;
mod plain_reply;
mod price_book;
mod reconcile;
mod reply_line;
mod scan;
mod scan_cache;
mod stored;
mod totals;
mod window;

pub use calls::{CompactionFigures, ModelCall, ModelCalls};
pub use explain::{RecordExplanation, RecordVerdict, RejectReason};
pub use figures::TokenCounts;
pub use group::{CallGroup, CallGroupKey, CallGroups, GroupBy};
pub use ledger::CallLedger;
pub use line_usage::LineUsage;
pub use model::{Model, model};
pub use money::Money;
pub use price_book::{ModelPrice, PriceBook, PriceBookError, TokenRates};
pub use reconcile::{CostAccount, CostAccountModel, Reconciliation, reconcile};
pub use scan::{LogSource, ScanOptions, ScannedLog, UsageScan};
pub use scan_cache::ScanCache;
pub use stored::{LogStart, StoredCall, StoredSum};
pub use totals::UsageTotals;
pub use window::{LimitNotice, LimitWindow, limit_end, windows};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
