//! Pages of the viewer that list things: home, search, usage, usage records, the health check and the
//! context window of a session, comparisons, files and their lines.
//!
//! Each function renders the main content of a page and its footer. All content is in the markup, so the
//! pages work without a script, and every choice is a link.

mod blame;
mod chart;
mod check;
mod compare;
mod context;
mod explain;
mod figure_table;
mod filter_panel;
mod footer;
mod home;
mod labels;
mod link;
mod model_colors;
mod overview;
mod records;
mod search;
mod usage;
mod usage_table;

pub use blame::{BlamePage, FileLocation, FilePage, blame, file};
pub use check::{CheckPage, RepairPlan, check};
pub use compare::{ComparePage, compare};
pub use context::{ContextPage, context};
pub use explain::{ExplainPage, explain};
pub use home::{HomePage, home, home_markdown};
pub use labels::LabelControls;
pub use link::{href, project_name};
pub use overview::{OverviewPage, overview};
pub use records::{RecordLine, RecordsPage, records};
pub use search::{BlockMatch, SearchFilters, SearchPage, SessionMatches, search, search_results};
pub use usage::{UsagePage, usage, usage_markdown};
