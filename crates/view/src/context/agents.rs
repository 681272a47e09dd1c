//! The windows of sub-agents, each in one row.

use threadline_session::{AgentIndex, SessionFamily};
use threadline_usage::UsageTotals;

use super::ContextLedger;
use crate::spending::Spending;

/// The windows of a sub-agent in short. A sub-agent has a window of its own.
#[derive(Clone, Debug, Default)]
pub struct AgentContext {
    /// The agent id.
    pub id: String,
    /// The agent type, such as `Explore`.
    pub agent_type: Option<String>,
    /// A short description of the task.
    pub description: Option<String>,
    /// The number of model calls with recorded usage.
    pub n_calls: usize,
    /// The size of its largest window in tokens.
    pub peak: u64,
    /// The number of calls that missed the cache.
    pub n_misses: usize,
    /// The tokens that were in the cache, and were not read from it.
    pub missed: u64,
    /// The cost of its model calls.
    pub spent: UsageTotals,
}

impl AgentContext {
    /// Computes the windows of all sub-agents of a session, largest first.
    pub fn all(family: &SessionFamily, spending: Option<&Spending>) -> Vec<Self> {
        let mut agents: Vec<Self> =
            family.agents.indices().map(|agent| Self::of(family, agent, spending)).collect();
        agents.sort_by_key(|agent| std::cmp::Reverse(agent.peak));
        agents
    }

    fn of(family: &SessionFamily, agent: AgentIndex, spending: Option<&Spending>) -> Self {
        let log = Spending::log_index(family, Some(agent));
        let agent = &family.agents[agent];
        let ledger = ContextLedger::of(&agent.session);
        let misses = || ledger.calls.iter().filter_map(|call| call.miss);
        let mut spent = UsageTotals::default();
        for entry in agent.session.entries() {
            if let Some(totals) = spending.and_then(|spending| spending.at(log, entry.at().line_no)) {
                spent += totals;
            }
        }
        Self {
            id: agent.id.clone(),
            agent_type: agent.agent_type.clone(),
            description: agent.description.clone(),
            n_calls: ledger.calls.len(),
            peak: ledger.largest().map_or(0, |call| call.window()),
            n_misses: misses().count(),
            missed: misses().map(|miss| miss.tokens).sum(),
            spent,
        }
    }
}
