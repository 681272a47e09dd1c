//! The scan over many sessions: all cores search, and matches are reported in session order as early as
//! possible.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use threadline_entry::SkippedLine;

use crate::fork::ForkIndex;
use crate::piece::TextKind;
use crate::query::Query;
use crate::searcher::{SearchHit, Searcher};

/// A session with its logs.
#[derive(Clone, Debug)]
pub struct SearchedSession {
    /// Its id.
    pub id: String,
    /// The name of the project's folder.
    pub folder: String,
    /// The session's main log, which may not exist.
    pub path: PathBuf,
    /// When it was last active.
    pub last_active: SystemTime,
    /// The first uuid in its log, which forks share. See [`read_first_uuid`](crate::read_first_uuid).
    pub first_uuid: Option<[u8; 36]>,
    /// The main log first, then those of its sub-agents.
    pub logs: Vec<PathBuf>,
}

impl SearchedSession {
    /// Returns the sub-agent that a log of this session belongs to; `None` for the main log.
    pub fn agent_of(&self, log: &Path) -> Option<String> {
        let name = log.file_stem()?.to_str()?;
        (log != self.path).then(|| name.strip_prefix("agent-").unwrap_or(name).to_owned())
    }
}

/// Opens a log. Provided by the caller, since this crate does not access the disk.
pub type OpenLog = dyn Fn(&Path) -> io::Result<Box<dyn Read>> + Sync;

/// The parameters of a scan.
#[derive(Clone, Copy)]
pub struct SessionScan<'a> {
    /// The query.
    pub query: &'a Query,
    /// The sessions, sorted by modification time, latest first.
    pub sessions: &'a [SearchedSession],
    /// Opens a log.
    pub open: &'a OpenLog,
    /// The number of context lines around a match; `None` to only count matches.
    pub context: Option<usize>,
    /// The number of matches of a session after which the rest of it is not searched.
    pub max_per_session: usize,
    /// Set to cancel the scan.
    pub cancelled: &'a AtomicBool,
}

/// A match in one of the logs of a session.
#[derive(Clone, Debug)]
pub struct LogHit {
    /// The index of the log in the session.
    pub log: usize,
    /// The kind of text.
    pub kind: TextKind,
    key: Option<u64>,
    /// The number of other sessions with a copy of it.
    pub copies: usize,
    /// The match itself, unless matches are only counted.
    pub hit: Option<SearchHit>,
}

/// A problem with one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogProblem {
    /// A very long line, which was searched.
    HugeLine {
        /// The log.
        path: PathBuf,
        /// The line number.
        line_no: u64,
        /// Its length in bytes.
        length: usize,
    },
    /// A line that is too long to be searched.
    SkippedLine {
        /// The log.
        path: PathBuf,
        /// The line number.
        line_no: u64,
        /// Its length in bytes.
        length: u64,
    },
    /// The log no longer exists.
    Gone(PathBuf),
    /// The log could not be read to its end, so matches may be missing.
    Unread(PathBuf, String),
}

/// The events of a scan, grouped by session.
pub enum ScanEvent {
    /// A match in this session.
    Hit(usize, LogHit),
    /// Further matches in this session, of which only the number is known.
    Counted(usize, usize),
    /// A match was skipped, because it is a copy of one in an older session.
    Copy,
    /// There are no more matches in this session.
    End(usize),
    /// A problem with a log.
    Problem(LogProblem),
}

/// The maximum number of pending matches.
const MAX_PENDING: usize = 1 << 14;

/// The limit until the first match is reported, so that the searching threads leave the processor to the
/// reporting one.
const MAX_PENDING_AT_START: usize = 1 << 7;

/// The maximum time that a thread waits before it checks again.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The number of matches that are handed over at once.
const BATCH_SIZE: usize = 32;

/// The state shared by the searching threads and the reporting one.
struct ScanState {
    slots: Vec<SessionResults>,
    /// The number of pending matches of all sessions.
    n_pending: usize,
    /// The position in the order that is being reported.
    head: usize,
    /// The number of finished sessions.
    n_done: usize,
    /// The current limit of pending matches.
    limit: usize,
}

/// The pending results of one session.
#[derive(Default)]
struct SessionResults {
    hits: VecDeque<LogHit>,
    troubles: Vec<LogProblem>,
    done: bool,
}

impl<'a> SessionScan<'a> {
    /// Searches the sessions and calls `sink` with events, in the given order of sessions, until `sink`
    /// breaks. Blocks until all threads have stopped.
    ///
    /// # Errors
    ///
    /// Returns the errors of `sink`.
    pub fn run<E>(
        self,
        order: &[usize],
        sink: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let board = Mutex::new(ScanState {
            slots: order.iter().map(|_| SessionResults::default()).collect(),
            n_pending: 0,
            head: 0,
            n_done: 0,
            limit: MAX_PENDING_AT_START,
        });
        let changed = Condvar::new();
        let next = AtomicUsize::new(0);
        let is_ended = AtomicBool::new(false);
        let forks = ForkIndex::new(self);
        let maxima: Vec<usize> = order.iter().map(|&session| self.max_found(session, &forks)).collect();
        std::thread::scope(|scope| {
            let n_threads = n_threads().min(order.len());
            for _ in 0..n_threads {
                scope.spawn(|| {
                    let desk =
                        ResultSender { board: &board, changed: &changed, scan: self, is_ended: &is_ended };
                    self.search(order, &maxima, &next, &desk);
                });
            }
            let result = self.report_in_order(order, forks, &board, &changed, sink);
            // Stops the threads that are still searching.
            is_ended.store(true, Ordering::Relaxed);
            changed.notify_all();
            result
        })
    }

    /// Returns the number of matches after which the rest of a session is not searched. The matches of a fork
    /// may be copies, which do not count, so all of them are needed.
    fn max_found(self, session: usize, forks: &ForkIndex<'_>) -> usize {
        if self.max_per_session < usize::MAX && !forks.is_forked(session) {
            self.max_per_session
        } else {
            usize::MAX
        }
    }

    /// Searches one session after the other until there are no more.
    fn search(self, order: &[usize], maxima: &[usize], next: &AtomicUsize, desk: &ResultSender<'_, 'a>) {
        let mut searcher = self.searcher();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(&session) = order.get(place) else { return };
            let mut n_left = maxima[place];
            for (log, path) in self.sessions[session].logs.iter().enumerate() {
                if n_left == 0 {
                    break;
                }
                let mut bundle = Vec::new();
                let trouble = self.search_log(&mut searcher, path, log, &mut |hit| {
                    bundle.push(hit);
                    n_left -= 1;
                    if n_left == 0 || desk.is_stopped() {
                        return ControlFlow::Break(());
                    }
                    if bundle.len() == BATCH_SIZE {
                        desk.send(place, &mut bundle)
                    } else {
                        ControlFlow::Continue(())
                    }
                });
                if desk.send(place, &mut bundle).is_break() {
                    return;
                }
                desk.add_problems(place, trouble);
            }
            desk.finish(place);
        }
    }

    fn searcher(self) -> Searcher<'a> {
        let searcher = Searcher::new(self.query);
        if self.context.is_some() { searcher } else { searcher.matches_only() }
    }

    fn search_log(
        self,
        searcher: &mut Searcher<'_>,
        path: &Path,
        log: usize,
        sink: &mut dyn FnMut(LogHit) -> ControlFlow<()>,
    ) -> Vec<LogProblem> {
        let scanned = searcher.search(
            || (self.open)(path),
            |found| {
                let hit = self.context.map(|context| found.hit(context));
                sink(LogHit { log, kind: found.kind(), key: found.key(), copies: 0, hit })
            },
        );
        match scanned {
            Ok(scanned) => {
                let huge = scanned.huge_lines.iter().map(|(line_no, length)| huge(path, *line_no, *length));
                huge.chain(scanned.skipped_lines.iter().map(|line| left_out(path, line))).collect()
            }
            Err(error) => vec![unreadable(path, &error)],
        }
    }

    /// Returns the keys of all matches in a session.
    pub(crate) fn keys(self, session: usize) -> Vec<u64> {
        let scan = Self { context: None, ..self };
        let mut searcher = scan.searcher();
        let mut keys = Vec::new();
        for (log, path) in self.sessions[session].logs.iter().enumerate() {
            // Read errors are reported when the session is scanned.
            scan.search_log(&mut searcher, path, log, &mut |hit| {
                keys.extend(hit.key);
                match self.cancelled.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            });
        }
        keys
    }

    fn report_in_order<E>(
        self,
        order: &[usize],
        mut forks: ForkIndex<'_>,
        board: &Mutex<ScanState>,
        changed: &Condvar,
        sink: &mut dyn FnMut(ScanEvent) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut head = 0;
        let mut n_reported = 0;
        while head < order.len() && !self.cancelled.load(Ordering::Relaxed) {
            let session = order[head];
            let (hits, troubles, done) = {
                let mut board = lock(board);
                board.head = head;
                while board.slots[head].hits.is_empty()
                    && !board.slots[head].done
                    && !self.cancelled.load(Ordering::Relaxed)
                {
                    board =
                        changed.wait_timeout(board, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
                }
                let slot = &mut board.slots[head];
                let taken = (std::mem::take(&mut slot.hits), std::mem::take(&mut slot.troubles), slot.done);
                board.n_pending -= taken.0.len();
                taken
            };
            if !hits.is_empty() {
                changed.notify_all();
            }
            let mut events = Vec::new();
            let has_hits = !hits.is_empty();
            for mut hit in hits {
                match hit.key.map_or(Some(0), |key| forks.copies(session, key)) {
                    Some(_) if n_reported == self.max_per_session => {}
                    Some(copies) => {
                        hit.copies = copies;
                        n_reported += 1;
                        events.push(ScanEvent::Hit(session, hit));
                    }
                    None => events.push(ScanEvent::Copy),
                }
            }
            events.extend(troubles.into_iter().map(ScanEvent::Problem));
            if done {
                events.push(ScanEvent::End(session));
                head += 1;
                n_reported = 0;
            }
            for event in events {
                if sink(event)?.is_break() {
                    return Ok(());
                }
            }
            if has_hits {
                lock(board).limit = MAX_PENDING;
            }
        }
        Ok(())
    }
}

/// Hands over the results of a searching thread.
struct ResultSender<'b, 'a> {
    board: &'b Mutex<ScanState>,
    changed: &'b Condvar,
    scan: SessionScan<'a>,
    /// Whether the results are no longer needed.
    is_ended: &'b AtomicBool,
}

impl ResultSender<'_, '_> {
    /// Waits while too many matches are pending, unless this session is being reported.
    fn send(&self, place: usize, bundle: &mut Vec<LogHit>) -> ControlFlow<()> {
        let flow = || if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if bundle.is_empty() {
            return flow();
        }
        let mut board = lock(self.board);
        while board.n_pending >= board.limit
            && !(board.head == place && board.slots[place].hits.len() < board.limit / 4)
            && !self.is_stopped()
        {
            board = self.changed.wait_timeout(board, POLL_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
        board.n_pending += bundle.len();
        board.slots[place].hits.extend(bundle.drain(..));
        let turn = board.head == place;
        drop(board);
        if turn {
            self.changed.notify_all();
        }
        flow()
    }

    fn is_stopped(&self) -> bool {
        self.is_ended.load(Ordering::Relaxed) || self.scan.cancelled.load(Ordering::Relaxed)
    }

    fn add_problems(&self, place: usize, troubles: Vec<LogProblem>) {
        if !troubles.is_empty() {
            lock(self.board).slots[place].troubles.extend(troubles);
        }
    }

    fn finish(&self, place: usize) {
        let mut board = lock(self.board);
        board.slots[place].done = true;
        board.n_done += 1;
        // The reporting thread polls, so only the end of the last session is signalled.
        let last = board.n_done == board.slots.len();
        drop(board);
        if last {
            self.changed.notify_all();
        }
    }
}

fn lock(board: &Mutex<ScanState>) -> MutexGuard<'_, ScanState> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

fn huge(path: &Path, line_no: u64, length: usize) -> LogProblem {
    LogProblem::HugeLine { path: path.to_owned(), line_no, length }
}

fn left_out(path: &Path, line: &SkippedLine) -> LogProblem {
    LogProblem::SkippedLine { path: path.to_owned(), line_no: line.at.line_no, length: line.length }
}

fn unreadable(path: &Path, error: &io::Error) -> LogProblem {
    if error.kind() == io::ErrorKind::NotFound {
        return LogProblem::Gone(path.to_owned());
    }
    LogProblem::Unread(path.to_owned(), error.to_string())
}

/// Returns the number of searching threads.
fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// Maps `work` over the items on all cores, in order. Each thread gets an equal share: the work is short, so
/// dynamic scheduling would cost more than it saves.
pub(crate) fn parallel_map<T: Sync, V: Send>(items: &[T], work: impl Fn(&T) -> V + Sync) -> Vec<V> {
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
