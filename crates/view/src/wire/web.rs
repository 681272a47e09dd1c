//! JSON of the viewer, of `mcp --http`, and of errors.

use std::borrow::Cow;

use serde::Serialize;

use crate::changes::{FileChange, patch};

/// An error, in place of the requested objects or after some of them.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ErrorObject<'a> {
    pub code: &'a str,
    pub hint: Option<&'a str>,
    pub message: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> ErrorObject<'a> {
    /// Returns the object for an error with this message, and a hint what to do about it.
    pub fn new(message: &'a str, hint: Option<&'a str>) -> Self {
        Self { code: "failed", hint, message, kind: "error" }
    }

    /// Sets the code, a stable name of the kind of error.
    #[must_use]
    pub fn with_code(self, code: &'a str) -> Self {
        Self { code, ..self }
    }
}

/// The address of `mcp --http`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct McpAddressObject<'a> {
    pub url: &'a str,
    pub token: &'a str,
}

/// A match in the viewer's palette: a session, project, file, command or page, or a search.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct PaletteObject {
    pub kind: &'static str,
    pub label: String,
    pub detail: String,
    pub href: String,
}

/// The net change of one file.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ChangeObject<'a> {
    pub after: Option<Cow<'a, str>>,
    pub before: Option<Cow<'a, str>>,
    pub edits: usize,
    pub notes: &'a [String],
    pub patch: Option<String>,
    pub path: &'a str,
    pub renamed_from: Option<&'a str>,
    pub state: &'static str,
    pub status: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
}

impl<'a> From<&'a FileChange> for ChangeObject<'a> {
    fn from(file: &'a FileChange) -> Self {
        Self {
            after: file.text_after().filter(|_| file.has_whole()),
            before: file.text_before().filter(|_| file.has_whole()),
            edits: file.edits(),
            notes: &file.notes,
            patch: (!file.parts.is_empty()).then(|| patch(std::slice::from_ref(file), None)),
            path: &file.path,
            renamed_from: file.renamed_from.as_deref(),
            state: file.certainty.name(),
            status: file.status(),
            kind: "change",
        }
    }
}

#[cfg(test)]
mod tests {
    use threadline_evidence::{Certainty, FileContent};

    use super::{ChangeObject, ErrorObject};
    use crate::changes::FileChange;

    #[test]
    fn members_are_in_alphabetical_order() {
        let error = serde_json::to_string(&ErrorObject::new("Session not found", None)).unwrap();
        assert_eq!(error, r#"{"code":"failed","hint":null,"message":"Session not found","type":"error"}"#);
        let file = FileChange {
            path: "/loom/a".to_owned(),
            before: Some(FileContent::Absent),
            after: Some(FileContent::bytes(*b"new")),
            certainty: Certainty::Exact,
            parts: Vec::new(),
            is_chain: false,
            source: None,
            renamed_from: None,
            calls: Vec::new(),
            notes: vec!["more".to_owned()],
        };
        assert_eq!(
            serde_json::to_string(&ChangeObject::from(&file)).unwrap(),
            r#"{"after":"new","before":null,"edits":0,"notes":["more"],"patch":null,"path":"/loom/a","renamed_from":null,"state":"exact","status":"created","type":"change"}"#
        );
    }
}
