//! Kills the real binary at arbitrary points, and runs it next to a program that writes to the same log. No
//! line may be lost.
//!
//! Runs 8 trials by default; `THREADLINE_STRESS=1000` sets another number.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::edit::{EditFixture, all_files, full_session};

fn trial_count() -> usize {
    #[expect(clippy::disallowed_methods, reason = "how long a test runs is not the program's business")]
    let wanted = std::env::var("THREADLINE_STRESS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(8)
}

/// Returns scattered numbers that are the same in every run.
fn pseudo_random(i: usize) -> usize {
    let mixed = (i as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 33) as usize
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriterMode {
    ReopensFile,
    KeepsFileOpen,
}

/// Writes a line every few milliseconds until `ended` is set, and then three more. Returns the lines.
fn write_lines(log: &Path, mut open_file: Option<File>, ended: &AtomicBool) -> Vec<String> {
    let open = || OpenOptions::new().append(true).create(true).open(log);
    let mut lines = Vec::new();
    let mut after = 0;
    // An edit cannot finish while a program keeps the log open and writes without pause, so this one stops.
    while after < 3 && (open_file.is_none() || lines.len() < 30) {
        after += usize::from(ended.load(Ordering::Relaxed));
        let line = format!("{{\"type\":\"mode\",\"n\":{}}}\n", lines.len());
        let written = match &mut open_file {
            Some(open_file) => open_file.write_all(line.as_bytes()),
            None => open().and_then(|mut file| file.write_all(line.as_bytes())),
        };
        // The folder may be gone if the log was moved.
        if written.is_ok() {
            lines.push(line);
        }
        std::thread::sleep(Duration::from_millis(4));
    }
    lines
}

fn collect_texts(dir: &Path, into: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        if entry.path().is_dir() {
            collect_texts(&entry.path(), into);
        } else {
            into.push((entry.path(), String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned()));
        }
    }
}

#[test]
#[cfg(unix)]
fn no_line_is_lost_during_concurrent_writes() {
    let n_trials = trial_count();
    let (mut n_lines, mut n_kept) = (0, 0);
    for i in 0..n_trials {
        let world = EditFixture::new();
        let id = full_session(&world);
        let log = world.home.root().join(format!("projects/-home-ada-loom/{id}.jsonl"));
        let moved = world.home.root().join(format!("projects/-srv-loom/{id}.jsonl"));
        let writing = if i % 2 == 0 { WriterMode::ReopensFile } else { WriterMode::KeepsFileOpen };
        let strip = &["edit", "strip", &id, "--tools", "--in-place", "--apply", "--force"][..];
        let relocate = &["edit", "move", &id, "--cwd", "/srv/loom", "--apply", "--force"][..];
        let delete = &["edit", "delete", &id, "--apply", "--force"][..];
        let (before, command, written): (&[&[&str]], &[&str], &Path) = match i / 2 % 7 {
            0 => (&[], strip, &log),
            1 => (&[strip], &["op", "undo", "--apply"], &log),
            2 => (&[strip, &["op", "undo", "--apply"]], &["op", "redo", "--apply"], &log),
            3 => (&[], relocate, &log),
            4 => (&[relocate], &["op", "undo", "--apply"], &moved),
            5 => (&[], delete, &log),
            _ => (&[], &["edit", "title", &id, "T", "--apply", "--force"], &log),
        };
        for command in before {
            assert_eq!(world.run(command).code, 0, "{command:?}");
        }
        let ended = AtomicBool::new(false);
        let lines = std::thread::scope(|scope| {
            // A program that keeps the log open opened it before the move.
            let open = || OpenOptions::new().append(true).open(written).unwrap();
            let open_file = (writing == WriterMode::KeepsFileOpen).then(open);
            let writer = scope.spawn(|| write_lines(written, open_file, &ended));
            // Starts the command at a different point in each trial.
            std::thread::sleep(Duration::from_millis((pseudo_random(i) % 12) as u64));
            let run = world.run(command);
            ended.store(true, Ordering::Relaxed);
            assert!(run.code == 0 || run.err.contains("has changed since it was read"), "{command:?}: {run}");
            writer.join().unwrap()
        });
        n_lines += lines.len();
        let mut found = Vec::new();
        collect_texts(world.home.root(), &mut found);
        let live = found.len();
        collect_texts(world.state.path(), &mut found);
        for line in &lines {
            let n = found[..live].iter().map(|(_, text)| text.matches(&**line).count()).sum::<usize>();
            // A deleted log is in the receipt, and so are lines from a program that keeps the log open and
            // paused for long.
            let may_be_kept = command == delete || writing == WriterMode::KeepsFileOpen;
            let is_kept = may_be_kept && found[live..].iter().any(|(_, text)| text.contains(&**line));
            n_kept += usize::from(n == 0 && command != delete);
            assert!(n == 1 || n == 0 && is_kept, "trial {i}, {writing:?}, {command:?}: {n} times {line}");
        }
        let left = found[..live].iter().find(|(path, _)| path.to_string_lossy().contains(".threadline-"));
        assert!(left.is_none(), "trial {i}, {command:?}: {left:?} is left");
    }
    println!(
        "{n_trials} trials beside a program that wrote {n_lines} lines, {n_kept} of them only in receipts"
    );
}

#[test]
#[cfg(unix)]
fn a_killed_operation_can_be_undone_or_redone() {
    let n_trials = trial_count();
    let (mut changed, mut unchanged) = (0, 0);
    let mut durations = [Duration::from_millis(60); 14];
    for i in 0..n_trials {
        let world = EditFixture::new();
        let id = full_session(&world);
        let edits: [&[&str]; 7] = [
            &["edit", "strip", &id, "--tools", "--in-place", "--apply"],
            &["edit", "clone", &id, "--apply"],
            &["edit", "move", &id, "--cwd", "/srv/loom", "--apply"],
            &["edit", "delete", &id, "--apply"],
            &["edit", "title", &id, "T", "--apply"],
            &["op", "undo", "--apply"],
            &["op", "redo", "--apply"],
        ];
        let kind = i % 14;
        let edit = edits[kind % 5];
        let before = all_files(&world);
        // About a third of the kills interrupt an edit, the others an undo or redo of it.
        let (prepare, command, back): (&[&[&str]], &[&str], &[&str]) = match kind {
            0..5 => (&[], edit, &["op", "undo", "--apply"]),
            5..10 => (&[edit], &["op", "undo", "--apply"], &["op", "redo", "--apply"]),
            _ => {
                (&[edit, &["op", "undo", "--apply"]], &["op", "redo", "--apply"], &["op", "undo", "--apply"])
            }
        };
        for command in prepare {
            assert_eq!(world.run(command).code, 0, "{command:?}");
        }
        let expected = if prepare.is_empty() { before.clone() } else { all_files(&world) };
        let part = (pseudo_random(i) % 1000) as f64 / 1000.0;
        let begin = Instant::now();
        let mut child = world.command(command).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(durations[kind].mul_f64(part));
        let is_ended = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        if is_ended {
            durations[kind] = begin.elapsed().mul_f64(1.1);
        } else {
            durations[kind] = durations[kind].mul_f64(1.02);
        }
        if all_files(&world) == expected {
            unchanged += 1
        } else {
            changed += 1
        }
        let log = world.run(&["op", "log", "--json"]).json_lines();
        let state = log.first().map(|receipt| receipt["state"].as_str().unwrap().to_owned());
        let is_back = match (back[1], state.as_deref()) {
            (_, None) => true,
            ("undo", Some("undone" | "begun")) | ("redo", Some("done")) => true,
            _ => {
                let receipt = log[0]["id"].as_str().unwrap().to_owned();
                let run = world.run(&["op", back[1], &receipt, "--apply"]);
                assert_eq!(run.code, 0, "trial {i}: {command:?} was {state:?}: {run}");
                true
            }
        };
        assert!(is_back);
        if state.as_deref() == Some("begun") {
            // Blocks nothing; the next operation cleans it up.
            assert_eq!(world.run(&["edit", "tag", &id, "t", "--apply"]).code, 0);
            assert_eq!(world.run(&["op", "undo", "--apply"]).code, 0);
        }
        let now = all_files(&world);
        assert!(now == expected, "trial {i}: {command:?} was {state:?}, then {back:?}");
    }
    println!("{n_trials} kills: {changed} times files had changed, {unchanged} times not yet");
}
