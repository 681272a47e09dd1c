//! Renders view data as HTML, as whole pages or fragments.
//!
//! A [`Page`] is one self-contained file: it makes no requests, and its content security policy allows none.
//! [`turn`](turn()) renders a single turn. [`index`](index()) renders the page that lists other pages.
//!
//! Untrusted text becomes markup only through [`Markup`], which escapes everything except literals of this
//! crate.

#![warn(missing_docs)]

mod ansi;
mod asset;
mod card;
mod chart;
mod index;
mod item;
mod lists;
mod lump;
mod markup;
mod opening;
mod pack;
mod page;
mod picture;
mod prose;
mod rail;
mod raw;
mod served;
mod sheet;
mod site;
mod turn;
mod words;

pub use index::{Listed, index};
pub use lists::{
    CheckPage, ExplainPage, FoundBlock, FoundSession, HomePage, SearchPage, UsagePage, check, explain, home,
    home_markdown, href, project_name, search, search_results, usage, usage_markdown,
};
pub use markup::Markup;
pub use pack::Spool;
pub use page::{Images, Options, Page, page, turn};
pub use raw::{RawLine, RawLines};
pub use served::{
    Part, PartTurn, RailPart, Served, around, changes_page, inside, part, rail_part, served_page,
};
pub use site::{Frame, Tab, asset, site, site_head, stamp};
pub use words::url;
