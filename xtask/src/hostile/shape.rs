//! The shapes of hostile logs.

use std::fmt::Write;

use serde_json::{Value, json};

/// A shape of log, and how many units it is made of before it is doubled.
pub(super) struct HostileShape {
    pub(super) name: &'static str,
    pub(super) units: usize,
    pub(super) make: fn(usize) -> Vec<Value>,
    /// Files in the folder of the session: their names and texts.
    pub(super) side_files: fn(usize) -> Vec<(String, String)>,
}

const fn shape(name: &'static str, units: usize, make: fn(usize) -> Vec<Value>) -> HostileShape {
    HostileShape { name, units, make, side_files: |_| Vec::new() }
}

pub(super) static SHAPES: &[HostileShape] = &[
    shape("one long line", 4_000_000, |n| result(&"x".repeat(n))),
    shape("one result of words", 800_000, |n| result(&"warp ".repeat(n))),
    shape("one result of short lines", 1_000_000, |n| result(&"abc\n".repeat(n))),
    shape("newlines alone", 2_000_000, |n| result(&"\n".repeat(n))),
    shape("names of secrets", 400_000, |n| result(&"password=".repeat(n))),
    shape("prefixes of tokens in one word", 500_000, |n| result(&"SG.".repeat(n))),
    shape("one call on many lines", 4_000, |n| {
        let lines = (1..n).map(|idx| reply(idx, Some(idx - 1), 1, json!([call("t1")])));
        let result = user(n, Some(n - 1), answer("t1", &"warp ".repeat(n * 100)));
        std::iter::once(user(0, None, json!("go"))).chain(lines).chain([result]).collect()
    }),
    HostileShape {
        name: "results that name one file",
        units: 1_500,
        make: |n| {
            let lines = |idx: usize| {
                let id = format!("t{idx}");
                let text = "<persisted-output>\nFull output saved to: /x/tool-results/o.txt";
                let result = user(2 * idx + 2, Some(2 * idx + 1), answer(&id, text));
                [reply(2 * idx + 1, Some(2 * idx), 2 * idx, json!([call(&id)])), result]
            };
            std::iter::once(user(0, None, json!("go"))).chain((0..n).flat_map(lines)).collect()
        },
        side_files: |n| vec![("tool-results/o.txt".to_owned(), "warp ".repeat(n * 200))],
    },
    shape("parents in reverse", 20_000, reversed),
    shape("one id for all calls", 20_000, |n| calls(n, false)),
    shape("one reply of many lines", 20_000, one_reply),
    shape("a deep chain", 20_000, |n| chain(n, |idx| idx.checked_sub(1))),
    shape("many branches", 20_000, |n| chain(n, |idx| (idx > 0).then_some(0))),
    shape("many compactions", 6_000, compactions),
    shape("many queued prompts", 15_000, queue),
    shape("a reply of many blocks", 8_000, blocks),
    shape("short lines", 150_000, |n| vec![json!({"type": "x"}); n]),
    shape("lines that are not JSON", 2_000_000, |n| vec![json!("x"); n]),
    shape("emphasis", 500_000, |n| exchange(&"*a ".repeat(n))),
    shape("a long diff", 100_000, diff),
    shape("edits of one long file", 6_000, edits_of_long_file),
    shape("JSON in JSON, arrays", 1_000_000, |n| deep(n, "[", "]")),
    shape("sub-agents inside the log", 10_000, inline_agents),
];

/// Prefix of a placeholder for JSON that is too deep for a [`Value`]: a count and the texts that open and
/// close a level follow.
const DEEP: &str = "deep:";

/// Returns the text of a log. A string is a line that is not an object, and is written as it is.
pub(super) fn text(lines: &[Value]) -> String {
    lines.iter().fold(String::new(), |mut out, line| {
        let text = line.as_str().map_or_else(|| line.to_string(), str::to_owned);
        match text.split_once(&format!("\"{DEEP}")) {
            Some((before, after)) => {
                let (marks, after) = after.split_once(":end\"").unwrap_or_default();
                let marks: Vec<String> = marks.replace("\\\"", "\"").split('~').map(str::to_owned).collect();
                let count = marks[0].parse().unwrap_or(0);
                let _ = writeln!(out, "{before}{}1{}{after}", marks[1].repeat(count), marks[2].repeat(count));
            }
            None => {
                let _ = writeln!(out, "{text}");
            }
        }
        out
    })
}

fn uuid(idx: usize) -> String {
    format!("{idx:08}-0000-4000-8000-000000000000")
}

/// Returns a line of the conversation.
fn line(idx: usize, parent: Option<usize>, kind: &str, message: Value) -> Value {
    let (minute, second, milli) = (idx / 60_000 % 60, idx / 1000 % 60, idx % 1000);
    json!({
        "parentUuid": parent.map(uuid), "isSidechain": false, "type": kind, "message": message, "uuid": uuid(idx),
        "timestamp": format!("2026-01-01T10:{minute:02}:{second:02}.{milli:03}Z"),
        "sessionId": "s1", "cwd": "/loom", "version": "2.1.197", "gitBranch": "main", "userType": "external",
    })
}

fn user(idx: usize, parent: Option<usize>, content: Value) -> Value {
    line(idx, parent, "user", json!({"role": "user", "content": content}))
}

fn reply(idx: usize, parent: Option<usize>, id: usize, content: Value) -> Value {
    let message = json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": "claude-opus-4-8",
        "content": content, "stop_reason": "end_turn", "usage": {"input_tokens": 3, "output_tokens": 5},
    });
    line(idx, parent, "assistant", message)
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})
}

fn answer(id: &str, text: &str) -> Value {
    json!([{"type": "tool_result", "tool_use_id": id, "content": text}])
}

fn words(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

/// Returns a session with one tool result.
fn result(text: &str) -> Vec<Value> {
    let mut answer = user(2, Some(1), answer("t1", text));
    answer["toolUseResult"] = json!({"stdout": text, "stderr": "", "interrupted": false});
    vec![
        user(0, None, json!("go")),
        reply(1, Some(0), 1, json!([call("t1")])),
        answer,
        reply(3, Some(2), 2, words("done")),
    ]
}

/// Returns a session with this text as prompt and as reply.
fn exchange(text: &str) -> Vec<Value> {
    vec![user(0, None, json!(text)), reply(1, Some(0), 1, words(text))]
}

fn reversed(n: usize) -> Vec<Value> {
    (0..n).map(|idx| reply(idx, Some(idx + 1), idx, words("t"))).chain([user(n, None, json!("x"))]).collect()
}

fn calls(n: usize, one_reply: bool) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    for idx in (1..n).step_by(2) {
        lines.push(reply(idx, Some(idx - 1), if one_reply { 0 } else { idx }, json!([call("t1")])));
        lines.push(user(idx + 1, Some(idx), answer("t1", "ok")));
    }
    lines
}

fn one_reply(n: usize) -> Vec<Value> {
    let lines = (1..n).map(|idx| reply(idx, Some(idx - 1), 0, words(&idx.to_string())));
    std::iter::once(user(0, None, json!("x"))).chain(lines).collect()
}

fn chain(n: usize, parent: fn(usize) -> Option<usize>) -> Vec<Value> {
    (0..n)
        .map(|idx| match idx % 2 {
            0 => user(idx, parent(idx), json!("x")),
            _ => reply(idx, parent(idx), idx, words("t")),
        })
        .collect()
}

fn compactions(n: usize) -> Vec<Value> {
    let mut lines = Vec::new();
    for idx in (0..n * 3).step_by(3) {
        lines.push(user(idx, idx.checked_sub(1), json!("x")));
        let mut boundary = line(idx + 1, None, "system", Value::Null);
        boundary["subtype"] = json!("compact_boundary");
        boundary["logicalParentUuid"] = json!(uuid(idx));
        boundary["compactMetadata"] = json!({"trigger": "auto", "preTokens": 9});
        let mut summary = user(idx + 2, Some(idx + 1), json!("so far"));
        summary["isCompactSummary"] = json!(true);
        lines.extend([boundary, summary]);
    }
    lines
}

fn queue(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    for idx in 1..n {
        lines.push(json!({"type": "queue-operation", "operation": "enqueue", "sessionId": "s1", "content": format!("q{idx}"),
            "timestamp": "2026-01-01T10:00:00.000Z"}));
        if idx % 4 == 0 {
            lines.push(json!({"type": "queue-operation", "operation": "dequeue", "sessionId": "s1", "timestamp": "2026-01-01T10:00:00.000Z"}));
        }
        lines.push(reply(idx, Some(idx - 1), idx, words("t")));
    }
    lines
}

fn blocks(n: usize) -> Vec<Value> {
    let content: Vec<Value> = (0..n)
        .map(|idx| if idx % 2 == 0 { words("t")[0].clone() } else { call(&format!("t{idx}")) })
        .collect();
    let results: Vec<Value> =
        (1..n).step_by(2).map(|idx| answer(&format!("t{idx}"), "ok")[0].clone()).collect();
    vec![user(0, None, json!("x")), reply(1, Some(0), 1, json!(content)), user(2, Some(1), json!(results))]
}

fn diff(n: usize) -> Vec<Value> {
    let lines = |step: usize, modulus: usize| {
        (0..n).map(|idx| format!("line {}", idx * step % modulus)).collect::<Vec<_>>().join("\n")
    };
    let (old, new) = (lines(7, 1000), lines(13, 997));
    let edit = json!([{"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/loom/a", "old_string": old, "new_string": new}}]);
    let mut answer = user(2, Some(1), answer("t1", "ok"));
    answer["toolUseResult"] = json!({"filePath": "/loom/a", "oldString": old, "newString": new, "originalFile": old, "structuredPatch": []});
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, edit), answer]
}

/// Many edits of one long file, of which the log contains the text once.
fn edits_of_long_file(n: usize) -> Vec<Value> {
    let text = format!("{}0\n", "a line of some length that stays\n".repeat(n * 6));
    let write = json!([{"type": "tool_use", "id": "w", "name": "Write", "input": {"file_path": "/loom/a", "content": text}}]);
    let mut lines =
        vec![user(0, None, json!("x")), reply(1, Some(0), 1, write), user(2, Some(1), answer("w", "ok"))];
    for idx in (3..n * 2).step_by(2) {
        let (id, old, new) = (format!("t{idx}"), (idx - 3).to_string(), (idx - 1).to_string());
        let edit = json!([{"type": "tool_use", "id": id, "name": "Edit",
            "input": {"file_path": "/loom/a", "old_string": old, "new_string": new}}]);
        lines.push(reply(idx, Some(idx - 1), idx, edit));
        let mut answer = user(idx + 1, Some(idx), answer(&id, "ok"));
        answer["toolUseResult"] = json!({"filePath": "/loom/a", "oldString": old, "newString": new});
        lines.push(answer);
    }
    lines
}

/// A call whose input, and a result whose details, are nested so deep.
fn deep(n: usize, open: &str, close: &str) -> Vec<Value> {
    let nested = format!("{DEEP}{n}~{open}~{close}:end");
    let call = json!([{"type": "tool_use", "id": "t1", "name": "mcp__x__y", "input": {"a": nested}}]);
    let mut answer = user(2, Some(1), answer("t1", "ok"));
    answer["toolUseResult"] = json!(nested);
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, call), answer, reply(3, Some(2), 2, words("done"))]
}

fn agent_call(number: usize) -> Value {
    json!({"type": "tool_use", "id": format!("t{number}"), "name": "Task",
        "input": {"description": "look", "prompt": format!("look at {number}"), "subagent_type": "general-purpose"}})
}

/// Sub-agents whose lines are in the log itself, as old versions wrote them.
fn inline_agents(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    let mut last = 0;
    for number in 0..n / 4 {
        let idx = lines.len();
        lines.push(reply(idx, Some(last), idx, json!([agent_call(number)])));
        let mut prompt = user(idx + 1, None, json!(format!("look at {number}")));
        prompt["isSidechain"] = json!(true);
        let mut said = reply(idx + 2, Some(idx + 1), idx + 2, words("warp"));
        said["isSidechain"] = json!(true);
        lines.extend([prompt, said, user(idx + 3, Some(idx), answer(&format!("t{number}"), "ok"))]);
        last = idx + 3;
    }
    lines
}
