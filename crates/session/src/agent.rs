//! Sub-agents: their logs, and the calls that started them, at any depth.

use std::collections::VecDeque;

use foldhash::{HashMap, HashSet};
use threadline_entry::lens::{AgentProgress, AgentResult, Progress, WorkflowResult};
use threadline_entry::{AgentKind, Kind};

use crate::index::{AgentIndex, EntryIndex, IndexVec};
use crate::session::Session;

/// A session with its sub-agents.
#[derive(Clone, Debug, Default)]
pub struct SessionFamily {
    /// The session itself.
    pub main: Session,
    /// The sub-agents of any depth. Those with their own log files come first.
    pub agents: IndexVec<AgentIndex, Subagent>,
    /// The number of agents with their own log files.
    n_logged: usize,
    /// The ids of the calls that started these agents, as recorded in their metadata.
    named_calls: IndexVec<AgentIndex, Option<String>>,
    /// The state of the search for agents in the session's own log. The agents found there are moved to
    /// `agents`.
    embedded: EmbeddedAgents,
    /// The agents that each call started, in order.
    spawned: HashMap<Spawn, Vec<AgentIndex>>,
    agent_by_id: HashMap<String, AgentIndex>,
}

/// A sub-agent and its log.
#[derive(Clone, Debug)]
pub struct Subagent {
    /// The agent id. For a sidechain inside the session's log, the uuid of its first line.
    pub id: String,
    /// The kind of agent.
    pub kind: AgentKind,
    /// The agent type, such as `Explore`.
    pub agent_type: Option<String>,
    /// A short description of the task.
    pub description: Option<String>,
    /// The id of the workflow run that the agent was part of.
    pub workflow_run: Option<String>,
    /// The log of the agent.
    pub session: Session,
    /// The call that started the agent, if it was found.
    pub spawn: Option<Spawn>,
}

/// The call that started a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Spawn {
    /// The agent that made the call, as an index into [`SessionFamily::agents`]. `None` for the main session.
    pub agent: Option<AgentIndex>,
    /// The id of the call.
    pub tool_use_id: String,
}

impl SessionFamily {
    /// Joins a session with the logs of its sub-agents.
    ///
    /// The [`Spawn`] of an agent in `agents` needs only the id of the call. The caller is looked up here.
    ///
    /// Agents without a log file are searched for in the log of the session: as sidechains (1.0.x), or in
    /// `agent_progress` lines, which repeat the messages of an agent. Progress lines of agents that have a
    /// log file are ignored, so that nothing is counted twice.
    pub fn new(main: Session, agents: Vec<Subagent>) -> Self {
        let inside = EmbeddedAgents::find(&main, &agents);
        Self::with_embedded(main, agents, inside)
    }

    /// Parses the log of a session and the logs of its sub-agents, given by id. See
    /// [`Session::from_bytes`].
    pub fn from_bytes(main: &[u8], agents: impl IntoIterator<Item = (String, Vec<u8>)>) -> Self {
        let agents = agents.into_iter();
        let agents =
            agents.map(|(id, log)| Subagent { session: Session::from_bytes(&log), ..Subagent::bare(id) });
        Self::new(Session::from_bytes(main), agents.collect())
    }

    /// Like [`SessionFamily::new`], with the result of a previous search for agents in the log of the
    /// session.
    pub fn with_embedded(main: Session, agents: Vec<Subagent>, mut inside: EmbeddedAgents) -> Self {
        let mut agents = IndexVec::from(agents);
        let n_logged = agents.len();
        let named = agents.iter().map(|agent| Some(agent.spawn.as_ref()?.tool_use_id.clone())).collect();
        if agents.is_empty() {
            agents = std::mem::take(&mut inside.agents);
        } else {
            agents.reserve_exact(inside.agents.len());
            agents.append(&mut inside.agents);
        }
        let mut family = Self {
            main,
            agents,
            n_logged,
            named_calls: named,
            embedded: inside,
            spawned: HashMap::default(),
            agent_by_id: HashMap::default(),
        };
        family.index_agents();
        family
    }

    /// Updates the family after entries were pushed into its sessions.
    ///
    /// Returns `false` if it must be built again instead: if the log contains sidechains, any new line may
    /// change which agent the other lines belong to.
    #[must_use]
    pub fn update(&mut self) -> bool {
        let is_side = |idx| self.main.in_tree(idx) && self.main.is_sidechain(idx);
        if self.embedded.has_sidechains
            || self.main.entries().indices().skip(self.embedded.n_searched).any(is_side)
        {
            return false;
        }
        self.embedded.search_progress(&self.main, &mut self.agents, self.n_logged);
        self.index_agents();
        true
    }

    /// Returns the session of an agent, or the main one for `None`.
    pub fn session(&self, agent: Option<AgentIndex>) -> &Session {
        agent.map_or(&self.main, |agent| &self.agents[agent].session)
    }

    /// Returns the agents with their own log files.
    pub fn agents_with_log(&self) -> &[Subagent] {
        &self.agents.as_slice()[..self.n_logged]
    }

    /// Returns the agents without their own log files. Their lines are in the log of the session.
    pub fn embedded_agents(&self) -> &[Subagent] {
        &self.agents.as_slice()[self.n_logged..]
    }

    /// Returns whether an agent has its own log file. The lines of other agents are in the log of the
    /// session.
    pub fn has_log(&self, agent: AgentIndex) -> bool {
        agent.position() < self.n_logged
    }

    /// Returns the first agent with this id.
    pub fn find_agent(&self, id: &str) -> Option<AgentIndex> {
        self.agent_by_id.get(id).copied()
    }

    /// Returns the agents that a call started, as indexes into [`SessionFamily::agents`].
    pub fn spawned_by(
        &self,
        agent: Option<AgentIndex>,
        tool_use_id: &str,
    ) -> impl Iterator<Item = AgentIndex> {
        let spawn = Spawn { agent, tool_use_id: tool_use_id.to_owned() };
        self.spawned.get(&spawn).into_iter().flatten().copied()
    }

    /// Indexes the agents by their ids and by the calls that started them.
    fn index_agents(&mut self) {
        self.find_spawns();
        self.agent_by_id.clear();
        for (idx, agent) in self.agents.enumerated() {
            self.agent_by_id.entry(agent.id.clone()).or_insert(idx);
        }
    }

    /// Finds the call that started each agent.
    ///
    /// In order of preference: the call named in the agent's metadata, the one that names the agent or its
    /// workflow run in its result or progress lines, and the first unused call with the same prompt.
    fn find_spawns(&mut self) {
        let links = &self.embedded.links;
        let named = self.named_spawns();
        // Indexing the calls of all sessions is expensive and only needed if an agent has no other link.
        let is_linked =
            |(agent, spawn): (&Subagent, &Option<Spawn>)| spawn.is_some() || links.contains_key(&agent.id);
        let all_linked = self.agents.iter().zip(&named).all(is_linked);
        let calls = if all_linked { StartingCalls::default() } else { self.starting_calls() };
        let StartingCalls { by_agent_id, by_workflow_run, mut by_prompt } = calls;
        let mut taken: HashSet<Spawn> = HashSet::default();
        let mut spawned: HashMap<Spawn, Vec<AgentIndex>> = HashMap::default();
        for (i, named) in self.agents.indices().zip(named) {
            let agent = &self.agents[i];
            let by_progress = || {
                let tool_use_id = links.get(&agent.id)?.clone();
                Some(Spawn { agent: None, tool_use_id })
            };
            let by_prompt = || {
                let same = by_prompt.get_mut(&first_prompt(&agent.session)?)?;
                // Very many agents may have one prompt: calls that are taken are not looked at again.
                while same.front().is_some_and(|spawn| taken.contains(spawn)) {
                    same.pop_front();
                }
                same.iter().find(|spawn| spawn.agent != Some(i) && !taken.contains(spawn)).cloned()
            };
            let by_run = || by_workflow_run.get(agent.workflow_run.as_ref()?).cloned();
            let spawn = named
                .or_else(|| by_agent_id.get(&agent.id).cloned())
                .or_else(by_run)
                .or_else(by_progress)
                .or_else(by_prompt)
                .filter(|spawn| spawn.agent != Some(i));
            if let Some(spawn) = &spawn {
                taken.insert(spawn.clone());
                spawned.entry(spawn.clone()).or_default().push(i);
            }
            self.agents[i].spawn = spawn;
        }
        self.spawned = spawned;
    }

    /// Indexes the calls of all sessions that may have started an agent.
    fn starting_calls(&self) -> StartingCalls {
        let mut calls = StartingCalls::default();
        for owner in std::iter::once(None).chain(self.agents.indices().map(Some)) {
            let session = self.session(owner);
            for call in session.tool_calls() {
                let spawn = Spawn { agent: owner, tool_use_id: call.id.to_string() };
                if let Some(id) = started_agent(session, call) {
                    calls.by_agent_id.entry(id).or_insert_with(|| spawn.clone());
                }
                if let Some(run) = started_workflow(session, call) {
                    calls.by_workflow_run.entry(run).or_insert_with(|| spawn.clone());
                }
                let input = call.block(session).and_then(|block| block.input());
                if let Some(prompt) = input.and_then(|input| input.get("prompt")?.as_str()) {
                    calls.by_prompt.entry(prompt.into_owned()).or_default().push_back(spawn);
                }
            }
            for (agent_id, tool_use_id) in progress_links(session) {
                calls.by_agent_id.entry(agent_id).or_insert(Spawn { agent: owner, tool_use_id });
            }
        }
        calls
    }

    /// Returns, for each agent, the call that its metadata names. The log of the agent itself is skipped,
    /// because it may contain a copy of the call.
    fn named_spawns(&self) -> Vec<Option<Spawn>> {
        let named = |agent: AgentIndex| self.named_calls.get(agent)?.as_deref();
        let is_in_main = |id: &str| self.main.tool_call(id).is_some();
        // The first two agents with each of the other calls: one of them may be the agent that it started.
        let others = self.agents.indices().filter_map(named).filter(|id| !id.is_empty() && !is_in_main(id));
        let mut callers: HashMap<&str, Vec<AgentIndex>> = others.map(|id| (id, Vec::new())).collect();
        for (owner, agent) in self.agents.enumerated() {
            for call in agent.session.tool_calls() {
                if let Some(found) = callers.get_mut(&*call.id)
                    && found.len() < 2
                    && found.last() != Some(&owner)
                {
                    found.push(owner);
                }
            }
        }
        let spawn = |started: AgentIndex| {
            let id = named(started)?;
            let agent = match is_in_main(id) {
                true => None,
                false => Some(*callers.get(id)?.iter().find(|&&caller| caller != started)?),
            };
            Some(Spawn { agent, tool_use_id: id.to_owned() })
        };
        self.agents.indices().map(spawn).collect()
    }
}

/// Indexes of the calls that may have started an agent.
#[derive(Default)]
struct StartingCalls {
    /// By the agent id in the result or in a progress line.
    by_agent_id: HashMap<String, Spawn>,
    /// By the workflow run id in the result.
    by_workflow_run: HashMap<String, Spawn>,
    /// By the prompt; several calls may have the same one.
    by_prompt: HashMap<String, VecDeque<Spawn>>,
}

/// Returns the workflow run named in the result of a call, by its id or by its transcript folder.
fn started_workflow(session: &Session, call: &crate::ToolCall) -> Option<String> {
    let at = call.results.first()?;
    let result: WorkflowResult<'_> = at.record(session)?.of()?;
    let folder = || {
        let dir = result.transcript_dir()?;
        dir.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().map(str::to_owned)
    };
    result.run_id().map(Into::into).or_else(folder)
}

/// Returns the id of the agent named in the result of a call.
fn started_agent(session: &Session, call: &crate::ToolCall) -> Option<String> {
    let at = call.results.first()?;
    let result: AgentResult<'_> = at.record(session)?.of()?;
    result.agent_id().map(Into::into)
}

/// Returns pairs of agent id and call id from the progress lines of a session.
fn progress_links(session: &Session) -> impl Iterator<Item = (String, String)> {
    agent_progress(session, 0).filter_map(|(_, progress, body)| {
        Some((body.agent_id?.into_owned(), progress.parent_tool_use_id()?.into_owned()))
    })
}

/// Returns the lines that report the progress of an agent.
fn agent_progress(
    session: &Session,
    from: usize,
) -> impl Iterator<Item = (EntryIndex, Progress<'_>, AgentProgress<'_>)> {
    let entries = session.entries().enumerated().skip(from);
    entries.filter(|(_, entry)| entry.kind() == Kind::Progress).filter_map(|(i, entry)| {
        let progress: Progress<'_> = entry.lens()?;
        Some((i, progress, progress.data()?.agent_progress()?))
    })
}

impl Session {
    /// Returns whether this is the log of a sub-agent: it has a conversation, and every line in it is a
    /// sidechain.
    pub fn is_agent_log(&self) -> bool {
        let mut in_tree = self.entries().indices().filter(|&idx| self.in_tree(idx)).peekable();
        in_tree.peek().is_some() && in_tree.all(|idx| self.is_sidechain(idx))
    }

    /// Returns the lines of each sub-agent that ran inside the log of the session (1.0.x): the root of a
    /// sidechain and its descendants.
    pub fn inline_agents(&self) -> Vec<Vec<EntryIndex>> {
        let mut agents: Vec<Vec<EntryIndex>> = Vec::new();
        // The sidechain is then the conversation of the agent itself.
        if self.is_agent_log() {
            return agents;
        }
        // By line: the agent of the line or of the nearest line above that has one.
        let mut agent_of: HashMap<EntryIndex, Option<usize>> = HashMap::default();
        for idx in self.entries().indices().filter(|&idx| self.in_tree(idx) && self.is_sidechain(idx)) {
            let mut above = None;
            let mut searched = Vec::new();
            for line in self.ancestors(idx).skip(1) {
                if let Some(&known) = agent_of.get(&line) {
                    above = known;
                    break;
                }
                searched.push(line);
            }
            agent_of.extend(searched.into_iter().map(|line| (line, above)));
            let agent = above.unwrap_or_else(|| {
                agents.push(Vec::new());
                agents.len() - 1
            });
            agent_of.insert(idx, Some(agent));
            agents[agent].push(idx);
        }
        agents
    }
}

fn inline_agents(main: &Session) -> Vec<Subagent> {
    let agent = |lines: Vec<EntryIndex>| {
        let mut agent = Subagent::bare(main.entries()[lines[0]].uuid().unwrap_or_default().into_owned());
        for idx in lines {
            agent.session.push(main.entries()[idx].clone(), Vec::new());
        }
        agent
    };
    main.inline_agents().into_iter().map(agent).collect()
}

/// Agents found in the log of a session, and the state needed to continue the search.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedAgents {
    agents: IndexVec<AgentIndex, Subagent>,
    /// The call that each agent ran for, by agent id, from the progress lines of the session.
    links: HashMap<String, String>,
    /// The position of each agent among those without a log file. `None` if it has a log file or is a
    /// sidechain.
    positions: HashMap<String, Option<usize>>,
    /// The number of entries of the session that were searched.
    n_searched: usize,
    /// Whether the log contains sidechains.
    has_sidechains: bool,
}

impl EmbeddedAgents {
    /// Finds sidechains, and agents without a log file that progress lines repeat.
    pub fn find(main: &Session, logged: &[Subagent]) -> Self {
        let mut agents = IndexVec::from(inline_agents(main));
        let has_sides = main.entries().indices().any(|idx| main.in_tree(idx) && main.is_sidechain(idx));
        let mut inside = Self { has_sidechains: has_sides, ..Self::default() };
        for agent in logged.iter().chain(&agents) {
            inside.positions.insert(agent.id.clone(), None);
        }
        inside.search_progress(main, &mut agents, 0);
        Self { agents, ..inside }
    }

    /// Searches the new progress lines and appends their agents to `agents`.
    ///
    /// The first `before` agents have log files. Positions are relative to the end of these.
    fn search_progress(
        &mut self,
        main: &Session,
        agents: &mut IndexVec<AgentIndex, Subagent>,
        before: usize,
    ) {
        for (idx, progress, body) in agent_progress(main, self.n_searched) {
            let Some(id) = body.agent_id else { continue };
            if !self.links.contains_key(&*id)
                && let Some(tool_use_id) = progress.parent_tool_use_id()
            {
                self.links.insert(id.clone().into_owned(), tool_use_id.into_owned());
            }
            // For an agent with a log, the progress lines are copies.
            let known = self.positions.get(&*id);
            let Some(message) = body.message.filter(|_| known != Some(&None)) else { continue };
            let place = known.copied().flatten().unwrap_or_else(|| {
                agents.push(Subagent::bare(id.clone().into_owned()));
                let place = agents.len() - 1 - before;
                self.positions.insert(id.into_owned(), Some(place));
                place
            });
            let (entry, _) = main.entries()[idx].parse_nested(message);
            let session = &mut agents[AgentIndex::from_position(before + place)].session;
            session.push(entry, Vec::new());
            // The repeated messages have no parents. Each continues the previous one.
            if let Some(last) = session.entries().last_index() {
                session.link_to_previous_line(last);
            }
        }
        self.n_searched = main.entries().len();
    }
}

impl Subagent {
    /// Returns an agent with an id and an empty log.
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

/// Returns the prompt that an agent was started with.
fn first_prompt(session: &Session) -> Option<String> {
    let entry = session.entries().iter().find(|entry| entry.kind() == Kind::User)?;
    Some(entry.message()?.content()?.text().into_owned())
}
