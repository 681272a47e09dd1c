//! Resources and prompts of servers.

use std::path::Path;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use threadline_cancel::CancelToken;
use threadline_mcp_client::McpServers;
use threadline_tools::{Permit, Tool, ToolOutput, validate};

use crate::servers::{connect, server, with_context};

const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*)
      reply '"result":{"protocolVersion":"2025-06-18","capabilities":{"resources":{},"prompts":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"resources/list"'*'"cursor":"2"'*)
      reply '"result":{"resources":[{"uri":"note://two","name":"two"}]}' ;;
    *'"resources/list"'*)
      reply '"result":{"resources":[{"uri":"note://one","name":"one","mimeType":"text/plain","description":"First"}],"nextCursor":"2"}' ;;
    *'"note://one"'*) reply '"result":{"contents":[{"uri":"note://one","mimeType":"text/plain","text":"Hello\u001b[31m"}]}' ;;
    *'"note://bin"'*) reply '"result":{"contents":[{"uri":"note://bin","blob":"AAEC"}]}' ;;
    *'"note://none"'*) reply '"error":{"code":-32002,"message":"none"}' ;;
    *'"note://broken"'*) reply '"error":{"code":-32603,"message":"broken"}' ;;
    *'"prompts/list"'*)
      reply '"result":{"prompts":[{"name":"say it","description":"Says","arguments":[{"name":"who","required":true},{"name":"how"}]}]}' ;;
    *'"prompts/get"'*'"who":"Ada"'*)
      reply '"result":{"messages":[{"role":"user","content":{"type":"text","text":"Greet Ada"}},{"role":"assistant","content":{"type":"resource","resource":{"uri":"note://one","text":"!`rm x`"}}}]}' ;;
    *'"prompts/get"'*) reply '"error":{"code":-32602,"message":"who is missing"}' ;;
  esac
done
"#;

fn servers() -> McpServers {
    connect(vec![server("desk", SERVER)])
}

fn run(servers: &McpServers, tool: usize, input: &Value, side_files: &Path) -> ToolOutput {
    let tool: Box<dyn Tool> = servers.resource_tools().swap_remove(tool);
    let input = RawValue::from_string(input.to_string()).unwrap();
    let input = validate(&*tool, &input, side_files).unwrap();
    with_context(&CancelToken::new(), side_files, |context| tool.run(&input, context, Permit::issue()))
}

fn read(uri: &str, side_files: &Path) -> ToolOutput {
    run(&servers(), 1, &json!({"server": "desk", "uri": uri}), side_files)
}

#[test]
fn resources_of_all_pages_are_listed_with_their_server() {
    let dir = tempfile::tempdir().unwrap();
    let output = run(&servers(), 0, &json!({}), dir.path());
    let list = r#"[{"name":"one","uri":"note://one","description":"First","mimeType":"text/plain","server":"desk"},{"name":"two","uri":"note://two","server":"desk"}]"#;
    assert_eq!((output.text(), output.record.as_ref().unwrap().get()), (list, list));
    let other = run(&servers(), 0, &json!({"server": "x"}), dir.path());
    assert_eq!((other.text(), other.is_error), ("Server \"x\" not found. Available servers: desk", true));
}

#[test]
fn resources_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let text = r#"{"contents":[{"uri":"note://one","mimeType":"text/plain","text":"Hello\u001b[31m"}]}"#;
    assert_eq!(read("note://one", dir.path()).text(), text);
    let missing = read("note://none", dir.path());
    assert!(missing.text().starts_with("Resource not found: note://none") && !missing.is_error);
    let broken = read("note://broken", dir.path());
    assert_eq!((broken.text(), broken.is_error), ("MCP error -32603: broken", true));
}

#[test]
fn binary_resources_are_saved() {
    let dir = tempfile::tempdir().unwrap();
    let output = read("note://bin", dir.path());
    let record: Value = serde_json::from_str(output.record.as_ref().unwrap().get()).unwrap();
    let path = record["contents"][0]["blobSavedTo"].as_str().unwrap();
    assert_eq!(std::fs::read(path).unwrap(), [0, 1, 2]);
    assert!(path.starts_with(dir.path().to_str().unwrap()) && output.text().contains(path));
}

#[test]
fn a_mention_names_a_server_and_a_resource() {
    let servers = servers();
    let mentioned = |mention: &str| {
        with_context(&CancelToken::new(), Path::new("/nonexistent"), |context| {
            servers.mentioned_resource(mention, context)
        })
    };
    let text = mentioned("desk:note://one").unwrap();
    assert_eq!(text, "[Resource from desk at note://one] Hello\u{1b}[31m");
    for mention in ["desk:note://none", "desk:", "desk", "other:note://one"] {
        assert_eq!(mentioned(mention), None, "{mention}");
    }
}

#[test]
fn prompts_are_commands_with_words_as_arguments() {
    let servers = servers();
    let prompt = servers.prompts().next().unwrap();
    assert_eq!((prompt.command.as_str(), prompt.description.as_str()), ("mcp__desk__say_it", "Says"));
    let blocks = |words: &str| {
        with_context(&CancelToken::new(), Path::new("/nonexistent"), |context| {
            servers.prompt_blocks(prompt, words, context)
        })
    };
    let texts: Vec<String> = blocks("Ada loudly now").unwrap().iter().map(ToString::to_string).collect();
    let resource = r#"{"type":"text","text":"[Resource from desk at note://one] !`rm x`"}"#;
    assert_eq!(texts, [r#"{"type":"text","text":"Greet Ada"}"#, resource]);
    assert_eq!(blocks("").unwrap_err(), "MCP error -32602: who is missing");
}

#[test]
fn servers_without_resources_have_no_tools_for_them() {
    assert_eq!(connect(vec![server("gone", "exit 1")]).resource_tools().len(), 0);
}
