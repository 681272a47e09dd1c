//! The topics of calls whose input contains only an id: the task or the agent with this id.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};

use foldhash::HashMap;
use threadline_entry::lens::{AgentResult, TaskResult};
use threadline_session::{AgentIndex, CallIndex, Session, SessionFamily, ToolCall};

use super::TranscriptWriter;
use crate::card::starts_agents;

/// Finds tasks and agents by their ids.
#[derive(Default)]
pub(super) struct TopicLookup {
    /// The calls of the main session, for `None`, and of each agent.
    calls: RefCell<HashMap<Option<AgentIndex>, CallsById>>,
    agents: OnceCell<HashMap<String, AgentIndex>>,
}

/// The names of the tasks and agents of a session.
struct CallsById {
    /// The tasks with this id, in the order of the calls that created them.
    tasks: HashMap<String, Vec<CreatedTask>>,
    /// The description of the first call that started an agent with this id.
    agents: HashMap<String, Option<String>>,
}

struct CreatedTask {
    created_by: CallIndex,
    name: Option<String>,
}

impl CallsById {
    fn of(session: &Session) -> Self {
        let mut found = Self { tasks: HashMap::default(), agents: HashMap::default() };
        for (at, call) in session.tool_calls().enumerated() {
            let data = || session.entries()[call.results.first()?.entry_idx].tool_use_result();
            if call.name == "TaskCreate" {
                let task = || data()?.of::<TaskResult<'_>>()?.task();
                if let Some((id, task)) = task().and_then(|task| Some((task.id()?, task))) {
                    let name = task.subject().map(Cow::into_owned);
                    found
                        .tasks
                        .entry(id.into_owned())
                        .or_default()
                        .push(CreatedTask { created_by: at, name });
                }
            } else if starts_agents(&call.name) {
                let id = || data()?.of::<AgentResult<'_>>()?.agent_id();
                let description = || {
                    let description = call.block(session)?.input()?.get("description")?.as_str()?;
                    described(&description)
                };
                if let Some(id) = id() {
                    found.agents.entry(id.into_owned()).or_insert_with(description);
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
        let calls = self.session().tool_calls();
        self.with_calls(|known| {
            let created = known.tasks.get(id)?;
            let before = created.partition_point(|task| calls[task.created_by].entry_idx < call.entry_idx);
            let name = created[..before].last()?.name.as_deref()?;
            Some(format!("#{id} {name}"))
        })
    }

    /// Returns the description of an agent: its own, or that of the call that started it.
    fn agent_name(&self, id: &str) -> Option<String> {
        let family = self.builder.family;
        let agent = self.state.topics.agents.get_or_init(|| agents_by_id(family)).get(id);
        let own = agent.and_then(|&agent| described(family.agents[agent].description.as_deref()?));
        own.or_else(|| self.with_calls(|known| known.agents.get(id)?.clone()))
    }

    /// Calls `lookup` with the calls of the session, which are found when they are needed first.
    fn with_calls<R>(&self, lookup: impl FnOnce(&CallsById) -> R) -> R {
        let mut known = self.state.topics.calls.borrow_mut();
        lookup(known.entry(self.agent).or_insert_with(|| CallsById::of(self.session())))
    }
}

/// Returns a description; `None` if it is empty.
fn described(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the first agent with each id.
fn agents_by_id(family: &SessionFamily) -> HashMap<String, AgentIndex> {
    // The last pair with an id counts.
    let agents: Vec<_> = family.agents.enumerated().map(|(at, agent)| (agent.id.clone(), at)).collect();
    agents.into_iter().rev().collect()
}
