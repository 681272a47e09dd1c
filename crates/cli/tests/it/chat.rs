//! The client as a process: keys, resuming, and being killed.

use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::run::command;

/// The folders of a chat.
pub(crate) struct ChatFolders {
    root: TempDir,
}

impl ChatFolders {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["work", "home/projects"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("home")
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("work")
    }

    pub(crate) fn chat(&self, api: &ScriptedApi, args: &[&str]) -> Command {
        let mut command = command(["chat", "-p"].iter().chain(args));
        command
            .current_dir(self.work())
            .env("CLAUDE_CONFIG_DIR", self.home())
            .env("CLAUDE_CODE_TMPDIR", self.root.path().join("tmp"))
            .env("PATH", "/usr/bin:/bin")
            .env("ANTHROPIC_BASE_URL", api.url())
            .env("ANTHROPIC_API_KEY", "sk-test")
            .env("CLAUDE_CODE_MAX_RETRIES", "1");
        command
    }

    /// The folder of the sessions of the working folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.home().join("projects").join(threadline_store::encode_project(&self.work().to_string_lossy()))
    }

    /// The number of lines of the only log.
    fn lines(&self) -> usize {
        let logs =
            std::fs::read_dir(self.project()).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut logs = logs.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
        let text = logs.next().and_then(|log| std::fs::read(log).ok()).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

#[test]
fn the_key_may_come_from_a_program_in_the_settings() {
    let folders = ChatFolders::new();
    write(&folders.home().join("settings.json"), r#"{"apiKeyHelper": "echo key-from-helper"}"#);
    let api = ScriptedApi::start(vec![ScriptedReply::text("hello")]);
    let done = folders.chat(&api, &["hi"]).env_remove("ANTHROPIC_API_KEY").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "hello\n", "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(api.requests()[0].header("x-api-key"), Some("key-from-helper"));
    assert_eq!(api.requests()[0].header("authorization"), Some("Bearer key-from-helper"));
}

#[test]
fn variables_set_the_model_of_a_family_betas_and_limits() {
    let folders = ChatFolders::new();
    let call = ScriptedReply::call("Bash", json!({"command": "sleep 20"}));
    let api = ScriptedApi::start(vec![call, ScriptedReply::text("ok")]);
    let args = ["hi", "--model", "opus", "--permission-mode", "bypassPermissions"];
    let mut chat = folders.chat(&api, &args);
    chat.env("ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-4-1-20250805").env("ANTHROPIC_BETAS", "one,two");
    chat.env("BASH_DEFAULT_TIMEOUT_MS", "300").env("IS_SANDBOX", "1");
    let done = chat.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let requests = api.requests();
    assert_eq!(requests[0].body["model"], "claude-opus-4-1-20250805");
    assert!(requests[0].header("anthropic-beta").unwrap().contains("one,two"));
    let result = requests[1].body["messages"][2]["content"].to_string();
    assert!(result.contains("timed out") || result.contains("background"), "{result}");
}

#[test]
fn continue_takes_the_session_with_the_last_message() {
    let folders = ChatFolders::new();
    let log = |id: &str, day: u32, text: &str| {
        let line = json!({"type": "user", "uuid": "11111111-1111-4111-8111-111111111111", "parentUuid": null, "isSidechain": false,
            "sessionId": id, "timestamp": format!("2026-01-{day:02}T00:00:00.000Z"), "message": {"role": "user", "content": text}});
        write(&folders.project().join(format!("{id}.jsonl")), &format!("{line}\n"));
    };
    log("aaaaaaaa-1111-4111-8111-111111111111", 9, "the later prompt");
    // Written last, but its message is older.
    log("bbbbbbbb-1111-4111-8111-111111111111", 3, "the earlier prompt");
    let api = ScriptedApi::start(vec![ScriptedReply::text("ok")]);
    let done = folders.chat(&api, &["hi", "--continue"]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(api.requests()[0].body.to_string().contains("the later prompt"));
}

#[cfg(unix)]
#[test]
fn a_bare_repository_of_a_project_runs_no_command_of_its_configuration() {
    let folders = ChatFolders::new();
    let git = |args: &[&str]| {
        assert!(Command::new("git").args(args).current_dir(folders.work()).status().unwrap().success());
    };
    git(&["init", "--quiet", "."]);
    for (file, text) in [
        ("HEAD", "ref: refs/heads/main\n"),
        ("objects/x", ""),
        ("refs/x", ""),
        (
            "config",
            "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = .\nfsmonitor = \"touch ran; false\"\n",
        ),
    ] {
        write(&folders.work().join("sub").join(file), text);
    }
    let bash = |command: &str| ScriptedReply::call("Bash", json!({ "command": command }));
    for mode in ["default", "bypassPermissions"] {
        let script = vec![
            bash("cd sub"),
            bash("git status"),
            bash("git config --get own.key"),
            ScriptedReply::text("ok"),
        ];
        let api = ScriptedApi::start(script);
        let mut chat = folders.chat(&api, &["hi", "--permission-mode", mode]);
        chat.env("IS_SANDBOX", "1").env("GIT_CONFIG_COUNT", "1");
        chat.env("GIT_CONFIG_KEY_0", "own.key").env("GIT_CONFIG_VALUE_0", "own value");
        assert!(chat.output().unwrap().status.success());
        assert!(!folders.work().join("sub/ran").exists(), "{mode}");
        let requests = api.requests();
        let status = requests[2].body["messages"][4]["content"].to_string();
        if mode == "default" {
            assert!(status.contains("bare git repository"), "{status}");
        } else {
            assert!(status.contains("safe.bareRepository"), "{status}");
            // The configuration in the environment of the user is kept.
            let own = requests[3].body["messages"][6]["content"].to_string();
            assert!(own.contains("own value"), "{own}");
        }
    }
}

/// A server whose only tool `add` returns 3.
#[cfg(unix)]
const MCP_SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  case "$line" in
    *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) r='{"tools":[{"name":"add","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*) r='{"content":[{"type":"text","text":"3 '$ANTHROPIC_API_KEY'"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

/// A server whose only tool `ask` allows calls that mention `yes`.
#[cfg(unix)]
const PROMPT_SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  case "$line" in
    *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) r='{"tools":[{"name":"ask","inputSchema":{"type":"object"}}]}' ;;
    *'"tools/call"'*yes*'"tool_name":"Bash"'*) r='{"content":[{"type":"text","text":"{\"behavior\":\"allow\",\"updatedInput\":{\"command\":\"touch changed\"}}"}]}' ;;
    *'"tools/call"'*) r='{"content":[{"type":"text","text":"{\"behavior\":\"deny\",\"message\":\"not now\"}"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

#[cfg(unix)]
#[test]
fn a_tool_of_a_server_answers_questions_about_calls() {
    let folders = ChatFolders::new();
    write(&folders.work().join("server"), PROMPT_SERVER);
    let server = json!({"command": "/bin/sh", "args": [folders.work().join("server")]});
    let servers = json!({"mcpServers": {"desk": server}}).to_string();
    let touch = |file: &str| ScriptedReply::call("Bash", json!({"command": format!("touch {file}")}));
    let api = ScriptedApi::start(vec![touch("yes"), touch("no"), ScriptedReply::text("ok")]);
    let run = |api: &ScriptedApi, tool: &str| {
        let args = ["hi", "--mcp-config", &servers, "--permission-prompt-tool", tool];
        folders.chat(api, &args).output().unwrap()
    };
    let done = run(&api, "mcp__desk__ask");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let exists = |file: &str| folders.work().join(file).exists();
    assert_eq!((exists("changed"), exists("yes"), exists("no")), (true, false, false));
    let requests = api.requests();
    assert!(requests[2].body["messages"][4].to_string().contains("not now"));
    // The model cannot answer for itself.
    assert!(!requests[0].body["tools"].to_string().contains("mcp__desk__ask"));
    let api = ScriptedApi::start(vec![ScriptedReply::text("ok")]);
    for tool in ["mcp__desk__other", "Bash"] {
        let done = run(&api, tool);
        let message = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{message}");
        assert!(message.contains(tool) && message.contains("mcp__desk__ask"), "{message}");
    }
    assert!(api.requests().is_empty());
}

#[test]
fn folded_descriptions_of_skills_and_agents_reach_the_model() {
    let folders = ChatFolders::new();
    let header = "description: >\n  Weaves\n  cloth.\n";
    write(&folders.home().join("skills/weave/SKILL.md"), &format!("---\n{header}---\nWeave."));
    write(
        &folders.home().join("agents/dyer.md"),
        "---\nname: dyer\ndescription: |\n  Dyes cloth.\n---\nDye.",
    );
    let api = ScriptedApi::start(vec![ScriptedReply::text("ok")]);
    assert!(folders.chat(&api, &["hi"]).output().unwrap().status.success());
    let tools = api.requests()[0].body["tools"].to_string();
    assert!(tools.contains("- weave: Weaves cloth.") && tools.contains("- dyer: Dyes cloth."), "{tools}");
}

/// The model, and the exit code, of a chat with these flags.
fn model_of(args: &[&str], environment: &[(&str, &str)]) -> (String, Option<i32>) {
    let api = ScriptedApi::start(vec![ScriptedReply::text("ok")]);
    let args: Vec<&str> = ["hi"].iter().chain(args).copied().collect();
    let done = ChatFolders::new().chat(&api, &args).envs(environment.iter().copied()).output().unwrap();
    let model = api.requests().first().map(|request| request.body["model"].as_str().unwrap().to_owned());
    (model.unwrap_or_default(), done.status.code())
}

#[test]
fn names_of_families_are_their_newest_models() {
    for (args, model) in [
        (&[][..], "claude-opus-5-5"),
        (&["--model", "opus"], "claude-opus-5-5"),
        (&["--model", "sonnet"], "claude-sonnet-5-5"),
        (&["--model", "haiku"], "claude-haiku-5-5"),
        (&["--model", "opusplan"], "claude-sonnet-5-5"),
        (&["--model", "opusplan", "--permission-mode", "plan"], "claude-opus-5-5"),
    ] {
        assert_eq!(model_of(args, &[]), (model.to_owned(), Some(0)), "{args:?}");
    }
    let own = [("ANTHROPIC_DEFAULT_OPUS_MODEL", "my-opus"), ("ANTHROPIC_MODEL", "opusplan")];
    assert_eq!(model_of(&["--permission-mode", "plan"], &own).0, "my-opus");
}

#[test]
fn the_mode_auto_is_the_default_one() {
    let folders = ChatFolders::new();
    let touch = ScriptedReply::call("Bash", json!({"command": "touch ran"}));
    let api = ScriptedApi::start(vec![touch, ScriptedReply::text("ok")]);
    let args = ["hi", "--permission-mode", "auto", "--output-format", "stream-json"];
    let done = folders.chat(&api, &args).output().unwrap();
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && output.contains(r#""permissionMode":"default""#), "{output}");
    assert!(!folders.work().join("ran").exists());
}

#[test]
fn wrong_answers_for_a_schema_are_an_error_of_the_result() {
    let folders = ChatFolders::new();
    let wrong = ScriptedReply::call("StructuredOutput", json!({"answer": "x"}));
    let api = ScriptedApi::start(vec![wrong; 6]);
    let schema = r#"{"type": "object", "properties": {"answer": {"type": "integer"}}}"#;
    let args = ["hi", "--json-schema", schema, "--output-format", "json"];
    let done = folders.chat(&api, &args).output().unwrap();
    let result: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((done.status.code(), result["is_error"].as_bool()), (Some(1), Some(true)));
    assert_eq!(result["subtype"], "error_max_structured_output_retries");
    assert_eq!(result["errors"][0], "Failed to provide valid structured output after 5 attempts");
}

#[cfg(unix)]
#[test]
fn servers_of_a_project_start_only_if_the_folder_is_trusted_and_they_are_enabled() {
    let folders = ChatFolders::new();
    write(&folders.work().join("server"), MCP_SERVER);
    let server = json!({"command": "${SHELL_FOR_TEST:-/bin/sh}", "args": [folders.work().join("server")]});
    let servers = json!({"mcpServers": {"desk": server, "other": server}});
    write(&folders.work().join(".mcp.json"), &servers.to_string());
    let settings = json!({"enabledMcpjsonServers": ["desk"], "permissions": {"allow": ["mcp__desk"]}});
    write(&folders.work().join(".claude/settings.json"), &settings.to_string());
    let run = |args: &[&str]| {
        let call = ScriptedReply::call("mcp__desk__add", json!({}));
        let api = ScriptedApi::start(vec![call, ScriptedReply::text("ok")]);
        let args: Vec<&str> = ["hi", "--output-format", "stream-json"].iter().chain(args).copied().collect();
        let done = folders.chat(&api, &args).output().unwrap();
        let stdout = String::from_utf8(done.stdout).unwrap();
        let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let result = lines.iter().find(|line| line["type"] == "user").unwrap();
        (lines[0]["mcp_servers"].to_string(), result["message"]["content"][0]["content"].to_string())
    };
    let unknown = "\"<tool_use_error>Error: No such tool available: mcp__desk__add</tool_use_error>\"";
    assert_eq!(run(&[]), ("[]".to_owned(), unknown.to_owned()));

    let projects = json!({"projects": {folders.work().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    write(&folders.home().join(".claude.json"), &projects.to_string());
    let connected = r#"[{"name":"desk","status":"connected"}]"#.to_owned();
    assert_eq!(run(&[]), (connected.clone(), r#"[{"text":"3 ","type":"text"}]"#.to_owned()));
    assert_eq!(run(&["--strict-mcp-config"]).0, "[]");

    let http = r#"{"mcpServers":{"desk":{"type":"http","url":"ftp://localhost/"}}}"#;
    assert_eq!(run(&["--mcp-config", http]).0, r#"[{"name":"desk","status":"failed"}]"#);
}

#[test]
fn servers_of_a_project_do_not_get_our_credentials() {
    let folders = ChatFolders::new();
    let header = json!({"Authorization": "Bearer ${ANTHROPIC_API_KEY:-none}"});
    let received = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", received.local_addr().unwrap());
    let servers = json!({"mcpServers": {
        "key": {"type": "http", "url": "http://127.0.0.1:1/", "headers": {"X": "${ANTHROPIC_API_KEY}"}},
        "desk": {"type": "http", "url": url, "headers": header},
    }});
    write(&folders.work().join(".mcp.json"), &servers.to_string());
    write(&folders.home().join("settings.json"), r#"{"enableAllProjectMcpServers":true}"#);
    let projects = json!({"projects": {folders.work().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    write(&folders.home().join(".claude.json"), &projects.to_string());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = received.accept().unwrap();
        let mut bytes = vec![0; 4096];
        let length = stream.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    });
    let api = ScriptedApi::start(vec![ScriptedReply::text("ok")]);
    let done = folders.chat(&api, &["hi"]).output().unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert!(errors.contains("`key`: the variable `ANTHROPIC_API_KEY` is not set"), "{errors}");
    let request = server.join().unwrap();
    assert!(request.to_lowercase().contains("authorization: bearer none"), "{request}");
}

/// The replies of a turn with several steps.
fn steps() -> Vec<ScriptedReply> {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |name: &str, input: Value| json!({"type": "tool_use", "name": name, "input": input});
    vec![
        ScriptedReply::blocks(vec![
            ScriptedReply::thinking("Hm."),
            text("Starting."),
            call("Bash", json!({"command": "echo one"})),
            call("Write", json!({"file_path": "new.txt", "content": "new\n"})),
        ]),
        ScriptedReply::blocks(vec![
            call("Read", json!({"file_path": "new.txt"})),
            call("Bash", json!({"command": "sleep 0.02; echo two"})),
        ]),
        ScriptedReply::call("Bash", json!({"command": "echo three"})),
        ScriptedReply::text("Done."),
    ]
}

#[test]
fn a_chat_that_is_killed_at_any_line_resumes() {
    let whole = ChatFolders::new();
    let api = ScriptedApi::start(steps());
    let args = ["go", "--permission-mode", "bypassPermissions"];
    assert!(whole.chat(&api, &args).output().unwrap().status.success());
    let count = whole.lines();
    assert!(count > 12, "{count}");
    for kill_at in 1..count {
        let folders = ChatFolders::new();
        let api = ScriptedApi::start(steps());
        let mut chat = folders.chat(&api, &args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while folders.lines() < kill_at && chat.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        chat.kill().unwrap();
        chat.wait().unwrap();
        let api = ScriptedApi::start(vec![ScriptedReply::text("resumed")]);
        let done = folders.chat(&api, &["go on", "--continue"]).output().unwrap();
        let shown = String::from_utf8_lossy(&done.stderr);
        assert_eq!(String::from_utf8_lossy(&done.stdout), "resumed\n", "killed at line {kill_at}: {shown}");
        let check = command(["--home"]).arg(folders.home()).arg("check").output().unwrap();
        let shown = String::from_utf8_lossy(&check.stdout);
        assert!(check.status.success(), "killed at line {kill_at}: {shown}");
    }
}

#[test]
fn a_chat_keeps_the_texts_of_files_that_the_shell_changes() {
    let folders = ChatFolders::new();
    write(&folders.work().join("a.txt"), "one\n");
    let calls = |name: &str| {
        vec![
            ScriptedReply::call("Bash", json!({"command": "echo two > a.txt", "description": "write"})),
            ScriptedReply::call(
                "Bash",
                json!({"command": format!("echo new > {name}; false"), "description": "fail"}),
            ),
            ScriptedReply::text("done"),
        ]
    };
    let state = folders.home().join("state");
    let run = |session: &str, name: &str| {
        let api = ScriptedApi::start(calls(name));
        let args = ["go", "--session-id", session, "--permission-mode", "bypassPermissions"];
        let done = folders.chat(&api, &args).env("XDG_STATE_HOME", &state).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let state_dir = Some(state.join("threadline"));
        let app = threadline_app::App::new(threadline_app::AppConfig { state_dir, ..Default::default() });
        app.file_copies(session).unwrap()
    };
    let session = "5f0b2c4e-1111-4222-8333-444455556666";
    let copies = run(session, "b.txt");
    let texts: Vec<_> = copies
        .scans()
        .iter()
        .flat_map(|scan| {
            scan.changes
                .iter()
                .map(|change| (scan.is_complete, copies.read(&change.before), copies.read(&change.after)))
        })
        .collect();
    let text = |text: &str| Some(text.as_bytes().to_vec());
    assert_eq!(texts, [(true, text("one\n"), text("two\n")), (true, None, text("new\n"))]);
    // The hook of the settings does the same, so that the chat leaves it to that.
    let hook = format!(
        "{} hook --state-dir={} files",
        env!("CARGO_BIN_EXE_threadline"),
        state.join("threadline").display()
    );
    let group = json!([{"hooks": [{"type": "command", "command": hook}]}]);
    let settings = json!({"hooks": {"PreToolUse": group, "PostToolUse": group, "PostToolUseFailure": group}});
    write(&folders.home().join("settings.json"), &settings.to_string());
    let copies = run("5f0b2c4e-1111-4222-8333-444455557777", "c.txt");
    assert_eq!(copies.scans().len(), 4);
    assert_eq!(copies.scans()[3].changes.len(), 1);
}
