//! A program that drives the client over its standard streams, as the SDKs do.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::chat::ChatFolders;

/// A program at the other end of a client.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// All lines of the client so far.
    lines: Vec<Value>,
}

impl Program {
    fn start(folders: &ChatFolders, api: &ScriptedApi, args: &[&str]) -> Self {
        let mut all = vec!["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        all.extend(args);
        let mut command = folders.chat(api, &all);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, lines: Vec::new() }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn prompt(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// Returns the next line that a function accepts. Messages for the server are answered.
    fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.output.read_line(&mut line).unwrap() > 0, "the client ended: {:#?}", self.lines);
            let line: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(line.clone());
            if line["request"]["subtype"] == "mcp_message" {
                let answer = server_answer(&line["request"]["message"]);
                let response = json!({"subtype": "success", "request_id": line["request_id"],
                    "response": {"mcp_response": answer}});
                self.send(&json!({"type": "control_response", "response": response}));
            }
            if is_wanted(&line) {
                return line;
            }
        }
    }

    fn result(&mut self) -> Value {
        self.wait(|line| line["type"] == "result")
    }

    /// Sends a control request and returns the response.
    fn request(&mut self, request: &Value) -> Value {
        self.send(&json!({"type": "control_request", "request_id": "r", "request": request}));
        self.wait(|line| line["type"] == "control_response")["response"].clone()
    }

    fn finish(mut self) -> Vec<Value> {
        drop(self.input.take());
        for line in self.output.lines() {
            self.lines.push(serde_json::from_str(&line.unwrap()).unwrap());
        }
        assert!(self.child.wait().unwrap().success());
        self.lines
    }
}

/// The server inside of the program.
fn server_answer(message: &Value) -> Value {
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "calc", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "add", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let arguments = &message["params"]["arguments"];
            let sum = arguments["a"].as_i64().unwrap() + arguments["b"].as_i64().unwrap();
            json!({"content": [{"type": "text", "text": sum.to_string()}]})
        }
        _ => json!({}),
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

#[test]
fn a_server_inside_of_the_program_is_used_like_others() {
    let folders = ChatFolders::new();
    let call = ScriptedReply::call("mcp__calc__add", json!({"a": 20, "b": 22}));
    let api = ScriptedApi::start(vec![call, ScriptedReply::text("42")]);
    let servers = r#"{"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#;
    let args = ["--mcp-config", servers, "--strict-mcp-config", "--allowedTools", "mcp__calc__add"];
    let mut program = Program::start(&folders, &api, &args);
    program.request(&json!({"subtype": "initialize", "hooks": null}));
    program.prompt("Add");
    program.result();
    let status = program.request(&json!({"subtype": "mcp_status"}));
    let expected = json!({"mcpServers": [{"name": "calc", "status": "connected", "scope": "dynamic",
        "tools": [{"name": "add", "annotations": {}}]}]});
    assert_eq!(status["response"], expected);
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let passed =
        program.request(&json!({"subtype": "mcp_message", "server_name": "calc", "message": changed}));
    assert_eq!(passed["subtype"], "success");
    let lines = program.finish();
    let result = lines.iter().find(|line| line["tool_use_result"] != Value::Null).unwrap();
    assert_eq!(result["tool_use_result"], json!([{"type": "text", "text": "42"}]));
}

#[test]
fn the_model_and_the_thinking_change_with_the_next_prompt() {
    let folders = ChatFolders::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("One"), ScriptedReply::text("Two")]);
    let mut program = Program::start(&folders, &api, &["--model", "claude-sonnet-4-5"]);
    program.prompt("First");
    program.result();
    assert_eq!(
        program.request(&json!({"subtype": "set_model", "model": "claude-haiku-4-5"}))["subtype"],
        "success"
    );
    program.request(&json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 0}));
    program.prompt("Second");
    program.result();
    let usage = program.request(&json!({"subtype": "get_context_usage"}))["response"].clone();
    assert_eq!((&usage["model"], usage["maxTokens"].as_u64()), (&json!("claude-haiku-4-5"), Some(200_000)));
    let lines = program.finish();
    let models: Vec<&Value> =
        lines.iter().filter(|line| line["subtype"] == "init").map(|line| &line["model"]).collect();
    assert_eq!(models, ["claude-sonnet-4-5", "claude-haiku-4-5"]);
    let replay = lines.iter().find(|line| line["isReplay"] == true).unwrap();
    let text = "<local-command-stdout>Set model to claude-haiku-4-5</local-command-stdout>";
    assert_eq!(replay["message"]["content"], text);
    assert_eq!(api.requests()[1].body["thinking"], Value::Null);
}

#[test]
fn a_program_cannot_turn_all_questions_off_by_itself() {
    let bypass = json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"});
    let error = |settings: &str, args: &[&str]| {
        let folders = ChatFolders::new();
        std::fs::write(folders.home().join("settings.json"), settings).unwrap();
        let api = ScriptedApi::start(Vec::new());
        let mut program = Program::start(&folders, &api, args);
        program.request(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
        let answer = program.request(&bypass);
        program.finish();
        answer["error"].as_str().unwrap_or_default().to_owned()
    };
    let start = ["--permission-mode", "bypassPermissions"];
    assert!(error("{}", &[]).ends_with("not launched with --dangerously-skip-permissions"));
    assert_eq!(error("{}", &start), "");
    let disabled = r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#;
    assert!(error(disabled, &start).ends_with("disabled by settings or configuration"));
    assert!(error(disabled, &[]).ends_with("disabled by settings or configuration"));
}

#[test]
fn kinds_of_sub_agents_come_with_the_first_request_and_others_are_refused_by_name() {
    let folders = ChatFolders::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("One")]);
    let mut program = Program::start(&folders, &api, &[]);
    let agents = json!({"reviewer": {"description": "Reviews", "prompt": "You review"}});
    let answer = program.request(&json!({"subtype": "initialize", "hooks": null, "agents": agents}));
    let listed = answer["response"]["agents"].as_array().unwrap();
    assert!(listed.contains(&json!({"name": "reviewer", "description": "Reviews"})), "{listed:?}");
    let refused = program.request(&json!({"subtype": "stop_task", "task_id": "x"}));
    assert_eq!(refused["error"], "`stop_task` is not supported");
    program.prompt("Go");
    program.result();
    let lines = program.finish();
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert!(init["agents"].as_array().unwrap().contains(&json!("reviewer")));
    assert!(api.requests()[0].body["tools"].to_string().contains("reviewer"));
}

#[test]
fn files_are_rewound_to_a_prompt() {
    let folders = ChatFolders::new();
    let write =
        |content: &str| ScriptedReply::call("Write", json!({"file_path": "a.txt", "content": content}));
    let done = || ScriptedReply::text("Done");
    let api = ScriptedApi::start(vec![write("one\n"), done(), write("two\n"), done()]);
    let args = ["--permission-mode", "acceptEdits", "--replay-user-messages"];
    let mut program = Program::start(&folders, &api, &args);
    let mut prompts = Vec::new();
    for prompt in ["First", "Second"] {
        program.prompt(prompt);
        let replayed = program.wait(|line| line["message"]["content"] == prompt);
        prompts.push(replayed["uuid"].clone());
        program.result();
    }
    let file = folders.work().join("a.txt");
    let mut rewind = |id: &Value, is_dry_run: bool| {
        let request = json!({"subtype": "rewind_files", "user_message_id": id, "dry_run": is_dry_run});
        let answer = program.request(&request);
        (answer["response"].clone(), answer["error"].clone(), std::fs::read_to_string(&file).ok())
    };
    let (dry, error, content) = rewind(&prompts[1], true);
    assert_eq!(error, Value::Null);
    assert_eq!(dry, json!({"canRewind": true, "filesChanged": [folders.work().join("a.txt")]}));
    assert_eq!(content.as_deref(), Some("two\n"));
    assert_eq!(rewind(&prompts[1], false).2.as_deref(), Some("one\n"));
    assert_eq!(rewind(&prompts[0], false).2, None);
    assert_eq!(rewind(&json!("x"), false).1, "No file checkpoint found for this message.");
    program.finish();
}
