//! Benchmarks commands of the binary as separate processes.

use std::cell::Cell;
use std::fs;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use crate::bench::{BenchReport, LogFiles, measure, shared};
use crate::corpus::{Random, log};
use crate::peer::CLAUDE_CODE_LOG;
use crate::query_bench;

/// Returns the path of `threadline`, which is built into the same folder as this program.
pub(crate) fn binary() -> Option<PathBuf> {
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("threadline"));
    let found = beside.filter(|path| path.exists());
    if found.is_none() {
        println!(
            "commands: skipped, threadline not found next to xtask (cargo build --release -p threadline)"
        );
    }
    found
}

/// Measures HTML exports.
pub(crate) fn measure_exports(home: &Path, report: &mut BenchReport) {
    let Some(binary) = binary() else { return };
    measure_export(home, &binary, report);
    measure_real_exports(home, &binary, report);
}

/// Measures the commands against simple implementations and other programs.
pub(crate) fn measure_commands(home: &Path, report: &mut BenchReport) {
    let Some(binary) = binary() else { return };
    query_bench::measure_queries(home, &binary, report);
    measure_show(home, &binary, report);
    measure_statusline(home, &binary, report);
    measure_huge_line(home, &binary, report);
    measure_exports(home, report);
    crate::trace::measure_trace(home, &binary, report);
    crate::edit_bench::measure_edits(home.parent().unwrap_or(home), &binary, report);
}

/// Measures the status line in a home where most logs have not changed for days.
fn measure_statusline(home: &Path, binary: &Path, report: &mut BenchReport) {
    let still = home.with_file_name("bench-home-statusline");
    let transcript = match inactive_home(&still) {
        Ok(transcript) => transcript,
        Err(error) => return println!("statusline: skipped, {error}"),
    };
    let status = format!("{{\"session_id\":\"today-0\",\"transcript_path\":{transcript:?}}}");
    let mut ours = || {
        let mut command = Command::new(binary);
        command.arg("--home").arg(&still).args(["usage", "statusline"]);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        if let Ok(mut child) = child {
            let _ = child.stdin.take().map(|mut stdin| stdin.write_all(status.as_bytes()));
            let _ = child.wait();
        }
    };
    let mut nothing = || run(Command::new(binary).arg("--version"));
    let [ours, nothing] = measure([&mut ours, &mut nothing]);
    println!("process start {:.1} ms", nothing.as_secs_f64() * 1e3);
    report.at_most("usage statusline with 4,800 logs", ours.as_secs_f64() * 1e3, 10.0, "ms");
}

/// Creates a home with 4,800 logs, six of them written today; returns the path of one of those.
fn inactive_home(home: &Path) -> io::Result<PathBuf> {
    let mut random = Random::new(4800);
    let then = SystemTime::now() - Duration::from_secs(10 * 24 * 3600);
    let text = log("still", 2000, &mut random);
    for i in 0..4800 {
        let project = home.join(format!("projects/-home-ada-project-{}", i % 40));
        let path = match i % 3 {
            0 => project.join(format!("still-{i}.jsonl")),
            n => project.join(format!("still-{}/subagents/agent-a{i}.jsonl", i - n)),
        };
        if !path.exists() {
            fs::create_dir_all(path.parent().unwrap_or(home))?;
            fs::write(&path, &text)?;
            fs::File::options().write(true).open(&path)?.set_modified(then)?;
        }
    }
    let today = |i| home.join(format!("projects/-home-ada-project-{i}/today-{i}.jsonl"));
    for i in 0..6 {
        fs::write(today(i), log(&format!("today-{i}"), 300_000, &mut random))?;
    }
    Ok(today(0))
}

/// Measures that a line of one gigabyte does not increase memory.
fn measure_huge_line(home: &Path, binary: &Path, report: &mut BenchReport) {
    let odd = home.with_file_name("bench-home-huge-line");
    let made = || {
        let folder = odd.join("projects/-home-ada-project");
        fs::create_dir_all(&folder)?;
        let mut file = fs::File::create(folder.join("huge.jsonl"))?;
        // A sparse file, which occupies no disk space.
        file.set_len(1 << 30)?;
        file.seek(SeekFrom::End(0))?;
        file.write_all(format!("\n{}", log("huge", 100_000, &mut Random::new(1))).as_bytes())
    };
    if let Err(error) = made() {
        return println!("a line of a gigabyte: skipped, {error}");
    }
    for args in [&["usage", "--json"][..], &["search", "-c", "loom"]] {
        let mut command = Command::new(binary);
        command.arg("--home").arg(&odd).args(args);
        report.at_most(&format!("peak memory of {} with a line of 1 GB", args[0]), peak(command), 60.0, "MB");
    }
    let _ = fs::remove_dir_all(&odd);
}

/// Returns the path of one session of this many megabytes, generated if it does not exist.
fn one_session(home: &Path, megabytes: usize) -> Option<PathBuf> {
    let path = home.join(format!("one-session-{megabytes}.jsonl"));
    let id = format!("00000000-0000-4000-8000-{megabytes:012}");
    let made =
        || fs::write(&path, log(&id, megabytes * 1_000_000, &mut Random::new(megabytes as u64))).is_ok();
    (path.exists() || made()).then_some(path)
}

/// The number of lines of a screen.
const SCREEN: usize = 50;

/// Measures the time from the start of the process to the first screen of a large session.
fn measure_show(home: &Path, binary: &Path, report: &mut BenchReport) {
    let Some(large) = one_session(home, 100) else { return };
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let started = Instant::now();
        let mut command = Command::new(binary);
        let command = command.arg("show").arg(&large).stdin(Stdio::null()).stderr(Stdio::null());
        let Ok(mut child) = command.stdout(Stdio::piped()).spawn() else { return };
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines().take(SCREEN).count());
        if lines == Some(SCREEN) {
            best = best.min(started.elapsed().as_secs_f64() * 1e3);
        }
        // The process ends because its pipe is closed.
        let _ = child.wait();
    }
    report.at_most("first screen of a session of 100 MB", best, 150.0, "ms");
}

/// Measures exports of real sessions by us and by claude-code-log, each in a separate process.
fn measure_real_exports(home: &Path, binary: &Path, report: &mut BenchReport) {
    let mut sessions = LogFiles::in_folder(&shared().join("corpus")).files;
    sessions
        .retain(|path| path.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("agent-")));
    sessions.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).map_or(0, |metadata| metadata.len())));
    sessions.truncate(10);
    if sessions.is_empty() {
        println!("export against claude-code-log: skipped, no real sessions");
        return;
    }
    let what = format!("export of {} real sessions against claude-code-log", sessions.len());
    // Each page is a new file, so that none is up to date already.
    let pages = home.join("real-sessions");
    let _ = fs::remove_dir_all(&pages);
    if let Err(error) = fs::create_dir_all(&pages) {
        return println!("export against claude-code-log: skipped, {error}");
    }
    let n_pages = Cell::new(0);
    let page = || {
        n_pages.set(n_pages.get() + 1);
        pages.join(format!("{}.html", n_pages.get()))
    };
    let theirs = |path: &Path| {
        let mut command = CLAUDE_CODE_LOG.command();
        command.arg(path).arg("-o").arg(page()).args(["--no-cache", "--no-individual-sessions"]);
        command
    };
    if !CLAUDE_CODE_LOG.check_runs(theirs(&sessions[0]), &what, report) {
        return;
    }
    let mut theirs = || sessions.iter().for_each(|path| run(&mut theirs(path)));
    let mut ours = || {
        for path in &sessions {
            run(Command::new(binary).args(["export", "html"]).arg(path).arg("-o").arg(page()));
        }
    };
    let [theirs, ours] = measure([&mut theirs, &mut ours]);
    let _ = fs::remove_dir_all(&pages);
    report.at_least(&what, theirs.as_secs_f64() / ours.as_secs_f64(), 50.0, "×");
}

fn measure_export(home: &Path, binary: &Path, report: &mut BenchReport) {
    let Some(large) = one_session(home, 50) else { return };
    let size = fs::metadata(&large).map_or(0, |metadata| metadata.len()) as f64 / 1e6;
    let page = home.join("one-session.html");
    let export = || {
        let mut command = Command::new(binary);
        command.args(["export", "html"]).arg(&large).arg("-o").arg(&page);
        command
    };
    let mut ours = || run(&mut export());
    let [time] = measure([&mut ours]);
    report.at_least("HTML export of one session", size / time.as_secs_f64(), 80.0, "MB/s");
    report.at_most("peak memory of the export, in file sizes", peak(export()) / size, 2.0, "×");
}

pub(crate) fn run(command: &mut Command) {
    // Only the time matters here; other tests check the output.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// Returns the peak memory of a process, in megabytes.
pub(crate) fn peak(mut command: Command) -> f64 {
    let Ok(mut child) = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() else { return f64::NAN };
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while let Ok(None) = child.try_wait() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let now = text
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
        peak = now.unwrap_or(0.0).max(peak);
    }
    peak * 1024.0 / 1e6
}
