//! The scripted model behind `--demo`: shows what a chat does, without a key and without a network.

use std::io::Cursor;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use threadline_api::{ApiConfig, ApiError, Auth, Client, Transport, TransportRequest, TransportResponse};
use threadline_cancel::CancelToken;

/// Returns a client that answers from a script.
pub(super) fn client() -> Client {
    let mut config = ApiConfig::new(Auth::None);
    config.base_url = "http://demo.invalid".to_owned();
    Client::with_transport(config, Box::new(ScriptedModel::default()))
}

/// A model with three replies: it looks at the folder, counts files, and explains itself.
#[derive(Debug, Default)]
struct ScriptedModel {
    count: AtomicUsize,
}

impl Transport for ScriptedModel {
    fn post(&self, request: &TransportRequest<'_>, _: &CancelToken) -> Result<TransportResponse, ApiError> {
        let body: Value = serde_json::from_slice(request.body)
            .map_err(|error| ApiError::InvalidResponse(error.to_string()))?;
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let block = match number {
            0 => json!({"type": "tool_use", "id": "toolu_demo", "name": "Bash",
                "input": {"command": "ls | head -5", "description": "List the first files"}}),
            _ => json!({"type": "text", "text": answer(&body)}),
        };
        let stop = if number == 0 { "tool_use" } else { "end_turn" };
        let message = json!({"id": format!("msg_demo{number}"), "type": "message", "role": "assistant",
            "model": body["model"], "content": [block], "stop_reason": stop, "stop_sequence": null,
            "usage": {"input_tokens": 0, "output_tokens": 0}});
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let body = Box::new(Cursor::new(message.to_string().into_bytes()));
        Ok(TransportResponse { status: 200, headers, body })
    }
}

/// Returns the answer, which quotes the result of the command.
fn answer(request: &Value) -> String {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let prompt = messages.first().map(|message| message["content"][0]["text"].as_str().unwrap_or_default());
    let result = messages.last().map(|message| message["content"][0]["content"].as_str().unwrap_or_default());
    format!(
        "This is a scripted model; no request left your machine.\n\nYou asked: {}\n\nA real model would now work \
         on it. This one ran `ls | head -5`, which printed:\n\n{}\n\nSet ANTHROPIC_API_KEY to talk to a real model.",
        prompt.unwrap_or_default(),
        result.unwrap_or_default()
    )
}
