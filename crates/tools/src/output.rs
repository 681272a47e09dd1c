//! Results of tool calls, and how failures are presented in them.

use std::borrow::Cow;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The result of one tool call: content for the model, the record for the log, and the effects.
#[derive(Debug, Clone)]
pub struct ToolOutput {
    /// The content of the `tool_result` block.
    pub content: ResultContent,
    /// Whether the block is marked as an error.
    pub is_error: bool,
    /// The `toolUseResult` of the log line, with keys in the order of the format.
    pub record: Option<Box<RawValue>>,
    /// Files that the call wrote or deleted.
    pub changed: Vec<PathBuf>,
    /// Content blocks for a meta user message that follows the result: a document, a note about an image.
    pub follow_up: Vec<Box<RawValue>>,
    /// Whether the turn ends after this result (a valid structured output).
    pub ends_turn: bool,
    /// The pull request that the call created, for a `pr-link` line before the result.
    pub pull_request: Option<Box<PullRequest>>,
}

/// A pull request on a host such as GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// Its address.
    pub url: String,
    /// The repository, as `owner/name`.
    pub repository: String,
}

/// The content of a `tool_result` block.
#[derive(Debug, Clone)]
pub enum ResultContent {
    /// A plain string.
    Text(String),
    /// Content blocks, for example images.
    Blocks(Vec<Box<RawValue>>),
}

impl ResultContent {
    /// Returns a content block with text.
    #[must_use]
    pub fn text_block(text: &str) -> Box<RawValue> {
        raw(&TextBlock { r#type: "text", text })
    }

    /// Returns a content block with an image in base64.
    #[must_use]
    pub fn image_block(media_type: &str, data: &str) -> Box<RawValue> {
        raw(&ImageBlock { r#type: "image", source: ImageSource { r#type: "base64", media_type, data } })
    }
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct ImageBlock<'a> {
    r#type: &'static str,
    source: ImageSource<'a>,
}

#[derive(Serialize)]
struct ImageSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl ToolOutput {
    /// Returns a successful result with text and a record.
    #[must_use]
    pub fn success(text: impl Into<String>, record: &impl Serialize) -> Self {
        Self {
            content: ResultContent::Text(text.into()),
            is_error: false,
            record: Some(raw(record)),
            changed: Vec::new(),
            follow_up: Vec::new(),
            ends_turn: false,
            pull_request: None,
        }
    }

    /// Returns an error result with this content and record.
    pub(crate) fn error(content: String, record: &str) -> Self {
        Self { is_error: true, ..Self::success(content, &record) }
    }

    /// Returns the result of a call that did not run: it was not permitted, or it was interrupted.
    #[must_use]
    pub fn not_run(content: &str, record: &str) -> Self {
        Self::error(content.to_owned(), record)
    }

    /// Returns the result of a call that ran and failed. The middle of a long message is cut.
    #[must_use]
    pub fn failed(message: String) -> Self {
        Failure::Failed(message).into_output("")
    }

    /// Returns the result of a call to a tool that is unknown or not enabled.
    pub(crate) fn unavailable(message: &str) -> Self {
        Self::error(format!("<tool_use_error>{message}</tool_use_error>"), message)
    }

    /// Returns the text of the content; empty for blocks.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.content {
            ResultContent::Text(text) => text,
            ResultContent::Blocks(_) => "",
        }
    }
}

/// Serialises a value. The values of this crate cannot fail; an error would be serialised as its message.
pub(crate) fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|error| {
        to_raw_value(&error.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}

/// A failed call. The variants differ in the text around the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The call was refused before it had any effect: the message is wrapped in `<tool_use_error>`.
    Refused(String),
    /// The check before the call could not be completed, for example because a path cannot be inspected.
    CheckFailed(String),
    /// The call was started and failed: the message is the content.
    Failed(String),
}

/// The maximum length of the message of a failed call in UTF-16 units. The middle of a longer one is cut.
const MAX_FAILURE: usize = 10_000;

impl Failure {
    /// Returns the message.
    pub(crate) fn message(&self) -> &str {
        match self {
            Self::Refused(message) | Self::CheckFailed(message) | Self::Failed(message) => message,
        }
    }

    /// Returns the result of the failed call of the tool `name`.
    pub(crate) fn into_output(self, name: &str) -> ToolOutput {
        match self {
            Self::Refused(message) => ToolOutput::error(
                format!("<tool_use_error>{message}</tool_use_error>"),
                &format!("Error: {message}"),
            ),
            Self::CheckFailed(message) => {
                let message = format!("Error calling tool ({name}): {message}");
                ToolOutput::error(format!("<tool_use_error>{message}</tool_use_error>"), &message)
            }
            Self::Failed(message) => {
                let message = cut_middle(&message, MAX_FAILURE).into_owned();
                let record = format!("Error: {message}");
                ToolOutput::error(message, &record)
            }
        }
    }
}

/// Returns `text` with its middle replaced by a note if it is longer than `max` UTF-16 units.
fn cut_middle(text: &str, max: usize) -> Cow<'_, str> {
    let length: usize = text.chars().map(char::len_utf16).sum();
    if length <= max {
        return Cow::Borrowed(text);
    }
    let head = take_utf16(text, max / 2);
    let mut tail = text.len();
    let mut units = 0;
    for (at, ch) in text.char_indices().rev() {
        units += ch.len_utf16();
        if units > max / 2 {
            break;
        }
        tail = at;
    }
    let removed = length - max;
    Cow::Owned(format!("{head}\n\n... [{removed} characters truncated] ...\n\n{}", &text[tail..]))
}

/// Returns the longest prefix of `text` with at most `units` UTF-16 units.
pub(crate) fn take_utf16(text: &str, units: usize) -> &str {
    let mut taken = 0;
    for (at, ch) in text.char_indices() {
        taken += ch.len_utf16();
        if taken > units {
            return &text[..at];
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_failure_loses_its_middle() {
        let message = format!("Exit code 1\n{}", "y".repeat(10_001));
        let output = Failure::Failed(message).into_output("Bash");
        let expected = format!(
            "Exit code 1\n{}\n\n... [13 characters truncated] ...\n\n{}",
            "y".repeat(5_000 - 12),
            "y".repeat(5_000)
        );
        assert_eq!(output.text(), expected);
    }

    #[test]
    fn failures_differ_in_their_wrapping() {
        let refused = Failure::Refused("no".to_owned()).into_output("Edit");
        assert_eq!(refused.text(), "<tool_use_error>no</tool_use_error>");
        assert_eq!(refused.record.unwrap().get(), r#""Error: no""#);
        let check = Failure::CheckFailed("EISDIR".to_owned()).into_output("Edit");
        assert_eq!(check.text(), "<tool_use_error>Error calling tool (Edit): EISDIR</tool_use_error>");
        assert_eq!(check.record.unwrap().get(), r#""Error calling tool (Edit): EISDIR""#);
        let failed = Failure::Failed("boom".to_owned()).into_output("Edit");
        assert_eq!((failed.text(), failed.is_error), ("boom", true));
    }
}
