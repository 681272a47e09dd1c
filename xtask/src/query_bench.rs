//! Benchmarks the commands that read all logs as processes: `usage`, `list`, `overview` and `search`.

use std::hint::black_box;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use threadline_usage::{CallLedger, LogSource, ScanCache, ScanOptions, UsageScan};

use crate::bench::{BenchReport, LogFiles, each_file_on_all_cores, measure};
use crate::command::{peak, run};
use crate::peer::{CCUSAGE, RIPGREP};

/// A word that occurs in the generated logs, but rarely.
const WORD: &str = "drawloom";

/// A word that occurs in every line.
const COMMON: &str = "the";

/// A word that does not occur.
const ABSENT: &str = "quixotic";

/// Measures the commands that read all logs of a home against newline splitting, ccusage and ripgrep.
pub(crate) fn measure_queries(home: &Path, binary: &Path, report: &mut BenchReport) {
    let logs = LogFiles::in_folder(&home.join("projects"));
    println!("commands on {} files, {:.1} GB", logs.files.len(), logs.bytes as f64 / 1e9);
    let threadline = |args: &[&str]| {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).args(args);
        command
    };
    measure_usage(&logs, home, &threadline, report);
    measure_list(home, &threadline, report);
    measure_overview(home, &threadline, report);
    measure_search(home, &threadline, report);
    crate::blame_bench::measure_blame(home, binary, report);
    crate::mcp_bench::measure_mcp(home, binary, report);
}

fn measure_usage(
    logs: &LogFiles,
    home: &Path,
    threadline: &dyn Fn(&[&str]) -> Command,
    report: &mut BenchReport,
) {
    let mut split = || {
        each_file_on_all_cores(logs, |lines, ()| {
            while let Ok(Some(line)) = lines.next() {
                black_box(line.bytes.len());
            }
        });
    };
    let mut scan = || {
        let ledger = Mutex::new(CallLedger::default());
        each_file_on_all_cores(logs, |lines, cache: &mut Option<ScanCache>| {
            lines.stop_numbering();
            let cached = cache.take().unwrap_or_default();
            let mut scan = UsageScan::with_cache(LogSource::default(), ScanOptions::default(), cached);
            while let Ok(Some(block)) = lines.next_block() {
                scan.block(&block);
            }
            let (scanned, updated) = scan.finish_with_cache();
            *cache = Some(updated);
            if let Ok(mut ledger) = ledger.lock() {
                ledger.add(scanned);
            }
        });
        black_box(ledger.into_inner().map(CallLedger::finish).is_ok());
    };
    let mut ours = || run(&mut threadline(&["usage", "--json"]));
    let [split, scan, ours] = measure([&mut split, &mut scan, &mut ours]);
    let ratio = |time: Duration| split.as_secs_f64() / time.as_secs_f64();
    report.at_least("usage scan against newline splitting, both on all cores", ratio(scan), 0.5, "×");
    report.at_least("usage process against newline splitting, both on all cores", ratio(ours), 0.5, "×");
    report.at_most("peak memory of usage", peak(threadline(&["usage", "--json"])), 60.0, "MB");
    let what = "usage against ccusage";
    let theirs = || {
        let mut command = CCUSAGE.command();
        command.args(["claude", "daily", "--offline", "--json"]).env("CLAUDE_CONFIG_DIR", home);
        command
    };
    if !CCUSAGE.check_runs(theirs(), what, report) {
        return;
    }
    let mut theirs = || run(&mut theirs());
    let mut ours = || run(&mut threadline(&["usage", "--json"]));
    let [theirs, ours] = measure([&mut theirs, &mut ours]);
    report.at_least(what, theirs.as_secs_f64() / ours.as_secs_f64(), 5.0, "×");
}

/// Measures `list` with turns and cost, with and without its cache.
fn measure_list(home: &Path, threadline: &dyn Fn(&[&str]) -> Command, report: &mut BenchReport) {
    let cache = home.join("bench-cache");
    let list = |args: &[&str]| {
        let mut command = threadline(&[&["list", "--json"], args].concat());
        command.env("XDG_CACHE_HOME", &cache);
        command
    };
    // Fills the cache.
    run(&mut list(&[]));
    let mut plain = || run(&mut list(&["--no-figures"]));
    let mut cached = || run(&mut list(&[]));
    let mut counted = || run(&mut list(&["--no-cache"]));
    let mut usage = || run(&mut threadline(&["usage", "--json"]));
    let [plain, cached, counted, usage] = measure([&mut plain, &mut cached, &mut counted, &mut usage]);
    let ratio = |time: Duration, base: Duration| time.as_secs_f64() / base.as_secs_f64();
    report.at_most("list with cached turns and cost against a plain list", ratio(cached, plain), 2.0, "×");
    report.at_most("list without its cache against usage", ratio(counted, usage), 1.5, "×");
    let _ = std::fs::remove_dir_all(&cache);
}

/// Measures `overview` with and without its cache.
fn measure_overview(home: &Path, threadline: &dyn Fn(&[&str]) -> Command, report: &mut BenchReport) {
    let cache = home.join("bench-cache");
    let overview = |args: &[&str]| {
        let mut command = threadline(&[&["overview", "--since", "all", "--json"], args].concat());
        command.env("XDG_CACHE_HOME", &cache);
        command
    };
    // Fills the cache.
    run(&mut overview(&[]));
    let mut cached = || run(&mut overview(&[]));
    let mut read = || run(&mut overview(&["--no-cache"]));
    let mut usage = || run(&mut threadline(&["usage", "--json"]));
    let [cached, read, usage] = measure([&mut cached, &mut read, &mut usage]);
    let ratio = read.as_secs_f64() / usage.as_secs_f64();
    report.at_most("overview without its cache against usage", ratio, 3.0, "×");
    report.at_most("overview with its cache", cached.as_secs_f64() * 1e3, 60.0, "ms");
    let _ = std::fs::remove_dir_all(&cache);
}

fn measure_search(home: &Path, threadline: &dyn Fn(&[&str]) -> Command, report: &mut BenchReport) {
    let mut relevance = || run(&mut threadline(&["search", WORD]));
    let mut newest = || run(&mut threadline(&["search", WORD, "--sort", "newest"]));
    let [relevance, newest] = measure([&mut relevance, &mut newest]);
    let ratio = relevance.as_secs_f64() / newest.as_secs_f64();
    report.at_most("search by relevance against newest first", ratio, 1.3, "×");
    let mut first = || first_byte(threadline(&["search", COMMON, "--sort", "newest"]));
    let [first] = measure([&mut first]);
    report.at_most("first match of a common word", first.as_secs_f64() * 1e3, 50.0, "ms");
    report.at_most("peak memory of search", peak(threadline(&["search", WORD, "-c"])), 60.0, "MB");
    for (what, word) in [("a word", WORD), ("a word without matches", ABSENT)] {
        let what = format!("search for {what} against ripgrep");
        let theirs = || {
            let mut command = RIPGREP.command();
            command.args(["-c", "--no-ignore", word]).arg(home.join("projects"));
            command
        };
        if !RIPGREP.check_runs(theirs(), &what, report) {
            continue;
        }
        let mut theirs = || run(&mut theirs());
        let mut ours = || run(&mut threadline(&["search", word, "-c"]));
        let [theirs, ours] = measure([&mut theirs, &mut ours]);
        report.at_most(&what, ours.as_secs_f64() / theirs.as_secs_f64(), 1.3, "×");
    }
}

/// Runs a command until it prints its first byte, then kills it.
fn first_byte(mut command: Command) {
    let Ok(mut child) = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn() else { return };
    if let Some(mut stdout) = child.stdout.take() {
        let _ = stdout.read(&mut [0]);
    }
    let _ = child.kill();
    let _ = child.wait();
}
