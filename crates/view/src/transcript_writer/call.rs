//! Tool calls: the card, the subject and the sub-agents of a call.

use threadline_entry::Millis;
use threadline_entry::lens::{AgentResult, Block, Content, Lens, TaskResult};
use threadline_session::{CallIndex, EntryIndex, ToolCall, ToolOutcome};

use super::TranscriptWriter;
use super::line::file_of;
use crate::card::{CardInput, ToolCard, starts_agents, untagged_error};
use crate::humanize::joined;
use crate::transcript::{AgentView, CallInput, CallView, MAX_SUBJECT};

impl<'f> TranscriptWriter<'f> {
    /// Returns a call, given the line and the block that contain it.
    pub(super) fn call(&self, call: &ToolCall, entry_idx: EntryIndex, block: Block<'f>) -> CallView {
        let session = self.session();
        let result = call.result(session);
        let content = result.and_then(|block| block.content());
        let text = content.map(|content| content.text().into_owned()).unwrap_or_default();
        let text = if text.is_empty() { resources(content) } else { text };
        let text = saved_output_path(&text).and_then(self.builder.read_output).unwrap_or(text);
        let outcome = call.outcome(session);
        let text = if outcome.is_error() { untagged_error(&text).into_owned() } else { text };
        let data = call.results.first().and_then(|at| session.entries()[at.entry_idx].tool_use_result());
        let failed = outcome != ToolOutcome::Ok;
        let input = block.input();
        let cwd = session.entries()[call.entry_idx].cwd().or_else(|| self.builder.family.main.first_cwd());
        let cwd = cwd.as_deref().unwrap_or_default();
        let kept = self.builder.read_output;
        let files: Vec<_> =
            content.into_iter().flat_map(|content| content.blocks()).filter_map(file_of).collect();
        let pictures = files.len();
        let call_of = CardInput {
            name: &call.name,
            input,
            data,
            text: &text,
            failed,
            n_images: pictures,
            cwd,
            read_output: kept,
        };
        let mut summary = call_of.summary();
        if let Some(inside) = relative_to(&summary.subject, cwd) {
            summary.subject = inside;
        } else if matches!(summary.card, ToolCard::File { .. } | ToolCard::Diff { .. }) {
            summary.subject = shorten_path(summary.subject);
        }
        if let Some(topic) = self.topic(call) {
            set_topic(&mut summary.subject, &mut summary.card, &topic);
        }
        truncate_line(&mut summary.subject);
        truncate_line(&mut summary.gist);
        let agents = if self.descends() {
            let spawned = self.builder.family.spawned_by(self.agent, &call.id);
            let mut agents: Vec<AgentView> = spawned.map(|agent| self.agent(agent)).collect();
            agents.shrink_to_fit();
            fill_agent_names(&mut agents, &summary.card);
            // A sub-agent that has answered is finished, even if the log contains only its progress lines.
            if matches!(summary.card, ToolCard::Agent { background: false, .. })
                && outcome != ToolOutcome::Missing
            {
                agents
                    .iter_mut()
                    .filter_map(|agent| agent.turns.last_mut())
                    .for_each(|turn| turn.open = false);
            }
            agents
        } else {
            Vec::new()
        };
        CallView {
            id: call.id.to_string(),
            name: call.name.to_string(),
            subject: summary.subject,
            gist: summary.gist,
            card: summary.card,
            input: input
                .map(|input| CallInput::new(&session.entries()[entry_idx], input.raw()))
                .unwrap_or_default(),
            outcome,
            running: self
                .running_since(call)
                .zip(self.builder.live_at)
                .map(|(start, now)| (now - start).max(0)),
            duration: call.duration(session),
            files,
            result: text,
            agents,
        }
    }

    /// Returns the time at which a call started, if it is running: the session is live, and its last turn is
    /// waiting for the result.
    pub(crate) fn running_since(&self, call: &ToolCall) -> Option<Millis> {
        let session = self.session();
        let is_last_reply = session.replies().last_index() == Some(call.reply);
        if self.builder.live_at.is_none() || !call.results.is_empty() || !is_last_reply {
            return None;
        }
        let is_open = session.turns().last().is_some_and(|turn| turn.is_open(session));
        session.timestamp(call.entry_idx).filter(|_| is_open)
    }

    /// Returns the topic of a call whose input contains only an id: the task that it updates, or the agent
    /// that it writes to.
    pub(crate) fn topic(&self, call: &ToolCall) -> Option<String> {
        let input = |key: &str| call.block(self.session())?.input()?.get(key)?.as_str();
        match &*call.name {
            "TaskUpdate" => self.task_name(call, &input("taskId")?),
            "SendMessage" => self.agent_name(&input("to").or_else(|| input("recipient"))?),
            _ => None,
        }
    }

    /// Returns the number and name of a task, from the last preceding call that created it.
    fn task_name(&self, call: &ToolCall, id: &str) -> Option<String> {
        let session = self.session();
        let calls = session.tool_calls();
        let before = calls.partition_point(|other| other.entry_idx < call.entry_idx);
        calls[CallIndex::FIRST..before].iter().rev().filter(|other| other.name == "TaskCreate").find_map(
            |other| {
                let result = session.entries()[other.results.first()?.entry_idx].tool_use_result()?;
                let task = result.of::<TaskResult<'_>>()?.task()?;
                (task.id()? == id).then(|| Some(format!("#{id} {}", task.subject()?)))?
            },
        )
    }

    /// Returns the description of an agent: its own, or that of the call that started it.
    fn agent_name(&self, id: &str) -> Option<String> {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let known = self.builder.family.agents.iter().find(|agent| agent.id == id);
        let known = known.and_then(|agent| said(agent.description.clone()?));
        known.or_else(|| {
            let session = self.session();
            session.tool_calls().iter().filter(|call| starts_agents(&call.name)).find_map(|call| {
                let result = session.entries()[call.results.first()?.entry_idx].tool_use_result()?;
                let started = result.of::<AgentResult<'_>>()?.agent_id()?;
                let input = call.block(session).filter(|_| started == id)?.input()?;
                said(input.get("description")?.as_str()?.into_owned())
            })
        })
    }
}

/// Returns the resources in the result of an MCP tool, for results without text.
fn resources(content: Option<Content<'_>>) -> String {
    let resource_text = |block: Block<'_>| {
        let json = block.object().json();
        let inside = json.get("resource").unwrap_or(json);
        let part = |key: &str| Some(inside.get(key)?.as_str()?.into_owned());
        part("text").or_else(|| part("uri"))
    };
    let blocks = content.into_iter().flat_map(|content| content.blocks());
    let given = blocks.filter(|block| block.is("resource") || block.is("resource_link"));
    joined(given.filter_map(resource_text), "\n")
}

/// Returns a path relative to the working directory, if it is inside it.
pub(crate) fn relative_to(path: &str, cwd: &str) -> Option<String> {
    let inside = path.strip_prefix(cwd).filter(|_| !cwd.is_empty())?.strip_prefix(['/', '\\'])?;
    (!inside.is_empty()).then(|| inside.to_owned())
}

/// Returns the path of the file with the whole result, if the model got only its beginning.
fn saved_output_path(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<persisted-output>")?.split_once("saved to: ")?;
    Some(rest.lines().next()?.trim())
}

/// Longer paths are shortened to their end.
const LONG_PATH: usize = 56;

/// Shortens a long path to its end, which contains the file name.
fn shorten_path(path: String) -> String {
    if path.len() <= LONG_PATH {
        return path;
    }
    let is_separator = |byte: &u8| matches!(byte, b'/' | b'\\');
    let from = path.len() - LONG_PATH + 1;
    let first = path.as_bytes()[from..].iter().position(is_separator).map(|at| from + at);
    let start = first.or_else(|| path.as_bytes().iter().rposition(is_separator));
    start.map_or_else(|| path.clone(), |start| format!("…{}", &path[start..]))
}

/// Replaces the subject of a call, and the name of its task, with the topic.
pub(crate) fn set_topic(subject: &mut String, card: &mut ToolCard, topic: &str) {
    topic.clone_into(subject);
    if let ToolCard::Todos(todos) = card
        && let [todo] = &mut todos[..]
    {
        topic.clone_into(&mut todo.text);
    }
}

/// Fills in missing types and descriptions of sub-agents from the card of their call.
pub(crate) fn fill_agent_names(agents: &mut [AgentView], card: &ToolCard) {
    let ToolCard::Agent { agent_type, description, .. } = card else { return };
    let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    for agent in agents {
        agent.agent_type = agent.agent_type.take().or_else(|| named(agent_type));
        agent.description = agent.description.take().or_else(|| named(description));
    }
}

/// Truncates a subject or a gist that is longer than any line to be read.
fn truncate_line(text: &mut String) {
    if text.len() > MAX_SUBJECT {
        text.truncate(text.floor_char_boundary(MAX_SUBJECT));
        text.push('…');
        text.shrink_to_fit();
    }
}
