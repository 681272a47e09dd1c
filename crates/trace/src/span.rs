//! A span as plain data, before it is put into the form that a receiver reads.

use std::borrow::Cow;

use threadline_entry::Millis;
use threadline_usage::{Money, Tokens};

use crate::id::{SpanId, TraceId};

/// One span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The turn that it is part of.
    pub trace: TraceId,
    /// Its own id.
    pub id: SpanId,
    /// The span above it; `None` for the root.
    pub parent: Option<SpanId>,
    /// What it is.
    pub kind: SpanKind,
    /// What it is called.
    pub name: String,
    /// When it began.
    pub start: Millis,
    /// When it ended.
    pub end: Millis,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// What happened on the way.
    pub events: Vec<Event>,
    /// Everything else, by name.
    pub attributes: Vec<(Name, Value)>,
    /// Of a generation: what it used, and what that cost if there is a price.
    pub used: Option<(Tokens, Option<Money>)>,
}

/// The name of an attribute.
pub type Name = Cow<'static, str>;

/// What a span stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpanKind {
    /// A turn, which is the root of its trace.
    Turn,
    /// One message of a model.
    Generation,
    /// A tool call.
    Tool,
    /// What a sub-agent did.
    Agent,
}

impl SpanKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Generation => "generation",
            Self::Tool => "tool",
            Self::Agent => "agent",
        }
    }
}

/// Something that happened at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What.
    pub name: &'static str,
    /// When.
    pub at: Millis,
    /// More about it.
    pub attributes: Vec<(Name, Value)>,
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the names say it all")]
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

    /// About how many bytes it takes.
    pub(crate) fn weight(&self) -> usize {
        let texts = self.attributes.iter().map(|(name, value)| match value {
            Value::Text(text) => name.len() + text.len(),
            _ => name.len() + 16,
        });
        texts.sum::<usize>() + 128 * (1 + self.events.len())
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of an attribute that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.get(name)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}
