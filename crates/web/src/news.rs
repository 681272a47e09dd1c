//! News: that something in a home changed, for pages that are open.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::{RecursiveMode, Watcher};
use threadline_store::Store;
use tokio::sync::watch;

/// Where folders cannot be watched they are looked at this often.
const LOOK: Duration = Duration::from_secs(2);

/// Tells whoever listens that something changed. Cheap to clone.
#[derive(Clone)]
pub(crate) struct News {
    tell: Arc<watch::Sender<u64>>,
    /// What watches the folders, once somebody listens.
    watching: Arc<Mutex<Option<Box<dyn Watcher + Send>>>>,
}

impl News {
    pub(crate) fn new() -> Self {
        Self { tell: Arc::new(watch::Sender::new(0)), watching: Arc::default() }
    }

    /// Says that something changed.
    pub(crate) fn tell(&self) {
        self.tell.send_modify(|count| *count += 1);
    }

    /// What to wait for. The homes are watched from the first call on.
    pub(crate) fn listen(&self, store: &Store) -> watch::Receiver<u64> {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.is_none() {
            *watching = self.watch(store);
        }
        self.tell.subscribe()
    }

    /// How much was told so far; a page that is made now has all of it, and asks for the rest.
    pub(crate) fn count(&self, store: &Store) -> u64 {
        *self.listen(store).borrow()
    }

    /// Watches the homes: as the system tells, else by looking.
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
        let told: Option<Box<dyn Watcher + Send>> = match notify::recommended_watcher(heard(&self.tell)) {
            Ok(mut watcher) => watch_all(&mut watcher, store).then(|| Box::new(watcher) as _),
            Err(_) => None,
        };
        told.or_else(|| {
            let config = notify::Config::default().with_poll_interval(LOOK);
            let mut watcher = notify::PollWatcher::new(heard(&self.tell), config).ok()?;
            watch_all(&mut watcher, store).then(|| Box::new(watcher) as _)
        })
    }
}

/// Watches the folder with the projects of each home, or where that is not there yet, the home.
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
