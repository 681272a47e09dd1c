//! Filters: the parts of a transcript to show.

use threadline_entry::ToolPattern;
use threadline_session::InputKind;

use crate::transcript::{BranchView, ItemBody, Transcript, TranscriptEnd, TranscriptItem, TurnView};
use crate::transcript_parts::TranscriptPart;

/// The amount of detail to show. Each level includes the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DetailLevel {
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
pub struct TranscriptFilter {
    /// The amount of detail.
    pub level: DetailLevel,
    /// Only calls of these tools, also in sub-agents, unless empty.
    pub tools: Vec<ToolPattern>,
    /// Only counted errors, and the calls that contain them. See [`count_errors`](crate::count_errors).
    pub errors_only: bool,
    /// Only one role: `user` or `assistant`.
    pub role: Option<String>,
}

impl TranscriptFilter {
    /// Creates a filter that shows everything up to a level.
    pub fn up_to_level(level: DetailLevel) -> Self {
        Self { level, tools: Vec::new(), errors_only: false, role: None }
    }

    /// Returns whether only some kinds of items are wanted, not all up to a level.
    pub fn selects_items(&self) -> bool {
        self.errors_only || !self.tools.is_empty() || self.role.is_some()
    }

    /// Removes unwanted items from a transcript, and turns without remaining items.
    pub fn apply(&self, transcript: &mut Transcript) {
        self.keep_turns(&mut transcript.turns);
        self.apply_to_end(&mut transcript.end);
    }

    /// Removes unwanted items from a part of a transcript. Returns whether it is shown.
    pub fn keep_part(&self, part: &mut TranscriptPart) -> bool {
        match part {
            TranscriptPart::Header(_) | TranscriptPart::Findings(_) => true,
            TranscriptPart::Turn(turn) => self.keep_turn(turn),
            TranscriptPart::Agent(agent) => self.keep_turns(&mut agent.turns),
            TranscriptPart::Branch(branch) => self.keep_branch(branch),
        }
    }

    /// Removes unwanted items from the end of a transcript, and turns and sub-agents without remaining items.
    pub fn apply_to_end(&self, end: &mut TranscriptEnd) {
        end.branches.retain_mut(|branch| self.keep_branch(branch));
        end.agents.retain_mut(|agent| self.keep_turns(&mut agent.turns));
    }

    /// Removes unwanted items from an abandoned branch. Returns whether it is shown: unless the filter
    /// selects items and none remain.
    pub fn keep_branch(&self, branch: &mut BranchView) -> bool {
        if self.errors_only {
            // Errors of an abandoned branch do not count, but those of the sub-agents that it started.
            for turn in &mut branch.turns {
                turn.items.retain(TranscriptItem::has_errors_of_agents);
            }
        }
        self.keep_turns(&mut branch.turns) || !self.selects_items()
    }

    /// Removes unwanted items from a turn. Returns whether any remain.
    pub fn keep_turn(&self, turn: &mut TurnView) -> bool {
        self.keep_items(&mut turn.items);
        !turn.items.is_empty()
    }

    /// Removes unwanted items, also from the sub-agents inside calls.
    pub fn keep_items(&self, items: &mut Vec<TranscriptItem>) {
        items.retain(|item| self.wants(item));
        for item in items {
            if let ItemBody::Call(call) = &mut item.body {
                let keeps_empty = !self.errors_only && (self.tools.is_empty() || self.names(&call.name));
                call.agents.retain_mut(|agent| self.keep_turns(&mut agent.turns) || keeps_empty);
            }
        }
    }

    /// Removes unwanted items from some turns, and turns without remaining items. Returns whether any remain.
    pub fn keep_turns(&self, turns: &mut Vec<TurnView>) -> bool {
        turns.retain_mut(|turn| self.keep_turn(turn));
        !turns.is_empty()
    }

    pub(crate) fn wants(&self, item: &TranscriptItem) -> bool {
        let level = match &item.body {
            ItemBody::Input { input, .. } if input.is_typed() || input.opens_turn() => DetailLevel::Prompts,
            ItemBody::Input { input: InputKind::Interrupt | InputKind::QueuedNotification, .. } => {
                DetailLevel::Chat
            }
            ItemBody::Input { input: InputKind::CommandOutput | InputKind::BashOutput, .. } => {
                DetailLevel::Tools
            }
            ItemBody::Input { .. } => DetailLevel::Full,
            ItemBody::Text(_)
            | ItemBody::Compaction { .. }
            | ItemBody::Link { .. }
            | ItemBody::Error { .. } => DetailLevel::Chat,
            ItemBody::Call(_) | ItemBody::Unknown { .. } => DetailLevel::Tools,
            ItemBody::Thinking(_) => DetailLevel::Tools,
            body @ ItemBody::Event { .. } if body.is_attachment() => DetailLevel::Tools,
            ItemBody::Event { .. } => DetailLevel::Full,
        };
        let of_role = self.role.as_deref().is_none_or(|role| match &item.body {
            ItemBody::Input { .. } => role == "user",
            ItemBody::Text(_) | ItemBody::Thinking(_) | ItemBody::Call(_) => role == "assistant",
            _ => false,
        });
        // Items that were asked for by name are not hidden by the level.
        let is_selected = self.errors_only || !self.tools.is_empty();
        (is_selected || level <= self.level)
            && (!self.errors_only || item.is_error())
            && (self.tools.is_empty() || self.has_named_call(item))
            && of_role
    }

    /// Returns whether calls of a tool are wanted by name.
    fn names(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| pattern.matches(tool))
    }

    /// Returns whether an item is a call of a wanted tool, or contains one in a sub-agent.
    fn has_named_call(&self, item: &TranscriptItem) -> bool {
        let ItemBody::Call(call) = &item.body else { return false };
        let mut in_agents = call.agents.iter().flat_map(|agent| &agent.turns).flat_map(|turn| &turn.items);
        self.names(&call.name) || in_agents.any(|item| self.has_named_call(item))
    }

    /// Returns whether a call of this tool is only shown because of a sub-agent in it.
    pub(crate) fn is_only_around(&self, tool: &str, failed: bool) -> bool {
        (self.errors_only && !failed) || (!self.tools.is_empty() && !self.names(tool))
    }
}
