//! Cards of to-do lists, with the changes made to them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use threadline_entry::Json;
use threadline_entry::lens::{FromJson, List, TaskItem, TaskResult, TaskUpdateResult, TodoWriteResult};

use super::{CallSummary, CardInput, Todo, ToolCard};
use crate::humanize::joined;

impl CardInput<'_> {
    pub(super) fn todos(&self) -> CallSummary {
        let text = |todo: threadline_entry::lens::Todo<'_>| todo.content().unwrap_or_default().into_owned();
        let status = |todo: threadline_entry::lens::Todo<'_>| todo.status().unwrap_or_default().into_owned();
        let result = self.of::<TodoWriteResult<'_>>();
        let old: Vec<(String, String)> = result
            .and_then(|result| result.old_todos())
            .into_iter()
            .flat_map(|todos| todos.iter())
            .map(|todo| (text(todo), status(todo)))
            .collect();
        // The first one counts if two have the same text.
        let old_status: HashMap<&str, &str> =
            old.iter().rev().map(|(text, status)| (&**text, &**status)).collect();
        let asked = || self.input.and_then(|input| List::from_json(input.get("todos")?));
        let new = result.and_then(|result| result.new_todos()).or_else(asked);
        let todos: Vec<Todo> = new
            .into_iter()
            .flat_map(|todos| todos.iter())
            .map(|todo| {
                let (text, status) = (text(todo), status(todo));
                let before = old_status.get(&*text).copied();
                let is_new = before.is_none() && !old.is_empty();
                let before = before.filter(|before| *before != status).map(str::to_owned);
                Todo { text, status, before, is_new, detail: String::new() }
            })
            .collect();
        let n_done = todos.iter().filter(|todo| todo.status == "completed").count();
        let subject = todos.iter().find(|todo| todo.status == "in_progress").map(|todo| todo.text.clone());
        let gist = format!("{n_done} of {} done", todos.len());
        let kept: HashSet<&str> = todos.iter().map(|todo| &*todo.text).collect();
        let gone = old.iter().filter(|(text, _)| !kept.contains(&**text));
        let gone: Vec<Todo> = gone
            .map(|(text, status)| Todo {
                text: text.clone(),
                status: "deleted".to_owned(),
                before: Some(status.clone()),
                is_new: false,
                detail: String::new(),
            })
            .collect();
        CallSummary {
            gist,
            card: ToolCard::Todos(todos.into_iter().chain(gone).collect()),
            subject: subject.unwrap_or_default(),
        }
    }

    pub(super) fn tasks(&self) -> CallSummary {
        let result = self.of::<TaskResult<'_>>();
        let one = result.and_then(|result| result.task());
        let many = result.and_then(|result| result.tasks()).into_iter().flat_map(|tasks| tasks.iter());
        let todo = |task: TaskItem<'_>, description: String| {
            let text = task.subject().or_else(|| task.description()).unwrap_or_default();
            let detail = task.description().filter(|_| task.subject().is_some());
            Todo {
                text: task.id().map_or_else(|| text.clone().into_owned(), |id| format!("#{id} {text}")),
                status: task.status().unwrap_or("pending".into()).into_owned(),
                before: None,
                is_new: false,
                detail: detail.map_or(description, Cow::into_owned),
            }
        };
        // A description in the input is that of a single task.
        let one = one.into_iter().map(|task| todo(task, self.string("description")));
        let many = many.map(|task| todo(task, String::new()));
        let mut todos: Vec<Todo> = one.chain(many).collect();
        if self.name == "TaskUpdate" {
            return self.task_update();
        }
        if todos.is_empty() && !self.failed {
            todos = self.tasks_in_text();
        }
        let subject = match &todos[..] {
            [todo] => todo.text.clone(),
            _ => self.string("subject"),
        };
        let gist = match &todos[..] {
            [] | [_] if self.name != "TaskList" || self.failed => String::new(),
            several => {
                let done = several.iter().filter(|todo| todo.status == "completed").count();
                format!("{done} of {} done", several.len())
            }
        };
        CallSummary { card: ToolCard::Todos(todos), subject, gist }
    }

    /// Returns the tasks listed in the result text (`#1 [in_progress] Weave the cloth`), or the created
    /// one.
    fn tasks_in_text(&self) -> Vec<Todo> {
        let todo = |text: String, status: &str, detail: String| Todo {
            text,
            status: status.to_owned(),
            before: None,
            is_new: false,
            detail,
        };
        let listed = self.text.lines().filter_map(|line| {
            let (id, rest) = line.trim().strip_prefix('#')?.split_once(" [")?;
            let (status, text) = rest.split_once(']')?;
            Some(todo(format!("#{id} {}", text.trim()), status, String::new()))
        });
        let listed: Vec<Todo> = listed.collect();
        let subject = Some(self.string("subject")).filter(|subject| !subject.is_empty());
        match subject.filter(|_| listed.is_empty()) {
            Some(subject) => vec![todo(subject, "pending", self.string("description"))],
            None => listed,
        }
    }

    /// Returns the card of a changed task. Its name is known only to the call that created it.
    fn task_update(&self) -> CallSummary {
        let result = self.of::<TaskUpdateResult<'_>>();
        let change = result.and_then(|result| result.status_change());
        let from = change.and_then(|change| change.from()).map(Cow::into_owned);
        let to = change.and_then(|change| change.to()).map(Cow::into_owned);
        let text = format!("#{} {}", self.string("taskId"), self.string("subject")).trim_end().to_owned();
        let status = to.unwrap_or_else(|| self.string("status"));
        let detail = self.string("description");
        let todo = Todo { text: text.clone(), status, before: from, is_new: false, detail };
        let status = match todo.change() {
            Some(change) => Some(change),
            None if !todo.status.is_empty() => Some(todo.status.replace('_', " ")),
            None => None,
        };
        let fields = result.and_then(|result| result.updated_fields());
        let mut known = HashSet::new();
        let fields = fields.into_iter().flat_map(|fields| fields.iter());
        let fields = fields.filter(|field| field != "status" && known.insert(field.clone()));
        let changes = fields.map(|field| {
            let value = match &*field {
                "owner" => Some(self.string("owner")),
                "blockedBy" => Some(self.tasks_in("addBlockedBy")),
                "blocks" => Some(self.tasks_in("addBlocks")),
                _ => None,
            };
            let word = match &*field {
                "blockedBy" => "blocked by",
                "activeForm" => "wording",
                other => other,
            };
            format!("{word} {}", value.unwrap_or_default()).trim_end().to_owned()
        });
        let gist =
            if self.failed { String::new() } else { joined(status.into_iter().chain(changes), " · ") };
        let silent = todo.status.is_empty() && todo.detail.is_empty();
        let todos = if self.failed || silent { Vec::new() } else { vec![todo] };
        CallSummary { card: ToolCard::Todos(todos), subject: text, gist }
    }

    /// Returns the task numbers in a list of the input.
    fn tasks_in(&self, key: &str) -> String {
        let list = self.input.and_then(|input| input.get(key));
        let ids = list.into_iter().flat_map(Json::items).filter_map(|id| Some(format!("#{}", id.as_str()?)));
        joined(ids, " ")
    }
}
