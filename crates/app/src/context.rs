//! What filled the context window of a session or of one of its sub-agents.

use threadline_session::Agent;
use threadline_view::{AgentContext, ContextLedger};

use crate::error::AppError;
use crate::load::LoadedSession;

/// The context window of a session or of a sub-agent.
#[derive(Debug)]
pub struct SessionContext<'a> {
    /// The sub-agent; `None` for the session itself.
    pub agent: Option<&'a Agent>,
    /// The window of each model call.
    pub ledger: ContextLedger,
    /// The windows of the session's sub-agents, in short; empty for a sub-agent.
    pub agents: Vec<AgentContext>,
}

impl LoadedSession {
    /// Returns the context window of the session, or that of the sub-agent with this id or unique prefix.
    ///
    /// # Errors
    ///
    /// If no sub-agent matches, or several.
    pub fn context(&self, agent: Option<&str>) -> Result<SessionContext<'_>, AppError> {
        let Some(id) = agent else {
            let ledger = ContextLedger::of(&self.family.main);
            let agents = AgentContext::all(&self.family, self.spending.as_ref());
            return Ok(SessionContext { agent: None, ledger, agents });
        };
        let agent = self.find_agent(id)?;
        let ledger = ContextLedger::of(&agent.session);
        Ok(SessionContext { agent: Some(agent), ledger, agents: Vec::new() })
    }

    /// Returns the sub-agent with this id or unique prefix.
    fn find_agent(&self, id: &str) -> Result<&Agent, AppError> {
        let found: Vec<&Agent> = self.family.agents.iter().filter(|agent| agent.id.starts_with(id)).collect();
        let exact = found.iter().find(|agent| agent.id == id);
        match (exact, &found[..]) {
            (Some(agent), _) | (None, [agent]) => Ok(agent),
            (None, []) => Err(AppError::NoAgent { id: id.to_owned() }),
            (None, found) => Err(AppError::AmbiguousAgent {
                id: id.to_owned(),
                found: found.iter().map(|agent| agent.id.clone()).collect(),
            }),
        }
    }
}
