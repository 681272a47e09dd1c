//! TaskOutput and TaskStop: background commands.

use std::path::Path;
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;

use crate::background::{TaskStatus, TaskView};
use crate::bash::OutputHead;
use crate::context::ToolContext;
use crate::json::OrderedJson;
use crate::output::{Failure, ToolOutput};
use crate::profile::Profile;
use crate::schema::{Kind, Parameter, optional, required};
use crate::tool::{InputSchema, Permit, Tool, ToolInput};

/// The TaskOutput tool.
pub(crate) struct TaskOutput {
    pub(crate) profile: &'static Profile,
}

const OUTPUT_PARAMETERS: &[Parameter] = &[
    required("task_id", Kind::Text(0), "The id of the background task"),
    Parameter { default: Some("true"), ..required("block", Kind::Flag, "Wait until the task has ended") },
    Parameter {
        default: Some("30000"),
        ..required(
            "timeout",
            Kind::Number(Some((0.0, 600_000.0))),
            "The longest time to wait, in milliseconds",
        )
    },
];

#[derive(Serialize)]
struct OutputRecord<'a> {
    retrieval_status: &'a str,
    task: TaskOutputTask<'a>,
}

#[derive(Serialize)]
struct TaskOutputTask<'a> {
    task_id: &'a str,
    task_type: &'a str,
    status: &'a str,
    description: &'a str,
    output: &'a str,
    #[serde(rename = "exitCode")]
    exit_code: Option<i32>,
}

/// The type of all tasks of this crate.
const TASK_TYPE: &str = "local_bash";

impl Tool for TaskOutput {
    fn name(&self) -> &str {
        "TaskOutput"
    }

    fn description(&self) -> String {
        "Returns the output and the state of a background task, by default when it has ended. A task whose end was \
         returned is forgotten."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(OUTPUT_PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn rewrite(&self, input: &mut ToolInput, _: &Path) {
        let member = |name| (name, input.json().get(name).cloned());
        let members = vec![member("task_id"), member("block"), member("timeout")];
        input.set_members(members);
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        task_output(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

fn task_output(input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
    let id = input.text("task_id").unwrap_or_default();
    let view = context.background.view(id).ok_or_else(|| unknown_task(id))?;
    let blocks = input.flag("block");
    let timeout =
        Duration::from_secs_f64(input.number("timeout").unwrap_or_default().clamp(0.0, 6e8) / 1000.0);
    let view = match view.status {
        TaskStatus::Running if blocks => {
            context.background.wait_view(id, timeout, context.cancel).unwrap_or(view)
        }
        _ => view,
    };
    let retrieval = match view.status {
        TaskStatus::Running if blocks => "timeout",
        TaskStatus::Running => "not_ready",
        _ => {
            context.background.remove(id);
            "success"
        }
    };
    Ok(show_task(id, &view, retrieval, context.limits.bash_output_bytes))
}

fn show_task(id: &str, view: &TaskView, retrieval: &str, max_output: u64) -> ToolOutput {
    let output = OutputHead::read(&view.output_file, max_output);
    let status = view.status.name();
    let mut parts = vec![
        format!("<retrieval_status>{retrieval}</retrieval_status>"),
        format!("<task_id>{id}</task_id>"),
        format!("<task_type>{TASK_TYPE}</task_type>"),
        format!("<status>{status}</status>"),
    ];
    parts.extend(view.exit_code.map(|code| format!("<exit_code>{code}</exit_code>")));
    if !output.text.trim().is_empty() {
        parts.push(format!("<output>\n{}\n</output>", output.text.trim_end()));
    }
    let record = OutputRecord {
        retrieval_status: retrieval,
        task: TaskOutputTask {
            task_id: id,
            task_type: TASK_TYPE,
            status,
            description: &view.description,
            output: &output.text,
            exit_code: view.exit_code,
        },
    };
    ToolOutput::success(parts.join("\n\n"), &record)
}

fn unknown_task(id: &str) -> Failure {
    Failure::Refused(format!("No task found with ID: {id}"))
}

/// The TaskStop tool.
pub(crate) struct TaskStop {
    pub(crate) profile: &'static Profile,
}

const STOP_PARAMETERS: &[Parameter] = &[
    optional("task_id", Kind::Text(0), "The id of the background task"),
    optional("shell_id", Kind::Text(0), "Old name of `task_id`"),
];

#[derive(Serialize)]
struct StopRecord<'a> {
    message: String,
    task_id: &'a str,
    task_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
}

impl Tool for TaskStop {
    fn name(&self) -> &str {
        "TaskStop"
    }

    fn description(&self) -> String {
        "Ends a background task with all of its processes.".to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(STOP_PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, context: &ToolContext<'_>, _: Permit) -> ToolOutput {
        self.stop(input, context).unwrap_or_else(|failure| failure.into_output(self.name()))
    }
}

impl TaskStop {
    fn stop(&self, input: &ToolInput, context: &ToolContext<'_>) -> Result<ToolOutput, Failure> {
        let id = input.text("task_id").or_else(|| input.text("shell_id"));
        let id = id.ok_or_else(|| Failure::Refused("Missing required parameter: task_id".to_owned()))?;
        let is_running = context.background.view(id).is_some_and(|view| view.status == TaskStatus::Running);
        let stopped = context.background.stop(id, context.limits.kill_grace).filter(|_| is_running);
        let command = stopped.ok_or_else(|| unknown_task(id))?;
        let record = StopRecord {
            message: format!("Successfully stopped task: {id} ({command})"),
            task_id: id,
            task_type: TASK_TYPE,
            command: self.profile.stop_records_command.then_some(command),
        };
        let text = serde_json::to_string(&record).unwrap_or_default();
        Ok(ToolOutput::success(text, &record))
    }
}

/// The TodoWrite tool of older versions: the list is kept in memory.
pub(crate) struct TodoWrite {
    profile: &'static Profile,
    todos: Mutex<OrderedJson>,
}

impl TodoWrite {
    pub(crate) fn new(profile: &'static Profile) -> Self {
        Self { profile, todos: Mutex::new(OrderedJson::Array(Vec::new())) }
    }
}

const TODO_PARAMETERS: &[Parameter] = &[required(
    "todos",
    Kind::Objects(&[
        required("content", Kind::Text(1), ""),
        required("status", Kind::Choice(&["pending", "in_progress", "completed"]), ""),
        required("activeForm", Kind::Text(1), ""),
    ]),
    "The whole new list",
)];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TodoRecord<'a> {
    old_todos: &'a OrderedJson,
    new_todos: &'a OrderedJson,
}

impl Tool for TodoWrite {
    fn name(&self) -> &str {
        "TodoWrite"
    }

    fn description(&self) -> String {
        "Replaces the list of things to do. Keep exactly one item in progress while working, and complete each item \
         as soon as it is done. `content` says what to do, `activeForm` what is being done."
            .to_owned()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(TODO_PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn converts_text(&self) -> bool {
        self.profile.converts_text
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let new = input.json().get("todos").cloned().unwrap_or(OrderedJson::Array(Vec::new()));
        let is_done =
            |todo: &OrderedJson| todo.get("status").and_then(OrderedJson::as_str) == Some("completed");
        let all_done = new.as_array().is_some_and(|todos| todos.iter().all(is_done));
        // A list whose items are all completed is cleared.
        let kept = if all_done { OrderedJson::Array(Vec::new()) } else { new.clone() };
        let old = std::mem::replace(&mut *self.todos.lock(), kept);
        let text = "Todos have been modified successfully. Ensure that you continue to use the todo list to track your \
                    progress. Please proceed with the current tasks if applicable";
        ToolOutput::success(text, &TodoRecord { old_todos: &old, new_todos: &new })
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::Fixture;

    fn start(fixture: &Fixture, command: &str) -> String {
        let input =
            serde_json::json!({"command": command, "run_in_background": true, "description": "Two steps"});
        let record = fixture.record("Bash", &input.to_string());
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        record["backgroundTaskId"].as_str().unwrap().to_owned()
    }

    #[test]
    fn the_output_of_an_ended_task_is_returned_once() {
        let fixture = Fixture::new();
        let id = start(&fixture, "echo one; exit 5");
        let input = format!(r#"{{"task_id": "{id}"}}"#);
        let output = fixture.run("TaskOutput", &input);
        assert_eq!(
            output.text(),
            format!(
                "<retrieval_status>success</retrieval_status>\n\n<task_id>{id}</task_id>\n\n\
                 <task_type>local_bash</task_type>\n\n<status>failed</status>\n\n<exit_code>5</exit_code>\n\n\
                 <output>\none\n</output>"
            )
        );
        assert_eq!(
            output.record.unwrap().get(),
            format!(
                r#"{{"retrieval_status":"success","task":{{"task_id":"{id}","task_type":"local_bash","status":"failed","description":"Two steps","output":"one\n","exitCode":5}}}}"#
            )
        );
        let gone = format!("ERR <tool_use_error>No task found with ID: {id}</tool_use_error>");
        assert_eq!(fixture.text("TaskOutput", &input), gone);
        assert_eq!(fixture.text("TaskStop", &input), gone);
        assert!(fixture.background.take_finished().is_empty());
    }

    #[test]
    fn a_running_task_is_shown_and_stopped() {
        let fixture = Fixture::new();
        let id = start(&fixture, "sleep 60");
        let text = fixture.text("TaskOutput", &format!(r#"{{"task_id": "{id}", "block": false}}"#));
        assert_eq!(
            text,
            format!(
                "<retrieval_status>not_ready</retrieval_status>\n\n<task_id>{id}</task_id>\n\n\
                 <task_type>local_bash</task_type>\n\n<status>running</status>"
            )
        );
        let text = fixture.text("TaskOutput", &format!(r#"{{"task_id": "{id}", "timeout": 10}}"#));
        assert!(text.starts_with("<retrieval_status>timeout</retrieval_status>"), "{text}");
        let stopped = fixture.text("TaskStop", &format!(r#"{{"shell_id": "{id}"}}"#));
        assert_eq!(
            stopped,
            format!(
                r#"{{"message":"Successfully stopped task: {id} (sleep 60)","task_id":"{id}","task_type":"local_bash","command":"sleep 60"}}"#
            )
        );
        assert!(!fixture.background.has_running());
        assert!(fixture.background.take_finished().is_empty());
    }

    #[test]
    fn a_task_id_is_needed() {
        let fixture = Fixture::new();
        assert_eq!(
            fixture.text("TaskStop", "{}"),
            "ERR <tool_use_error>Missing required parameter: task_id</tool_use_error>"
        );
    }

    #[test]
    fn todos_are_replaced_and_recorded() {
        let fixture = Fixture::with_profile(&crate::Profile::V2_1_20);
        let first = r#"{"content":"First","status":"in_progress","activeForm":"Doing first"}"#;
        fixture.run("TodoWrite", &format!(r#"{{"todos": [{first}]}}"#));
        assert_eq!(
            fixture.record("TodoWrite", r#"{"todos": []}"#),
            format!(r#"{{"oldTodos":[{first}],"newTodos":[]}}"#)
        );
    }
}
