//! What threadline can do, for any front end.
//!
//! An [`App`] is the person's sessions, prices and state. A front end resolves flags and environment variables into
//! an [`AppConfig`], calls the app, and renders what it returns. Nothing here prints, reads the environment or exits.

#![warn(missing_docs)]

mod check;
mod config;
mod counter;
pub mod edit;
mod error;
mod find;
mod list;
mod load;
mod operations;
mod prices;
pub mod restore;
pub mod search;
pub mod sync;
pub mod time;
mod usage;

pub use check::{CheckReport, CheckTargets, check_log};
pub use config::{App, AppConfig};
pub use counter::{SessionCounter, SessionFigures};
pub use error::AppError;
pub use list::{CardList, ListFilter, ListedCards, SessionSummary};
pub use load::{
    LineObserver, LoadedSession, MAX_KEPT_OUTPUT, agent, cwd, kept_output, load_unpriced, logs_below,
    read_agents, read_session,
};
pub use operations::OperationError;
pub use prices::price_list;
pub use usage::{
    LogScanner, MAX_LINE, UsageLogs, UsageRead, UsageSelection, prices_note, usage_notes, window_resets,
};
