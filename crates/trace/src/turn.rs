//! Converts a turn to spans: a root, one generation per model message, one span per tool call, and
//! sub-agents.

use foldhash::HashSet;
use threadline_entry::lens::TurnDuration;
use threadline_entry::{AgentKind, Entry, Kind, Millis};
use threadline_session::{
    AgentIndex, CallIndex, EntryIndex, IndexRange, IndexVec, InputKind, ReplyIndex, Session, SessionFamily,
    Subagent, ToolCall,
};

use crate::attribute as name;
use crate::event;
use crate::generation::Generation;
use crate::id::{SpanId, TraceId};
use crate::message;
use crate::sent_replies::SentReplies;
use crate::span::{SpanKind, TraceSpan};
use crate::span_options::{Dialect, SpanOptions, content_text};
use crate::turn_splitter::TurnHeader;

/// The turn that spans belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnSpanParent {
    /// The session id as sent to receivers.
    pub session: String,
    /// The trace.
    pub trace: TraceId,
    /// The number of the turn.
    pub number: usize,
}

/// Returns the spans of a turn, or of the rest of one. `family` contains its lines and its sub-agents.
///
/// Returns no spans if everything in the turn was sent before.
pub fn spans_of(
    header: &TurnHeader,
    family: &SessionFamily,
    session_id: &str,
    sent: &mut SentReplies,
    options: &SpanOptions<'_>,
) -> Vec<TraceSpan> {
    if !header.is_exportable {
        return Vec::new();
    }
    let turn = TurnSpanParent { session: session_id.to_owned(), trace: header.trace, number: header.number };
    let secrets = options.find_turn_secrets(family);
    let options = &options.with_turn_secrets(secrets.as_ref());
    let mut builder = SpanBuilder::new(&turn, options, sent);
    let root = turn.trace.span(&["turn"]);
    let prompt = family.main.entries().first().filter(|_| header.has_prompt);
    let input = prompt.and_then(|prompt| prompt_text(prompt, options));
    let first_input = input.as_deref().filter(|_| header.sent_part.is_none());
    let start = header.sent_part.map_or(header.start, |sent| sent.last_at);
    let walked = builder.walk(family, None, root, start, first_input);
    for agent in family.agents.indices() {
        builder.add_agent(family, agent, root);
    }
    // A copy of a turn that was sent before.
    if builder.spans.is_empty() && builder.has_duplicates {
        return Vec::new();
    }
    let span = builder.root_span(header, &family.main, root, input, walked);
    builder.spans.insert(0, span);
    builder.finish()
}

/// Returns the spans of a sub-agent of a turn that was sent before, below the span `parent`.
pub(crate) fn agent_spans_of(
    family: &SessionFamily,
    turn: &TurnSpanParent,
    parent: SpanId,
    sent: &mut SentReplies,
    options: &SpanOptions<'_>,
) -> Vec<TraceSpan> {
    let secrets = options.find_turn_secrets(family);
    let options = &options.with_turn_secrets(secrets.as_ref());
    let mut builder = SpanBuilder::new(turn, options, sent);
    for agent in family.agents.indices() {
        builder.add_agent(family, agent, parent);
    }
    builder.finish()
}

/// Returns the id of the span for a tool call.
pub fn tool_span_id(trace: TraceId, call: &ToolCall, session: &Session) -> SpanId {
    trace.span(&["tool", &Generation::key(session, &session.replies()[call.reply]), &call.id])
}

/// Returns the text of a prompt, if the content policy allows it.
fn prompt_text(entry: &Entry, options: &SpanOptions<'_>) -> Option<String> {
    options.text(&content_text(entry.message()?.content()?))
}

/// The results of walking a log.
#[derive(Default)]
struct WalkResult {
    events: Vec<crate::span::SpanEvent>,
    end: Option<Millis>,
    /// The last text of the model.
    output: Option<String>,
    /// The error of the last failed request, unless a later one succeeded.
    error: Option<String>,
}

pub(crate) struct SpanBuilder<'a, 'b> {
    pub(crate) turn: &'a TurnSpanParent,
    trace_name: String,
    pub(crate) options: &'a SpanOptions<'b>,
    sent: &'a mut SentReplies,
    spans: Vec<TraceSpan>,
    /// Whether something was skipped because it was sent before.
    has_duplicates: bool,
    /// Indices of sub-agents that have a span.
    agents_with_span: HashSet<AgentIndex>,
    /// Keys of replies that have a span: a sub-agent inside the log may repeat ids of the conversation.
    replies_with_span: HashSet<String>,
    /// The ids of sub-agent spans.
    agent_span_ids: HashSet<SpanId>,
    /// The number of sub-agents whose logs are being walked, each started by a call of the one before.
    depth: usize,
}

/// The spans of more deeply nested sub-agents are directly below the turn instead of below their calls, since
/// the walk is recursive.
const MAX_DEPTH: usize = 100;

impl<'a, 'b> SpanBuilder<'a, 'b> {
    fn new(turn: &'a TurnSpanParent, options: &'a SpanOptions<'b>, sent: &'a mut SentReplies) -> Self {
        Self {
            turn,
            trace_name: format!("Turn {}", turn.number),
            options,
            sent,
            spans: Vec::new(),
            has_duplicates: false,
            agents_with_span: HashSet::default(),
            replies_with_span: HashSet::default(),
            agent_span_ids: HashSet::default(),
            depth: 0,
        }
    }

    /// Returns the spans, after redacting every string in them.
    fn finish(mut self) -> Vec<TraceSpan> {
        self.options.redact_spans(&mut self.spans);
        self.spans
    }

    /// Creates a span with the attributes that all spans have.
    pub(crate) fn span(
        &self,
        kind: SpanKind,
        id: SpanId,
        called: String,
        (start, end): (Millis, Millis),
    ) -> TraceSpan {
        let (operation, kind_name) = match kind {
            SpanKind::Turn | SpanKind::Agent => ("invoke_agent", "agent"),
            SpanKind::Generation => ("chat", "generation"),
            SpanKind::Tool => ("execute_tool", "tool"),
        };
        let name = match (self.options.dialect, kind) {
            (Dialect::GenAi, SpanKind::Generation | SpanKind::Tool | SpanKind::Agent) => {
                format!("{operation} {called}")
            }
            _ => called,
        };
        let mut span = TraceSpan {
            trace: self.turn.trace,
            id,
            parent: None,
            kind,
            name,
            start,
            end: end.max(start),
            error: None,
            events: Vec::new(),
            attributes: Vec::with_capacity(24),
            usage: None,
        };
        span.add(name::SESSION, &*self.turn.session);
        span.add(name::CONVERSATION, &*self.turn.session);
        span.add(name::PROVIDER, "anthropic");
        span.add(name::OPERATION, operation);
        span.add(name::TYPE, kind_name);
        span.add(name::TRACE_NAME, &*self.trace_name);
        span.add_some(name::USER, self.options.user);
        span.add_some(name::ENVIRONMENT, self.options.environment);
        span.add_some(name::RELEASE, self.options.release);
        if !self.options.tags.is_empty() {
            span.attributes
                .push((name::TAGS.into(), crate::span::AttributeValue::List(self.options.tags.to_vec())));
        }
        span
    }

    /// Sets the input and output attributes that the receiver reads.
    fn set_messages(&self, span: &mut TraceSpan, input: Option<&str>, output: Option<&str>) {
        match self.options.dialect {
            Dialect::Langfuse => {
                span.add_some(name::INPUT, input.map(|text| message::plain("user", text)));
                span.add_some(name::OUTPUT, output.map(|text| message::plain("assistant", text)));
            }
            Dialect::GenAi => {
                span.add_some(name::INPUT_MESSAGES, input.map(|text| message::parts("user", text)));
                span.add_some(name::OUTPUT_MESSAGES, output.map(|text| message::parts("assistant", text)));
            }
        }
    }

    fn root_span(
        &self,
        header: &TurnHeader,
        main: &Session,
        id: SpanId,
        input: Option<String>,
        walked: WalkResult,
    ) -> TraceSpan {
        let start = header.start;
        let durations = main.entries().iter().filter_map(turn_duration);
        let duration = durations.max();
        let last = walked.end.unwrap_or(start);
        let end = duration.map_or(last, |millis| last.max(start.saturating_add(millis)));
        let mut span = self.span(SpanKind::Turn, id, self.trace_name.clone(), (start, end));
        span.add(name::AGENT_NAME, "claude-code");
        span.add(name::META_SOURCE, "claude-code");
        span.add(name::META_TURN, header.number);
        span.add(name::META_SESSION, &*self.turn.session);
        if self.options.has_metadata() {
            self.set_metadata(&mut span, main);
        }
        span.add_some(name::META_DURATION, duration.map(|millis| millis as u64));
        self.set_messages(&mut span, input.as_deref(), walked.output.as_deref());
        span.events = walked.events;
        self.mark_failed(&mut span, walked.error);
        span
    }

    /// Adds version, working directory and branch of the turn.
    fn set_metadata(&self, span: &mut TraceSpan, main: &Session) {
        let envelopes = || main.entries().iter().filter_map(Entry::envelope);
        let version = envelopes().find_map(|line| line.version());
        span.add_some(name::AGENT_VERSION, version.as_deref());
        span.add_some(name::META_VERSION, version.as_deref());
        span.add_some(name::META_SLUG, envelopes().find_map(|line| line.slug()).as_deref());
        let cwd = envelopes().find_map(|line| line.cwd()).and_then(|cwd| self.options.metadata(&cwd));
        span.add_some(name::META_CWD, cwd);
        let branch = envelopes().find_map(|line| line.git_branch()).filter(|branch| !branch.is_empty());
        span.add_some(name::META_BRANCH, branch.as_deref());
    }

    /// Marks a span as failed, if there is an error.
    fn mark_failed(&self, span: &mut TraceSpan, error: Option<String>) {
        let Some(error) = error else { return };
        span.add(name::LEVEL, "ERROR");
        span.add_some(name::STATUS_MESSAGE, self.options.has_content().then_some(&*error));
        // The value of OpenTelemetry for errors without a known type.
        span.add(name::ERROR_TYPE, "_OTHER");
        span.error = Some(if self.options.has_content() { error } else { String::new() });
    }

    /// Walks a log and adds the spans of its replies and tool calls below `parent`. The first reply has
    /// `input`.
    fn walk(
        &mut self,
        family: &SessionFamily,
        owner: Option<AgentIndex>,
        parent: SpanId,
        start: Millis,
        mut input: Option<&str>,
    ) -> WalkResult {
        let session = family.session(owner);
        let mut calls: IndexVec<ReplyIndex, Vec<CallIndex>> =
            IndexVec::filled(Vec::new(), session.replies().len());
        for (i, call) in session.tool_calls().enumerated() {
            calls[call.reply].push(i);
        }
        let mut walked = WalkResult::default();
        let mut seen = IndexVec::filled(false, session.replies().len());
        let mut work_start = start;
        for idx in own_entries(session, owner.map(|agent| family.agents[agent].kind)) {
            let entry = &session.entries()[idx];
            let at = session.timestamp(idx);
            if let Some(reply) = session.reply_of(idx) {
                if !std::mem::replace(&mut seen[reply], true) {
                    let calls = &calls[reply];
                    let text =
                        self.add_reply(session, (reply, calls), parent, work_start, &mut input, &mut walked);
                    walked.output = text.or(walked.output.take());
                    for &call in calls {
                        self.add_call(family, owner, call);
                    }
                }
            } else {
                walked.events.extend(event::of(session, idx, work_start, self.options));
            }
            if is_conversation_line(entry) {
                work_start = at.map_or(work_start, |at| at.max(work_start));
                walked.end = walked.end.max(at);
            }
        }
        walked
    }

    /// Adds the generation span of a reply, or an event for a message that Claude Code wrote in place of a
    /// reply. Returns the text; `None` if there is none or it was sent before.
    fn add_reply(
        &mut self,
        session: &Session,
        (reply, calls): (ReplyIndex, &[CallIndex]),
        parent: SpanId,
        work_start: Millis,
        input: &mut Option<&str>,
        walked: &mut WalkResult,
    ) -> Option<String> {
        let mut generation = Generation::of(session, &session.replies()[reply], work_start);
        let key = generation.key.clone();
        if !self.replies_with_span.insert(key.clone()) {
            self.has_duplicates = true;
            return None;
        }
        if let Some(sent) = self.sent.reply(&key) {
            let is_sent = |call: &CallIndex| self.sent.has_call(&key, &session.tool_calls()[*call].id);
            if generation.is_notice || (!generation.has_new_tokens(&sent) && calls.iter().all(is_sent)) {
                self.has_duplicates = true;
                return None;
            }
            generation.exclude_sent(&sent, self.turn.trace);
        }
        self.sent.add_reply(&key, generation.figures(), self.turn.trace);
        let content = generation.content(self.options);
        let text = content.text.clone();
        if generation.is_notice {
            walked.events.push(event::api_error(&generation, text.as_deref()));
            walked.error = generation.is_error.then(|| text.clone().unwrap_or_default());
            return text;
        }
        walked.error = None;
        let id = self.turn.trace.span(&["reply", &key]);
        let mut span = generation.span(self, id, &content, input.take(), calls.len());
        span.parent = Some(parent);
        self.spans.push(span);
        let advisors = (0..).map_while(|n| generation.advisor_span(self, id, n)).collect::<Vec<_>>();
        self.spans.extend(advisors);
        text
    }

    /// Adds the span of a tool call and the spans of the sub-agents that it started.
    fn add_call(&mut self, family: &SessionFamily, owner: Option<AgentIndex>, call: CallIndex) {
        let session = family.session(owner);
        let call = &session.tool_calls()[call];
        let key = Generation::key(session, &session.replies()[call.reply]);
        if self.sent.has_call(&key, &call.id) {
            return;
        }
        self.sent.add_call(&key, &call.id);
        let id = tool_span_id(self.turn.trace, call, session);
        let parent = self.turn.trace.span(&["reply", &key]);
        let span = self.tool_span(session, call, id, parent);
        self.spans.push(span);
        if self.depth >= MAX_DEPTH {
            return;
        }
        for agent in family.spawned_by(owner, &call.id).collect::<Vec<_>>() {
            self.add_agent(family, agent, id);
        }
    }

    fn tool_span(&self, session: &Session, call: &ToolCall, id: SpanId, parent: SpanId) -> TraceSpan {
        let start = session.timestamp(call.entry_idx).unwrap_or(0);
        let end = call.results.first().and_then(|at| session.timestamp(at.entry_idx)).unwrap_or(start);
        let mut span = self.span(SpanKind::Tool, id, call.name.to_string(), (start, end));
        span.parent = Some(parent);
        span.add(name::TOOL_NAME, &*call.name);
        span.add(name::TOOL_TYPE, "function");
        span.add(name::TOOL_CALL_ID, &*call.id);
        span.add(name::META_TOOL_NAME, &*call.name);
        span.add(name::META_TOOL_ID, &*call.id);
        let outcome = call.outcome(session);
        span.add(name::META_OUTCOME, outcome.name());
        let (arguments, result) = match self.options.dialect {
            Dialect::Langfuse => (name::INPUT, name::OUTPUT),
            Dialect::GenAi => (name::TOOL_ARGUMENTS, name::TOOL_RESULT),
        };
        let input = call.block(session).and_then(|block| block.input());
        span.add_some(arguments, input.and_then(|input| self.options.json(input)));
        let answer = call.result(session);
        let text = answer.and_then(|block| block.content()).and_then(|content| self.options.blocks(content));
        if answer.is_some_and(|block| block.is_error().unwrap_or(false)) {
            let message = text.as_deref().unwrap_or_default();
            let cut = message.floor_char_boundary(512);
            self.mark_failed(&mut span, Some(message[..cut].to_owned()));
        } else if answer.is_none() {
            span.add(name::LEVEL, "WARNING");
            span.add(name::STATUS_MESSAGE, "no result in the log");
        }
        span.add_some(result, text);
        span
    }

    /// Adds the spans of a sub-agent.
    fn add_agent(&mut self, family: &SessionFamily, agent: AgentIndex, parent: SpanId) {
        let found = &family.agents[agent];
        if !self.agents_with_span.insert(agent) {
            return;
        }
        let session = &found.session;
        let own: Vec<EntryIndex> = own_entries(session, Some(found.kind)).collect();
        let Some(&first) = own.first() else { return };
        let times = || own.iter().filter_map(|&idx| session.timestamp(idx));
        let start = times().next().unwrap_or(0);
        let first_uuid = session.entries()[first].uuid().unwrap_or_default();
        let id = self.turn.trace.span(&["agent", &found.id, &first_uuid]);
        // Two agents with the same id and first line are one.
        if !self.agent_span_ids.insert(id) {
            return;
        }
        let input = prompt_text(&session.entries()[first], self.options)
            .filter(|_| session.entries()[first].kind() == Kind::User);
        let at = self.spans.len();
        self.depth += 1;
        let walked = self.walk(family, Some(agent), id, start, input.as_deref());
        self.depth -= 1;
        let called = found
            .agent_type
            .clone()
            .or_else(|| requested_agent_type(family, found))
            .unwrap_or_else(|| default_agent_name(found.kind).to_owned());
        let end = walked.end.unwrap_or(start);
        let mut span = self.span(SpanKind::Agent, id, called.clone(), (start, end));
        span.parent = Some(parent);
        span.add(name::AGENT_NAME, called);
        span.add(name::AGENT_ID, &*found.id);
        let description = found.description.as_deref().and_then(|text| self.options.metadata(text));
        span.add_some(name::AGENT_DESCRIPTION, description);
        self.set_messages(&mut span, input.as_deref(), walked.output.as_deref());
        span.events = walked.events;
        self.mark_failed(&mut span, walked.error);
        self.spans.insert(at, span);
    }
}

/// Returns the entries of a log that belong to its owner.
///
/// An agent that replays the conversation, to compact it or to answer a side question, owns only the entries
/// from the last prompt on.
fn own_entries(session: &Session, agent: Option<AgentKind>) -> impl Iterator<Item = EntryIndex> {
    let entries = session.entries();
    let from = match agent {
        Some(AgentKind::Compaction | AgentKind::SideQuestion) => {
            let prompt = |idx: &EntryIndex| session.input(*idx).is_some_and(InputKind::opens_turn);
            entries.indices().rev().find(prompt).unwrap_or(EntryIndex::FIRST)
        }
        _ => EntryIndex::FIRST,
    };
    // The log of a sub-agent may be stored in place of a session's.
    let all = agent.is_some() || session.is_agent_log();
    (from..entries.end()).indices().filter(move |&idx| all || !session.is_sidechain(idx))
}

/// Whether a line is part of the conversation, so that the turn lasts at least until it.
fn is_conversation_line(entry: &Entry) -> bool {
    match entry.kind() {
        Kind::User | Kind::Assistant => true,
        Kind::System => {
            !matches!(event::subtype(entry).as_deref(), Some("stop_hook_summary" | "turn_duration"))
        }
        _ => false,
    }
}

fn turn_duration(entry: &Entry) -> Option<Millis> {
    (event::subtype(entry)? == "turn_duration")
        .then(|| entry.lens::<TurnDuration<'_>>()?.duration_ms())
        .flatten()
        .map(|millis| Millis::try_from(millis).unwrap_or(0))
}

/// Returns the agent type requested by the call that started an agent.
fn requested_agent_type(family: &SessionFamily, agent: &Subagent) -> Option<String> {
    let spawn = agent.spawn.as_ref()?;
    let session = family.session(spawn.agent);
    let input = session.tool_call(&spawn.tool_use_id)?.block(session)?.input()?;
    input.get("subagent_type")?.as_str().map(Into::into)
}

/// Returns the name for an agent without a type.
fn default_agent_name(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Task => "agent",
        AgentKind::Workflow => "workflow-agent",
        AgentKind::Compaction => "compaction",
        AgentKind::SideQuestion => "side-question",
    }
}
