//! JSON of conversations: the lines of `show`.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::value::RawValue;
use threadline_entry::Millis;
use threadline_session::ToolOutcome;
use threadline_usage::UsageTotals;

use super::{SCHEMA, moment};
use crate::card::{CommandChanges, CommandFileChange};
use crate::diff::Hunk;
use crate::filter::TranscriptFilter;
use crate::outline::OutlineLine;
use crate::transcript::{
    AgentView, BranchView, CallView, ItemBody, Transcript, TranscriptHeader, TranscriptItem, TurnTiming,
    TurnTokens, TurnView,
};
use crate::transcript_parts::TranscriptPart;

/// One line of `show`: the session, a branch, a sub-agent, a turn or an item.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub enum ShowObject<'a> {
    Session {
        schema: u32,
        id: Option<&'a str>,
        title: Option<&'a str>,
        cwd: Option<&'a str>,
        git_branch: Option<&'a str>,
        version: Option<&'a str>,
        started_at: Option<String>,
        last_active_at: Option<String>,
        turns: usize,
        branches: usize,
        errors: usize,
        tool_calls: usize,
        sub_agents: usize,
        usage: Option<SpentObject<'a>>,
        inherited_usage: Option<SpentObject<'a>>,
        inherited_from: Option<&'a str>,
    },
    Branch {
        number: usize,
        fork: Option<&'a str>,
    },
    Agent {
        id: &'a str,
        parent: Option<&'a str>,
        call: Option<&'a str>,
        kind: &'static str,
        agent_type: Option<&'a str>,
        description: Option<&'a str>,
        usage: Option<SpentObject<'a>>,
    },
    Turn {
        agent: Option<&'a str>,
        number: usize,
        anchor: &'a str,
        round: &'static str,
        started_at: Option<String>,
        ended_at: Option<String>,
        models: &'a [String],
        tokens: TokensObject,
        usage: Option<SpentObject<'a>>,
        usage_by_agents: Option<SpentObject<'a>>,
        timing: TimingObject,
        unfinished: bool,
    },
    Item {
        agent: Option<&'a str>,
        turn: usize,
        anchor: &'a str,
        line: u64,
        timestamp: Option<String>,
        kind: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<SpentObject<'a>>,
        #[serde(flatten)]
        body: BodyObject<'a>,
    },
}

/// One line of `show --outline --json`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct OutlineObject<'a> {
    pub number: usize,
    pub anchor: &'a str,
    pub prompt: &'a str,
    pub tool_calls: usize,
    pub errors: usize,
    pub edits: usize,
    pub lines_added: usize,
    pub lines_removed: usize,
    pub shell_edits: usize,
    pub shell_lines_added: usize,
    pub shell_lines_removed: usize,
    pub compactions: usize,
    pub tokens: TokensObject,
    pub usage: Option<SpentObject<'a>>,
    pub timing: TimingObject,
    pub unfinished: bool,
}

impl<'a> From<&'a OutlineLine> for OutlineObject<'a> {
    fn from(line: &'a OutlineLine) -> Self {
        Self {
            number: line.number,
            anchor: &line.anchor,
            prompt: &line.title,
            tool_calls: line.calls,
            errors: line.errors,
            edits: line.edits,
            lines_added: line.lines.0,
            lines_removed: line.lines.1,
            shell_edits: line.shell_edits,
            shell_lines_added: line.shell_lines.0,
            shell_lines_removed: line.shell_lines.1,
            compactions: line.compactions,
            tokens: line.tokens.into(),
            usage: SpentObject::of(&line.spent),
            timing: line.timing.into(),
            unfinished: line.open,
        }
    }
}

/// Token counts.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct TokensObject {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// The cost of some calls.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SpentObject<'a> {
    pub model_calls: u64,
    pub cost_usd: Option<Box<RawValue>>,
    pub is_minimum: bool,
    pub unpriced_models: Vec<&'a str>,
}

impl<'a> SpentObject<'a> {
    /// Converts totals; `None` if there were no calls.
    pub fn of(totals: &'a UsageTotals) -> Option<Self> {
        (totals.calls > 0).then(|| Self {
            model_calls: totals.calls,
            cost_usd: RawValue::from_string(totals.cost.to_string()).ok(),
            is_minimum: totals.is_lower_bound(),
            unpriced_models: totals.unpriced.iter().map(String::as_str).collect(),
        })
    }
}

/// The breakdown of a turn's time.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct TimingObject {
    pub model_ms: Millis,
    pub tools_ms: Millis,
    pub user_response_ms: Millis,
    pub idle_ms: Millis,
}

impl From<TurnTiming> for TimingObject {
    fn from(timing: TurnTiming) -> Self {
        Self {
            model_ms: timing.model,
            tools_ms: timing.tools,
            user_response_ms: timing.user_response,
            idle_ms: timing.idle,
        }
    }
}

/// The content of an item, by its `kind`.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub enum BodyObject<'a> {
    Input {
        input: &'static str,
        text: &'a str,
        images: usize,
        context: &'a [String],
    },
    Text {
        text: &'a str,
    },
    Call {
        id: &'a str,
        tool: &'a str,
        subject: &'a str,
        summary: &'a str,
        input: Option<&'a RawValue>,
        outcome: &'static str,
        duration_ms: Option<Millis>,
        result: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        changes: Option<CommandChangesObject<'a>>,
        agents: Vec<&'a str>,
    },
    Compaction {
        trigger: Option<&'a str>,
        tokens_before: Option<u64>,
        tokens_after: Option<u64>,
        lines_dropped: usize,
        summary: Option<&'a str>,
    },
    Event {
        label: &'a str,
        text: &'a str,
    },
    Link {
        label: &'a str,
        url: &'a str,
    },
    Unknown {
        entry_type: Option<&'a str>,
        raw: &'a str,
    },
}

/// The changes that a shell command made to files.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CommandChangesObject<'a> {
    pub files: Vec<CommandFileObject<'a>>,
    pub more_files: u64,
    pub skipped: bool,
}

/// The change that a shell command made to one file.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CommandFileObject<'a> {
    pub path: &'a str,
    pub change: &'static str,
    pub lines_added: Option<usize>,
    pub lines_removed: Option<usize>,
    pub patch: Option<String>,
}

impl<'a> From<&'a CommandChanges> for CommandChangesObject<'a> {
    fn from(changes: &'a CommandChanges) -> Self {
        Self {
            files: changes.files.iter().map(CommandFileObject::from).collect(),
            more_files: changes.n_unnamed,
            skipped: changes.is_skipped,
        }
    }
}

impl<'a> From<&'a CommandFileChange> for CommandFileObject<'a> {
    fn from(file: &'a CommandFileChange) -> Self {
        let has_lines = !file.hunks.is_empty();
        let (added, removed) = Hunk::counts(&file.hunks);
        Self {
            path: &file.path,
            change: file.kind.name(),
            lines_added: has_lines.then_some(added),
            lines_removed: has_lines.then_some(removed),
            patch: has_lines.then(|| Hunk::patch_text(&file.hunks)),
        }
    }
}

/// Calls `sink` with every line of `show --json`: the conversation, with each sub-agent after the call that
/// started it, then sub-agents without a call, then the abandoned branches.
pub fn show<'a>(transcript: &'a Transcript, sink: &mut dyn FnMut(ShowObject<'a>)) {
    let header = &transcript.header;
    sink(session(header));
    show_turns(&transcript.turns, None, sink);
    for agent in &transcript.end.agents {
        show_agent(agent, None, None, sink);
    }
    for (i, branch) in transcript.end.branches.iter().enumerate() {
        show_branch(branch, i + 1, sink);
    }
}

/// Converts the parts of a transcript to the lines of `show --json`, one part at a time.
#[derive(Debug, Default)]
pub struct ShowWriter {
    n_branches: usize,
}

impl ShowWriter {
    /// Writes the lines of a part.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_part(&mut self, part: &TranscriptPart, out: &mut dyn Write) -> io::Result<()> {
        let mut result = Ok(());
        self.part(part, &mut |object| {
            if result.is_ok() {
                let written = serde_json::to_writer(&mut *out, &object).map_err(io::Error::from);
                result = written.and_then(|()| out.write_all(b"\n"));
            }
        });
        result
    }

    /// Calls `sink` with the lines of a part. Findings have none.
    pub fn part<'a>(&mut self, part: &'a TranscriptPart, sink: &mut dyn FnMut(ShowObject<'a>)) {
        match part {
            TranscriptPart::Header(header) => sink(session(header)),
            TranscriptPart::Turn(turn) => show_turns(std::slice::from_ref(&**turn), None, sink),
            TranscriptPart::Agent(agent) => show_agent(agent, None, None, sink),
            TranscriptPart::Branch(branch) => {
                self.n_branches += 1;
                show_branch(branch, self.n_branches, sink);
            }
            TranscriptPart::Findings(_) => {}
        }
    }
}

impl ShowObject<'_> {
    /// Returns whether the line is a call that a filter selects only because of a sub-agent in it, which is
    /// shown without the call.
    pub fn is_call_around(&self, filter: &TranscriptFilter) -> bool {
        let Self::Item { body: BodyObject::Call { tool, outcome, .. }, .. } = self else { return false };
        filter.is_only_around(tool, *outcome == ToolOutcome::Error.name())
    }

    /// Returns whether the line is an item of the conversation.
    pub fn is_item(&self) -> bool {
        matches!(self, Self::Item { .. })
    }
}

/// Calls `sink` with the lines of an abandoned branch, given its number.
fn show_branch<'a>(branch: &'a BranchView, number: usize, sink: &mut dyn FnMut(ShowObject<'a>)) {
    sink(ShowObject::Branch { number, fork: branch.fork.as_deref() });
    show_turns(&branch.turns, None, sink);
}

/// Returns the first line of `show --json`.
pub fn session(header: &TranscriptHeader) -> ShowObject<'_> {
    ShowObject::Session {
        schema: SCHEMA,
        id: header.id.as_deref(),
        title: header.title.as_deref(),
        cwd: header.cwd.as_deref(),
        git_branch: header.git_branch.as_deref(),
        version: header.version.as_deref(),
        started_at: header.active.map(|(start, _)| moment(start)),
        last_active_at: header.active.map(|(_, end)| moment(end)),
        turns: header.n_turns,
        branches: header.n_branches,
        errors: header.errors,
        tool_calls: header.n_calls,
        sub_agents: header.n_agents,
        usage: SpentObject::of(&header.spent),
        inherited_usage: header.inherited.as_ref().and_then(|calls| SpentObject::of(&calls.usage)),
        inherited_from: header.inherited.as_ref().and_then(|calls| calls.from.as_deref()),
    }
}

/// Calls `sink` with the lines of some turns, of the session or of a sub-agent.
fn show_turns<'a>(turns: &'a [TurnView], agent: Option<&'a str>, sink: &mut dyn FnMut(ShowObject<'a>)) {
    for turn in turns {
        sink(turn_object(turn, agent));
        show_items(&turn.items, turn.number, agent, sink);
    }
}

/// Returns the line of a turn of the session, without its items.
pub fn turn(turn: &TurnView) -> ShowObject<'_> {
    turn_object(turn, None)
}

fn turn_object<'a>(turn: &'a TurnView, agent: Option<&'a str>) -> ShowObject<'a> {
    ShowObject::Turn {
        agent,
        number: turn.number,
        anchor: &turn.anchor,
        round: turn.round.name(),
        started_at: turn.span.map(|(start, _)| moment(start)),
        ended_at: turn.span.map(|(_, end)| moment(end)),
        models: &turn.models,
        tokens: turn.tokens.into(),
        usage: SpentObject::of(&turn.spent),
        usage_by_agents: SpentObject::of(&turn.spent_by_agents),
        timing: turn.timing.into(),
        unfinished: turn.open,
    }
}

/// Calls `sink` with the lines of some items of a turn of the session, given its number.
pub fn items<'a>(items: &'a [TranscriptItem], turn: usize, sink: &mut dyn FnMut(ShowObject<'a>)) {
    show_items(items, turn, None, sink);
}

/// Calls `sink` with the lines of some items of a turn, given its number.
fn show_items<'a>(
    items: &'a [TranscriptItem],
    turn: usize,
    agent: Option<&'a str>,
    sink: &mut dyn FnMut(ShowObject<'a>),
) {
    for item in items {
        sink(item_object(item, turn, agent));
        if let ItemBody::Call(call) = &item.body {
            for below in &call.agents {
                show_agent(below, agent, Some(&call.id), sink);
            }
        }
    }
}

/// Calls `sink` with the lines of a sub-agent.
fn show_agent<'a>(
    agent: &'a AgentView,
    parent: Option<&'a str>,
    call: Option<&'a str>,
    sink: &mut dyn FnMut(ShowObject<'a>),
) {
    sink(ShowObject::Agent {
        id: &agent.id,
        parent,
        call,
        kind: agent.kind.name(),
        agent_type: agent.agent_type.as_deref(),
        description: agent.description.as_deref(),
        usage: SpentObject::of(&agent.spent),
    });
    show_turns(&agent.turns, Some(&agent.id), sink);
}

fn item_object<'a>(item: &'a TranscriptItem, turn: usize, agent: Option<&'a str>) -> ShowObject<'a> {
    let (kind, body) = match &item.body {
        ItemBody::Input { input, text, files, context } => {
            ("input", BodyObject::Input { input: input.name(), text, images: files.len(), context })
        }
        ItemBody::Text(text) => ("text", BodyObject::Text { text }),
        ItemBody::Thinking(text) => ("thinking", BodyObject::Text { text }),
        ItemBody::Call(call) => ("call", call_object(call)),
        ItemBody::Compaction { trigger, before, after, dropped, summary } => (
            "compaction",
            BodyObject::Compaction {
                trigger: trigger.as_deref(),
                tokens_before: *before,
                tokens_after: *after,
                lines_dropped: *dropped,
                summary: summary.as_deref(),
            },
        ),
        ItemBody::Event { label, text } => ("event", BodyObject::Event { label, text }),
        ItemBody::Error { label, text } => ("error", BodyObject::Event { label, text }),
        ItemBody::Link { label, url } => ("link", BodyObject::Link { label, url }),
        ItemBody::Unknown { kind, raw } => {
            ("unknown", BodyObject::Unknown { entry_type: kind.as_deref(), raw })
        }
    };
    let (anchor, line, timestamp) = (&*item.anchor, item.line_no, item.at.map(moment));
    let usage = item.spent.as_deref().and_then(SpentObject::of);
    ShowObject::Item { agent, turn, anchor, line, timestamp, kind, usage, body }
}

fn call_object(call: &CallView) -> BodyObject<'_> {
    BodyObject::Call {
        id: &call.id,
        tool: &call.name,
        subject: &call.subject,
        summary: &call.gist,
        input: serde_json::from_str(&call.input).ok(),
        outcome: if call.running.is_some() { "running" } else { call.outcome.name() },
        duration_ms: call.duration,
        result: &call.result,
        changes: call.command_changes().map(CommandChangesObject::from),
        agents: call.agents.iter().map(|agent| &*agent.id).collect(),
    }
}

impl From<TurnTokens> for TokensObject {
    fn from(tokens: TurnTokens) -> Self {
        Self {
            input: tokens.input,
            output: tokens.output,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
        }
    }
}
