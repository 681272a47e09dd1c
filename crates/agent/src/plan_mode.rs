//! Plan mode: the model reads and plans, and changes nothing.

use threadline_api::{Message, Role};
use threadline_entry::write::Attachment;
use threadline_permission::PermissionMode;

use crate::agent::{Agent, lock};
use crate::session_writer::WriteError;

/// What the model is told in plan mode.
const REMINDER: &str = "<system-reminder>\nPlan mode is on. Read and search as much as you need, but do not \
    edit files or run commands that change something. Work out a plan and present it.\n</system-reminder>";

impl Agent {
    /// Names the plan of the session before the first prompt in plan mode is written.
    pub(crate) fn prepare_plan(&mut self) {
        if self.is_planning() {
            lock(&self.writer).plan_name(&*self.clock);
        }
    }

    /// Writes after the first prompt in plan mode that the mode is on, and adds it to the conversation.
    pub(crate) fn report_plan_mode(&mut self) -> Result<(), WriteError> {
        if !self.is_planning() {
            self.has_reported_plan_mode = false;
            return Ok(());
        }
        if std::mem::replace(&mut self.has_reported_plan_mode, true) {
            return Ok(());
        }
        let name = lock(&self.writer).plan_name(&*self.clock);
        let file = self.config.paths.claude_home.join("plans").join(format!("{name}.md"));
        let attachment = Attachment::PlanMode { plan_file: &file.to_string_lossy(), exists: file.exists() };
        lock(&self.writer).attachment(attachment, &*self.clock)?;
        self.conversation.push(Role::User, vec![Message::text_block(REMINDER)]);
        Ok(())
    }

    fn is_planning(&self) -> bool {
        self.config.permissions.mode() == PermissionMode::Plan
    }
}
