use std::path::{Path, PathBuf};

use threadline_store::{FileKind, Operation, SessionFile, Step, StepAction};
use threadline_term::{Label, visible};
use threadline_view::figure::{bytes, count};
use threadline_view::wire::EditObject;

use super::beside::is_file;
use super::job::Job;
use super::side::files_below;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Delete a session and its side files
///
/// The log, sub-agents, stored tool output and file backups are moved to the receipt of the operation.
/// `threadline op undo` restores them; `threadline op forget` deletes them permanently.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Delete the session; without this, only the plan is shown
    #[arg(long)]
    apply: bool,

    /// Show the plan and write nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,

    /// Delete the session even if it is in use
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(cx: &Context, args: &DeleteArgs) -> Result<Outcome, CommandError> {
    let job = Job::open(cx, &args.session)?;
    let mut files = beside(&job.file)?;
    // The log goes first: a session whose side data are gone is worse than side data without a session.
    files.insert(0, job.file.path.clone());
    let mut receipt = None;
    if args.apply {
        if !args.force {
            job.refuse_live()?;
        }
        let steps = files.iter().map(|path| remove(path)).collect();
        let summary = format!("{} files to the trash", files.len());
        receipt = Some(job.carry_out(cx, Operation::Delete, &job.file.id, summary, steps)?.id);
        job.warn_if_made_again(cx);
    }
    report(cx, &job, &files, receipt.as_deref())?;
    cx.ui.note(&match receipt {
        Some(id) => format!("deleted; `threadline op undo {id}` brings it back"),
        None => "planned; nothing was deleted. Add --apply to delete it".to_owned(),
    });
    Ok(Outcome::Done)
}

/// Takes a file away; of a link, the link alone.
pub(super) fn remove<'a>(path: &Path) -> Step<'a> {
    let action = if path.is_symlink() { StepAction::Unlink } else { StepAction::Remove };
    Step { path: path.to_owned(), kind: FileKind::of(path), action }
}

/// The files beside a log that are its session's.
pub(super) fn beside(file: &SessionFile) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = file.side_dir().map_or_else(|| Ok(Vec::new()), |dir| files_below(&dir))?;
    for agent in file.agents().found {
        if !files.contains(&agent.path) {
            let meta = agent.path.with_extension("meta.json");
            files.extend(is_file(&meta).then_some(meta));
            files.push(agent.path);
        }
    }
    if let Some(history) = file.file_history_dir() {
        files.extend(files_below(&history)?);
    }
    Ok(files)
}

fn report(cx: &Context, job: &Job, files: &[PathBuf], receipt: Option<&str>) -> Result<(), CommandError> {
    let mut answer = cx.ui.answer();
    let lines = job.session.entries().len() as u64;
    let path = job.file.path.to_string_lossy();
    if cx.json {
        answer.json(&EditObject {
            operation: "delete",
            source: &job.file.id,
            target: &job.file.id,
            path: &path,
            lines_removed: lines,
            lines_changed: 0,
            lines_added: 0,
            tokens_before: job.draft().tokens(),
            tokens_after: 0,
            compatible_versions: Vec::new(),
            receipt,
            findings: Vec::new(),
        })?;
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    let title = job.session.title().map(|title| format!(" “{}”", visible(&title))).unwrap_or_default();
    writeln!(answer, "{}", page.paint(Label::Title, format!("delete {}{title}", job.file.id)))?;
    let size: u64 = files.iter().filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum();
    let size = if receipt.is_some() { String::new() } else { format!(", {}", bytes(size)) };
    let n_files = if files.len() == 1 { "1 file".to_owned() } else { format!("{} files", files.len()) };
    writeln!(answer, "  {} lines, {n_files}{size}", count(lines))?;
    for file in files {
        writeln!(
            answer,
            "  {}",
            page.paint(Label::Removed, format!("- {}", visible(&file.to_string_lossy())))
        )?;
    }
    answer.finish()?;
    Ok(())
}
