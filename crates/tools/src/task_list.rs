//! TaskCreate, TaskGet, TaskList, TaskUpdate: a list of tasks in files, one per task.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::{Failure, ToolOutput};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::text_file::write_atomically;
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// One of the four tools of the task list.
pub(crate) struct TaskListTool {
    pub(crate) profile: &'static Profile,
    pub(crate) operation: TaskOperation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskOperation {
    Create,
    Get,
    List,
    Update,
}

const CREATE_PARAMETERS: &[Parameter] = &[
    required("subject", Kind::Text(0), "A short title, as an instruction"),
    required("description", Kind::Text(0), "What has to be done"),
    optional("activeForm", Kind::Text(0), "The title while the task is in progress (\"Running tests\")"),
    optional("metadata", Kind::Map, "Further values to keep with the task"),
];

const GET_PARAMETERS: &[Parameter] = &[required("taskId", Kind::Text(0), "The number of the task")];

const STATUSES: &[&str] = &["pending", "in_progress", "completed"];

const UPDATE_PARAMETERS: &[Parameter] = &[
    required("taskId", Kind::Text(0), "The number of the task"),
    optional("subject", Kind::Text(0), "New title"),
    optional("description", Kind::Text(0), "New description"),
    optional("activeForm", Kind::Text(0), "New title while in progress"),
    optional("status", Kind::EitherChoice(STATUSES, "deleted"), "New status; `deleted` removes the task"),
    optional("addBlocks", Kind::Texts, "Tasks that cannot start before this one is completed"),
    optional("addBlockedBy", Kind::Texts, "Tasks that must be completed before this one can start"),
    optional("owner", Kind::Text(0), "New owner"),
    optional("metadata", Kind::Map, "Values to merge; null removes one"),
];

/// A task as it is stored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredTask {
    id: String,
    subject: String,
    #[serde(default)]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    active_form: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
    status: String,
    #[serde(default)]
    blocks: Vec<String>,
    #[serde(default)]
    blocked_by: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    metadata: Option<OrderedJson>,
}

#[derive(Serialize)]
struct CreatedRecord<'a> {
    task: CreatedTask<'a>,
}

#[derive(Serialize)]
struct CreatedTask<'a> {
    id: &'a str,
    subject: &'a str,
}

#[derive(Serialize)]
struct ListedTask<'a> {
    task: Option<TaskDetails<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskDetails<'a> {
    id: &'a str,
    subject: &'a str,
    description: &'a str,
    status: &'a str,
    blocks: &'a [String],
    blocked_by: &'a [String],
}

#[derive(Serialize)]
struct ListRecord<'a> {
    tasks: Vec<TaskSummary<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskSummary<'a> {
    id: &'a str,
    subject: &'a str,
    status: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a str>,
    blocked_by: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UpdateRecord<'a> {
    success: bool,
    task_id: &'a str,
    updated_fields: &'a [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_change: Option<StatusChange>,
}

#[derive(Serialize)]
struct StatusChange {
    from: String,
    to: String,
}

impl Tool for TaskListTool {
    fn name(&self) -> &str {
        match self.operation {
            TaskOperation::Create => "TaskCreate",
            TaskOperation::Get => "TaskGet",
            TaskOperation::List => "TaskList",
            TaskOperation::Update => "TaskUpdate",
        }
    }

    fn description(&self) -> String {
        let text = match self.operation {
            TaskOperation::Create => {
                "Adds a task to the task list of this session. Use the list for work with several steps."
            }
            TaskOperation::Get => "Returns one task with its description and what blocks it.",
            TaskOperation::List => "Returns all tasks with their status.",
            TaskOperation::Update => {
                "Changes a task: status, text, owner, or what it blocks. Set a task to `in_progress` before working on \
                 it and to `completed` only when it is done."
            }
        };
        text.to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(match self.operation {
            TaskOperation::Create => CREATE_PARAMETERS,
            TaskOperation::Get => GET_PARAMETERS,
            TaskOperation::List => &[],
            TaskOperation::Update => UPDATE_PARAMETERS,
        })
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        matches!(self.operation, TaskOperation::Get | TaskOperation::List)
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let list = TaskFiles { dir: context.task_list_dir };
        let result = match self.operation {
            TaskOperation::Create => list.create(input),
            TaskOperation::Get => Ok(list.get(input)),
            TaskOperation::List => Ok(list.list()),
            TaskOperation::Update => list.update(input),
        };
        result.unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

/// The folder with the tasks of a session.
struct TaskFiles<'a> {
    dir: &'a Path,
}

/// The name of the file with the highest number of a deleted task.
const HIGH_WATER_MARK: &str = ".highwatermark";

impl TaskFiles<'_> {
    /// Locks the list against other processes until the file is dropped.
    fn lock(&self) -> Result<fs::File, Failure> {
        let lock = || -> io::Result<fs::File> {
            fs::create_dir_all(self.dir)?;
            // Windows does not lock a file that is opened for appending only.
            let path = self.dir.join(".lock");
            let file = fs::File::options().read(true).append(true).create(true).open(path)?;
            file.lock()?;
            Ok(file)
        };
        lock().map_err(|error| Failure::Failed(format!("Cannot lock {}: {error}", self.dir.display())))
    }

    /// Returns the path of a task; `None` if the id is not a plain number, as all ids are.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let is_number = !id.is_empty() && id.len() <= 18 && id.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| self.dir.join(format!("{id}.json")))
    }

    fn load(&self, id: &str) -> Option<StoredTask> {
        serde_json::from_slice(&fs::read(self.path(id)?).ok()?).ok()
    }

    fn save(&self, task: &StoredTask) -> Result<(), Failure> {
        let Some(path) = self.path(&task.id) else { return Ok(()) };
        let text = serde_json::to_string_pretty(task).unwrap_or_default();
        write_atomically(&path, text.as_bytes())
    }

    /// Returns the tasks by number.
    fn all(&self) -> Vec<StoredTask> {
        let entries = fs::read_dir(self.dir).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<u64> =
            names.filter_map(|name| name.strip_suffix(".json").and_then(|id| id.parse().ok())).collect();
        ids.sort_unstable();
        ids.iter().filter_map(|id| self.load(&id.to_string())).collect()
    }

    fn high_water_mark(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(HIGH_WATER_MARK)).unwrap_or_default();
        text.trim().parse().unwrap_or_default()
    }

    fn create(&self, input: &ToolInput) -> Result<ToolOutput, Failure> {
        let text = |name: &str| input.text(name).unwrap_or_default().to_owned();
        let _lock = self.lock()?;
        let highest = self.all().iter().filter_map(|task| task.id.parse().ok()).max().unwrap_or(0);
        let task = StoredTask {
            id: (highest.max(self.high_water_mark()) + 1).to_string(),
            subject: text("subject"),
            description: text("description"),
            active_form: input.text("activeForm").map(str::to_owned),
            owner: None,
            status: "pending".to_owned(),
            blocks: Vec::new(),
            blocked_by: Vec::new(),
            metadata: input
                .json()
                .get("metadata")
                .filter(|value| matches!(value, OrderedJson::Object(_)))
                .cloned(),
        };
        self.save(&task)?;
        let record = CreatedRecord { task: CreatedTask { id: &task.id, subject: &task.subject } };
        Ok(ToolOutput::success(format!("Task #{} created successfully: {}", task.id, task.subject), &record))
    }

    fn get(&self, input: &ToolInput) -> ToolOutput {
        let Some(task) = self.load(input.text("taskId").unwrap_or_default()) else {
            return ToolOutput::success("Task not found", &ListedTask { task: None });
        };
        let mut lines = vec![
            format!("Task #{}: {}", task.id, task.subject),
            format!("Status: {}", task.status),
            format!("Description: {}", task.description),
        ];
        let numbers = |ids: &[String]| ids.iter().map(|id| format!("#{id}")).collect::<Vec<_>>().join(", ");
        if !task.blocked_by.is_empty() {
            lines.push(format!("Blocked by: {}", numbers(&task.blocked_by)));
        }
        if !task.blocks.is_empty() {
            lines.push(format!("Blocks: {}", numbers(&task.blocks)));
        }
        let details = TaskDetails {
            id: &task.id,
            subject: &task.subject,
            description: &task.description,
            status: &task.status,
            blocks: &task.blocks,
            blocked_by: &task.blocked_by,
        };
        ToolOutput::success(lines.join("\n"), &ListedTask { task: Some(details) })
    }

    fn list(&self) -> ToolOutput {
        let all = self.all();
        let is_open = |id: &&str| !all.iter().any(|task| task.id == **id && task.status == "completed");
        let summary = |task: &'_ StoredTask| -> Vec<String> {
            task.blocked_by.iter().filter(|id| is_open(&id.as_str())).cloned().collect()
        };
        let blockers: Vec<_> = all.iter().map(summary).collect();
        let line = |(task, blockers): (&StoredTask, &Vec<String>)| {
            let owner = task.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
            let numbers: Vec<_> = blockers.iter().map(|id| format!("#{id}")).collect();
            let blocked = if numbers.is_empty() {
                String::new()
            } else {
                format!(" [blocked by {}]", numbers.join(", "))
            };
            format!("#{} [{}] {}{owner}{blocked}", task.id, task.status, task.subject)
        };
        let lines: Vec<_> = all.iter().zip(&blockers).map(line).collect();
        let text = if lines.is_empty() { "No tasks found".to_owned() } else { lines.join("\n") };
        let tasks = all.iter().zip(&blockers).map(|(task, blockers)| TaskSummary {
            id: &task.id,
            subject: &task.subject,
            status: &task.status,
            owner: task.owner.as_deref(),
            blocked_by: blockers.iter().map(String::as_str).collect(),
        });
        ToolOutput::success(text, &ListRecord { tasks: tasks.collect() })
    }

    fn update(&self, input: &ToolInput) -> Result<ToolOutput, Failure> {
        let id = input.text("taskId").unwrap_or_default();
        let _lock = self.lock()?;
        let Some(mut task) = self.load(id) else {
            let error = Some("Task not found");
            let record =
                UpdateRecord { success: false, task_id: id, updated_fields: &[], error, status_change: None };
            return Ok(ToolOutput::success("Task not found", &record));
        };
        if input.text("status") == Some("deleted") {
            self.delete(&task)?;
            let change = StatusChange { from: task.status, to: "deleted".to_owned() };
            return Ok(updated(id, &["deleted"], Some(change)));
        }
        let mut fields = Vec::new();
        let mut set = |name: &'static str, value: &mut String| {
            if let Some(new) = input.text(name).filter(|new| new != value) {
                *value = new.to_owned();
                fields.push(name);
            }
        };
        set("subject", &mut task.subject);
        set("description", &mut task.description);
        for (name, value) in [("activeForm", &mut task.active_form), ("owner", &mut task.owner)] {
            let old = value.clone().unwrap_or_default();
            if let Some(new) = input.text(name).filter(|new| *new != old) {
                *value = Some(new.to_owned());
                fields.push(name);
            }
        }
        if let Some(OrderedJson::Object(members)) = input.json().get("metadata") {
            merge_metadata(&mut task.metadata, members);
            fields.push("metadata");
        }
        let mut change = None;
        if let Some(status) = input.text("status").filter(|status| *status != task.status) {
            let from = std::mem::replace(&mut task.status, status.to_owned());
            change = Some(StatusChange { from, to: status.to_owned() });
            fields.push("status");
        }
        self.save(&task)?;
        let blocks = input.texts("addBlocks");
        if blocks.iter().any(|other| !task.blocks.contains(other)) {
            blocks.iter().try_for_each(|other| self.link(id, other))?;
            fields.push("blocks");
        }
        let blocked_by = input.texts("addBlockedBy");
        if blocked_by.iter().any(|other| !task.blocked_by.contains(other)) {
            blocked_by.iter().try_for_each(|other| self.link(other, id))?;
            fields.push("blockedBy");
        }
        Ok(updated(id, &fields, change))
    }

    /// Records that one task blocks another. Tasks that do not exist are ignored.
    fn link(&self, blocker: &str, blocked: &str) -> Result<(), Failure> {
        let (Some(mut first), Some(_)) = (self.load(blocker), self.load(blocked)) else { return Ok(()) };
        if !first.blocks.iter().any(|id| id == blocked) {
            first.blocks.push(blocked.to_owned());
            self.save(&first)?;
        }
        let Some(mut second) = self.load(blocked) else { return Ok(()) };
        if !second.blocked_by.iter().any(|id| id == blocker) {
            second.blocked_by.push(blocker.to_owned());
            self.save(&second)?;
        }
        Ok(())
    }

    /// Removes a task and every mention of it; its number is not used again.
    fn delete(&self, task: &StoredTask) -> Result<(), Failure> {
        let number: u64 = task.id.parse().unwrap_or_default();
        if number > self.high_water_mark() {
            write_atomically(&self.dir.join(HIGH_WATER_MARK), task.id.as_bytes())?;
        }
        if let Some(path) = self.path(&task.id) {
            fs::remove_file(&path)
                .map_err(|error| Failure::Failed(format!("Cannot remove {}: {error}", path.display())))?;
        }
        for mut other in self.all() {
            let before = other.blocks.len() + other.blocked_by.len();
            other.blocks.retain(|id| *id != task.id);
            other.blocked_by.retain(|id| *id != task.id);
            if other.blocks.len() + other.blocked_by.len() != before {
                self.save(&other)?;
            }
        }
        Ok(())
    }
}

fn updated(id: &str, fields: &[&'static str], change: Option<StatusChange>) -> ToolOutput {
    let text = format!("Updated task #{id} {}", fields.join(", "));
    let record = UpdateRecord {
        success: true,
        task_id: id,
        updated_fields: fields,
        error: None,
        status_change: change,
    };
    ToolOutput::success(text, &record)
}

/// Sets each member; null removes it.
fn merge_metadata(metadata: &mut Option<OrderedJson>, members: &IndexMap<String, OrderedJson>) {
    let target = metadata.get_or_insert_with(|| OrderedJson::object([]));
    for (name, value) in members {
        match value {
            OrderedJson::Null => target.remove(name),
            value => target.set(name, value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    fn with_tasks(subjects: &[&str]) -> Fixture {
        let fixture = Fixture::new();
        for subject in subjects {
            fixture.run("TaskCreate", &format!(r#"{{"subject": "{subject}", "description": "d{subject}"}}"#));
        }
        fixture
    }

    fn stored(fixture: &Fixture, name: &str) -> String {
        std::fs::read_to_string(fixture.outside("task-list").join(name)).unwrap()
    }

    #[test]
    fn tasks_are_created_with_numbers() {
        let fixture = Fixture::new();
        let output = fixture.run(
            "TaskCreate",
            r#"{"subject": "First", "description": "Do", "activeForm": "Doing", "metadata": {"k": 1, "n": null}}"#,
        );
        assert_eq!(output.text(), "Task #1 created successfully: First");
        assert_eq!(output.record.unwrap().get(), r#"{"task":{"id":"1","subject":"First"}}"#);
        assert_eq!(
            stored(&fixture, "1.json"),
            "{\n  \"id\": \"1\",\n  \"subject\": \"First\",\n  \"description\": \"Do\",\n  \"activeForm\": \"Doing\",\n  \
             \"status\": \"pending\",\n  \"blocks\": [],\n  \"blockedBy\": [],\n  \"metadata\": {\n    \"k\": 1,\n    \
             \"n\": null\n  }\n}"
        );
        assert_eq!(stored(&fixture, ".lock"), "");
    }

    #[test]
    fn the_list_shows_status_owner_and_open_blockers() {
        let fixture = with_tasks(&["A", "B"]);
        assert_eq!(Fixture::new().text("TaskList", "{}"), "No tasks found");
        fixture.run("TaskUpdate", r#"{"taskId": "1", "status": "in_progress", "owner": "me"}"#);
        assert_eq!(
            fixture.text("TaskUpdate", r#"{"taskId": "2", "addBlockedBy": ["1"]}"#),
            "Updated task #2 blockedBy"
        );
        assert_eq!(fixture.text("TaskList", "{}"), "#1 [in_progress] A (me)\n#2 [pending] B [blocked by #1]");
        assert_eq!(
            fixture.record("TaskList", "{}"),
            r#"{"tasks":[{"id":"1","subject":"A","status":"in_progress","owner":"me","blockedBy":[]},{"id":"2","subject":"B","status":"pending","blockedBy":["1"]}]}"#
        );
        fixture.run("TaskUpdate", r#"{"taskId": "1", "status": "completed"}"#);
        assert_eq!(fixture.text("TaskList", "{}"), "#1 [completed] A (me)\n#2 [pending] B");
    }

    #[test]
    fn one_task_is_shown_with_what_it_blocks() {
        let fixture = with_tasks(&["A", "B"]);
        fixture.run("TaskUpdate", r#"{"taskId": "1", "addBlocks": ["2", "9"]}"#);
        let input = r#"{"taskId": "2"}"#;
        assert_eq!(
            fixture.text("TaskGet", input),
            "Task #2: B\nStatus: pending\nDescription: dB\nBlocked by: #1"
        );
        assert_eq!(
            fixture.record("TaskGet", input),
            r#"{"task":{"id":"2","subject":"B","description":"dB","status":"pending","blocks":[],"blockedBy":["1"]}}"#
        );
        for id in ["9", "../x", ""] {
            assert_eq!(fixture.text("TaskGet", &format!(r#"{{"taskId": "{id}"}}"#)), "Task not found");
        }
        assert_eq!(fixture.record("TaskGet", r#"{"taskId": "9"}"#), r#"{"task":null}"#);
    }

    #[test]
    fn an_update_names_the_changed_fields() {
        let fixture = with_tasks(&["A"]);
        let input = r#"{"taskId": "1", "subject": "A2", "description": "dA", "activeForm": "Aing", "owner": "me", "metadata": {"z": [1]}, "status": "in_progress"}"#;
        let output = fixture.run("TaskUpdate", input);
        assert_eq!(output.text(), "Updated task #1 subject, activeForm, owner, metadata, status");
        assert_eq!(
            output.record.unwrap().get(),
            r#"{"success":true,"taskId":"1","updatedFields":["subject","activeForm","owner","metadata","status"],"statusChange":{"from":"pending","to":"in_progress"}}"#
        );
        assert_eq!(fixture.text("TaskUpdate", r#"{"taskId": "1"}"#), "Updated task #1 ");
        assert_eq!(
            fixture.record("TaskUpdate", r#"{"taskId": "7", "status": "completed"}"#),
            r#"{"success":false,"taskId":"7","updatedFields":[],"error":"Task not found"}"#
        );
    }

    #[test]
    fn a_deleted_number_is_not_used_again() {
        let fixture = with_tasks(&["A", "B"]);
        fixture.run("TaskUpdate", r#"{"taskId": "2", "addBlocks": ["1"]}"#);
        let input = r#"{"taskId": "2", "status": "deleted", "subject": "zz"}"#;
        let output = fixture.run("TaskUpdate", input);
        assert_eq!(output.text(), "Updated task #2 deleted");
        assert_eq!(
            output.record.unwrap().get(),
            r#"{"success":true,"taskId":"2","updatedFields":["deleted"],"statusChange":{"from":"pending","to":"deleted"}}"#
        );
        assert_eq!(stored(&fixture, ".highwatermark"), "2");
        assert_eq!(
            fixture.text("TaskGet", r#"{"taskId": "1"}"#),
            "Task #1: A\nStatus: pending\nDescription: dA"
        );
        assert_eq!(
            fixture.text("TaskCreate", r#"{"subject": "C", "description": ""}"#),
            "Task #3 created successfully: C"
        );
    }
}
