//! What was told of a log already: some of it is written twice, and some replies go on behind the next prompt.

use rustc_hash::{FxHashMap, FxHashSet};
use threadline_usage::Tokens;

use crate::id::TraceId;

/// The replies and calls that were sent before.
///
/// A log that was written out again repeats them, and nothing of it is sent again. A reply whose last lines stand
/// behind the next prompt is told in two parts: the second has what the first did not.
#[derive(Clone, Debug, Default)]
pub struct Told {
    replies: FxHashMap<Box<str>, (Tokens, TraceId)>,
    calls: FxHashSet<(Box<str>, Box<str>)>,
    /// The reply that was told last.
    last: Option<Box<str>>,
}

impl Told {
    /// Goes on from what another run told last.
    pub fn from_last(id: &str, tokens: Tokens, trace: TraceId) -> Self {
        let mut told = Self::default();
        told.add_reply(id, tokens, trace);
        told
    }

    /// The reply that was told last, and what it used as far as was known.
    pub fn last(&self) -> Option<(&str, Tokens)> {
        let id = self.last.as_deref()?;
        Some((id, self.replies.get(id)?.0))
    }

    /// What a reply used as far as it was told, and with which turn; `None` if it was not.
    pub(crate) fn reply(&self, id: &str) -> Option<(Tokens, TraceId)> {
        self.replies.get(id).copied()
    }

    pub(crate) fn add_reply(&mut self, id: &str, tokens: Tokens, trace: TraceId) {
        self.replies.insert(id.into(), (tokens, trace));
        self.last = Some(id.into());
    }

    /// Whether a call of a reply was told.
    pub(crate) fn has_call(&self, reply: &str, call: &str) -> bool {
        self.calls.contains(&(reply.into(), call.into()))
    }

    pub(crate) fn add_call(&mut self, reply: &str, call: &str) {
        self.calls.insert((reply.into(), call.into()));
    }
}

/// What is new in `now` beside what was known.
pub(crate) fn beyond(now: Tokens, known: Tokens) -> Tokens {
    Tokens {
        input: now.input.saturating_sub(known.input),
        output: now.output.saturating_sub(known.output),
        cache_read: now.cache_read.saturating_sub(known.cache_read),
        cache_write_5m: now.cache_write_5m.saturating_sub(known.cache_write_5m),
        cache_write_1h: now.cache_write_1h.saturating_sub(known.cache_write_1h),
    }
}
