//! Classifies a line as a model call and reads its ids and figures.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadline_entry::lens::{FromJson, Lens, Moment};
use threadline_entry::{Entry, Json, Kind, Millis, key, value, walk};

use crate::explain::RejectReason;
use crate::figures::{self, UsageFigures};
use crate::scan_cache::line_layout::{LayoutValues, LineLayoutCache};

/// How close a line is to the call that it records. Figures of the nearest line are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) enum LineOrigin {
    /// A line of the conversation.
    Main,
    /// A line of a sub-agent.
    Sidechain,
    /// A line of an agent that replays the conversation, to compact it or to answer a side question.
    Replay,
    /// A progress line that repeats a line of a sub-agent.
    Progress,
}

/// A line that records a call.
#[derive(Debug)]
pub(crate) struct ReplyLine<'a> {
    pub(crate) message_id: Option<Cow<'a, str>>,
    pub(crate) at: Option<Millis>,
    pub(crate) is_sidechain: bool,
    pub(crate) is_progress: bool,
    /// Whether the line is marked as copied, by `/branch` or an SDK.
    pub(crate) is_fork: bool,
    /// The session that the line was copied from or that made the request, if the line names it.
    pub(crate) origin: Option<Cow<'a, str>>,
    pub(crate) branch: Option<Cow<'a, str>>,
    /// Whether the Claude Code version that wrote the line logged only the output tokens at the start of the
    /// stream.
    pub(crate) under_reported: bool,
    pub(crate) model: Cow<'a, str>,
    pub(crate) has_stop: bool,
    pub(crate) figures: UsageFigures<'a>,
    /// Rarely needed values, if they were read already.
    pub(crate) rare: Option<RareValues<'a>>,
}

/// Rarely needed values: the content, and the ids other than the message id.
#[derive(Debug, Clone, Default)]
pub(crate) struct RareValues<'a> {
    pub(crate) content: Option<Json<'a>>,
    pub(crate) request_id: Option<Cow<'a, str>>,
    pub(crate) session_id: Option<Cow<'a, str>>,
    pub(crate) uuid: Option<Cow<'a, str>>,
}

impl<'a> RareValues<'a> {
    /// Reads these values from a line that was skimmed before.
    pub(crate) fn skim(line: &'a [u8]) -> Self {
        let Some((ids, [content])) =
            walk::skim(line, [key::REQUEST_ID, key::SESSION_ID, key::UUID], [key::CONTENT])
        else {
            return Self::default();
        };
        let [request_id, session_id, uuid] = ids.map(name);
        Self { content, request_id, session_id, uuid }
    }

    /// Reads these values from a parsed object.
    fn of(get: impl Fn(&str) -> Option<Json<'a>>) -> Self {
        Self {
            content: get(key::MESSAGE).and_then(|message| message.get(key::CONTENT)),
            request_id: name(get(key::REQUEST_ID)),
            session_id: name(get(key::SESSION_ID)),
            uuid: name(get(key::UUID)),
        }
    }
}

/// The classification of a line.
#[derive(Debug)]
pub(crate) enum LineClass<'a> {
    /// A model call.
    Reply(ReplyLine<'a>),
    /// A message of Claude Code in place of a reply, which may announce a usage limit.
    Notice { at: Option<Millis>, more: Option<RareValues<'a>>, reason: RejectReason },
    /// A reply without figures.
    NoFigures(Option<Millis>),
    /// Any other line.
    Other,
}

/// The relevant values of a line and of its message.
pub(crate) struct LineValues<'a> {
    /// Whether the line is a part of a reply.
    is_reply: bool,
    line: [Option<Json<'a>>; N_LINE_KEYS],
    message: [Option<Json<'a>>; N_MESSAGE_KEYS],
    usage: UsageValue<'a>,
    rare: Option<RareValues<'a>>,
    /// The `data` of a progress line.
    data: Option<Json<'a>>,
}

/// The `usage` value of a line, parsed or not.
enum UsageValue<'a> {
    Unparsed(Option<Json<'a>>),
    Parsed(UsageFigures<'a>),
}

/// The keys to read from each line. This runs for every reply of a home, so rarely needed keys are read on
/// demand.
const LINE_KEYS: [&str; N_LINE_KEYS] = [
    key::TYPE,
    key::TIMESTAMP,
    key::IS_SIDECHAIN,
    key::GIT_BRANCH,
    key::VERSION,
    key::IS_API_ERROR_MESSAGE,
    key::FORKED_FROM,
    key::REQUEST_SESSION_ID,
];
const N_LINE_KEYS: usize = 8;
const MESSAGE_KEYS: [&str; N_MESSAGE_KEYS] = [key::ID, key::MODEL, key::STOP_REASON];
const N_MESSAGE_KEYS: usize = 3;

/// The number of paths before those of the figures, and the indices of some of them.
pub(crate) const N_KEYS: usize = N_LINE_KEYS + N_MESSAGE_KEYS;
pub(crate) const TIMESTAMP: usize = 1;
pub(crate) const ID: usize = N_LINE_KEYS;
pub(crate) const STOP_REASON: usize = N_LINE_KEYS + 2;

const PATHS: [&[&str]; N_KEYS + figures::PATHS.len()] = {
    let mut paths: [&[&str]; _] = [&[]; _];
    let own: [&[&str]; N_KEYS] = [
        &[LINE_KEYS[0]],
        &[LINE_KEYS[1]],
        &[LINE_KEYS[2]],
        &[LINE_KEYS[3]],
        &[LINE_KEYS[4]],
        &[LINE_KEYS[5]],
        &[LINE_KEYS[6]],
        &[LINE_KEYS[7]],
        &[key::MESSAGE, MESSAGE_KEYS[0]],
        &[key::MESSAGE, MESSAGE_KEYS[1]],
        &[key::MESSAGE, MESSAGE_KEYS[2]],
    ];
    let mut i = 0;
    while i < paths.len() {
        paths[i] = if i < own.len() { own[i] } else { figures::PATHS[i - own.len()] };
        i += 1;
    }
    paths
};

/// The cache of line layouts for replies, and the values read with it.
pub(crate) type ReplyLayouts = LineLayoutCache<{ PATHS.len() }>;
pub(crate) type ReplyValues<'a> = LayoutValues<'a, { PATHS.len() }>;

/// Returns an empty cache. The keys of the message are required: one that is missing may have been skipped,
/// since it can be located between the content and the hit.
pub(crate) fn new_reply_layouts() -> ReplyLayouts {
    LineLayoutCache::new(PATHS, &[N_LINE_KEYS, N_LINE_KEYS + 1, N_LINE_KEYS + 2])
}

impl<'a> LineValues<'a> {
    /// Takes the values of a line read with a cached layout; `None` if it has to be read by a slower method.
    pub(crate) fn from_layout(values: &ReplyValues<'a>) -> Option<Self> {
        let figures = UsageFigures::from_layout(values, N_KEYS)?;
        // The role of the message is the kind of a line without a type.
        let is_reply = values.get(0)?.is_str("assistant");
        let line = std::array::from_fn(|i| values.get(i));
        let message = std::array::from_fn(|i| values.get(N_LINE_KEYS + i));
        Some(Self { is_reply, line, message, usage: UsageValue::Parsed(figures), rare: None, data: None })
    }

    /// Reads the values of a line with a key of its message at offset `hit`; `None` if it has to be parsed in
    /// full.
    pub(crate) fn skim(line: &'a [u8], hit: usize) -> Option<Self> {
        let (values, [id, model, stop, usage]) =
            walk::skim_around(line, hit, LINE_KEYS, [key::ID, key::MODEL, key::STOP_REASON, key::USAGE])?;
        // The role of the message is the kind of a line without a type.
        let kind = values[0]?;
        let is_progress = kind.is_str("progress");
        let data = is_progress.then(|| walk::skim(line, [key::DATA], [])).flatten();
        let data = data.and_then(|([data], [])| data);
        Some(Self {
            is_reply: kind.is_str("assistant"),
            line: values,
            message: [id, model, stop],
            usage: UsageValue::Unparsed(usage),
            rare: None,
            data,
        })
    }

    /// Takes the values of an entry, which has an index of its message.
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let message = entry.message().map(Lens::object);
        let mut line = LINE_KEYS.map(|key| entry.get(key));
        line[TIMESTAMP] = line[TIMESTAMP].or_else(|| message?.get(key::TIMESTAMP));
        Self {
            is_reply: entry.kind() == Kind::Assistant,
            line,
            message: MESSAGE_KEYS.map(|key| message.and_then(|message| message.get(key))),
            usage: UsageValue::Unparsed(message.and_then(|message| message.get(key::USAGE))),
            data: entry.get(key::DATA),
            rare: Some(RareValues {
                content: message.and_then(|message| message.get(key::CONTENT)),
                request_id: name(entry.get(key::REQUEST_ID)),
                session_id: name(entry.get(key::SESSION_ID)),
                uuid: name(entry.get(key::UUID)),
            }),
        }
    }

    /// Reads the values of a reply that was parsed.
    fn from_object(get: impl Fn(&str) -> Option<Json<'a>>) -> Self {
        let message = get(key::MESSAGE);
        Self {
            is_reply: true,
            line: LINE_KEYS.map(&get),
            message: MESSAGE_KEYS.map(|key| message.and_then(|message| message.get(key))),
            usage: UsageValue::Unparsed(message.and_then(|message| message.get(key::USAGE))),
            data: get(key::DATA),
            rare: Some(RareValues::of(get)),
        }
    }

    /// Classifies the line.
    pub(crate) fn classify(self) -> LineClass<'a> {
        if self.is_reply {
            return self.classify_reply(None);
        }
        let data = self.data.filter(|_| self.line[0].is_some_and(|kind| kind.is_str("progress")));
        match data.and_then(repeated_reply) {
            Some(inner) => Self::from_object(|key| inner.get(key)).classify_reply(Some(&self)),
            None => LineClass::Other,
        }
    }

    /// Classifies a reply; `around` is the progress line that contains it.
    fn classify_reply(self, around: Option<&Self>) -> LineClass<'a> {
        let [_, at, sidechain, branch, version, error, fork, requester] = self.line;
        let [_, outer_at, outer_sidechain, outer_branch, outer_version, ..] = around.unwrap_or(&self).line;
        let fork = fork.filter(|fork| fork.is_object());
        let [id, model, stop] = self.message;
        let at = at.and_then(timestamp).or_else(|| outer_at.and_then(timestamp));
        let model = name(model);
        let more = self.rare;
        if flag(error) {
            return LineClass::Notice { at, more, reason: RejectReason::ApiError };
        }
        if model.as_deref() == Some(value::SYNTHETIC_MODEL) {
            return LineClass::Notice { at, more, reason: RejectReason::Synthetic };
        }
        let figures = match self.usage {
            UsageValue::Parsed(figures) => figures,
            UsageValue::Unparsed(Some(usage)) if usage.is_object() => UsageFigures::of(usage),
            UsageValue::Unparsed(_) => return LineClass::NoFigures(at),
        };
        LineClass::Reply(ReplyLine {
            message_id: name(id),
            at,
            is_sidechain: flag(sidechain) || flag(outer_sidechain),
            is_progress: around.is_some(),
            is_fork: fork.is_some(),
            origin: name(requester).or_else(|| name(fork?.get(key::SESSION_ID))),
            branch: name(branch).or_else(|| name(outer_branch)),
            under_reported: version.or(outer_version).and_then(Json::quoted).is_some_and(is_under_reporting),
            model: model.unwrap_or(Cow::Borrowed("(none)")),
            has_stop: stop.is_some_and(|stop| !stop.is_null()),
            figures,
            rare: more,
        })
    }
}

/// Returns the reply of a sub-agent that a progress line with this `data` repeats.
///
/// Progress lines also repeat the prompts and results of a sub-agent, which are long; only replies are read.
fn repeated_reply(data: Json<'_>) -> Option<Json<'_>> {
    let inner = Some(data).filter(|data| data.is_object())?.get(key::MESSAGE)?;
    let is_reply = inner.is_object() && inner.get(key::TYPE).is_some_and(|kind| kind.is_str("assistant"));
    is_reply.then_some(inner)
}

pub(crate) fn timestamp(json: Json<'_>) -> Option<Millis> {
    Moment::from_json(json).map(|moment| moment.0)
}

/// Returns a string that is not empty.
fn name(json: Option<Json<'_>>) -> Option<Cow<'_, str>> {
    json?.as_str().filter(|name| !name.is_empty())
}

fn flag(json: Option<Json<'_>>) -> bool {
    json.and_then(Json::as_bool).unwrap_or(false)
}

/// Whether this version of Claude Code (up to 2.1.58) logged only the output tokens at the start of the
/// stream.
fn is_under_reporting(version: &str) -> bool {
    let mut parts = [0u32; 3];
    let mut n = 0;
    for byte in version.bytes() {
        match byte {
            b'0'..=b'9' => parts[n] = parts[n].saturating_mul(10).saturating_add(u32::from(byte - b'0')),
            b'.' if n < 2 => n += 1,
            b'.' => break,
            _ => return false,
        }
    }
    n == 2 && parts <= [2, 1, 58]
}

#[cfg(test)]
mod tests {
    use super::is_under_reporting;

    #[test]
    fn versions_up_to_2_1_58_under_report() {
        for version in ["2.1.58", "2.1.9", "1.0.128", "0.2.99", "2.1.58.1", "2.0.0"] {
            assert!(is_under_reporting(version), "{version}");
        }
        for version in ["2.1.59", "2.2.0", "3.0.0", "2.1", "2.1.58-beta", "dev", "", "99999999999.0.0"] {
            assert!(!is_under_reporting(version), "{version}");
        }
    }
}
