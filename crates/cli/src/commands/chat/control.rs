//! Standard input in stream-json: prompts, and the requests and answers of the program at the other end.
//!
//! A thread reads the lines. Prompts are queued; requests are answered at once, also while a turn runs;
//! answers are passed to the pending calls.

mod answer;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use parking_lot::Mutex;
use serde_json::value::RawValue;
use threadline_agent::{
    Agent, ContextUsage, HookCallbacks, PermissionAnswer, PermissionPrompt, PermissionRequest,
    SharedPermissions, TurnSummary,
};
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_mcp_client::{McpMessageSink, McpProgram, McpServers};
use threadline_permission::{AskBasis, PermissionMode, RuleEffect, RuleSource};

use self::answer::SessionChange;
use crate::error::CommandError;
use crate::ui;

pub(super) use self::answer::SessionFacts;

/// The lines of standard input.
pub(super) struct ControlStream {
    prompts: Receiver<Result<Box<RawValue>, String>>,
    start: Sender<()>,
    shared: Arc<ControlState>,
}

/// The state that the reading thread shares with the session.
struct ControlState {
    permissions: SharedPermissions,
    session_id: Mutex<String>,
    log: Mutex<PathBuf>,
    /// The turn that runs.
    turn: Mutex<Option<CancelToken>>,
    /// Calls with a pending answer, by the id of their request.
    pending: Mutex<HashMap<String, Sender<Result<RawObject, NoAnswer>>>>,
    /// Whether standard input has ended, so that no answer can come.
    is_ended: Mutex<bool>,
    /// The hooks that the other program provides.
    hooks: Mutex<Option<Box<RawValue>>>,
    facts: SessionFacts,
    /// Changes that apply from the next prompt on.
    changes: Mutex<Vec<SessionChange>>,
    /// The receivers of messages of servers inside of the program, by the name of the server.
    sinks: Mutex<HashMap<String, McpMessageSink>>,
    servers: Mutex<McpServers>,
    window: Mutex<ContextUsage>,
}

impl ControlStream {
    pub(super) fn new(permissions: SharedPermissions, facts: SessionFacts) -> Self {
        let (sender, prompts) = channel();
        let (start, started) = channel();
        let shared = Arc::new(ControlState {
            permissions,
            session_id: Mutex::default(),
            log: Mutex::default(),
            turn: Mutex::default(),
            pending: Mutex::default(),
            is_ended: Mutex::new(false),
            hooks: Mutex::default(),
            facts,
            changes: Mutex::default(),
            sinks: Mutex::default(),
            servers: Mutex::default(),
            window: Mutex::default(),
        });
        let state = Arc::clone(&shared);
        std::thread::spawn(move || {
            // Requests are not answered before the session exists.
            if started.recv().is_ok() {
                state.read(&sender);
            }
            *state.is_ended.lock() = true;
            for (_, sender) in state.pending.lock().drain() {
                let _ = sender.send(Err(NoAnswer::Ended));
            }
        });
        Self { prompts, start, shared }
    }

    /// Starts to read.
    pub(super) fn start(&self, session_id: &str, log: &Path) {
        session_id.clone_into(&mut self.shared.session_id.lock());
        log.clone_into(&mut self.shared.log.lock());
        let _ = self.start.send(());
    }

    /// Returns the content of the next user message: a text, or an array of blocks.
    pub(super) fn next(&mut self) -> Result<Option<Box<RawValue>>, CommandError> {
        match self.prompts.recv() {
            Ok(Ok(prompt)) => Ok(Some(prompt)),
            Ok(Err(cause)) => {
                Err(CommandError::new("a line of standard input is not a JSON object").cause(cause))
            }
            Err(_) => Ok(None),
        }
    }

    /// Starts a turn that an interrupt cancels. Changes that the program has asked for apply from here on.
    pub(super) fn start_turn(&self, agent: &mut Agent, turn: &CancelToken) -> Result<(), CommandError> {
        *self.shared.turn.lock() = Some(turn.clone());
        self.shared.apply_changes(agent);
        answer::add_hooks(self, agent)
    }

    /// Ends a turn, before its end is printed.
    pub(super) fn end_turn(&self, summary: &TurnSummary) {
        *self.shared.turn.lock() = None;
        *self.shared.window.lock() = summary.context.clone();
    }

    /// Sets the MCP servers of the session, which the program can ask about.
    pub(super) fn set_servers(&self, servers: McpServers) {
        *self.shared.servers.lock() = servers;
    }

    /// Returns the program, which can have MCP servers inside of it.
    pub(super) fn program(&self) -> Arc<dyn McpProgram> {
        Arc::new(ControlPrompt { shared: Arc::clone(&self.shared) })
    }

    /// Returns the hooks that the program at the other end provides, once, and their caller.
    fn take_hooks(&self) -> Option<(Box<RawValue>, Arc<dyn HookCallbacks>)> {
        let hooks = self.shared.hooks.lock().take()?;
        Some((hooks, Arc::new(ControlPrompt { shared: Arc::clone(&self.shared) })))
    }

    /// Returns a prompt that asks the program at the other end.
    pub(super) fn prompt(&self) -> Arc<dyn PermissionPrompt> {
        Arc::new(ControlPrompt { shared: Arc::clone(&self.shared) })
    }
}

impl ControlState {
    fn read(&self, prompts: &Sender<Result<Box<RawValue>, String>>) {
        let mut line = Vec::new();
        loop {
            line.clear();
            match std::io::stdin().lock().read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line);
            if text.trim().is_empty() {
                continue;
            }
            let object = match RawObject::parse(text.trim()) {
                Ok(object) => object,
                Err(error) => {
                    let _ = prompts.send(Err(error.to_string()));
                    return;
                }
            };
            match object.get_str("type").as_deref() {
                Some("user") => {
                    let message = object.get_object("message").unwrap_or_default();
                    let content = message.get("content").map(ToOwned::to_owned);
                    if content.is_some_and(|content| prompts.send(Ok(content)).is_err()) {
                        return;
                    }
                }
                Some("control_request") => self.answer(&object),
                Some("control_response") => {
                    let response = object.get_object("response").unwrap_or_default();
                    let id = response.get_str("request_id").unwrap_or_default();
                    if let Some(sender) = self.pending.lock().remove(&id) {
                        let _ = sender.send(Ok(response));
                    }
                }
                _ => {}
            }
        }
    }

    /// Sends a request to the other program and waits for its answer.
    fn request(&self, request: &RawObject, cancel: &CancelToken) -> Result<RawObject, NoAnswer> {
        let id = uuid::Uuid::new_v4().to_string();
        let (sender, receiver) = channel();
        self.pending.lock().insert(id.clone(), sender.clone());
        if *self.is_ended.lock() {
            return Err(NoAnswer::Ended);
        }
        let line =
            RawObject::new().with("type", "control_request").with("request_id", &id).with("request", request);
        ui::write_stdout_line(&line.to_json());
        let guard = cancel.on_cancel(move || {
            let _ = sender.send(Err(NoAnswer::Cancelled));
        });
        let answer = receiver.recv().unwrap_or(Err(NoAnswer::Ended));
        drop(guard);
        self.pending.lock().remove(&id);
        if matches!(answer, Err(NoAnswer::Cancelled)) {
            let line = RawObject::new().with("type", "control_cancel_request").with("request_id", &id);
            ui::write_stdout_line(&line.to_json());
        }
        answer
    }

    /// Prints that the mode has changed.
    fn report_mode(&self) {
        let line = RawObject::new()
            .with("type", "system")
            .with("subtype", "status")
            .with("status", ())
            .with("permissionMode", self.permissions.mode().name())
            .with("uuid", uuid::Uuid::new_v4().to_string())
            .with("session_id", &*self.session_id.lock());
        ui::write_stdout_line(&line.to_json());
    }

    /// Applies changes of permissions that came with an answer.
    fn apply(&self, updates: &[RawObject]) {
        for update in updates {
            match update.get_str("type").as_deref() {
                Some("setMode") => {
                    let mode = update.get_str("mode").and_then(|name| PermissionMode::parse(&name));
                    if mode.is_some_and(|mode| self.change_mode(mode).is_ok()) {
                        self.report_mode();
                    }
                }
                Some("addDirectories") => {
                    let folders: Vec<PathBuf> = list(update, "directories");
                    self.permissions
                        .update(|permissions| permissions.workspace.additional_dirs.extend(folders));
                }
                Some("addRules") => self.add_rules(update),
                _ => {}
            }
        }
    }

    fn add_rules(&self, update: &RawObject) {
        let effect = match update.get_str("behavior").as_deref() {
            Some("allow") => RuleEffect::Allow,
            Some("ask") => RuleEffect::Ask,
            Some("deny") => RuleEffect::Deny,
            _ => return,
        };
        let rules: Vec<RawObject> = list(update, "rules");
        self.permissions.update(|permissions| {
            let workspace = permissions.workspace.clone();
            let source =
                RuleSource { base: &workspace.cwd, cwd: &workspace.cwd, home: workspace.home.as_deref() };
            for rule in rules {
                let tool = rule.get_str("toolName").unwrap_or_default();
                let text = match rule.get_str("ruleContent") {
                    Some(content) => format!("{tool}({content})"),
                    None => tool,
                };
                permissions.rules.add(&text, effect, source);
            }
        });
    }
}

fn list<T: serde::de::DeserializeOwned>(object: &RawObject, key: &str) -> Vec<T> {
    object.get(key).and_then(|value| serde_json::from_str(value.get()).ok()).unwrap_or_default()
}

/// Why there is no answer to a request.
enum NoAnswer {
    /// Standard input has ended.
    Ended,
    /// The turn was cancelled.
    Cancelled,
}

/// Asks the program at the other end about calls, and calls its hooks.
struct ControlPrompt {
    shared: Arc<ControlState>,
}

impl PermissionPrompt for ControlPrompt {
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer {
        let response = match self.shared.request(&request_json(request), cancel) {
            Ok(response) => response,
            Err(NoAnswer::Ended) => return PermissionAnswer::Deny(request.reason.message.clone()),
            Err(NoAnswer::Cancelled) => return PermissionAnswer::Interrupt,
        };
        if response.get_str("subtype").as_deref() != Some("success") {
            let error = response.get_str("error").unwrap_or_default();
            return PermissionAnswer::Deny(format!("Tool permission request failed: Error: {error}"));
        }
        let answer = response.get_object("response").unwrap_or_default();
        if answer.get_str("behavior").as_deref() == Some("allow") {
            self.shared.apply(&list::<RawObject>(&answer, "updatedPermissions"));
            return PermissionAnswer::Allow { input: answer.get("updatedInput").map(ToOwned::to_owned) };
        }
        match answer.get("interrupt").map(RawValue::get) {
            Some("true") => PermissionAnswer::Interrupt,
            _ => PermissionAnswer::Deny(answer.get_str("message").unwrap_or_default()),
        }
    }
}

impl HookCallbacks for ControlPrompt {
    fn call(&self, id: &str, input: &RawObject, cancel: &CancelToken) -> Result<String, String> {
        let mut request =
            RawObject::new().with("subtype", "hook_callback").with("callback_id", id).with("input", input);
        if let Some(call) = input.get_str("tool_use_id") {
            request.set("tool_use_id", call);
        }
        let response = self.shared.request(&request, cancel).map_err(|end| match end {
            NoAnswer::Ended => "the program that provides the hook has ended".to_owned(),
            NoAnswer::Cancelled => "interrupted".to_owned(),
        })?;
        if response.get_str("subtype").as_deref() != Some("success") {
            return Err(response.get_str("error").unwrap_or_default());
        }
        Ok(response.get_object("response").unwrap_or_default().to_json())
    }
}

impl McpProgram for ControlPrompt {
    fn send(&self, server: &str, message: &RawValue, cancel: &CancelToken) -> Result<Box<RawValue>, String> {
        let request = RawObject::new()
            .with("subtype", "mcp_message")
            .with("server_name", server)
            .with("message", message);
        let response = self.shared.request(&request, cancel).map_err(|end| match end {
            NoAnswer::Ended => "the program that has the server has ended".to_owned(),
            NoAnswer::Cancelled => "interrupted".to_owned(),
        })?;
        if response.get_str("subtype").as_deref() != Some("success") {
            return Err(response.get_str("error").unwrap_or_default());
        }
        let answer = response.get_object("response").unwrap_or_default();
        answer.get("mcp_response").map(ToOwned::to_owned).ok_or_else(|| "the answer is empty".to_owned())
    }

    fn receive(&self, server: &str, sink: McpMessageSink) {
        self.shared.sinks.lock().insert(server.to_owned(), sink);
    }
}

/// Returns a question as the protocol writes it.
fn request_json(request: &PermissionRequest<'_>) -> RawObject {
    let reason = request.reason;
    let suggestions = request.suggestions();
    let mut object = RawObject::new()
        .with("subtype", "can_use_tool")
        .with("tool_name", request.tool)
        .with("display_name", request.tool)
        .with("input", request.input);
    if !request.description.is_empty() {
        object.set("description", &request.description);
    }
    if !suggestions.is_empty() {
        object.set("permission_suggestions", suggestions);
    }
    if let Some(path) = &reason.blocked_path {
        object.set("blocked_path", path);
    }
    let (text, kind) = match &reason.basis {
        AskBasis::NotGranted => (None, None),
        AskBasis::Mode => (None, Some("mode")),
        AskBasis::Parts => (None, Some("subcommandResults")),
        AskBasis::OutsideWorkspace => {
            (Some("Path is outside allowed working directories"), Some("workingDir"))
        }
        AskBasis::Other(text) => (Some(text.as_str()), Some("other")),
        AskBasis::Safety { reason, .. } => (Some(reason.as_str()), Some("safetyCheck")),
    };
    if let Some(text) = text {
        object.set("decision_reason", text);
    }
    if let Some(kind) = kind {
        object.set("decision_reason_type", kind);
    }
    if let Some(missing) = request.missing_protections {
        object.set("sandbox_note", missing);
    }
    if let AskBasis::Safety { is_approvable, .. } = &reason.basis {
        object.set("classifier_approvable", is_approvable);
    }
    object.set("tool_use_id", request.tool_use_id);
    object
}
