//! One turn: from a prompt to the end of the model's work.

use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use threadline_api::{
    ApiError, BlockKind, ClientEvent, ErrorKind, Message, RawObject, Reply, Role, StreamEvent, Usage,
};
use threadline_cancel::CancelToken;
use threadline_entry::write::Attachment;

use crate::agent::{Agent, lock};
use crate::compaction::{CompactError, CompactTrigger};
use crate::config::SessionStart;
use crate::error_text::{ErrorReport, compact, filler, refusal, retry_kind};
use crate::event::{AgentEvent, TurnEnd, TurnSummary};
use crate::json::raw;
use crate::resume::Filler;
use crate::session_hooks::{PromptVerdict, StopVerdict};
use crate::session_writer::{ErrorFields, UserLineFields, WriteError};
use crate::slash_command::{CommandScope, SlashMeaning};
use crate::sub_agent::SubAgentEvent;
use crate::tool_calls::PendingCall;

/// How long the loop waits for a background task before it checks again.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// How long the loop waits for a command while sub-agents run in the background too.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// The values of a turn in progress.
struct TurnState {
    start: Instant,
    prompt_id: String,
    /// The id of the prompt's line.
    prompt_uuid: String,
    num_turns: u64,
    replies: u64,
    api_duration: Duration,
    first_request: Option<Duration>,
    first_token: Option<Duration>,
    usage: Usage,
    text: String,
    stop_reason: Option<String>,
    structured_output: Option<Box<RawValue>>,
    denials: Vec<crate::event::Denial>,
    /// Whether the model was asked to continue after it reached the output limit.
    has_continued: bool,
    /// Whether the model was asked for visible output.
    has_asked_for_output: bool,
    /// Whether the model was asked for structured output.
    has_asked_for_structure: bool,
    /// How often a hook made the model go on.
    stop_blocks: u32,
    /// Whether the prompt is a command from a file.
    is_command: bool,
    /// The settings that the command changed.
    command_scope: Option<CommandScope>,
}

/// A block of a reply that has its line id already.
struct PreparedBlock {
    uuid: String,
    block: RawObject,
    call: Option<PendingCall>,
    /// The message at the moment at which the block was complete.
    message: RawObject,
}

impl Agent {
    /// Runs a turn for a prompt: a text, or an array of content blocks.
    pub fn run(
        &mut self,
        prompt: &RawValue,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> TurnSummary {
        // A fork keeps the mark of its source, as Claude Code does.
        if !matches!(self.config.start, SessionStart::Fork { .. })
            && let Some(text) = prompt_text(prompt)
        {
            self.last_prompt = Some(one_line(&text));
        }
        self.run_turn(prompt, None, cancel, events)
    }

    /// Waits for background tasks and runs a turn for each that ends, until none is left.
    pub fn run_background(
        &mut self,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Option<TurnSummary> {
        let mut last = None;
        while !cancel.is_cancelled() {
            self.collect_background_agents(events);
            if let Some(agent) = self.background_agents.take_finished() {
                let prompt = raw(&agent.notification());
                last = Some(self.run_turn(&prompt, Some("task-notification"), cancel, events));
                continue;
            }
            let has_agents = self.background_agents.has_running();
            if has_agents && !self.background.has_running() {
                self.wait_for_background_agent(cancel, events);
                continue;
            }
            let longest = if has_agents { SHORT_WAIT } else { LONGEST_WAIT };
            let finished = self.background.wait_finished(longest, cancel);
            if finished.is_empty() && !self.background.has_running() && !has_agents {
                break;
            }
            for task in finished {
                let timestamp = self.clock.now();
                events(AgentEvent::TaskEnd { task: &task, timestamp });
                let prompt = raw(&task.notification());
                last = Some(self.run_turn(&prompt, Some("task-notification"), cancel, events));
            }
        }
        last
    }

    pub(crate) fn run_turn(
        &mut self,
        prompt: &RawValue,
        origin: Option<&str>,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> TurnSummary {
        let prompt_id = self.role.as_ref().map(|role| role.prompt_id.clone());
        let prompt_id = prompt_id.unwrap_or_else(|| self.clock.new_uuid());
        let mut state = TurnState::new(prompt_id, self.clock.new_uuid());
        self.prompt_id = Some(state.prompt_id.clone());
        let end = match self.turn(prompt, origin, &mut state, cancel, events) {
            Ok(end) => end,
            Err(error) => TurnEnd::Failed(error.to_string()),
        };
        if let Some(scope) = state.command_scope.take() {
            self.leave_command(scope);
        }
        lock(&self.writer).set_attribution_mcp(None);
        self.api_time += state.api_duration;
        let summary = TurnSummary {
            end,
            text: state.text,
            structured_output: state.structured_output,
            stop_reason: state.stop_reason,
            num_turns: state.num_turns,
            duration: state.start.elapsed(),
            api_duration: state.api_duration,
            first_request: state.first_request,
            first_token: state.first_token,
            usage: usage_json(&state.usage),
            totals: self.totals.clone(),
            denials: state.denials,
            origin: origin.map(str::to_owned),
        };
        events(AgentEvent::TurnEnd(&summary));
        summary
    }

    fn turn(
        &mut self,
        prompt: &RawValue,
        origin: Option<&str>,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        if self.role.is_some() {
            self.write_task(prompt, state, events)?;
            self.sub_agent_start_hooks(cancel)?;
        } else if let Some(end) = self.start_turn(prompt, origin, state, cancel, events)? {
            return Ok(end);
        }
        loop {
            self.collect_background_agents(events);
            let (reply, blocks) = match self.request_reply(state, cancel, events) {
                Ok(received) => received,
                Err(ApiError::Cancelled) => return self.interrupt(false, state, events),
                Err(error) if is_overloaded(&error) && self.use_fallback_model() => continue,
                Err(error) => return self.report_error(&error, state, events),
            };
            let is_over_budget = self.add_reply(&reply, &blocks, state)?;
            let (blocks, calls): (Vec<_>, Vec<_>) =
                blocks.into_iter().map(|block| (block.block, block.call)).unzip();
            let calls: Vec<PendingCall> = calls.into_iter().flatten().collect();
            if let Some(text) = last_text(&blocks) {
                state.text = text;
            }
            if let Some(budget) = is_over_budget {
                return Ok(TurnEnd::MaxBudget(budget));
            }
            if reply.is_streamed && !reply.is_truncated {
                state.usage = state.usage.plus(reply.usage());
            }
            if calls.is_empty() {
                match self.finish_reply(&reply, &blocks, state, events)? {
                    Some(TurnEnd::Completed) => {}
                    Some(end) => return Ok(end),
                    None => continue,
                }
                match self.stop_hooks(&state.text, state.stop_blocks, &mut state.num_turns, cancel, events)? {
                    StopVerdict::End => return Ok(TurnEnd::Completed),
                    StopVerdict::Stopped => return Ok(TurnEnd::StoppedByHook { after_tool: false }),
                    StopVerdict::GoOn => state.stop_blocks += 1,
                    StopVerdict::Exhausted => {
                        state.text.clear();
                        return Ok(TurnEnd::Completed);
                    }
                }
                continue;
            }
            let results = self.run_calls(calls, &state.prompt_id, cancel, events)?;
            state.num_turns += results.messages;
            state.denials.extend(results.denials);
            self.changed_lines.added += results.changed_lines.added;
            self.changed_lines.removed += results.changed_lines.removed;
            for totals in &results.sub_agent_totals {
                self.totals.merge(totals);
            }
            let mut blocks = results.blocks;
            self.add_nested_memory(&results.read_files, &mut blocks);
            self.conversation.push(Role::User, blocks);
            let reminders = results.reminders.iter().map(|text| Message::text_block(text)).collect();
            self.conversation.push(Role::User, reminders);
            if results.is_interrupted {
                return self.interrupt(true, state, events);
            }
            if results.is_stopped {
                state.text.clear();
                return Ok(TurnEnd::StoppedByHook { after_tool: true });
            }
            self.report_changed_files()?;
            if !results.follow_up.is_empty() {
                let call = results.skill.as_ref().map(|(call, _)| call.as_str());
                self.write_meta_blocks(results.follow_up, call, state, events)?;
            }
            if let Some((_, skill)) = results.skill {
                lock(&self.writer).set_attribution_skill(Some(skill));
                state.command_scope.get_or_insert_default();
            }
            if let Some(output) = results.structured_output {
                state.text = compact_json(&output);
                state.structured_output = Some(output);
                return Ok(TurnEnd::Completed);
            }
            state.replies += 1;
            if let Some(limit) = self.config.max_turns.filter(|limit| state.replies > *limit) {
                let attachment = Attachment::MaxTurnsReached { max_turns: limit, turn_count: state.replies };
                lock(&self.writer).attachment(attachment, &*self.clock)?;
                return Ok(TurnEnd::MaxTurns(limit));
            }
        }
    }

    /// Runs a command of the client.
    fn run_local_command(
        &mut self,
        name: &str,
        arguments: &str,
        prompt: &RawValue,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        if name == "clear" {
            // The old session ends here: it needs no filler.
            self.filler = Filler::None;
        }
        self.write_queue(prompt, false, state)?;
        self.write_start_hooks()?;
        self.forget_prompt();
        let output = match name {
            "clear" => {
                self.clear(arguments, events)?;
                String::new()
            }
            "compact" => {
                let (text, duration) =
                    self.run_compact_command(arguments, &state.prompt_id, cancel, events)?;
                state.text = text;
                state.api_duration += duration;
                return Ok(TurnEnd::NotSent);
            }
            "context" => self.context_report(),
            _ => self.usage_report(),
        };
        events(AgentEvent::TurnStart);
        self.write_local_command(name, arguments, &output, &state.prompt_id, events)?;
        state.text = output;
        Ok(TurnEnd::NotSent)
    }

    /// Removes the last prompt from the mark at the end of the log.
    fn forget_prompt(&mut self) {
        self.last_prompt = None;
        self.is_prompt_blocked = true;
    }

    /// Writes the lines that precede the prompt.
    fn write_queue(
        &mut self,
        prompt: &RawValue,
        takes_snapshot: bool,
        state: &TurnState,
    ) -> Result<(), WriteError> {
        let clock = std::sync::Arc::clone(&self.clock);
        let is_text = prompt.get().starts_with('"');
        let text = prompt_text(prompt);
        let mut writer = lock(&self.writer);
        let format = writer.format();
        writer.set_git_branch(crate::git::branch(&self.config.paths.cwd));
        if takes_snapshot && format.snapshot_precedes_prompt {
            lock(&self.backups).start_prompt(&state.prompt_uuid, &mut writer, &*clock)?;
        }
        writer.queue(text.as_deref().filter(|_| is_text), &*clock)?;
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

    /// Writes the prompt.
    fn write_prompt(
        &mut self,
        prompt: &RawValue,
        origin: Option<&str>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let clock = std::sync::Arc::clone(&self.clock);
        let is_text = prompt.get().starts_with('"');
        let text = prompt_text(prompt);
        let prompt_id = state.prompt_id.clone();
        self.prepare_plan();
        let mut writer = lock(&self.writer);
        let mode = self.config.permissions.mode().name();
        let fields = UserLineFields {
            prompt_id: Some(&prompt_id),
            // Claude Code leaves the mode out of everything that looks like a command.
            permission_mode: Some(mode).filter(|_| !prompt.get().starts_with("\"/") && !state.is_command),
            prompt_source: self.config.prompt_source.as_deref().filter(|_| !state.is_command),
            origin,
            uuid: Some(&state.prompt_uuid),
            ..UserLineFields::default()
        };
        let written = writer.user(prompt, fields, &*clock)?;
        if origin.is_none() && !writer.format().snapshot_precedes_prompt {
            lock(&self.backups).start_prompt(&state.prompt_uuid, &mut writer, &*clock)?;
        }
        drop(writer);
        state.num_turns += 1;
        let content: Vec<RawObject> = match (&text, is_text) {
            (Some(text), true) => vec![Message::text_block(text)],
            _ => serde_json::from_str(prompt.get()).unwrap_or_default(),
        };
        self.conversation.push(Role::User, content);
        self.report_plan_mode()?;
        let message = RawObject::new().with("role", "user").with("content", prompt);
        events(AgentEvent::Prompt { uuid: &written.uuid, message: &message, timestamp: written.timestamp });
        Ok(())
    }

    /// Writes a prompt that a hook stopped, and the reason.
    fn write_stopped_prompt(
        &mut self,
        prompt: &RawValue,
        reason: &str,
        state: &TurnState,
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { prompt_id: Some(&state.prompt_id), ..UserLineFields::default() };
        let prompt_fields = UserLineFields {
            permission_mode: Some(self.config.permissions.mode().name()),
            prompt_source: self.config.prompt_source.as_deref(),
            ..fields
        };
        let mut writer = lock(&self.writer);
        writer.user(prompt, prompt_fields, &*self.clock)?;
        writer.user(&raw(&reason), fields, &*self.clock)?;
        Ok(())
    }

    /// Ends a turn whose prompt is not sent.
    fn stop_prompt(
        &mut self,
        reason: String,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let uuid = lock(&self.writer).prompt_stopped(&reason, &*self.clock)?;
        events(AgentEvent::PromptStopped { uuid: &uuid, text: &reason });
        state.text = reason;
        Ok(TurnEnd::NotSent)
    }

    /// Writes the prompt of a turn, if its hooks allow it. Returns the end of the turn otherwise.
    fn start_turn(
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
        let command = match command.and_then(|text| self.slash_meaning(text)) {
            None => None,
            Some(SlashMeaning::Custom(command)) => Some(command),
            Some(SlashMeaning::Local(name, arguments)) => {
                return self.run_local_command(name, &arguments, prompt, state, cancel, events).map(Some);
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
        self.is_prompt_blocked = false;
        match verdict {
            PromptVerdict::Send(runs) => {
                self.compact_full_window(state, cancel, events)?;
                match &command {
                    None => {
                        self.write_prompt(prompt, origin, state, events)?;
                        if let Some(text) = text.as_deref().filter(|_| prompt.get().starts_with('"')) {
                            self.attach_mentioned_files(text, cancel)?;
                        }
                    }
                    Some(command) => {
                        self.last_prompt = Some(one_line(&command.short_prompt()));
                        state.command_scope = Some(self.enter_command(&command.command));
                        let line = raw(&command.prompt_line());
                        state.is_command = true;
                        self.write_prompt(&line, origin, state, events)?;
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

    /// Compacts the conversation if it nearly fills the window.
    ///
    /// The prompt comes after the summary, so that it cannot be lost, and the lines that end the conversation
    /// so far come before it. A compaction that fails does not stop the turn: the API decides whether the
    /// conversation is too long.
    fn compact_full_window(
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

    /// Writes the task of a sub-agent.
    fn write_task(
        &mut self,
        task: &RawValue,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { prompt_id: Some(&state.prompt_id), ..UserLineFields::default() };
        let written = lock(&self.writer).user(task, fields, &*self.clock)?;
        state.num_turns += 1;
        let text = prompt_text(task).unwrap_or_default();
        self.conversation.push(Role::User, vec![Message::text_block(&text)]);
        let message = RawObject::new().with("role", "user").with("content", task);
        events(AgentEvent::Prompt { uuid: &written.uuid, message: &message, timestamp: written.timestamp });
        Ok(())
    }

    /// Moves the conversation into the request, with the memory files before it. They are not part of the log,
    /// and sent anew with each request.
    pub(crate) fn fill_request(&mut self) {
        self.request.messages = std::mem::take(&mut self.conversation.messages);
        if let (Some(first), Some(memory)) = (self.request.messages.first_mut(), &self.memory)
            && first.role == Role::User
        {
            first.content.insert(0, memory.clone());
        }
    }

    /// Moves the conversation back from the request.
    pub(crate) fn empty_request(&mut self) {
        self.conversation.messages = std::mem::take(&mut self.request.messages);
        if let Some(first) = self.conversation.messages.first_mut()
            && self.memory.is_some()
            && first.role == Role::User
        {
            first.content.remove(0);
        }
    }

    /// Sends the conversation and returns the reply, its blocks prepared and reported.
    fn request_reply(
        &mut self,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(Reply, Vec<PreparedBlock>), ApiError> {
        self.conversation.normalize();
        self.fill_request();
        let mut blocks = Vec::new();
        let mut is_first_event = true;
        let request_start = Instant::now();
        let result = self.client.send(&self.request, cancel, &mut |event| match event {
            ClientEvent::Requesting => {
                state.first_request.get_or_insert_with(|| state.start.elapsed());
                is_first_event = true;
                events(AgentEvent::Requesting);
            }
            ClientEvent::Retry { attempt, max_retries, delay, error } => events(AgentEvent::Retry {
                attempt,
                max_retries,
                delay,
                status: error.status(),
                kind: retry_kind(error),
            }),
            ClientEvent::Stream { event: StreamEvent::Ping, .. } => {}
            ClientEvent::Stream { raw, elapsed, .. } => {
                let first_after = std::mem::take(&mut is_first_event).then_some(elapsed);
                if first_after.is_some() {
                    state.first_token.get_or_insert_with(|| state.start.elapsed());
                }
                events(AgentEvent::Stream { raw, first_after });
            }
            ClientEvent::Block { reply } => {
                if let Some(block) = reply.blocks.last() {
                    let prepared = self.prepare_block(block, reply);
                    self.report_block(&prepared, reply, events);
                    blocks.push(prepared);
                }
            }
            ClientEvent::Restart => blocks.clear(),
            _ => {}
        });
        self.empty_request();
        let reply = result?;
        state.api_duration += request_start.elapsed();
        if !reply.is_streamed {
            state.first_token.get_or_insert_with(|| state.start.elapsed());
            for block in &reply.blocks {
                let prepared = self.prepare_block(block, &reply);
                self.report_block(&prepared, &reply, events);
                blocks.push(prepared);
            }
        }
        Ok((reply, blocks))
    }

    /// Switches to the fallback model for the rest of the session. Returns whether there is one.
    fn use_fallback_model(&mut self) -> bool {
        let Some(model) = self.config.fallback_model.take() else { return false };
        self.request.model.clone_from(&model);
        self.config.model = model;
        // Thinking is signed for the model that thought.
        for message in &mut self.conversation.messages {
            message.content.retain(|block| {
                !matches!(BlockKind::of(block), BlockKind::Thinking | BlockKind::RedactedThinking)
            });
        }
        true
    }

    fn prepare_block(&self, block: &RawObject, reply: &Reply) -> PreparedBlock {
        let uuid = self.clock.new_uuid();
        let mut block = block.clone();
        let is_call = BlockKind::of(&block) == BlockKind::ToolUse;
        let call = is_call.then(|| self.prepare_call(&mut block, &uuid));
        PreparedBlock { uuid, block, call, message: reply.message.clone() }
    }

    fn report_block(&self, prepared: &PreparedBlock, reply: &Reply, events: &mut dyn FnMut(AgentEvent<'_>)) {
        let mut message = reply.message.clone();
        message.set("content", [&prepared.block]);
        if !reply.is_streamed {
            message.set("usage", logged_usage(&reply.message.get_object("usage").unwrap_or_default()));
        }
        message.set("context_management", ());
        events(AgentEvent::Assistant {
            uuid: &prepared.uuid,
            message: &message,
            request_id: reply.request_id.as_deref(),
            error: None,
        });
        // A sub-agent counts as started with its call, although it waits for the end of the reply.
        if let Some(source) = prepared.call.as_ref().and_then(|call| call.sub_agent.as_deref()) {
            events(AgentEvent::SubAgent { source, event: &SubAgentEvent::Started });
        }
    }

    /// Writes the lines of a reply and adds its cost. Returns the budget if it is used up.
    fn add_reply(
        &mut self,
        reply: &Reply,
        blocks: &[PreparedBlock],
        state: &mut TurnState,
    ) -> Result<Option<f64>, WriteError> {
        state.stop_reason = reply.stop_reason();
        let usage = logged_usage(&reply.message.get_object("usage").unwrap_or_default());
        let has_final_usage = lock(&self.writer).format().has_final_usage;
        let first_usage = blocks.last().and_then(|block| block.message.get_object("usage"));
        self.last_usage_json = first_usage.filter(|_| !has_final_usage).unwrap_or_else(|| usage.clone());
        self.last_usage = Usage::of(&self.last_usage_json);
        let mut messages = Vec::with_capacity(blocks.len());
        for prepared in blocks {
            let mut message = if has_final_usage { reply.message.clone() } else { prepared.message.clone() };
            message.set("content", [&prepared.block]);
            // The final values of a truncated reply are not known; it keeps those of its beginning.
            if !reply.is_truncated && has_final_usage {
                message.set("usage", &usage);
                if reply.is_streamed && message.get("stop_details").is_none() {
                    message.set("stop_details", ());
                }
            }
            messages.push((prepared.uuid.clone(), message));
        }
        lock(&self.writer).assistant(&messages, reply.request_id.as_deref(), &*self.clock)?;
        self.conversation.push(Role::Assistant, blocks.iter().map(|block| block.block.clone()).collect());
        self.reply_lines = blocks.iter().map(|block| block.uuid.clone()).collect();
        if !reply.is_truncated {
            self.totals.add(&self.config.model, &reply.usage(), &self.prices);
        }
        Ok(self.config.max_budget_usd.filter(|budget| self.totals.cost_usd() >= *budget))
    }

    /// Decides what follows a reply without calls: the end of the turn, or another request.
    fn finish_reply(
        &mut self,
        reply: &Reply,
        blocks: &[RawObject],
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<Option<TurnEnd>, WriteError> {
        let is_visible = blocks
            .iter()
            .any(|block| !matches!(BlockKind::of(block), BlockKind::Thinking | BlockKind::RedactedThinking));
        match state.stop_reason.as_deref() {
            Some("refusal") => {
                let text = refusal(reply.request_id.as_deref());
                let fields = ErrorFields {
                    is_api_error: true,
                    request_id: reply.request_id.as_deref(),
                    error: Some("invalid_request"),
                    is_refusal: true,
                    ..ErrorFields::default()
                };
                self.write_synthetic(&text, fields, events)?;
                state.text = text;
                return Ok(Some(TurnEnd::Refused));
            }
            Some("max_tokens" | "model_context_window_exceeded") if !state.has_continued => {
                state.has_continued = true;
                self.conversation.push(Role::User, vec![Message::text_block(filler::OUTPUT_LIMIT)]);
                return Ok(None);
            }
            _ => {}
        }
        if !is_visible && !reply.is_truncated && !state.has_asked_for_output {
            state.has_asked_for_output = true;
            self.write_meta_text(filler::NO_OUTPUT, state, events)?;
            return Ok(None);
        }
        if self.config.json_schema.is_some() && !state.has_asked_for_structure {
            state.has_asked_for_structure = true;
            self.write_meta_text(filler::STRUCTURED_OUTPUT, state, events)?;
            return Ok(None);
        }
        Ok(Some(TurnEnd::Completed))
    }

    /// Writes a note of the client to the model, and adds it to the conversation.
    fn write_meta_text(
        &mut self,
        text: &str,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let block = Message::text_block(text);
        let fields = UserLineFields { is_meta: true, ..UserLineFields::default() };
        self.write_user(&raw(&text), vec![block], fields, state, events)
    }

    /// Writes blocks that belong to the results of tools, such as documents.
    fn write_meta_blocks(
        &mut self,
        blocks: Vec<RawObject>,
        call: Option<&str>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { is_meta: true, source_tool_use_id: call, ..UserLineFields::default() };
        self.write_user(&raw(&blocks), blocks, fields, state, events)
    }

    fn write_user(
        &mut self,
        content: &RawValue,
        blocks: Vec<RawObject>,
        fields: UserLineFields<'_>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let is_meta = fields.is_meta;
        let fields = UserLineFields { prompt_id: Some(&state.prompt_id), ..fields };
        let written = lock(&self.writer).user(content, fields, &*self.clock)?;
        let message = RawObject::new().with("role", "user").with("content", &blocks);
        events(AgentEvent::User {
            uuid: &written.uuid,
            message: &message,
            timestamp: written.timestamp,
            tool_use_result: None,
            is_synthetic: is_meta,
        });
        state.num_turns += 1;
        self.conversation.push(Role::User, blocks);
        Ok(())
    }

    fn write_synthetic(
        &mut self,
        text: &str,
        fields: ErrorFields<'_>,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let (uuid, message) = lock(&self.writer).synthetic(text, fields, &*self.clock)?;
        events(AgentEvent::Assistant {
            uuid: &uuid,
            message: &message,
            request_id: fields.request_id,
            error: fields.error,
        });
        // The next prompt of this process must not follow an error.
        self.filler = Filler::UserAndReply;
        Ok(())
    }

    fn report_error(
        &mut self,
        error: &ApiError,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let mut report = ErrorReport::new(error, &self.config.model, self.client.config().host());
        let has_details = lock(&self.writer).format().has_error_details;
        if !has_details && let ApiError::Status { status, body, .. } = error {
            report.text = format!("API Error: {status} {}", compact(body));
        }
        let fields = ErrorFields {
            is_api_error: true,
            request_id: error.request_id().filter(|_| has_details),
            error: Some(report.error),
            error_details: report.details.as_deref(),
            status: error.status(),
            is_refusal: false,
        };
        self.write_synthetic(&report.text, fields, events)?;
        state.text = report.text;
        state.stop_reason = Some("stop_sequence".to_owned());
        Ok(TurnEnd::ApiError { status: error.status(), reason: report.reason })
    }

    fn interrupt(
        &mut self,
        during_tools: bool,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let text = if during_tools { filler::INTERRUPTED_TOOLS } else { filler::INTERRUPTED };
        let blocks = vec![Message::text_block(text)];
        self.write_user(&raw(&blocks), blocks, UserLineFields::default(), state, events)?;
        self.filler = Filler::Reply;
        Ok(TurnEnd::Interrupted { during_tools })
    }
}

impl TurnState {
    fn new(prompt_id: String, prompt_uuid: String) -> Self {
        Self {
            start: Instant::now(),
            prompt_id,
            prompt_uuid,
            num_turns: 0,
            replies: 1,
            api_duration: Duration::ZERO,
            first_request: None,
            first_token: None,
            usage: Usage::default(),
            text: String::new(),
            stop_reason: None,
            structured_output: None,
            denials: Vec::new(),
            has_continued: false,
            has_asked_for_output: false,
            has_asked_for_structure: false,
            stop_blocks: 0,
            is_command: false,
            command_scope: None,
        }
    }
}

/// Whether the API has no capacity for the model, which another model may have.
fn is_overloaded(error: &ApiError) -> bool {
    error.kind() == Some(&ErrorKind::Overloaded) || error.status() == Some(529)
}

/// Returns JSON without white space.
fn compact_json(value: &RawValue) -> String {
    serde_json::from_str::<RawObject>(value.get())
        .map_or_else(|_| value.get().to_owned(), |object| object.to_json())
}

/// Returns the text of a prompt: the text itself, or its first text block.
fn prompt_text(prompt: &RawValue) -> Option<String> {
    if let Ok(text) = serde_json::from_str(prompt.get()) {
        return Some(text);
    }
    let blocks: Vec<RawObject> = serde_json::from_str(prompt.get()).ok()?;
    blocks.iter().find_map(|block| block.get_str("text"))
}

/// The longest prompt in the mark at the end of a log, in characters.
const LAST_PROMPT_LENGTH: usize = 200;

/// Returns a prompt on one line, cut to the length of the mark.
fn one_line(text: &str) -> String {
    let line = text.replace('\n', " ");
    let line = line.trim();
    match line.char_indices().nth(LAST_PROMPT_LENGTH) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

/// Returns the last text of a reply.
fn last_text(blocks: &[RawObject]) -> Option<String> {
    let last = blocks.last()?;
    if BlockKind::of(last) == BlockKind::Text { last.get_str("text") } else { Some(String::new()) }
}

/// Returns a usage object with all its members, as session lines contain it.
fn logged_usage(usage: &RawObject) -> RawObject {
    let zero = || raw(&0);
    let object = |json: &str| RawObject::parse(json).map(|object| raw(&object)).unwrap_or_else(|_| zero());
    let defaults: [(&str, Box<RawValue>); 10] = [
        ("input_tokens", zero()),
        ("cache_creation_input_tokens", zero()),
        ("cache_read_input_tokens", zero()),
        ("output_tokens", zero()),
        ("server_tool_use", object(r#"{"web_search_requests":0,"web_fetch_requests":0}"#)),
        ("service_tier", raw(&"standard")),
        ("cache_creation", object(r#"{"ephemeral_1h_input_tokens":0,"ephemeral_5m_input_tokens":0}"#)),
        ("inference_geo", raw(&"")),
        ("iterations", raw(&[(); 0])),
        ("speed", raw(&"standard")),
    ];
    let mut logged = RawObject::new();
    for (key, default) in defaults {
        let value = usage.get(key).filter(|value| value.get() != "null").map(ToOwned::to_owned);
        logged.set_raw(key, value.unwrap_or(default));
    }
    for (key, value) in usage.members().filter(|(key, _)| logged.get(key).is_none()).collect::<Vec<_>>() {
        logged.set_raw(key, value.to_owned());
    }
    logged
}

/// Returns the usage of a turn as an object of the API.
fn usage_json(usage: &Usage) -> RawObject {
    let short = usage.cache_write.saturating_sub(usage.cache_write_1h);
    let cache_creation = RawObject::new()
        .with("ephemeral_1h_input_tokens", usage.cache_write_1h)
        .with("ephemeral_5m_input_tokens", if usage.cache_write_1h > 0 { short } else { 0 });
    let searches =
        RawObject::new().with("web_search_requests", usage.web_searches).with("web_fetch_requests", 0);
    let object = RawObject::new()
        .with("input_tokens", usage.input)
        .with("cache_creation_input_tokens", usage.cache_write)
        .with("cache_read_input_tokens", usage.cache_read)
        .with("output_tokens", usage.output)
        .with("server_tool_use", searches)
        .with("cache_creation", cache_creation);
    logged_usage(&object)
}
