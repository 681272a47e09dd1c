//! Benchmarks the MCP server on a large home, as a client sees it.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::bench::{BenchReport, LogFiles, measure};

/// The limits of `search_sessions` and `read_session` in milliseconds.
const SEARCH_LIMIT: f64 = 300.0;
const READ_LIMIT: f64 = 100.0;

/// The number of sessions that are read for the first time.
const COLD_SESSIONS: usize = 12;

/// The number of servers that read the largest session.
const LARGEST_ROUNDS: usize = 5;

/// A running server and its client.
struct McpProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl McpProcess {
    fn start(binary: &Path, home: &Path) -> Option<Self> {
        let mut command = Command::new(binary);
        command.arg("--home").arg(home).args(["mcp", "--all"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let (input, output) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        let mut process = Self { child, input, output, next_id: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        process.request("initialize", &params)?;
        writeln!(process.input, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .ok()?;
        Some(process)
    }

    /// Sends a request and returns its result.
    fn request(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        writeln!(self.input, "{request}").ok()?;
        let mut line = String::new();
        self.output.read_line(&mut line).ok()?;
        let answer: Value = serde_json::from_str(&line).ok()?;
        (answer["id"] == self.next_id).then(|| answer["result"].clone())
    }

    /// Calls a tool that must succeed.
    fn call(&mut self, tool: &str, arguments: &Value) -> Option<Value> {
        let result = self.request("tools/call", &json!({ "name": tool, "arguments": arguments }))?;
        (result["isError"] == false).then(|| result["structuredContent"].clone())
    }
}

impl Drop for McpProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Measures calls of the server.
pub(crate) fn measure_mcp(home: &Path, binary: &Path, report: &mut BenchReport) {
    let logs = LogFiles::in_folder(&home.join("projects"));
    println!("MCP server on {} files, {:.1} GB", logs.files.len(), logs.bytes as f64 / 1e9);
    let Some(mut server) = McpProcess::start(binary, home) else {
        return report.fail("MCP server", "it does not start");
    };
    let mut is_complete = true;
    for (what, query) in [
        ("search_sessions for a rare word", "drawloom"),
        ("search_sessions for a word without matches", "quixotic"),
        ("search_sessions for two words and a field", "drawloom shuttle kind:reply"),
    ] {
        let mut search = || {
            is_complete &= server.call("search_sessions", &json!({ "query": query })).is_some();
        };
        let [time] = measure([&mut search]);
        report.at_most(what, milliseconds(time), SEARCH_LIMIT, "ms");
    }
    let newest = json!({ "query": "the", "sort": "newest", "per_session": 1 });
    let mut search = || is_complete &= server.call("search_sessions", &newest).is_some();
    let [time] = measure([&mut search]);
    report.at_most(
        "search_sessions for a word of every line, newest first",
        milliseconds(time),
        SEARCH_LIMIT,
        "ms",
    );
    measure_reads(&mut server, &logs, report, &mut is_complete);
    drop(server);
    measure_largest(home, binary, &logs, report, &mut is_complete);
    if !is_complete {
        report.fail("MCP server", "a call failed");
    }
}

fn measure_reads(server: &mut McpProcess, logs: &LogFiles, report: &mut BenchReport, is_complete: &mut bool) {
    // The largest first.
    let ids: Vec<&str> = logs.files.iter().filter_map(|log| log.file_stem()?.to_str()).collect();
    if ids.is_empty() {
        *is_complete = false;
        return;
    }
    let mut read_first = |id: &str| {
        let start = Instant::now();
        *is_complete &= server.call("read_session", &json!({ "session": id })).is_some();
        start.elapsed()
    };
    // The middle one of each twelfth of the sessions.
    let at = |n: usize| (2 * n + 1) * ids.len() / (2 * COLD_SESSIONS);
    let slowest = (0..COLD_SESSIONS).map(|n| read_first(ids[at(n)])).max().unwrap_or_default();
    report.at_most(
        "read_session, first outline, slowest of 12 sessions of all sizes",
        milliseconds(slowest),
        READ_LIMIT,
        "ms",
    );
    for (what, arguments) in [
        ("read_session, outline again", json!({ "session": ids[0] })),
        ("read_session, one turn", json!({ "session": ids[0], "turns": "-1", "detail": "full" })),
        ("read_session, one item", json!({ "session": ids[0], "item": "m1" })),
    ] {
        let mut read = || *is_complete &= server.call("read_session", &arguments).is_some();
        let [time] = measure([&mut read]);
        report.at_most(what, milliseconds(time), READ_LIMIT, "ms");
    }
}

/// Measures the first outline of the largest session: the best of several servers, since each reads it only
/// once.
fn measure_largest(
    home: &Path,
    binary: &Path,
    logs: &LogFiles,
    report: &mut BenchReport,
    is_complete: &mut bool,
) {
    let Some(largest) = logs.files.first() else { return };
    let size = std::fs::metadata(largest).map_or(0, |metadata| metadata.len());
    let arguments = json!({ "session": largest.file_stem().and_then(|id| id.to_str()) });
    let first_outline = || {
        let mut server = McpProcess::start(binary, home)?;
        // The server also prepares itself for searches when it starts.
        server.call("search_sessions", &json!({ "query": "quixotic" }))?;
        let start = Instant::now();
        server.call("read_session", &arguments)?;
        Some(start.elapsed())
    };
    let times: Vec<Duration> = (0..LARGEST_ROUNDS).filter_map(|_| first_outline()).collect();
    *is_complete &= times.len() == LARGEST_ROUNDS;
    report.at_most(
        &format!("read_session, first outline of the largest session, {:.0} MB", size as f64 / 1e6),
        times.iter().min().map_or(f64::INFINITY, |time| milliseconds(*time)),
        READ_LIMIT,
        "ms",
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
