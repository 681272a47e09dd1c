//! Reports of running commands, hooks and sub-agents in the log, which older versions write at a screen.

use std::time::{Duration, Instant};

use threadline_api::RawObject;
use threadline_entry::Json;
use threadline_entry::write::ProgressData;

use crate::agent::Agent;
use crate::hook::{HookCall, HookEvent};
use crate::session_writer::WriteError;
use crate::sub_agent::{SubAgentEvent, SubAgentSource};

/// The time between two reports of a command.
const INTERVAL: Duration = Duration::from_secs(1);

/// The most output that a report repeats, in bytes. The result has all of it.
const MAX_OUTPUT: usize = 30_000;

/// The number of lines that a report shows.
const SHOWN_LINES: usize = 5;

/// The output of a running command.
pub(crate) struct CommandProgress {
    start: Instant,
    reported: Instant,
    output: String,
    lines: u64,
    reports: usize,
}

impl CommandProgress {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self { start: now, reported: now, output: String::new(), lines: 0, reports: 0 }
    }

    /// Adds output. Returns whether it is time for a report.
    fn add(&mut self, text: &str) -> bool {
        self.lines += text.matches('\n').count() as u64;
        self.output.push_str(text);
        if self.output.len() > MAX_OUTPUT {
            let excess = self.output.len() - MAX_OUTPUT;
            let end = (excess..self.output.len()).find(|at| self.output.is_char_boundary(*at));
            self.output.drain(..end.unwrap_or(0));
        }
        self.reported.elapsed() >= INTERVAL
    }

    /// Returns the last lines.
    fn last_lines(&self) -> &str {
        let text = self.output.trim_end();
        let start = text.rmatch_indices('\n').nth(SHOWN_LINES - 1).map_or(0, |(at, _)| at + 1);
        &text[start..]
    }
}

impl Agent {
    /// Whether the log contains reports: at a screen, in formats that have them.
    fn writes_progress(&self) -> bool {
        self.config.is_interactive && self.role.is_none() && self.writer.lock().format().has_progress
    }

    /// Writes the output of a running command, at most once per second.
    pub(crate) fn write_command_progress(
        &self,
        call: &str,
        progress: &mut CommandProgress,
        text: &str,
    ) -> Result<(), WriteError> {
        if !self.writes_progress() || !progress.add(text) {
            return Ok(());
        }
        let data = ProgressData::Bash {
            output: progress.last_lines(),
            full_output: &progress.output,
            elapsed_seconds: progress.start.elapsed().as_secs(),
            total_lines: progress.lines,
        };
        let id = format!("bash-progress-{}", progress.reports);
        self.writer.lock().progress(call, &id, data, &*self.clock)?;
        progress.reports += 1;
        progress.reported = Instant::now();
        Ok(())
    }

    /// Writes a message of a sub-agent.
    pub(crate) fn write_agent_progress(
        &self,
        source: &SubAgentSource,
        event: &SubAgentEvent,
    ) -> Result<(), WriteError> {
        if !self.writes_progress() {
            return Ok(());
        }
        let (kind, uuid, message) = match event {
            SubAgentEvent::Prompt { uuid, message, .. } | SubAgentEvent::User { uuid, message, .. } => {
                ("user", uuid, message)
            }
            SubAgentEvent::Assistant { uuid, message, .. } => ("assistant", uuid, message),
            SubAgentEvent::Started | SubAgentEvent::Progress { .. } | SubAgentEvent::Finished { .. } => {
                return Ok(());
            }
        };
        let line = RawObject::new().with("type", kind).with("message", message).with("uuid", uuid).to_json();
        let data = ProgressData::Agent {
            message: Json::parse(&line).unwrap_or(Json::NULL),
            prompt: &source.prompt,
            agent_id: &source.agent_id,
        };
        let id = format!("agent_{}", message.get_str("id").unwrap_or_else(|| uuid.clone()));
        self.writer.lock().progress(&source.tool_use_id, &id, data, &*self.clock)
    }

    /// Writes that the hooks of a call or of the end of a turn start. Their results are in the log in any
    /// case, so an error is reported there.
    pub(crate) fn write_hook_progress(&self, call: &HookCall<'_>) {
        let is_reported = matches!(
            call.event,
            HookEvent::PreToolUse | HookEvent::PostToolUse | HookEvent::PostToolUseFailure | HookEvent::Stop
        );
        if !is_reported || !self.writes_progress() {
            return;
        }
        let id = call.input.get_str("tool_use_id").unwrap_or_else(|| self.clock.new_uuid());
        let (name, event) = (call.name(), call.event.name());
        for hook in
            self.config.hooks.commands(call.event, call.object).iter().filter(|hook| !hook.is_callback)
        {
            let data = ProgressData::Hook { event, name: &name, command: &hook.command };
            let _ = self.writer.lock().progress(&id, &id, data, &*self.clock);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_the_last_lines_and_is_bounded() {
        let mut progress = CommandProgress::new();
        assert!(!progress.add("1\n2\n3\n4\n5\n6\n7\n"), "the first report comes after a second");
        assert_eq!((progress.last_lines(), progress.lines), ("3\n4\n5\n6\n7", 7));
        progress.add(&"é".repeat(MAX_OUTPUT));
        assert!(progress.output.len() <= MAX_OUTPUT && progress.output.len() >= MAX_OUTPUT - 1);
    }
}
