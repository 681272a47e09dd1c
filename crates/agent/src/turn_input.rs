//! The person at a screen, while a turn runs: prompts that join the turn, and the prompt that is taken back.

use serde_json::value::RawValue;
use threadline_api::{BlockKind, Message, RawObject, Role};
use threadline_cancel::CancelToken;
use threadline_entry::lens::AttachmentLine;
use threadline_entry::write::Attachment;
use threadline_entry::{Entry, Json, Kind, Millis, key, value};

use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::session_hooks::PromptVerdict;
use crate::session_writer::WriteError;

/// The person at a screen, while a turn runs.
pub trait TurnInput: Send + Sync {
    /// Takes the prompts that join the turn. Called after each round of tools, on the thread of the turn.
    fn take_prompts(&self) -> Vec<QueuedPrompt>;

    /// Whether a turn that was interrupted before its reply began gives its prompt back.
    fn takes_prompt_back(&self) -> bool;
}

/// A prompt that was entered while a turn ran.
#[derive(Clone, Debug)]
pub struct QueuedPrompt {
    /// A text, or an array of content blocks.
    pub content: Box<RawValue>,
    /// When it was entered.
    pub time: Millis,
}

impl Agent {
    /// Sets the person at the screen, so that prompts can join turns.
    pub fn set_turn_input(&mut self, input: std::sync::Arc<dyn TurnInput>) {
        self.turn_input = Some(input);
    }

    /// Adds the prompts that were entered since the last round of tools to the conversation.
    pub(crate) fn add_queued_prompts(
        &mut self,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Result<(), WriteError> {
        // A log without attachments cannot record them, so they are sent after the turn.
        if self.role.is_some() || !self.writer.lock().format().has_attachments {
            return Ok(());
        }
        let prompts = self.turn_input.as_ref().map(|input| input.take_prompts()).unwrap_or_default();
        for prompt in prompts {
            let text = crate::turn::prompt_text(&prompt.content).unwrap_or_default();
            let runs = match self.prompt_hooks(&text, cancel, events) {
                PromptVerdict::Send(runs) => runs,
                PromptVerdict::Block(reason) | PromptVerdict::Stop(reason) => {
                    events(AgentEvent::Warning(&reason));
                    continue;
                }
            };
            let content = Json::parse(prompt.content.get()).unwrap_or(Json::NULL);
            {
                let mut writer = self.writer.lock();
                writer.queue_and_remove(&text, prompt.time, &*self.clock)?;
                let attachment = Attachment::QueuedCommand { prompt: content, timestamp: prompt.time };
                writer.attachment(attachment, &*self.clock)?;
            }
            self.conversation.push(Role::User, queued_blocks(content));
            if content.as_str().is_some() {
                self.attach_mentioned_files(&text, cancel)?;
            }
            self.write_prompt_hooks(&runs)?;
        }
        Ok(())
    }
}

/// Returns the blocks of a queued prompt as the model gets them.
fn queued_blocks(prompt: Json<'_>) -> Vec<RawObject> {
    let block = |text: &str| {
        Message::text_block(&format!(
            "<system-reminder>\nThe user wrote this while you were working. Take it into account from here on:\n\
             {text}\n</system-reminder>"
        ))
    };
    if let Some(text) = prompt.as_str() {
        return vec![block(&text)];
    }
    let items = prompt.items().filter_map(|item| RawObject::parse(item.raw()).ok());
    let shown = items.map(|item| match item.get_str("text") {
        Some(text) if BlockKind::of(&item) == BlockKind::Text => block(&text),
        _ => item,
    });
    shown.collect()
}

/// Adds the prompts that joined a turn to the messages of a resumed session. They follow the results after
/// which they were written. A replay leaves them out, because Claude Code sends them as reminders.
pub(crate) fn add_resumed_prompts<'a>(messages: &mut [Message], lines: impl Iterator<Item = &'a Entry>) {
    let mut last_result = None;
    // Lines and messages are in the same order.
    let mut from = 0;
    for entry in lines {
        match entry.kind() {
            Kind::User => {
                let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
                last_result = blocks.filter_map(|block| block.tool_use_id()).last().map(|id| id.into_owned());
            }
            Kind::Attachment => {
                let attachment = entry.lens::<AttachmentLine<'_>>().and_then(AttachmentLine::attachment);
                let Some(attachment) = attachment.filter(|_| is_from_person(entry)) else { continue };
                let (Some(result), Some(prompt)) = (&last_result, attachment.prompt()) else { continue };
                let is_result = |block: &RawObject| block.get_str(key::TOOL_USE_ID).as_ref() == Some(result);
                let has_result = |message: &Message| message.content.iter().any(is_result);
                let Some(at) = messages[from..].iter().position(has_result) else { continue };
                from += at;
                messages[from].content.extend(queued_blocks(prompt));
            }
            _ => {}
        }
    }
}

/// Whether an attachment is a prompt that a person entered while a turn ran.
fn is_from_person(entry: &Entry) -> bool {
    let Some(attachment) = entry.get(key::ATTACHMENT) else { return false };
    let origin = attachment.get(key::ORIGIN).and_then(|origin| origin.get(key::KIND));
    attachment.get(key::TYPE).is_some_and(|kind| kind.is_str(value::QUEUED_COMMAND))
        && origin.is_some_and(|kind| kind.is_str("human"))
}
