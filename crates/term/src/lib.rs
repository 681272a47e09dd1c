//! Rendering of view data as terminal text.
//!
//! The functions take view data and a [`TermPage`] (width, colours, links) and return [`TermText`], in which
//! control characters from a log are made visible, so that they cannot control the terminal.

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
pub use page::{TermPage, TextLabel, truncate};
pub use table::{ColumnAlign, TableColumn, table};
pub use text::TermText;
pub use threadline_view::visible;
pub use transcript::{
    TranscriptRenderer, TranscriptStyle, render_items, render_running, render_transcript, render_turn_summary,
};
