//! What only a whole reading tells: turns, failures, tokens, money. Counted apart from any request, and remembered.
//!
//! A log is known by its path, length and time, and read again only where one of these changed. What is remembered can
//! be thrown away at any time: it changes how soon an answer is complete, and no answer.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use jiff::tz::TimeZone;
use threadline_entry::{Lines, parse_line};
use threadline_session::Session;
use threadline_store::{LogFile, SessionLogs, open_regular};
use threadline_usage::{Book, By, Calls, GroupKey, Groups, Ledger, Scan, Scanned, Source, Wants};
use threadline_view::{Figures, Tally};

use crate::news::News;

/// Longer logs are skimmed line by line, so that few bytes are in memory at a time.
const WHOLE: u64 = 24 << 20;

/// While much is to be read, what is known is told this often at first, then ever more rarely.
const FIRST_WORD: Duration = Duration::from_millis(400);

/// What is known of all sessions.
pub(crate) struct Counted {
    /// The calls of all logs that were read.
    pub(crate) calls: Calls,
    /// By session.
    pub(crate) figures: HashMap<String, Figures>,
    /// How many logs were still to be read.
    unread: usize,
    /// What could not be read, in words.
    pub(crate) failed: Vec<String>,
    /// Which logs these are figures of.
    logs: Fingerprints,
}

/// Every log with what it is known by.
type Fingerprints = HashMap<PathBuf, (u64, SystemTime)>;

/// Counts in a thread of its own, which ends with it.
pub(crate) struct Counter {
    /// What to count; taken by whoever asks first.
    work: Mutex<Sender<Arc<Vec<SessionLogs>>>>,
    board: Arc<Board>,
}

struct Board {
    counted: Mutex<Arc<Counted>>,
    changed: Condvar,
}

impl Counter {
    pub(crate) fn new(book: Book, zone: TimeZone, news: News) -> Self {
        let board =
            Arc::new(Board { counted: Mutex::new(Arc::new(Counted::nothing())), changed: Condvar::new() });
        let (work, asked) = channel();
        let clerk = Clerk { book, zone, news, board: Arc::clone(&board), known: HashMap::new() };
        // Where no thread can be had, figures stay unknown and pages say so.
        let _ = std::thread::Builder::new().name("counter".to_owned()).spawn(move || clerk.run(&asked));
        Self { work: Mutex::new(work), board }
    }

    /// What is known of these sessions, waiting up to `patience` for what is not known yet.
    pub(crate) fn count(&self, sessions: &Arc<Vec<SessionLogs>>, patience: Duration) -> Arc<Counted> {
        let wanted = fingerprints(sessions);
        let mut counted = lock(&self.board.counted);
        if counted.is_of(&wanted) {
            return Arc::clone(&counted);
        }
        let _ = lock(&self.work).send(Arc::clone(sessions));
        let start = Instant::now();
        while !counted.is_of(&wanted) {
            let Some(left) = patience.checked_sub(start.elapsed()) else { break };
            counted =
                self.board.changed.wait_timeout(counted, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Arc::clone(&counted)
    }
}

impl Counted {
    fn nothing() -> Self {
        Self {
            calls: Ledger::default().settle(),
            figures: HashMap::new(),
            unread: 0,
            failed: Vec::new(),
            logs: HashMap::new(),
        }
    }

    /// How many logs of these sessions it does not know, or not as they are now.
    pub(crate) fn missing(&self, sessions: &[SessionLogs]) -> usize {
        let logs = sessions.iter().flat_map(SessionLogs::logs);
        logs.filter(|log| self.logs.get(&log.path) != Some(&(log.size, log.modified))).count()
    }

    fn is_of(&self, logs: &Fingerprints) -> bool {
        self.unread == 0 && self.logs == *logs
    }
}

fn fingerprints(sessions: &[SessionLogs]) -> Fingerprints {
    let logs = sessions.iter().flat_map(SessionLogs::logs);
    logs.map(|log| (log.path.clone(), (log.size, log.modified))).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is remembered of a log.
struct Known {
    size: u64,
    modified: SystemTime,
    read: Result<(Scanned, Tally), String>,
}

/// Who counts.
struct Clerk {
    book: Book,
    zone: TimeZone,
    news: News,
    board: Arc<Board>,
    known: HashMap<PathBuf, Known>,
}

impl Clerk {
    fn run(mut self, asked: &Receiver<Arc<Vec<SessionLogs>>>) {
        let mut next = asked.recv().ok();
        while let Some(mut sessions) = next.take() {
            // Only the newest list counts.
            while let Ok(newer) = asked.try_recv() {
                sessions = newer;
            }
            match self.count(&sessions, asked) {
                Interrupted::No => next = asked.recv().ok(),
                Interrupted::By(newer) => next = Some(newer),
                Interrupted::Gone => return,
            }
        }
    }

    /// Reads what changed, the newest sessions first, and tells what is known now and then.
    fn count(&mut self, sessions: &[SessionLogs], asked: &Receiver<Arc<Vec<SessionLogs>>>) -> Interrupted {
        let logs: Vec<&LogFile> = sessions.iter().flat_map(SessionLogs::logs).collect();
        let is_known = |known: &HashMap<PathBuf, Known>, log: &LogFile| {
            known.get(&log.path).is_some_and(|known| known.size == log.size && known.modified == log.modified)
        };
        let fresh: Vec<&LogFile> = logs.iter().copied().filter(|log| !is_known(&self.known, log)).collect();
        let kept: std::collections::HashSet<&PathBuf> = logs.iter().map(|log| &log.path).collect();
        self.known.retain(|path, _| kept.contains(path));
        let mut told = Instant::now();
        let mut patience = FIRST_WORD;
        let n_threads = std::thread::available_parallelism().map_or(1, usize::from).div_ceil(2);
        let mut done = 0;
        for bundle in fresh.chunks(n_threads * 8) {
            let read = read_all(bundle, n_threads);
            for (log, read) in bundle.iter().zip(read) {
                let known = Known { size: log.size, modified: log.modified, read };
                self.known.insert(log.path.clone(), known);
            }
            done += bundle.len();
            if done < fresh.len() && told.elapsed() > patience {
                self.tell(sessions, fresh.len() - done);
                patience *= 2;
                told = Instant::now();
            }
            match asked.try_recv() {
                Ok(newer) => return Interrupted::By(newer),
                Err(TryRecvError::Disconnected) => return Interrupted::Gone,
                Err(TryRecvError::Empty) => {}
            }
        }
        self.tell(sessions, 0);
        Interrupted::No
    }

    fn tell(&self, sessions: &[SessionLogs], unread: usize) {
        let mut ledger = Ledger::default();
        let mut failed = Vec::new();
        let mut logs = HashMap::new();
        for log in sessions.iter().flat_map(SessionLogs::logs) {
            let Some(known) = self.known.get(&log.path) else { continue };
            logs.insert(log.path.clone(), (known.size, known.modified));
            match &known.read {
                Ok((scanned, _)) => ledger.absorb(scanned.clone()),
                Err(error) => failed.push(error.clone()),
            }
        }
        let calls = ledger.settle();
        let figures = self.figures(sessions, &calls);
        let counted = Counted { calls, figures, unread, failed, logs };
        *lock(&self.board.counted) = Arc::new(counted);
        self.board.changed.notify_all();
        self.news.tell();
    }

    /// The figures of each session whose own log was read.
    fn figures(&self, sessions: &[SessionLogs], calls: &Calls) -> HashMap<String, Figures> {
        let tally = |log: &LogFile| match &self.known.get(&log.path)?.read {
            Ok((_, tally)) => Some(*tally),
            Err(_) => None,
        };
        let mut all: HashMap<String, Figures> = HashMap::new();
        for session in sessions {
            let Some(mut own) = session.own.as_ref().and_then(tally) else { continue };
            for agent in session.agents.iter().filter_map(tally) {
                own.add_agent(agent);
            }
            all.insert(session.file.id.to_string(), Figures { tally: own, ..Figures::default() });
        }
        let crossed = |by: By| Groups::crossed(calls, (By::Session, by), &self.book, &self.zone, |_| true);
        for (group, models) in crossed(By::Model) {
            let GroupKey::Session { session, .. } = group.key else { continue };
            let Some(figures) = all.get_mut(&session) else { continue };
            figures.totals = group.totals;
            figures.models = models.groups.into_iter().filter_map(|group| name(group.key)).collect();
        }
        for (group, tools) in crossed(By::Tool) {
            let GroupKey::Session { session, .. } = group.key else { continue };
            let Some(figures) = all.get_mut(&session) else { continue };
            let called = tools.groups.into_iter().filter(|group| group.totals.tool_calls > 0);
            figures.tools =
                called.filter_map(|group| Some((name(group.key)?, group.totals.tool_calls))).collect();
            figures.tools.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        }
        all
    }
}

/// Whether somebody wants something else by now.
enum Interrupted {
    No,
    By(Arc<Vec<SessionLogs>>),
    Gone,
}

fn name(key: GroupKey) -> Option<String> {
    match key {
        GroupKey::Model(name) | GroupKey::Tool(name) => Some(name),
        _ => None,
    }
}

fn read_all(logs: &[&LogFile], n_threads: usize) -> Vec<Result<(Scanned, Tally), String>> {
    let share = logs.len().div_ceil(n_threads).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = logs
            .chunks(share)
            .map(|logs| {
                scope.spawn(move || {
                    let mut buffer = Vec::new();
                    logs.iter()
                        .map(|log| {
                            read(log, &mut buffer)
                                .map_err(|error| format!("cannot read {}: {error}", log.path.display()))
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// Everything that can be counted in a log.
fn read(log: &LogFile, buffer: &mut Vec<u8>) -> io::Result<(Scanned, Tally)> {
    let wants = Wants { tools: true, limits: true, ..Wants::default() };
    let scanned = scan(log, wants, buffer)?;
    let mut tally = Tally::default();
    let mut whole = (log.size <= WHOLE).then(Session::new);
    let mut lines = Lines::new(open_regular(&log.path)?).with_buffer(std::mem::take(buffer));
    while let Some(line) = lines.next()? {
        parse_line(&line, |entry, findings| match &mut whole {
            Some(session) => session.push(entry, findings),
            None => tally.skim(&entry),
        });
    }
    *buffer = lines.into_buffer();
    Ok((scanned, whole.map_or(tally, |session| Tally::of(&session))))
}

/// The calls of a log.
pub(crate) fn scan(log: &LogFile, wants: Wants, buffer: &mut Vec<u8>) -> io::Result<Scanned> {
    let source = Source {
        path: log.path.to_string_lossy().into_owned(),
        session: log.session.clone().map(Into::into),
        folder: Some(log.folder()),
        agent: log.agent().map(|agent| (agent.id, agent.kind)),
    };
    let mut scan = Scan::new(source, wants);
    let mut lines = Lines::new(open_regular(&log.path)?).with_buffer(std::mem::take(buffer));
    if !wants.records {
        lines.stop_numbering();
    }
    while let Some(block) = lines.next_block()? {
        scan.block(&block);
    }
    *buffer = lines.into_buffer();
    Ok(scan.finish())
}
