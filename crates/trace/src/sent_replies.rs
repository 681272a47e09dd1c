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

/// The figures of a reply that determine its cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReplyFigures {
    pub(crate) tokens: TokenCounts,
    pub(crate) web_searches: u64,
}

/// The figures of a reply that were sent, and under which trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SentReply {
    /// The maximum count of each kind over all parts of the reply. Lines of one reply may disagree; counts
    /// never decrease, so that nothing is sent twice.
    pub(crate) figures: ReplyFigures,
    /// The part of `figures` that was sent under traces before the last.
    pub(crate) in_other_traces: ReplyFigures,
    /// The trace of the last part.
    pub(crate) trace: TraceId,
}

impl SentReplies {
    /// Continues with the last reply sent by an earlier run.
    pub(crate) fn from_last(id: &str, figures: ReplyFigures, trace: TraceId) -> Self {
        let mut sent = Self::default();
        sent.add_reply(id, figures, trace);
        sent
    }

    /// Returns the last reply sent and its figures as sent.
    pub(crate) fn last(&self) -> Option<(&str, ReplyFigures)> {
        let id = self.last.as_deref()?;
        Some((id, self.replies.get(id)?.figures))
    }

    /// Returns the part of a reply that was sent, or `None`.
    pub(crate) fn reply(&self, id: &str) -> Option<SentReply> {
        self.replies.get(id).copied()
    }

    pub(crate) fn add_reply(&mut self, id: &str, figures: ReplyFigures, trace: TraceId) {
        let new = SentReply { figures, in_other_traces: ReplyFigures::default(), trace };
        let sent = self.replies.entry(id.to_owned()).or_insert(new);
        if sent.trace != trace {
            sent.in_other_traces = sent.figures;
            sent.trace = trace;
        }
        sent.figures = sent.figures.max(figures);
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

impl ReplyFigures {
    /// Returns the larger count of each kind.
    pub(crate) fn max(self, other: Self) -> Self {
        let (left, right) = (self.tokens, other.tokens);
        let tokens = TokenCounts {
            input: left.input.max(right.input),
            output: left.output.max(right.output),
            cache_read: left.cache_read.max(right.cache_read),
            cache_write_5m: left.cache_write_5m.max(right.cache_write_5m),
            cache_write_1h: left.cache_write_1h.max(right.cache_write_1h),
        };
        Self { tokens, web_searches: self.web_searches.max(other.web_searches) }
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
