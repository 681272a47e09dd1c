//! Real sessions: the totals of their spans equal those of `usage`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use threadline_entry::{AgentKind, LineReader};
use threadline_store::SessionFile;
use threadline_testkit::shared_logs;
use threadline_trace::{Exporter, SpanCollector, TraceSpan};
use threadline_usage::{CallLedger, LogSource, Money, PriceBook, ScanOptions, TokenCounts, UsageScan};

use crate::render::options;

/// Returns the real sessions; in a debug build only small ones.
pub(crate) fn sessions() -> Vec<SessionFile> {
    let most = if cfg!(debug_assertions) { 600_000 } else { u64::MAX };
    let is_main = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !name.starts_with("agent-") && name != "journal.jsonl"
    };
    let logs = shared_logs().into_iter().filter(is_main);
    logs.filter(|path| std::fs::metadata(path).unwrap().len() <= most).map(SessionFile::at).collect()
}

/// Returns all spans of a session that has ended.
pub(crate) fn spans_of(file: &SessionFile, book: &PriceBook) -> Vec<TraceSpan> {
    let collector = SpanCollector::default();
    let exporter = Exporter {
        options: options(book),
        receiver: &collector,
        states: None,
        use_spool: false,
        tries: 1,
        until: None,
        now: 0,
    };
    exporter.session(file, file.agents().found, true).unwrap();
    collector.take()
}

fn scan(path: &Path, source: LogSource) -> threadline_usage::ScannedLog {
    let mut scan = UsageScan::new(source, ScanOptions::default());
    let mut lines = LineReader::new(std::fs::File::open(path).unwrap());
    while let Some(block) = lines.next_block().unwrap() {
        scan.block(&block);
    }
    scan.finish()
}

/// Returns calls, tokens and cost as counted by `usage`.
fn counted(file: &SessionFile, book: &PriceBook) -> (usize, TokenCounts, Money) {
    let mut ledger = CallLedger::default();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    ledger.add(scan(&file.path, LogSource::session(&name(&file.path), &file.id)));
    for agent in file.agents().found {
        let source = LogSource::session(&name(&agent.path), &file.id)
            .agent(&agent.id, AgentKind::of(&agent.id, agent.run.is_some()));
        ledger.add(scan(&agent.path, source));
    }
    let calls = ledger.finish();
    let mut sum = TokenCounts::default();
    let mut cost = Money::ZERO;
    for call in calls.iter() {
        add(&mut sum, call.tokens);
        cost += book.cost(&call).unwrap_or_default();
    }
    (calls.len(), sum, cost)
}

fn add(sum: &mut TokenCounts, more: TokenCounts) {
    sum.input += more.input;
    sum.output += more.output;
    sum.cache_read += more.cache_read;
    sum.cache_write_5m += more.cache_write_5m;
    sum.cache_write_1h += more.cache_write_1h;
}

/// Returns how the calls, tokens and cost of a session's spans differ from those of `usage`, if they do.
fn difference_to_usage(file: &SessionFile, book: &PriceBook) -> Option<String> {
    let mut spans: BTreeMap<_, TraceSpan> = BTreeMap::new();
    for span in spans_of(file, book) {
        spans.insert((span.trace, span.id), span);
    }
    let mut sum = TokenCounts::default();
    let mut cost = Money::ZERO;
    let mut calls = BTreeSet::new();
    for span in spans.values() {
        let Some((tokens, money)) = span.usage else { continue };
        add(&mut sum, tokens);
        cost += money.unwrap_or_default();
        // A reply that continues after the next prompt has two spans.
        calls.insert(span.text("gen_ai.response.id").map_or_else(|| span.id.to_string(), str::to_owned));
    }
    let traced = (calls.len(), sum, cost);
    let usage = counted(file, book);
    (traced != usage).then(|| format!("{}: {traced:?}, but usage has {usage:?}", file.path.display()))
}

#[test]
fn tokens_and_cost_of_real_sessions_match_usage() {
    let book = PriceBook::embedded();
    let wrong: Vec<String> = sessions().iter().filter_map(|file| difference_to_usage(file, &book)).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_log_with_only_a_sidechain_matches_usage() {
    let file = SessionFile::at(threadline_testkit::corpus().join("only-sidechain.jsonl"));
    let book = PriceBook::embedded();
    assert_ne!(counted(&file, &book).0, 0);
    assert_eq!(difference_to_usage(&file, &book), None);
}

#[test]
fn the_spans_of_real_sessions_are_trees() {
    let book = PriceBook::embedded();
    for file in sessions() {
        let spans = spans_of(&file, &book);
        let ids: BTreeSet<_> = spans.iter().map(|span| (span.trace, span.id)).collect();
        assert_eq!(ids.len(), spans.len(), "{}", file.path.display());
        for span in &spans {
            let parent = span.parent.map(|parent| (span.trace, parent));
            assert!(
                parent.is_none_or(|parent| ids.contains(&parent)),
                "{} {}",
                file.path.display(),
                span.name
            );
            assert!(span.start <= span.end, "{} {}", file.path.display(), span.name);
        }
    }
}
