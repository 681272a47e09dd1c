//! Plans of changes to sessions.
//!
//! An operation fills a [`EditDraft`], which records the lines to remove, change or add. [`EditDraft::plan`]
//! adjusts parents, timestamps, ids and references, and returns a [`EditPlan`] that can be shown, counted and
//! discarded. Nothing in this crate writes files: [`EditPlan::reader`] returns the bytes of the result.
//!
//! An edit changes only the lines that its plan lists: every other line is copied byte for byte. (In a new
//! session the ids and links of all lines change.)

#![warn(missing_docs)]

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
pub use redact::{MaskedSecret, Redactor};
pub use relocate::relocate;
pub use repair::{REPAIRED_CODES, Repair};
pub use seed::{PlanSeed, moment};
pub use splice::{Splice, delete_parts, quote, set, span};
pub use strip::{StripOptions, StripPreset, ToolStripOptions, strip};
pub use tokens::tokens;
pub use totals::TurnChange;
