//! Compaction: the model summarises the conversation, and the session continues from the summary.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use threadline_api::{ApiError, Message, RawObject, Role, model_info};
use threadline_cancel::CancelToken;

use crate::agent::Agent;
use crate::error_text::filler;
use crate::event::{AgentEvent, CompactionEvent};
use crate::hook::{HookEvent, HookOutcome};
use crate::json::raw;
use crate::session_writer::{CompactBoundary, UserLineFields, WriteError};
use crate::slash_command::{LocalCommand, command_line};
use crate::summary::{instruction, request_summary, summary_of};

/// The part of the window that must be free for the next turn, in tokens, besides the reply.
const RESERVE: u64 = 13_000;
/// The largest reply that the window is kept free for, in tokens.
const MAX_REPLY_RESERVE: u64 = 20_000;
/// The number of recently read files that are attached again.
const MAX_FILES: usize = 5;
/// The number of bytes of text that count as one token in estimates.
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// Why a conversation could not be compacted.
#[derive(Debug)]
pub(crate) enum CompactError {
    /// The text for the person.
    Failed(String),
    /// The person interrupted it.
    Cancelled,
    Write(WriteError),
}

impl From<WriteError> for CompactError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Why a conversation is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CompactTrigger {
    /// The person asked for it.
    Manual,
    /// The window is nearly full.
    Auto,
}

impl CompactTrigger {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

impl Agent {
    /// Whether the conversation nearly fills the window of the model.
    pub(crate) fn is_window_full(&self) -> bool {
        self.config.has_auto_compact && self.last_usage.context() >= self.window_limit()
    }

    /// The number of tokens from which on the conversation is too long for another turn.
    fn window_limit(&self) -> u64 {
        let info = model_info(&self.config.model);
        let reply = self.config.max_output_tokens.unwrap_or(info.max_output).min(MAX_REPLY_RESERVE);
        info.context_window.saturating_sub(reply + RESERVE)
    }

    /// Replaces the conversation by a summary and the last reply, and writes that to the log. Returns the
    /// time of the request.
    pub(crate) fn compact(
        &mut self,
        trigger: CompactTrigger,
        instructions: &str,
        prompt_id: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<Duration, CompactError> {
        let instructions = self.compact_hooks(trigger, instructions, cancel, events)?;
        events(AgentEvent::Compaction(CompactionEvent::Start));
        let start = Instant::now();
        let result = self.request_whole_summary(&instructions, cancel);
        report_end(&result, events);
        let summary = result?;
        let duration = start.elapsed();
        self.write_compaction(trigger, &summary, prompt_id, duration, events)?;
        self.compacted_hooks(trigger, &summary, cancel, events)?;
        Ok(duration)
    }

    /// Runs the hooks before a compaction. Returns the instructions with those of the hooks.
    pub(crate) fn compact_hooks(
        &self,
        trigger: CompactTrigger,
        instructions: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<String, CompactError> {
        let call = self
            .hook_call(HookEvent::PreCompact, trigger.name())
            .with("trigger", trigger.name())
            .with("custom_instructions", instructions);
        let mut instructions = instructions.to_owned();
        for run in self.run_hooks(&call, cancel) {
            self.report_hook(&run, events);
            if let Some(reason) = run.blocking_reason() {
                return Err(CompactError::Failed(format!("Compaction blocked by hook: {reason}")));
            }
            if run.outcome == HookOutcome::Success && !run.output.text.is_empty() {
                instructions = format!("{instructions}\n{}", run.output.text).trim().to_owned();
            }
        }
        Ok(instructions)
    }

    /// Runs the hooks after a compaction.
    pub(crate) fn compacted_hooks(
        &mut self,
        trigger: CompactTrigger,
        summary: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let after = self
            .hook_call(HookEvent::PostCompact, trigger.name())
            .with("trigger", trigger.name())
            .with("compact_summary", summary);
        let start = self.hook_call(HookEvent::SessionStart, "compact").with("source", "compact");
        let (after, start) = (self.run_hooks(&after, cancel), self.run_hooks(&start, cancel));
        for run in after.iter().chain(&start) {
            self.report_hook(run, events);
        }
        self.start_runs = start;
        self.write_start_hooks()
    }

    /// Asks the model for a summary of everything before the last reply.
    fn request_whole_summary(
        &mut self,
        instructions: &str,
        cancel: &CancelToken,
    ) -> Result<String, CompactError> {
        self.conversation.normalize();
        let is_reply = |message: &Message| message.role == Role::Assistant;
        let messages = &mut self.conversation.messages;
        let last_reply = messages.pop_if(|last| is_reply(last));
        if messages.len() < 2 {
            messages.extend(last_reply);
            return Err(CompactError::Failed("Not enough messages to compact.".to_owned()));
        }
        let summary = self.request_summary(&instruction(None, instructions), cancel);
        self.conversation.messages.extend(last_reply);
        summary
    }

    /// Sends the conversation with an instruction, and returns the summary in the reply.
    pub(crate) fn request_summary(
        &mut self,
        instruction: &str,
        cancel: &CancelToken,
    ) -> Result<String, CompactError> {
        let excess = self.last_usage.context().saturating_sub(self.window_limit());
        let excess = usize::try_from(excess).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_TOKEN);
        self.fill_request();
        let reply = request_summary(&self.client, &mut self.request, instruction, excess, cancel);
        self.request.messages.clear();
        let reply = reply.map_err(|error| match error {
            ApiError::Cancelled => CompactError::Cancelled,
            error => CompactError::Failed(format!("Error during compaction: {error}")),
        })?;
        self.totals.add(&self.config.model, &reply.usage(), &self.prices);
        let summary = summary_of(&reply.text());
        if summary.is_empty() {
            return Err(CompactError::Failed("The model returned no summary.".to_owned()));
        }
        Ok(summary)
    }

    /// Writes the boundary and the summary, and restarts the conversation from them.
    fn write_compaction(
        &mut self,
        trigger: CompactTrigger,
        summary: &str,
        prompt_id: &str,
        duration: Duration,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let before = self.last_usage.context();
        let mut writer = self.writer.lock();
        writer.plan_name(&*self.clock);
        let text = filler::compact_summary(summary, &writer.path().to_string_lossy());
        let preserved = self.conversation.messages.pop().filter(|last| last.role == Role::Assistant);
        let preserved_lines = if preserved.is_some() { self.reply_lines.clone() } else { Vec::new() };
        let after = (text.len() / BYTES_PER_TOKEN) as u64;
        let boundary = CompactBoundary {
            trigger: trigger.name(),
            pre_tokens: before,
            post_tokens: after,
            dropped_tokens: self.dropped_tokens + before.saturating_sub(after),
            duration,
            preserved: &preserved_lines,
            part: None,
            logical_parent: None,
        };
        let fields = UserLineFields { prompt_id: Some(prompt_id), ..UserLineFields::default() };
        let written = writer.compaction(&boundary, &text, fields, &*self.clock)?;
        drop(writer);
        self.conversation.messages = vec![Message::user_text(&text)];
        self.conversation.messages.extend(preserved);
        self.last_usage = threadline_api::Usage::default();
        self.dropped_tokens = boundary.dropped_tokens;
        self.compaction = Some(written.clone());
        events(AgentEvent::Compaction(CompactionEvent::Boundary(&written)));
        Ok(())
    }

    /// Runs `/compact`. Returns the text for the person, and the time of the request.
    pub(crate) fn run_compact_command(
        &mut self,
        instructions: &str,
        prompt_id: &str,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(String, Duration), WriteError> {
        let result = self.compact(CompactTrigger::Manual, instructions, prompt_id, cancel, &mut |event| {
            // The boundary is reported after the start of the turn.
            if !matches!(event, AgentEvent::Compaction(CompactionEvent::Boundary(_))) {
                events(event);
            }
        });
        events(AgentEvent::TurnStart);
        let duration = match result {
            Ok(duration) => duration,
            Err(CompactError::Write(error)) => return Err(error),
            Err(CompactError::Failed(reason)) => {
                self.write_local_command(LocalCommand::Compact, instructions, &reason, prompt_id, events)?;
                return Ok((reason, Duration::ZERO));
            }
            Err(CompactError::Cancelled) => {
                let reason = "Compaction canceled.".to_owned();
                self.write_local_command(LocalCommand::Compact, instructions, &reason, prompt_id, events)?;
                return Ok((reason, Duration::ZERO));
            }
        };
        if let Some(compaction) = self.compaction.take() {
            events(AgentEvent::Compaction(CompactionEvent::Boundary(&compaction)));
        }
        self.write_compact_command(instructions, prompt_id, events)?;
        self.attach_seen_files(cancel)?;
        Ok((String::new(), duration))
    }

    /// Writes the lines of the command below the summary.
    fn write_compact_command(
        &mut self,
        instructions: &str,
        prompt_id: &str,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let command = command_line(LocalCommand::Compact.name(), instructions);
        let output = "<local-command-stdout>Compacted </local-command-stdout>";
        let fields = UserLineFields { prompt_id: Some(prompt_id), ..UserLineFields::default() };
        let caveat = UserLineFields { is_meta: true, ..fields };
        let mut writer = self.writer.lock();
        writer.user(&raw(&filler::COMMAND_CAVEAT), caveat, &*self.clock)?;
        writer.user(&raw(&command), fields, &*self.clock)?;
        let written = writer.user(&raw(&output), fields, &*self.clock)?;
        drop(writer);
        let texts = [filler::COMMAND_CAVEAT, command.as_str(), output].map(Message::text_block);
        self.conversation.push(Role::User, texts.into());
        let message = RawObject::new().with("role", "user").with("content", output);
        let (uuid, timestamp) = (written.uuid.as_str(), written.timestamp);
        events(AgentEvent::CommandOutput { uuid, message: &message, timestamp });
        Ok(())
    }

    /// Attaches the files again that the model has seen last.
    fn attach_seen_files(&mut self, cancel: &CancelToken) -> Result<(), WriteError> {
        let seen: Vec<PathBuf> = self.files.paths();
        self.files.clear();
        for path in seen.iter().take(MAX_FILES) {
            self.attach_file(path, cancel)?;
        }
        Ok(())
    }
}

/// Reports the end of a request for a summary.
pub(crate) fn report_end(result: &Result<String, CompactError>, events: &mut dyn FnMut(AgentEvent<'_>)) {
    let error = result.as_ref().err().map(|error| match error {
        CompactError::Failed(reason) => reason.clone(),
        _ => "interrupted".to_owned(),
    });
    events(AgentEvent::Compaction(CompactionEvent::End { error: error.as_deref() }));
}
