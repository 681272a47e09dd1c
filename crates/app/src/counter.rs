//! A background thread that counts turns, errors, tokens and costs of all sessions, and caches them per log.
//!
//! A log is identified by path, size and modification time, and read again only when one of them changes. The
//! cache can be dropped at any time: without it, figures are available later, but they are the same.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use jiff::tz::TimeZone;
use parking_lot::{Condvar, Mutex};
use rayon::prelude::*;
use threadline_entry::{LineBlock, LogLine, SkippedLine, parse_abridged};
use threadline_session::Session;
use threadline_store::{LogFile, SessionLogs};
use threadline_usage::{
    CallGroupKey, CallGroups, CallLedger, GroupBy, ModelCalls, PriceBook, ScanOptions, ScannedLog,
};
use threadline_view::{LogCounts, SessionCardFigures};

use crate::live_log::MAX_ABRIDGED_STRING;
use crate::usage::{LogScanner, left_out_note, unreadable};

/// First interval between two publications while many logs are read. Each following one is twice as long.
const FIRST_INTERVAL: Duration = Duration::from_millis(400);

/// Figures of all sessions.
pub struct SessionFigures {
    /// The calls of all logs that were read.
    pub calls: ModelCalls,
    /// Figures by session id.
    pub by_session: HashMap<String, Arc<SessionCardFigures>>,
    /// Messages about logs and lines that could not be read.
    pub unread: Vec<String>,
    /// Number of logs that are not read yet.
    n_pending: usize,
    /// The versions of the logs that the figures include.
    logs: LogVersions,
}

/// Size and modification time of each log.
type LogVersions = HashMap<PathBuf, (u64, SystemTime)>;

impl SessionFigures {
    fn empty() -> Self {
        Self {
            calls: CallLedger::default().finish(),
            by_session: HashMap::new(),
            unread: Vec::new(),
            n_pending: 0,
            logs: HashMap::new(),
        }
    }

    /// Returns the number of logs of these sessions that the figures do not include in their current version.
    pub fn n_missing(&self, sessions: &[SessionLogs]) -> usize {
        let logs = sessions.iter().flat_map(SessionLogs::logs);
        logs.filter(|log| self.logs.get(&log.path) != Some(&(log.size, log.modified))).count()
    }

    /// Whether the figures are complete, and count exactly these versions of the logs.
    fn covers(&self, logs: &LogVersions) -> bool {
        self.n_pending == 0 && self.logs == *logs
    }
}

/// Counts in a background thread, which ends when the counter is dropped.
pub struct SessionCounter {
    requests: Mutex<Sender<Arc<Vec<SessionLogs>>>>,
    published: Arc<Published>,
}

/// The latest figures, with a notification of each change.
struct Published {
    figures: Mutex<Arc<SessionFigures>>,
    changed: Condvar,
}

impl SessionCounter {
    /// Starts the thread. `on_change` is called, in that thread, each time new figures are available.
    pub fn new(prices: Arc<PriceBook>, zone: TimeZone, on_change: impl Fn() + Send + 'static) -> Self {
        let figures = Mutex::new(Arc::new(SessionFigures::empty()));
        let published = Arc::new(Published { figures, changed: Condvar::new() });
        let (sender, requests) = channel();
        let worker = Worker {
            prices,
            zone,
            on_change: Box::new(on_change),
            published: Arc::clone(&published),
            cache: HashMap::new(),
        };
        // If no thread can be started, the figures stay empty, and `n_missing` counts all logs.
        let _ = std::thread::Builder::new().name("counter".to_owned()).spawn(move || worker.run(&requests));
        Self { requests: Mutex::new(sender), published }
    }

    /// Returns the figures of these sessions. Waits up to `timeout` for those that are not available yet.
    pub fn count(&self, sessions: &Arc<Vec<SessionLogs>>, timeout: Duration) -> Arc<SessionFigures> {
        let logs = sessions.iter().flat_map(SessionLogs::logs);
        let wanted: LogVersions = logs.map(|log| (log.path.clone(), (log.size, log.modified))).collect();
        let mut figures = self.published.figures.lock();
        if figures.covers(&wanted) {
            return Arc::clone(&figures);
        }
        let _ = self.requests.lock().send(Arc::clone(sessions));
        let start = Instant::now();
        while !figures.covers(&wanted) {
            let Some(left) = timeout.checked_sub(start.elapsed()) else { break };
            self.published.changed.wait_for(&mut figures, left);
        }
        Arc::clone(&figures)
    }
}

/// The figures of one log.
pub(crate) struct LogFigures {
    pub(crate) scanned: ScannedLog,
    pub(crate) counts: LogCounts,
    pub(crate) left_out: Vec<SkippedLine>,
}

/// The result of reading one version of a log.
struct CachedLog {
    size: u64,
    modified: SystemTime,
    result: io::Result<LogFigures>,
}

impl CachedLog {
    /// Whether the log has not changed since it was read.
    fn is_current(&self, log: &LogFile) -> bool {
        (self.size, self.modified) == (log.size, log.modified)
    }
}

/// The state of the background thread.
struct Worker {
    prices: Arc<PriceBook>,
    zone: TimeZone,
    on_change: Box<dyn Fn() + Send>,
    published: Arc<Published>,
    cache: HashMap<PathBuf, CachedLog>,
}

/// Why counting a list of sessions ended.
enum CountEnd {
    /// All sessions were counted.
    Finished,
    /// A newer list is to be counted instead.
    Superseded(Arc<Vec<SessionLogs>>),
    /// The counter was dropped.
    Dropped,
}

impl Worker {
    fn run(mut self, requests: &Receiver<Arc<Vec<SessionLogs>>>) {
        let mut next = requests.recv().ok();
        while let Some(mut sessions) = next.take() {
            // Skips all but the newest list.
            while let Ok(newer) = requests.try_recv() {
                sessions = newer;
            }
            match self.count(&sessions, requests) {
                CountEnd::Finished => next = requests.recv().ok(),
                CountEnd::Superseded(newer) => next = Some(newer),
                CountEnd::Dropped => return,
            }
        }
    }

    /// Reads the logs that changed, in the order of `sessions`, and publishes figures periodically.
    fn count(&mut self, sessions: &[SessionLogs], requests: &Receiver<Arc<Vec<SessionLogs>>>) -> CountEnd {
        let logs: Vec<&LogFile> = sessions.iter().flat_map(SessionLogs::logs).collect();
        let is_cached =
            |log: &LogFile| self.cache.get(&log.path).is_some_and(|cached| cached.is_current(log));
        let changed: Vec<&LogFile> = logs.iter().copied().filter(|log| !is_cached(log)).collect();
        let paths: HashSet<&PathBuf> = logs.iter().map(|log| &log.path).collect();
        self.cache.retain(|path, _| paths.contains(path));
        let mut last_published = Instant::now();
        let mut interval = FIRST_INTERVAL;
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
        let mut n_done = 0;
        for batch in changed.chunks(n_threads * 8) {
            for (log, result) in batch.iter().zip(read_all(batch, n_threads)) {
                let cached = CachedLog { size: log.size, modified: log.modified, result };
                self.cache.insert(log.path.clone(), cached);
            }
            n_done += batch.len();
            if n_done < changed.len() && last_published.elapsed() > interval {
                self.publish(sessions, changed.len() - n_done);
                interval *= 2;
                last_published = Instant::now();
            }
            match requests.try_recv() {
                Ok(newer) => return CountEnd::Superseded(newer),
                Err(TryRecvError::Disconnected) => return CountEnd::Dropped,
                Err(TryRecvError::Empty) => {}
            }
        }
        self.publish(sessions, 0);
        CountEnd::Finished
    }

    /// Publishes the figures of the logs that are cached. `n_pending` logs are not read yet.
    fn publish(&self, sessions: &[SessionLogs], n_pending: usize) {
        let mut ledger = CallLedger::default();
        let mut unread = Vec::new();
        let mut logs = HashMap::new();
        for log in sessions.iter().flat_map(SessionLogs::logs) {
            let Some(cached) = self.cache.get(&log.path) else { continue };
            logs.insert(log.path.clone(), (cached.size, cached.modified));
            match &cached.result {
                Ok(read) => {
                    ledger.add(read.scanned.clone());
                    unread.extend(read.left_out.iter().map(|line| left_out_note(&log.path, line)));
                }
                Err(error) => unread.extend(unreadable(&log.path, error)),
            }
        }
        let calls = ledger.finish();
        let cache = &self.cache;
        let counts = |_, log: &LogFile| Some(&cache.get(&log.path)?.result.as_ref().ok()?.counts);
        let tallies = tallies_by_session(sessions, &counts);
        let by_session = figures_by_session(tallies, &calls, &self.prices, &self.zone);
        let figures = SessionFigures { calls, by_session, unread, n_pending, logs };
        *self.published.figures.lock() = Arc::new(figures);
        self.published.changed.notify_all();
        (self.on_change)();
    }
}

/// Returns the figures of each session with a readable log, by session id.
pub(crate) fn figures_by_session(
    (mut all, unbilled_tools): (HashMap<String, Arc<SessionCardFigures>>, UnbilledTools<'_, '_>),
    calls: &ModelCalls,
    prices: &PriceBook,
    zone: &TimeZone,
) -> HashMap<String, Arc<SessionCardFigures>> {
    let by = (GroupBy::Session, GroupBy::Model);
    let (groups, billed_tools) =
        rayon::join(|| CallGroups::nested(calls, by, prices, zone, |_| true), || calls.tools_by_session());
    for (group, models) in groups {
        let CallGroupKey::Session { session, .. } = group.key else { continue };
        let Some(figures) = all.get_mut(&session) else { continue };
        let figures = Arc::make_mut(figures);
        figures.totals = group.totals;
        let names = models.groups.into_iter().filter_map(|group| match group.key {
            CallGroupKey::Model(name) => Some(name),
            _ => None,
        });
        figures.models = names.collect();
    }
    for (session, n_calls) in calls.inherited() {
        if let Some(figures) = all.get_mut(session) {
            Arc::make_mut(figures).inherited_calls = n_calls;
        }
    }
    all.par_iter_mut().for_each(|(id, figures)| {
        let billed = billed_tools.get(&**id).into_iter().flatten();
        let mut tools: BTreeMap<&str, u64> = billed.copied().collect();
        let unbilled = unbilled_tools.get(&**id).into_iter().flatten().copied().flatten();
        unbilled.for_each(|(name, count)| *tools.entry(name).or_default() += count);
        let figures = Arc::make_mut(figures);
        figures.tools = tools.into_iter().map(|(name, count)| (name.to_owned(), count)).collect();
        // Those with the same number stay in the order of their names.
        figures.tools.sort_by_key(|(_, count)| Reverse(*count));
    });
    all
}

/// The calls of tools by replies without figures, for each log of a session that has any, by session id.
type UnbilledTools<'s, 'c> = HashMap<&'s str, Vec<&'c BTreeMap<String, u64>>>;

/// Returns the tally of each session with a readable log, and its calls of tools by replies without figures.
/// `counts` returns the counts of a log, given its number among the logs of all sessions; `None` if it could
/// not be read.
pub(crate) fn tallies_by_session<'s, 'c>(
    sessions: &'s [SessionLogs],
    counts: &(dyn Fn(usize, &LogFile) -> Option<&'c LogCounts> + Sync),
) -> (HashMap<String, Arc<SessionCardFigures>>, UnbilledTools<'s, 'c>) {
    let mut all: HashMap<String, Arc<SessionCardFigures>> = HashMap::with_capacity(sessions.len());
    let mut unbilled_tools: UnbilledTools<'s, 'c> = HashMap::new();
    let mut numbers = 0..;
    for session in sessions {
        let mut next = |log: &LogFile| counts(numbers.next()?, log);
        let own = session.own.as_ref().and_then(&mut next);
        let agents: Vec<(&LogFile, &LogCounts)> =
            session.agents.iter().filter_map(|log| Some((log, next(log)?))).collect();
        // A session can have folders in several projects, which contain logs of its sub-agents.
        let read = own.into_iter().chain(agents.iter().map(|(_, counts)| *counts));
        let tools = read.map(|counts| &counts.unbilled_tools).filter(|tools| !tools.is_empty());
        unbilled_tools.entry(&session.file.id).or_default().extend(tools);
        let Some(own) = own else { continue };
        let ids = agents.iter().map(|(log, _)| log.agent().map(|agent| agent.id).unwrap_or_default());
        let ids: Vec<String> = ids.collect();
        let tally = own.sum(ids.iter().zip(&agents).map(|(id, (_, counts))| (&**id, *counts)));
        all.insert(
            session.file.id.to_string(),
            Arc::new(SessionCardFigures { tally, ..SessionCardFigures::default() }),
        );
    }
    (all, unbilled_tools)
}

/// Reads logs in up to `n_threads` threads of its own, so that the other cores are free for requests.
fn read_all(logs: &[&LogFile], n_threads: usize) -> Vec<io::Result<LogFigures>> {
    let share = logs.len().div_ceil(n_threads).max(1);
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for logs in logs.chunks(share) {
            let thread = scope.spawn(move || {
                let mut scanner = LogScanner::default();
                logs.iter().map(|log| read(log, &mut scanner)).collect::<Vec<_>>()
            });
            threads.push((logs.len(), thread));
        }
        // Results are in the order of the logs, so a panicked thread yields one error per log.
        let panicked = || Err(io::Error::other("threadline panicked while reading it"));
        let join = |(n_logs, thread): (usize, std::thread::ScopedJoinHandle<'_, Vec<_>>)| {
            thread.join().unwrap_or_else(|_| std::iter::repeat_with(panicked).take(n_logs).collect())
        };
        threads.into_iter().flat_map(join).collect()
    })
}

/// Reads the calls of a log and tallies its lines.
fn read(log: &LogFile, scanner: &mut LogScanner) -> io::Result<LogFigures> {
    let options = ScanOptions { tools: true, limits: true, ..ScanOptions::default() };
    read_figures(log, options, scanner, |_| ())
}

/// Reads the calls of a log, and counts its turns and errors. Calls `on_block` for each block of the log.
pub(crate) fn read_figures(
    log: &LogFile,
    wants: ScanOptions,
    scanner: &mut LogScanner,
    mut on_block: impl FnMut(&LineBlock<'_>),
) -> io::Result<LogFigures> {
    let mut session = Session::new();
    let (scanned, left_out) = scanner.scan_blocks(log, wants, |block| {
        on_block(block);
        // The text of long strings does not matter, and parsing it takes most of the time.
        let lines: Vec<LogLine<'_>> = block.lines().collect();
        parse_abridged(&lines, MAX_ABRIDGED_STRING, |entry, findings| session.push(entry, findings));
    })?;
    Ok(LogFigures { scanned, counts: LogCounts::of(session), left_out })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_abridged_lines_equal_those_of_whole_lines() {
        for path in threadline_testkit::shared_logs() {
            let bytes = std::fs::read(&path).unwrap();
            let listing = threadline_store::SessionFile::at(&path).logs();
            let log = listing.found.iter().find(|log| log.path == path).unwrap();
            let figures =
                read_figures(log, ScanOptions::default(), &mut LogScanner::default(), |_| ()).unwrap();
            assert_eq!(figures.counts, LogCounts::of(Session::from_bytes(&bytes)), "{path:?}");
        }
    }
}
