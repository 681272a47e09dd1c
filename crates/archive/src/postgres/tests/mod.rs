//! Tests on a real server. Without one, they print that they were skipped.

mod access;
mod faults;
mod push;
mod query;

use std::ops::{Deref, DerefMut};
use std::path::PathBuf;

use jiff::tz::TimeZone;
use threadline_app::{CallQuery, SessionSource as _, SourceSelection, UsageLogs};
use threadline_store::Store;
use threadline_testkit::PostgresServer;
use threadline_usage::{CallGroups, GroupBy, ModelCalls, PriceBook, ScanOptions};

use crate::tests::source_home::SourceHome;
use crate::{Archive, ArchiveError, ArchiveLocation, PushReport, StorageOptions};

/// A home, and an empty database.
struct Setup {
    home: SourceHome,
    server: &'static PostgresServer,
    database: String,
}

impl Setup {
    /// Returns `None` if there is no server.
    fn new() -> Option<Self> {
        Self::with(SourceHome::new)
    }

    fn empty() -> Option<Self> {
        Self::with(SourceHome::empty)
    }

    fn with(home: fn() -> SourceHome) -> Option<Self> {
        let server = PostgresServer::shared()?;
        Some(Self { home: home(), server, database: server.database() })
    }

    fn open(&self, url: &str) -> Result<Archive, ArchiveError> {
        let location: ArchiveLocation = url.parse()?;
        Archive::create(&location, &StorageOptions::new())
    }

    fn archive(&self) -> Archive {
        self.open(&self.server.url(&self.database)).unwrap()
    }

    /// Returns the address of the database behind a proxy.
    fn url_at(&self, port: u16) -> String {
        format!("postgres://threadline@127.0.0.1:{port}/{}?sslmode=disable", self.database)
    }

    fn push(&self) -> PushReport {
        self.push_to(&self.archive(), "laptop").unwrap()
    }

    fn fetch(&self) -> Vec<PathBuf> {
        self.fetch_with(&SourceSelection::default())
    }

    fn fetch_with(&self, selection: &SourceSelection) -> Vec<PathBuf> {
        self.fetch_from(&self.archive(), selection)
    }

    fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.database, statements).trim().to_owned()
    }

    fn damage(&self) -> Vec<String> {
        self.archive().verify(&|| ()).unwrap().damaged
    }
}

impl Deref for Setup {
    type Target = SourceHome;

    fn deref(&self) -> &SourceHome {
        &self.home
    }
}

impl DerefMut for Setup {
    fn deref_mut(&mut self) -> &mut SourceHome {
        &mut self.home
    }
}

/// Compares the sums of the database with those of the logs.
fn assert_same_usage(setup: &Setup) {
    let logs: UsageLogs = Store::open([setup.home()]).logs().into();
    let local = logs.read(ScanOptions::default(), &|| ()).calls;
    let book = PriceBook::embedded();
    let query = CallQuery { context_limits: book.context_limits(), ..CallQuery::default() };
    let stored = setup.archive().model_calls(&SourceSelection::default(), &query).unwrap().unwrap();
    let zone = TimeZone::fixed(jiff::tz::Offset::from_seconds((5 * 60 + 45) * 60).unwrap());
    let groups = |calls: &ModelCalls, by| CallGroups::of(calls, by, &book, &zone, |_, _| true);
    for by in [
        GroupBy::Day,
        GroupBy::Week,
        GroupBy::Month,
        GroupBy::Session,
        GroupBy::Project,
        GroupBy::Model,
        GroupBy::Branch,
    ] {
        assert_eq!(groups(&stored, by), groups(&local, by), "{by:?}");
    }
    assert_eq!(stored.inherited(), local.inherited());
    assert_eq!(
        (stored.n_invalid_lines(), stored.n_incomplete_logs()),
        (local.n_invalid_lines(), local.n_incomplete_logs())
    );
}
