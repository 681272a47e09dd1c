//! `mcp`: the protocol on stdin and stdout, its scope, and its entry in Claude Code's configuration.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, command};

const SECRET: &str = concat!("ghp", "_wJ4kQ8nZ2xV6bT1mR5yL9cH3sD7fG0pA4eK8");

/// Calls a tool of the server, and returns its result.
pub(crate) fn call(command: &mut Command, tool: &str, arguments: &Value) -> Value {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let client = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let requests = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
    ];
    let mut stdin = child.stdin.take().unwrap();
    for request in requests {
        writeln!(stdin, "{request}").unwrap();
    }
    // The server ends when its input does, so the answers come first.
    let mut stdout = child.stdout.take().unwrap();
    let mut output = Vec::new();
    while output.iter().filter(|byte| **byte == b'\n').count() < 2 {
        let mut buffer = [0; 4096];
        let count = stdout.read(&mut buffer).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&output));
        output.extend_from_slice(&buffer[..count]);
    }
    drop(stdin);
    stdout.read_to_end(&mut output).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), String::from_utf8_lossy(&done.stderr).as_ref()), (Some(0), ""));
    let lines: Vec<Value> =
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines.len(), &lines[0]["id"], &lines[1]["id"]), (2, &json!(1), &json!(2)));
    assert_eq!(lines[0]["result"]["serverInfo"]["name"], "threadline");
    lines[1]["result"].clone()
}

fn at(home: &TestHome, args: &[&str]) -> Command {
    command([&["--home", home.root().to_str().unwrap()], args].concat())
}

#[test]
fn the_samples_are_served_on_standard_streams() {
    let result = call(&mut command(["--demo", "mcp"]), "list_sessions", &json!({}));
    assert_eq!(result["structuredContent"]["total"], 11, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("11 sessions"), "{result}");
}

#[test]
fn a_client_that_says_nothing_ends_the_server() {
    let run = RunOutput::of(&mut command(["--demo", "mcp"]));
    assert_eq!((run.code, &*run.out, &*run.err), (0, "", ""));
}

#[test]
fn the_scope_is_the_repository_of_the_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let project = std::fs::canonicalize(dir.path()).unwrap();
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir(project.join("src")).unwrap();
    let home = TestHome::new();
    home.session_in(project.to_str().unwrap(), "inside", &format!("u1 user \"key {SECRET}\""));
    home.session("outside", "u1 user \"weave\"");
    let list = |args: &[&str]| {
        let mut command = at(&home, &[&["mcp"], args].concat());
        let result = call(command.current_dir(project.join("src")), "list_sessions", &json!({}));
        let items = result["structuredContent"]["items"].as_array().unwrap().clone();
        let mut ids: Vec<String> = items.iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        (ids, result.to_string())
    };
    let (inside, outside) = (session_uuid("inside"), session_uuid("outside"));
    let mut both = vec![inside.clone(), outside.clone()];
    both.sort();
    let (ids, text) = list(&[]);
    assert_eq!(ids, [&*inside]);
    assert!(!text.contains(SECRET) && text.contains("[secret:github-token"), "{text}");
    assert_eq!(list(&["--all"]).0, both);
    assert_eq!(list(&["--project", "ada/loom"]).0, [outside]);
    assert_eq!(list(&["--project", ".."]).0, [inside]);
    assert!(list(&["--no-redact"]).1.contains(SECRET));
}

#[test]
fn an_archive_is_served_like_a_home() {
    let (home, dir) = (TestHome::new(), tempfile::tempdir().unwrap());
    let log = home.session("slow", "u1 user \"why is the loom slow?\"\na1 <- u1 reply m1 text \"A knot.\"");
    home.session("warp", "u1 user \"count the warp\"");
    let url = format!("file:{}", dir.path().join("archive").display());
    let push = RunOutput::of(&mut at(&home, &["archive", "push", "--to", &url]));
    assert_eq!(push.code, 0, "{push}");
    std::fs::remove_file(log).unwrap();
    let serve = |tool: &str, arguments: &Value| {
        let mut command = at(&home, &["mcp", "--from", &url]);
        call(command.env("XDG_CACHE_HOME", dir.path().join("cache")), tool, arguments)
    };
    let listed = serve("list_sessions", &json!({}));
    assert_eq!(listed["structuredContent"]["total"], 2, "{listed}");
    let found = serve("search_sessions", &json!({ "query": "knot" }));
    assert!(found["content"][0]["text"].as_str().unwrap().contains(&session_uuid("slow")), "{found}");
    let read = serve("read_session", &json!({ "session": session_uuid("slow") }));
    assert_eq!((&read["structuredContent"]["turns"], &read["isError"]), (&json!(1), &json!(false)), "{read}");
}

const CONFIG: &str = "{\n  \"numStartups\": 3,\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  },\n  \"projects\": { \"/a\": {\"mcpServers\": {}} }\n}\n";

#[test]
fn install_and_uninstall_change_only_our_server() {
    let home = TestHome::new();
    let path = home.file(".claude.json", CONFIG);
    let read = || std::fs::read_to_string(&path).unwrap();
    let run = |args: &[&str]| crate::run::at_home(&home, args);
    let shown = run(&["mcp", "install", "--all"]);
    assert_eq!((shown.code, read()), (0, CONFIG.to_owned()), "{shown}");
    assert!(shown.out.contains("+    \"threadline\": { \"type\": \"stdio\", \"command\": "), "{shown}");
    assert_eq!(run(&["mcp", "install", "--all", "--apply"]).code, 0);
    let config: Value = serde_json::from_str(&read()).unwrap();
    assert_eq!(config["mcpServers"]["threadline"]["args"], json!(["mcp", "--home", home.root(), "--all"]));
    assert_eq!(config["mcpServers"]["other"], json!({ "command": "x" }));
    assert!(run(&["mcp", "install", "--all", "--apply"]).out.contains(": no changes"));
    // The installed command is that of a server.
    let entry = &config["mcpServers"]["threadline"];
    assert_eq!(entry["command"], env!("CARGO_BIN_EXE_threadline"));
    assert_eq!(run(&["mcp", "uninstall", "--apply"]).code, 0);
    assert_eq!(read(), CONFIG);
    assert!(run(&["mcp", "uninstall", "--apply"]).out.contains(": no changes"));
    std::fs::remove_file(&path).unwrap();
    run(&["mcp", "install", "--apply"]);
    run(&["mcp", "uninstall", "--apply"]);
    assert!(!path.exists());
}

#[test]
fn a_project_file_names_the_program_without_its_path() {
    let home = TestHome::new();
    let dir = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| RunOutput::of(at(&home, args).current_dir(dir.path()));
    let done = run(&["mcp", "install", "--scope", "project", "--apply", "--json"]);
    assert_eq!((done.code, &done.json()["applied"]), (0, &json!(true)), "{done}");
    let path = dir.path().join(".mcp.json");
    let config: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert_eq!(config["mcpServers"]["threadline"]["command"], "threadline");
    assert_eq!(config["mcpServers"]["threadline"]["args"], json!(["mcp", "--home", home.root()]));
    run(&["mcp", "uninstall", "--scope", "project", "--apply"]);
    assert!(!path.exists());
}

#[test]
fn samples_and_archives_are_not_installed() {
    let home = TestHome::new();
    let from = crate::run::at_home(&home, &["--from", "/archive", "mcp", "install"]);
    assert!(from.code != 0 && from.err.contains("threadline mcp --from /archive"), "{from}");
    let demo = crate::run::threadline(["--demo", "mcp", "install"]);
    assert!(demo.code != 0 && demo.err.contains("omit --demo"), "{demo}");
    let path = home.file(".claude.json", "{\"mcpServers\":{\"threadline\":{\"command\":\"npx\"}}}");
    let kept = crate::run::at_home(&home, &["mcp", "uninstall", "--apply"]);
    assert!(kept.code != 0 && kept.err.contains("is another program"), "{kept}");
    assert!(path.exists());
}
