//! Lists of things to do, and what changed in them.

use threadline_entry::lens::{FromJson, List, TaskItem, TaskResult, TaskUpdateResult, TodoWriteResult};

use super::{Call, Card, Todo, Told};
use crate::figure::plural;

impl Call<'_> {
    pub(super) fn todos(&self) -> Told {
        let result = self.of::<TodoWriteResult<'_>>();
        let old: Vec<_> =
            result.and_then(|result| result.old_todos()).into_iter().flat_map(|todos| todos.iter()).collect();
        let asked = || self.input.and_then(|input| List::from_json(input.get("todos")?));
        let new = result.and_then(|result| result.new_todos()).or_else(asked);
        let text = |todo: threadline_entry::lens::Todo<'_>| todo.content().unwrap_or_default().into_owned();
        let status = |todo: threadline_entry::lens::Todo<'_>| todo.status().unwrap_or_default().into_owned();
        let todos: Vec<Todo> = new
            .into_iter()
            .flat_map(|todos| todos.iter())
            .map(|todo| {
                let before =
                    old.iter().find(|before| text(**before) == text(todo)).map(|before| status(*before));
                let status = status(todo);
                let before = before.filter(|before| *before != status);
                Todo { text: text(todo), status, before }
            })
            .collect();
        let done = todos.iter().filter(|todo| todo.status == "completed").count();
        let subject = todos.iter().find(|todo| todo.status == "in_progress").map(|todo| todo.text.clone());
        Told {
            gist: format!("{done} of {} done", todos.len()),
            card: Card::Todos(todos),
            subject: subject.unwrap_or_default(),
        }
    }

    pub(super) fn tasks(&self) -> Told {
        let result = self.of::<TaskResult<'_>>();
        let one = result.and_then(|result| result.task());
        let many = result.and_then(|result| result.tasks()).into_iter().flat_map(|tasks| tasks.iter());
        let todo = |task: TaskItem<'_>| Todo {
            text: task.subject().or_else(|| task.description()).unwrap_or_default().into_owned(),
            status: task.status().unwrap_or("pending".into()).into_owned(),
            before: None,
        };
        let mut todos: Vec<Todo> = one.into_iter().chain(many).map(todo).collect();
        let change = self.of::<TaskUpdateResult<'_>>().and_then(|result| result.status_change());
        let part = |key: &str| change.and_then(|change| Some(change.get(key)?.as_str()?.into_owned()));
        let mut subject = self.string("subject");
        if let Some(status) =
            part("to").or_else(|| Some(self.string("status")).filter(|status| !status.is_empty()))
        {
            let text =
                if subject.is_empty() { format!("#{}", self.string("taskId")) } else { subject.clone() };
            todos.push(Todo { text: text.clone(), status, before: part("from") });
            subject = text;
        }
        let gist = match &todos[..] {
            [Todo { status, before: Some(before), .. }] => format!("{before} → {status}"),
            [Todo { status, .. }] if self.name == "TaskUpdate" => status.clone(),
            [] | [_] => String::new(),
            several => plural(several.len() as u64, "task"),
        };
        Told { card: Card::Todos(todos), subject, gist }
    }
}
