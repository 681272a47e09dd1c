//! A session as a conversation: turns, and in each turn what was asked, said and done.

mod line;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

use rustc_hash::FxHashSet;
use threadline_entry::lens::{Block, FrameLink, PrLink, Usage};
use threadline_entry::{AgentKind, Entry, Finding, Json, Kind, Millis, Severity};
use threadline_session::{
    Agent, Branch, Compaction, Family, Input, Outcome, Round, Session, Thread, ToolCall, Turn,
};
use threadline_usage::Totals;

use self::line::{attached, compacted, editor_context, event, file_of, progress, untagged};
use crate::card::{Call, Card};
use crate::spending::Spending;

/// A session as a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The session's id.
    pub id: Option<String>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Where it ran.
    pub cwd: Option<String>,
    /// The branch it ended on.
    pub git_branch: Option<String>,
    /// The version that wrote its last line.
    pub version: Option<String>,
    /// How many turns the conversation has, told or not.
    pub n_turns: usize,
    /// The conversation, turn by turn.
    pub turns: Vec<TurnView>,
    /// How many branches the conversation left, told or not.
    pub n_branches: usize,
    /// What the conversation left behind: rewinds and retries.
    pub branches: Vec<BranchView>,
    /// Sub-agents that no call of the conversation started.
    pub agents: Vec<AgentView>,
    /// What is wrong with the session.
    pub findings: Vec<Finding>,
    /// What all of it cost. Here and below: no calls, if nobody asked what they cost.
    pub spent: Totals,
}

/// A path that the conversation left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchView {
    /// The anchor of the line it left at; `None` if it never met the conversation.
    pub fork: Option<String>,
    /// What happened on it.
    pub turns: Vec<TurnView>,
}

/// One turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnView {
    /// Counted from 1.
    pub number: usize,
    /// Its name in links: the anchor of the line that opens it.
    pub anchor: String,
    /// When it began and when it ended.
    pub span: Option<(Millis, Millis)>,
    /// What the time went to.
    pub timing: Timing,
    /// The models that answered, in order.
    pub models: Vec<String>,
    /// What it used.
    pub tokens: Tokens,
    /// What it cost, with the sub-agents that it started.
    pub spent: Totals,
    /// What those sub-agents cost.
    pub spent_by_agents: Totals,
    /// Whether the model has not finished.
    pub open: bool,
    /// How it continues the turn before.
    pub round: Round,
    /// What happened.
    pub items: Vec<Item>,
}

/// What the time of a turn went to, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timing {
    /// Tools ran.
    pub tools: Millis,
    /// The model was at work, or nothing is known of.
    pub model: Millis,
    /// Nobody asked anything, before the turn.
    pub waiting: Millis,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its name in links, which stays the same while the session grows.
    pub anchor: String,
    /// The line it stands on.
    pub line_no: u64,
    /// When.
    pub at: Option<Millis>,
    /// What the reply cost that begins here.
    pub spent: Option<Box<Totals>>,
    /// What.
    pub body: Body,
}

impl Item {
    /// Whether something went wrong there.
    pub fn is_bad(&self) -> bool {
        match &self.body {
            Body::Call(call) => {
                let inside =
                    |agent: &AgentView| agent.turns.iter().any(|turn| turn.items.iter().any(Self::is_bad));
                call.outcome != Outcome::Ok || call.agents.iter().any(inside)
            }
            Body::Trouble { .. } | Body::Unknown { .. } => true,
            _ => false,
        }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The user's side: a prompt, or text that was put in the user's mouth.
    Input {
        /// What kind of text it is.
        input: Input,
        /// The text, without the tags around it.
        text: String,
        /// Images and documents that came with it.
        files: Vec<Attached>,
        /// What the editor added: the lines selected, the file open.
        context: Vec<String>,
    },
    /// The model said something, in Markdown.
    Text(String),
    /// The model thought; empty where the log keeps the signature alone.
    Thinking(String),
    /// The model called a tool.
    Call(Box<CallView>),
    /// The conversation was compacted.
    Compaction {
        /// `auto` or `manual`.
        trigger: Option<String>,
        /// Tokens before, where the log tells.
        before: Option<u64>,
        /// Tokens after, where the log tells.
        after: Option<u64>,
        /// How many lines of the conversation it left out.
        dropped: usize,
        /// What stands for the conversation from here on.
        summary: Option<String>,
    },
    /// Something worth opening came of the session: a pull request, an artifact.
    Link {
        /// What it is.
        label: String,
        /// Where it is.
        url: String,
    },
    /// Something went wrong around the conversation: an API error, a refusal.
    Trouble {
        /// What, in a word.
        label: String,
        /// More about it.
        text: String,
    },
    /// Something happened around the conversation: a hook, an attachment.
    Event {
        /// What, in a word.
        label: String,
        /// More about it; may be empty.
        text: String,
    },
    /// A line that we do not know, or that is no entry at all.
    Unknown {
        /// Its type, if it has one.
        kind: Option<String>,
        /// The line as it stands.
        raw: String,
    },
}

/// An image or document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Its type, such as `image/png`.
    pub media_type: String,
    /// Its bytes in base 64.
    pub data: String,
}

/// A tool call and what came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallView {
    /// The call's id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it was about, in one line: the command, the path, the pattern.
    pub subject: String,
    /// What happened, in a few words: `63 lines`, `+12 −3`, `exit 101`.
    pub gist: String,
    /// The whole of it.
    pub card: Card,
    /// The input as it stands in the log.
    pub input: String,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Option<Millis>,
    /// What the model was told.
    pub result: String,
    /// Images that the model was shown.
    pub files: Vec<Attached>,
    /// The sub-agents that it started.
    pub agents: Vec<AgentView>,
}

/// A sub-agent and what it did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentView {
    /// Its id.
    pub id: String,
    /// What it was told to be.
    pub agent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub description: Option<String>,
    /// What it was started for.
    pub kind: AgentKind,
    /// What it cost, with the sub-agents that it started itself.
    pub spent: Totals,
    /// What it did.
    pub turns: Vec<TurnView>,
}

/// Reads output that was kept in a file of its own, given the path that the log names.
pub type Kept<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a conversation is told from.
#[derive(Clone, Copy)]
pub struct Telling<'a> {
    /// The session and its sub-agents.
    pub family: &'a Family,
    /// How to read output that was kept in a file of its own.
    pub kept: Kept<'a>,
    /// What its calls cost, if that is to be told.
    pub spending: Option<&'a Spending>,
}

/// The conversation of a session, without what it cost. See [`Telling::transcript`].
pub fn transcript(family: &Family, kept: Kept<'_>) -> Transcript {
    Telling { family, kept, spending: None }.transcript()
}

/// A conversation turn by turn, without what it cost. See [`Telling::each_turn`].
pub fn each_turn(family: &Family, kept: Kept<'_>, sink: &mut dyn FnMut(&Transcript, TurnView)) -> Transcript {
    Telling { family, kept, spending: None }.each_turn(sink)
}

impl<'a> Telling<'a> {
    /// A telling that reads no files and names no cost.
    pub fn new(family: &'a Family) -> Self {
        Self { family, kept: &|_| None, spending: None }
    }

    /// The conversation of a session and, inside the calls that started them, those of its sub-agents.
    pub fn transcript(self) -> Transcript {
        let mut turns = Vec::new();
        let told = self.each_turn(&mut |_, turn| turns.push(turn));
        Transcript { turns, ..told }
    }

    /// What there is to say of the session before a turn is told.
    pub fn head(self) -> Transcript {
        let session = &self.family.main;
        Transcript {
            spent: self.spending.map(|spending| spending.total().clone()).unwrap_or_default(),
            ..facts(session)
        }
    }

    /// Tells a conversation turn by turn, so that a large one need not be in memory twice.
    ///
    /// Each turn goes to `sink` with the [head](Self::head); what else there is to say of the session comes back.
    pub fn each_turn(self, sink: &mut dyn FnMut(&Transcript, TurnView)) -> Transcript {
        self.some_turns(&|_, _| true, &mut |told, turn| {
            sink(told, turn);
            ControlFlow::Continue(())
        })
    }

    /// Tells the turns that `wanted` says yes to, given a turn's number and how many there are, until `sink` breaks off;
    /// then nothing else is told either.
    pub fn some_turns(
        self,
        wanted: &dyn Fn(usize, usize) -> bool,
        sink: &mut dyn FnMut(&Transcript, TurnView) -> ControlFlow<()>,
    ) -> Transcript {
        let session = &self.family.main;
        let met = RefCell::default();
        let teller = Teller { telling: self, agent: None, depth: 0, met: &met };
        let thread = teller.thread();
        let turns = session.turns_of(&thread);
        let branches = session.branches_beside(&thread);
        let mut told = self.head();
        (told.n_turns, told.n_branches) = (turns.len(), branches.len());
        let ended = Cell::new(false);
        let wanted = |number: usize, count: usize| !ended.get() && wanted(number, count);
        teller.each_turn_of(&turns, &wanted, &mut |_, turn| ended.set(sink(&told, turn).is_break()));
        if ended.get() {
            return told;
        }
        let branch = |branch: Branch| BranchView {
            fork: branch.fork.map(|idx| anchor(session.entries()[idx].at().line_no, 0)),
            turns: teller.turns_of(&Thread { leaf: branch.entries.last().copied(), entries: branch.entries }),
        };
        told.branches = branches.into_iter().map(branch).collect();
        told.agents = teller.strays();
        told.findings = findings(session);
        told
    }
}

/// What there is to say of a session besides what happened in it.
pub(crate) fn facts(session: &Session) -> Transcript {
    let last = |key: &str| {
        let found = session.entries().iter().rev().find_map(|entry| entry.get(key)?.as_str());
        found.filter(|text| !text.is_empty()).map(Cow::into_owned)
    };
    Transcript {
        id: session.id().map(Cow::into_owned),
        title: session.title().map(Cow::into_owned),
        cwd: session.entries().iter().find_map(|entry| entry.get("cwd")?.as_str()).map(Cow::into_owned),
        git_branch: last("gitBranch"),
        version: last("version"),
        ..Transcript::default()
    }
}

/// What is wrong with a session.
pub fn findings(session: &Session) -> Vec<Finding> {
    let mut findings = session.findings();
    findings.retain(|finding| finding.severity > Severity::Note);
    findings
}

/// The name of the `block_idx`th block of a line. Logs only grow, so a line keeps its name.
pub fn anchor(line_no: u64, block_idx: usize) -> String {
    if block_idx == 0 { format!("m{line_no}") } else { format!("m{line_no}.{}", block_idx + 1) }
}

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
    fn session(&self) -> &'f Session {
        self.telling.family.session(self.agent)
    }

    /// What the calls cost that begin on this line.
    fn spent_on(&self, entry: &Entry) -> Option<&'f Totals> {
        let spending = self.telling.spending.filter(|_| entry.kind() == Kind::Assistant)?;
        spending.on(self.telling.family, self.agent, entry.at().line_no)
    }

    /// The agents that nothing told of: first those that nobody started, then what is left.
    pub(crate) fn strays(&self) -> Vec<AgentView> {
        let agents = &self.telling.family.agents;
        let mut order: Vec<usize> = (0..agents.len()).collect();
        order.sort_by_key(|&agent| agents[agent].spawn.is_some());
        let untold = |agent: &usize| !self.met.borrow().contains(agent);
        let mut found: Vec<(usize, AgentView)> = Vec::new();
        for agent in order {
            if untold(&agent) {
                found.push((agent, self.agent(agent)));
            }
        }
        found.sort_by_key(|(agent, _)| *agent);
        found.into_iter().map(|(_, told)| told).collect()
    }

    /// The active conversation, with the lines around it that are worth telling.
    fn thread(&self) -> Thread {
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
        let mut tokens = Tokens::default();
        let mut models: Vec<String> = Vec::new();
        for reply in turn.replies(session).into_iter().map(|reply| &session.replies()[reply]) {
            tokens.add(reply.usage(session));
            if let Some(model) =
                reply.model.as_ref().filter(|model| !model.starts_with('<') && !models.contains(model))
            {
                models.push(model.clone());
            }
        }
        let first = turn.prompt.or(turn.entries.first().copied());
        let span = turn.span(session);
        let items: Vec<Item> = turn.entries.iter().flat_map(|&idx| self.items(idx, compactions)).collect();
        let (mut spent, mut spent_by_agents) = (Totals::default(), Totals::default());
        for totals in turn.entries.iter().filter_map(|&idx| self.spent_on(&session.entries()[idx])) {
            spent += totals;
        }
        for item in &items {
            if let Body::Call(call) = &item.body {
                call.agents.iter().for_each(|agent| spent_by_agents += &agent.spent);
            }
        }
        spent += &spent_by_agents;
        TurnView {
            number: turn.number,
            anchor: anchor(first.map_or(0, |idx| session.entries()[idx].at().line_no), 0),
            timing: timing(session, turn, span, before),
            span,
            models,
            tokens,
            spent,
            spent_by_agents,
            open: turn.is_open(session),
            round: turn.round,
            items,
        }
    }

    /// What one line tells. What its call cost is told by the first item.
    pub(crate) fn items(&self, entry_idx: usize, compactions: &[Compaction]) -> Vec<Item> {
        let mut items = self.items_of(entry_idx, compactions);
        if let Some(item) = items.first_mut() {
            let spent = self.spent_on(&self.session().entries()[entry_idx]);
            item.spent = spent.map(|spent| Box::new(spent.clone()));
        }
        items
    }

    fn items_of(&self, entry_idx: usize, compactions: &[Compaction]) -> Vec<Item> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let item = |block_idx: usize, body: Body| Item {
            anchor: anchor(entry.at().line_no, block_idx),
            line_no: entry.at().line_no,
            at: session.timestamp(entry_idx),
            spent: None,
            body,
        };
        let one = |body: Option<Body>| body.map(|body| item(0, body)).into_iter().collect();
        match entry.kind() {
            Kind::Assistant => {
                let content = entry.message().and_then(|message| message.content());
                if entry.flag("isApiErrorMessage") {
                    let text = content.map(|content| content.text().into_owned()).unwrap_or_default();
                    return one(Some(Body::Trouble { label: "API error".to_owned(), text }));
                }
                // Foreign writers put a reply's text where its blocks should be.
                if let Some(text) = content.and_then(|content| content.as_str()) {
                    return one(Some(Body::Text(text.into_owned())));
                }
                let blocks = content.into_iter().flat_map(|content| content.blocks()).enumerate();
                blocks.filter_map(|(i, block)| Some(item(i, self.said(entry_idx, block)?))).collect()
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

    /// A block of a reply.
    fn said(&self, entry_idx: usize, block: Block<'f>) -> Option<Body> {
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
                    name.unwrap_or_default().into_owned()
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
        let outcome = call.outcome(session);
        let data = call.results.first().and_then(|at| session.entries()[at.entry_idx].tool_use_result());
        let failed = outcome != Outcome::Ok;
        let input = block.input();
        let mut told =
            Call { name: &call.name, input, data, text: &text, failed, kept: self.telling.kept }.told();
        if let Some(inside) =
            session.entries()[call.entry_idx].get("cwd").and_then(|cwd| below(&told.subject, &cwd.as_str()?))
        {
            told.subject = inside;
        }
        let agents = if self.depth < DEPTH {
            let spawned = self.telling.family.spawned_by(self.agent, &call.id);
            spawned.map(|agent| self.agent(agent)).collect()
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
            files: content.into_iter().flat_map(|content| content.blocks()).filter_map(file_of).collect(),
            result: text,
            agents,
        }
    }

    fn agent(&self, idx: usize) -> AgentView {
        self.met.borrow_mut().insert(idx);
        let agent: &Agent = &self.telling.family.agents[idx];
        let below = Teller { agent: Some(idx), depth: self.depth + 1, ..*self };
        let turns = below.turns_of(&below.thread());
        let mut spent = Totals::default();
        for totals in agent.session.entries().iter().filter_map(|entry| below.spent_on(entry)) {
            spent += totals;
        }
        turns.iter().for_each(|turn| spent += &turn.spent_by_agents);
        AgentView {
            id: agent.id.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            kind: agent.kind,
            spent,
            turns,
        }
    }

    /// A user line. Results are told with their calls, and summaries with their compaction.
    fn asked(&self, entry_idx: usize) -> Option<Body> {
        let session = self.session();
        let entry = &session.entries()[entry_idx];
        let input = session.input(entry_idx)?;
        let content = entry.message()?.content()?;
        if input == Input::CompactSummary {
            return None;
        }
        let files = content.blocks().filter_map(file_of).collect();
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
        Some(Body::Input { input, text: untagged(input, text), files, context })
    }
}

impl Tokens {
    pub(crate) fn of(usage: Usage<'_>) -> Self {
        let mut tokens = Self::default();
        tokens.add(Some(usage));
        tokens
    }

    fn add(&mut self, usage: Option<Usage<'_>>) {
        let Some(usage) = usage else { return };
        self.input += usage.input_tokens().unwrap_or(0);
        self.output += usage.output_tokens().unwrap_or(0);
        self.cache_read += usage.cache_read_input_tokens().unwrap_or(0);
        self.cache_write += usage.cache_creation_input_tokens().unwrap_or(0);
    }

    /// All that the model was given to read.
    pub fn context(self) -> u64 {
        self.input + self.cache_read + self.cache_write
    }
}

/// A path without the working directory that it lies in.
fn below(path: &str, cwd: &str) -> Option<String> {
    let inside = path.strip_prefix(cwd)?.strip_prefix(['/', '\\'])?;
    (!inside.is_empty()).then(|| inside.to_owned())
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
