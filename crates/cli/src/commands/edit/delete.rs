use std::path::PathBuf;

use threadline_app::edit::{ApplyOptions, EditSession};
use threadline_store::Operation;
use threadline_term::{TextLabel, visible, visible_name};
use threadline_view::humanize::{bytes, plural};
use threadline_view::wire::EditObject;

use super::args::command_line;
use super::finish::{open, warn_if_recreated};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Delete a session with its side files
///
/// The log, its sub-agents, stored tool output and backups of files are moved to a trash. `threadline op
/// undo` restores them; `threadline op forget` empties the trash. Copies of files around its shell calls
/// (`setup files`) are removed for good.
#[derive(Debug, clap::Args)]
pub(crate) struct DeleteArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Delete it; without this only the files are listed
    #[arg(long)]
    apply: bool,

    /// List the files and delete nothing (the default)
    #[arg(long = "dry-run", conflicts_with = "apply")]
    _dry_run: bool,

    /// Also delete a session that is open
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(cx: &Context, args: &DeleteArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    let deletion = session.delete()?;
    let (copies, size) = cx.app.count_file_copies(&session.file().id).unwrap_or_default();
    let mut receipt = None;
    if args.apply {
        let options = ApplyOptions { force: args.force, command: command_line() };
        receipt = Some(deletion.apply(&cx.app, &options)?.id);
        cx.app.remove_file_copies(&session.file().id)?;
        warn_if_recreated(cx, &session);
    }
    // If it cannot be printed, the session has been deleted all the same.
    let reported = report(cx, &session, deletion.files(), receipt.as_deref());
    if copies > 0 {
        let verb = if args.apply { "removed" } else { "would be removed" };
        let size = bytes(size);
        cx.ui.note(&format!("copies of files around shell calls {verb}, for good: {copies} ({size})"));
    }
    match receipt {
        Some(id) => {
            cx.ui.note(&format!("deleted; undo: `threadline op undo {id}`"));
            cx.ui.report_unprinted(reported, &id);
        }
        None => {
            cx.ui.note("planned; nothing was deleted. Add --apply to delete it");
            reported?;
        }
    }
    Ok(CommandOutcome::Done)
}

fn report(
    cx: &Context,
    edited: &EditSession,
    files: &[PathBuf],
    receipt: Option<&str>,
) -> Result<(), CommandError> {
    let (file, session) = (edited.file(), edited.session());
    let mut answer = cx.ui.output();
    let lines = session.entries().len() as u64;
    let path = file.path.to_string_lossy();
    if cx.json {
        answer.json(&EditObject {
            operation: Operation::Delete.name(),
            source: &file.id,
            target: &file.id,
            path: &path,
            lines_removed: lines,
            lines_changed: 0,
            lines_added: 0,
            tokens_before: edited.tokens(),
            tokens_after: 0,
            compatible_versions: Vec::new(),
            receipt,
            findings: Vec::new(),
        })?;
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    let mask = cx.app.session_mask(std::slice::from_ref(&file.path));
    let title =
        session.title().map(|title| format!(" “{}”", visible(&mask.text(&title)))).unwrap_or_default();
    writeln!(answer, "{}", page.paint(TextLabel::Title, format!("delete {}{title}", file.id)))?;
    let size: u64 = files.iter().filter_map(|path| path.metadata().ok()).map(|metadata| metadata.len()).sum();
    let size = if receipt.is_some() { String::new() } else { format!(", {}", bytes(size)) };
    let (n_lines, n_files) = (plural(lines, "line"), plural(files.len() as u64, "file"));
    writeln!(answer, "  {n_lines}, {n_files}{size}")?;
    for path in files {
        writeln!(
            answer,
            "  {}",
            page.paint(TextLabel::Removed, format!("- {}", visible_name(&path.to_string_lossy())))
        )?;
    }
    answer.finish()?;
    Ok(())
}
