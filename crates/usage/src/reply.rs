//! One line as a call of a model: whose it is, and what it says it used.

use std::borrow::Cow;

use memchr::memmem;
use threadline_entry::lens::{FromJson, Iteration, Lens, Moment};
use threadline_entry::{Entry, Json, Millis, walk};

use crate::explain::Reason;

/// The tokens of a call, by what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tokens {
    /// Read by the model, and in no cache.
    pub input: u64,
    /// Written by the model.
    pub output: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Written to the cache for an hour.
    pub cache_write_1h: u64,
}

impl Tokens {
    /// All that the model was given.
    pub fn context(self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write())
    }

    /// All that was written to a cache.
    pub fn cache_write(self) -> u64 {
        self.cache_write_5m.saturating_add(self.cache_write_1h)
    }

    /// All of them.
    pub fn total(self) -> u64 {
        self.context().saturating_add(self.output)
    }
}

/// How near a line is to the call it tells of; the nearest is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Nearness {
    /// A line of the conversation.
    Main,
    /// A line of a sub-agent.
    Sidechain,
    /// A line of an agent that replays the conversation, to sum it up or to ask something beside it.
    Replay,
    /// A progress line that repeats what a sub-agent wrote.
    Progress,
}

/// A line that tells of a call.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) message_id: Option<Cow<'a, str>>,
    pub(crate) at: Option<Millis>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_progress: bool,
    /// Whether the line says that it was copied from another session.
    pub(crate) is_fork: bool,
    pub(crate) branch: Option<Cow<'a, str>>,
    /// Whether the version that wrote it noted the output of the stream's first moment only.
    pub(crate) under_reported: bool,
    pub(crate) model: Cow<'a, str>,
    pub(crate) has_stop: bool,
    pub(crate) tokens: Tokens,
    pub(crate) web_searches: u64,
    pub(crate) fast: bool,
    pub(crate) us: bool,
    /// Other models that were asked on the way, with what they used.
    pub(crate) advisors: Vec<(Cow<'a, str>, Tokens)>,
    /// What was met on the way and few need.
    pub(crate) more: Option<More<'a>>,
}

/// What few lines are asked for: the content, and the ids beside that of the message.
#[derive(Debug, Clone, Default)]
pub(crate) struct More<'a> {
    pub(crate) content: Option<Json<'a>>,
    pub(crate) request_id: Option<Cow<'a, str>>,
    pub(crate) session_id: Option<Cow<'a, str>>,
    pub(crate) uuid: Option<Cow<'a, str>>,
}

impl<'a> More<'a> {
    /// Looks again at a line that was skimmed before.
    pub(crate) fn skim(line: &'a [u8]) -> Self {
        let Some((ids, [content])) = walk::skim(line, ["requestId", "sessionId", "uuid"], ["content"]) else {
            return Self::default();
        };
        let [request_id, session_id, uuid] = ids.map(text);
        Self { content, request_id, session_id, uuid }
    }

    /// The same of an object that is known whole.
    fn of(get: impl Fn(&str) -> Option<Json<'a>>) -> Self {
        Self {
            content: get("message").and_then(|message| message.get("content")),
            request_id: text(get("requestId")),
            session_id: text(get("sessionId")),
            uuid: text(get("uuid")),
        }
    }
}

/// What a line turned out to be.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// A call of a model.
    Reply(Reply<'a>),
    /// Claude Code's own words in the place of a reply; they may say when a limit ends.
    Notice { at: Option<Millis>, more: Option<More<'a>>, reason: Reason },
    /// A reply without figures.
    NoFigures(Option<Millis>),
    /// Something else.
    Other,
}

/// The values of a line that matter here, and those of its message.
pub(crate) struct Top<'a> {
    line: [Option<Json<'a>>; LINE_KEYS.len()],
    message: [Option<Json<'a>>; MESSAGE_KEYS.len()],
    more: Option<More<'a>>,
    /// Of a progress line.
    data: Option<Json<'a>>,
}

/// This runs for every reply of a home, so what few of them need is looked for later.
const LINE_KEYS: [&str; 7] =
    ["type", "timestamp", "isSidechain", "gitBranch", "version", "isApiErrorMessage", "forkedFrom"];
const MESSAGE_KEYS: [&str; 4] = ["id", "model", "stop_reason", "usage"];

impl<'a> Top<'a> {
    /// The values of a line in which `"usage"` stands at `hit`; `None` if it must be looked at more slowly.
    pub(crate) fn skim(line: &'a [u8], hit: usize, stop_reason: &memmem::FinderRev<'_>) -> Option<Self> {
        let hit = first_key(line, hit, stop_reason);
        let (values, message) = walk::skim_around(line, hit, LINE_KEYS, MESSAGE_KEYS)?;
        let is_progress = values[0].is_some_and(|kind| kind.is_str("progress"));
        let data = is_progress.then(|| walk::skim(line, ["data"], [])).flatten();
        Some(Self { line: values, message, more: None, data: data.and_then(|([data], [])| data) })
    }

    /// The values of an entry, which knows where those of its message stand.
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let message = entry.message().map(Lens::object);
        Self {
            line: LINE_KEYS.map(|key| entry.get(key)),
            message: MESSAGE_KEYS.map(|key| message.and_then(|message| message.get(key))),
            data: entry.get("data"),
            more: Some(More {
                content: message.and_then(|message| message.get("content")),
                request_id: text(entry.get("requestId")),
                session_id: text(entry.get("sessionId")),
                uuid: text(entry.get("uuid")),
            }),
        }
    }

    /// The values of an object that is known whole.
    fn known(get: impl Fn(&str) -> Option<Json<'a>>) -> Self {
        let message = get("message");
        Self {
            line: LINE_KEYS.map(&get),
            message: MESSAGE_KEYS.map(|key| message.and_then(|message| message.get(key))),
            data: get("data"),
            more: Some(More::of(get)),
        }
    }

    /// What the line is.
    pub(crate) fn see(&self) -> Seen<'a> {
        let Some(kind) = self.line[0] else { return Seen::Other };
        if kind.is_str("assistant") {
            return self.see_reply(None);
        }
        let data = self.data.filter(|data| data.is_object() && kind.is_str("progress"));
        let inner = data.and_then(|data| data.get("message")).filter(|inner| inner.is_object());
        // What a sub-agent was told is repeated too, and is longer: it is not looked at twice.
        match inner.filter(|inner| inner.get("type").is_some_and(|kind| kind.is_str("assistant"))) {
            Some(inner) => Self::known(|key| inner.get(key)).see_reply(Some(self)),
            None => Seen::Other,
        }
    }

    /// A reply; `around` is the progress line that repeats it.
    fn see_reply(&self, around: Option<&Self>) -> Seen<'a> {
        let [_, at, sidechain, branch, version, error, fork] = self.line;
        let [_, outer_at, outer_sidechain, outer_branch, outer_version, ..] = around.unwrap_or(self).line;
        let [id, model, stop, usage] = self.message;
        let at = at.and_then(moment).or_else(|| outer_at.and_then(moment));
        let model = text(model);
        let more = self.more.clone();
        if flag(error) {
            return Seen::Notice { at, more, reason: Reason::ApiError };
        }
        if model.as_deref() == Some("<synthetic>") {
            return Seen::Notice { at, more, reason: Reason::Synthetic };
        }
        let Some(usage) = usage.filter(|usage| usage.is_object()) else { return Seen::NoFigures(at) };
        let mut reply = Reply {
            message_id: text(id),
            at,
            is_sidechain: flag(sidechain) || flag(outer_sidechain),
            is_progress: around.is_some(),
            is_fork: fork.is_some_and(|fork| fork.is_object()),
            branch: text(branch).or_else(|| text(outer_branch)),
            under_reported: version.or(outer_version).and_then(Json::quoted).is_some_and(is_under_reporting),
            model: model.unwrap_or(Cow::Borrowed("(none)")),
            has_stop: stop.is_some_and(|stop| !stop.is_null()),
            tokens: Tokens::default(),
            web_searches: 0,
            fast: false,
            us: false,
            advisors: Vec::new(),
            more,
        };
        reply.read_usage(usage);
        Seen::Reply(reply)
    }
}

/// Where the first key behind the content stands, if that is near: Claude Code writes why the reply ended, and then `usage`.
fn first_key(line: &[u8], usage: usize, stop_reason: &memmem::FinderRev<'_>) -> usize {
    const NEAR: usize = 128;
    let from = usage.saturating_sub(NEAR);
    stop_reason.rfind(&line[from..usage]).map_or(usage, |at| from + at)
}

fn moment(json: Json<'_>) -> Option<Millis> {
    Moment::from_json(json).map(|moment| moment.0)
}

/// A text that is not empty.
fn text(json: Option<Json<'_>>) -> Option<Cow<'_, str>> {
    json?.as_str().filter(|text| !text.is_empty())
}

fn flag(json: Option<Json<'_>>) -> bool {
    json.and_then(Json::as_bool).unwrap_or(false)
}

impl<'a> Reply<'a> {
    /// Reads the figures, in one walk over them: this runs for every reply of a home.
    fn read_usage(&mut self, usage: Json<'a>) {
        let mut writes = Writes::default();
        let is_plain = memchr::memchr(b'\\', usage.raw().as_bytes()).is_none();
        for (key, value) in usage.members() {
            let name = if is_plain { Cow::Borrowed(key.raw()) } else { key.name() };
            match &*name {
                "input_tokens" => self.tokens.input = number(value),
                "output_tokens" => self.tokens.output = number(value),
                "cache_read_input_tokens" => self.tokens.cache_read = number(value),
                "cache_creation_input_tokens" => writes.all = number(value),
                "cache_creation" => writes.read_parts(value),
                "server_tool_use" => {
                    self.web_searches = value.get("web_search_requests").map_or(0, number);
                }
                "inference_geo" => self.us = value.is_str("us"),
                "speed" => self.fast = value.is_str("fast"),
                "iterations" => self.advisors = advisors(value),
                _ => {}
            }
        }
        writes.settle(&mut self.tokens);
    }
}

/// The models that were asked on the way. Other steps are part of the figures above them.
fn advisors(iterations: Json<'_>) -> Vec<(Cow<'_, str>, Tokens)> {
    let steps = iterations.items().filter_map(Iteration::from_json);
    let advice = steps.filter(|step| step.kind().as_deref() == Some("advisor_message"));
    let read = |step: Iteration<'_>| {
        let mut tokens = Tokens {
            input: step.input_tokens().unwrap_or(0),
            output: step.output_tokens().unwrap_or(0),
            cache_read: step.cache_read_input_tokens().unwrap_or(0),
            ..Tokens::default()
        };
        let parts = step.cache_creation();
        let writes = Writes {
            all: step.cache_creation_input_tokens().unwrap_or(0),
            short: parts.and_then(|parts| parts.ephemeral_5m_input_tokens()).unwrap_or(0),
            long: parts.and_then(|parts| parts.ephemeral_1h_input_tokens()).unwrap_or(0),
        };
        writes.settle(&mut tokens);
        tokens
    };
    advice.map(|step| (step.model().unwrap_or(Cow::Borrowed("(none)")), read(step))).collect()
}

/// What was written to the cache, in all and by how long it is kept.
#[derive(Default)]
struct Writes {
    all: u64,
    short: u64,
    long: u64,
}

impl Writes {
    fn read_parts(&mut self, json: Json<'_>) {
        for (key, value) in json.members() {
            match &*key.name() {
                "ephemeral_5m_input_tokens" => self.short = number(value),
                "ephemeral_1h_input_tokens" => self.long = number(value),
                _ => {}
            }
        }
    }

    /// What the parts leave of the whole was kept for five minutes: some versions write zeros for parts.
    fn settle(&self, tokens: &mut Tokens) {
        let parts = self.short.saturating_add(self.long);
        tokens.cache_write_5m = self.short.saturating_add(self.all.saturating_sub(parts));
        tokens.cache_write_1h = self.long;
    }
}

/// A count, which may be written as `100` or `1e2`; what is none is nothing.
fn number(json: Json<'_>) -> u64 {
    json.as_u64().unwrap_or_else(|| match json.as_f64() {
        Some(number) if number >= 0.0 && number.fract() == 0.0 => number as u64,
        _ => 0,
    })
}

/// Whether this version of Claude Code wrote the output tokens of the stream's first moment (up to 2.1.58).
fn is_under_reporting(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>());
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor)), Some(Ok(patch))) => (major, minor, patch) <= (2, 1, 58),
        _ => false,
    }
}
