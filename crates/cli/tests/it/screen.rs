//! The screen of `chat` on a pseudo-terminal, against the scripted API.

mod approvals;
mod commands;
mod faults;
mod interrupting;
mod permissions;
mod random;
mod trust;
mod typing;

use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};
use threadline_testkit::terminal::TestTerminal;

/// The status line of an idle screen ends with this, before and after the first turn.
const MODEL: &str = "sonnet-4-5";

/// Keys.
const ENTER: &str = "\r";
const ESC: &str = "\u{1b}";
const CTRL_C: &str = "\u{3}";
const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";
const SHIFT_TAB: &str = "\u{1b}[Z";

/// The folders of a test, and a scripted model.
pub(crate) struct Stage {
    root: TempDir,
    api: ScriptedApi,
}

impl Stage {
    pub(crate) fn new(replies: Vec<ScriptedReply>) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home/projects"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root, api: ScriptedApi::start(replies) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().canonicalize().unwrap().join(name)
    }

    fn work(&self, name: &str) -> PathBuf {
        self.path("work").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Starts the screen without waiting for it.
    fn start(&self, args: &[&str], size: (u16, u16)) -> TestTerminal {
        self.start_with(args, &[], size)
    }

    fn start_with(&self, args: &[&str], more: &[(&str, &str)], size: (u16, u16)) -> TestTerminal {
        let program = Path::new(env!("CARGO_BIN_EXE_threadline"));
        self.start_program(program, &[&["chat"], args].concat(), more, size)
    }

    /// Starts the screen from a shell with job control.
    fn start_in_shell(&self) -> TestTerminal {
        let mut terminal = self.start_program(
            Path::new("/bin/bash"),
            &["--norc", "--noprofile", "--noediting", "-i"],
            &[],
            (24, 80),
        );
        terminal.send(&format!("{} chat\n", env!("CARGO_BIN_EXE_threadline")));
        terminal
    }

    fn start_program(
        &self,
        program: &Path,
        args: &[&str],
        more: &[(&str, &str)],
        size: (u16, u16),
    ) -> TestTerminal {
        let mut envs = vec![
            ("HOME", self.path("user").into_os_string()),
            ("CLAUDE_CONFIG_DIR", self.path("home").into_os_string()),
            ("CLAUDE_CODE_TMPDIR", self.path("tmp").into_os_string()),
            ("XDG_STATE_HOME", self.path("state").into_os_string()),
            ("XDG_CACHE_HOME", self.path("cache").into_os_string()),
            ("PATH", "/usr/bin:/bin".into()),
            ("TERM", "xterm-256color".into()),
            ("TZ", "UTC".into()),
            ("ANTHROPIC_BASE_URL", self.api.url().into()),
            ("ANTHROPIC_API_KEY", "sk-test".into()),
            ("ANTHROPIC_MODEL", "claude-sonnet-4-5".into()),
            ("CLAUDE_CODE_MAX_RETRIES", "2".into()),
        ];
        envs.extend(more.iter().map(|(name, value)| (*name, (*value).into())));
        TestTerminal::start(program, args, &envs, &self.path("work"), size)
    }

    /// Opens the screen and waits until it is ready.
    pub(crate) fn open(&self, args: &[&str]) -> TestTerminal {
        let terminal = self.start(args, (24, 80));
        terminal.wait_for(MODEL);
        terminal
    }

    /// The log of the only session.
    fn log(&self) -> Option<PathBuf> {
        let project = threadline_store::encode_project(&self.path("work").to_string_lossy());
        let folder = self.path("home/projects").join(project);
        let logs = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let logs: Vec<PathBuf> =
            logs.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl")).collect();
        let [log] = &logs[..] else { return None };
        Some(log.clone())
    }

    /// The lines of the only session.
    fn lines(&self) -> Vec<Value> {
        let Some(log) = self.log() else { return Vec::new() };
        let text = std::fs::read_to_string(log).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The last message that the model got, as text.
    fn last_request(&self) -> String {
        let requests = self.api.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        messages.last().unwrap()["content"].to_string()
    }
}

/// Sends a prompt and waits until its turn has ended.
fn ask(terminal: &mut TestTerminal, prompt: &str, answer: &str) -> String {
    terminal.send(prompt);
    terminal.wait_for(prompt);
    terminal.send(ENTER);
    wait_idle(terminal, answer)
}

/// Whether a screen shows no turn.
fn is_idle(shown: &str) -> bool {
    !shown.contains("Esc interrupts") && !shown.contains("Interrupting…") && shown.contains(MODEL)
}

/// Waits for a text after which no turn runs.
fn wait_idle(terminal: &TestTerminal, text: &str) -> String {
    terminal.wait_until(&format!("{text:?} and the end of the turn"), |screen| {
        let shown = screen.contents();
        shown.contains(text) && is_idle(&shown)
    })
}

/// Waits for a text in the composer, which is above the status line.
fn wait_for_draft(terminal: &TestTerminal, text: &str) {
    terminal.wait_until(&format!("draft {text:?}"), |screen| {
        let shown = screen.contents();
        let mut lines = shown.lines().rev().skip_while(|line| !line.contains(MODEL)).skip(1);
        lines.next().is_some_and(|line| line.starts_with("> ") && line.contains(text))
    });
}

/// Leaves with Ctrl-C twice.
fn leave(terminal: &mut TestTerminal) {
    terminal.send(CTRL_C);
    terminal.wait_for("again to leave");
    terminal.send(CTRL_C);
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

#[test]
fn a_reply_is_shown_as_markdown_and_written_to_the_session() {
    let reply =
        "# Plan\n\nSome **bold** text with `code`.\n\n- one\n- two\n\n```rust\nlet x = 1;\n```\n\nDone.";
    let stage = Stage::new(vec![ScriptedReply::text(reply)]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "make a plan", "Done.");
    // The last line is drawn after the others.
    let screen = terminal.wait_for("200 tokens");
    let screen = screen.replace(&stage.path("work").to_string_lossy().into_owned(), "[work]");
    insta::assert_snapshot!(screen, @"
    threadline  [work]

    > make a plan

    # Plan

    Some bold text with code.

    • one
    • two

      let x = 1;

    Done.

    >
    sonnet-4-5 · 200 tokens, 100 % left · $0.00
    ");
    leave(&mut terminal);
    assert!(!terminal.is_raw());
    // The terminal is restored: no bracketed paste, a cursor.
    terminal.wait_for_bytes(b"\x1b[?2004l\x1b[0m\x1b[?25h");
    let text = terminal.text();
    assert!(
        text.contains("let x = 1;") && text.contains("Continue with: threadline chat --resume "),
        "{text}"
    );
    let kinds: Vec<String> =
        stage.lines().iter().map(|line| line["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        kinds,
        ["mode", "permission-mode", "user", "file-history-snapshot", "assistant", "system", "last-prompt"]
    );
}

#[test]
fn text_of_the_model_cannot_control_the_terminal() {
    let hostile = "a\u{1b}[2Jb\u{9b}2Jc\u{1b}]0;title\u{7}d\u{202e}e\rf";
    let calls = vec![
        serde_json::json!({"type": "text", "text": hostile}),
        serde_json::json!({"type": "tool_use", "name": "Bash",
            "input": {"command": "printf 'x\\033[2Jy\\033]0;t\\007'", "description": hostile}}),
    ];
    let stage = Stage::new(vec![ScriptedReply::blocks(calls), ScriptedReply::text("end")]);
    let mut terminal = stage.open(&["--permission-mode", "bypassPermissions"]);
    ask(&mut terminal, "go", "end");
    let bytes = terminal.bytes();
    for sequence in [&b"\x1b[2J"[..], b"\x1b]0;", b"\xc2\x9b", "\u{202e}".as_bytes()] {
        assert!(
            !bytes.windows(sequence.len()).any(|window| window == sequence),
            "{}",
            sequence.escape_ascii()
        );
    }
    assert!(terminal.text().contains("a^[[2Jb<U+009B>2Jc"), "{}", terminal.text());
}

#[test]
fn the_end_of_a_session_is_shown_when_it_is_continued() {
    let stage =
        Stage::new(vec![ScriptedReply::text("The first answer."), ScriptedReply::text("The second.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "first question", "The first answer.");
    leave(&mut terminal);
    let mut terminal = stage.open(&["--continue"]);
    let screen = terminal.wait_for("The first answer.");
    assert!(screen.contains("> first question"), "{screen}");
    ask(&mut terminal, "second question", "The second.");
    assert_eq!(stage.api.requests()[1].body["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn thinking_is_folded_and_calls_are_cards() {
    stage_with_calls(|stage, terminal| {
        let screen = ask(terminal, "look", "All read.");
        assert!(screen.contains("~ thought for") && screen.contains("Let me look."), "{screen}");
        assert!(screen.contains("▸ Read  a.txt  2 lines"), "{screen}");
        assert_eq!(stage.api.requests().len(), 2);
    });
}

fn stage_with_calls(test: impl FnOnce(&Stage, &mut TestTerminal)) {
    let call = serde_json::json!({"type": "tool_use", "name": "Read", "input": {"file_path": "a.txt"}});
    let blocks = vec![ScriptedReply::thinking("Let me look."), call];
    let stage = Stage::new(vec![ScriptedReply::blocks(blocks), ScriptedReply::text("All read.")]);
    stage.write("work/a.txt", "one\ntwo\n");
    let mut terminal = stage.open(&[]);
    test(&stage, &mut terminal);
}

#[test]
fn commands_of_the_screen_print_above_the_composer() {
    let stage = Stage::new(vec![ScriptedReply::text("That is the answer.")]);
    let mut terminal = stage.open(&[]);
    terminal.send("/status\r");
    let screen = terminal.wait_for("Memory files");
    assert!(screen.contains("Model         claude-sonnet-4-5"), "{screen}");
    terminal.send("/nonsense\r");
    terminal.wait_for("Unknown command: /nonsense");
    terminal.send("/model opus\r");
    terminal.wait_for("from the next request on");
    terminal.send("# prefer small commits\r");
    terminal.wait_for("CLAUDE.md.");
    assert_eq!(std::fs::read_to_string(stage.work("CLAUDE.md")).unwrap(), "- prefer small commits\n");
    terminal.send("!echo $((6 * 7))\r");
    // The model answers to the output.
    wait_idle_any(&terminal, "That is the answer.");
    assert!(terminal.text().contains("  42"), "{}", terminal.text());
    terminal.send("/exit\r");
    assert_eq!(terminal.wait_exit().code(), Some(0));
}

fn wait_idle_any(terminal: &TestTerminal, text: &str) -> String {
    terminal.wait_until(text, |screen| {
        let shown = screen.contents();
        shown.contains(text) && !shown.contains("Esc interrupts")
    })
}

#[test]
fn another_session_is_chosen_and_continued() {
    let stage = Stage::new(vec![ScriptedReply::text("First answer."), ScriptedReply::text("Second answer.")]);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "about the alpha particle", "First answer.");
    leave(&mut terminal);
    let mut terminal = stage.open(&[]);
    terminal.send("/resume\r");
    terminal.wait_for("Enter resume");
    terminal.wait_for("about the alpha particle");
    terminal.send(ENTER);
    let screen = terminal.wait_for("── last turns");
    assert!(!screen.contains("Enter resume") && screen.contains("First answer."), "{screen}");
    terminal.wait_for(MODEL);
    ask(&mut terminal, "and now", "Second answer.");
    assert_eq!(stage.api.requests()[1].body["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn the_whole_session_is_shown_in_a_pager() {
    let thinking = ScriptedReply::thinking(&format!("A long thought. {}", "And on. ".repeat(40)));
    let blocks = vec![thinking, serde_json::json!({"type": "text", "text": "An answer."})];
    let stage = Stage::new(vec![ScriptedReply::blocks(blocks)]);
    let mut terminal = stage.open(&[]);
    terminal.send("\u{f}");
    terminal.wait_for("There is no session to show yet.");
    ask(&mut terminal, "think", "An answer.");
    terminal.send("\u{f}");
    terminal.wait_for("~ thinking");
    terminal.send("q");
    terminal.wait_for(MODEL);
    terminal.send("typed again");
    terminal.wait_for("> typed again");
}

#[test]
fn things_to_do_are_listed_below_the_conversation() {
    let task = |name: &str| serde_json::json!({"type": "tool_use", "name": "TaskCreate", "input": {"subject": name, "description": "d"}});
    let update = serde_json::json!({"type": "tool_use", "name": "TaskUpdate",
        "input": {"taskId": "1", "status": "in_progress"}});
    let replies = vec![
        ScriptedReply::blocks(vec![task("Read the code"), task("Write tests")]),
        ScriptedReply::blocks(vec![update]),
        ScriptedReply::text("Started."),
    ];
    let stage = Stage::new(replies);
    let mut terminal = stage.open(&[]);
    let screen = ask(&mut terminal, "begin", "Started.");
    assert!(screen.contains("▣ #1 Read the code\n☐ #2 Write tests\n\n>"), "{screen}");
    assert!(!screen.contains("TaskCreate"), "{screen}");
}

#[test]
fn a_plan_is_approved_and_questions_are_answered() {
    let plan = ScriptedReply::call("ExitPlanMode", serde_json::json!({"plan": "# The plan\n\n- first"}));
    let question = ScriptedReply::call(
        "AskUserQuestion",
        serde_json::json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
            "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]}]}),
    );
    let stage = Stage::new(vec![plan, question, ScriptedReply::text("Blue it is.")]);
    let mut terminal = stage.open(&["--permission-mode", "plan"]);
    terminal.wait_for("plan mode");
    terminal.send("plan it\r");
    let screen = terminal.wait_for("Yes, and accept edits");
    assert!(screen.contains("# The plan") && screen.contains("• first"), "{screen}");
    terminal.send("1");
    let screen = terminal.wait_for("Which colour?");
    assert!(screen.contains("2. Blue – cold"), "{screen}");
    assert!(screen.contains("3. Another answer"), "{screen}");
    terminal.send("2");
    let screen = wait_idle(&terminal, "Blue it is.");
    assert!(screen.contains("accept edits · "), "{screen}");
    assert!(stage.last_request().contains("Blue"), "{}", stage.last_request());
}

#[test]
fn the_conversation_from_a_prompt_on_is_summarised() {
    let replies = vec![
        ScriptedReply::text("First answer."),
        ScriptedReply::text("Second answer."),
        ScriptedReply::text("<summary>ALL OF IT</summary>"),
        ScriptedReply::text("Third answer."),
    ];
    let stage = Stage::new(replies);
    let mut terminal = stage.open(&[]);
    ask(&mut terminal, "first thing", "First answer.");
    ask(&mut terminal, "second thing", "Second answer.");
    terminal.send("/rewind\r");
    terminal.wait_for("❯ second thing");
    terminal.send(ENTER);
    let screen = terminal.wait_for("Restore the state before “second thing”, or summarise");
    assert!(screen.contains("summarise up to here: all that preceded"), "{screen}");
    terminal.send("4");
    wait_idle(&terminal, "══ compacted:");
    wait_for_draft(&terminal, "second thing");
    terminal.send(&format!(", better{ENTER}"));
    wait_idle(&terminal, "Third answer.");
    let messages = stage.api.requests()[3].body["messages"].to_string();
    assert!(messages.contains("First answer.") && messages.contains("ALL OF IT"), "{messages}");
    assert!(!messages.contains("Second answer.") && messages.contains("second thing, better"), "{messages}");
}

#[test]
fn a_rewind_restores_conversation_and_files() {
    let edit = |old: &str, new: &str| {
        ScriptedReply::call(
            "Edit",
            serde_json::json!({"file_path": "a.txt", "old_string": old, "new_string": new}),
        )
    };
    let read = ScriptedReply::call("Read", serde_json::json!({"file_path": "a.txt"}));
    let replies = vec![
        read,
        edit("one", "two"),
        ScriptedReply::text("Changed once."),
        edit("two", "three"),
        ScriptedReply::text("Changed twice."),
        ScriptedReply::text("Again."),
    ];
    let stage = Stage::new(replies);
    stage.write("work/a.txt", "one\n");
    let mut terminal = stage.open(&["--permission-mode", "acceptEdits"]);
    ask(&mut terminal, "first change", "Changed once.");
    ask(&mut terminal, "second change", "Changed twice.");
    assert_eq!(std::fs::read_to_string(stage.work("a.txt")).unwrap(), "three\n");
    terminal.send(ESC);
    terminal.wait_for("Press Esc again");
    terminal.send(ESC);
    let screen = terminal.wait_for("Return to the state before a prompt");
    assert!(screen.contains("❯ second change"), "{screen}");
    terminal.send(ENTER);
    terminal.wait_for("❯ conversation and files");
    terminal.send(ENTER);
    terminal.wait_for("Restored 1 files as they were.");
    wait_for_draft(&terminal, "second change");
    assert_eq!(std::fs::read_to_string(stage.work("a.txt")).unwrap(), "two\n");
    terminal.send(ENTER);
    wait_idle(&terminal, "Again.");
    let request = stage.api.requests()[5].body["messages"].to_string();
    assert!(request.contains("Changed once.") && !request.contains("Changed twice."), "{request}");
}
