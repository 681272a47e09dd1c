//! The scan over many sessions: all cores search, and matches are reported in session order as early as
//! possible.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::{Condvar, Mutex};
use threadline_entry::SkippedLine;

use crate::fork::ForkIndex;
use crate::piece::TextKind;
use crate::query::Query;
use crate::searcher::{SearchMatch, Searcher};

/// A session with its logs.
#[derive(Clone, Debug)]
pub struct SearchedSession {
    /// Its id.
    pub id: String,
    /// The name of the project's folder.
    pub folder: String,
    /// The session's main log, which may not exist.
    pub path: PathBuf,
    /// When it was last modified.
    pub modified: SystemTime,
    /// The main log first, then those of its sub-agents.
    pub logs: Vec<PathBuf>,
    /// The facts at both ends of its log, once they were read.
    pub ends: OnceLock<LogEnds>,
}

/// The facts at both ends of the main log of a session. Reading them for every session takes as long as a
/// part of the search, so they are read only for sessions that need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnds {
    /// The time of the last message.
    pub last_active: SystemTime,
    /// The first uuid, which forks share. See [`read_first_uuid`](crate::read_first_uuid).
    pub first_uuid: Option<[u8; 36]>,
}

impl SearchedSession {
    /// Returns when it was last active; until [`ends`](Self::ends) were read, when it was last modified.
    pub fn last_active(&self) -> SystemTime {
        self.ends.get().map_or(self.modified, |ends| ends.last_active)
    }

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
    /// The sessions.
    pub sessions: &'a [SearchedSession],
    /// The sessions that begin with the same entry, by index, each group last active first. A match that
    /// several sessions of a group contain is reported for the last of them.
    pub forks: &'a [Vec<usize>],
    /// Opens a log.
    pub open: &'a OpenLog,
    /// The number of context lines around a match; `None` to only count matches.
    pub context: Option<usize>,
    /// The number of matches of a session after which the rest of it is not searched.
    pub max_per_session: usize,
    /// Matches in calls of tools with these names, and in their results, are left out and not counted in
    /// `max_per_session`. Requires `context`.
    pub skips_tool: Option<fn(&str) -> bool>,
    /// Whether every session is known to have matches. See [`Searcher::expecting_matches`].
    pub expects_matches: bool,
    /// Set to cancel the scan.
    pub cancelled: &'a AtomicBool,
}

/// A match in one of the logs of a session.
#[derive(Clone, Debug)]
pub struct LogMatch {
    /// The index of the log in the session.
    pub log: usize,
    /// The kind of text.
    pub kind: TextKind,
    key: Option<u64>,
    /// The number of other sessions with a copy of it.
    pub copies: usize,
    /// The match itself, unless matches are only counted.
    pub details: Option<SearchMatch>,
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
    Match(usize, LogMatch),
    /// Further matches in this session, of which only the number is known.
    Counted(usize, usize),
    /// A match was skipped, because it is a copy of one in an older session.
    Copy,
    /// There are no more matches in this session.
    End(usize),
    /// A problem with a log.
    Problem(LogProblem),
}

/// The number of matches of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HitCount {
    /// By [`TextKind::rank`]: titles and prompts, replies, everything else.
    pub by_rank: [usize; 3],
    /// The number of matches that were not counted because they are copies.
    pub n_copies: usize,
}

impl HitCount {
    /// Counts a match in a text of this kind.
    pub fn add(&mut self, kind: TextKind) {
        self.by_rank[kind.rank().min(2)] += 1;
    }

    /// Returns the number of matches without copies.
    pub fn n_matches(&self) -> usize {
        self.by_rank.iter().sum()
    }
}

/// The session that each match of a group of forks is reported for, by key, and the number of other sessions
/// with a copy.
pub(crate) type MatchOwners = HashMap<u64, (usize, usize)>;

/// The key of a match, if its line has a uuid, and its kind.
type MatchKey = (Option<u64>, TextKind);

/// A reader that ends when one of its flags is set, so that a thread stops in the middle of a large log.
struct StoppableReader<'a, R> {
    reader: R,
    stops: [&'a AtomicBool; 2],
}

impl<R: Read> Read for StoppableReader<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stops.iter().any(|stop| stop.load(Ordering::Relaxed)) {
            return Ok(0);
        }
        self.reader.read(into)
    }
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
    matches: VecDeque<LogMatch>,
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
                let trouble = self.search_log(&mut searcher, path, log, desk.is_ended, &mut |found| {
                    bundle.push(found);
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
        match self.context {
            None => searcher.matches_only(),
            Some(_) if self.expects_matches => searcher.expecting_matches(),
            Some(_) => searcher,
        }
    }

    fn search_log(
        self,
        searcher: &mut Searcher<'_>,
        path: &Path,
        log: usize,
        is_ended: &AtomicBool,
        sink: &mut dyn FnMut(LogMatch) -> ControlFlow<()>,
    ) -> Vec<LogProblem> {
        let stops = [is_ended, self.cancelled];
        let scanned = searcher.search(
            || Ok(StoppableReader { reader: (self.open)(path)?, stops }),
            |found| {
                let owned = self.context.map(|context| found.with_excerpt(context));
                let tool = owned.as_ref().and_then(|owned| owned.tool.as_deref());
                if let (Some(skips_tool), Some(tool)) = (self.skips_tool, tool)
                    && skips_tool(tool)
                {
                    return ControlFlow::Continue(());
                }
                sink(LogMatch { log, kind: found.kind(), key: found.key(), copies: 0, details: owned })
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

    /// Returns the key and the kind of every match in a session.
    fn keys(self, session: usize) -> Vec<MatchKey> {
        let scan = Self { context: None, ..self };
        let mut searcher = scan.searcher();
        let mut keys = Vec::new();
        for (log, path) in self.sessions[session].logs.iter().enumerate() {
            // Read errors are reported when the session is scanned.
            scan.search_log(&mut searcher, path, log, self.cancelled, &mut |found| {
                keys.push((found.key, found.kind));
                ControlFlow::Continue(())
            });
        }
        keys
    }

    /// Returns the owner of each match in the sessions of a group, and the keys and kinds of their matches.
    pub(crate) fn owners(self, members: &[usize]) -> (MatchOwners, Vec<Vec<MatchKey>>) {
        let keys = parallel_map(members, |member| self.keys(*member));
        let mut owners = MatchOwners::default();
        // The members are sorted by activity, latest first. The reverse order makes the oldest the owner.
        for (member, keys) in members.iter().zip(&keys).rev() {
            let mut keys: Vec<u64> = keys.iter().filter_map(|(key, _)| *key).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                owners.entry(key).and_modify(|(_, copies)| *copies += 1).or_insert((*member, 0));
            }
        }
        (owners, keys)
    }

    /// Counts the matches of the sessions of a group of forks, in order, without copies.
    pub fn count_forks(self, members: &[usize]) -> Vec<HitCount> {
        let (owners, keys) = self.owners(members);
        let count = |member: &usize, keys: &[MatchKey]| {
            let mut count = HitCount::default();
            for (key, kind) in keys {
                let owner = key.and_then(|key| owners.get(&key)).map(|(owner, _)| owner);
                if owner.is_some_and(|owner| owner != member) {
                    count.n_copies += 1;
                } else if count.n_matches() < self.max_per_session {
                    count.add(*kind);
                }
            }
            count
        };
        members.iter().zip(&keys).map(|(member, keys)| count(member, keys)).collect()
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
            let (matches, troubles, done) = {
                let mut board = board.lock();
                board.head = head;
                while board.slots[head].matches.is_empty()
                    && !board.slots[head].done
                    && !self.cancelled.load(Ordering::Relaxed)
                {
                    changed.wait_for(&mut board, POLL_INTERVAL);
                }
                let slot = &mut board.slots[head];
                let taken =
                    (std::mem::take(&mut slot.matches), std::mem::take(&mut slot.troubles), slot.done);
                board.n_pending -= taken.0.len();
                taken
            };
            if !matches.is_empty() {
                changed.notify_all();
            }
            let mut events = Vec::new();
            let has_matches = !matches.is_empty();
            for mut found in matches {
                match found.key.map_or(Some(0), |key| forks.copies(session, key)) {
                    Some(_) if n_reported == self.max_per_session => {}
                    Some(copies) => {
                        found.copies = copies;
                        n_reported += 1;
                        events.push(ScanEvent::Match(session, found));
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
            if has_matches {
                board.lock().limit = MAX_PENDING;
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
    fn send(&self, place: usize, bundle: &mut Vec<LogMatch>) -> ControlFlow<()> {
        let flow = || if self.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        if bundle.is_empty() {
            return flow();
        }
        let mut board = self.board.lock();
        while board.n_pending >= board.limit
            && !(board.head == place && board.slots[place].matches.len() < board.limit / 4)
            && !self.is_stopped()
        {
            self.changed.wait_for(&mut board, POLL_INTERVAL);
        }
        board.n_pending += bundle.len();
        board.slots[place].matches.extend(bundle.drain(..));
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
            self.board.lock().slots[place].troubles.extend(troubles);
        }
    }

    fn finish(&self, place: usize) {
        let mut board = self.board.lock();
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
