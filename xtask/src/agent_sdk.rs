//! Drives the client with the Agent SDK of Claude Code, and with MCP servers that others wrote.
//!
//! `AGENT_SDK_PYTHON` is a Python interpreter with the packages `claude-agent-sdk`, which also installs the
//! package `mcp` for the servers, and `agent-client-protocol`, whose client takes the place of an editor.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

const AGENT_SDK: &str = include_str!("agent_sdk.py");
const ACP_CLIENT: &str = include_str!("acp_client.py");

/// A check of the script, and the replies of the model in it.
struct SdkCheck {
    name: &'static str,
    replies: Vec<ScriptedReply>,
}

pub(crate) fn run() -> ExitCode {
    let Some(python) = std::env::var_os("AGENT_SDK_PYTHON").map(PathBuf::from) else {
        println!(
            "AGENT_SDK_PYTHON is not set: a Python interpreter with claude-agent-sdk and agent-client-protocol"
        );
        return ExitCode::from(2);
    };
    let Some(threadline) = crate::command::binary() else { return ExitCode::from(2) };
    let mut failed = 0;
    for check in checks() {
        match run_check(&python, &threadline, &check) {
            Ok(()) => println!("ok    {}", check.name),
            Err(reason) => {
                failed += 1;
                println!("FAIL  {}\n{reason}", check.name);
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

/// Runs one check in folders of its own.
fn run_check(python: &Path, threadline: &Path, check: &SdkCheck) -> Result<(), String> {
    let folder = std::env::temp_dir().join(format!("threadline-agent-sdk-{}", std::process::id()));
    let text = |error: std::io::Error| error.to_string();
    let _ = std::fs::remove_dir_all(&folder);
    for name in ["work", "home", "tmp"] {
        std::fs::create_dir_all(folder.join(name)).map_err(text)?;
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink(threadline, folder.join("claude")).map_err(text)?;
    #[cfg(not(unix))]
    std::fs::copy(threadline, folder.join("claude")).map_err(text)?;
    let is_editor = check.name.starts_with("ACP ");
    let script = if is_editor { ACP_CLIENT } else { AGENT_SDK };
    let program = if is_editor { threadline.to_owned() } else { folder.join("claude") };
    let api = ScriptedApi::start(check.replies.clone());
    let output = Command::new(python)
        .args(["-c", script, check.name])
        .arg(program)
        .current_dir(folder.join("work"))
        .env("CLAUDE_CONFIG_DIR", folder.join("home"))
        .env("CLAUDE_CODE_TMPDIR", folder.join("tmp"))
        .env("ANTHROPIC_BASE_URL", api.url())
        .env("ANTHROPIC_API_KEY", "sk-test")
        .output()
        .map_err(text)?;
    let _ = std::fs::remove_dir_all(&folder);
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let requests = api.requests();
    let last = requests.last().map(|request| request.body["messages"].to_string()).unwrap_or_default();
    Err(format!("{errors}\n{} requests, the last one: {last}", requests.len()))
}

fn checks() -> Vec<SdkCheck> {
    let text = ScriptedReply::text;
    let call = ScriptedReply::call;
    let check = |name, replies| SdkCheck { name, replies };
    let write = || call("Write", json!({"file_path": "a.txt", "content": "hello"}));
    let tool = |server: &str| -> Vec<ScriptedReply> {
        let read = json!({"server": server, "uri": "note://one"});
        vec![
            call(&format!("mcp__{server}__add"), json!({"a": 20, "b": 22})),
            call("ReadMcpResourceTool", read),
            text("Done."),
            text("Greeted."),
        ]
    };
    let structured: Value = json!({"answer": 42});
    vec![
        check("query", vec![text("Hello.")]),
        check("streaming client", vec![text("One."), text("Two.")]),
        check("permission callback allows", vec![write(), text("Done.")]),
        check("permission callback denies", vec![write(), text("Done.")]),
        check("hook callback", vec![call("Bash", json!({"command": "touch ran"})), text("Done.")]),
        check("in-process MCP tools", vec![call("mcp__calc__add", json!({"a": 20, "b": 22})), text("42")]),
        check("interrupt", vec![call("Bash", json!({"command": "touch began; sleep 60"})), text("After.")]),
        check("resume", vec![text("One."), text("Two.")]),
        check("fork", vec![text("One."), text("Two.")]),
        check("partial messages", vec![text("A longer text.")]),
        check("structured output", vec![call("StructuredOutput", structured)]),
        check("set_model", vec![text("One."), text("Two.")]),
        check("set_permission_mode", vec![text("One."), write(), text("Two.")]),
        check("rewind_files", vec![write(), text("Done.")]),
        check("agents", vec![text("One.")]),
        check("status of servers and context", vec![text("One.")]),
        check("list_sessions", vec![text("One.")]),
        check("get_session_messages", vec![write(), text("Done.")]),
        check("MCP server stdio", tool("stdio")),
        check("MCP server streamable-http", tool("streamable-http")),
        check("MCP server sse", tool("sse")),
        check(
            "ACP prompt",
            vec![ScriptedReply::blocks(vec![
                ScriptedReply::thinking("Hm."),
                json!({"type": "text", "text": "Hello."}),
            ])],
        ),
        check(
            "ACP permission",
            vec![
                write(),
                text("Done."),
                call("Write", json!({"file_path": "b.txt", "content": "no"})),
                text("Done."),
            ],
        ),
        check(
            "ACP modes and plan",
            vec![
                write(),
                call("TaskCreate", json!({"subject": "First", "description": ""})),
                call("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
                text("Done."),
            ],
        ),
        check("ACP cancel", vec![call("Bash", json!({"command": "touch began; sleep 60"})), text("After.")]),
        check("ACP load, list, resume, fork", vec![text("One."), text("Two."), text("Three.")]),
    ]
}
