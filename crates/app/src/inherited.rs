//! Calls that a session inherited from another one, of which it is a copy with more lines.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use threadline_search::FirstUuids;
use threadline_store::{SessionFile, open_regular};
use threadline_usage::{CallLedger, PriceBook, ScanOptions, UsageTotals};

use crate::config::App;
use crate::usage::LogScanner;

/// How long the index of first lines is used.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Logs by the uuids of their first messages.
///
/// A fork begins with the lines of its origin. It is in the same project folder, unless the session continued
/// in another working directory.
#[derive(Debug)]
pub(crate) struct FirstLineIndex {
    read_at: Instant,
    logs: Vec<(PathBuf, FirstUuids)>,
    /// Indices into `logs`.
    by_uuid: HashMap<[u8; 36], Vec<usize>>,
}

/// The calls that a session made itself.
pub(crate) struct OwnCalls {
    pub(crate) usage: UsageTotals,
    /// The session that the other calls are from; `None` if there may be several.
    pub(crate) origin: Option<String>,
}

impl App {
    /// Returns the calls that a session made itself, by the rules of lists. `None` if no other session of
    /// the homes begins with the same line, so that all are its own.
    pub(crate) fn own_calls(&self, file: &SessionFile, prices: &PriceBook) -> Option<OwnCalls> {
        // Nothing is read beside a log that is not in one of the homes.
        self.store().homes().iter().find(|home| file.home.as_ref() == Some(home))?;
        let uuids = first_uuids(&file.path)?;
        // Forks that do not name their origin are beside it. An origin owns the calls of its forks.
        let folder = file.path.parent().filter(|_| uuids.origin.is_none());
        let index = self.first_line_index(folder);
        let others = index.related(&uuids).map(SessionFile::at).filter(|other| other.id != file.id);
        let others: Vec<SessionFile> = others.collect();
        if others.is_empty() {
            return None;
        }
        let mut ledger = CallLedger::default();
        let mut scanner = LogScanner::default();
        for log in others.iter().chain([file]).flat_map(|session| session.logs().found) {
            let (scanned, _) = scanner.scan(&log, ScanOptions::default()).ok()?;
            ledger.add(scanned);
        }
        let mut usage = UsageTotals::default();
        for call in ledger.finish().iter().filter(|call| call.session == &*file.id) {
            usage += &UsageTotals::of(&call, prices);
        }
        let origin = match &others[..] {
            [origin] => Some(origin.id.to_string()),
            _ => None,
        };
        Some(OwnCalls { usage, origin })
    }

    /// Returns the index of the first lines in a folder, or else in all homes, which is read again when it is
    /// old.
    fn first_line_index(&self, folder: Option<&Path>) -> Arc<FirstLineIndex> {
        let key = folder.map(Path::to_owned);
        let known = self.first_lines.lock().get(&key).cloned();
        if let Some(index) = known.filter(|index| index.read_at.elapsed() < MAX_AGE) {
            return index;
        }
        // Without the lock: a thread of the pool may start another load while it waits for the others.
        let paths = match folder {
            Some(folder) => logs_in(folder),
            // The store does not follow links out of a home.
            None => {
                let logs = self.store().logs().found.into_iter().filter(|log| log.agent().is_none());
                logs.map(|log| log.path).collect()
            }
        };
        let index = Arc::new(FirstLineIndex::read(paths));
        self.first_lines.lock().insert(key, Arc::clone(&index));
        index
    }
}

impl FirstLineIndex {
    /// Reads the beginning of every log.
    fn read(paths: Vec<PathBuf>) -> Self {
        let logs: Vec<(PathBuf, FirstUuids)> =
            paths.into_par_iter().filter_map(|path| Some((path.clone(), first_uuids(&path)?))).collect();
        let mut by_uuid: HashMap<[u8; 36], Vec<usize>> = HashMap::new();
        for (at, (_, uuids)) in logs.iter().enumerate() {
            uuids.iter().for_each(|uuid| by_uuid.entry(uuid).or_default().push(at));
        }
        Self { read_at: Instant::now(), logs, by_uuid }
    }

    /// Returns the logs that are copies of the same log, also through copies of copies.
    fn related(&self, uuids: &FirstUuids) -> impl Iterator<Item = &Path> {
        let mut found = BTreeSet::new();
        let mut pending: Vec<[u8; 36]> = uuids.iter().collect();
        while let Some(uuid) = pending.pop() {
            for at in self.by_uuid.get(&uuid).into_iter().flatten() {
                if found.insert(*at) {
                    pending.extend(self.logs[*at].1.iter());
                }
            }
        }
        found.into_iter().map(|at| &*self.logs[at].0)
    }
}

/// Returns the paths of the logs in a folder; none if it cannot be read.
fn logs_in(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect()
}

/// Reads the uuids of the first message of a log.
fn first_uuids(path: &Path) -> Option<FirstUuids> {
    FirstUuids::read(open_regular(path).ok()?)
}
