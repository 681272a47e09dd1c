//! `rewind_files`: files as they were at a prompt.

use std::path::Path;

use threadline_app::App;
use threadline_app::restore::{FileRestore, RestoreAction, RestoreOptions, RestorePlan, RestorePoint};
use threadline_session::FileHistory;
use threadline_store::SessionFile;

/// The answer if no prompt has the id.
const NO_CHECKPOINT: &str = "No file checkpoint found for this message.";

/// Restores the files of a session as they were at the prompt with an id. Returns the files that differ; with
/// `is_dry_run`, nothing is written.
///
/// # Errors
/// Returns the reason why they cannot be restored. Then no file was written.
pub(super) fn rewind(app: &App, log: &Path, prompt: &str, is_dry_run: bool) -> Result<Vec<String>, String> {
    let file = SessionFile::at(log.to_owned());
    let loaded = threadline_app::load_unpriced(&file).and_then(|loaded| loaded.complete());
    let family = loaded.map_err(|error| error.to_string())?.family;
    let entry = family.main.entries().iter().find(|entry| entry.uuid().as_deref() == Some(prompt));
    let line = entry.ok_or(NO_CHECKPOINT)?.at().line_no;
    let (point, _) = RestorePoint::Line(line).resolve(&family).map_err(|error| error.to_string())?;
    let history = FileHistory::of(&family);
    if history.is_empty() {
        return Ok(Vec::new());
    }
    let options = RestoreOptions { to: None, names: Vec::new() };
    let plan = app.plan_restore(&file, &history, point, &options).map_err(|error| error.to_string())?;
    if let Some(file) = plan.files.iter().find(|file| file.action == RestoreAction::Cannot) {
        return Err(format!("The content of {} at this message is not known.", file.path));
    }
    let differs = |file: &&FileRestore| file.action != RestoreAction::Keep;
    if let Some(file) = plan.files.iter().filter(differs).find(|file| file.outside) {
        let reason = plan.root.as_ref().err().map(|reason| format!(": {reason}")).unwrap_or_default();
        return Err(format!("{} is outside of the project{reason}.", file.path));
    }
    let changed = plan.files.iter().filter(|file| RestorePlan::writes(file, false));
    let changed: Vec<String> = changed.map(|file| file.path.clone()).collect();
    if !is_dry_run {
        let command = ["threadline", "chat", "rewind_files"].map(str::to_owned);
        plan.apply(app, false, &command).map_err(|error| error.to_string())?;
    }
    Ok(changed)
}
