//! File names and links that lead elsewhere: nothing outside the session is read, shown or removed, and no
//! command hangs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use threadline_testkit::{TestHome, session_uuid};

use crate::run::{at_home, command};

const SESSION: &str = "u1 user \"why is the loom slow?\"\na1 <- u1 reply m1 text \"because\"";

/// Returns the path and content of every file below a folder.
fn snapshot(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(snapshot(&path));
        } else {
            found.push((path.to_string_lossy().into_owned(), fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn deleting_a_log_named_with_dots_removes_only_that_log() {
    let home = TestHome::new();
    let log = fs::read(home.session("s", SESSION)).unwrap();
    home.file("settings.json", "{}");
    home.file(".credentials.json", "{}");
    home.file("projects/-other/subagents/agent-1.jsonl", &log);
    home.file("projects/-home-ada-loom/subagents/agent-2.jsonl", "{}\n");
    home.file("file-history/x/y@v1", "y");
    let before = snapshot(home.root());
    for name in [".", ".."] {
        let log = home.file(format!("projects/-home-ada-loom/{name}.jsonl"), &log);
        let listed = at_home(&home, &["list", "--json"]).json_lines();
        let id =
            listed.iter().filter_map(|session| session["id"].as_str()).find(|id| id.ends_with("-unnamed"));
        for id in [log.to_str().unwrap(), id.unwrap()] {
            let planned = at_home(&home, &["edit", "delete", id]);
            assert_eq!(planned.code, 0, "{planned}");
            assert!(planned.out.contains("1 file,"), "{planned}");
        }
        let done = at_home(&home, &["edit", "delete", log.to_str().unwrap(), "--apply", "--force"]);
        assert_eq!(done.code, 0, "{done}");
        assert_eq!(snapshot(home.root()), before, "{name}");
    }
}

#[test]
fn a_session_id_in_a_log_is_not_used_as_a_path() {
    let home = TestHome::new();
    let outside = home.root().join("outside.jsonl");
    fs::write(&outside, "{\"type\":\"custom-title\",\"customTitle\":\"SECRET TITLE\"}\n").unwrap();
    for (i, id) in ["../../outside", "/etc/passwd", "..", outside.with_extension("").to_str().unwrap()]
        .iter()
        .enumerate()
    {
        let line = serde_json::json!({
            "type": "user", "isSidechain": true, "sessionId": id, "uuid": format!("u{i}"),
            "message": {"role": "user", "content": "the loom is slow"},
        });
        home.file(format!("projects/-p/agent-{i}.jsonl"), format!("{line}\n"));
    }
    for args in [
        &["search", "loom"][..],
        &["search", "--json", "loom"],
        &["usage", "--by", "session"],
        &["list", "-a"],
    ] {
        let run = at_home(&home, args);
        assert!(!run.out.contains("SECRET") && !run.out.contains("outside"), "{run}");
    }
    let found = at_home(&home, &["search", "loom"]);
    assert!(found.err.starts_with("4 matches"), "{found}");
}

/// Runs a command and returns its stdout. Panics if it takes longer than a minute.
fn run_to_end(home: &TestHome, args: &[&str]) -> String {
    let state = home.root().join("state");
    let mut command = command([&["--home", home.root().to_str().unwrap()], args].concat());
    let mut child =
        command.env("XDG_STATE_HOME", state).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let out = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(out).unwrap());
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(matches!(status.code(), Some(0..=2)), "{args:?}: {status}");
            return reader.join().unwrap();
        }
        if start.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{args:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn pipes_devices_and_external_links_are_neither_read_nor_shown() {
    let home = TestHome::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("x.jsonl"), "{\"type\":\"custom-title\",\"customTitle\":\"SECRET\"}\n")
        .unwrap();
    fs::write(outside.path().join("secret.txt"), "SECRET").unwrap();
    let good = home.session("s", SESSION);
    let id = session_uuid("s");
    let folder = "projects/-home-ada-loom";
    let pipes = [
        format!("{folder}/pipe.jsonl"),
        format!("{folder}/agent-pipe.jsonl"),
        format!("{folder}/sessions-index.json"),
        format!("{folder}/subagents/agent-p.jsonl"),
        format!("{folder}/{id}/subagents/agent-p.jsonl"),
        format!("{folder}/{id}/subagents/agent-q.meta.json"),
        format!("{folder}/{id}/tool-results/p.txt"),
        format!("file-history/{id}/p@v1"),
        "history.jsonl".to_owned(),
        "settings.json".to_owned(),
        "sessions/1.json".to_owned(),
        "paste-cache/p".to_owned(),
    ];
    for pipe in pipes {
        let path = home.root().join(pipe);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }
    home.file(format!("{folder}/{id}/subagents/agent-q.jsonl"), "{}\n");
    let link = |target: &Path, name: String| symlink(target, home.root().join(name)).unwrap();
    link(Path::new("/dev/zero"), format!("{folder}/zero.jsonl"));
    link(Path::new("/dev/zero"), format!("{folder}/agent-zero.jsonl"));
    link(Path::new("/dev/zero"), format!("{folder}/{id}/subagents/agent-zero.jsonl"));
    link(&outside.path().join("x.jsonl"), format!("{folder}/out.jsonl"));
    link(outside.path(), "projects/-out".to_owned());
    link(&outside.path().join("secret.txt"), format!("{folder}/{id}/tool-results/out.txt"));
    let good = good.to_str().unwrap();
    for args in [
        &["list", "--all"][..],
        &["search", "loom"],
        &["search", "SECRET"],
        &["usage"],
        &["check"],
        &["inspect", home.root().join("projects").to_str().unwrap()],
        &["show", good, "--level", "full"],
        &["show", &format!("{}/pipe.jsonl", home.root().join(folder).display())],
        &["show", &format!("{}/out.jsonl", home.root().join(folder).display())],
        &["export", "json", good],
        &["restore", good],
        &["edit", "redact", "--check"],
        &["edit", "redact", good, "--in-place"],
        &["edit", "clone", good],
        &["edit", "repair", good],
        &["edit", "delete", good],
        &["edit", "move", good, "--cwd", "/tmp"],
        &["trace", "push", "--dry-run", good],
    ] {
        let out = run_to_end(&home, args);
        assert!(!out.contains("SECRET"), "{args:?}: {out}");
    }
    assert!(run_to_end(&home, &["list", "--all"]).contains("why is the loom slow?"));
}
