//! The application layer over homes on disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use threadline_app::{App, AppConfig};
use threadline_testkit::TestHome;

mod blame;
mod check;
mod compare;
mod edit;
mod figures;
mod list;
mod live;
mod load;
mod operations;
mod overview;
mod page_layout;
mod restore;
mod search;
mod usage;
mod world;

/// The application over one home.
fn app(home: &TestHome) -> App {
    App::new(AppConfig { homes: vec![home.root().to_owned()], ..AppConfig::default() })
}
