//! Calls that a session inherited from another one, of which it is a copy with more lines.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use threadline_search::read_first_uuid;
use threadline_store::{SessionFile, open_regular};
use threadline_usage::{CallLedger, PriceBook, ScanOptions, UsageTotals};

use crate::config::App;
use crate::sync::lock;
use crate::usage::LogScanner;

/// How long the index of first lines is used.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The logs of a project folder by the uuid of their first message.
///
/// A fork begins with the lines of its origin, and Claude Code writes it into the same folder.
#[derive(Debug)]
pub(crate) struct FirstLineIndex {
    read_at: Instant,
    logs: HashMap<[u8; 36], Vec<PathBuf>>,
}

/// The calls that a session made itself.
pub(crate) struct OwnCalls {
    pub(crate) usage: UsageTotals,
    /// The session that the other calls are from; `None` if there may be several.
    pub(crate) origin: Option<String>,
}

impl App {
    /// Returns the calls that a session made itself, by the rules of lists. `None` if no other session of its
    /// project folder begins with the same line, so that all are its own.
    pub(crate) fn own_calls(&self, file: &SessionFile, prices: &PriceBook) -> Option<OwnCalls> {
        // Nothing is read beside a log that is not in one of the homes.
        self.store().homes().iter().find(|home| file.home.as_ref() == Some(home))?;
        let uuid = first_uuid(&file.path)?;
        let index = self.first_line_index(file.path.parent()?);
        let others = index.logs.get(&uuid)?.iter().map(SessionFile::at).filter(|other| other.id != file.id);
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

    /// Returns the index of the first lines in a folder, which is read again when it is old.
    fn first_line_index(&self, folder: &Path) -> Arc<FirstLineIndex> {
        let known = lock(&self.first_lines).get(folder).cloned();
        if let Some(index) = known.filter(|index| index.read_at.elapsed() < MAX_AGE) {
            return index;
        }
        // Without the lock: a thread of the pool may start another load while it waits for the others.
        let index = Arc::new(FirstLineIndex::read(folder));
        lock(&self.first_lines).insert(folder.to_owned(), Arc::clone(&index));
        index
    }
}

impl FirstLineIndex {
    /// Reads the beginning of every log in a folder.
    fn read(folder: &Path) -> Self {
        let paths =
            std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
        let paths: Vec<PathBuf> =
            paths.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
        let heads: Vec<([u8; 36], PathBuf)> =
            paths.into_par_iter().filter_map(|path| Some((first_uuid(&path)?, path))).collect();
        let mut logs: HashMap<[u8; 36], Vec<PathBuf>> = HashMap::new();
        for (uuid, path) in heads {
            logs.entry(uuid).or_default().push(path);
        }
        Self { read_at: Instant::now(), logs }
    }
}

/// Reads the uuid of the first message of a log.
fn first_uuid(path: &Path) -> Option<[u8; 36]> {
    read_first_uuid(open_regular(path).ok()?)
}
