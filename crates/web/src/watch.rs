//! Sessions that somebody follows: told of as soon as their files change.
//!
//! A watch lives as long as somebody follows its session. It learns of changes from the system, and where that fails
//! it looks by itself; it keeps nothing but a number that goes up. Who follows sees the number change and asks for what
//! is new: a client that reads slowly skips what it missed, and holds up nobody.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use threadline_app::sync::lock;
use threadline_store::SessionFile;
use tokio::sync::{Notify, watch};

use crate::shelf::Slot;
use crate::state::State;

/// How often a session is looked at, whatever the system says.
const EVERY: Duration = Duration::from_millis(1000);

/// Changes that come within this time are told at once.
const TOGETHER: Duration = Duration::from_millis(25);

/// After so many changes, what was left for later is made up for.
const SETTLED: u32 = 50;

/// The sessions that somebody follows.
#[derive(Default)]
pub(crate) struct Watches(Mutex<HashMap<String, Weak<Watch>>>);

/// A session that somebody follows.
pub(crate) struct Watch {
    /// How often it changed.
    pub(crate) version: watch::Receiver<u64>,
    /// While it is followed, it stays on the shelf.
    _slot: Slot,
    /// Ends the looking.
    _alive: Arc<()>,
}

impl Watches {
    /// Follows a session, together with whoever follows it already.
    pub(crate) fn follow(&self, state: &State, id: &str) -> Arc<Watch> {
        let mut watches = lock(&self.0);
        watches.retain(|_, watch| watch.strong_count() > 0);
        if let Some(watch) = watches.get(id).and_then(Weak::upgrade) {
            return watch;
        }
        let alive = Arc::new(());
        let (tell, version) = watch::channel(0);
        let watch = Arc::new(Watch { version, _slot: state.shelf.slot(id), _alive: Arc::clone(&alive) });
        watches.insert(id.to_owned(), Arc::downgrade(&watch));
        tokio::spawn(look(state.clone(), id.to_owned(), tell, Arc::downgrade(&alive)));
        watch
    }
}

/// Looks at a session whenever something happens to its files, until nobody follows it.
async fn look(state: State, id: String, tell: watch::Sender<u64>, alive: Weak<()>) {
    let poke = Arc::new(Notify::new());
    let mut watcher = None;
    let (mut busy, mut quiet) = (0, false);
    while alive.strong_count() > 0 && !*state.ending.borrow() {
        let (state, id) = (state.clone(), id.clone());
        let seen = tokio::task::spawn_blocking(move || {
            state.shelf.with(&state.app, &id, |held| {
                if quiet {
                    held.live.settle();
                }
                Ok((held.live.version(), held.live.file().path.clone()))
            })
        });
        match seen.await {
            Ok(Ok((version, path))) => {
                if watcher.is_none() {
                    watcher = watch_files(&path, Arc::clone(&poke));
                }
                tell.send_if_modified(|known| std::mem::replace(known, version) != version);
            }
            // It is gone or cannot be read: whoever follows asks, and is told.
            _ => {
                tell.send_if_modified(|known| std::mem::replace(known, u64::MAX) != u64::MAX);
            }
        }
        tokio::select! {
            () = poke.notified() => {
                busy += 1;
                tokio::time::sleep(TOGETHER).await;
            }
            () = tokio::time::sleep(EVERY) => busy = 0,
        }
        // Where it is written without a pause, it is settled now and then.
        quiet = busy % SETTLED == 0;
    }
}

/// Lets the system say when a log, or one of those beside it, changes.
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
    // Sub-agents have a folder of their own, which may not be there yet.
    if let Some(dir) = SessionFile::at(log).side_dir() {
        let _ = watcher.watch(&dir, RecursiveMode::Recursive);
    }
    Some(watcher)
}
