//! JSON of `compare`: two conversations side by side.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use super::{TimingObject, TokensObject};

/// The answer of `compare`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CompareObject {
    pub shared_turns: u64,
    pub a: ConversationObject,
    pub b: ConversationObject,
    pub files: Vec<ComparedFileObject>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ConversationObject {
    pub session: String,
    pub title: Option<String>,
    pub branch: Option<String>,
    pub cwd: Option<String>,
    pub git_branch: Option<String>,
    pub models: Vec<String>,
    pub turns: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub errors: u64,
    pub sub_agents: u64,
    pub other_branches: u64,
    pub compactions: u64,
    pub tokens: TokensObject,
    pub cost_usd: Option<Box<RawValue>>,
    pub is_minimum: bool,
    pub inherited_cost_usd: Option<Box<RawValue>>,
    pub started_at: Option<String>,
    pub ended_at: Option<String>,
    pub elapsed_ms: i64,
    pub timing: TimingObject,
    pub tools: BTreeMap<String, ComparedToolObject>,
    pub prompts: Vec<ComparedPromptObject>,
}

/// The calls of one tool.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ComparedToolObject {
    pub calls: u64,
    pub errors: u64,
    pub duration_ms: i64,
}

/// One prompt.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ComparedPromptObject {
    pub turn: u64,
    pub anchor: String,
    pub prompt: String,
    pub shared: bool,
    pub cost_usd: Option<Box<RawValue>>,
    pub duration_ms: Option<i64>,
}

/// A file that at least one side changed.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ComparedFileObject {
    pub path: String,
    pub relation: &'static str,
    pub a: Option<ProducedFileObject>,
    pub b: Option<ProducedFileObject>,
    pub patch: Option<String>,
}

/// The change of a file by one side.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ProducedFileObject {
    pub path: String,
    pub edits: u64,
    pub lines_added: u64,
    pub lines_removed: u64,
}
