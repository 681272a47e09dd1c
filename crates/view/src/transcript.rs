//! The transcript: a session as a conversation of turns, each with its prompt, replies and tool calls.

use std::borrow::Cow;
use std::fmt;
use std::ops::{AddAssign, Deref, Range};
use std::sync::Arc;

use threadline_entry::lens::{Usage, UsageTokens};
use threadline_entry::{AgentKind, Entry, Millis};
use threadline_session::{InputKind, Round, ToolOutcome};
use threadline_usage::UsageTotals;

use crate::card::{CommandChanges, ToolCard, is_refusal};
use crate::finding_summary::FindingSummary;
use crate::humanize;
use crate::json_indent::indent_json;
use crate::name::outcome_name;
use crate::spending::InheritedCalls;

/// A session as a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The facts about the session.
    pub header: TranscriptHeader,
    /// The turns that were built, in order.
    pub turns: Vec<TurnView>,
    /// The parts after the conversation.
    pub end: TranscriptEnd,
}

/// The facts about a session that are shown above its conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptHeader {
    /// The session's id.
    pub id: Option<String>,
    /// The session's title, which may be a prompt.
    pub title: Option<String>,
    /// The first prompt.
    pub first_prompt: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// The Git branch of the last line that names one.
    pub git_branch: Option<String>,
    /// The version of Claude Code that wrote the last line.
    pub version: Option<String>,
    /// The start of the first turn and the end of the last one.
    pub span: Option<(Millis, Millis)>,
    /// The first and the last timestamp of the log, as in lists: when the session started, and when it was
    /// last active.
    pub active: Option<(Millis, Millis)>,
    /// The number of turns in the conversation, including those that are not built.
    pub n_turns: usize,
    /// The number of abandoned branches, including those that are not built.
    pub n_branches: usize,
    /// The number of errors; see [`count_errors`](crate::count_errors).
    pub errors: usize,
    /// The number of tool calls; see [`count_tools`](crate::count_tools).
    pub n_calls: usize,
    /// The number of sub-agents, with a log of their own or inside that of the session.
    pub n_agents: usize,
    /// The cost of the calls that the session made itself. Here and below, `spent` is empty if no
    /// [`Spending`](crate::Spending) was given. Turns include inherited calls.
    pub spent: UsageTotals,
    /// The calls that another session made.
    pub inherited: Option<InheritedCalls>,
}

/// The parts of a transcript after the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptEnd {
    /// Abandoned branches: rewinds and retries.
    pub branches: Vec<BranchView>,
    /// Sub-agents that were not started by a call of the conversation.
    pub agents: Vec<AgentView>,
    /// The problems of the log.
    pub findings: FindingSummary,
    /// The errors of sub-agents that could not be read; set by the caller, who reads the files.
    pub unread: Vec<String>,
}

impl TranscriptHeader {
    /// Returns the name of the session: its title, else its id.
    pub fn heading(&self) -> Option<&str> {
        let said =
            |text: &Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty()).is_some();
        [&self.title, &self.id].into_iter().find(|text| said(text))?.as_deref()
    }
}

/// A branch that the conversation abandoned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// The anchor of the line where it forked off; `None` if it has no line in common with the
    /// conversation.
    pub fork: Option<String>,
    /// The turns on it.
    pub turns: Vec<TurnView>,
}

impl BranchView {
    /// Returns whether the branch ended before the conversation started, given the conversation's span.
    ///
    /// Such a branch is an earlier conversation, from before the context was cleared.
    pub fn is_earlier_conversation(&self, conversation: Option<(Millis, Millis)>) -> bool {
        let ended = self.turns.iter().filter_map(|turn| turn.span).map(|(_, end)| end).max();
        self.fork.is_none() && ended.zip(conversation).is_some_and(|(end, (start, _))| end <= start)
    }
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// The turn's number, from 1.
    pub number: usize,
    /// The anchor of the line that opens the turn.
    pub anchor: String,
    /// The name of the turn in every view: the first line of its prompt, else of its first reply; empty if it
    /// has neither.
    pub title: String,
    /// The times of its start and end.
    pub span: Option<(Millis, Millis)>,
    /// The breakdown of its time.
    pub timing: TurnTiming,
    /// The models that replied, in order of first use.
    pub models: Vec<String>,
    /// The tokens used by its replies.
    pub tokens: TurnTokens,
    /// Its cost, including the sub-agents that it started.
    pub spent: UsageTotals,
    /// The cost of those sub-agents.
    pub spent_by_agents: UsageTotals,
    /// Whether the model has not finished.
    pub open: bool,
    /// How the turn continues the previous one.
    pub round: Round,
    /// Its items, in order.
    pub items: Vec<TranscriptItem>,
}

/// The breakdown of a turn's time, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TurnTiming {
    /// Time in which tools ran.
    pub tools: Millis,
    /// Time in which a tool was waiting for the person's answer.
    pub user_response: Millis,
    /// The rest of the turn: the model was working, or the log does not explain the time.
    pub model: Millis,
    /// Idle time between the end of the previous turn and the start of this one.
    pub idle: Millis,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub struct TurnTokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// One item of a transcript: a prompt, a reply, a tool call or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptItem {
    /// The anchor of the item, which does not change while the session grows.
    pub anchor: String,
    /// The number of the line that contains it.
    pub line_no: u64,
    /// The timestamp of that line.
    pub at: Option<Millis>,
    /// The cost of the calls that begin on this line; set on the first item of a line only.
    pub spent: Option<Arc<UsageTotals>>,
    /// The content.
    pub body: ItemBody,
}

impl TranscriptItem {
    /// Returns whether the item, or an item of a sub-agent inside it, is counted as an error.
    pub fn is_error(&self) -> bool {
        match &self.body {
            ItemBody::Call(call) => call.is_error() || self.has_errors_of_agents(),
            ItemBody::Error { .. } => true,
            _ => false,
        }
    }

    /// Returns whether a sub-agent inside the item has errors.
    pub(crate) fn has_errors_of_agents(&self) -> bool {
        matches!(&self.body, ItemBody::Call(call) if call.agents.iter().any(|agent| agent.errors > 0))
    }

    /// Returns the anchors of the counted errors in the item: its own, and those of the sub-agents that it
    /// started. See [`agent_anchor`].
    pub fn error_anchors(&self) -> Vec<String> {
        match &self.body {
            ItemBody::Call(call) => error_anchors(&self.anchor, call.is_error(), &call.agents).collect(),
            ItemBody::Error { .. } => vec![self.anchor.clone()],
            _ => Vec::new(),
        }
    }
}

/// The content of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemBody {
    /// A message of the user role: a prompt, or text that Claude Code inserted.
    Input {
        /// The kind of text.
        input: InputKind,
        /// The text, without the tags around it.
        text: String,
        /// Images and documents that came with it.
        files: Vec<AttachedFile>,
        /// Context that the editor added: the selected lines, the open file.
        context: Vec<String>,
    },
    /// Text of the model, in Markdown.
    Text(String),
    /// Thinking of the model; empty if the log contains only the signature.
    Thinking(String),
    /// A tool call.
    Call(Box<CallView>),
    /// A compaction of the conversation.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// The tokens before the compaction, if logged.
        before: Option<u64>,
        /// The tokens after the compaction, if logged.
        after: Option<u64>,
        /// The number of user and assistant lines that it removed from the conversation.
        dropped: usize,
        /// The summary that replaces them.
        summary: Option<String>,
    },
    /// A link to a result of the session: a pull request or an artifact.
    Link {
        /// The title of the link.
        label: String,
        /// The address.
        url: String,
    },
    /// An error outside the tool calls: an API error, a refusal.
    Error {
        /// The kind of error, in a few words.
        label: String,
        /// Details.
        text: String,
    },
    /// An event outside the conversation: a hook, an attachment.
    Event {
        /// The kind of event, in a few words.
        label: String,
        /// Details; may be empty.
        text: String,
    },
    /// A line of an unknown type, or one that is not an entry.
    Unknown {
        /// Its type, if it has one.
        kind: Option<String>,
        /// The raw line.
        raw: String,
    },
}

/// The label of a file or folder that a person attached to a prompt.
pub(crate) const ATTACHED: &str = "attached";

impl ItemBody {
    /// Returns whether this is a file or folder that a person attached to a prompt.
    pub fn is_attachment(&self) -> bool {
        matches!(self, Self::Event { label, .. } if label == ATTACHED)
    }
}

/// An image or document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachedFile {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The bytes in base64, or the URL if the log contains only that.
    pub data: String,
}

/// A tool call with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    /// The call's id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The subject in one line: the command, the path, the pattern. One of more than [`MAX_SUBJECT`] bytes is
    /// truncated.
    pub subject: String,
    /// The result in a few words: `63 lines`, `+12 −3`, `exit 101`. Truncated like the subject.
    pub gist: String,
    /// The whole call as structured data.
    pub card: ToolCard,
    /// The raw JSON of the input.
    pub input: CallInput,
    /// The outcome.
    pub outcome: ToolOutcome,
    /// How long the call has been running, in milliseconds; `None` unless it is running.
    pub running: Option<Millis>,
    /// The duration in milliseconds.
    pub duration: Option<Millis>,
    /// The result text that was sent to the model.
    pub result: String,
    /// Images that were sent to the model.
    pub files: Vec<AttachedFile>,
    /// The sub-agents that the call started.
    pub agents: Vec<AgentView>,
}

/// The maximum length of the subject and of the gist of a call in bytes. The card contains the whole input.
pub const MAX_SUBJECT: usize = 1 << 16;

/// The raw JSON of the input of a call. It is a part of a line, and shared with the session.
#[derive(Clone, Default)]
pub struct CallInput {
    line: Option<Entry>,
    range: Range<usize>,
}

impl CallInput {
    /// Returns a part of a line.
    pub(crate) fn new(line: &Entry, json: &str) -> Self {
        let start = (json.as_ptr() as usize).wrapping_sub(line.text().as_ptr() as usize);
        let range = start..start.wrapping_add(json.len());
        debug_assert_eq!(line.text().get(range.clone()), Some(json), "a part of another line");
        Self { line: Some(line.clone()), range }
    }
}

impl Deref for CallInput {
    type Target = str;

    fn deref(&self) -> &str {
        self.line.as_ref().and_then(|line| line.text().get(self.range.clone())).unwrap_or_default()
    }
}

impl PartialEq for CallInput {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for CallInput {}

impl fmt::Debug for CallInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// The text that precedes the person's own words in a denied call.
const DENIAL_PREFIX: &str = "the user said:\n";

/// The beginning of the message with which Claude Code reports that the person wants to discuss a question
/// first.
pub(crate) const CLARIFY_MESSAGE: &str = "The user wants to clarify these questions.";

impl CallView {
    /// Returns whether the call counts as an error: it failed. A call that was denied or interrupted, or has
    /// no result, does not count.
    pub fn is_error(&self) -> bool {
        self.outcome.is_error()
    }

    /// Returns the gist, and in a few words the changes that a command made to files.
    pub fn short_result(&self) -> Cow<'_, str> {
        let changed = self.command_changes().map(CommandChanges::gist).unwrap_or_default();
        match (&*self.gist, &*changed) {
            (gist, "") => gist.into(),
            ("", _) => changed.into(),
            (gist, changed) => format!("{gist}, {changed}").into(),
        }
    }

    /// Returns the changes that the command of the call made to files, if the log contains any.
    pub fn command_changes(&self) -> Option<&CommandChanges> {
        match &self.card {
            ToolCard::Command(card) => Some(&card.changes).filter(|changes| !changes.is_empty()),
            _ => None,
        }
    }

    /// Returns the state in a few words: `error`, `no result`, `running 12 s`.
    pub fn state(&self) -> Cow<'static, str> {
        match self.running {
            Some(elapsed) => format!("running {}", humanize::seconds(elapsed)).into(),
            None => outcome_name(self.outcome).into(),
        }
    }

    /// Returns the reason that the person gave for denying the call.
    pub fn denial_reason(&self) -> Option<&str> {
        let denied = self.outcome == ToolOutcome::Denied;
        let said = self.result.split_once(DENIAL_PREFIX).filter(|_| denied).map(|(_, said)| said.trim());
        said.filter(|said| !said.starts_with(CLARIFY_MESSAGE))
    }

    /// Returns whether the answer of a sub-agent need not be repeated, because the last text of its
    /// transcript contains it or it arrives later.
    pub fn answer_is_shown(&self) -> bool {
        let ToolCard::Agent { answer, background, .. } = &self.card else { return false };
        fn last(agent: &AgentView) -> Option<&str> {
            let items = agent.turns.iter().rev().flat_map(|turn| turn.items.iter().rev());
            let mut texts = items.filter_map(|item| match &item.body {
                ItemBody::Text(text) => Some(text.trim()).filter(|text| !text.is_empty()),
                _ => None,
            });
            texts.next()
        }
        // A sub-agent in the background answers later, in a separate prompt.
        self.agents.iter().any(|agent| *background || last(agent).is_some_and(|last| answer.contains(last)))
    }

    /// Returns the result text, formatted for reading.
    pub fn formatted_result(&self) -> Cow<'_, str> {
        // Only generic cards are reformatted; the others have their own presentation.
        if matches!(self.card, ToolCard::Fields(_)) {
            indent_json(&self.result)
        } else {
            Cow::Borrowed(&self.result)
        }
    }

    /// Returns the result text of a failed call, if it contains more than the outcome.
    pub fn error_text(&self) -> Option<&str> {
        let text = self.result.trim();
        // The exit code is part of the card.
        let exit_code = text.strip_prefix("Exit code ").filter(|_| matches!(self.card, ToolCard::Command(_)));
        let text = exit_code.map_or(text, |rest| rest.split_once('\n').map_or("", |(_, rest)| rest));
        Some(text).filter(|text| self.outcome != ToolOutcome::Ok && !is_refusal(text) && !text.is_empty())
    }
}

/// A sub-agent and its conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// The agent's id.
    pub id: String,
    /// The agent type.
    pub agent_type: Option<String>,
    /// The task, in a few words.
    pub description: Option<String>,
    /// The purpose that it was started for.
    pub kind: AgentKind,
    /// Its cost, including its own sub-agents.
    pub spent: UsageTotals,
    /// The number of errors, including those of its own sub-agents.
    pub errors: usize,
    /// The anchors of its errors, and of its calls that started a sub-agent with errors.
    pub error_anchors: Vec<String>,
    /// Its turns.
    pub turns: Vec<TurnView>,
}

/// Returns the anchors of a call and of the sub-agents that it started, as far as they are errors.
pub(crate) fn error_anchors<'a>(
    call: &'a str,
    failed: bool,
    agents: &'a [AgentView],
) -> impl Iterator<Item = String> {
    let inside = agents
        .iter()
        .flat_map(|agent| agent.error_anchors.iter().map(|anchor| agent_anchor(&agent.id, anchor)));
    failed.then(|| call.to_owned()).into_iter().chain(inside)
}

impl AgentView {
    /// Returns a display name: the description, else the purpose, the agent type or the id.
    pub fn name(&self) -> &str {
        let started_for = match self.kind {
            AgentKind::Compaction => Some("compaction summary"),
            AgentKind::SideQuestion => Some("side question"),
            _ => None,
        };
        let said = self.description.as_deref().or(started_for).or(self.agent_type.as_deref());
        said.unwrap_or(&self.id)
    }
}

impl AddAssign for TurnTokens {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
    }
}

impl TurnTokens {
    pub(crate) fn of(usage: Usage<'_>) -> Self {
        usage.tokens().into()
    }

    /// Returns the number of input tokens, cached ones included.
    pub fn context(self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

impl From<UsageTokens> for TurnTokens {
    fn from(tokens: UsageTokens) -> Self {
        Self {
            input: tokens.input_tokens.unwrap_or(0),
            output: tokens.output_tokens.unwrap_or(0),
            cache_read: tokens.cache_read_input_tokens.unwrap_or(0),
            cache_write: tokens.cache_creation_input_tokens.unwrap_or(0),
        }
    }
}

pub use threadline_entry::anchor;

/// Returns the anchor of an item of a sub-agent on the page of its session: `a-x1-m42`.
pub fn agent_anchor(agent_id: &str, anchor: &str) -> String {
    format!("a-{agent_id}-{anchor}")
}

/// Returns the line number of an [`anchor`] such as `m42` or `m42.2` in the session's own log.
pub fn anchor_line(name: &str) -> Option<u64> {
    AnchorParts::parse(name).filter(|parts| parts.agent.is_none()).map(|parts| parts.line_no)
}

/// The parts of an [`anchor`] or [`agent_anchor`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnchorParts<'a> {
    /// The sub-agent whose log contains the item; `None` for the session's own log.
    pub agent: Option<&'a str>,
    /// The anchor in that log, such as `m42` or `m42.2`.
    pub item: &'a str,
    /// The line number in that log.
    pub line_no: u64,
}

impl<'a> AnchorParts<'a> {
    /// Parses `m42`, `m42.2` or `a-AGENT-m42`; returns `None` for any other text.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (agent, item) = match text.strip_prefix("a-") {
            Some(rest) => rest.rsplit_once('-').map(|(agent, item)| (Some(agent), item))?,
            None => (None, text),
        };
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = item.strip_prefix('m')?;
        let (line, block) =
            number.split_once('.').map_or((number, None), |(line, block)| (line, Some(block)));
        let is_valid = is_number(line) && block.is_none_or(is_number) && agent != Some("");
        Some(Self { agent, item, line_no: line.parse().ok().filter(|_| is_valid)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_parsed_as_they_are_written() {
        let parts = |agent, item, line_no| Some(AnchorParts { agent, item, line_no });
        assert_eq!(AnchorParts::parse(&anchor(42, 0)), parts(None, "m42", 42));
        assert_eq!(AnchorParts::parse(&anchor(42, 1)), parts(None, "m42.2", 42));
        let of_agent = agent_anchor("wf-x1", "m42.2");
        assert_eq!(AnchorParts::parse(&of_agent), parts(Some("wf-x1"), "m42.2", 42));
        for text in ["", "m", "42", "m4x", "m4.", "m4.x", "m+4", "a-m4", "a--m4", "b-x1-m4"] {
            assert_eq!(AnchorParts::parse(text), None, "{text}");
        }
        assert_eq!((anchor_line("m42.2"), anchor_line(&of_agent)), (Some(42), None));
    }
}
