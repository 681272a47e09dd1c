//! Replay: the messages that Claude Code would send if it resumed the session.
//!
//! The rules were found by watching Claude Code resume real and made-up files. `path` chooses the lines, from the
//! leaf up to the root or the last compaction; `request` turns those lines into messages that the API accepts,
//! `reminder` the attachments among them; `block` is what a message is made of. Where versions differ, `rule` says which version follows which rule.
//!
//! What Claude Code adds by itself is left out, for no reader of the file can know it. There is one
//! place where that shows: for models up to Claude 4.7 it folds the reminders that it makes of
//! `attachment` lines into the tool result before them. Where the line has the reminder's text (all do from 2.1.300
//! on), the result has it here, too; elsewhere the result stays as it was logged.

mod block;
mod path;
mod reminder;
mod request;
mod rule;
mod version;

pub use block::ReplayBlock;
pub use rule::ReplayRule;
pub use version::{ClientVersion, VersionError};

use rule::Rules;

use crate::session::Session;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person, and the tools.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The word that the API uses.
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
    /// Who speaks.
    pub role: Role,
    /// The blocks.
    pub content: Vec<ReplayBlock<'s>>,
}

impl ReplayMessage<'_> {
    /// Writes the message as JSON.
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
    /// The messages that a version of Claude Code would send if it resumed this session, less what it adds by itself.
    ///
    /// `None` if it would refuse: nothing in the log is a conversation, or a message in it is none.
    pub fn replay(&self, version: ClientVersion) -> Option<Vec<ReplayMessage<'_>>> {
        let rules = Rules::of(version);
        let graph = path::Graph::new(self, rules);
        let has_time = |leaf: &usize| graph.timestamp(*leaf).is_some();
        let leaf = graph.leaf().filter(|leaf| !rules.has(ReplayRule::NeedTimestamp) || has_time(leaf))?;
        Some(request::messages(self, &graph.path(leaf)?, rules))
    }

    /// The lines that a resume by the newest known version reads, oldest first: from the root or the last compaction
    /// to the leaf, with lines beside that path that belong to it. `None` if Claude Code would refuse.
    pub fn resumed_lines(&self) -> Option<Vec<usize>> {
        let graph = path::Graph::new(self, Rules::of(ClientVersion::NEWEST));
        let leaf = graph.leaf().filter(|&leaf| graph.timestamp(leaf).is_some())?;
        graph.path(leaf)
    }

    /// The entry that a resume by the newest known version would go on from.
    pub fn active_leaf(&self) -> Option<usize> {
        let graph = path::Graph::new(self, Rules::of(ClientVersion::NEWEST));
        graph.leaf().map(|leaf| graph.entry_idx(leaf))
    }
}
