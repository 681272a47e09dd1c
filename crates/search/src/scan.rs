//! The scan over many sessions: all cores search, and what they find is told in order, as soon as it can be.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use threadline_entry::LeftOut;

use crate::fork::Forks;
use crate::piece::TextKind;
use crate::query::Query;
use crate::searcher::{Hit, Searcher};

/// A session, with the logs that belong to it.
#[derive(Clone, Debug)]
pub struct Searched {
    /// Its id.
    pub id: String,
    /// The name of the project's folder.
    pub folder: String,
    /// The session's own log, whether it is there or not.
    pub path: PathBuf,
    /// When it was last written to.
    pub modified: SystemTime,
    /// Its own log first, then those of its sub-agents.
    pub logs: Vec<PathBuf>,
}

impl Searched {
    /// The sub-agent that a log of this session belongs to.
    pub fn agent_of(&self, log: &Path) -> Option<String> {
        let name = log.file_stem()?.to_str()?;
        (log != self.path).then(|| name.strip_prefix("agent-").unwrap_or(name).to_owned())
    }
}

/// Opens a log: the disk's business, and so the caller's.
pub type Open = dyn Fn(&Path) -> io::Result<Box<dyn Read>> + Sync;

/// How a scan is done.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    /// What to find.
    pub query: &'a Query,
    /// Where, the last modified first.
    pub sessions: &'a [Searched],
    /// Opens a log.
    pub open: &'a Open,
    /// Lines of text around what was found; `None` for those who only count.
    pub context: Option<usize>,
    /// Set when nobody wants to know any more.
    pub cancelled: &'a AtomicBool,
}

/// Something that was found, and where.
#[derive(Clone, Debug)]
pub struct LogHit {
    /// Which of the session's logs.
    pub log: usize,
    /// What it is.
    pub kind: TextKind,
    key: Option<u64>,
    /// How many other sessions hold a copy of it.
    pub copies: usize,
    /// The find itself, unless it is only counted.
    pub hit: Option<Hit>,
}

/// Something that was not as it should be with one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A line that is very long.
    Huge {
        /// The log.
        path: PathBuf,
        /// The line.
        line_no: u64,
        /// How long it is, in bytes.
        length: usize,
    },
    /// A line that is too long to be searched.
    LeftOut {
        /// The log.
        path: PathBuf,
        /// The line.
        line_no: u64,
        /// How long it is, in bytes.
        length: u64,
    },
    /// The log is not there any more.
    Gone(PathBuf),
    /// The log could not be read to its end, so something may be left out.
    Unread(PathBuf, String),
}

/// What the scan tells, session by session.
pub enum Event {
    /// Found in this session.
    Hit(usize, LogHit),
    /// A copy of what is found in an older session was left out.
    Copy,
    /// There is no more in this session.
    End(usize),
    /// Something was not as it should be.
    Trouble(Trouble),
}

/// Finds may wait for their turn, up to this many.
const WAITING: usize = 1 << 14;

/// As long as nothing was told, whoever searches leaves the processor to whoever tells.
const WAITING_AT_FIRST: usize = 1 << 7;

/// Nobody waits longer than this before looking again.
const PAUSE: Duration = Duration::from_millis(2);

/// Finds are handed over in bundles.
const BUNDLE: usize = 32;

/// What the searching threads and the telling one share.
struct Board {
    slots: Vec<Slot>,
    /// How many finds wait in all.
    waiting: usize,
    /// The place in the order that is being told.
    head: usize,
    /// How many sessions are done with.
    n_done: usize,
    /// How many finds may wait.
    most: usize,
}

/// What is known of one session so far.
#[derive(Default)]
struct Slot {
    hits: VecDeque<LogHit>,
    troubles: Vec<Trouble>,
    done: bool,
}

impl<'a> Scan<'a> {
    /// Searches the sessions and tells `sink` what is found, in the given order of sessions, until that breaks.
    /// # Errors
    ///
    /// Those of `sink`.
    pub fn run<E>(
        self,
        order: &[usize],
        sink: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let board = Mutex::new(Board {
            slots: order.iter().map(|_| Slot::default()).collect(),
            waiting: 0,
            head: 0,
            n_done: 0,
            most: WAITING_AT_FIRST,
        });
        let changed = Condvar::new();
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let n_threads = n_threads().min(order.len());
            for _ in 0..n_threads {
                scope.spawn(|| {
                    self.search(order, &next, &Desk { board: &board, changed: &changed, scan: self })
                });
            }
            let told = self.tell(order, &board, &changed, sink);
            // Whoever still searches does so for nobody.
            self.cancelled.store(true, Ordering::Relaxed);
            changed.notify_all();
            told
        })
    }

    /// Takes one session after the other, until there are no more.
    fn search(self, order: &[usize], next: &AtomicUsize, desk: &Desk<'_, 'a>) {
        let mut searcher = self.searcher();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&session) = order.get(place) else { return };
            for (log, path) in self.sessions[session].logs.iter().enumerate() {
                let mut bundle = Vec::new();
                let trouble = self.search_log(&mut searcher, path, log, &mut |hit| {
                    bundle.push(hit);
                    if bundle.len() == BUNDLE {
                        desk.hand_in(place, &mut bundle)
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                if desk.hand_in(place, &mut bundle).is_break() {
                    return;
                }
                desk.report(place, trouble);
            }
            desk.finish(place);
        }
    }

    fn searcher(self) -> Searcher<'a> {
        let searcher = Searcher::new(self.query);
        if self.context.is_some() { searcher } else { searcher.only_finding() }
    }

    fn search_log(
        self,
        searcher: &mut Searcher<'_>,
        path: &Path,
        log: usize,
        sink: &mut dyn FnMut(LogHit) -> ControlFlow<()>,
    ) -> Vec<Trouble> {
        let scanned = searcher.search(
            || (self.open)(path),
            |found| {
                if self.cancelled.load(Ordering::Relaxed) {
                    return ControlFlow::Break(());
                }
                let hit = self.context.map(|context| found.hit(context));
                sink(LogHit { log, kind: found.kind(), key: found.key(), copies: 0, hit })
            },
        );
        match scanned {
            Ok(scanned) => {
                let huge = scanned.huge_lines.iter().map(|(line_no, length)| huge(path, *line_no, *length));
                huge.chain(scanned.left_out.iter().map(|line| left_out(path, line))).collect()
            }
            Err(error) => vec![unreadable(path, &error)],
        }
    }

    /// The keys of all that is found in a session.
    pub(crate) fn keys(self, session: usize) -> Vec<u64> {
        let scan = Self { context: None, ..self };
        let mut searcher = scan.searcher();
        let mut keys = Vec::new();
        for (log, path) in self.sessions[session].logs.iter().enumerate() {
            // What cannot be read is reported when the session's turn comes.
            scan.search_log(&mut searcher, path, log, &mut |hit| {
                keys.extend(hit.key);
                ControlFlow::Continue(())
            });
        }
        keys
    }

    fn tell<E>(
        self,
        order: &[usize],
        board: &Mutex<Board>,
        changed: &Condvar,
        sink: &mut dyn FnMut(Event) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut forks = Forks::new(self);
        let mut head = 0;
        while head < order.len() {
            let session = order[head];
            let (hits, troubles, done) = {
                let mut board = lock(board);
                board.head = head;
                while board.slots[head].hits.is_empty() && !board.slots[head].done {
                    board = changed.wait_timeout(board, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
                }
                let slot = &mut board.slots[head];
                let taken = (std::mem::take(&mut slot.hits), std::mem::take(&mut slot.troubles), slot.done);
                board.waiting -= taken.0.len();
                taken
            };
            if !hits.is_empty() {
                changed.notify_all();
            }
            let mut events = Vec::new();
            let told = !hits.is_empty();
            for mut hit in hits {
                match hit.key.map_or(Some(0), |key| forks.copies(session, key)) {
                    Some(copies) => {
                        hit.copies = copies;
                        events.push(Event::Hit(session, hit));
                    }
                    None => events.push(Event::Copy),
                }
            }
            events.extend(troubles.into_iter().map(Event::Trouble));
            if done {
                events.push(Event::End(session));
                head += 1;
            }
            for event in events {
                if sink(event)?.is_break() {
                    return Ok(());
                }
            }
            if told {
                lock(board).most = WAITING;
            }
        }
        Ok(())
    }
}

/// Where a searching thread hands in what it found.
struct Desk<'b, 'a> {
    board: &'b Mutex<Board>,
    changed: &'b Condvar,
    scan: Scan<'a>,
}

impl Desk<'_, '_> {
    /// Waits while too much waits already, unless it is this session's turn.
    fn hand_in(&self, place: usize, bundle: &mut Vec<LogHit>) -> ControlFlow<()> {
        let cancelled = || self.scan.cancelled.load(Ordering::Relaxed);
        if bundle.is_empty() {
            return if cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        let mut board = lock(self.board);
        while board.waiting >= board.most
            && !(board.head == place && board.slots[place].hits.len() < board.most / 4)
            && !cancelled()
        {
            board = self.changed.wait_timeout(board, PAUSE).unwrap_or_else(PoisonError::into_inner).0;
        }
        board.waiting += bundle.len();
        board.slots[place].hits.extend(bundle.drain(..));
        let turn = board.head == place;
        drop(board);
        if turn {
            self.changed.notify_all();
        }
        if cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn report(&self, place: usize, troubles: Vec<Trouble>) {
        if !troubles.is_empty() {
            lock(self.board).slots[place].troubles.extend(troubles);
        }
    }

    fn finish(&self, place: usize) {
        let mut board = lock(self.board);
        board.slots[place].done = true;
        board.n_done += 1;
        // That nothing was found is told soon enough.
        let last = board.n_done == board.slots.len();
        drop(board);
        if last {
            self.changed.notify_all();
        }
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

fn huge(path: &Path, line_no: u64, length: usize) -> Trouble {
    Trouble::Huge { path: path.to_owned(), line_no, length }
}

fn left_out(path: &Path, line: &LeftOut) -> Trouble {
    Trouble::LeftOut { path: path.to_owned(), line_no: line.at.line_no, length: line.length }
}

fn unreadable(path: &Path, error: &io::Error) -> Trouble {
    if error.kind() == io::ErrorKind::NotFound {
        return Trouble::Gone(path.to_owned());
    }
    Trouble::Unread(path.to_owned(), error.to_string())
}

/// How many threads to search with.
fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// What `work` makes of each item. Short work that comes once: threads that look for more of it cost more.
pub(crate) fn on_all_cores<T: Sync, V: Send>(items: &[T], work: impl Fn(&T) -> V + Sync) -> Vec<V> {
    let share = items.len().div_ceil(n_threads()).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items
            .chunks(share)
            .map(|items| scope.spawn(move || items.iter().map(work).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}
