//! `replay`, against what Claude Code 2.1.197 sent for the same logs.

use serde_json::Value;

use crate::run::threadline;

/// Texts that Claude Code adds by itself, which no reader of a log can know.
const OWN: &[&str] = &["Continue from where you left off.", "No response requested.", "(no content)"];

/// The messages less what Claude Code adds, with neighbours of one role put together.
fn normal(messages: &Value) -> Vec<(String, Vec<Value>)> {
    let mut out: Vec<(String, Vec<Value>)> = Vec::new();
    for message in messages.as_array().unwrap() {
        let is_own = |block: &Value| {
            let text = block["text"].as_str().map(str::trim);
            text.is_some_and(|text| {
                text.is_empty() || OWN.contains(&text) || text.starts_with("<system-reminder>")
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

#[test]
fn our_logs_replay_as_claude_code_does() {
    let corpus = threadline_testkit::corpus();
    let sent: Value = serde_json::from_slice(&std::fs::read(corpus.join("replay.json")).unwrap()).unwrap();
    for (file, messages) in sent.as_object().unwrap() {
        let run = threadline(["replay".as_ref(), "--json".as_ref(), corpus.join(file).as_os_str()]);
        let ours = run.json();
        assert_eq!(ours["schema"], 1);
        if messages.is_null() {
            // It gives up on the whole log for a bare `null` line; we read the rest.
            let refused = (run.code, ours["messages"].as_array().unwrap().len()) == (1, 0);
            assert!(refused || file == "not-objects.jsonl", "{file}: {run}");
            continue;
        }
        assert_eq!(run.code, 0, "{file}: {run}");
        let mut theirs = normal(messages);
        // References to tools are rewritten at each resume, by what the session then has.
        for block in theirs.iter_mut().flat_map(|(_, blocks)| blocks) {
            if block["content"][0]["text"]
                .as_str()
                .is_some_and(|text| text.starts_with("[Tool references removed"))
            {
                block["content"] = serde_json::json!([{"type": "tool_reference", "tool_name": "WebFetch"}]);
            }
        }
        assert_eq!(normal(&ours["messages"]), theirs, "{file}");
    }
}

#[test]
fn a_refusal_is_a_no() {
    let home = threadline_testkit::TestHome::new();
    home.session("empty", "title \"nothing\"");
    let run = crate::run::at_home(&home, &["replay", &threadline_testkit::session_uuid("empty"), "--json"]);
    assert_eq!(run.code, 1);
    assert_eq!(run.json()["messages"], serde_json::json!([]));
    assert!(run.err.contains("refuse"), "{run}");
}

#[test]
fn for_people_a_line_is_a_block() {
    let log = threadline_testkit::corpus().join("parallel-results.jsonl");
    let run = threadline(["replay".as_ref(), log.as_os_str()]);
    assert_eq!(run.code, 0);
    assert!(run.out.lines().any(|line| line.starts_with("assistant tool_use")), "{run}");
}
