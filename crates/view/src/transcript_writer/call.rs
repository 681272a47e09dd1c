//! Tool calls: the card, the subject and the sub-agents of a call.

use threadline_entry::lens::{Block, Content, Lens, McpMeta, User};
use threadline_entry::{Entry, Millis, value};
use threadline_session::{AgentIndex, EntryIndex, ToolCall, ToolOutcome};

use super::line::file_of;
use super::{CallBlock, TranscriptWriter};
use crate::card::{CardInput, ToolCard, untagged_error};
use crate::humanize::joined;
use crate::transcript::{AgentView, CallInput, CallView, MAX_SUBJECT};

impl<'f> TranscriptWriter<'f> {
    /// Returns a call, given the line and the block that contain it.
    pub(super) fn call(&self, entry_idx: EntryIndex, call_block: CallBlock<'f>) -> CallView {
        let session = self.session();
        let CallBlock { block, result, has_agents, .. } = call_block;
        let call = &session.tool_calls()[call_block.call];
        let content = result.and_then(|at| at.block(session)?.content());
        let text = content.map(|content| content.text().into_owned()).unwrap_or_default();
        let text = if text.is_empty() { resources(content) } else { text };
        let text = match result.and_then(|at| mcp_meta(&session.entries()[at.entry_idx])) {
            Some(meta) => with_mcp_meta(text, meta),
            None => text,
        };
        let read_output = |path: &str| self.state.output_reads.read(path, self.builder.read_output);
        let text = saved_output_path(&text).and_then(read_output).unwrap_or(text);
        let outcome = call_block.outcome(session);
        let text = if outcome.is_error() { untagged_error(&text).into_owned() } else { text };
        let data = result.and_then(|at| at.record(session));
        let failed = outcome != ToolOutcome::Ok;
        let input = block.input();
        let cwd = session.entries()[call.entry_idx].cwd().or_else(|| self.builder.family.main.first_cwd());
        let cwd = cwd.as_deref().unwrap_or_default();
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
            read_output: &read_output,
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
        let agents = if self.descends() && has_agents {
            let spawned = self.builder.family.spawned_by(self.agent, &call.id);
            // Agents may have started each other.
            let is_inside = |agent: &AgentIndex| self.state.open_agents.borrow().contains(agent);
            let spawned = spawned.filter(|agent| !is_inside(agent));
            let mut agents: Vec<AgentView> = spawned.map(|agent| self.agent(agent)).collect();
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
            duration: result.and_then(|_| call.duration(session)),
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
        let is_open = || session.turns().last().is_some_and(|turn| turn.is_open(session));
        let mut open_turns = self.state.open_turns.borrow_mut();
        let is_open = *open_turns.entry(self.agent).or_insert_with(is_open);
        session.timestamp(call.entry_idx).filter(|_| is_open)
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

/// Returns the parts of an MCP result besides its text, if the line contains one result.
fn mcp_meta(entry: &Entry) -> Option<McpMeta<'_>> {
    let meta = entry.lens::<User<'_>>()?.mcp_meta()?;
    let blocks = entry.message()?.blocks();
    (blocks.filter(|block| block.is(value::TOOL_RESULT)).count() == 1).then_some(meta)
}

/// Appends the structured content and the links of an MCP result, unless the text contains them.
fn with_mcp_meta(mut text: String, meta: McpMeta<'_>) -> String {
    let mut parts = Vec::new();
    if let Some(structured) = meta.structured_content() {
        parts.extend(
            (text.trim() != structured.raw()).then(|| format!("structured content: {}", structured.raw())),
        );
    }
    for link in meta.resource_links().into_iter().flat_map(|links| links.iter()) {
        let uri = link.uri().unwrap_or_default();
        if !text.contains(&*uri) {
            let name = link.title().or_else(|| link.name()).unwrap_or_default();
            parts.push(format!("link: {name} {uri}"));
        }
    }
    for part in parts {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&part);
    }
    text
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
    }
}
