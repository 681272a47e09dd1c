//! Sends real sessions to MLflow and Phoenix, and compares the stored spans with the expected ones.
//!
//! `MLFLOW` and `PHOENIX` are the `bin` folders of virtual environments with `mlflow==3.17.2` and
//! `arize-phoenix`. The sessions are from the corpus in `THREADLINE_SHARED`; the argument is about how many,
//! spread over all sizes.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::LogFiles;

const READER: &str = include_str!("receivers.py");

/// The compared fields of a span: parent, start, end, whether it failed, session, input and output tokens.
type SpanFields = (Option<String>, i64, i64, bool, String, Option<u64>, Option<u64>);

pub(crate) fn run(args: &[&str]) -> ExitCode {
    let count = args.first().and_then(|count| count.parse().ok()).unwrap_or(12);
    let Some(binary) = std::env::current_exe().ok().map(|own| own.with_file_name("threadline")) else {
        return ExitCode::from(2);
    };
    let sessions = sessions(count);
    if sessions.is_empty() || !binary.exists() {
        eprintln!("needs sessions in THREADLINE_SHARED, and threadline next to xtask");
        return ExitCode::from(2);
    }
    let mut good = true;
    for kind in ["mlflow", "phoenix"] {
        match std::env::var_os(kind.to_uppercase()) {
            Some(bin) => match run_receiver(kind, Path::new(&bin), &binary, &sessions) {
                Ok(report) => println!("{report}"),
                Err(report) => {
                    good = false;
                    println!("{kind}: {report}");
                }
            },
            None => println!("{kind}: skipped, {} is not set", kind.to_uppercase()),
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn sessions(count: usize) -> Vec<PathBuf> {
    let shared =
        std::env::var_os("THREADLINE_SHARED").map_or_else(|| PathBuf::from("../shared"), PathBuf::from);
    let mut files = LogFiles::in_folder(&shared.join("corpus")).files;
    files.retain(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        !name.starts_with("agent-") && name != "journal.jsonl"
    });
    files.sort_by_key(|path| fs::metadata(path).map_or(0, |metadata| metadata.len()));
    // Some of every size.
    let step = (files.len() / count.max(1)).max(1);
    files.into_iter().step_by(step).collect()
}

/// A server process, which is stopped when dropped.
struct ReceiverProcess(Child);

impl Drop for ReceiverProcess {
    fn drop(&mut self) {
        // MLflow starts child processes, so the whole process group is stopped. It may have ended already.
        let group = format!("-{}", self.0.id());
        let _ = Command::new("kill").args(["-TERM", "--", &group]).status();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run_receiver(kind: &str, bin: &Path, binary: &Path, sessions: &[PathBuf]) -> Result<String, String> {
    let dir = std::env::temp_dir().join(format!("threadline-receivers-{kind}-{}", std::process::id()));
    fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    let port = free_port()?;
    let _server = start(kind, bin, port, &dir)?;
    let url = format!("http://127.0.0.1:{port}");
    let expected = expected(binary, sessions)?;
    let mut report = String::new();
    // Sending the same spans again must change nothing.
    for again in [false, true] {
        push(kind, binary, sessions, &url, &dir, again)?;
        let stored = read_back(kind, bin, &url, &dir, expected.len())?;
        let wrong: Vec<String> = compare(&expected, &stored);
        report = format!(
            "{kind}: {} sessions, {} spans sent{}, {} stored, {} differences",
            sessions.len(),
            expected.len(),
            if again { " twice" } else { "" },
            stored.len(),
            wrong.len()
        );
        if !wrong.is_empty() {
            return Err(format!("{report}\n{}", wrong[..wrong.len().min(12)].join("\n")));
        }
    }
    let _ = fs::remove_dir_all(&dir);
    Ok(report)
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}

fn start(kind: &str, bin: &Path, port: u16, dir: &Path) -> Result<ReceiverProcess, String> {
    let log = fs::File::create(dir.join("server.log")).map_err(|error| error.to_string())?;
    let again = log.try_clone().map_err(|error| error.to_string())?;
    let mut command = Command::new(bin.join("python"));
    match kind {
        "mlflow" => {
            let store = format!("sqlite:///{}", dir.join("mlflow.db").display());
            command.args(["-m", "mlflow", "server", "--host", "127.0.0.1", "--port", &port.to_string()]);
            command.args(["--workers", "1", "--backend-store-uri", &store]);
        }
        _ => {
            command.args(["-m", "phoenix.server.main", "serve"]);
            command.env("PHOENIX_HOST", "127.0.0.1").env("PHOENIX_PORT", port.to_string());
            command.env("PHOENIX_GRPC_PORT", free_port()?.to_string()).env("PHOENIX_WORKING_DIR", dir);
            command.env("PHOENIX_TELEMETRY_ENABLED", "false");
        }
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let child = command.current_dir(dir).stdin(Stdio::null()).stdout(log).stderr(again).spawn();
    let server = ReceiverProcess(child.map_err(|error| format!("{}: {error}", bin.display()))?);
    let until = Instant::now() + Duration::from_secs(240);
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if Instant::now() > until {
            return Err(format!("did not start; see {}", dir.join("server.log").display()));
        }
        std::thread::sleep(Duration::from_millis(500));
    }
    std::thread::sleep(Duration::from_secs(5));
    Ok(server)
}

fn push(
    kind: &str,
    binary: &Path,
    sessions: &[PathBuf],
    url: &str,
    dir: &Path,
    again: bool,
) -> Result<(), String> {
    let mut command = Command::new(binary);
    command.args(["trace", "push", "--unfinished", "--preset", "otlp", "--endpoint", url]).args(sessions);
    command.env("XDG_STATE_HOME", dir.join("state")).env("OTEL_EXPORTER_OTLP_TIMEOUT", "120000");
    if kind == "mlflow" {
        command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-mlflow-experiment-id=0");
    }
    if again {
        command.arg("--again");
    }
    let done = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

/// Returns the expected spans, from the output of a dry run.
fn expected(binary: &Path, sessions: &[PathBuf]) -> Result<BTreeMap<String, SpanFields>, String> {
    let mut command = Command::new(binary);
    command.args(["--json", "trace", "push", "--unfinished", "--dry-run"]).args(sessions);
    let done = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
    let mut spans = BTreeMap::new();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let tokens = &line["tokens"];
        let of = |key: &str| tokens[key].as_u64().unwrap_or(0);
        let input = tokens.is_object().then(|| of("input") + of("cache_read") + of("cache_write"));
        let fields = (
            line["parent"].as_str().map(str::to_owned),
            millis(&text("started_at"))?,
            millis(&text("ended_at"))?,
            !line["error"].is_null(),
            text("session"),
            input,
            tokens["output"].as_u64(),
        );
        spans.insert(format!("{}/{}", text("trace"), text("span")), fields);
    }
    Ok(spans)
}

fn millis(text: &str) -> Result<i64, String> {
    text.parse::<jiff::Timestamp>().map(|at| at.as_millisecond()).map_err(|error| format!("{text}: {error}"))
}

/// Returns the stored spans.
///
/// A receiver may accept spans long before it stores them: reading ends when no more arrive for a minute.
fn read_back(
    kind: &str,
    bin: &Path,
    url: &str,
    dir: &Path,
    count: usize,
) -> Result<BTreeMap<String, SpanFields>, String> {
    let script = dir.join("read.py");
    fs::write(&script, READER).map_err(|error| error.to_string())?;
    let (mut until, mut most) = (Instant::now() + Duration::from_secs(60), 0);
    loop {
        let mut command = Command::new(bin.join("python"));
        let done = command.arg(&script).args([kind, url]).stdin(Stdio::null()).output();
        let done = done.map_err(|error| error.to_string())?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
        let mut spans = BTreeMap::new();
        for line in String::from_utf8_lossy(&done.stdout).lines().filter(|line| line.starts_with('{')) {
            let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let fields = (
                line["parent"].as_str().map(str::to_owned),
                line["start"].as_i64().unwrap_or(0),
                line["end"].as_i64().unwrap_or(0),
                line["error"].as_bool().unwrap_or(false),
                text("session"),
                line["input"].as_u64(),
                line["output"].as_u64(),
            );
            let id = format!("{}/{}", text("otel"), text("span"));
            if spans.insert(id.clone(), fields).is_some() {
                return Err(format!("{id} is stored twice"));
            }
        }
        if spans.len() >= count || Instant::now() > until {
            return Ok(spans);
        }
        if spans.len() > most {
            (until, most) = (Instant::now() + Duration::from_secs(60), spans.len());
        }
        std::thread::sleep(Duration::from_secs(2));
    }
}

fn compare(expected: &BTreeMap<String, SpanFields>, stored: &BTreeMap<String, SpanFields>) -> Vec<String> {
    let mut wrong = Vec::new();
    for (id, fields) in expected {
        match stored.get(id) {
            None => wrong.push(format!("{id} is missing")),
            Some(other) if other != fields => wrong.push(format!("{id}: {fields:?} became {other:?}")),
            Some(_) => {}
        }
    }
    wrong.extend(
        stored.keys().filter(|id| !expected.contains_key(*id)).map(|id| format!("{id} is unexpected")),
    );
    wrong
}
