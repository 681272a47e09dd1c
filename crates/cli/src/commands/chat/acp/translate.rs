//! Translates prompts of editors to content blocks of the API, and events of the agent to updates.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use threadline_agent::{AgentEvent, SubAgentEvent};
use threadline_api::{Message, RawObject, Role};

use super::connection::{ErrorCode, RpcError};
use super::raw;

/// Returns the prompt of an editor: a text, so that commands and mentions work, or content blocks.
pub(super) fn prompt(blocks: &[RawObject]) -> Result<Box<RawValue>, RpcError> {
    let text_block = |text: String| RawObject::new().with("type", "text").with("text", text);
    let mut content = Vec::new();
    let mut is_text = true;
    for block in blocks {
        content.push(match block.get_str("type").as_deref() {
            Some("text") => text_block(block.get_str("text").unwrap_or_default()),
            Some("image") => {
                is_text = false;
                let source = RawObject::new()
                    .with("type", "base64")
                    .with("media_type", block.get_str("mimeType").unwrap_or_default())
                    .with("data", block.get_str("data").unwrap_or_default());
                RawObject::new().with("type", "image").with("source", source)
            }
            Some("resource_link") => text_block(link(&block.get_str("uri").unwrap_or_default())),
            Some("resource") => {
                let resource = block.get_object("resource").unwrap_or_default();
                let uri = resource.get_str("uri").unwrap_or_default();
                let text = resource.get_str("text").unwrap_or_default();
                text_block(format!("<context ref=\"{uri}\">\n{text}\n</context>"))
            }
            other => {
                let kind = other.unwrap_or("unknown");
                let message = format!("content of the type `{kind}` is not supported");
                return Err(RpcError::new(ErrorCode::InvalidParams, message));
            }
        });
    }
    if content.is_empty() {
        return Err(RpcError::new(ErrorCode::InvalidParams, "the prompt is empty"));
    }
    if !is_text {
        return Ok(raw(&content));
    }
    let texts: Vec<String> = content.iter().filter_map(|block| block.get_str("text")).collect();
    Ok(raw(&texts.concat()))
}

/// Returns a link to a file as a mention, and another one as it is.
fn link(uri: &str) -> String {
    match uri.strip_prefix("file://") {
        Some(path) => format!("@{path}"),
        None => uri.to_owned(),
    }
}

/// A call of the model that has no result yet.
struct OpenCall {
    name: String,
    input: RawObject,
}

/// A task of the plan.
struct PlanTask {
    id: String,
    content: String,
    status: String,
}

/// Translates the events of one session.
pub(super) struct Translator {
    cwd: PathBuf,
    calls: HashMap<String, OpenCall>,
    tasks: Vec<PlanTask>,
    /// Whether the texts of the current reply were streamed, so that they are not sent again.
    is_streamed: bool,
}

impl Translator {
    pub(super) fn new(cwd: PathBuf) -> Self {
        Self { cwd, calls: HashMap::new(), tasks: Vec::new(), is_streamed: false }
    }

    /// Returns the updates for an event.
    pub(super) fn event(&mut self, event: &AgentEvent<'_>) -> Vec<RawObject> {
        match event {
            AgentEvent::Requesting => {
                self.is_streamed = false;
                Vec::new()
            }
            AgentEvent::Stream { raw, .. } => self.delta(raw).into_iter().collect(),
            AgentEvent::Assistant { message, request_id, .. } => {
                let is_streamed = self.is_streamed && request_id.is_some();
                self.assistant(&content(message), is_streamed)
            }
            AgentEvent::ToolStart { tool_use_id, .. } if self.calls.contains_key(*tool_use_id) => {
                vec![call_update(tool_use_id).with("status", "in_progress")]
            }
            AgentEvent::User { message, tool_use_result, .. } => {
                self.results(&content(message), *tool_use_result)
            }
            AgentEvent::CommandOutput { message, .. } => {
                let text = message.get_str("content").unwrap_or_default();
                vec![chunk("agent_message_chunk", &text)]
            }
            AgentEvent::SubAgent { source, event: SubAgentEvent::Progress { activity, .. } } => {
                let title = format!("{}: {activity}", source.description);
                vec![call_update(&source.tool_use_id).with("status", "in_progress").with("title", title)]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the updates for a conversation of the past.
    pub(super) fn history(&mut self, messages: &[Message]) -> Vec<RawObject> {
        let mut updates = Vec::new();
        for message in messages {
            if message.role == Role::Assistant {
                updates.extend(self.assistant(&message.content, false));
                continue;
            }
            let texts =
                message.content.iter().filter(|block| block.get_str("type").as_deref() == Some("text"));
            let texts = texts.filter_map(|block| block.get_str("text"));
            let is_prompt = |text: &String| !text.trim_start().starts_with("<system-reminder>");
            updates.extend(texts.filter(is_prompt).map(|text| chunk("user_message_chunk", &text)));
            updates.extend(self.results(&message.content, None));
        }
        updates
    }

    fn delta(&mut self, event: &str) -> Option<RawObject> {
        let event = RawObject::parse(event).ok()?;
        let delta = event.get_object("delta")?;
        match delta.get_str("type").as_deref()? {
            "text_delta" => {
                self.is_streamed = true;
                Some(chunk("agent_message_chunk", &delta.get_str("text")?))
            }
            "thinking_delta" => {
                self.is_streamed = true;
                Some(chunk("agent_thought_chunk", &delta.get_str("thinking")?))
            }
            _ => None,
        }
    }

    fn assistant(&mut self, blocks: &[RawObject], is_streamed: bool) -> Vec<RawObject> {
        let mut updates = Vec::new();
        for block in blocks {
            let text = |key: &str| block.get_str(key).filter(|text| !text.is_empty() && !is_streamed);
            match block.get_str("type").as_deref() {
                Some("text") => updates.extend(text("text").map(|text| chunk("agent_message_chunk", &text))),
                Some("thinking") => {
                    updates.extend(text("thinking").map(|text| chunk("agent_thought_chunk", &text)));
                }
                Some("tool_use") => updates.extend(self.start_call(block)),
                _ => {}
            }
        }
        updates
    }

    fn start_call(&mut self, block: &RawObject) -> Option<RawObject> {
        let (id, name) = (block.get_str("id")?, block.get_str("name")?);
        let input = block.get_object("input").unwrap_or_default();
        let update = RawObject::new().with("sessionUpdate", "tool_call");
        let call = describe_call(&id, &name, &input, &self.cwd);
        let update = call.members().fold(update, |update, (key, value)| update.with(key, value));
        self.calls.insert(id, OpenCall { name, input });
        Some(update.with("status", "pending"))
    }

    fn results(&mut self, blocks: &[RawObject], record: Option<&RawValue>) -> Vec<RawObject> {
        let mut updates = Vec::new();
        for block in blocks {
            if block.get_str("type").as_deref() != Some("tool_result") {
                continue;
            }
            let id = block.get_str("tool_use_id").unwrap_or_default();
            let Some(call) = self.calls.remove(&id) else { continue };
            let is_error = block.get("is_error").is_some_and(|value| value.get() == "true");
            let status = if is_error { "failed" } else { "completed" };
            let mut update = call_update(&id).with("status", status);
            // The difference of an edit stays.
            if is_error || !is_edit(&call.name) {
                update.set("content", result_content(block));
            }
            if let Some(record) = record {
                update.set("rawOutput", record);
            }
            updates.push(update);
            if !is_error && self.note_tasks(&call, record) {
                updates.push(self.plan());
            }
        }
        updates
    }

    /// Notes changes of the list of tasks. Returns whether there are some.
    fn note_tasks(&mut self, call: &OpenCall, record: Option<&RawValue>) -> bool {
        let text = |object: &RawObject, key: &str| object.get_str(key).unwrap_or_default();
        match call.name.as_str() {
            "TodoWrite" => {
                let todos = call.input.get("todos").and_then(|list| serde_json::from_str(list.get()).ok());
                let todos: Vec<RawObject> = todos.unwrap_or_default();
                let task = |todo: &RawObject| PlanTask {
                    id: String::new(),
                    content: text(todo, "content"),
                    status: text(todo, "status"),
                };
                self.tasks = todos.iter().map(task).collect();
            }
            "TaskCreate" => {
                let record =
                    record.and_then(|record| RawObject::parse(record.get()).ok()).unwrap_or_default();
                let task = record.get_object("task").unwrap_or_default();
                let content = text(&call.input, "subject");
                self.tasks.push(PlanTask { id: text(&task, "id"), content, status: "pending".to_owned() });
            }
            "TaskUpdate" => {
                let id = text(&call.input, "taskId");
                let status = call.input.get_str("status");
                if status.as_deref() == Some("deleted") {
                    self.tasks.retain(|task| task.id != id);
                } else if let Some(task) = self.tasks.iter_mut().find(|task| task.id == id) {
                    task.status = status.unwrap_or_else(|| std::mem::take(&mut task.status));
                    task.content =
                        call.input.get_str("subject").unwrap_or_else(|| std::mem::take(&mut task.content));
                }
            }
            _ => return false,
        }
        true
    }

    fn plan(&self) -> RawObject {
        let entry = |task: &PlanTask| {
            let status = match task.status.as_str() {
                status @ ("in_progress" | "completed") => status,
                _ => "pending",
            };
            RawObject::new().with("content", &task.content).with("priority", "medium").with("status", status)
        };
        let entries: Vec<RawObject> = self.tasks.iter().map(entry).collect();
        RawObject::new().with("sessionUpdate", "plan").with("entries", entries)
    }
}

/// Returns a call with its title, kind, locations and, for an edit, its difference.
pub(super) fn describe_call(id: &str, name: &str, input: &RawObject, cwd: &Path) -> RawObject {
    let mut call = RawObject::new()
        .with("toolCallId", id)
        .with("title", title(name, input))
        .with("kind", kind(name))
        .with("rawInput", input);
    let named = ["file_path", "notebook_path", "path"].iter().find_map(|key| input.get_str(key));
    let Some(path) = named.map(|path| cwd.join(path)) else { return call };
    let mut location = RawObject::new().with("path", &path);
    if let Some(line) = input.get_u64("offset").filter(|_| name == "Read") {
        location.set("line", line);
    }
    call.set("locations", [location]);
    let new_text = match name {
        "Edit" => input.get_str("new_string"),
        "Write" => input.get_str("content"),
        _ => None,
    };
    if let Some(new_text) = new_text {
        let diff = RawObject::new()
            .with("type", "diff")
            .with("path", &path)
            .with("oldText", input.get_str("old_string").filter(|_| name == "Edit"))
            .with("newText", new_text);
        call.set("content", [diff]);
    }
    call
}

fn is_edit(name: &str) -> bool {
    matches!(name, "Edit" | "Write")
}

fn kind(name: &str) -> &'static str {
    match name {
        "Read" => "read",
        "Write" | "Edit" | "MultiEdit" | "NotebookEdit" => "edit",
        "Bash" | "TaskStop" => "execute",
        "Glob" | "Grep" | "ListMcpResourcesTool" => "search",
        "WebFetch" | "WebSearch" | "ReadMcpResourceTool" => "fetch",
        "Agent" | "Task" | "TodoWrite" | "TaskCreate" | "TaskUpdate" | "TaskList" | "TaskGet" => "think",
        "EnterPlanMode" | "ExitPlanMode" => "switch_mode",
        _ => "other",
    }
}

/// Returns one line about a call.
fn title(name: &str, input: &RawObject) -> String {
    let keys: &[&str] = match name {
        "Bash" => &["command"],
        "Agent" | "Task" => &["description"],
        "TaskCreate" => &["subject"],
        _ => &["file_path", "notebook_path", "pattern", "url", "query", "skill", "path"],
    };
    let value = keys.iter().find_map(|key| input.get_str(key)).unwrap_or_default();
    let value = value.lines().next().unwrap_or_default();
    match name {
        _ if value.is_empty() => name.to_owned(),
        "Bash" | "Agent" | "Task" => value.to_owned(),
        _ => format!("{name} {value}"),
    }
}

fn call_update(id: &str) -> RawObject {
    RawObject::new().with("sessionUpdate", "tool_call_update").with("toolCallId", id)
}

fn chunk(kind: &str, text: &str) -> RawObject {
    let content = RawObject::new().with("type", "text").with("text", text);
    RawObject::new().with("sessionUpdate", kind).with("content", content)
}

/// Returns the blocks of a message.
fn content(message: &RawObject) -> Vec<RawObject> {
    message.get("content").and_then(|blocks| serde_json::from_str(blocks.get()).ok()).unwrap_or_default()
}

/// Returns the content of a result: texts and images.
fn result_content(block: &RawObject) -> Vec<RawObject> {
    let of_text = |text: String| RawObject::new().with("type", "text").with("text", text);
    let blocks: Vec<RawObject> = match block.get_str("content") {
        Some(text) => vec![of_text(text)],
        None => content(block)
            .iter()
            .filter_map(|block| match block.get_str("type").as_deref()? {
                "text" => Some(of_text(block.get_str("text")?)),
                "image" => {
                    let source = block.get_object("source")?;
                    let image = RawObject::new().with("type", "image");
                    Some(
                        image
                            .with("data", source.get_str("data")?)
                            .with("mimeType", source.get_str("media_type")?),
                    )
                }
                _ => None,
            })
            .collect(),
    };
    blocks.iter().map(|block| RawObject::new().with("type", "content").with("content", block)).collect()
}

#[cfg(test)]
mod tests;
