//! The logs that tokens are counted in: found quickly, read on all cores.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use threadline_entry::{LeftOut, Lines};
use threadline_store::{Listing, LogFile, SessionFile, open_regular};
use threadline_usage::{Calls, Ledger, Scan, Scanned, Source, Wants, Ways};

use crate::lock::{locked, unlocked};
use crate::ui::Ui;

/// Logs, and what could not be looked into.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) found: Vec<LogFile>,
    pub(super) unread: Vec<String>,
}

impl From<Listing<LogFile>> for Logs {
    fn from(listing: Listing<LogFile>) -> Self {
        Self { found: listing.found, unread: listing.unread.iter().map(ToString::to_string).collect() }
    }
}

impl Logs {
    /// The logs of a session and its sub-agents.
    pub(super) fn of_session(file: &SessionFile) -> Self {
        file.logs().into()
    }

    pub(super) fn append(&mut self, other: impl Into<Self>) {
        let other = other.into();
        self.found.extend(other.found);
        self.unread.extend(other.unread);
    }

    /// Leaves out what was found twice. What is reached by another name is read again, and counted once all the same.
    pub(super) fn each_once(mut self) -> Self {
        let mut seen = HashSet::new();
        self.found.retain(|log| seen.insert(log.path.clone()));
        self
    }

    /// Reads all of them.
    pub(super) fn read(mut self, ui: &Ui, wants: Wants) -> Read {
        // The largest first, so that no core is left with one at the end.
        let mut order: Vec<_> =
            self.found.iter().zip(0..).map(|(log, place)| (Reverse(log.size), place)).collect();
        order.sort_unstable();
        let ledger = Mutex::new(Ledger::default());
        let failed = Mutex::new(Vec::new());
        let long = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        let progress = ui.progress("reading log", self.found.len());
        rayon::broadcast(|_| {
            let (mut buffer, mut ways) = (Vec::new(), None);
            while let Some((_, place)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let log: &LogFile = &self.found[*place];
                match scan(log, wants, &mut buffer, &mut ways) {
                    Ok((scanned, left_out)) => {
                        locked(&ledger).absorb(scanned);
                        locked(&long).extend(left_out.into_iter().map(|line| (log.path.clone(), line)));
                    }
                    Err(error) => locked(&failed).push((log.path.clone(), error)),
                }
                progress.step();
            }
        });
        drop(progress);
        let mut failed = unlocked(failed);
        failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut gone = Vec::new();
        for (path, error) in failed {
            match error.kind() {
                io::ErrorKind::NotFound => gone.push(path),
                _ => self.unread.push(format!("cannot read {}: {error}", path.display())),
            }
        }
        let mut long = unlocked(long);
        long.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.at.cmp(&y.at)));
        self.unread.extend(long.iter().map(|(path, line)| left_out(path, line)));
        Read { calls: unlocked(ledger).settle(), unread: self.unread, gone }
    }
}

/// What all logs hold, and what could not be read.
pub(super) struct Read {
    pub(super) calls: Calls,
    pub(super) unread: Vec<String>,
    /// Logs that were there when they were looked for, and not when they were opened.
    pub(super) gone: Vec<PathBuf>,
}

/// What is said of a line that is too long to be read.
fn left_out(path: &Path, line: &LeftOut) -> String {
    let (at, length) = (line.at.byte_offset, threadline_view::figure::bytes(line.length));
    format!("{}: the line at byte {at} is {length} long, and was left out", path.display())
}

/// A line that is longer than this tells of no call; memory has a limit, too.
const LONGEST_LINE: usize = 32 << 20;

/// Reads one log in stretches, with a buffer and with ways that serve all of them. Also tells of lines that were left out.
fn scan(
    log: &LogFile,
    wants: Wants,
    buffer: &mut Vec<u8>,
    ways: &mut Option<Ways>,
) -> io::Result<(Scanned, Vec<LeftOut>)> {
    let lines = Lines::new(open_regular(&log.path)?).leaving_out_longer_than(LONGEST_LINE);
    let mut lines = lines.with_buffer(std::mem::take(buffer));
    let mut scan = Scan::with_ways(source_of(log), wants, ways.take().unwrap_or_default());
    if !wants.records {
        lines.stop_numbering();
    }
    let result = loop {
        match lines.next_block() {
            Ok(Some(block)) => scan.block(&block),
            Ok(None) => break Ok(lines.left_out().to_vec()),
            Err(error) => break Err(error),
        }
    };
    let (scanned, learnt) = scan.finish_with_ways();
    *ways = Some(learnt);
    *buffer = lines.into_buffer();
    result.map(|left_out| (scanned, left_out))
}

/// Whose log this is, as far as its path tells.
fn source_of(log: &LogFile) -> Source {
    Source {
        path: log.path.to_string_lossy().into_owned(),
        session: log.session.clone().map(Into::into),
        folder: Some(log.folder()),
        agent: log.agent().map(|agent| (agent.id, agent.kind)),
    }
}
