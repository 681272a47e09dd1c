//! Rendering of view data as terminal text.
//!
//! The functions take view data and a [`TermPage`] (width, colours, links) and return [`TermText`], in which
//! control characters from a log are made visible, so that they cannot control the terminal.
//!
//! ```
//! use threadline_session::SessionFamily;
//! use threadline_term::{TermPage, TranscriptStyle, render_transcript};
//! use threadline_view::{DetailLevel, TranscriptBuilder};
//!
//! # let log = threadline_testkit::log_of("loom", r#"
//! # u1        user   "why is it slow?"
//! # a1 <- u1  reply  m1 text "A sleep."
//! # "#);
//! let family = SessionFamily::from_bytes(&log, []);
//! let transcript = TranscriptBuilder::new(&family).transcript();
//! let page = TermPage { width: Some(80), color: false, links: false, whole_lines: false };
//! let style = TranscriptStyle { level: DetailLevel::Chat, zone: jiff::tz::TimeZone::UTC };
//! let text = render_transcript(&transcript, page, &style);
//! assert!(text.as_str().contains("why is it slow?") && text.as_str().contains("A sleep."));
//! ```

#![warn(missing_docs)]

mod ansi;
mod card;
mod highlight;
mod markdown;
mod markdown_stream;
mod outline;
mod overview;
mod page;
mod styled;
mod table;
mod text;
mod transcript;

pub use ansi::without_colours;
pub use markdown_stream::{MarkdownStream, render_tail};
pub use outline::render_outline;
pub use overview::render_overview;
pub use page::{TermPage, TextLabel, truncate};
pub use table::{ColumnAlign, TableColumn, table, truncate_start};
pub use text::TermText;
pub use threadline_view::{visible, visible_name};
pub use transcript::{
    RenderedTranscript, TranscriptRenderer, TranscriptStyle, render_call, render_hunks, render_items,
    render_running, render_transcript, render_transcript_at, render_turn_summary,
};
