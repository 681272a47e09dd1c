//! Tells what happened in one session of a family, entry by entry.

mod attachment;
mod line;
mod notice;

use std::borrow::Cow;
use std::cell::RefCell;

use rustc_hash::FxHashSet;
use threadline_entry::lens::{AgentResult, Block, FrameLink, PrLink, TaskResult};
use threadline_entry::{Entry, Json, Kind, Millis};
use threadline_session::{
    Agent, Compaction, Input, Outcome, Reply, Session, Thread, ToolCall, Turn, editor_context,
};
use threadline_usage::Totals;

use self::attachment::attached;
pub(crate) use self::line::untagged;
use self::line::{compacted, event, file_of, progress};
use crate::card::{Call, Card, is_agents};
use crate::name::short_model;
use crate::telling::Telling;
use crate::transcript::{AgentView, Body, CallView, Item, Timing, Tokens, TurnView, anchor};

/// Sub-agents start sub-agents; nobody reads further down than this.
const DEPTH: usize = 100;

/// Tells what happened in one session of a family.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'f> {
    pub(crate) telling: Telling<'f>,
    pub(crate) agent: Option<usize>,
    pub(crate) depth: usize,
    /// The agents that were told of.
    pub(crate) met: &'f RefCell<FxHashSet<usize>>,
}

impl<'f> Teller<'f> {
    /// One that tells of no sub-agents.
    pub(crate) fn childless(
        telling: Telling<'f>,
        agent: Option<usize>,
        met: &'f RefCell<FxHashSet<usize>>,
    ) -> Self {
        Self { telling, agent, depth: DEPTH, met }
    }

    /// Whether it tells of sub-agents.
    pub(crate) fn goes_deeper(&self) -> bool {
        self.depth < DEPTH
    }

    /// Tells what a sub-agent did.
    pub(crate) fn of_agent(&self, agent: usize) -> Self {
        self.met.borrow_mut().insert(agent);
        Self { agent: Some(agent), depth: self.depth + 1, ..*self }
    }

    pub(crate) fn session(&self) -> &'f Session {
        self.telling.family.session(self.agent)
    }

    /// What the calls cost that begin on this line.
    fn spent_on(&self, entry: &Entry) -> Option<&'f Totals> {
        let spending = self.telling.spending.filter(|_| entry.kind() == Kind::Assistant)?;
        spending.on(self.telling.family, self.agent, entry.at().line_no)
    }

    /// The agents that nothing told of: first those that nobody started, then what is left.
    pub(crate) fn strays(&self, tell: &dyn Fn(usize) -> AgentView) -> Vec<AgentView> {
        let agents = &self.telling.family.agents;
        let mut order: Vec<usize> = (0..agents.len()).collect();
        order.sort_by_key(|&agent| agents[agent].spawn.is_some());
        let untold = |agent: &usize| !self.met.borrow().contains(agent);
        let mut found: Vec<(usize, AgentView)> = Vec::new();
        for agent in order {
            if untold(&agent) {
                found.push((agent, tell(agent)));
            }
        }
        found.sort_by_key(|(agent, _)| *agent);
        found.into_iter().map(|(_, told)| told).collect()
    }

    /// The active conversation, with the lines around it that are worth telling.
    pub(crate) fn thread(&self) -> Thread {
        let mut thread = self.session().thread();
        self.add_beside(&mut thread);
        thread
    }

    /// Adds the lines around a conversation that are worth telling.
    pub(crate) fn add_beside(&self, thread: &mut Thread) {
        let session = self.session();
        let beside =
            (0..session.entries().len()).filter(|&idx| !session.in_tree(idx) && is_told(session, idx));
        thread.entries.extend(beside);
        thread.entries.sort_unstable();
    }

    pub(crate) fn turns_of(&self, thread: &Thread) -> Vec<TurnView> {
        let mut turns = Vec::new();
        self.each_turn_of(&self.session().turns_of(thread), &|_, _| true, &mut |_, turn| turns.push(turn));
        turns
    }

    pub(crate) fn each_turn_of(
        &self,
        turns: &[Turn],
        wanted: &dyn Fn(usize, usize) -> bool,
        sink: &mut dyn FnMut(&Turn, TurnView),
    ) {
        let session = self.session();
        let compactions = session.compactions();
        let mut before = None;
        for turn in turns {
            if wanted(turn.number, turns.len()) {
                sink(turn, self.turn(turn, &compactions, before));
            }
            before = turn.span(session).map(|(_, end)| end);
        }
    }

    fn turn(&self, turn: &Turn, compactions: &[Compaction], before: Option<Millis>) -> TurnView {
        let session = self.session();
        let used = |reply: &Reply| reply.usage(session).map(Tokens::of);
        let mut told = self.head(turn, before, &used);
        told.items = turn.entries.iter().flat_map(|&idx| self.items(idx, compactions)).collect();
        for item in &told.items {
            if let Body::Call(call) = &item.body {
                call.agents.iter().for_each(|agent| told.spent_by_agents += &agent.spent);
            }
        }
        told.spent += &told.spent_by_agents;
        told
    }

    /// A turn without what happened in it, and without its sub-agents, given what replies used.
    pub(crate) fn head(
        &self,
        turn: &Turn,
        before: Option<Millis>,
        used: &dyn Fn(&Reply) -> Option<Tokens>,
    ) -> TurnView {
        let session = self.session();
        let mut tokens = Tokens::default();
        let mut models: Vec<String> = Vec::new();
        for reply in turn.replies(session).into_iter().map(|reply| &session.replies()[reply]) {
            tokens += used(reply).unwrap_or_default();
            if let Some(model) =
                reply.model.as_ref().filter(|model| !model.starts_with('<') && !models.contains(model))
            {
                models.push(model.clone());
            }
        }
        let first = turn.prompt.or(turn.entries.first().copied());
        let span = turn.span(session);
        let mut spent = Totals::default();
        for totals in turn.entries.iter().filter_map(|&idx| self.spent_on(&session.entries()[idx])) {
            spent += totals;
        }
        TurnView {
            number: turn.number,
            anchor: anchor(first.map_or(0, |idx| session.entries()[idx].at().line_no), 0),
            timing: timing(session, turn, span, before),
            span,
            models,
            tokens,
            spent,
            spent_by_agents: Totals::default(),
            open: turn.is_open(session),
            round: turn.round,
            items: Vec::new(),
        }
    }

    /// What one line tells. What its call cost is told by the first item.
    pub(crate) fn items(&self, entry_idx: usize, compactions: &[Compaction]) -> Vec<Item> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let item = |(block_idx, body): (usize, Body)| Item {
            anchor: anchor(entry.at().line_no, block_idx),
            line_no: entry.at().line_no,
            at: session.timestamp(entry_idx),
            spent: None,
            body,
        };
        let mut items: Vec<Item> = self.bodies(entry_idx, compactions).into_iter().map(item).collect();
        if let Some(item) = items.first_mut() {
            item.spent = self.spent_on(entry).map(|spent| Box::new(spent.clone()));
        }
        items
    }

    /// What one line tells, by block.
    pub(crate) fn bodies(&self, entry_idx: usize, compactions: &[Compaction]) -> Vec<(usize, Body)> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let one = |body: Option<Body>| body.map(|body| (0, body)).into_iter().collect();
        match entry.kind() {
            Kind::Assistant => {
                let content = entry.message().and_then(|message| message.content());
                if content.is_none() {
                    return one(Some(Body::Unknown { kind: None, raw: entry.text().to_owned() }));
                }
                if entry.flag("isApiErrorMessage") {
                    let text = content.map(|content| content.text()).unwrap_or_default();
                    // It begins with what the label says.
                    let text = text.trim().trim_start_matches("API Error:").trim().to_owned();
                    return one(Some(Body::Trouble { label: "API error".to_owned(), text }));
                }
                // Foreign writers put a reply's text where its blocks should be.
                if let Some(text) = content.and_then(|content| content.as_str()) {
                    return one(Some(Body::Text(text.into_owned())));
                }
                let blocks = content.into_iter().flat_map(|content| content.blocks()).enumerate();
                blocks.filter_map(|(i, block)| Some((i, self.said(entry_idx, block)?))).collect()
            }
            Kind::User => one(self.asked(entry_idx)),
            Kind::Attachment => one(attached(session, entry_idx)),
            Kind::System => {
                let compaction = compactions.iter().find(|compaction| compaction.boundary == entry_idx);
                one(compaction.map(|compaction| compacted(session, compaction)).or_else(|| event(entry)))
            }
            Kind::Progress => one(progress(entry)),
            Kind::PrLink => one(entry.lens().and_then(|link: PrLink<'_>| {
                let label = format!(
                    "{} #{}",
                    link.pr_repository().unwrap_or_default(),
                    link.pr_number().unwrap_or(0)
                );
                Some(Body::Link { label: format!("pull request {label}"), url: link.pr_url()?.into_owned() })
            })),
            Kind::FrameLink => one(entry.lens().and_then(|link: FrameLink<'_>| {
                let label = link.title().or_else(|| link.path()).unwrap_or_default().into_owned();
                Some(Body::Link { label, url: link.frame_url()?.into_owned() })
            })),
            Kind::Unknown | Kind::Untyped | Kind::Bad => {
                let kind = entry.type_name().map(Cow::into_owned);
                one(Some(Body::Unknown { kind, raw: entry.text().to_owned() }))
            }
            _ => Vec::new(),
        }
    }

    /// How many lines of the conversation a compaction left out, given its boundary.
    pub(crate) fn dropped(&self, boundary: usize) -> usize {
        let session = self.session();
        match session.compaction(boundary).map(|compaction| compacted(session, &compaction)) {
            Some(Body::Compaction { dropped, .. }) => dropped,
            _ => 0,
        }
    }

    /// A block of a reply.
    pub(crate) fn said(&self, entry_idx: usize, block: Block<'f>) -> Option<Body> {
        let session = self.session();
        Some(match &*block.kind()? {
            "text" => Body::Text(block.text()?.into_owned()),
            "thinking" => Body::Thinking(block.thinking().unwrap_or_default().into_owned()),
            "redacted_thinking" => Body::Thinking(String::new()),
            "tool_use" => {
                let call = session.tool_call_on(entry_idx, &block.id()?)?;
                Body::Call(Box::new(self.call(call, block)))
            }
            "fallback" => {
                let model = |json: Option<Json<'_>>| {
                    let name = json.and_then(|json| json.as_str().or_else(|| json.get("model")?.as_str()));
                    short_model(&name.unwrap_or_default()).to_owned()
                };
                let text = format!("{} → {}", model(block.from()), model(block.to()));
                Body::Trouble { label: "model switched".to_owned(), text }
            }
            kind => Body::Event { label: kind.to_owned(), text: String::new() },
        })
    }

    fn call(&self, call: &ToolCall, block: Block<'f>) -> CallView {
        let session = self.session();
        let result = call.result(session);
        let content = result.and_then(|block| block.content());
        let text = content.map(|content| content.text().into_owned()).unwrap_or_default();
        let text = kept_elsewhere(&text).and_then(self.telling.kept).unwrap_or(text);
        let outcome = call.outcome(session);
        let data = call.results.first().and_then(|at| session.entries()[at.entry_idx].tool_use_result());
        let failed = outcome != Outcome::Ok;
        let input = block.input();
        let ran_in = |entry: &'f Entry| entry.get("cwd").and_then(|cwd| cwd.as_str());
        let cwd = ran_in(&session.entries()[call.entry_idx]);
        let cwd = cwd.or_else(|| self.telling.family.main.entries().iter().find_map(ran_in));
        let cwd = cwd.as_deref().unwrap_or_default();
        let kept = self.telling.kept;
        let files: Vec<_> =
            content.into_iter().flat_map(|content| content.blocks()).filter_map(file_of).collect();
        let pictures = files.len();
        let call_of = Call { name: &call.name, input, data, text: &text, failed, pictures, cwd, kept };
        let mut told = call_of.told();
        if let Some(inside) = below(&told.subject, cwd) {
            told.subject = inside;
        } else if matches!(told.card, Card::File { .. } | Card::Diff { .. }) {
            told.subject = end_of_path(told.subject);
        }
        if let Some(topic) = self.topic(call) {
            name_topic(&mut told.subject, &mut told.card, &topic);
        }
        let agents = if self.goes_deeper() {
            let spawned = self.telling.family.spawned_by(self.agent, &call.id);
            let mut agents: Vec<AgentView> = spawned.map(|agent| self.agent(agent)).collect();
            name_agents(&mut agents, &told.card);
            // One that has answered is done, even where nothing but its progress is in the log.
            if matches!(told.card, Card::Agent { background: false, .. }) && outcome != Outcome::Missing {
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
            id: call.id.clone(),
            name: call.name.clone(),
            subject: told.subject,
            gist: told.gist,
            card: told.card,
            input: input.map(|input| input.raw().to_owned()).unwrap_or_default(),
            outcome,
            duration: call.duration(session),
            files,
            result: text,
            agents,
        }
    }

    /// What a call is about that names it by an id alone: a task that it changes, an agent that it writes to.
    pub(crate) fn topic(&self, call: &ToolCall) -> Option<String> {
        let input = |key: &str| call.block(self.session())?.input()?.get(key)?.as_str();
        match &*call.name {
            "TaskUpdate" => self.task_name(call, &input("taskId")?),
            "SendMessage" => self.agent_name(&input("to").or_else(|| input("recipient"))?),
            _ => None,
        }
    }

    /// The number and the name of a task, as the last call before this one created it.
    fn task_name(&self, call: &ToolCall, id: &str) -> Option<String> {
        let session = self.session();
        let calls = session.tool_calls();
        let before = calls.partition_point(|other| other.entry_idx < call.entry_idx);
        calls[..before].iter().rev().filter(|other| other.name == "TaskCreate").find_map(|other| {
            let result = session.entries()[other.results.first()?.entry_idx].tool_use_result()?;
            let task = result.of::<TaskResult<'_>>()?.task()?;
            (task.id()? == id).then(|| Some(format!("#{id} {}", task.subject()?)))?
        })
    }

    /// What an agent was asked to do, in a few words: as it is known itself, or as the call says that started it.
    fn agent_name(&self, id: &str) -> Option<String> {
        let said = |text: String| Some(text).filter(|text| !text.is_empty());
        let known = self.telling.family.agents.iter().find(|agent| agent.id == id);
        let known = known.and_then(|agent| said(agent.description.clone()?));
        known.or_else(|| {
            let session = self.session();
            session.tool_calls().iter().filter(|call| is_agents(&call.name)).find_map(|call| {
                let result = session.entries()[call.results.first()?.entry_idx].tool_use_result()?;
                let started = result.of::<AgentResult<'_>>()?.agent_id()?;
                let input = call.block(session).filter(|_| started == id)?.input()?;
                said(input.get("description")?.as_str()?.into_owned())
            })
        })
    }

    pub(crate) fn agent(&self, idx: usize) -> AgentView {
        let below = self.of_agent(idx);
        let turns = below.turns_of(&below.thread());
        let mut told = below.agent_alone(idx);
        turns.iter().for_each(|turn| told.spent += &turn.spent_by_agents);
        AgentView { turns, ..told }
    }

    /// The agent whose session this is, without what it did, and without its own sub-agents.
    pub(crate) fn agent_alone(&self, idx: usize) -> AgentView {
        let agent: &Agent = &self.telling.family.agents[idx];
        let mut spent = Totals::default();
        for totals in agent.session.entries().iter().filter_map(|entry| self.spent_on(entry)) {
            spent += totals;
        }
        AgentView {
            id: agent.id.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            kind: agent.kind,
            spent,
            turns: Vec::new(),
        }
    }

    /// A user line. Results are told with their calls, and summaries with their compaction.
    fn asked(&self, entry_idx: usize) -> Option<Body> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let input = session.input(entry_idx)?;
        let Some(content) = entry.message().and_then(|message| message.content()) else {
            return Some(Body::Unknown { kind: None, raw: entry.text().to_owned() });
        };
        if input == Input::CompactSummary {
            return None;
        }
        let files = content.blocks().filter_map(file_of);
        let mut context = Vec::new();
        let texts = content.blocks().filter(|block| block.is("text")).filter_map(Block::text);
        let mut text = content.as_str().map(Cow::into_owned).unwrap_or_default();
        for part in texts {
            if let Some(about) = editor_context(&part) {
                context.push(about.to_owned());
                continue;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
        }
        if input == Input::ToolResult {
            // Text beside a result is the person's.
            return (!text.is_empty()).then_some(Body::Input {
                input: Input::Prompt,
                text,
                files: Vec::new(),
                context,
            });
        }
        let files: Vec<_> = files.collect();
        if input.is_from_editor() && text.is_empty() && files.is_empty() {
            // Nobody typed anything, and the prompt is on a line of its own.
            return Some(Body::Event { label: "editor".to_owned(), text: context.join("\n") });
        }
        let text = untagged(input, text);
        if input == Input::Meta && text.starts_with("Caveat: The messages below were generated by the user") {
            return Some(Body::Event { label: "note".to_owned(), text });
        }
        Some(Body::Input { input, text, files, context })
    }
}

/// A path without the working directory that it lies in.
pub(crate) fn below(path: &str, cwd: &str) -> Option<String> {
    let inside = path.strip_prefix(cwd).filter(|_| !cwd.is_empty())?.strip_prefix(['/', '\\'])?;
    (!inside.is_empty()).then(|| inside.to_owned())
}

/// Where the whole of a result is kept, of which the model was told the beginning.
fn kept_elsewhere(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("<persisted-output>")?.split_once("saved to: ")?;
    Some(rest.lines().next()?.trim())
}

/// A path longer than this is told by its end.
const LONG_PATH: usize = 56;

/// The end of a long path: the name of a file says more than where the disk begins.
fn end_of_path(path: String) -> String {
    if path.len() <= LONG_PATH {
        return path;
    }
    let ends = path.char_indices().filter(|(_, ch)| matches!(ch, '/' | '\\')).map(|(at, _)| &path[at..]);
    let ends: Vec<&str> = ends.collect();
    let end = ends.iter().find(|end| end.len() < LONG_PATH).or(ends.last());
    end.map_or_else(|| path.clone(), |end| format!("…{end}"))
}

/// Calls what a call is about by its name.
pub(crate) fn name_topic(subject: &mut String, card: &mut Card, topic: &str) {
    topic.clone_into(subject);
    if let Card::Todos(todos) = card {
        todos.iter_mut().for_each(|todo| topic.clone_into(&mut todo.text));
    }
}

/// Sub-agents that nothing else names are called what the call calls them.
pub(crate) fn name_agents(agents: &mut [AgentView], card: &Card) {
    let Card::Agent { agent_type, description, .. } = card else { return };
    let named = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    for agent in agents {
        agent.agent_type = agent.agent_type.take().or_else(|| named(agent_type));
        agent.description = agent.description.take().or_else(|| named(description));
    }
}

/// Whether a line outside the tree is worth telling.
fn is_told(session: &Session, idx: usize) -> bool {
    let entry = &session.entries()[idx];
    matches!(entry.kind(), Kind::PrLink | Kind::FrameLink | Kind::Unknown | Kind::Untyped | Kind::Bad)
}

/// Tools that ran side by side take their time once.
fn timing(session: &Session, turn: &Turn, span: Option<(Millis, Millis)>, before: Option<Millis>) -> Timing {
    let calls = turn.tool_calls(session).into_iter().map(|call| &session.tool_calls()[call]);
    let mut ran: Vec<(Millis, Millis)> = calls
        .filter_map(|call| {
            Some((session.timestamp(call.entry_idx)?, session.timestamp(call.results.first()?.entry_idx)?))
        })
        .collect();
    ran.sort_unstable();
    let (mut tools, mut until) = (0, Millis::MIN);
    for (start, end) in ran {
        tools += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    let Some((start, end)) = span else { return Timing { tools, ..Timing::default() } };
    Timing {
        tools,
        model: (end - start - tools).max(0),
        waiting: before.map_or(0, |before| (start - before).max(0)),
    }
}
