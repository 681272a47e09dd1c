//! Change notifications for followed sessions.
//!
//! A watch exists as long as a client follows its session. It is notified of changes by the system, and also
//! polls. It keeps only a version number, which changes with the session; clients see it change and request
//! the new parts. A slow client skips versions and does not block others.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use parking_lot::Mutex;
use threadline_app::{SessionFile, SessionSlot};
use tokio::sync::{Notify, watch};

use crate::state::ServerState;

/// Polling interval, in case the system reports no changes.
const POLL_INTERVAL: Duration = Duration::from_millis(1000);

/// Changes within this time are reported together.
const DEBOUNCE: Duration = Duration::from_millis(25);

/// The followed sessions.
#[derive(Default)]
pub(crate) struct SessionWatches(Mutex<HashMap<String, Weak<SessionWatch>>>);

/// A followed session.
pub(crate) struct SessionWatch {
    /// The version of the session; `u64::MAX` if it cannot be read.
    pub(crate) version: watch::Receiver<u64>,
    /// Keeps the session in the cache while it is followed.
    _slot: SessionSlot,
    /// Stops the task when dropped.
    _alive: Arc<()>,
}

impl SessionWatches {
    /// Follows a session. Clients of the same session share one watch.
    pub(crate) fn follow(&self, state: &ServerState, id: &str) -> Arc<SessionWatch> {
        let mut watches = self.0.lock();
        watches.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = watches.get(id).and_then(Weak::upgrade) {
            return watch;
        }
        let alive = Arc::new(());
        let (tell, version) = watch::channel(0);
        let watch = Arc::new(SessionWatch {
            version,
            _slot: state.session_cache.slot(id),
            _alive: Arc::clone(&alive),
        });
        watches.insert(id.to_owned(), Arc::downgrade(&watch));
        tokio::spawn(watch_session(state.clone(), id.to_owned(), tell, Arc::downgrade(&alive)));
        watch
    }
}

/// Refreshes a session when its files change, until no client follows it.
async fn watch_session(state: ServerState, id: String, tell: watch::Sender<u64>, alive: Weak<()>) {
    let poke = Arc::new(Notify::new());
    let mut watcher = None;
    while alive.strong_count() > 0 && !*state.shutdown.borrow() {
        let (state, id) = (state.clone(), id.clone());
        let seen = tokio::task::spawn_blocking(move || {
            state.with_session(&id, |live| Ok((live.version(), live.file().path.clone())))
        });
        match seen.await {
            Ok(Ok((version, path))) => {
                if watcher.is_none() {
                    watcher = watch_files(&path, Arc::clone(&poke));
                }
                tell.send_if_modified(|known| std::mem::replace(known, version) != version);
            }
            // It does not exist or cannot be read. Clients request it and get the error.
            _ => {
                tell.send_if_modified(|known| std::mem::replace(known, u64::MAX) != u64::MAX);
            }
        }
        tokio::select! {
            () = poke.notified() => tokio::time::sleep(DEBOUNCE).await,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

/// Watches a log and the logs of its sub-agents for changes.
fn watch_files(log: &Path, poke: Arc<Notify>) -> Option<notify::RecommendedWatcher> {
    let own = log.file_stem()?.to_owned();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        let Ok(event) = event else { return };
        let about = |path: &std::path::PathBuf| {
            path.components().any(|part| Path::new(&part).file_stem() == Some(&own))
        };
        if !event.kind.is_access() && event.paths.iter().any(about) {
            poke.notify_one();
        }
    })
    .ok()?;
    watcher.watch(log.parent()?, RecursiveMode::NonRecursive).ok()?;
    // Sub-agents have a separate folder, which may not exist yet.
    if let Some(dir) = SessionFile::at(log).side_dir() {
        let _ = watcher.watch(&dir, RecursiveMode::Recursive);
    }
    Some(watcher)
}
