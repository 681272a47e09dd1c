//! What every page gets: the sessions, and how to show them.

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
    /// What calls cost.
    pub(crate) book: Book,
    /// Tells open pages that something changed.
    pub(crate) news: News,
    /// The sessions as lists show them.
    pub(crate) cards: Cards,
    /// What only a whole reading tells.
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

    /// The moment that a date or the like begins or, if asked, ends at.
    pub(crate) fn moment(&self, text: &str, end: bool) -> Option<i64> {
        let now = jiff::Timestamp::try_from(self.now()).ok()?.to_zoned(self.zone.clone());
        threadline_search::moment(text, &now).map(|(from, to)| if end { to } else { from })
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
