//! Removes content from a session.

use threadline_edit::StripOptions;
use threadline_store::Operation;

use super::{EditError, EditSession, EditTarget, NothingToDo, PlannedEdit};

impl EditSession {
    /// Plans the session without the content that `strip` names.
    ///
    /// # Errors
    ///
    /// [`NothingToDo::NoSuchContent`] if there is none, and errors of reading side files.
    pub fn strip(&self, strip: &StripOptions, target: EditTarget) -> Result<PlannedEdit<'_>, EditError> {
        let mut draft = self.draft();
        let original = match target {
            EditTarget::NewSession => self.file.path.display().to_string(),
            EditTarget::InPlace => "the log as `threadline op show` keeps it".to_owned(),
        };
        threadline_edit::strip(&mut draft, strip, &original);
        if draft.is_untouched() {
            return Err(NothingToDo::NoSuchContent.into());
        }
        let target = target.plan_target();
        self.copy_side_files(&mut draft, &target)?;
        Ok(self.plan(Operation::Strip, draft, target))
    }
}
