//! The commands of the binary, measured as a person runs them: as processes of their own.

use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::bench::{Card, Logs, each_file_on_all_cores, measure};
use crate::corpus::{Random, log};

/// A word that the made-up logs hold, and not too often.
const WORD: &str = "drawloom";

/// Measures `usage`, `search` and `export` against plain ways and, where they are installed, against others.
pub(crate) fn measure_commands(home: &Path, card: &mut Card) {
    let Some(binary) =
        std::env::current_exe().ok().map(|own| own.with_file_name("threadline")).filter(|path| path.exists())
    else {
        println!(
            "commands: skipped, there is no threadline beside xtask (cargo build --release -p threadline)"
        );
        return;
    };
    let logs = Logs::below(&home.join("projects"));
    println!("commands on {} files, {:.1} GB", logs.files.len(), logs.bytes as f64 / 1e9);
    let threadline = |args: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg("--home").arg(home).args(args);
        command
    };
    measure_usage(&logs, home, &threadline, card);
    measure_search(home, &threadline, card);
    measure_export(home, &binary, card);
    crate::trace::measure_trace(home, &binary, card);
}

fn measure_usage(logs: &Logs, home: &Path, threadline: &dyn Fn(&[&str]) -> Command, card: &mut Card) {
    let mut split = || {
        each_file_on_all_cores(logs, |lines| {
            while let Ok(Some(line)) = lines.next() {
                black_box(line.bytes.len());
            }
        });
    };
    let mut ours = || run(&mut threadline(&["usage", "--json"]));
    let [split, ours] = measure([&mut split, &mut ours]);
    let ratio = split.as_secs_f64() / ours.as_secs_f64();
    card.at_least("usage, a process, against newline splitting on all cores", ratio, 0.5, "×");
    card.at_most("peak memory of usage", peak(threadline(&["usage", "--json"])), 60.0, "MB");
    // The program is found through a variable, for it is not ours to install.
    let Some(other) = std::env::var_os("CCUSAGE").map(PathBuf::from) else {
        println!("usage against ccusage: skipped, CCUSAGE names no program");
        return;
    };
    let mut theirs = || {
        let mut command = Command::new(&other);
        run(command.args(["claude", "daily", "--offline", "--json"]).env("CLAUDE_CONFIG_DIR", home));
    };
    let mut ours = || run(&mut threadline(&["usage", "--json"]));
    let [theirs, ours] = measure([&mut theirs, &mut ours]);
    card.at_least("usage against ccusage", theirs.as_secs_f64() / ours.as_secs_f64(), 5.0, "×");
}

fn measure_search(home: &Path, threadline: &dyn Fn(&[&str]) -> Command, card: &mut Card) {
    card.at_most("peak memory of search", peak(threadline(&["search", WORD, "-c"])), 60.0, "MB");
    if Command::new("rg").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("search against ripgrep: skipped, it is not installed");
        return;
    }
    let mut theirs = || run(Command::new("rg").args(["-c", "--no-ignore", WORD]).arg(home.join("projects")));
    let mut ours = || run(&mut threadline(&["search", WORD, "-c"]));
    let [theirs, ours] = measure([&mut theirs, &mut ours]);
    card.at_most("search for a word against ripgrep", ours.as_secs_f64() / theirs.as_secs_f64(), 1.3, "×");
}

fn measure_export(home: &Path, binary: &Path, card: &mut Card) {
    let large = home.join("one-session.jsonl");
    let size = 50_000_000;
    let made = || fs::write(&large, log("00000000-0000-4000-8000-000000000050", size, &mut Random::new(50)));
    if !large.exists() && made().is_err() {
        return;
    }
    let size = fs::metadata(&large).map_or(0, |metadata| metadata.len()) as f64 / 1e6;
    let page = home.join("one-session.html");
    let export = || {
        let mut command = Command::new(binary);
        command.args(["export", "html"]).arg(&large).arg("-o").arg(&page);
        command
    };
    let mut ours = || run(&mut export());
    let [time] = measure([&mut ours]);
    card.at_least("HTML export of one session", size / time.as_secs_f64(), 80.0, "MB/s");
    card.at_most("peak memory of the export, in file sizes", peak(export()) / size, 2.0, "×");
}

fn run(command: &mut Command) {
    // What it answers is for others to check; here it is the time.
    let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
}

/// The most memory that a process ever had, in megabytes.
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
