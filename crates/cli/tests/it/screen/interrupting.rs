//! Turns that a person joins, interrupts or moves to the background.

use std::time::Duration;

use serde_json::{Value, json};
use threadline_testkit::api::ScriptedReply;
use threadline_testkit::terminal::TestTerminal;

use super::typing::slow_reply;
use super::{ENTER, ESC, Stage, UP, wait_for_draft, wait_idle};

/// Leaves out the question about commands.
const ALLOWED: &[&str] = &["--permission-mode", "bypassPermissions"];

/// A reply of which nothing is received.
fn silent_reply() -> ScriptedReply {
    ScriptedReply::Stall {
        blocks: vec![json!({"type": "text", "text": "never"})],
        after: 300,
        pause: Duration::from_secs(30),
    }
}

/// A call that waits until a test writes to the pipe `go`.
fn waiting_call(stage: &Stage) -> ScriptedReply {
    let go = stage.work("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    ScriptedReply::call("Bash", json!({"command": "echo begun; cat go", "description": "Wait"}))
}

/// A stage with [`waiting_call`] as the first reply.
fn waiting_stage(then: Vec<ScriptedReply>) -> Stage {
    let mut stage = Stage::new(Vec::new());
    let call = waiting_call(&stage);
    stage.api = threadline_testkit::api::ScriptedApi::start([vec![call], then].concat());
    stage
}

fn start_waiting(stage: &Stage) -> TestTerminal {
    let mut terminal = stage.open(ALLOWED);
    terminal.send("wait\r");
    terminal.wait_for("    begun");
    terminal
}

#[test]
fn a_prompt_that_is_queued_joins_the_turn_after_a_tool() {
    let stage = waiting_stage(vec![ScriptedReply::text("Both done.")]);
    let mut terminal = start_waiting(&stage);
    terminal.send("also this\r");
    terminal.wait_for("> also this (queued)");
    std::fs::write(stage.work("go"), "end").unwrap();
    let screen = wait_idle(&terminal, "Both done.");
    assert!(screen.contains("\n> also this\n") && !screen.contains("(queued)"), "{screen}");
    assert_eq!(stage.api.requests().len(), 2, "no turn of its own");
    assert!(stage.last_request().contains("also this"), "{}", stage.last_request());
}

#[test]
fn esc_interrupts_and_queued_prompts_are_sent() {
    let stage = Stage::new(vec![slow_reply(), ScriptedReply::text("Second answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("first\r");
    stage.api.wait_for_requests(1);
    terminal.send("next thing\r");
    terminal.wait_for("> next thing (queued)");
    terminal.send("another thing\r");
    terminal.wait_for("> another thing (queued)");
    // The id of a reply that is interrupted is known as soon as the reply begins.
    terminal.wait_for("Beginning");
    terminal.send(ESC);
    let screen = wait_idle(&terminal, "Second answer.");
    assert!(screen.contains("■ interrupted") && screen.contains("\n> next thing\n"), "{screen}");
    let request = stage.last_request();
    for text in ["[Request interrupted by user]", "next thing", "another thing"] {
        assert!(request.contains(text), "{request}");
    }
    let lines = stage.lines();
    let line = lines.iter().find(|line| line["interruptedMessageId"].is_string());
    assert!(line.is_some_and(|line| line.to_string().contains("[Request interrupted by user]")), "{lines:?}");
}

#[test]
fn prompts_that_are_queued_in_a_turn_without_tools_follow_as_one_turn() {
    let stage = Stage::new(vec![ScriptedReply::text("First answer."), ScriptedReply::text("Both answered.")]);
    let go = stage.work("go");
    assert!(std::process::Command::new("mkfifo").arg(&go).status().unwrap().success());
    let mut terminal = stage.open(&[]);
    terminal.send("!echo begun; cat go\r");
    terminal.wait_for("    begun");
    for prompt in ["first thing", "second thing"] {
        terminal.send(&format!("{prompt}\r"));
        terminal.wait_for(&format!("> {prompt} (queued)"));
    }
    std::fs::write(go, "end").unwrap();
    let screen = wait_idle(&terminal, "Both answered.");
    assert!(screen.contains("\n> first thing\n\n> second thing\n"), "{screen}");
    assert_eq!(stage.api.requests().len(), 2, "one request for both");
    let request = stage.last_request();
    assert!(request.contains("first thing") && request.contains("second thing"), "{request}");
    let lines = stage.lines();
    let queued: Vec<&Value> = lines.iter().filter(|line| line["promptSource"] == "queued").collect();
    assert_eq!(queued.len(), 2);
    assert_eq!(queued[1]["parentUuid"], queued[0]["uuid"]);
}

#[test]
fn up_brings_queued_prompts_back_into_the_composer() {
    let stage = Stage::new(vec![slow_reply()]);
    let mut terminal = stage.open(&[]);
    terminal.send("first\r");
    stage.api.wait_for_requests(1);
    terminal.send("next thing\r");
    terminal.wait_for("Up changes the queued prompts");
    terminal.send(UP);
    terminal.wait_without("(queued)");
    wait_for_draft(&terminal, "next thing");
}

#[test]
fn esc_before_the_reply_gives_the_prompt_back() {
    let stage = Stage::new(vec![silent_reply(), ScriptedReply::text("An answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("a prompt\r");
    stage.api.wait_for_requests(1);
    terminal.wait_for("Esc interrupts");
    terminal.send(ESC);
    terminal.wait_for("the prompt is in the composer again");
    wait_for_draft(&terminal, "a prompt");
    terminal.send(&format!(" that is better{ENTER}"));
    wait_idle(&terminal, "An answer.");
    let messages = stage.api.requests()[1].body["messages"].as_array().unwrap().clone();
    assert_eq!(messages.len(), 1);
    assert!(!messages[0].to_string().contains("interrupted"), "{messages:?}");
}

#[test]
fn esc_before_the_reply_keeps_a_draft() {
    let stage = Stage::new(vec![silent_reply()]);
    let mut terminal = stage.open(&[]);
    terminal.send("a prompt\r");
    stage.api.wait_for_requests(1);
    terminal.send("my draft");
    wait_for_draft(&terminal, "my draft");
    terminal.send(ESC);
    wait_idle(&terminal, "■ interrupted");
    wait_for_draft(&terminal, "my draft");
}

#[test]
fn an_interrupted_command_is_not_shown_as_denied() {
    let stage = waiting_stage(Vec::new());
    let mut terminal = start_waiting(&stage);
    terminal.send(ESC);
    let screen = wait_idle(&terminal, "■ interrupted");
    assert!(screen.contains("▸ Bash") && screen.contains("interrupted"), "{screen}");
    assert!(!screen.contains("denied"), "{screen}");
}

#[test]
fn a_background_command_is_stopped_while_a_turn_runs() {
    let mut stage = Stage::new(Vec::new());
    let call = waiting_call(&stage);
    let stopped = stage.work("stopped");
    assert!(std::process::Command::new("mkfifo").arg(&stopped).status().unwrap().success());
    let command = "trap 'echo yes > stopped; exit 0' TERM; while :; do sleep 0.1; done";
    let loop_call = ScriptedReply::call(
        "Bash",
        json!({"command": command, "description": "A loop", "run_in_background": true}),
    );
    let replies = vec![loop_call, call, ScriptedReply::text("Going on.")];
    stage.api = threadline_testkit::api::ScriptedApi::start(replies);
    let mut terminal = start_waiting(&stage);
    terminal.wait_for("1 command in the background");
    terminal.send("/tasks\r");
    terminal.wait_for("Background commands");
    terminal.send(ENTER);
    // The command ends although the turn continues.
    assert_eq!(std::fs::read_to_string(stopped).unwrap(), "yes\n");
    terminal.wait_without("1 command in the background");
    assert_eq!(stage.api.requests().len(), 2, "the turn waits for its command");
    std::fs::write(stage.work("go"), "end").unwrap();
    let screen = wait_idle(&terminal, "Going on.");
    assert!(screen.contains("Background command \"A loop\" was stopped"), "{screen}");
    // Claude Code does not report it to the model either.
    terminal.send("/tasks\r");
    terminal.wait_for("No command runs in the background.");
    assert_eq!(stage.api.requests().len(), 3);
}

#[test]
fn a_shell_line_that_is_interrupted_comes_back() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("!echo begun; sleep 60\r");
    terminal.wait_for("    begun");
    terminal.send(ESC);
    wait_for_draft(&terminal, "!echo begun; sleep 60");
    assert!(stage.lines().iter().all(|line| line["type"] != "user"));
}

#[test]
fn ctrl_b_continues_a_command_in_the_background() {
    let stage = waiting_stage(vec![ScriptedReply::text("Going on."), ScriptedReply::text("It has ended.")]);
    let mut terminal = start_waiting(&stage);
    terminal.wait_for("Ctrl-B: background");
    terminal.send("\u{2}");
    wait_idle(&terminal, "Going on.");
    terminal.wait_for("1 command in the background");
    std::fs::write(stage.work("go"), "end").unwrap();
    let screen = wait_idle(&terminal, "It has ended.");
    assert!(screen.contains("Background command \"Wait\" completed"), "{screen}");
    let results = stage.api.requests()[1].body["messages"].to_string();
    assert!(results.contains("Command was manually backgrounded by user"), "{results}");
}
