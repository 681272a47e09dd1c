//! SendMessage: the model continues a sub-agent that it started before.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use threadline_api::{Message, Role};
use threadline_tools::{InputSchema, Kind, Parameter, Permit, Tool, ToolContext, ToolInput, ToolOutput};

use crate::agent::Agent;
use crate::json::raw;
use crate::session_writer::{UserLineFields, WriteError};
use crate::sub_agent::SubAgentEvent;
use crate::tool_calls::CallScope;

/// The name of the tool.
pub(crate) const SEND_MESSAGE: &str = "SendMessage";
/// The origin of messages of the session to its sub-agents.
pub(crate) const COORDINATOR: &str = "coordinator";
/// The number of sub-agents that are kept in memory after they have finished; the oldest are dropped first.
const MAX_FINISHED: usize = 32;

const fn required(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Text(0), required: true, default: None, description }
}

const PARAMETERS: &[Parameter] = &[
    required("to", "The id of the sub-agent"),
    Parameter { required: false, ..required("summary", "The message in five to ten words") },
    required("message", "The message"),
];

/// The definition of the tool for the model. The loop runs its calls.
pub(crate) struct SendMessageTool;

impl Tool for SendMessageTool {
    fn name(&self) -> &str {
        SEND_MESSAGE
    }

    fn description(&self) -> String {
        "Sends a message to a sub-agent of this session, by its id. One that works gets it after its next tools. \
         One that has finished goes on in the background with its context, and a message follows at its end."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn run(&self, _: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let message = "Messages are sent by the loop.";
        ToolOutput::not_run(message, message)
    }
}

/// The sub-agents of a session that can get messages.
#[derive(Default)]
pub(crate) struct Mailboxes {
    boxes: Mutex<VecDeque<(String, Mailbox)>>,
}

enum Mailbox {
    /// It works. Messages are delivered after its next tools, or at its end.
    Running(Vec<String>),
    Finished(Box<Agent>),
}

/// The result of a call, for the model and the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageRecord<'a> {
    success: bool,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed_agent_id: Option<&'a str>,
}

/// The result of a message.
enum Delivery {
    Queued,
    /// The sub-agent has finished, and takes the message as its next task.
    Resumed(Box<Agent>),
    Unknown,
}

impl Mailboxes {
    /// Adds a sub-agent that begins to work.
    pub(crate) fn start(&self, id: &str) {
        let mut boxes = self.boxes.lock();
        boxes.retain(|(other, _)| other != id);
        boxes.push_back((id.to_owned(), Mailbox::Running(Vec::new())));
    }

    /// Takes the messages of a sub-agent that works.
    fn take(&self, id: &str) -> Vec<String> {
        let mut boxes = self.boxes.lock();
        match boxes.iter_mut().find(|(other, _)| other == id) {
            Some((_, Mailbox::Running(messages))) => std::mem::take(messages),
            _ => Vec::new(),
        }
    }

    /// Stores a sub-agent that has finished. If it has pending messages, returns it with them instead.
    pub(crate) fn finish(&self, id: &str, agent: Agent) -> Option<(Agent, Vec<String>)> {
        // Its commands end with it.
        agent.background.kill_all(agent.limits.kill_grace);
        let mut boxes = self.boxes.lock();
        if let Some((_, Mailbox::Running(messages))) = boxes.iter_mut().find(|(other, _)| other == id)
            && !messages.is_empty()
        {
            return Some((agent, std::mem::take(messages)));
        }
        boxes.retain(|(other, _)| other != id);
        boxes.push_back((id.to_owned(), Mailbox::Finished(Box::new(agent))));
        let is_finished = |(_, mailbox): &(String, Mailbox)| matches!(mailbox, Mailbox::Finished(_));
        if boxes.iter().filter(|mailbox| is_finished(mailbox)).count() > MAX_FINISHED
            && let Some(oldest) = boxes.iter().position(is_finished)
        {
            boxes.remove(oldest);
        }
        None
    }

    fn deliver(&self, id: &str, message: &str) -> Delivery {
        let mut boxes = self.boxes.lock();
        let Some(at) = boxes.iter().position(|(other, _)| other == id) else { return Delivery::Unknown };
        if let (_, Mailbox::Running(messages)) = &mut boxes[at] {
            messages.push(message.to_owned());
            return Delivery::Queued;
        }
        let running = (id.to_owned(), Mailbox::Running(Vec::new()));
        match std::mem::replace(&mut boxes[at], running) {
            (_, Mailbox::Finished(agent)) => Delivery::Resumed(agent),
            (_, Mailbox::Running(_)) => Delivery::Unknown,
        }
    }
}

impl Agent {
    /// Sends a message of the model to one of its sub-agents.
    pub(crate) fn send_message(
        &self,
        call: &str,
        input: &ToolInput,
        _permit: Permit,
        scope: CallScope<'_>,
    ) -> ToolOutput {
        let to = input.text("to").unwrap_or_default();
        let message = input.text("message").unwrap_or_default();
        let delivery = match self.mailboxes.deliver(to, message) {
            // Sub-agents of earlier runs, and those that were dropped, are in the folder of the session.
            Delivery::Unknown => self
                .stored_agent(to, scope.prompt_id)
                .map_or(Delivery::Unknown, |agent| Delivery::Resumed(Box::new(agent))),
            delivery => delivery,
        };
        let (success, text, resumed) = match delivery {
            Delivery::Queued => {
                (true, format!("Message queued for delivery to {to} at its next tool round."), None)
            }
            Delivery::Unknown => (
                false,
                format!(
                    "No agent named '{to}' is currently addressable. Spawn a new one or use the agent ID."
                ),
                None,
            ),
            Delivery::Resumed(mut agent) => {
                if let Some(role) = &mut agent.role {
                    scope.prompt_id.clone_into(&mut role.prompt_id);
                    // Its end is reported as that of this call.
                    let source = Arc::make_mut(&mut role.source);
                    (source.tool_use_id, source.prompt) = (call.to_owned(), message.to_owned());
                    (scope.report)((Arc::clone(&role.source), SubAgentEvent::Started));
                }
                let output = self.resume_in_background(*agent, message);
                let text = format!(
                    "Agent \"{to}\" had no active task; resumed from transcript in the background with your message. \
                     You'll be notified when it finishes. Output: {}",
                    output.display()
                );
                (true, text, Some(to))
            }
        };
        let record = MessageRecord { success, message: &text, resumed_agent_id: resumed };
        ToolOutput::success(raw(&record).get(), &record)
    }

    /// Adds the messages of the session to the conversation of a sub-agent.
    pub(crate) fn add_messages(&mut self) -> Result<(), WriteError> {
        let (Some(role), Some(mailboxes)) = (&self.role, &self.parent_mailboxes) else { return Ok(()) };
        let prompt_id = role.prompt_id.clone();
        for message in mailboxes.take(&role.source.agent_id) {
            let fields = UserLineFields {
                prompt_id: Some(&prompt_id),
                is_meta: true,
                origin: Some(COORDINATOR),
                ..UserLineFields::default()
            };
            self.writer.lock().user(&raw(&message), fields, &*self.clock)?;
            self.conversation.push(Role::User, vec![Message::text_block(&message)]);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_for_a_sub_agent_that_works() {
        let mailboxes = Mailboxes::default();
        assert!(matches!(mailboxes.deliver("a1", "early"), Delivery::Unknown));
        mailboxes.start("a1");
        for message in ["one", "two"] {
            assert!(matches!(mailboxes.deliver("a1", message), Delivery::Queued));
        }
        assert_eq!(mailboxes.take("a1"), ["one", "two"]);
        assert!(mailboxes.take("a1").is_empty());
    }
}
