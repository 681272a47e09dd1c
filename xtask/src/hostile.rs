//! Measures the cost of hostile logs: time must be proportional to the log, and memory within a few times
//! its size.
//!
//! Each shape is a log that made something quadratic or large once, or could. Every command reads it at
//! three sizes: a small one, for the fixed costs, one of full size, and one of double size.
//!
//! Times are processor time of the process (user and system, all threads). A busy machine still makes some
//! runs slower than others, so a ratio that is not clearly below the limit is measured again with many
//! runs: noise disappears, superlinear work does not. Memory is the peak of the resident set, less that of
//! the small log, divided by how much longer the log is.

mod shape;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use self::shape::{HostileShape, SHAPES, text};
use crate::bench::BenchReport;

/// The most time that twice the log may take, in times of the log. A little more than two, for noise.
const MAX_TIME_RATIO: f64 = 2.4;
/// The maximum memory, as a multiple of the size of the log.
const MAX_MEMORY_RATIO: f64 = 6.0;
/// A larger ratio is measured again, more precisely.
const CLEAR_TIME_RATIO: f64 = 2.2;
/// The maximum number of measurements then, of which the least counts, and the number of runs of each. The
/// system counts processor time in steps of 10 ms, which is too coarse for a single run.
const PRECISE_ROUNDS: usize = 5;
const RUNS_PER_ROUND: u32 = 4;
/// Shorter times count as this much, since starting a process takes some of it.
const MIN_TIME: Duration = Duration::from_millis(50);
/// The small log has this part of the units. It is read several times, since the memory of a process that
/// ends within milliseconds may be read too early.
const SMALL: usize = 100;

/// The commands that read a log: `@` is replaced by its path, `%` by its home.
static COMMANDS: &[(&str, &[&str])] = &[
    ("show", &["show", "@", "--level", "full", "--color", "never", "--no-pager"]),
    ("show in colours", &["show", "@", "--level", "full", "--color", "always", "--no-pager"]),
    ("show --redact", &["show", "@", "--level", "full", "--redact", "--no-pager"]),
    ("show --outline", &["show", "@", "--outline", "--no-pager"]),
    ("show --patch", &["show", "@", "--patch", "--no-pager"]),
    ("show --json", &["show", "@", "--json"]),
    ("check", &["check", "@"]),
    ("inspect", &["inspect", "@"]),
    ("replay", &["replay", "@"]),
    ("restore", &["restore", "@"]),
    ("export html", &["export", "html", "@", "-o", "-"]),
    ("export html --redact", &["export", "html", "@", "--redact", "-o", "-"]),
    ("export markdown", &["export", "markdown", "@", "-o", "-"]),
    ("edit clone", &["edit", "clone", "@"]),
    ("edit strip", &["edit", "strip", "@", "--preset", "extreme"]),
    ("edit compress", &["edit", "compress", "@"]),
    ("edit redact", &["edit", "redact", "@"]),
    ("edit repair", &["edit", "repair", "@"]),
    ("compare", &["compare", "@", "@"]),
    ("context", &["context", "@"]),
    ("blame --edits", &["blame", "/loom/a", "--edits", "--no-git", "--home", "%"]),
    ("list", &["list", "--home", "%", "--no-cache"]),
    ("overview", &["overview", "--home", "%", "--since", "all", "--no-cache"]),
    ("usage", &["usage", "--home", "%", "--by", "session"]),
    ("search -c", &["search", "--home", "%", "-c", "warp"]),
    ("search", &["search", "--home", "%", "\"a warp\""]),
    ("search --redact", &["search", "--home", "%", "password", "--redact"]),
    ("trace push", &["trace", "push", "@", "--dry-run", "--unfinished"]),
];

/// Measures all of it. `only` keeps the shapes whose names contain it.
pub(crate) fn measure_hostile(folder: &Path, binary: &Path, only: &str, report: &mut BenchReport) {
    let folder = folder.join("bench-hostile");
    println!(
        "hostile logs: processor time of twice the log; peak memory beyond that of a log of 1/{} of the size,\n\
         in sizes of the log. The worst command of each shape, and all that are beyond a limit.",
        SMALL * 2
    );
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(only)) {
        let units = [(shape.units / SMALL).max(2), shape.units, shape.units * 2];
        let logs = match units.map(|units| write_log(&folder, shape, units)) {
            [Ok(small), Ok(once), Ok(twice)] => [small, once, twice],
            [small, once, twice] => {
                let why =
                    [small, once, twice].into_iter().find_map(Result::err).map(|error| error.to_string());
                report.fail(shape.name, &why.unwrap_or_default());
                continue;
            }
        };
        let mut rows: Vec<(f64, f64, &str)> = Vec::new();
        for (name, args) in COMMANDS {
            let [small, once, twice] = [(&logs[0], 8), (&logs[1], 2), (&logs[2], 2)]
                .map(|(log, runs)| cost(binary, args, log, runs));
            let mut time = ratio(once.time, twice.time);
            if time > CLEAR_TIME_RATIO {
                time = precise_ratio(binary, args, [&logs[1], &logs[2]]);
            }
            // A comparison reads two logs.
            let n_logs = args.iter().filter(|arg| **arg == "@").count().max(1);
            let longer = (logs[2].bytes - logs[0].bytes) as f64 * n_logs as f64;
            rows.push((time, (twice.peak - small.peak).max(0.0) / longer, name));
        }
        let worst = |by: fn(&(f64, f64, &str)) -> f64| {
            rows.iter().max_by(|left, right| by(left).total_cmp(&by(right))).copied().unwrap_or_default()
        };
        let (slowest, largest) = (worst(|row| row.0), worst(|row| row.1));
        let size = logs[2].bytes as f64 / 1e6;
        report.at_most(
            &format!("{}, {size:.0} MB: time ({})", shape.name, slowest.2),
            slowest.0,
            MAX_TIME_RATIO,
            "×",
        );
        report.at_most(
            &format!("{}, {size:.0} MB: memory ({})", shape.name, largest.2),
            largest.1,
            MAX_MEMORY_RATIO,
            "×",
        );
        for (time, memory, name) in
            rows.iter().filter(|row| row.0 > MAX_TIME_RATIO || row.1 > MAX_MEMORY_RATIO)
        {
            println!("    {name}: {time:.2} × the time, {memory:.1} × the memory");
        }
        let _ = fs::remove_dir_all(&folder);
    }
}

/// A log in a home of its own.
struct Log {
    home: PathBuf,
    path: PathBuf,
    /// Of all of its files.
    bytes: u64,
}

fn write_log(folder: &Path, shape: &HostileShape, units: usize) -> std::io::Result<Log> {
    const ID: &str = "5e551000-0000-4000-8000-000000000001";
    let home = folder.join(units.to_string());
    let project = home.join("projects/-loom");
    fs::create_dir_all(&project)?;
    let path = project.join(format!("{ID}.jsonl"));
    let log = text(&(shape.make)(units));
    let mut bytes = log.len() as u64;
    fs::write(&path, log)?;
    for (name, text) in (shape.side_files)(units) {
        let path = project.join(ID).join(name);
        fs::create_dir_all(path.parent().unwrap_or(&project))?;
        bytes += text.len() as u64;
        fs::write(path, text)?;
    }
    Ok(Log { home, path, bytes })
}

/// The time and memory that a process used.
struct Cost {
    time: Duration,
    /// The most resident memory, in bytes.
    peak: f64,
}

/// Runs a command on a log `runs` times, and returns the mean of the times and the most memory.
fn cost(binary: &Path, args: &[&str], log: &Log, runs: u32) -> Cost {
    let before = time_of_children();
    let peaks = (0..runs).map(|_| {
        let mut command = Command::new(binary);
        command.args(args.iter().map(|arg| match *arg {
            "@" => log.path.as_os_str(),
            "%" => log.home.as_os_str(),
            other => other.as_ref(),
        }));
        run(&mut command)
    });
    let peak = peaks.fold(0.0, f64::max);
    Cost { time: time_of_children().saturating_sub(before) / runs, peak }
}

/// Returns the time that a command takes for twice the log, in times of the log: of the least of several
/// measurements, each the mean of several runs. Ends as soon as the ratio is clearly within the limit.
fn precise_ratio(binary: &Path, args: &[&str], [once, twice]: [&Log; 2]) -> f64 {
    let mut least = [Duration::MAX; 2];
    for _ in 0..PRECISE_ROUNDS {
        for (least, log) in least.iter_mut().zip([once, twice]) {
            *least = cost(binary, args, log, RUNS_PER_ROUND).time.min(*least);
        }
        if ratio(least[0], least[1]) <= CLEAR_TIME_RATIO {
            break;
        }
    }
    ratio(least[0], least[1])
}

/// Returns the time of twice the log, in times of the log.
fn ratio(once: Duration, twice: Duration) -> f64 {
    let seconds = |time: Duration| time.max(MIN_TIME).as_secs_f64();
    seconds(twice) / seconds(once)
}

/// Runs a command, and returns its peak memory.
fn run(command: &mut Command) -> f64 {
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(mut child) = child else { return f64::NAN };
    let status = format!("/proc/{}/status", child.id());
    let mut peak: f64 = 0.0;
    while let Ok(None) = child.try_wait() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let kilobytes =
            |line: &str| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok();
        peak = peak.max(text.lines().find_map(kilobytes).unwrap_or(0.0) * 1024.0);
        std::thread::sleep(Duration::from_micros(500));
    }
    peak
}

/// The processor time of all processes that this one has started and that have ended.
fn time_of_children() -> Duration {
    /// Linux counts in hundredths of a second here, on every machine.
    const TICK: Duration = Duration::from_millis(10);
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the program's name, which may have spaces and parentheses; `cutime` and `cstime` are fields 16
    // and 17.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u32 = fields.skip(13).take(2).filter_map(|field| field.parse::<u32>().ok()).sum();
    TICK * ticks
}
