//! Sub-agents: their logs, and the calls that started them, at any depth.

use rustc_hash::FxHashMap;
use threadline_entry::lens::{AgentResult, Progress, WorkflowResult};
use threadline_entry::{AgentKind, Kind};

use crate::session::Session;

/// A session with its sub-agents.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// The session itself.
    pub main: Session,
    /// Its sub-agents, whatever depth they were started at.
    pub agents: Vec<Agent>,
    /// So many of them, the first ones, have logs of their own.
    n_logged: usize,
    /// The calls that those name in files of their own, by id.
    named: Vec<Option<String>>,
    /// What the session's own log tells of agents; those that it found are among the others.
    inside: Inside,
}

/// A sub-agent and what it did.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Its id; for one that was logged inside the session, the uuid of its first line.
    pub id: String,
    /// What it was started for.
    pub kind: AgentKind,
    /// What it was told to be, such as `Explore`.
    pub agent_type: Option<String>,
    /// What it was asked to do, in a few words.
    pub description: Option<String>,
    /// The id of the workflow run that it was part of.
    pub workflow_run: Option<String>,
    /// Its log.
    pub session: Session,
    /// The call that started it, if that can be told.
    pub spawn: Option<Spawn>,
}

/// The call that started a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spawn {
    /// The agent that made the call, by its place in [`Family::agents`]; `None` for the session itself.
    pub agent: Option<usize>,
    /// The call's id.
    pub tool_use_id: String,
}

impl Family {
    /// Joins a session with the logs of its sub-agents. A [`Spawn`] that an agent's own file names is
    /// given with the call's id alone; who made the call is found here.
    ///
    /// Agents without a log of their own are found inside the session: as sidechains (1.0.x), or in
    /// `agent_progress` lines, which repeat what an agent said. Where there is a log, those are not
    /// looked at, so that nothing counts twice.
    pub fn new(main: Session, agents: Vec<Agent>) -> Self {
        let inside = Inside::of(&main, &agents);
        Self::with(main, agents, inside)
    }

    /// Reads the log of a session, and those of its sub-agents by id, as [`Session::from_bytes`] reads one.
    pub fn from_bytes(main: &[u8], agents: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let agents = agents.into_iter();
        let agents = agents.map(|(id, log)| Agent { session: Session::from_bytes(&log), ..Agent::bare(id) });
        Self::new(Session::from_bytes(main), agents.collect())
    }

    /// [`Family::new`] where it is known already which agents stand inside the session.
    pub fn with(main: Session, mut agents: Vec<Agent>, mut inside: Inside) -> Self {
        let n_logged = agents.len();
        let named = agents.iter().map(|agent| Some(agent.spawn.as_ref()?.tool_use_id.clone())).collect();
        agents.append(&mut inside.agents);
        let mut family = Self { main, agents, n_logged, named, inside };
        family.find_spawns();
        family
    }

    /// Takes in what was pushed into its sessions since. Answers `false` if it must be made anew: where agents stand
    /// between the lines of the session, any line may change which are whose.
    #[must_use]
    pub fn follow(&mut self) -> bool {
        let is_side = |idx| self.main.in_tree(idx) && self.main.is_sidechain(idx);
        if self.inside.has_sides || (self.inside.looked..self.main.entries().len()).any(is_side) {
            return false;
        }
        self.inside.look(&self.main, &mut self.agents, self.n_logged);
        self.find_spawns();
        true
    }

    /// The session of an agent, or the main one.
    pub fn session(&self, agent: Option<usize>) -> &Session {
        agent.map_or(&self.main, |agent| &self.agents[agent].session)
    }

    /// The agents that have logs of their own.
    pub fn logged(&self) -> &[Agent] {
        &self.agents[..self.n_logged]
    }

    /// Whether an agent has a log of its own. The lines of the others stand in that of the session.
    pub fn has_log(&self, agent: usize) -> bool {
        agent < self.n_logged
    }

    /// The agents that a call started.
    pub fn spawned_by(&self, agent: Option<usize>, tool_use_id: &str) -> impl Iterator<Item = usize> {
        let spawned = self.agents.iter().enumerate();
        spawned
            .filter(move |(_, found)| {
                found
                    .spawn
                    .as_ref()
                    .is_some_and(|spawn| spawn.agent == agent && spawn.tool_use_id == tool_use_id)
            })
            .map(|(i, _)| i)
    }

    /// Finds the call that started each agent: by what the agent's own file says, by what the call's
    /// result or progress says, and last by the prompt, which is the call's own.
    fn find_spawns(&mut self) {
        let links = &self.inside.links;
        let named: Vec<Option<Spawn>> =
            (0..self.agents.len()).map(|i| self.owner_of(self.named.get(i)?.as_deref()?, i)).collect();
        // Every call of a session is asked only if some agent leaves no other way.
        let told =
            |(agent, spawn): (&Agent, &Option<Spawn>)| spawn.is_some() || links.contains_key(&agent.id);
        let all_told = self.agents.iter().zip(&named).all(told);
        let calls = if all_told { StartingCalls::default() } else { self.starting_calls() };
        let mut taken: Vec<Spawn> = Vec::new();
        for (i, named) in named.into_iter().enumerate() {
            let agent = &self.agents[i];
            let by_progress = || {
                let tool_use_id = links.get(&agent.id)?.clone();
                Some(Spawn { agent: None, tool_use_id })
            };
            let by_prompt = || {
                let prompt = first_prompt(&agent.session);
                let mut same = calls.by_prompt.iter().filter(|(text, _)| Some(text) == prompt.as_ref());
                let free = same.find(|(_, spawn)| spawn.agent != Some(i) && !taken.contains(spawn));
                free.map(|(_, spawn)| spawn.clone())
            };
            let by_run = || calls.by_workflow_run.get(agent.workflow_run.as_ref()?).cloned();
            let spawn = named
                .or_else(|| calls.by_agent_id.get(&agent.id).cloned())
                .or_else(by_run)
                .or_else(by_progress)
                .or_else(by_prompt)
                .filter(|spawn| spawn.agent != Some(i));
            taken.extend(spawn.clone());
            self.agents[i].spawn = spawn;
        }
    }

    /// Every call of every session that may have started an agent.
    fn starting_calls(&self) -> StartingCalls {
        let mut calls = StartingCalls::default();
        for owner in std::iter::once(None).chain((0..self.agents.len()).map(Some)) {
            let session = self.session(owner);
            for call in session.tool_calls() {
                let spawn = Spawn { agent: owner, tool_use_id: call.id.clone() };
                if let Some(id) = started_agent(session, call) {
                    calls.by_agent_id.entry(id).or_insert_with(|| spawn.clone());
                }
                if let Some(run) = started_workflow(session, call) {
                    calls.by_workflow_run.entry(run).or_insert_with(|| spawn.clone());
                }
                let input = call.block(session).and_then(|block| block.input());
                if let Some(prompt) = input.and_then(|input| input.get("prompt")?.as_str()) {
                    calls.by_prompt.push((prompt.into_owned(), spawn));
                }
            }
            for (agent_id, tool_use_id) in progress_links(session) {
                calls.by_agent_id.entry(agent_id).or_insert(Spawn { agent: owner, tool_use_id });
            }
        }
        calls
    }

    /// Who made the call with this id that started agent `started`, whose log may hold a copy of it.
    fn owner_of(&self, tool_use_id: &str, started: usize) -> Option<Spawn> {
        let mut owners = std::iter::once(None).chain((0..self.agents.len()).map(Some));
        let agent = owners
            .find(|&owner| owner != Some(started) && self.session(owner).tool_call(tool_use_id).is_some())?;
        Some(Spawn { agent, tool_use_id: tool_use_id.to_owned() })
    }
}

/// The calls that may have started an agent, by what they say of it.
#[derive(Default)]
struct StartingCalls {
    /// By the agent that the result or a progress line names.
    by_agent_id: FxHashMap<String, Spawn>,
    /// By the workflow run that the result names.
    by_workflow_run: FxHashMap<String, Spawn>,
    /// By the prompt; several calls may have the same one.
    by_prompt: Vec<(String, Spawn)>,
}

/// The workflow run that a call's result names: by its id, or by the folder of its transcripts.
fn started_workflow(session: &Session, call: &crate::ToolCall) -> Option<String> {
    let at = call.results.first()?;
    let result: WorkflowResult<'_> = session.entries()[at.entry_idx].tool_use_result()?.of()?;
    let folder = || {
        let dir = result.transcript_dir()?;
        dir.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().map(str::to_owned)
    };
    result.run_id().map(Into::into).or_else(folder)
}

/// The agent that a call's result names.
fn started_agent(session: &Session, call: &crate::ToolCall) -> Option<String> {
    let at = call.results.first()?;
    let result: AgentResult<'_> = session.entries()[at.entry_idx].tool_use_result()?.of()?;
    result.agent_id().map(Into::into)
}

/// Which agent ran for which call, as progress lines tell it.
fn progress_links(session: &Session) -> impl Iterator<Item = (String, String)> {
    agent_progress(session, 0).filter_map(|(_, progress)| {
        Some((progress.data()?.agent_id()?.into_owned(), progress.parent_tool_use_id()?.into_owned()))
    })
}

fn agent_progress(session: &Session, from: usize) -> impl Iterator<Item = (usize, Progress<'_>)> {
    let entries = session.entries().iter().enumerate().skip(from);
    entries.filter(|(_, entry)| entry.kind() == Kind::Progress).filter_map(|(i, entry)| {
        let progress: Progress<'_> = entry.lens()?;
        (progress.data()?.kind()? == "agent_progress").then_some((i, progress))
    })
}

impl Session {
    /// Whether this is a sub-agent's own log: there is a conversation, and every line of it is a sidechain.
    pub fn is_agents(&self) -> bool {
        let mut told = (0..self.entries().len()).filter(|&idx| self.in_tree(idx)).peekable();
        told.peek().is_some() && told.all(|idx| self.is_sidechain(idx))
    }

    /// The lines of each sub-agent that ran inside the session's own file (1.0.x): a sidechain's root, and what hangs below it.
    pub fn inline_agents(&self) -> Vec<Vec<usize>> {
        let mut agents: Vec<Vec<usize>> = Vec::new();
        // That is the agent itself, and no agent of it.
        if self.is_agents() {
            return agents;
        }
        let mut agent_of: FxHashMap<usize, usize> = FxHashMap::default();
        for idx in (0..self.entries().len()).filter(|&idx| self.in_tree(idx) && self.is_sidechain(idx)) {
            let above = self.ancestors(idx).skip(1).find_map(|above| agent_of.get(&above).copied());
            let agent = above.unwrap_or_else(|| {
                agents.push(Vec::new());
                agents.len() - 1
            });
            agent_of.insert(idx, agent);
            agents[agent].push(idx);
        }
        agents
    }
}

fn inline_agents(main: &Session) -> Vec<Agent> {
    let agent = |lines: Vec<usize>| {
        let mut agent = Agent::bare(main.entries()[lines[0]].uuid().unwrap_or_default().into_owned());
        for idx in lines {
            agent.session.push(main.entries()[idx].clone(), Vec::new());
        }
        agent
    };
    main.inline_agents().into_iter().map(agent).collect()
}

/// Agents that stand inside a session's own log.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    agents: Vec<Agent>,
    /// Which agent ran for which call, as progress lines of the session tell it.
    links: FxHashMap<String, String>,
    /// Where each agent stands among those that were found; nowhere if it has a log.
    places: FxHashMap<String, Option<usize>>,
    /// How many entries of the session were looked at.
    looked: usize,
    /// Whether agents stand between the lines of the session.
    has_sides: bool,
}

impl Inside {
    /// Finds them: sidechains, and agents that progress lines repeat and that have no log of their own.
    pub fn of(main: &Session, logged: &[Agent]) -> Self {
        let mut agents = inline_agents(main);
        let has_sides = (0..main.entries().len()).any(|idx| main.in_tree(idx) && main.is_sidechain(idx));
        let mut inside = Self { has_sides, ..Self::default() };
        for agent in logged.iter().chain(&agents) {
            inside.places.insert(agent.id.clone(), None);
        }
        inside.look(main, &mut agents, 0);
        Self { agents, ..inside }
    }

    /// Looks at the progress lines that were not looked at yet. The agents in them follow the first `before` of `agents`.
    fn look(&mut self, main: &Session, agents: &mut Vec<Agent>, before: usize) {
        for (idx, progress) in agent_progress(main, self.looked) {
            let Some(body) = progress.data() else { continue };
            let Some(id) = body.agent_id() else { continue };
            if !self.links.contains_key(&*id)
                && let Some(tool_use_id) = progress.parent_tool_use_id()
            {
                self.links.insert(id.clone().into_owned(), tool_use_id.into_owned());
            }
            // Of an agent that has a log the progress lines are copies.
            let known = self.places.get(&*id);
            let Some(message) = body.message().filter(|_| known != Some(&None)) else { continue };
            let place = known.copied().flatten().unwrap_or_else(|| {
                agents.push(Agent::bare(id.clone().into_owned()));
                let place = agents.len() - 1 - before;
                self.places.insert(id.into_owned(), Some(place));
                place
            });
            let (entry, _) = main.entries()[idx].inside(message);
            let session = &mut agents[before + place].session;
            session.push(entry, Vec::new());
            // These copies name no parents; they were made one after the other.
            session.link_to_line_before(session.entries().len() - 1);
        }
        self.looked = main.entries().len();
    }
}

impl Agent {
    /// An agent of which no more is known than its id.
    pub fn bare(id: String) -> Self {
        let kind = AgentKind::Task;
        Self {
            id,
            kind,
            agent_type: None,
            description: None,
            workflow_run: None,
            session: Session::new(),
            spawn: None,
        }
    }
}

/// The text that an agent was started with.
fn first_prompt(session: &Session) -> Option<String> {
    let entry = session.entries().iter().find(|entry| entry.kind() == Kind::User)?;
    Some(entry.message()?.content()?.text().into_owned())
}
