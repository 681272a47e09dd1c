//! Random turns: at the end, the screen and the session file agree.

use std::time::Duration;

use serde_json::{Value, json};
use threadline_testkit::api::ScriptedReply;

use super::{CTRL_C, ENTER, ESC, MODEL, Stage, is_idle, wait_for_draft};

/// A small generator of numbers, so that a seed names a test.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// One step of a script: the input of the person, and the answer of the API.
enum Step {
    Text,
    Fault,
    Approved,
    /// Another prompt joins the turn while a command runs.
    Joined,
    Refused,
    Interrupted,
    Rewind,
}

/// The number of turns; `THREADLINE_SCREEN_TURNS` sets another one.
fn n_turns() -> usize {
    number("THREADLINE_SCREEN_TURNS", 12) as usize
}

/// The seed; `THREADLINE_SCREEN_SEED` sets another one.
fn seed() -> u64 {
    number("THREADLINE_SCREEN_SEED", 1)
}

#[expect(clippy::disallowed_methods, reason = "a developer chooses the length of a test")]
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn screen_and_session_agree_after_random_turns() {
    let mut random = Random(seed());
    let mut steps = Vec::new();
    let mut replies = Vec::new();
    for i in 0..n_turns() {
        let answer = ScriptedReply::text(&format!("Answer {i}.\n\n- with a list\n- of two"));
        let call = || ScriptedReply::call("Bash", json!({"command": format!("touch file-{i}")}));
        steps.push(match random.below(9) {
            0 => {
                replies.push(ScriptedReply::error(400, "invalid_request_error", "a fault"));
                Step::Fault
            }
            1 | 2 => {
                replies.extend([call(), answer]);
                Step::Approved
            }
            8 => {
                // A command that only reads needs no permission. It blocks until the pipe is written.
                replies
                    .extend([ScriptedReply::call("Bash", json!({"command": format!("cat go-{i}")})), answer]);
                Step::Joined
            }
            3 => {
                replies.push(call());
                Step::Refused
            }
            4 => {
                replies.push(ScriptedReply::Stall {
                    blocks: vec![json!({"type": "text", "text": format!("Slow {i}.")})],
                    // Before or after its text.
                    after: if random.below(2) == 0 { 300 } else { 1000 },
                    pause: Duration::from_secs(30),
                });
                Step::Interrupted
            }
            5 if i > 1 => {
                replies.push(answer);
                Step::Rewind
            }
            _ => {
                replies.push(answer);
                Step::Text
            }
        });
    }
    let stage = Stage::new(replies);
    let mut terminal = stage.start(&[], (24, 100));
    terminal.wait_for(MODEL);
    let mut requests = 0;
    for (i, step) in steps.iter().enumerate() {
        if random.below(3) == 0 {
            // The emulator cuts rows and columns off instead of wrapping lines again, so the terminal stays
            // larger than the frame.
            terminal.resize(24, 90 + random.below(80) as u16);
        }
        let idle = |terminal: &threadline_testkit::terminal::TestTerminal, text: &str| {
            terminal.wait_until(&format!("{text:?} in step {i}"), |screen| {
                let shown = screen.contents();
                shown.contains(text) && is_idle(&shown)
            });
        };
        if matches!(step, Step::Rewind) {
            terminal.send("/rewind\r");
            terminal.wait_for("Return to the state before a prompt");
            terminal.send(ENTER);
            terminal.wait_for("❯ conversation and files");
            terminal.send("2");
            terminal.wait_for("returned to an earlier prompt");
            // The prompt is in the composer again; it is replaced.
            wait_for_draft(&terminal, "Prompt ");
            terminal.send("\u{15}");
        }
        if matches!(step, Step::Joined) {
            let pipe = stage.work(&format!("go-{i}"));
            assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
        }
        terminal.send(&format!("Prompt {i}"));
        terminal.wait_for(&format!("> Prompt {i}"));
        terminal.send(ENTER);
        match step {
            Step::Text | Step::Rewind => idle(&terminal, &format!("Answer {i}.")),
            Step::Fault => idle(&terminal, "✗ API Error: 400"),
            Step::Approved => {
                terminal.wait_for(&format!("touch file-{i}"));
                terminal.wait_for("Enter chooses");
                terminal.send("y");
                idle(&terminal, &format!("Answer {i}."));
                assert!(stage.work(&format!("file-{i}")).exists());
            }
            Step::Joined => {
                terminal.wait_for("Ctrl-B: background");
                terminal.send(&format!("Extra {i}\r"));
                terminal.wait_for(&format!("> Extra {i} (queued)"));
                std::fs::write(stage.work(&format!("go-{i}")), "went").unwrap();
                idle(&terminal, &format!("Answer {i}."));
            }
            Step::Refused => {
                terminal.wait_for(&format!("touch file-{i}"));
                terminal.wait_for("Enter chooses");
                terminal.send(ESC);
                idle(&terminal, "■ interrupted");
                assert!(!stage.work(&format!("file-{i}")).exists());
            }
            Step::Interrupted => {
                // The reply of this step must be used up.
                stage.api.wait_for_requests(requests + 1);
                terminal.wait_for("Esc interrupts");
                terminal.send(ESC);
                terminal.wait_until("the end of the turn", |screen| is_idle(&screen.contents()));
                // Before the first text, the prompt is in the composer again.
                terminal.send("\u{15}");
                terminal.wait_until("empty composer", |screen| screen.cursor_position().1 == 2);
            }
        }
        requests += if matches!(step, Step::Approved | Step::Joined) { 2 } else { 1 };
    }
    terminal.send(CTRL_C);
    terminal.wait_for("again to leave");
    terminal.send(CTRL_C);
    assert_eq!(terminal.wait_exit().code(), Some(0));
    let shown = terminal.all_text();
    let lines = stage.lines();
    keep_log(&stage);
    for (i, step) in steps.iter().enumerate() {
        let in_log = lines.iter().filter(|line| line["message"]["content"] == format!("Prompt {i}")).count();
        assert_eq!(in_log, 1, "prompt {i} in the log");
        assert!(shown.contains(&format!("> Prompt {i}")), "prompt {i} on the screen:\n{shown}");
        let joined = lines.iter().filter(|line| line["attachment"]["prompt"] == format!("Extra {i}")).count();
        assert_eq!(joined, usize::from(matches!(step, Step::Joined)), "prompt that joined turn {i}");
    }
    let answers = lines.iter().filter_map(|line| line["message"]["content"][0]["text"].as_str());
    for answer in answers.filter(|text| text.starts_with("Answer ")) {
        let first = answer.lines().next().unwrap();
        assert!(shown.contains(first), "{first} on the screen:\n{shown}");
    }
    assert!(is_one_tree(&lines), "a line has no parent");
}

/// Copies the session to the folder that `THREADLINE_SCREEN_FOLDER` names, for programs that resume it.
#[expect(clippy::disallowed_methods, reason = "a developer keeps the session of a test")]
fn keep_log(stage: &Stage) {
    if let Some(folder) = std::env::var_os("THREADLINE_SCREEN_FOLDER") {
        let log = stage.log().unwrap();
        std::fs::copy(&log, std::path::Path::new(&folder).join(log.file_name().unwrap())).unwrap();
    }
}

/// Whether every line of the conversation continues a line before it.
fn is_one_tree(lines: &[Value]) -> bool {
    let mut known = std::collections::HashSet::new();
    lines.iter().filter(|line| line["uuid"].is_string()).all(|line| {
        let parent = &line["parentUuid"];
        let is_known = parent.is_null() || known.contains(parent.as_str().unwrap());
        known.insert(line["uuid"].as_str().unwrap().to_owned());
        is_known
    })
}
