//! Spending: what the calls of a session cost, and where they stand.

use rustc_hash::FxHashMap;
use threadline_session::{Agent, Family, Session};
use threadline_usage::{Book, Ledger, Scan, Source, Totals, Wants};

/// What the calls of a session and its sub-agents cost, each counted once.
///
/// The figures are those of `usage`, made by the same ledger. A session is looked at by itself: what a fork copied
/// from another session is in its log, and so is counted.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    /// By log (the session's own is the first, those of agents follow) and line.
    lines: FxHashMap<(usize, u64), Totals>,
    total: Totals,
}

impl Spending {
    /// Adds up what the entries of a family tell of.
    pub fn of(family: &Family, book: &Book) -> Self {
        Self::of_logs(&family.main, family.logged(), book)
    }

    /// The same of a session and the sub-agents that have logs, before they are a family.
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

    /// What all of it cost.
    pub fn total(&self) -> &Totals {
        &self.total
    }

    /// What the calls cost whose first line this is, in the log of an agent or of the session itself.
    pub(crate) fn on(&self, family: &Family, agent: Option<usize>, line_no: u64) -> Option<&Totals> {
        self.at(Self::log(family, agent), line_no)
    }

    /// The log that the lines of an agent, or of the session itself, stand in.
    pub fn log(family: &Family, agent: Option<usize>) -> usize {
        agent.filter(|agent| family.has_log(*agent)).map_or(0, |agent| agent + 1)
    }

    /// What the calls cost whose first line this is.
    pub(crate) fn at(&self, log: usize, line_no: u64) -> Option<&Totals> {
        self.lines.get(&(log, line_no))
    }
}
