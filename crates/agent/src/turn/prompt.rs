//! The start of a turn: hooks and commands of the client, and the lines up to the prompt.

use serde_json::value::RawValue;
use threadline_api::{Message, RawObject, Role};
use threadline_cancel::CancelToken;
use threadline_entry::Millis;

use super::TurnState;
use crate::agent::Agent;
use crate::compaction::{CompactError, CompactTrigger};
use crate::error_text::filler;
use crate::event::{AgentEvent, TurnEnd};
use crate::json::raw;
use crate::resume::Filler;
use crate::session_hooks::PromptVerdict;
use crate::session_writer::{ErrorFields, UserLineFields, WriteError};
use crate::slash_command::{LocalCommand, SlashMeaning};
use crate::turn_input::QueuedPrompt;

/// The longest prompt in the mark at the end of a log, in characters.
const LAST_PROMPT_LENGTH: usize = 200;

impl Agent {
    /// Writes the prompt of a turn, if its hooks allow it. Returns the end of the turn otherwise.
    pub(super) fn start_turn(
        &mut self,
        prompt: &RawValue,
        origin: Option<&str>,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<Option<TurnEnd>, WriteError> {
        let text = prompt_text(prompt).filter(|_| origin.is_none());
        if origin.is_none() {
            self.start_hooks(cancel, events);
        }
        let command = text.as_deref().filter(|_| prompt.get().starts_with('"'));
        let command = match command.and_then(|text| self.slash_meaning(text, cancel)) {
            None => None,
            Some(SlashMeaning::Custom(command)) => Some(command),
            Some(SlashMeaning::Local(command, arguments)) => {
                return self.run_local_command(command, &arguments, prompt, state, cancel, events).map(Some);
            }
            Some(SlashMeaning::Unusable(reason)) => {
                events(AgentEvent::TurnStart);
                self.write_queue(prompt, false, state)?;
                self.write_start_hooks()?;
                self.forget_prompt();
                self.write_unusable_command(text.as_deref().unwrap_or_default(), &reason, events)?;
                state.text = reason;
                return Ok(Some(TurnEnd::NotSent));
            }
        };
        let verdict = match &text {
            Some(text) => self.prompt_hooks(text, cancel, events),
            None => PromptVerdict::Send(Vec::new()),
        };
        events(AgentEvent::TurnStart);
        let takes_snapshot = origin.is_none() && matches!(verdict, PromptVerdict::Send(_));
        self.write_queue(prompt, takes_snapshot, state)?;
        self.write_start_hooks()?;
        self.write_model_changes(&state.prompt_id)?;
        self.is_prompt_blocked = false;
        match verdict {
            PromptVerdict::Send(runs) => {
                self.compact_full_window(state, cancel, events)?;
                match &command {
                    None => {
                        let uuid = state.prompt_uuid.clone();
                        self.write_prompt(prompt, &uuid, origin, state, events)?;
                        if let Some(text) = text.as_deref().filter(|_| prompt.get().starts_with('"')) {
                            self.attach_mentioned_files(text, cancel)?;
                        }
                    }
                    Some(command) => {
                        self.last_prompt = Some(one_line(&command.short_prompt()));
                        state.command_scope = Some(self.enter_command(&command.command));
                        let (line, uuid) = (raw(&command.prompt_line()), state.prompt_uuid.clone());
                        state.is_command = true;
                        self.write_prompt(&line, &uuid, origin, state, events)?;
                        self.write_command_text(command, &state.prompt_id, cancel)?;
                    }
                }
                self.write_prompt_hooks(&runs)?;
                Ok(None)
            }
            PromptVerdict::Block(reason) => {
                self.forget_prompt();
                self.stop_prompt(reason, state, events).map(Some)
            }
            PromptVerdict::Stop(reason) => {
                self.write_stopped_prompt(prompt, &reason, state)?;
                self.stop_prompt(reason, state, events).map(Some)
            }
        }
    }

    /// Writes the prompts of a turn that were entered before it, each on a line of its own. A prompt that a
    /// hook blocks is left out. Returns the end of the turn if no prompt is left.
    pub(super) fn start_queued_turn(
        &mut self,
        prompts: &[QueuedPrompt],
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<Option<TurnEnd>, WriteError> {
        state.is_queued = true;
        self.write_modes()?;
        let entered: Vec<(Option<String>, Millis)> =
            prompts.iter().map(|prompt| (prompt_text(&prompt.content), prompt.time)).collect();
        self.writer.lock().queue_and_dequeue(&entered, &*self.clock)?;
        let mut end = Some(TurnEnd::NotSent);
        for prompt in prompts {
            if end.is_some() {
                end = self.start_turn(&prompt.content, None, state, cancel, events)?;
            } else {
                self.add_prompt(&prompt.content, state, cancel, events)?;
            }
        }
        Ok(end)
    }

    /// Writes another prompt of a turn, if its hooks allow it.
    fn add_prompt(
        &mut self,
        prompt: &RawValue,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let text = prompt_text(prompt).unwrap_or_default();
        let runs = match self.prompt_hooks(&text, cancel, events) {
            PromptVerdict::Send(runs) => runs,
            PromptVerdict::Block(reason) | PromptVerdict::Stop(reason) => {
                let uuid = self.writer.lock().prompt_stopped(&reason, &*self.clock)?;
                events(AgentEvent::PromptStopped { uuid: &uuid, text: &reason });
                return Ok(());
            }
        };
        let uuid = self.clock.new_uuid();
        {
            let mut writer = self.writer.lock();
            if writer.format().snapshot_precedes_prompt {
                self.backups.lock().start_prompt(&uuid, &mut writer, &*self.clock)?;
            }
        }
        self.write_prompt(prompt, &uuid, None, state, events)?;
        if prompt.get().starts_with('"') {
            self.attach_mentioned_files(&text, cancel)?;
        }
        self.write_prompt_hooks(&runs)
    }

    /// Runs a command of the client.
    pub(super) fn run_local_command(
        &mut self,
        command: LocalCommand,
        arguments: &str,
        prompt: &RawValue,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        if command == LocalCommand::Clear {
            // The old session ends here: it needs no filler.
            self.filler = Filler::None;
        }
        self.write_queue(prompt, false, state)?;
        self.write_start_hooks()?;
        self.forget_prompt();
        let output = match command {
            LocalCommand::Clear => {
                self.clear(arguments, cancel, events)?;
                String::new()
            }
            LocalCommand::Compact => {
                let (text, duration) =
                    self.run_compact_command(arguments, &state.prompt_id, cancel, events)?;
                state.text = text;
                state.api_duration += duration;
                return Ok(TurnEnd::NotSent);
            }
            LocalCommand::Context => self.context_report(),
            LocalCommand::Usage => self.usage_report(),
        };
        events(AgentEvent::TurnStart);
        self.write_local_command(command, arguments, &output, &state.prompt_id, events)?;
        state.text = output;
        Ok(TurnEnd::NotSent)
    }

    /// Removes the last prompt from the mark at the end of the log.
    pub(super) fn forget_prompt(&mut self) {
        self.last_prompt = None;
        self.is_prompt_blocked = true;
    }

    /// Writes the lines that precede the prompt.
    pub(super) fn write_queue(
        &mut self,
        prompt: &RawValue,
        takes_snapshot: bool,
        state: &TurnState,
    ) -> Result<(), WriteError> {
        let clock = std::sync::Arc::clone(&self.clock);
        let is_text = prompt.get().starts_with('"');
        let text = prompt_text(prompt);
        let mut writer = self.writer.lock();
        let format = writer.format();
        writer.set_git_branch(crate::git::branch(&self.config.paths.cwd));
        if takes_snapshot && format.snapshot_precedes_prompt {
            self.backups.lock().start_prompt(&state.prompt_uuid, &mut writer, &*clock)?;
        }
        if self.config.is_interactive {
            drop(writer);
            self.write_modes()?;
            writer = self.writer.lock();
        } else {
            writer.queue(text.as_deref().filter(|_| is_text), &*clock)?;
        }
        if !self.copied_lines.is_empty() {
            writer.write(&std::mem::take(&mut self.copied_lines))?;
        }
        let prompt_id = state.prompt_id.clone();
        for call in std::mem::take(&mut self.open_calls) {
            let block = RawObject::new()
                .with("type", "tool_result")
                .with("content", filler::NO_RESULT)
                .with("is_error", true)
                .with("tool_use_id", &call.id);
            let fields = UserLineFields {
                prompt_id: Some(&prompt_id),
                source_tool_assistant_uuid: Some(&call.line),
                parent: Some(&call.line),
                ..UserLineFields::default()
            };
            writer.user(&raw(&[block]), fields, &*clock)?;
        }
        if !format.fills_after_errors {
            self.filler = Filler::None;
        }
        if self.filler == Filler::UserAndReply {
            let blocks = raw(&[Message::text_block(filler::CONTINUE)]);
            let fields =
                UserLineFields { prompt_id: Some(&prompt_id), is_meta: true, ..UserLineFields::default() };
            writer.user(&blocks, fields, &*clock)?;
            self.conversation.push(Role::User, vec![Message::text_block(filler::CONTINUE)]);
        }
        if self.filler != Filler::None {
            let (uuid, _) = writer.synthetic(filler::NO_RESPONSE, ErrorFields::default(), &*clock)?;
            self.reply_lines = vec![uuid];
            self.conversation.push(Role::Assistant, vec![Message::text_block(filler::NO_RESPONSE)]);
        }
        self.filler = Filler::None;
        Ok(())
    }

    /// Writes a prompt.
    pub(super) fn write_prompt(
        &mut self,
        prompt: &RawValue,
        uuid: &str,
        origin: Option<&str>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let clock = std::sync::Arc::clone(&self.clock);
        let is_text = prompt.get().starts_with('"');
        let text = prompt_text(prompt);
        let prompt_id = state.prompt_id.clone();
        self.prepare_plan();
        let mut writer = self.writer.lock();
        let mode = self.config.permissions.mode().name();
        let fields = UserLineFields {
            prompt_id: Some(&prompt_id),
            // Claude Code leaves the mode out of everything that looks like a command.
            permission_mode: Some(mode).filter(|_| !prompt.get().starts_with("\"/") && !state.is_command),
            prompt_source: self.prompt_source(state).filter(|_| !state.is_command),
            origin: origin.or(Some("human").filter(|_| self.config.is_interactive && !state.is_command)),
            uuid: Some(uuid),
            ..UserLineFields::default()
        };
        let written = writer.user(prompt, fields, &*clock)?;
        state.has_prompt_line = origin.is_none();
        if origin.is_none() && !writer.format().snapshot_precedes_prompt {
            self.backups.lock().start_prompt(uuid, &mut writer, &*clock)?;
        }
        drop(writer);
        state.num_turns += 1;
        let content: Vec<RawObject> = match (&text, is_text) {
            (Some(text), true) => vec![Message::text_block(text)],
            _ => serde_json::from_str(prompt.get()).unwrap_or_default(),
        };
        self.conversation.push_prompt(content);
        self.report_plan_mode()?;
        let message = RawObject::new().with("role", "user").with("content", prompt);
        events(AgentEvent::Prompt { uuid: &written.uuid, message: &message, timestamp: written.timestamp });
        Ok(())
    }

    /// Where the prompt of a turn comes from.
    fn prompt_source(&self, state: &TurnState) -> Option<&str> {
        let source = self.config.prompt_source.as_deref();
        source.map(|source| if state.is_queued { "queued" } else { source })
    }

    /// Writes a prompt that a hook stopped, and the reason.
    pub(super) fn write_stopped_prompt(
        &mut self,
        prompt: &RawValue,
        reason: &str,
        state: &TurnState,
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { prompt_id: Some(&state.prompt_id), ..UserLineFields::default() };
        let prompt_fields = UserLineFields {
            permission_mode: Some(self.config.permissions.mode().name()),
            prompt_source: self.prompt_source(state),
            ..fields
        };
        let mut writer = self.writer.lock();
        writer.user(prompt, prompt_fields, &*self.clock)?;
        writer.user(&raw(&reason), fields, &*self.clock)?;
        Ok(())
    }

    /// Ends a turn whose prompt is not sent.
    pub(super) fn stop_prompt(
        &mut self,
        reason: String,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let uuid = self.writer.lock().prompt_stopped(&reason, &*self.clock)?;
        events(AgentEvent::PromptStopped { uuid: &uuid, text: &reason });
        state.text = reason;
        Ok(TurnEnd::NotSent)
    }

    /// Compacts the conversation if it nearly fills the window.
    ///
    /// The prompt comes after the summary, so that it cannot be lost, and the lines that end the conversation
    /// so far come before it. A compaction that fails does not stop the turn: the API decides whether the
    /// conversation is too long.
    pub(super) fn compact_full_window(
        &mut self,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        if !self.is_window_full() {
            return Ok(());
        }
        match self.compact(CompactTrigger::Auto, "", &state.prompt_id, cancel, events) {
            Ok(duration) => state.api_duration += duration,
            Err(CompactError::Write(error)) => return Err(error),
            Err(CompactError::Failed(_) | CompactError::Cancelled) => {}
        }
        Ok(())
    }

    /// Writes the task of a sub-agent, or a message of `origin` that continues it.
    pub(super) fn write_task(
        &mut self,
        task: &RawValue,
        origin: Option<&str>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let fields = UserLineFields {
            prompt_id: Some(&state.prompt_id),
            is_meta: origin.is_some(),
            origin,
            ..UserLineFields::default()
        };
        let written = self.writer.lock().user(task, fields, &*self.clock)?;
        state.num_turns += 1;
        let text = prompt_text(task).unwrap_or_default();
        self.conversation.push(Role::User, vec![Message::text_block(&text)]);
        let message = RawObject::new().with("role", "user").with("content", task);
        events(AgentEvent::Prompt { uuid: &written.uuid, message: &message, timestamp: written.timestamp });
        Ok(())
    }
}

/// Returns the text of a prompt: the text itself, or its first text block.
pub(crate) fn prompt_text(prompt: &RawValue) -> Option<String> {
    if let Ok(text) = serde_json::from_str(prompt.get()) {
        return Some(text);
    }
    let blocks: Vec<RawObject> = serde_json::from_str(prompt.get()).ok()?;
    blocks.iter().find_map(|block| block.get_str("text"))
}

/// Returns a prompt on one line, cut to the length of the mark.
pub(super) fn one_line(text: &str) -> String {
    let line = text.replace('\n', " ");
    let line = line.trim();
    match line.char_indices().nth(LAST_PROMPT_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}
