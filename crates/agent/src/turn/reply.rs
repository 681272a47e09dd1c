//! One reply of the model: the request, the blocks, their lines, and the step that follows.

use std::time::Instant;

use threadline_api::{
    ApiError, BlockKind, ClientEvent, Delta, ErrorKind, Message, RawObject, Reply, Role, StreamEvent, Usage,
};
use threadline_cancel::CancelToken;

use super::TurnState;
use super::usage::logged_usage;
use crate::agent::Agent;
use crate::error_text::{filler, refusal, retry_kind};
use crate::event::{AgentEvent, TurnEnd};
use crate::plan_mode::without_plan;
use crate::session_writer::{ErrorFields, WriteError};
use crate::sub_agent::SubAgentEvent;
use crate::tool_calls::PendingCall;

/// A block of a reply that has its line id already.
pub(super) struct PreparedBlock {
    pub(super) uuid: String,
    pub(super) block: RawObject,
    pub(super) call: Option<PendingCall>,
    /// The message at the moment at which the block was complete.
    pub(super) message: RawObject,
}

impl Agent {
    /// Copies the conversation into the request, with the memory files before it. They are not part of the
    /// log, and are added to each request.
    pub(crate) fn fill_request(&mut self) {
        self.request.messages = self.conversation.messages_for(&self.request.model);
        if let (Some(first), Some(memory)) = (self.request.messages.first_mut(), &self.memory)
            && first.role == Role::User
        {
            first.content.insert(0, memory.clone());
        }
    }

    /// Sends the conversation and returns the reply, its blocks prepared and reported.
    pub(super) fn request_reply(
        &mut self,
        state: &mut TurnState,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(Reply, Vec<PreparedBlock>), ApiError> {
        self.conversation.normalize();
        self.fill_request();
        let mut blocks = Vec::new();
        let mut is_first_event = true;
        state.partial_text.clear();
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
            ClientEvent::Stream { raw, event, elapsed } => {
                match event {
                    StreamEvent::MessageStart { message } => state.message_id = message.get_str("id"),
                    StreamEvent::BlockDelta { delta: Delta::Text(text), .. } => {
                        state.partial_text.push_str(text);
                    }
                    _ => {}
                }
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
            ClientEvent::Restart => {
                blocks.clear();
                state.partial_text.clear();
            }
            _ => {}
        });
        self.request.messages.clear();
        let reply = result?;
        state.api_duration += request_start.elapsed();
        if !reply.is_streamed {
            state.message_id = reply.message.get_str("id");
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
    pub(super) fn use_fallback_model(&mut self) -> bool {
        let Some(model) = self.config.fallback_model.take() else { return false };
        self.request.model.clone_from(&model);
        self.config.model = model;
        self.config.plan_model = None;
        true
    }

    pub(super) fn prepare_block(&self, block: &RawObject, reply: &Reply) -> PreparedBlock {
        let uuid = self.clock.new_uuid();
        let mut block = block.clone();
        let is_call = BlockKind::of(&block) == BlockKind::ToolUse;
        let call = is_call.then(|| self.prepare_call(&mut block, &uuid));
        PreparedBlock { uuid, block, call, message: reply.message.clone() }
    }

    pub(super) fn report_block(
        &self,
        prepared: &PreparedBlock,
        reply: &Reply,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) {
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
        // A sub-agent counts as started with its call, although it starts after the reply.
        if let Some(source) = prepared.call.as_ref().and_then(|call| call.sub_agent.as_deref()) {
            events(AgentEvent::SubAgent { source, event: &SubAgentEvent::Started });
        }
    }

    /// Writes the lines of a reply and adds its cost. Returns the budget if it is used up.
    pub(super) fn add_reply(
        &mut self,
        reply: &Reply,
        blocks: &[PreparedBlock],
        state: &mut TurnState,
    ) -> Result<Option<f64>, WriteError> {
        state.stop_reason = reply.stop_reason();
        state.has_reply = true;
        let usage = logged_usage(&reply.message.get_object("usage").unwrap_or_default());
        let has_final_usage = self.writer.lock().format().has_final_usage;
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
        self.writer.lock().assistant(&messages, reply.request_id.as_deref(), &*self.clock)?;
        let sent: Vec<RawObject> = blocks.iter().map(|block| without_plan(block.block.clone())).collect();
        self.conversation.note_thinking(&sent, &self.request.model);
        self.conversation.push(Role::Assistant, sent);
        self.reply_lines = blocks.iter().map(|block| block.uuid.clone()).collect();
        if !reply.is_truncated {
            self.totals.add(&self.config.model, &reply.usage(), &self.prices);
        }
        Ok(self.config.max_budget_usd.filter(|budget| self.totals.cost_usd() >= *budget))
    }

    /// Ends the turn after a reply without calls, or requests another reply.
    pub(super) fn finish_reply(
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
}

/// Whether the API has no capacity for the model, which another model may have.
pub(super) fn is_overloaded(error: &ApiError) -> bool {
    error.kind() == Some(&ErrorKind::Overloaded) || error.status() == Some(529)
}

/// Returns the last text of a reply.
pub(super) fn last_text(blocks: &[RawObject]) -> Option<String> {
    let last = blocks.last()?;
    if BlockKind::of(last) == BlockKind::Text { last.get_str("text") } else { Some(String::new()) }
}
