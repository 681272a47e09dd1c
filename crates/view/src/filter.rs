//! Filters: the parts of a transcript to show.

use threadline_session::Input;

use crate::transcript::{Body, Item, Transcript, TurnView};

/// The amount of detail to show. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Prompts.
    Prompts,
    /// Replies, compactions, links and errors.
    Chat,
    /// Tool calls in short, and thinking where a front end shows it collapsed.
    Tools,
    /// Everything in full: thinking, results, hooks, events.
    Full,
    /// The raw lines of the log.
    Raw,
}

/// The parts of a transcript to show.
#[derive(Clone, Debug)]
pub struct Filter {
    /// The amount of detail.
    pub level: Level,
    /// Only calls of these tools, unless empty.
    pub tools: Vec<String>,
    /// Only errors.
    pub errors: bool,
    /// Only one role: `user` or `assistant`.
    pub role: Option<String>,
}

impl Filter {
    /// Creates a filter that shows everything up to a level.
    pub fn level(level: Level) -> Self {
        Self { level, tools: Vec::new(), errors: false, role: None }
    }

    /// Removes unwanted items from a transcript, and turns without remaining items.
    pub fn apply(&self, transcript: &mut Transcript) {
        self.keep(&mut transcript.turns);
        for branch in &mut transcript.branches {
            self.keep(&mut branch.turns);
        }
        for agent in &mut transcript.agents {
            self.keep(&mut agent.turns);
        }
        transcript.agents.retain(|agent| !agent.turns.is_empty());
    }

    /// Removes unwanted items from a turn. Returns whether any remain.
    pub fn keep_of(&self, turn: &mut TurnView) -> bool {
        self.keep_items(&mut turn.items);
        !turn.items.is_empty()
    }

    /// Removes unwanted items, also from the sub-agents inside calls.
    pub fn keep_items(&self, items: &mut Vec<Item>) {
        items.retain(|item| self.wants(item));
        for item in items {
            if let Body::Call(call) = &mut item.body {
                for agent in &mut call.agents {
                    self.keep(&mut agent.turns);
                }
            }
        }
    }

    fn keep(&self, turns: &mut Vec<TurnView>) {
        turns.retain_mut(|turn| self.keep_of(turn));
    }

    pub(crate) fn wants(&self, item: &Item) -> bool {
        let level = match &item.body {
            Body::Input { input, .. } if input.is_typed() || input.opens_turn() => Level::Prompts,
            Body::Input { input: Input::Interrupt | Input::QueuedNotification, .. } => Level::Chat,
            Body::Input { input: Input::CommandOutput | Input::BashOutput, .. } => Level::Tools,
            Body::Input { .. } => Level::Full,
            Body::Text(_) | Body::Compaction { .. } | Body::Link { .. } | Body::Trouble { .. } => Level::Chat,
            Body::Call(_) | Body::Unknown { .. } => Level::Tools,
            Body::Thinking(_) => Level::Tools,
            body @ Body::Event { .. } if body.is_attachment() => Level::Tools,
            Body::Event { .. } => Level::Full,
        };
        let failed = match &item.body {
            Body::Call(call) => {
                call.is_bad() || call.agents.iter().any(|agent| agent.turns.iter().any(has_error))
            }
            Body::Trouble { .. } | Body::Unknown { .. } => true,
            _ => false,
        };
        let of_tool = match &item.body {
            Body::Call(call) => self.tools.contains(&call.name),
            _ => false,
        };
        let of_role = self.role.as_deref().is_none_or(|role| match &item.body {
            Body::Input { .. } => role == "user",
            Body::Text(_) | Body::Thinking(_) | Body::Call(_) => role == "assistant",
            _ => false,
        });
        level <= self.level && (!self.errors || failed) && (self.tools.is_empty() || of_tool) && of_role
    }
}

fn has_error(turn: &TurnView) -> bool {
    turn.items.iter().any(|item| match &item.body {
        Body::Call(call) => call.is_bad(),
        Body::Trouble { .. } => true,
        _ => false,
    })
}
