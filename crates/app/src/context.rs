//! The context window of a session or of one of its sub-agents, call by call.

use threadline_session::AgentIndex;
use threadline_view::{AgentContext, ContextLedger};

use crate::error::AppError;
use crate::load::OpenSession;

/// The context window of a session or of a sub-agent.
#[derive(Debug)]
pub struct SessionContext {
    /// The sub-agent; `None` for the session itself.
    pub agent: Option<AgentIndex>,
    /// The window of each model call.
    pub ledger: ContextLedger,
    /// The windows of the session's sub-agents, in short; empty for a sub-agent.
    pub agents: Vec<AgentContext>,
}

impl OpenSession {
    /// Returns the context window of the session, or that of the sub-agent with this id or unique prefix.
    /// # Errors
    ///
    /// If no sub-agent matches, or several.
    pub fn context(&self, agent: Option<&str>) -> Result<SessionContext, AppError> {
        let agent = agent.map(|id| self.find_agent(id)).transpose()?;
        let agents = match agent {
            Some(_) => Vec::new(),
            None => AgentContext::all(&self.family, self.spending.as_deref()),
        };
        let ledger = ContextLedger::of(self.family.session(agent));
        Ok(SessionContext { agent, ledger, agents })
    }

    /// Returns the sub-agent with this id or unique prefix.
    fn find_agent(&self, id: &str) -> Result<AgentIndex, AppError> {
        let agents = self.family.agents.enumerated();
        let found: Vec<_> = agents.filter(|(_, agent)| agent.id.starts_with(id)).collect();
        let exact = found.iter().find(|(_, agent)| agent.id == id);
        match (exact, &found[..]) {
            (Some((agent, _)), _) | (None, [(agent, _)]) => Ok(*agent),
            (None, []) => Err(AppError::NoAgent { id: id.to_owned() }),
            (None, found) => Err(AppError::AmbiguousAgent {
                id: id.to_owned(),
                found: found.iter().map(|(_, agent)| agent.id.clone()).collect(),
            }),
        }
    }
}
