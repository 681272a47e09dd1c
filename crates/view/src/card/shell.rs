//! Cards of commands and of background tasks.

use std::borrow::Cow;

use threadline_entry::key;
use threadline_entry::lens::{
    BashOutputResult, BashResult, StopResult, TaskResult, TaskUpdateResult, WorkflowResult,
};

use super::command_changes::{CommandChanges, recorded_changes};
use super::{CallSummary, CardInput, CommandCard, CommandOutput, ToolCard, first_line, is_refusal, tag_text};

impl CardInput<'_> {
    /// Returns the card of a command, or of a poll of a command in the background.
    pub(super) fn command(&self) -> CallSummary {
        let mut card = CommandCard {
            command: self.string("command"),
            description: self.string("description"),
            exit_code: exit_code(self.text),
            changes: recorded_changes(self.name, self.data)
                .map_or_else(CommandChanges::default, |diff| CommandChanges::of(diff, self.cwd)),
            ..CommandCard::default()
        };
        let mut state = String::new();
        // Every object can be viewed as one of these results. A real one has the field that is tested.
        let result = self.of::<BashResult<'_>>().filter(|result| result.stdout().is_some());
        if self.name == "BashOutput" && result.is_none() {
            return self.poll_card();
        }
        if let Some(polled) = self.of::<BashOutputResult<'_>>().filter(|result| result.shell_id().is_some()) {
            card.command = polled.command().unwrap_or_default().into_owned();
            card.exit_code = polled.exit_code().map(|code| code as i64);
            state = polled.status().unwrap_or_default().into_owned();
        }
        match result {
            Some(result) => {
                card.output = CommandOutput::Text(result.stdout().unwrap_or_default().into_owned());
                card.errors = result.stderr().unwrap_or_default().into_owned();
                card.background = result.background_task_id().map(Cow::into_owned);
                // An exit code that is not a failure has an explanation: `No matches found`.
                state = result.return_code_interpretation().map_or(state, Cow::into_owned);
                if result.interrupted() == Some(true) {
                    state = "interrupted".to_owned();
                }
                if let Some(path) = result.persisted_output_path() {
                    match (self.read_output)(&path) {
                        Some(whole) => card.output = CommandOutput::Text(whole),
                        None => card.kept_at = Some(path.into_owned()),
                    }
                }
            }
            None => {
                card.output = self.printed_output();
                // The result of `Monitor` is the id of a background task.
                let task_id = self.of::<TaskUpdateResult<'_>>().and_then(|result| result.task_id());
                card.background = task_id.map(Cow::into_owned).filter(|_| self.name == "Monitor");
            }
        }
        let gist = match (card.exit_code, &card.background) {
            (Some(code), _) if code != 0 => format!("exit {code}"),
            (_, Some(task)) => format!("in the background as {task}"),
            _ => state,
        };
        let mut subject = first_line(self.without_cd(card.command.trim_start())).to_owned();
        if card.command.trim().lines().count() > 1 {
            subject.push_str(" …");
        }
        let subject = if subject.is_empty() { self.generic_subject() } else { subject };
        CallSummary { card: ToolCard::Command(card), subject, gist }
    }

    /// Returns the card of a poll of a background command, from the result text.
    fn poll_card(&self) -> CallSummary {
        let part = |name: &str| tag_text(self.text, name).unwrap_or_default();
        let output = match self.text.contains("<status>") {
            true => CommandOutput::Text(part("stdout").to_owned()),
            false => CommandOutput::EndOfResult(0),
        };
        let id = self.task_id();
        let card = CommandCard {
            output,
            errors: part("stderr").to_owned(),
            exit_code: part("exit_code").parse().ok(),
            background: Some(id.clone()).filter(|id| !id.is_empty()),
            ..CommandCard::default()
        };
        let gist = status_text(part("status"), card.exit_code);
        CallSummary { card: ToolCard::Command(card), subject: id, gist }
    }

    /// Returns the result text without the line of the exit code, which is shown separately.
    fn printed_output(&self) -> CommandOutput {
        let text = self.text;
        let printed = match exit_code(text) {
            Some(_) => text.trim_start().split_once('\n').map_or("", |(_, rest)| rest),
            None if self.failed && is_refusal(text) => "",
            None => text,
        };
        CommandOutput::EndOfResult(text.len() - printed.len())
    }

    /// Returns a command without a leading `cd` to the directory that it runs in anyway.
    fn without_cd<'c>(&self, command: &'c str) -> &'c str {
        let plain =
            |path: &str| path.trim_matches(['"', '\'']).trim_end_matches(['/', '\\']).replace('\\', "/");
        let rest = command.strip_prefix("cd ").and_then(|rest| rest.split_once(" && "));
        match rest.filter(|(folder, _)| plain(folder.trim()) == plain(self.cwd)) {
            Some((_, rest)) => rest.trim_start(),
            None => command,
        }
    }

    /// Returns the card of a call that stopped a background task.
    pub(super) fn stop(&self) -> CallSummary {
        let result = self.of::<StopResult<'_>>();
        let card = CommandCard {
            command: result
                .and_then(|result| result.command())
                .or_else(|| result?.message().as_deref().and_then(trailing_brackets).map(Cow::Owned))
                .unwrap_or_default()
                .into_owned(),
            output: result
                .and_then(|result| result.message())
                .map_or(CommandOutput::EndOfResult(0), |message| CommandOutput::Text(message.into_owned())),
            background: Some(self.task_id()),
            ..CommandCard::default()
        };
        let subject =
            if card.command.is_empty() { self.task_id() } else { first_line(&card.command).to_owned() };
        let gist = if self.failed { String::new() } else { "stopped".to_owned() };
        CallSummary { card: ToolCard::Command(card), subject, gist }
    }

    /// Returns the card of a workflow: a script that runs agents.
    pub(super) fn workflow(&self) -> CallSummary {
        let script = self.string("script");
        if script.is_empty() {
            return self.workflow_gist(self.fields_card());
        }
        let card = CommandCard {
            command: script,
            description: self.string("description"),
            output: CommandOutput::EndOfResult(0),
            ..CommandCard::default()
        };
        let summary = CallSummary {
            card: ToolCard::Command(card),
            subject: self.generic_subject(),
            gist: String::new(),
        };
        self.workflow_gist(summary)
    }

    /// Sets the gist of a workflow that was started.
    fn workflow_gist(&self, mut summary: CallSummary) -> CallSummary {
        let task = self.of::<WorkflowResult<'_>>().and_then(|workflow| workflow.task_id());
        if let Some(task) = task.filter(|_| !self.failed) {
            summary.gist = format!("in the background as {task}");
        }
        summary
    }

    /// Returns the id of the background task that a call refers to.
    fn task_id(&self) -> String {
        const KEYS: &[&str] = &["task_id", "shell_id", "bash_id", key::AGENT_ID];
        KEYS.iter().map(|key| self.string(key)).find(|id| !id.is_empty()).unwrap_or_default()
    }

    /// Returns the card of a call that waited for, or read, the output of a background task.
    pub(super) fn task_output(&self) -> CallSummary {
        let task = self.of::<TaskResult<'_>>().and_then(|result| result.task());
        let text = |value: Option<Cow<'_, str>>| value.unwrap_or_default().into_owned();
        let id = self.task_id();
        let card = CommandCard {
            description: text(task.and_then(|task| task.description())),
            output: match task.and_then(|task| task.output().or_else(|| task.result())) {
                Some(output) => CommandOutput::Text(output.into_owned()),
                None => tag_text(self.text, "output")
                    .map_or_else(|| self.printed_output(), |text| CommandOutput::Text(text.to_owned())),
            },
            exit_code: match task {
                Some(task) => task.exit_code().map(|code| code as i64),
                None => tag_text(self.text, "exit_code").and_then(|code| code.parse().ok()),
            },
            background: Some(id.clone()).filter(|id| !id.is_empty()),
            ..CommandCard::default()
        };
        let status = match task {
            Some(task) => text(task.status()),
            None => tag_text(self.text, "status").unwrap_or_default().to_owned(),
        };
        let gist = status_text(&status, card.exit_code);
        let subject = if card.description.is_empty() { id } else { first_line(&card.description).to_owned() };
        CallSummary { card: ToolCard::Command(card), subject, gist }
    }
}

/// Returns the text in brackets at the end of a message: the command that was stopped, which may have
/// brackets itself.
fn trailing_brackets(message: &str) -> Option<String> {
    let (_, rest) = message.trim().strip_suffix(')')?.split_once(" (")?;
    Some(rest.to_owned())
}

/// Returns the state of a background command, with its exit code if it failed.
fn status_text(status: &str, exit_code: Option<i64>) -> String {
    match exit_code {
        Some(code) if code != 0 => format!("{status}, exit {code}"),
        _ => status.to_owned(),
    }
}

/// Parses the exit code at the beginning of the result text.
fn exit_code(text: &str) -> Option<i64> {
    let rest = text.trim_start().trim_start_matches("Error: ").strip_prefix("Exit code ")?;
    let digits = rest.find(|ch: char| !ch.is_ascii_digit() && ch != '-').unwrap_or(rest.len());
    rest[..digits].parse().ok()
}
