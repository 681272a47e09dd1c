//! Replay: the messages that Claude Code would send if it resumed the session.
//!
//! The rules were determined by observing Claude Code resume real and synthetic files. `path` selects the
//! lines, from the leaf up to the root or the last compaction. `request` turns these lines into messages
//! that the API accepts; `reminder` does so for attachments, and `block` defines the blocks of a message.
//! `rule` lists the rules that differ between versions.
//!
//! Text that Claude Code adds itself is left out, because the file does not contain it. That is visible in
//! one case: for models up to Claude 4.7, it appends the reminders for `attachment` lines to the preceding
//! tool result. If the line contains the text of the reminder, which is always so from 2.1.300 on, the
//! replayed result contains it too. Otherwise the result is as logged.

mod block;
mod path;
mod reminder;
mod request;
mod rule;
mod version;

pub use block::ReplayBlock;
pub use rule::ReplayRule;
pub use version::{ClientVersion, VersionError};

use rule::VersionRules;

use crate::index::EntryIndex;
use crate::session::Session;

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageRole {
    /// The user, including tool results.
    User,
    /// The model.
    Assistant,
}

impl MessageRole {
    /// Returns the name that the API uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of a request.
#[derive(Clone, Debug)]
pub struct ReplayMessage<'s> {
    /// The role.
    pub role: MessageRole,
    /// The content blocks.
    pub content: Vec<ReplayBlock<'s>>,
}

impl ReplayMessage<'_> {
    /// Appends the message as JSON to `out`.
    pub fn write_json(&self, out: &mut String) {
        out.push_str("{\"role\":\"");
        out.push_str(self.role.name());
        out.push_str("\",\"content\":[");
        for (i, block) in self.content.iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            block.write_json(out);
        }
        out.push_str("]}");
    }
}

impl Session {
    /// Returns the messages that a version of Claude Code would send if it resumed this session, without
    /// the text that it adds itself.
    ///
    /// `None` if it would refuse to resume: the log contains no conversation, or a message has no content.
    pub fn replay(&self, version: ClientVersion) -> Option<Vec<ReplayMessage<'_>>> {
        Some(self.replay_path(&self.resume_path(version)?, version))
    }

    /// Returns the lines that a version of Claude Code reads in a resume, in the order of the conversation.
    ///
    /// The text of messages has no influence, so this works on abridged lines too. `None` if the version
    /// would refuse to resume.
    pub fn resume_path(&self, version: ClientVersion) -> Option<Vec<EntryIndex>> {
        let rules = VersionRules::of(version);
        let graph = path::ResumeGraph::new(self, rules);
        let has_time = |leaf: &usize| graph.timestamp(*leaf).is_some();
        let leaf = graph.leaf().filter(|leaf| !rules.has(ReplayRule::NeedTimestamp) || has_time(leaf))?;
        graph.path(leaf)
    }

    /// Like [`resume_path`](Self::resume_path), for a conversation that ends with this line.
    pub fn resume_path_to(&self, leaf: EntryIndex, version: ClientVersion) -> Option<Vec<EntryIndex>> {
        let graph = path::ResumeGraph::new(self, VersionRules::of(version));
        graph.path(graph.item_of(leaf)?)
    }

    /// Returns the messages for the lines of a [`resume_path`](Self::resume_path).
    ///
    /// Of the other lines of the session, only [`last_model_line`](Self::last_model_line) has an influence.
    pub fn replay_path(&self, path: &[EntryIndex], version: ClientVersion) -> Vec<ReplayMessage<'_>> {
        request::messages(self, path, VersionRules::of(version))
    }

    /// Like [`replay_path`](Self::replay_path), with the thinking of all models. A request contains only that
    /// of its own model.
    pub fn replay_path_with_thinking(
        &self,
        path: &[EntryIndex],
        version: ClientVersion,
    ) -> Vec<ReplayMessage<'_>> {
        let rules = VersionRules::of(version).without(ReplayRule::DropForeignThinking);
        request::messages(self, path, rules)
    }

    /// Returns the last reply that names its model. A resume continues with that model.
    pub fn last_model_line(&self) -> Option<EntryIndex> {
        request::last_model_line(self).map(|(line, _)| line)
    }

    /// Returns the lines that the newest known version reads in a resume, oldest first.
    ///
    /// They reach from the root or the last compaction to the leaf, and include lines attached to that
    /// path. `None` if Claude Code would refuse to resume.
    pub fn resumed_lines(&self) -> Option<Vec<EntryIndex>> {
        let graph = path::ResumeGraph::new(self, VersionRules::of(ClientVersion::NEWEST));
        let leaf = graph.leaf().filter(|&leaf| graph.timestamp(leaf).is_some())?;
        graph.path(leaf)
    }

    /// Returns the entry from which the newest known version would continue in a resume.
    pub fn active_leaf(&self) -> Option<EntryIndex> {
        let graph = path::ResumeGraph::new(self, VersionRules::of(ClientVersion::NEWEST));
        graph.leaf().map(|leaf| graph.entry_idx(leaf))
    }
}
