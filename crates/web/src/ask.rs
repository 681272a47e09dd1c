//! What is asked of a page: in which form, and about what.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a page is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As a page to read.
    Html,
    /// As JSON lines, our public JSON: the same address with `.json` behind it.
    Json,
    /// As Markdown: the same address with `.md` behind it.
    Markdown,
}

/// What is asked of a page.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// How to tell it.
    pub(crate) form: Form,
    /// The parts of the path that vary, in order, without the ending of a twin.
    pub(crate) path: Vec<String>,
    /// What stands behind the `?`, in order.
    pub(crate) query: Vec<(String, String)>,
    /// Set once nobody waits for the answer any more.
    pub(crate) gone: Arc<AtomicBool>,
}

impl Ask {
    /// The last value of a name behind the `?`, unless it is empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let mut found = self.query.iter().rev().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// Everything behind the `?`, in order.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.query.iter().map(|(key, value)| (&**key, &**value))
    }

    /// A varying part of the path.
    pub(crate) fn part(&self, idx: usize) -> &str {
        self.path.get(idx).map(String::as_str).unwrap_or_default()
    }
}

impl Form {
    /// Splits the ending of a twin from the last part of a path.
    pub(crate) fn of(last: &str) -> (Self, &str) {
        if let Some(rest) = last.strip_suffix(".json") {
            (Self::Json, rest)
        } else if let Some(rest) = last.strip_suffix(".md") {
            (Self::Markdown, rest)
        } else {
            (Self::Html, last)
        }
    }
}
