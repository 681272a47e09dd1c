//! JSON of `context`: the window of each model call.

use serde::Serialize;

use super::{SpentObject, TokensObject, moment};
use crate::context::{AgentContext, CacheMiss, ContextCall, ContextLedger, WindowItem, WindowPart};

/// One line of `context`: a model call, output that was not used, or a sub-agent.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub enum ContextObject<'a> {
    Call {
        turn: Option<u64>,
        anchor: &'a str,
        sent_at: Option<String>,
        model: Option<&'a str>,
        window_tokens: u64,
        tokens: TokensObject,
        growth_tokens: i64,
        compacted: bool,
        parts: Vec<PartObject<'a>>,
        added: Vec<WindowItemObject<'a>>,
        miss: Option<CacheMissObject>,
    },
    UnusedOutput(WindowItemObject<'a>),
    Agent {
        agent: &'a str,
        agent_type: Option<&'a str>,
        description: Option<&'a str>,
        calls: u64,
        peak_tokens: u64,
        misses: u64,
        missed_tokens: u64,
        usage: Option<SpentObject<'a>>,
    },
}

impl ContextObject<'_> {
    /// Returns whether this is a call that missed the cache.
    pub fn is_miss(&self) -> bool {
        matches!(self, Self::Call { miss: Some(_), .. })
    }
}

/// A part of the window.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct PartObject<'a> {
    pub part: &'static str,
    pub tool: Option<&'a str>,
    pub tokens: u64,
}

/// An item in the window.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct WindowItemObject<'a> {
    pub part: &'static str,
    pub tool: Option<&'a str>,
    pub label: &'a str,
    pub anchor: &'a str,
    pub tokens: u64,
}

/// Tokens that were not read from the cache.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CacheMissObject {
    pub tokens: u64,
    pub reason: &'static str,
    pub pause_ms: Option<i64>,
}

fn tool(part: &WindowPart) -> Option<&str> {
    match part {
        WindowPart::Results(tool) => Some(tool),
        _ => None,
    }
}

impl<'a> From<&'a WindowItem> for WindowItemObject<'a> {
    fn from(item: &'a WindowItem) -> Self {
        let WindowItem { part, label, anchor, tokens } = item;
        Self { part: part.name(), tool: tool(part), label, anchor, tokens: *tokens }
    }
}

impl<'a> From<&'a ContextCall> for ContextObject<'a> {
    fn from(call: &'a ContextCall) -> Self {
        let part = |(part, tokens): &'a (WindowPart, u64)| PartObject {
            part: part.name(),
            tool: tool(part),
            tokens: *tokens,
        };
        let miss = |miss: CacheMiss| CacheMissObject {
            tokens: miss.tokens,
            reason: miss.reason.name(),
            pause_ms: miss.pause,
        };
        Self::Call {
            turn: call.turn.map(|turn| turn as u64),
            anchor: &call.anchor,
            sent_at: call.at.map(moment),
            model: call.model.as_deref(),
            window_tokens: call.window(),
            tokens: call.tokens.into(),
            growth_tokens: call.growth,
            compacted: call.is_compacted,
            parts: call.parts.iter().map(part).collect(),
            added: call.added.iter().map(WindowItemObject::from).collect(),
            miss: call.miss.map(miss),
        }
    }
}

impl<'a> From<&'a AgentContext> for ContextObject<'a> {
    fn from(agent: &'a AgentContext) -> Self {
        Self::Agent {
            agent: &agent.id,
            agent_type: agent.agent_type.as_deref(),
            description: agent.description.as_deref(),
            calls: agent.n_calls as u64,
            peak_tokens: agent.peak,
            misses: agent.n_misses as u64,
            missed_tokens: agent.missed,
            usage: SpentObject::of(&agent.spent),
        }
    }
}

/// Returns the calls, then the output that was not used.
pub fn context_objects(ledger: &ContextLedger) -> impl Iterator<Item = ContextObject<'_>> {
    let unused = ledger.unused.iter().map(|item| ContextObject::UnusedOutput(item.into()));
    ledger.calls.iter().map(ContextObject::from).chain(unused)
}
