//! Plan mode: the model reads and plans, and changes nothing until the person approves the plan.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::value::RawValue;
use threadline_api::{BlockKind, Message, RawObject, Role};
use threadline_entry::write::Attachment;
use threadline_permission::PermissionMode;
use threadline_tools::{InputSchema, Permit, Tool, ToolContext, ToolInput, ToolOutput};

use crate::agent::Agent;
use crate::json::raw;
use crate::session_writer::WriteError;
use crate::tool_calls::CallOutcome;

/// The reminder for the model in plan mode.
const REMINDER: &str = "Plan mode is on. Read and search as much as you need, but do not edit files or run \
    commands that change something. Work out a plan and present it.";

/// The reminder for the model after plan mode.
const EXIT_REMINDER: &str = "Plan mode is off. You may edit files and run commands again.";

/// The result of EnterPlanMode: the part that the record has too, and our own advice.
const ENTERED: &str = "Entered plan mode. You should now focus on exploring the codebase and designing an \
    implementation approach.";
const ENTERED_ADVICE: &str = "Change nothing yet. When the plan is complete, present it with ExitPlanMode.";

const NOT_PLANNING: &str = "You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If \
    your plan was already approved, continue with implementation.";

/// A tool that turns plan mode on or off. The loop runs its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlanTool {
    Enter,
    Exit,
}

impl PlanTool {
    pub(crate) const ALL: [Self; 2] = [Self::Enter, Self::Exit];

    /// Returns the tool with this name.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

impl Tool for PlanTool {
    fn name(&self) -> &str {
        match self {
            Self::Enter => "EnterPlanMode",
            Self::Exit => "ExitPlanMode",
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Enter => {
                "Turns plan mode on, for tasks with several reasonable approaches: you read and search, and present a \
                 plan before you change anything. Not for small or clear tasks."
            }
            Self::Exit => {
                "Presents your plan to the user and turns plan mode off if they approve it. The plan is the content \
                 of the plan file, or the input `plan`, as Markdown."
            }
        }
        .to_owned()
    }

    /// The reference accepts any input for both.
    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Json(any_object())
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn run(&self, _: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let message = "Plan mode is changed by the loop.";
        ToolOutput::not_run(message, message)
    }
}

/// Returns the JSON Schema of an object with any members.
fn any_object() -> &'static RawValue {
    static SCHEMA: std::sync::OnceLock<Box<RawValue>> = std::sync::OnceLock::new();
    SCHEMA.get_or_init(|| {
        let none = RawObject::new();
        raw(&RawObject::new()
            .with("type", "object")
            .with("properties", none)
            .with("additionalProperties", true))
    })
}

/// The record of ExitPlanMode in the log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanRecord<'a> {
    plan: Option<&'a str>,
    is_agent: bool,
    file_path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_was_edited: Option<bool>,
}

#[derive(Serialize)]
struct EnterRecord {
    message: &'static str,
}

impl Agent {
    /// Names the plan of the session before the first prompt in plan mode is written.
    pub(crate) fn prepare_plan(&mut self) {
        if self.is_planning() {
            self.plan_file();
        }
    }

    /// Writes that plan mode was turned on or off, if that is not written yet, and adds it to the
    /// conversation.
    pub(crate) fn report_plan_mode(&mut self) -> Result<(), WriteError> {
        let is_planning = self.is_planning();
        if std::mem::replace(&mut self.has_reported_plan_mode, is_planning) == is_planning {
            return Ok(());
        }
        let file = self.plan_file();
        let (plan_file, exists) = (&*file.to_string_lossy(), file.exists());
        let (attachment, text) = if is_planning {
            (Attachment::PlanMode { plan_file, exists }, format!("{REMINDER} The plan file is {plan_file}."))
        } else {
            (Attachment::PlanModeExit { plan_file, exists }, EXIT_REMINDER.to_owned())
        };
        self.writer.lock().attachment(attachment, &*self.clock)?;
        let text = format!("<system-reminder>\n{text}\n</system-reminder>");
        self.conversation.push(Role::User, vec![Message::text_block(&text)]);
        Ok(())
    }

    /// Returns the file for the plan of the session, which the model may write from then on.
    fn plan_file(&self) -> PathBuf {
        let name = self.main_writer.lock().plan_name(&*self.clock);
        let file = self.config.paths.claude_home.join("plans").join(format!("{name}.md"));
        self.config.permissions.update(|permissions| permissions.workspace.plan_file = Some(file.clone()));
        file
    }

    pub(crate) fn is_planning(&self) -> bool {
        self.config.permissions.mode() == PermissionMode::Plan
    }

    /// Returns the result of a call that fails whether it is permitted or not.
    pub(crate) fn check_plan_call(&self, tool: PlanTool) -> Option<ToolOutput> {
        if tool == PlanTool::Enter || self.is_planning() {
            return None;
        }
        let message = format!("<tool_use_error>{NOT_PLANNING}</tool_use_error>");
        Some(ToolOutput::not_run(&message, &format!("Error: {NOT_PLANNING}")))
    }

    /// Returns the input of ExitPlanMode as it is logged and shown to the person: with the plan of the plan
    /// file, if there is one.
    pub(crate) fn plan_input(&self, input: &RawValue) -> Box<RawValue> {
        let file = self.plan_file();
        let Ok(plan) = fs_err::read_to_string(&file) else { return input.to_owned() };
        let mut shown = RawObject::parse(input.get()).unwrap_or_default();
        shown.set("plan", plan);
        shown.set("planFilePath", file.to_string_lossy());
        raw(&shown)
    }

    /// Turns plan mode on or off. `answer` is the input if the answer to the question changed it.
    pub(crate) fn run_plan_call(
        &self,
        tool: PlanTool,
        input: &ToolInput,
        answer: Option<&ToolInput>,
        _permit: Permit,
    ) -> CallOutcome {
        if tool == PlanTool::Enter {
            self.config.permissions.set_mode(PermissionMode::Plan);
            let text = format!("{ENTERED}\n\n{ENTERED_ADVICE}");
            let output = ToolOutput::success(text, &EnterRecord { message: ENTERED });
            return CallOutcome::ModeChange(output, PermissionMode::Plan);
        }
        let output = self.approve_plan(input, answer);
        match self.config.permissions.leave_plan_mode() {
            Some(mode) => CallOutcome::ModeChange(output, mode),
            // The answer changed the mode already.
            None => CallOutcome::Output(output),
        }
    }

    /// Saves the approved plan. Returns the result of the call.
    fn approve_plan(&self, input: &ToolInput, answer: Option<&ToolInput>) -> ToolOutput {
        let file = self.plan_file();
        let given = answer.and_then(|answer| answer.text("plan"));
        let stored = || fs_err::read_to_string(&file).ok();
        let plan = given.map(str::to_owned).or_else(stored).or_else(|| input.text("plan").map(str::to_owned));
        let file_path = &*file.to_string_lossy();
        let Some(plan) = plan.filter(|plan| !plan.trim().is_empty()) else {
            let record = PlanRecord { plan: None, is_agent: false, file_path, plan_was_edited: None };
            return ToolOutput::success("User has approved exiting plan mode. You can now proceed.", &record);
        };
        if let Err(error) = save_plan(&file, &plan) {
            return ToolOutput::failed(format!("the plan could not be saved: {error}"));
        }
        let is_edited = answer.is_some();
        let heading = if is_edited { "## Approved Plan (edited by user):" } else { "## Approved Plan:" };
        let text = format!(
            "User has approved your plan. You can now start coding. Start with updating your todo list if \
             applicable\n\nYour plan has been saved to: {file_path}\nYou can refer back to it if needed during \
             implementation.\n\n{heading}\n{plan}"
        );
        let plan_was_edited = is_edited.then_some(true);
        ToolOutput::success(
            text,
            &PlanRecord { plan: Some(&plan), is_agent: false, file_path, plan_was_edited },
        )
    }
}

fn save_plan(file: &std::path::Path, plan: &str) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        fs_err::create_dir_all(folder)?;
    }
    fs_err::write(file, plan)
}

/// Removes the plan from a call of ExitPlanMode before it is sent back to the model, which gets it with the
/// result.
pub(crate) fn without_plan(mut block: RawObject) -> RawObject {
    let is_exit = BlockKind::of(&block) == BlockKind::ToolUse
        && block.get_str("name").as_deref() == Some(PlanTool::Exit.name());
    if is_exit && let Some(mut input) = block.get_object("input") {
        input.remove("plan");
        input.remove("planFilePath");
        block.set("input", input);
    }
    block
}
