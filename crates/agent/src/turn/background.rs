//! The turns that background tasks begin when they end.

use std::time::Duration;

use threadline_cancel::CancelToken;

use super::TurnPrompt;
use crate::agent::Agent;
use crate::event::{AgentEvent, TurnSummary};
use crate::json::raw;

/// The interval at which the loop checks for messages while it waits for a background task.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The same, while sub-agents run in the background too.
const SHORT_WAIT: Duration = Duration::from_millis(50);

/// The origin of a message about the end of a task.
const NOTIFICATION: &str = "task-notification";

impl Agent {
    /// Runs a turn for each background task that ends, until none is left.
    pub fn run_background(
        &mut self,
        cancel: &CancelToken,
        events: &mut dyn FnMut(AgentEvent<'_>),
    ) -> Option<TurnSummary> {
        let mut last = None;
        while !cancel.is_cancelled() {
            self.collect_background_agents(events);
            if let Some(agent) = self.background_agents.take_finished() {
                let notification = raw(&agent.notification());
                let prompt = TurnPrompt::Message(&notification, NOTIFICATION);
                last = Some(self.run_turn(prompt, cancel, events));
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
                let notification = raw(&task.notification());
                let prompt = TurnPrompt::Message(&notification, NOTIFICATION);
                last = Some(self.run_turn(prompt, cancel, events));
            }
        }
        last
    }
}
