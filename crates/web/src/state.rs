//! The state of the server, shared by all pages.

use std::sync::Arc;
use std::time::SystemTime;

use axum::http::{HeaderMap, header};
use jiff::Zoned;
use jiff::tz::TimeZone;
use threadline_app::{
    App, AppError, CardList, ListedCards, LiveSession, Mask, OverviewReader, PriceBook, SessionCache,
    SessionCounter,
};

use threadline_html::{Masking, PageTheme, ViewerSettings};

use crate::change_notifier::ChangeNotifier;
use crate::response::PageError;
use crate::watch::SessionWatches;

/// The state of the server, as requests see it that mask secrets or do not. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerState(Arc<ServerStateInner>);

/// Both states of the server: with secrets shown and with secrets masked. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ServerStates {
    plain: ServerState,
    masked: ServerState,
}

impl ServerStates {
    /// Creates the states for an application. If it masks secrets, all requests do.
    pub(crate) fn new(
        app: Arc<App>,
        zone: TimeZone,
        (mask, sharing_mask): (Mask, Mask),
        theme: PageTheme,
    ) -> Result<Self, AppError> {
        let sharing = Arc::new(app.with_mask(sharing_mask));
        let always = app.config().mask.is_on();
        let masked_app = match always {
            true => Arc::clone(&app),
            false => Arc::new(app.with_mask(mask)),
        };
        let shared = SharedState::new(&app, &zone)?;
        let masking = if always { Masking::Always } else { Masking::On };
        let plain_app = &app;
        let state = |app: &Arc<App>, masking: Masking| {
            let plain_app = Arc::clone(plain_app);
            let (app, masked_app, sharing) = (Arc::clone(app), Arc::clone(&masked_app), Arc::clone(&sharing));
            ServerState(Arc::new(ServerStateInner {
                session_cache: SessionCache::new(Arc::clone(&shared.prices)),
                watches: SessionWatches::default(),
                shutdown: shared.shutdown.clone(),
                cards: CardList::default(),
                counter: Arc::clone(&shared.counter),
                overview: Arc::clone(&shared.overview),
                app,
                plain_app,
                masked_app,
                sharing,
                settings: ViewerSettings { masking: Some(masking), theme },
                zone: zone.clone(),
                prices: Arc::clone(&shared.prices),
                changes: shared.changes.clone(),
            }))
        };
        let masked = state(&masked_app, masking);
        let plain = if always { masked.clone() } else { state(&app, Masking::Off) };
        Ok(Self { plain, masked })
    }

    /// Returns the state for a request.
    pub(crate) fn of(&self, headers: &HeaderMap) -> &ServerState {
        if wants_masks(headers) { &self.masked } else { &self.plain }
    }

    /// Returns the part of the state that does not depend on the request.
    pub(crate) fn plain(&self) -> &ServerState {
        &self.plain
    }
}

/// The cookie with which pages ask for masks. `site.js` sets it.
const MASK_COOKIE: &str = "threadline-mask";

fn wants_masks(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.any(|cookie| cookie == (MASK_COOKIE, "1"))
}

/// The parts of the state that are equal for all requests.
struct SharedState {
    shutdown: tokio::sync::watch::Sender<bool>,
    prices: Arc<PriceBook>,
    changes: ChangeNotifier,
    counter: Arc<SessionCounter>,
    overview: Arc<OverviewReader>,
}

impl SharedState {
    fn new(app: &Arc<App>, zone: &TimeZone) -> Result<Self, AppError> {
        let prices = app.prices()?;
        let changes = ChangeNotifier::new();
        let notifier = changes.clone();
        let counter = SessionCounter::new(Arc::clone(&prices), zone.clone(), move || notifier.notify());
        let notifier = changes.clone();
        let overview = OverviewReader::new(Arc::clone(app), move || notifier.notify());
        let shutdown = tokio::sync::watch::Sender::new(false);
        Ok(Self { shutdown, prices, changes, counter: Arc::new(counter), overview: Arc::new(overview) })
    }
}

pub(crate) struct ServerStateInner {
    /// The sessions and prices.
    pub(crate) app: Arc<App>,
    /// The same, with secrets shown, unless they are always masked.
    pub(crate) plain_app: Arc<App>,
    /// The same, with secrets masked.
    pub(crate) masked_app: Arc<App>,
    /// The same, with everything masked that should not be shared.
    pub(crate) sharing: Arc<App>,
    /// Settings of the pages.
    pub(crate) settings: ViewerSettings,
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
    /// The facts of the overview, read in the background.
    pub(crate) overview: Arc<OverviewReader>,
    /// The sessions as cards, cached.
    cards: CardList,
    /// Figures of all sessions, counted in the background.
    counter: Arc<SessionCounter>,
}

impl ServerState {
    /// Returns the sessions of all homes. Waits up to `timeout` for figures that are not available yet.
    pub(crate) fn cards(&self, timeout: std::time::Duration) -> ListedCards {
        self.cards.list(&self.app, &self.counter, self.now(), timeout)
    }

    /// Calls `run` with the current state of a session.
    pub(crate) fn with_session<T: Send>(
        &self,
        id: &str,
        run: impl FnOnce(&mut LiveSession) -> Result<T, PageError> + Send,
    ) -> Result<T, PageError> {
        self.session_cache.with(&self.app, id, run)
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
