//! The operations of threadline, for any front end: list, find, load, follow, search, count, check and edit
//! the sessions of a person.
//!
//! # Concepts
//!
//! - An [`App`] is the person's sessions, prices and state. A front end resolves flags and environment
//!   variables into an [`AppConfig`]: folders, a price list, whether secrets are masked.
//! - A [`SessionFile`] names a session on disk. An [`OpenSession`] is one in memory, with its sub-agents and
//!   costs. A [`LiveSession`] is one that is followed while it is written, and a [`SessionCache`] keeps
//!   several of them.
//! - An [`EditSession`](edit::EditSession) is a session that was read for an edit. Its operations return a
//!   [`PlannedEdit`](edit::PlannedEdit), which can be shown and discarded; applying it leaves a receipt.
//!
//! | to | use |
//! |---|---|
//! | find a session by id, prefix, title or path | [`App::find`], [`AppError::hints`] |
//! | list sessions | [`App::list`]; [`App::list_cards`] with figures; [`CardList`] if shown repeatedly |
//! | load a session with sub-agents and costs | [`App::load`], [`OpenSession`] |
//! | explain its context window | [`OpenSession::context`] |
//! | limit any of these to one project | [`ProjectScope`] |
//! | follow a session while it is written | [`LiveSession`], [`SessionCache`] |
//! | search | [`App::search_scope`], [`search`] |
//! | activity and cost over all sessions | [`App::overview_facts`], [`OverviewFacts::overview`] |
//! | count tokens and costs | [`App::usage_logs`], [`UsageLogs::read`], [`SessionCounter`] |
//! | find the session that wrote each line of a file | [`App::blame`] |
//! | compare two sessions or branches | [`App::compare`] |
//! | check the health of sessions | [`App::check_targets`], [`CheckTargets::check`] |
//!
//! # Example: print the turns of the last session
//!
//! ```
//! use threadline_app::{App, AppConfig};
//!
//! # let home = threadline_testkit::TestHome::new();
//! # home.session("slow", "u1 user \"why is it slow?\"\na1 <- u1 reply m1 text \"A sleep.\"");
//! # let home = home.root().to_owned();
//! let app = App::new(AppConfig { homes: vec![home], ..AppConfig::default() });
//! let file = app.find("last")?;
//! let session = app.load(&file)?;
//! for turn in session.transcript().turns {
//!     println!("{}. {} items, {}", turn.number, turn.items.len(), turn.spent.cost.short());
//! #   assert_eq!((turn.number, turn.items.len()), (1, 2));
//! }
//! # Ok::<(), threadline_app::AppError>(())
//! ```
//!
//! # Example: strip a session to its dialogue, and undo that
//!
//! ```
//! use threadline_app::edit::{ApplyOptions, EditTarget};
//! use threadline_app::{App, AppConfig, ListFilter};
//! use threadline_edit::StripPreset;
//!
//! # let test_home = threadline_testkit::TestHome::new();
//! # test_home.session("slow", r#"
//! # u1        user   "why is it slow?"
//! # a1 <- u1  reply  m1 tool t1 Bash {"command":"time loom"}
//! # r1 <- a1  result t1 "12 s"
//! # a2 <- r1  reply  m2 text "A sleep."
//! # "#);
//! # let (home, state_dir) = (test_home.root().to_owned(), Some(test_home.root().join("state")));
//! let app = App::new(AppConfig { homes: vec![home], state_dir, ..AppConfig::default() });
//! let session = app.open_for_edit(app.find("why is it slow?")?)?;
//! let edit = session.strip(&StripPreset::Extreme.options(), EditTarget::NewSession)?;
//! for group in edit.plan().changes_by_reason() {
//!     println!("{:?}: {} ({} lines)", group.kind, group.why, group.count);
//! }
//! let receipt = edit.apply(&app, &ApplyOptions::default())?;
//! assert_eq!(app.list(&ListFilter::default()).found.len(), 2);
//! app.operations()?.undo(&receipt, false)?;
//! assert_eq!(app.list(&ListFilter::default()).found.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Caveats
//!
//! - Nothing here prints, reads the environment or exits. All of it blocks; long work takes a callback for
//!   progress.
//! - Unlike the crates below it, this one reads the clock and makes random ids. It writes logs only through
//!   the operations of `threadline-store`, which can be undone.
//! - Caches may be deleted at any time: without them, answers take longer and are the same.

#![warn(missing_docs)]

pub mod blame;
mod cache_file;
mod check;
pub mod compare;
mod config;
mod context;
mod counter;
pub mod edit;
mod error;
mod figures;
pub mod file_copies;
mod file_sources;
mod find;
mod git;
mod inherited;
mod inspect;
mod labels;
mod list;
mod live;
mod live_log;
mod load;
mod local_names;
mod log_cache;
mod log_ends;
mod mask;
mod net_changes;
mod operations;
mod overview;
mod page_layout;
mod prices;
pub mod restore;
mod scope;
pub mod search;
mod session_cache;
mod session_secrets;
mod source;
mod text_export;
pub mod time;
mod usage;

/// The examples of the guide, which `cargo test --doc` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct GuideExamples;

pub use check::{CheckReport, CheckTargets, CodeSummary, LogOwner};
pub use config::{App, AppConfig};
pub use context::SessionContext;
pub use counter::{SessionCounter, SessionFigures};
pub use error::{AppError, EMPTY_HINT};
pub use figures::{CountedFigures, FigureOptions};
pub use find::split_anchor;
pub use inspect::{InspectedLog, inspect_log, logs_of_agents};
pub use labels::{SessionLabel, SessionLabels, check_tag};
pub use list::{CardFilter, CardList, ListFilter, ListedCards, SessionSummary};
pub use live::{LiveChange, LiveError, LiveSession, ReadSpans, SessionSelector, TurnSpan};
pub use live_log::LiveLog;
pub use load::{
    MAX_KEPT_OUTPUT, OpenSession, cwd, kept_output, load_unpriced, logs_below, read_agents, read_session,
};
pub use mask::{Mask, MaskReport};
pub use operations::{OperationError, SessionFileCopy};
pub use overview::{
    OverviewFacts, OverviewOptions, OverviewRange, OverviewReader, PaletteKind, PaletteMatch, ReadOverview,
    RecordFilter, RecordKind, RecordRow, RecordRows,
};
pub use page_layout::PageLayout;
pub use prices::price_list;
pub use scope::ProjectScope;
pub use session_cache::{SessionCache, SessionSlot};
pub use source::{CallQuery, SessionSource, SourceSelection};
pub use threadline_log::subagent;
pub use threadline_session::ActivityState;
pub use threadline_store::{FindError, SessionCandidate, SessionFile, Store};
pub use threadline_usage::PriceBook;
pub use usage::{MAX_LINE, UsageLogs, UsageNotes, UsageRead, UsageSelection, window_resets};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
