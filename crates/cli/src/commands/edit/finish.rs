//! Shows a planned edit, and applies it if that was asked for.

use std::path::Path;

use threadline_app::SessionSummary;
use threadline_app::edit::{EditError, EditSession, PlannedEdit};
use threadline_store::SessionFile;
use threadline_term::{visible, visible_name};
use threadline_view::shell_word;
use threadline_view::wire::UnchangedObject;

use super::args::WriteArgs;
use super::report;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Opens the session that `needle` names.
pub(super) fn open(cx: &Context, needle: &str) -> Result<EditSession, CommandError> {
    // A file of an interrupted operation may have a private name.
    cx.app.finish_interrupted_operations();
    Ok(cx.app.open_for_edit(cx.app.find_to_change(needle)?)?)
}

/// Shows or applies an edit. One that would change nothing is no error: the answer is no.
pub(super) fn finish(
    cx: &Context,
    write: &WriteArgs,
    planned: Result<PlannedEdit<'_>, EditError>,
) -> Result<CommandOutcome, CommandError> {
    match planned.map(|edit| finish_plan(cx, write, &edit)) {
        Ok(finished) => finished,
        Err(EditError::NothingToDo(nothing)) => nothing_to_do(cx, &nothing.to_string()),
        Err(error) => Err(error.into()),
    }
}

/// Reports that an edit would change nothing.
pub(super) fn nothing_to_do(cx: &Context, reason: &str) -> Result<CommandOutcome, CommandError> {
    if cx.json {
        let unchanged =
            UnchangedObject { lines_removed: 0, lines_changed: 0, lines_added: 0, receipt: None, reason };
        let mut answer = cx.ui.output();
        answer.json(&unchanged)?;
        answer.finish()?;
    }
    cx.ui.note(reason);
    Ok(CommandOutcome::Negative)
}

fn finish_plan(
    cx: &Context,
    write: &WriteArgs,
    edit: &PlannedEdit<'_>,
) -> Result<CommandOutcome, CommandError> {
    let show = |receipt: Option<&str>| report::show(cx, edit, receipt, write.diff);
    match edit.check() {
        Ok(()) => {}
        Err(EditError::NothingToDo(nothing)) => {
            show(None)?;
            cx.ui.note(&nothing.to_string());
            return Ok(CommandOutcome::Negative);
        }
        Err(error) => {
            if matches!(error, EditError::Unsound { .. }) {
                show(None)?;
            }
            return Err(error.into());
        }
    }
    if !write.apply {
        show(None)?;
        cx.ui.note("planned; nothing was written. Add --apply to write it");
        return Ok(CommandOutcome::Done);
    }
    let receipt = edit.apply(&cx.app, &write.apply_options())?;
    // If it cannot be printed, the change has been made all the same.
    let shown = show(Some(&receipt.id));
    let undo = format!("undo: `threadline op undo {}`", receipt.id);
    cx.ui.note(&match edit.new_session() {
        Some(id) => {
            let file = SessionFile::at(edit.path());
            let cwd = SessionSummary::of(file.clone())?.preview.cwd;
            match cwd.as_deref() {
                _ if file.home.is_none() => {
                    format!("done; to resume it, {}; {undo}", copy_hint(&file))
                }
                Some(cwd) if edit.source().home.is_none() && !Path::new(cwd).is_dir() => format!(
                    "done; its folder {} does not exist here: `threadline edit move {} --cwd DIR --apply` \
                     moves it to another; {undo}",
                    visible_name(cwd),
                    shell_word(id)
                ),
                cwd => format!("done; resume: `{}`, {undo}", cx.app.resume_command(&file, cwd)),
            }
        }
        None => format!("done; {undo}"),
    });
    cx.ui.report_unprinted(shown, &receipt.id);
    Ok(CommandOutcome::Done)
}

/// Names the command that copies a log outside of a home to where Claude Code finds it.
pub(crate) fn copy_hint(file: &SessionFile) -> String {
    let path = file.path.to_string_lossy();
    format!("copy it into the home: `threadline edit clone {} --apply`", shell_word(&visible(&path)))
}

/// Warns if another program has created the log again after it was removed.
pub(super) fn warn_if_recreated(cx: &Context, session: &EditSession) {
    if session.log_exists() {
        cx.ui.warn(&format!(
            "another program is still writing to this session: it created {} again, which was not changed",
            visible_name(&session.file().path.to_string_lossy())
        ));
    }
}
