//! `archive`, and reading commands with `--from`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, command};

/// A home, and folders for the archive, the state and the cache.
struct ArchiveFixture {
    home: TestHome,
    dir: tempfile::TempDir,
}

const SLOW: &str = r#"
u1        user   "why is the loom slow?" branch=main
a1 <- u1  reply  m1 text "Let me look." usage={"input_tokens":10,"output_tokens":20}
c1 <- a1  reply  m2 tool t1 Bash {"command":"ls"}
r1 <- c1  result t1 "a.txt"
title "Slow loom"
"#;

impl ArchiveFixture {
    fn new() -> Self {
        let fixture = Self { home: TestHome::new(), dir: tempfile::tempdir().unwrap() };
        fixture.home.session("slow", SLOW);
        fixture.home.agent("slow", "a1b2c3", "u1 user \"look around\"", None);
        fixture.home.session("warp", "u1 user \"count the warp\"\na1 <- u1 reply m9 text \"Done.\"");
        fixture
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = command([&["--home", self.home.root().to_str().unwrap()], args].concat());
        for (name, folder) in [("XDG_STATE_HOME", "state"), ("XDG_CACHE_HOME", "cache")] {
            command.env(name, self.dir.path().join(folder));
        }
        command.env("USER", "ada");
        command
    }

    fn run(&self, args: &[&str]) -> RunOutput {
        RunOutput::of(&mut self.command(args))
    }

    fn url(&self) -> String {
        format!("file:{}", self.dir.path().join("state/threadline/archive").display())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.home.root().join(format!("projects/-home-ada-loom/{}.jsonl", session_uuid(name)))
    }
}

/// Deletes a session as Claude Code does.
fn delete(log: &Path) {
    fs::remove_file(log).unwrap();
    let _ = fs::remove_dir_all(log.with_extension(""));
}

#[test]
fn a_deleted_session_is_found_and_comes_back() {
    let fixture = ArchiveFixture::new();
    let log = fixture.log("slow");
    let before = fs::read(&log).unwrap();
    let push = fixture.run(&["archive", "push", "--json"]).json();
    assert_eq!((&push["new_files"], &push["rewritten_files"]), (&json!(3), &json!(0)));
    delete(&log);
    let status = fixture.run(&["archive", "status", "--json"]).json();
    let states: Vec<_> =
        status["sessions"].as_array().unwrap().iter().map(|session| session["state"].clone()).collect();
    // The other session was written a moment ago, so its times do not prove that it is unchanged.
    assert_eq!(states, ["archived", "archive_only"]);
    let found = fixture.run(&["search", "why is the loom", "--from", &fixture.url()]);
    assert!(found.out.contains("Slow loom"), "{found}");
    let restored = fixture.run(&["archive", "restore", &session_uuid("slow")[..8]]);
    assert_eq!(restored.code, 0, "{restored}");
    assert_eq!(fs::read(&log).unwrap(), before);
    assert!(log.with_extension("").join("subagents/agent-a1b2c3.jsonl").is_file());
}

#[test]
fn archived_sessions_answer_like_local_ones() {
    let fixture = ArchiveFixture::new();
    fixture.run(&["archive", "push"]);
    let url = fixture.url();
    for query in [
        &["list", "--json"][..],
        &["usage", "--by", "session", "--json"],
        &["search", "loom", "--json"],
        &["inspect", "Slow loom", "--json"],
        &["show", "Slow loom", "--json"],
        &["check", "--json"],
        &["replay", "Slow loom", "--json"],
        &["context", "Slow loom", "--json"],
        &["search", "loom", "-c", "--json"],
        &["usage", "--by", "model", "--json"],
        &["usage", "--by", "tool", "--json"],
        &["export", "json", "Slow loom"],
        &["export", "markdown", "Slow loom"],
        &["export", "html", "Slow loom", "-o", "-"],
    ] {
        let local = fixture.run(query);
        let archived = fixture.run(&[query, &["--from", &url]].concat());
        let cache = fixture.dir.path().join("cache/threadline/archive");
        let folder = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
        let home =
            fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir());
        let archived_out =
            archived.out.replace(home.unwrap().to_str().unwrap(), fixture.home.root().to_str().unwrap());
        assert_eq!(
            (archived.code, without_times(&archived_out)),
            (local.code, without_times(&local.out)),
            "{query:?}"
        );
    }
}

/// Removes values that depend on the time of the run.
fn without_times(out: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in out.lines() {
        let Ok(mut value) = serde_json::from_str::<serde_json::Value>(line) else {
            lines.push(line.to_owned());
            continue;
        };
        if let Some(object) = value.as_object_mut() {
            object.remove("modified_at");
        }
        lines.push(value.to_string());
    }
    lines.join("\n")
}

#[test]
fn the_same_session_of_two_machines_counts_once() {
    let fixture = ArchiveFixture::new();
    let once = fixture.run(&["usage", "--json"]).out;
    for state in ["one", "two"] {
        let state = fixture.dir.path().join(state);
        let push = RunOutput::of(
            fixture.command(&["archive", "push", "--to", &fixture.url()]).env("XDG_STATE_HOME", state),
        );
        assert_eq!(push.code, 0, "{push}");
    }
    assert_eq!(fixture.run(&["usage", "--json", "--from", &fixture.url()]).out, once);
    assert_eq!(fixture.run(&["list", "--json", "--from", &fixture.url()]).json_lines().len(), 2);
    let nobody = fixture.run(&["list", "--json", "--from", &fixture.url(), "--user", "bob"]);
    assert_eq!(nobody.json_lines().len(), 0, "{nobody}");
}

#[test]
fn damage_is_found_and_named() {
    let fixture = ArchiveFixture::new();
    fixture.run(&["archive", "push"]);
    assert_eq!(fixture.run(&["archive", "verify"]).code, 0);
    let archive = fixture.dir.path().join("state/threadline/archive/segments");
    let folder = fs::read_dir(archive).unwrap().next().unwrap().unwrap().path();
    let segment = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let verify = fixture.run(&["archive", "verify"]);
    assert_eq!(verify.code, 1);
    assert!(verify.out.contains("is damaged"), "{verify}");
    let list = fixture.run(&["list", "--from", &fixture.url()]);
    assert_eq!(list.code, 2);
    // The suggested command names the archive.
    let verify = format!("--from {} archive verify", fixture.url());
    assert!(list.err.contains(&verify), "{list}");
}

#[test]
fn a_killed_push_continues() {
    let fixture = ArchiveFixture::new();
    let text = format!("u1 user \"{}\"", "many words ".repeat(50_000));
    for i in 0..12 {
        fixture.home.session(&format!("large{i}"), &text);
    }
    for part in 0..10 {
        let mut child = fixture.command(&["archive", "push", "--quiet"]).spawn().unwrap();
        // Kills at different points of a run.
        std::thread::sleep(Duration::from_millis(part * 6));
        let _ = child.kill();
        child.wait().unwrap();
        let verify = fixture.run(&["archive", "verify"]);
        // Before the first object is written there is no archive. Until a push has written the manifest, the
        // files of an interrupted one are in none.
        let is_incomplete = verify.out.contains("in no manifest") && !verify.out.contains("damaged");
        let is_missing = verify.err.contains("there is no archive");
        assert!(verify.code == 0 || is_incomplete || is_missing, "{verify}");
    }
    assert_eq!(fixture.run(&["archive", "push"]).code, 0);
    assert_eq!(fixture.run(&["archive", "verify"]).code, 0);
    let again = fixture.run(&["archive", "push", "--json"]).json();
    assert_eq!(again["copied_bytes"], 0);
}

#[test]
fn commands_that_write_refuse_an_archive() {
    let fixture = ArchiveFixture::new();
    fixture.run(&["archive", "push"]);
    let edit = fixture.run(&["edit", "title", "Slow loom", "New", "--from", &fixture.url()]);
    assert_eq!(edit.code, 2);
    assert!(edit.err.contains("archive restore"), "{edit}");
    let wrong = fixture.run(&["list", "--from", "ftp://example.org/x"]);
    assert!(wrong.err.contains("`ftp:` is not supported"), "{wrong}");
}

#[test]
fn the_hook_is_added_and_removed_byte_for_byte() {
    let fixture = ArchiveFixture::new();
    let settings = fixture.home.file("settings.json", "{\n  \"model\": \"opus\"\n}\n");
    let install = fixture.run(&["archive", "install", "--apply"]);
    assert_eq!(install.code, 0, "{install}");
    let text = fs::read_to_string(&settings).unwrap();
    assert!(text.contains("hook") && text.contains("archive") && text.contains("SessionEnd"), "{text}");
    fixture.run(&["archive", "uninstall", "--apply"]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), "{\n  \"model\": \"opus\"\n}\n");
}

#[test]
fn tables_are_written_again_at_the_same_level_only() {
    let fixture = ArchiveFixture::new();
    let to = format!("file:{}", fixture.dir.path().join("tables").display());
    let first = fixture.run(&["archive", "tables", "--to", &to, "--level", "metadata", "--json"]).json();
    assert_eq!((&first["rows"]["usage"], &first["rows"]["tool_calls"]), (&json!(3), &json!(1)));
    let again = fixture.run(&["archive", "tables", "--to", &to, "--level", "metadata", "--json"]).json();
    assert_eq!(again, first);
    let other = fixture.run(&["archive", "tables", "--to", &to]);
    assert_eq!(other.code, 2);
    assert!(other.err.contains("the target contains other tables"), "{other}");
    let remote = fixture.run(&["archive", "tables", "--to", "s3://bucket/x"]);
    assert!(remote.err.contains("need a privacy level"), "{remote}");
}

#[test]
fn tables_of_an_archive_name_the_machine_and_the_user() {
    let fixture = ArchiveFixture::new();
    fixture.run(&["archive", "push"]);
    delete(&fixture.log("slow"));
    let to = format!("file:{}", fixture.dir.path().join("tables").display());
    let written = fixture.run(&["archive", "tables", "--to", &to, "--from", &fixture.url(), "--json"]).json();
    assert_eq!(written["rows"]["turns"], 2);
    fixture.run(&["archive", "remove", &session_uuid("slow"), "--apply"]);
    let written = fixture.run(&["archive", "tables", "--to", &to, "--from", &fixture.url(), "--json"]).json();
    assert_eq!(written["rows"]["turns"], 1);
}

#[test]
fn an_encrypted_archive_is_read_with_its_key_only() {
    let fixture = ArchiveFixture::new();
    let key = fixture.dir.path().join("key");
    let key = key.to_str().unwrap();
    let created = fixture.run(&["archive", "key", key, "--json"]).json();
    assert!(created["recipient"].as_str().unwrap().starts_with("age1"), "{created}");
    assert_eq!(fixture.run(&["archive", "key", key]).code, 2);
    assert_eq!(fixture.run(&["archive", "push", "--key", key]).code, 0);
    let url = fixture.url();
    for command in [&["list"][..], &["archive", "verify"], &["archive", "gc"], &["archive", "restore", "x"]] {
        let refused = fixture.run(&[command, &["--from", &url]].concat());
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("the archive is encrypted, and needs its key file"), "{refused}");
    }
    let other = fixture.dir.path().join("other");
    fixture.run(&["archive", "key", other.to_str().unwrap()]);
    let wrong = fixture.run(&["list", "--from", &url, "--key", other.to_str().unwrap()]);
    assert!(wrong.err.contains("encrypted for other keys"), "{wrong}");
    delete(&fixture.log("slow"));
    let found = fixture.run(&["search", "why is the loom", "--from", &url, "--key", key]);
    assert!(found.out.contains("Slow loom"), "{found}");
    let mut restore = fixture.command(&["archive", "restore", &session_uuid("slow")]);
    let restored = RunOutput::of(restore.env("THREADLINE_ARCHIVE_KEY", key));
    assert_eq!(restored.code, 0, "{restored}");
    assert!(fixture.log("slow").is_file());
    let to = format!("file:{}", fixture.dir.path().join("tables").display());
    let tables = fixture.run(&["archive", "tables", "--to", &to, "--from", &url, "--key", key]);
    assert_eq!(tables.code, 0, "{tables}");
}

/// Gives all segments of the archive an old time.
fn age_segments(fixture: &ArchiveFixture) {
    for folder in fs::read_dir(fixture.dir.path().join("state/threadline/archive/segments")).unwrap() {
        for segment in fs::read_dir(folder.unwrap().path()).unwrap() {
            let file = fs::File::options().write(true).open(segment.unwrap().path()).unwrap();
            file.set_modified(std::time::UNIX_EPOCH).unwrap();
        }
    }
}

#[test]
fn lost_manifests_are_rebuilt() {
    let fixture = ArchiveFixture::new();
    fixture.run(&["archive", "push"]);
    let before = fixture.run(&["list", "--json", "--from", &fixture.url()]).json_lines().len();
    fs::remove_dir_all(fixture.dir.path().join("state/threadline/archive/manifests")).unwrap();
    assert_eq!(fixture.run(&["list", "--json", "--from", &fixture.url()]).json_lines().len(), 0);
    let verified = fixture.run(&["archive", "verify"]);
    assert_eq!(verified.code, 1, "{verified}");
    assert!(verified.out.contains("3 files in no manifest"), "{verified}");
    assert!(verified.err.contains("archive rebuild"), "{verified}");
    age_segments(&fixture);
    let garbage = fixture.run(&["archive", "gc"]);
    assert_eq!(garbage.code, 1, "{garbage}");
    assert!(garbage.out.starts_with("0 segments deleted"), "{garbage}");
    let rebuilt = fixture.run(&["archive", "rebuild", "--json"]).json();
    assert_eq!((&rebuilt["homes"], &rebuilt["files"]), (&json!(1), &json!(3)));
    assert_eq!(fixture.run(&["archive", "verify"]).code, 0);
    assert_eq!(fixture.run(&["list", "--json", "--from", &fixture.url()]).json_lines().len(), before);
    assert!(fixture.run(&["archive", "rebuild"]).out.contains("nothing to rebuild"));
}

#[test]
#[cfg(target_os = "linux")]
fn the_timer_is_started_and_removed_exactly() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = ArchiveFixture::new();
    let dir = fixture.dir.path();
    let config = dir.join("config");
    let program = dir.join("bin/systemctl");
    fs::create_dir_all(dir.join("bin")).unwrap();
    fs::write(&program, format!("#!/bin/sh\necho \"$@\" >> '{}'\n", dir.join("log").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let run = |args: &[&str]| {
        let mut command = fixture.command(args);
        RunOutput::of(command.env("XDG_CONFIG_HOME", &config).env("PATH", dir.join("bin")))
    };
    let units = || fs::read_dir(config.join("systemd/user")).map_or(0, |entries| entries.count());
    let install = ["archive", "install", "--timer", "--to", "s3://bucket/a b", "--level", "metadata"];
    let shown = run(&install);
    assert!(shown.out.contains("OnUnitActiveSec=60min"), "{shown}");
    assert_eq!((units(), dir.join("log").exists()), (0, false), "nothing happens without --apply");
    fs::create_dir_all(config.join("systemd/user")).unwrap();
    fs::write(config.join("systemd/user/other.timer"), "[Timer]").unwrap();
    run(&[&install[..], &["--apply"]].concat());
    assert_eq!(units(), 3);
    let service = fs::read_to_string(config.join("systemd/user/threadline-archive.service")).unwrap();
    let words = r#""archive" "push" "--quiet" "--to" "s3://bucket/a b" "--level" "metadata""#;
    assert!(service.contains(words), "{service}");
    run(&["archive", "uninstall", "--timer", "--apply"]);
    assert_eq!(units(), 1);
    let started = fs::read_to_string(dir.join("log")).unwrap();
    let expected = "--user daemon-reload\n--user enable --now threadline-archive.timer\n\
                    --user disable --now threadline-archive.timer\n";
    assert_eq!(started, expected);
    // A unit of the same name that someone else wrote is not touched.
    fs::write(config.join("systemd/user/threadline-archive.timer"), "[Timer]").unwrap();
    for command in ["install", "uninstall"] {
        let refused = run(&["archive", command, "--timer", "--apply"]);
        assert!(refused.err.contains("was not written by threadline"), "{refused}");
    }
}

#[test]
fn a_hook_for_object_storage_names_its_level() {
    let fixture = ArchiveFixture::new();
    let refused = fixture.run(&["archive", "install", "--to", "s3://bucket/x"]);
    assert!(refused.err.contains("need a privacy level"), "{refused}");
    let shown = fixture.run(&["archive", "install", "--to", "s3://bucket/x", "--level", "redacted"]);
    assert!(shown.out.contains("--to s3://bucket/x --level redacted"), "{shown}");
}

#[test]
fn settings_are_shown_without_reading_the_archive() {
    let fixture = ArchiveFixture::new();
    let config = fixture.run(&["config", "--from", "file:/nonexistent/archive"]);
    assert_eq!(config.code, 0, "{config}");
}
