//! Turns, errors, tokens and costs of all sessions, counted in one call, for `threadline list`.
//!
//! Counting reads every log. The result is cached in one file, and the calls of each log in another one for
//! the next time that some logs have changed: see `log_cache`. Both can be deleted at any time. The web
//! server counts in the background instead, and caches in memory: see `counter`.
//!
//! The cache is used only for logs that are certainly unchanged: same path, size, modification time, identity
//! and, above all, same time of the last change of the inode, which no program can set. A log that changed
//! less than [`SETTLING`] before it was counted is not cached, since a later change might get the same times.
//! On systems without such a time nothing is cached.

use std::collections::{HashMap, HashSet};
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use threadline_store::{FileId, LogFile, SessionLogs, SessionPreview, change_time};
use threadline_usage::{CallLedger, PriceBook, ScanOptions, ScannedLog};
use threadline_view::{LogCounts, SessionCardFigures};

use crate::cache_file;
use crate::config::App;
use crate::counter::{LogFigures, figures_by_session, read_figures, tallies_by_session};
use crate::error::AppError;
use crate::log_cache::LogCache;
use crate::usage::{LogScanner, left_out_note, source_of, unreadable};

/// A log must be unchanged for this long before its figures are cached.
const SETTLING: Duration = Duration::from_secs(2);

/// The start of the first line of the cache file. It must change when the format or the meaning of a figure
/// does.
const FORMAT: &str = "threadline figures 6";

/// Options of [`App::count_figures`].
#[derive(Clone, Debug, Default)]
pub struct FigureOptions {
    /// The cache file; `None` to count everything anew.
    pub cache: Option<PathBuf>,
    /// The build of the program. Figures that another build has cached are not used.
    pub build: String,
}

impl FigureOptions {
    /// Returns whether figures may be cached from an earlier call.
    pub(crate) fn has_cache(&self) -> bool {
        self.cache.as_deref().is_some_and(Path::exists)
    }
}

/// The figures of all sessions.
#[derive(Debug, Default)]
pub struct CountedFigures {
    /// Figures by session id.
    pub by_session: HashMap<String, Arc<SessionCardFigures>>,
    /// Messages about logs and lines that could not be read.
    pub unread: Vec<String>,
    /// Whether every figure came from the cache.
    pub is_cached: bool,
    /// The preview of each session, if there was no cache and its log was read.
    pub(crate) previews: Vec<Option<SessionPreview>>,
}

impl App {
    /// Returns the options for figures with the cache of these homes.
    pub fn figure_options(&self) -> FigureOptions {
        let cache = self.figures_dir().map(|dir| dir.join("figures"));
        FigureOptions { cache, build: self.config().build.clone() }
    }

    /// Counts the figures of sessions, which must be all those of the homes: a call that several logs contain
    /// belongs to one of them. `progress` is called once per log that is read, with the number of logs.
    ///
    /// # Errors
    ///
    /// If the price list cannot be read. A cache that cannot be read or written is ignored.
    pub fn count_figures(
        &self,
        sessions: &[SessionLogs],
        zone: &TimeZone,
        options: &FigureOptions,
        now: SystemTime,
        progress: &(dyn Fn(usize) + Sync),
    ) -> Result<CountedFigures, AppError> {
        let prices = self.prices()?;
        let key = format!("{FORMAT}\t{}\t{}\t{}", options.build, prices.digest(), zone_name(zone, now));
        let logs: Vec<&LogFile> = sessions.iter().flat_map(SessionLogs::logs).collect();
        let cached: Option<FigureCache> =
            options.cache.as_deref().and_then(|file| cache_file::read(file, &key));
        let cached = cached.unwrap_or_default();
        if cached.covers(&logs) {
            let by_session = cached.sessions;
            return Ok(CountedFigures { by_session, is_cached: true, ..CountedFigures::default() });
        }
        let calls_file = options.cache.as_deref().map(|file| file.with_extension("calls"));
        let call_key = format!("{FORMAT}\t{}", options.build);
        let calls = calls_file.as_deref().map(|file| LogCache::read(file, &call_key)).unwrap_or_default();
        let keeps = |log: &LogFile| {
            let version = LogVersion::of(log).filter(|_| options.cache.is_some());
            version.is_some_and(|version| version.is_settled(now))
        };
        let reads_previews = !options.has_cache();
        let known = KnownLogs { figures: &cached, calls: &calls, keeps: &keeps, reads_previews };
        let counted = count(sessions, &logs, &known, &prices, zone, progress);
        if let Some(file) = options.cache.as_deref().filter(|_| counted.unread.is_empty()) {
            // The cache only saves time, so a full disk is no error.
            let _ = cache_file::write(file, &key, &FigureCache::of(&counted, &logs, now));
        }
        if let Some(file) = calls_file.filter(|_| counted.calls.iter().any(Option::is_some)) {
            let read = logs.iter().zip(&counted.calls);
            let kept = read.filter_map(|(log, read)| Some((*log, read.as_ref().or_else(|| calls.get(log))?)));
            let _ = LogCache::write(&file, &call_key, kept);
        }
        let Counted { by_session, unread, previews, .. } = counted;
        Ok(CountedFigures { by_session, unread, is_cached: false, previews })
    }
}

/// Returns the name of the zone, or its current offset in seconds if it has none.
fn zone_name(zone: &TimeZone, now: SystemTime) -> String {
    let offset = || {
        let now = jiff::Timestamp::try_from(now).unwrap_or_default();
        zone.to_offset(now).seconds().to_string()
    };
    zone.iana_name().map_or_else(offset, str::to_owned)
}

/// The figures of all sessions, with those of their logs for the caches.
struct Counted {
    by_session: HashMap<String, Arc<SessionCardFigures>>,
    /// The counts of each log; `None` if it could not be read.
    counts: Vec<Option<LogCounts>>,
    /// The calls of each log that was read and will be cached.
    calls: Vec<Option<ScannedLog>>,
    unread: Vec<String>,
    /// The preview of each session.
    previews: Vec<Option<SessionPreview>>,
}

/// The caches.
struct KnownLogs<'a> {
    figures: &'a FigureCache,
    calls: &'a LogCache<ScannedLog>,
    /// Whether the calls of a log will be cached.
    keeps: &'a (dyn Fn(&LogFile) -> bool + Sync),
    /// Whether the previews of sessions are read, too.
    reads_previews: bool,
}

/// The result of reading a log.
struct ReadLog {
    figures: LogFigures,
    /// The calls to cache.
    calls: Option<ScannedLog>,
    /// The preview of the session with this log, if the bytes at both ends were sufficient.
    preview: Option<SessionPreview>,
}

impl KnownLogs<'_> {
    /// Returns the figures of a log. Reads what is not cached.
    fn read(&self, log: &LogFile, scanner: &mut LogScanner) -> io::Result<ReadLog> {
        let options = ScanOptions { tools: true, ..ScanOptions::default() };
        let counts = self.figures.counts(log);
        if let Some((counts, scanned)) = counts.zip(self.calls.get(log)) {
            let scanned = scanned.clone().with_source(source_of(log));
            let figures = LogFigures { scanned, counts: counts.clone(), left_out: Vec::new() };
            return Ok(ReadLog { figures, calls: None, preview: None });
        }
        let mut previews = std::mem::take(&mut scanner.previews);
        let reads_preview = self.reads_previews && counts.is_none() && log.agent().is_none();
        previews.begin(log.size);
        let figures = match counts {
            Some(counts) => {
                let (scanned, left_out) = scanner.scan(log, options)?;
                LogFigures { scanned, counts: counts.clone(), left_out }
            }
            None => read_figures(log, options, scanner, |block| {
                if reads_preview {
                    previews.add(block.at.byte_offset, block.bytes);
                }
            })?,
        };
        let preview = reads_preview.then(|| previews.finish(log.modified)).flatten();
        scanner.previews = previews;
        // Lines that were skipped are reported every time.
        let keeps = figures.left_out.is_empty() && (self.keeps)(log);
        let calls = keeps.then(|| figures.scanned.clone());
        Ok(ReadLog { figures, calls, preview })
    }
}

fn count(
    sessions: &[SessionLogs],
    logs: &[&LogFile],
    known: &KnownLogs<'_>,
    prices: &PriceBook,
    zone: &TimeZone,
    progress: &(dyn Fn(usize) + Sync),
) -> Counted {
    let ledger = Mutex::new(CallLedger::default());
    let unread = Mutex::new(Vec::new());
    let mut largest_first: Vec<usize> = (0..logs.len()).collect();
    largest_first.sort_by_key(|number| std::cmp::Reverse(logs[*number].size));
    let read = |scanner: &mut LogScanner, log: &LogFile| {
        let read = known.read(log, scanner);
        progress(logs.len());
        match read {
            Ok(ReadLog { figures: LogFigures { scanned, counts, left_out }, calls, preview }) => {
                ledger.lock().add(scanned);
                unread.lock().extend(left_out.iter().map(|line| left_out_note(&log.path, line)));
                (Some(counts), calls, preview)
            }
            Err(error) => {
                unread.lock().extend(unreadable(&log.path, &error));
                (None, None, None)
            }
        }
    };
    let next = AtomicUsize::new(0);
    let read = rayon::broadcast(|_| {
        let mut scanner = LogScanner::default();
        let mut results = Vec::new();
        while let Some(&number) = largest_first.get(next.fetch_add(1, Ordering::Relaxed)) {
            results.push((number, read(&mut scanner, logs[number])));
        }
        results
    });
    let mut read: Vec<_> = read.into_iter().flatten().collect();
    read.sort_unstable_by_key(|(number, _)| *number);
    let (mut counts, mut kept_calls, mut previews) = (Vec::new(), Vec::new(), Vec::new());
    for (_, (log_counts, log_calls, preview)) in read {
        counts.push(log_counts);
        kept_calls.push(log_calls);
        previews.push(preview);
    }
    let tallies = || tallies_by_session(sessions, &|number, _| counts[number].as_ref());
    let (calls, tallies) = rayon::join(|| ledger.into_inner().finish(), tallies);
    let by_session = figures_by_session(tallies, &calls, prices, zone);
    // Dropping the calls takes a while, and nothing needs to wait for it.
    rayon::spawn(move || drop(calls));
    let mut unread = unread.into_inner();
    unread.sort();
    // Only a session's own log has a preview.
    let mut previews = previews.into_iter();
    let of_session = |session: &SessionLogs| previews.by_ref().take(session.logs().count()).flatten().last();
    let previews = sessions.iter().map(of_session).collect();
    Counted { by_session, previews, counts, calls: kept_calls, unread }
}

/// The version of a log. Two versions of a path are equal only if their content is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogVersion {
    size: u64,
    modified: u128,
    changed: i128,
    volume: u64,
    index: u64,
}

impl LogVersion {
    /// Returns `None` if the system does not record when a file was changed.
    pub(crate) fn of(log: &LogFile) -> Option<Self> {
        let modified = log.modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let (volume, index) = (log.id.volume, log.id.index);
        Some(Self { size: log.size, modified, changed: log.changed?, volume, index })
    }

    /// Returns the version of an open file.
    pub(crate) fn of_file(metadata: &Metadata) -> Option<Self> {
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let FileId { volume, index, .. } = FileId::of(metadata);
        Some(Self { size: metadata.len(), modified, changed: change_time(metadata)?, volume, index })
    }

    /// Returns whether the log has not changed for a while.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let limit = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(SETTLING).as_nanos();
        self.modified < limit && u128::try_from(self.changed).is_ok_and(|changed| changed < limit)
    }
}

/// The content of a cache file.
#[derive(Debug, Default, Serialize, Deserialize)]
struct FigureCache {
    /// The logs by path.
    logs: HashMap<String, (LogVersion, LogCounts)>,
    sessions: HashMap<String, Arc<SessionCardFigures>>,
    /// Whether `logs` contains every log that the sessions were counted from.
    is_complete: bool,
}

impl FigureCache {
    /// Returns the counted figures of the logs that have not changed for a while.
    fn of(counted: &Counted, logs: &[&LogFile], now: SystemTime) -> Self {
        let entry = |(log, counts): (&&LogFile, &Option<LogCounts>)| {
            let version = LogVersion::of(log).filter(|version| version.is_settled(now))?;
            Some((log.path.to_str()?.to_owned(), (version, counts.clone()?)))
        };
        let kept: HashMap<_, _> = logs.iter().zip(&counted.counts).filter_map(entry).collect();
        let is_complete = kept.len() == logs.len();
        let sessions = if is_complete { counted.by_session.clone() } else { HashMap::new() };
        Self { logs: kept, sessions, is_complete }
    }

    /// Returns whether the sessions were counted from exactly these logs.
    fn covers(&self, logs: &[&LogFile]) -> bool {
        self.is_complete
            && logs.len() == self.logs.len()
            && logs.iter().map(|log| &log.path).collect::<HashSet<_>>().len() == logs.len()
            && logs.iter().all(|log| self.counts(log).is_some())
    }

    /// Returns the counts of this version of a log.
    fn counts(&self, log: &LogFile) -> Option<&LogCounts> {
        let (version, counts) = self.logs.get(log.path.to_str()?)?;
        (LogVersion::of(log).as_ref() == Some(version)).then_some(counts)
    }
}
