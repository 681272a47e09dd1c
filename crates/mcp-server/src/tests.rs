//! An MCP client in memory talks to the server.

mod untrusted;

use std::sync::Arc;

use jiff::tz::TimeZone;
use rmcp::model::{
    ArgumentInfo, CallToolRequestParams, CallToolResult, CompleteRequestParams, CompletionContext,
    GetPromptRequestParams, PaginatedRequestParams, ReadResourceRequestParams, Reference, ResourceContents,
};
use rmcp::service::{Peer, RoleClient, serve_client};
use serde_json::{Value, json};
use threadline_app::{App, AppConfig, Mask, ProjectScope};
use threadline_testkit::{TestHome, session_uuid};

use crate::stdio::serve;
use crate::{HistoryOptions, HistoryServer, tool_names};

fn server(home: &TestHome, scope: ProjectScope, redacts: bool) -> HistoryServer {
    let mask = if redacts { Mask::built_in() } else { Mask::default() };
    let config = AppConfig {
        homes: vec![home.root().to_owned()],
        mask,
        current_dir: Some("/home/ada/loom".into()),
        ..AppConfig::default()
    };
    let options = HistoryOptions { scope, zone: TimeZone::UTC, version: "1.0".to_owned(), client: Some(7) };
    HistoryServer::new(Arc::new(App::new(config)), options).unwrap()
}

/// Runs a test with a client of a server for all projects of a home, with secrets masked.
fn with_client(home: &TestHome, test: impl AsyncFnOnce(Peer<RoleClient>)) {
    with_client_of(server(home, ProjectScope::All, true), test);
}

fn with_client_of(server: HistoryServer, test: impl AsyncFnOnce(Peer<RoleClient>)) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(ours);
        let serving = tokio::spawn(serve(server, input, output));
        let client = serve_client((), tokio::io::split(theirs)).await.unwrap();
        test(client.peer().clone()).await;
        client.cancel().await.unwrap();
        serving.await.unwrap().unwrap();
    });
}

async fn call(peer: &Peer<RoleClient>, tool: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    peer.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap()
}

/// Calls a tool that succeeds, and returns its data and its text.
async fn answer(peer: &Peer<RoleClient>, tool: &'static str, arguments: Value) -> (Value, String) {
    let result = call(peer, tool, arguments).await;
    let text = text_of(&result);
    assert_eq!(result.is_error, Some(false), "{tool}: {text}");
    (result.structured_content.unwrap(), text)
}

fn text_of(result: &CallToolResult) -> String {
    result.content.iter().filter_map(|block| Some(block.as_text()?.text.clone())).collect()
}

const TALK: &str = r#"
u1        user   "why is the loom slow?\n\nPlease look."
a1 <- u1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 tool t1 Bash {"command":"grep sleep *"}
r1 <- a2  result t1 "a.rs: sleep(9)"
a3 <- r1  reply  m2 text "A sleep on line 9."
u2 <- a3  user   "take it out"
a4 <- u2  reply  m3 tool t2 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"sleep(9);","new_string":"wait();"}
r2 <- a4  result t2 "done" {"filePath":"/home/ada/loom/a.rs","oldString":"sleep(9);","newString":"wait();","originalFile":"sleep(9);\n","structuredPatch":[]}
a5 <- r2  reply  m4 text "Done."
"#;

fn loom() -> TestHome {
    let home = TestHome::new();
    home.session("slow", TALK);
    home.session_in("/home/ada/other", "other", "u1 user \"weave the loom\"\na1 <- u1 reply m1 text \"No.\"");
    home
}

#[test]
fn every_tool_has_schemas_and_answers() {
    let home = loom();
    let slow = session_uuid("slow");
    with_client(&home, async |peer| {
        let tools = peer.list_all_tools().await.unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, tool_names().collect::<Vec<_>>());
        for tool in &tools {
            assert_eq!(tool.input_schema["type"], "object", "{}", tool.name);
            let output = tool.output_schema.as_ref().unwrap();
            assert_eq!(output["type"], "object", "{}", tool.name);
            assert!(output["properties"]["items"].is_object(), "{}", tool.name);
            let hints = tool.annotations.as_ref().unwrap();
            assert_eq!((hints.read_only_hint, hints.open_world_hint), (Some(true), Some(false)));
        }
        for (tool, arguments, count) in [
            ("search_sessions", json!({ "query": "loom kind:prompt" }), 2),
            ("list_sessions", json!({}), 2),
            ("read_session", json!({ "session": slow }), 2),
            ("session_changes", json!({ "session": slow }), 1),
            ("find_edits", json!({ "file": "a.rs" }), 1),
            ("usage", json!({ "by": "session" }), 2),
            ("check_session", json!({ "session": slow }), 0),
        ] {
            let (data, text) = answer(&peer, tool, arguments).await;
            assert_eq!(data["items"].as_array().map(Vec::len), Some(count), "{tool}: {data}");
            assert!(!text.is_empty(), "{tool}");
        }
    });
}

#[test]
fn a_check_returns_problems_and_notes_on_request() {
    let home = TestHome::new();
    home.session("moved", "u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\" cwd=/elsewhere");
    home.agent("moved", "x1", "b1 user \"look\"\nraw {\"type\":\"us", None);
    let moved = session_uuid("moved");
    with_client(&home, async |peer| {
        let (data, text) = answer(&peer, "check_session", json!({ "session": moved })).await;
        assert!(text.contains(&format!("{moved}#a-x1-m2")), "{text}");
        assert!(text.contains("1 harmless note not returned"), "{text}");
        let (all, text) = answer(&peer, "check_session", json!({ "session": moved, "notes": true })).await;
        assert_eq!(all["total"].as_u64(), data["total"].as_u64().map(|problems| problems + 1));
        assert!(text.contains("1 problem, 1 note"), "{text}");
    });
}

#[test]
fn unreadable_sub_agents_are_noted() {
    let home = loom();
    let slow = session_uuid("slow");
    // A file in the place of the folder.
    home.file(format!("projects/-home-ada-loom/{slow}/subagents"), "");
    with_client(&home, async |peer| {
        for (tool, arguments) in [
            ("session_changes", json!({ "session": slow })),
            ("session_changes", json!({ "session": slow, "at": "end" })),
            ("read_session", json!({ "session": slow })),
            ("check_session", json!({ "session": slow })),
        ] {
            let (data, text) = answer(&peer, tool, arguments).await;
            assert!(data["notes"][0].as_str().unwrap().contains("/subagents"), "{tool}: {data}");
            assert!(text.contains("/subagents"), "{tool}: {text}");
        }
    });
}

#[test]
#[cfg(unix)]
fn usage_notes_deleted_logs_and_refuses_unknown_groupings() {
    let home = loom();
    std::os::unix::fs::symlink("nowhere", home.root().join("projects/-home-ada-loom/gone.jsonl")).unwrap();
    with_client(&home, async |peer| {
        let (_, text) = answer(&peer, "usage", json!({ "by": "day" })).await;
        assert!(text.contains("gone.jsonl no longer exists"), "{text}");
        assert_eq!(call(&peer, "usage", json!({ "by": "colour" })).await.is_error, Some(true));
    });
}

#[test]
fn items_name_their_source_time_and_project() {
    let home = loom();
    let slow = session_uuid("slow");
    with_client(&home, async |peer| {
        let (data, text) = answer(&peer, "search_sessions", json!({ "query": "sleep kind:reply" })).await;
        let item = &data["items"][0];
        assert_eq!(item["source"], format!("{slow}#m5"));
        assert_eq!(item["project"], "/home/ada/loom");
        assert_eq!(item["timestamp"], "2026-01-01T10:00:04.000Z");
        assert!(text.contains(&format!("{slow}#m5 · 2026-01-01 10:00 · reply")), "{text}");
        // The source is a name for read_session.
        let (data, _) = answer(&peer, "read_session", json!({ "session": item["source"] })).await;
        assert_eq!(data["items"][0]["text"], "A sleep on line 9.");
        let (data, _) = answer(&peer, "find_edits", json!({ "file": "/home/ada/loom/a.rs" })).await;
        let edit = &data["items"][0];
        assert_eq!((&edit["source"], &edit["turn"]), (&json!(format!("{slow}#m7")), &json!(2)));
        assert_eq!((&edit["project"], &edit["prompt"]), (&json!("/home/ada/loom"), &json!("take it out")));
        for (tool, arguments) in [
            ("list_sessions", json!({ "words": "slow" })),
            ("session_changes", json!({ "session": slow })),
            ("usage", json!({ "by": "session", "session": slow })),
        ] {
            let (data, _) = answer(&peer, tool, arguments).await;
            assert_eq!(data["items"][0]["source"], slow, "{tool}: {data}");
        }
    });
}

#[test]
fn a_session_is_read_as_outline_turns_items_and_agents() {
    let home = loom();
    let slow = session_uuid("slow");
    let meta = r#"{"agentType":"Explore","description":"look around","toolUseId":"t1"}"#;
    home.agent("slow", "x1", "u1 user \"look\"\na1 <- u1 reply m9 text \"seen it\"", Some(meta));
    with_client(&home, async |peer| {
        let read = async |arguments: Value| {
            let mut object = json!({ "session": slow });
            object.as_object_mut().unwrap().extend(arguments.as_object().unwrap().clone());
            answer(&peer, "read_session", object).await
        };
        let texts = |data: &Value| -> Vec<String> {
            let items = data["items"].as_array().unwrap();
            items.iter().map(|item| format!("{} {}", item["kind"], item["text"]).replace('"', "")).collect()
        };
        let (data, _) = read(json!({})).await;
        assert_eq!(texts(&data), ["turn why is the loom slow?", "turn take it out"]);
        assert_eq!((&data["turns"], &data["sub_agents"]), (&json!(2), &json!(1)));
        let (data, _) = read(json!({ "turns": "-1" })).await;
        assert_eq!(texts(&data), ["prompt take it out", "call ", "reply Done."]);
        assert_eq!(data["items"][1]["summary"], "a.rs: +1 −1");
        let (data, _) = read(json!({ "turns": "1", "detail": "prompts" })).await;
        assert_eq!(data["items"].as_array().unwrap().len(), 1);
        let (_, text) = read(json!({ "item": "m3" })).await;
        assert!(text.contains("command:\n  grep sleep *") && text.contains("a.rs: sleep(9)"), "{text}");
        let (data, _) = read(json!({ "part": "agents" })).await;
        assert_eq!(texts(&data), ["agent look around"]);
        let (data, _) = read(json!({ "agent": "x1", "turns": "1" })).await;
        assert_eq!(texts(&data), ["prompt look", "reply seen it"]);
        assert_eq!(data["items"][1]["source"], format!("{slow}#a-x1-m2"));
        let (data, _) = read(json!({ "item": "a-x1-m2" })).await;
        assert_eq!(texts(&data), ["reply seen it"]);
    });
}

#[test]
fn changes_of_a_command_are_read_with_its_call() {
    let home = TestHome::new();
    home.session(
        "shell",
        r#"
u1        user   "weave it"
a1 <- u1  reply  m1 tool t1 Bash {"command":"./weave"}
r1 <- a1  result t1 "ok" {"stdout":"ok","bashEditDiff":{"files":[{"filePath":"/home/ada/loom/a.rs","hunks":[{"oldStart":1,"newStart":1,"lines":["-x","+y"]}]}],"moreFiles":1,"changedFiles":["/home/ada/loom/a.rs","/home/ada/loom/b.png"]}}
"#,
    );
    let shell = session_uuid("shell");
    with_client(&home, async |peer| {
        let (_, text) = answer(&peer, "read_session", json!({ "session": shell })).await;
        assert!(text.contains("2 edits (2 by shell)"), "{text}");
        let (data, _) = answer(&peer, "read_session", json!({ "session": shell, "turns": "1" })).await;
        assert_eq!(data["items"][1]["summary"], "./weave: changed 2 files, +1 −1");
        let (data, _) = answer(&peer, "read_session", json!({ "session": shell, "item": "m2" })).await;
        let changes =
            "changes:\na.rs (+1 −1)\n@@ -1 +1 @@\n-x\n+y\n1 more file changed (lines not recorded): b.png\n";
        assert_eq!(data["items"][0]["text"], format!("command:\n./weave\noutput:\nok\n{changes}"));
    });
}

#[test]
fn changes_are_a_patch_or_the_file_at_a_prompt() {
    let home = TestHome::new();
    home.session(
        "write",
        r#"
u1        user   "write it"
a1 <- u1  reply  m1 tool t1 Write {"file_path":"/home/ada/loom/a.rs","content":"one\n"}
r1 <- a1  result t1 "created" {"type":"create","filePath":"/home/ada/loom/a.rs","content":"one\n","structuredPatch":[],"originalFile":null}
u2 <- r1  user   "again"
a2 <- u2  reply  m2 tool t2 Edit {"file_path":"/home/ada/loom/a.rs","old_string":"one","new_string":"two"}
r2 <- a2  result t2 "done" {"filePath":"/home/ada/loom/a.rs","oldString":"one","newString":"two","originalFile":"one\n","structuredPatch":[]}
"#,
    );
    let write = session_uuid("write");
    with_client(&home, async |peer| {
        let (data, text) = answer(&peer, "session_changes", json!({ "session": write })).await;
        assert_eq!(
            (&data["items"][0]["state"], &data["items"][0]["lines_added"]),
            (&json!("added"), &json!(1))
        );
        assert!(text.contains("+++ b/a.rs") && text.contains("+two"), "{text}");
        let arguments = json!({ "session": write, "at": "2", "file": "a.rs" });
        let (data, _) = answer(&peer, "session_changes", arguments).await;
        assert_eq!(
            (&data["items"][0]["state"], &data["items"][0]["text"]),
            (&json!("present"), &json!("one\n"))
        );
        let (data, _) = answer(&peer, "session_changes", json!({ "session": write, "at": "1" })).await;
        assert_eq!(data["items"][0]["state"], "absent");
        // The same names select files with and without a turn. A folder is below the project.
        for (name, count) in [("a.rs", 1), ("/home/ada", 1), ("ada", 0)] {
            let arguments = json!({ "session": write, "file": name });
            let (data, _) = answer(&peer, "session_changes", arguments).await;
            assert_eq!(data["items"].as_array().map(Vec::len), Some(count), "{name}");
            let arguments = json!({ "session": write, "file": name, "at": "end" });
            let is_error = call(&peer, "session_changes", arguments).await.is_error;
            assert_eq!(is_error, Some(count == 0), "{name}");
        }
    });
}

#[test]
fn a_session_without_edits_has_no_changes_at_any_time() {
    let home = TestHome::new();
    let talk = r#"
u1        user   "make it"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "exit 2" error
"#;
    home.session("make", talk);
    let make = session_uuid("make");
    with_client(&home, async |peer| {
        for arguments in [json!({ "session": make }), json!({ "session": make, "at": "end" })] {
            let (_, text) = answer(&peer, "session_changes", arguments).await;
            assert!(text.contains("no edits of files in this session"), "{text}");
        }
        let (_, text) = answer(&peer, "read_session", json!({ "session": make })).await;
        assert!(text.contains("1 tool call · 1 error"), "{text}");
        let both = json!({ "session": make, "turns": "1", "item": "m2" });
        let refused = call(&peer, "read_session", both).await;
        assert_eq!(refused.is_error, Some(true));
        assert!(text_of(&refused).contains("both turns and item are given"), "{}", text_of(&refused));
    });
}

#[test]
fn answers_fit_the_budget_and_continue() {
    let home = TestHome::new();
    let long = "word ".repeat(2_000);
    let mut notation = String::new();
    for n in 0..60 {
        let parent = if n == 0 { String::new() } else { format!("<- a{} ", n - 1) };
        notation +=
            &format!("u{n} {parent}user \"prompt {n}\"\na{n} <- u{n} reply m{n} text \"{n} {long}\"\n");
    }
    home.session("long", &notation);
    let session = session_uuid("long");
    with_client(&home, async |peer| {
        let mut arguments = json!({ "session": session, "turns": "1..", "max_tokens": 2000 });
        let mut sources = Vec::new();
        loop {
            let (data, text) = answer(&peer, "read_session", arguments.clone()).await;
            assert!(text.len() <= 6_000 && data.to_string().len() <= 6_000, "{}", data.to_string().len());
            sources.extend(data["items"].as_array().unwrap().iter().map(|item| item["source"].clone()));
            let Some(cursor) = data.get("next_cursor") else { break };
            assert!(text.contains("next page"), "{text}");
            arguments["cursor"] = cursor.clone();
        }
        let expected: Vec<Value> = (1..=120).map(|line| json!(format!("{session}#m{line}"))).collect();
        assert_eq!(sources, expected);
        // One item as a whole, in several pages.
        let mut arguments = json!({ "session": session, "item": "m2", "max_tokens": 1000 });
        let mut whole = String::new();
        loop {
            let (data, _) = answer(&peer, "read_session", arguments.clone()).await;
            whole += data["items"][0]["text"].as_str().unwrap();
            let Some(cursor) = data.get("next_cursor") else { break };
            arguments["cursor"] = cursor.clone();
        }
        assert_eq!(whole, format!("0 {}", long.trim_end()));
        // A resource has no cursor, so its end names the call that continues it.
        let uri = format!("threadline://session/{session}/turns/1..");
        let read = peer.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!() };
        let next = text.split_once("(next page: the tool read_session with ").unwrap().1;
        let next = serde_json::from_str(next.trim_end().strip_suffix(')').unwrap()).unwrap();
        let (data, _) = answer(&peer, "read_session", next).await;
        let source = data["items"][0]["source"].as_str().unwrap();
        assert!(
            text.contains("[m2 ·") && !text.contains(&format!("[{} ·", source.rsplit_once('#').unwrap().1))
        );
        arguments["item"] = json!("m4");
        let result = call(&peer, "read_session", arguments).await;
        assert!(result.is_error == Some(true) && text_of(&result).contains("another request"), "{result:?}");
    });
}

#[test]
fn the_smallest_answers_fit_their_budget() {
    let home = TestHome::new();
    let long = "warp and weft ".repeat(100);
    let folder = "/home/ada/a-folder-with-a-long-name/".repeat(4);
    let log = format!(
        r#"
u1        user   "{long}" branch={branch}
a1 <- u1  reply  m1 tool t1 Bash {{"command":"echo {long}"}}
r1 <- a1  result t1 "{long}" error
a2 <- r1  reply  m2 tool t2 Write {{"file_path":"/home/ada/loom/a.rs","content":"{long}"}}
r2 <- a2  result t2 "created" {{"type":"create","filePath":"/home/ada/loom/a.rs","content":"{long}","structuredPatch":[],"originalFile":null}}
a3 <- ?x9 reply  m3 text "{long}"
raw {{"type":"us
title "{long}"
"#,
        branch = "branch-".repeat(30)
    );
    home.session_in(&folder, "long", &log);
    let meta = format!(r#"{{"agentType":"{long}","description":"{long}","toolUseId":"t1"}}"#);
    home.agent("long", "x1", "u1 user \"look\"", Some(&meta));
    let session = session_uuid("long");
    with_client(&home, async |peer| {
        for (tool, mut arguments) in [
            ("search_sessions", json!({ "query": "warp" })),
            ("list_sessions", json!({})),
            ("read_session", json!({ "session": session })),
            ("read_session", json!({ "session": session, "turns": "1..", "detail": "full" })),
            ("read_session", json!({ "session": session, "item": "m2" })),
            ("read_session", json!({ "session": session, "part": "agents" })),
            ("session_changes", json!({ "session": session })),
            ("find_edits", json!({ "file": "/home/ada/loom/a.rs" })),
            ("usage", json!({ "by": "session" })),
            ("check_session", json!({ "session": session, "notes": true })),
        ] {
            arguments["max_tokens"] = 400.into();
            loop {
                let (data, text) = answer(&peer, tool, arguments.clone()).await;
                let json = data.to_string();
                assert!(!data["items"].as_array().unwrap().is_empty(), "{tool}: {data}");
                assert!(json.len() <= 1_200, "{tool}: {} bytes: {json}", json.len());
                assert!(text.len() <= 1_200, "{tool}: {} bytes: {text}", text.len());
                let Some(cursor) = data["next_cursor"].as_str() else { break };
                arguments["cursor"] = cursor.into();
            }
        }
    });
}

/// The names of the fields of a value, and of the items in it.
fn field_names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn figures_have_the_names_of_the_public_json() {
    let home = loom();
    let slow = session_uuid("slow");
    with_client(&home, async |peer| {
        let (data, _) = answer(&peer, "list_sessions", json!({ "words": "slow" })).await;
        let names = field_names(&data["items"][0]);
        let expected = ["id", "last_active_at", "started_at", "tokens", "cost_usd", "turns", "errors"];
        assert!(expected.iter().all(|name| names.contains(name)), "{names:?}");
        assert_eq!(
            field_names(&data["items"][0]["tokens"]),
            ["cache_read", "cache_write", "input", "output"]
        );
        let (data, _) = answer(&peer, "usage", json!({ "by": "day" })).await;
        assert_eq!(
            field_names(&data["items"][0]),
            [
                "cache_read_tokens",
                "cache_write_1h_tokens",
                "cache_write_5m_tokens",
                "calls",
                "cost_usd",
                "day",
                "input_tokens",
                "is_minimum",
                "output_tokens",
                "web_searches"
            ]
        );
        let (data, _) = answer(&peer, "usage", json!({ "by": "session", "session": slow })).await;
        assert_eq!(
            (&data["items"][0]["session"], &data["items"][0]["project"]),
            (&json!(slow), &json!("/home/ada/loom"))
        );
        let (data, _) = answer(&peer, "read_session", json!({ "session": slow, "turns": "1" })).await;
        assert_eq!(data["items"][0]["timestamp"], "2026-01-01T10:00:00.000Z");
        let (data, _) = answer(&peer, "find_edits", json!({ "file": "/home/ada/loom/a.rs" })).await;
        assert_eq!(data["items"][0]["edited_at"], "2026-01-01T10:00:07.000Z");
        let (data, _) = answer(&peer, "session_changes", json!({ "session": slow })).await;
        assert_eq!(data["last_active_at"], "2026-01-01T10:00:08.000Z");
    });
}

#[test]
fn counts_have_a_singular_and_say_if_they_are_a_minimum() {
    let home = TestHome::new();
    let mut log = "u0 user \"weave\"\n".to_owned();
    for n in 1..=30 {
        log += &format!("a{n} <- u{} reply m{n} text \"the shuttle\"\nu{n} <- a{n} user \"on\"\n", n - 1);
    }
    home.session("many", &log);
    home.session(
        "one",
        "u1 user \"go\" @2026-01-02T10:00:00Z\na1 <- u1 reply m1 tool t1 Bash {\"command\":\"make\"}\nr1 <- a1 result t1 \"no\" error",
    );
    with_client(&home, async |peer| {
        let (data, text) = answer(&peer, "search_sessions", json!({ "query": "shuttle" })).await;
        assert_eq!((&data["matches"], &data["is_minimum"]), (&json!(20), &json!(true)));
        assert!(text.starts_with("at least 20 matches in 1 session; 2 logs searched\n"), "{text}");
        let (data, text) = answer(&peer, "search_sessions", json!({ "query": "weave" })).await;
        assert_eq!(data["is_minimum"], false);
        assert!(text.starts_with("1 match in 1 session; 2 logs searched\n"), "{text}");
        let (_, text) = answer(&peer, "list_sessions", json!({ "words": "go" })).await;
        assert!(
            text.starts_with("1 session\n") && text.contains("1 turn ·") && text.contains("1 error"),
            "{text}"
        );
        let one = session_uuid("one");
        let (_, text) = answer(&peer, "read_session", json!({ "session": one })).await;
        assert!(text.contains("(1 call, 1 error") && text.contains(" · 1 turn"), "{text}");
        let (_, text) = answer(&peer, "read_session", json!({ "session": one, "turns": "1" })).await;
        assert!(text.contains("error") && !text.contains("error, error"), "{text}");
    });
}

#[test]
fn a_search_for_the_newest_matches_ends_with_its_page_and_continues() {
    let home = TestHome::new();
    for number in 0..60 {
        home.session(&format!("s{number}"), "u1 user \"a slow loom\"\na1 <- u1 reply m1 text \"It is.\"");
    }
    with_client(&home, async |peer| {
        let mut sources = Vec::new();
        let mut arguments = json!({"query": "loom", "sort": "newest", "max_tokens": 400});
        let mut is_first = true;
        loop {
            let (data, text) = answer(&peer, "search_sessions", arguments.clone()).await;
            assert!(!is_first || text.contains("older sessions were not searched"), "{text}");
            sources.extend(data["items"].as_array().unwrap().iter().map(|item| item["source"].clone()));
            let Some(cursor) = data["next_cursor"].as_str() else { break };
            arguments["cursor"] = cursor.into();
            is_first = false;
        }
        let mut distinct: Vec<String> = sources.iter().map(Value::to_string).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!((sources.len(), distinct.len()), (60, 60));
    });
}

#[test]
fn errors_are_results_that_say_what_to_do() {
    let home = loom();
    with_client(&home, async |peer| {
        for (tool, arguments, message) in [
            ("read_session", json!({ "session": "nothing like it" }), "no session matches"),
            ("read_session", json!({ "session": "slow" , "nonsense": 1 }), "unknown field"),
            ("read_session", json!({ "session": "/etc/passwd" }), "no session matches"),
            ("search_sessions", json!({ "query": "\"open" }), "no closing quote"),
            ("search_sessions", json!({}), "missing field"),
            ("list_sessions", json!({ "since": "soon" }), "not a date"),
            ("usage", json!({ "by": "colour" }), "unknown grouping"),
        ] {
            let result = call(&peer, tool, arguments).await;
            assert!(
                result.is_error == Some(true) && text_of(&result).contains(message),
                "{}",
                text_of(&result)
            );
        }
        assert!(peer.call_tool(CallToolRequestParams::new("edit_session")).await.is_err());
    });
}

#[test]
fn a_scope_hides_other_projects() {
    let home = loom();
    let scope = ProjectScope::Folders(vec!["/home/ada/loom".to_owned()]);
    let other = session_uuid("other");
    with_client_of(server(&home, scope, true), async |peer| {
        let (data, _) = answer(&peer, "search_sessions", json!({ "query": "loom kind:prompt" })).await;
        assert_eq!((&data["logs_searched"], &data["matches"]), (&json!(1), &json!(1)));
        let (data, _) = answer(&peer, "list_sessions", json!({})).await;
        assert_eq!(data["total"], 1);
        let (data, _) = answer(&peer, "usage", json!({ "by": "project" })).await;
        assert_eq!(data["items"].as_array().unwrap().len(), 1, "{data}");
        // A session of another project is answered about like one that does not exist.
        for name in [&*other, &other[..4], "weave the loom", "weave"] {
            let result = call(&peer, "read_session", json!({ "session": name })).await;
            let text = text_of(&result);
            assert!(text.starts_with(&format!("no session matches `{name}`\n")), "{text}");
            let unknown = call(&peer, "read_session", json!({ "session": "zz" })).await;
            assert_eq!(text.replace(name, "zz"), text_of(&unknown));
        }
        // Neither titles nor ids of other projects are suggested.
        let result = call(&peer, "read_session", json!({ "session": "weave the lom" })).await;
        assert!(!text_of(&result).contains("weave the loom") && !text_of(&result).contains(&other));
        let resources = peer.list_all_resources().await.unwrap();
        assert_eq!(resources.len(), 1);
        let (data, _) = answer(&peer, "read_session", json!({ "session": "last" })).await;
        assert_eq!(data["session"], session_uuid("slow"));
    });
}

#[test]
fn answers_about_a_project_without_sessions_name_the_options_for_others() {
    let home = loom();
    let scope = ProjectScope::Folders(vec!["/home/ada/empty".to_owned()]);
    with_client_of(server(&home, scope, true), async |peer| {
        for (tool, arguments) in
            [("list_sessions", json!({})), ("search_sessions", json!({ "query": "loom" }))]
        {
            let (_, text) = answer(&peer, tool, arguments).await;
            assert!(text.contains("in /home/ada/empty") && text.contains("--all"), "{text}");
            assert!(text.contains("--project"), "{text}");
        }
    });
    with_client(&home, async |peer| {
        let (_, text) = answer(&peer, "search_sessions", json!({ "query": "absent" })).await;
        assert!(text.contains("in all projects") && !text.contains("--all"), "{text}");
    });
}

#[test]
fn resources_prompts_and_completion_name_sessions() {
    let home = loom();
    let slow = session_uuid("slow");
    with_client(&home, async |peer| {
        let resources = peer.list_all_resources().await.unwrap();
        assert!(resources.iter().any(|resource| resource.uri == format!("threadline://session/{slow}")));
        assert_eq!(peer.list_all_resource_templates().await.unwrap().len(), 5);
        let read = async |uri: String| {
            let read = peer.read_resource(ReadResourceRequestParams::new(uri)).await.unwrap();
            let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!() };
            text.clone()
        };
        for (part, expected) in [
            ("", "2. m6"),
            ("/turns/2", "[m6 ·"),
            ("/item/m5", "A sleep on line 9."),
            ("/changes", "+wait();"),
        ] {
            let text = read(format!("threadline://session/{slow}{part}")).await;
            assert!(text.contains(expected), "{part}: {text}");
        }
        for uri in ["file:///etc/passwd", "threadline://session/../x", "threadline://session/x/y"] {
            assert!(peer.read_resource(ReadResourceRequestParams::new(uri)).await.is_err(), "{uri}");
        }
        let prompts = peer.list_all_prompts().await.unwrap();
        let names: Vec<&str> = prompts.iter().map(|prompt| &*prompt.name).collect();
        assert_eq!(names, ["decisions", "continue", "recent"]);
        for (name, arguments, expected) in [
            ("decisions", json!({ "topic": "loom" }), "why is the loom slow?"),
            ("continue", json!({ "session": slow }), "take it out"),
            ("recent", json!({ "since": "2025" }), "why is the loom slow?"),
        ] {
            let arguments = arguments.as_object().unwrap().clone();
            let request = GetPromptRequestParams::new(name).with_arguments(arguments);
            let prompt = peer.get_prompt(request).await.unwrap();
            let text = prompt.messages[0].content.as_text().unwrap().text.clone();
            assert!(text.contains(expected), "{name}: {text}");
        }
        assert!(peer.get_prompt(GetPromptRequestParams::new("decisions")).await.is_err());
        let complete = async |reference: Reference, name: &str, value: &str| {
            let context = CompletionContext::with_arguments([("session".to_owned(), slow.clone())].into());
            let request = CompleteRequestParams::new(reference, ArgumentInfo::new(name, value));
            peer.complete(request.with_context(context)).await.unwrap().completion.values
        };
        assert_eq!(complete(Reference::for_prompt("continue"), "session", &slow[..8]).await, [&*slow]);
        let template = || Reference::for_resource("threadline://session/{session}/turns/{turns}");
        assert_eq!(complete(template(), "session", "SLOW").await, [&*slow]);
        assert_eq!(complete(template(), "turns", "").await, ["1", "2"]);
        assert!(complete(Reference::for_prompt("decisions"), "topic", "x").await.is_empty());
        let page = PaginatedRequestParams::default().with_cursor(Some("x".to_owned()));
        assert!(peer.list_resources(Some(page)).await.is_err());
    });
}

#[test]
fn the_session_of_the_client_is_left_out_of_searches() {
    let home = loom();
    let (slow, other) = (session_uuid("slow"), session_uuid("other"));
    home.file("sessions/7.json", format!(r#"{{"pid":7,"sessionId":"{slow}"}}"#));
    with_client(&home, async |peer| {
        let (data, _) = answer(&peer, "search_sessions", json!({ "query": "loom kind:prompt" })).await;
        assert_eq!((&data["matches"], &data["logs_searched"]), (&json!(1), &json!(1)));
        let query = json!({ "query": format!("loom kind:prompt session:{slow}") });
        let (data, _) = answer(&peer, "search_sessions", query).await;
        assert_eq!(data["matches"], 1);
        let (data, _) = answer(&peer, "read_session", json!({ "session": "last" })).await;
        assert_eq!(data["session"], other);
        let (data, _) = answer(&peer, "list_sessions", json!({})).await;
        let current = data["items"].as_array().unwrap().iter().find(|item| item["current"] == true);
        assert_eq!(current.unwrap()["id"], slow);
    });
}

#[test]
fn a_search_does_not_find_earlier_calls_of_the_server() {
    let home = TestHome::new();
    home.session(
        "asks",
        r#"
u1        user   "what about it?"
a1 <- u1  reply  m1 tool t1 mcp__threadline__search_sessions {"query":"shuttle"}
r1 <- a1  result t1 "shuttle: nothing"
a2 <- r1  reply  m2 text "Nothing about the shuttle."
"#,
    );
    with_client(&home, async |peer| {
        let (data, _) = answer(&peer, "search_sessions", json!({ "query": "shuttle" })).await;
        let kinds: Vec<&Value> = data["items"].as_array().unwrap().iter().map(|item| &item["kind"]).collect();
        assert_eq!(kinds, ["reply"]);
        let query = json!({ "query": "shuttle tool:mcp__*" });
        let (data, _) = answer(&peer, "search_sessions", query).await;
        assert_eq!(data["items"].as_array().unwrap().len(), 2);
    });
}

#[test]
fn earlier_calls_of_the_server_do_not_count_as_matches_of_a_session() {
    let home = TestHome::new();
    let call = |n: usize| {
        format!(
            "a{n} <- u1 reply m{n} tool t{n} mcp__threadline__search_sessions {{\"query\":\"shuttle\"}}\n\
             r{n} <- a{n} result t{n} \"shuttle: nothing\"\n"
        )
    };
    let calls: String = (1..30).map(call).collect();
    home.session("asks", &format!("u1 user \"what about it?\"\n{calls}u2 user \"Where is the shuttle?\"\n"));
    with_client(&home, async |peer| {
        let query = json!({ "query": "shuttle", "per_session": 1, "project": "loom" });
        let (data, _) = answer(&peer, "search_sessions", query).await;
        let kinds: Vec<&Value> = data["items"].as_array().unwrap().iter().map(|item| &item["kind"]).collect();
        assert_eq!(kinds, ["prompt"]);
        let query = json!({ "query": "shuttle", "project": "elsewhere" });
        assert_eq!(answer(&peer, "search_sessions", query).await.0["logs_searched"], 0);
    });
}
