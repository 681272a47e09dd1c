//! Tests of the notation: the bytes that each form produces.

use std::panic::catch_unwind;

use threadline_testkit::{TestHome, corpus, demo, log, log_of, session_uuid, slug};

fn text(notation: &str) -> String {
    String::from_utf8(log(notation)).expect("these logs are text")
}

/// Returns the top-level keys of the only line, in order.
fn keys(notation: &str) -> String {
    let text = text(notation);
    let mut depth = 0;
    let mut keys = Vec::new();
    for (i, c) in text.char_indices() {
        depth += i32::from(c == '{' || c == '[') - i32::from(c == '}' || c == ']');
        if depth == 1 && text[i..].starts_with("\":") {
            keys.push(&text[text[..i].rfind('"').expect("a key is quoted") + 1..i]);
        }
    }
    keys.join(" ")
}

fn value(notation: &str) -> serde_json::Value {
    let bytes = log(notation);
    serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{e} in {}", String::from_utf8_lossy(&bytes)))
}

fn message_of_panic(notation: &str) -> String {
    let notation = notation.to_owned();
    let panic = catch_unwind(move || log(&notation)).expect_err("a mistake");
    *panic.downcast::<String>().expect("a formatted message")
}

#[test]
fn a_prompt_is_a_whole_line() {
    assert_eq!(
        text(r#"u1 user "why?""#),
        concat!(
            r#"{"parentUuid":null,"isSidechain":false,"type":"user","#,
            r#""message":{"role":"user","content":"why?"},"uuid":"u1","timestamp":"2026-01-01T10:00:00.000Z","#,
            r#""userType":"external","entrypoint":"cli","cwd":"/home/ada/loom","sessionId":"s1","#,
            r#""version":"2.1.197","gitBranch":"main"}"#,
            "\n"
        )
    );
}

#[test]
fn keys_have_the_order_of_each_version() {
    let envelope = "userType entrypoint cwd sessionId version gitBranch";
    assert_eq!(
        keys(r#"a1 <- ?u1 reply m1 text "Yes.""#),
        format!("parentUuid isSidechain message requestId type uuid timestamp {envelope}")
    );
    assert_eq!(
        keys(r#"a1 reply m1 text "Yes." version=2.1.20 agent=a7 sidechain"#),
        "parentUuid isSidechain userType cwd sessionId version gitBranch agentId message requestId type uuid timestamp"
    );
    assert_eq!(
        keys(r#"r1 <- ?a1 result t1 "ok" {"stdout":"ok"}"#),
        format!(
            "parentUuid isSidechain type message uuid timestamp toolUseResult sourceToolAssistantUUID {envelope}"
        )
    );
    assert_eq!(
        keys("b1 <- ?a1 boundary auto"),
        format!(
            "parentUuid logicalParentUuid isSidechain type subtype content isMeta timestamp uuid level compactMetadata {envelope}"
        )
    );
}

#[test]
fn the_clock_advances_one_second_per_line() {
    let text = text(
        r#"
u1 user "a"
# a comment takes no time
title "no timestamp, but a tick"
u2 user "b"
u3 user "c" @+5m
u4 user "d" @10:00:07.500
u5 user "e"
u6 user "f" @2026-02-03T04:05:06Z
u7 user "g" @-1.5s
"#,
    );
    let times: Vec<&str> =
        text.lines().filter_map(|l| l.split(r#""timestamp":""#).nth(1)).map(|l| &l[8..23]).collect();
    let expected = [
        "01T10:00:00.000",
        "01T10:00:02.000",
        "01T10:05:03.000",
        "01T10:00:07.500",
        "01T10:00:08.500",
        "03T04:05:06.000",
        "03T04:05:05.500",
    ];
    assert_eq!(times, expected);
}

#[test]
fn blocks_of_every_kind() {
    let blocks = |notation: &str| value(notation)["message"]["content"].to_string();
    assert_eq!(
        blocks(r#"a1 reply m1 tool t1 Bash {"command":"ls"}"#),
        r#"[{"id":"t1","input":{"command":"ls"},"name":"Bash","type":"tool_use"}]"#
    );
    assert_eq!(
        blocks(r#"a1 reply m1 [thinking "" "c2ln", redacted, fallback one two, {"type":"new"}]"#),
        concat!(
            r#"[{"signature":"c2ln","thinking":"","type":"thinking"},{"data":"sealed","type":"redacted_thinking"},"#,
            r#"{"from":{"model":"one"},"to":{"model":"two"},"type":"fallback"},{"type":"new"}]"#
        )
    );
    assert_eq!(blocks(r#"u1 user [{"type":"text","text":"a]"}]"#), r#"[{"text":"a]","type":"text"}]"#);
    let mixed = blocks(r#"u1 user [text "a, b]", image, image jpeg, document, result t1 [ref Grep] error]"#);
    for part in
        ["a, b]", "image/png", "image/jpeg", "application/pdf", r#""tool_name":"Grep""#, r#""is_error":true"#]
    {
        assert!(mixed.contains(part), "{part} in {mixed}");
    }
}

#[test]
fn results_have_a_tool_use_result() {
    let line = value(r#"r1 result t1 "Exit code 1" error "Error: Exit code 1""#);
    assert_eq!(line["toolUseResult"], "Error: Exit code 1");
    assert_eq!(line["message"]["content"][0]["is_error"], true);
    let line = value(r#"r1 result t1 {"stdout":""}"#);
    assert_eq!(line["toolUseResult"]["stdout"], "");
    assert_eq!(line["message"]["content"][0]["content"], "");
}

#[test]
fn modifiers_change_their_line() {
    let line = value(
        r#"a1 reply m1 text "x" model=<synthetic> usage={"output_tokens":5} stop=end_turn req=r9 version=2.0.1 cwd="/my loom" branch=dev session=s2 team=weavers meta -timestamp +{"isApiErrorMessage":true,"cwd":"/b"}"#,
    );
    assert_eq!(line["message"]["model"], "<synthetic>");
    assert_eq!(line["message"]["stop_reason"], "end_turn");
    assert_eq!(line["message"]["usage"]["output_tokens"], 5);
    assert_eq!(line["message"]["usage"]["input_tokens"], 0);
    assert_eq!(line["requestId"], "r9");
    assert_eq!(line["cwd"], "/b");
    assert_eq!(line["sessionId"], "s2");
    assert_eq!(line["teamName"], "weavers");
    assert_eq!(line["isApiErrorMessage"], true);
    assert_eq!(line["isMeta"], true);
    assert!(line.get("timestamp").is_none());
}

#[test]
fn other_lines_of_the_tree() {
    let line = value(r#"s1 system local_command "<command-name>/cost</command-name>" {"level":"info"}"#);
    assert_eq!((&line["subtype"], &line["level"]), (&"local_command".into(), &"info".into()));
    let line = value(r#"p1 progress bash t1 {"output":"x"}"#);
    assert_eq!((&line["data"]["type"], &line["toolUseID"]), (&"bash_progress".into(), &"t1".into()));
    let line = value(r#"x1 attach hook_success {"content":"ok"}"#);
    assert_eq!((&line["attachment"]["type"], &line["type"]), (&"hook_success".into(), &"attachment".into()));
    let line = value(r#"b1 <- ?a1 boundary manual {"preTokens":9}"#);
    assert_eq!(
        (&line["logicalParentUuid"], &line["compactMetadata"]["preTokens"]),
        (&"a1".into(), &9.into())
    );
    assert_eq!(value(r#"c1 compact-summary "So far …""#)["isCompactSummary"], true);
}

#[test]
fn records_outside_of_the_tree() {
    assert_eq!(
        text(
            r#"
title "Looms"
ai-title "Weaving"
summary "Old" leaf u9
last-prompt "go" leaf a1
queue enqueue "next"
mode normal
permission-mode plan
pr-link 12 ada/loom
tag "wip"
agent-name weaver
snapshot u1 update {"a.rs":{"version":1}}
entry cost-state {"totalCostUSD":0.5}
"#
        ),
        r#"{"type":"custom-title","customTitle":"Looms","sessionId":"s1"}
{"type":"ai-title","aiTitle":"Weaving","sessionId":"s1"}
{"type":"summary","summary":"Old","leafUuid":"u9"}
{"type":"last-prompt","lastPrompt":"go","leafUuid":"a1","sessionId":"s1"}
{"type":"queue-operation","operation":"enqueue","timestamp":"2026-01-01T10:00:04.000Z","sessionId":"s1","content":"next"}
{"type":"mode","mode":"normal","sessionId":"s1"}
{"type":"permission-mode","permissionMode":"plan","sessionId":"s1"}
{"type":"pr-link","sessionId":"s1","prNumber":12,"prUrl":"https://github.com/ada/loom/pull/12","prRepository":"ada/loom","timestamp":"2026-01-01T10:00:07.000Z"}
{"type":"tag","tag":"wip","sessionId":"s1"}
{"type":"agent-name","agentName":"weaver","sessionId":"s1"}
{"type":"file-history-snapshot","messageId":"u1","snapshot":{"messageId":"u1","trackedFileBackups":{"a.rs":{"version":1}},"timestamp":"2026-01-01T10:00:10.000Z"},"isSnapshotUpdate":true}
{"type":"cost-state","sessionId":"s1","totalCostUSD":0.5}
"#
    );
}

#[test]
fn broken_lines_are_written_as_given() {
    assert_eq!(
        log("raw {\"a\" : 1}  \nhex 7b ff 7d\ntorn {\"b\":\nraw 2}"),
        b"{\"a\" : 1}  \n{\xff}\n{\"b\":2}\n"
    );
}

#[test]
fn json_is_copied_as_written() {
    assert!(text(r#"u1 user "caf\u00e9 \ud800""#).contains(r#""content":"caf\u00e9 \ud800""#));
    assert!(text(r#"a1 reply m1 tool t1 X {"b": 1, "a": 2}"#).contains(r#""input":{"b": 1, "a": 2}"#));
}

#[test]
fn errors_contain_the_line_number() {
    let message = message_of_panic("\nu1 user \"a\"\nu2 <- u9 user \"b\"");
    assert_eq!(message, "notation line 3: expected an id of this notation, or `?` before it, found `u9`");
    assert!(message_of_panic("u1 usr \"a\"").starts_with("notation line 1: expected a form"));
    assert!(message_of_panic("u1 user \"a").starts_with("notation line 1: expected JSON"));
    assert!(message_of_panic("u1 user [text \"a\"").starts_with("notation line 1: expected `]`"));
    assert!(message_of_panic("u1 user \"a\" -sessionID").contains("a key of this line to remove"));
    assert!(message_of_panic("u1 user \"a\" @noon").contains("a time"));
}

#[test]
fn a_home_has_the_folders_of_claude_code() {
    let home = TestHome::new();
    let path = home.session("demo", "u1 user \"hello\"");
    let id = session_uuid("demo");
    assert_eq!(path, home.root().join(format!("projects/-home-ada-loom/{id}.jsonl")));
    assert_eq!(std::fs::read(path).unwrap(), log_of(&id, "u1 user \"hello\""));

    let path = home.session_in(r"C:\Users\Ada\loom site", "site", "u1 user \"hello\"");
    assert!(path.starts_with(home.root().join("projects/C--Users-Ada-loom-site")));

    let agent = home.agent("site", "a1b2", "u1 user \"look\"", Some("{}"));
    let folder = path.with_extension("").join("subagents");
    assert_eq!(agent, folder.join("agent-a1b2.jsonl"));
    assert!(folder.join("agent-a1b2.meta.json").exists());
    let line: serde_json::Value = serde_json::from_slice(&std::fs::read(agent).unwrap()).unwrap();
    assert_eq!((&line["isSidechain"], &line["agentId"]), (&true.into(), &"a1b2".into()));
}

#[test]
fn names_of_sessions_and_folders() {
    let uuid = "0f8fad5b-d9cb-469f-a165-70867728950e";
    assert_eq!(session_uuid(uuid), uuid);
    assert_eq!(session_uuid("demo"), session_uuid("demo"));
    assert_ne!(session_uuid("demo"), session_uuid("demo2"));
    assert_eq!(session_uuid("demo").len(), 36);
    assert_eq!(slug("/home/ada/.loom_é😀"), "-home-ada--loom----");
}

/// Returns the names of the `.jsonl` files in a folder of the repository, without the extension.
fn log_names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder of the repository");
    let names =
        entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name in UTF-8"));
    names.filter_map(|name| name.strip_suffix(".jsonl").map(str::to_owned)).collect()
}

#[test]
fn the_corpus_explains_each_of_its_logs() {
    let readme = std::fs::read_to_string(corpus().join("README.md")).unwrap();
    let names = log_names(&corpus());
    for name in &names {
        assert!(readme.contains(&format!("| `{name}.jsonl` |")), "{name} has no line in README.md");
    }
    for version in ["2.1.197", "2.1.325"] {
        let replay = std::fs::read(corpus().join(format!("replay-{version}.json"))).unwrap();
        let replay: serde_json::Value = serde_json::from_slice(&replay).unwrap();
        for name in &names {
            assert!(replay.get(format!("{name}.jsonl")).is_some(), "{name} is not in replay-{version}.json");
        }
    }
    assert_eq!(readme.matches(".jsonl` |").count(), names.len(), "README.md names logs that are not there");
}

#[test]
fn the_demo_explains_each_of_its_sessions() {
    let readme = std::fs::read_to_string(demo().join("README.md")).unwrap();
    let mut n_sessions = 0;
    for project in std::fs::read_dir(demo().join("projects")).unwrap() {
        for name in log_names(&project.unwrap().path()) {
            if !name.starts_with("agent-") {
                assert!(readme.contains(&name), "{name} has no line in README.md");
                n_sessions += 1;
            }
        }
    }
    assert_eq!(readme.matches("| `").count(), n_sessions, "README.md names sessions that are not there");
}
