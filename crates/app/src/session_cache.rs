//! A cache of the sessions that were used last. Others are read again when they are requested.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use threadline_store::SessionFile;
use threadline_usage::PriceBook;

use crate::config::App;
use crate::error::AppError;
use crate::live::LiveSession;

/// Maximum memory use of sessions that are not in use, in bytes.
const MAX_CACHED_BYTES: usize = 96 << 20;

/// Logs larger than this are read one at a time.
const LARGE_LOG: u64 = 8 << 20;

/// A session, or `None` until it has been read.
pub type SessionSlot = Arc<Mutex<Option<LiveSession>>>;

/// A cache of the sessions that were used last, for a front end that answers many requests.
pub struct SessionCache {
    book: Arc<PriceBook>,
    /// The sessions by id with their memory use, most recently used last.
    slots: Mutex<VecDeque<(String, SessionSlot, usize)>>,
    /// Locked while a large log is read.
    reading: Mutex<()>,
    /// The threads that read and lay out sessions. They are few, because an allocator reserves much of the
    /// memory that a thread freed for that thread. Their jobs must not wait for a lock: a thread that waits
    /// in `join` may start another job.
    pool: Option<rayon::ThreadPool>,
}

impl SessionCache {
    /// Creates an empty cache. Costs are counted with these prices.
    pub fn new(book: Arc<PriceBook>) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "session-cache".to_owned());
        // Without a pool, jobs run on the calling thread.
        let pool = pool.build().ok();
        Self { book, slots: Mutex::default(), reading: Mutex::default(), pool }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Calls `run` with the current state of the session with exactly this id, with secrets masked if the
    /// configuration requires it.
    ///
    /// # Errors
    ///
    /// Those of `run`, [`AppError::NoSession`], and errors of reading the logs.
    pub fn with<T: Send, E: From<AppError> + From<io::Error> + Send>(
        &self,
        app: &App,
        id: &str,
        run: impl FnOnce(&mut LiveSession) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.with_session(app, id, None, run)
    }

    /// Does the same for a session that was found before.
    ///
    /// # Errors
    ///
    /// Those of [`SessionCache::with`].
    pub fn with_file<T: Send, E: From<AppError> + From<io::Error> + Send>(
        &self,
        app: &App,
        file: &SessionFile,
        run: impl FnOnce(&mut LiveSession) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        self.with_session(app, &file.id, Some(file), run)
    }

    fn with_session<T: Send, E: From<AppError> + From<io::Error> + Send>(
        &self,
        app: &App,
        id: &str,
        file: Option<&SessionFile>,
        run: impl FnOnce(&mut LiveSession) -> Result<T, E> + Send,
    ) -> Result<T, E> {
        let slot = self.slot(id);
        let mut guard = slot.lock();
        match &mut *guard {
            Some(live) => {
                self.run(|| live.update())?;
                if live.is_gone() {
                    *guard = None;
                    drop(guard);
                    self.forget(id);
                    return Err(not_found(id).into());
                }
            }
            None => match self.open(app, id, file) {
                Ok(live) => *guard = Some(live),
                Err(problem) => {
                    drop(guard);
                    self.forget(id);
                    return Err(problem);
                }
            },
        }
        let Some(live) = &mut *guard else { return Err(not_found(id).into()) };
        let answer = self.run(|| run(live));
        let weight = live.weight();
        drop(guard);
        self.record_size(id, weight);
        answer
    }

    fn open<E: From<AppError> + From<io::Error>>(
        &self,
        app: &App,
        id: &str,
        file: Option<&SessionFile>,
    ) -> Result<LiveSession, E> {
        let file = file.map_or_else(|| app.session(id), |file| Ok(file.clone()))?;
        let length = std::fs::metadata(&file.path)?.len();
        let _reading = (length > LARGE_LOG).then(|| self.reading.lock());
        // Evicts other sessions before this one is read.
        self.record_size(
            id,
            usize::try_from(length).map_or(MAX_CACHED_BYTES, |length| length.min(MAX_CACHED_BYTES)),
        );
        let (book, mask) = (Arc::clone(&self.book), app.config().mask.clone());
        let open = || LiveSession::open(file.clone(), book, mask);
        let (session, own) = self.run(|| rayon::join(open, || app.own_calls(&file, &self.book)));
        let mut session = session?;
        if let Some(own) = own {
            session.set_own_calls(own);
        }
        Ok(session)
    }

    /// Returns the slot of a session, which becomes the most recently used one. Creates it if it does not
    /// exist.
    pub fn slot(&self, id: &str) -> SessionSlot {
        let mut slots = self.slots.lock();
        let at = slots.iter().position(|(known, ..)| known == id);
        let found =
            at.and_then(|at| slots.remove(at)).unwrap_or_else(|| (id.to_owned(), SessionSlot::default(), 0));
        let slot = Arc::clone(&found.1);
        slots.push_back(found);
        slot
    }

    fn forget(&self, id: &str) {
        self.slots.lock().retain(|(known, ..)| known != id);
    }

    /// Records the memory use of a session, and evicts the least recently used ones.
    fn record_size(&self, id: &str, weight: usize) {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.iter_mut().find(|(known, ..)| known == id) {
            slot.2 = weight;
        }
        let mut total: usize = slots.iter().map(|(_, _, weight)| weight).sum();
        let mut let_go = Vec::new();
        let mut at = 0;
        while total > MAX_CACHED_BYTES && at + 1 < slots.len() {
            // A session that is followed or in use is not evicted.
            if Arc::strong_count(&slots[at].1) > 1 {
                at += 1;
            } else if let Some((_, slot, weight)) = slots.remove(at) {
                total -= weight;
                let_go.push(slot);
            }
        }
        drop(slots);
        drop(let_go);
    }
}

fn not_found(id: &str) -> AppError {
    AppError::NoSession { id: id.to_owned() }
}
