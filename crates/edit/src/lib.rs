//! Changes to sessions as plans.
//!
//! An operation writes a [`Draft`]: which lines go, change or come. [`Draft::plan`] makes the rest fit (one straight
//! chain, times that go on, ids and references) and gives a [`Plan`], which can be shown, counted and thrown away.
//! Nothing here writes: [`Plan::reader`] gives the bytes of the result to whoever does.
//!
//! An edit changes what it names: every line that it does not touch comes out byte for byte as it was.

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
pub use plan::{ChangeKind, Digest, LineChange, Plan, Shape, Target};
pub use redact::{Hit, Redactor};
pub use relocate::relocate;
pub use repair::{MENDED, Repair};
pub use splice::{Splice, quote, set, span, without};
pub use strip::{Preset, Strip, Tools, strip};
pub use tally::TurnChange;
pub use tokens::tokens;
