//! Writes a JSON object on one line, member by member.

use super::quote;
use crate::json::Json;

/// A JSON object that is being written.
pub(super) struct ObjectWriter(String);

impl ObjectWriter {
    pub(super) fn new() -> Self {
        Self("{".to_owned())
    }

    /// Adds a member whose value is JSON on one line.
    fn raw(mut self, key: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(&quote(key));
        self.0.push(':');
        self.0.push_str(value);
        self
    }

    /// Adds a string.
    pub(super) fn string(self, key: &str, value: &str) -> Self {
        self.raw(key, &quote(value))
    }

    /// Adds a string if there is one.
    pub(super) fn optional_string(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.string(key, value),
            None => self,
        }
    }

    /// Adds a string or null.
    pub(super) fn nullable_string(self, key: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.string(key, value),
            None => self.raw(key, "null"),
        }
    }

    /// Adds a boolean.
    pub(super) fn bool(self, key: &str, value: bool) -> Self {
        self.raw(key, if value { "true" } else { "false" })
    }

    /// Adds `true` if `value` is set.
    pub(super) fn flag(self, key: &str, value: bool) -> Self {
        if value { self.bool(key, true) } else { self }
    }

    /// Adds a number.
    pub(super) fn number(self, key: &str, value: u64) -> Self {
        self.raw(key, &value.to_string())
    }

    /// Adds a JSON value.
    pub(super) fn json(self, key: &str, value: Json<'_>) -> Self {
        // Outside of strings a newline is white space, and inside of them it is escaped.
        let value = value.raw().replace(['\n', '\r'], " ");
        self.raw(key, value.trim())
    }

    /// Adds a JSON value if there is one.
    pub(super) fn optional_json(self, key: &str, value: Option<Json<'_>>) -> Self {
        match value {
            Some(value) => self.json(key, value),
            None => self,
        }
    }

    /// Adds an object.
    pub(super) fn object(self, key: &str, value: Self) -> Self {
        let value = value.finish();
        self.raw(key, &value)
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
