//! Layouts: the structure of a conversation, so that parts of it can be built without the rest.
//!
//! A [`Layout`] can be computed from a session whose long texts are [abridged](threadline_entry::abridge).
//! It contains everything that depends on the whole session (the lines of each turn, token counts, totals)
//! and no text. To build a part, read the lines that [`Layout::needed`] returns, push them into a new
//! session, and call [`items`].

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

/// The structure of a conversation: its turns, branches and totals, without the text.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// The facts about the session. Its `turns` and `branches` are empty: see [`Layout::turns`] and
    /// [`Layout::branches`].
    pub told: Transcript,
    /// The turns, in order.
    pub turns: Vec<TurnLayout>,
    /// The tools called and how often, in order of first use.
    pub tools: Vec<(String, usize)>,
    /// The anchors of the errors, in order.
    pub bad: Vec<String>,
    /// The abandoned branches.
    pub branches: Vec<BranchLayout>,
    /// The number of lines that each compaction removed, by the anchor of its boundary.
    dropped: FxHashMap<String, usize>,
    /// The topics of calls whose input contains only an id, by the anchor of the call.
    topics: FxHashMap<String, String>,
    /// The sub-agents that calls started, by the anchor of the call.
    agents: FxHashMap<String, Vec<AgentView>>,
    agents_by_line: FxHashMap<u64, usize>,
}

/// A turn with its entries and totals.
#[derive(Clone, Debug)]
pub struct TurnLayout {
    /// The turn, without its items.
    pub turn: TurnView,
    /// Its line in the outline.
    pub line: OutlineLine,
    /// Its entries, as indices into [`Session::entries`].
    pub entries: Vec<usize>,
    /// The input tokens of its last reply.
    pub context: u64,
    /// The line number of the prompt that opened it.
    pub prompt_line: Option<u64>,
}

/// An abandoned branch.
#[derive(Clone, Debug)]
pub struct BranchLayout {
    /// The index of its last message; pass it to [`layout`] for the layout of the branch.
    pub leaf: usize,
    /// The anchor of its last message.
    pub anchor: String,
    /// The anchor of the line where it forked off; `None` if it has no line in common with the
    /// conversation.
    pub fork: Option<String>,
    /// The title of its first turn that has one.
    pub title: String,
    /// The number of turns.
    pub turns: usize,
}

/// Computes the layout of a session's conversation, or of a sub-agent's.
///
/// With `leaf`, lays out the conversation as if it had ended at that entry. `notes` must be up to date with
/// the family. Findings are not computed, because they take longer than the rest: see [`crate::findings`].
pub fn layout(telling: Telling<'_>, notes: &Notes, agent: Option<usize>, leaf: Option<usize>) -> Layout {
    let session = telling.family.session(agent);
    let met = RefCell::default();
    let teller = Teller { telling, agent, depth: 0, met: &met };
    let surveyor = Surveyor { teller, notes, spawned: &spawned(telling.family) };
    let mut layout = Layout { told: facts(session), ..Layout::default() };
    let mut thread = leaf.map_or_else(|| session.thread(), |leaf| session.thread_to(leaf));
    teller.add_beside(&mut thread);
    surveyor.turns(&thread, &mut |_| true, &mut layout);
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

/// Lays out the turns of a session's active conversation that `wanted` accepts, and nothing else of it. It is called for
/// every turn, in order. The notes are those of the family as it is now.
pub fn layout_turns(telling: Telling<'_>, notes: &Notes, wanted: &mut dyn FnMut(&Turn) -> bool) -> Layout {
    let met = RefCell::default();
    let teller = Teller { telling, agent: None, depth: 0, met: &met };
    let surveyor = Surveyor { teller, notes, spawned: &spawned(telling.family) };
    let mut layout = Layout::default();
    let mut thread = telling.family.main.thread();
    teller.add_beside(&mut thread);
    surveyor.turns(&thread, wanted, &mut layout);
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

/// Adds up the notes of the entries.
#[derive(Clone, Copy)]
struct Surveyor<'a> {
    teller: Teller<'a>,
    notes: &'a Notes,
    spawned: &'a Spawned<'a>,
}

/// The totals of some lines, including the sub-agents that they started.
#[derive(Default)]
struct Sum {
    calls: usize,
    errors: usize,
    edits: usize,
    lines: (usize, usize),
    compactions: usize,
    /// Whether any of them is an error.
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

    /// Adds the turns of a conversation that `wanted` accepts to `layout`.
    fn turns(&self, thread: &Thread, wanted: &mut dyn FnMut(&Turn) -> bool, layout: &mut Layout) {
        let session = self.teller.session();
        let (mut before, mut skipped) = (None, None);
        for turn in session.turns_of(thread) {
            if !wanted(&turn) {
                skipped = Some(turn);
                continue;
            }
            if let Some(skipped) = skipped.take() {
                before = Turn::span(&skipped, session).map(|(_, end)| end);
            }
            let laid_out = self.turn(turn, before, layout);
            before = laid_out.turn.span.map(|(_, end)| end);
            layout.turns.push(laid_out);
        }
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

    /// Returns the totals of a mark and the sub-agents that it started, without their turns.
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

    /// Returns a sub-agent without its turns, and the totals of its conversation.
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
            // Marks the sub-agents of the branch as visited, so that they are not listed as unattached.
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

    /// Returns the entries that are needed to build the given ones: tool results, the summary after a
    /// compaction, and queued prompts. The given entries are included; the result is sorted and has no
    /// duplicates.
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

    /// Fills in the fields of separately built items that depend on the whole session.
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

    /// Returns the number of sub-agents that the calls on a line started.
    pub fn agents_on(&self, line_no: u64) -> usize {
        self.agents_by_line.get(&line_no).copied().unwrap_or(0)
    }

    /// Returns the sub-agents that calls started, each with the anchor of its call, in unspecified order.
    pub fn agents(&self) -> impl Iterator<Item = (&AgentView, &str)> {
        self.agents.iter().flat_map(|(call, agents)| agents.iter().map(move |agent| (agent, &**call)))
    }
}

/// Builds the items of the given lines, in the given order.
///
/// The session must contain these lines and the entries that they need: see [`Layout::needed`]. Costs are
/// those recorded for the given log: see [`crate::Spending::log`].
pub fn items(telling: Telling<'_>, lines: &[u64], log: usize) -> Vec<Item> {
    let met = RefCell::default();
    let spending = telling.spending;
    let teller = Teller { telling: Telling { spending: None, ..telling }, agent: None, depth: 0, met: &met };
    let entries = telling.family.main.entries();
    let on = |line: u64| {
        let first = entries.partition_point(|entry| entry.at().line_no < line);
        (first..entries.len()).take_while(move |&idx| entries[idx].at().line_no == line)
    };
    let told = |idx: usize| {
        let mut items = teller.items(idx);
        if let Some(item) = items.first_mut().filter(|_| entries[idx].kind() == Kind::Assistant) {
            let spent = spending.and_then(|spending| spending.at(log, item.line_no));
            item.spent = spent.map(|spent| Box::new(spent.clone()));
        }
        items
    };
    lines.iter().flat_map(|&line| on(line)).flat_map(told).collect()
}
