//! `progress` lines, which versions up to 2.1.81 wrote.

use super::conversation::{LineContext, LineHeader};
use super::object::ObjectWriter;
use crate::json::Json;

/// A `progress` line.
#[derive(Clone, Copy, Debug)]
pub struct ProgressLine<'a> {
    /// Id, parent and time.
    pub header: LineHeader<'a>,
    /// The values that all lines have.
    pub context: &'a LineContext<'a>,
    /// The report.
    pub data: ProgressData<'a>,
    /// The id of the report.
    pub tool_use_id: &'a str,
    /// The call that the report is about.
    pub parent_tool_use_id: &'a str,
}

/// The report of a `progress` line.
#[derive(Clone, Copy, Debug)]
pub enum ProgressData<'a> {
    /// Output of a running command.
    Bash {
        /// The last lines.
        output: &'a str,
        /// All output so far.
        full_output: &'a str,
        /// The time since its start.
        elapsed_seconds: u64,
        /// The number of lines so far.
        total_lines: u64,
    },
    /// A hook that starts.
    Hook {
        /// The event.
        event: &'a str,
        /// The name of the hook.
        name: &'a str,
        /// Its command.
        command: &'a str,
    },
    /// A message of a sub-agent.
    Agent {
        /// The message, as in the log of the sub-agent.
        message: Json<'a>,
        /// The task.
        prompt: &'a str,
        /// The id of the sub-agent.
        agent_id: &'a str,
    },
}

impl ProgressLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(&self) -> String {
        let data = ObjectWriter::new();
        let data = match self.data {
            ProgressData::Bash { output, full_output, elapsed_seconds, total_lines } => data
                .string("type", "bash_progress")
                .string("output", output)
                .string("fullOutput", full_output)
                .number("elapsedTimeSeconds", elapsed_seconds)
                .number("totalLines", total_lines),
            ProgressData::Hook { event, name, command } => data
                .string("type", "hook_progress")
                .string("hookEvent", event)
                .string("hookName", name)
                .string("command", command),
            ProgressData::Agent { message, prompt, agent_id } => data
                .json("message", message)
                .string("type", "agent_progress")
                .string("prompt", prompt)
                .string("agentId", agent_id),
        };
        let object = self
            .header
            .start(None, self.context)
            .string("type", "progress")
            .object("data", data)
            .string("toolUseID", self.tool_use_id)
            .string("parentToolUseID", self.parent_tool_use_id);
        self.context.write(self.header.write_id_and_time(object)).finish()
    }
}
