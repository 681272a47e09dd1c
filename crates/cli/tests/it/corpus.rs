//! Exports every real session available, with its sub-agents and saved tool output, in every format at every
//! detail level.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use serde_json::Value;

use crate::run::{RunOutput, threadline};

/// Maximum number of sessions and maximum log size in bytes. Debug builds are slow, so they read only a few
/// small logs.
const LIMITS: (usize, u64) = if cfg!(debug_assertions) { (8, 60_000) } else { (usize::MAX, u64::MAX) };

const LEVELS: [&str; 5] = ["prompts", "chat", "tools", "full", "raw"];

#[test]
fn every_session_exports_in_every_format_at_every_level() {
    let mut sessions = threadline_testkit::shared_logs();
    sessions.retain(|path| !path.file_name().unwrap().to_string_lossy().starts_with("agent-"));
    sessions.retain(|path| std::fs::metadata(path).unwrap().len() <= LIMITS.1);
    // Samples sessions evenly across projects.
    let step = sessions.len().div_ceil(LIMITS.0).max(1);
    let sessions: Vec<_> = sessions.iter().step_by(step).collect();
    sessions.par_iter().for_each(|path| export_all_formats(path));
}

#[test]
fn results_with_the_tags_of_errors_are_exported_without_them() {
    let home = threadline_testkit::TestHome::new();
    let path = home.session(
        "loom",
        r#"
u1 user "Edit it."
a1 <- u1 reply m1 tool t1 Edit {"file_path":"/p/a"}
r1 <- a1 result t1 "<tool_use_error>File not read.</tool_use_error>\n\n<system-reminder>now</system-reminder>" error
"#,
    );
    export_all_formats(&path);
}

fn export_all_formats(path: &Path) {
    let name = path.to_str().unwrap();
    let run = |args: &[&str]| {
        let run = threadline(args);
        assert!(run.code == 0 && !run.out.is_empty(), "{args:?}: exit {}\n{}", run.code, run.err);
        run
    };
    for level in LEVELS {
        run(&["show", name, "--level", level]);
        assert!(run(&["export", "markdown", name, "--level", level]).out.starts_with("# "), "{name}");
        let page = run(&["export", "html", name, "--level", level, "-o", "-"]).out;
        assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}");
    }
    let json = run(&["export", "json", name]);
    check_items(&json, name);
    assert_all_content_is_exported(path, &json.json_lines());
}

/// Asserts that every text, thinking block, tool call and result of a session and its sub-agents is in the
/// exported JSON, on whichever branch it is.
fn assert_all_content_is_exported(path: &Path, objects: &[Value]) {
    let mut haystack = String::new();
    objects.iter().for_each(|line| collect_strings(line, &mut haystack));
    let calls: BTreeMap<&str, &Value> = objects
        .iter()
        .filter_map(|line| Some((line["id"].as_str().filter(|_| line["kind"] == "call")?, line)))
        .collect();
    let thoughts: BTreeSet<&str> = objects
        .iter()
        .filter(|line| line["kind"] == "thinking")
        .filter_map(|line| line["text"].as_str())
        .collect();
    let lines: BTreeSet<u64> = objects.iter().filter_map(|line| line["line"].as_u64()).collect();
    let agents = path.with_extension("").join("subagents");
    let agents = std::fs::read_dir(agents).into_iter().flatten().map(|entry| entry.unwrap().path());
    let logs = agents.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    for log in logs.chain([path.to_owned()]) {
        let text = String::from_utf8_lossy(&std::fs::read(&log).unwrap()).into_owned();
        for (line_no, line) in (1..).zip(text.lines()) {
            let entries = serde_json::Deserializer::from_str(line).into_iter::<Value>();
            for entry in entries.map_while(Result::ok) {
                let at = || format!("{}, line {line_no}", log.display());
                let content = &entry["message"]["content"];
                if !matches!(entry["type"].as_str(), Some("user" | "assistant")) {
                    continue;
                }
                if let Some(text) = content.as_str() {
                    assert!(is_exported(text, &haystack, lines.contains(&line_no)), "{}: {text}", at());
                }
                for block in content.as_array().into_iter().flatten() {
                    match block["type"].as_str().unwrap_or_default() {
                        "text" => {
                            let text = block["text"].as_str().unwrap_or_default();
                            assert!(
                                is_exported(text, &haystack, lines.contains(&line_no)),
                                "{}: {text}",
                                at()
                            );
                        }
                        "thinking" => assert!(
                            thoughts.contains(block["thinking"].as_str().unwrap_or_default()),
                            "{}",
                            at()
                        ),
                        "tool_use" => {
                            let call = calls.get(block["id"].as_str().unwrap());
                            assert_eq!(call.map(|call| &call["input"]), Some(&block["input"]), "{}", at());
                        }
                        "tool_result" => {
                            let mut text = String::new();
                            match &block["content"] {
                                Value::Array(blocks) => {
                                    blocks.iter().for_each(|block| collect_strings(&block["text"], &mut text))
                                }
                                other => collect_strings(other, &mut text),
                            }
                            for part in text.split('\u{1}') {
                                let part = &*without_error_tags(part);
                                assert!(haystack.contains(part), "{}: {part}", at());
                            }
                        }
                        _ => assert!(lines.contains(&line_no), "{}: {block}", at()),
                    }
                }
            }
        }
    }
}

/// Returns a result as it is exported: without the tags around the error of a failed call.
fn without_error_tags(part: &str) -> Cow<'_, str> {
    match part.strip_prefix("<tool_use_error>") {
        Some(error) => error.replacen("</tool_use_error>", "", 1).into(),
        None => part.into(),
    }
}

/// Returns whether a text is exported, ignoring whitespace. For text that begins with a tag, an item with the
/// same line number is enough.
fn is_exported(text: &str, haystack: &str, in_its_place: bool) -> bool {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    haystack.contains(&words) || (words.starts_with('<') && in_its_place)
}

/// Appends every string in a value, with whitespace normalised and a separator after each.
fn collect_strings(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => {
            out.extend(text.split_whitespace().flat_map(|word| [" ", word]).skip(1));
            out.push('\u{1}');
        }
        Value::Array(values) => values.iter().for_each(|value| collect_strings(value, out)),
        Value::Object(members) => members.values().for_each(|value| collect_strings(value, out)),
        _ => {}
    }
}

/// Asserts that the first line is the session, that every item has a kind, and that no item occurs twice.
fn check_items(run: &RunOutput, name: &str) {
    let lines = run.json_lines();
    assert_eq!(lines[0]["type"], "session", "{name}");
    let items = lines.iter().filter(|line| line["type"] == "item");
    let mut seen = BTreeSet::new();
    for item in items {
        let text = |key: &str| item[key].as_str().map(str::to_owned);
        assert!(matches!(item["kind"], Value::String(_)), "{name}: {item}");
        assert!(seen.insert((text("agent"), text("anchor"))), "{name}: {item}");
    }
}
