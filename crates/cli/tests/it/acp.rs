//! The client as the agent of an editor.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::chat::ChatFolders;
use crate::run::command;

struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
    updates: Vec<Value>,
    /// The option that is chosen for each question; `None` leaves it open.
    choice: Option<&'static str>,
    questions: Vec<Value>,
}

impl Editor {
    fn start(folders: &ChatFolders, api: &ScriptedApi) -> Self {
        let mut child = command(["chat", "--acp"].iter());
        child
            .env("CLAUDE_CONFIG_DIR", folders.home())
            .env("CLAUDE_CODE_TMPDIR", folders.work().join("../tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("ANTHROPIC_BASE_URL", api.url())
            .env("ANTHROPIC_API_KEY", "sk-test");
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (updates, questions) = (Vec::new(), Vec::new());
        Self { child, input, output, next_id: 0, updates, choice: Some("allow"), questions }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request without waiting. Returns its id.
    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// Reads the next message, and answers questions.
    fn read(&mut self) -> Value {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).unwrap() > 0, "the agent ended");
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "session/update" {
            self.updates.push(message["params"]["update"].clone());
        } else if message["method"] == "session/request_permission" {
            self.questions.push(message["params"].clone());
            if let Some(choice) = self.choice {
                let outcome = json!({"outcome": {"outcome": "selected", "optionId": choice}});
                self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
            }
        }
        message
    }

    fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.read();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.request(method, params);
        assert_eq!(answer["error"], Value::Null, "{answer}");
        answer["result"].take()
    }

    fn new_session(&mut self, folders: &ChatFolders) -> String {
        let params = json!({"cwd": folders.work(), "mcpServers": []});
        self.result("session/new", params)["sessionId"].as_str().unwrap().to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> Value {
        self.result("session/prompt", prompt(session, text))["stopReason"].take()
    }

    fn kinds(&self) -> Vec<&str> {
        self.updates.iter().map(|update| update["sessionUpdate"].as_str().unwrap()).collect()
    }

    fn finish(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn write_call(file: &str) -> ScriptedReply {
    ScriptedReply::call("Write", json!({"file_path": file, "content": "hello"}))
}

#[test]
fn a_prompt_streams_updates_and_asks_about_calls() {
    let folders = ChatFolders::new();
    let done = || ScriptedReply::text("Done.");
    let api = ScriptedApi::start(vec![
        write_call("a.txt"),
        done(),
        write_call("b.txt"),
        done(),
        write_call("c.txt"),
        done(),
    ]);
    let mut editor = Editor::start(&folders, &api);
    let started = editor.result("initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    assert_eq!(
        (&started["protocolVersion"], &started["agentCapabilities"]["loadSession"]),
        (&json!(1), &json!(true))
    );
    let session = editor.new_session(&folders);
    assert_eq!(editor.prompt(&session, "Write"), "end_turn");
    assert_eq!(std::fs::read_to_string(folders.work().join("a.txt")).unwrap(), "hello");
    let expected = ["available_commands_update", "tool_call", "tool_call_update", "tool_call_update"];
    assert_eq!(editor.kinds()[..4], expected);
    assert_eq!(editor.updates.last().unwrap()["sessionUpdate"], "agent_message_chunk");
    let options = &editor.questions[0]["options"];
    let kinds: Vec<&Value> = options.as_array().unwrap().iter().map(|option| &option["kind"]).collect();
    assert_eq!(kinds, ["allow_once", "allow_always", "reject_once"]);
    editor.choice = Some("reject");
    editor.prompt(&session, "Again");
    assert!(!folders.work().join("b.txt").exists());
    editor.choice = Some("always");
    editor.prompt(&session, "Once more");
    assert!(folders.work().join("c.txt").exists());
    // The suggestion was another mode, which the editor shows.
    assert!(editor.updates.iter().any(|update| update["currentModeId"] == "acceptEdits"));
    editor.finish();
}

#[test]
fn a_turn_is_cancelled_while_a_question_is_open() {
    let folders = ChatFolders::new();
    let api = ScriptedApi::start(vec![write_call("a.txt"), ScriptedReply::text("After.")]);
    let mut editor = Editor::start(&folders, &api);
    let session = editor.new_session(&folders);
    editor.choice = None;
    let id = editor.begin("session/prompt", prompt(&session, "Write"));
    while editor.read()["method"] != "session/request_permission" {}
    let second = editor.request("session/prompt", prompt(&session, "Too early"));
    assert_eq!(second["error"]["code"], -32600);
    editor.send(&json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}}));
    assert_eq!(editor.answer(id)["result"]["stopReason"], "cancelled");
    assert_eq!(editor.prompt(&session, "Go on"), "end_turn");
    assert!(!folders.work().join("a.txt").exists());
    editor.finish();
}

#[test]
fn sessions_are_listed_loaded_resumed_forked_and_closed() {
    let folders = ChatFolders::new();
    let api = ScriptedApi::start(["One.", "Two.", "Three."].map(ScriptedReply::text).into());
    let mut editor = Editor::start(&folders, &api);
    let session = editor.new_session(&folders);
    editor.prompt(&session, "First");
    let open = json!({"sessionId": session, "cwd": folders.work(), "mcpServers": []});
    let listed = editor.result("session/list", json!({"cwd": folders.work()}));
    assert_eq!(
        (&listed["sessions"][0]["sessionId"], &listed["sessions"][0]["title"]),
        (&json!(session), &json!("First"))
    );
    assert_eq!(editor.result("session/list", json!({"cwd": "/elsewhere"}))["sessions"], json!([]));
    editor.updates.clear();
    assert_eq!(editor.result("session/load", open.clone())["modes"]["currentModeId"], "default");
    assert_eq!(editor.kinds()[..2], ["user_message_chunk", "agent_message_chunk"]);
    editor.prompt(&session, "Second");
    editor.updates.clear();
    editor.result("session/resume", open.clone());
    let fork = editor.result("session/fork", open)["sessionId"].as_str().unwrap().to_owned();
    assert!(!editor.kinds().contains(&"user_message_chunk"));
    assert_ne!(fork, session);
    editor.prompt(&fork, "Third");
    let messages = api.requests()[2].body["messages"].to_string();
    assert!(messages.contains("First") && messages.contains("Two."), "{messages}");
    editor.result("session/close", json!({"sessionId": fork}));
    assert_eq!(editor.request("session/prompt", prompt(&fork, "x"))["error"]["code"], -32002);
    editor.finish();
    assert!(folders.project().join(format!("{fork}.jsonl")).is_file());
}

#[test]
fn modes_are_changed_and_requests_that_are_not_valid_are_refused() {
    let folders = ChatFolders::new();
    let api = ScriptedApi::start(vec![write_call("a.txt"), ScriptedReply::text("Done.")]);
    let mut editor = Editor::start(&folders, &api);
    let session = editor.new_session(&folders);
    editor.result("session/set_mode", json!({"sessionId": session, "modeId": "acceptEdits"}));
    editor.prompt(&session, "Write");
    assert!(editor.questions.is_empty() && folders.work().join("a.txt").exists());
    let mut code = |method: &str, params: Value| editor.request(method, params)["error"]["code"].clone();
    assert_eq!(code("session/set_mode", json!({"sessionId": session, "modeId": "auto"})), -32602);
    assert_eq!(code("session/new", json!({"cwd": "relative", "mcpServers": []})), -32602);
    assert_eq!(
        code("session/load", json!({"sessionId": "../x", "cwd": folders.work(), "mcpServers": []})),
        -32002
    );
    assert_eq!(code("session/prompt", json!({"sessionId": session, "prompt": 1})), -32602);
    assert_eq!(code("terminal/none", json!({})), -32601);
    editor.send(&json!("text"));
    assert_eq!(editor.read()["error"]["code"], -32700);
    editor.finish();
}

#[test]
fn settings_can_forbid_the_mode_without_questions() {
    let folders = ChatFolders::new();
    let settings = r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#;
    std::fs::write(folders.home().join("settings.json"), settings).unwrap();
    let mut editor = Editor::start(&folders, &ScriptedApi::start(Vec::new()));
    let session = editor.new_session(&folders);
    let params = json!({"sessionId": session, "modeId": "bypassPermissions"});
    assert_eq!(editor.request("session/set_mode", params)["error"]["code"], -32602);
    editor.finish();
}
