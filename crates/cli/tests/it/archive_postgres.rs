//! `archive` and `--from` with a PostgreSQL database.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use threadline_testkit::{PostgresServer, TestHome, session_uuid};

use crate::run::{RunOutput, command};

/// A home, an empty database, and folders for the state and the cache.
struct Fixture {
    home: TestHome,
    dir: tempfile::TempDir,
    server: &'static PostgresServer,
    url: String,
}

const SLOW: &str = r#"
u1        user   "why is the loom slow?" branch=main
a1 <- u1  reply  m1 text "Let me look." usage={"input_tokens":10,"output_tokens":20}
c1 <- a1  reply  m2 tool t1 Bash {"command":"ls"}
r1 <- c1  result t1 "a.txt"
title "Slow loom"
"#;

impl Fixture {
    /// Returns `None` if there is no server.
    fn new() -> Option<Self> {
        let server = PostgresServer::shared()?;
        let url = server.url(&server.database());
        let fixture = Self { home: TestHome::new(), dir: tempfile::tempdir().unwrap(), server, url };
        fixture.home.session("slow", SLOW);
        fixture.home.agent("slow", "a1b2c3", "u1 user \"look around\"", None);
        fixture.home.session("warp", "u1 user \"count the warp\"\na1 <- u1 reply m9 text \"Done.\"");
        Some(fixture)
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        let mut command = command([&["--home", self.home.root().to_str().unwrap()], args].concat());
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
            command.env(name, self.dir.path().join(folder));
        }
        command.env("USER", "ada");
        RunOutput::of(&mut command)
    }

    fn push(&self) -> RunOutput {
        self.run(&["archive", "push", "--to", &self.url, "--level", "full", "--json"])
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.root().join(format!("projects/-home-ada-loom/{}.jsonl", session_uuid(name)))
    }

    /// Replaces the folder that was fetched to by the home.
    fn as_local(&self, out: &str) -> String {
        let mut out = out.to_owned();
        for archive in entries(&self.dir.path().join("cache/threadline/archive")) {
            for home in entries(&archive) {
                out = out.replace(home.to_str().unwrap(), self.home.root().to_str().unwrap());
            }
        }
        out
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Sorts lines, and removes values that depend on the time of the run.
fn normal(out: &str) -> Vec<String> {
    let line = |line: &str| {
        let Ok(mut value) = serde_json::from_str::<serde_json::Value>(line) else { return line.to_owned() };
        if let Some(object) = value.as_object_mut() {
            object.remove("modified_at");
        }
        value.to_string()
    };
    out.lines().map(line).collect()
}

#[test]
fn a_deleted_session_is_found_and_comes_back() {
    let Some(fixture) = Fixture::new() else { return };
    let log = fixture.log("slow");
    let before = fs::read(&log).unwrap();
    let push = fixture.push().json();
    assert_eq!((&push["new_files"], &push["rewritten_files"]), (&json!(3), &json!(0)));
    fs::remove_file(&log).unwrap();
    fs::remove_dir_all(log.with_extension("")).unwrap();
    let found = fixture.run(&["search", "why is the loom", "--from", &fixture.url]);
    assert!(found.out.contains("Slow loom"), "{found}");
    let status = fixture.run(&["archive", "status", "--json", "--from", &fixture.url]).json();
    assert!(status["sessions"].to_string().contains("archive_only"), "{status}");
    let restored = fixture.run(&["archive", "restore", &session_uuid("slow")[..8], "--from", &fixture.url]);
    assert_eq!(restored.code, 0, "{restored}");
    assert_eq!(fs::read(&log).unwrap(), before);
    let verified = fixture.run(&["archive", "verify", "--from", &fixture.url]);
    assert!(verified.code == 0 && verified.out.contains("no damage"), "{verified}");
    assert_eq!(fixture.run(&["archive", "gc", "--from", &fixture.url]).code, 0);
    let removed =
        fixture.run(&["archive", "remove", &session_uuid("slow"), "--apply", "--from", &fixture.url]);
    assert_eq!(removed.code, 0, "{removed}");
    assert_eq!(fixture.push().json()["new_files"], json!(0));
}

#[test]
fn a_database_answers_like_files_and_like_a_folder() {
    let Some(fixture) = Fixture::new() else { return };
    let is_small = |log: &&PathBuf| log.metadata().is_ok_and(|metadata| metadata.len() < 400_000);
    for (i, log) in threadline_testkit::shared_logs().iter().filter(is_small).enumerate() {
        let folder = fixture.home.root().join(format!("projects/-real-{}", i % 3));
        fs::create_dir_all(&folder).unwrap();
        fs::copy(log, folder.join(format!("{i:08}-0000-4000-8000-000000000000.jsonl"))).unwrap();
    }
    let folder = format!("file:{}", fixture.dir.path().join("folder").display());
    fixture.push();
    fixture.run(&["archive", "push", "--to", &folder]);
    for query in [
        "list --json",
        "usage",
        "usage --json",
        "usage --by week --csv",
        "usage --by month --json --tz Asia/Kathmandu",
        "usage --by session --json",
        "usage --by session",
        "usage --by project --json",
        "usage --by model",
        "usage --by branch --json",
        "usage --by tool --json",
        "usage --by model --json --since 2026-01-01 --until 2026-06",
        "usage --json --only 2026-01-01",
        "usage --explain --json --by model",
        "search loom --json",
        "search LOOM -c",
        "search \"let me\"",
        "search error -l",
        "search zzyzx",
        "search /[a-z]+ing/ -c",
        "search tool:Bash -l",
        "search the project:loom -l",
        "search ls --json",
        "search src --sort newest -l",
    ] {
        let words: Vec<&str> = query.split(' ').collect();
        let local = fixture.run(&words);
        for from in [&folder, &fixture.url] {
            let archived = fixture.run(&[&words[..], &["--from", from]].concat());
            assert_eq!(
                (archived.code, normal(&fixture.as_local(&archived.out))),
                (local.code, normal(&local.out)),
                "{query} from {from}: {}",
                archived.err
            );
        }
    }
    for name in ["Slow loom", &session_uuid("warp")] {
        for command in ["inspect", "show", "replay"] {
            let local = fixture.run(&[command, name, "--json"]);
            let archived = fixture.run(&[command, name, "--json", "--from", &fixture.url]);
            assert_eq!(normal(&fixture.as_local(&archived.out)), normal(&local.out), "{command} {name}");
        }
    }
}

#[test]
fn a_database_needs_a_level_and_its_password_is_not_stored_or_shown() {
    let Some(fixture) = Fixture::new() else { return };
    let refused = fixture.run(&["archive", "push", "--to", &fixture.url]);
    assert!(refused.code == 2 && refused.err.contains("need a privacy level"), "{refused}");
    let with_password = fixture.url.replace("threadline@", "threadline:s3cret@");
    let installed = fixture.run(&["archive", "install", "--to", &with_password, "--apply"]);
    assert!(installed.code == 2 && installed.err.contains("password"), "{installed}");
    let pushed = fixture.run(&["archive", "push", "--to", &with_password, "--level", "full"]);
    assert!(pushed.code == 0 && !format!("{pushed}").contains("s3cret"), "{pushed}");
    fixture.run(&["list", "--from", &with_password]);
    for folder in ["state", "cache"] {
        let stored = files_with(&fixture.dir.path().join(folder), "s3cret");
        assert!(stored.is_empty(), "{stored:?}");
    }
    let gone = fixture.run(&["list", "--from", &with_password.replace("127.0.0.1", "256.0.0.1")]);
    assert!(gone.code == 2 && !format!("{gone}").contains("s3cret"), "{gone}");
    assert!(fixture.server.is_listening());
}

fn files_with(folder: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if path.to_str().unwrap().contains(text)
            || String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).contains(text)
        {
            found.push(path);
        }
    }
    found
}
