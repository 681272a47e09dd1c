//! Writes the tables of all sessions to a folder or to object storage.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rayon::prelude::*;
use threadline_app::time::{TimeRange, millis};
use threadline_app::{App, AppConfig, AppError};
use threadline_archive::{ArchiveError, ObjectFolder, PrivacyLevel, copy_reduced_home};
use threadline_entry::Millis;
use threadline_secret::Rules;
use threadline_store::SessionLogs;
use threadline_usage::{CompactionFigures, ModelCall, ScanOptions};

use crate::partition::PartitionFile;
use crate::rows::{DatedRow, session_rows, usage_row};
use crate::schema::TableKind;

/// Options of [`write_tables`].
pub struct TablesOptions<'a> {
    /// The days to write. Days that it contains in part are written as a whole.
    pub range: TimeRange,
    /// How much is written.
    pub level: PrivacyLevel,
    /// The secrets to replace at [`PrivacyLevel::Redacted`].
    pub rules: &'a Rules,
    /// Describes the sessions that are read. A folder contains tables of one source only.
    pub source: String,
    /// Whether the source has all sessions, so that days without rows are deleted.
    pub is_complete: bool,
    /// The machine and the user of sessions, by id.
    pub origins: HashMap<String, SessionOrigin>,
    /// The machine and the user of all other sessions.
    pub origin: Option<SessionOrigin>,
}

/// The machine and the user of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOrigin {
    /// The name of the machine.
    pub machine: String,
    /// The name of the user.
    pub user: String,
}

/// The result of [`write_tables`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TablesReport {
    /// The number of rows of each table, by its name.
    pub rows: BTreeMap<&'static str, u64>,
    /// The number of files that were written.
    pub written: usize,
    /// The number of files that were deleted, because their day has no rows.
    pub deleted: usize,
    /// The size of the written files in bytes.
    pub bytes: u64,
    /// Messages about sessions that could not be read.
    pub unread: Vec<String>,
}

/// An error of [`write_tables`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TablesError {
    /// The target contains tables of another source or level.
    #[error("the target contains other tables: {found}; these would be: {wanted}")]
    OtherTables {
        /// Describes the tables in the target.
        found: String,
        /// Describes the tables to write.
        wanted: String,
    },
    /// The target cannot be read or written.
    #[error(transparent)]
    Storage(#[from] ArchiveError),
    /// The price list cannot be read.
    #[error(transparent)]
    App(#[from] AppError),
    /// A Parquet file cannot be written.
    #[error("cannot write a Parquet file: {0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// A temporary file cannot be written; the message contains the path.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// The object that describes the tables in a target.
const DESCRIPTION: &str = "_threadline_tables";

/// The name of the file of a day.
const FILE: &str = "data.parquet";

/// The value of rows without a time, by the convention of Hive.
const NO_DAY: &str = "__HIVE_DEFAULT_PARTITION__";

/// The number of sessions that are in memory at the same time.
const SESSIONS_AT_ONCE: usize = 8;

/// The size of the rows in memory, in bytes.
const MAX_BUFFERED: usize = 64 << 20;

/// Writes the tables of all sessions. `progress` is called once per session.
///
/// # Errors
///
/// If the target contains other tables, or cannot be written. Files that were written before stay. Sessions
/// that cannot be read are reported.
pub fn write_tables(
    app: &App,
    target: &ObjectFolder,
    options: &TablesOptions<'_>,
    progress: &(dyn Fn() + Sync),
) -> Result<TablesReport, TablesError> {
    check_description(target, options)?;
    let work = tempfile::tempdir()?;
    let reduced;
    let app = match options.level {
        PrivacyLevel::Full => app,
        level => {
            let homes = app.store().homes().iter().filter(|home| home.root().is_dir());
            let mut roots = Vec::new();
            for (home, number) in homes.zip(0..) {
                let root = work.path().join(format!("home{number}"));
                copy_reduced_home(app.store(), home, level, options.rules, &root)?;
                roots.push(root);
            }
            reduced = App::new(AppConfig { homes: roots, ..app.config().clone() });
            &reduced
        }
    };
    let mut files =
        PartitionFiles { folder: work.path(), range: whole_days(options.range), files: BTreeMap::new() };
    let mut report = TablesReport::default();
    add_usage(app, options, &mut files, &mut report)?;
    add_sessions(app, options, &mut files, &mut report, progress)?;
    files.store(target, options, &mut report)?;
    Ok(report)
}

/// Compares the description of the target with that of the tables to write, and creates it.
fn check_description(target: &ObjectFolder, options: &TablesOptions<'_>) -> Result<(), TablesError> {
    let wanted = format!("{}, level {}, format 1", options.source, options.level);
    match target.read(DESCRIPTION)? {
        Some(found) if found != wanted.as_bytes() => {
            Err(TablesError::OtherTables { found: String::from_utf8_lossy(&found).into_owned(), wanted })
        }
        Some(_) => Ok(()),
        None => Ok(target.replace(DESCRIPTION, wanted.into_bytes())?),
    }
}

fn add_usage(
    app: &App,
    options: &TablesOptions<'_>,
    files: &mut PartitionFiles<'_>,
    report: &mut TablesReport,
) -> Result<(), TablesError> {
    let logs = app.usage_logs(&[])?.logs;
    let read = logs.read(ScanOptions::default(), &|| ());
    report.unread.extend(read.unread.iter().map(ToString::to_string));
    let book = app.prices()?;
    let mut calls: Vec<ModelCall<'_>> = read.calls.iter().collect();
    // The order of calls is not specified; files of the same calls are the same.
    calls.sort_by(|a, b| {
        let key = |call: &ModelCall<'_>| {
            let tokens = call.tokens;
            (
                call.at,
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write_5m,
                tokens.cache_write_1h,
            )
        };
        (key(a), a.session, a.model).cmp(&(key(b), b.session, b.model))
    });
    // The call of a compaction may be unknown, or in another row.
    let has_figures =
        |call: &&ModelCall<'_>| call.compaction.is_none_or(|figures| figures == CompactionFigures::Totals);
    for call in calls.iter().filter(has_figures) {
        let origin = options.origins.get(call.session).or(options.origin.as_ref());
        files.push(usage_row(call, &book, origin, options.level))?;
    }
    Ok(())
}

fn add_sessions(
    app: &App,
    options: &TablesOptions<'_>,
    files: &mut PartitionFiles<'_>,
    report: &mut TablesReport,
    progress: &(dyn Fn() + Sync),
) -> Result<(), TablesError> {
    let listing = app.store().session_logs();
    report.unread.extend(listing.errors.iter().map(ToString::to_string));
    let from = files.range.from;
    // A session of several machines is read once, from the log that was written last.
    let mut sessions: BTreeMap<String, SessionLogs> = BTreeMap::new();
    for logs in listing.found.into_iter().filter(|logs| logs.own.is_some()) {
        let id = logs.file.id.to_string();
        if sessions.get(&id).is_none_or(|known| known.modified() < logs.modified()) {
            sessions.insert(id, logs);
        }
    }
    // No line is newer than its file.
    let is_in_range =
        |logs: &&SessionLogs| from.is_none_or(|from| logs.logs().any(|log| millis(log.modified) >= from));
    let sessions: Vec<&SessionLogs> = sessions.values().filter(is_in_range).collect();
    for some in sessions.chunks(SESSIONS_AT_ONCE) {
        let read = |logs: &&SessionLogs| {
            let loaded = app.load(&logs.file);
            progress();
            loaded.map(|loaded| (session_rows(&loaded, options.level), loaded.unread))
        };
        for loaded in some.par_iter().with_max_len(1).map(read).collect::<Vec<_>>() {
            match loaded {
                Ok((rows, unread)) => {
                    report.unread.extend(unread.iter().map(ToString::to_string));
                    rows.into_iter().try_for_each(|row| files.push(row))?;
                }
                Err(error) => report.unread.push(error.to_string()),
            }
        }
    }
    Ok(())
}

/// Extends a range to whole days.
fn whole_days(range: TimeRange) -> TimeRange {
    const DAY: Millis = 24 * 60 * 60 * 1000;
    TimeRange {
        from: range.from.map(|from| from.div_euclid(DAY) * DAY),
        to: range.to.map(|to| (to + DAY - 1).div_euclid(DAY) * DAY),
    }
}

/// Returns the day of a time, in UTC.
fn day(at: Option<Millis>) -> String {
    let day = at.and_then(|at| Timestamp::from_millisecond(at).ok());
    day.map_or_else(|| NO_DAY.to_owned(), |at| at.to_zoned(TimeZone::UTC).date().to_string())
}

/// The files of all tables and days, which are written to a temporary folder first.
struct PartitionFiles<'a> {
    folder: &'a Path,
    range: TimeRange,
    files: BTreeMap<(TableKind, String), PartitionFile>,
}

impl PartitionFiles<'_> {
    fn push(&mut self, row: DatedRow) -> Result<(), TablesError> {
        if !self.range.contains(row.at) {
            return Ok(());
        }
        let key = (row.table, day(row.at));
        if !self.files.contains_key(&key) {
            let path = self.folder.join(format!("{}-{}", key.0.name(), key.1));
            self.files.insert(key.clone(), PartitionFile::create(row.table, &path)?);
        }
        if let Some(file) = self.files.get_mut(&key) {
            file.push(row.cells);
        }
        if self.files.values().map(|file| file.buffered).sum::<usize>() > MAX_BUFFERED
            && let Some(largest) = self.files.values_mut().max_by_key(|file| file.buffered)
        {
            largest.flush()?;
        }
        Ok(())
    }

    /// Replaces the files of the target, and deletes those of days without rows.
    fn store(
        self,
        target: &ObjectFolder,
        options: &TablesOptions<'_>,
        report: &mut TablesReport,
    ) -> Result<(), TablesError> {
        let mut stale: Vec<String> = Vec::new();
        if options.is_complete {
            for table in TableKind::ALL {
                stale.extend(target.list(table.name())?);
            }
        }
        let range = self.range;
        for ((table, day), file) in self.files {
            *report.rows.entry(table.name()).or_default() += file.n_rows;
            let path = file.finish()?;
            let bytes = fs_err::read(&path)?;
            fs_err::remove_file(&path)?;
            report.bytes += bytes.len() as u64;
            let name = format!("{}/day={day}/{FILE}", table.name());
            stale.retain(|stale| *stale != name);
            target.replace(&name, bytes)?;
            report.written += 1;
        }
        for name in stale {
            if stale_day(&name).is_some_and(|day| range.contains(day)) {
                target.delete(&name)?;
                report.deleted += 1;
            }
        }
        Ok(())
    }
}

/// Returns the start of the day in the name of a file that this module wrote; `Some(None)` if it is that of
/// rows without a time.
fn stale_day(name: &str) -> Option<Option<Millis>> {
    let (_, rest) = name.split_once("/day=")?;
    let day = rest.strip_suffix(FILE)?.strip_suffix('/')?;
    if day == NO_DAY {
        return Some(None);
    }
    let day: jiff::civil::Date = day.parse().ok()?;
    let start = day.to_zoned(TimeZone::UTC).ok()?;
    Some(Some(start.timestamp().as_millisecond()))
}
