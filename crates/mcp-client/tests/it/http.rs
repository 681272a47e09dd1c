//! Servers over HTTP, with both transports, and servers that misbehave.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::json;
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpHttpKind, McpOptions, McpServerConfig, McpServers, McpTransport};

use crate::http_server::{
    Answer, HttpServer, Request, event_answer, event_stream, json_answer, result, status,
};
use crate::servers::{blocks, call, call_with};

fn config(url: String, kind: McpHttpKind) -> McpServerConfig {
    let headers = vec![("Authorization".to_owned(), "Bearer secret".to_owned())];
    McpServerConfig { name: "web".to_owned(), transport: McpTransport::Http { url, headers, kind } }
}

fn connect_with(config: McpServerConfig, change: impl FnOnce(&mut McpOptions)) -> McpServers {
    let mut options = McpOptions::new("/".into(), Vec::new());
    change(&mut options);
    McpServers::connect(vec![config], &options, &CancelToken::new())
}

fn connect(url: String) -> McpServers {
    connect_with(config(url, McpHttpKind::Streamable), |_| {})
}

/// Answers as the protocol asks for.
fn good_answer(request: &Request) -> Answer {
    match result(&request.body) {
        Some(result) => json_answer(&result),
        None => status(202),
    }
}

const TOOL: &str = "mcp__web__add";

fn error(servers: &McpServers) -> String {
    servers.statuses()[0].error.clone().unwrap()
}

#[test]
fn requests_repeat_the_session_the_version_and_the_configured_headers() {
    let server = HttpServer::start(|request| match request.body["method"].as_str() {
        Some("initialize") => {
            let headers = vec![
                ("content-type", "application/json; charset=utf-8".to_owned()),
                ("Mcp-Session-Id", "session-1".to_owned()),
            ];
            Answer::Full(200, headers, result(&request.body).unwrap().to_string())
        }
        _ => good_answer(request),
    });
    let servers = connect(server.url("/mcp"));
    assert_eq!(servers.statuses()[0].error, None);
    assert_eq!(blocks(&call(&servers, TOOL)), r#"{"type":"text","text":"3"}"#);
    servers.end();
    let requests = server.requests();
    let methods: Vec<_> = requests.iter().map(|request| request.body["method"].as_str()).collect();
    let sent =
        [Some("initialize"), Some("notifications/initialized"), Some("tools/list"), Some("tools/call"), None];
    assert_eq!(methods, sent);
    assert_eq!(requests[0].header("mcp-session-id"), None);
    for request in &requests[1..] {
        assert_eq!(request.header("mcp-session-id"), Some("session-1"));
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-06-18"));
    }
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer secret")));
    assert!(requests.iter().all(|request| request.header("accept").unwrap().contains("text/event-stream")));
    assert_eq!((requests[4].method.as_str(), requests[4].path.as_str()), ("DELETE", "/mcp"));
}

#[test]
fn an_answer_can_be_a_stream_of_events() {
    let server = HttpServer::start(|request| match result(&request.body) {
        Some(result) => event_answer(&format!(
            ": hello\n\nid: 1\ndata: \n\nevent: message\ndata: {}\n\ndata: {result}\n\nevent: other\ndata: x\n\n",
            json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}}),
        )),
        None => status(202),
    });
    let servers = connect(server.url("/"));
    assert_eq!(blocks(&call(&servers, TOOL)), r#"{"type":"text","text":"3"}"#);
}

#[test]
fn the_older_transport_has_one_stream_for_all_answers() {
    let stream = Mutex::new(None);
    let server = HttpServer::start(move |request| {
        if request.method == "GET" {
            let (sender, events) = event_stream();
            sender.send("event: endpoint\ndata: /messages?session=7\n\n".to_owned()).unwrap();
            *stream.lock() = Some(sender);
            return Answer::Stream(events);
        }
        if let (Some(sender), Some(result)) = (&*stream.lock(), result(&request.body)) {
            sender.send(format!("event: message\ndata: {result}\n\n")).unwrap();
        }
        status(202)
    });
    let servers = connect_with(config(server.url("/sse"), McpHttpKind::ServerSentEvents), |_| {});
    assert_eq!(servers.statuses()[0].error, None);
    assert_eq!(blocks(&call(&servers, TOOL)), r#"{"type":"text","text":"3"}"#);
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.header("authorization") == Some("Bearer secret")));
    assert!(requests[1..].iter().all(|request| request.path == "/messages?session=7"));
}

#[test]
fn the_older_transport_sends_nothing_to_another_server() {
    let other = HttpServer::start(good_answer);
    let endpoint = other.url("/messages");
    let server = HttpServer::start(move |_| event_answer(&format!("event: endpoint\ndata: {endpoint}\n\n")));
    let servers = connect_with(config(server.url("/sse"), McpHttpKind::ServerSentEvents), |_| {});
    assert!(error(&servers).contains("on another server"), "{}", error(&servers));
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn a_stream_that_ends_ends_the_connection() {
    let stream = Mutex::new(None);
    let server = HttpServer::start(move |request| {
        if request.method == "GET" {
            let (sender, events) = event_stream();
            sender.send("event: endpoint\ndata: m\n\n".to_owned()).unwrap();
            *stream.lock() = Some(sender);
            return Answer::Stream(events);
        }
        let mut stream = stream.lock();
        if request.body["method"] == "tools/call" {
            stream.take();
        } else if let (Some(sender), Some(result)) = (&*stream, result(&request.body)) {
            sender.send(format!("data: {result}\n\n")).unwrap();
        }
        status(202)
    });
    let servers = connect_with(config(server.url("/sse"), McpHttpKind::ServerSentEvents), |_| {});
    for _ in 0..2 {
        let output = call(&servers, TOOL);
        assert_eq!((output.text(), output.is_error), ("MCP error -32000: Connection closed", true));
    }
}

#[test]
fn redirects_are_not_followed() {
    let other = HttpServer::start(good_answer);
    let target = other.url("/");
    let server =
        HttpServer::start(move |_| Answer::Full(307, vec![("location", target.clone())], String::new()));
    assert!(error(&connect(server.url("/"))).ends_with("redirects to another address (HTTP status 307)"));
    assert_eq!(other.requests().len(), 0);
}

#[test]
fn servers_that_do_not_speak_the_protocol_have_a_reason() {
    let reason = |answer: fn() -> Answer| error(&connect(HttpServer::start(move |_| answer()).url("/")));
    assert!(reason(|| status(401)).ends_with("wants other credentials (HTTP status 401); set `headers`"));
    assert!(reason(|| status(500)).ends_with("the server answered with HTTP status 500"));
    assert!(reason(|| status(200)).contains("the server answered with ``"));
    assert!(reason(|| json_answer(&json!({"hello": 1}))).contains("not a message of the protocol"));
    assert!(reason(|| event_answer("")).ends_with("the server sent no answer"));
    assert!(reason(|| event_answer("data: {\n\n")).contains("not a message of the protocol"));
    let other_id = || json_answer(&json!({"jsonrpc": "2.0", "id": 99, "result": {}}));
    assert!(!reason(other_id).is_empty());
    for (url, text) in [("ftp://x/", "not an http or https address"), ("http://", "not valid")] {
        assert!(error(&connect(url.to_owned())).contains(text), "{url}: {}", error(&connect(url.to_owned())));
    }
}

#[test]
fn messages_without_an_end_are_refused() {
    // Lines that never form an event, and one JSON text.
    let events = HttpServer::start(|_| event_answer(&"data: xxxxxxxxxxxxxxxxxxxxxxxx\n".repeat(600_000)));
    assert!(error(&connect(events.url("/"))).ends_with("longer than 16 MB"));
    let large = HttpServer::start(|_| json_answer(&json!({"x": "y".repeat(17 << 20)})));
    assert!(error(&connect(large.url("/"))).ends_with("longer than 16 MB"));
}

fn hanging_call(request: &Request) -> Answer {
    if request.body["method"] == "tools/call" { Answer::Hang } else { good_answer(request) }
}

#[test]
fn a_call_that_hangs_ends_with_its_turn_or_its_time() {
    let server = HttpServer::start(hanging_call);
    let start = Instant::now();
    let change = |options: &mut McpOptions| options.call_timeout = Duration::from_millis(50);
    let servers = connect_with(config(server.url("/"), McpHttpKind::Streamable), change);
    assert_eq!(call(&servers, TOOL).text(), "MCP error -32001: Request timed out");
    let servers = connect(server.url("/"));
    let cancel = CancelToken::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !server.requests().iter().any(|request| request.body["method"] == "notifications/cancelled")
            {
                std::thread::yield_now();
            }
            cancel.cancel();
        });
        assert!(call_with(&servers, TOOL, &cancel).is_error);
    });
    servers.end();
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_server_that_hangs_does_not_keep_others_waiting() {
    let hanging = HttpServer::start(|_| Answer::Hang);
    let good = HttpServer::start(good_answer);
    let mut options = McpOptions::new("/".into(), Vec::new());
    options.connect_timeout = Duration::from_millis(300);
    let mut first = config(hanging.url("/"), McpHttpKind::Streamable);
    first.name = "hanging".to_owned();
    let configs = vec![first, config(good.url("/"), McpHttpKind::Streamable)];
    let servers = McpServers::connect(configs, &options, &CancelToken::new());
    assert_eq!(error(&servers), "no answer within 300 ms");
    assert_eq!(blocks(&call(&servers, TOOL)), r#"{"type":"text","text":"3"}"#);
}
