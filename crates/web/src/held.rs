//! A session that somebody looks at: its logs, abridged, and how its conversation is cut into parts.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use threadline_app::{agent, cwd, kept_output};
use threadline_session::{Agent, Family, Inside, Session, Spawn};
use threadline_store::{AgentFile, SessionFile};
use threadline_usage::Book;
use threadline_view::{Finding, Item, Layout, Notes, Spending, Telling, findings, items, layout};

use crate::log::{ENTRY, Log, Seen};
use crate::plan::{Plan, Span};

/// A line that is longer than this is shown with its long texts cut; its own page has all of it.
const LONGEST: usize = 16 << 20;

/// In a log that is longer than this, nobody waits for what is wrong with it, nor for what was added to its cost.
#[cfg(not(test))]
const LATER: u64 = 8 << 20;
#[cfg(test)]
const LATER: u64 = 64 << 10;

/// What of a session is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Look {
    /// One of its sub-agents, by id.
    pub(crate) agent: Option<String>,
    /// The conversation as it would be if it had ended on this line.
    pub(crate) leaf: Option<u64>,
}

/// A session that somebody looks at.
pub(crate) struct Held {
    /// Where it is.
    pub(crate) file: SessionFile,
    main: Log,
    agents: Vec<Logged>,
    family: Family,
    notes: Notes,
    spending: Arc<Spending>,
    /// Whether `spending` is of all there is.
    counted: bool,
    /// What is wrong with the session.
    odd: Vec<Finding>,
    /// Whether `odd` is of all there is.
    checked: bool,
    book: Arc<Book>,
    plans: HashMap<Look, Arc<Plan>>,
    /// Counts what was seen of it, so that who looks knows whether there is more.
    pub(crate) version: u64,
    /// Whether its log is gone.
    pub(crate) gone: bool,
}

/// The log of a sub-agent.
struct Logged {
    file: AgentFile,
    log: Log,
    /// The call that its own file says started it.
    spawn: Option<Spawn>,
}

/// What there is not.
#[derive(Debug)]
pub(crate) enum Missing {
    /// No such sub-agent.
    Agent,
    /// No such line.
    Line,
    /// Something that could not be read.
    Io(io::Error),
}

impl From<io::Error> for Missing {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Held {
    /// Reads a session and its sub-agents.
    pub(crate) fn open(file: SessionFile, book: Arc<Book>) -> io::Result<Self> {
        let (main, session) = Log::open(&file.path, &file.id)?;
        let mut held = Self {
            main,
            agents: Vec::new(),
            family: Family::default(),
            notes: Notes::default(),
            spending: Arc::default(),
            counted: false,
            odd: Vec::new(),
            checked: false,
            book,
            plans: HashMap::new(),
            version: 1,
            gone: false,
            file,
        };
        let mut agents = Vec::new();
        held.look_for_agents(&mut agents);
        held.join(session, agents);
        held.look_closer();
        Ok(held)
    }

    /// Looks whether the session grew.
    ///
    /// # Errors
    ///
    /// Those of reading. What was known before is still known.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let mut seen = self.main.follow(&mut self.family.main)?;
        for (logged, agent) in self.agents.iter_mut().zip(&mut self.family.agents) {
            match logged.log.follow(&mut agent.session) {
                Ok(Seen::Grown) if seen == Seen::Same => seen = Seen::Grown,
                Ok(Seen::Other) => seen = Seen::Other,
                _ => {}
            }
        }
        if seen == Seen::Other {
            let version = self.version;
            *self = Self::open(self.file.clone(), Arc::clone(&self.book))?;
            self.version = version + 1;
            return Ok(());
        }
        let was_gone = std::mem::replace(&mut self.gone, seen == Seen::Gone);
        let known = self.agents.len();
        let mut fresh = Vec::new();
        // Whoever starts an agent says so in a log that is known.
        if seen == Seen::Grown {
            self.look_for_agents(&mut fresh);
        }
        if seen == Seen::Grown || was_gone != self.gone {
            self.version += 1;
            self.plans.clear();
            self.counted = false;
            if !fresh.is_empty() || !self.family.follow() {
                let Family { main, mut agents, .. } = std::mem::take(&mut self.family);
                agents.truncate(known);
                agents.append(&mut fresh);
                self.join(main, agents);
            }
            self.look_closer();
        }
        Ok(())
    }

    /// Reads the logs of sub-agents that are not known yet.
    fn look_for_agents(&mut self, agents: &mut Vec<Agent>) {
        for file in self.file.agents().found {
            if self.agents.iter().any(|known| known.file.path == file.path) {
                continue;
            }
            let Ok((log, session)) = Log::open(&file.path, &file.id) else { continue };
            let meta = file.read_meta().ok().flatten();
            let agent = agent(&file, meta.as_ref(), session);
            self.agents.push(Logged { file, log, spawn: agent.spawn.clone() });
            agents.push(agent);
        }
    }

    /// Joins the session with its sub-agents, and counts what all of it cost.
    fn join(&mut self, main: Session, mut agents: Vec<Agent>) {
        for (agent, logged) in agents.iter_mut().zip(&self.agents) {
            agent.spawn.clone_from(&logged.spawn);
        }
        // None of these needs another: what stands inside the session, what it cost, and what its lines come to.
        let alone = Family::with(main, Vec::new(), Inside::default());
        let main = &alone.main;
        let price = || {
            // Everybody asks for the conversation next.
            main.thread();
            Spending::of_logs(main, &agents, &self.book)
        };
        let notes = &mut self.notes;
        let (_, (inside, spending)) =
            rayon::join(|| notes.follow_main(&alone), || rayon::join(|| Inside::of(main, &agents), price));
        self.family = Family::with(alone.main, agents, inside);
        (self.spending, self.counted) = (Arc::new(spending), true);
        self.notes.forget_agents();
    }

    /// Counts and checks what is new. What takes long in a large session is left for [`Held::settle`].
    fn look_closer(&mut self) {
        self.checked = false;
        if self.main.bytes() <= LATER {
            self.settle();
        }
    }

    /// Counts what all of it cost, if that is not known.
    pub(crate) fn count(&mut self) {
        if !std::mem::replace(&mut self.counted, true) {
            self.spending = Arc::new(Spending::of(&self.family, &self.book));
            self.version += 1;
            self.plans.clear();
        }
    }

    /// Makes up for what was left for later: what all of it cost, and what is wrong with it.
    pub(crate) fn settle(&mut self) {
        self.count();
        if !std::mem::replace(&mut self.checked, true) {
            let odd = findings(&self.family.main);
            if std::mem::replace(&mut self.odd, odd) != self.odd {
                self.version += 1;
                self.plans.clear();
            }
        }
    }

    /// About how much memory it takes.
    pub(crate) fn weight(&self) -> usize {
        let plans: usize = self.plans.values().map(|plan| plan.weight()).sum();
        // The texts of agents without a log of their own stand in that of the session.
        let inside = &self.family.agents[self.family.logged().len()..];
        self.main.weight
            + self.agents.iter().map(|agent| agent.log.weight).sum::<usize>()
            + inside.iter().map(|agent| agent.session.entries().len() * ENTRY).sum::<usize>()
            + plans
            + self.notes.weight()
    }

    /// How the conversation is cut into parts.
    pub(crate) fn plan(&mut self, look: &Look) -> Result<Arc<Plan>, Missing> {
        if let Some(plan) = self.plans.get(look) {
            return Ok(Arc::clone(plan));
        }
        self.notes.follow(&self.family);
        let agent = self.agent(look)?;
        let session = self.family.session(agent);
        let leaf = match look.leaf {
            Some(line) => Some(
                session
                    .entries()
                    .iter()
                    .rposition(|entry| entry.at().line_no == line)
                    .ok_or(Missing::Line)?,
            ),
            None => None,
        };
        let telling = Telling { spending: Some(&self.spending), ..Telling::new(&self.family) };
        let mut layout = layout(telling, &self.notes, agent, leaf);
        layout.told.findings = if agent.is_none() { self.odd.clone() } else { findings(session) };
        let plan = Arc::new(Plan::new(layout, session, self.log(agent)));
        self.plans.insert(look.clone(), Arc::clone(&plan));
        Ok(plan)
    }

    fn agent(&self, look: &Look) -> Result<Option<usize>, Missing> {
        let Some(id) = &look.agent else { return Ok(None) };
        self.family.agents.iter().position(|agent| agent.id == *id).map(Some).ok_or(Missing::Agent)
    }

    /// The log that an agent stands in: its own, or that of the session.
    fn log(&self, agent: Option<usize>) -> &Log {
        agent.and_then(|agent| self.agents.get(agent)).map_or(&self.main, |agent| &agent.log)
    }

    /// The log of what is looked at.
    pub(crate) fn log_of(&self, look: &Look) -> Result<&Log, Missing> {
        Ok(self.log(self.agent(look)?))
    }

    /// Where the session ran.
    pub(crate) fn cwd(&self) -> Option<String> {
        cwd(&self.family.main)
    }

    /// Everything, abridged.
    pub(crate) fn family(&self) -> &Family {
        &self.family
    }

    /// Reads the lines that some stretches of turns are told from.
    pub(crate) fn read(&mut self, look: &Look, plan: &Plan, spans: &[Span]) -> Result<Told, Missing> {
        let agent = self.agent(look)?;
        let session = self.family.session(agent);
        let line = |idx: usize| session.entries()[idx].at().line_no;
        let mut all: Vec<usize> = spans.iter().flat_map(|span| plan.entries(span).iter().copied()).collect();
        all.sort_unstable();
        let mut needed: Vec<u64> = Layout::needed(session, &all).into_iter().map(line).collect();
        needed.dedup();
        let whole = self.log(agent).session_of(&needed, LONGEST)?;
        let mut family = Family::default();
        family.main = whole;
        // An agent that is known from progress lines alone stands inside of them.
        if agent.is_some_and(|agent| agent >= self.agents.len()) {
            let id = look.agent.as_deref();
            let mut inner = Family::new(family.main, Vec::new());
            let found = inner.agents.iter().position(|agent| Some(&*agent.id) == id);
            family.main = found.map(|found| inner.agents.swap_remove(found).session).unwrap_or(inner.main);
        }
        let lines =
            spans.iter().map(|span| plan.entries(span).iter().map(|&idx| line(idx)).collect()).collect();
        let log = Spending::log(&self.family, agent);
        Ok(Told { family, lines, spending: Arc::clone(&self.spending), log, file: self.file.clone() })
    }

    /// The lines of the calls that changed files, whole, with what came of them.
    pub(crate) fn edits(&self) -> Result<Option<Family>, Missing> {
        let mut size = 0;
        let mut whole = Vec::new();
        for (agent, calls) in self.family.calls_with_edits() {
            let (session, log) = (self.family.session(agent), self.log(agent));
            let calls = calls.into_iter().map(|call| &session.tool_calls()[call]);
            let entries: Vec<usize> = calls
                .flat_map(|call| call.lines().chain(call.results.iter().map(|at| at.entry_idx)))
                .collect();
            let mut lines: Vec<u64> =
                entries.into_iter().map(|idx| session.entries()[idx].at().line_no).collect();
            lines.sort_unstable();
            lines.dedup();
            size += lines.iter().map(|line| log.size(*line)).sum::<u64>();
            if size > MOST_EDITS {
                return Ok(None);
            }
            whole.push(log.session_of(&lines, usize::MAX)?);
        }
        let mut whole = whole.into_iter();
        let main = whole.next().unwrap_or_default();
        let agents = whole.map(|session| Agent { session, ..Agent::bare(String::new()) }).collect();
        let mut family = Family::default();
        (family.main, family.agents) = (main, agents);
        Ok(Some(family))
    }
}

/// More than this is not put together into one diff.
const MOST_EDITS: u64 = 64 << 20;

/// The lines that stretches of turns are told from, whole.
pub(crate) struct Told {
    family: Family,
    /// For each stretch the lines in it, in the order they are told.
    lines: Vec<Vec<u64>>,
    /// What calls cost, and the log that the lines stand in.
    spending: Arc<Spending>,
    log: usize,
    file: SessionFile,
}

impl Told {
    /// What happened in a stretch.
    pub(crate) fn items(&self, plan: &Plan, span: usize) -> Vec<Item> {
        let kept = |path: &str| kept_output(&self.file, path);
        let telling = Telling { family: &self.family, kept: &kept, spending: Some(&self.spending) };
        let mut found = items(telling, &self.lines[span], self.log);
        plan.layout.complete(&mut found);
        found
    }
}

/// Names by which scripts tell what changed: short, and the same for the same things.
pub(crate) fn stamp(what: impl std::hash::Hash) -> String {
    use std::hash::BuildHasher;
    format!("{:x}", rustc_hash::FxBuildHasher.hash_one(what))
}

#[cfg(test)]
mod tests;
