//! The sessions that were looked at last: as many as fit, the others are read again when they are asked for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use threadline_app::sync::lock;
use threadline_app::{App, AppError};
use threadline_usage::Book;

use crate::answer::Problem;
use crate::held::Held;

/// How much memory sessions may take that nobody looks at right now.
const BUDGET: usize = 96 << 20;

/// Logs that are longer than this are read one at a time.
const LARGE: u64 = 8 << 20;

/// A session that may still be being read.
pub(crate) type Slot = Arc<Mutex<Option<Held>>>;

/// The sessions that were looked at last.
pub(crate) struct Shelf {
    book: Arc<Book>,
    /// By id, the last looked at last.
    slots: Mutex<VecDeque<(String, Slot, usize)>>,
    /// Who holds this reads a large log.
    reading: Mutex<()>,
    /// Where sessions are read and laid out. An allocator keeps much of what a thread freed for that thread, so these
    /// are few. Nothing that runs here waits for a lock: a thread that waits for its other half takes up other work.
    pool: Option<rayon::ThreadPool>,
}

impl Shelf {
    pub(crate) fn new(book: Arc<Book>) -> Self {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).thread_name(|_| "shelf".to_owned());
        // Without threads of its own, it uses those of whoever asks.
        let pool = pool.build().ok();
        Self { book, slots: Mutex::default(), reading: Mutex::default(), pool }
    }

    fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Lets `look` see a session as it is now.
    pub(crate) fn with<T: Send>(
        &self,
        app: &App,
        id: &str,
        look: impl FnOnce(&mut Held) -> Result<T, Problem> + Send,
    ) -> Result<T, Problem> {
        let slot = self.slot(id);
        let mut guard = lock(&slot);
        match &mut *guard {
            Some(held) => {
                self.run(|| held.refresh())?;
                if held.live.is_gone() {
                    *guard = None;
                    drop(guard);
                    self.forget(id);
                    return Err(no_such_session());
                }
            }
            None => match self.open(app, id) {
                Ok(held) => *guard = Some(held),
                Err(problem) => {
                    drop(guard);
                    self.forget(id);
                    return Err(problem);
                }
            },
        }
        let Some(held) = &mut *guard else { return Err(no_such_session()) };
        let answer = self.run(|| look(held));
        let weight = held.weight();
        drop(guard);
        self.weigh(id, weight);
        answer
    }

    fn open(&self, app: &App, id: &str) -> Result<Held, Problem> {
        let file = app.session(id)?;
        let length = std::fs::metadata(&file.path)?.len();
        let _reading = (length > LARGE).then(|| lock(&self.reading));
        // There is room for it before it is read.
        self.weigh(id, usize::try_from(length).map_or(BUDGET, |length| length.min(BUDGET)));
        Ok(self.run(|| Held::open(file, Arc::clone(&self.book)))?)
    }

    /// The session's place, which is made if there is none, and is now the last looked at.
    pub(crate) fn slot(&self, id: &str) -> Slot {
        let mut slots = lock(&self.slots);
        let at = slots.iter().position(|(known, ..)| known == id);
        let found = at.and_then(|at| slots.remove(at)).unwrap_or_else(|| (id.to_owned(), Slot::default(), 0));
        let slot = Arc::clone(&found.1);
        slots.push_back(found);
        slot
    }

    fn forget(&self, id: &str) {
        lock(&self.slots).retain(|(known, ..)| known != id);
    }

    /// Notes how much a session takes, and lets go of those that were not looked at for the longest.
    fn weigh(&self, id: &str, weight: usize) {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.iter_mut().find(|(known, ..)| known == id) {
            slot.2 = weight;
        }
        let mut total: usize = slots.iter().map(|(_, _, weight)| weight).sum();
        let mut let_go = Vec::new();
        let mut at = 0;
        while total > BUDGET && at + 1 < slots.len() {
            // One that somebody follows, or is looking at, stays.
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

/// The session was there, and is not any more.
pub(crate) fn no_such_session() -> Problem {
    AppError::NoSession { id: String::new() }.into()
}
