//! `edit` and `op`: the plan, the writing, the receipt, the way back.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use threadline_testkit::TestHome;

use crate::run::{Run, command};

const LOOM: &str = r#"
u1        user   "list"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
a2 <- r1  reply  m2 text "One file."
"#;

/// A home with its own receipts.
pub(crate) struct World {
    pub(crate) home: TestHome,
    state: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { home: TestHome::new(), state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = command([&["--home", self.home.root().to_str().unwrap()], args].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Run {
        let done = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(self.home.root().to_str().unwrap(), "[home]")
        };
        Run { code: done.status.code().unwrap_or(-1), out: text(done.stdout), err: text(done.stderr) }
    }

    pub(crate) fn receipts(&self) -> usize {
        std::fs::read_dir(self.state.path().join("threadline/operations")).map_or(0, Iterator::count)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_plan_writes_nothing_and_says_what_it_would_do() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let run = world.run(&["edit", "title", "last", "The loom"]);
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert_snapshot!(run.to_string().replace(&id, "[id]"), @r"
    exit: 0
    ----- stdout -----
    title [id] → in place
      lines   4 → 5  (1 added)
      tokens  ≈11 → ≈11
      size    1.8 kB → 1.9 kB  (+5 %)

      +      1  the title
    ----- stderr -----
    planned; nothing was written. Add --apply to write it
    ");
    assert_eq!(read(&path), before);
    assert_eq!(world.receipts(), 0);
}

#[test]
fn what_is_applied_can_be_undone_to_the_byte() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let run = world.run(&["edit", "title", "last", "The \"loom\"", "--apply", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    let receipt = run.json()["receipt"].as_str().unwrap().to_owned();
    let after = read(&path);
    assert!(after.starts_with(&before) && after.len() > before.len());
    assert_eq!(world.run(&["list", "--json"]).json()["title"], "The \"loom\"");
    let log = world.run(&["op", "log", "--json"]).json();
    assert_eq!((log["id"].as_str().unwrap(), &log["state"]), (&*receipt, &Value::from("done")));
    let undo = world.run(&["op", "undo", &receipt]);
    assert_eq!(undo.code, 0, "{undo}");
    assert_eq!(read(&path), before);
    assert_eq!(world.run(&["op", "undo", &receipt]).code, 2);
    assert_eq!(world.run(&["op", "forget", &receipt]).code, 0);
    assert_eq!(world.run(&["op", "log"]).code, 1);
}

#[test]
fn an_undo_is_refused_when_the_file_has_changed_since() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    assert_eq!(world.run(&["edit", "tag", "last", "wip", "--apply"]).code, 0);
    let grown = read(&path) + "{\"type\":\"mode\"}\n";
    std::fs::write(&path, &grown).unwrap();
    let run = world.run(&["op", "undo"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("has changed since: 16 bytes were added"), "{run}");
    assert_eq!(read(&path), grown);
}

#[test]
fn a_clone_is_a_session_of_its_own() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let run = world.run(&["edit", "clone", "last", "--apply", "--json"]);
    assert_eq!(run.code, 0, "{run}");
    let object = run.json();
    let keys: Vec<_> = object.as_object().unwrap().keys().cloned().collect();
    let mut expected = [
        "operation",
        "source",
        "target",
        "path",
        "lines_removed",
        "lines_changed",
        "lines_added",
        "tokens_before",
        "tokens_after",
        "receipt",
        "findings",
    ];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    let clone = world.run(&["replay", object["target"].as_str().unwrap(), "--json"]).json();
    let id = path.file_stem().unwrap().to_str().unwrap();
    assert_eq!(clone["messages"], world.run(&["replay", id, "--json"]).json()["messages"]);
    assert_eq!(world.run(&["check", object["target"].as_str().unwrap()]).code, 0);
    assert_eq!(read(&path), before);
    assert_eq!(world.run(&["op", "undo"]).code, 0);
    assert_eq!(world.run(&["list", "--json"]).json_lines().len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn a_session_that_is_open_is_left_alone() {
    let world = World::new();
    let path = world.home.session("loom", LOOM);
    let id = path.file_stem().unwrap().to_str().unwrap();
    world.home.file("sessions/1.json", format!("{{\"pid\":{},\"sessionId\":\"{id}\"}}", std::process::id()));
    let run = world.run(&["edit", "tag", id, "wip", "--apply"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("is open in Claude Code"), "{run}");
    assert_eq!(world.run(&["edit", "tag", id, "wip", "--apply", "--force"]).code, 0);
}
