//! Requests: the format and the parameters of a page.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseFormat {
    /// An HTML page.
    Html,
    /// JSON lines, our public JSON: the same path with the suffix `.json`.
    Json,
    /// Markdown: the same path with the suffix `.md`.
    Markdown,
}

/// A request for a page.
#[derive(Clone, Debug)]
pub(crate) struct PageRequest {
    /// The requested format.
    pub(crate) format: ResponseFormat,
    /// The path parameters in order, without the suffix of the format.
    pub(crate) path_params: Vec<String>,
    /// The query parameters in order.
    pub(crate) query: Vec<(String, String)>,
    /// Set when the client has disconnected or has its response.
    pub(crate) cancelled: Arc<AtomicBool>,
}

impl PageRequest {
    /// Returns the last value of a query parameter, unless it is empty.
    pub(crate) fn query_param(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Returns all query parameters in order.
    pub(crate) fn query_pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(key, value)| (&**key, &**value))
    }

    /// Returns a path parameter, or an empty string.
    pub(crate) fn path_param(&self, idx: usize) -> &str {
        self.path_params.get(idx).map(String::as_str).unwrap_or_default()
    }
}

impl ResponseFormat {
    /// Returns the suffix of paths in this format.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Html => "",
            Self::Json => ".json",
            Self::Markdown => ".md",
        }
    }

    /// Splits the format suffix from the last segment of a path.
    pub(crate) fn split_suffix(last: &str) -> (Self, &str) {
        if let Some(rest) = last.strip_suffix(".json") {
            (Self::Json, rest)
        } else if let Some(rest) = last.strip_suffix(".md") {
            (Self::Markdown, rest)
        } else {
            (Self::Html, last)
        }
    }
}
