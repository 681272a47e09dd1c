//! One turn: from a prompt to the end of the model's work.
//!
//! A turn is a sequence of steps: a request, and then the calls of its reply or the end of the reply, until a
//! step ends the turn.

mod background;
mod messages;
mod prompt;
mod reply;
mod state;
mod usage;

use serde_json::value::RawValue;
use threadline_api::{ApiError, Message, RawObject, Reply, Role, model_info};
use threadline_cancel::CancelToken;
use threadline_entry::write::Attachment;

use self::messages::Interruption;
use self::prompt::one_line;
pub(crate) use self::prompt::prompt_text;
use self::reply::{is_overloaded, last_text};
use self::state::TurnState;
use self::usage::usage_json;
use crate::agent::Agent;
use crate::config::SessionStart;
use crate::event::{AgentEvent, ContextUsage, TurnEnd, TurnSummary};
use crate::session_hooks::StopVerdict;
use crate::session_writer::WriteError;
use crate::tool_calls::{CallResults, PendingCall};
use crate::turn_input::QueuedPrompt;

/// The number of answers that do not match the JSON schema after which a turn ends, as in Claude Code.
const MAX_SCHEMA_ERRORS: u64 = 5;

/// The beginning of a turn.
#[derive(Clone, Copy)]
pub(crate) enum TurnPrompt<'a> {
    /// The model answers the conversation as it is.
    None,
    /// A prompt: a text, or an array of content blocks.
    Typed(&'a RawValue),
    /// A message that no person wrote, and the kind of its origin.
    Message(&'a RawValue, &'a str),
    /// Prompts that were entered during an earlier turn. The model gets them together.
    Queued(&'a [QueuedPrompt]),
}

impl<'a> TurnPrompt<'a> {
    fn origin(self) -> Option<&'a str> {
        match self {
            Self::Message(_, origin) => Some(origin),
            Self::None | Self::Typed(_) | Self::Queued(_) => None,
        }
    }
}

/// The next step of a turn.
enum TurnStep {
    /// The conversation is sent.
    Request,
    /// The calls of a reply run.
    RunCalls(Vec<PendingCall>),
    /// A reply without calls ends the turn, unless the client or a hook asks for more.
    FinishReply(Box<Reply>, Vec<RawObject>),
    /// The turn ends.
    End(TurnEnd),
}

impl Agent {
    /// Runs a turn for a prompt: a text, or an array of content blocks.
    pub fn run(
        &mut self,
        prompt: &RawValue,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> TurnSummary {
        self.remember_prompt(prompt);
        self.run_turn(TurnPrompt::Typed(prompt), cancel, events)
    }

    /// Runs one turn for prompts that were entered during an earlier turn. Each has a line of its own; the
    /// model gets them as one message.
    pub fn run_queued(
        &mut self,
        prompts: &[QueuedPrompt],
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> TurnSummary {
        if let Some(first) = prompts.first() {
            self.remember_prompt(&first.content);
        }
        self.run_turn(TurnPrompt::Queued(prompts), cancel, events)
    }

    /// Sets the prompt for the mark at the end of the log. A fork keeps the mark of its source, as Claude
    /// Code does.
    fn remember_prompt(&mut self, prompt: &RawValue) {
        if !matches!(self.config.start, SessionStart::Fork { .. })
            && let Some(text) = prompt_text(prompt)
        {
            self.last_prompt = Some(one_line(&text));
        }
    }

    /// Runs a turn.
    pub(crate) fn run_turn(
        &mut self,
        prompt: TurnPrompt<'_>,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> TurnSummary {
        let prompt_id = self.role.as_ref().map(|role| role.prompt_id.clone());
        let prompt_id = prompt_id.unwrap_or_else(|| self.clock.new_uuid());
        let mut state = TurnState::new(prompt_id, self.clock.new_uuid());
        self.prompt_id = Some(state.prompt_id.clone());
        let end = match self.turn(prompt, &mut state, cancel, events) {
            Ok(end) => end,
            Err(error) => TurnEnd::Failed(error.to_string()),
        };
        if end == TurnEnd::Completed
            && let Err(error) = self.write_turn_duration(state.start.elapsed())
        {
            events(AgentEvent::Warning(&error.to_string()));
        }
        if let Some(scope) = state.command_scope.take() {
            self.leave_command(scope);
        }
        self.writer.lock().set_attribution_mcp(None);
        self.api_time += state.api_duration;
        let summary = TurnSummary {
            end,
            text: state.text,
            structured_output: state.structured_output,
            stop_reason: state.stop_reason,
            num_turns: state.num_turns,
            duration: state.start.elapsed(),
            api_duration: self.api_time,
            first_request: state.first_request,
            first_token: state.first_token,
            usage: usage_json(&state.usage),
            totals: self.totals.clone(),
            denials: state.denials,
            deferred_call: state.deferred_call,
            origin: prompt.origin().map(str::to_owned),
            context: ContextUsage {
                model: self.config.model.clone(),
                used: self.last_usage.context(),
                size: model_info(&self.config.model).context_window,
            },
        };
        events(AgentEvent::TurnEnd(&summary));
        summary
    }

    /// Takes the steps of a turn.
    fn turn(
        &mut self,
        prompt: TurnPrompt<'_>,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let origin = prompt.origin();
        let ended = match prompt {
            TurnPrompt::Typed(task) | TurnPrompt::Message(task, _) if self.role.is_some() => {
                self.write_task(task, origin, state, events)?;
                if origin.is_none() {
                    self.sub_agent_start_hooks(cancel)?;
                }
                None
            }
            TurnPrompt::Typed(prompt) | TurnPrompt::Message(prompt, _) => {
                self.start_turn(prompt, origin, state, cancel, events)?
            }
            TurnPrompt::Queued(prompts) => self.start_queued_turn(prompts, state, cancel, events)?,
            TurnPrompt::None => {
                events(AgentEvent::TurnStart);
                None
            }
        };
        if let Some(end) = ended {
            return Ok(end);
        }
        let mut step = TurnStep::Request;
        loop {
            step = match step {
                TurnStep::Request => self.request_step(state, cancel, events)?,
                TurnStep::RunCalls(calls) => self.calls_step(calls, state, cancel, events)?,
                TurnStep::FinishReply(reply, blocks) => {
                    self.finish_step(&reply, &blocks, state, cancel, events)?
                }
                TurnStep::End(end) => return Ok(end),
            };
        }
    }

    /// Sends the conversation and writes the reply.
    fn request_step(
        &mut self,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnStep, WriteError> {
        self.collect_background_agents(events);
        if state.command_scope.is_none() {
            self.use_model_of_mode();
        }
        let (reply, blocks) = match self.request_reply(state, cancel, events) {
            Ok(received) => received,
            Err(ApiError::Cancelled) => return self.interrupt_reply(state, events).map(TurnStep::End),
            Err(error) if is_overloaded(&error) && self.use_fallback_model() => {
                return Ok(TurnStep::Request);
            }
            Err(error) => return self.report_error(&error, state, events).map(TurnStep::End),
        };
        let used_budget = self.add_reply(&reply, &blocks, state)?;
        let (blocks, calls): (Vec<_>, Vec<_>) =
            blocks.into_iter().map(|block| (block.block, block.call)).unzip();
        let calls: Vec<PendingCall> = calls.into_iter().flatten().collect();
        if let Some(text) = last_text(&blocks) {
            state.text = text;
        }
        if let Some(budget) = used_budget {
            return Ok(TurnStep::End(TurnEnd::MaxBudget(budget)));
        }
        if reply.is_streamed && !reply.is_truncated {
            state.usage = state.usage.plus(reply.usage());
        }
        Ok(if calls.is_empty() {
            TurnStep::FinishReply(Box::new(reply), blocks)
        } else {
            TurnStep::RunCalls(calls)
        })
    }

    /// Decides whether a reply without calls ends the turn.
    fn finish_step(
        &mut self,
        reply: &Reply,
        blocks: &[RawObject],
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnStep, WriteError> {
        match self.finish_reply(reply, blocks, state, events)? {
            Some(TurnEnd::Completed) => {}
            Some(end) => return Ok(TurnStep::End(end)),
            None => return Ok(TurnStep::Request),
        }
        let verdict =
            self.stop_hooks(&state.text, state.stop_blocks, &mut state.num_turns, cancel, events)?;
        Ok(match verdict {
            StopVerdict::End => TurnStep::End(TurnEnd::Completed),
            StopVerdict::Stopped => TurnStep::End(TurnEnd::StoppedByHook { after_tool: false }),
            StopVerdict::GoOn => {
                state.stop_blocks += 1;
                TurnStep::Request
            }
            StopVerdict::Exhausted => {
                state.text.clear();
                TurnStep::End(TurnEnd::Completed)
            }
        })
    }

    /// Runs the calls of a reply and adds their results to the conversation.
    fn calls_step(
        &mut self,
        calls: Vec<PendingCall>,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnStep, WriteError> {
        let mut results = self.run_calls(calls, &state.prompt_id, cancel, events)?;
        self.add_results(&mut results, state);
        if results.is_interrupted {
            let interruption = if results.is_refused { Interruption::Refusal } else { Interruption::Tools };
            return self.interrupt(interruption, state, events).map(TurnStep::End);
        }
        if results.deferred_call.is_some() {
            state.text.clear();
            state.stop_reason = Some("tool_deferred".to_owned());
            state.deferred_call = results.deferred_call;
            return Ok(TurnStep::End(TurnEnd::Deferred));
        }
        if results.is_stopped {
            state.text.clear();
            return Ok(TurnStep::End(TurnEnd::StoppedByHook { after_tool: true }));
        }
        self.report_changed_files()?;
        if self.role.is_none() {
            self.report_plan_mode()?;
        }
        if !results.follow_up.is_empty() {
            let call = results.skill.as_ref().map(|(call, _)| call.as_str());
            self.write_meta_blocks(results.follow_up, call, state, events)?;
        }
        if let Some((_, skill)) = results.skill {
            self.writer.lock().set_attribution_skill(Some(skill));
            state.command_scope.get_or_insert_default();
        }
        if let Some(output) = results.structured_output {
            state.text = compact_json(&output);
            state.structured_output = Some(output);
            return Ok(TurnStep::End(TurnEnd::Completed));
        }
        state.schema_errors += results.schema_errors;
        if state.schema_errors >= MAX_SCHEMA_ERRORS {
            return Ok(TurnStep::End(TurnEnd::MaxSchemaErrors(state.schema_errors)));
        }
        state.replies += 1;
        if let Some(limit) = self.config.max_turns.filter(|limit| state.replies > *limit) {
            let attachment = Attachment::MaxTurnsReached { max_turns: limit, turn_count: state.replies };
            self.writer.lock().attachment(attachment, &*self.clock)?;
            return Ok(TurnStep::End(TurnEnd::MaxTurns(limit)));
        }
        self.add_messages()?;
        self.add_queued_prompts(cancel, events)?;
        Ok(TurnStep::Request)
    }

    /// Adds the results of calls to the conversation and to the totals.
    fn add_results(&mut self, results: &mut CallResults, state: &mut TurnState) {
        state.num_turns += results.messages;
        state.denials.append(&mut results.denials);
        self.changed_lines.added += results.changed_lines.added;
        self.changed_lines.removed += results.changed_lines.removed;
        for totals in &results.sub_agent_totals {
            self.totals.merge(totals);
        }
        let mut blocks = std::mem::take(&mut results.blocks);
        self.add_nested_memory(&results.read_files, &mut blocks);
        self.conversation.push(Role::User, blocks);
        let reminders = results.reminders.iter().map(|text| Message::text_block(text)).collect();
        self.conversation.push(Role::User, reminders);
    }
}

/// Returns JSON without white space.
fn compact_json(value: &RawValue) -> String {
    serde_json::from_str::<RawObject>(value.get())
        .map_or_else(|_| value.get().to_owned(), |object| object.to_json())
}
