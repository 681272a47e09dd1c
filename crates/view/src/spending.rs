//! Spending: the cost of a session's calls, by line.

use std::sync::Arc;

use threadline_session::{AgentIndex, Session, SessionFamily, Subagent};
use threadline_usage::{
    CallLedger, LogSource, PriceBook, ScanCache, ScanOptions, ScannedLog, UsageScan, UsageTotals,
};

/// The cost of the calls of a session and its sub-agents, each call counted once.
///
/// The figures are computed by the ledger of `usage`. The session is considered in isolation: calls that a
/// fork copied from another session are in its log and are counted. [`Spending::set_own`] separates them.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    /// Sorted by log index (0 for the session itself, then the agents in order) and line number.
    lines: Vec<((u32, u32), Arc<UsageTotals>)>,
    total: UsageTotals,
    inherited: Option<InheritedCalls>,
}

/// The calls in the log of a session that another session made. Lists and `usage` count them there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InheritedCalls {
    /// Their figures.
    pub usage: UsageTotals,
    /// The session that made them; `None` if there are several.
    pub from: Option<String>,
}

impl InheritedCalls {
    /// Returns the cost, to be shown after that of the session's own calls.
    pub fn label(&self) -> String {
        let from = self.from.as_deref().map_or("other sessions", |id| id.get(..8).unwrap_or(id));
        format!("+ {} inherited from {from}", self.usage.short_cost())
    }
}

impl Spending {
    /// Sets the figures of the calls that the session made itself, and the session that the others are from.
    pub fn set_own(&mut self, own: &UsageTotals, from: Option<String>) {
        let usage = self.total.minus(own);
        self.inherited = (usage.calls > 0).then_some(InheritedCalls { usage, from });
    }

    /// Returns the calls that another session made.
    pub fn inherited(&self) -> Option<&InheritedCalls> {
        self.inherited.as_ref()
    }

    /// Sets the calls that another session made.
    pub fn set_inherited(&mut self, inherited: Option<InheritedCalls>) {
        self.inherited = inherited;
    }

    /// Returns the cost of the calls that the session made itself.
    pub fn own(&self) -> UsageTotals {
        match &self.inherited {
            Some(inherited) => self.total.minus(&inherited.usage),
            None => self.total.clone(),
        }
    }

    /// Adds up the calls of a family.
    pub fn of(family: &SessionFamily, book: &PriceBook) -> Self {
        Self::of_logs(&family.main, family.agents_with_log(), book)
    }

    /// Adds up the calls of a session and of its sub-agents with logs, before they are joined to a family.
    pub fn of_logs(main: &Session, agents: &[Subagent], book: &PriceBook) -> Self {
        let mut cache = ScanCache::default();
        // All logs share the cache: there may be very many short ones.
        let logs = sources(main, agents).map(|(source, session)| {
            let mut scan = UsageScan::with_cache(source, SCAN_OPTIONS, std::mem::take(&mut cache));
            session.entries().iter().for_each(|entry| scan.entry(entry));
            let (log, used) = scan.finish_with_cache();
            cache = used;
            log
        });
        Self::new(logs, book)
    }

    fn new(logs: impl Iterator<Item = ScannedLog>, book: &PriceBook) -> Self {
        let mut ledger = CallLedger::default();
        logs.for_each(|log| ledger.add(log));
        let calls = ledger.finish();
        let mut spending = Self::default();
        for (log, line_no, totals) in calls.located_totals(book) {
            spending.total += &totals;
            spending.lines.push((key(log, line_no), Arc::new(totals)));
        }
        spending.lines.sort_by_key(|(key, _)| *key);
        spending.lines.dedup_by(|later, first| {
            let is_same = later.0 == first.0;
            if is_same {
                *Arc::make_mut(&mut first.1) += &later.1;
            }
            is_same
        });
        spending.lines.shrink_to_fit();
        spending
    }

    /// Returns the total cost, with inherited calls.
    pub fn total(&self) -> &UsageTotals {
        &self.total
    }

    /// Returns the index of the log that contains the lines of a sub-agent, or of the session itself.
    pub fn log_index(family: &SessionFamily, agent: Option<AgentIndex>) -> usize {
        agent.filter(|agent| family.has_log(*agent)).map_or(0, |agent| agent.position() + 1)
    }

    /// Returns the cost of the calls that begin on a line of a log.
    pub(crate) fn at(&self, log: usize, line_no: u64) -> Option<&Arc<UsageTotals>> {
        let found = self.lines.binary_search_by_key(&key(log, line_no), |(key, _)| *key);
        found.ok().map(|at| &self.lines[at].1)
    }
}

/// Returns the sort key of a line.
fn key(log: usize, line_no: u64) -> (u32, u32) {
    // Neither a number of logs nor of lines reaches this limit.
    (u32::try_from(log).unwrap_or(u32::MAX), u32::try_from(line_no).unwrap_or(u32::MAX))
}

/// Adds up the costs of a session that grows. Each entry is read once; a new total takes time in proportion
/// to the number of model calls.
#[derive(Default)]
pub struct SpendingCounter {
    /// The session's own log first, then those of sub-agents.
    logs: Vec<CountedLog>,
}

/// Calls are kept with their first lines.
const SCAN_OPTIONS: ScanOptions =
    ScanOptions { tools: false, records: false, lines: true, limits: false, accounts: false };

/// Returns the log of a session and those of its sub-agents, with their descriptions.
fn sources<'s>(main: &'s Session, agents: &'s [Subagent]) -> impl Iterator<Item = (LogSource, &'s Session)> {
    let source = LogSource::session("", &main.id().unwrap_or_default());
    let of_agent = {
        let source = source.clone();
        move |agent: &'s Subagent| (source.clone().agent(&agent.id, agent.kind), &agent.session)
    };
    std::iter::once((source, main)).chain(agents.iter().map(of_agent))
}

struct CountedLog {
    scan: UsageScan,
    /// Number of entries that were read.
    n_entries: usize,
}

impl SpendingCounter {
    /// Returns the costs of a session and the sub-agents that have logs.
    ///
    /// These must be those of the call before, with entries or sub-agents added at the end.
    pub fn count(&mut self, main: &Session, agents: &[Subagent], book: &PriceBook) -> Spending {
        self.scan(main, agents);
        Spending::new(self.logs.iter().map(|log| log.scan.snapshot()), book)
    }

    fn scan(&mut self, main: &Session, agents: &[Subagent]) {
        let mut cache = ScanCache::default();
        for (i, (source, session)) in sources(main, agents).enumerate() {
            if i == self.logs.len() {
                self.logs.push(CountedLog { scan: UsageScan::new(source, SCAN_OPTIONS), n_entries: 0 });
            }
            let log = &mut self.logs[i];
            log.scan.swap_cache(&mut cache);
            session.entries().iter().skip(log.n_entries).for_each(|entry| log.scan.entry(entry));
            log.scan.swap_cache(&mut cache);
            log.n_entries = session.entries().len();
        }
    }
}
