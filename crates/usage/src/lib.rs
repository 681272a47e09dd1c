//! Tokens and money: one row per model call, de-duplicated, priced by a dated price book, every figure
//! explainable.
//!
//! A [`Scan`] reads the lines of one log and keeps one row per model call. A [`Ledger`] takes the scans of
//! many logs, in any order, and counts each call once, even if several lines, files, forks or sub-agents
//! repeat it. A [`Book`] contains the price of a call on its day. [`Groups`] adds calls up.
//!
//! This crate does not access the disk, the clock or the environment.
//!
//! ```
//! use threadline_entry::Lines;
//! use threadline_usage::{Book, By, Groups, Ledger, Scan, Source, Wants};
//!
//! let log = br#"{"type":"assistant","timestamp":"2026-11-01T10:00:00.000Z","sessionId":"s1","message":
//! {"id":"msg_1","model":"claude-opus-5","content":[],"usage":{"input_tokens":100000,"output_tokens":0}}}"#;
//! let line: Vec<u8> = log.iter().copied().filter(|byte| *byte != b'\n').collect();
//!
//! let mut scan = Scan::new(Source::session("s1.jsonl", "s1"), Wants::default());
//! let mut lines = Lines::new(&line[..]);
//! while let Some(block) = lines.next_block().unwrap() {
//!     scan.block(&block);
//! }
//! let mut ledger = Ledger::default();
//! ledger.absorb(scan.finish());
//! let calls = ledger.settle();
//! let groups = Groups::of(&calls, By::Day, &Book::embedded(), &jiff::tz::TimeZone::UTC, |_, _| true);
//! assert_eq!(groups.total.cost.to_string(), "0.5");
//! ```

#![warn(missing_docs)]

mod book;
mod calls;
mod days;
mod explain;
mod figures;
mod group;
mod key;
mod ledger;
mod model;
mod money;
mod names;
mod plain;
mod reading;
mod reconcile;
mod reply;
mod scan;
mod totals;
mod ways;
mod window;

pub use book::{Book, BookError, Price, Rates};
pub use calls::{Call, Calls};
pub use explain::{Explained, Reason, Verdict};
pub use figures::Tokens;
pub use group::{By, Group, GroupKey, Groups};
pub use ledger::Ledger;
pub use model::{Model, model};
pub use money::Money;
pub use reading::Reading;
pub use reconcile::{Account, AccountModel, Reconciled, reconcile};
pub use scan::{Scan, Scanned, Source, Wants};
pub use totals::Totals;
pub use ways::Ways;
pub use window::{Limit, Window, reset_of, windows};
