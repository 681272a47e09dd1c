//! `rewind_files`: files as they were at a prompt.

use std::path::Path;

use threadline_app::App;
use threadline_app::restore::{FileRestore, RestoreAction, RestoreError, RestorePlan};
use threadline_store::WriteRisk;

/// Restores the files of a session as they were at the prompt with an id. Returns the files that differ; with
/// `is_dry_run`, nothing is written.
///
/// # Errors
/// Returns the reason why they cannot be restored. Then no file was written.
pub(super) fn rewind(app: &App, log: &Path, prompt: &str, is_dry_run: bool) -> Result<Vec<String>, String> {
    let plan = app.plan_rewind(log, prompt).map_err(|error| match error {
        // The words of Claude Code.
        RestoreError::NoPrompt => "No file checkpoint found for this message.".to_owned(),
        error => error.to_string(),
    })?;
    let Some(plan) = plan else { return Ok(Vec::new()) };
    if let Some(file) = plan.files.iter().find(|file| file.action == RestoreAction::Cannot) {
        return Err(format!("The content of {} at this message is not known.", file.path));
    }
    if let Some(file) = plan.files.iter().find(|file| file.action == RestoreAction::Blocked) {
        let reason = file.note.as_deref().unwrap_or_default();
        return Err(format!("{} {reason}.", file.path));
    }
    let differs = |file: &&FileRestore| file.action != RestoreAction::Keep;
    for file in plan.files.iter().filter(differs) {
        let reason = match file.risk {
            None => continue,
            Some(WriteRisk::CommandSource) => {
                "is a file that other programs may run commands from".to_owned()
            }
            Some(WriteRisk::Outside) => {
                let reason = plan.root.as_ref().err().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("is outside of the project{reason}")
            }
        };
        return Err(format!("{} {reason}.", file.path));
    }
    let changed = plan.files.iter().filter(|file| RestorePlan::writes(file, false));
    let changed: Vec<String> = changed.map(|file| file.path.clone()).collect();
    if !is_dry_run {
        let command = ["threadline", "chat", "rewind_files"].map(str::to_owned);
        plan.apply(app, false, &command).map_err(|error| error.to_string())?;
    }
    Ok(changed)
}
