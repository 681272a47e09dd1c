//! `archive verify`, `archive rebuild`, `archive gc`, `archive remove` and `archive key`.

use std::path::PathBuf;

use threadline_archive::KeyFile;
use threadline_term::visible;
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::{
    ArchiveGarbageObject, ArchiveKeyObject, ArchiveRebuildObject, ArchiveRemovedObject, ArchiveVerifyObject,
};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Read everything in the archive and compare it with its digests
///
/// Exits with 1 if something is damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {}

/// Rebuild lost or damaged manifests from the segments
///
/// Every segment says which files it contains. Manifests that can be read are not changed. Exits with 1 if
/// something is missing or damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct RebuildArgs {}

/// Create a key file for an encrypted archive
///
/// The file has the format of age (age-encryption.org), and only you can read it. Keep a copy in a safe
/// place: without it, the archive cannot be read. An archive is encrypted if a key is given at the first
/// push.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyArgs {
    /// File to create
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Delete what no archived file uses, and join small segments
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {}

/// Erase a session from the archive, for all machines
///
/// The local session is not touched. It is not copied again.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Session id, or the beginning of it
    #[arg(value_name = "SESSION")]
    session: String,

    /// Erase it without asking
    #[arg(long)]
    apply: bool,
}

pub(crate) fn run_verify(cx: &Context, VerifyArgs {}: &VerifyArgs) -> Result<CommandOutcome, CommandError> {
    let archive = super::open(cx)?;
    let report = archive.verify(&|| ())?;
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&ArchiveVerifyObject {
            segments: report.segments,
            files: report.files,
            bytes: report.bytes,
            damaged: &report.damaged,
        })?;
    } else {
        for damage in &report.damaged {
            writeln!(answer, "{}", visible(damage))?;
        }
        let segments = match report.segments {
            // A database has none.
            0 => String::new(),
            segments => format!("{}, ", plural(segments as u64, "segment")),
        };
        let files = plural(report.files as u64, "file");
        let result = match report.damaged.len() {
            0 => "no damage".to_owned(),
            damaged => format!("{damaged} damaged"),
        };
        writeln!(answer, "{segments}{files}, {}: {result}", bytes(report.bytes))?;
    }
    answer.finish()?;
    Ok(if report.damaged.is_empty() { CommandOutcome::Done } else { CommandOutcome::Negative })
}

pub(crate) fn run_rebuild(
    cx: &Context,
    RebuildArgs {}: &RebuildArgs,
) -> Result<CommandOutcome, CommandError> {
    let report = super::open(cx)?.rebuild()?;
    let is_whole = report.incomplete.is_empty() && report.damaged.is_empty();
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&ArchiveRebuildObject {
            homes: report.homes,
            files: report.files,
            incomplete: &report.incomplete,
            damaged: &report.damaged,
        })?;
    } else {
        for damage in &report.damaged {
            writeln!(answer, "{}", visible(damage))?;
        }
        for name in &report.incomplete {
            writeln!(answer, "{}: only the beginning was found", visible(name))?;
        }
        match report.homes {
            0 => writeln!(answer, "every manifest can be read; nothing to rebuild")?,
            homes => {
                let (homes, files) = (plural(homes as u64, "manifest"), plural(report.files as u64, "file"));
                writeln!(answer, "{homes} rebuilt, {files}")?;
            }
        }
    }
    answer.finish()?;
    Ok(if is_whole { CommandOutcome::Done } else { CommandOutcome::Negative })
}

pub(crate) fn run_key(cx: &Context, args: &KeyArgs) -> Result<CommandOutcome, CommandError> {
    let key = KeyFile::create(&args.file)?;
    let mut answer = cx.ui.output();
    let recipient = key.recipient();
    match cx.json {
        true => answer.json(&ArchiveKeyObject { path: key.path(), recipient: &recipient })?,
        false => writeln!(answer, "{}: {recipient}", key.path().display())?,
    }
    answer.finish()?;
    cx.ui.note("keep a copy in a safe place: without it, nobody can read the archive");
    Ok(CommandOutcome::Done)
}

pub(crate) fn run_gc(cx: &Context, GcArgs {}: &GcArgs) -> Result<CommandOutcome, CommandError> {
    let report = super::open(cx)?.collect_garbage(std::time::SystemTime::now())?;
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&ArchiveGarbageObject {
            deleted_segments: report.deleted,
            deleted_bytes: report.deleted_bytes,
            joined_segments: report.joined,
        })?;
    } else {
        let deleted = plural(report.deleted as u64, "segment");
        let joined = plural(report.joined as u64, "small segment");
        writeln!(answer, "{deleted} deleted ({}), {joined} joined", bytes(report.deleted_bytes))?;
    }
    answer.finish()?;
    Ok(CommandOutcome::Done)
}

pub(crate) fn run_remove(cx: &Context, args: &RemoveArgs) -> Result<CommandOutcome, CommandError> {
    let archive = super::open(cx)?;
    let question = format!("erase {} from {}, for all machines?", args.session, archive.location());
    if !args.apply && !cx.ui.confirm(&question)? {
        cx.ui.note("nothing was erased; --apply erases without asking");
        return Ok(CommandOutcome::Negative);
    }
    let id = archive.remove(&args.session)?;
    let mut answer = cx.ui.output();
    match cx.json {
        true => answer.json(&ArchiveRemovedObject { session: &id })?,
        false => writeln!(answer, "{}: erased from the archive", visible(&id))?,
    }
    answer.finish()?;
    Ok(CommandOutcome::Done)
}
