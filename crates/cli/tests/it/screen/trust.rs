//! The question whether a folder is trusted.

use threadline_testkit::api::ScriptedReply;

use super::{MODEL, Stage, ask, leave};

const HOOK: &str =
    r#"{"hooks": {"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "touch hooked"}]}]}}"#;

fn stage() -> Stage {
    let stage = Stage::new(vec![ScriptedReply::text("One."), ScriptedReply::text("Two.")]);
    stage.write("work/.claude/settings.json", HOOK);
    stage
}

#[test]
fn a_folder_that_is_trusted_uses_its_hooks_and_is_not_asked_about_again() {
    let stage = stage();
    let mut terminal = stage.start(&[], (24, 80));
    let screen = terminal.wait_for("Type 1 or 2");
    assert!(screen.contains(".claude/settings.json  hooks, rules"), "{screen}");
    terminal.send("1\n");
    terminal.wait_for(MODEL);
    ask(&mut terminal, "hello", "One.");
    assert!(stage.work("hooked").exists());
    leave(&mut terminal);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "again", "Two.");
    assert!(!terminal.all_text().contains("Type 1 or 2"));
}

#[test]
fn a_folder_that_is_not_trusted_is_used_without_its_hooks() {
    let stage = stage();
    let mut terminal = stage.start(&[], (24, 80));
    terminal.wait_for("Type 1 or 2");
    terminal.send("\n");
    terminal.wait_for(MODEL);
    ask(&mut terminal, "hello", "One.");
    assert!(!stage.work("hooked").exists());
    assert!(!stage.path("home/.claude.json").exists());
}

#[test]
fn settings_that_are_not_read_are_not_asked_about() {
    let stage = stage();
    let mut terminal = stage.open(&["--setting-sources", "user"]);
    ask(&mut terminal, "hello", "One.");
    assert!(!terminal.all_text().contains("Type 1 or 2"));
    assert!(!stage.work("hooked").exists());
}
