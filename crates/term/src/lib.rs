//! View data as terminal text.
//!
//! Everything here takes plain view data and a [`Page`] (how wide, with colours or without) and gives
//! [`TermText`], in which a control character from a log is shown, never obeyed.

#![warn(missing_docs)]

mod ansi;
mod card;
mod highlight;
mod markdown;
mod outline;
mod page;
mod styled;
mod table;
mod text;
mod transcript;

pub use ansi::without_colours;
pub use outline::render_outline;
pub use page::{Label, Page, cut};
pub use table::{Align, Column, table};
pub use text::TermText;
pub use threadline_view::visible;
pub use transcript::{Style, Telegraph, render_end, render_items, render_running, render_transcript};
