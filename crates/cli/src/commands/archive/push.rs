//! `archive push`: copies new content to an archive.

use std::time::{Duration, SystemTime};

use threadline_archive::{Archive, ArchiveLocation, PrivacyLevel, PushOptions, PushReport};
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::ArchivePushObject;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::{env, machine};

/// Copy what is new in every session
///
/// Only new bytes are copied. It can be interrupted at any time: the next run continues. Sessions that Claude
/// Code is writing are copied as far as they are written.
#[derive(Debug, clap::Args)]
pub(crate) struct PushArgs {
    /// Address of the archive: file:DIRECTORY, s3://BUCKET/PREFIX, gs://, az:// or
    /// postgres://USER@HOST/DATABASE
    ///
    /// The default is a folder in threadline's state folder. Credentials are read from the environment
    /// variables of the vendor, such as AWS_ACCESS_KEY_ID or PGPASSWORD, and never stored.
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// How much is copied; the default is `full` for file: and must be given for other archives
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelName>,

    /// Repeat every few seconds until interrupted
    #[arg(long)]
    watch: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum LevelName {
    /// Times, models, tokens and names of tools, without any text
    Metadata,
    /// Everything, with secrets replaced as `edit redact` does
    Redacted,
    /// Every byte
    Full,
}

impl From<LevelName> for PrivacyLevel {
    fn from(name: LevelName) -> Self {
        match name {
            LevelName::Metadata => Self::Metadata,
            LevelName::Redacted => Self::Redacted,
            LevelName::Full => Self::Full,
        }
    }
}

/// The pause between two copies of `--watch`.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) fn run(cx: &Context, args: &PushArgs) -> Result<CommandOutcome, CommandError> {
    let location = super::location(cx, args.to.as_deref())?;
    let level = level(cx, args.level, &location)?;
    let archive = Archive::create_with_key(&location, &env::storage_options(), cx.archive_key()?)?;
    loop {
        let report = push(cx, &archive, level)?;
        let has_news = report.copied_bytes > 0 || !report.unread.is_empty();
        if has_news || !args.watch {
            print(cx, &archive, &report)?;
        }
        if !args.watch {
            let is_partial = !report.unread.is_empty();
            return Ok(if is_partial { CommandOutcome::Partial } else { CommandOutcome::Done });
        }
        std::thread::sleep(WATCH_INTERVAL);
    }
}

/// Returns the privacy level for copies at an address.
pub(super) fn level(
    cx: &Context,
    given: Option<LevelName>,
    location: &ArchiveLocation,
) -> Result<PrivacyLevel, CommandError> {
    match given {
        Some(name) => Ok(name.into()),
        None if cx.app.config().mask.is_on() => Ok(PrivacyLevel::Redacted),
        None if location.is_local() => Ok(PrivacyLevel::Full),
        None => Err(CommandError::new("copies on another machine need a privacy level")
            .hint("add --level metadata, --level redacted or --level full")),
    }
}

fn push(cx: &Context, archive: &Archive, level: PrivacyLevel) -> Result<PushReport, CommandError> {
    let mut all = PushReport::default();
    let rules = cx.secret_rules()?;
    for home in cx.store().homes().iter().filter(|home| home.root().is_dir()) {
        let origin = machine::origin(cx.app.state_dir()?, home.root())?;
        let options = PushOptions { level, rules: &rules, now: SystemTime::now() };
        let progress = cx.ui.byte_progress("read");
        let report = archive.push(cx.store(), home, &origin, &options, &|size| progress.add(size))?;
        all.new_files += report.new_files;
        all.grown_files += report.grown_files;
        all.rewritten_files += report.rewritten_files;
        all.unchanged_files += report.unchanged_files;
        all.copied_bytes += report.copied_bytes;
        all.stored_bytes += report.stored_bytes;
        all.unread.extend(report.unread);
    }
    Ok(all)
}

fn print(cx: &Context, archive: &Archive, report: &PushReport) -> Result<(), CommandError> {
    for message in &report.unread {
        cx.ui.warn(message);
    }
    let mut answer = cx.ui.output();
    let location = archive.location().to_string();
    if cx.json {
        answer.json(&ArchivePushObject {
            location: &location,
            new_files: report.new_files,
            grown_files: report.grown_files,
            rewritten_files: report.rewritten_files,
            unchanged_files: report.unchanged_files,
            copied_bytes: report.copied_bytes,
            stored_bytes: report.stored_bytes,
        })?;
    } else if report.copied_bytes == 0 {
        writeln!(answer, "{location}: nothing new in {}", plural(report.unchanged_files as u64, "file"))?;
    } else {
        let files = plural((report.new_files + report.grown_files + report.rewritten_files) as u64, "file");
        let (copied, stored) = (bytes(report.copied_bytes), bytes(report.stored_bytes));
        let compressed = match report.stored_bytes < report.copied_bytes {
            true => format!(", compressed to {stored}"),
            false => String::new(),
        };
        writeln!(answer, "{location}: {files} copied, {copied}{compressed}")?;
        if report.rewritten_files > 0 {
            let files = plural(report.rewritten_files as u64, "file");
            writeln!(
                answer,
                "{files} had changed in the part that was copied before; both versions are kept"
            )?;
        }
    }
    Ok(answer.finish()?)
}
