//! Keeps the facts of the overview up to date in a background thread, for a front end that shows it
//! repeatedly.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::{Condvar, Mutex};
use threadline_store::SessionLogs;

use super::OverviewFacts;
use crate::config::App;

/// Size and modification time of each log.
type LogVersions = HashMap<PathBuf, (u64, SystemTime)>;

/// Reads the facts when logs have changed, one reading at a time.
pub struct OverviewReader {
    app: Arc<App>,
    shared: Arc<Shared>,
    on_change: Arc<dyn Fn() + Send + Sync>,
}

/// The facts that are available.
#[derive(Clone)]
pub struct ReadOverview {
    /// The facts; `None` until all logs were read once.
    pub facts: Option<Arc<OverviewFacts>>,
    /// Whether logs are being read that the facts do not include in their current version.
    pub is_reading: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<ReaderState>,
    changed: Condvar,
}

#[derive(Default)]
struct ReaderState {
    facts: Option<Arc<OverviewFacts>>,
    versions: LogVersions,
    is_reading: bool,
    /// Whether a caller did not wait for the end of the reading.
    is_awaited: bool,
}

impl OverviewReader {
    /// Creates a reader. `on_change` is called in another thread each time new facts are available after
    /// [`OverviewReader::read`] has returned without them.
    pub fn new(app: Arc<App>, on_change: impl Fn() + Send + Sync + 'static) -> Self {
        Self { app, shared: Arc::default(), on_change: Arc::new(on_change) }
    }

    /// Returns the facts of all sessions. Waits up to `timeout` if logs have changed.
    pub fn read(&self, now: SystemTime, timeout: Duration) -> ReadOverview {
        let listing = self.app.store().session_logs();
        let logs = listing.found.iter().flat_map(SessionLogs::logs);
        let wanted: LogVersions = logs.map(|log| (log.path.clone(), (log.size, log.modified))).collect();
        let start = Instant::now();
        let mut state = self.shared.state.lock();
        let is_current = |state: &ReaderState| state.facts.is_some() && state.versions == wanted;
        if is_current(&state) {
            return ReadOverview { facts: state.facts.clone(), is_reading: false };
        }
        let mut request = Some(listing);
        loop {
            if let Some(listing) = request.take_if(|_| !state.is_reading) {
                let unread = listing.errors.iter().map(ToString::to_string).collect();
                state.is_reading = self.start(listing.found, unread, wanted.clone(), now);
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else { break };
            self.shared.changed.wait_for(&mut state, left);
            if is_current(&state) || (request.is_none() && !state.is_reading) {
                break;
            }
        }
        state.is_awaited |= state.is_reading;
        ReadOverview { facts: state.facts.clone(), is_reading: state.is_reading }
    }

    /// Returns the facts that were read last, without looking at the logs. Waits up to `timeout` for the
    /// first ones.
    pub fn latest(&self, now: SystemTime, timeout: Duration) -> ReadOverview {
        let state = self.shared.state.lock();
        match state.facts.clone() {
            Some(facts) => ReadOverview { facts: Some(facts), is_reading: state.is_reading },
            None => {
                drop(state);
                self.read(now, timeout)
            }
        }
    }

    /// Starts a thread that reads. Returns whether it could be started.
    fn start(
        &self,
        sessions: Vec<SessionLogs>,
        unread: Vec<String>,
        versions: LogVersions,
        now: SystemTime,
    ) -> bool {
        let (app, shared, on_change) =
            (Arc::clone(&self.app), Arc::clone(&self.shared), Arc::clone(&self.on_change));
        let read = move || {
            // Ends the reading even if it panics.
            let ended = ReadingEnd { shared: &shared, on_change: &*on_change };
            let options = app.overview_options();
            if let Ok(facts) = app.overview_facts_of(&sessions, unread, &options, now, &|| ()) {
                let mut state = shared.state.lock();
                state.facts = Some(Arc::new(facts));
                state.versions = versions;
            }
            drop(ended);
        };
        std::thread::Builder::new().name("overview".to_owned()).spawn(read).is_ok()
    }
}

struct ReadingEnd<'a> {
    shared: &'a Shared,
    on_change: &'a dyn Fn(),
}

impl Drop for ReadingEnd<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.is_reading = false;
        let is_awaited = std::mem::take(&mut state.is_awaited);
        drop(state);
        self.shared.changed.notify_all();
        if is_awaited {
            (self.on_change)();
        }
    }
}
