//! State shared by all pages.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use threadline_store::Store;
use threadline_usage::Book;

use crate::cards::Cards;
use crate::counter::Counter;
use crate::news::News;
use crate::shelf::Shelf;
use crate::watch::Watches;

/// State shared by all pages. Cheap to clone.
#[derive(Clone)]
pub(crate) struct State(Arc<Inner>);

/// The contents of [`State`], one per server.
pub(crate) struct Inner {
    /// The Claude Code homes.
    pub(crate) store: Store,
    /// The time zone in which times are shown.
    pub(crate) zone: TimeZone,
    /// The sessions opened most recently.
    pub(crate) shelf: Shelf,
    /// The sessions that open pages follow.
    pub(crate) watches: Watches,
    /// Whether shutdown has started.
    pub(crate) ending: tokio::sync::watch::Sender<bool>,
    /// The prices of model calls.
    pub(crate) book: Book,
    /// Notifies open pages of changes.
    pub(crate) news: News,
    /// The rows of the session lists.
    pub(crate) cards: Cards,
    /// Figures that require reading whole logs.
    pub(crate) counter: Counter,
}

impl State {
    pub(crate) fn new(store: Store, zone: TimeZone, book: Book) -> Self {
        let (shelf, watches) = (Shelf::new(book.clone()), Watches::default());
        let news = News::new();
        let counter = Counter::new(book.clone(), zone.clone(), news.clone());
        let ending = tokio::sync::watch::Sender::new(false);
        let cards = Cards::default();
        Self(Arc::new(Inner { store, zone, shelf, watches, ending, book, news, cards, counter }))
    }

    /// Parses a date or a relative time. Returns the start or the end of it, in milliseconds.
    pub(crate) fn moment(&self, text: &str, end: bool) -> Option<i64> {
        let now = jiff::Timestamp::try_from(self.now()).ok()?.to_zoned(self.zone.clone());
        threadline_search::moment(text, &now).map(|(from, to)| if end { to } else { from })
    }

    /// Returns the current time.
    #[allow(clippy::disallowed_methods, reason = "the server needs the current time to detect live sessions")]
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
