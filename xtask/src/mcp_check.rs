//! Checks the MCP server with clients that others wrote, and the plugin in the real Claude Code.
//!
//! `MCP_PYTHON` is a Python interpreter with the package `mcp`, `MCP_INSPECTOR` the program `mcp-inspector`
//! of `@modelcontextprotocol/inspector`, `CLAUDE_CODE` the command of Claude Code.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use serde_json::Value;

use crate::command::binary;

const CLIENT: &str = include_str!("mcp_client.py");
const PLUGIN: &str = include_str!("plugin.py");

/// Calls of the inspector: method, tool, arguments.
const INSPECTED: [(&str, Option<&str>, &[&str]); 13] = [
    ("tools/list", None, &[]),
    ("resources/list", None, &[]),
    ("resources/templates/list", None, &[]),
    ("prompts/list", None, &[]),
    ("tools/call", Some("search_sessions"), &["query=panic"]),
    ("tools/call", Some("list_sessions"), &[]),
    ("tools/call", Some("read_session"), &["session=Overshot panic"]),
    ("tools/call", Some("read_session"), &["session=Overshot panic", "turns=-1"]),
    ("tools/call", Some("session_changes"), &["session=Overshot panic"]),
    ("tools/call", Some("find_edits"), &["file=/home/ada/loom/src/wif.rs"]),
    ("tools/call", Some("usage"), &["by=model"]),
    ("tools/call", Some("check_session"), &["session=Overshot panic"]),
    ("tools/call", Some("list_sessions"), &["words=Overshot"]),
];

/// Runs the checks of the server.
pub(crate) fn run() -> ExitCode {
    let Some(binary) = binary() else { return ExitCode::from(2) };
    let mut failed = 0;
    match std::env::var("MCP_PYTHON") {
        Ok(python) => {
            println!("package mcp, standard streams");
            let mut client = Command::new(&python);
            client.args(["-c", CLIENT]).arg(&binary).args(["--demo", "mcp"]);
            failed += usize::from(!succeeds(&mut client));
            println!("package mcp, HTTP");
            failed += usize::from(!check_http(&python, &binary));
        }
        Err(_) => println!("package mcp: skipped, MCP_PYTHON is not set (pip install mcp)"),
    }
    match std::env::var("MCP_INSPECTOR") {
        Ok(inspector) => {
            println!("inspector");
            let failures = INSPECTED.iter().filter(|call| !inspect(&inspector, &binary, call));
            failed += failures.count();
        }
        Err(_) => {
            println!(
                "inspector: skipped, MCP_INSPECTOR is not set (npm install @modelcontextprotocol/inspector)"
            );
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Runs the plugin in the real Claude Code.
pub(crate) fn run_plugin() -> ExitCode {
    let Ok(claude) = std::env::var("CLAUDE_CODE") else {
        println!("plugin: skipped, CLAUDE_CODE is not set (npm install @anthropic-ai/claude-code)");
        return ExitCode::SUCCESS;
    };
    let Some(binary) = binary() else { return ExitCode::from(2) };
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut script = Command::new("python3");
    script.args(["-c", PLUGIN, &claude]).arg(&binary).arg(repository);
    if succeeds(&mut script) { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn succeeds(command: &mut Command) -> bool {
    match command.status() {
        Ok(status) => status.success(),
        Err(error) => {
            println!("FAIL {}: {error}", command.get_program().to_string_lossy());
            false
        }
    }
}

/// A process that is killed when dropped.
struct KilledProcess(Child);

impl Drop for KilledProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn check_http(python: &str, binary: &Path) -> bool {
    let mut server = Command::new(binary);
    server.args(["--demo", "--json", "mcp", "--http"]).stdout(Stdio::piped());
    let Ok(mut server) = server.spawn().map(KilledProcess) else { return false };
    let mut address = String::new();
    let read = server.0.stdout.take().map(|stdout| BufReader::new(stdout).read_line(&mut address));
    let address: Value = serde_json::from_str(&address).unwrap_or_default();
    let (Some(Ok(_)), Some(url), Some(token)) = (read, address["url"].as_str(), address["token"].as_str())
    else {
        println!("FAIL the server prints no address: {address}");
        return false;
    };
    let mut client = Command::new(python);
    client.args(["-c", CLIENT, "http", url, token]);
    let is_served = succeeds(&mut client);
    let mut stranger = Command::new(python);
    stranger.args(["-c", CLIENT, "http", url, "wrong"]).stdout(Stdio::null()).stderr(Stdio::null());
    let is_refused = !succeeds(&mut stranger);
    println!("{} a client without the token is refused", if is_refused { "ok  " } else { "FAIL" });
    is_served && is_refused
}

/// Makes one request with the inspector.
fn inspect(inspector: &str, binary: &Path, call: &(&str, Option<&str>, &[&str])) -> bool {
    let (method, tool, arguments) = call;
    let mut command = Command::new(inspector);
    command.arg("--cli").arg(binary).args(["--demo", "mcp", "--method", method]);
    if let Some(tool) = tool {
        command.args(["--tool-name", tool]);
    }
    for argument in *arguments {
        command.args(["--tool-arg", argument]);
    }
    let output = command.output();
    let answer: Option<Value> =
        output.as_ref().ok().and_then(|output| serde_json::from_slice(&output.stdout).ok());
    let is_answered = answer.as_ref().is_some_and(|answer| match tool {
        Some(_) => answer["isError"] == false && answer["structuredContent"]["items"].is_array(),
        None => answer.as_object().is_some_and(|answer| answer.values().any(Value::is_array)),
    });
    let complaint =
        output.map(|output| String::from_utf8_lossy(&output.stderr).trim().to_owned()).unwrap_or_default();
    let is_quiet = complaint.is_empty();
    let name = tool.unwrap_or(method);
    println!("{} {name} {}", if is_answered && is_quiet { "ok  " } else { "FAIL" }, arguments.join(" "));
    if !is_answered || !is_quiet {
        println!("{}{complaint}", answer.unwrap_or_default());
    }
    is_answered && is_quiet
}
