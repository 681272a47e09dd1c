//! The tool that starts sub-agents. The loop runs its calls.

use threadline_tools::{InputSchema, Kind, Parameter, Permit, Tool, ToolContext, ToolInput, ToolOutput};

use crate::agent_definition::AgentDefinition;

/// The definition of the tool for the model.
pub(crate) struct AgentTool {
    name: &'static str,
    description: String,
}

const fn parameter(name: &'static str, kind: Kind, required: bool, description: &'static str) -> Parameter {
    Parameter { name, kind, required, default: None, description }
}

const PARAMETERS: &[Parameter] = &[
    parameter("description", Kind::Text(0), true, "The task in three to five words"),
    parameter("prompt", Kind::Text(0), true, "The task, with everything that the agent needs to know"),
    parameter("subagent_type", Kind::Text(0), false, "The kind of agent"),
    parameter(
        "model",
        Kind::Choice(&["sonnet", "opus", "haiku"]),
        false,
        "Another model than that of this session",
    ),
    parameter(
        "run_in_background",
        Kind::Flag,
        false,
        "Whether to continue at once; a message follows when the agent is done",
    ),
];

impl AgentTool {
    /// Returns the name of the tool in a version.
    pub(crate) fn name_in(version: &str) -> &'static str {
        if version == "2.1.20" { "Task" } else { "Agent" }
    }

    pub(crate) fn new(name: &'static str, definitions: &[AgentDefinition]) -> Self {
        let mut description = "Gives a task to a sub-agent, which works on its own with its own context and returns \
             one message. Useful for searches over many files and for independent tasks; start several in one reply \
             to run them at the same time. The user does not see its answer: report what matters. Kinds of agents:"
            .to_owned();
        for definition in definitions {
            let tools =
                definition.tools.as_ref().map_or_else(|| "all tools".to_owned(), |tools| tools.join(", "));
            description.push_str(&format!("\n- {}: {} ({tools})", definition.name, definition.description));
        }
        Self { name, description }
    }
}

impl Tool for AgentTool {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn schema(&self) -> InputSchema<'_> {
        InputSchema::Parameters(PARAMETERS)
    }

    /// Sub-agents run at the same time; their own calls are checked one by one.
    fn is_read_only(&self, _: &ToolInput) -> bool {
        true
    }

    fn run(&self, _: &ToolInput, _: &ToolContext<'_>, _: Permit) -> ToolOutput {
        let message = "Sub-agents are started by the loop.";
        ToolOutput::not_run(message, message)
    }
}
