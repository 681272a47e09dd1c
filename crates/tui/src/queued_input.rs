//! Prompts that were entered while a turn ran, shared by the screen and the thread of the agent.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use threadline_agent::{QueuedPrompt, TurnInput};
use threadline_entry::Millis;

use crate::composer::EnteredPrompt;
use crate::message::AgentMessage;
use crate::narrator::prompt_lines;
use crate::page::SharedPage;
use crate::queue::EventQueue;
use crate::worker::content;

/// A prompt that was entered during a turn, and when.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QueuedEntry {
    pub(crate) prompt: EnteredPrompt,
    pub(crate) time: Millis,
}

impl QueuedEntry {
    /// The prompt as the agent gets it.
    pub(crate) fn to_prompt(&self) -> QueuedPrompt {
        QueuedPrompt { content: content(&self.prompt), time: self.time }
    }
}

/// The input that follows a turn.
#[derive(Debug, PartialEq)]
pub(crate) enum NextInput {
    /// Prompts that the model gets together.
    Prompts(Vec<QueuedEntry>),
    Command(EnteredPrompt),
}

/// Prompts that were entered during a turn. The agent takes those that join it; the others follow it.
#[derive(Debug, Default)]
pub(crate) struct QueuedInput {
    prompts: Mutex<VecDeque<QueuedEntry>>,
    takes_back: AtomicBool,
}

impl QueuedInput {
    pub(crate) fn push(&self, prompt: EnteredPrompt, now: Millis) {
        self.prompts.lock().push_back(QueuedEntry { prompt, time: now });
    }

    /// Takes the prompts of the next turn: those up to the first command, or one command.
    pub(crate) fn take_next(&self) -> Option<NextInput> {
        let prompts = self.take_joining();
        if !prompts.is_empty() {
            return Some(NextInput::Prompts(prompts));
        }
        self.prompts.lock().pop_front().map(|entry| NextInput::Command(entry.prompt))
    }

    /// Takes all prompts, so that they can be changed.
    pub(crate) fn take_all(&self) -> Vec<EnteredPrompt> {
        self.prompts.lock().drain(..).map(|entry| entry.prompt).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.prompts.lock().is_empty()
    }

    /// The prompts as they are shown.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.prompts.lock().iter().map(|entry| entry.prompt.shown.clone()).collect()
    }

    /// Whether a turn that is interrupted before its reply begins gives its prompt back.
    pub(crate) fn set_takes_back(&self, takes_back: bool) {
        self.takes_back.store(takes_back, Ordering::SeqCst);
    }

    /// Takes the prompts up to the first one that is a command.
    fn take_joining(&self) -> Vec<QueuedEntry> {
        let mut prompts = self.prompts.lock();
        let is_command = |entry: &QueuedEntry| entry.prompt.text.trim().starts_with(['/', '!', '#']);
        let count = prompts.iter().position(is_command).unwrap_or(prompts.len());
        prompts.drain(..count).collect()
    }
}

/// The person at the screen, for the agent.
pub(crate) struct ScreenTurnInput {
    pub(crate) queued: Arc<QueuedInput>,
    pub(crate) events: Arc<EventQueue>,
    pub(crate) page: Arc<SharedPage>,
}

impl TurnInput for ScreenTurnInput {
    fn take_prompts(&self) -> Vec<QueuedPrompt> {
        let prompts = self.queued.take_joining();
        for entry in &prompts {
            self.events.push_agent(AgentMessage::Print(prompt_lines(&self.page, &entry.prompt.shown)));
        }
        prompts.iter().map(QueuedEntry::to_prompt).collect()
    }

    fn takes_prompt_back(&self) -> bool {
        self.queued.takes_back.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: &str) -> EnteredPrompt {
        EnteredPrompt { shown: text.to_owned(), text: text.to_owned(), images: Vec::new() }
    }

    #[test]
    fn prompts_before_the_first_command_join_a_turn() {
        let queued = QueuedInput::default();
        for text in ["one", "two", "!ls", "three"] {
            queued.push(prompt(text), 1);
        }
        let taken: Vec<String> = queued.take_joining().into_iter().map(|entry| entry.prompt.text).collect();
        assert_eq!(taken, ["one", "two"]);
        assert_eq!(queued.shown(), ["!ls", "three"]);
        assert!(queued.take_joining().is_empty());
        assert_eq!(queued.take_next(), Some(NextInput::Command(prompt("!ls"))));
    }

    #[test]
    fn prompts_up_to_a_command_follow_a_turn_together() {
        let queued = QueuedInput::default();
        for (text, time) in [("one", 1), ("two", 2), ("/cost", 3), ("three", 4)] {
            queued.push(prompt(text), time);
        }
        let entry = |text: &str, time| QueuedEntry { prompt: prompt(text), time };
        assert_eq!(queued.take_next(), Some(NextInput::Prompts(vec![entry("one", 1), entry("two", 2)])));
        assert_eq!(queued.take_next(), Some(NextInput::Command(prompt("/cost"))));
        assert_eq!(queued.take_next(), Some(NextInput::Prompts(vec![entry("three", 4)])));
        assert_eq!(queued.take_next(), None);
    }
}
