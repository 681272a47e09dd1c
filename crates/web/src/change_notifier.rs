//! Notifies open pages of changes in the homes.

use std::sync::Arc;
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use parking_lot::Mutex;
use threadline_app::Store;
use tokio::sync::watch;

/// Polling interval for folders that cannot be watched.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Notifies listeners of changes. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ChangeNotifier {
    sender: Arc<watch::Sender<u64>>,
    /// The file watcher, created when the first listener subscribes.
    watcher: Arc<Mutex<Option<Box<dyn Watcher + Send>>>>,
}

impl ChangeNotifier {
    pub(crate) fn new() -> Self {
        Self { sender: Arc::new(watch::Sender::new(0)), watcher: Arc::default() }
    }

    /// Notifies all listeners.
    pub(crate) fn notify(&self) {
        self.sender.send_modify(|count| *count += 1);
    }

    /// Returns a receiver of the number of changes so far. Starts to watch the homes at the first call.
    pub(crate) fn subscribe(&self, store: &Store) -> watch::Receiver<u64> {
        let mut watching = self.watcher.lock();
        if watching.is_none() {
            *watching = self.watch(store);
        }
        self.sender.subscribe()
    }

    /// Returns the number of changes so far. A page rendered now includes all of them.
    pub(crate) fn count(&self, store: &Store) -> u64 {
        *self.subscribe(store).borrow()
    }

    /// Watches the homes with the notifications of the system, or else by polling.
    fn watch(&self, store: &Store) -> Option<Box<dyn Watcher + Send>> {
        let heard = |tell: &Arc<watch::Sender<u64>>| {
            let tell = Arc::downgrade(tell);
            move |event: notify::Result<notify::Event>| {
                let is_read = event.is_ok_and(|event| event.kind.is_access());
                if let Some(tell) = tell.upgrade().filter(|_| !is_read) {
                    tell.send_modify(|count| *count += 1);
                }
            }
        };
        let new_watcher: Option<Box<dyn Watcher + Send>> =
            match notify::recommended_watcher(heard(&self.sender)) {
                Ok(mut watcher) => watch_all(&mut watcher, store).then(|| Box::new(watcher) as _),
                Err(_) => None,
            };
        new_watcher.or_else(|| {
            let config = notify::Config::default().with_poll_interval(POLL_INTERVAL);
            let mut watcher = notify::PollWatcher::new(heard(&self.sender), config).ok()?;
            watch_all(&mut watcher, store).then(|| Box::new(watcher) as _)
        })
    }
}

/// Watches the projects folder of each home, or the home itself if that does not exist yet. Returns whether
/// any folder is watched.
fn watch_all(watcher: &mut dyn Watcher, store: &Store) -> bool {
    let mut any = false;
    for home in store.homes() {
        let projects = home.projects_dir();
        let found = [(&*projects, RecursiveMode::Recursive), (home.root(), RecursiveMode::NonRecursive)];
        if let Some((folder, mode)) = found.into_iter().find(|(folder, _)| folder.is_dir()) {
            any |= watcher.watch(folder, mode).is_ok();
        }
    }
    any
}
