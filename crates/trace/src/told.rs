//! The replies and tool calls already sent: some logs repeat lines, and some replies continue after the next
//! prompt.

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_usage::Tokens;

use crate::id::TraceId;

/// The replies and tool calls already sent.
///
/// A log that was written out again repeats them, and nothing is sent twice. A reply with lines after the
/// next prompt is sent in two parts; the second contains only the difference.
#[derive(Clone, Debug, Default)]
pub struct Told {
    replies: FxHashMap<Box<str>, (Tokens, TraceId)>,
    calls: FxHashSet<(Box<str>, Box<str>)>,
    /// The id of the last reply sent.
    last: Option<Box<str>>,
}

impl Told {
    /// Continues with the last reply sent by an earlier run.
    pub fn from_last(id: &str, tokens: Tokens, trace: TraceId) -> Self {
        let mut told = Self::default();
        told.add_reply(id, tokens, trace);
        told
    }

    /// Returns the last reply sent and its token counts as sent.
    pub fn last(&self) -> Option<(&str, Tokens)> {
        let id = self.last.as_deref()?;
        Some((id, self.replies.get(id)?.0))
    }

    /// Returns the token counts of a reply as sent and the trace it was sent in; `None` if it was not sent.
    pub(crate) fn reply(&self, id: &str) -> Option<(Tokens, TraceId)> {
        self.replies.get(id).copied()
    }

    pub(crate) fn add_reply(&mut self, id: &str, tokens: Tokens, trace: TraceId) {
        self.replies.insert(id.into(), (tokens, trace));
        self.last = Some(id.into());
    }

    /// Whether a tool call of a reply was sent.
    pub(crate) fn has_call(&self, reply: &str, call: &str) -> bool {
        self.calls.contains(&(reply.into(), call.into()))
    }

    pub(crate) fn add_call(&mut self, reply: &str, call: &str) {
        self.calls.insert((reply.into(), call.into()));
    }
}

/// Returns the token counts of `now` minus those of `known`, zero where `known` is larger.
pub(crate) fn beyond(now: Tokens, known: Tokens) -> Tokens {
    Tokens {
        input: now.input.saturating_sub(known.input),
        output: now.output.saturating_sub(known.output),
        cache_read: now.cache_read.saturating_sub(known.cache_read),
        cache_write_5m: now.cache_write_5m.saturating_sub(known.cache_write_5m),
        cache_write_1h: now.cache_write_1h.saturating_sub(known.cache_write_1h),
    }
}
