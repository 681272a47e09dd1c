//! Where everything of a conversation stands, so that parts of it can be told without the rest.
//!
//! A [`Layout`] is made from a session whose long texts may be [abridged](threadline_entry::abridge): it has what the
//! whole decides (which lines belong to which turn, what a turn used, what it came to) and none of the words. To tell
//! a part, read the lines that [`Layout::needed`] names, push them into a session of their own, and let [`items`] tell it.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use threadline_entry::{Kind, Millis};
use threadline_session::{Family, Outcome, Reply, Session, Thread, Turn};
use threadline_usage::Totals;

use crate::card::went_wrong;
use crate::note::{self, Mark, Note, Notes};
use crate::outline::{OutlineLine, TitleSource};
use crate::teller::{Teller, name_agents, name_earlier_command, name_topic};
use crate::telling::{Telling, facts};
use crate::transcript::{AgentView, Body, Item, Transcript, TurnView, anchor};

/// Where everything of a conversation stands.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// What there is to say of the session besides its turns. Its branches are told in [`Layout::branches`].
    pub told: Transcript,
    /// The conversation, turn by turn.
    pub turns: Vec<TurnLayout>,
    /// The tools that were called, in the order they first were, and how often.
    pub tools: Vec<(String, usize)>,
    /// The names of what went wrong, in order.
    pub bad: Vec<String>,
    /// What the conversation left behind.
    pub branches: Vec<BranchLayout>,
    /// What each compaction left out, by the name of its boundary.
    dropped: FxHashMap<String, usize>,
    /// What calls are about that name it by an id alone, by the name of the call.
    topics: FxHashMap<String, String>,
    /// The sub-agents that calls started, by the name of the call.
    agents: FxHashMap<String, Vec<AgentView>>,
    agents_by_line: FxHashMap<u64, usize>,
}

/// A turn, and where it stands.
#[derive(Clone, Debug)]
pub struct TurnLayout {
    /// The turn, without what happened in it.
    pub turn: TurnView,
    /// It in a line.
    pub line: OutlineLine,
    /// Its entries, by their place in [`Session::entries`].
    pub entries: Vec<usize>,
    /// How much the model had to read when it answered last.
    pub context: u64,
    /// The line of the prompt that opened it.
    pub prompt_line: Option<u64>,
}

/// A path that the conversation left.
#[derive(Clone, Debug)]
pub struct BranchLayout {
    /// Its last entry, by which it can be laid out as a conversation of its own.
    pub leaf: usize,
    /// The name of its last entry.
    pub anchor: String,
    /// The name of the line it left at; `None` if it never met the conversation.
    pub fork: Option<String>,
    /// How it begins.
    pub title: String,
    /// How many turns it has.
    pub turns: usize,
}

/// Lays out the conversation of a session, or of one of its sub-agents; as it went, or as it would be if it had ended
/// at `leaf`. The notes are those of the family as it is now. What is wrong with it is not looked for, which takes longer
/// than the rest: [`crate::findings`] does that.
pub fn layout(telling: Telling<'_>, notes: &Notes, agent: Option<usize>, leaf: Option<usize>) -> Layout {
    let session = telling.family.session(agent);
    let met = RefCell::default();
    let teller = Teller { telling, agent, depth: 0, met: &met };
    let surveyor = Surveyor { teller, notes, spawned: &spawned(telling.family) };
    let mut layout = Layout { told: facts(session), ..Layout::default() };
    let mut thread = leaf.map_or_else(|| session.thread(), |leaf| session.thread_to(leaf));
    teller.add_beside(&mut thread);
    let mut before = None;
    for turn in session.turns_of(&thread) {
        let told = surveyor.turn(turn, before, &mut layout);
        before = told.turn.span.map(|(_, end)| end);
        layout.turns.push(told);
    }
    layout.told.spent = match (agent, telling.spending) {
        (None, Some(spending)) => spending.total().clone(),
        _ => layout.turns.iter().fold(Totals::default(), |mut sum, turn| {
            sum += &turn.turn.spent;
            sum
        }),
    };
    if leaf.is_none() {
        layout.branches = surveyor.branches();
    }
    if agent.is_none() && leaf.is_none() {
        layout.told.agents = teller.strays(&|agent| surveyor.agent(agent).0);
    }
    layout
}

/// The sub-agents that each call started, by who made the call and its id.
type Spawned<'a> = FxHashMap<(Option<usize>, &'a str), Vec<usize>>;

fn spawned(family: &Family) -> Spawned<'_> {
    let mut spawned = Spawned::default();
    for (i, agent) in family.agents.iter().enumerate() {
        if let Some(spawn) = &agent.spawn {
            spawned.entry((spawn.agent, &*spawn.tool_use_id)).or_default().push(i);
        }
    }
    spawned
}

/// Adds up what was noted.
#[derive(Clone, Copy)]
struct Surveyor<'a> {
    teller: Teller<'a>,
    notes: &'a Notes,
    spawned: &'a Spawned<'a>,
}

/// What some lines came to, those of the sub-agents that they started among them.
#[derive(Default)]
struct Sum {
    calls: usize,
    errors: usize,
    edits: usize,
    lines: (usize, usize),
    compactions: usize,
    /// Whether anything went wrong.
    bad: bool,
    spent_by_agents: Totals,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.edits += other.edits;
        self.lines.0 += other.lines.0;
        self.lines.1 += other.lines.1;
        self.compactions += other.compactions;
        self.bad |= other.bad;
        self.spent_by_agents += &other.spent_by_agents;
    }
}

impl<'a> Surveyor<'a> {
    fn notes(&self) -> &'a [Note] {
        self.notes.on(self.teller.agent)
    }

    /// A turn, and in `layout` what only the whole session knows of what happened in it.
    fn turn(&self, turn: Turn, before: Option<Millis>, layout: &mut Layout) -> TurnLayout {
        let session = self.teller.session();
        let mut sum = Sum::default();
        for &idx in &turn.entries {
            for (block_idx, mark) in &self.notes()[idx].marks {
                let line_no = session.entries()[idx].at().line_no;
                let name = anchor(line_no, *block_idx as usize);
                let (found, agents) = self.mark(mark);
                if found.bad {
                    layout.bad.push(name.clone());
                }
                sum.add(&found);
                match mark {
                    Mark::Call(call) => {
                        let call = &session.tool_calls()[call.call as usize];
                        layout.count(&call.name);
                        let topic = self.teller.topic(call);
                        layout.topics.extend(topic.map(|topic| (name.clone(), topic)));
                        if !agents.is_empty() {
                            *layout.agents_by_line.entry(line_no).or_default() += agents.len();
                            layout.agents.insert(name, agents);
                        }
                    }
                    Mark::Compaction => {
                        layout.dropped.insert(name, self.teller.dropped(idx));
                    }
                    Mark::Trouble | Mark::Unknown => {}
                }
            }
        }
        let used = |reply: &Reply| note::used(self.notes(), reply);
        let mut told = self.teller.head(&turn, before, &used);
        told.spent += &sum.spent_by_agents;
        let line = OutlineLine {
            calls: sum.calls,
            errors: sum.errors,
            edits: sum.edits,
            lines: sum.lines,
            compactions: sum.compactions,
            ..OutlineLine::blank(&told, self.title(&turn))
        };
        told.spent_by_agents = sum.spent_by_agents;
        let replies = turn.replies(session).into_iter().rev().map(|reply| &session.replies()[reply]);
        let mut context = replies.filter_map(|reply| Some(used(reply)?.context()));
        let context = context.find(|context| *context > 0).unwrap_or(0);
        let prompt_line = turn.prompt.map(|idx| session.entries()[idx].at().line_no);
        TurnLayout { turn: told, line, entries: turn.entries, context, prompt_line }
    }

    fn title(&self, turn: &Turn) -> &'a str {
        let mut best: Option<&(TitleSource, Box<str>)> = None;
        for title in turn.entries.iter().filter_map(|&idx| self.notes()[idx].title.as_ref()) {
            if title.0.replaces(best.map(|(source, _)| *source)) {
                best = Some(title);
            } else {
                break;
            }
        }
        best.map(|(_, title)| &**title).unwrap_or_default()
    }

    /// What something came to, and the sub-agents that it started, without what they did.
    fn mark(&self, mark: &Mark) -> (Sum, Vec<AgentView>) {
        let mut agents = Vec::new();
        let sum = match mark {
            Mark::Trouble => Sum { errors: 1, bad: true, ..Sum::default() },
            Mark::Unknown => Sum { bad: true, ..Sum::default() },
            Mark::Compaction => Sum { compactions: 1, ..Sum::default() },
            Mark::Call(call) => {
                let place = call.call as usize;
                let failed = went_wrong(&self.teller.session().tool_calls()[place].name, call.outcome);
                let changed = call.changed.filter(|_| call.outcome == Outcome::Ok);
                let mut sum = Sum {
                    calls: 1,
                    errors: usize::from(failed),
                    edits: usize::from(changed.is_some()),
                    lines: changed.unwrap_or_default(),
                    bad: failed,
                    ..Sum::default()
                };
                let call = &self.teller.session().tool_calls()[call.call as usize];
                for &agent in self.spawned(&call.id) {
                    let (told, inside) = self.agent(agent);
                    sum.add(&Sum { spent_by_agents: told.spent.clone(), ..inside });
                    agents.push(told);
                }
                sum
            }
        };
        (sum, agents)
    }

    fn spawned(&self, call: &'a str) -> &'a [usize] {
        if self.spawned.is_empty() || !self.teller.goes_deeper() {
            return &[];
        }
        self.spawned.get(&(self.teller.agent, call)).map_or(&[], |agents| agents)
    }

    /// A sub-agent without what it did, and what that came to.
    fn agent(&self, agent: usize) -> (AgentView, Sum) {
        let below = Self { teller: self.teller.of_agent(agent), ..*self };
        let sum = below.sum(&below.teller.thread());
        let mut told = below.teller.agent_alone(agent);
        told.spent += &sum.spent_by_agents;
        (told, sum)
    }

    fn sum(&self, thread: &Thread) -> Sum {
        let mut sum = Sum::default();
        for turn in self.teller.session().turns_of(thread) {
            let marks = turn.entries.iter().flat_map(|&idx| &self.notes()[idx].marks);
            marks.for_each(|(_, mark)| sum.add(&self.mark(mark).0));
        }
        sum
    }

    fn branches(&self) -> Vec<BranchLayout> {
        let session = self.teller.session();
        let spoken = |idx: usize| matches!(session.entries()[idx].kind(), Kind::User | Kind::Assistant);
        let found = session.branches().into_iter().filter_map(|branch| {
            let leaf = branch.entries.iter().copied().rfind(|&idx| spoken(idx))?;
            let thread = Thread { leaf: Some(leaf), entries: branch.entries };
            let turns = session.turns_of(&thread);
            let title = turns.iter().map(|turn| self.title(turn)).find(|title| !title.is_empty());
            // What was started there is told there.
            self.sum(&thread);
            let name = |idx: usize| anchor(session.entries()[idx].at().line_no, 0);
            Some(BranchLayout {
                leaf,
                anchor: name(leaf),
                fork: branch.fork.map(name),
                title: title.unwrap_or_default().to_owned(),
                turns: turns.len(),
            })
        });
        found.filter(|branch| branch.turns > 0).collect()
    }
}

impl Layout {
    fn count(&mut self, tool: &str) {
        match self.tools.iter_mut().find(|(name, _)| name == tool) {
            Some((_, count)) => *count += 1,
            None => self.tools.push((tool.to_owned(), 1)),
        }
    }

    /// The entries of a session that some of its entries cannot be told without: results of calls, the summary that
    /// follows a compaction, and prompts that waited in the queue. In order, and each once.
    pub fn needed(session: &Session, entries: &[usize]) -> Vec<usize> {
        let mut needed = entries.to_vec();
        for &idx in entries {
            for call in session.calls_on(idx) {
                let call = &session.tool_calls()[call];
                needed.extend(call.results.iter().map(|at| at.entry_idx));
                needed.extend(session.interrupted_at(call.reply));
            }
            if let Some(summary) = session.compaction(idx).and_then(|compaction| compaction.summary) {
                needed.extend(session.ancestors(summary).take_while(|&above| above != idx));
            }
            needed.extend(session.steered_from(idx));
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Gives items that were told apart from the rest what only the whole session knows.
    pub fn complete(&self, items: &mut [Item]) {
        let first = self.turns.first().and_then(|turn| turn.prompt_line).unwrap_or(0);
        for item in items {
            if item.line_no < first {
                name_earlier_command(item);
            }
            match &mut item.body {
                Body::Compaction { dropped, .. } => {
                    *dropped = self.dropped.get(&item.anchor).copied().unwrap_or(0)
                }
                Body::Call(call) => {
                    call.agents = self.agents.get(&item.anchor).cloned().unwrap_or_default();
                    name_agents(&mut call.agents, &call.card);
                    if let Some(topic) = self.topics.get(&item.anchor) {
                        name_topic(&mut call.subject, &mut call.card, topic);
                    }
                }
                _ => {}
            }
        }
    }

    /// How many sub-agents the calls on a line started.
    pub fn agents_on(&self, line_no: u64) -> usize {
        self.agents_by_line.get(&line_no).copied().unwrap_or(0)
    }

    /// The sub-agents that calls started, each with the name of the call; in no order that matters.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentView, &str)> {
        self.agents.iter().flat_map(|(call, agents)| agents.iter().map(move |agent| (agent, &**call)))
    }
}

/// Tells the entries on these lines, in this order, of a session that holds them and what they
/// [need](Layout::needed). What they cost is what was counted for the given log: see [`Spending::log`](crate::Spending::log).
pub fn items(telling: Telling<'_>, lines: &[u64], log: usize) -> Vec<Item> {
    let met = RefCell::default();
    let spending = telling.spending;
    let teller = Teller { telling: Telling { spending: None, ..telling }, agent: None, depth: 0, met: &met };
    let compactions = telling.family.main.compactions();
    let entries = telling.family.main.entries();
    let on = |line: u64| {
        let first = entries.partition_point(|entry| entry.at().line_no < line);
        (first..entries.len()).take_while(move |&idx| entries[idx].at().line_no == line)
    };
    let told = |idx: usize| {
        let mut items = teller.items(idx, &compactions);
        if let Some(item) = items.first_mut().filter(|_| entries[idx].kind() == Kind::Assistant) {
            let spent = spending.and_then(|spending| spending.at(log, item.line_no));
            item.spent = spent.map(|spent| Box::new(spent.clone()));
        }
        items
    };
    lines.iter().flat_map(|&line| on(line)).flat_map(told).collect()
}
