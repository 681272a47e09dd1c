//! The events of a streamed reply.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::ErrorKind;
use crate::raw_object::RawObject;

/// An event of a streamed reply. Unknown events and deltas are ignored by the reply, as the API asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The reply begins: a message without content.
    MessageStart {
        /// The message.
        message: RawObject,
    },
    /// A content block begins.
    BlockStart {
        /// The position of the block.
        index: usize,
        /// The block, with empty text or input.
        block: RawObject,
    },
    /// A content block grows.
    BlockDelta {
        /// The position of the block.
        index: usize,
        /// The addition.
        delta: Delta,
    },
    /// A content block is complete.
    BlockStop {
        /// The position of the block.
        index: usize,
    },
    /// Values of the message change, such as the stop reason.
    MessageDelta {
        /// The changed members.
        delta: RawObject,
        /// The usage so far. The figures are cumulative.
        usage: Option<RawObject>,
        /// Further members of the event.
        other: RawObject,
    },
    /// The reply is complete.
    MessageStop,
    /// Keeps the connection alive.
    Ping,
    /// The request failed after the stream had begun.
    Error {
        /// The kind of error.
        kind: ErrorKind,
        /// The message of the API.
        message: String,
    },
    /// An event that is not known.
    Unknown,
}

/// An addition to a content block.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More thinking.
    Thinking(String),
    /// The signature of the thinking.
    Signature(String),
    /// More of the JSON text of a tool's input.
    InputJson(String),
    /// A citation.
    Citation(Box<RawValue>),
    /// A delta that is not known.
    Unknown,
}

#[derive(Deserialize)]
struct WireEvent {
    #[serde(rename = "type")]
    kind: String,
    index: Option<usize>,
    message: Option<RawObject>,
    content_block: Option<RawObject>,
    delta: Option<Box<RawValue>>,
    usage: Option<RawObject>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
pub(crate) struct WireError {
    #[serde(rename = "type", default)]
    pub(crate) kind: String,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Deserialize)]
struct WireDelta {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    citation: Option<Box<RawValue>>,
}

impl StreamEvent {
    /// Parses the data of an event. `None` if it is not an event of the API at all.
    pub fn parse(data: &str) -> Option<Self> {
        let wire: WireEvent = serde_json::from_str(data).ok()?;
        Some(match wire.kind.as_str() {
            "message_start" => Self::MessageStart { message: wire.message? },
            "content_block_start" => Self::BlockStart { index: wire.index?, block: wire.content_block? },
            "content_block_delta" => {
                Self::BlockDelta { index: wire.index?, delta: Delta::parse(wire.delta?.get()) }
            }
            "content_block_stop" => Self::BlockStop { index: wire.index? },
            "message_delta" => {
                let mut other = RawObject::parse(data).ok()?;
                for key in ["type", "delta", "usage"] {
                    other.remove(key);
                }
                let delta = wire.delta.and_then(|delta| RawObject::parse(delta.get()).ok());
                Self::MessageDelta { delta: delta.unwrap_or_default(), usage: wire.usage, other }
            }
            "message_stop" => Self::MessageStop,
            "ping" => Self::Ping,
            "error" => {
                let error = wire.error?;
                Self::Error { kind: ErrorKind::from_name(&error.kind), message: error.message }
            }
            _ => Self::Unknown,
        })
    }
}

impl Delta {
    fn parse(json: &str) -> Self {
        let Ok(wire) = serde_json::from_str::<WireDelta>(json) else { return Self::Unknown };
        let delta = match wire.kind.as_str() {
            "text_delta" => wire.text.map(Self::Text),
            "thinking_delta" => wire.thinking.map(Self::Thinking),
            "signature_delta" => wire.signature.map(Self::Signature),
            "input_json_delta" => wire.partial_json.map(Self::InputJson),
            "citations_delta" => wire.citation.map(Self::Citation),
            _ => None,
        };
        delta.unwrap_or(Self::Unknown)
    }
}
