//! JSON of `trace`: spans, sent sessions and settings.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::TokensObject;

/// One span of `trace push --dry-run`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SpanObject<'a> {
    pub session: &'a str,
    pub trace: String,
    pub span: String,
    pub parent: Option<String>,
    pub kind: &'static str,
    pub name: &'a str,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub error: Option<&'a str>,
    pub events: Vec<&'static str>,
    pub tokens: Option<TokensObject>,
    pub cost: Option<String>,
}

/// One session of `trace push`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct PushObject<'a> {
    pub session: &'a str,
    pub path: &'a Path,
    pub turns: usize,
    pub spans: u64,
    pub requests: u64,
    pub refused: u64,
    pub unfinished: bool,
    pub error: Option<String>,
}

/// The state of a session for one receiver, of `trace status`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SessionStatusObject {
    pub receiver: String,
    pub session: String,
    pub path: PathBuf,
    pub turns: usize,
    pub spans: u64,
    pub pending_bytes: u64,
    pub pending_spans: u64,
    pub pending_agents: usize,
    pub refused: u64,
    pub error: Option<String>,
    pub sent_at: Option<String>,
}

/// The result of `setup` with the name of a feature.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct InstallObject<'a> {
    pub path: &'a Path,
    pub changed: bool,
    pub applied: bool,
    pub settings: Option<&'a str>,
    /// The id of the operation that changed the file, for `op undo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'a str>,
}

/// A feature in the result of `setup`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SetupObject<'a> {
    pub feature: &'a str,
    pub on: bool,
    pub paths: &'a [std::path::PathBuf],
    pub last_run: Option<&'a str>,
    pub last_error: Option<&'a str>,
}

/// A line in the result of `setup --log`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SetupLogObject<'a> {
    pub at: &'a str,
    pub level: &'a str,
    pub feature: &'a str,
    pub text: &'a str,
}
