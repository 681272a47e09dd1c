//! The composer.

use std::time::Duration;

use serde_json::json;
use threadline_testkit::api::ScriptedReply;

use super::{CTRL_C, DOWN, ENTER, MODEL, SHIFT_TAB, Stage, UP, ask, leave, wait_idle};

/// A reply that stops after its first words until the test ends it.
pub(super) fn slow_reply() -> ScriptedReply {
    let text = "Beginning of a long answer.\n\nMiddle of it.\n\nEnd of it.";
    ScriptedReply::Stall {
        blocks: vec![json!({"type": "text", "text": text})],
        after: 700,
        pause: Duration::from_secs(3),
    }
}

#[test]
fn prompts_typed_while_it_works_are_queued() {
    let stage = Stage::new(vec![slow_reply(), ScriptedReply::text("Second answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("first\r");
    stage.api.wait_for_requests(1);
    terminal.send("second\r");
    let screen = terminal.wait_for("> second (queued)");
    assert!(screen.contains("Esc interrupts"), "{screen}");
    wait_idle(&terminal, "Second answer.");
    assert!(stage.last_request().contains("second"));
}

#[test]
fn a_draft_survives_a_reply_and_ctrl_c_can_be_undone() {
    let stage = Stage::new(vec![ScriptedReply::text("Answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("first\r");
    terminal.send("my draft");
    let screen = wait_idle(&terminal, "Answer.");
    let screen = if screen.contains("> my draft") { screen } else { terminal.wait_for("> my draft") };
    assert!(screen.contains("Answer."), "{screen}");
    terminal.send(CTRL_C);
    terminal.wait_for("brings the text back");
    terminal.send("\u{1f}");
    terminal.wait_for("> my draft");
}

#[test]
fn keys_edit_the_text_and_wide_characters_keep_their_columns() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send("错误 👩\u{200d}🚀 done");
    terminal.wait_for("done");
    // Word back, kill to the end, insert it at the beginning of the line.
    terminal.send("\u{1b}b\u{b}\u{1}\u{19}");
    let screen = terminal.wait_for("> done错误");
    assert!(screen.contains("> done错误"), "{screen}");
    let column = terminal.wait_until("cursor", |screen| screen.cursor_position().1 == 6);
    assert!(column.contains("done"));
    terminal.send("\u{1b}\rsecond line");
    let screen = terminal.wait_for("second line");
    assert!(screen.contains("> done\n  second line错误"), "{screen}");
}

#[test]
fn earlier_prompts_are_recalled_in_the_next_session() {
    let stage = Stage::new(vec![ScriptedReply::text("one"), ScriptedReply::text("two")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "an old prompt", "one");
    leave(&mut terminal);
    let mut terminal = stage.open(&[]);
    terminal.send(UP);
    terminal.wait_for("> an old prompt");
    terminal.send(DOWN);
    terminal.wait_without("> an old prompt");
    terminal.send("\u{12}old");
    terminal.wait_for("search: old");
    terminal.send("\t");
    terminal.wait_for("> an old prompt");
}

#[test]
fn a_long_paste_is_folded_and_sent_in_full() {
    let stage = Stage::new(vec![ScriptedReply::text("Got it.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("look: ");
    terminal.paste(&"pasted line\n".repeat(30));
    terminal.wait_for("> look: [Pasted text #1 +30 lines]");
    terminal.send(ENTER);
    wait_idle(&terminal, "Got it.");
    assert_eq!(stage.last_request().matches("pasted line").count(), 30);
}

#[test]
fn an_image_that_is_pasted_as_a_path_is_sent() {
    let stage = Stage::new(vec![ScriptedReply::text("A picture.")]);
    std::fs::write(stage.work("p.png"), b"\x89PNG").unwrap();
    let mut terminal = stage.open(&[]);
    terminal.paste(stage.work("p.png").to_str().unwrap());
    terminal.wait_for("> [Image #1]");
    terminal.send(" what is it?\r");
    wait_idle(&terminal, "A picture.");
    assert!(stage.last_request().contains("image/png"));
}

#[test]
fn commands_and_files_are_completed() {
    let stage = Stage::new(vec![ScriptedReply::text("Read.")]);
    stage.write("work/src/main.rs", "fn main() {}\n");
    stage.write("work/src/model.rs", "\n");
    let mut terminal = stage.open(&[]);
    terminal.send("/re");
    let screen = terminal.wait_for("❯ /rename");
    assert!(screen.contains("/resume") && screen.contains("/rewind"), "{screen}");
    terminal.send(&format!("{DOWN}{UP}\u{1b}\u{15}"));
    terminal.wait_without("/rename");
    terminal.send("see @mai");
    terminal.wait_for("❯ src/main.rs");
    terminal.send("\t");
    terminal.wait_for("> see @src/main.rs");
    terminal.send(ENTER);
    wait_idle(&terminal, "Read.");
    assert!(stage.api.requests()[0].body["messages"].to_string().contains("fn main() {}"));
}

#[test]
fn shift_tab_changes_the_mode() {
    let stage = Stage::new(Vec::new());
    let mut terminal = stage.open(&[]);
    terminal.send(SHIFT_TAB);
    terminal.wait_for("accept edits · ");
    terminal.send(SHIFT_TAB);
    terminal.wait_for("plan mode · ");
    terminal.send(SHIFT_TAB);
    terminal.wait_without("plan mode");
}

#[test]
fn the_prompt_is_edited_in_an_editor() {
    let stage = Stage::new(Vec::new());
    stage.write(
        "editor.sh",
        "#!/bin/sh\nprintf '%s edited' \"$(cat \"$1\")\" > \"$1.new\" && mv \"$1.new\" \"$1\"\n",
    );
    let editor = format!("sh {}", stage.path("editor.sh").display());
    let mut terminal = stage.start_with(&[], &[("EDITOR", &editor)], (24, 80));
    terminal.wait_for(MODEL);
    terminal.send("draft\u{7}");
    terminal.wait_for("> draft edited");
    terminal.send(" and typed");
    terminal.wait_for("> draft edited and typed");
}

#[test]
fn a_narrow_and_low_terminal_works() {
    let stage = Stage::new(vec![ScriptedReply::text("A short answer to a question.")]);
    let mut terminal = stage.start(&[], (5, 24));
    terminal.wait_for(">");
    terminal.send("hi\r");
    terminal.wait_for("question.");
    terminal.send("a prompt that is much longer than the terminal is wide");
    terminal.wait_for("wide");
}

#[test]
fn the_frame_follows_the_size_of_the_terminal() {
    let stage = Stage::new(vec![ScriptedReply::text("An answer.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "hello", "An answer.");
    terminal.send("a draft of some words");
    terminal.wait_for("words");
    terminal.resize(20, 60);
    terminal.send("!");
    let screen = terminal.wait_for("words!");
    assert_eq!(screen.matches("a draft of some words").count(), 1, "{screen}");
    assert!(screen.contains("An answer."), "{screen}");
    terminal.resize(30, 100);
    terminal.send("?");
    let screen = terminal.wait_for("words!?");
    assert_eq!(screen.matches("a draft of some words").count(), 1, "{screen}");
}

#[test]
fn without_colours_no_colour_is_written() {
    let stage = Stage::new(vec![ScriptedReply::text("**An** answer.")]);
    let mut terminal = stage.start_with(&[], &[("NO_COLOR", "1")], (24, 80));
    terminal.wait_for(MODEL);
    ask(&mut terminal, "hello", "An answer.");
    let bytes = terminal.bytes();
    let styles = bytes.windows(2).enumerate().filter(|(_, window)| *window == b"\x1b[");
    let is_style = |at: usize| {
        let rest = &bytes[at + 2..];
        let end = rest.iter().position(|byte| byte.is_ascii_alphabetic()).unwrap_or(0);
        rest.get(end) == Some(&b'm') && end > 0
    };
    assert_eq!(styles.filter(|(at, _)| is_style(*at)).count(), 0);
}
