//! `list`, and how sessions and homes are referred to.

use insta::assert_snapshot;
use serde_json::json;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{at_home, threadline};

const TALK: &str = r#"
u1        user   "why is it slow?" branch=main
a1 <- u1  reply  m1 text "Let me look."
title "Slow loom"
tag "speed"
"#;

#[test]
fn json_has_every_field() {
    let home = TestHome::new();
    let path = home.session("slow", TALK);
    home.agent("slow", "a1b2c3", "u1 user \"look\"", None);
    let run = at_home(&home, &["list", "--json"]);
    let [mut session] = run.json_lines().try_into().unwrap();
    assert!(session["modified_at"].as_str().unwrap().ends_with('Z'));
    session["modified_at"] = "now".into();
    let size = std::fs::metadata(&path).unwrap().len();
    let expected = json!({
        "id": session_uuid("slow"),
        "path": format!("[home]/projects/-home-ada-loom/{}.jsonl", session_uuid("slow")),
        "project": "/home/ada/loom",
        "folder": "-home-ada-loom",
        "cwd": "/home/ada/loom",
        "title": "Slow loom",
        "first_prompt": "why is it slow?",
        "git_branch": "main",
        "tag": "speed", "tags": [], "pinned": false,
        "started_at": "2026-01-01T10:00:00.000Z",
        "last_active_at": "2026-01-01T10:00:01.000Z",
        "modified_at": "now",
        "size_bytes": size,
        "version": "2.1.197",
        "live": false,
        "turns": 1,
        "errors": 0,
        "tool_calls": 0,
        "sub_agents": 1,
        "models": ["claude-opus-4-8"],
        "tools": {},
        "tokens": {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0},
        "cost_usd": 0,
        "unpriced_models": [],
        "inherited_calls": 0,
    });
    assert_eq!(session, expected);
    assert_eq!(run.code, 0);
}

#[test]
fn turns_that_a_fork_inherited_are_marked() {
    let home = TestHome::new();
    let [origin, fork] = ["b", "a"].map(|name| format!("{name}0000000-0000-4000-8000-000000000001"));
    let talk = |more: &str| {
        format!(
            "u1 user \"weave\"\na1 <- u1 reply msg_1 text \"done\" usage={{\"input_tokens\":1000000}} {more}\n"
        )
    };
    home.session(&origin, &talk(""));
    let copied = talk(&format!("+{{\"requestSessionId\":\"{origin}\"}}"));
    home.session(&fork, &format!("{copied}u2 <- a1 user \"dye\" @+9s\n"));
    let run = at_home(&home, &["list"]);
    let rows: Vec<Vec<&str>> =
        run.out.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert!(
        rows[0].starts_with(&["a0000000"]) && rows[0].windows(2).any(|pair| pair == ["$0.00", "+"]),
        "{rows:?}"
    );
    assert!(rows[1].starts_with(&["b0000000"]) && !rows[1].contains(&"+"), "{rows:?}");
    assert_eq!(run.err, "+ forks: their turns include calls that count in another session\n");
    let inherited: Vec<_> = at_home(&home, &["list", "--json"])
        .json_lines()
        .into_iter()
        .map(|session: serde_json::Value| session["inherited_calls"].clone())
        .collect();
    assert_eq!(inherited, [json!(1), json!(0)]);
}

#[test]
fn all_lists_logs_without_a_title_and_a_prompt_too() {
    let home = TestHome::new();
    home.session("slow", TALK);
    home.session("empty", "");
    assert_eq!(at_home(&home, &["list", "--json"]).json_lines().len(), 1);
    assert_eq!(at_home(&home, &["list", "--all", "--json"]).json_lines().len(), 2);
}

#[test]
fn an_empty_home_exits_with_1_and_a_hint() {
    let home = TestHome::new();
    assert_snapshot!(at_home(&home, &["list"]), @r"
    exit: 1
    ----- stdout -----
    ----- stderr -----
    no sessions in [home]
    hint: use --home DIR for another folder, or --demo for sample sessions
    ");
}

#[test]
fn every_reading_command_says_that_a_home_is_empty() {
    let home = TestHome::new();
    for args in [&["list", "-p", "loom"][..], &["search", "loom"], &["usage"], &["check"], &["overview"]] {
        let run = at_home(&home, args);
        let hint =
            "no sessions in [home]\nhint: use --home DIR for another folder, or --demo for sample sessions";
        assert!(run.err.contains(hint), "{args:?}: {run}");
    }
    home.session("untitled", "");
    let run = at_home(&home, &["list"]);
    assert_eq!(run.err, "no sessions with a title or prompt; --all lists the others\n");
}

#[test]
fn filters_without_a_match_do_not_say_that_the_home_is_empty() {
    let home = TestHome::new();
    home.session("slow", TALK);
    for args in [
        &["list", "-p", "zzzz"][..],
        &["list", "zzzz"],
        &["list", "--branch", "zzzz"],
        &["list", "--model", "zzzz"],
        &["list", "--tool", "Zzzz"],
        &["list", "--since", "2030-01-01"],
    ] {
        let run = at_home(&home, args);
        assert_eq!((run.code, &*run.err), (1, "no sessions match these filters\n"), "{args:?}");
    }
}

#[test]
fn a_missing_home_is_an_error() {
    assert_snapshot!(threadline(["--home", "/no/such/place", "list"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: folder not found: `/no/such/place`
    hint: --home takes the folder that contains `projects`
    ");
}

#[test]
fn a_folder_instead_of_a_session_is_reported() {
    let home = TestHome::new();
    home.session("11111111-aaaa-4000-8000-000000000001", "u1 user \"first\"");
    assert_snapshot!(at_home(&home, &["show", "/"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: `/` is a folder, not a session
    hint: give the path of a log in it, such as DIR/SESSION_ID.jsonl
    hint: list sessions: `threadline --home [home] list`
    ");
}

#[test]
fn an_unknown_or_ambiguous_session_suggests_similar_ones() {
    let home = TestHome::new();
    home.session("11111111-aaaa-4000-8000-000000000001", "u1 user \"first\"\ntitle \"Slow loom\"");
    home.session("11111111-bbbb-4000-8000-000000000002", "u1 user \"second\"");
    assert_snapshot!(at_home(&home, &["show", "slow lom"]), @r#"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: no session matches `slow lom`
    hint: did you mean 11111111-aaaa-4000-8000-000000000001 "Slow loom" (2026-01-01)
    "#);
    let run = at_home(&home, &["show", "1111"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("error: `1111` matches 2 sessions\nhint: "), "{}", run.err);
    assert_eq!(at_home(&home, &["show", "slow loom"]).code, 0);
    assert_eq!(at_home(&home, &["show", "11111111-b"]).code, 0);
    assert_eq!(at_home(&home, &["show", "last"]).code, 0);
}

#[test]
fn homes_can_be_set_in_the_environment() {
    let (one, two) = (TestHome::new(), TestHome::new());
    one.session("first", TALK);
    two.session("second", TALK);
    let homes = format!("{},{}", one.root().display(), two.root().display());
    let done = crate::run::command(["list", "--json"]).env("CLAUDE_CONFIG_DIR", homes).output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap().lines().count(), 2);
}

#[test]
fn the_demo_works_without_claude_code() {
    let run = threadline(["--demo", "list", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.json_lines().len() >= 8);
    for session in run.json_lines() {
        let id = session["id"].as_str().unwrap();
        let shown = threadline(["--demo", "show", id]);
        assert_eq!(shown.code, 0, "{shown}");
        assert!(shown.out.lines().count() > 5, "{shown}");
    }
}

#[test]
fn the_last_session_of_an_empty_home_has_a_plain_error() {
    let home = TestHome::new();
    let run = crate::run::at_home(&home, &["show", "last"]);
    assert_eq!(run.code, 2);
    assert!(run.err.starts_with("error: there are no sessions in "), "{run}");
    assert!(run.err.contains("hint: use --home DIR"), "{run}");
}
