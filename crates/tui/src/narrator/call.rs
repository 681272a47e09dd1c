//! Cards of tool calls, made from the same lines that the log contains.

use std::collections::HashMap;

use serde_json::value::RawValue;
use threadline_api::RawObject;
use threadline_entry::write::{AssistantLine, LineContext, LineHeader, UserContent, UserLine};
use threadline_entry::{Json, Millis, key};
use threadline_session::{SessionFamily, ToolOutcome};
use threadline_term::{TermPage, TermText, render_call};
use threadline_view::{CallView, ItemBody, ToolCard, TranscriptBuilder};

use crate::message::{TodoLine, TodoStatus};

/// The calls without a result.
#[derive(Default)]
pub(super) struct OpenCalls {
    calls: HashMap<String, OpenCall>,
    todos: Vec<TodoLine>,
}

struct OpenCall {
    uuid: String,
    message: String,
    start: Option<Millis>,
}

/// The line of a result, besides its message.
#[derive(Clone, Copy)]
pub(super) struct CallResult<'a> {
    pub(super) timestamp: Millis,
    pub(super) record: Option<&'a RawValue>,
    /// Whether the call was interrupted. Its message is that of a rejected call.
    pub(super) is_interrupted: bool,
}

/// The lines of a call that has ended.
pub(super) struct EndedCall {
    pub(super) lines: Vec<TermText>,
    /// The list of things to do, if the call changed it.
    pub(super) todos: Option<Vec<TodoLine>>,
}

impl OpenCalls {
    /// Adds a call of a reply.
    pub(super) fn add(&mut self, uuid: &str, message: &RawObject, block: &RawObject) {
        let id = block.get_str("id").unwrap_or_default();
        let call = OpenCall { uuid: uuid.to_owned(), message: message.to_json(), start: None };
        self.calls.insert(id, call);
    }

    /// Marks the start of a call. Returns its subject in one line.
    pub(super) fn start(&mut self, id: &str) -> String {
        let Some(call) = self.calls.get_mut(id) else { return String::new() };
        call.start = Some(now());
        let line = call.line();
        call_view(&line, id).map(|view| view.subject).unwrap_or_default()
    }

    pub(super) fn result_id(&self, block: &RawObject) -> String {
        block.get_str(key::TOOL_USE_ID).unwrap_or_default()
    }

    /// Renders a call with its result.
    pub(super) fn end(
        &mut self,
        message: &RawObject,
        block: &RawObject,
        ended: CallResult<'_>,
        page: TermPage,
    ) -> EndedCall {
        let id = self.result_id(block);
        let Some(call) = self.calls.remove(&id) else { return EndedCall { lines: Vec::new(), todos: None } };
        let context = LineContext::default();
        let content = message.get("content").map_or("[]", RawValue::get);
        let header = LineHeader { uuid: "result", parent_uuid: Some(&call.uuid), timestamp: ended.timestamp };
        let result = UserLine {
            tool_use_result: ended.record.and_then(|record| Json::parse(record.get())),
            source_tool_assistant_uuid: Some(&call.uuid),
            ..UserLine::new(header, &context, UserContent::Blocks(json(content)))
        };
        let log = format!("{}\n{}\n", call.line(), result.to_line());
        let Some(mut view) = call_view(&log, &id) else {
            return EndedCall { lines: Vec::new(), todos: None };
        };
        if ended.is_interrupted {
            view.outcome = ToolOutcome::Interrupted;
        }
        let todos = self.update_todos(&view);
        // The list of things to do is shown below the conversation.
        let mut lines = Vec::new();
        if todos.is_none() {
            lines.push(TermText::new());
            lines.extend(render_call(&view, page, 24).lines());
        }
        EndedCall { lines, todos }
    }

    /// Updates the list of things to do from a card. Returns the list if it changed.
    fn update_todos(&mut self, view: &CallView) -> Option<Vec<TodoLine>> {
        let ToolCard::Todos(todos) = &view.card else { return None };
        if view.is_error() {
            return None;
        }
        let status = |status: &str| match status {
            "completed" => Some(TodoStatus::Completed),
            "in_progress" => Some(TodoStatus::InProgress),
            "deleted" => None,
            _ => Some(TodoStatus::Pending),
        };
        if view.name.starts_with("Todo") {
            self.todos.clear();
        }
        for todo in todos {
            // Items of a task list begin with their number, which stays.
            let number = todo.text.split(' ').next().filter(|word| word.starts_with('#'));
            let is_same = |known: &TodoLine| match number {
                Some(number) => known.text.split(' ').next() == Some(number),
                None => known.text == todo.text,
            };
            let known = self.todos.iter().position(is_same);
            match (status(&todo.status), known) {
                (Some(status), Some(i)) => {
                    self.todos[i].status = status;
                    if number.is_none() || todo.text.contains(' ') {
                        self.todos[i].text.clone_from(&todo.text);
                    }
                }
                (Some(status), None) => self.todos.push(TodoLine { text: todo.text.clone(), status }),
                (None, Some(i)) => drop(self.todos.remove(i)),
                (None, None) => {}
            }
        }
        Some(self.todos.clone())
    }
}

impl OpenCall {
    /// Returns the line of the reply with this call.
    fn line(&self) -> String {
        let context = LineContext::default();
        let timestamp = self.start.unwrap_or_else(now);
        AssistantLine {
            header: LineHeader { uuid: &self.uuid, parent_uuid: None, timestamp },
            context: &context,
            message: json(&self.message),
            request_id: None,
            attribution_agent: None,
            is_api_error: false,
            attribution_skill: None,
            attribution_mcp: None,
        }
        .to_line()
    }
}

/// Returns the view of a call in a few lines of a log.
fn call_view(log: &str, id: &str) -> Option<CallView> {
    let family = SessionFamily::from_bytes(log.as_bytes(), []);
    let transcript = TranscriptBuilder::new(&family).transcript();
    let items = transcript.turns.into_iter().flat_map(|turn| turn.items);
    items.into_iter().find_map(|item| match item.body {
        ItemBody::Call(call) if call.id == id => Some(*call),
        _ => None,
    })
}

fn json(text: &str) -> Json<'_> {
    Json::parse(text).unwrap_or(Json::NULL)
}

fn now() -> Millis {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Millis::try_from(now.as_millis()).unwrap_or_default()
}
