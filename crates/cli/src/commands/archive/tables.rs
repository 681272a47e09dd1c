//! `archive tables`: usage, messages, tool calls and turns as Parquet tables.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use threadline_app::time::TimeRange;
use threadline_archive::{Archive, ArchiveLocation, ObjectFolder, OriginFilter};
use threadline_tables::{SessionOrigin, TablesError, TablesOptions, write_tables};
use threadline_view::humanize::{bytes, count, plural};
use threadline_view::wire::ArchiveTablesObject;

use super::push::{LevelName, level};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::{env, machine};

/// Write usage, messages, tool calls and turns as Parquet tables, one file per day
///
/// For DuckDB, ClickHouse, Spark and other programs; docs/tables.md lists the columns. Days are in UTC. Files
/// are replaced as a whole, so it can be run again at any time. With --from, the sessions of an archive are
/// read, and files of days without rows are deleted.
#[derive(Debug, clap::Args)]
pub(crate) struct TablesArgs {
    /// Address of the tables: file:DIRECTORY, s3://BUCKET/PREFIX, gs:// or az://
    #[arg(long, value_name = "URL")]
    to: String,

    /// Only days from this one on: 2026-11-01, 2026-11, `today`, `yesterday`, a duration such as `7d`, `2w`,
    /// or `all`
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,

    /// Only days until this one, inclusive
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,

    /// How much is written; the default is `full` for file: and must be given for other addresses
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelName>,
}

pub(crate) fn run(cx: &Context, args: &TablesArgs) -> Result<CommandOutcome, CommandError> {
    let location: ArchiveLocation = args.to.parse()?;
    let level = level(cx, args.level, &location)?;
    let now = Timestamp::now().to_zoned(TimeZone::UTC);
    let range = TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &now)?;
    let mut origins = HashMap::new();
    let mut origin = None;
    let source = match &cx.source.from {
        Some(from) => {
            let filter = OriginFilter { machine: cx.source.machine.clone(), user: cx.source.user.clone() };
            let archive = Archive::open_with_key(&from.parse()?, &env::storage_options(), cx.archive_key()?)?;
            // The last modified one comes first, and is the one that is read.
            for session in archive.sessions(&filter)? {
                let own = SessionOrigin { machine: session.origin.machine, user: session.origin.user };
                origins.entry(session.id).or_insert(own);
            }
            let part = |name: &str, value: &Option<String>| match value {
                Some(value) => format!(", {name} {value}"),
                None => String::new(),
            };
            format!("{from}{}{}", part("machine", &filter.machine), part("user", &filter.user))
        }
        None => {
            let homes: Vec<_> = cx.store().homes().iter().map(|home| home.root()).collect();
            let first = homes.first().copied().unwrap_or(std::path::Path::new(""));
            let own = machine::origin(cx.app.state_dir()?, first)?;
            origin = Some(SessionOrigin { machine: own.machine, user: own.user });
            let homes: Vec<_> = homes.iter().map(|home| home.to_string_lossy()).collect();
            format!("machine {}, {}", own.machine_id, homes.join(" "))
        }
    };
    let target = ObjectFolder::create(&location, &env::storage_options())?;
    let rules = cx.secret_rules()?;
    let is_complete = cx.source.from.is_some();
    let options = TablesOptions { range, level, rules: &rules, source, is_complete, origins, origin };
    let progress = cx.ui.progress("sessions", cx.store().session_logs().found.len());
    let report = write_tables(&cx.app, &target, &options, &|| progress.step())?;
    drop(progress);
    let outcome = if report.unread.is_empty() { CommandOutcome::Done } else { CommandOutcome::Partial };
    for message in &report.unread {
        cx.ui.warn(message);
    }
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&ArchiveTablesObject {
            location: &location.to_string(),
            level: level.name(),
            rows: &report.rows,
            written_files: report.written,
            deleted_files: report.deleted,
            bytes: report.bytes,
        })?;
    } else {
        for (name, rows) in &report.rows {
            writeln!(answer, "{:>12}  {name}", count(*rows))?;
        }
        let (files, size) = (plural(report.written as u64, "file"), bytes(report.bytes));
        let deleted = match report.deleted {
            0 => String::new(),
            deleted => format!(", {} deleted", plural(deleted as u64, "file")),
        };
        writeln!(answer, "{location}: {files} written ({size}){deleted}")?;
    }
    answer.finish()?;
    Ok(outcome)
}

impl From<TablesError> for CommandError {
    fn from(error: TablesError) -> Self {
        match error {
            TablesError::Storage(error) => error.into(),
            TablesError::App(error) => error.into(),
            TablesError::OtherTables { .. } => {
                Self::new(error.to_string()).hint("use another address, or delete the tables there")
            }
            error => Self::new(error.to_string()),
        }
    }
}
