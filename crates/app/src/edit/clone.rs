//! Copies a session, or its beginning, to a new one.

use threadline_edit::CutPoint;
use threadline_session::IndexVec;
use threadline_store::Operation;

use super::side_files::drop_unreferenced_copies;
use super::{EditError, EditSession, EditTarget, PlannedEdit};

/// How a session is copied.
#[derive(Clone, Debug, Default)]
pub struct CloneOptions {
    /// The end of the copy; by default that of the session.
    pub to: Option<CutPoint>,
    /// The title of the copy; by default that of the session, followed by `(fork)`.
    pub title: Option<String>,
}

impl EditSession {
    /// Plans a new session with the active conversation and its side files.
    ///
    /// # Errors
    ///
    /// [`EditError::Cut`] if the session cannot be cut there, and errors of reading side files.
    pub fn clone_to_new(&mut self, options: &CloneOptions) -> Result<PlannedEdit<'_>, EditError> {
        let agents = if options.to.is_some() { self.agent_starts()? } else { IndexVec::new() };
        let this = &*self;
        let mut draft = this.draft();
        threadline_edit::clone(&mut draft, options.to.as_ref(), options.title.as_deref())?;
        let target = EditTarget::NewSession.plan_target();
        this.copy_side_files(&mut draft, &target)?;
        if options.to.is_some() {
            drop_unreferenced_copies(&mut draft, &agents);
        }
        Ok(this.plan(Operation::Clone, draft, target))
    }
}
