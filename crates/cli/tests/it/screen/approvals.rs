//! Questions about calls.

use serde_json::json;
use threadline_testkit::api::ScriptedReply;

use super::{DOWN, ENTER, ESC, MODEL, Stage, wait_idle};

fn bash(command: &str) -> ScriptedReply {
    ScriptedReply::call("Bash", json!({"command": command, "description": "Make a file"}))
}

#[test]
fn a_command_is_shown_before_it_runs() {
    let stage = Stage::new(vec![bash("touch made"), ScriptedReply::text("Made.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("make it\r");
    let screen = terminal.wait_for("Esc stops the turn");
    insta::assert_snapshot!(screen.replace(&stage.path("work").to_string_lossy().into_owned(), "[work]"), @"
    threadline  [work]

    > make it

    ? Run a command: Make a file
      touch made

    ❯ 1. Yes (y)
      2. Yes, and always allow Bash(touch made *) in .claude/settings.local.json
         (a)
      3. Yes, and allow [work] for this session
      4. Yes, and switch to acceptEdits for this session
      5. Edit first (e)
      6. No, and say why (n)
      Enter chooses · Esc stops the turn
    ");
    assert!(!stage.work("made").exists());
    terminal.send("y");
    wait_idle(&terminal, "Made.");
    assert!(stage.work("made").exists());
}

#[test]
fn a_rule_is_written_and_used_from_then_on() {
    let command = "python3 -c 'print(1)'";
    let stage = Stage::new(vec![bash(command), bash(command), ScriptedReply::text("Done.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("run it\r");
    let screen = terminal.wait_for("Esc stops the turn");
    let rule = "Bash(python3 ";
    assert!(screen.contains(&format!("always allow {rule}")), "{screen}");
    terminal.send("a");
    wait_idle(&terminal, "Done.");
    let settings = std::fs::read_to_string(stage.work(".claude/settings.local.json")).unwrap();
    assert!(settings.contains(rule), "{settings}");
}

#[test]
fn a_refusal_has_a_reason_for_the_model() {
    let stage = Stage::new(vec![bash("touch made"), ScriptedReply::text("Then not.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("make it\r");
    terminal.wait_for("Esc stops the turn");
    terminal.send("n");
    terminal.wait_for("Why not?");
    terminal.send("use another name\r");
    wait_idle(&terminal, "Then not.");
    assert!(stage.last_request().contains("the user said:\\nuse another name"), "{}", stage.last_request());
    assert!(!stage.work("made").exists());
}

#[test]
fn esc_at_a_question_stops_the_turn_and_a_draft_stays() {
    let stage = Stage::new(vec![bash("touch made"), ScriptedReply::text("not asked")]);
    let mut terminal = stage.open(&[]);
    terminal.send("make it\r");
    terminal.send("a draft");
    terminal.wait_for("Esc stops the turn");
    terminal.send(ESC);
    let screen = wait_idle(&terminal, "■ interrupted");
    // Keys before the question are part of the draft, those after it answer the question.
    assert!(screen.contains("> a draft") || screen.contains(">\n"), "{screen}");
    assert_eq!(stage.api.requests().len(), 1);
    let lines = stage.lines();
    let rejected = lines.iter().any(|line| line["toolUseResult"] == "User rejected tool use");
    assert!(rejected, "{lines:?}");
}

#[test]
fn the_changes_of_a_file_are_shown_before_they_are_made() {
    let edit =
        ScriptedReply::call("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"}));
    let read = ScriptedReply::call("Read", json!({"file_path": "a.txt"}));
    let stage = Stage::new(vec![read, edit, ScriptedReply::text("Edited.")]);
    stage.write("work/a.txt", "one\ntwo\nthree\n");
    let mut terminal = stage.open(&[]);
    terminal.send("edit it\r");
    let screen = terminal.wait_for("Esc stops the turn");
    assert!(
        screen.contains("? Change a.txt") && screen.contains("- two") && screen.contains("+ 2"),
        "{screen}"
    );
    assert_eq!(std::fs::read_to_string(stage.work("a.txt")).unwrap(), "one\ntwo\nthree\n");
    terminal.send(ENTER);
    wait_idle(&terminal, "Edited.");
    assert_eq!(std::fs::read_to_string(stage.work("a.txt")).unwrap(), "one\n2\nthree\n");
}

#[test]
fn a_call_is_edited_before_it_runs() {
    let stage = Stage::new(vec![bash("touch first"), ScriptedReply::text("Made.")]);
    stage
        .write("editor.sh", "#!/bin/sh\nsed 's/first/second/' \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"\n");
    let editor = format!("sh {}", stage.path("editor.sh").display());
    let mut terminal = stage.start_with(&[], &[("EDITOR", &editor)], (24, 80));
    terminal.wait_for(MODEL);
    terminal.send("make it\r");
    terminal.wait_for("Esc stops the turn");
    terminal.send("e");
    wait_idle(&terminal, "Made.");
    assert!(stage.work("second").exists() && !stage.work("first").exists());
}

#[test]
fn a_long_preview_is_scrolled() {
    let text: String = (1..100).map(|i| format!("line {i}\n")).collect();
    let write = ScriptedReply::call("Write", json!({"file_path": "long.txt", "content": text}));
    let stage = Stage::new(vec![write, ScriptedReply::text("Written.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("write it\r");
    let screen = terminal.wait_for("Esc stops the turn");
    assert!(screen.contains("? Create long.txt") && screen.contains("line 1\n"), "{screen}");
    terminal.send("\u{1b}[6~");
    terminal.wait_for("10 lines above");
    terminal.send(&format!("{DOWN}\r"));
    wait_idle(&terminal, "Written.");
    assert_eq!(std::fs::read_to_string(stage.work("long.txt")).unwrap(), text);
}

#[test]
fn output_of_a_command_is_shown_while_it_runs() {
    let command = "echo early output; while [ ! -e go ]; do sleep 0.05; done; echo late output";
    let stage = Stage::new(vec![bash(command), ScriptedReply::text("Ran.")]);
    let mut terminal = stage.open(&["--permission-mode", "bypassPermissions"]);
    terminal.send("run it\r");
    let screen = terminal.wait_for("    early output");
    assert!(screen.contains("◦ Bash") && screen.contains("Running tools"), "{screen}");
    std::fs::write(stage.work("go"), "").unwrap();
    let screen = wait_idle(&terminal, "Ran.");
    assert!(screen.contains("▸ Bash") && screen.contains("late output"), "{screen}");
}

#[test]
fn several_options_of_a_question_are_marked_and_sent() {
    let question = ScriptedReply::call(
        "AskUserQuestion",
        json!({"questions": [{"question": "Which colours?", "header": "Colours", "multiSelect": true,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"},
                {"label": "Grey", "description": "calm"}]}]}),
    );
    let stage = Stage::new(vec![question, ScriptedReply::text("Two colours.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("ask me\r");
    terminal.wait_for("1. [ ] Red");
    terminal.send("1");
    terminal.wait_for("1. [x] Red");
    // The mark of the first option is set again and removed.
    terminal.send(" ");
    terminal.wait_for("1. [ ] Red");
    terminal.send(" 3");
    terminal.wait_for("3. [x] Grey");
    terminal.send("\r");
    wait_idle(&terminal, "Two colours.");
    assert!(stage.last_request().contains("Which colours?\\\"=\\\"Red, Grey"), "{}", stage.last_request());
}

#[test]
fn a_question_of_the_model_is_answered_in_own_words() {
    let question = ScriptedReply::call(
        "AskUserQuestion",
        json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}),
    );
    let stage = Stage::new(vec![question, ScriptedReply::text("Green it is.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("ask me\r");
    terminal.wait_for("3. Another answer");
    terminal.send("3");
    terminal.wait_for("Answer:");
    terminal.send("Green\r");
    wait_idle(&terminal, "Green it is.");
    assert!(stage.last_request().contains("Green"), "{}", stage.last_request());
}
