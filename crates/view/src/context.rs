//! The context ledger: what filled the window at each model call, what the cache missed, and output that was
//! not used.
//!
//! The log records the size of the window, but not its parts. The parts are estimated from the lengths of
//! texts, and scaled so that the growth from one call to the next is the recorded one. What no line explains
//! is the system prompt with the tools and the memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use threadline_entry::lens::{Block, Lens, Usage};
use threadline_entry::{Json, JsonKind, Kind, Millis, key, value};
use threadline_session::{EntryIndex, InputKind, ReplyIndex, Session, ToolCall};

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
    /// The estimated tokens of each part of the window. Their sum is the recorded size.
    pub parts: BTreeMap<WindowPart, u64>,
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
    /// The results of the calls of this tool.
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

/// Tokens that were in the cache, and were not read from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheMiss {
    /// The number of tokens.
    pub tokens: u64,
    /// The reason.
    pub reason: MissReason,
    /// The time since the previous request.
    pub pause: Option<Millis>,
}

/// The reason why the cache was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissReason {
    /// The previous request was longer ago than the five minutes for which it was cached.
    ExpiredAfterMinutes,
    /// The previous request was longer ago than the hour for which it was cached.
    ExpiredAfterHour,
    /// The conversation was compacted.
    Compaction,
    /// Another model was used.
    ModelSwitch,
    /// None of these: the system prompt, the tools or earlier messages may have changed.
    Unknown,
}

impl MissReason {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExpiredAfterMinutes => "expired_5m",
            Self::ExpiredAfterHour => "expired_1h",
            Self::Compaction => "compaction",
            Self::ModelSwitch => "model_switch",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the label.
    pub fn label(self) -> &'static str {
        match self {
            Self::ExpiredAfterMinutes => "expired after 5 min",
            Self::ExpiredAfterHour => "expired after 1 h",
            Self::Compaction => "compaction",
            Self::ModelSwitch => "model switch",
            Self::Unknown => "unknown reason",
        }
    }
}

/// The approximate number of tokens per byte, if the log does not show it.
const TOKENS_PER_BYTE: f64 = 0.28;
/// The approximate number of tokens per image or document, as a number of bytes.
const IMAGE_BYTES: usize = 5400;
/// The number of added items that are listed per call.
const MAX_ADDED: usize = 3;
/// Fewer missed tokens are not reported: the end of the cached part varies.
const MIN_MISSED: u64 = 1024;
/// Shorter lines recur by coincidence.
const MIN_LINE_CHARS: usize = 8;

const FIVE_MINUTES: Millis = 5 * 60 * 1000;
const ONE_HOUR: Millis = 60 * 60 * 1000;

/// An item without known tokens.
struct RawItem {
    part: WindowPart,
    label: String,
    anchor: String,
    bytes: usize,
    /// The call of a result.
    call_id: Option<String>,
}

/// A model call with the items that were added since the previous one.
struct RawCall {
    reply: ReplyIndex,
    entry_idx: EntryIndex,
    at: Option<Millis>,
    added: Vec<RawItem>,
    is_compacted: bool,
}

impl ContextLedger {
    /// Computes the windows of the active conversation of a session, without its sub-agents.
    pub fn of(session: &Session) -> Self {
        let raw = RawCalls::of(session);
        let unused_calls = unused_results(session);
        let mut turns: FxHashMap<EntryIndex, usize> = FxHashMap::default();
        for turn in session.turns() {
            turns.extend(turn.entries.iter().map(|&idx| (idx, turn.number)));
        }
        let usages: Vec<Option<Usage<'_>>> =
            raw.calls.iter().map(|call| session.replies()[call.reply].usage(session)).collect();
        let ratio = tokens_per_byte(&raw.calls, &usages);
        let mut ledger = Self { n_unrecorded: raw.n_unrecorded, ..Self::default() };
        // A compaction may preserve a result, which is then added twice.
        let mut listed: FxHashSet<String> = FxHashSet::default();
        let mut window = Window::default();
        let mut cache = CacheState::default();
        for (call, usage) in raw.calls.into_iter().zip(usages) {
            let tokens = usage.map(TurnTokens::of).unwrap_or_default();
            let reply = &session.replies()[call.reply];
            let added = window.advance(&call, tokens.context(), ratio);
            let unused = added.iter().zip(&call.added).filter(|(_, raw)| {
                let id = raw.call_id.as_ref().filter(|id| unused_calls.contains(&***id));
                id.is_some_and(|id| listed.insert(id.clone()))
            });
            ledger.unused.extend(unused.map(|(item, _)| item.clone()));
            let miss = cache.advance(&call, reply.model.as_deref(), usage, tokens);
            let mut largest = added;
            largest.sort_by_key(|item| std::cmp::Reverse(item.tokens));
            largest.truncate(MAX_ADDED);
            ledger.calls.push(ContextCall {
                turn: turns.get(&call.entry_idx).copied(),
                anchor: anchor(session.entries()[call.entry_idx].at().line_no, 0),
                at: call.at,
                model: reply.model.clone(),
                tokens,
                parts: window.parts(),
                growth: window.growth,
                added: largest,
                is_compacted: call.is_compacted,
                miss,
            });
        }
        ledger.unused.sort_by_key(|item| std::cmp::Reverse(item.tokens));
        ledger
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

/// The model calls of the active conversation.
struct RawCalls {
    calls: Vec<RawCall>,
    n_unrecorded: usize,
}

impl RawCalls {
    fn of(session: &Session) -> Self {
        let mut calls: Vec<RawCall> = Vec::new();
        let mut seen: FxHashSet<ReplyIndex> = FxHashSet::default();
        let (mut pending, mut is_compacted, mut last_at, mut n_unrecorded) = (Vec::new(), false, None, 0);
        for &idx in &session.thread().entries {
            let entry = &session.entries()[idx];
            if session.is_boundary(idx) {
                pending.clear();
                is_compacted = true;
                for idx in session.compaction_at(idx).preserved {
                    add_items(session, idx, &mut pending);
                }
                continue;
            }
            if let Some(reply) = session.reply_of(idx).filter(|reply| seen.insert(*reply)) {
                let usage = session.replies()[reply].usage(session).map(TurnTokens::of);
                if session.replies()[reply].is_synthetic() {
                    continue;
                }
                if usage.is_some_and(|tokens| tokens.context() > 0) {
                    let at = last_at.or_else(|| session.timestamp(idx));
                    let added = std::mem::take(&mut pending);
                    calls.push(RawCall { reply, entry_idx: idx, at, added, is_compacted });
                    is_compacted = false;
                } else {
                    n_unrecorded += 1;
                }
            }
            if entry.kind() != Kind::Assistant {
                last_at = session.timestamp(idx).or(last_at);
            }
            add_items(session, idx, &mut pending);
        }
        Self { calls, n_unrecorded }
    }
}

/// Appends the items of a line.
fn add_items(session: &Session, idx: EntryIndex, items: &mut Vec<RawItem>) {
    let entry = &session.entries()[idx];
    let line_no = entry.at().line_no;
    match entry.kind() {
        Kind::User | Kind::Assistant => {
            let Some(content) = entry.message().and_then(|message| message.content()) else { return };
            if let Some(text) = content.as_str() {
                let (part, label) = text_part(session, idx, &text);
                let bytes = text.len();
                return items.push(RawItem { part, label, anchor: anchor(line_no, 0), bytes, call_id: None });
            }
            for (at, block) in content.blocks().enumerate() {
                let Some((part, label, bytes, call_id)) = block_item(session, idx, block) else { continue };
                // A result is shown with its call.
                let call = call_id.as_ref().and_then(|id| session.tool_call(id));
                let anchor = call.map_or_else(
                    || anchor(line_no, at),
                    |call| anchor(session.entries()[call.entry_idx].at().line_no, call.block_idx),
                );
                items.push(RawItem { part, label, anchor, bytes, call_id });
            }
        }
        Kind::Attachment => {
            let bytes = entry.get(key::ATTACHMENT).map_or(0, |json| json.raw().len());
            let label =
                entry.get(key::ATTACHMENT).and_then(|json| Some(json.get(key::TYPE)?.as_str()?.into_owned()));
            let label = label.unwrap_or_default().replace('_', " ");
            let part = WindowPart::Attachments;
            items.push(RawItem { part, label, anchor: anchor(line_no, 0), bytes, call_id: None });
        }
        _ => {}
    }
}

/// Returns the part of the window that a text belongs to, and a label.
fn text_part(session: &Session, idx: EntryIndex, text: &str) -> (WindowPart, String) {
    let part = match session.input(idx) {
        Some(InputKind::CompactSummary) => WindowPart::Summary,
        Some(InputKind::Meta | InputKind::CommandOutput | InputKind::BashOutput) => WindowPart::Attachments,
        _ => WindowPart::Prompts,
    };
    (part, one_line(text, 60))
}

type BlockItem = (WindowPart, String, usize, Option<String>);

fn block_item(session: &Session, idx: EntryIndex, block: Block<'_>) -> Option<BlockItem> {
    let object = block.object();
    let length = |key: &str| object.get(key).map_or(0, |json| json.raw().len());
    let is_reply = session.entries()[idx].kind() == Kind::Assistant;
    Some(match block.kind()?.as_ref() {
        value::TOOL_RESULT => {
            let id = block.tool_use_id()?.into_owned();
            let call = session.tool_call(&id);
            let tool = call.map_or_else(|| "?".to_owned(), |call| call.name.clone());
            let label = call.map(|call| call_subject(session, call)).unwrap_or_default();
            let bytes = object.get(key::CONTENT).map_or(0, content_bytes);
            (WindowPart::Results(tool), label, bytes, Some(id))
        }
        value::TOOL_USE => {
            let id = object.get(key::ID).and_then(|id| Some(id.as_str()?.into_owned()));
            let call = id.as_ref().and_then(|id| session.tool_call(id));
            let label = call.map(|call| format!("{} {}", call.name, call_subject(session, call)));
            (WindowPart::Calls, label.unwrap_or_default(), length(key::NAME) + length(key::INPUT), None)
        }
        value::IMAGE | value::DOCUMENT => (WindowPart::Attachments, "image".to_owned(), IMAGE_BYTES, None),
        value::THINKING | value::REDACTED_THINKING => {
            // Without its text, only the signature shows how long the thinking was.
            let bytes = length(key::THINKING).max(length("signature")).max(length(key::DATA));
            (WindowPart::Thinking, "thinking".to_owned(), bytes, None)
        }
        _ if is_reply => {
            let text = block.text().unwrap_or_default();
            (WindowPart::Replies, one_line(&text, 60), length(key::TEXT), None)
        }
        _ => {
            let text = block.text().unwrap_or_default();
            let (part, label) = text_part(session, idx, &text);
            (part, label, length(key::TEXT), None)
        }
    })
}

/// Returns the length of a tool result, with a fixed length for each image.
fn content_bytes(content: Json<'_>) -> usize {
    if content.kind() != JsonKind::Array {
        return content.raw().len();
    }
    let is_image = |item: &Json<'_>| {
        item.get(key::TYPE).is_some_and(|kind| kind.is_str(value::IMAGE) || kind.is_str(value::DOCUMENT))
    };
    content.items().map(|item| if is_image(&item) { IMAGE_BYTES } else { item.raw().len() }).sum()
}

/// Returns the beginning of a text, on one line of at most `max` characters.
fn one_line(text: &str, max: usize) -> String {
    let mut line = String::new();
    let mut n_chars = 0;
    for word in text.split_whitespace() {
        for c in (if line.is_empty() { "" } else { " " }).chars().chain(word.chars()) {
            n_chars += 1;
            if n_chars > max {
                line.push('…');
                return line;
            }
            line.push(c);
        }
    }
    line
}

/// Inputs that name the subject of a call, in order of preference.
const SUBJECTS: [&str; 9] =
    ["file_path", "notebook_path", "command", "pattern", "url", "query", "description", "path", "prompt"];

fn call_subject(session: &Session, call: &ToolCall) -> String {
    let input = call.block(session).and_then(|block| block.input());
    let subject = input.and_then(|input| {
        SUBJECTS.iter().find_map(|key| input.get(key)?.as_str()).map(|text| one_line(&text, 60))
    });
    subject.unwrap_or_default()
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
    /// Adds the items of a call, whose window has this size. Returns them with their tokens.
    fn advance(&mut self, call: &RawCall, size: u64, ratio: f64) -> Vec<WindowItem> {
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
        let mut items = Vec::new();
        for item in &call.added {
            let tokens = item.bytes as f64 * scale;
            *self.parts.entry(item.part.clone()).or_default() += tokens;
            let (part, label, anchor) = (item.part.clone(), item.label.clone(), item.anchor.clone());
            items.push(WindowItem { part, label, anchor, tokens: tokens as u64 });
        }
        let explained: f64 = self.parts.values().sum();
        if explained > size as f64 {
            let scale = size as f64 / explained;
            self.parts.values_mut().for_each(|tokens| *tokens *= scale);
        }
        items
    }

    /// Returns the tokens of all parts. Their sum is the size of the window.
    fn parts(&self) -> BTreeMap<WindowPart, u64> {
        let mut parts: BTreeMap<WindowPart, u64> =
            self.parts.iter().map(|(part, tokens)| (part.clone(), *tokens as u64)).collect();
        parts.retain(|_, tokens| *tokens > 0);
        let explained: u64 = parts.values().sum();
        parts.insert(WindowPart::System, self.size.saturating_sub(explained));
        parts
    }
}

/// The state of the cache after a call.
#[derive(Default)]
struct CacheState {
    /// The number of cached tokens.
    cached: u64,
    model: Option<String>,
    at: Option<Millis>,
    /// Whether the cache is kept for an hour.
    is_hour: bool,
}

impl CacheState {
    /// Continues with the next call. Returns the tokens that it should have read, and did not.
    fn advance(
        &mut self,
        call: &RawCall,
        model: Option<&str>,
        usage: Option<Usage<'_>>,
        tokens: TurnTokens,
    ) -> Option<CacheMiss> {
        let pause = self.at.zip(call.at).map(|(before, now)| now - before);
        let missed = self.cached.saturating_sub(tokens.cache_read);
        let lifetime = if self.is_hour { ONE_HOUR } else { FIVE_MINUTES };
        let reason = if call.is_compacted {
            MissReason::Compaction
        } else if self.model.as_deref() != model {
            MissReason::ModelSwitch
        } else if pause.is_some_and(|pause| pause > lifetime) {
            if self.is_hour { MissReason::ExpiredAfterHour } else { MissReason::ExpiredAfterMinutes }
        } else {
            MissReason::Unknown
        };
        let is_miss = missed >= MIN_MISSED.max(self.cached / 10);
        self.cached = tokens.cache_read + tokens.cache_write;
        self.model = model.map(str::to_owned);
        self.at = call.at;
        if tokens.cache_write > 0 {
            let creation = usage.and_then(Usage::cache_creation);
            self.is_hour =
                creation.and_then(|creation| creation.ephemeral_1h_input_tokens()).unwrap_or(0) > 0;
        }
        is_miss.then_some(CacheMiss { tokens: missed, reason, pause })
    }
}

/// Returns the ids of the calls of which no line of the result recurs in a later prompt, reply or call.
fn unused_results(session: &Session) -> FxHashSet<String> {
    let mut later: FxHashSet<u64> = FxHashSet::default();
    let mut unused = FxHashSet::default();
    for &idx in session.thread().entries.iter().rev() {
        let entry = &session.entries()[idx];
        let Some(content) = entry.message().and_then(|message| message.content()) else { continue };
        if let Some(text) = content.as_str() {
            add_lines(&text, &mut later);
            continue;
        }
        let mut said: Vec<Json<'_>> = Vec::new();
        for block in content.blocks() {
            match block.kind().as_deref() {
                Some(value::TOOL_RESULT) => {
                    if let Some(id) = block.tool_use_id()
                        && is_unused(block, &later)
                    {
                        unused.insert(id.into_owned());
                    }
                }
                Some(value::TOOL_USE) => said.extend(block.input()),
                _ => said.extend(
                    [block.object().get(key::TEXT), block.object().get(key::THINKING)].into_iter().flatten(),
                ),
            }
        }
        said.into_iter().for_each(|json| add_strings(json, &mut later, 0));
    }
    unused
}

/// Whether a result has lines, and none of them is in the set.
fn is_unused(block: Block<'_>, later: &FxHashSet<u64>) -> bool {
    let mut lines: FxHashSet<u64> = FxHashSet::default();
    if let Some(content) = block.object().get(key::CONTENT) {
        add_strings(content, &mut lines, 0);
    }
    !lines.is_empty() && lines.is_disjoint(later)
}

/// The depth up to which the strings of an input are compared.
const MAX_DEPTH: usize = 16;

fn add_strings(json: Json<'_>, lines: &mut FxHashSet<u64>, depth: usize) {
    match json.kind() {
        JsonKind::String => add_lines(&json.as_str().unwrap_or_default(), lines),
        JsonKind::Array if depth < MAX_DEPTH => {
            json.items().for_each(|item| add_strings(item, lines, depth + 1))
        }
        JsonKind::Object if depth < MAX_DEPTH => {
            json.members().for_each(|(_, item)| add_strings(item, lines, depth + 1));
        }
        _ => {}
    }
}

/// Adds the hashes of the lines of a text, without indentation and the numbers that `Read` adds.
fn add_lines(text: &str, lines: &mut FxHashSet<u64>) {
    for line in text.lines() {
        let line = line.trim();
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let numbered = line[digits..].strip_prefix(['→', '\t']).filter(|_| digits > 0);
        let line = numbered.unwrap_or(line).trim();
        if line.chars().take(MIN_LINE_CHARS).count() == MIN_LINE_CHARS {
            let mut hasher = FxHasher::default();
            line.hash(&mut hasher);
            lines.insert(hasher.finish());
        }
    }
}

#[cfg(test)]
mod tests;
