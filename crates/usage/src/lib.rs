//! Tokens and money: one row per model call, de-duplicated, priced by a dated price book, every figure
//! explainable.
//!
//! A [`UsageScan`] reads the lines of one log and keeps one row per model call. A [`CallLedger`] takes the
//! scans of many logs, in any order, and counts each call once, even if several lines, files, forks or
//! sub-agents repeat it. A [`PriceBook`] contains the price of a call on its day. [`CallGroups`] adds calls
//! up.
//!
//! This crate does not access the disk, the clock or the environment.
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
