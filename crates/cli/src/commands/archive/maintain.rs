//! `archive verify`, `archive rebuild`, `archive gc`, `archive remove` and `archive key`.

use std::path::PathBuf;

use threadline_archive::KeyFile;
use threadline_term::visible;
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::{
    ArchiveGcObject, ArchiveKeyObject, ArchiveRebuildObject, ArchiveRemoveObject, ArchiveVerifyObject,
};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Read everything in the archive and compare it with its digests
///
/// Exits with 1 if something is damaged, or if the archive contains files that no manifest names: a manifest
/// is lost, or a push is running or was interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {}

/// Rebuild lost or damaged manifests from the segments
///
/// Every segment says which files it contains. If the newest manifest of a home is lost, the files that only
/// it named are added to the earlier one. Exits with 1 if something is missing or damaged.
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
///
/// Files that no manifest names are kept, because their manifest may be lost. Exits with 1 if there are any.
#[derive(Debug, clap::Args)]
pub(crate) struct GcArgs {}

/// Erase a session from the archive, for all machines
///
/// The local session is not touched, except for copies of files around its shell calls (`setup files`), which
/// are removed. It is not copied again.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArgs {
    /// Session id, or the beginning of it
    #[arg(value_name = "SESSION")]
    session: String,

    /// Erase it without asking
    #[arg(long)]
    apply: bool,
}

/// Explains files in segments that no manifest names.
const LOST_MANIFEST_HINT: &str = "hint: a manifest is lost, or a push is running or was interrupted; \
                                  `threadline archive rebuild` adds the files";

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
            unlisted: &report.unlisted,
        })?;
    } else {
        for damage in &report.damaged {
            writeln!(answer, "{}", visible(damage))?;
        }
        for name in &report.unlisted {
            writeln!(answer, "{}: in no manifest", visible(name))?;
        }
        let segments = match report.segments {
            // A database has none.
            0 => String::new(),
            segments => format!("{}, ", plural(segments as u64, "segment")),
        };
        let files = plural(report.files as u64, "file");
        let result = match (report.damaged.len(), report.unlisted.len()) {
            (0, 0) => "no damage".to_owned(),
            (damaged, 0) => format!("{damaged} damaged"),
            (0, unlisted) => format!("{} in no manifest", plural(unlisted as u64, "file")),
            (damaged, unlisted) => format!("{damaged} damaged, {unlisted} in no manifest"),
        };
        writeln!(answer, "{segments}{files}, {}: {result}", bytes(report.bytes))?;
    }
    answer.finish()?;
    if !report.unlisted.is_empty() {
        cx.ui.note(LOST_MANIFEST_HINT);
    }
    let is_sound = report.damaged.is_empty() && report.unlisted.is_empty();
    Ok(if is_sound { CommandOutcome::Done } else { CommandOutcome::Negative })
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
            0 => writeln!(answer, "every manifest can be read and is complete; nothing to rebuild")?,
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
        answer.json(&ArchiveGcObject {
            deleted_segments: report.deleted,
            deleted_bytes: report.deleted_bytes,
            joined_segments: report.joined,
            kept_segments: report.kept,
        })?;
    } else {
        let deleted = plural(report.deleted as u64, "segment");
        let joined = plural(report.joined as u64, "small segment");
        writeln!(answer, "{deleted} deleted ({}), {joined} joined", bytes(report.deleted_bytes))?;
        if report.kept > 0 {
            let kept = plural(report.kept as u64, "unused segment");
            writeln!(answer, "{kept} kept: damaged, or with files that are in no manifest")?;
        }
    }
    answer.finish()?;
    if report.kept > 0 {
        cx.ui.note(LOST_MANIFEST_HINT);
        return Ok(CommandOutcome::Negative);
    }
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
    cx.app.remove_file_copies(&id)?;
    let mut answer = cx.ui.output();
    match cx.json {
        true => answer.json(&ArchiveRemoveObject { session: &id })?,
        false => writeln!(answer, "{}: erased from the archive", visible(&id))?,
    }
    answer.finish()?;
    Ok(CommandOutcome::Done)
}
