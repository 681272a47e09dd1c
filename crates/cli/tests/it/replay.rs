//! `replay`, compared with the requests that Claude Code sent for the same logs, by version.

use std::ffi::OsStr;

use serde_json::Value;

use crate::run::threadline;

/// Texts that Claude Code adds to a request and that are not in the log.
const ADDED_TEXTS: &[&str] = &["Continue from where you left off.", "No response requested.", "(no content)"];

/// Drops the texts that Claude Code adds, and merges adjacent messages of the same role.
fn normalized(messages: &Value) -> Vec<(String, Vec<Value>)> {
    let mut out: Vec<(String, Vec<Value>)> = Vec::new();
    for message in messages.as_array().unwrap() {
        let is_own = |block: &Value| {
            let text = block["text"].as_str().map(str::trim);
            text.is_some_and(|text| {
                text.is_empty() || ADDED_TEXTS.contains(&text) || text.starts_with("<system-reminder>")
            })
        };
        let role = message["role"].as_str().unwrap().to_owned();
        let content: Vec<Value> =
            message["content"].as_array().unwrap().iter().filter(|block| !is_own(block)).cloned().collect();
        match out.last_mut() {
            _ if content.is_empty() => {}
            Some((last, blocks)) if *last == role => blocks.extend(content),
            _ => out.push((role, content)),
        }
    }
    out
}

/// Compares our replay for a version with the recorded requests of that version, log by log.
fn compare_with(version: &str) {
    let corpus = threadline_testkit::corpus();
    let truth = corpus.join(format!("replay-{version}.json"));
    let sent: Value = serde_json::from_slice(&std::fs::read(truth).unwrap()).unwrap();
    for (file, messages) in sent.as_object().unwrap() {
        let log = corpus.join(file);
        let args = ["replay", "--json", "--as", version].map(OsStr::new);
        let run = threadline(args.into_iter().chain([log.as_os_str()]));
        let ours = run.json();
        assert_eq!((&ours["schema"], &ours["claude_code_version"]), (&Value::from(2), &Value::from(version)));
        if messages.is_null() {
            // Claude Code rejects a log with a bare `null` line; we skip the line and read the rest.
            let refused = (run.code, ours["messages"].as_array().unwrap().len()) == (1, 0);
            assert!(refused || file == "not-objects.jsonl", "{file}: {run}");
            continue;
        }
        assert_eq!(run.code, 0, "{file}: {run}");
        let mut theirs = normalized(messages);
        // Claude Code rewrites tool references at each resume, depending on the tools available then.
        for block in theirs.iter_mut().flat_map(|(_, blocks)| blocks) {
            if block["content"][0]["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("[Tool references removed"))
            {
                block["content"] = serde_json::json!([{"type": "tool_reference", "tool_name": "WebFetch"}]);
            }
        }
        assert_eq!(normalized(&ours["messages"]), theirs, "{file}");
    }
}

#[test]
fn corpus_replays_like_claude_code_2_1_197() {
    compare_with("2.1.197");
}

#[test]
fn corpus_replays_like_claude_code_2_1_325() {
    compare_with("2.1.325");
}

/// Replays a short log with the rules of a version.
fn replay_as(version: &str) -> crate::run::RunOutput {
    let log = threadline_testkit::corpus().join("orphan-call.jsonl");
    let args = ["replay", "--json", "--as", version].map(OsStr::new);
    threadline(args.into_iter().chain([log.as_os_str()]))
}

#[test]
fn the_newest_known_version_is_the_default() {
    let log = threadline_testkit::corpus().join("orphan-call.jsonl");
    let run = threadline(["replay".as_ref(), "--json".as_ref(), log.as_os_str()]);
    assert_eq!(run.json(), replay_as("2.1.328").json());
    assert_ne!(run.json()["messages"], replay_as("2.1.197").json()["messages"]);
}

#[test]
fn a_version_between_two_known_ones_uses_the_older_rules() {
    let run = replay_as("2.1.219");
    assert_eq!((run.json()["claude_code_version"].as_str(), &*run.err), (Some("2.1.197"), ""));
}

#[test]
fn versions_outside_the_known_range_are_noted() {
    let (old, new) = (replay_as("1.0.128"), replay_as("2.2.0"));
    assert_eq!(old.json()["claude_code_version"], "2.1.20");
    assert!(old.err.contains("older than all known versions"), "{old}");
    assert_eq!(new.json()["claude_code_version"], "2.1.328");
    assert!(new.err.contains("newer than all known versions"), "{new}");
    for known in ["2.1.327", "2.1.328"] {
        assert_eq!(replay_as(known).err, "", "{known}");
    }
}

#[test]
fn an_invalid_version_is_an_error_that_lists_known_ones() {
    let run = replay_as("latest");
    assert_eq!(run.code, 2);
    assert!(run.err.contains("`latest` is not a version") && run.err.contains("2.1.328"), "{run}");
}

#[test]
fn a_refused_resume_exits_with_1() {
    let home = threadline_testkit::TestHome::new();
    home.session("empty", "title \"nothing\"");
    let run = crate::run::at_home(&home, &["replay", &threadline_testkit::session_uuid("empty"), "--json"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.json()["messages"], serde_json::json!([]));
    assert!(run.err.contains("refuse"), "{run}");
}

#[test]
fn text_output_has_one_line_per_block() {
    let log = threadline_testkit::corpus().join("parallel-results.jsonl");
    let run = threadline(["replay".as_ref(), log.as_os_str()]);
    assert_eq!(run.code, 0);
    assert!(run.out.lines().any(|line| line.starts_with("assistant tool_use")), "{run}");
}
