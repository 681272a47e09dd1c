//! JSON of `blame`: the lines of a file with their origins, and the edits of a file.

use serde::Serialize;

/// One line of `blame`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct BlameLineObject {
    pub line: u64,
    pub text: String,
    pub origin: &'static str,
    pub moved: bool,
    pub edit: Option<BlameEditObject>,
    pub candidates: Vec<BlameEditObject>,
    pub commit: Option<CommitObject>,
}

/// The edit that wrote a line, or may have written it.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct BlameEditObject {
    pub session: String,
    pub title: Option<String>,
    pub agent: Option<String>,
    pub turn: Option<u64>,
    pub prompt: Option<String>,
    pub anchor: String,
    pub link: String,
    pub tool: String,
    pub path: String,
    pub edited_at: Option<String>,
    pub lines_added: Option<u64>,
    pub lines_removed: Option<u64>,
}

impl BlameEditObject {
    /// Returns the prompt of the turn, else the title of the session, else its id.
    pub fn label(&self) -> &str {
        self.prompt.as_deref().or(self.title.as_deref()).unwrap_or(&self.session)
    }
}

/// A commit of git.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CommitObject {
    pub id: String,
    pub author: String,
    pub committed_at: String,
    pub summary: String,
    pub file: String,
}
