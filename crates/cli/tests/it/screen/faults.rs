//! Faults: of the API, of the terminal, of the process.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;
use threadline_testkit::api::ScriptedReply;

use super::{ENTER, MODEL, Stage, ask, wait_idle};

#[test]
fn a_wrong_key_and_a_full_context_are_explained_and_the_session_goes_on() {
    let stage = Stage::new(vec![
        ScriptedReply::error(403, "permission_error", "not allowed"),
        ScriptedReply::error(
            400,
            "invalid_request_error",
            "prompt is too long: 300000 tokens > 200000 maximum",
        ),
        ScriptedReply::text("Now it works."),
    ]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "first", "✗ Failed to authenticate. API Error: 403");
    ask(&mut terminal, "second", "✗ Prompt is too long");
    ask(&mut terminal, "third", "Now it works.");
}

#[test]
fn retries_are_shown_with_their_reason() {
    let headers = vec![("retry-after", "1".to_owned())];
    let overloaded =
        ScriptedReply::Error { status: 529, kind: "overloaded_error", message: "Overloaded", headers };
    let stage = Stage::new(vec![overloaded, ScriptedReply::text("Finally.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("try\r");
    terminal.wait_for("overloaded (529); attempt 1 of 2");
    wait_idle(&terminal, "Finally.");
}

#[test]
fn a_broken_stream_is_repeated() {
    let blocks = vec![json!({"type": "text", "text": "A whole answer."})];
    let stage =
        Stage::new(vec![ScriptedReply::Cut { blocks, after: 520 }, ScriptedReply::text("A second answer.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "go", "A second answer.");
}

#[test]
fn a_terminal_that_is_closed_ends_the_session_in_order() {
    let stall = ScriptedReply::Stall {
        blocks: vec![json!({"type": "text", "text": "never"})],
        after: 100,
        pause: Duration::from_secs(30),
    };
    let stage = Stage::new(vec![stall]);
    let mut terminal = stage.open(&[]);
    terminal.send("go\r");
    stage.api.wait_for_requests(1);
    terminal.send("an unsent draft");
    terminal.wait_for("an unsent draft");
    terminal.signal(Signal::HUP);
    terminal.wait_exit();
    let kinds: Vec<String> =
        stage.lines().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds.last().map(String::as_str), Some("last-prompt"), "{kinds:?}");
    let history = std::fs::read_to_string(stage.path("home/history.jsonl")).unwrap();
    assert!(history.contains("an unsent draft"), "{history}");
    assert!(!terminal.is_raw());
}

#[test]
fn a_stopped_screen_continues() {
    let stage = Stage::new(vec![ScriptedReply::text("An answer.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "hello", "An answer.");
    terminal.signal(Signal::STOP);
    terminal.signal(Signal::CONT);
    terminal.send("typed after it");
    terminal.wait_for("typed after it");
    assert!(terminal.is_raw());
}

#[test]
fn without_a_key_the_first_start_says_what_to_set() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.start_with(&[], &[("ANTHROPIC_API_KEY", "")], (24, 80));
    assert_eq!(terminal.wait_exit().code(), Some(1));
    let text = terminal.wait_for("--demo chat");
    assert!(text.contains("Set ANTHROPIC_API_KEY"), "{text}");
}

#[test]
fn a_demonstration_needs_nothing() {
    let stage = Stage::new(Vec::new());
    let mut terminal = {
        let envs = [("HOME", stage.path("user").into_os_string()), ("PATH", "/usr/bin:/bin".into())];
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_threadline"));
        threadline_testkit::terminal::TestTerminal::start(
            program,
            &["--demo", "chat"],
            &envs,
            &stage.path("work"),
            (24, 80),
        )
    };
    terminal.wait_for("scripted model");
    terminal.send(&format!("hello{ENTER}"));
    let screen = terminal.wait_for("Set ANTHROPIC_API_KEY to talk to a real model.");
    assert!(!screen.contains(MODEL), "{screen}");
}

#[test]
fn a_screen_for_screen_readers_only_appends_lines() {
    let call = ScriptedReply::call("Bash", json!({"command": "touch made"}));
    let stage = Stage::new(vec![call, ScriptedReply::text("It is made.")]);
    let mut terminal = stage.start(&["--screen-reader"], (24, 80));
    terminal.wait_for("Prompt:");
    assert!(!terminal.is_raw());
    terminal.send("make it\n");
    let screen = terminal.wait_for("Type a number:");
    assert!(screen.contains("Question: Run a command") && screen.contains("1. Yes"), "{screen}");
    terminal.send("1\n");
    terminal.wait_for("It is made.");
    assert!(stage.work("made").exists());
    terminal.send("/permissions\n");
    terminal.wait_for("1. Add a rule…");
    terminal.send(">\n");
    terminal.wait_for("allow  [ask]  deny");
    terminal.send("1\n");
    terminal.wait_for("Type a text, or nothing to return:");
    terminal.send("WebFetch\n");
    terminal.wait_for("Where is the rule “ask WebFetch” saved?");
    terminal.send("3\n");
    terminal.wait_for("Added ask WebFetch to ~/.claude/settings.json.");
    assert!(std::fs::read_to_string(stage.path("home/settings.json")).unwrap().contains("WebFetch"));
    terminal.send("\n");
    let bytes = String::from_utf8_lossy(&terminal.bytes()).into_owned();
    assert!(!bytes.contains("\u{1b}[?") && !bytes.contains("\u{1b}[K"), "{bytes:?}");
    terminal.send("\u{4}");
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

#[test]
fn a_session_that_cannot_be_opened_is_a_failure() {
    let stage = Stage::new(Vec::new());
    stage.write("empty.jsonl", "");
    let log = stage.path("empty.jsonl");
    let mut terminal = stage.start(&["--resume", log.to_str().unwrap()], (24, 80));
    terminal.wait_for("contains no conversation");
    assert_eq!(terminal.wait_exit().code(), Some(1));
    assert!(!terminal.is_raw());
}
