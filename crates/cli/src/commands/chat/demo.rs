//! The scripted model of `--demo`: demonstrates a chat without a key and without a network.

use std::collections::VecDeque;
use std::io::{Cursor, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use threadline_api::{ApiConfig, ApiError, Auth, Client, Transport, TransportRequest, TransportResponse};
use threadline_cancel::CancelToken;

/// The pause between two pieces of a reply on a screen.
const PIECE_TIME: Duration = Duration::from_millis(12);
/// The bytes of a piece of text.
const PIECE_BYTES: usize = 7;

/// Returns a client that answers from a script.
pub(super) fn client(is_interactive: bool) -> Client {
    let mut config = ApiConfig::new(Auth::None);
    config.base_url = "http://demo.invalid".to_owned();
    let count = AtomicUsize::default();
    Client::with_transport(config, Box::new(ScriptedModel { is_interactive, count }))
}

/// A model with a few replies: it looks at the folder, writes a file, and explains itself.
#[derive(Debug)]
struct ScriptedModel {
    is_interactive: bool,
    count: AtomicUsize,
}

impl Transport for ScriptedModel {
    fn post(&self, request: &TransportRequest<'_>, _: &CancelToken) -> Result<TransportResponse, ApiError> {
        let body: Value = serde_json::from_slice(request.body)
            .map_err(|error| ApiError::InvalidResponse(error.to_string()))?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let blocks =
            if self.is_interactive { screen_blocks(&body, number) } else { print_blocks(&body, number) };
        let is_call = blocks.iter().any(|block| block["type"] == "tool_use");
        let message = json!({"id": format!("msg_demo{number}"), "type": "message", "role": "assistant",
            "model": body["model"], "content": blocks, "stop_reason": if is_call { "tool_use" } else { "end_turn" },
            "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0}});
        let response = |kind: &str, body: Box<dyn Read + Send>| TransportResponse {
            status: 200,
            headers: vec![("content-type".to_owned(), kind.to_owned())],
            body,
        };
        Ok(if self.is_interactive && body["stream"] == true {
            response("text/event-stream", Box::new(SlowBody::new(&message)))
        } else {
            response("application/json", Box::new(Cursor::new(message.to_string().into_bytes())))
        })
    }
}

fn list_call() -> Value {
    json!({"type": "tool_use", "id": "toolu_demo", "name": "Bash",
        "input": {"command": "ls | head -5", "description": "List the first files"}})
}

/// The replies of `chat -p`.
fn print_blocks(body: &Value, number: usize) -> Vec<Value> {
    match number {
        0 => vec![list_call()],
        _ => vec![json!({"type": "text", "text": answer(body)})],
    }
}

/// The replies on a screen.
fn screen_blocks(body: &Value, number: usize) -> Vec<Value> {
    let text = |text: &str| json!({"type": "text", "text": text});
    match number {
        0 => vec![
            json!({"type": "thinking", "thinking": "A first question. I look at the folder.", "signature": "demo"}),
            text("I look at the folder first."),
            list_call(),
        ],
        1 => vec![text(&welcome(body))],
        2 => {
            let content =
                "# Notes\n\n- written by the demonstration of threadline\n- /rewind or git removes it\n";
            vec![
                text("I write a small file. You see the change before it is made."),
                json!({"type": "tool_use", "id": "toolu_demo2", "name": "Write",
                    "input": {"file_path": "threadline-demo.md", "content": content}}),
            ]
        }
        3 => vec![text(
            "That is how a call looks after it was approved, or refused.\n\nThe script ends here. Set \
             ANTHROPIC_API_KEY to talk to a real model.",
        )],
        _ => vec![text("The script is over. Set ANTHROPIC_API_KEY to talk to a real model.")],
    }
}

fn welcome(body: &Value) -> String {
    format!(
        "# This is a scripted model\n\nNo request left your machine. It ran `ls | head -5`, which printed:\n\n\
         ```sh\n{}\n```\n\nThings to try:\n\n\
         - `/` for **commands**, `@` for *files*, `!` for a shell line\n\
         - Shift-Tab for another permission mode\n\
         - another prompt: the model asks before it writes a file\n\n\
         | key | action |\n|---|---|\n| Esc | interrupt |\n| Ctrl-R | earlier prompts |\n| Ctrl-C twice | leave |\n\n\
         Set ANTHROPIC_API_KEY to talk to a real model.",
        result(body)
    )
}

/// Returns the text of the last result.
fn result(body: &Value) -> &str {
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let result = messages.last().map(|message| message["content"][0]["content"].as_str().unwrap_or_default());
    result.unwrap_or_default()
}

/// Returns the answer, which quotes the result of the command.
fn answer(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.first().map(|message| message["content"][0]["text"].as_str().unwrap_or_default());
    format!(
        "This is a scripted model; no request left your machine.\n\nYou asked: {}\n\nA real model would now work \
         on it. This one ran `ls | head -5`, which printed:\n\n{}\n\nSet ANTHROPIC_API_KEY to talk to a real model.",
        prompt.unwrap_or_default(),
        result(request)
    )
}

/// A reply that arrives in pieces.
struct SlowBody {
    pieces: VecDeque<Vec<u8>>,
    /// The rest of a piece that did not fit into the reader's buffer.
    rest: Cursor<Vec<u8>>,
}

impl SlowBody {
    /// Returns the stream of events for a message.
    fn new(message: &Value) -> Self {
        let mut start = message.clone();
        start["content"] = json!([]);
        start["stop_reason"] = Value::Null;
        let mut events = vec![json!({"type": "message_start", "message": start})];
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, block) in blocks.iter().enumerate() {
            let (empty, deltas) = block_events(block);
            events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
            let delta = |delta| json!({"type": "content_block_delta", "index": index, "delta": delta});
            events.extend(deltas.into_iter().map(delta));
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
        let delta = json!({"stop_reason": message["stop_reason"], "stop_sequence": null});
        events.push(json!({"type": "message_delta", "delta": delta, "usage": message["usage"]}));
        events.push(json!({"type": "message_stop"}));
        let piece = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or_default();
            format!("event: {kind}\ndata: {event}\n\n").into_bytes()
        };
        Self { pieces: events.iter().map(piece).collect(), rest: Cursor::default() }
    }
}

impl Read for SlowBody {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.rest.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        let Some(piece) = self.pieces.pop_front() else { return Ok(0) };
        std::thread::sleep(PIECE_TIME);
        self.rest = Cursor::new(piece);
        self.rest.read(buffer)
    }
}

/// Returns an empty block, and the changes that fill it.
fn block_events(block: &Value) -> (Value, Vec<Value>) {
    let pieces = |text: &str| -> Vec<String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, tail) = rest.split_at(rest.ceil_char_boundary(PIECE_BYTES.min(rest.len())));
            pieces.push(piece.to_owned());
            rest = tail;
        }
        pieces
    };
    let text = |key: &str| block[key].as_str().unwrap_or_default();
    match block["type"].as_str().unwrap_or_default() {
        "text" => {
            let deltas =
                pieces(text("text")).into_iter().map(|text| json!({"type": "text_delta", "text": text}));
            (json!({"type": "text", "text": ""}), deltas.collect())
        }
        "thinking" => {
            let deltas = pieces(text("thinking")).into_iter();
            let mut deltas: Vec<Value> =
                deltas.map(|text| json!({"type": "thinking_delta", "thinking": text})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": text("signature")}));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        _ => {
            let mut empty = block.clone();
            empty["input"] = json!({});
            let input = block["input"].to_string();
            (empty, vec![json!({"type": "input_json_delta", "partial_json": input})])
        }
    }
}
