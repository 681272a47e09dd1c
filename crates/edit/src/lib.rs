//! Plans of changes to sessions: clone, strip, compress, redact, repair, move, rename.
//!
//! # Concepts
//!
//! - An operation ([`strip()`], [`clone()`], [`Redactor::redact`], [`Compression::apply`], [`relocate()`], …)
//!   fills an [`EditDraft`], which records the lines to remove, change or add, each with a reason. A change
//!   of a line is a [`Splice`]: a byte range and its replacement.
//! - [`EditDraft::plan`] makes the result consistent, as its [`PlanTarget`] requires: it links the
//!   conversation into one chain, adjusts ids, timestamps and references, and removes content that the API
//!   would reject.
//! - The [`EditPlan`] can be shown ([`EditPlan::changes_by_reason`], [`EditPlan::turns`]), counted and
//!   discarded. [`EditPlan::refusals`] are the reasons why the result must not be written; usually there are
//!   none. [`EditPlan::reader`] returns the bytes of the result. Nothing in this crate writes files.
//! - A [`PlanSeed`] contains what varies from run to run: the source of new ids, and the time. Equal seeds
//!   make equal plans.
//! - Some operations take several steps. A [`Redactor`] first learns the secrets of all lines, since the text
//!   that identifies a secret may be far from its copies. A [`Repair`] first makes lines readable. A
//!   [`Compression`] chooses the turns to summarise; the summary may come from the caller.
//!
//! An edit changes only the lines that its plan lists: every other line is copied byte for byte. (In a new
//! session the ids and links of all lines change.)
//!
//! # Example: remove the tool calls, for a new session
//!
//! ```
//! use threadline_edit::{EditDraft, PlanOptions, PlanSeed, PlanTarget, StripPreset, strip};
//! use threadline_session::Session;
//!
//! # let log = threadline_testkit::log_of("loom", r#"
//! # u1        user   "why is it slow?"
//! # a1 <- u1  reply  m1 tool t1 Bash {"command":"time loom"}
//! # r1 <- a1  result t1 "12 s"
//! # a2 <- r1  reply  m2 text "A sleep."
//! # "#);
//! let session = Session::from_bytes(&log);
//! let mut draft = EditDraft::new(&session);
//! strip(&mut draft, &StripPreset::Extreme.options(), "the original log");
//! let seed = PlanSeed { seed: "any text".to_owned(), now: 0 };
//! let plan = draft.plan(PlanOptions { target: PlanTarget::New("new-id".to_owned()), seed });
//! assert!(plan.refusals().is_empty(), "the result can be resumed");
//! for group in plan.changes_by_reason() {
//!     println!("{:?}: {} ({} lines)", group.kind, group.why, group.count);
//! }
//! let result = Session::from_bytes(&plan.to_bytes());
//! assert_eq!((session.tool_calls().len(), result.tool_calls().len()), (1, 0));
//! ```
//!
//! # Example: replace secrets in place
//!
//! ```
//! use threadline_edit::{EditDraft, PlanOptions, PlanSeed, PlanTarget, Redactor};
//! use threadline_secret::Rules;
//! use threadline_session::Session;
//!
//! # let log = threadline_testkit::log_of("loom", r#"
//! # u1        user   "connect to postgres://ada:weft-3371-heddle@db.example/loom"
//! # a1 <- u1  reply  m1 text "Connected."
//! # "#);
//! let session = Session::from_bytes(&log);
//! let rules = Rules::new();
//! let mut redactor = Redactor::new(&rules);
//! redactor.learn(&session);
//! redactor.finish_learning();
//! let mut draft = EditDraft::new(&session);
//! redactor.redact(&mut draft);
//! let seed = PlanSeed { seed: "any text".to_owned(), now: 0 };
//! let plan = draft.plan(PlanOptions { target: PlanTarget::KeepOrder, seed });
//! // Removed, changed and added lines.
//! assert_eq!(plan.counts(), [0, 1, 0]);
//! assert!(!String::from_utf8_lossy(&plan.to_bytes()).contains("weft-3371-heddle"));
//! ```
//!
//! # Caveats
//!
//! - An operation does not fail because of content. A result that Claude Code could not resume is refused,
//!   and so is a change of a line beyond the [limits](threadline_entry::Entry::is_over_limit).
//! - No disk, clock or randomness. Time is linear in the log; a plan contains no copy of it.

#![warn(missing_docs)]

mod ancestor_search;
mod arrange;
mod clone;
mod compress;
mod draft;
mod inline_agents;
mod label;
mod plan;
mod redact;
mod relocate;
mod rename;
mod repair;
mod sanitize;
mod seed;
mod splice;
mod strip;
mod tokens;
mod totals;
mod usage_reset;

pub use clone::{CutError, CutPoint, clone};
pub use compress::{CompressError, CompressOptions, Compression, DEFAULT_BANDS, SummaryBand, SummaryLevel};
pub use draft::{EditDraft, SideFileOp};
pub use inline_agents::extract_inline_agents;
pub use label::{tag, tag_line, title, title_line};
pub use plan::{ChangeGroup, ChangeKind, ContentDigest, EditPlan, LineChange, PlanOptions, PlanTarget};
pub use redact::{MaskedSecret, Redactor, rewrite_strings};
pub use relocate::relocate;
pub use repair::{REPAIRED_CODES, Repair};
pub use seed::{PlanSeed, moment};
pub use splice::{Splice, delete_parts, quote, set, span};
pub use strip::{StripOptions, StripPreset, ToolStripOptions, strip};
pub use tokens::tokens;
pub use totals::TurnChange;

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
