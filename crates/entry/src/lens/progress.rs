//! `progress` lines: reports of a running tool, hook or agent.

use std::borrow::Cow;

use super::{Drift, FromJson, Json, Lens, List, lens, lenses_of};
use crate::kind::Kind;
use crate::value;

lens! {
    /// The body of a `progress` line. Which fields it has depends on [`ProgressBody::kind`].
    ProgressBody {
        kind: Cow<'a, str> = "type",

        /// `bash_progress`: the latest lines of output.
        output: Cow<'a, str> = "output",
        full_output: Cow<'a, str> = "fullOutput",
        elapsed_time_seconds: f64 = "elapsedTimeSeconds",
        total_lines: u64 = "totalLines",
        total_bytes: u64 = "totalBytes",
        timeout_ms: u64 = "timeoutMs",
        task_id: Cow<'a, str> = "taskId",

        /// `hook_progress`.
        hook_event: Cow<'a, str> = "hookEvent",
        hook_name: Cow<'a, str> = "hookName",
        command: Cow<'a, str> = "command",

        /// `agent_progress`: a line of the sub-agent, as written in its own file.
        message: InnerLine<'a> = "message",
        normalized_messages: List<'a, InnerLine<'a>> = "normalizedMessages",
        agent_id: Cow<'a, str> = "agentId",
        prompt: Cow<'a, str> = "prompt",
        resume: Json<'a> = "resume",

        /// `mcp_progress`.
        server_name: Cow<'a, str> = "serverName",
        tool_name: Cow<'a, str> = "toolName",
        status: Cow<'a, str> = "status",
        elapsed_time_ms: f64 = "elapsedTimeMs",

        /// `waiting_for_task`.
        task_description: Cow<'a, str> = "taskDescription",
        task_type: Cow<'a, str> = "taskType",

        /// `query_update`, `search_results_received`.
        query: Cow<'a, str> = "query",
        result_count: u64 = "resultCount",
    }
}

/// A report of a sub-agent.
#[derive(Clone, Debug)]
pub struct AgentProgress<'a> {
    /// The id of the sub-agent.
    pub agent_id: Option<Cow<'a, str>>,
    /// A line of the sub-agent, as written in its own file.
    pub message: Option<Json<'a>>,
}

impl<'a> ProgressBody<'a> {
    /// Returns the report of a sub-agent, if this is one. Reads the body once.
    pub fn agent_progress(self) -> Option<AgentProgress<'a>> {
        let [kind, agent_id, message] = self.object().get_all(["type", "agentId", "message"]);
        let is_agent = kind?.as_str()? == value::AGENT_PROGRESS;
        is_agent.then(|| AgentProgress { agent_id: agent_id.and_then(Json::as_str), message })
    }
}

/// A line nested in another line, with the same fields as in a log.
#[derive(Clone, Copy, Debug)]
pub struct InnerLine<'a>(Json<'a>);

impl<'a> FromJson<'a> for InnerLine<'a> {
    type Value = Json<'a>;

    fn value(self) -> Json<'a> {
        self.0
    }

    fn from_json(json: Json<'a>) -> Option<Self> {
        Some(Self(json))
    }

    fn drift(json: Json<'_>, drift: &mut Drift<'_>) {
        let kind = json.get("type").and_then(Json::as_str);
        match kind.as_deref().and_then(|kind| lenses_of(Kind::named(kind))) {
            Some(lenses) => drift.members(json, &lenses),
            None => drift.members(json, &[]),
        }
    }
}

/// The known progress types.
pub const PROGRESS_TYPES: &[&str] = &[
    "bash_progress",
    "hook_progress",
    "agent_progress",
    "mcp_progress",
    "waiting_for_task",
    "query_update",
    "search_results_received",
];
