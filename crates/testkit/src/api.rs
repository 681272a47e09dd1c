//! A scripted Messages API on loopback: the model for tests of the client.
//!
//! A [`ScriptedApi`] answers each request with the next reply of its script, streamed or not, and keeps every
//! request. It is strict: a request that the real API would reject, such as one with an unanswered call, gets
//! an error 400. It signs thinking and rejects thinking that comes back changed.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};

/// A reply of the scripted model.
#[derive(Clone, Debug)]
pub enum ScriptedReply {
    /// A message with these content blocks. Calls without an id get one.
    Message {
        /// The content blocks.
        blocks: Vec<Value>,
        /// Why the model stops; by default `tool_use` after a call, else `end_turn`.
        stop_reason: Option<&'static str>,
    },
    /// An HTTP error.
    Error {
        /// The status.
        status: u16,
        /// The kind, such as `overloaded_error`.
        kind: &'static str,
        /// The message.
        message: &'static str,
        /// Further headers.
        headers: Vec<(&'static str, String)>,
    },
    /// A message whose stream ends after this number of bytes, without its end.
    Cut {
        /// The content blocks.
        blocks: Vec<Value>,
        /// The number of bytes.
        after: usize,
    },
    /// A message whose stream pauses after this number of bytes.
    Stall {
        /// The content blocks.
        blocks: Vec<Value>,
        /// The number of bytes.
        after: usize,
        /// How long it pauses.
        pause: Duration,
    },
    /// Bytes of a stream, with a pause after each event.
    Paced {
        /// The events as [`sse`] returns them.
        bytes: Vec<u8>,
        /// How long it pauses.
        pause: Duration,
    },
    /// A message whose stream has an error event after this number of events.
    ErrorEvent {
        /// The content blocks.
        blocks: Vec<Value>,
        /// The number of events before the error.
        after: usize,
    },
    /// These bytes as the body of a stream.
    Raw(Vec<u8>),
}

impl ScriptedReply {
    /// A message with one text.
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![json!({"type": "text", "text": text})])
    }

    /// A message with one call.
    pub fn call(name: &str, input: Value) -> Self {
        Self::blocks(vec![json!({"type": "tool_use", "name": name, "input": input})])
    }

    /// A message with these blocks.
    pub fn blocks(blocks: Vec<Value>) -> Self {
        Self::Message { blocks, stop_reason: None }
    }

    /// An error without further headers.
    pub fn error(status: u16, kind: &'static str, message: &'static str) -> Self {
        Self::Error { status, kind, message, headers: Vec::new() }
    }

    /// A thinking block with the signature that this API accepts.
    pub fn thinking(text: &str) -> Value {
        json!({"type": "thinking", "thinking": text, "signature": signature(text)})
    }
}

/// A request that the API received.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// The path with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Value,
    /// When it was received.
    pub received: Instant,
}

impl ReceivedRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct ScriptedApi {
    address: std::net::SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    /// Signalled when a request was received.
    received: Condvar,
    is_stopped: AtomicBool,
}

#[derive(Debug)]
struct Script {
    replies: VecDeque<ScriptedReply>,
    requests: Vec<ReceivedRequest>,
    /// Why requests were refused.
    problems: Vec<String>,
    count: usize,
}

impl ScriptedApi {
    /// Starts a server with a script. When the script is used up, it answers `(the script is over)`.
    ///
    /// # Panics
    ///
    /// If no port on loopback is free.
    pub fn start(replies: Vec<ScriptedReply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the address of the server");
        let script = Script { replies: replies.into(), requests: Vec::new(), problems: Vec::new(), count: 0 };
        let shared = Arc::new(Shared {
            script: Mutex::new(script),
            received: Condvar::new(),
            is_stopped: AtomicBool::new(false),
        });
        let server = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if server.is_stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (Ok(stream), shared) = (stream, Arc::clone(&server)) else { continue };
                std::thread::spawn(move || serve(&stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// Adds replies to the end of the script.
    pub fn extend(&self, replies: Vec<ScriptedReply>) {
        self.shared.script.lock().replies.extend(replies);
    }

    /// The address for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.script.lock().requests.clone()
    }

    /// Why requests were refused that the real API would refuse too.
    pub fn problems(&self) -> Vec<String> {
        self.shared.script.lock().problems.clone()
    }

    /// Waits until this number of requests was received.
    pub fn wait_for_requests(&self, count: usize) {
        let mut script = self.shared.script.lock();
        self.shared.received.wait_while(&mut script, |script| script.requests.len() < count);
    }
}

impl Drop for ScriptedApi {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Some(request) = read_request(&mut reader) {
        let is_open = answer(stream, shared, request);
        if !is_open {
            let _ = stream.shutdown(Shutdown::Both);
            return;
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> Option<ReceivedRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(ReceivedRequest { path, headers, body, received: Instant::now() })
}

/// Answers a request. Returns whether the connection stays open.
fn answer(mut stream: &TcpStream, shared: &Shared, request: ReceivedRequest) -> bool {
    if !request.path.starts_with("/v1/messages") {
        return send_error(stream, 404, "not_found_error", "not found", 0, &[]);
    }
    if request.path.contains("count_tokens") {
        return send(stream, 200, "application/json", br#"{"input_tokens":1234}"#, 0, &[]);
    }
    let body = request.body.clone();
    let (reply, number) = {
        let mut script = shared.script.lock();
        script.requests.push(request);
        shared.received.notify_all();
        if let Err(problem) = check(&body) {
            script.problems.push(problem.clone());
            drop(script);
            return send_error(stream, 400, "invalid_request_error", &problem, 0, &[]);
        }
        script.count += 1;
        let reply = script.replies.pop_front().unwrap_or_else(|| ScriptedReply::text("(the script is over)"));
        (reply, script.count)
    };
    let is_streamed = body["stream"] == true;
    let events = |blocks: &[Value], stop| events(&message(&body, blocks, stop, number));
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
    let head = format!("{head}request-id: req_{number}\r\n\r\n");
    match reply {
        ScriptedReply::Error { status, kind, message, headers } => {
            send_error(stream, status, kind, message, number, &headers)
        }
        ScriptedReply::Message { blocks, stop_reason } if !is_streamed => {
            let json = message(&body, &blocks, stop_reason, number).to_string();
            send(stream, 200, "application/json", json.as_bytes(), number, &[])
        }
        ScriptedReply::Message { blocks, stop_reason } => {
            let bytes = sse(&events(&blocks, stop_reason));
            send(stream, 200, "text/event-stream", bytes.as_bytes(), number, &[])
        }
        ScriptedReply::Cut { blocks, after } => {
            let bytes = sse(&events(&blocks, None));
            let bytes = &bytes.as_bytes()[..after.min(bytes.len())];
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes));
            false
        }
        ScriptedReply::Stall { blocks, after, pause } => {
            let bytes = sse(&events(&blocks, None));
            let (first, rest) = bytes.as_bytes().split_at(after.min(bytes.len()));
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(first));
            std::thread::sleep(pause);
            let _ = stream.write_all(rest);
            false
        }
        ScriptedReply::ErrorEvent { blocks, after } => {
            let mut list = events(&blocks, None);
            list.truncate(after);
            list.push(
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
            );
            let bytes = sse(&list);
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(bytes.as_bytes()));
            false
        }
        ScriptedReply::Paced { bytes, pause } => {
            let mut is_open = stream.write_all(head.as_bytes()).is_ok();
            for event in String::from_utf8_lossy(&bytes).split_inclusive("\n\n") {
                is_open = is_open && stream.write_all(event.as_bytes()).is_ok();
                if !is_open {
                    break;
                }
                std::thread::sleep(pause);
            }
            false
        }
        ScriptedReply::Raw(bytes) => {
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&bytes));
            false
        }
    }
}

fn send_error(
    stream: &TcpStream,
    status: u16,
    kind: &str,
    message: &str,
    number: usize,
    headers: &[(&str, String)],
) -> bool {
    let body = json!({"type": "error", "error": {"type": kind, "message": message}});
    send(stream, status, "application/json", body.to_string().as_bytes(), number, headers)
}

fn send(
    mut stream: &TcpStream,
    status: u16,
    kind: &str,
    body: &[u8],
    number: usize,
    headers: &[(&str, String)],
) -> bool {
    let mut head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nrequest-id: req_{number}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body)).is_ok()
}

/// Returns a scripted reply as a whole message.
fn message(request: &Value, blocks: &[Value], stop_reason: Option<&str>, number: usize) -> Value {
    let mut content = blocks.to_vec();
    for (i, block) in content.iter_mut().enumerate() {
        if block["type"] == "tool_use" && block.get("id").is_none() {
            block["id"] = json!(format!("toolu_{number}_{i}"));
        }
    }
    let has_call = content.iter().any(|block| block["type"] == "tool_use");
    json!({
        "id": format!("msg_{number}"),
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": stop_reason.unwrap_or(if has_call { "tool_use" } else { "end_turn" }),
        "stop_sequence": null,
        "usage": {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0},
    })
}

/// Returns a message as the events of a stream. Texts and inputs come in two parts.
pub fn events(message: &Value) -> Vec<Value> {
    let mut start = message.clone();
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let mut events = vec![json!({"type": "message_start", "message": start}), json!({"type": "ping"})];
    let none = Vec::new();
    for (index, block) in message["content"].as_array().unwrap_or(&none).iter().enumerate() {
        let (empty, deltas) = block_parts(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        for delta in deltas {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": message["usage"],
    }));
    events.push(json!({"type": "message_stop"}));
    events
}

/// Returns a block as it begins, and the deltas that complete it.
fn block_parts(block: &Value) -> (Value, Vec<Value>) {
    let mut empty = block.clone();
    let halves = |text: &str| {
        let middle = (0..=text.len() / 2).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let (first, second) = text.split_at(middle);
        [first.to_owned(), second.to_owned()].into_iter().filter(|part| !part.is_empty())
    };
    let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
    match block["type"].as_str() {
        Some("text") => {
            empty["text"] = json!("");
            let deltas = halves(&text("text")).map(|part| json!({"type": "text_delta", "text": part}));
            (empty, deltas.collect())
        }
        Some("thinking") => {
            empty["thinking"] = json!("");
            empty["signature"] = json!("");
            let parts =
                halves(&text("thinking")).map(|part| json!({"type": "thinking_delta", "thinking": part}));
            let signature = json!({"type": "signature_delta", "signature": text("signature")});
            (empty, parts.chain([signature]).collect())
        }
        Some("tool_use") => {
            empty["input"] = json!({});
            let json = block["input"].to_string();
            let deltas = halves(&json).map(|part| json!({"type": "input_json_delta", "partial_json": part}));
            (empty, deltas.collect())
        }
        _ => (empty, Vec::new()),
    }
}

/// Returns events as the body of a stream.
pub fn sse(events: &[Value]) -> String {
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(event).collect()
}

/// Returns the signature of a thinking block.
fn signature(text: &str) -> String {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("sig{hash:016x}")
}

/// Checks a request as the real API does.
fn check(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("messages: Field required")?;
    if body["max_tokens"].as_u64().unwrap_or(0) == 0 {
        return Err("max_tokens: Field required".to_owned());
    }
    if body.to_string().matches("\"cache_control\":").count() > 4 {
        return Err("A maximum of 4 blocks with cache_control may be provided.".to_owned());
    }
    if messages.first().is_none_or(|message| message["role"] != "user") {
        return Err("messages: first message must use the \"user\" role".to_owned());
    }
    let mut asked: Vec<String> = Vec::new();
    for (i, message) in messages.iter().enumerate() {
        let Some(content) = message["content"].as_array() else { continue };
        if content.is_empty() {
            return Err(format!("messages.{i}: all messages must have non-empty content"));
        }
        let mut has_other = false;
        let mut answered = Vec::new();
        for (j, block) in content.iter().enumerate() {
            let text = |key: &str| block[key].as_str().unwrap_or_default().to_owned();
            match block["type"].as_str() {
                Some("text") if text("text").trim().is_empty() => {
                    return Err(format!("messages.{i}.content.{j}: text content blocks must be non-empty"));
                }
                Some("thinking") if text("signature") != signature(&text("thinking")) => {
                    return Err(format!("messages.{i}.content.{j}: Invalid `signature` in `thinking` block"));
                }
                Some("tool_result") => {
                    let id = text("tool_use_id");
                    if !asked.contains(&id) {
                        return Err(format!(
                            "messages.{i}.content.{j}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. \
                             Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                        ));
                    }
                    if has_other {
                        return Err(format!(
                            "messages.{i}.content.{j}: `tool_result` blocks must come first"
                        ));
                    }
                    answered.push(id);
                    continue;
                }
                _ => {}
            }
            has_other = true;
        }
        if let Some(missing) = asked.iter().find(|id| !answered.contains(id)) {
            return Err(format!(
                "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}",
                i - 1
            ));
        }
        let calls =
            content.iter().filter(|block| block["type"] == "tool_use" && message["role"] == "assistant");
        asked = calls.filter_map(|block| block["id"].as_str().map(str::to_owned)).collect();
    }
    match asked.first() {
        Some(missing) => Err(format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {missing}",
            messages.len() - 1
        )),
        None => Ok(()),
    }
}
