//! The events of the screen: keys first, then messages of the agent.

use std::collections::VecDeque;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::message::AgentMessage;

/// The number of pending messages at which the agent is blocked.
const MAX_MESSAGES: usize = 1024;

/// An event from outside of the agent.
#[derive(Debug)]
pub(crate) enum InputEvent {
    /// A key, a paste, or a new size.
    Terminal(crossterm::event::Event),
    /// A line, on a screen for screen readers.
    Line(String),
    /// Ctrl-C outside of raw mode, or a signal.
    #[cfg_attr(not(unix), expect(dead_code, reason = "signals exist on Unix only"))]
    Interrupt,
    /// The process was continued after it had been stopped.
    #[cfg_attr(not(unix), expect(dead_code, reason = "signals exist on Unix only"))]
    Continued,
    /// The process should end.
    Terminate,
    /// The paths below the working folder.
    Files(Vec<String>),
    /// The output of the user's status-line command.
    StatusLine(String),
    /// The image of the clipboard, or why there is none.
    Image(Result<tempfile::TempPath, String>),
}

/// An event of the screen.
#[derive(Debug)]
pub(crate) enum ScreenEvent {
    Input(InputEvent),
    Agent(AgentMessage),
    /// Nothing happened until the deadline.
    Deadline,
}

/// A queue in which keys overtake messages of the agent, so that typing does not wait for output.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    state: Mutex<QueueState>,
    changed: Condvar,
    has_room: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    input: VecDeque<InputEvent>,
    agent: VecDeque<AgentMessage>,
    /// Whether the screen is gone, so that messages have no receiver.
    is_closed: bool,
}

impl EventQueue {
    pub(crate) fn push_input(&self, event: InputEvent) {
        self.state.lock().input.push_back(event);
        self.changed.notify_one();
    }

    /// Adds a message. Waits while too many are pending.
    pub(crate) fn push_agent(&self, message: AgentMessage) {
        let is_full = |state: &mut QueueState| state.agent.len() >= MAX_MESSAGES && !state.is_closed;
        let mut state = self.state.lock();
        self.has_room.wait_while(&mut state, is_full);
        if !state.is_closed {
            state.agent.push_back(message);
            self.changed.notify_one();
        }
    }

    /// Takes the next event. Blocks until there is one, at most until the deadline if there is one.
    pub(crate) fn next(&self, deadline: Option<Instant>) -> ScreenEvent {
        let mut state = self.state.lock();
        loop {
            if let Some(event) = state.input.pop_front() {
                return ScreenEvent::Input(event);
            }
            if let Some(message) = state.agent.pop_front() {
                if state.agent.len() < MAX_MESSAGES / 2 {
                    self.has_room.notify_all();
                }
                return ScreenEvent::Agent(message);
            }
            let Some(deadline) = deadline else {
                self.changed.wait(&mut state);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return ScreenEvent::Deadline;
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Takes the next key or signal. Waits for one until the deadline; messages of the agent stay.
    pub(crate) fn next_input(&self, deadline: Instant) -> Option<InputEvent> {
        let mut state = self.state.lock();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !state.input.is_empty() {
                return state.input.pop_front();
            }
            self.changed.wait_for(&mut state, left);
        }
    }

    /// Drops all further messages of the agent.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.has_room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_overtakes_messages() {
        let queue = EventQueue::default();
        queue.push_agent(AgentMessage::TurnStart);
        queue.push_input(InputEvent::Continued);
        let events = [queue.next(None), queue.next(None), queue.next(Some(Instant::now()))];
        assert!(matches!(
            events,
            [
                ScreenEvent::Input(InputEvent::Continued),
                ScreenEvent::Agent(AgentMessage::TurnStart),
                ScreenEvent::Deadline
            ]
        ));
    }

    #[test]
    fn input_is_taken_while_messages_stay() {
        let queue = EventQueue::default();
        queue.push_agent(AgentMessage::TurnStart);
        assert!(queue.next_input(Instant::now()).is_none());
        queue.push_input(InputEvent::Continued);
        assert!(matches!(queue.next_input(Instant::now()), Some(InputEvent::Continued)));
        std::thread::scope(|scope| {
            scope.spawn(|| queue.push_input(InputEvent::Terminate));
            let deadline = Instant::now() + std::time::Duration::from_secs(60);
            assert!(matches!(queue.next_input(deadline), Some(InputEvent::Terminate)));
        });
        assert!(matches!(queue.next(None), ScreenEvent::Agent(AgentMessage::TurnStart)));
    }

    #[test]
    fn a_full_queue_waits_for_the_screen() {
        let queue = EventQueue::default();
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                for _ in 0..4 * MAX_MESSAGES {
                    queue.push_agent(AgentMessage::TurnStart);
                }
            });
            for _ in 0..2 * MAX_MESSAGES {
                assert!(matches!(queue.next(None), ScreenEvent::Agent(_)));
                assert!(queue.state.lock().agent.len() <= MAX_MESSAGES);
            }
            // A screen that is gone does not keep the agent waiting.
            queue.close();
            sender.join().unwrap();
        });
    }
}
