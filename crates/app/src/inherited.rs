//! Calls that a session inherited from another one, of which it is a copy with more lines.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rayon::prelude::*;
use threadline_search::first_uuid;
use threadline_store::{SessionFile, open_regular};
use threadline_usage::{CallLedger, PriceBook, ScanOptions, UsageTotals};

use crate::config::App;
use crate::sync::lock;
use crate::usage::LogScanner;

/// How long the index of first lines is used.
const MAX_AGE: Duration = Duration::from_secs(60);

/// The number of bytes at the start of a log in which its first uuid is searched for.
const HEAD_BYTES: u64 = 16 << 10;

/// The logs of all sessions by the uuid of their first message. A fork begins with the lines of its origin.
#[derive(Debug)]
pub(crate) struct FirstLineIndex {
    read_at: Instant,
    logs: HashMap<Vec<u8>, Vec<PathBuf>>,
}

/// The calls that a session made itself.
pub(crate) struct OwnCalls {
    pub(crate) usage: UsageTotals,
    /// The session that the other calls are from; `None` if there may be several.
    pub(crate) origin: Option<String>,
}

impl App {
    /// Returns the calls that a session made itself, by the rules of lists. `None` if no other session begins
    /// with the same line, so that all are its own.
    pub(crate) fn own_calls(&self, file: &SessionFile, prices: &PriceBook) -> Option<OwnCalls> {
        let uuid = read_first_uuid(&file.path)?;
        let index = self.first_line_index();
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

    /// Returns the index of first lines, which is read again when it is old.
    fn first_line_index(&self) -> Arc<FirstLineIndex> {
        let mut index = lock(&self.first_lines);
        if let Some(index) = index.as_ref().filter(|index| index.read_at.elapsed() < MAX_AGE) {
            return Arc::clone(index);
        }
        let logs = self.store().logs().found;
        let heads: Vec<(Vec<u8>, PathBuf)> = logs
            .into_par_iter()
            .filter(|log| log.agent().is_none())
            .filter_map(|log| Some((read_first_uuid(&log.path)?, log.path)))
            .collect();
        let mut logs: HashMap<Vec<u8>, Vec<PathBuf>> = HashMap::new();
        for (uuid, path) in heads {
            logs.entry(uuid).or_default().push(path);
        }
        let fresh = Arc::new(FirstLineIndex { read_at: Instant::now(), logs });
        *index = Some(Arc::clone(&fresh));
        fresh
    }
}

/// Reads the uuid of the first message of a log.
fn read_first_uuid(path: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    open_regular(path).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    first_uuid(&head).map(<[u8]>::to_vec)
}
