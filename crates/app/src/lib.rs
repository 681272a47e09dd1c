//! The operations of threadline, for any front end.
//!
//! An [`App`] is the person's sessions, prices and state. A front end resolves flags and environment
//! variables into an [`AppConfig`], calls the app, and renders the result:
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
//! Nothing here prints, reads the environment or exits. All of it blocks; long work takes a callback for
//! progress.
//!
//! Printing the turns of the last session:
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
mod excerpt_mask;
mod figures;
mod find;
mod git;
mod inherited;
mod inspect;
mod labels;
mod list;
mod live;
mod live_log;
mod load;
mod log_cache;
mod log_ends;
mod masked_titles;
mod operations;
mod overview;
mod page_layout;
mod prices;
mod redaction;
pub mod restore;
mod scope;
pub mod search;
mod session_cache;
mod source;
mod text_export;
pub mod time;
mod usage;

/// The examples of the guide, which `cargo test --doc` compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/library.md")]
struct GuideExamples;

pub use check::{CheckReport, CheckTargets, CodeSummary, LogOwner, check_log};
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
pub use live_log::{LiveLimits, LiveLog};
pub use load::{
    LineObserver, MAX_KEPT_OUTPUT, OpenSession, agent, cwd, kept_output, load_unpriced, logs_below,
    read_agents, read_session,
};
pub use operations::{OperationError, SessionFileCopy};
pub use overview::{
    OverviewFacts, OverviewOptions, OverviewRange, OverviewReader, PaletteKind, PaletteMatch, ReadOverview,
    RecordFilter, RecordKind, RecordRow, RecordRows,
};
pub use page_layout::PageLayout;
pub use prices::price_list;
pub use redaction::{DisplayRedaction, RedactionReport, SessionTextMask};
pub use scope::ProjectScope;
pub use session_cache::{SessionCache, SessionSlot};
pub use source::{CallQuery, SessionSource, SourceSelection};
pub use threadline_session::ActivityState;
pub use threadline_store::{FindError, SessionCandidate, SessionFile, Store};
pub use threadline_usage::PriceBook;
pub use usage::{MAX_LINE, UsageLogs, UsageNotes, UsageRead, UsageSelection, window_resets};
