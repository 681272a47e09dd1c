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
    shape("one prompt of words", 800_000, |n| vec![user(0, None, json!("warp ".repeat(n)))]),
    shape("one answer of an MCP tool", 800_000, |n| {
        let mut lines = tool("mcp__loom__weave", json!({}));
        lines[2]["message"]["content"][0]["content"] = words(&"warp ".repeat(n));
        lines
    }),
    shape("one hook message", 800_000, |n| {
        let attachment = json!({"type": "hook_success", "hookName": "Stop", "hookEvent": "Stop", "toolUseID": "t1",
            "content": "warp ".repeat(n), "stdout": "", "stderr": "", "exitCode": 0});
        let mut message = line(1, Some(0), "attachment", Value::Null);
        message["attachment"] = attachment;
        vec![user(0, None, json!("go")), message, reply(2, Some(1), 1, words("done"))]
    }),
    shape("a long model name", 4_000_000, |n| {
        let mut lines = exchange("go");
        lines[1]["message"]["model"] = json!("m".repeat(n));
        lines
    }),
    shape("a long path", 4_000_000, |n| {
        let path = format!("/loom/{}", "p".repeat(n));
        let mut lines = tool("Write", json!({"file_path": path, "content": "a"}));
        lines[2]["toolUseResult"] =
            json!({"type": "create", "filePath": path, "content": "a", "structuredPatch": []});
        lines
    }),
    shape("unknown keys in a message", 200_000, |n| {
        let mut lines = exchange("go");
        for idx in 0..n {
            lines[1]["message"]["usage"][format!("k{idx}")] = json!(idx);
        }
        lines
    }),
    shape("names of found files", 600_000, |n| {
        let mut lines = tool("Glob", json!({"pattern": "*"}));
        lines[2]["toolUseResult"] = json!({"filenames": vec!["a"; n], "numFiles": n, "truncated": false});
        lines
    }),
    shape("newlines alone", 2_000_000, |n| result(&"\n".repeat(n))),
    shape("colours", 200_000, |n| result(&"\u{1b}[31ma\u{1b}[0m".repeat(n))),
    shape("headers of keys", 100_000, |n| result(&"-----BEGIN RSA PRIVATE KEY-----\n".repeat(n))),
    shape("names of secrets", 400_000, |n| result(&"password=".repeat(n))),
    shape("prefixes of tokens in one word", 500_000, |n| result(&"SG.".repeat(n))),
    shape("settings in one word", 100_000, |n| result(&"sonar.login=".repeat(n))),
    shape("starts of placeholders", 200_000, |n| result(&"[secret:".repeat(n))),
    shape("signs of here-strings", 1_500_000, |n| result(&"<".repeat(n))),
    shape("commands with flags", 400_000, |n| result(&"curl -u ".repeat(n))),
    shape("one call in very many blocks", 20_000, |n| {
        let content = json!(vec![call("t1"); n]);
        vec![
            user(0, None, json!("go")),
            reply(1, Some(0), 1, content),
            user(2, Some(1), answer("t1", &"warp ".repeat(n * 20))),
        ]
    }),
    shape("one call on very many lines", 4_000, |n| {
        let lines = (1..n).map(|idx| reply(idx, Some(idx - 1), 1, json!([call("t1")])));
        let result = user(n, Some(n - 1), answer("t1", &"warp ".repeat(n * 100)));
        std::iter::once(user(0, None, json!("go"))).chain(lines).chain([result]).collect()
    }),
    shape("updates of one task with a long name", 4_000, |n| {
        let name = "warp ".repeat(n * 100);
        let create = json!({"subject": name, "description": ""});
        let created = json!({"task": {"id": "1", "subject": name}});
        one_call_and_more("TaskCreate", &create, &created, n, "TaskUpdate", &json!({"taskId": "1"}))
    }),
    shape("updates of unknown tasks", 10_000, |n| {
        one_tool_and_another(n, "TaskCreate", "TaskUpdate", &json!({"taskId": "none"}))
    }),
    shape("messages to unknown agents", 10_000, |n| {
        one_tool_and_another(n, "Task", "SendMessage", &json!({"to": "none", "message": "hm"}))
    }),
    shape("one turn per line of a reply", 10_000, |n| {
        let line = |idx: usize| match idx % 2 {
            0 => user(idx, idx.checked_sub(1), json!("x")),
            _ => reply(idx, Some(idx - 1), 1, json!([call(&format!("t{idx}"))])),
        };
        (0..n).map(line).collect()
    }),
    shape("a long uuid", 4_000_000, |n| {
        let mut lines = exchange("go");
        lines[1]["uuid"] = json!("u".repeat(n));
        lines
    }),
    shape("objects in objects", 400_000, |n| {
        let mut lines = exchange("go");
        lines[1]["message"]["usage"]["x"] = json!(format!("{DEEP}{n}~{{\"a\":~}}:end"));
        lines
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
    shape("one id and one reply", 20_000, |n| calls(n, true)),
    shape("one reply of many lines", 20_000, one_reply),
    shape("one reply, all lines beside", 20_000, fan_out),
    shape("a deep chain", 20_000, |n| chain(n, |idx| idx.checked_sub(1))),
    shape("many roots", 20_000, |n| chain(n, |_| None)),
    shape("many branches", 20_000, |n| chain(n, |idx| (idx > 0).then_some(0))),
    shape("many compactions", 6_000, compactions),
    shape("many queued prompts", 15_000, queue),
    shape("a reply of many blocks", 60_000, blocks),
    shape("calls without results", 15_000, unanswered),
    shape("a reply of many calls without results", 40_000, unanswered_reply),
    shape("one result with many reminders", 20_000, reminders),
    shape("short lines", 150_000, |n| vec![json!({"type": "x"}); n]),
    shape("blank lines", 2_000_000, |n| vec![json!(""); n]),
    shape("lines that are not JSON", 2_000_000, |n| vec![json!("x"); n]),
    shape("empty objects", 2_000_000, |n| vec![json!({}); n]),
    shape("messages without content", 500_000, |n| vec![json!({"type": "user"}); n]),
    shape("messages without a uuid", 50_000, |n| vec![json!({"type": "user", "message": {}}); n]),
    shape("messages without fields", 40_000, |n| (0..n).map(|idx| bare_message(idx, 302)).collect()),
    shape("calls without results and fields", 30_000, |n| (0..n).map(|idx| bare_calls(idx, 392)).collect()),
    shape("results without calls and fields", 30_000, |n| (0..n).map(|idx| bare_results(idx, 356)).collect()),
    shape("messages of short calls", 10_000, |n| {
        (0..n).map(|idx| message_of_blocks(idx, 7, |number| json!({"type": "tool_use", "id": format!("t{idx}.{number}"), "name": "Bash", "input": {}}))).collect()
    }),
    shape("messages of short results", 10_000, |n| {
        (0..n).map(|idx| message_of_blocks(idx, 7, |number| json!({"type": "tool_result", "tool_use_id": format!("t{idx}.{number}"), "content": ""}))).collect()
    }),
    shape("messages of blocks without content", 10_000, |n| {
        (0..n).map(|idx| message_of_blocks(idx, 25, |_| json!({"type": "text"}))).collect()
    }),
    shape("a reply of blocks without content", 200_000, |n| {
        vec![user(0, None, json!("x")), reply(1, Some(0), 1, json!(vec![json!({"type": "text"}); n]))]
    }),
    shape("a message of numbers", 1_000_000, |n| {
        vec![user(0, None, json!("x")), user(1, Some(0), json!(vec![0; n]))]
    }),
    shape("a message of empty blocks", 800_000, |n| {
        vec![user(0, None, json!("x")), user(1, Some(0), json!(vec![json!({}); n]))]
    }),
    shape("very many models", 10_000, models),
    shape("nested objects of the format", 60_000, |n| {
        let mut line = user(1, Some(0), json!("x"));
        line["toolUseResult"] =
            json!(format!("{DEEP}{n}~{{\"type\":\"tool_result\",\"content\":[{{\"x\":1}},~]}}:end"));
        vec![user(0, None, json!("x")), line]
    }),
    shape("progress in progress", 20_000, |n| {
        let mut line = line(1, Some(0), "progress", Value::Null);
        let open = "{\"type\":\"progress\",\"x\":0,\"data\":{\"x\":0,\"message\":";
        line["data"] = json!({"type": "agent_progress", "message": format!("{DEEP}{n}~{open}~}}}}:end")});
        vec![user(0, None, json!("x")), line]
    }),
    shape("a prompt of very short lines", 1_000_000, |n| vec![user(0, None, json!("a\n".repeat(n)))]),
    shape("a reply of very short lines", 1_000_000, |n| {
        vec![user(0, None, json!("x")), reply(1, Some(0), 1, words(&"a\n".repeat(n)))]
    }),
    shape("non-breaking spaces", 500_000, |n| exchange(&"a warp\u{a0}".repeat(n))),
    shape("accents", 1_000_000, |n| exchange(&format!("{}a warp", "é".repeat(n)))),
    shape("control characters", 1_000_000, |n| exchange(&"\u{80}".repeat(n))),
    shape("a result of control characters", 1_000_000, |n| result(&"\u{80}".repeat(n))),
    shape("a result of quotes", 2_000_000, |n| result(&"'".repeat(n))),
    shape("a prompt of ampersands", 2_000_000, |n| tool("Agent", json!({"prompt": "&".repeat(n)}))),
    shape("a result of backticks", 2_000_000, |n| result(&"`".repeat(n))),
    shape("objects on one line", 200_000, |n| {
        vec![user(0, None, json!("x")), json!(r#"{"type":"mode","mode":"plan"}"#.repeat(n))]
    }),
    shape("emphasis", 500_000, |n| exchange(&"*a ".repeat(n))),
    shape("backticks", 800_000, |n| exchange(&"`a".repeat(n))),
    shape("backticks of growing length", 4_000_000, |n| {
        exchange(&(1..n.isqrt()).map(|idx| format!("{}a", "`".repeat(idx))).collect::<String>())
    }),
    shape("brackets", 400_000, |n| exchange(&"[a](".repeat(n))),
    shape("quotes in quotes", 1_500_000, |n| exchange(&format!("{}x", ">".repeat(n)))),
    shape("lists in lists", 2_000_000, |n| {
        exchange(&(0..n.isqrt()).map(|idx| format!("{}- x\n", "  ".repeat(idx))).collect::<String>())
    }),
    shape("a wide table", 300_000, |n| exchange(&format!("{0}\n{1}\n{0}", "|a".repeat(n), "|-".repeat(n)))),
    shape("code", 300_000, |n| exchange(&format!("```rust\n{}```", "let a = 1;\n".repeat(n)))),
    shape("a long diff", 100_000, diff),
    shape("one command of short words", 1_000_000, |n| tool("Bash", json!({"command": "a ".repeat(n)}))),
    shape("one command of one word", 4_000_000, |n| tool("Bash", json!({"command": "x".repeat(n)}))),
    shape("a command of short lines", 500_000, |n| tool("Bash", json!({"command": "ls\n".repeat(n)}))),
    shape("a call of many short edits", 50_000, |n| {
        let edits = vec![json!({"old_string": "a", "new_string": "b"}); n];
        tool("MultiEdit", json!({"file_path": "/loom/a", "edits": edits}))
    }),
    shape("an edit of short lines", 700_000, |n| {
        let (old, new) = ("a\n".repeat(n), "b\na\nc");
        tool("Edit", json!({"file_path": "/loom/a", "old_string": old, "new_string": new}))
    }),
    shape("an edit of every other line", 100_000, |n| {
        let text = |word: &str| (0..n).map(|idx| format!("{idx}\n{word}\n")).collect::<String>();
        let (old, new) = (text("a"), text("b"));
        tool("Edit", json!({"file_path": "/loom/a", "old_string": old, "new_string": new}))
    }),
    shape("changed fields of a task", 500_000, |n| {
        let mut lines = tool("TaskUpdate", json!({"taskId": "1", "owner": "x".repeat(n)}));
        lines[2]["toolUseResult"] = json!({"success": true, "updatedFields": vec!["owner"; n / 4]});
        lines
    }),
    shape("a list of very long items", 2_000_000, |n| {
        let todos = json!([{"content": "warp ".repeat(n / 5), "status": "pending"}]);
        tool("TodoWrite", json!({"todos": todos}))
    }),
    shape("a new file of short lines", 500_000, |n| {
        tool("Write", json!({"file_path": "/loom/a", "content": "ab\n".repeat(n)}))
    }),
    shape("a patch of short lines", 200_000, |n| {
        edit_with_patch(
            &json!([{"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": n, "lines": vec!["+a"; n]}]),
        )
    }),
    shape("a patch of short hunks", 40_000, |n| {
        let hunk = json!({"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 1, "lines": ["+a"]});
        edit_with_patch(&json!(vec![hunk; n]))
    }),
    shape("a patch of hunks without places", 100_000, |n| {
        edit_with_patch(&json!(vec![json!({"lines": ["+"]}); n]))
    }),
    shape("changes of one file by commands", 3_000, command_changes),
    shape("names of files that a command changed", 40_000, |n| {
        let files: Vec<Value> =
            (0..n).map(|idx| json!({"filePath": format!("/loom/{idx}"), "hunks": []})).collect();
        let names: Vec<String> = (0..n).map(|idx| format!("/loom/n{idx}")).collect();
        let mut lines = result("ok");
        lines[2]["toolUseResult"]["bashEditDiff"] = json!({"files": files, "changedFiles": names});
        lines
    }),
    shape("a snapshot of many files", 100_000, |n| snapshot("/loom", n)),
    shape("a snapshot of many files in a long folder", 100_000, |n| {
        snapshot(&format!("/{}", "loom/".repeat(800)), n)
    }),
    shape("a long folder with many edits", 4_000, |n| {
        let mut lines = edits_of_files(n);
        lines[0]["cwd"] = json!(format!("/{}", "loom".repeat(20 * n)));
        lines
    }),
    shape("very many working directories", 20_000, |n| {
        let mut lines = edits_of_files(n / 2);
        lines.iter_mut().enumerate().for_each(|(idx, line)| line["cwd"] = json!(format!("/loom/{idx}")));
        lines
    }),
    shape("different tokens", 60_000, |n| {
        result_text(&(0..n).map(|idx| format!("ghp_{}\n", letters(idx, 36))).collect::<String>())
    }),
    shape("different passwords", 100_000, |n| {
        result_text(&(0..n).map(|idx| format!("password={}\n", letters(idx, 12))).collect::<String>())
    }),
    shape("one password, many times", 200_000, |n| {
        let password = letters(1, 12);
        result_text(&format!("password={password}\n{}", format!("{password}\n").repeat(n)))
    }),
    shape("a long turn with an open call", 20_000, |n| {
        let first = [user(0, None, json!("x")), reply(1, Some(0), 1, json!([call("t1")]))];
        let more = (2..n).map(|idx| reply(idx, Some(idx - 1), idx, words(&"weft ".repeat(100))));
        first.into_iter().chain(more).collect()
    }),
    shape("edits of one file", 2_000, edits),
    shape("edits of one long file", 6_000, edits_of_long_file),
    shape("a call of many questions", 40_000, questions),
    shape("a list of many tasks", 50_000, |n| {
        let todos = |word: &str| -> Vec<Value> {
            (0..n).map(|idx| json!({"content": format!("{word}{idx}"), "status": "pending"})).collect()
        };
        let input = json!({"todos": todos("new")});
        let call = json!([{"type": "tool_use", "id": "t1", "name": "TodoWrite", "input": input}]);
        let mut answer = user(2, Some(1), answer("t1", "ok"));
        answer["toolUseResult"] = json!({"oldTodos": todos("old"), "newTodos": todos("new")});
        vec![
            user(0, None, json!("go")),
            reply(1, Some(0), 1, call),
            answer,
            reply(3, Some(2), 2, words("done")),
        ]
    }),
    shape("a turn of many tools", 20_000, |n| {
        let mut lines = edits_of_files(n);
        for (idx, line) in lines.iter_mut().enumerate().filter(|(idx, _)| idx % 2 == 1) {
            line["message"]["content"][0]["name"] = json!(format!("mcp__loom__{idx}"));
        }
        lines
    }),
    shape("JSON in JSON, arrays", 1_000_000, |n| deep(n, "[", "]")),
    shape("JSON in JSON, objects", 300_000, |n| deep(n, "{\"a\":", "}")),
    shape("many keys", 200_000, many_keys),
    shape("an input of many objects", 100_000, |n| {
        let input: serde_json::Map<String, Value> =
            (0..n).map(|idx| (format!("k{idx}"), json!({"a": [idx]}))).collect();
        let call = json!([{"type": "tool_use", "id": "t1", "name": "mcp__a__b", "input": input}]);
        vec![user(0, None, json!("x")), reply(1, Some(0), 1, call), user(2, Some(1), answer("t1", "ok"))]
    }),
    shape("sub-agents inside the log", 10_000, inline_agents),
    HostileShape { name: "sub-agents", units: 500, make: agent_calls, side_files: |n| agent_logs(n, 20) },
    HostileShape {
        name: "sub-agents of two lines",
        units: 2_500,
        make: agent_calls,
        side_files: |n| agent_logs(n, 2),
    },
    HostileShape {
        name: "sub-agents in sub-agents",
        units: 500,
        make: |_| agent_calls(2),
        side_files: nested_agents,
    },
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

/// Returns a session with one tool result, whose text the log contains once.
fn result_text(text: &str) -> Vec<Value> {
    vec![
        user(0, None, json!("go")),
        reply(1, Some(0), 1, json!([call("t1")])),
        user(2, Some(1), answer("t1", text)),
    ]
}

/// Returns a session with one call.
fn tool(name: &str, input: Value) -> Vec<Value> {
    let call = json!([{"type": "tool_use", "id": "t1", "name": name, "input": input}]);
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, call), user(2, Some(1), answer("t1", "ok"))]
}

/// Returns a session with one edit, whose result has this patch.
fn edit_with_patch(patch: &Value) -> Vec<Value> {
    let mut lines = tool("Edit", json!({"file_path": "/loom/a", "old_string": "a", "new_string": "b"}));
    lines[2]["toolUseResult"] =
        json!({"filePath": "/loom/a", "oldString": "a", "newString": "b", "structuredPatch": patch});
    lines
}

/// Returns a session with one call and its result, and `n` further calls of a tool.
fn one_call_and_more(
    first: &str,
    input: &Value,
    result: &Value,
    n: usize,
    tool_name: &str,
    more: &Value,
) -> Vec<Value> {
    let mut lines = tool(first, input.clone());
    lines[2]["toolUseResult"] = result.clone();
    let call = |idx: usize| {
        let call = json!([{"type": "tool_use", "id": format!("u{idx}"), "name": tool_name, "input": more}]);
        reply(idx, Some(idx - 1), idx, call)
    };
    lines.extend((3..n).map(call));
    lines
}

/// Returns a session with `n` calls: those of one tool, and as many of another one after them.
fn one_tool_and_another(n: usize, first: &str, second: &str, input: &Value) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("go"))];
    for idx in 0..n {
        let id = format!("t{idx}");
        let (name, input) = if idx < n / 2 { (first, json!({})) } else { (second, input.clone()) };
        let call = json!([{"type": "tool_use", "id": id, "name": name, "input": input}]);
        lines.push(reply(2 * idx + 1, Some(2 * idx), idx, call));
        let mut result = user(2 * idx + 2, Some(2 * idx + 1), answer(&id, "ok"));
        result["toolUseResult"] = json!({"task": {"id": id, "subject": "x"}, "agentId": id});
        lines.push(result);
    }
    lines
}

/// Commands that changed the same file, each with its change.
fn command_changes(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    for idx in (1..n * 2).step_by(2) {
        let id = format!("t{idx}");
        lines.push(reply(idx, Some(idx - 1), idx, json!([call(&id)])));
        let mut answer = user(idx + 1, Some(idx), answer(&id, "ok"));
        let hunk = json!({"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-same", format!("+{idx}")]});
        answer["toolUseResult"] = json!({"stdout": "", "stderr": "", "interrupted": false,
            "bashEditDiff": {"files": [{"filePath": "/loom/a", "hunks": [hunk]}], "changedFiles": []}});
        lines.push(answer);
    }
    lines
}

/// Returns letters and digits that depend on a number and look random.
fn letters(seed: usize, count: usize) -> String {
    const DIGITS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyzABCD3456";
    let mut state = seed as u64 + 1;
    let mut next = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        char::from(DIGITS[(state >> 59) as usize])
    };
    (0..count).map(|_| next()).collect()
}

/// Returns a session with this text as prompt and as reply.
fn exchange(text: &str) -> Vec<Value> {
    vec![user(0, None, json!(text)), reply(1, Some(0), 1, words(text))]
}

/// Returns a message of so many bytes, with its newline, that lacks a uuid, a parent, a time and a session.
fn bare_message(idx: usize, length: usize) -> Value {
    let role = if idx.is_multiple_of(2) { "user" } else { "assistant" };
    let message = |text: &str| json!({"type": role, "message": {"role": role, "content": [{"type": "text", "text": text}]}});
    padded(length, message)
}

/// Returns a reply of so many bytes, with its newline: two calls, and a message id. It lacks other fields.
fn bare_calls(idx: usize, length: usize) -> Value {
    let call = |number: usize, command: &str| json!({"type": "tool_use", "id": format!("t{idx}.{number}"), "name": "Bash", "input": {"command": command}});
    let reply = |command: &str| {
        json!({"type": "assistant", "message": {"role": "assistant", "id": format!("m{idx}"),
            "content": [call(0, command), call(1, "")]}})
    };
    padded(length, reply)
}

/// Returns a line of so many bytes, with its newline: two results. It lacks all fields.
fn bare_results(idx: usize, length: usize) -> Value {
    let result = |number: usize, text: &str| json!({"type": "tool_result", "tool_use_id": format!("t{idx}.{number}"), "content": text});
    let line = |text: &str| json!({"type": "user", "message": {"role": "user", "content": [result(0, text), result(1, "")]}});
    padded(length, line)
}

/// Returns a line of so many bytes, with its newline, made with a text that is long enough.
fn padded(length: usize, line: impl Fn(&str) -> Value) -> Value {
    let padding = length.saturating_sub(line("").to_string().len() + 1);
    line(&"x".repeat(padding))
}

/// Returns a message of so many blocks, which lacks all fields besides.
fn message_of_blocks(idx: usize, n_blocks: usize, block: impl Fn(usize) -> Value) -> Value {
    let content: Vec<Value> = (0..n_blocks).map(block).collect();
    let role = if content[0]["type"] == "tool_result" { "user" } else { "assistant" };
    json!({"type": role, "message": {"role": role, "id": format!("m{idx}"), "content": content}})
}

/// Returns a session that began in `cwd`, with a snapshot of files in it.
fn snapshot(cwd: &str, n: usize) -> Vec<Value> {
    let backup = json!({"backupFileName": null});
    let backups: serde_json::Map<String, Value> =
        (0..n).map(|idx| (format!("a{idx}"), backup.clone())).collect();
    let snapshot = json!({"messageId": uuid(0), "trackedFileBackups": backups});
    let mut prompt = user(0, None, json!("x"));
    prompt["cwd"] = json!(cwd);
    vec![prompt, json!({"type": "file-history-snapshot", "messageId": uuid(0), "snapshot": snapshot})]
}

/// Returns a session with edits of one file each, by a relative path.
fn edits_of_files(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    for file in 0..n {
        let (idx, id, path) = (2 * file + 1, format!("t{file}"), format!("a{file}"));
        let input = json!({"file_path": path, "old_string": "a", "new_string": "b"});
        let call = json!([{"type": "tool_use", "id": id, "name": "Edit", "input": input}]);
        lines.push(reply(idx, Some(idx - 1), idx, call));
        let mut result = user(idx + 1, Some(idx), answer(&id, "ok"));
        result["toolUseResult"] =
            json!({"filePath": path, "oldString": "a", "newString": "b", "originalFile": "a\n"});
        lines.push(result);
    }
    lines
}

/// Replies, each of another model.
fn models(n: usize) -> Vec<Value> {
    let lines = (1..n).map(|idx| {
        let mut line = reply(idx, Some(idx - 1), idx, words("t"));
        line["message"]["model"] = json!(format!("claude-opus-{idx}"));
        line
    });
    std::iter::once(user(0, None, json!("x"))).chain(lines).collect()
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

fn fan_out(n: usize) -> Vec<Value> {
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

/// Calls that were never answered, each below the one before.
fn unanswered(n: usize) -> Vec<Value> {
    let lines = (1..n).map(|idx| reply(idx, Some(idx - 1), idx, json!([call(&format!("t{idx}"))])));
    std::iter::once(user(0, None, json!("x"))).chain(lines).collect()
}

/// A reply of calls that were never answered, and one that follows it.
fn unanswered_reply(n: usize) -> Vec<Value> {
    let calls: Vec<Value> = (0..n).map(|idx| call(&format!("t{idx}"))).collect();
    vec![user(0, None, json!("x")), reply(1, Some(0), 1, json!(calls)), reply(2, Some(1), 2, words("done"))]
}

/// A result and many attachments, which a replay appends to it.
fn reminders(n: usize) -> Vec<Value> {
    let old_model = |mut line: Value| {
        line["message"]["model"] = json!("claude-sonnet-4-5");
        line
    };
    let mut lines = vec![
        user(0, None, json!("x")),
        old_model(reply(1, Some(0), 1, json!([call("t1")]))),
        user(2, Some(1), answer("t1", "ok")),
    ];
    for idx in 3..n {
        let mut attachment = line(idx, Some(idx - 1), "attachment", Value::Null);
        attachment["attachment"] =
            json!({"type": "total_tokens_reminder", "text": format!("{idx} tokens are left")});
        lines.push(attachment);
    }
    lines.push(old_model(reply(n, Some(n - 1), 2, words("done"))));
    lines
}

/// Many edits of one file, each with the file as it was before.
fn edits(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    let file = "a line of some length that stays\n".repeat(50);
    for idx in (1..n * 2).step_by(2) {
        let old = format!("{file}{idx}\n");
        let id = format!("t{idx}");
        let edit = json!([{"type": "tool_use", "id": id, "name": "Edit",
            "input": {"file_path": "/loom/a", "old_string": idx.to_string(), "new_string": (idx + 2).to_string()}}]);
        lines.push(reply(idx, Some(idx - 1), idx, edit));
        let mut answer = user(idx + 1, Some(idx), answer(&id, "ok"));
        answer["toolUseResult"] = json!({"filePath": "/loom/a", "oldString": idx.to_string(),
            "newString": (idx + 2).to_string(), "originalFile": old, "structuredPatch": [{"oldStart": 51, "oldLines": 1,
            "newStart": 51, "newLines": 1, "lines": [format!("-{idx}"), format!("+{}", idx + 2)]}]});
        lines.push(answer);
    }
    lines
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

/// One call that asks very many questions, and its answers.
fn questions(n: usize) -> Vec<Value> {
    let questions: Vec<Value> = (0..n)
        .map(|idx| json!({"question": format!("q{idx}?"), "options": [{"label": "a"}, {"label": "b"}]}))
        .collect();
    let answers: serde_json::Map<String, Value> =
        (0..n).map(|idx| (format!("q{idx}?"), json!("a"))).collect();
    let call = json!([{"type": "tool_use", "id": "t1", "name": "AskUserQuestion", "input": {"questions": questions}}]);
    let mut answer = user(2, Some(1), answer("t1", "ok"));
    answer["toolUseResult"] = json!({"questions": [], "answers": answers});
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, call), answer, reply(3, Some(2), 2, words("done"))]
}

/// A call whose input, and a result whose details, are nested so deep.
fn deep(n: usize, open: &str, close: &str) -> Vec<Value> {
    let nested = format!("{DEEP}{n}~{open}~{close}:end");
    let call = json!([{"type": "tool_use", "id": "t1", "name": "mcp__x__y", "input": {"a": nested}}]);
    let mut answer = user(2, Some(1), answer("t1", "ok"));
    answer["toolUseResult"] = json!(nested);
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, call), answer, reply(3, Some(2), 2, words("done"))]
}

/// A line, and the input of a call, with very many keys.
fn many_keys(n: usize) -> Vec<Value> {
    let object: serde_json::Map<String, Value> = (0..n).map(|idx| (format!("k{idx}"), json!(idx))).collect();
    let input = Value::Object(object.clone());
    let call = json!([{"type": "tool_use", "id": "t1", "name": "mcp__x__y", "input": input}]);
    let mut wide = user(2, Some(1), answer("t1", "ok"));
    for (key, value) in object {
        wide[&key] = value;
    }
    vec![user(0, None, json!("go")), reply(1, Some(0), 1, call), wide]
}

fn agent_call(number: usize) -> Value {
    json!({"type": "tool_use", "id": format!("t{number}"), "name": "Task",
        "input": {"description": "look", "prompt": format!("look at {number}"), "subagent_type": "general-purpose"}})
}

/// A call for each of so many sub-agents, with its result.
fn agent_calls(n: usize) -> Vec<Value> {
    let mut lines = vec![user(0, None, json!("x"))];
    for number in 0..n {
        let idx = lines.len();
        lines.push(reply(idx, Some(idx - 1), idx, json!([agent_call(number)])));
        let mut answer = user(idx + 1, Some(idx), answer(&format!("t{number}"), "ok"));
        answer["toolUseResult"] =
            json!({"status": "completed", "agentId": format!("a{number}"), "content": []});
        lines.push(answer);
    }
    lines
}

/// Returns the name of the log of a sub-agent, and its text.
fn agent_log(number: usize, mut lines: Vec<Value>) -> (String, String) {
    for line in &mut lines {
        line["isSidechain"] = json!(true);
        line["agentId"] = json!(format!("a{number}"));
    }
    (format!("subagents/agent-a{number}.jsonl"), text(&lines))
}

/// The log of each sub-agent of [`agent_calls`], of so many lines.
fn agent_logs(n: usize, n_lines: usize) -> Vec<(String, String)> {
    let log = |number: usize| {
        let base = 1_000_000 + number * 20;
        let mut lines = vec![user(base, None, json!(format!("look at {number}")))];
        lines.extend(
            (1..n_lines)
                .map(|idx| reply(base + idx, Some(base + idx - 1), base + idx, words("warp and weft"))),
        );
        agent_log(number, lines)
    };
    (0..n).map(log).collect()
}

/// Sub-agents of which each started the next.
fn nested_agents(n: usize) -> Vec<(String, String)> {
    let log = |number: usize| {
        let base = 1_000_000 + number * 20;
        let mut lines = vec![user(base, None, json!(format!("look at {number}")))];
        lines.push(reply(base + 1, Some(base), base + 1, json!([agent_call(number + 1)])));
        let mut answer = user(base + 2, Some(base + 1), answer(&format!("t{}", number + 1), "ok"));
        answer["toolUseResult"] =
            json!({"status": "completed", "agentId": format!("a{}", number + 1), "content": []});
        lines.push(answer);
        lines.extend(
            (3..20).map(|idx| reply(base + idx, Some(base + idx - 1), base + idx, words("warp and weft"))),
        );
        agent_log(number, lines)
    };
    (0..n).map(log).collect()
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
