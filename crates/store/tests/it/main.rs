//! Tests of the store with real sessions and with other processes.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use threadline_store::{
    FileKind, FileSnapshot, Follower, NewOperation, Operation, Operations, PollOutcome, SessionFile, Step,
    StepAction, append, preview_all, read_session_preview,
};

/// Replaces the content of a log, as an edit does.
fn replace(operations: &Operations, path: &Path, edit: impl FnOnce(&str) -> String) {
    let snapshot = FileSnapshot::take(path).unwrap();
    let mut text = String::new();
    snapshot.reader().unwrap().read_to_string(&mut text).unwrap();
    let content = std::io::Cursor::new(edit(&text));
    let read = snapshot.digest().unwrap().unwrap();
    let action = StepAction::Replace { read, content: Box::new(content) };
    let operation = NewOperation {
        id: "1".to_owned(),
        operation: Operation::Strip,
        command: Vec::new(),
        made_at: String::new(),
        source: String::new(),
        target: String::new(),
        home: None,
        summary: String::new(),
    };
    let step = Step { path: snapshot.path().to_owned(), kind: FileKind::Log, action, modified: None };
    let done = operations.apply(operation, vec![step]).unwrap();
    operations.forget(&done).unwrap();
}

/// Returns the directory of real sessions, if available.
fn corpus() -> Option<PathBuf> {
    threadline_testkit::shared().map(|shared| shared.join("corpus"))
}

/// Collects every log below `folder`.
fn logs(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs_err::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            logs(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            into.push(path);
        }
    }
}

/// Polls until nothing new arrives and the writer is no longer `running`.
fn follow_to_the_end(follower: &mut Follower, lines: &mut Vec<String>, mut running: impl FnMut() -> bool) {
    loop {
        let alive = running();
        let mut fresh = Vec::new();
        let change = follower.poll(|entry, _| fresh.push(entry.text().to_owned())).unwrap();
        if change == PollOutcome::Replaced {
            lines.clear();
        }
        lines.append(&mut fresh);
        if !alive && change == PollOutcome::Unchanged {
            return;
        }
        std::thread::yield_now();
    }
}

#[test]
fn real_sessions_are_followed_to_the_last_byte() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    logs(&corpus, &mut paths);
    for path in paths {
        let mut bytes = Vec::new();
        let mut follower = Follower::open(&path);
        let mut keep = |entry: threadline_entry::Entry, _| {
            bytes.extend(entry.as_bytes());
            if entry.ending() == threadline_entry::Ending::Newline {
                bytes.push(b'\n');
            }
        };
        follower.poll(&mut keep).unwrap();
        follower.finish(keep);
        assert!(bytes == fs_err::read(&path).unwrap(), "{}", path.display());
    }
}

#[test]
fn real_sessions_have_a_heading() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    logs(&corpus, &mut paths);
    let files: Vec<_> = paths.into_iter().map(SessionFile::at).collect();
    let mut n_listed = 0;
    for (file, one_of_all) in files.iter().zip(preview_all(&files)) {
        let one_of_all = one_of_all.unwrap();
        assert_eq!(one_of_all, read_session_preview(file).unwrap(), "{}", file.path.display());
        assert_eq!(one_of_all.is_sidechain, file.is_sidechain().unwrap());
        if file.id.starts_with("agent-a") {
            assert!(one_of_all.is_sidechain, "{}", file.path.display());
        }
        n_listed += usize::from(one_of_all.is_listed());
    }
    assert!(n_listed * 10 > files.len() * 7, "{n_listed} of {}", files.len());
}

#[test]
fn real_agents_are_found_from_their_sessions() {
    let Some(corpus) = corpus() else { return };
    let mut paths = Vec::new();
    logs(&corpus, &mut paths);
    for path in paths.iter().filter(|path| path.to_str().unwrap().contains("/subagents/agent-")) {
        let folder = path.parent().and_then(Path::parent).unwrap();
        let agents = SessionFile::at(folder.with_extension("jsonl")).agents();
        assert!(agents.found.iter().any(|agent| agent.path == *path), "{}", path.display());
    }
}

/// Starts a shell that appends `count` lines to `path`, each in two parts.
#[cfg(unix)]
fn shell_writer(path: &Path, count: usize) -> std::process::Child {
    let script = format!(
        r#"i=0; while [ $i -lt {count} ]; do printf '{{"type":"user","n":%d,' $i; printf '"x":"yes"}}\n'; i=$((i+1)); done >> "$0""#
    );
    Command::new("sh").arg("-c").arg(script).arg(path).stdin(Stdio::null()).spawn().unwrap()
}

#[test]
#[cfg(unix)]
fn another_process_that_writes_half_lines_is_followed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let mut writer = shell_writer(&path, 5_000);
    let mut follower = Follower::open(&path);
    let mut lines = Vec::new();
    follow_to_the_end(&mut follower, &mut lines, || writer.try_wait().unwrap().is_none());
    let expected: Vec<_> = (0..5_000).map(|n| format!(r#"{{"type":"user","n":{n},"x":"yes"}}"#)).collect();
    assert!(lines == expected, "{} lines", lines.len());
}

#[test]
fn a_file_is_followed_while_it_is_written_and_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs_err::write(&path, "start\n").unwrap();
    let mut lines = Vec::new();
    let mut follower = Follower::open(&path);
    let operations = Operations::at(dir.path().join("state/operations"));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for round in 0..5 {
                for i in 0..400 {
                    append(&path, [format!("{round} {i}")], None).unwrap();
                }
                replace(&operations, &path, |text| {
                    let shorter: Vec<_> = text.lines().filter(|line| !line.ends_with('7')).collect();
                    shorter.join("\n") + "\n"
                });
            }
        });
        follow_to_the_end(&mut follower, &mut lines, || !writer.is_finished());
    });
    let text = fs_err::read_to_string(&path).unwrap();
    assert_eq!(lines, text.lines().collect::<Vec<_>>());
    assert_eq!(lines.len(), 1 + 5 * 360);
}

#[test]
fn lines_from_many_writers_stay_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs_err::write(&path, "torn").unwrap();
    std::thread::scope(|scope| {
        for writer in 0..8 {
            let path = &path;
            scope.spawn(move || {
                for i in 0..100 {
                    let long = "x".repeat(i * 37);
                    append(path, [format!("{writer} {i} {long}"), format!("{writer} {i} end")], None)
                        .unwrap();
                }
            });
        }
    });
    let text = fs_err::read_to_string(&path).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[0], "torn");
    assert_eq!(lines.len(), 1 + 8 * 100 * 2);
    for pair in lines[1..].chunks(2) {
        let mut parts = pair[0].split(' ');
        let (writer, i) = (parts.next().unwrap(), parts.next().unwrap());
        assert_eq!(parts.next().unwrap().len(), i.parse::<usize>().unwrap() * 37);
        assert_eq!(pair[1], format!("{writer} {i} end"), "the lines of one call are contiguous");
    }
}

#[test]
#[cfg(unix)]
fn lines_appended_during_a_replacement_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs_err::write(&path, "start\n").unwrap();
    // Opens the file for every line, as Claude Code does.
    let script = r#"i=0; while [ $i -lt 3000 ]; do echo "line $i" >> "$0"; i=$((i+1)); done"#;
    let mut writer =
        Command::new("sh").arg("-c").arg(script).arg(&path).stdin(Stdio::null()).spawn().unwrap();
    for _ in 0..5_000 {
        if fs_err::metadata(&path).unwrap().len() >= 1000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let operations = Operations::at(dir.path().join("state/operations"));
    let mut n_replaced = 0;
    while n_replaced == 0 || writer.try_wait().unwrap().is_none() {
        // Every edit changes only the first line.
        replace(&operations, &path, |text| text.replacen("start", "start ", 1));
        n_replaced += 1;
    }
    let text = fs_err::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.remove(0).trim_end(), "start");
    // A line that was carried over late may be after one that was written to the new file directly.
    lines.sort_by_key(|line| line.trim_start_matches("line ").parse::<usize>().unwrap());
    let expected: Vec<_> = (0..3000).map(|i| format!("line {i}")).collect();
    assert_eq!(lines, expected, "after {n_replaced} swaps");
}
