//! What every page gets: the sessions, and how to show them.

use std::sync::Arc;
use std::time::SystemTime;

use jiff::tz::TimeZone;
use threadline_store::Store;

/// What every page gets. Cheap to clone.
#[derive(Clone)]
pub(crate) struct State(Arc<Inner>);

/// What there is one of a server.
pub(crate) struct Inner {
    /// Where sessions are.
    pub(crate) store: Store,
    /// The zone that times are shown in.
    pub(crate) zone: TimeZone,
}

impl State {
    pub(crate) fn new(store: Store, zone: TimeZone) -> Self {
        Self(Arc::new(Inner { store, zone }))
    }

    /// Now.
    #[allow(clippy::disallowed_methods, reason = "a server that shows what is live has a clock")]
    #[allow(dead_code, reason = "pages say how long ago something was")]
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
