//! Turns, errors, tokens and costs of all sessions, counted in one call, for `threadline list`.
//!
//! Counting reads every log. The result is cached in one file, and the calls of each log in another one for
//! the next time that some logs have changed: see `call_cache`. Both can be deleted at any time. The web
//! server counts in the background instead, and caches in memory: see `counter`.
//!
//! The cache is used only for logs that are certainly unchanged: same path, size, modification time, identity
//! and, above all, same time of the last change of the inode, which no program can set. A log that changed
//! less than [`SETTLING`] before it was counted is not cached, since a later change might get the same times.
//! On systems without such a time nothing is cached.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use threadline_store::{LogFile, SessionLogs, SessionPreview, read_text_file, replace_own_file};
use threadline_usage::{CallLedger, Money, PriceBook, ScanOptions, TokenCounts, UsageTotals};
use threadline_view::{LogCounts, LogTally, SessionCardFigures};

use crate::call_cache::CallCache;
use crate::config::App;
use crate::counter::{LogFigures, figures_by_session, read_figures, tallies_by_session};
use crate::error::AppError;
use crate::usage::{LogScanner, left_out_note, unreadable};

/// A log must be unchanged for this long before its figures are cached.
const SETTLING: Duration = Duration::from_secs(2);

/// The start of the first line of the cache file. It must change when the format or the meaning of a figure
/// does.
const FORMAT: &str = "threadline figures 5";

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
        let cached = options.cache.as_deref().and_then(|file| FigureCache::read(file, &key));
        let cached = cached.unwrap_or_default();
        if cached.covers(&logs) {
            let by_session = cached.sessions;
            return Ok(CountedFigures { by_session, is_cached: true, ..CountedFigures::default() });
        }
        let calls_file = options.cache.as_deref().map(|file| file.with_extension("calls"));
        let call_key = format!("{FORMAT}\t{}", options.build);
        let calls = calls_file.as_deref().and_then(|file| CallCache::read(file, &call_key));
        let calls = calls.unwrap_or_default();
        let keeps = |log: &LogFile| {
            let version = LogVersion::of(log).filter(|_| options.cache.is_some());
            version.is_some_and(|version| version.is_settled(now))
        };
        let reads_previews = !options.has_cache();
        let known = KnownLogs { figures: &cached, calls: &calls, keeps: &keeps, reads_previews };
        let counted = count(sessions, &logs, &known, &prices, zone, progress);
        if let Some(file) = options.cache.as_deref().filter(|_| counted.unread.is_empty()) {
            // The cache only saves time, so a full disk is no error.
            let _ = write_cache(file, &key, &counted, &logs, now);
        }
        if let Some(file) = calls_file.filter(|_| counted.calls.iter().any(Option::is_some)) {
            let bytes = logs.iter().zip(&counted.calls);
            let kept =
                bytes.filter_map(|(log, bytes)| Some((*log, bytes.as_deref().or_else(|| calls.bytes(log))?)));
            let _ = CallCache::write(&file, &call_key, kept);
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
    calls: Vec<Option<Vec<u8>>>,
    unread: Vec<String>,
    /// The preview of each session.
    previews: Vec<Option<SessionPreview>>,
}

/// The caches.
struct KnownLogs<'a> {
    figures: &'a FigureCache,
    calls: &'a CallCache,
    /// Whether the calls of a log will be cached.
    keeps: &'a (dyn Fn(&LogFile) -> bool + Sync),
    /// Whether the previews of sessions are read, too.
    reads_previews: bool,
}

/// The result of reading a log.
struct ReadLog {
    figures: LogFigures,
    /// The bytes to cache.
    bytes: Option<Vec<u8>>,
    /// The preview of the session with this log, if the bytes at both ends were sufficient.
    preview: Option<SessionPreview>,
}

impl KnownLogs<'_> {
    /// Returns the figures of a log. Reads what is not cached.
    fn read(&self, log: &LogFile, scanner: &mut LogScanner) -> io::Result<ReadLog> {
        let options = ScanOptions { tools: true, ..ScanOptions::default() };
        let counts = self.figures.counts(log);
        if let Some((counts, scanned)) = counts.zip(self.calls.get(log)) {
            let figures = LogFigures { scanned, counts: counts.clone(), left_out: Vec::new() };
            return Ok(ReadLog { figures, bytes: None, preview: None });
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
        let bytes = keeps.then(|| {
            let mut bytes = Vec::new();
            figures.scanned.write(&mut bytes);
            bytes
        });
        Ok(ReadLog { figures, bytes, preview })
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
            Ok(ReadLog { figures: LogFigures { scanned, counts, left_out }, bytes, preview }) => {
                ledger.lock().add(scanned);
                unread.lock().extend(left_out.iter().map(|line| left_out_note(&log.path, line)));
                (Some(counts), bytes, preview)
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
    let (mut counts, mut bytes, mut previews) = (Vec::new(), Vec::new(), Vec::new());
    for (_, (log_counts, log_bytes, preview)) in read {
        counts.push(log_counts);
        bytes.push(log_bytes);
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
    Counted { by_session, previews, counts, calls: bytes, unread }
}

/// The version of a log. Two versions of a path are equal only if their content is.
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// Returns the version as fields separated by tabs.
    pub(crate) fn fields(&self) -> String {
        let Self { size, modified, changed, volume, index } = self;
        format!("{size}\t{modified}\t{changed}\t{volume}\t{index}")
    }

    /// Parses these fields.
    pub(crate) fn parse(fields: &[&str]) -> Option<Self> {
        let [size, modified, changed, volume, index] = fields else { return None };
        Some(Self {
            size: size.parse().ok()?,
            modified: modified.parse().ok()?,
            changed: changed.parse().ok()?,
            volume: volume.parse().ok()?,
            index: index.parse().ok()?,
        })
    }

    /// Returns whether the log has not changed for a while.
    pub(crate) fn is_settled(&self, now: SystemTime) -> bool {
        let limit = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(SETTLING).as_nanos();
        self.modified < limit && u128::try_from(self.changed).is_ok_and(|changed| changed < limit)
    }
}

/// The content of a cache file.
#[derive(Debug, Default)]
struct FigureCache {
    logs: HashMap<PathBuf, (LogVersion, LogCounts)>,
    sessions: HashMap<String, Arc<SessionCardFigures>>,
    /// Whether `logs` contains every log that the sessions were counted from.
    is_complete: bool,
}

impl FigureCache {
    /// Returns whether the sessions were counted from exactly these logs.
    fn covers(&self, logs: &[&LogFile]) -> bool {
        self.is_complete
            && logs.len() == self.logs.len()
            && logs.iter().map(|log| &log.path).collect::<HashSet<_>>().len() == logs.len()
            && logs.iter().all(|log| self.counts(log).is_some())
    }

    /// Returns the counts of this version of a log.
    fn counts(&self, log: &LogFile) -> Option<&LogCounts> {
        let (version, counts) = self.logs.get(&log.path)?;
        (LogVersion::of(log).as_ref() == Some(version)).then_some(counts)
    }

    /// Reads a cache file. Returns `None` if it does not exist, has another `key`, or is damaged.
    fn read(file: &Path, key: &str) -> Option<Self> {
        let text = read_text_file(file).ok()?;
        let mut lines = text.lines();
        if lines.next()? != key {
            return None;
        }
        let mut cache = Self::default();
        let mut ended = false;
        for line in lines {
            let fields: Vec<&str> = line.split('\t').collect();
            match fields[..] {
                ["log", path, ref version @ .., turns, errors, inside, unbilled] => {
                    let version = LogVersion::parse(version)?;
                    let agent_errors: BTreeMap<String, u64> = read_pairs(inside)?.into_iter().collect();
                    let tally = LogTally {
                        turns: turns.parse().ok()?,
                        errors: errors.parse().ok()?,
                        agents: agent_errors.len() as u64,
                    };
                    let unbilled_tools = read_pairs(unbilled)?.into_iter().collect();
                    let counts = LogCounts { tally, agent_errors, unbilled_tools };
                    cache.logs.insert(PathBuf::from(unescape(path)), (version, counts));
                }
                ["session", id, ref figures @ ..] => {
                    cache.sessions.insert(unescape(id), Arc::new(parse_figures(figures)?));
                }
                ["end", complete] => {
                    cache.is_complete = complete == "complete";
                    ended = true;
                }
                _ => return None,
            }
        }
        ended.then_some(cache)
    }
}

/// Writes a cache file. Another process may write it at the same time; the last one wins.
fn write_cache(
    file: &Path,
    key: &str,
    counted: &Counted,
    logs: &[&LogFile],
    now: SystemTime,
) -> io::Result<()> {
    let mut out = format!("{key}\n");
    let mut is_complete = true;
    for (log, counts) in logs.iter().zip(&counted.counts) {
        let version = LogVersion::of(log).filter(|version| version.is_settled(now));
        let (Some(version), Some(counts), Some(path)) = (version, counts, log.path.to_str()) else {
            is_complete = false;
            continue;
        };
        let version = version.fields();
        let LogTally { turns, errors, .. } = counts.tally;
        let (path, inside) = (escape(path), write_pairs(&counts.agent_errors));
        let unbilled = write_pairs(&counts.unbilled_tools);
        let _ = writeln!(out, "log\t{path}\t{version}\t{turns}\t{errors}\t{inside}\t{unbilled}");
    }
    if is_complete {
        for (id, figures) in &counted.by_session {
            let _ = writeln!(out, "session\t{}\t{}", escape(id), write_figures(figures));
        }
    }
    out.push_str(if is_complete { "end\tcomplete\n" } else { "end\tpartial\n" });
    replace_own_file(file, out.as_bytes())
}

fn write_figures(figures: &SessionCardFigures) -> String {
    let SessionCardFigures { tally, totals, inherited_calls, models, tools } = figures;
    let TokenCounts { input, output, cache_read, cache_write_5m, cache_write_1h } = totals.tokens;
    let list = |names: &mut dyn Iterator<Item = String>| names.collect::<Vec<_>>().join(",");
    let numbers = [
        tally.turns,
        tally.errors,
        tally.agents,
        totals.calls,
        input,
        output,
        cache_read,
        cache_write_5m,
        cache_write_1h,
        totals.web_searches,
        totals.unpriced_calls,
        totals.under_reported,
        totals.unlogged_compactions,
        totals.tool_calls,
        *inherited_calls,
    ];
    [
        list(&mut numbers.iter().map(u64::to_string)),
        totals.cost.steps().to_string(),
        list(&mut totals.unpriced.iter().map(|name| escape(name))),
        list(&mut models.iter().map(|name| escape(name))),
        write_pairs(tools.iter().map(|(name, count)| (name, count))),
    ]
    .join("\t")
}

fn parse_figures(fields: &[&str]) -> Option<SessionCardFigures> {
    let [numbers, cost, unpriced, models, tools] = fields else { return None };
    let numbers: Vec<u64> = numbers.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let [turns, errors, agents, calls, input, output, cache_read, cache_write_5m, cache_write_1h, rest @ ..] =
        &numbers[..]
    else {
        return None;
    };
    let [web_searches, unpriced_calls, under_reported, unlogged_compactions, tool_calls, inherited_calls] =
        *rest
    else {
        return None;
    };
    let names = |text: &&str| -> Vec<String> {
        text.split(',').filter(|name| !name.is_empty()).map(unescape).collect()
    };
    Some(SessionCardFigures {
        tally: LogTally { turns: *turns, errors: *errors, agents: *agents },
        totals: UsageTotals {
            calls: *calls,
            tokens: TokenCounts {
                input: *input,
                output: *output,
                cache_read: *cache_read,
                cache_write_5m: *cache_write_5m,
                cache_write_1h: *cache_write_1h,
            },
            web_searches,
            cost: Money::from_steps(cost.parse().ok()?),
            unpriced: names(unpriced).into_iter().collect(),
            unpriced_calls,
            under_reported,
            unlogged_compactions,
            tool_calls,
        },
        inherited_calls,
        models: names(models),
        tools: read_pairs(tools)?,
    })
}

/// Writes names with numbers.
fn write_pairs<'p>(pairs: impl IntoIterator<Item = (&'p String, &'p u64)>) -> String {
    pairs.into_iter().map(|(name, count)| format!("{}={count}", escape(name))).collect::<Vec<_>>().join(",")
}

fn read_pairs(text: &str) -> Option<Vec<(String, u64)>> {
    let pair = |text: &str| {
        let (name, count) = text.rsplit_once('=')?;
        Some((unescape(name), count.parse().ok()?))
    };
    text.split(',').filter(|text| !text.is_empty()).map(pair).collect()
}

/// The characters that separate fields and lines of the cache.
const SEPARATORS: &AsciiSet = &CONTROLS.add(b'%').add(b',').add(b'=');

/// Percent-encodes the characters that separate fields and lines.
pub(crate) fn escape(text: &str) -> String {
    utf8_percent_encode(text, SEPARATORS).to_string()
}

pub(crate) fn unescape(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_survive_the_cache() {
        let figures = SessionCardFigures {
            tally: LogTally { turns: 3, errors: 1, agents: 2 },
            totals: UsageTotals {
                calls: 4,
                tokens: TokenCounts {
                    input: 1,
                    output: 2,
                    cache_read: 3,
                    cache_write_5m: 4,
                    cache_write_1h: 5,
                },
                web_searches: 6,
                cost: Money::from_steps(123_456_789_012_345_678_901),
                unpriced: ["a,b", "c%2c"].map(str::to_owned).into(),
                unpriced_calls: 7,
                under_reported: 8,
                unlogged_compactions: 10,
                tool_calls: 9,
            },
            inherited_calls: 11,
            models: vec!["claude-opus-4".to_owned(), "odd\tname\n".to_owned()],
            tools: vec![("Bash".to_owned(), 12), ("a=b,c".to_owned(), 1)],
        };
        let line = write_figures(&figures);
        assert!(!line.contains('\n'));
        assert_eq!(parse_figures(&line.split('\t').collect::<Vec<_>>()), Some(figures));
        let empty = SessionCardFigures::default();
        assert_eq!(parse_figures(&write_figures(&empty).split('\t').collect::<Vec<_>>()), Some(empty));
        for text in ["", "%", "%zz", "a%2", "é%é", "100%, \t=\r\n"] {
            assert_eq!(unescape(&escape(text)), text);
        }
    }
}
