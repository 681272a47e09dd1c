//! Skill: the model uses a skill or command from a file.

use threadline_api::{Message, RawObject};
use threadline_tools::{
    InputSchema, Kind, Parameter, Permit, ResultContent, Tool, ToolContext, ToolInput, ToolOutput,
};

use crate::custom_command::CustomCommand;
use crate::json::raw;

/// The name of the tool.
pub(crate) const SKILL: &str = "Skill";

/// The tool with which the model uses a skill.
pub(crate) struct SkillTool {
    commands: Vec<CustomCommand>,
    session_id: String,
}

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "skill",
        kind: Kind::Text(0),
        required: true,
        default: None,
        description: "The name of the skill",
    },
    Parameter {
        name: "args",
        kind: Kind::Text(0),
        required: false,
        default: None,
        description: "What the skill should work on",
    },
];

impl SkillTool {
    pub(crate) fn new(commands: &[CustomCommand], session_id: &str) -> Self {
        let commands = commands.iter().filter(|command| command.is_for_model).cloned().collect();
        Self { commands, session_id: session_id.to_owned() }
    }
}

impl Tool for SkillTool {
    fn name(&self) -> &str {
        SKILL
    }

    fn description(&self) -> String {
        let mut text = "Loads the instructions of a skill. Use it when a task matches the description of a \
                        skill, before other steps. Skills:"
            .to_owned();
        if self.commands.is_empty() {
            text.push_str(" none.");
        }
        for command in &self.commands {
            text.push_str(&format!("\n- {}: {}", command.name, command.description));
        }
        text
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    fn is_read_only(&self, _: &ToolInput) -> bool {
        false
    }

    fn run(&self, input: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let name = input.text("skill").unwrap_or_default().trim_start_matches('/');
        let Some(command) = self.commands.iter().find(|command| command.name == name) else {
            let message = format!("Unknown skill: {name}");
            return ToolOutput::not_run(
                &format!("<tool_use_error>{message}</tool_use_error>"),
                &format!("Error: {message}"),
            );
        };
        let text = command.expand(input.text("args").unwrap_or_default(), &self.session_id);
        let record = RawObject::new().with("success", true).with("commandName", name);
        ToolOutput {
            content: ResultContent::Text(format!("Launching skill: {name}")),
            is_error: false,
            record: Some(raw(&record)),
            changed: Vec::new(),
            follow_up: vec![raw(&Message::text_block(&text))],
            ends_turn: false,
            pull_request: None,
        }
    }
}
