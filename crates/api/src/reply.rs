//! A reply of the model, built from a stream or from one response.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ApiError;
use crate::raw_object::RawObject;
use crate::stream::{Delta, StreamEvent};

/// The kind of a content block.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BlockKind {
    /// Text.
    Text,
    /// Thinking, with a signature.
    Thinking,
    /// Encrypted thinking.
    RedactedThinking,
    /// A call of a tool.
    ToolUse,
    /// Another kind, by its `type`.
    Other(String),
}

impl BlockKind {
    /// Returns the kind of a block.
    pub fn of(block: &RawObject) -> Self {
        match block.get_str("type").unwrap_or_default().as_str() {
            "text" => Self::Text,
            "thinking" => Self::Thinking,
            "redacted_thinking" => Self::RedactedThinking,
            "tool_use" => Self::ToolUse,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// The tokens and the web searches that a reply is billed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input that was not in the cache.
    pub input: u64,
    /// Output, with thinking.
    pub output: u64,
    /// Input that was written to the cache.
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for an hour.
    pub cache_write_1h: u64,
    /// Input that was read from the cache.
    pub cache_read: u64,
    /// The number of web searches by the server tool.
    pub web_searches: u64,
}

impl Usage {
    /// Returns the sum of two usages.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_write: self.cache_write + other.cache_write,
            cache_write_1h: self.cache_write_1h + other.cache_write_1h,
            cache_read: self.cache_read + other.cache_read,
            web_searches: self.web_searches + other.web_searches,
        }
    }

    /// Reads the figures of a `usage` object. Missing ones are 0.
    pub fn of(usage: &RawObject) -> Self {
        let count = |key: &str| usage.get_u64(key).unwrap_or(0);
        let nested = |object: &str, key: &str| {
            usage.get_object(object).and_then(|object| object.get_u64(key)).unwrap_or(0)
        };
        Self {
            input: count("input_tokens"),
            output: count("output_tokens"),
            cache_write: count("cache_creation_input_tokens"),
            cache_write_1h: nested("cache_creation", "ephemeral_1h_input_tokens"),
            cache_read: count("cache_read_input_tokens"),
            web_searches: nested("server_tool_use", "web_search_requests"),
        }
    }

    /// The number of tokens in the context window after the reply.
    pub fn context(&self) -> u64 {
        self.input + self.cache_write + self.cache_read + self.output
    }
}

/// A reply of the model.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The message as the API sent it, with an empty `content`. `stop_reason` and `usage` have their final
    /// values.
    pub message: RawObject,
    /// The `usage` with which the stream began.
    pub initial_usage: RawObject,
    /// The content blocks, each as the API sent it.
    pub blocks: Vec<RawObject>,
    /// The `request-id` header.
    pub request_id: Option<String>,
    /// Whether the reply was streamed.
    pub is_streamed: bool,
    /// Whether the stream ended before the reply was complete. The last block may be missing.
    pub is_truncated: bool,
}

impl Reply {
    /// The key that is added to a `tool_use` block whose input is not valid JSON. Its value is the text.
    pub const UNPARSED_INPUT: &'static str = "unparsed_input";

    /// The id of the message.
    pub fn id(&self) -> Option<String> {
        self.message.get_str("id")
    }

    /// Why the model stopped.
    pub fn stop_reason(&self) -> Option<String> {
        self.message.get_str("stop_reason")
    }

    /// The tokens of the reply.
    pub fn usage(&self) -> Usage {
        self.message.get_object("usage").map(|usage| Usage::of(&usage)).unwrap_or_default()
    }

    /// The text of all text blocks, one after another.
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter(|block| BlockKind::of(block) == BlockKind::Text);
        texts.filter_map(|block| block.get_str("text")).collect()
    }

    /// Parses a response that was not streamed.
    pub(crate) fn from_response(body: &[u8], request_id: Option<String>) -> Result<Self, ApiError> {
        #[derive(Deserialize)]
        struct WireContent {
            content: Vec<RawObject>,
        }
        let invalid = |error: serde_json::Error| ApiError::InvalidResponse(error.to_string());
        let content: WireContent = serde_json::from_slice(body).map_err(invalid)?;
        let mut message: RawObject = serde_json::from_slice(body).map_err(invalid)?;
        message.set("content", [(); 0]);
        let initial_usage = message.get_object("usage").unwrap_or_default();
        Ok(Self {
            message,
            initial_usage,
            blocks: content.content,
            request_id,
            is_streamed: false,
            is_truncated: false,
        })
    }
}

/// Builds a reply from the events of its stream.
#[derive(Debug, Default)]
pub(crate) struct ReplyBuilder {
    reply: Reply,
    open: Vec<OpenBlock>,
    has_started: bool,
    is_complete: bool,
}

/// A block that is being streamed.
#[derive(Debug)]
struct OpenBlock {
    index: usize,
    block: RawObject,
    text: String,
    thinking: String,
    signature: String,
    input_json: String,
    citations: Vec<Box<RawValue>>,
}

impl ReplyBuilder {
    pub(crate) fn new(request_id: Option<String>) -> Self {
        Self { reply: Reply { request_id, is_streamed: true, ..Reply::default() }, ..Self::default() }
    }

    /// Adds an event. Returns the index in `blocks` of the block that it completed.
    pub(crate) fn push(&mut self, event: &StreamEvent) -> Result<Option<usize>, ApiError> {
        match event {
            StreamEvent::MessageStart { message } => {
                self.has_started = true;
                self.reply.message = message.clone();
                self.reply.initial_usage = message.get_object("usage").unwrap_or_default();
            }
            StreamEvent::BlockStart { index, block } => self.open.push(OpenBlock {
                index: *index,
                block: block.clone(),
                text: String::new(),
                thinking: String::new(),
                signature: String::new(),
                input_json: String::new(),
                citations: Vec::new(),
            }),
            StreamEvent::BlockDelta { index, delta } => {
                if let Some(open) = self.open.iter_mut().find(|open| open.index == *index) {
                    open.push(delta);
                }
            }
            StreamEvent::BlockStop { index } => {
                if let Some(position) = self.open.iter().position(|open| open.index == *index) {
                    let open = self.open.remove(position);
                    self.reply.blocks.push(open.finish());
                    return Ok(Some(self.reply.blocks.len() - 1));
                }
            }
            StreamEvent::MessageDelta { delta, usage, other } => {
                for (key, value) in delta.members().chain(other.members()) {
                    self.reply.message.set_raw(key, value.to_owned());
                }
                if let Some(usage) = usage {
                    let mut merged = self.reply.message.get_object("usage").unwrap_or_default();
                    for (key, value) in usage.members().filter(|(_, value)| value.get() != "null") {
                        merged.set_raw(key, value.to_owned());
                    }
                    self.reply.message.set("usage", merged);
                }
            }
            StreamEvent::MessageStop => self.is_complete = true,
            StreamEvent::Error { kind, message } => {
                return Err(ApiError::Stream { kind: kind.clone(), message: message.clone() });
            }
            StreamEvent::Ping | StreamEvent::Unknown => {}
        }
        Ok(None)
    }

    /// Whether the stream contained its last event.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The reply so far.
    pub(crate) fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Returns the reply at the end of the stream. If the stream ended early, the complete blocks are
    /// returned with `is_truncated`.
    ///
    /// # Errors
    ///
    /// [`ApiError::Truncated`] if the stream ended before the first block was complete.
    pub(crate) fn finish(mut self) -> Result<Reply, ApiError> {
        if !self.has_started || !self.is_complete && self.reply.blocks.is_empty() {
            return Err(ApiError::Truncated);
        }
        self.reply.is_truncated = !self.is_complete;
        Ok(self.reply)
    }
}

impl OpenBlock {
    fn push(&mut self, delta: &Delta) {
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::Thinking(text) => self.thinking.push_str(text),
            Delta::Signature(text) => self.signature.push_str(text),
            Delta::InputJson(json) => self.input_json.push_str(json),
            Delta::Citation(citation) => self.citations.push(citation.clone()),
            Delta::Unknown => {}
        }
    }

    fn finish(mut self) -> RawObject {
        for (key, text) in
            [("text", &self.text), ("thinking", &self.thinking), ("signature", &self.signature)]
        {
            if !text.is_empty() {
                let start = self.block.get_str(key).unwrap_or_default();
                self.block.set(key, start + text);
            }
        }
        if !self.citations.is_empty() {
            self.block.set("citations", &self.citations);
        }
        if !self.input_json.is_empty() {
            match serde_json::from_str::<Box<RawValue>>(&self.input_json) {
                Ok(input) => self.block.set_raw("input", input),
                // Kept as text, so that the caller can report it to the model.
                Err(_) => self.block.set(Reply::UNPARSED_INPUT, &self.input_json),
            }
        }
        self.block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(events: &[&str]) -> Result<Reply, ApiError> {
        let mut builder = ReplyBuilder::new(Some("req_1".to_owned()));
        for event in events {
            builder.push(&StreamEvent::parse(event).unwrap())?;
        }
        builder.finish()
    }

    const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","content":[],"model":"m","new_field":[1],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}"#;

    #[test]
    fn unknown_events_blocks_and_members_are_kept() {
        let reply = build(&[
            START,
            r#"{"type":"brand_new_event"}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"hologram","x":1.0}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"brand_new_delta"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7},"context_management":{"applied_edits":[]}}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        assert_eq!(reply.blocks[0].to_json(), r#"{"type":"hologram","x":1.0}"#);
        assert_eq!(
            reply.message.to_json(),
            r#"{"id":"msg_1","content":[],"model":"m","new_field":[1],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":7},"context_management":{"applied_edits":[]}}"#
        );
        assert_eq!(reply.initial_usage.get_u64("output_tokens"), Some(1));
    }

    #[test]
    fn thinking_and_input_are_assembled_from_their_deltas() {
        let reply = build(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"m."}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"Read","input":{}}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"b\":1,"}}"#,
            r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":" \"a\":2}"}}"#,
            r#"{"type":"content_block_stop","index":1}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        assert_eq!(reply.blocks[0].to_json(), r#"{"type":"thinking","thinking":"Hmm.","signature":"c2ln"}"#);
        assert_eq!(reply.blocks[1].get("input").unwrap().get(), r#"{"b":1, "a":2}"#);
    }

    #[test]
    fn a_stream_that_breaks_off_keeps_its_complete_blocks() {
        let block = [
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
        ];
        assert!(build(&block[..3]).is_err());
        let reply = build(&block).unwrap();
        assert!(reply.is_truncated);
        assert_eq!((reply.text(), reply.stop_reason()), ("hi".to_owned(), None));
    }

    #[test]
    fn input_that_is_not_json_is_kept_as_text() {
        let reply = build(&[
            START,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Bash","input":{}}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\": "}}"#,
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_stop"}"#,
        ])
        .unwrap();
        assert_eq!(reply.blocks[0].get_str(Reply::UNPARSED_INPUT).as_deref(), Some("{\"command\": "));
    }
}
