//! `setup`, and the hook that it installs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use threadline_app::{App, AppConfig};
use threadline_testkit::TestHome;

use crate::run::RunOutput;

/// Settings with hooks of others, in an unusual form.
const SETTINGS: &str = "{\n   \"hooks\" : {\n\t\"PreToolUse\": [ {\"matcher\":\"Edit\", \"hooks\":[{\"type\":\"command\",\"command\":\"lint\",\"timeout\": 5}]} ],\n\t\"SessionEnd\": []\n   },\n   \"model\":\"opus\"\n}\n";

/// Where the shell and git are.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A home, a project and a state folder.
struct World {
    home: TestHome,
    dir: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let world = Self { home: TestHome::new(), dir: tempfile::tempdir().unwrap() };
        std::fs::create_dir(world.project()).unwrap();
        world
    }

    fn project(&self) -> PathBuf {
        self.dir.path().join("project")
    }

    fn command(&self, args: &[&str]) -> Command {
        let root = self.home.root().to_str().unwrap();
        let mut command = crate::run::command([&["--home", root], args].concat());
        command.current_dir(self.project()).env("HOME", self.dir.path().join("home"));
        command.env("XDG_STATE_HOME", self.dir.path().join("state")).env("PATH", PATH);
        command
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        RunOutput::of(&mut self.command(args))
    }

    /// Runs a command line of the settings as Claude Code does.
    fn hook(&self, command: &str, input: &Value) -> RunOutput {
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(command).current_dir(self.project());
        shell.env_clear().env("PATH", PATH).env("HOME", self.dir.path());
        let mut child =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.to_string().as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        RunOutput {
            code: done.status.code().unwrap(),
            out: String::from_utf8(done.stdout).unwrap(),
            err: String::from_utf8(done.stderr).unwrap(),
        }
    }

    /// Returns our command of an event in the settings.
    fn installed(&self, event: &str) -> String {
        let text = std::fs::read_to_string(self.home.root().join("settings.json")).unwrap();
        let settings: Value = serde_json::from_str(&text).unwrap();
        let groups = settings["hooks"][event].as_array().unwrap();
        groups.last().unwrap()["hooks"][0]["command"].as_str().unwrap().to_owned()
    }

    fn input(&self, event: &str) -> Value {
        json!({
            "session_id": "s1", "transcript_path": self.dir.path().join("none.jsonl"), "cwd": self.project(),
            "hook_event_name": event, "tool_name": "Bash", "tool_use_id": "toolu_1", "agent_id": "a1",
            "tool_input": {"command": "make"}, "permission_mode": "default",
        })
    }

    fn copies_of(&self, session: &str) -> threadline_app::file_copies::FileCopies {
        let state_dir = Some(self.dir.path().join("state/threadline"));
        App::new(AppConfig { state_dir, ..AppConfig::default() }).file_copies(session).unwrap()
    }
}

#[test]
fn features_are_turned_on_and_off_byte_for_byte() {
    let world = World::new();
    let path = world.home.file("settings.json", SETTINGS);
    let read = || std::fs::read_to_string(&path).unwrap();
    let shown = world.run(&["setup", "files"]);
    assert_eq!((shown.code, read()), (0, SETTINGS.to_owned()), "{shown}");
    assert!(shown.out.contains("+") && shown.err.contains("dry run"), "{shown}");
    for name in ["files", "archive", "statusline"] {
        let done = world.run(&["setup", name, "--apply"]);
        assert!(done.code == 0 && done.err.contains("op undo"), "{done}");
        assert!(world.run(&["setup", name, "--apply"]).out.contains("no changes"));
    }
    // The names of earlier versions do the same.
    world.run(&["trace", "install", "--preset", "otlp", "--apply"]);
    let on = |states: Vec<Value>| -> Vec<String> {
        let on = states.iter().filter(|state| state["on"] == true);
        on.map(|state| state["feature"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(on(world.run(&["setup", "--json"]).json_lines()), ["archive", "files", "trace", "statusline"]);
    assert!(world.installed("SessionEnd").ends_with(" trace --preset otlp + archive"));
    for name in ["archive", "trace", "statusline", "files"] {
        assert_eq!(world.run(&["setup", name, "--remove", "--apply"]).code, 0, "{name}");
    }
    assert_eq!(read(), SETTINGS);
}

#[test]
fn a_change_of_the_settings_is_undone_by_its_operation() {
    let world = World::new();
    let path = world.home.file("settings.json", SETTINGS);
    let done = world.run(&["setup", "files", "--apply", "--json"]).json();
    let id = done["operation"].as_str().unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().contains("PostToolUseFailure"));
    let undone = world.run(&["op", "undo", id, "--apply"]);
    assert_eq!((undone.code, std::fs::read_to_string(&path).unwrap()), (0, SETTINGS.to_owned()), "{undone}");
    // A file that did not exist, in a folder that did not exist.
    let local = world.run(&["setup", "files", "--scope", "local", "--apply", "--json"]).json();
    let path = world.project().join(".claude/settings.local.json");
    assert!(path.is_file());
    world.run(&["op", "undo", local["operation"].as_str().unwrap(), "--apply"]);
    assert!(!path.exists());
}

#[cfg(unix)]
#[test]
fn settings_behind_a_link_are_changed_where_they_are() {
    let world = World::new();
    let real = world.dir.path().join("dotfiles.json");
    std::fs::write(&real, SETTINGS).unwrap();
    let link = world.home.root().join("settings.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let done = world.run(&["setup", "files", "--apply", "--json"]);
    assert!(link.is_symlink() && std::fs::read_to_string(&real).unwrap().contains("hook"), "{done}");
    let undone = world.run(&["op", "undo", done.json()["operation"].as_str().unwrap(), "--apply"]);
    assert_eq!(std::fs::read_to_string(&real).unwrap(), SETTINGS, "{undone}");
}

#[test]
fn the_installed_hook_records_what_a_call_changes() {
    let world = World::new();
    std::fs::write(world.project().join("a.txt"), "one\n").unwrap();
    world.run(&["setup", "files", "--apply"]);
    world.run(&["setup", "trace", "--apply"]);
    let run = |event: &str| {
        let done = world.hook(&world.installed(event), &world.input(event));
        assert_eq!((done.code, &*done.out, &*done.err), (0, "", ""), "{event}");
    };
    run("PreToolUse");
    std::fs::write(world.project().join("a.txt"), "two\n").unwrap();
    run("PostToolUse");
    run("PreToolUse");
    std::fs::write(world.project().join("b.txt"), "new\n").unwrap();
    run("PostToolUseFailure");
    run("SubagentStop");
    let copies = world.copies_of("s1");
    let texts: Vec<_> = copies
        .scans()
        .iter()
        .flat_map(|scan| &scan.changes)
        .map(|change| (copies.read(&change.before), copies.read(&change.after)))
        .collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(texts, [(text("one\n"), text("two\n")), (None, text("new\n"))]);
    let scan = &copies.scans()[1];
    assert_eq!(
        (&*scan.tool_use_id, scan.agent_id.as_deref(), scan.is_complete),
        ("toolu_1", Some("a1"), true)
    );
    assert_eq!(copies.scans().len(), 5);
    // The state folder of the settings counts, not that of the environment of the hook.
    assert!(!world.dir.path().join(".local").exists());
    // A failure is in the log, and nowhere else.
    run("Stop");
    let log = world.run(&["setup", "--log", "--json"]).json_lines();
    let about = |feature: &str, level: &str| {
        log.iter().filter(|line| line["feature"] == feature && line["level"] == level).count()
    };
    assert_eq!((about("files", "INFO"), about("trace", "ERROR")), (5, 1));
    let shown = world.run(&["setup"]);
    assert!(
        shown.out.lines().any(|line| line.starts_with("trace") && line.contains("no receiver")),
        "{shown}"
    );
}

#[test]
fn no_input_fails_the_hook() {
    let world = World::new();
    world.run(&["setup", "files", "--apply"]);
    let command = world.installed("PreToolUse");
    let odd = [
        json!({}),
        json!([]),
        json!({"session_id": "../x", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "relative"}),
        json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/nonexistent/x", "tool_use_id": "../../x"}),
        json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "cwd": "/", "tool_input": {"command": 1}}),
        json!({"session_id": "s", "hook_event_name": "Unknown"}),
    ];
    for input in odd {
        let done = world.hook(&command, &input);
        assert_eq!((done.code, &*done.out, &*done.err), (0, "", ""), "{input}");
    }
    for line in ["hook", "hook --later files", "hook unknown", "hook + +"] {
        let done =
            world.hook(&format!("{} {line}", env!("CARGO_BIN_EXE_threadline")), &world.input("PreToolUse"));
        assert_eq!((done.code, &*done.out), (0, ""), "{line}");
    }
    assert!(!Path::new("/x").exists());
}

#[test]
fn a_server_and_an_earlier_hook_are_found() {
    let world = World::new();
    let earlier = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "/usr/bin/threadline trace hook"}]}]}});
    world.home.file("settings.json", earlier.to_string());
    world.run(&["setup", "mcp", "--apply"]);
    let states = world.run(&["setup", "--json"]).json_lines();
    let on: Vec<_> =
        states.iter().filter(|state| state["on"] == true).map(|state| &state["feature"]).collect();
    assert_eq!(on, ["trace", "mcp"]);
    world.run(&["setup", "trace", "--apply"]);
    let text = std::fs::read_to_string(world.home.root().join("settings.json")).unwrap();
    assert!(text.contains(" hook trace\"") || text.contains(" trace\""), "{text}");
    assert!(!text.contains("trace hook"), "{text}");
    world.run(&["setup", "mcp", "--remove", "--apply"]);
    assert!(
        world
            .run(&["setup", "--json"])
            .json_lines()
            .iter()
            .all(|state| state["feature"] != "mcp" || state["on"] == false)
    );
}

#[test]
fn copies_of_a_session_are_redacted_and_deleted_with_it() {
    let world = World::new();
    let token = format!("ghp_{}", "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8");
    let id = threadline_testkit::session_uuid("slow");
    world.home.session("slow", &format!("u1 user \"the word is {token}\"\na1 <- u1 reply m1 text \"yes\""));
    world.run(&["setup", "files", "--apply"]);
    let call = |event: &str| {
        let mut input = world.input(event);
        input["session_id"] = json!(id);
        world.hook(&world.installed(event), &input);
    };
    call("PreToolUse");
    std::fs::write(world.project().join("a.txt"), "loom\n").unwrap();
    std::fs::write(world.project().join("b.txt"), "hunter-of-words-77\n").unwrap();
    call("PostToolUse");
    let stored = || {
        let copies = world.copies_of(&id);
        copies
            .scans()
            .iter()
            .flat_map(|scan| &scan.changes)
            .filter(|change| copies.read(&change.after).is_some())
            .count()
    };
    assert_eq!(stored(), 2);
    let rules = world.dir.path().join("rules");
    std::fs::write(&rules, "WORD hunter-of-words-[0-9]+\n").unwrap();
    let redact = ["edit", "redact", &id, "--in-place", "--rules", rules.to_str().unwrap()];
    let planned = world.run(&redact);
    assert!(planned.err.contains("would be removed, for good: 1"), "{planned}");
    assert_eq!(stored(), 2);
    let done = world.run(&[&redact[..], &["--apply", "--force"]].concat());
    assert!(done.code == 0 && done.err.contains("removed, for good: 1"), "{done}");
    assert_eq!(stored(), 1);
    let planned = world.run(&["edit", "delete", &id]);
    assert!(planned.err.contains("would be removed, for good: 1 (5 B)"), "{planned}");
    let done = world.run(&["edit", "delete", &id, "--apply", "--force"]);
    assert_eq!((done.code, stored()), (0, 0), "{done}");
    assert_eq!(world.copies_of(&id).scans().len(), 0);
}
