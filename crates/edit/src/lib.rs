//! Plans of changes to sessions.
//!
//! An operation fills a [`EditDraft`], which records the lines to remove, change or add. [`EditDraft::plan`]
//! adjusts parents, timestamps, ids and references, and returns a [`EditPlan`] that can be shown, counted and
//! discarded. Nothing in this crate writes files: [`EditPlan::reader`] returns the bytes of the result.
//!
//! An edit changes only the lines that its plan lists: every other line is copied byte for byte. (In a new
//! session the ids and links of all lines change.)
//!
//! Removing the tool calls of a session, for a new session:
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
