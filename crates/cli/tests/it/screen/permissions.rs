//! `/permissions`: rules are listed, added and removed.

use serde_json::json;
use threadline_testkit::api::ScriptedReply;
use threadline_testkit::terminal::TestTerminal;

use super::{DOWN, ENTER, ESC, MODEL, Stage, UP, ask, wait_idle};

const RIGHT: &str = "\u{1b}[C";

fn touch(name: &str) -> ScriptedReply {
    ScriptedReply::call("Bash", json!({"command": format!("touch {name}")}))
}

/// Opens the list of rules.
fn open_rules(terminal: &mut TestTerminal) -> String {
    terminal.send("/permissions\r");
    terminal.wait_for("Add a rule…")
}

#[test]
fn a_rule_is_added_to_a_file_and_used_at_once() {
    let stage = Stage::new(vec![touch("made"), ScriptedReply::text("Done.")]);
    let project = "{\n    \"x\": 1.50,\n    \"permissions\": {\"deny\": [\"WebFetch\"]}\n}\n";
    stage.write("work/.claude/settings.json", project);
    stage.write("home/settings.json", r#"{"permissions": {"allow": ["Bash(ls *)"]}}"#);
    let mut terminal = stage.start(&[], (24, 80));
    terminal.wait_for("Type 1 or 2");
    terminal.send("1\r");
    terminal.wait_for(MODEL);
    let screen = open_rules(&mut terminal);
    assert!(screen.contains("Permission rules  [allow]  ask  deny"), "{screen}");
    assert!(screen.contains("  Bash(ls *)  ~/.claude/settings.json"), "{screen}");
    terminal.send(ENTER);
    terminal.wait_for("New rule: allow");
    terminal.send("Bash(touch\r");
    terminal.wait_for("This is not a rule.");
    terminal.send(" *)\r");
    let screen = terminal.wait_for("Where is the rule “allow Bash(touch *)” saved?");
    assert!(screen.contains("❯ .claude/settings.local.json"), "{screen}");
    terminal.send(&format!("{DOWN}{ENTER}"));
    terminal.wait_for("Added allow Bash(touch *) to .claude/settings.json.");
    let screen = terminal.wait_for("Add a rule…");
    assert!(screen.contains("Bash(touch *)  .claude/settings.json"), "{screen}");
    let expected = "{\n    \"x\": 1.50,\n    \"permissions\": {\"deny\": [\"WebFetch\"], \"allow\": [\n      \
                    \"Bash(touch *)\"\n    ]}\n}\n";
    assert_eq!(std::fs::read_to_string(stage.work(".claude/settings.json")).unwrap(), expected);
    terminal.send(&format!("{RIGHT}{RIGHT}"));
    let screen = terminal.wait_for("[deny]");
    assert!(screen.contains("  WebFetch  .claude/settings.json"), "{screen}");
    terminal.send(ESC);
    terminal.wait_without("Add a rule…");
    ask(&mut terminal, "make it", "Done.");
    assert!(stage.work("made").exists(), "without a question");
}

#[test]
fn a_deny_rule_for_this_folder_refuses_calls() {
    let stage = Stage::new(vec![touch("made"), ScriptedReply::text("It was refused.")]);
    let mut terminal = stage.open(&["--permission-mode", "bypassPermissions"]);
    open_rules(&mut terminal);
    terminal.send(&format!("{RIGHT}{RIGHT}"));
    terminal.wait_for("[deny]");
    terminal.send(ENTER);
    terminal.wait_for("New rule: deny");
    terminal.send("Bash(touch *)\r");
    terminal.wait_for("Where is the rule");
    terminal.send("1");
    terminal.wait_for("Added deny Bash(touch *) to .claude/settings.local.json.");
    let text = std::fs::read_to_string(stage.work(".claude/settings.local.json")).unwrap();
    assert_eq!(text, "{\n  \"permissions\": {\n    \"deny\": [\n      \"Bash(touch *)\"\n    ]\n  }\n}\n");
    terminal.send(ESC);
    terminal.wait_without("Add a rule…");
    ask(&mut terminal, "make it", "It was refused.");
    assert!(!stage.work("made").exists());
}

#[test]
fn a_rule_is_removed_after_a_question() {
    let stage = Stage::new(vec![touch("made")]);
    let settings = r#"{"permissions": {"allow": ["Bash(ls *)", "Bash(touch *)"]}, "model": "sonnet"}"#;
    stage.write("home/settings.json", settings);
    let mut terminal = stage.open(&[]);
    open_rules(&mut terminal);
    terminal.send(&format!("{DOWN}{DOWN}{ENTER}"));
    let screen = terminal.wait_for("Remove the rule “allow Bash(touch *)”?");
    assert!(screen.contains("❯ No") && screen.contains("It is from ~/.claude/settings.json."), "{screen}");
    terminal.send(ENTER);
    terminal.wait_for("Add a rule…");
    assert_eq!(std::fs::read_to_string(stage.path("home/settings.json")).unwrap(), settings);
    terminal.send(&format!("{DOWN}{DOWN}{ENTER}"));
    terminal.wait_for("Remove the rule");
    terminal.send(&format!("{UP}{ENTER}"));
    terminal.wait_for("Removed allow Bash(touch *) from ~/.claude/settings.json.");
    let after = r#"{"permissions": {"allow": ["Bash(ls *)"]}, "model": "sonnet"}"#;
    assert_eq!(std::fs::read_to_string(stage.path("home/settings.json")).unwrap(), after);
    terminal.send(ESC);
    terminal.wait_without("Add a rule…");
    terminal.send("make it\r");
    terminal.wait_for("Enter chooses");
    assert!(!stage.work("made").exists());
}

#[test]
fn a_rule_of_a_flag_is_removed_for_the_session_only() {
    let stage = Stage::new(vec![touch("made"), ScriptedReply::text("Allowed.")]);
    let mut terminal = stage.open(&["--allowed-tools", "Bash(touch *)"]);
    let screen = open_rules(&mut terminal);
    assert!(screen.contains("Bash(touch *)  this session"), "{screen}");
    terminal.send(&format!("{DOWN}{ENTER}"));
    terminal.wait_for("It is from this session.");
    terminal.send(&format!("{UP}{ENTER}"));
    terminal.wait_for("Removed allow Bash(touch *) from this session.");
    terminal.send(ESC);
    terminal.wait_without("Add a rule…");
    terminal.send("make it\r");
    terminal.wait_for("Enter chooses");
    terminal.send("y");
    wait_idle(&terminal, "Allowed.");
}
