//! The messages that the client itself writes during a turn: notes, errors, interruptions.

use serde_json::value::RawValue;
use threadline_api::{ApiError, Message, RawObject, Role};

use super::TurnState;
use crate::agent::Agent;
use crate::error_text::{ErrorReport, compact, filler};
use crate::event::{AgentEvent, TurnEnd};
use crate::json::raw;
use crate::session_writer::{ErrorFields, UserLineFields, WriteError};

/// The moment of an interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// While the model replied.
    Reply,
    /// While a tool ran.
    Tools,
    /// The person refused a call.
    Refusal,
}

impl Agent {
    /// Writes a note of the client to the model, and adds it to the conversation.
    pub(super) fn write_meta_text(
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
    pub(super) fn write_meta_blocks(
        &mut self,
        blocks: Vec<RawObject>,
        call: Option<&str>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let fields = UserLineFields { is_meta: true, source_tool_use_id: call, ..UserLineFields::default() };
        self.write_user(&raw(&blocks), blocks, fields, state, events)
    }

    pub(super) fn write_user(
        &mut self,
        content: &RawValue,
        blocks: Vec<RawObject>,
        fields: UserLineFields<'_>,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let is_meta = fields.is_meta;
        let fields = UserLineFields { prompt_id: Some(&state.prompt_id), ..fields };
        let written = self.writer.lock().user(content, fields, &*self.clock)?;
        let message = RawObject::new().with("role", "user").with("content", &blocks);
        events(AgentEvent::User {
            uuid: &written.uuid,
            message: &message,
            timestamp: written.timestamp,
            tool_use_result: None,
            is_synthetic: is_meta,
            is_interrupted: false,
        });
        state.num_turns += 1;
        self.conversation.push(Role::User, blocks);
        Ok(())
    }

    pub(super) fn write_synthetic(
        &mut self,
        text: &str,
        fields: ErrorFields<'_>,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        let (uuid, message) = self.writer.lock().synthetic(text, fields, &*self.clock)?;
        events(AgentEvent::Assistant {
            uuid: &uuid,
            message: &message,
            request_id: fields.request_id,
            error: fields.error,
        });
        Ok(())
    }

    pub(super) fn report_error(
        &mut self,
        error: &ApiError,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let mut report = ErrorReport::new(error, &self.config.model, self.client.config().host());
        let has_details = self.writer.lock().format().has_error_details;
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

    /// Ends a turn that was interrupted while the model replied. The text so far is kept at a screen, where
    /// the person has seen it.
    pub(super) fn interrupt_reply(
        &mut self,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let text = std::mem::take(&mut state.partial_text);
        let is_before_reply = text.trim().is_empty() && !state.has_reply;
        let is_taken_back = || self.turn_input.as_ref().is_some_and(|input| input.takes_prompt_back());
        if is_before_reply
            && state.has_prompt_line
            && self.config.is_persistent
            && is_taken_back()
            && self.rewind(&state.prompt_uuid).is_ok()
        {
            return Ok(TurnEnd::TakenBack);
        }
        if self.config.is_interactive && self.role.is_none() && !text.trim().is_empty() {
            self.writer.lock().synthetic(&text, ErrorFields::default(), &*self.clock)?;
            self.conversation.push(Role::Assistant, vec![Message::text_block(&text)]);
        }
        self.interrupt(Interruption::Reply, state, events)
    }

    /// Writes that the person interrupted the turn. At a screen, the line names the reply, unless the person
    /// refused one of its calls.
    pub(super) fn interrupt(
        &mut self,
        interruption: Interruption,
        state: &mut TurnState,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<TurnEnd, WriteError> {
        let during_tools = interruption != Interruption::Reply;
        let text = if during_tools { filler::INTERRUPTED_TOOLS } else { filler::INTERRUPTED };
        let blocks = vec![Message::text_block(text)];
        let is_named = self.config.is_interactive && interruption != Interruption::Refusal;
        let message_id = state.message_id.clone().filter(|_| is_named && self.role.is_none());
        let fields =
            UserLineFields { interrupted_message_id: message_id.as_deref(), ..UserLineFields::default() };
        self.write_user(&raw(&blocks), blocks, fields, state, events)?;
        Ok(TurnEnd::Interrupted { during_tools })
    }
}
