//! Where everything of a conversation stands, so that parts of it can be told without the rest.
//!
//! A [`Layout`] is made from a session whose long texts may be [abridged](threadline_entry::abridge): it has what the
//! whole decides (which lines belong to which turn, what a turn used, what it came to) and none of the words. To tell
//! a part, read the lines that [`Layout::lines`] names, push them into a session of their own, and let [`items`] tell it.

use std::cell::RefCell;

use rustc_hash::FxHashMap;
use threadline_entry::Kind;
use threadline_session::{Session, Thread};
use threadline_usage::Totals;

use crate::outline::{OutlineLine, outline};
use crate::teller::Teller;
use crate::telling::{Telling, facts};
use crate::transcript::{AgentView, Body, Item, Tokens, Transcript, TurnView, anchor};

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
    /// What each reply cost, by the name of the item that it begins with.
    spent: FxHashMap<String, Box<Totals>>,
    /// What each compaction left out, by the name of its boundary.
    dropped: FxHashMap<String, usize>,
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
/// at `leaf`. What is wrong with it is not looked for, which takes longer than the rest: [`crate::findings`] does that.
pub fn layout(telling: Telling<'_>, agent: Option<usize>, leaf: Option<usize>) -> Layout {
    let session = telling.family.session(agent);
    let met = RefCell::default();
    let teller = Teller { telling, agent, depth: 0, met: &met };
    let mut layout = Layout { told: facts(session), ..Layout::default() };
    let mut thread = leaf.map_or_else(|| session.thread(), |leaf| session.thread_to(leaf));
    teller.add_beside(&mut thread);
    teller.each_turn_of(&session.turns_of(&thread), &|_, _| true, &mut |turn, mut told| {
        let line = outline(std::slice::from_ref(&told)).remove(0);
        for item in std::mem::take(&mut told.items) {
            layout.note(item);
        }
        let replies = turn.replies(session).into_iter().rev().map(|reply| &session.replies()[reply]);
        let context = replies.filter_map(|reply| Some(Tokens::of(reply.usage(session)?).context()));
        let context = context.into_iter().find(|context| *context > 0).unwrap_or(0);
        layout.turns.push(TurnLayout { turn: told, line, entries: turn.entries.clone(), context });
    });
    layout.told.spent = match (agent, telling.spending) {
        (None, Some(spending)) => spending.total().clone(),
        _ => layout.turns.iter().fold(Totals::default(), |mut sum, turn| {
            sum += &turn.turn.spent;
            sum
        }),
    };
    if leaf.is_none() {
        layout.branches = branches(session, &teller);
    }
    if agent.is_none() && leaf.is_none() {
        layout.told.agents = teller.strays();
        for agent in &mut layout.told.agents {
            agent.turns = Vec::new();
        }
    }
    layout
}

fn branches(session: &Session, teller: &Teller<'_>) -> Vec<BranchLayout> {
    let spoken = |idx: usize| matches!(session.entries()[idx].kind(), Kind::User | Kind::Assistant);
    let found = session.branches().into_iter().filter_map(|branch| {
        let leaf = branch.entries.iter().copied().rfind(|&idx| spoken(idx))?;
        let turns = teller.turns_of(&Thread { leaf: Some(leaf), entries: branch.entries });
        let lines = outline(&turns);
        let title = lines.iter().map(|line| line.title.clone()).find(|title| !title.is_empty());
        let name = |idx: usize| anchor(session.entries()[idx].at().line_no, 0);
        Some(BranchLayout {
            leaf,
            anchor: name(leaf),
            fork: branch.fork.map(name),
            title: title.unwrap_or_default(),
            turns: turns.len(),
        })
    });
    found.filter(|branch| branch.turns > 0).collect()
}

impl Layout {
    /// Keeps of an item what only the whole session knows.
    fn note(&mut self, item: Item) {
        if item.is_bad() {
            self.bad.push(item.anchor.clone());
        }
        if let Some(spent) = item.spent {
            self.spent.insert(item.anchor.clone(), spent);
        }
        match item.body {
            Body::Compaction { dropped, .. } => {
                self.dropped.insert(item.anchor, dropped);
            }
            Body::Call(call) => {
                self.count(&call.name);
                let mut agents = call.agents;
                for agent in &mut agents {
                    agent.turns = Vec::new();
                }
                if !agents.is_empty() {
                    *self.agents_by_line.entry(item.line_no).or_default() += agents.len();
                    self.agents.insert(item.anchor, agents);
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, tool: &str) {
        match self.tools.iter_mut().find(|(name, _)| name == tool) {
            Some((_, count)) => *count += 1,
            None => self.tools.push((tool.to_owned(), 1)),
        }
    }

    /// The entries of a session that some of its entries cannot be told without: results of calls, and the summary
    /// that follows a compaction. In order, and each once.
    pub fn needed(session: &Session, entries: &[usize]) -> Vec<usize> {
        let mut needed = entries.to_vec();
        for &idx in entries {
            for block in session.entries()[idx].message().into_iter().flat_map(|message| message.blocks()) {
                let call =
                    block.id().filter(|_| block.is("tool_use")).and_then(|id| session.tool_call_on(idx, &id));
                needed.extend(call.into_iter().flat_map(|call| &call.results).map(|at| at.entry_idx));
            }
            if session.is_boundary(idx) {
                needed.extend(session.children(idx));
            }
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// Gives items that were told apart from the rest what only the whole session knows.
    pub fn complete(&self, items: &mut [Item]) {
        for item in items {
            item.spent = self.spent.get(&item.anchor).cloned();
            match &mut item.body {
                Body::Compaction { dropped, .. } => {
                    *dropped = self.dropped.get(&item.anchor).copied().unwrap_or(0)
                }
                Body::Call(call) => call.agents = self.agents.get(&item.anchor).cloned().unwrap_or_default(),
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
/// [need](Layout::needed).
pub fn items(telling: Telling<'_>, lines: &[u64]) -> Vec<Item> {
    let met = RefCell::default();
    let teller = Teller { telling, agent: None, depth: 0, met: &met };
    let compactions = telling.family.main.compactions();
    let entries = telling.family.main.entries();
    let on = |line: u64| {
        let first = entries.partition_point(|entry| entry.at().line_no < line);
        (first..entries.len()).take_while(move |&idx| entries[idx].at().line_no == line)
    };
    lines.iter().flat_map(|&line| on(line)).flat_map(|idx| teller.items(idx, &compactions)).collect()
}
