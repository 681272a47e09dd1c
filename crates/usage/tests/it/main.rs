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
use threadline_entry::{AgentKind, ChunkReader, LineReader};
use threadline_testkit::log_of;
use threadline_usage::{
    CallGroups, CallLedger, GroupBy, LogSource, ModelCalls, PriceBook, ScanCache, ScanOptions, ScannedLog,
    UsageScan, UsageTotals,
};

/// All options.
const ALL: ScanOptions =
    ScanOptions { tools: true, records: true, lines: true, limits: true, accounts: true };

/// Scans one log, with the cache of an earlier scan.
fn scan(source: LogSource, bytes: &[u8], wants: ScanOptions, cache: ScanCache) -> (ScannedLog, ScanCache) {
    let mut scan = UsageScan::with_cache(source, wants, cache);
    let mut lines = LineReader::new(bytes);
    while let Some(block) = lines.next_block().unwrap() {
        scan.block(&block);
    }
    scan.finish_with_cache()
}

/// Asserts that a log has the same calls on the same lines if its entries are scanned.
fn assert_same_entries(source: &LogSource, bytes: &[u8]) {
    let lines = ScanOptions { lines: true, ..ScanOptions::default() };
    let mut entries = UsageScan::new(source.clone(), lines);
    entries.swap_cache(&mut ScanCache::default());
    let mut chunks = ChunkReader::new(bytes);
    while let Some(chunk) = chunks.next().unwrap() {
        chunk.parse(|entry, _| entries.entry(&entry));
    }
    let book = PriceBook::embedded();
    let located = |scanned: ScannedLog| -> Vec<(usize, u64, UsageTotals)> {
        let mut ledger = CallLedger::default();
        ledger.add(scanned);
        ledger.finish().located_totals(&book).collect()
    };
    let (blocks, _) = scan(source.clone(), bytes, lines, ScanCache::default());
    assert_eq!(located(entries.finish()), located(blocks));
}

/// Logs in memory: the source and bytes of each.
#[derive(Clone, Default)]
struct TestLogs(Vec<(LogSource, Vec<u8>)>);

impl TestLogs {
    /// Adds a session in testkit notation; its project is `/home/ada/loom`.
    fn session(self, id: &str, notation: &str) -> Self {
        self.bytes(id, log_of(id, notation))
    }

    /// Adds a session with exactly these bytes.
    fn bytes(mut self, id: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.0.push((LogSource::session(&format!("{id}.jsonl"), id), bytes.into()));
        self
    }

    /// Adds a sub-agent of a session, in testkit notation.
    fn agent(mut self, session: &str, agent: &str, notation: &str) -> Self {
        let kind = AgentKind::of(agent, false);
        let source =
            LogSource::session(&format!("{session}/agent-{agent}.jsonl"), session).agent(agent, kind);
        let notation: String =
            notation.lines().map(|line| format!("{line} sidechain agent={agent}\n")).collect();
        let notation = notation.replace("\n sidechain", "\n#").trim_start_matches(" sidechain").to_owned();
        self.0.push((source, log_of(session, &notation)));
        self
    }

    fn calls(&self) -> ModelCalls {
        self.calls_with(ALL)
    }

    fn calls_with(&self, wants: ScanOptions) -> ModelCalls {
        let mut ledger = CallLedger::default();
        let mut cache = ScanCache::default();
        for (source, bytes) in &self.0 {
            let scanned;
            (scanned, cache) = scan(source.clone(), bytes, wants, cache);
            ledger.add(scanned);
        }
        ledger.finish()
    }

    /// Scans the logs three times: with all options, for calls and tools, and for the calls only. Asserts that the entries of each log have the same calls.
    fn read(&self) -> LogScans {
        self.0.iter().for_each(|(source, bytes)| assert_same_entries(source, bytes));
        let tools = ScanOptions { tools: true, ..ScanOptions::default() };
        LogScans {
            all: self.calls(),
            tools: self.calls_with(tools),
            few: self.calls_with(ScanOptions::default()),
        }
    }

    fn groups(&self, by: GroupBy) -> CallGroups {
        self.read().groups(by)
    }

    fn total(&self) -> UsageTotals {
        self.groups(GroupBy::Day).total
    }

    /// Formats each group as `key: calls, input, output, cost`.
    fn formatted_groups(&self, by: GroupBy) -> Vec<String> {
        let groups = self.groups(by).groups;
        groups.iter().map(|group| format!("{}: {}", name(&group.key), figures(&group.totals))).collect()
    }
}

struct LogScans {
    all: ModelCalls,
    tools: ModelCalls,
    few: ModelCalls,
}

impl LogScans {
    /// Returns the groups, after asserting that the scans agree; the shortest one has no tools.
    fn groups(&self, by: GroupBy) -> CallGroups {
        let book = PriceBook::embedded();
        let of = |calls| CallGroups::of(calls, by, &book, &TimeZone::UTC, |_, _| true);
        let groups = of(&self.all);
        assert_eq!(of(&self.tools), groups, "{by:?}");
        if by != GroupBy::Tool {
            assert_eq!(of(&self.few), groups, "{by:?}");
        }
        groups
    }
}

fn name(key: &threadline_usage::CallGroupKey) -> String {
    use threadline_usage::CallGroupKey as K;
    match key {
        K::Day(name) | K::Week(name) | K::Month(name) | K::Project(name) | K::Model(name) | K::Tool(name) => {
            name.clone()
        }
        K::Session { session, project } => format!("{session} {project}"),
        K::Branch { project, branch } => format!("{project} {branch}"),
    }
}

fn figures(totals: &UsageTotals) -> String {
    let tokens = totals.tokens;
    format!("{} calls, {} in, {} out, ${}", totals.calls, tokens.input, tokens.output, totals.cost)
}
