//! Renders view data as HTML, as whole pages or fragments.
//!
//! A [`PageBuilder`] is one self-contained file: it makes no requests, and its content security policy
//! allows none. [`turn`](turn()) renders a single turn. [`index`](index()) renders the page that lists
//! other pages.
//!
//! Untrusted text becomes markup only through [`Markup`], which escapes everything except literals of this
//! crate.
//!
//! A session as one page:
//!
//! ```
//! use threadline_html::{RawLines, RenderOptions, page};
//! use threadline_session::SessionFamily;
//! use threadline_view::TranscriptBuilder;
//!
//! # let log = threadline_testkit::log_of("loom", "u1 user \"<b>why</b> is it slow?\"");
//! let family = SessionFamily::from_bytes(&log, []);
//! let transcript = TranscriptBuilder::new(&family).transcript();
//! let html = page(&transcript, RawLines::default(), &RenderOptions::new(jiff::tz::TimeZone::UTC));
//! assert!(html.starts_with("<!doctype html>"));
//! assert!(html.contains("&lt;b&gt;why&lt;/b&gt; is it slow?"));
//! ```

#![warn(missing_docs)]

mod ansi;
mod asset;
mod attachment;
mod card;
mod chart;
mod compressed_section;
mod index;
mod item;
mod lists;
mod markup;
mod message_files;
mod outline;
mod page;
mod page_header;
mod page_writer;
mod prose;
mod raw;
mod render_context;
mod session_page;
mod site;
mod text_format;
mod turn;

pub use compressed_section::Spool;
pub use index::{IndexedSession, index};
pub use lists::{
    BlamePage, BlockMatch, CheckPage, ComparePage, ContextPage, ExplainPage, FileLocation, FilePage,
    HomePage, LabelControls, OverviewPage, RecordLine, RecordsPage, RepairPlan, SearchFilters, SearchPage,
    SessionMatches, UsagePage, blame, check, compare, context, explain, file, home, home_markdown, href,
    overview, project_name, records, search, search_results, usage, usage_markdown,
};
pub use markup::Markup;
pub use page::{ImageMode, PageBuilder, RenderOptions, page, turn};
pub use page_writer::write_page;
pub use raw::{RawLine, RawLines};
pub use session_page::{
    ChangesPage, PageTurn, SessionPage, header_and_footer, render_changes_page, render_outline_part,
    render_part, render_session_page, render_subagent_turns,
};
pub use site::{Masking, PageFrame, PageTheme, ViewerSettings, ViewerTab, asset, site, site_head, stamp};
pub use text_format::encode_url;
