//! Measures the time that hostile logs cost: it must be proportional to the log.
//!
//! Each shape is a log that made something quadratic once, or could. Every command reads it at two sizes, one
//! twice the other.
//!
//! Times are processor time of the process (user and system, all threads). A busy machine still makes some
//! runs slower than others, so a ratio that is not clearly below the limit is measured again with many
//! runs: noise disappears, superlinear work does not.

mod shape;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use self::shape::{HostileShape, SHAPES, text};
use crate::bench::BenchReport;

/// The most time that twice the log may take, in times of the log. A little more than two, for noise.
const MAX_TIME_RATIO: f64 = 2.4;
/// A larger ratio is measured again, more precisely.
const CLEAR_TIME_RATIO: f64 = 2.2;
/// The maximum number of measurements then, of which the least counts, and the number of runs of each. The
/// system counts processor time in steps of 10 ms, which is too coarse for a single run.
const PRECISE_ROUNDS: usize = 5;
const RUNS_PER_ROUND: u32 = 4;
/// Shorter times count as this much, since starting a process takes some of it.
const MIN_TIME: Duration = Duration::from_millis(50);
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
        "hostile logs: processor time of twice the log, in times of the log. The worst command of each shape,\n\
         and all that are beyond the limit."
    );
    for shape in SHAPES.iter().filter(|shape| shape.name.contains(only)) {
        let logs = [shape.units, shape.units * 2].map(|units| write_log(&folder, shape, units));
        let [once, twice] = match logs {
            [Ok(once), Ok(twice)] => [once, twice],
            [once, twice] => {
                let error = once.err().or(twice.err()).map(|error| error.to_string());
                report.fail(shape.name, &error.unwrap_or_default());
                continue;
            }
        };
        let mut rows: Vec<(f64, &str)> = Vec::new();
        for (name, args) in COMMANDS {
            let mut time = ratio(time(binary, args, &once, 2), time(binary, args, &twice, 2));
            if time > CLEAR_TIME_RATIO {
                time = precise_ratio(binary, args, [&once, &twice]);
            }
            rows.push((time, name));
        }
        let slowest = rows.iter().max_by(|left, right| left.0.total_cmp(&right.0)).copied();
        let (slowest, command) = slowest.unwrap_or_default();
        let size = twice.bytes as f64 / 1e6;
        report.at_most(&format!("{}, {size:.0} MB ({command})", shape.name), slowest, MAX_TIME_RATIO, "×");
        for (time, name) in rows.iter().filter(|row| row.0 > MAX_TIME_RATIO) {
            println!("    {name}: {time:.2} × the time");
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

/// Runs a command on a log `runs` times, and returns the mean of the times.
fn time(binary: &Path, args: &[&str], log: &Log, runs: u32) -> Duration {
    let before = time_of_children();
    for _ in 0..runs {
        let args = args.iter().map(|arg| match *arg {
            "@" => log.path.as_os_str(),
            "%" => log.home.as_os_str(),
            other => other.as_ref(),
        });
        let mut command = Command::new(binary);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // A command that fails is measured like others: its time counts.
        let _ = command.status();
    }
    time_of_children().saturating_sub(before) / runs
}

/// Returns the time that a command takes for twice the log, in times of the log: of the least of several
/// measurements, each the mean of several runs. Ends as soon as the ratio is clearly within the limit.
fn precise_ratio(binary: &Path, args: &[&str], [once, twice]: [&Log; 2]) -> f64 {
    let mut least = [Duration::MAX; 2];
    for _ in 0..PRECISE_ROUNDS {
        for (least, log) in least.iter_mut().zip([once, twice]) {
            *least = time(binary, args, log, RUNS_PER_ROUND).min(*least);
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
