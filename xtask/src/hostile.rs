//! Benchmarks adversarial logs: twice the log may take about twice the time, and memory is limited by its
//! size.
//!
//! Each shape is a log that once caused quadratic time or large memory, or could. Every command reads it at
//! two sizes.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::Card;
use crate::command::{peak, run};

/// The maximum ratio of the times for twice the log and for the log. Above two, because the times are short.
const TIME: f64 = 2.4;
/// The maximum memory, as a multiple of the size of the log.
const MEMORY: f64 = 6.0;
/// Each time is the best of this many runs.
const ROUNDS: usize = 3;
/// Shorter times are noise.
const NOISE: Duration = Duration::from_millis(40);

/// A shape of log, and its number of units at the smaller size.
struct Shape {
    name: &'static str,
    units: usize,
    make: fn(usize) -> Vec<Value>,
}

static SHAPES: &[Shape] = &[
    Shape { name: "one long line", units: 1_000_000, make: |n| result(&"x".repeat(n)) },
    Shape { name: "one result of words", units: 200_000, make: |n| result(&"warp ".repeat(n)) },
    Shape { name: "one result of short lines", units: 250_000, make: |n| result(&"abc\n".repeat(n)) },
    Shape { name: "newlines alone", units: 500_000, make: |n| result(&"\n".repeat(n)) },
    Shape { name: "colours", units: 60_000, make: |n| result(&"\u{1b}[31ma\u{1b}[0m".repeat(n)) },
    Shape {
        name: "headers of keys",
        units: 20_000,
        make: |n| result(&"-----BEGIN RSA PRIVATE KEY-----\n".repeat(n)),
    },
    Shape { name: "names of secrets", units: 60_000, make: |n| result(&"password=".repeat(n)) },
    Shape { name: "commands with flags", units: 60_000, make: |n| result(&"curl -u ".repeat(n)) },
    Shape { name: "parents in reverse", units: 5_000, make: reversed },
    Shape { name: "one id for all calls", units: 5_000, make: |n| calls(n, false) },
    Shape { name: "one id and one reply", units: 5_000, make: |n| calls(n, true) },
    Shape { name: "one reply of many lines", units: 5_000, make: one_reply },
    Shape { name: "one reply, all lines siblings", units: 5_000, make: fan },
    Shape { name: "a deep chain", units: 5_000, make: |n| chain(n, |idx| idx.checked_sub(1)) },
    Shape { name: "many roots", units: 5_000, make: |n| chain(n, |_| None) },
    Shape { name: "many branches", units: 5_000, make: |n| chain(n, |idx| (idx > 0).then_some(0)) },
    Shape { name: "many compactions", units: 2_000, make: compactions },
    Shape { name: "many queued prompts", units: 5_000, make: queue },
    Shape { name: "a reply of many blocks", units: 20_000, make: blocks },
    Shape { name: "emphasis", units: 100_000, make: |n| said(&"*a ".repeat(n)) },
    Shape { name: "backticks", units: 200_000, make: |n| said(&"`a".repeat(n)) },
    Shape { name: "brackets", units: 100_000, make: |n| said(&"[a](".repeat(n)) },
    Shape { name: "quotes in quotes", units: 2_000, make: |n| said(&format!("{}x", ">".repeat(n))) },
    Shape { name: "a long diff", units: 4_000, make: diff },
];

/// The commands that read a log; `@` is its path.
static COMMANDS: &[&[&str]] = &[
    &["show", "@", "--level", "full", "--color", "never", "--no-pager"],
    &["show", "@", "--level", "full", "--color", "always", "--no-pager"],
    &["show", "@", "--outline"],
    &["check", "@"],
    &["export", "html", "@", "-o", "-"],
    &["edit", "strip", "@", "--preset", "extreme"],
    &["edit", "redact", "@"],
];

/// Measures all shapes with names that contain `only`.
pub(crate) fn measure_hostile(folder: &Path, binary: &Path, only: &str, card: &mut Card) {
    let folder = folder.join("bench-hostile");
    if let Err(error) = fs::create_dir_all(&folder) {
        return card.failed("hostile logs", &error.to_string());
    }
    let empty = folder.join("empty.jsonl");
    let _ = fs::write(&empty, text(&said("x")));
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(only)) {
        let paths = [1, 2].map(|times| {
            let path = folder.join(format!("{}-{times}.jsonl", shape.name.replace([' ', ','], "-")));
            let _ = fs::write(&path, text(&(shape.make)(shape.units * times)));
            path
        });
        let mut slowest = (0.0, "");
        let mut largest = (0.0, "");
        for args in COMMANDS {
            let command = |path: &Path| {
                let mut command = Command::new(binary);
                command
                    .args(args.iter().map(|arg| if *arg == "@" { path.as_os_str() } else { arg.as_ref() }));
                command
            };
            let best = |path: &Path| {
                let times = (0..ROUNDS).map(|_| {
                    let start = Instant::now();
                    run(&mut command(path));
                    start.elapsed()
                });
                times.min().unwrap_or_default().max(NOISE).as_secs_f64()
            };
            let name = if args.contains(&"always") {
                "show in colours"
            } else {
                args[if args[0] == "edit" { 1 } else { 0 }]
            };
            let ratio = best(&paths[1]) / best(&paths[0]);
            if ratio > slowest.0 {
                slowest = (ratio, name);
            }
            let size = fs::metadata(&paths[1]).map_or(1, |metadata| metadata.len()) as f64 / 1e6;
            let memory = (peak(command(&paths[1])) - peak(command(&empty))) / size;
            if memory > largest.0 {
                largest = (memory, name);
            }
        }
        card.at_most(&format!("{}: twice the log, time ({})", shape.name, slowest.1), slowest.0, TIME, "×");
        card.at_most(&format!("{}: memory in log sizes ({})", shape.name, largest.1), largest.0, MEMORY, "×");
    }
    let _ = fs::remove_dir_all(&folder);
}

fn text(lines: &[Value]) -> String {
    lines.iter().fold(String::new(), |mut out, line| {
        let _ = writeln!(out, "{line}");
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
fn said(text: &str) -> Vec<Value> {
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

fn fan(n: usize) -> Vec<Value> {
    let lines = (1..n).map(|idx| reply(idx, Some(0), 0, words(&(idx / 2).to_string())));
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
