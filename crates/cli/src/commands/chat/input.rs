//! Prompts on standard input, one JSON object per line.

use std::io::BufRead;

use serde_json::value::RawValue;
use threadline_api::RawObject;

use crate::error::CommandError;

/// The messages on standard input.
pub(super) struct MessageStream {
    line: Vec<u8>,
}

impl MessageStream {
    pub(super) fn new() -> Self {
        Self { line: Vec::new() }
    }

    /// Returns the content of the next user message: a text, or an array of blocks.
    pub(super) fn next(&mut self) -> Result<Option<Box<RawValue>>, CommandError> {
        loop {
            self.line.clear();
            if std::io::stdin().lock().read_until(b'\n', &mut self.line)? == 0 {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&self.line);
            if line.trim().is_empty() {
                continue;
            }
            let object = RawObject::parse(line.trim()).map_err(|error| {
                CommandError::new("a line of standard input is not a JSON object").cause(error.to_string())
            })?;
            if object.get_str("type").as_deref() != Some("user") {
                continue;
            }
            let message = object.get_object("message").unwrap_or_default();
            if let Some(content) = message.get("content") {
                return Ok(Some(content.to_owned()));
            }
        }
    }
}
