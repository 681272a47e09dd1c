//! Tools of MCP servers: permission, results in the session, the end of a turn.

use std::collections::BTreeMap;

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_cancel::CancelToken;
use threadline_mcp::{McpOptions, McpServerConfig, McpServers, McpTransport};
use threadline_permission::PermissionMode;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  case "$line" in
    *'"initialize"'*) r='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*) r='{"tools":[{"name":"add","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}' ;;
    *'"tools/call"'*) r='{"content":[{"type":"text","text":"3"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

fn servers(stage: &Stage) -> McpServers {
    let transport = McpTransport::Stdio {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), SERVER.to_owned()],
        env: BTreeMap::new(),
    };
    let config = McpServerConfig { name: "the desk".to_owned(), transport };
    let options = McpOptions {
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: stage.work(),
        connect_timeout: McpOptions::CONNECT_TIMEOUT,
        call_timeout: McpOptions::CALL_TIMEOUT,
    };
    McpServers::connect(vec![config], &options, &CancelToken::new())
}

/// Runs a prompt whose first reply calls the tool, and another prompt. Returns the lines of the session.
fn run(stage: &Stage, mode: PermissionMode) -> Vec<Value> {
    let call = ScriptedReply::call("mcp__the_desk__add", json!({"a": 1}));
    let replies = vec![call, ScriptedReply::text("Done."), ScriptedReply::text("Fine.")];
    let api = ScriptedApi::start(replies);
    let mut config = stage.config(stage.start());
    config.mcp = servers(stage);
    config.permissions.update(|permissions| permissions.mode = mode);
    let mut agent = stage.agent(&api, config).unwrap();
    for prompt in ["Go", "Next"] {
        agent.run(&to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {});
    }
    agent.finish(&mut |_| {}).unwrap();
    stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn result(lines: &[Value]) -> &Value {
    lines.iter().find(|line| line["toolUseResult"] != Value::Null).unwrap()
}

/// The server and the tool that each reply names.
fn attributions(lines: &[Value]) -> Vec<(&Value, &Value)> {
    let replies = lines.iter().filter(|line| line["type"] == "assistant");
    replies.map(|line| (&line["attributionMcpServer"], &line["attributionMcpTool"])).collect()
}

#[test]
fn a_result_is_written_as_blocks_and_replies_of_its_turn_name_the_tool() {
    let stage = Stage::new();
    let lines = run(&stage, PermissionMode::BypassPermissions);
    let blocks = json!([{"type": "text", "text": "3"}]);
    assert_eq!(result(&lines)["toolUseResult"], blocks);
    let block = json!({"tool_use_id": result(&lines)["message"]["content"][0]["tool_use_id"], "type": "tool_result", "content": blocks});
    assert_eq!(result(&lines)["message"]["content"][0], block);
    let (server, tool) = (json!("the desk"), json!("add"));
    let none = (&Value::Null, &Value::Null);
    assert_eq!(attributions(&lines), [none, (&server, &tool), none]);
}

#[test]
fn a_call_without_a_rule_is_refused_also_if_the_server_says_that_it_only_reads() {
    let stage = Stage::new();
    let lines = run(&stage, PermissionMode::Default);
    let block = &result(&lines)["message"]["content"][0];
    assert_eq!(block["is_error"], true, "{block}");
    assert!(block["content"].as_str().unwrap().contains("mcp__the_desk__add"), "{block}");
    assert!(attributions(&lines).iter().all(|(server, _)| server.is_null()));
}
