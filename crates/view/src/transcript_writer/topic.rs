//! The topics of calls whose input contains only an id: the task or the agent with this id.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use rustc_hash::FxHashMap;
use threadline_entry::lens::{AgentResult, TaskResult};
use threadline_session::{AgentIndex, CallIndex, Session, SessionFamily, ToolCall};

use super::TranscriptWriter;
use crate::card::starts_agents;

/// The maximum length in bytes of a name that very many calls or sub-agents may have.
const MAX_SHARED_NAME: usize = 256;

/// Finds tasks and agents by their ids.
#[derive(Default)]
pub(super) struct TopicLookup {
    /// The calls of the main session, for `None`, and of each agent.
    calls: RefCell<FxHashMap<Option<AgentIndex>, CallsById>>,
    agents: OnceCell<FxHashMap<Box<str>, AgentIndex>>,
}

/// The calls of a session that created tasks and started agents.
struct CallsById {
    /// The calls that created a task with this id, in order.
    tasks: FxHashMap<Box<str>, Vec<CallIndex>>,
    /// The first call that started an agent with this id.
    agents: FxHashMap<Box<str>, CallIndex>,
}

impl CallsById {
    fn of(session: &Session) -> Self {
        let mut found = Self { tasks: FxHashMap::default(), agents: FxHashMap::default() };
        for (at, call) in session.tool_calls().enumerated() {
            let data = || session.entries()[call.results.first()?.entry_idx].tool_use_result();
            if call.name == "TaskCreate" {
                let id = || data()?.of::<TaskResult<'_>>()?.task()?.id();
                if let Some(id) = id() {
                    found.tasks.entry(id.into()).or_default().push(at);
                }
            } else if starts_agents(&call.name) {
                let id = || data()?.of::<AgentResult<'_>>()?.agent_id();
                if let Some(id) = id() {
                    found.agents.entry(id.into()).or_insert(at);
                }
            }
        }
        found
    }
}

impl TranscriptWriter<'_> {
    /// Returns the topic of a call whose input contains only an id: the task that it updates, or the agent
    /// that it writes to.
    pub(crate) fn topic(&self, call: &ToolCall) -> Option<String> {
        let input = |key: &str| call.block(self.session())?.input()?.get(key)?.as_str();
        match &*call.name {
            "TaskUpdate" => self.task_name(call, &input("taskId")?),
            "SendMessage" => self.agent_name(&input("to").or_else(|| input("recipient"))?),
            _ => None,
        }
    }

    /// Returns the number and name of a task, from the last preceding call that created it.
    fn task_name(&self, call: &ToolCall, id: &str) -> Option<String> {
        let session = self.session();
        let calls = session.tool_calls();
        let created = self.with_calls(|known| {
            let created = known.tasks.get(id)?;
            let before = created.partition_point(|&at| calls[at].entry_idx < call.entry_idx);
            created[..before].last().copied()
        })?;
        let result = session.entries()[calls[created].results.first()?.entry_idx].tool_use_result()?;
        let subject = result.of::<TaskResult<'_>>()?.task()?.subject()?;
        Some(format!("#{} {}", limited(id), limited(&subject)))
    }

    /// Returns the description of an agent: its own, or that of the call that started it.
    fn agent_name(&self, id: &str) -> Option<String> {
        let family = self.builder.family;
        let described = |text: &str| Some(limited(text).into_owned()).filter(|text| !text.is_empty());
        let agent = self.state.topics.agents.get_or_init(|| agents_by_id(family)).get(id);
        let own = agent.and_then(|&agent| described(family.agents[agent].description.as_deref()?));
        own.or_else(|| {
            let session = self.session();
            let started_by = self.with_calls(|known| known.agents.get(id).copied())?;
            let input = session.tool_calls()[started_by].block(session)?.input()?;
            described(&input.get("description")?.as_str()?)
        })
    }

    /// Calls `lookup` with the calls of the session, which are found when they are needed first.
    fn with_calls<R>(&self, lookup: impl FnOnce(&CallsById) -> R) -> R {
        let mut known = self.state.topics.calls.borrow_mut();
        lookup(known.entry(self.agent).or_insert_with(|| CallsById::of(self.session())))
    }
}

/// Returns the first agent with each id.
fn agents_by_id(family: &SessionFamily) -> FxHashMap<Box<str>, AgentIndex> {
    // The last pair with an id counts.
    let agents: Vec<_> =
        family.agents.enumerated().map(|(at, agent)| (agent.id.as_str().into(), at)).collect();
    agents.into_iter().rev().collect()
}

/// Returns a name, or its beginning if it is very long.
pub(super) fn limited(text: &str) -> Cow<'_, str> {
    match text.len() > MAX_SHARED_NAME {
        true => format!("{}…", &text[..text.floor_char_boundary(MAX_SHARED_NAME)]).into(),
        false => text.into(),
    }
}
