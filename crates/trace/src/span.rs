//! A span as plain data, before conversion to the wire format.

use std::borrow::Cow;

use threadline_entry::Millis;
use threadline_usage::{Money, Tokens};

use crate::id::{SpanId, TraceId};

/// One span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
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
    /// The error message, if the span failed.
    pub error: Option<String>,
    /// Events within the span.
    pub events: Vec<Event>,
    /// The attributes, in the order they were added.
    pub attributes: Vec<(Name, Value)>,
    /// For a generation: its token counts, and their cost if the model has a price.
    pub used: Option<(Tokens, Option<Money>)>,
}

/// The name of an attribute.
pub type Name = Cow<'static, str>;

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
pub struct Event {
    /// The event's name.
    pub name: &'static str,
    /// When it happened.
    pub at: Millis,
    /// Its attributes.
    pub attributes: Vec<(Name, Value)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Value {
    Text(String),
    Number(i64),
    Decimal(f64),
    Flag(bool),
    List(Vec<String>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl Span {
    /// Adds an attribute.
    pub(crate) fn set(&mut self, name: impl Into<Name>, value: impl Into<Value>) {
        self.attributes.push((name.into(), value.into()));
    }

    /// Adds an attribute, if there is a value.
    pub(crate) fn set_some(&mut self, name: impl Into<Name>, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        let texts = self.attributes.iter().map(|(name, value)| match value {
            Value::Text(text) => name.len() + text.len(),
            _ => name.len() + 16,
        });
        texts.sum::<usize>() + 128 * (1 + self.events.len())
    }

    /// Returns the value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the value of a text attribute.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
