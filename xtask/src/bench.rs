//! Benchmarks: each prints a figure and its limit, often relative to a simple implementation in the same run.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use threadline_entry::{Entry, LineReader, StringRole, parse_line, visit_strings, walk};
use threadline_secret::Rules;
use threadline_session::Session;
use threadline_store::Store;

use crate::{client_bench, command, corpus, hostile, query_bench, viewer};

/// Each measurement is the best of this many, interleaved with the alternatives.
const ROUNDS: usize = 7;

pub(crate) fn run() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    // The first home is small enough to be generated in seconds; the second is as large as that of a busy
    // user.
    let homes = corpus::home(&target, "bench-home", 0.2)
        .and_then(|home| Ok((home, corpus::home(&target, "bench-home-large", 1.6)?)));
    let (home, large) = match homes {
        Ok(homes) => homes,
        Err(error) => {
            eprintln!("cannot generate logs: {error}");
            return ExitCode::from(2);
        }
    };
    let made = LogFiles::in_folder(&home.join("projects"));
    println!("generated logs: {} files, {:.0} MB", made.files.len(), made.bytes as f64 / 1e6);
    let mut report = BenchReport { missed: 0 };
    scanning(&made, &mut report);
    parsing(&made, &mut report);
    on_real_logs(&mut report);
    listing(&home, &mut report);
    memory(&target, &made, &mut report);
    command::measure_commands(&large, &mut report);
    if let Some(binary) = command::binary() {
        hostile::measure_hostile(&target, &binary, "", &mut report);
        client_bench::measure_client(&target, &binary, &mut report);
        crate::files_bench::measure_files(&target, &binary, &mut report);
        #[cfg(unix)]
        crate::tui_bench::measure_tui(&target, &binary, crate::tui_bench::TURNS, &mut report);
    }
    viewer::measure_viewer(&target, &home, false, &mut report);
    report.verdict()
}

/// Runs only the benchmark of adversarial logs, for shapes with names that contain `only`.
pub(crate) fn hostile(only: &str) -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    hostile::measure_hostile(&target, &binary, only, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of `usage` and `search`.
pub(crate) fn queries() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home-large", 1.6) else { return ExitCode::from(2) };
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    query_bench::measure_queries(&home, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of the archive.
pub(crate) fn archive() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home-large", 1.6) else { return ExitCode::from(2) };
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::archive_bench::measure_archive(&target, &home, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of the MCP server.
pub(crate) fn mcp() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home-large", 1.6) else { return ExitCode::from(2) };
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::mcp_bench::measure_mcp(&home, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of archives in a database.
#[cfg(unix)]
pub(crate) fn postgres() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::postgres_bench::measure_postgres(&target, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmark of `blame`.
pub(crate) fn blame() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home-large", 1.6) else { return ExitCode::from(2) };
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::blame_bench::measure_blame(&home, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of the hook that records files.
pub(crate) fn files() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::files_bench::measure_files(&target, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of the client.
pub(crate) fn chat() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    if let Err(error) = corpus::home(&target, "bench-home", 0.2) {
        eprintln!("cannot generate logs: {error}");
        return ExitCode::from(2);
    }
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    client_bench::measure_client(&target, &binary, &mut report);
    report.verdict()
}

/// Runs only the benchmarks of the screen, with this number of turns.
#[cfg(unix)]
pub(crate) fn tui(turns: usize) -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Some(binary) = command::binary() else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    crate::tui_bench::measure_tui(&target, &binary, turns, &mut report);
    report.verdict()
}

/// Runs only the benchmark of the web viewer; `quick` for a rough result.
pub(crate) fn viewer(quick: bool) -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home", 0.2) else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    viewer::measure_viewer(&target, &home, quick, &mut report);
    report.verdict()
}

/// Runs only the benchmark of HTML exports.
pub(crate) fn export() -> ExitCode {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target");
    let Ok(home) = corpus::home(&target, "bench-home", 0.2) else { return ExitCode::from(2) };
    let mut report = BenchReport { missed: 0 };
    command::measure_exports(&home, &mut report);
    report.verdict()
}

pub(crate) struct LogFiles {
    pub(crate) files: Vec<PathBuf>,
    pub(crate) bytes: u64,
}

impl LogFiles {
    pub(crate) fn in_folder(dir: &Path) -> Self {
        let mut found = Vec::new();
        let mut dirs = vec![dir.to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    dirs.push(path);
                } else if path.extension().is_some_and(|ext| ext == "jsonl") {
                    found.push((Reverse(entry.metadata().map_or(0, |metadata| metadata.len())), path));
                }
            }
        }
        // The largest first, so that no core is left with a large file at the end.
        found.sort();
        let bytes = found.iter().map(|(Reverse(size), _)| size).sum();
        Self { files: found.into_iter().map(|(_, path)| path).collect(), bytes }
    }

    /// Returns gigabytes per second.
    fn speed(&self, time: Duration) -> f64 {
        self.bytes as f64 / time.as_secs_f64() / 1e9
    }
}

/// Prints results and counts missed limits.
pub(crate) struct BenchReport {
    missed: usize,
}

impl BenchReport {
    fn verdict(&self) -> ExitCode {
        if self.missed > 0 {
            println!("{} missed or not measured", self.missed);
            return ExitCode::from(1);
        }
        ExitCode::SUCCESS
    }

    /// Prints that something could not be measured, which counts as a missed limit.
    pub(crate) fn fail(&mut self, what: &str, why: &str) {
        self.missed += 1;
        println!("{what:<58} FAILED: {why}");
    }

    /// Prints a result that should be at least `limit`.
    pub(crate) fn at_least(&mut self, what: &str, value: f64, limit: f64, unit: &str) {
        self.line(what, value, limit, unit, "at least", value >= limit);
    }

    /// Prints a result that should be at most `limit`.
    pub(crate) fn at_most(&mut self, what: &str, value: f64, limit: f64, unit: &str) {
        self.line(what, value, limit, unit, "at most", value <= limit);
    }

    fn line(&mut self, what: &str, value: f64, limit: f64, unit: &str, which: &str, met: bool) {
        self.missed += usize::from(!met);
        let verdict = if met { "ok" } else { "MISSED" };
        let ratio = value / limit;
        println!("{what:<58} {value:>7.2} {unit:<5} ({which} {limit:.2}, ratio {ratio:.2}) {verdict}");
    }
}

/// Returns the best time of each alternative, measured in turns.
pub(crate) fn measure<const N: usize>(mut ways: [&mut dyn FnMut(); N]) -> [Duration; N] {
    let mut best = [Duration::MAX; N];
    for _ in 0..ROUNDS {
        for (way, best) in ways.iter_mut().zip(&mut best) {
            let start = Instant::now();
            way();
            *best = start.elapsed().min(*best);
        }
    }
    best
}

/// Opens one file after another, with one reused buffer.
fn each_file(logs: &LogFiles, mut work: impl FnMut(&mut LineReader<File>)) {
    let mut buffer = Vec::new();
    for file in logs.files.iter().filter_map(|path| File::open(path).ok()) {
        let mut lines = LineReader::new(file).with_buffer(buffer);
        work(&mut lines);
        buffer = lines.into_buffer();
    }
}

/// Does the same on all cores, each with its own buffer and with the state that `work` keeps between files.
pub(crate) fn each_file_on_all_cores<K: Default>(
    logs: &LogFiles,
    work: impl Fn(&mut LineReader<File>, &mut K) + Sync,
) {
    let next = AtomicUsize::new(0);
    rayon::broadcast(|_| {
        let (mut buffer, mut kept) = (Vec::new(), K::default());
        while let Some(path) = logs.files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Ok(file) = File::open(path) else { continue };
            let mut lines = LineReader::new(file).with_buffer(buffer);
            work(&mut lines, &mut kept);
            buffer = lines.into_buffer();
        }
    });
}

/// Sums the output tokens of all replies, as a usage report would.
fn scan(lines: &mut LineReader<File>) -> u64 {
    lines.stop_numbering();
    let finder = Finder::new("\"usage\"");
    let mut tokens = 0;
    while let Ok(Some(block)) = lines.next_block() {
        for (line, hit) in block.hits(&finder) {
            let found = walk::skim_around(line.bytes, hit, ["type"], ["usage"]);
            let Some(([kind], [usage])) = found else { continue };
            if !kind.is_some_and(|kind| kind.is_str("assistant")) {
                continue;
            }
            tokens += usage.and_then(|usage| usage.get("output_tokens")?.as_u64()).unwrap_or(0);
        }
    }
    tokens
}

fn scanning(logs: &LogFiles, report: &mut BenchReport) {
    let mut split = || {
        each_file(logs, |lines| {
            while let Ok(Some(line)) = lines.next() {
                black_box(line.bytes.len());
            }
        });
    };
    let work = |lines: &mut LineReader<File>| {
        black_box(scan(lines));
    };
    let mut scan_one = || each_file(logs, work);
    let mut scan_two = || each_file_on_all_cores(logs, |lines, ()| work(lines));
    let [split, one, two] = measure([&mut split, &mut scan_one, &mut scan_two]);
    println!("newline splitting {:.1} GB/s, scanner {:.1} GB/s", logs.speed(split), logs.speed(one));
    report.at_least(
        "scanner against bare newline splitting",
        split.as_secs_f64() / one.as_secs_f64(),
        0.6,
        "×",
    );
    let threads = rayon::current_num_threads();
    report.at_least(
        &format!("scanner on {threads} threads against one"),
        one.as_secs_f64() / two.as_secs_f64(),
        1.8,
        "×",
    );
}

/// Reads the main fields of a conversation line and all its blocks, and decodes every text.
fn read_fully(entry: &Entry) -> usize {
    let mut seen = 0;
    if let Some(envelope) = entry.envelope() {
        seen += usize::from(envelope.uuid().is_some()) + usize::from(envelope.parent_uuid().is_some());
        seen += usize::from(envelope.timestamp().is_some()) + envelope.cwd().map_or(0, |cwd| cwd.len());
    }
    if let Some(message) = entry.message() {
        seen += message.id().map_or(0, |id| id.len()) + message.model().map_or(0, |model| model.len());
        seen += message.usage().and_then(|usage| usage.output_tokens()).unwrap_or(0) as usize;
        seen += message.content().map_or(0, |content| content.text().len());
        for block in message.blocks() {
            seen += block.thinking().map_or(0, |text| text.len());
            seen += block.input().map_or(0, |input| input.raw().len());
            seen += block.content().map_or(0, |content| content.text().len());
        }
    }
    seen + entry.tool_use_result().map_or(0, |result| result.json().raw().len())
}

fn parse(lines: &mut LineReader<File>) {
    while let Ok(Some(line)) = lines.next() {
        parse_line(&line, |entry, _| {
            black_box(read_fully(&entry));
        });
    }
}

/// Searches for secrets in all text.
fn find_secrets(rules: &Rules, lines: &mut LineReader<File>) {
    while let Ok(Some(line)) = lines.next() {
        visit_strings(std::str::from_utf8(line.bytes).unwrap_or_default(), |text| {
            if !matches!(text.role, StringRole::Id | StringRole::Opaque) {
                black_box(rules.find(&text.decoded()));
            }
        });
    }
}

fn parsing(logs: &LogFiles, report: &mut BenchReport) {
    let rules = Rules::new();
    let mut one = || each_file(logs, parse);
    let mut two = || each_file_on_all_cores(logs, |lines, ()| parse(lines));
    let mut seek = || each_file(logs, |lines| find_secrets(&rules, lines));
    let [one, two, seek] = measure([&mut one, &mut two, &mut seek]);
    report.at_least("secret search, one thread", logs.speed(seek) * 1e3, 100.0, "MB/s");
    report.at_least("full typed parse, one thread", logs.speed(one), 1.0, "GB/s");
    report.at_least(
        "full typed parse on two threads against one",
        one.as_secs_f64() / two.as_secs_f64(),
        1.8,
        "×",
    );
}

fn build(lines: &mut LineReader<File>) -> Session {
    let mut session = Session::new();
    while let Ok(Some(line)) = lines.next() {
        parse_line(&line, |entry, findings| session.push(entry, findings));
    }
    session
}

/// Returns the folder with real sessions, which may not exist.
pub(crate) fn shared() -> PathBuf {
    let named = std::env::var_os("THREADLINE_SHARED").map(PathBuf::from);
    named.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"))
}

/// Measures parsing real sessions and building them with their turns, if there are any.
fn on_real_logs(report: &mut BenchReport) {
    let shared = shared();
    let logs = LogFiles::in_folder(&shared.join("corpus"));
    if logs.files.is_empty() {
        println!("real logs: skipped, none in {}", shared.display());
        return;
    }
    let mut parse = || each_file(&logs, parse);
    let mut build = || {
        each_file(&logs, |lines| {
            let session = build(lines);
            black_box(session.turns().len());
        });
    };
    let rules = Rules::new();
    let mut seek = || each_file(&logs, |lines| find_secrets(&rules, lines));
    let [parse, build, seek] = measure([&mut parse, &mut build, &mut seek]);
    println!("real logs: {} files, {:.0} MB", logs.files.len(), logs.bytes as f64 / 1e6);
    report.at_least("full typed parse of real logs, one thread", logs.speed(parse), 1.0, "GB/s");
    report.at_least("session building over real logs, one thread", logs.speed(build) * 1e3, 250.0, "MB/s");
    report.at_least("secret search in real logs, one thread", logs.speed(seek) * 1e3, 100.0, "MB/s");
}

fn listing(home: &Path, report: &mut BenchReport) {
    let mut paths = LogFiles::in_folder(&home.join("projects")).files;
    paths.sort();
    let mut plain = || {
        let mut buffer = vec![0; 64 << 10];
        for path in &paths {
            let Ok(mut file) = File::open(path) else { continue };
            let size = file.metadata().map_or(0, |metadata| metadata.len());
            let mut read = |file: &mut File| file.read(&mut buffer).map_or(0, |n| n);
            black_box(read(&mut file));
            if size > 64 << 10 && file.seek(SeekFrom::Start(size - (64 << 10))).is_ok() {
                black_box(read(&mut file));
            }
        }
    };
    let mut ours = || {
        black_box(Store::open([home.to_owned()]).list().found.len());
    };
    let [plain, ours] = measure([&mut plain, &mut ours]);
    println!(
        "reading heads and tails {:.0} ms, list {:.0} ms",
        plain.as_secs_f64() * 1e3,
        ours.as_secs_f64() * 1e3
    );
    let what = format!("list of {} sessions against reading their heads and tails", paths.len());
    report.at_most(&what, ours.as_secs_f64() / plain.as_secs_f64(), 1.5, "×");
}

/// Measures peak memory in separate processes.
fn memory(target: &Path, logs: &LogFiles, report: &mut BenchReport) {
    let Some(largest) =
        logs.files.iter().max_by_key(|path| fs::metadata(path).map_or(0, |metadata| metadata.len()))
    else {
        return;
    };
    let size = fs::metadata(largest).map_or(0, |metadata| metadata.len());
    if let Some(peak) = peak_of("scan", target.join("bench-home").as_ref()) {
        report.at_most("peak memory of a scan", peak / 1e6, 20.0, "MB");
    }
    if let (Some(peak), Some(idle)) = (peak_of("load", largest), peak_of("idle", largest)) {
        report.at_most(
            "peak memory of one loaded session, in file sizes",
            (peak - idle) / size as f64,
            2.0,
            "×",
        );
    }
}

fn peak_of(what: &str, path: &Path) -> Option<f64> {
    let own = std::env::current_exe().ok()?;
    let done = Command::new(own).args(["bench", "--child", what]).arg(path).output().ok()?;
    String::from_utf8(done.stdout).ok()?.trim().parse().ok()
}

/// Performs one task and prints the peak memory of this process.
pub(crate) fn child(what: &str, path: &Path) -> ExitCode {
    let mut kept = None;
    match what {
        "scan" => each_file(&LogFiles::in_folder(path), |lines| {
            black_box(scan(lines));
        }),
        "parse" => each_file(&LogFiles::in_folder(path), parse),
        "load" => kept = File::open(path).ok().map(|file| build(&mut LineReader::new(file))),
        _ => {}
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    black_box(&kept);
    match peak {
        Some(kilobytes) => {
            println!("{}", kilobytes * 1024.0);
            ExitCode::SUCCESS
        }
        None => ExitCode::from(2),
    }
}
