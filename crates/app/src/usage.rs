//! Usage of many logs: selecting logs, reading them in parallel, and notes on the figures.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use threadline_entry::{LineBlock, LineReader, Millis, SkippedLine};
use threadline_store::{Listing, LogFile, PreviewReader, SessionFile, logs_below, open_regular};
use threadline_usage::{
    CallLedger, LogSource, ModelCall, ModelCalls, PriceBook, ScanCache, ScanOptions, ScannedLog, UsageScan,
    UsageTotals, limit_end,
};
use threadline_view::{humanize, visible_name};

use crate::config::App;
use crate::error::AppError;
use crate::list::ListedCards;

/// Maximum length of a line that is counted, in bytes.
///
/// A model's reply is far shorter, so a longer line is not a call. Skipping it limits the memory of a scan.
pub const MAX_LINE: usize = 32 << 20;

/// Logs to count.
#[derive(Debug, Default)]
pub struct UsageLogs {
    /// The logs.
    pub found: Vec<LogFile>,
    /// Messages about folders that could not be read.
    pub unread: Vec<String>,
}

impl From<Listing<LogFile>> for UsageLogs {
    fn from(listing: Listing<LogFile>) -> Self {
        Self { found: listing.found, unread: listing.errors.iter().map(ToString::to_string).collect() }
    }
}

/// The selected logs, and the sessions in them to count.
#[derive(Debug)]
pub struct UsageSelection {
    /// The logs to read.
    pub logs: UsageLogs,
    /// The sessions to count; all of them if `None`.
    pub sessions: Option<HashSet<String>>,
}

impl App {
    /// Selects the logs of sessions, files and folders by name; those of all sessions if `named` is empty.
    ///
    /// For a session of a home, all logs of the homes are selected, because calls that it inherited from
    /// another session count there.
    ///
    /// # Errors
    ///
    /// If a name matches no session, or several.
    pub fn usage_logs(&self, named: &[String]) -> Result<UsageSelection, AppError> {
        if named.is_empty() {
            return Ok(UsageSelection { logs: self.store().logs().into(), sessions: None });
        }
        let mut logs = UsageLogs::default();
        let mut sessions = HashSet::new();
        let mut in_store = false;
        let mut has_folder = false;
        for name in named {
            if Path::new(name).is_dir() {
                logs.append(logs_below(Path::new(name)));
                has_folder = true;
                continue;
            }
            let file = self.find(name)?;
            in_store |= self.store().homes().iter().any(|home| file.home.as_ref() == Some(home));
            logs.append(UsageLogs::of_session(&file));
            sessions.insert(file.id.into());
        }
        if has_folder {
            // All sessions in a folder count, and so do all those in the other logs.
            return Ok(UsageSelection { logs: logs.unique(), sessions: None });
        }
        if in_store {
            logs.append(self.store().logs());
        }
        Ok(UsageSelection { logs: logs.unique(), sessions: Some(sessions) })
    }
}

impl UsageLogs {
    /// Returns the logs of a session and its sub-agents.
    pub fn of_session(file: &SessionFile) -> Self {
        file.logs().into()
    }

    /// Returns the logs of listed sessions; if `keep` is given, only those with a call that it accepts, or a
    /// copy of one.
    pub fn of_cards(cards: &ListedCards, keep: Option<&dyn Fn(&ModelCall<'_>) -> bool>) -> Self {
        let matching = keep.map(|keep| cards.figures.calls.logs_of(keep));
        let is_wanted = |log: &LogFile| {
            matching.as_ref().is_none_or(|matching| matching.contains(&*log.path.to_string_lossy()))
        };
        let logs = cards.logs.iter().flat_map(|session| session.logs()).filter(|log| is_wanted(log));
        Self { found: logs.cloned().collect(), unread: Vec::new() }
    }

    /// Appends other logs.
    pub fn append(&mut self, other: impl Into<Self>) {
        let other = other.into();
        self.found.extend(other.found);
        self.unread.extend(other.unread);
    }

    /// Removes duplicate paths. A file with two paths is read twice, but its calls count once.
    pub fn unique(mut self) -> Self {
        let mut seen = HashSet::new();
        self.found.retain(|log| seen.insert(log.path.clone()));
        self
    }

    /// Reads all logs in parallel. `progress` is called once per log.
    pub fn read(mut self, wants: ScanOptions, progress: &(dyn Fn() + Sync)) -> UsageRead {
        // Largest first, so that no thread starts a large log last.
        let mut order: Vec<_> =
            self.found.iter().zip(0..).map(|(log, place)| (Reverse(log.size), place)).collect();
        order.sort_unstable();
        let ledger = Mutex::new(CallLedger::default());
        let failed = Mutex::new(Vec::new());
        let left_out = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        rayon::broadcast(|_| {
            let mut scanner = LogScanner::default();
            while let Some((_, place)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                let log: &LogFile = &self.found[*place];
                match scanner.scan(log, wants) {
                    Ok((scanned, lines)) => {
                        ledger.lock().add(scanned);
                        left_out.lock().extend(lines.into_iter().map(|line| (log.path.clone(), line)));
                    }
                    Err(error) => failed.lock().push((log.path.clone(), error)),
                }
                progress();
            }
        });
        let mut failed = failed.into_inner();
        failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut gone = Vec::new();
        for (path, error) in failed {
            match unreadable(&path, &error) {
                Some(message) => self.unread.push(message),
                None => gone.push(path),
            }
        }
        let mut left_out = left_out.into_inner();
        left_out.sort_by(|(a, x), (b, y)| a.cmp(b).then_with(|| x.at.cmp(&y.at)));
        self.unread.extend(left_out.iter().map(|(path, line)| left_out_note(path, line)));
        UsageRead { calls: ledger.into_inner().finish(), unread: self.unread, gone }
    }
}

/// The calls in many logs.
pub struct UsageRead {
    /// The calls, without duplicates.
    pub calls: ModelCalls,
    /// Messages about logs and lines that could not be read.
    pub unread: Vec<String>,
    /// Logs that were deleted after they were listed.
    pub gone: Vec<PathBuf>,
}

/// Reads the usage of one log after another, and reuses the memory and the cache of line layouts.
#[derive(Default)]
pub(crate) struct LogScanner {
    reader: LogReader,
    pub(crate) previews: PreviewReader,
}

/// Reads the blocks of one log after another.
#[derive(Default)]
struct LogReader {
    buffer: Vec<u8>,
    cache: Option<ScanCache>,
}

/// Scanners that are not in use, so that logs read in parallel share a few of them. A new scanner has to
/// allocate its buffer and to learn the layouts of lines.
#[derive(Default)]
pub(crate) struct ScannerPool(Mutex<Vec<LogScanner>>);

impl ScannerPool {
    /// Calls `read` with a scanner.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&mut LogScanner) -> T) -> T {
        let mut scanner = self.0.lock().pop().unwrap_or_default();
        let result = read(&mut scanner);
        self.0.lock().push(scanner);
        result
    }
}

impl LogScanner {
    /// Reads the calls of a log. Also returns the lines longer than [`MAX_LINE`], which were skipped.
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub(crate) fn scan(
        &mut self,
        log: &LogFile,
        wants: ScanOptions,
    ) -> io::Result<(ScannedLog, Vec<SkippedLine>)> {
        self.scan_blocks(log, wants, |_| ())
    }

    /// Does the same, and passes every block to `on_block`.
    pub(crate) fn scan_blocks(
        &mut self,
        log: &LogFile,
        wants: ScanOptions,
        mut on_block: impl FnMut(&LineBlock<'_>),
    ) -> io::Result<(ScannedLog, Vec<SkippedLine>)> {
        self.reader.scan(log, wants, |scan, block| {
            scan.block(block);
            on_block(block);
        })
    }
}

impl LogReader {
    /// Passes the blocks of a log to `each`, with the scan of its usage.
    fn scan(
        &mut self,
        log: &LogFile,
        wants: ScanOptions,
        mut each: impl FnMut(&mut UsageScan, &LineBlock<'_>),
    ) -> io::Result<(ScannedLog, Vec<SkippedLine>)> {
        let lines = LineReader::new(open_regular(&log.path)?).skip_longer_than(MAX_LINE);
        let mut lines = lines.with_buffer(std::mem::take(&mut self.buffer));
        let mut scan = UsageScan::with_cache(source_of(log), wants, self.cache.take().unwrap_or_default());
        if !wants.records {
            lines.stop_numbering();
        }
        let result = loop {
            match lines.next_block() {
                Ok(Some(block)) => each(&mut scan, &block),
                Ok(None) => break Ok(lines.skipped_lines().to_vec()),
                Err(error) => break Err(error),
            }
        };
        let (scanned, cache) = scan.finish_with_cache();
        self.cache = Some(cache);
        self.buffer = lines.into_buffer();
        result.map(|left_out| (scanned, left_out))
    }
}

/// Returns the owner of a log, according to its path.
pub(crate) fn source_of(log: &LogFile) -> LogSource {
    LogSource {
        path: log.path.to_string_lossy().into_owned(),
        session: log.session.clone().map(Into::into),
        folder: Some(log.folder()),
        agent: log.agent().map(|agent| (agent.id, agent.kind)),
    }
}

/// Formats the error of a log; returns `None` if the log was deleted meanwhile, which is not an error.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Option<String> {
    let is_gone = error.kind() == io::ErrorKind::NotFound;
    (!is_gone).then(|| format!("cannot read `{}`: {error}", path.display()))
}

/// Formats the message about a skipped line.
pub(crate) fn left_out_note(path: &Path, line: &SkippedLine) -> String {
    let (at, length) = (line.at.byte_offset, humanize::bytes(line.length));
    format!("{}: line at byte {at} skipped: {length} long", path.display())
}

/// Returns the ends of five-hour windows that are in the logs.
pub fn window_resets(calls: &ModelCalls, zone: &TimeZone) -> Vec<Millis> {
    let zone_named = |name: &str| TimeZone::get(name).ok();
    calls.limits().iter().filter_map(|limit| limit_end(limit, zone, zone_named)).collect()
}

/// Figures of usage, and what is needed for the notes on them.
#[derive(Clone, Copy)]
pub struct UsageNotes<'a> {
    /// All calls that were read.
    pub calls: &'a ModelCalls,
    /// The sum that is shown.
    pub total: &'a UsageTotals,
    /// The number of calls without a time, if five-hour windows are shown, which do not include them.
    pub n_undated: usize,
    /// Logs that were deleted after they were listed.
    pub gone: &'a [PathBuf],
    /// The prices.
    pub prices: &'a PriceBook,
}

impl UsageNotes<'_> {
    /// Returns the notes: calls without a price or a time, under-reported calls, lines and logs that could
    /// not be read, and the date and version of the prices. Every front end shows all of them.
    pub fn texts(&self) -> Vec<String> {
        let Self { calls, total, n_undated, gone, prices } = *self;
        let mut notes = Vec::new();
        if n_undated > 0 {
            let calls = humanize::plural(n_undated as u64, "call");
            notes.push(format!("{calls} without a timestamp, not in any window"));
        }
        if total.unpriced_calls > 0 {
            let names = total.unpriced_models();
            let calls = humanize::plural(total.unpriced_calls, "call");
            notes.push(format!("no price for {}: {calls} not included in the cost", visible_name(&names)));
        }
        if total.under_reported > 0 {
            let calls = humanize::plural(total.under_reported, "call");
            notes.push(format!("{calls} logged by versions up to 2.1.58, which under-report output tokens"));
        }
        if total.unlogged_compactions > 0 {
            let compactions = humanize::plural(total.unlogged_compactions, "compaction");
            notes.push(format!("{compactions} whose calls are not in the logs: not included in the cost"));
        }
        if calls.n_invalid_lines() > 0 {
            let lines = humanize::plural(calls.n_invalid_lines(), "invalid line");
            notes.push(format!("{lines} not counted"));
        }
        if calls.n_incomplete_logs() > 0 {
            let logs = humanize::plural(calls.n_incomplete_logs(), "log");
            notes.push(format!("{logs} with an incomplete last line (perhaps still being written)"));
        }
        notes.extend(gone.iter().map(|path| format!("{} no longer exists", path.display())));
        if total.calls > 0 {
            notes.push(format!("price list of {} ({})", prices.updated(), prices.digest()));
        }
        notes
    }
}
