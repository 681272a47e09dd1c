//! Adds a title or a tag to a session.

use threadline_edit::PlanTarget;
use threadline_store::Operation;

use super::{EditSession, PlannedEdit};

impl EditSession {
    /// Plans a line with a title. The last title of a session counts.
    pub fn set_title(&self, title: &str) -> PlannedEdit<'_> {
        let mut draft = self.draft();
        threadline_edit::title(&mut draft, title);
        self.plan(Operation::Title, draft, PlanTarget::KeepOrder)
    }

    /// Plans a line with a tag. The last tag of a session counts.
    pub fn set_tag(&self, tag: &str) -> PlannedEdit<'_> {
        let mut draft = self.draft();
        threadline_edit::tag(&mut draft, tag);
        self.plan(Operation::Tag, draft, PlanTarget::KeepOrder)
    }
}
