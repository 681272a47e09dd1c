//! Real logs compared with a simple reference count; long lines.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use serde_json::Value;
use threadline_entry::AgentKind;
use threadline_testkit::{shared, shared_logs};
use threadline_usage::{GroupBy, LogSource, Money, PriceBook, RecordVerdict};

use crate::group::{ALL_GROUPINGS, sum};
use crate::{TestLogs, figures};

/// Returns every log below a directory.
pub(crate) fn logs_below(folder: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            logs.extend(logs_below(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            logs.push(path);
        }
    }
    logs.retain(|path| path.file_name().unwrap() != "journal.jsonl");
    logs
}

/// Returns the source of a log, from its file name.
pub(crate) fn source(path: &Path) -> LogSource {
    let stem = path.file_stem().unwrap().to_str().unwrap();
    let name = path.to_str().unwrap();
    match stem.strip_prefix("agent-") {
        Some(id) => {
            LogSource { path: name.to_owned(), ..LogSource::default() }.agent(id, AgentKind::of(id, false))
        }
        None => LogSource::session(name, stem),
    }
}

/// The token counts of a call: input, output, cache read, cache write.
type Counts = [u64; 4];

/// Whether a line is of the conversation itself, is not progress, has a stop reason; its output; its total.
type Rank = (bool, bool, bool, u64, u64);

/// The reference count: parses every line in full and takes the best line of each message.
fn reference_count(logs: &[PathBuf]) -> (u64, Counts) {
    let mut best: HashMap<String, (Rank, Counts)> = HashMap::new();
    for path in logs {
        let is_agent = path.file_name().unwrap().to_str().unwrap().starts_with("agent-");
        let bytes = std::fs::read(path).unwrap();
        for line in bytes.split(|byte| *byte == b'\n') {
            let stream = serde_json::Deserializer::from_slice(line).into_iter::<Value>();
            for value in stream.map_while(Result::ok) {
                let is_progress = value["type"] == "progress";
                let reply = if is_progress { &value["data"]["message"] } else { &value };
                let message = &reply["message"];
                if reply["type"] != "assistant" || !message["usage"].is_object() {
                    continue;
                }
                if message["model"] == "<synthetic>" || reply["isApiErrorMessage"] == true {
                    continue;
                }
                let of = |key: &str| message["usage"][key].as_u64().unwrap_or(0);
                let counts = [
                    "input_tokens",
                    "output_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                ]
                .map(of);
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                let id = text(&message["id"]);
                let uuid = text(&reply["uuid"]);
                let key = match (id.starts_with("msg_"), reply["requestId"].as_str()) {
                    // Without any id, the line itself is the key.
                    _ if id.is_empty() && uuid.is_empty() => value.to_string(),
                    _ if id.is_empty() => uuid,
                    (true, _) => id,
                    (false, Some(request)) => format!("{id} {request}"),
                    (false, None) => format!("{id} {}", text(&value["sessionId"])),
                };
                let is_own = !is_agent && reply["isSidechain"] != true && !is_progress;
                let rank =
                    (is_own, !is_progress, !message["stop_reason"].is_null(), counts[1], counts.iter().sum());
                let entry = best.entry(key).or_insert((rank, counts));
                if rank > entry.0 {
                    *entry = (rank, counts);
                }
            }
        }
    }
    let sum = best.values().fold([0; 4], |sum, (_, counts)| [0, 1, 2, 3].map(|i| sum[i] + counts[i]));
    (best.len() as u64, sum)
}

#[test]
fn real_logs_match_the_reference_count() {
    let logs = shared_logs();
    let logs: Vec<PathBuf> =
        logs.into_iter().filter(|path| path.file_name().unwrap() != "journal.jsonl").collect();
    if logs.is_empty() {
        return;
    }
    let mut home = TestLogs::default();
    for path in &logs {
        home.0.push((source(path), std::fs::read(path).unwrap()));
    }
    let read = home.read();
    let total = read.groups(GroupBy::Day).total;
    let tokens = total.tokens;
    let (calls, counts) = reference_count(&logs);
    assert!(calls > 1000, "{calls}");
    assert_eq!(
        (total.calls, [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write()]),
        (calls, counts)
    );
    let (all, book, zone) = (&read.all, PriceBook::embedded(), TimeZone::UTC);
    for by in ALL_GROUPINGS {
        let groups = read.groups(by);
        assert_eq!(sum(&groups), total, "{by:?}");
        // The counted records of the largest groups match them in number and cost.
        for group in groups.groups.iter().filter(|_| by != GroupBy::Tool).take(3) {
            let marked = all.in_groups(by, &zone, |key| *key == group.key);
            let records = all.explain_marked(&book, Some(&marked), |_, _| true);
            let counted: Vec<_> =
                records.iter().filter(|record| record.verdict == RecordVerdict::Counted).collect();
            assert_eq!(counted.len() as u64, group.totals.calls, "{:?}", group.key);
            assert_eq!(
                counted.iter().filter_map(|record| record.cost).sum::<Money>(),
                group.totals.cost,
                "{:?}",
                group.key
            );
        }
    }
    let mut other = home.clone();
    other.0.reverse();
    // The same logs again, and once more under another path, as if through a symlink.
    let linked = |source: &LogSource| LogSource { path: format!("/link{}", source.path), ..source.clone() };
    other.0.extend(home.0.iter().take(50).cloned());
    other.0.extend(home.0.iter().skip(30).map(|(source, bytes)| (linked(source), bytes.clone())));
    let other = other.read();
    for by in ALL_GROUPINGS {
        assert_eq!(other.groups(by), read.groups(by), "{by:?}");
    }
}

#[test]
fn every_model_of_real_logs_has_a_price() {
    if shared().is_none() {
        return;
    }
    let mut home = TestLogs::default();
    for path in shared_logs() {
        home.0.push((source(&path), std::fs::read(&path).unwrap()));
    }
    let total = home.total();
    // A synthetic log names a model without cache prices.
    let claudes =
        total.unpriced.iter().filter(|name| name.starts_with("claude-") && *name != "claude-3-sonnet");
    assert_eq!(claudes.collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn a_line_of_fifty_megabytes_is_counted() {
    let long = "x".repeat(50 << 20);
    let line = |id: &str, text: &str| {
        format!(
            "{{\"type\":\"assistant\",\"timestamp\":\"2026-01-01T10:00:00Z\",\"message\":{{\"id\":\"{id}\",\"model\":\"claude-opus-5\",\
                 \"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}],\"usage\":{{\"input_tokens\":100}}}}}}\n"
        )
    };
    let bytes = format!("{}{}{}", line("msg_1", "a"), line("msg_2", &long), line("msg_3", "c"));
    let home = TestLogs::default().bytes("s1", bytes);
    assert_eq!(figures(&home.total()), "3 calls, 300 in, 0 out, $0.0015");
    assert_eq!(home.formatted_groups(GroupBy::Day), ["2026-01-01: 3 calls, 300 in, 0 out, $0.0015"]);
}
