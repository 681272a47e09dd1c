use threadline_app::OperationError;
use threadline_store::{FileAction, OpError, OperationState, Receipt, Reversal};
use threadline_term::{ColumnAlign, TableColumn, TermText, TextLabel, visible, visible_name};
use threadline_view::humanize::{plural, short_id};
use threadline_view::shell_word;
use threadline_view::wire::{ReceiptFileObject, ReceiptObject, SkippedFileObject};

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// List, undo and redo applied edits
///
/// Every edit that is applied leaves a receipt in $XDG_STATE_HOME/threadline, with the files as they were
/// before. Only operations on sessions of the selected homes are listed, undone and redone.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum OpCommand {
    /// List operations, newest first
    Log,
    /// Show an operation and its files
    Show(OneArgs),
    /// Undo an operation: restore its files byte for byte
    ///
    /// Shows the files first, and asks on a terminal; otherwise --apply is needed.
    ///
    /// Lines that Claude Code has appended to a log since are kept. If a file has changed otherwise, nothing
    /// is done; --partial undoes the other files. Of a `restore`, files that have changed are always skipped
    /// and listed.
    Undo(ReverseArgs),
    /// Finish an interrupted operation, or redo the last undone one
    ///
    /// The rules are those of `undo`.
    Redo(RedoArgs),
    /// Delete receipts and the files they keep; these operations cannot be undone any more
    Forget(ForgetArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct OneArgs {
    /// Operation id or unique prefix; `last` is an interrupted one, else the newest that is not undone
    #[arg(value_name = "ID", default_value = "last")]
    id: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReverseArgs {
    /// Operation id or unique prefix; `last` is an interrupted one, else the newest that is not undone
    #[arg(value_name = "ID", default_value = "last")]
    id: String,

    #[command(flatten)]
    write: ReversalArgs,
}

/// How to undo or redo.
#[derive(Debug, clap::Args)]
struct ReversalArgs {
    /// Change the files without asking
    #[arg(long)]
    apply: bool,

    /// Skip files that have changed since
    #[arg(long)]
    partial: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RedoArgs {
    /// Operation id or unique prefix; `last` is an interrupted one, else the one that was undone last
    #[arg(value_name = "ID", default_value = "last")]
    id: String,

    #[command(flatten)]
    write: ReversalArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ForgetArgs {
    /// Operation id or unique prefix (can be repeated)
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// Delete all receipts of the selected homes
    ///
    /// Shows them first, and asks on a terminal; otherwise --apply is needed.
    #[arg(long)]
    all: bool,
    /// Delete the receipts without asking
    #[arg(long)]
    apply: bool,
}

pub(crate) fn run(cx: &Context, command: &OpCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        OpCommand::Log => log(cx),
        OpCommand::Show(args) => show(cx, args),
        OpCommand::Undo(args) => undo(cx, args),
        OpCommand::Redo(args) => redo(cx, args),
        OpCommand::Forget(args) => forget(cx, args),
    }
}

fn log(cx: &Context) -> Result<CommandOutcome, CommandError> {
    let listing = cx.app.list_operations()?;
    let mut answer = if cx.json { cx.ui.output() } else { cx.ui.paged_output() };
    if cx.json {
        for receipt in &listing.found {
            answer.json(&object(cx, receipt)?)?;
        }
    } else if !listing.found.is_empty() {
        write!(answer, "{}", receipt_table(cx, &listing.found))?;
    }
    answer.finish()?;
    for error in &listing.errors {
        cx.ui.warn(&error.to_string());
    }
    if listing.found.is_empty() {
        cx.ui.note("no operations on sessions of these homes");
    }
    for receipt in listing.found.iter().filter(|_| !cx.json) {
        note_if_interrupted(cx, receipt);
    }
    Ok(match (listing.errors.is_empty(), listing.found.is_empty()) {
        (false, _) => CommandOutcome::Partial,
        (true, true) => CommandOutcome::Negative,
        (true, false) => CommandOutcome::Done,
    })
}

/// Formats receipts as a table.
fn receipt_table(cx: &Context, receipts: &[Receipt]) -> TermText {
    let left = |name, gives_way| TableColumn {
        name,
        align: ColumnAlign::Left,
        can_shrink: gives_way,
        ..TableColumn::default()
    };
    let columns = [
        left("id", false),
        left("operation", false),
        left("state", false),
        left("session", false),
        left("summary", true),
    ];
    let rows: Vec<Vec<String>> = receipts
        .iter()
        .map(|receipt| {
            vec![
                receipt.id.clone(),
                receipt.operation.to_string(),
                receipt.state.name().to_owned(),
                short_id(&receipt.source).to_owned(),
                visible(&receipt.summary).into_owned(),
            ]
        })
        .collect();
    cx.ui.table(&columns, &rows)
}

fn show(cx: &Context, args: &OneArgs) -> Result<CommandOutcome, CommandError> {
    let receipt = cx.app.find_operation(&args.id)?;
    write_receipt(cx, &receipt)?;
    if !cx.json {
        note_if_interrupted(cx, &receipt);
    }
    Ok(CommandOutcome::Done)
}

/// Names the commands that undo, finish or remove an operation that was interrupted.
fn note_if_interrupted(cx: &Context, receipt: &Receipt) {
    let id = &receipt.id;
    match receipt.state {
        OperationState::Done | OperationState::Undone => {}
        OperationState::Begun => cx.ui.note(&format!(
            "{id} was interrupted before it changed a file; remove its private files: `threadline op undo {id}`"
        )),
        OperationState::Applying | OperationState::Undoing | OperationState::Redoing => cx.ui.note(&format!(
            "{id} was interrupted; undo: `threadline op undo {id}`, finish: `threadline op redo {id}`"
        )),
    }
}

/// Writes an operation and its files.
fn write_receipt(cx: &Context, receipt: &Receipt) -> Result<(), CommandError> {
    let mut answer = cx.ui.output();
    if cx.json {
        answer.json(&object(cx, receipt)?)?;
        answer.finish()?;
        return Ok(());
    }
    let page = cx.ui.page();
    let title = format!("{} {}", receipt.operation, receipt.id);
    writeln!(
        answer,
        "{} {}",
        page.paint(TextLabel::Title, &title),
        page.paint(TextLabel::Dim, receipt.state.name())
    )?;
    writeln!(answer, "  time     {}", receipt.made_at)?;
    writeln!(answer, "  session  {}", receipt.source)?;
    if receipt.target != receipt.source {
        writeln!(answer, "  created  {}", receipt.target)?;
    }
    writeln!(answer, "  summary  {}", visible(&receipt.summary))?;
    let command: Vec<_> = receipt.command.iter().map(|word| shell_word(word)).collect();
    writeln!(answer, "  command  {}", command.join(" "))?;
    let actions = receipt.files.iter().map(|file| file.action);
    for (file, action) in object(cx, receipt)?.files.into_iter().zip(actions) {
        let label = match action {
            FileAction::Create => TextLabel::Added,
            FileAction::Remove | FileAction::Unlink => TextLabel::Removed,
            FileAction::Replace | FileAction::Append | FileAction::Move => TextLabel::Warning,
        };
        let size = |size: Option<u64>| size.map_or_else(|| "–".to_owned(), threadline_view::humanize::bytes);
        let sizes = format!("{} → {}", size(file.bytes_before), size(file.bytes_after));
        let action = page.paint(label, format!("{:<8}", file.action));
        let target = file.target.map(|target| format!(" → {target}")).unwrap_or_default();
        writeln!(answer, "  {action} {}{target}  {}", file.path, page.paint(TextLabel::Dim, &sizes))?;
        if let Some(backup) = file.backup {
            writeln!(
                answer,
                "           {}",
                page.paint(TextLabel::Dim, format!("kept as {}", visible(&backup)))
            )?;
        }
    }
    answer.finish()?;
    Ok(())
}

fn undo(cx: &Context, args: &ReverseArgs) -> Result<CommandOutcome, CommandError> {
    let receipt = cx.app.find_operation(&args.id)?;
    if !is_confirmed(cx, &receipt, &args.write, "undo")? {
        return Ok(CommandOutcome::Done);
    }
    let undone = cx.app.undo_operation(&receipt.id, args.write.partial);
    let undone = undone.map_err(|error| not_reversed(error, "undo"))?;
    reversed(cx, &undone, "undone")
}

fn redo(cx: &Context, args: &RedoArgs) -> Result<CommandOutcome, CommandError> {
    let receipt = cx.app.find_undone_operation(&args.id).map_err(|error| match error {
        OperationError::NotFound(OpError::NoSuch { id }) if id == "last" => {
            CommandError::new("nothing to redo").hint("`threadline op log` lists the operations")
        }
        error => error.into(),
    })?;
    if !is_confirmed(cx, &receipt, &args.write, "redo")? {
        return Ok(CommandOutcome::Done);
    }
    let redone = cx.app.redo_operation(&receipt.id, args.write.partial);
    let redone = redone.map_err(|error| match error {
        OperationError::Failed { source: OpError::NeverApplied { .. }, .. } => {
            let command: Vec<_> = receipt.command.iter().map(|word| shell_word(word)).collect();
            CommandError::from(error)
                .hint(format!("nothing was changed; run it again: `{}`", command.join(" ")))
        }
        error => not_reversed(error, "redo"),
    })?;
    reversed(cx, &redone, "redone")
}

/// Returns whether to undo or redo an operation: with `--apply`, or after showing it and asking on a
/// terminal.
fn is_confirmed(
    cx: &Context,
    receipt: &Receipt,
    args: &ReversalArgs,
    verb: &str,
) -> Result<bool, CommandError> {
    if args.apply {
        return Ok(true);
    }
    write_receipt(cx, receipt)?;
    let question = format!("{verb} this operation? [y/N] ");
    if !cx.json && cx.ui.confirm(&question)? {
        return Ok(true);
    }
    let partial = if args.partial { " --partial" } else { "" };
    cx.ui.note(&format!(
        "nothing was changed. `threadline op {verb} {}{partial} --apply` changes these files",
        receipt.id
    ));
    Ok(false)
}

/// The result of an undo or a redo.
fn reversed(cx: &Context, reversal: &Reversal, word: &str) -> Result<CommandOutcome, CommandError> {
    let receipt = &reversal.receipt;
    if cx.json {
        let skipped = reversal.skipped.iter().map(|file| SkippedFileObject {
            path: file.path.to_string_lossy().into_owned(),
            reason: file.what.clone(),
        });
        let object = ReceiptObject { skipped: skipped.collect(), ..object(cx, receipt)? };
        let mut answer = cx.ui.output();
        let printed = answer.json(&object).and_then(|()| Ok(answer.finish()?));
        cx.ui.report_unprinted(printed, &receipt.id);
    }
    let files = match reversal.files {
        0 => "no file had to be changed".to_owned(),
        n => format!("{} changed", plural(n as u64, "file")),
    };
    cx.ui.note(&format!("{} of {} is {word}: {files}", receipt.operation, short_id(&receipt.source)));
    if reversal.foreign_bytes > 0 {
        let carried = threadline_view::humanize::bytes(reversal.foreign_bytes);
        cx.ui.note(&format!("{carried} that other programs have appended since are kept at the end"));
    }
    for file in &reversal.skipped {
        cx.ui.warn(&format!("skipped {}: {}", visible_name(&file.path.to_string_lossy()), file.what));
    }
    if !reversal.skipped.is_empty() {
        cx.ui.note(&format!("`threadline op show {}` shows where the previous files are kept", receipt.id));
    }
    Ok(if reversal.skipped.is_empty() { CommandOutcome::Done } else { CommandOutcome::Partial })
}

/// Adds hints for files that have changed since.
fn not_reversed(error: OperationError, verb: &str) -> CommandError {
    let changed = match &error {
        OperationError::Failed { id, source: OpError::Changed { .. } } => Some(id.clone()),
        _ => None,
    };
    let error = CommandError::from(error);
    let Some(id) = changed else { return error };
    error
        .hint(format!(
            "`threadline op {verb} {id} --partial --apply` skips these files and changes the others"
        ))
        .hint(format!("`threadline op show {id}` shows where the previous files are kept"))
}

fn forget(cx: &Context, args: &ForgetArgs) -> Result<CommandOutcome, CommandError> {
    let forgotten = match args.all {
        true => {
            if !args.apply && !is_forgetting_confirmed(cx)? {
                return Ok(CommandOutcome::Done);
            }
            cx.app.forget_all_operations()?
        }
        false => cx.app.forget_operations(&args.ids)?,
    };
    cx.ui.note(&format!("{} forgotten", plural(forgotten as u64, "receipt")));
    Ok(if forgotten == 0 { CommandOutcome::Negative } else { CommandOutcome::Done })
}

/// Shows all receipts, and returns whether to delete them: after asking on a terminal, or if there are none.
fn is_forgetting_confirmed(cx: &Context) -> Result<bool, CommandError> {
    let receipts = cx.app.list_operations()?.found;
    if receipts.is_empty() {
        return Ok(true);
    }
    let mut answer = cx.ui.output();
    if cx.json {
        for receipt in &receipts {
            answer.json(&object(cx, receipt)?)?;
        }
    } else {
        write!(answer, "{}", receipt_table(cx, &receipts))?;
    }
    answer.finish()?;
    let receipts = plural(receipts.len() as u64, "receipt");
    let question = format!("delete {receipts}? These operations cannot be undone any more. [y/N] ");
    if !cx.json && cx.ui.confirm(&question)? {
        return Ok(true);
    }
    cx.ui.note(&format!("nothing was deleted. `threadline op forget --all --apply` deletes {receipts}"));
    Ok(false)
}

fn object<'a>(cx: &Context, receipt: &'a Receipt) -> Result<ReceiptObject<'a>, CommandError> {
    let folder = cx.app.operations()?.folder(&receipt.id);
    let files = receipt.files.iter().map(|file| ReceiptFileObject {
        path: file.path.to_string_lossy().into_owned(),
        target: file.target.as_ref().map(|target| target.to_string_lossy().into_owned()),
        action: file.action.name(),
        backup: file.backup.as_ref().map(|name| folder.join(name).to_string_lossy().into_owned()),
        bytes_before: file.length_before,
        bytes_after: file.length_after,
    });
    Ok(ReceiptObject {
        id: &receipt.id,
        operation: receipt.operation.name(),
        state: receipt.state.name(),
        created_at: &receipt.made_at,
        source: &receipt.source,
        target: &receipt.target,
        summary: &receipt.summary,
        command: &receipt.command,
        files: files.collect(),
        skipped: Vec::new(),
    })
}
