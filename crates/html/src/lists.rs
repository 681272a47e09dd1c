//! Pages of the viewer that list things: home, search, usage, and what is wrong with a session.
//!
//! Each function draws what stands between the bar and the end of the page. Everything a page says stands in its markup,
//! so it reads without a script, and every choice is a link.

mod chart;
mod check;
mod chooser;
mod explain;
mod foot;
mod home;
mod link;
mod numbers;
mod search;
mod usage;

pub use check::{CheckPage, check};
pub use explain::{ExplainPage, explain};
pub use home::{HomePage, home, home_markdown};
pub use link::{href, project_name};
pub use search::{FoundBlock, FoundSession, SearchPage, search, search_results};
pub use usage::{UsagePage, usage, usage_markdown};
