//! Spending: the cost of a session's calls, by line.

use rustc_hash::FxHashMap;
use threadline_session::{Agent, Family, Session};
use threadline_usage::{Book, Ledger, Scan, Source, Totals, Wants};

/// The cost of the calls of a session and its sub-agents, each call counted once.
///
/// The figures are computed by the ledger of `usage`. The session is considered in isolation: calls that a
/// fork copied from another session are in its log and are counted.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    /// By log index (0 for the session itself, then the agents in order) and line number.
    lines: FxHashMap<(usize, u64), Totals>,
    total: Totals,
}

impl Spending {
    /// Adds up the calls of a family.
    pub fn of(family: &Family, book: &Book) -> Self {
        Self::of_logs(&family.main, family.logged(), book)
    }

    /// Adds up the calls of a session and of its sub-agents with logs, before they are joined to a family.
    pub fn of_logs(main: &Session, agents: &[Agent], book: &Book) -> Self {
        let id = main.id().unwrap_or_default();
        let source = Source::session("", &id);
        let mut ledger = Ledger::default();
        let logs = agents.iter().map(|agent| (source.clone().agent(&agent.id, agent.kind), &agent.session));
        for (source, session) in std::iter::once((source.clone(), main)).chain(logs) {
            let mut scan = Scan::new(source, Wants { records: true, ..Wants::default() });
            for entry in session.entries() {
                scan.entry(entry);
            }
            ledger.absorb(scan.finish());
        }
        let calls = ledger.settle();
        let mut spending = Self::default();
        for (log, line_no, totals) in calls.placed(book) {
            spending.total += &totals;
            *spending.lines.entry((log, line_no)).or_default() += &totals;
        }
        spending
    }

    /// Returns the total cost.
    pub fn total(&self) -> &Totals {
        &self.total
    }

    /// Returns the cost of the calls that begin on a line of the session or of a sub-agent.
    pub(crate) fn on(&self, family: &Family, agent: Option<usize>, line_no: u64) -> Option<&Totals> {
        self.at(Self::log(family, agent), line_no)
    }

    /// Returns the index of the log that contains the lines of a sub-agent, or of the session itself.
    pub fn log(family: &Family, agent: Option<usize>) -> usize {
        agent.filter(|agent| family.has_log(*agent)).map_or(0, |agent| agent + 1)
    }

    /// Returns the cost of the calls that begin on a line of a log.
    pub(crate) fn at(&self, log: usize, line_no: u64) -> Option<&Totals> {
        self.lines.get(&(log, line_no))
    }
}
