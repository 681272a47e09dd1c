//! Plans of changes to sessions.
//!
//! An operation fills a [`Draft`], which records the lines to remove, change or add. [`Draft::plan`]
//! adjusts parents, timestamps, ids and references, and returns a [`Plan`] that can be shown, counted and
//! discarded. Nothing in this crate writes files: [`Plan::reader`] returns the bytes of the result.
//!
//! An edit changes only the lines that its plan lists: every other line is copied byte for byte. (In a new
//! session the ids and links of all lines change.)

#![warn(missing_docs)]

mod apart;
mod arrange;
mod clone;
mod compress;
mod draft;
mod fresh;
mod label;
mod mend;
mod plan;
mod redact;
mod relocate;
mod rename;
mod repair;
mod splice;
mod strip;
mod tally;
mod tokens;
mod usage;

pub use apart::set_agents_apart;
pub use clone::{Cut, CutError, clone};
pub use compress::{BANDS, Band, Compress, CompressError, Compression, Level};
pub use draft::{Draft, SideFile};
pub use fresh::{Fresh, moment};
pub use label::{tag, tag_line, title, title_line};
pub use plan::{ChangeGroup, ChangeKind, Digest, LineChange, Plan, Shape, Target};
pub use redact::{Hit, Redactor};
pub use relocate::relocate;
pub use repair::{MENDED, Repair};
pub use splice::{Splice, quote, set, span, without};
pub use strip::{Preset, Strip, Tools, strip};
pub use tally::TurnChange;
pub use tokens::tokens;
