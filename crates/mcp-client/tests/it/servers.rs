//! Connections to servers: tools, results, errors, and servers that fail.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpOptions, McpServerConfig, McpServers, McpTransport};
use threadline_tools::{
    BackgroundTasks, FileObserver, FileStates, Limits, NoModel, Permit, ResultContent, ShellState, Tool,
    ToolContext, ToolOutput, validate,
};

/// A server that answers by the name of the method, and of the tool.
const SERVER: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
  reply() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$1"; }
  case "$line" in
    *'"initialize"'*)
      reply '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"tools/list"'*)
      reply '"result":{"tools":[{"name":"add","description":"Adds","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},{"name":"fail","title":"Fail now","inputSchema":{"type":"object"}},{"name":"refuse","inputSchema":{"type":"object"}},{"name":"environment","inputSchema":{"type":"object"}},{"name":"hang","inputSchema":{"type":"object"}},{"name":"die","inputSchema":{"type":"object"}}]}' ;;
    *'"name":"add"'*) reply '"result":{"content":[{"type":"text","text":"3"}]}' ;;
    *'"name":"fail"'*) reply '"result":{"content":[{"type":"text","text":"it went wrong"}],"isError":true}' ;;
    *'"name":"refuse"'*) reply '"error":{"code":-32000,"message":"server says no"}' ;;
    *'"name":"environment"'*) reply "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$GIVEN $ADDED $HOME\"}]}" ;;
    *'"name":"die"'*) exit 3 ;;
  esac
done
"#;

pub(crate) fn server(name: &str, script: &str) -> McpServerConfig {
    let env = BTreeMap::from([("ADDED".to_owned(), "added".to_owned())]);
    let args = vec!["-c".to_owned(), script.to_owned()];
    let transport = McpTransport::Stdio { command: "/bin/sh".to_owned(), args, env };
    McpServerConfig { name: name.to_owned(), transport }
}

fn connect_with(configs: Vec<McpServerConfig>, change: impl FnOnce(&mut McpOptions)) -> McpServers {
    let environment = vec![("PATH".into(), "/usr/bin:/bin".into()), ("GIVEN".into(), "given".into())];
    let mut options = McpOptions::new("/".into(), environment);
    change(&mut options);
    McpServers::connect(configs, &options, &CancelToken::new())
}

pub(crate) fn connect(configs: Vec<McpServerConfig>) -> McpServers {
    connect_with(configs, |_| {})
}

struct NoObserver;

impl FileObserver for NoObserver {
    fn before_change(&self, _: &Path) {}
}

/// Calls a function with a context whose side files are in a folder.
pub(crate) fn with_context<T>(
    cancel: &CancelToken,
    side_files: &Path,
    run: impl FnOnce(&ToolContext<'_>) -> T,
) -> T {
    run(&ToolContext {
        cancel,
        tool_use_id: "toolu_1",
        project: side_files,
        additional_dirs: &[],
        home: None,
        shell: &ShellState::new(side_files),
        files: &FileStates::new(),
        observer: &NoObserver,
        side_files,
        tasks_dir: side_files,
        task_list_dir: side_files,
        background: &BackgroundTasks::new(),
        environment: &[],
        launcher: None,
        is_hidden: &|_| false,
        limits: &Limits::default(),
        model: &NoModel,
        progress: &|_| {},
    })
}

/// Calls a tool with side files in a folder.
pub(crate) fn call_in(
    servers: &McpServers,
    name: &str,
    cancel: &CancelToken,
    side_files: &Path,
) -> ToolOutput {
    let tool = servers.tools().find(|tool| tool.name() == name).unwrap();
    let input = RawValue::from_string(r#"{"a":1}"#.to_owned()).unwrap();
    let input = validate(&tool, &input, side_files).unwrap();
    with_context(cancel, side_files, |context| tool.run(&input, context, Permit::issue()))
}

pub(crate) fn call_with(servers: &McpServers, name: &str, cancel: &CancelToken) -> ToolOutput {
    call_in(servers, name, cancel, Path::new("/nonexistent"))
}

pub(crate) fn call(servers: &McpServers, tool: &str) -> ToolOutput {
    call_with(servers, tool, &CancelToken::new())
}

pub(crate) fn blocks(output: &ToolOutput) -> String {
    match &output.content {
        ResultContent::Blocks(blocks) => blocks.iter().map(|block| block.get()).collect(),
        ResultContent::Text(text) => panic!("{text}"),
    }
}

#[test]
fn tools_are_listed_and_called() {
    let servers = connect(vec![server("my desk", SERVER)]);
    assert_eq!(servers.statuses()[0].error, None);
    let add = servers.tool("mcp__my_desk__add").unwrap();
    assert_eq!((add.server.as_str(), add.tool.as_str(), add.is_read_only), ("my desk", "add", true));
    assert_eq!((add.description.as_str(), add.input_schema.get()), ("Adds", r#"{"type":"object"}"#));
    assert_eq!(add.display_name(), "Add");
    let fail = servers.tool("mcp__my_desk__fail").unwrap();
    assert_eq!((fail.display_name().as_str(), fail.is_read_only), ("Fail now", false));
    let output = call(&servers, "mcp__my_desk__add");
    assert_eq!((blocks(&output).as_str(), output.is_error), (r#"{"type":"text","text":"3"}"#, false));
    assert_eq!(servers.tools().count(), 6);
}

#[test]
fn errors_are_results() {
    let servers = connect(vec![server("desk", SERVER)]);
    let failed = call(&servers, "mcp__desk__fail");
    assert_eq!((failed.text(), failed.is_error), ("it went wrong", true));
    let refused = call(&servers, "mcp__desk__refuse");
    assert_eq!((refused.text(), refused.is_error), ("MCP error -32000: server says no", true));
    assert_eq!(refused.record.unwrap().get(), r#""Error: MCP error -32000: server says no""#);
}

/// Returns a server whose only tool `t` has this result.
fn server_with_result(result: &Value) -> McpServers {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("result");
    std::fs::write(&file, result.to_string()).unwrap();
    let script = format!(
        r#"result=$(cat {})
        while read -r line; do
          id=$(printf '%s' "$line" | sed -n 's/^.*"id":\([0-9]*\).*$/\1/p')
          case "$line" in
            *'"initialize"'*) r='{{"protocolVersion":"2025-06-18","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}' ;;
            *'"tools/list"'*) r='{{"tools":[{{"name":"t","inputSchema":{{"type":"object"}}}}]}}' ;;
            *'"tools/call"'*) r=$result ;;
            *) continue ;;
          esac
          printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$r"
        done"#,
        file.display()
    );
    // The script has read the file when it answers.
    connect(vec![server("my desk", &script)])
}

fn call_result(result: &Value, side_files: &Path) -> ToolOutput {
    call_in(&server_with_result(result), "mcp__my_desk__t", &CancelToken::new(), side_files)
}

#[test]
fn blocks_are_those_of_the_api() {
    let dir = tempfile::tempdir().unwrap();
    let output = call_result(
        &json!({"content": [
            {"type": "text", "text": "3"},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "body"}},
            {"type": "resource", "resource": {"uri": "file:///c", "mimeType": "image/gif", "blob": "BBBB"}},
            {"type": "resource_link", "name": "b", "uri": "file:///b", "description": "about b"},
        ]}),
        dir.path(),
    );
    let expected = concat!(
        r#"{"type":"text","text":"3"}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}"#,
        r#"{"type":"text","text":"[Resource from my desk at file:///a] body"}"#,
        r#"{"type":"text","text":"[Resource from my desk at file:///c] "}"#,
        r#"{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"BBBB"}}"#,
        r#"{"type":"text","text":"[Resource link: b] file:///b (about b)"}"#,
    );
    assert_eq!(blocks(&output), expected);
    let record: Vec<Box<RawValue>> = serde_json::from_str(output.record.unwrap().get()).unwrap();
    assert_eq!(record.iter().map(|block| block.get()).collect::<String>(), expected);
}

#[test]
fn other_data_is_saved_to_files() {
    let dir = tempfile::tempdir().unwrap();
    let resource = json!({"uri": "file:///b", "mimeType": "x/y", "blob": "AQID"});
    let content = json!([{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}, {"type": "resource", "resource": resource}]);
    let output = call_result(&json!({ "content": content }), &dir.path().join("side"));
    let text = blocks(&output);
    assert!(text.contains("[Audio from my desk] Binary content (audio/wav, 3 bytes) saved to "), "{text}");
    assert!(
        text.contains("[Resource from my desk at file:///b] Binary content (x/y, 3 bytes) saved"),
        "{text}"
    );
    let files = std::fs::read_dir(dir.path().join("side")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.collect();
    files.sort_by_key(|path| path.extension().map(ToOwned::to_owned));
    assert!(files[0].file_name().unwrap().to_str().unwrap().starts_with("mcp-my_desk-blob-"), "{files:?}");
    assert_eq!(std::fs::read(&files[0]).unwrap(), [1, 2, 3]);
    assert_eq!((files.len(), files[1].extension().unwrap().to_str()), (2, Some("wav")));
}

#[test]
fn much_text_is_saved_and_the_model_gets_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let half = "word ".repeat(5_000);
    let texts = |rest: &str| {
        let text = |text: &str| json!({"type": "text", "text": text});
        json!({"content": [text(&half), text(&format!("{half}{rest}"))]})
    };
    let output = call_result(&texts(""), dir.path());
    assert!(blocks(&output).len() > 50_000);
    let output = call_result(&texts("!"), dir.path());
    let start = format!(
        "<persisted-output>\nOutput too large (48.9KB). Full output saved to: {}/toolu_1.json\n",
        dir.path().display()
    );
    assert!(output.text().starts_with(&start), "{}", output.text());
    let saved: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("toolu_1.json")).unwrap()).unwrap();
    assert_eq!(saved, texts("!")["content"]);
    assert_eq!(serde_json::from_str::<Value>(output.record.unwrap().get()).unwrap(), saved);
}

#[test]
fn texts_of_an_error_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let texts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
    let output = call_result(&json!({"content": texts, "isError": true}), dir.path());
    assert_eq!((output.text(), output.is_error), ("a\nb", true));
    assert_eq!(output.record.unwrap().get(), r#""Error: a\nb""#);
    let output = call_result(&json!({"content": [], "isError": true}), dir.path());
    assert_eq!(output.text(), "Unknown error");
}

#[test]
fn data_without_blocks_is_text() {
    let dir = tempfile::tempdir().unwrap();
    let output = call_result(&json!({"content": [], "structuredContent": {"n": 1}}), dir.path());
    assert_eq!(blocks(&output), r#"{"type":"text","text":"{\"n\":1}"}"#);
}

#[test]
fn a_server_gets_only_the_environment_that_is_given() {
    let servers = connect(vec![server("desk", SERVER)]);
    let output = call(&servers, "mcp__desk__environment");
    assert_eq!(blocks(&output), r#"{"type":"text","text":"given added "}"#);
}

#[test]
fn a_server_that_dies_costs_only_its_own_calls() {
    let servers = connect(vec![server("bad", SERVER), server("good", SERVER)]);
    for tool in ["mcp__bad__die", "mcp__bad__add"] {
        let output = call(&servers, tool);
        assert_eq!((output.text(), output.is_error), ("MCP error -32000: Connection closed", true));
    }
    assert!(!call(&servers, "mcp__good__add").is_error);
}

#[test]
fn a_call_that_hangs_ends_with_its_time_or_when_it_is_cancelled() {
    let servers = connect_with(vec![server("desk", SERVER)], |options| {
        options.call_timeout = Duration::from_millis(50)
    });
    assert_eq!(call(&servers, "mcp__desk__hang").text(), "MCP error -32001: Request timed out");
    let servers = connect(vec![server("desk", SERVER)]);
    let cancel = CancelToken::new();
    let other = cancel.clone();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call_with(&servers, "mcp__desk__hang", &cancel));
        other.cancel();
        assert!(waiting.join().unwrap().is_error);
    });
    assert!(!call(&servers, "mcp__desk__add").is_error);
}

#[test]
fn servers_that_cannot_start_are_listed_with_the_reason() {
    let missing = McpTransport::Stdio {
        command: "/nonexistent/server".to_owned(),
        args: Vec::new(),
        env: BTreeMap::new(),
    };
    let servers = connect(vec![
        McpServerConfig { name: "missing".to_owned(), transport: missing },
        server("dying", "echo no licence >&2; exit 1"),
        McpServerConfig { name: "http".to_owned(), transport: McpTransport::Unusable("no".to_owned()) },
        server("good", SERVER),
    ]);
    let errors: Vec<String> =
        servers.statuses().iter().map(|status| status.error.clone().unwrap_or_default()).collect();
    assert!(errors[0].starts_with("cannot start `/nonexistent/server`"), "{errors:?}");
    assert_eq!(errors[1], "the server closed the connection (no licence)");
    assert_eq!((errors[2].as_str(), errors[3].as_str()), ("no", ""));
    assert!(!call(&servers, "mcp__good__add").is_error);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let servers = connect_with(vec![server("silent", "sleep 600")], |options| {
        options.connect_timeout = Duration::from_millis(50);
    });
    assert_eq!(servers.statuses()[0].error.as_deref(), Some("no answer within 50 ms"));
}

#[test]
fn the_start_ends_when_it_is_cancelled() {
    let cancel = CancelToken::new();
    cancel.cancel();
    let mut options = McpOptions::new("/".into(), vec![("PATH".into(), "/usr/bin:/bin".into())]);
    options.connect_timeout = Duration::from_secs(600);
    let start = Instant::now();
    let servers = McpServers::connect(vec![server("silent", "sleep 600")], &options, &cancel);
    assert_eq!(servers.statuses()[0].error.as_deref(), Some("interrupted"));
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[test]
fn processes_of_a_server_end_with_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    // The server ignores the end of its input and SIGTERM, and has a child.
    let script = format!("trap '' TERM; sleep 600 & echo $$ $! > {}\n{SERVER}\nsleep 600", pids.display());
    let servers = connect(vec![server("desk", &script)]);
    let pids = std::fs::read_to_string(pids).unwrap();
    servers.end();
    for pid in pids.split_whitespace() {
        assert!(has_ended(pid), "{pid} runs");
    }
    assert_eq!(call(&servers, "mcp__desk__add").text(), "MCP error -32000: Connection closed");
}

/// Whether a process has ended, or ends: a killed child stays in the table until its new parent looks.
fn has_ended(pid: &str) -> bool {
    let end = Instant::now() + Duration::from_secs(20);
    let status = || std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    let is_gone = || status().map_or(true, |stat| stat.contains(") Z "));
    while !is_gone() && Instant::now() < end {
        std::thread::yield_now();
    }
    is_gone()
}
