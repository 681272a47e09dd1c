//! Commands and keys of the screen that change it, and signals to the person.

use rustix::process::Signal;
use serde_json::json;
use threadline_testkit::api::ScriptedReply;

use super::{CTRL_C, ENTER, ESC, MODEL, Stage, ask, wait_for_draft, wait_idle};

#[test]
fn vi_keys_are_switched_on() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("/vim\r");
    terminal.wait_for("vi keys are on.");
    terminal.send("one two three");
    terminal.wait_for("INSERT");
    terminal.send(ESC);
    terminal.wait_for("NORMAL");
    terminal.send("0dw");
    terminal.wait_for("> two three");
}

#[test]
fn the_theme_changes_the_colours() {
    let stage = Stage::new(vec![ScriptedReply::text("# Title"), ScriptedReply::text("# Title")]);
    let mut terminal = stage.open(&[]);
    let has_palette = |bytes: &[u8]| bytes.windows(7).any(|window| window == b"\x1b[38;5;");
    ask(&mut terminal, "one", "# Title");
    assert!(!has_palette(&terminal.bytes()), "the 16 colours of the terminal");
    terminal.send("/theme dark\r");
    terminal.wait_for("The theme is dark.");
    terminal.send("two");
    terminal.wait_for("> two");
    assert!(has_palette(&terminal.bytes()), "{}", terminal.bytes().escape_ascii());
}

#[test]
fn the_conversation_is_exported() {
    let stage = Stage::new(vec![ScriptedReply::text("An **answer**.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "a question", "An answer.");
    terminal.send("/export notes.md\r");
    terminal.wait_for("notes.md.");
    let text = std::fs::read_to_string(stage.work("notes.md")).unwrap();
    assert!(text.contains("a question") && text.contains("An **answer**."), "{text}");
    terminal.send("/export notes.md\r");
    terminal.wait_for("✗ cannot write");
}

#[test]
fn the_status_line_of_the_person_is_shown() {
    let stage = Stage::new(Vec::new());
    let command =
        "read -r facts; case $facts in *sonnet-4-5*) printf 'my \\033[31mline\\033[0m of it';; esac";
    let settings = json!({"statusLine": {"type": "command", "command": command}});
    stage.write("home/settings.json", &settings.to_string());
    let terminal = stage.start(&[], (24, 80));
    terminal.wait_for("my line of it");
}

#[test]
fn a_question_rings_the_bell_and_notifies() {
    let stage = Stage::new(vec![ScriptedReply::call("Bash", json!({"command": "touch x"}))]);
    let mut terminal = stage.open(&[]);
    terminal.send("do it\r");
    terminal.wait_for("Enter chooses");
    terminal.wait_for_bytes(b"\x1b]9;threadline waits for an answer\x07\x07");
}

#[test]
fn a_draft_is_put_aside_and_comes_back_after_another_prompt() {
    let stage = Stage::new(vec![ScriptedReply::text("An answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("half a prompt");
    wait_for_draft(&terminal, "half a prompt");
    terminal.send("\u{13}");
    terminal.wait_for("a draft is put aside");
    terminal.send("quick question\r");
    wait_idle(&terminal, "An answer.");
    wait_for_draft(&terminal, "half a prompt");
    terminal.send("\u{13}");
    terminal.wait_for("a draft is put aside");
    terminal.send("\u{13}");
    wait_for_draft(&terminal, "half a prompt");
    assert!(stage.last_request().contains("quick question"));
}

/// Replaces the programs that read the clipboard by a script. Returns the folders of programs.
fn with_clipboard(stage: &Stage, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    for program in ["wl-paste", "xclip", "pngpaste", "powershell.exe"] {
        let name = format!("bin/{program}");
        stage.write(&name, &format!("#!/bin/sh\n{script}\n"));
        std::fs::set_permissions(stage.path(&name), PermissionsExt::from_mode(0o755)).unwrap();
    }
    format!("{}:/usr/bin:/bin", stage.path("bin").display())
}

#[test]
fn an_image_of_the_clipboard_is_attached() {
    let stage = Stage::new(vec![ScriptedReply::text("A picture.")]);
    let path = with_clipboard(&stage, "printf '\\211PNG\\r\\n'");
    let mut terminal = stage.start_with(&[], &[("PATH", &path)], (24, 80));
    terminal.wait_for(MODEL);
    terminal.send("\u{16}");
    terminal.wait_for("> [Image #1]");
    terminal.send(&format!(" what is it?{ENTER}"));
    wait_idle(&terminal, "A picture.");
    assert!(stage.last_request().contains("iVBORw0K"), "{}", stage.last_request());
}

#[test]
fn without_an_image_in_the_clipboard_nothing_is_attached() {
    let stage = Stage::new(Vec::new());
    let path = with_clipboard(&stage, "exit 1");
    let mut terminal = stage.start_with(&[], &[("PATH", &path)], (24, 100));
    terminal.wait_for(MODEL);
    terminal.send("\u{16}");
    terminal.wait_for("There is no image in the clipboard");
}

#[test]
fn ctrl_z_suspends_and_the_screen_comes_back() {
    let stage = Stage::new(vec![ScriptedReply::text("An answer.")]);
    // A shell with job control, as people have one.
    let mut terminal = stage.start_in_shell();
    terminal.wait_for(MODEL);
    ask(&mut terminal, "hello", "An answer.");
    terminal.send("a draft\u{1a}");
    terminal.wait_for("Stopped");
    assert!(!terminal.is_raw());
    terminal.send("fg\n");
    wait_for_draft(&terminal, "a draft");
    // Keys come without a newline again.
    terminal.send(" and more");
    wait_for_draft(&terminal, "a draft and more");
    terminal.send(CTRL_C);
    terminal.wait_for("brings the text back");
}

#[test]
fn a_hang_up_restores_the_terminal_and_keeps_the_draft() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("not sent");
    wait_for_draft(&terminal, "not sent");
    terminal.signal(Signal::HUP);
    terminal.wait_exit();
    assert!(!terminal.is_raw());
    let mut terminal = stage.open(&[]);
    terminal.send(super::UP);
    wait_for_draft(&terminal, "not sent");
}

#[test]
fn a_hang_up_ends_the_picker_of_sessions_too() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("/resume\r");
    terminal.wait_for("Enter resume");
    terminal.signal(Signal::HUP);
    terminal.wait_exit();
}

#[test]
fn the_cost_is_shown_line_by_line() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("/cost\r");
    let screen = terminal.wait_for("Total duration (wall)");
    let starts = |text: &str| screen.lines().any(|line| line.starts_with(text));
    assert!(starts("Total cost:") && starts("Total duration (API):"), "{screen}");
}
