//! Benchmarks the hook that records files around shell calls, beside `git status`.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::bench::BenchReport;

/// The number of calls; the figures are medians.
const CALLS: usize = 25;

/// Measures what the hook adds to a call that changes one file, in repositories of 2,000 and 50,000 files.
pub(crate) fn measure_files(target: &Path, binary: &Path, report: &mut BenchReport) {
    for (files, limit) in [(2_000, 10.0), (50_000, 60.0)] {
        let name = format!("hook of files around a call, {files} files");
        match measure_repository(target, binary, files) {
            Err(error) => report.fail(&name, &error.to_string()),
            Ok([hook, status]) => {
                report.at_most(&name, hook.as_secs_f64() * 1e3, limit, "ms");
                let ratio = hook.as_secs_f64() / status.as_secs_f64();
                report.at_most("  as a multiple of `git status`", ratio, 3.0, "x");
            }
        }
    }
}

/// Returns the medians of the time that the hook adds to a call, and of `git status`.
fn measure_repository(target: &Path, binary: &Path, files: usize) -> io::Result<[Duration; 2]> {
    let root = repository(&target.join(format!("bench-files-{files}")), files)?;
    let state = tempfile::tempdir()?;
    let hook = |event: &str, call: usize| -> io::Result<Duration> {
        let input = format!(
            r#"{{"session_id":"s","transcript_path":"/none","cwd":"{}","hook_event_name":"{event}","tool_name":"Bash","tool_use_id":"t{call}","tool_input":{{"command":"make"}}}}"#,
            root.display()
        );
        let started = Instant::now();
        let mut command = Command::new(binary);
        command.arg("hook").arg(format!("--state-dir={}", state.path().display())).arg("files");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input.as_bytes())?;
        }
        child.wait()?;
        Ok(started.elapsed())
    };
    let (mut hooks, mut statuses) = (Vec::new(), Vec::new());
    for call in 0..=CALLS {
        let before = hook("PreToolUse", call)?;
        fs::write(root.join("src0/file0.rs"), format!("call {call}\n"))?;
        let time = before + hook("PostToolUse", call)?;
        wait_for_later_work(state.path());
        let started = Instant::now();
        git(&root, &["--no-optional-locks", "status", "--porcelain"])?;
        let status = started.elapsed();
        // The first call also lists and reads the files.
        if call > 0 {
            hooks.push(time);
            statuses.push(status);
        }
    }
    hooks.sort();
    statuses.sort();
    Ok([hooks[CALLS / 2], statuses[CALLS / 2]])
}

/// Waits for comparisons that the hook has left to another process.
fn wait_for_later_work(state: &Path) {
    let until = Instant::now() + Duration::from_secs(10);
    let calls = state.join("files/sessions/s.calls");
    while Instant::now() < until && fs::read_dir(&calls).is_ok_and(|mut calls| calls.next().is_some()) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // The end of that process.
    std::thread::sleep(Duration::from_millis(if Instant::now() < until { 60 } else { 0 }));
}

/// Returns a repository with this number of files, and creates it if it does not exist.
fn repository(root: &Path, files: usize) -> io::Result<PathBuf> {
    if !root.join(".git/complete").exists() {
        if root.exists() {
            fs::remove_dir_all(root)?;
        }
        for at in 0..files {
            let folder = root.join(format!("src{}", at / 10));
            if at % 10 == 0 {
                fs::create_dir_all(&folder)?;
            }
            fs::write(folder.join(format!("file{at}.rs")), format!("fn f{at}() {{}}\n").repeat(40))?;
        }
        fs::write(root.join(".gitignore"), "target/\n*.log\n")?;
        git(root, &["init", "-q"])?;
        git(root, &["add", "-A"])?;
        git(root, &["-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-q", "-m", "files"])?;
        fs::write(root.join(".git/complete"), "")?;
    }
    fs::canonicalize(root)
}

fn git(root: &Path, arguments: &[&str]) -> io::Result<()> {
    let done = Command::new("git").arg("-C").arg(root).args(arguments).stdout(Stdio::null()).status()?;
    if done.success() { Ok(()) } else { Err(io::Error::other("git failed")) }
}
