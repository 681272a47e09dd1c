//! A span as plain data, before conversion to the wire format.

use std::borrow::Cow;

use threadline_entry::Millis;
use threadline_usage::{Money, TokenCounts};

use crate::id::{SpanId, TraceId};

/// One span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSpan {
    /// The trace, which is the turn.
    pub trace: TraceId,
    /// The span's id.
    pub id: SpanId,
    /// The parent span; `None` for the root.
    pub parent: Option<SpanId>,
    /// The kind of span.
    pub kind: SpanKind,
    /// The display name.
    pub name: String,
    /// When it began.
    pub start: Millis,
    /// When it ended.
    pub end: Millis,
    /// The error message, if the span failed; empty if the content policy excludes it.
    pub error: Option<String>,
    /// Events within the span.
    pub events: Vec<SpanEvent>,
    /// The attributes, in the order they were added.
    pub attributes: Vec<(AttributeName, AttributeValue)>,
    /// For a generation: its token counts, and their cost if the model has a price.
    pub usage: Option<(TokenCounts, Option<Money>)>,
}

/// The name of an attribute.
pub type AttributeName = Cow<'static, str>;

/// The kind of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A turn, which is the root of its trace.
    Turn,
    /// One message of a model.
    Generation,
    /// A tool call.
    Tool,
    /// A sub-agent.
    Agent,
}

impl SpanKind {
    /// Returns the lowercase name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Generation => "generation",
            Self::Tool => "tool",
            Self::Agent => "agent",
        }
    }
}

/// An event at one point in time.
#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    /// The event's name.
    pub name: &'static str,
    /// When it happened.
    pub at: Millis,
    /// Its attributes.
    pub attributes: Vec<(AttributeName, AttributeValue)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum AttributeValue {
    Text(String),
    Number(i64),
    Decimal(f64),
    Flag(bool),
    List(Vec<String>),
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for AttributeValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for AttributeValue {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for AttributeValue {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl From<bool> for AttributeValue {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl TraceSpan {
    /// Adds an attribute.
    pub(crate) fn add(&mut self, name: impl Into<AttributeName>, value: impl Into<AttributeValue>) {
        self.attributes.push((name.into(), value.into()));
    }

    /// Adds an attribute, if there is a value.
    pub(crate) fn add_some(
        &mut self,
        name: impl Into<AttributeName>,
        value: Option<impl Into<AttributeValue>>,
    ) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&AttributeValue> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the value of a text attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            AttributeValue::Text(text) => Some(text),
            _ => None,
        }
    }
}
