//! Answers to the requests of the program at the other end.

use threadline_agent::{Agent, AgentDefinition, ContextUsage, ModelChange};
use threadline_api::RawObject;
use threadline_app::App;
use threadline_entry::write::timestamp;
use threadline_mcp_client::McpServers;
use threadline_permission::PermissionMode;

use super::ControlState;
use crate::commands::chat::permissions::parse_mode;
use crate::commands::chat::rewind::rewind;
use crate::error::CommandError;
use crate::ui;

/// Facts about the session that programs ask for.
pub(in crate::commands::chat) struct SessionFacts {
    /// The commands and skills, with a description each.
    pub(in crate::commands::chat) commands: Vec<(String, String)>,
    /// The kinds of sub-agents, with a description each.
    pub(in crate::commands::chat) agents: Vec<(String, String)>,
    /// The model that is used if none is named.
    pub(in crate::commands::chat) default_model: String,
    /// Returns the full name of a model.
    pub(in crate::commands::chat) model_name: fn(&str) -> String,
    /// Returns the model in plan mode for a name that means two models.
    pub(in crate::commands::chat) plan_model: fn(&str) -> Option<String>,
    /// Whether the session was started in the mode without questions, so that it may return to it.
    pub(in crate::commands::chat) may_bypass: bool,
    /// Where the key of the API comes from.
    pub(in crate::commands::chat) api_key_source: &'static str,
    /// Restores files.
    pub(in crate::commands::chat) app: App,
    /// The milliseconds since 1970.
    pub(in crate::commands::chat) now: fn() -> i64,
}

/// A change that applies from the next prompt on.
pub(super) enum SessionChange {
    Model(ModelChange),
    MaxThinkingTokens(Option<u64>),
    /// Kinds of sub-agents.
    Agents(Vec<AgentDefinition>),
}

/// The answer to a request: an object or nothing, or an error.
type Answer = Result<Option<RawObject>, String>;

/// Requests of the SDKs that are not supported.
const REFUSED: &[&str] = &["mcp_reconnect", "mcp_toggle", "mcp_set_servers", "stop_task", "get_settings"];

impl ControlState {
    /// Answers a request.
    pub(super) fn answer(&self, object: &RawObject) {
        let id = object.get_str("request_id").unwrap_or_default();
        let request = object.get_object("request").unwrap_or_default();
        let subtype = request.get_str("subtype").unwrap_or_default();
        let answer = match subtype.as_str() {
            "initialize" => self.initialize(&request),
            "interrupt" => {
                if let Some(turn) = &*self.turn.lock() {
                    turn.cancel();
                }
                Ok(None)
            }
            "set_permission_mode" => self.set_mode(&request),
            "set_model" => {
                self.set_model(request.get_str("model"));
                Ok(None)
            }
            "set_max_thinking_tokens" => {
                let tokens = request.get("max_thinking_tokens");
                let tokens = tokens.and_then(|tokens| serde_json::from_str(tokens.get()).ok()).flatten();
                self.changes.lock().push(SessionChange::MaxThinkingTokens(tokens));
                Ok(None)
            }
            "mcp_status" => Ok(Some(mcp_status(&self.servers.lock()))),
            "mcp_message" => self.pass_on(&request),
            "rewind_files" => self.rewind_files(&request),
            "get_context_usage" => Ok(Some(context_usage(&self.window.lock()))),
            refused if REFUSED.contains(&refused) => Err(format!("`{refused}` is not supported")),
            other => Err(format!("Unsupported control request subtype: {other}")),
        };
        let is_mode = subtype == "set_permission_mode" && answer.is_ok();
        let mut response = RawObject::new();
        match answer {
            Ok(value) => {
                response.set("subtype", "success");
                response.set("request_id", &id);
                if let Some(value) = value {
                    response.set("response", value);
                }
            }
            Err(error) => {
                response.set("subtype", "error");
                response.set("request_id", &id);
                response.set("error", error);
            }
        }
        let line = RawObject::new().with("type", "control_response").with("response", response);
        ui::write_stdout_line(&line.to_json());
        if is_mode {
            self.report_mode();
        }
    }

    fn initialize(&self, request: &RawObject) -> Answer {
        *self.hooks.lock() =
            request.get("hooks").filter(|hooks| hooks.get() != "null").map(ToOwned::to_owned);
        let mut agents = self.facts.agents.clone();
        if let Some(given) = request.get("agents").filter(|agents| agents.get() != "null") {
            let given = AgentDefinition::parse_json(given.get())
                .map_err(|reason| format!("the agents are not valid: {reason}"))?;
            agents.extend(given.iter().map(|agent| (agent.name.clone(), agent.description.clone())));
            self.changes.lock().push(SessionChange::Agents(given));
        }
        let described = |entries: &[(String, String)], key: Option<&str>| -> Vec<RawObject> {
            let entry = |(name, description): &(String, String)| {
                let object = RawObject::new().with("name", name).with("description", description);
                key.map_or(object.clone(), |key| object.with(key, ""))
            };
            entries.iter().map(entry).collect()
        };
        let default = RawObject::new()
            .with("value", "default")
            .with("resolvedModel", &self.facts.default_model)
            .with("displayName", "Default")
            .with("description", &self.facts.default_model);
        let account =
            RawObject::new().with("tokenSource", "none").with("apiKeySource", self.facts.api_key_source);
        Ok(Some(
            RawObject::new()
                .with("commands", described(&self.facts.commands, Some("argumentHint")))
                .with("agents", described(&agents, None))
                .with("output_style", "default")
                .with("available_output_styles", ["default"])
                .with("models", [default])
                .with("account", account)
                .with("pid", std::process::id()),
        ))
    }

    fn set_mode(&self, request: &RawObject) -> Answer {
        let name = request.get_str("mode").unwrap_or_default();
        let mode = parse_mode(&name).ok_or_else(|| format!("Unknown permission mode: {name}"))?;
        self.change_mode(mode)?;
        Ok(Some(RawObject::new().with("mode", mode.name())))
    }

    /// Changes the mode, if the settings and the flags of the start permit it.
    pub(super) fn change_mode(&self, mode: PermissionMode) -> Result<(), String> {
        let is_bypass = mode == PermissionMode::BypassPermissions;
        if is_bypass && !self.facts.may_bypass && !self.permissions.is_bypass_disabled() {
            return Err(
                "Cannot set permission mode to bypassPermissions because the session was not launched \
                        with --dangerously-skip-permissions"
                    .to_owned(),
            );
        }
        self.permissions.change_mode(mode).map_err(str::to_owned)
    }

    /// Changes the model from the next prompt on, and prints the line that the session will contain.
    fn set_model(&self, requested: Option<String>) {
        let requested = requested.filter(|name| !name.is_empty() && name != "default");
        let requested = requested.unwrap_or_else(|| self.facts.default_model.clone());
        let model = (self.facts.model_name)(&requested);
        let plan_model = (self.facts.plan_model)(&requested);
        let change = ModelChange { requested, model, plan_model, uuid: uuid::Uuid::new_v4().to_string() };
        let message = RawObject::new().with("role", "user").with("content", change.output());
        let line = RawObject::new()
            .with("type", "user")
            .with("message", message)
            .with("session_id", &*self.session_id.lock())
            .with("parent_tool_use_id", ())
            .with("uuid", &change.uuid)
            .with("timestamp", timestamp((self.facts.now)()))
            .with("isReplay", true);
        ui::write_stdout_line(&line.to_json());
        self.changes.lock().push(SessionChange::Model(change));
    }

    /// Passes a message of a server inside of the program on.
    fn pass_on(&self, request: &RawObject) -> Answer {
        let server = request.get_str("server_name").unwrap_or_default();
        // As in Claude Code, an unexpected message is no error.
        if let (Some(sink), Some(message)) = (self.sinks.lock().get(&server), request.get("message")) {
            sink(message)?;
        }
        Ok(None)
    }

    /// Restores files as they were at a prompt.
    fn rewind_files(&self, request: &RawObject) -> Answer {
        if self.turn.lock().is_some() {
            return Err("Files cannot be restored while a turn runs.".to_owned());
        }
        let prompt = request.get_str("user_message_id").unwrap_or_default();
        let is_dry_run = request.get("dry_run").is_some_and(|value| value.get() == "true");
        let changed = rewind(&self.facts.app, &self.log.lock(), &prompt, is_dry_run)?;
        let answer = RawObject::new().with("canRewind", true);
        Ok(Some(if is_dry_run { answer.with("filesChanged", changed) } else { answer }))
    }

    /// Applies the changes that were requested since the last prompt.
    pub(super) fn apply_changes(&self, agent: &mut Agent) {
        for change in std::mem::take(&mut *self.changes.lock()) {
            match change {
                SessionChange::Model(change) => agent.set_model(change),
                SessionChange::MaxThinkingTokens(tokens) => agent.set_max_thinking_tokens(tokens),
                SessionChange::Agents(agents) => agent.add_agents(agents),
            }
        }
    }
}

/// Returns how much of the context window is used, as the protocol writes it.
fn context_usage(usage: &ContextUsage) -> RawObject {
    let none: [&str; 0] = [];
    let category = |name: &str, tokens: u64| {
        RawObject::new().with("name", name).with("tokens", tokens).with("color", "promptBorder")
    };
    let free = usage.size.saturating_sub(usage.used);
    RawObject::new()
        .with("categories", [category("Messages", usage.used), category("Free space", free)])
        .with("totalTokens", usage.used)
        .with("maxTokens", usage.size)
        .with("rawMaxTokens", usage.size)
        .with("percentage", usage.used * 100 / usage.size.max(1))
        .with("gridRows", none)
        .with("model", &usage.model)
        .with("memoryFiles", none)
        .with("mcpTools", none)
        .with("agents", none)
        .with("isAutoCompactEnabled", true)
}

/// Returns the servers, their tools and whether they can be used.
fn mcp_status(servers: &McpServers) -> RawObject {
    let entries = servers.statuses().iter().map(|server| {
        let status = if server.error.is_some() { "failed" } else { "connected" };
        let mut entry = RawObject::new().with("name", &server.name).with("status", status);
        if let Some(error) = &server.error {
            entry.set("error", error);
        }
        let tools = servers.tool_infos().filter(|tool| tool.server == server.name).map(|tool| {
            let mut annotations = RawObject::new();
            if tool.is_read_only {
                annotations.set("readOnly", true);
            }
            RawObject::new().with("name", &tool.tool).with("annotations", annotations)
        });
        entry.with("scope", "dynamic").with("tools", tools.collect::<Vec<_>>())
    });
    RawObject::new().with("mcpServers", entries.collect::<Vec<_>>())
}

/// Adds the hooks of the program to a session.
pub(super) fn add_hooks(state: &super::ControlStream, agent: &mut Agent) -> Result<(), CommandError> {
    let Some((hooks, callbacks)) = state.take_hooks() else { return Ok(()) };
    agent
        .add_hook_callbacks(&hooks, callbacks)
        .map_err(|error| CommandError::new("cannot use the hooks of the program").cause(error.to_string()))
}
