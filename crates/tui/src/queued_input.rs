//! Prompts that were entered while a turn ran, shared by the screen and the thread of the agent.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use threadline_agent::{QueuedPrompt, TurnInput};
use threadline_entry::Millis;

use crate::composer::EnteredPrompt;
use crate::message::AgentMessage;
use crate::narrator::prompt_lines;
use crate::page::SharedPage;
use crate::queue::EventQueue;
use crate::worker::content;

/// Prompts that were entered during a turn. The agent takes those that join it; the others follow it.
#[derive(Debug, Default)]
pub(crate) struct QueuedInput {
    prompts: Mutex<VecDeque<(EnteredPrompt, Millis)>>,
    takes_back: AtomicBool,
}

impl QueuedInput {
    pub(crate) fn push(&self, prompt: EnteredPrompt, now: Millis) {
        self.lock().push_back((prompt, now));
    }

    pub(crate) fn pop(&self) -> Option<EnteredPrompt> {
        self.lock().pop_front().map(|(prompt, _)| prompt)
    }

    /// Takes all prompts, so that they can be changed.
    pub(crate) fn take_all(&self) -> Vec<EnteredPrompt> {
        self.lock().drain(..).map(|(prompt, _)| prompt).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The prompts as they are shown.
    pub(crate) fn shown(&self) -> Vec<String> {
        self.lock().iter().map(|(prompt, _)| prompt.shown.clone()).collect()
    }

    /// Whether a turn that is interrupted before its reply begins gives its prompt back.
    pub(crate) fn set_takes_back(&self, takes_back: bool) {
        self.takes_back.store(takes_back, Ordering::SeqCst);
    }

    /// Takes the prompts up to the first one that is a command.
    fn take_joining(&self) -> Vec<(EnteredPrompt, Millis)> {
        let mut prompts = self.lock();
        let is_command =
            |(prompt, _): &(EnteredPrompt, Millis)| prompt.text.trim().starts_with(['/', '!', '#']);
        let count = prompts.iter().position(is_command).unwrap_or(prompts.len());
        prompts.drain(..count).collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(EnteredPrompt, Millis)>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
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
        for (prompt, _) in &prompts {
            self.events.push_agent(AgentMessage::Print(prompt_lines(&self.page, &prompt.shown)));
        }
        prompts.into_iter().map(|(prompt, time)| QueuedPrompt { content: content(&prompt), time }).collect()
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
        let taken: Vec<String> = queued.take_joining().into_iter().map(|(prompt, _)| prompt.text).collect();
        assert_eq!(taken, ["one", "two"]);
        assert_eq!(queued.shown(), ["!ls", "three"]);
        assert!(queued.take_joining().is_empty());
        assert_eq!(queued.pop().unwrap().text, "!ls");
    }
}
