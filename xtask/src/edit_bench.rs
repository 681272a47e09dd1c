//! Benchmarks edits of a large session as processes: planned, applied, and undone.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::bench::BenchReport;
use crate::command::peak;
use crate::corpus::{Random, log};

const ID: &str = "00000000-0000-4000-8000-000000000100";
const SIZE: usize = 100_000_000;
const ROUNDS: usize = 3;

/// Measures an in-place strip and a clone of a session of 100 MB.
pub(crate) fn measure_edits(target: &Path, binary: &Path, report: &mut BenchReport) {
    let home = target.join("bench-edit");
    let folder = home.join("projects/-home-ada-loom");
    let session = folder.join(format!("{ID}.jsonl"));
    // Remove the leftovers of an interrupted run.
    let _ = fs::remove_dir_all(&home);
    let made =
        fs::create_dir_all(&folder).and_then(|()| fs::write(&session, log(ID, SIZE, &mut Random::new(100))));
    if let Err(error) = made {
        println!("edits: skipped, cannot create {}: {error}", session.display());
        return;
    }
    let size = fs::metadata(&session).map_or(0, |metadata| metadata.len()) as f64 / 1e6;
    let threadline = |args: &[&str]| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(&home).args(args).env("XDG_STATE_HOME", home.join("state"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    };
    let undo = || {
        let undone =
            threadline(&["op", "undo", "--apply", "--quiet"]).status().is_ok_and(|status| status.success());
        let _ = threadline(&["op", "forget", "--all", "--quiet"]).status();
        undone
    };
    for (name, args) in [
        (
            "strip in place of 100 MB",
            &["edit", "strip", ID, "--preset", "heavy", "--in-place", "--apply", "--quiet"][..],
        ),
        ("clone of 100 MB", &["edit", "clone", ID, "--apply", "--quiet"]),
    ] {
        let mut best = f64::INFINITY;
        for _ in 0..ROUNDS {
            let begin = Instant::now();
            let done = threadline(args).status().is_ok_and(|status| status.success());
            best = best.min(if done { begin.elapsed().as_secs_f64() } else { f64::NAN });
            if !done || !undo() {
                println!("{name}: could not be applied and undone");
                break;
            }
        }
        report.at_most(&format!("{name}, planned and applied"), best, 3.0, "s");
        report.at_most(&format!("peak memory of {name}"), peak(threadline(args)) / size, 2.5, "×");
        undo();
    }
    let _ = fs::remove_dir_all(&home);
}
