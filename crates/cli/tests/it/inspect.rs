//! `inspect`, checked against an independent count that parses each line with serde_json.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::run::threadline;

type Counts = BTreeMap<String, u64>;

/// A naive count of everything that `inspect` counts.
#[derive(Default)]
struct NaiveCount {
    files: u64,
    bytes: u64,
    lines: u64,
    bad_lines: u64,
    maps: BTreeMap<&'static str, Counts>,
    tool_results: u64,
    unanswered_calls: u64,
    orphan_results: u64,
    compactions: u64,
}

impl NaiveCount {
    fn add(&mut self, map: &'static str, name: &Value) {
        let name = match name {
            Value::Null if map == "stop_reasons" => "null",
            Value::String(name) => name,
            _ => "(none)",
        };
        *self.maps.entry(map).or_default().entry(name.to_owned()).or_default() += 1;
    }

    fn file(&mut self, path: &Path) {
        let bytes = std::fs::read(path).unwrap();
        self.files += 1;
        self.bytes += bytes.len() as u64;
        let (mut calls, mut results) = (Vec::new(), Vec::new());
        for line in bytes.split(|&byte| byte == b'\n') {
            let text = String::from_utf8_lossy(line);
            let text = text.trim_start_matches('\u{feff}').trim();
            if text.is_empty() {
                continue;
            }
            self.lines += 1;
            // serde_json refuses lone surrogates; replacing the escape does not change the count.
            let whole =
                serde_json::from_str(text).or_else(|_| serde_json::from_str(&text.replace("\\ud", "\\uf")));
            match whole {
                Ok(entry @ Value::Object(_)) => self.entry(&entry, &mut calls, &mut results),
                _ => self.bad_lines += 1,
            }
        }
        calls.sort();
        calls.dedup();
        self.unanswered_calls += calls.iter().filter(|id| !results.contains(id)).count() as u64;
        self.orphan_results += results.iter().filter(|id| !calls.contains(id)).count() as u64;
    }

    fn entry(&mut self, entry: &Value, calls: &mut Vec<String>, results: &mut Vec<String>) {
        let kind = entry["type"].as_str();
        self.add("types", &entry["type"]);
        if entry["version"].is_string() {
            self.add("versions", &entry["version"]);
        }
        match kind {
            Some("system") => {
                self.add("system_subtypes", &entry["subtype"]);
                self.compactions += u64::from(entry["subtype"] == "compact_boundary");
            }
            Some("progress") => self.add("progress_types", &entry["data"]["type"]),
            Some("attachment") => self.add("attachment_types", &entry["attachment"]["type"]),
            _ => {}
        }
        if !matches!(kind, Some("user" | "assistant")) || !entry["message"].is_object() {
            return;
        }
        if kind == Some("assistant") {
            self.add("stop_reasons", &entry["message"]["stop_reason"]);
            if entry["message"]["model"].is_string() {
                self.add("models", &entry["message"]["model"]);
            }
        }
        for block in
            entry["message"]["content"].as_array().into_iter().flatten().filter(|block| block.is_object())
        {
            self.add("block_types", &block["type"]);
            let id = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            if block["type"] == "tool_use" && kind == Some("assistant") {
                calls.push(id("id"));
            }
            if block["type"] == "tool_result" {
                self.tool_results += 1;
                results.push(id("tool_use_id"));
            }
        }
    }

    fn json(&self) -> Value {
        let mut object = json!({
            "files": self.files, "bytes": self.bytes, "lines": self.lines, "bad_lines": self.bad_lines,
            "tool_results": self.tool_results,
            "unanswered_calls": self.unanswered_calls, "orphan_results": self.orphan_results,
            "compactions": self.compactions,
        });
        let maps = [
            "types",
            "system_subtypes",
            "progress_types",
            "attachment_types",
            "block_types",
            "stop_reasons",
            "models",
            "versions",
        ];
        for map in maps {
            object[map] = json!(self.maps.get(map).cloned().unwrap_or_default());
        }
        object
    }
}

fn logs_below(dir: &Path) -> Vec<PathBuf> {
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logs.extend(logs_below(&path));
        } else if path.extension().is_some_and(|ext| ext == "jsonl")
            && path.file_name().unwrap() != "journal.jsonl"
        {
            logs.push(path);
        }
    }
    logs
}

/// Asserts that every figure of the naive count equals that of `inspect`.
fn assert_counts_agree(what: &Path) {
    let mut count = NaiveCount::default();
    let logs = if what.is_dir() { logs_below(what) } else { vec![what.to_owned()] };
    for log in &logs {
        count.file(log);
    }
    let run = threadline(["inspect".as_ref(), what.as_os_str(), "--json".as_ref()]);
    assert_eq!(run.code, 0, "{run}");
    let ours = run.json();
    for (key, value) in count.json().as_object().unwrap() {
        assert_eq!(&ours[key], value, "{key} of {}", what.display());
    }
}

#[test]
fn demo_counts_agree_with_a_naive_count() {
    assert_counts_agree(&threadline_testkit::demo().join("projects"));
}

#[test]
fn corpus_counts_agree_with_a_naive_count() {
    for log in logs_below(&threadline_testkit::corpus()) {
        assert_counts_agree(&log);
    }
}

#[test]
fn counts_of_real_logs_agree_with_a_naive_count() {
    let Some(shared) = threadline_testkit::shared() else { return };
    assert_counts_agree(&shared.join("corpus"));
}

#[test]
fn unknown_types_and_keys_are_listed_with_their_versions() {
    let home = threadline_testkit::TestHome::new();
    home.session(
        "new",
        r#"
u1        user   "hi" version=9.9.1 +{"mood":"good"}
a1 <- u1  reply  m1 {"type":"hologram","x":1} usage={"dream_tokens":3} version=9.9.2
s1 <- a1  system nap version=9.9.2
entry telepathy {"a":1}
"#,
    );
    let unknown = &crate::run::at_home(&home, &["inspect", "last", "--json"]).json()["unknown"];
    let found = |group: &str| -> Vec<String> {
        let group = unknown[group].as_object().unwrap();
        group
            .iter()
            .map(|(name, drift)| format!("{name} ×{} {}", drift["count"], drift["versions"]))
            .collect()
    };
    assert_eq!(
        found("types"),
        ["block/hologram ×1 [\"9.9.2\"]", "system/nap ×1 [\"9.9.2\"]", "telepathy ×1 [\"9.9.2\"]"]
    );
    assert_eq!(
        found("keys"),
        [
            "assistant.message.content.hologram ×1 [\"9.9.2\"]",
            "assistant.message.usage.dream_tokens ×1 [\"9.9.2\"]",
            "user.mood ×1 [\"9.9.1\"]"
        ]
    );
}

#[test]
fn tables_have_one_row_per_session() {
    let run = threadline(["inspect".as_ref(), threadline_testkit::demo().as_os_str()]);
    assert_eq!(run.code, 0);
    for heading in ["session", "unanswered", "Content blocks", "Stop reasons", "Unknown types"] {
        assert!(run.out.contains(heading), "{heading}: {run}");
    }
    assert!(run.out.contains("a4d5d01a-99d6-4326-8497-3fed5e693dcc"), "{run}");
}
