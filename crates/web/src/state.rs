//! What every page gets: the sessions, and how to show them.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use threadline_store::Store;
use threadline_usage::Book;

use crate::shelf::Shelf;
use crate::watch::Watches;

/// What every page gets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct State(Arc<Inner>);

/// What there is one of a server.
pub(crate) struct Inner {
    /// Where sessions are.
    pub(crate) store: Store,
    /// The zone that times are shown in.
    pub(crate) zone: TimeZone,
    /// The sessions that were looked at last.
    pub(crate) shelf: Shelf,
    /// Those that somebody follows.
    pub(crate) watches: Watches,
    /// Whether the server is about to end.
    pub(crate) ending: tokio::sync::watch::Sender<bool>,
}

impl State {
    pub(crate) fn new(store: Store, zone: TimeZone, book: Book) -> Self {
        let (shelf, watches) = (Shelf::new(book), Watches::default());
        Self(Arc::new(Inner { store, zone, shelf, watches, ending: tokio::sync::watch::Sender::new(false) }))
    }

    /// Now.
    #[allow(clippy::disallowed_methods, reason = "a server that shows what is live has a clock")]
    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl std::ops::Deref for State {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
