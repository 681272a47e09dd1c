//! Benchmarks the archive: copying the real sessions, copying when nothing is new, and its size.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::bench::{BenchReport, LogFiles, measure, shared};
use crate::command::{peak, run};

/// Measures `archive push` into a folder. `home` has 3,000 sessions.
pub(crate) fn measure_archive(target: &Path, home: &Path, binary: &Path, report: &mut BenchReport) {
    let work = target.join("bench-archive");
    let _ = fs::remove_dir_all(&work);
    let push = |home: &Path, name: &str| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).args(["--quiet", "archive", "push", "--json"]);
        command.env("XDG_STATE_HOME", work.join(name));
        command
    };
    if let Some(corpus) = copied_corpus(&work) {
        let size = LogFiles::in_folder(&corpus).bytes as f64;
        let mut times = Vec::new();
        for attempt in 0..3 {
            let begun = Instant::now();
            run(&mut push(&corpus, &format!("corpus{attempt}")));
            times.push(begun.elapsed().as_secs_f64());
        }
        let fastest = times.into_iter().fold(f64::INFINITY, f64::min);
        report.at_least("archive push of real sessions", size / 1e6 / fastest, 200.0, "MB/s");
        let stored = folder_size(&work.join("corpus0/threadline/archive")) as f64;
        report.at_least("real sessions against their archive, in bytes", size / stored, 8.0, "×");
    }
    let memory = peak(push(home, "large"));
    report.at_most("peak memory of archive push", memory, 80.0, "MB");
    // Files that were copied within two seconds after their last change are compared again.
    run(&mut push(home, "large"));
    let mut nothing = || run(&mut push(home, "large"));
    let [nothing] = measure([&mut nothing]);
    report.at_most("archive push with nothing new", nothing.as_secs_f64() * 1e3, 100.0, "ms");
    let _ = fs::remove_dir_all(&work);
}

/// Copies the real sessions into a home, each repository that they come from as a project; `None` if there
/// are none. Sub-agents stay in the folder of their session.
pub(crate) fn copied_corpus(work: &Path) -> Option<PathBuf> {
    let corpus = shared().join("corpus");
    let source = LogFiles::in_folder(&corpus);
    if source.files.is_empty() {
        println!("archive of real sessions: skipped, there are none (set THREADLINE_SHARED)");
        return None;
    }
    let home = work.join("home");
    for (i, log) in source.files.iter().enumerate() {
        let parts: Vec<_> =
            log.strip_prefix(&corpus).ok()?.iter().map(|part| part.to_string_lossy()).collect();
        let folder = home.join(format!("projects/-{}", parts.first()?));
        let side = parts.iter().position(|part| *part == "subagents").and_then(|at| at.checked_sub(1));
        let mut target = match side {
            Some(session) => parts[session..].iter().fold(folder, |path, part| path.join(&**part)),
            None => folder.join(&**parts.last()?),
        };
        if target.exists() {
            target = target.with_file_name(format!("{i:08}-0000-4000-8000-000000000000.jsonl"));
        }
        fs::create_dir_all(target.parent()?).ok()?;
        fs::copy(log, target).ok()?;
    }
    Some(home)
}

fn folder_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |path: PathBuf| match path.is_dir() {
        true => folder_size(&path),
        false => fs::metadata(&path).map_or(0, |metadata| metadata.len()),
    };
    entries.map(|entry| size(entry.path())).sum()
}
