//! The replies and tool calls already sent: some logs repeat lines, and some replies continue after the next
//! prompt.

use foldhash::{HashMap, HashSet};
use threadline_usage::TokenCounts;

use crate::id::TraceId;

/// The replies and tool calls already sent.
///
/// A log whose lines were written again repeats them, and nothing is sent twice. A reply with lines after the
/// next prompt is sent in two parts; the second contains only the difference.
#[derive(Clone, Debug, Default)]
pub struct SentReplies {
    /// The replies by id.
    replies: HashMap<String, SentReply>,
    /// The calls, by the ids of their reply and their own.
    calls: HashSet<(String, String)>,
    /// The id of the last reply sent.
    last: Option<String>,
}

/// The tokens of a reply that were sent, and under which trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentReply {
    /// The maximum count of each kind over all parts of the reply. Lines of one reply may disagree; counts
    /// never decrease, so that no token is sent twice.
    pub(crate) tokens: TokenCounts,
    /// The part of `tokens` that was sent under traces before the last.
    pub(crate) in_other_traces: TokenCounts,
    /// The trace of the last part.
    pub(crate) trace: TraceId,
}

impl SentReplies {
    /// Continues with the last reply sent by an earlier run.
    pub fn from_last(id: &str, tokens: TokenCounts, trace: TraceId) -> Self {
        let mut sent = Self::default();
        sent.add_reply(id, tokens, trace);
        sent
    }

    /// Returns the last reply sent and its token counts as sent.
    pub fn last(&self) -> Option<(&str, TokenCounts)> {
        let id = self.last.as_deref()?;
        Some((id, self.replies.get(id)?.tokens))
    }

    /// Returns the part of a reply that was sent, or `None`.
    pub(crate) fn reply(&self, id: &str) -> Option<SentReply> {
        self.replies.get(id).copied()
    }

    pub(crate) fn add_reply(&mut self, id: &str, tokens: TokenCounts, trace: TraceId) {
        let sent = self.replies.entry(id.to_owned()).or_insert(SentReply {
            tokens,
            in_other_traces: TokenCounts::default(),
            trace,
        });
        if sent.trace != trace {
            sent.in_other_traces = sent.tokens;
            sent.trace = trace;
        }
        sent.tokens = max_counts(tokens, sent.tokens);
        self.last = Some(id.into());
    }

    /// Whether a tool call of a reply was sent.
    pub(crate) fn has_call(&self, reply: &str, call: &str) -> bool {
        self.calls.contains(&(reply.to_owned(), call.to_owned()))
    }

    pub(crate) fn add_call(&mut self, reply: &str, call: &str) {
        self.calls.insert((reply.to_owned(), call.to_owned()));
    }
}

/// Returns the larger count of each kind.
pub(crate) fn max_counts(left: TokenCounts, right: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: left.input.max(right.input),
        output: left.output.max(right.output),
        cache_read: left.cache_read.max(right.cache_read),
        cache_write_5m: left.cache_write_5m.max(right.cache_write_5m),
        cache_write_1h: left.cache_write_1h.max(right.cache_write_1h),
    }
}

/// Returns the tokens of `now` that exceed `sent`.
pub(crate) fn tokens_since(now: TokenCounts, sent: TokenCounts) -> TokenCounts {
    TokenCounts {
        input: now.input.saturating_sub(sent.input),
        output: now.output.saturating_sub(sent.output),
        cache_read: now.cache_read.saturating_sub(sent.cache_read),
        cache_write_5m: now.cache_write_5m.saturating_sub(sent.cache_write_5m),
        cache_write_1h: now.cache_write_1h.saturating_sub(sent.cache_write_1h),
    }
}
