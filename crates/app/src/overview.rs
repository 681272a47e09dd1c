//! The overview: activity and cost over all sessions.
//!
//! [`App::overview_facts`] reads every log once and merges what it found into [`OverviewFacts`], from which
//! the figures of any period and the records behind them follow. Facts are cached in two files, which can be
//! deleted at any time: the merged facts, used if no log has changed, and those of each log, so that only
//! changed logs are read again. As in `figures`, a file is used only for logs that are certainly unchanged.

mod facts;
mod figures;
mod local_time;
mod merge;
mod palette;
mod period;
mod project;
mod reader;
mod records;

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use parking_lot::Mutex;
use rayon::prelude::*;
use threadline_session::{ActivityScan, LogActivity};
use threadline_store::{LogFile, SessionFile, SessionLogs, preview_all};
use threadline_usage::{CallLedger, ScanOptions, ScannedLog};

pub use self::facts::OverviewFacts;
use self::merge::MergedLog;
pub use self::palette::{PaletteKind, PaletteMatch};
pub use self::period::OverviewRange;
pub use self::reader::{OverviewReader, ReadOverview};
pub use self::records::{RecordFilter, RecordKind, RecordRow, RecordRows};
use crate::cache_file;
use crate::config::App;
use crate::error::AppError;
use crate::figures::LogVersion;
use crate::log_cache::LogCache;
use crate::usage::{LogScanner, ScannerPool, left_out_note, source_of, unreadable};

/// The start of the key of both cache files. It must change when the format or the meaning of a fact does.
const FORMAT: &str = "threadline overview 4";

/// Options of [`App::overview_facts`].
#[derive(Clone, Debug, Default)]
pub struct OverviewOptions {
    /// The cache file; `None` to read everything anew.
    pub cache: Option<PathBuf>,
    /// The build of the program. Facts that another build has cached are not used.
    pub build: String,
}

impl App {
    /// Returns the options of [`App::overview_facts`] with the cache file of these homes.
    pub fn overview_options(&self) -> OverviewOptions {
        let cache = self.figures_dir().map(|dir| dir.join("overview"));
        OverviewOptions { cache, build: self.config().build.clone() }
    }

    /// Collects the facts of all sessions of the homes. `progress` is called once per log that is read.
    ///
    /// # Errors
    ///
    /// If the price list cannot be read. A cache that cannot be read or written is ignored.
    pub fn overview_facts(
        &self,
        options: &OverviewOptions,
        now: SystemTime,
        progress: &(dyn Fn() + Sync),
    ) -> Result<OverviewFacts, AppError> {
        let listing = self.store().session_logs();
        let unread: Vec<String> = listing.errors.iter().map(ToString::to_string).collect();
        self.overview_facts_of(&listing.found, unread, options, now, progress)
    }

    /// Collects the facts of sessions, which must be all those of the homes.
    ///
    /// # Errors
    ///
    /// Those of [`App::overview_facts`].
    pub fn overview_facts_of(
        &self,
        sessions: &[SessionLogs],
        mut unread: Vec<String>,
        options: &OverviewOptions,
        now: SystemTime,
        progress: &(dyn Fn() + Sync),
    ) -> Result<OverviewFacts, AppError> {
        let prices = self.prices()?;
        let logs: Vec<&LogFile> = sessions.iter().flat_map(SessionLogs::logs).collect();
        let key = format!("{FORMAT}\t{}\t{}", options.build, prices.digest());
        let cached = options.cache.as_deref().and_then(|file| read_facts(file, &key, &logs));
        if let Some(facts) = cached {
            return Ok(OverviewFacts { unread, is_cached: true, ..facts });
        }
        let reader = LogsReader::new(options, now);
        let (read, titles) =
            rayon::join(|| reader.read_all(&logs, progress), || read_titles(sessions, &mut unread));
        unread.extend(read.unread);
        let is_complete = unread.is_empty();
        let mut facts = merge::merge(sessions, &titles, read.logs, read.ledger, &prices);
        if let Some(file) = options.cache.as_deref() {
            // The caches only save time, so a full disk is no error.
            let _ = reader.write(file, &logs, &read.kept);
            if is_complete {
                let _ = write_facts(file, &key, &logs, &facts, now);
            }
        }
        unread.sort();
        unread.dedup();
        facts.unread = unread;
        Ok(facts)
    }
}

/// Reads the logs that are not cached.
struct LogsReader {
    key: String,
    cache: LogCache<LogContent>,
    is_caching: bool,
    now: SystemTime,
}

/// The content of all logs.
struct ReadLogs {
    logs: Vec<MergedLog>,
    ledger: CallLedger,
    /// The content to cache of each log that was read.
    kept: HashMap<PathBuf, LogContent>,
    unread: Vec<String>,
}

/// The content of one log.
type LogContent = (ScannedLog, LogActivity);

/// The result of reading one log.
struct ReadLog {
    content: LogContent,
    /// Whether the log was read and may be cached.
    keeps: bool,
    unread: Vec<String>,
}

impl LogsReader {
    fn new(options: &OverviewOptions, now: SystemTime) -> Self {
        let key = format!("{FORMAT} logs\t{}", options.build);
        let cache = options.cache.as_deref().map(|file| LogCache::read(&logs_file(file), &key));
        let cache = cache.unwrap_or_default();
        Self { key, cache, is_caching: options.cache.is_some(), now }
    }

    fn read_all(&self, logs: &[&LogFile], progress: &(dyn Fn() + Sync)) -> ReadLogs {
        let ledger = Mutex::new(CallLedger::default());
        let unread = Mutex::new(Vec::new());
        let kept = Mutex::new(HashMap::new());
        let mut order: Vec<(usize, &LogFile)> = logs.iter().copied().enumerate().collect();
        order.sort_by_key(|(_, log)| std::cmp::Reverse(log.size));
        let read = |scanner: &mut LogScanner, (index, log): (usize, &LogFile)| {
            let read = self.read(log, scanner);
            progress();
            match read {
                Ok(read) => {
                    unread.lock().extend(read.unread);
                    if read.keeps {
                        kept.lock().insert(log.path.clone(), read.content.clone());
                    }
                    let (scanned, activity) = read.content;
                    ledger.lock().add(scanned);
                    Some(MergedLog { index, activity })
                }
                Err(error) => {
                    unread.lock().extend(unreadable(&log.path, &error));
                    None
                }
            }
        };
        let scanners = ScannerPool::default();
        let logs: Vec<MergedLog> = order
            .into_par_iter()
            .with_max_len(1)
            .map(|log| scanners.with(|scanner| read(scanner, log)))
            .flatten()
            .collect();
        let (ledger, kept, unread) = (ledger.into_inner(), kept.into_inner(), unread.into_inner());
        ReadLogs { logs, ledger, kept, unread }
    }

    /// Reads a log, from the cache if it contains this version.
    fn read(&self, log: &LogFile, scanner: &mut LogScanner) -> io::Result<ReadLog> {
        if let Some((scanned, activity)) = self.cache.get(log).cloned() {
            let content = (scanned.with_source(source_of(log)), activity);
            return Ok(ReadLog { content, keeps: false, unread: Vec::new() });
        }
        let mut scan = ActivityScan::default();
        let (scanned, left_out) = scanner.scan_blocks(log, ScanOptions::default(), |block| {
            block.sketches().for_each(|(line, sketch)| scan.line(&line, sketch.as_ref()));
        })?;
        let activity = scan.finish();
        let is_settled = || LogVersion::of(log).is_some_and(|version| version.is_settled(self.now));
        // Lines that were skipped are reported every time.
        let keeps = self.is_caching && left_out.is_empty() && is_settled();
        let unread = left_out.iter().map(|line| left_out_note(&log.path, line)).collect();
        Ok(ReadLog { content: (scanned, activity), keeps, unread })
    }

    /// Writes the cache of logs, if some were read.
    fn write(&self, file: &Path, logs: &[&LogFile], read: &HashMap<PathBuf, LogContent>) -> io::Result<()> {
        if read.is_empty() {
            return Ok(());
        }
        let content = |log: &LogFile| read.get(&log.path).or_else(|| self.cache.get(log));
        let kept = logs.iter().filter_map(|log| Some((*log, content(log)?)));
        LogCache::write(&logs_file(file), &self.key, kept)
    }
}

/// Writes the merged facts, if every log may be cached.
fn write_facts(
    file: &Path,
    key: &str,
    logs: &[&LogFile],
    facts: &OverviewFacts,
    now: SystemTime,
) -> io::Result<()> {
    match versions(logs) {
        Some(versions) if versions.values().all(|version| version.is_settled(now)) => {
            cache_file::write(file, key, &(versions, facts))
        }
        _ => Ok(()),
    }
}

/// Reads the merged facts. Returns `None` if they are not cached, or were merged from other logs.
fn read_facts(file: &Path, key: &str, logs: &[&LogFile]) -> Option<OverviewFacts> {
    let (read, facts): (HashMap<String, LogVersion>, OverviewFacts) = cache_file::read(file, key)?;
    (read.len() == logs.len() && versions(logs)? == read).then_some(facts)
}

/// Returns the versions of logs by path. Returns `None` if the system does not record when one was changed.
fn versions(logs: &[&LogFile]) -> Option<HashMap<String, LogVersion>> {
    logs.iter().map(|log| Some((log.path.to_str()?.to_owned(), LogVersion::of(log)?))).collect()
}

fn logs_file(cache: &Path) -> PathBuf {
    cache.with_extension("logs")
}

/// The facts from the head and the tail of a session's own log.
struct SessionTitle {
    title: Option<String>,
    cwd: Option<String>,
    branch: Option<String>,
    started: Option<i64>,
    last_active: i64,
}

/// Reads the heads and tails of the sessions' own logs.
fn read_titles(sessions: &[SessionLogs], unread: &mut Vec<String>) -> Vec<Option<SessionTitle>> {
    let own: Vec<(usize, SessionFile)> = sessions
        .iter()
        .enumerate()
        .filter_map(|(place, session)| {
            let own = session.own.as_ref()?;
            Some((place, SessionFile { path: own.path.clone(), ..session.file.clone() }))
        })
        .collect();
    let files: Vec<SessionFile> = own.iter().map(|(_, file)| file.clone()).collect();
    let mut titles: Vec<Option<SessionTitle>> = sessions.iter().map(|_| None).collect();
    for ((place, _), preview) in own.iter().zip(preview_all(&files)) {
        match preview {
            Ok(preview) => {
                titles[*place] = Some(SessionTitle {
                    title: preview.title().filter(|_| preview.is_listed()),
                    cwd: preview.cwd.clone(),
                    branch: preview.git_branch.clone(),
                    started: preview.started,
                    last_active: crate::time::millis(preview.last_active),
                });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => unread.push(error.to_string()),
        }
    }
    titles
}
