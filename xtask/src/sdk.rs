//! Streams from the scripted API with the official SDKs, and compares the messages that they build with ours.
//!
//! `ANTHROPIC_PYTHON` is a Python interpreter with the package `anthropic`, and `ANTHROPIC_NODE` a folder
//! with `node_modules/@anthropic-ai/sdk`.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};
use threadline_api::{ApiConfig, Auth, Client, Message, MessagesRequest};
use threadline_cancel::CancelToken;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

const PYTHON: &str = include_str!("sdk.py");
const NODE: &str = include_str!("sdk.mjs");

pub(crate) fn run() -> ExitCode {
    let expected = match own_messages() {
        Ok(messages) => messages,
        Err(error) => {
            println!("threadline: {error}");
            return ExitCode::from(1);
        }
    };
    println!("threadline: {} messages", expected.len());
    let mut is_good = true;
    for (name, variable) in
        [("anthropic (PyPI)", "ANTHROPIC_PYTHON"), ("@anthropic-ai/sdk (npm)", "ANTHROPIC_NODE")]
    {
        let Some(path) = std::env::var_os(variable).map(PathBuf::from) else {
            println!("{name}: skipped, {variable} is not set");
            continue;
        };
        let messages =
            if variable == "ANTHROPIC_NODE" { node_messages(&path) } else { python_messages(&path) };
        match messages.and_then(|messages| compare(&expected, &messages)) {
            Ok(count) => println!("{name}: {count} messages, all equal"),
            Err(error) => {
                is_good = false;
                println!("{name}: {error}");
            }
        }
    }
    if is_good { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Replies of every kind that the scripted API can stream.
fn script() -> Vec<ScriptedReply> {
    let call = |name: &str, input: Value| json!({"type": "tool_use", "name": name, "input": input});
    let text = |text: &str| json!({"type": "text", "text": text});
    let stopped = |blocks, stop_reason| ScriptedReply::Message { blocks, stop_reason: Some(stop_reason) };
    vec![
        ScriptedReply::text("Hello."),
        ScriptedReply::text("Größe 👍 \"quoted\" \\ and\nlines"),
        ScriptedReply::blocks(vec![ScriptedReply::thinking("Let me see."), text("Done.")]),
        ScriptedReply::blocks(vec![
            json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
            text("Reading."),
            call("Read", json!({"file_path": "/a", "limit": 3})),
            call("Bash", json!({"command": "echo \"x\"", "nested": {"list": [1, 2.5, null, true]}})),
        ]),
        ScriptedReply::call("Empty", json!({})),
        stopped(vec![text("Cut off")], "max_tokens"),
        stopped(vec![text("Paused")], "pause_turn"),
        stopped(vec![text("No.")], "refusal"),
        stopped(vec![text("Stop")], "stop_sequence"),
        ScriptedReply::blocks(Vec::new()),
    ]
}

/// The messages that our own client builds.
fn own_messages() -> Result<Vec<Value>, String> {
    let api = ScriptedApi::start(script());
    let mut config = ApiConfig::new(Auth::ApiKey("sk-test".to_owned()));
    config.base_url = api.url();
    let client = Client::new(config).map_err(|error| error.to_string())?;
    let mut request = MessagesRequest::new("claude-sonnet-4-5", 1024);
    request.messages.push(Message::user_text("Hello"));
    let send = |_| {
        let reply =
            client.send(&request, &CancelToken::new(), &mut |_| {}).map_err(|error| error.to_string())?;
        let mut message = reply.message.clone();
        message.set("content", &reply.blocks);
        serde_json::from_str(&message.to_json()).map_err(|error| error.to_string())
    };
    (0..script().len()).map(send).collect()
}

fn python_messages(python: &Path) -> Result<Vec<Value>, String> {
    let api = ScriptedApi::start(script());
    let mut command = Command::new(python);
    command.args(["-c", PYTHON, &api.url(), &script().len().to_string()]);
    messages(command)
}

fn node_messages(folder: &Path) -> Result<Vec<Value>, String> {
    let api = ScriptedApi::start(script());
    // Node looks for packages next to the script.
    let file = folder.join("threadline-sdk-check.mjs");
    std::fs::write(&file, NODE).map_err(|error| error.to_string())?;
    let mut command = Command::new("node");
    command.arg(&file).args([&api.url(), &script().len().to_string()]);
    let messages = messages(command);
    let _ = std::fs::remove_file(&file);
    messages
}

fn messages(mut command: Command) -> Result<Vec<Value>, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).map_err(|error| error.to_string())).collect()
}

/// Compares messages without the members that only an SDK adds.
fn compare(expected: &[Value], found: &[Value]) -> Result<usize, String> {
    if expected.len() != found.len() {
        return Err(format!("{} messages, {} expected", found.len(), expected.len()));
    }
    for (i, (expected, found)) in expected.iter().zip(found).enumerate() {
        let found = without_additions(found, expected);
        if *expected != found {
            return Err(format!("message {i} differs:\n  ours   {expected}\n  theirs {found}"));
        }
    }
    Ok(found.len())
}

/// Removes members that the other value does not have and that are empty: defaults and helpers of the SDK.
fn without_additions(value: &Value, other: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(key, value)| other.get(key).is_some() || !value.is_null())
            .map(|(key, value)| (key.clone(), without_additions(value, &other[key])))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(i, item)| without_additions(item, &other[i])).collect()
        }
        _ => value.clone(),
    }
}
