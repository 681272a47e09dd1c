//! Integration tests: log lines as input, figures as output.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod case;
mod corpus;
mod explain;
mod group;
mod plain;
mod probe;
mod window;

use jiff::tz::TimeZone;
use threadline_entry::{AgentKind, Lines};
use threadline_testkit::log_of;
use threadline_usage::{Book, By, Calls, Groups, Ledger, Scan, Scanned, Source, Totals, Wants, Ways};

/// All options.
const ALL: Wants = Wants { tools: true, records: true, limits: true, accounts: true };

/// Scans one log, with the cache of an earlier scan.
fn scan(source: Source, bytes: &[u8], wants: Wants, ways: Ways) -> (Scanned, Ways) {
    let mut scan = Scan::with_ways(source, wants, ways);
    let mut lines = Lines::new(bytes);
    while let Some(block) = lines.next_block().unwrap() {
        scan.block(&block);
    }
    scan.finish_with_ways()
}

/// Logs in memory: the source and bytes of each.
#[derive(Clone, Default)]
struct Home(Vec<(Source, Vec<u8>)>);

impl Home {
    /// Adds a session in testkit notation; its project is `/home/ada/loom`.
    fn session(self, id: &str, notation: &str) -> Self {
        self.bytes(id, log_of(id, notation))
    }

    /// Adds a session with exactly these bytes.
    fn bytes(mut self, id: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push((Source::session(&format!("{id}.jsonl"), id), bytes.into()));
        self
    }

    /// Adds a sub-agent of a session, in testkit notation.
    fn agent(mut self, session: &str, agent: &str, notation: &str) -> Self {
        let kind = AgentKind::of(agent, false);
        let source = Source::session(&format!("{session}/agent-{agent}.jsonl"), session).agent(agent, kind);
        let notation: String =
            notation.lines().map(|line| format!("{line} sidechain agent={agent}\n")).collect();
        let notation = notation.replace("\n sidechain", "\n#").trim_start_matches(" sidechain").to_owned();
        self.0.push((source, log_of(session, &notation)));
        self
    }

    fn calls(&self) -> Calls {
        self.calls_with(ALL)
    }

    fn calls_with(&self, wants: Wants) -> Calls {
        let mut ledger = Ledger::default();
        let mut ways = Ways::default();
        for (source, bytes) in &self.0 {
            let scanned;
            (scanned, ways) = scan(source.clone(), bytes, wants, ways);
            ledger.absorb(scanned);
        }
        ledger.settle()
    }

    /// Scans the logs twice: with all options, and for the calls only.
    fn read(&self) -> Read {
        Read { all: self.calls(), few: self.calls_with(Wants::default()) }
    }

    fn groups(&self, by: By) -> Groups {
        self.read().groups(by)
    }

    fn total(&self) -> Totals {
        self.groups(By::Day).total
    }

    /// Formats each group as `key: calls, input, output, cost`.
    fn told(&self, by: By) -> Vec<String> {
        let groups = self.groups(by).groups;
        groups.iter().map(|group| format!("{}: {}", name(&group.key), figures(&group.totals))).collect()
    }
}

struct Read {
    all: Calls,
    few: Calls,
}

impl Read {
    /// Returns the groups, after asserting that both scans agree; only the full scan has tools.
    fn groups(&self, by: By) -> Groups {
        let book = Book::embedded();
        let of = |calls| Groups::of(calls, by, &book, &TimeZone::UTC, |_, _| true);
        let groups = of(&self.all);
        if by != By::Tool {
            assert_eq!(of(&self.few), groups, "{by:?}");
        }
        groups
    }
}

fn name(key: &threadline_usage::GroupKey) -> String {
    use threadline_usage::GroupKey as K;
    match key {
        K::Day(name) | K::Week(name) | K::Month(name) | K::Project(name) | K::Model(name) | K::Tool(name) => {
            name.clone()
        }
        K::Session { session, project } => format!("{session} {project}"),
        K::Branch { project, branch } => format!("{project} {branch}"),
    }
}

fn figures(totals: &Totals) -> String {
    let tokens = totals.tokens;
    format!("{} calls, {} in, {} out, ${}", totals.calls, tokens.input, tokens.output, totals.cost)
}
