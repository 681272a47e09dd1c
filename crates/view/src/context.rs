//! The context ledger: what filled the window at each model call, what the cache missed, and output that was
//! not used.
//!
//! The log records the size of the window, but not its parts. The parts are estimated from the lengths of
//! texts, and scaled so that the growth from one call to the next is the recorded one. What no line explains
//! is the system prompt with the tools and the memory.

mod agents;
mod cache;
mod items;
mod unused;

use std::borrow::Cow;
use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use threadline_entry::Millis;
use threadline_entry::lens::Usage;
use threadline_session::{EntryIndex, Session};

pub use agents::AgentContext;
use cache::CacheState;
pub use cache::{CacheMiss, MissReason};
use items::{RawCall, RawCalls, RawItem};
use unused::unused_results;

use crate::transcript::{TurnTokens, anchor};

/// The window of each model call of a conversation.
#[derive(Clone, Debug, Default)]
pub struct ContextLedger {
    /// The calls of the active conversation with recorded usage, in order.
    pub calls: Vec<ContextCall>,
    /// The tool output of which no line recurs in a later prompt, reply or call, largest first.
    pub unused: Vec<WindowItem>,
    /// The number of model calls without recorded usage, which are left out.
    pub n_unrecorded: usize,
}

/// The window of one model call.
#[derive(Clone, Debug)]
pub struct ContextCall {
    /// The number of the turn, from 1.
    pub turn: Option<usize>,
    /// The anchor of the reply.
    pub anchor: String,
    /// The time at which the request was sent: that of the last line before the reply.
    pub at: Option<Millis>,
    /// The model.
    pub model: Option<String>,
    /// The recorded token counts.
    pub tokens: TurnTokens,
    /// The estimated tokens of each part of the window, in the order of the parts. Their sum is the recorded
    /// size.
    pub parts: Vec<(WindowPart, u64)>,
    /// The difference to the window of the previous call.
    pub growth: i64,
    /// The largest items that were added since the previous call.
    pub added: Vec<WindowItem>,
    /// Whether the conversation was compacted since the previous call.
    pub is_compacted: bool,
    /// The tokens that were in the cache, and were not read from it.
    pub miss: Option<CacheMiss>,
}

impl ContextCall {
    /// Returns the size of the window in tokens.
    pub fn window(&self) -> u64 {
        self.tokens.context()
    }
}

/// A part of the window, in the order in which parts are shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WindowPart {
    /// The system prompt, the tools and the memory: everything that the log does not contain.
    System,
    /// The summary of a compacted conversation.
    Summary,
    /// Prompts.
    Prompts,
    /// Files, reminders and other text that Claude Code added.
    Attachments,
    /// Replies of the model.
    Replies,
    /// Thinking of the model.
    Thinking,
    /// The inputs of tool calls.
    Calls,
    /// The results of the calls of this tool. All calls share the name.
    Results(String),
}

impl WindowPart {
    /// Returns the name in JSON, without the tool.
    pub fn name(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Summary => "summary",
            Self::Prompts => "prompts",
            Self::Attachments => "attachments",
            Self::Replies => "replies",
            Self::Thinking => "thinking",
            Self::Calls => "tool_calls",
            Self::Results(_) => "tool_results",
        }
    }

    /// Returns the label.
    pub fn label(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::System => "system and tools",
            Self::Summary => "summary",
            Self::Prompts => "prompts",
            Self::Attachments => "attachments",
            Self::Replies => "replies",
            Self::Thinking => "thinking",
            Self::Calls => "tool calls",
            Self::Results(tool) => return Cow::Owned(format!("{tool} results")),
        })
    }
}

/// An item in the window.
#[derive(Clone, Debug)]
pub struct WindowItem {
    /// The part that it belongs to.
    pub part: WindowPart,
    /// The item in a few words.
    pub label: String,
    /// Its anchor.
    pub anchor: String,
    /// The estimated number of tokens.
    pub tokens: u64,
}

/// The approximate number of tokens per byte, if the log does not show it.
const TOKENS_PER_BYTE: f64 = 0.28;
/// The number of parts of a window. The results of further tools are one part, because every call has all
/// parts.
const MAX_PARTS: usize = 40;
/// The name for these tools.
const OTHER_TOOLS: &str = "other tools";

impl ContextLedger {
    /// Computes the windows of the active conversation of a session, or of the log of a sub-agent. Those of
    /// the sub-agents of a session are [`AgentContext`]s.
    pub fn of(session: &Session) -> Self {
        let raw = RawCalls::of(session);
        let unused_results = unused_results(session);
        let mut turns: HashMap<EntryIndex, usize> = HashMap::default();
        for turn in session.turns() {
            turns.extend(turn.entries.iter().map(|&idx| (idx, turn.number)));
        }
        let usages: Vec<Option<Usage<'_>>> =
            raw.calls.iter().map(|call| session.replies()[call.reply].usage(session)).collect();
        let ratio = tokens_per_byte(&raw.calls, &usages);
        let mut ledger = Self { n_unrecorded: raw.n_unrecorded, ..Self::default() };
        ledger.calls.reserve_exact(raw.calls.len());
        // A compaction may preserve a result, which is then added twice.
        let mut listed: HashSet<(EntryIndex, Option<u32>)> = HashSet::default();
        let mut window = Window::default();
        let mut cache = CacheState::default();
        for (call, usage) in raw.calls.into_iter().zip(usages) {
            let tokens = usage.map(TurnTokens::of).unwrap_or_default();
            let reply = &session.replies()[call.reply];
            let scale = window.advance(session, &call, tokens.context(), ratio);
            let tokens_of = |item: &RawItem| (item.bytes as f64 * scale) as u64;
            let item = |item: &RawItem| WindowItem {
                part: item.part(session),
                label: item.label(session),
                anchor: item.anchor(session),
                tokens: tokens_of(item),
            };
            let unused = call.added.iter().filter(|item| {
                let position = (item.entry_idx, item.block_idx);
                unused_results.contains(&position) && listed.insert(position)
            });
            ledger.unused.extend(unused.map(item));
            let miss = cache.advance(&call, reply.model.as_deref(), usage, tokens);
            let mut largest: Vec<&RawItem> = call.added.iter().collect();
            largest.sort_by_key(|item| std::cmp::Reverse(tokens_of(item)));
            largest.truncate(3);
            ledger.calls.push(ContextCall {
                turn: turns.get(&call.entry_idx).copied(),
                anchor: anchor(session.entries()[call.entry_idx].at().line_no, 0),
                at: call.at,
                model: reply.model.as_deref().map(str::to_owned),
                tokens,
                parts: window.parts(),
                growth: window.growth,
                added: largest.into_iter().map(item).collect(),
                is_compacted: call.is_compacted,
                miss,
            });
        }
        ledger.unused.sort_by_key(|item| std::cmp::Reverse(item.tokens));
        ledger
    }

    /// Returns the call with the largest window.
    pub fn largest(&self) -> Option<&ContextCall> {
        self.calls.iter().max_by_key(|call| call.window())
    }

    /// Returns the sum of the unused output in tokens.
    pub fn unused_tokens(&self) -> u64 {
        self.unused.iter().map(|item| item.tokens).sum()
    }

    /// Returns the missed tokens and the number of misses by reason.
    pub fn misses(&self) -> Vec<(MissReason, usize, u64)> {
        let mut found: Vec<(MissReason, usize, u64)> = Vec::new();
        for miss in self.calls.iter().filter_map(|call| call.miss) {
            match found.iter_mut().find(|(reason, ..)| *reason == miss.reason) {
                Some((_, count, tokens)) => (*count, *tokens) = (*count + 1, *tokens + miss.tokens),
                None => found.push((miss.reason, 1, miss.tokens)),
            }
        }
        found.sort_by_key(|(.., tokens)| std::cmp::Reverse(*tokens));
        found
    }
}

/// Returns the usual number of tokens per byte: the median over all calls whose window grew.
fn tokens_per_byte(calls: &[RawCall], usages: &[Option<Usage<'_>>]) -> f64 {
    let windows: Vec<u64> =
        usages.iter().map(|usage| usage.map_or(0, |usage| TurnTokens::of(usage).context())).collect();
    let mut ratios: Vec<f64> = Vec::new();
    for (at, call) in calls.iter().enumerate().skip(1) {
        let bytes: usize = call.added.iter().map(|item| item.bytes).sum();
        if !call.is_compacted && bytes >= 400 && windows[at] > windows[at - 1] {
            ratios.push((windows[at] - windows[at - 1]) as f64 / bytes as f64);
        }
    }
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).map_or(TOKENS_PER_BYTE, |ratio| ratio.clamp(0.05, 1.0))
}

/// The estimated parts of the window.
#[derive(Default)]
struct Window {
    parts: BTreeMap<WindowPart, f64>,
    size: u64,
    growth: i64,
}

impl Window {
    /// Adds the items of a call, whose window has this size. Returns the number of tokens per byte of them.
    fn advance(&mut self, session: &Session, call: &RawCall, size: u64, ratio: f64) -> f64 {
        let bytes: usize = call.added.iter().map(|item| item.bytes).sum();
        let is_first = self.size == 0 || call.is_compacted;
        if is_first {
            self.parts.clear();
        }
        self.growth = size as i64 - self.size as i64;
        // The growth shows the tokens of the items, unless something else changed, too.
        let measured = self.growth as f64 / bytes.max(1) as f64;
        let is_plausible = !is_first && (ratio / 2.0..=ratio * 2.0).contains(&measured);
        let scale = if is_plausible { measured } else { ratio };
        self.size = size;
        for item in &call.added {
            let mut part = item.part(session);
            if self.parts.len() >= MAX_PARTS && !self.parts.contains_key(&part) {
                part = WindowPart::Results(OTHER_TOOLS.into());
            }
            *self.parts.entry(part).or_default() += item.bytes as f64 * scale;
        }
        let explained: f64 = self.parts.values().sum();
        if explained > size as f64 {
            let scale = size as f64 / explained;
            self.parts.values_mut().for_each(|tokens| *tokens *= scale);
        }
        scale
    }

    /// Returns the tokens of all parts. Their sum is the size of the window.
    fn parts(&self) -> Vec<(WindowPart, u64)> {
        let known = self.parts.iter().map(|(part, tokens)| (part, *tokens as u64));
        let known = known.filter(|(_, tokens)| *tokens > 0);
        let explained: u64 = known.clone().map(|(_, tokens)| tokens).sum();
        // No item is a part of the system prompt, which comes first.
        let system = (WindowPart::System, self.size.saturating_sub(explained));
        std::iter::once(system).chain(known.map(|(part, tokens)| (part.clone(), tokens))).collect()
    }
}

#[cfg(test)]
mod tests;
