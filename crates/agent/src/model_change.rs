//! Changes of the model during a session.

use threadline_api::{Message, Role};
use threadline_permission::PermissionMode;

use crate::agent::{Agent, request};
use crate::error_text::filler;
use crate::json::raw;
use crate::session_writer::{UserLineFields, WriteError};
use crate::slash_command::command_line;

/// A change of the model by a person or a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelChange {
    /// The name that was asked for.
    pub requested: String,
    /// The full name, with its suffix such as `[1m]`.
    pub model: String,
    /// The model in plan mode, if it is another one.
    pub plan_model: Option<String>,
    /// The id of the line with the output.
    pub uuid: String,
}

impl ModelChange {
    /// Returns the output of the change, as the session contains it.
    #[must_use]
    pub fn output(&self) -> String {
        let resolved = if self.requested.eq_ignore_ascii_case(&self.model) || self.requested.contains('-') {
            String::new()
        } else {
            format!(" ({})", self.model)
        };
        format!("<local-command-stdout>Set model to {}{resolved}</local-command-stdout>", self.requested)
    }
}

impl Agent {
    /// Uses another model from the next prompt on.
    pub fn set_model(&mut self, change: ModelChange) {
        self.config.plan_model.clone_from(&change.plan_model);
        self.model_outside_plan = None;
        if self.config.model != change.model {
            self.config.model.clone_from(&change.model);
            self.rebuild_request();
        }
        self.model_changes.push(change);
    }

    /// Uses the model of the current mode, if plan mode has one of its own.
    pub(crate) fn use_model_of_mode(&mut self) {
        let Some(plan_model) = self.config.plan_model.clone() else { return };
        let is_planning = self.config.permissions.mode() == PermissionMode::Plan;
        let model = match self.model_outside_plan.take() {
            None if is_planning => {
                self.model_outside_plan = Some(self.config.model.clone());
                plan_model
            }
            Some(model) if !is_planning => model,
            unchanged => {
                self.model_outside_plan = unchanged;
                return;
            }
        };
        self.config.model = model;
        self.rebuild_request();
    }

    /// Returns a new id, for a [`ModelChange`].
    pub fn new_uuid(&self) -> String {
        self.clock.new_uuid()
    }

    /// Sets the budget for thinking from the next request on; `None` for the default.
    pub fn set_max_thinking_tokens(&mut self, tokens: Option<u64>) {
        self.config.max_thinking_tokens = tokens;
        self.rebuild_request();
    }

    fn rebuild_request(&mut self) {
        let mut changed = request(&self.config);
        changed.tools = std::mem::take(&mut self.request.tools);
        self.requests.model.clone_from(&changed.model);
        self.request = changed;
    }

    /// Writes the lines of the changes before a prompt.
    pub(crate) fn write_model_changes(&mut self, prompt_id: &str) -> Result<(), WriteError> {
        for change in std::mem::take(&mut self.model_changes) {
            let command = command_line("model", &change.requested);
            let output = change.output();
            let fields = UserLineFields { prompt_id: Some(prompt_id), ..UserLineFields::default() };
            let mut writer = self.writer.lock();
            let caveat = UserLineFields { is_meta: true, ..fields };
            writer.user(&raw(&filler::COMMAND_CAVEAT), caveat, &*self.clock)?;
            writer.user(&raw(&command), fields, &*self.clock)?;
            let fields = UserLineFields { uuid: Some(&change.uuid), ..fields };
            writer.user(&raw(&output), fields, &*self.clock)?;
            drop(writer);
            let texts = [filler::COMMAND_CAVEAT, &command, &output].map(Message::text_block);
            self.conversation.push(Role::User, texts.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_names_the_model_of_an_alias() {
        let output = |requested: &str, model: &str| {
            let change = ModelChange {
                requested: requested.to_owned(),
                model: model.to_owned(),
                plan_model: None,
                uuid: String::new(),
            };
            change.output()
        };
        let alias = output("haiku", "claude-haiku-4-5-20251001");
        assert!(alias.contains(">Set model to haiku (claude-haiku-4-5-20251001)<"), "{alias}");
        let full = output("claude-haiku-4-5", "claude-haiku-4-5");
        assert!(full.contains(">Set model to claude-haiku-4-5<"), "{full}");
    }
}
