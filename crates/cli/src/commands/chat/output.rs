//! Prints the events of a session as text, JSON, or one JSON object per event.

use std::time::Duration;

use threadline_agent::{
    Agent, AgentEvent, CompactionEvent, HookEvent, HookOutcome, HookRun, ModelUsageTotals, SharedPermissions,
    SubAgentEvent, SubAgentSource, SubAgentUsage, TurnEnd, TurnSummary, WrittenCompaction,
};
use threadline_api::{RawObject, model_info};
use threadline_entry::Millis;
use threadline_entry::write::timestamp;
use threadline_mcp_client::{McpServerStatus, McpServers, display_name};
use threadline_permission::RefusalBasis;
use threadline_term::text;

use super::{ChatArgs, OutputFormat};
use crate::error::CommandError;
use crate::ui::{self, OutputStream};

/// Prints events in the format that was asked for.
pub(super) struct Printer {
    out: OutputStream,
    format: OutputFormat,
    has_partial: bool,
    has_replay: bool,
    has_hook_events: bool,
    session_id: String,
    /// The line at the start of a turn, without its id.
    init: RawObject,
    /// Where the key of the API comes from.
    api_key_source: String,
    permissions: SharedPermissions,
    mcp: McpServers,
    /// The first error of a write; everything after it is dropped.
    error: Option<std::io::Error>,
}

impl Printer {
    pub(super) fn new(out: OutputStream, args: &ChatArgs, agent: &Agent, api_key_source: &str) -> Self {
        let config = agent.config();
        Self {
            out,
            format: args.output_format,
            has_partial: args.include_partial_messages,
            has_replay: args.replay_user_messages,
            has_hook_events: args.include_hook_events,
            session_id: agent.session_id(),
            init: init_line(agent, api_key_source),
            api_key_source: api_key_source.to_owned(),
            permissions: config.permissions.clone(),
            mcp: config.mcp.clone(),
            error: None,
        }
    }

    /// Updates the line at the start of a turn after a change of the model or of the kinds of sub-agents.
    pub(super) fn set_session(&mut self, agent: &Agent) {
        self.init = init_line(agent, &self.api_key_source);
    }

    /// Prints an event.
    pub(super) fn event(&mut self, event: &AgentEvent<'_>) {
        match (event, self.format) {
            (AgentEvent::TurnEnd(summary), OutputFormat::Text) => {
                let text = text_of(summary);
                let newline = if text.ends_with('\n') { "" } else { "\n" };
                self.write(&format!("{text}{newline}"));
            }
            (AgentEvent::TurnEnd(summary), _) => {
                let line = self.result(summary);
                self.line(&line);
            }
            (AgentEvent::TaskEnd { task, timestamp }, OutputFormat::StreamJson) => {
                let status = task.status.name();
                let file = task.output_file.to_string_lossy();
                let ids = (task.id.as_str(), task.tool_use_id.as_str());
                for line in self.task_end(ids, [status, status], &file, &task.summary(), *timestamp) {
                    self.line(&line);
                }
            }
            (
                AgentEvent::TaskStop { task_id, tool_use_id, description, timestamp },
                OutputFormat::StreamJson,
            ) => {
                let ids = (*task_id, *tool_use_id);
                for line in self.task_end(ids, ["killed", "stopped"], "", description, *timestamp) {
                    self.line(&line);
                }
            }
            (AgentEvent::SubAgent { source, event }, OutputFormat::StreamJson) => {
                for line in self.sub_agent_lines(source, event) {
                    self.line(&line);
                }
            }
            // Hooks of the start are always shown.
            (AgentEvent::Hook { id, run }, OutputFormat::StreamJson)
                if self.has_hook_events || run.event == HookEvent::SessionStart =>
            {
                for line in self.hook(id, run) {
                    self.line(&line);
                }
            }
            (AgentEvent::Compaction(CompactionEvent::Boundary(compaction)), OutputFormat::StreamJson) => {
                for line in self.compaction(compaction) {
                    self.line(&line);
                }
            }
            (AgentEvent::SessionChanged { session_id }, _) => {
                (*session_id).clone_into(&mut self.session_id);
                self.init.set("session_id", session_id);
            }
            (AgentEvent::Warning(warning), _) => ui::write_stderr(&text!("{warning}\n")),
            (event, OutputFormat::StreamJson) => {
                if let Some(line) = self.stream_line(event) {
                    self.line(&line);
                }
            }
            _ => {}
        }
    }

    /// Reports the first error of a write.
    pub(super) fn finish(mut self) -> Result<(), CommandError> {
        if let Some(error) = self.error.take() {
            return Err(error.into());
        }
        self.out.finish()?;
        Ok(())
    }

    fn line(&mut self, line: &RawObject) {
        self.write(&format!("{}\n", line.to_json()));
    }

    fn write(&mut self, text: &str) {
        if self.error.is_none()
            && let Err(error) = self.out.data(text).and_then(|()| self.out.flush())
        {
            self.error = Some(error);
        }
    }

    /// Returns the line of an event in the format of Claude Code.
    fn stream_line(&self, event: &AgentEvent<'_>) -> Option<RawObject> {
        let system = |subtype: &str| RawObject::new().with("type", "system").with("subtype", subtype);
        let id = &self.session_id;
        Some(match event {
            AgentEvent::Prompt { .. } if !self.has_replay => return None,
            AgentEvent::Prompt { uuid, message, timestamp: time }
            | AgentEvent::CommandOutput { uuid, message, timestamp: time } => RawObject::new()
                .with("type", "user")
                .with("message", message)
                .with("session_id", id)
                .with("parent_tool_use_id", ())
                .with("uuid", uuid)
                .with("timestamp", timestamp(*time))
                .with("isReplay", true),
            AgentEvent::TurnStart => {
                let mut line = self.init.clone();
                line.set("permissionMode", self.permissions.mode().name());
                line.with("uuid", new_uuid()).with("fast_mode_state", "off")
            }
            AgentEvent::Compaction(CompactionEvent::Start) => {
                system("status").with("status", "compacting").with("session_id", id).with("uuid", new_uuid())
            }
            AgentEvent::Compaction(CompactionEvent::End { error }) => {
                let mut line = system("status").with("status", ());
                line.set("compact_result", if error.is_some() { "failed" } else { "success" });
                if let Some(error) = error {
                    line.set("compact_error", error);
                }
                line.with("session_id", id).with("uuid", new_uuid())
            }
            AgentEvent::PromptStopped { uuid, text } => system("informational")
                .with("content", text)
                .with("level", "warning")
                .with("prevent_continuation", true)
                .with("uuid", uuid)
                .with("session_id", id),
            AgentEvent::Notification { key, text } => system("notification")
                .with("key", key)
                .with("text", text)
                .with("priority", "immediate")
                .with("uuid", new_uuid())
                .with("session_id", id),
            AgentEvent::Refused { tool, tool_use_id, refusal } => system("permission_denied")
                .with("tool_name", tool)
                .with("tool_use_id", tool_use_id)
                .with(
                    "decision_reason_type",
                    match refusal.basis {
                        RefusalBasis::Rule => "rule",
                        RefusalBasis::Parts => "subcommandResults",
                        RefusalBasis::Mode => "mode",
                    },
                )
                .with("message", &refusal.message)
                .with("uuid", new_uuid())
                .with("session_id", id),
            AgentEvent::PermissionMode(mode) => system("status")
                .with("status", ())
                .with("permissionMode", mode.name())
                .with("uuid", new_uuid())
                .with("session_id", id),
            AgentEvent::Requesting if self.has_partial => {
                system("status").with("status", "requesting").with("uuid", new_uuid()).with("session_id", id)
            }
            AgentEvent::Retry { attempt, max_retries, delay, status, kind } => system("api_retry")
                .with("attempt", attempt)
                .with("max_retries", max_retries)
                .with("retry_delay_ms", millis(*delay))
                .with("error_status", status)
                .with("error", kind.name())
                .with("session_id", id)
                .with("uuid", new_uuid()),
            AgentEvent::Stream { raw, first_after } if self.has_partial => {
                let mut line = RawObject::new().with("type", "stream_event");
                line.set_raw("event", serde_json::from_str(raw).ok()?);
                line.set("session_id", id);
                line.set("parent_tool_use_id", ());
                line.set("uuid", new_uuid());
                if let Some(first_after) = first_after {
                    line.set("ttft_ms", millis(*first_after));
                }
                line
            }
            AgentEvent::Assistant { uuid, message, request_id, error } => {
                let mut line = RawObject::new()
                    .with("type", "assistant")
                    .with("message", message)
                    .with("parent_tool_use_id", ())
                    .with("session_id", id)
                    .with("uuid", uuid);
                if let Some(error) = error {
                    line.set("error", error);
                }
                if let Some(request_id) = request_id {
                    line.set("request_id", request_id);
                }
                self.add_tool_use_meta(&mut line, message);
                line
            }
            AgentEvent::User { uuid, message, timestamp: time, tool_use_result, is_synthetic, .. } => {
                let mut line = RawObject::new()
                    .with("type", "user")
                    .with("message", message)
                    .with("parent_tool_use_id", ())
                    .with("session_id", id)
                    .with("uuid", uuid)
                    .with("timestamp", timestamp(*time));
                if let Some(result) = tool_use_result {
                    line.set("tool_use_result", result);
                }
                if *is_synthetic {
                    line.set("isSynthetic", true);
                }
                line
            }
            AgentEvent::TaskStart { task_id, tool_use_id, description } => system("task_started")
                .with("task_id", task_id)
                .with("tool_use_id", tool_use_id)
                .with("description", description)
                .with("task_type", "local_bash")
                .with("uuid", new_uuid())
                .with("session_id", id),
            _ => return None,
        })
    }

    /// Adds the names for people of the MCP tools that a message calls.
    fn add_tool_use_meta(&self, line: &mut RawObject, message: &RawObject) {
        let content = message.get("content").and_then(|json| serde_json::from_str(json.get()).ok());
        let blocks: Vec<RawObject> = content.unwrap_or_default();
        let calls = blocks.iter().filter_map(|block| {
            let name = block.get_str("name").filter(|name| name.starts_with("mcp__"))?;
            let call = RawObject::new().with("id", block.get_str("id").unwrap_or_default());
            Some(match self.mcp.tool(&name) {
                Some(tool) => {
                    call.with("display_name", tool.display_name()).with("server_display_name", &tool.server)
                }
                None => call.with("display_name", display_name(&name)),
            })
        });
        let calls: Vec<RawObject> = calls.collect();
        if !calls.is_empty() {
            line.set("tool_use_meta", calls);
        }
    }

    /// Returns the lines of a compaction: the boundary and the summary.
    fn compaction(&self, compaction: &WrittenCompaction) -> [RawObject; 2] {
        let mut metadata = RawObject::new()
            .with("trigger", compaction.trigger)
            .with("pre_tokens", compaction.pre_tokens)
            .with("post_tokens", compaction.post_tokens)
            .with("cumulative_dropped_tokens", compaction.dropped_tokens)
            .with("duration_ms", millis(compaction.duration));
        let anchor = &compaction.summary_uuid;
        if let (Some(head), Some(tail)) = (compaction.preserved.first(), compaction.preserved.last()) {
            let segment =
                RawObject::new().with("head_uuid", head).with("anchor_uuid", anchor).with("tail_uuid", tail);
            metadata.set("preserved_segment", segment);
            let messages = RawObject::new()
                .with("anchor_uuid", anchor)
                .with("uuids", &compaction.preserved)
                .with("all_uuids", &compaction.preserved);
            metadata.set("preserved_messages", messages);
        }
        let boundary = RawObject::new()
            .with("type", "system")
            .with("subtype", "compact_boundary")
            .with("session_id", &self.session_id)
            .with("uuid", &compaction.uuid)
            .with("compact_metadata", metadata);
        let message = RawObject::new().with("role", "user").with("content", &compaction.summary);
        let summary = RawObject::new()
            .with("type", "user")
            .with("message", message)
            .with("session_id", &self.session_id)
            .with("parent_tool_use_id", ())
            .with("uuid", anchor)
            .with("timestamp", timestamp(compaction.summary_time))
            .with("isReplay", false)
            .with("isSynthetic", true);
        [boundary, summary]
    }

    /// Returns the lines of a hook: its start and its end.
    fn hook(&self, hook_id: &str, run: &HookRun) -> [RawObject; 2] {
        let line = |subtype: &str| {
            RawObject::new()
                .with("type", "system")
                .with("subtype", subtype)
                .with("hook_id", hook_id)
                .with("hook_name", &run.name)
                .with("hook_event", run.event.name())
        };
        let outcome = match run.outcome {
            HookOutcome::Success => "success",
            HookOutcome::Blocked | HookOutcome::Failed => "error",
            HookOutcome::Cancelled => "cancelled",
        };
        let start = line("hook_started").with("uuid", new_uuid()).with("session_id", &self.session_id);
        let end = line("hook_response")
            .with("output", format!("{}{}", run.stdout, run.stderr))
            .with("stdout", &run.stdout)
            .with("stderr", &run.stderr)
            .with("exit_code", run.exit_code)
            .with("outcome", outcome)
            .with("uuid", new_uuid())
            .with("session_id", &self.session_id);
        [start, end]
    }

    /// Returns the lines of an event of a sub-agent.
    fn sub_agent_lines(&self, source: &SubAgentSource, event: &SubAgentEvent) -> Vec<RawObject> {
        let system = |subtype: &str| {
            let line = RawObject::new().with("type", "system").with("subtype", subtype);
            line.with("task_id", &source.agent_id)
        };
        let end = |line: RawObject| line.with("uuid", new_uuid()).with("session_id", &self.session_id);
        let message = |kind: &str, uuid: &str, message: &RawObject| {
            RawObject::new()
                .with("type", kind)
                .with("message", message)
                .with("parent_tool_use_id", &source.tool_use_id)
                .with("session_id", &self.session_id)
                .with("uuid", uuid)
        };
        let with_task = |line: RawObject| {
            line.with("subagent_type", &source.agent_type).with("task_description", &source.description)
        };
        match event {
            SubAgentEvent::Started => vec![end(system("task_started")
                .with("tool_use_id", &source.tool_use_id)
                .with("description", &source.description)
                .with("subagent_type", &source.agent_type)
                .with("task_type", "local_agent")
                .with("prompt", &source.prompt))],
            SubAgentEvent::Prompt { uuid, message: content, timestamp: time }
            | SubAgentEvent::User { uuid, message: content, timestamp: time } => {
                vec![with_task(message("user", uuid, content).with("timestamp", timestamp(*time)))]
            }
            SubAgentEvent::Assistant { uuid, message: content, request_id } => {
                let mut line = message("assistant", uuid, content);
                if let Some(request_id) = request_id {
                    line.set("request_id", request_id);
                }
                self.add_tool_use_meta(&mut line, content);
                vec![with_task(line)]
            }
            SubAgentEvent::Progress { activity, tool_name, usage } => vec![end(system("task_progress")
                .with("tool_use_id", &source.tool_use_id)
                .with("description", activity)
                .with("subagent_type", &source.agent_type)
                .with("usage", sub_agent_usage(usage))
                .with("last_tool_name", tool_name))],
            SubAgentEvent::Finished { status, summary, output_file, usage, timestamp: time } => {
                let patch = RawObject::new().with("status", status).with("end_time", time);
                vec![
                    end(system("task_updated").with("patch", patch)),
                    end(system("task_notification")
                        .with("tool_use_id", &source.tool_use_id)
                        .with("status", status)
                        .with("output_file", output_file)
                        .with("summary", summary)
                        .with("usage", sub_agent_usage(usage))),
                ]
            }
        }
    }

    /// Returns the lines of a background task that ended. The two lines name its status differently.
    fn task_end(
        &self,
        (task_id, tool_use_id): (&str, &str),
        [updated, notified]: [&str; 2],
        output_file: &str,
        summary: &str,
        time: Millis,
    ) -> [RawObject; 2] {
        let system = |subtype: &str| RawObject::new().with("type", "system").with("subtype", subtype);
        let patch = RawObject::new().with("status", updated).with("end_time", time);
        [
            system("task_updated")
                .with("task_id", task_id)
                .with("patch", patch)
                .with("uuid", new_uuid())
                .with("session_id", &self.session_id),
            system("task_notification")
                .with("task_id", task_id)
                .with("tool_use_id", tool_use_id)
                .with("status", notified)
                .with("output_file", output_file)
                .with("summary", summary)
                .with("session_id", &self.session_id)
                .with("uuid", new_uuid()),
        ]
    }

    /// Returns the line at the end of a turn.
    fn result(&self, summary: &TurnSummary) -> RawObject {
        let is_sent = summary.end != TurnEnd::NotSent;
        let has_answer = matches!(
            summary.end,
            TurnEnd::Completed
                | TurnEnd::ApiError { .. }
                | TurnEnd::Refused
                | TurnEnd::NotSent
                | TurnEnd::StoppedByHook { .. }
                | TurnEnd::Deferred
        );
        let mut line = RawObject::new().with("type", "result").with("subtype", subtype(&summary.end));
        if has_answer {
            let status = match summary.end {
                TurnEnd::ApiError { status, .. } => status,
                _ => None,
            };
            line.set("is_error", summary.end.is_error());
            if is_sent && summary.end != TurnEnd::Deferred {
                line.set("api_error_status", status);
            }
        }
        line.set("duration_ms", millis(summary.duration));
        line.set("duration_api_ms", summary.api_duration.as_millis() as u64);
        if !has_answer {
            line.set("is_error", true);
        }
        if matches!(summary.end, TurnEnd::Completed | TurnEnd::StoppedByHook { .. }) {
            line.set("ttft_ms", summary.first_token.map(millis));
            line.set("ttft_stream_ms", summary.first_token.map(millis));
            line.set("time_to_request_ms", summary.first_request.map(millis));
        }
        line.set("num_turns", summary.num_turns);
        if has_answer {
            line.set("result", &summary.text);
        }
        line.set("stop_reason", &summary.stop_reason);
        line.set("session_id", &self.session_id);
        line.set("total_cost_usd", number(summary.totals.cost_usd()));
        line.set("usage", &summary.usage);
        line.set("modelUsage", model_usage(&summary.totals));
        let denials: Vec<RawObject> = summary
            .denials
            .iter()
            .map(|denial| {
                RawObject::new()
                    .with("tool_name", &denial.tool_name)
                    .with("tool_use_id", &denial.tool_use_id)
                    .with("tool_input", &denial.tool_input)
            })
            .collect();
        line.set("permission_denials", denials);
        if let Some(call) = &summary.deferred_call {
            let deferred = RawObject::new().with("id", &call.id).with("name", &call.name);
            line.set("deferred_tool_use", deferred.with("input", &call.input));
        }
        if let Some(output) = &summary.structured_output {
            line.set("structured_output", output);
        }
        if let Some(reason) = terminal_reason(&summary.end) {
            line.set("terminal_reason", reason);
        }
        line.set("fast_mode_state", "off");
        line.set("uuid", new_uuid());
        if let Some(origin) = &summary.origin {
            line.set("origin", RawObject::new().with("kind", origin));
        }
        if let Some(errors) = errors(summary) {
            line.set("errors", errors);
        }
        line
    }
}

/// Returns the line at the start of a turn, without its id.
fn init_line(agent: &Agent, api_key_source: &str) -> RawObject {
    let config = agent.config();
    let none: [&str; 0] = [];
    let commands = |only_skills: bool| -> Vec<&str> {
        let commands = config.commands.iter();
        let listed = commands.filter(|command| !only_skills || command.skill_dir.is_some());
        let prompts = config.mcp.prompts().filter(|_| !only_skills).map(|prompt| prompt.command.as_str());
        listed.map(|command| command.name.as_str()).chain(prompts).collect()
    };
    RawObject::new()
        .with("type", "system")
        .with("subtype", "init")
        .with("cwd", config.paths.cwd.to_string_lossy())
        .with("session_id", agent.session_id())
        .with("tools", agent.tool_names())
        .with("mcp_servers", mcp_servers(&config.mcp))
        .with("model", &config.model)
        .with("permissionMode", config.permissions.mode().name())
        .with("slash_commands", commands(false))
        .with("apiKeySource", api_key_source)
        .with("claude_code_version", config.profile.version)
        .with("output_style", "default")
        .with("agents", agent.agent_names())
        .with("skills", commands(true))
        .with("plugins", none)
        .with("analytics_disabled", true)
        .with("product_feedback_disabled", true)
}

/// Returns the MCP servers and whether they can be used.
fn mcp_servers(servers: &McpServers) -> Vec<RawObject> {
    let entry = |server: &McpServerStatus| {
        let status = if server.error.is_some() { "failed" } else { "connected" };
        RawObject::new().with("name", &server.name).with("status", status)
    };
    servers.statuses().iter().map(entry).collect()
}

/// Returns the tokens, calls and time of a sub-agent.
fn sub_agent_usage(usage: &SubAgentUsage) -> RawObject {
    RawObject::new()
        .with("total_tokens", usage.total_tokens)
        .with("tool_uses", usage.tool_uses)
        .with("duration_ms", millis(usage.duration))
}

/// Returns the tokens and the cost by model.
fn model_usage(totals: &ModelUsageTotals) -> RawObject {
    let mut object = RawObject::new();
    for entry in &totals.models {
        let info = model_info(&entry.model);
        let value = RawObject::new()
            .with("inputTokens", entry.usage.input)
            .with("outputTokens", entry.usage.output)
            .with("cacheReadInputTokens", entry.usage.cache_read)
            .with("cacheCreationInputTokens", entry.usage.cache_write)
            .with("webSearchRequests", entry.usage.web_searches)
            .with("costUSD", entry.cost_usd)
            .with("contextWindow", info.context_window)
            .with("maxOutputTokens", info.max_output);
        object.set(&entry.model, value);
    }
    object
}

fn subtype(end: &TurnEnd) -> &'static str {
    match end {
        TurnEnd::Completed
        | TurnEnd::ApiError { .. }
        | TurnEnd::Refused
        | TurnEnd::NotSent
        | TurnEnd::StoppedByHook { .. }
        | TurnEnd::Deferred => "success",
        TurnEnd::Interrupted { .. } | TurnEnd::TakenBack | TurnEnd::Failed(_) => "error_during_execution",
        TurnEnd::MaxTurns(_) => "error_max_turns",
        TurnEnd::MaxBudget(_) => "error_max_budget_usd",
        TurnEnd::MaxSchemaErrors(_) => "error_max_structured_output_retries",
    }
}

fn terminal_reason(end: &TurnEnd) -> Option<&'static str> {
    match end {
        TurnEnd::Completed | TurnEnd::Refused => Some("completed"),
        TurnEnd::ApiError { reason, .. } => Some(reason),
        TurnEnd::Interrupted { during_tools: true } => Some("aborted_tools"),
        TurnEnd::Interrupted { during_tools: false } | TurnEnd::TakenBack => Some("aborted_streaming"),
        TurnEnd::MaxTurns(_) => Some("max_turns"),
        TurnEnd::MaxBudget(_) | TurnEnd::MaxSchemaErrors(_) | TurnEnd::NotSent => None,
        TurnEnd::Deferred => Some("tool_deferred"),
        TurnEnd::StoppedByHook { after_tool: true } => Some("hook_stopped"),
        TurnEnd::StoppedByHook { after_tool: false } => Some("stop_hook_prevented"),
        TurnEnd::Failed(_) => Some("failed"),
    }
}

/// Returns the errors of a turn without an answer.
fn errors(summary: &TurnSummary) -> Option<Vec<String>> {
    let error = match &summary.end {
        TurnEnd::MaxTurns(limit) => format!("Reached maximum number of turns ({limit})"),
        TurnEnd::MaxBudget(budget) => format!("Reached maximum budget (${budget})"),
        TurnEnd::MaxSchemaErrors(count) => schema_errors(*count),
        TurnEnd::Interrupted { .. } => "Interrupted".to_owned(),
        TurnEnd::Failed(error) => error.clone(),
        _ => return None,
    };
    Some(vec![error])
}

fn schema_errors(count: u64) -> String {
    format!("Failed to provide valid structured output after {count} attempts")
}

/// Returns the text output of a turn.
fn text_of(summary: &TurnSummary) -> String {
    match &summary.end {
        TurnEnd::MaxTurns(limit) => format!("Error: Reached max turns ({limit})"),
        TurnEnd::MaxBudget(budget) => format!("Error: Exceeded USD budget ({budget})"),
        TurnEnd::MaxSchemaErrors(count) => format!("Error: {}", schema_errors(*count)),
        TurnEnd::Interrupted { .. } => "Execution error".to_owned(),
        TurnEnd::Failed(error) => format!("Error: {error}"),
        _ => summary.text.clone(),
    }
}

/// Returns a duration in milliseconds, at least 1.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Returns a number without a fraction if it has none, as JavaScript writes it.
fn number(value: f64) -> serde_json::Value {
    if value == value.trunc() && value.abs() < 1e15 {
        serde_json::json!(value as i64)
    } else {
        serde_json::json!(value)
    }
}

fn new_uuid() -> String {
    uuid::Uuid::new_v4().to_string()
}
