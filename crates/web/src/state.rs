//! The state of the server, shared by all pages.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::Zoned;
use jiff::tz::TimeZone;
use threadline_app::{App, AppError, CardList, ListedCards, PriceBook, SessionCounter};

use crate::change_notifier::ChangeNotifier;
use crate::session_cache::SessionCache;
use crate::watch::SessionWatches;

/// The state of the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<ServerStateInner>);

pub(crate) struct ServerStateInner {
    /// The sessions and prices.
    pub(crate) app: Arc<App>,
    /// The time zone in which times are shown.
    pub(crate) zone: TimeZone,
    /// A cache of the sessions that were used last.
    pub(crate) session_cache: SessionCache,
    /// The followed sessions.
    pub(crate) watches: SessionWatches,
    /// Whether shutdown has started.
    pub(crate) shutdown: tokio::sync::watch::Sender<bool>,
    /// The price list.
    pub(crate) prices: Arc<PriceBook>,
    /// Notifies open pages of changes.
    pub(crate) changes: ChangeNotifier,
    /// The sessions as cards, cached.
    cards: CardList,
    /// Figures of all sessions, counted in the background.
    counter: SessionCounter,
}

impl ServerState {
    pub(crate) fn new(app: Arc<App>, zone: TimeZone) -> Result<Self, AppError> {
        let prices = app.prices()?;
        let news = ChangeNotifier::new();
        let heard = news.clone();
        Ok(Self(Arc::new(ServerStateInner {
            session_cache: SessionCache::new(Arc::clone(&prices)),
            watches: SessionWatches::default(),
            shutdown: tokio::sync::watch::Sender::new(false),
            cards: CardList::default(),
            counter: SessionCounter::new(Arc::clone(&prices), zone.clone(), move || heard.notify()),
            app,
            zone,
            prices,
            changes: news,
        })))
    }

    /// Returns the sessions of all homes. Waits up to `timeout` for figures that are not available yet.
    pub(crate) fn cards(&self, timeout: std::time::Duration) -> ListedCards {
        self.cards.list(&self.app, &self.counter, self.now(), timeout)
    }

    /// Returns the current time in the time zone of the server.
    pub(crate) fn now_here(&self) -> Zoned {
        jiff::Timestamp::try_from(self.now()).unwrap_or_default().to_zoned(self.zone.clone())
    }

    /// Returns the current time.
    #[allow(clippy::disallowed_methods, reason = "a server that shows what is live has a clock")]
    pub(crate) fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl std::ops::Deref for ServerState {
    type Target = ServerStateInner;

    fn deref(&self) -> &ServerStateInner {
        &self.0
    }
}
