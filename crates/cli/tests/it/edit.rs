//! `edit` and `op`: plans, applied changes, receipts, undo and redo.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::Value;
use threadline_testkit::TestHome;

use crate::run::{RunOutput, command};

const LOOM: &str = r#"
u1        user   "list"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
a2 <- r1  reply  m2 text "One file."
"#;

/// A Claude Code home with a separate state directory for receipts.
pub(crate) struct EditFixture {
    pub(crate) home: TestHome,
    pub(crate) state: tempfile::TempDir,
}

impl EditFixture {
    pub(crate) fn new() -> Self {
        Self { home: TestHome::new(), state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = command([&["--home", self.home.root().to_str().unwrap()], args].concat());
        command.env("XDG_STATE_HOME", self.state.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> RunOutput {
        let done = self.command(args).output().unwrap();
        let text = |bytes: Vec<u8>| {
            String::from_utf8(bytes).unwrap().replace(self.home.root().to_str().unwrap(), "[home]")
        };
        RunOutput { code: done.status.code().unwrap_or(-1), out: text(done.stdout), err: text(done.stderr) }
    }

    pub(crate) fn receipts(&self) -> usize {
        std::fs::read_dir(self.state.path().join("threadline/operations")).map_or(0, Iterator::count)
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_plan_writes_nothing_and_shows_its_changes() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let run = world.run(&["edit", "title", "last", "The loom"]);
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    assert_snapshot!(run.to_string().replace(&id, "[id]"), @r"
    exit: 0
    ----- stdout -----
    title [id] “list” → in place
      lines   4 → 5  (1 added)
      tokens  ≈11 → ≈11
      size    1.8 kB → 1.9 kB  (+5 %)

      +      1  title
    ----- stderr -----
    planned; nothing was written. Add --apply to write it
    ");
    assert_eq!(read(&path), before);
    assert_eq!(world.receipts(), 0);
}

#[test]
fn an_applied_edit_is_undone_byte_for_byte() {
    let world = EditFixture::new();
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
    let undo = world.run(&["op", "undo", "--apply", &receipt]);
    assert_eq!(undo.code, 0, "{undo}");
    assert_eq!(read(&path), before);
    assert_eq!(world.run(&["op", "undo", "--apply", &receipt]).code, 2);
    assert_eq!(world.run(&["op", "forget", &receipt]).code, 0);
    assert_eq!(world.run(&["op", "log"]).code, 1);
}

#[test]
fn lines_appended_later_survive_undo_and_redo() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let line = "{\"type\":\"mode\"}\n";
    for edit in [
        &["edit", "tag", "last", "wip", "--apply"][..],
        &["edit", "strip", "last", "--tools", "--in-place", "--apply"],
    ] {
        std::fs::write(&path, &before).unwrap();
        assert_eq!(world.run(edit).code, 0);
        let after = read(&path);
        std::fs::write(&path, after.clone() + line).unwrap();
        let undo = world.run(&["op", "undo", "--apply"]);
        assert_eq!(undo.code, 0, "{undo}");
        assert!(
            undo.err.contains("16 B that other programs have appended since are kept at the end"),
            "{undo}"
        );
        assert_eq!(read(&path), before.clone() + line);
        let redo = world.run(&["op", "redo", "--apply"]);
        assert_eq!(redo.code, 0, "{redo}");
        let tagged = after.strip_prefix(&before);
        // A tag is appended again, so it follows the new line; other edits replace lines in place.
        let expected = tagged.map_or(after.clone() + line, |tag| before.clone() + line + tag);
        assert_eq!(read(&path), expected);
        assert_eq!(world.run(&["op", "undo", "--apply", "--json"]).json()["state"], "undone");
        assert_eq!(read(&path), before.clone() + line);
    }
}

#[test]
fn an_undo_of_a_changed_file_fails_and_names_the_file() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let object = world.run(&["edit", "clone", "last", "--apply", "--json"]).json();
    let clone = std::path::PathBuf::from(
        object["path"].as_str().unwrap().replace("[home]", world.home.root().to_str().unwrap()),
    );
    let continued = read(&clone) + "{\"type\":\"mode\"}\n";
    std::fs::write(&clone, &continued).unwrap();
    let id = object["receipt"].as_str().unwrap();
    let undo = world.run(&["op", "undo", "--apply"]);
    assert_eq!(undo.code, 2);
    assert!(
        undo.err.contains(".jsonl has changed since: 16 bytes were added\nhint: nothing was changed"),
        "{undo}"
    );
    assert!(
        undo.err.contains(&format!("`threadline --home [home] op undo {id} --partial --apply`")),
        "{undo}"
    );
    assert_eq!(read(&clone), continued);
    let undo = world.run(&["op", "undo", "--apply", "--partial", "--json"]);
    assert_eq!(undo.code, 2, "{undo}");
    assert_eq!(undo.json()["skipped"][0]["reason"], "16 bytes were added");
    assert_eq!(read(&clone), continued);
}

#[test]
fn an_operation_can_be_undone_and_redone_repeatedly() {
    let world = EditFixture::new();
    let id = full_session(&world);
    for edit in [
        &["edit", "clone", &id, "--apply"][..],
        &["edit", "strip", &id, "--tools", "--in-place", "--apply"],
        &["edit", "title", &id, "T", "--apply"],
        &["edit", "move", &id, "--cwd", "/srv/loom", "--apply"],
        &["edit", "delete", &id, "--apply"],
    ] {
        let before = all_files(&world);
        assert_eq!(world.run(edit).code, 0, "{edit:?}");
        let after = all_files(&world);
        for _ in 0..2 {
            let undo = world.run(&["op", "undo", "--apply"]);
            assert_eq!(undo.code, 0, "{edit:?}: {undo}");
            assert_eq!(all_files(&world), before, "{edit:?}");
            let redo = world.run(&["op", "redo", "--apply"]);
            assert_eq!(redo.code, 0, "{edit:?}: {redo}");
            assert_eq!(all_files(&world), after, "{edit:?}");
        }
        assert_eq!(world.run(&["op", "redo", "--apply"]).code, 2, "nothing is left to redo");
        assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        assert_eq!(world.run(&["op", "forget", "--all", "--apply"]).code, 0);
        assert_eq!(all_files(&world), before, "{edit:?}");
    }
}

#[test]
#[cfg(unix)]
fn deleting_or_moving_a_linked_log_affects_only_the_link() {
    for args in [&["edit", "delete"][..], &["edit", "move", "--cwd", "/srv/loom"]] {
        let world = EditFixture::new();
        let path = world.home.session("loom", LOOM);
        let before = read(&path);
        let id = path.file_stem().unwrap().to_str().unwrap();
        // A link that leads out of the home is never followed.
        let outside = tempfile::tempdir().unwrap();
        let log = outside.path().join("log.jsonl");
        std::fs::rename(&path, &log).unwrap();
        std::os::unix::fs::symlink(&log, &path).unwrap();
        let run = world.run(&[args, &[id, "--apply"]].concat());
        assert_eq!(run.code, 2, "{run}");
        assert_eq!((read(&log), path.is_symlink()), (before.clone(), true));
        // A link inside the home is followed.
        std::fs::remove_file(&path).unwrap();
        let log = world.home.root().join("log.jsonl");
        std::fs::write(&log, &before).unwrap();
        std::os::unix::fs::symlink(&log, &path).unwrap();
        let run = world.run(&[args, &[id, "--apply"]].concat());
        assert_eq!(run.code, 0, "{run}");
        assert!(!path.is_symlink(), "{args:?}");
        assert_eq!(read(&log), before, "{args:?}");
        assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        assert_eq!(std::fs::read_link(&path).unwrap(), log);
        assert_eq!(read(&path), before);
    }
}

#[test]
#[cfg(unix)]
fn a_title_is_not_set_if_it_could_not_be_undone() {
    use std::os::unix::fs::PermissionsExt;
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let folder = path.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        std::fs::remove_file(folder.join("probe")).unwrap();
        threadline_testkit::report_skipped("this user may write everywhere");
        return;
    }
    let run = world.run(&["edit", "title", "last", "T", "--apply"]);
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run.code, 2, "{run}");
    assert!(run.err.contains("hint: nothing was changed"), "{run}");
    assert_eq!((read(&path), world.receipts()), (before, 0));
}

/// Runs several edits of the same log at once: those that find it changed since planning fail, and the
/// receipts of the others can be undone.
#[test]
fn concurrent_edits_conflict_and_the_applied_one_can_be_undone() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let strip = &["edit", "strip", "last", "--tools", "--in-place", "--apply"];
    let editors: Vec<_> = (0..6)
        .map(|_| {
            world
                .command(strip)
                .stderr(std::process::Stdio::piped())
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    let codes: Vec<_> =
        editors.into_iter().map(|editor| editor.wait_with_output().unwrap().status.code().unwrap()).collect();
    assert!(codes.contains(&0), "{codes:?}");
    let log = world.run(&["op", "log", "--json"]).json_lines();
    assert!(log.iter().all(|receipt| receipt["state"] == "done"), "{log:?}");
    for _ in &log {
        let undo = world.run(&["op", "undo", "--apply"]);
        assert_eq!(undo.code, 0, "{undo}");
    }
    assert_eq!(read(&path), before);
}

#[test]
fn a_clone_is_an_independent_session() {
    let world = EditFixture::new();
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
        "compatible_versions",
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
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(world.run(&["list", "--json"]).json_lines().len(), 1);
}

#[test]
#[cfg(target_os = "linux")]
fn an_open_session_is_not_edited() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let id = path.file_stem().unwrap().to_str().unwrap();
    world.home.file("sessions/1.json", format!("{{\"pid\":{},\"sessionId\":\"{id}\"}}", std::process::id()));
    let run = world.run(&["edit", "tag", id, "wip", "--apply"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("is open in Claude Code"), "{run}");
    assert_eq!(world.run(&["edit", "tag", id, "wip", "--apply", "--force"]).code, 0);
}

#[test]
fn a_session_that_has_just_grown_is_not_edited() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let now = jiff::Timestamp::now();
    std::fs::write(&path, read(&path).replace("2026-01-01T10:00:03.000Z", &format!("{now:.3}"))).unwrap();
    let run = world.run(&["edit", "strip", "last", "--tools", "--in-place", "--apply"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("seems to be open: its last line is "), "{run}");
    assert_eq!(world.run(&["edit", "clone", "last", "--apply"]).code, 0, "a copy changes nothing");
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(world.run(&["edit", "strip", "last", "--tools", "--in-place", "--apply", "--force"]).code, 0);
}

#[test]
fn editing_a_sub_agent_log_is_refused_with_a_hint() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let path = world.home.agent("loom", "x1", "b1 user \"look\"\nb2 <- b1 reply n1 text \"I looked.\"", None);
    let run = world.run(&["edit", "clone", path.to_str().unwrap()]);
    assert_eq!(run.code, 2);
    assert!(
        run.err.contains("is the log of a sub-agent\nhint: edit the session that it belongs to"),
        "{run}"
    );
}

#[test]
fn a_truncated_clone_has_only_earlier_side_files() {
    let world = EditFixture::new();
    let path = world.home.session(
        "loom",
        r#"
u1        user   "one"
a1 <- u1  reply  m1 tool t1 Task {"prompt":"count"}
r1 <- a1  result t1 "see tool-results/o1.txt" {"agentId":"a11111"}
a2 <- r1  reply  m2 text "One."
snapshot u1 {"/a.rs":{"backupFileName":"01@v1","version":1}}
u2 <- a2  user   "two"
a3 <- u2  reply  m3 tool t2 Task {"prompt":"count again"}
r2 <- a3  result t2 "see tool-results/o2.txt" {"agentId":"a22222"}
a4 <- r2  reply  m4 text "Two."
snapshot u2 {"/a.rs":{"backupFileName":"01@v2","version":2}}
"#,
    );
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    for (agent, prompt, time) in [
        ("a11111", "count", "10:00:02"),
        ("a22222", "count again", "10:00:07"),
        ("acompact-1", "sum up", "10:00:08"),
    ] {
        let log =
            format!("{agent}x user \"{prompt}\" @{time}\n{agent}y <- {agent}x reply n{agent} text \"Two.\"");
        world.home.agent("loom", agent, &log, Some("{\"agentType\":\"Explore\"}"));
    }
    for n in [1, 2] {
        world.home.file(format!("projects/-home-ada-loom/{id}/tool-results/o{n}.txt"), "all of it");
        world.home.file(format!("file-history/{id}/01@v{n}"), "fn main() {}");
    }
    let made = |to: &[&str]| {
        let before = all_files(&world);
        let object = world.run(&[&["edit", "clone", &id, "--apply", "--json"], to].concat()).json();
        let clone = object["target"].as_str().unwrap().to_owned();
        let made: Vec<String> = all_files(&world)
            .into_iter()
            .filter(|file| !before.contains(file))
            .map(|(name, _)| name.replace(&clone, "[id]").replace("projects/-home-ada-loom/", ""))
            .collect();
        assert_eq!(world.run(&["check", &clone]).code, 0);
        assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        made
    };
    assert_eq!(made(&[]).len(), 11);
    assert_eq!(
        made(&["--to", "1"]),
        [
            "file-history/[id]/01@v1",
            "[id].jsonl",
            "[id]/subagents/agent-a11111.jsonl",
            "[id]/subagents/agent-a11111.meta.json",
            "[id]/tool-results/o1.txt",
        ]
    );
}

/// Wraps a command in a shell that limits file sizes to `blocks` blocks of 512 bytes.
#[cfg(unix)]
fn with_file_size_limit(command: &std::process::Command, blocks: usize) -> std::process::Command {
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\""), "sh"]);
    shell.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            shell.env(key, value);
        }
    }
    shell
}

#[test]
#[cfg(unix)]
fn a_full_disk_leaves_everything_unchanged() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    // The log ends just below the limit, so that only the first bytes of another line fit.
    let line = "{\"type\":\"mode\",\"mode\":\"\"}\n";
    let blocks = 32;
    let pad = blocks * 512 - 20 - read(&path).len() - line.len();
    let full = read(&path) + &line.replace("\"mode\":\"\"", &format!("\"mode\":\"{}\"", "x".repeat(pad)));
    std::fs::write(&path, &full).unwrap();
    let before = all_files(&world);
    // Half the limit is smaller than the log: not even the backup fits.
    for (args, blocks) in [
        (&["edit", "title", "last", "A title that does not fit any more", "--apply"][..], blocks),
        (&["edit", "strip", "last", "--tools", "--in-place", "--apply"], blocks / 2),
        (&["edit", "clone", "last", "--apply"], blocks / 2),
    ] {
        let done = with_file_size_limit(&world.command(args), blocks).output().unwrap();
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{args:?}: {stderr}");
        let is_said = stderr.contains("hint: nothing was changed")
            || stderr.contains("hint: the file that had been changed is as it was before");
        assert!(is_said, "{args:?}: {stderr}");
        assert!(stderr.contains("there must be space"), "{args:?}: {stderr}");
        assert_eq!(all_files(&world), before, "{args:?}");
        assert_eq!(world.receipts(), 0, "{args:?}");
        assert_eq!(world.run(args).code, 0, "{args:?} with room");
        assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        assert_eq!(world.run(&["op", "forget", "--all", "--apply"]).code, 0);
        assert_eq!(all_files(&world), before, "{args:?}");
    }
}

/// Creates a session with a sub-agent, a saved tool result and a file backup. Returns its id.
pub(crate) fn full_session(world: &EditFixture) -> String {
    let path = world.home.session(
        "loom",
        r#"
u1        user   "look"
a1 <- u1  reply  m1 thinking "Hm." "sig"
a2 <- a1  reply  m1 tool t1 Task {"prompt":"count"}
r1 <- a2  result t1 "see /x/SESSION/tool-results/o.txt" {"agentId":"a1b2c3"}
a3 <- r1  reply  m2 text "Two."
snapshot u1 {"/home/ada/loom/a.rs":{"backupFileName":"0123@v1","version":1}}
"#,
    );
    let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
    let text = read(&path).replace("SESSION", &id);
    std::fs::write(&path, text).unwrap();
    world.home.agent(
        "loom",
        "a1b2c3",
        "x1 user \"count\"\nx2 <- x1 reply m9 text \"Two.\"",
        Some("{\"agentType\":\"Explore\"}"),
    );
    let folder = path.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    world.home.file(format!("projects/{folder}/{id}/tool-results/o.txt"), "all of it");
    world.home.file(format!("file-history/{id}/0123@v1"), "fn main() {}");
    id
}

pub(crate) fn all_files(world: &EditFixture) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![world.home.root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                let name =
                    entry.path().strip_prefix(world.home.root()).unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read(entry.path()).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn side_files_are_copied_with_a_clone() {
    let world = EditFixture::new();
    let id = full_session(&world);
    let before = all_files(&world);
    let object = world.run(&["edit", "clone", &id, "--apply", "--json"]).json();
    let clone = object["target"].as_str().unwrap().to_owned();
    let made: Vec<_> = all_files(&world).into_iter().filter(|file| !before.contains(file)).collect();
    let names: Vec<String> = made.iter().map(|(name, _)| name.replace(&clone, "[id]")).collect();
    assert_eq!(
        names,
        [
            "file-history/[id]/0123@v1",
            "projects/-home-ada-loom/[id].jsonl",
            "projects/-home-ada-loom/[id]/subagents/agent-a1b2c3.jsonl",
            "projects/-home-ada-loom/[id]/subagents/agent-a1b2c3.meta.json",
            "projects/-home-ada-loom/[id]/tool-results/o.txt",
        ]
    );
    let text = |at: usize| String::from_utf8(made[at].1.clone()).unwrap();
    assert!(text(1).contains(&format!("see /x/{clone}/tool-results/o.txt")));
    let own = |line: &str| line.replace(&format!("\"forkedFrom\":{{\"sessionId\":\"{id}\""), "");
    assert!(text(1).lines().chain(text(2).lines()).all(|line| !own(line).contains(&id)), "{}", text(2));
    assert_eq!((text(0), text(4)), ("fn main() {}".to_owned(), "all of it".to_owned()));
    assert_eq!(world.run(&["check", &clone]).code, 0);
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(all_files(&world), before);
    assert!(!world.home.root().join(format!("file-history/{clone}")).exists());
}

#[test]
fn a_diff_shows_content_and_findings_name_their_log() {
    let world = EditFixture::new();
    let path = world.home.session(
        "loom",
        &format!(
            "{LOOM}\nu2 <- a2 user \"more\"\na3 <- u2 reply m3 tool t3 Bash\na4 <- a3 reply m4 text \"On.\""
        ),
    );
    let id = path.file_stem().unwrap().to_str().unwrap();
    let diff = world.run(&["edit", "strip", id, "--tools", "--keep-last", "1", "--diff"]);
    assert_eq!(diff.code, 0, "{diff}");
    assert!(!diff.out.contains("parentUuid"), "{diff}");
    let plan = world.run(&["edit", "clone", id, "--json"]).json();
    assert_ne!(plan["path"], plan["findings"][0]["path"]);
    assert_eq!(
        plan["findings"][0]["path"].as_str(),
        Some("[home]/projects/-home-ada-loom/LOG")
            .map(|path| path.replace("LOG", &format!("{id}.jsonl")))
            .as_deref()
    );
    let moved = world.run(&["edit", "move", id, "--cwd", "/srv/loom"]);
    assert!(
        moved.out.starts_with(&format!("move {id} “list” → [home]/projects/-srv-loom/{id}.jsonl\n")),
        "{moved}"
    );
}

#[test]
fn a_deleted_session_can_be_restored() {
    let world = EditFixture::new();
    let id = full_session(&world);
    let before = all_files(&world);
    assert_eq!(world.run(&["edit", "delete", &id]).code, 0);
    assert_eq!(all_files(&world), before);
    let run = world.run(&["edit", "delete", &id, "--apply"]);
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(all_files(&world), []);
    assert_eq!(world.run(&["list"]).code, 1);
    let undo = world.run(&["op", "undo", "--apply"]);
    assert_eq!(undo.code, 0, "{undo}");
    assert_eq!(all_files(&world), before);
}

#[test]
fn a_session_moves_with_its_project() {
    let world = EditFixture::new();
    let id = full_session(&world);
    let before = all_files(&world);
    let run = world.run(&["edit", "move", &id, "--cwd", "/srv/loom two", "--apply"]);
    assert_eq!(run.code, 0, "{run}");
    let list = world.run(&["list", "--json"]).json();
    assert_eq!(
        (list["cwd"].as_str(), list["folder"].as_str()),
        (Some("/srv/loom two"), Some("-srv-loom-two"))
    );
    assert_eq!((list["id"].as_str(), list["sub_agents"].as_u64()), (Some(&*id), Some(1)));
    let names: Vec<String> = all_files(&world).into_iter().map(|(name, _)| name).collect();
    assert!(names.iter().all(|name| !name.contains("-home-ada-loom")), "{names:?}");
    assert_eq!(world.run(&["check", &id]).code, 0);
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(all_files(&world), before);
}

#[test]
fn a_strip_lists_the_lines_it_removes() {
    let world = EditFixture::new();
    let id = full_session(&world);
    let run = world.run(&["edit", "strip", &id, "--tools", "--thinking", "--in-place"]);
    assert_snapshot!(run.to_string().replace(&id, "[id]"), @r"
    exit: 0
    ----- stdout -----
    strip [id] “look” → in place
      lines   6 → 3  (3 removed, 1 changed)
      tokens  ≈27 → ≈3  (-89 %)
      size    2.7 kB → 1.1 kB  (-60 %)
      resume  same in Claude Code 2.1.20 to 2.1.328

    turn  lines  tokens           bytes  prompt
       1  5 → 2  27 → 3  2.5 kB → 858 B  look

      -      1  call of Task removed (line 3)
      -      1  result of Task removed (line 4)
      -      1  thinking removed (line 2)
      ~      1  re-parented (line 5)
    ----- stderr -----
    planned; nothing was written. Add --apply to write it
    ");
    let path = world.home.root().join(format!("projects/-home-ada-loom/{id}.jsonl"));
    let before = read(&path);
    assert_eq!(world.run(&["edit", "strip", &id, "--tools", "--thinking", "--in-place", "--apply"]).code, 0);
    let left: Vec<String> = world.run(&["replay", &id, "--json"]).json()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["content"][0]["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(left, ["look", "Two."]);
    assert_eq!(world.run(&["edit", "strip", &id, "--tools", "--thinking", "--in-place"]).code, 1);
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(read(&path), before);
}

#[test]
#[cfg(unix)]
fn without_permission_nothing_changes_and_the_error_is_shown() {
    use std::os::unix::fs::PermissionsExt;
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let folder = path.parent().unwrap();
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o500)).unwrap();
    if std::fs::write(folder.join("probe"), "").is_ok() {
        // Permissions do not stop a privileged user.
        std::fs::remove_file(folder.join("probe")).unwrap();
        threadline_testkit::report_skipped("this user may write everywhere");
        return;
    }
    let run = world.run(&["edit", "clone", "last", "--apply"]);
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(run.code, 2);
    assert!(run.err.contains("hint: nothing was changed"), "{run}");
    assert_eq!((read(&path), world.receipts()), (before, 0));
}

#[test]
fn a_dry_run_only_plans_and_a_clone_prints_its_resume_command() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let dry = world.run(&["edit", "clone", "last", "--dry-run"]);
    assert!(dry.code == 0 && dry.err.contains("nothing was written"), "{dry}");
    assert_eq!(world.receipts(), 0);
    assert_eq!(world.run(&["edit", "clone", "last", "--dry-run", "--apply"]).code, 2);
    let undo = world.run(&["op", "undo", "--apply"]);
    assert!(undo.code == 2 && undo.err.contains("nothing to undo"), "{undo}");
    let done = world.run(&["edit", "clone", "last", "--apply", "--json"]);
    let target = done.json()["target"].as_str().unwrap().to_owned();
    let resume = format!("`cd /home/ada/loom && CLAUDE_CONFIG_DIR=[home] claude --resume {target}`");
    assert!(done.err.contains(&resume), "{done}");
}

#[test]
fn global_options_are_listed_separately() {
    let help = crate::run::threadline(["edit", "strip", "-h"]).out;
    let (own, every) = help.split_once("Global options:").unwrap();
    assert!(own.contains("--preset") && !own.contains("--home"), "{help}");
    assert!(every.contains("--home") && every.contains("--json"), "{help}");
}

#[test]
fn undo_is_limited_to_the_homes_and_only_plans_without_apply() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    assert_eq!(world.run(&["edit", "title", "last", "New", "--apply"]).code, 0);
    let after = read(&path);
    let plan = world.run(&["op", "undo"]);
    assert_eq!((plan.code, read(&path) == after), (0, true), "{plan}");
    assert!(plan.out.starts_with("title ") && plan.err.contains("--apply` changes these files"), "{plan}");
    let other = threadline_testkit::TestHome::new();
    let mut elsewhere = command(["--home", other.root().to_str().unwrap(), "op", "undo", "--apply"]);
    let elsewhere = elsewhere.env("XDG_STATE_HOME", world.state.path()).output().unwrap();
    assert_eq!((elsewhere.status.code(), read(&path) == after), (Some(2), true));
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(read(&path), before);
}

/// Sets the state in the receipt of the only operation, and returns its id.
fn set_state(world: &EditFixture, state: &str) -> String {
    let folder = world.state.path().join("threadline/operations");
    let folder = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let path = folder.path().join("receipt.json");
    let mut receipt: Value = serde_json::from_str(&read(&path)).unwrap();
    receipt["state"] = state.into();
    std::fs::write(path, receipt.to_string()).unwrap();
    folder.file_name().into_string().unwrap()
}

#[test]
fn an_interrupted_operation_is_named_and_finished_or_undone_without_its_id() {
    for (verb, is_done) in [("redo", true), ("undo", false)] {
        let world = EditFixture::new();
        let path = world.home.session("loom", LOOM);
        let before = read(&path);
        assert_eq!(world.run(&["edit", "title", "last", "New", "--apply"]).code, 0);
        let after = read(&path);
        std::fs::write(&path, &before).unwrap();
        let id = set_state(&world, "applying");
        let log = world.run(&["op", "log"]);
        assert!(log.err.contains(&format!("finish: `threadline --home [home] op redo {id}`")), "{log}");
        let finished = world.run(&["op", verb, "--apply"]);
        assert_eq!((finished.code, read(&path)), (0, if is_done { after } else { before }), "{finished}");
        assert_eq!(world.run(&["op", "log"]).err, "");
    }
}

#[test]
fn an_operation_that_was_interrupted_before_its_first_change_is_removed() {
    for (verb, code) in [("undo", 0), ("redo", 2)] {
        let world = EditFixture::new();
        let path = world.home.session("loom", LOOM);
        let before = read(&path);
        assert_eq!(world.run(&["edit", "title", "last", "New", "--apply"]).code, 0);
        std::fs::write(&path, &before).unwrap();
        let id = set_state(&world, "begun");
        std::fs::write(path.with_file_name(format!(".threadline-{id}-0.new-before")), "staged").unwrap();
        let log = world.run(&["op", "log"]);
        let hint = format!("remove its private files: `threadline --home [home] op undo {id}`");
        assert!(log.err.contains(&hint), "{log}");
        let removed = world.run(&["op", verb, "--apply"]);
        assert_eq!((removed.code, world.receipts()), (code, 0), "{removed}");
        let is_named = removed.err.contains(" --home [home] edit title last New --apply`");
        assert_eq!(is_named, verb == "redo", "{removed}");
        assert_eq!(all_files(&world).len(), 1, "{removed}");
    }
}

#[test]
#[cfg(unix)]
fn an_undo_that_fails_says_what_was_changed_and_how_to_finish_it() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    assert_eq!(world.run(&["edit", "strip", "last", "--tools", "--in-place", "--apply"]).code, 0);
    let after = read(&path);
    let failed = with_file_size_limit(&world.command(&["op", "undo", "--apply"]), 2).output().unwrap();
    let stderr = String::from_utf8(failed.stderr).unwrap();
    assert_eq!((failed.status.code(), read(&path) == after), (Some(2), true), "{stderr}");
    assert!(stderr.contains("cause: nothing was changed"), "{stderr}");
    assert!(stderr.contains("hint: try again: `threadline --home "), "{stderr}");
    assert_eq!(all_files(&world).len(), 1, "{stderr}");
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(read(&path), before);
}

#[test]
fn the_undo_command_that_an_edit_prints_names_the_home_and_works_without_it() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let before = read(&path);
    let edit = world.run(&["edit", "title", "last", "New", "--apply"]);
    let (_, id) = edit.err.split_once("`threadline --home [home] op undo ").unwrap();
    let id = id.split_once('`').unwrap().0;
    let other = threadline_testkit::TestHome::new();
    let mut undo = command(["--home", other.root().to_str().unwrap(), "op", "undo", id, "--apply"]);
    let undo = undo.env("XDG_STATE_HOME", world.state.path()).output().unwrap();
    assert_eq!((undo.status.code(), read(&path) == before), (Some(0), true));
}

/// Returns a copy of the home of `world`, with the same session ids.
fn copied_home(world: &EditFixture) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for (path, content) in all_files(world) {
        let path = copy.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    copy
}

#[test]
fn operations_of_a_copied_home_are_separate() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let copy = copied_home(&world);
    let run_in_copy = |args: &[&str]| {
        let mut command = command([&["--home", copy.path().to_str().unwrap()], args].concat());
        command.env("XDG_STATE_HOME", world.state.path()).output().unwrap().status.code().unwrap()
    };
    let before = read(&path);
    assert_eq!(world.run(&["edit", "delete", "last", "--apply"]).code, 0);
    assert_eq!(run_in_copy(&["op", "log"]), 1, "the copy has no operations");
    assert_eq!(run_in_copy(&["op", "undo", "--apply"]), 2);
    assert_eq!(run_in_copy(&["op", "forget", "--all", "--apply"]), 1);
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert_eq!(read(&path), before);
}

#[test]
fn forgetting_all_receipts_needs_apply() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    assert_eq!(world.run(&["edit", "title", "last", "New", "--apply"]).code, 0);
    let plan = world.run(&["op", "forget", "--all"]);
    assert_eq!((plan.code, world.receipts()), (0, 1), "{plan}");
    assert!(plan.out.contains("title") && plan.err.contains("op forget --all --apply`"), "{plan}");
    assert_eq!(world.run(&["op", "forget", "--all", "--apply"]).code, 0);
    assert_eq!(world.receipts(), 0);
}

#[test]
fn an_edit_with_nothing_to_do_prints_json() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let run = world.run(&["edit", "repair", "last", "--json"]);
    assert_eq!(run.code, 1, "{run}");
    assert_eq!((run.json()["lines_changed"].as_u64(), run.json()["receipt"].is_null()), (Some(0), true));
    assert!(run.json()["reason"].is_string(), "{run}");
}

/// A log that another person has sent.
#[test]
fn a_log_outside_of_a_home_is_cloned_into_the_home() {
    let (world, other) = (EditFixture::new(), threadline_testkit::TestHome::new());
    let dir = tempfile::tempdir().unwrap();
    let dir = std::fs::canonicalize(dir.path()).unwrap();
    let project = dir.join("project");
    std::fs::create_dir(&project).unwrap();
    let log = dir.join("mail.jsonl");
    let path = log.to_str().unwrap();
    let mail = |project: &std::path::Path| {
        let _ = std::fs::copy(other.session_in(project.to_str().unwrap(), "loom", LOOM), &log).unwrap();
    };
    mail(&project);
    for resume in [&["resume", path, "--print"][..], &["resume", path, "--print", "--with", "threadline"]] {
        let run = world.run(resume);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{run}");
        assert!(run.err.contains(&format!("edit clone {path} --apply`")), "{run}");
    }
    let cloned = world.run(&["edit", "clone", path, "--apply", "--json"]);
    assert_eq!(cloned.code, 0, "{cloned}");
    let id = cloned.json()["target"].as_str().unwrap().to_owned();
    let folder =
        world.home.root().join("projects").join(threadline_store::encode_project(project.to_str().unwrap()));
    assert!(folder.join(format!("{id}.jsonl")).is_file(), "{cloned}");
    assert!(cloned.err.contains(&format!("cd {} && ", project.display())), "{cloned}");
    assert!(cloned.err.contains(&format!("claude --resume {id}")), "{cloned}");
    assert_eq!(world.run(&["resume", &id, "--print"]).code, 0);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 2, "nothing is written beside the log");
    // The folder of the session is on another machine.
    mail(&dir.join("elsewhere"));
    let cloned = world.run(&["edit", "clone", path, "--apply"]);
    assert!(cloned.code == 0 && cloned.err.contains(" edit move "), "{cloned}");
    assert!(!cloned.err.contains("claude --resume"), "{cloned}");
    // Other new sessions stay in the folder of the log, and no command resumes them there.
    let title = world.run(&["edit", "strip", path, "--apply"]);
    assert!(!title.err.contains("claude --resume"), "{title}");
    assert_eq!(world.run(&["edit", "move", path, "--cwd", project.to_str().unwrap()]).code, 2);
}

#[test]
#[cfg(target_os = "linux")]
fn an_applied_edit_that_cannot_be_printed_succeeds_and_names_its_receipt() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let to_full = |args: &[&str]| {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = world.command(args).stdout(full).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for args in [
        &["edit", "title", "last", "The loom", "--apply", "--quiet"][..],
        &["edit", "title", "last", "The loom, again", "--apply", "--json", "--quiet"],
        &["op", "undo", "--apply", "--json", "--quiet"],
        &["edit", "delete", "last", "--apply", "--quiet"],
    ] {
        let (code, err) = to_full(args);
        assert!(code == Some(0) && err.contains(" op show "), "{args:?}: {code:?} {err}");
    }
    assert_eq!(to_full(&["op", "log"]).0, Some(2), "nothing was changed");
    assert_eq!(world.receipts(), 3);
}

#[test]
#[cfg(unix)]
fn operations_are_found_if_the_projects_are_a_link() {
    let world = EditFixture::new();
    world.home.session("loom", LOOM);
    let elsewhere = tempfile::tempdir().unwrap();
    let (projects, target) = (world.home.root().join("projects"), elsewhere.path().join("projects"));
    std::fs::rename(&projects, &target).unwrap();
    std::os::unix::fs::symlink(&target, &projects).unwrap();
    assert_eq!(world.run(&["edit", "clone", "last", "--title", "Copy", "--apply"]).code, 0);
    assert_eq!(world.run(&["edit", "title", "last", "The loom", "--apply"]).code, 0);
    let log = world.run(&["op", "log"]).out;
    assert!(log.contains("title") && log.contains("clone"), "{log}");
    // The newest operation is undone.
    assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
    assert!(!world.run(&["list"]).out.contains("The loom"));
    assert_eq!(world.run(&["list", "--json"]).out.matches("\"title\"").count(), 2);
}

#[test]
#[cfg(unix)]
fn a_change_through_a_linked_folder_out_of_the_homes_is_refused() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let agents = path.with_extension("").join("subagents");
    std::fs::create_dir_all(&agents).unwrap();
    let token = "ghp_wWPw5k4aXcaT4fNP0UcnZJUVFkl6LO0pINUx";
    let line = format!(
        "{{\"type\":\"user\",\"uuid\":\"x1\",\"isSidechain\":true,\"message\":{{\"role\":\"user\",\"content\":\"{token}\"}}}}\n"
    );
    std::fs::write(agents.join("agent-a1.jsonl"), &line).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let target = elsewhere.path().join("subagents");
    std::fs::rename(&agents, &target).unwrap();
    std::os::unix::fs::symlink(&target, &agents).unwrap();
    let run = world.run(&["edit", "redact", "last", "--in-place", "--apply"]);
    assert_eq!(read(&target.join("agent-a1.jsonl")), line, "{run}");
}

#[test]
fn a_move_to_the_same_folder_leaves_no_private_files() {
    let world = EditFixture::new();
    let path = world.home.session("loom", LOOM);
    let folder = path.parent().unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let session = world.run(&["list", "--json"]).out;
    let cwd = serde_json::from_str::<Value>(session.lines().next().unwrap()).unwrap();
    let cwd = cwd["cwd"].as_str().map_or("/home/ada/loom".to_owned(), str::to_owned);
    let run = world.run(&["edit", "move", "last", "--cwd", &cwd, "--apply"]);
    assert!(run.code == 2 && run.err.contains("already"), "{run}");
    assert_eq!(names(), before);
}
