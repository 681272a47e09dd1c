//! Replay: the messages that Claude Code would send if it resumed the session.
//!
//! The rules are those of version 2.1.197, found by watching it resume real and made-up files. They
//! come in two halves: [`path`] chooses the lines, from the leaf up to the root or the last
//! compaction; [`request`] turns those lines into messages that the API accepts.

mod path;
mod request;

use std::borrow::Cow;

use threadline_entry::{Json, mend_surrogates};

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

/// One block of a message.
#[derive(Clone, Debug)]
pub enum ReplayBlock<'s> {
    /// As it stands in the log, byte for byte.
    Raw(Json<'s>),
    /// A text that the log does not hold as a block.
    Text(Cow<'s, str>),
    /// The error result that stands in for one that was never written, by the call's id.
    MissingResult(Cow<'s, str>),
}

/// What Claude Code sends for a call whose result is gone.
const MISSING_RESULT: &str = "[Tool result missing due to internal error]";

impl<'s> ReplayBlock<'s> {
    /// The block's type.
    pub fn kind(&self) -> Cow<'s, str> {
        match self {
            Self::Raw(json) => json.get("type").and_then(Json::as_str).unwrap_or_default(),
            Self::Text(_) => Cow::Borrowed("text"),
            Self::MissingResult(_) => Cow::Borrowed("tool_result"),
        }
    }

    fn is(&self, kind: &str) -> bool {
        match self {
            Self::Raw(json) => json.get("type").is_some_and(|json| json.is_str(kind)),
            Self::Text(_) => kind == "text",
            Self::MissingResult(_) => kind == "tool_result",
        }
    }

    /// A string field of the block.
    fn field(&self, key: &str) -> Option<Cow<'s, str>> {
        match self {
            Self::Raw(json) => json.get(key)?.as_str(),
            Self::Text(text) => (key == "text").then(|| text.clone()),
            Self::MissingResult(id) => (key == "tool_use_id").then(|| id.clone()),
        }
    }

    /// Writes the block as JSON. Half characters, which are no text, become U+FFFD.
    pub fn write_json(&self, out: &mut String) {
        match self {
            Self::Raw(json) => out.push_str(&mend_surrogates(json.raw())),
            Self::Text(text) => {
                out.push_str("{\"type\":\"text\",\"text\":");
                write_string(text, out);
                out.push('}');
            }
            Self::MissingResult(id) => {
                out.push_str("{\"type\":\"tool_result\",\"tool_use_id\":");
                write_string(id, out);
                out.push_str(",\"content\":\"");
                out.push_str(MISSING_RESULT);
                out.push_str("\",\"is_error\":true}");
            }
        }
    }
}

/// Writes a JSON string.
fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for ch in text.chars() {
        match ch {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            ch if (ch as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", ch as u32)),
            ch => out.push(ch),
        }
    }
    out.push('"');
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
    /// The messages that Claude Code would send if it resumed this session, less what it adds by itself.
    ///
    /// `None` if it would refuse: nothing in the log is a conversation.
    pub fn replay(&self) -> Option<Vec<ReplayMessage<'_>>> {
        let graph = path::Graph::new(self);
        let leaf = graph.leaf().filter(|&leaf| graph.timestamp(leaf).is_some())?;
        Some(request::messages(self, &graph.path(leaf)))
    }

    /// The entry that a resume would go on from.
    pub fn active_leaf(&self) -> Option<usize> {
        let graph = path::Graph::new(self);
        graph.leaf().map(|leaf| graph.entry_idx(leaf))
    }
}
