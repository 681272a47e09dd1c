//! Commands, and what runs in the background.

use std::borrow::Cow;

use threadline_entry::lens::{BashOutputResult, BashResult, TaskResult};

use super::{Call, Card, CommandCard, Told, first_line};

impl Call<'_> {
    pub(super) fn command(&self) -> Told {
        let mut card = CommandCard {
            command: self.string("command"),
            description: self.string("description"),
            exit_code: exit_code(self.text),
            ..CommandCard::default()
        };
        if let Some(polled) = self.of::<BashOutputResult<'_>>().filter(|result| result.shell_id().is_some()) {
            card.command = polled.command().unwrap_or_default().into_owned();
            card.exit_code = polled.exit_code().map(|code| code as i64);
        }
        match self.of::<BashResult<'_>>() {
            Some(result) if result.stdout().is_some() => {
                card.output = result.stdout().unwrap_or_default().into_owned();
                card.errors = result.stderr().unwrap_or_default().into_owned();
                card.background = result.background_task_id().map(Cow::into_owned);
                if let Some(path) = result.persisted_output_path() {
                    match (self.kept)(&path) {
                        Some(whole) => card.output = whole,
                        None => card.kept_at = Some(path.into_owned()),
                    }
                }
            }
            _ => self.text.clone_into(&mut card.output),
        }
        let gist = match (card.exit_code, &card.background) {
            (Some(code), _) if code != 0 => format!("exit {code}"),
            (_, Some(task)) => format!("in the background as {task}"),
            _ => String::new(),
        };
        let subject = first_line(&card.command).to_owned();
        let subject = if subject.is_empty() { self.any_subject() } else { subject };
        Told { card: Card::Command(card), subject, gist }
    }

    pub(super) fn task_output(&self) -> Told {
        let task = self.of::<TaskResult<'_>>().and_then(|result| result.task());
        let text = |value: Option<Cow<'_, str>>| value.unwrap_or_default().into_owned();
        let id = ["task_id", "shell_id", "bash_id", "agentId"]
            .into_iter()
            .map(|key| self.string(key))
            .find(|id| !id.is_empty());
        let card = CommandCard {
            description: text(task.and_then(|task| task.description())),
            output: task
                .and_then(|task| task.output().or_else(|| task.result()))
                .map_or_else(|| self.text.to_owned(), Cow::into_owned),
            exit_code: task.and_then(|task| task.exit_code()).map(|code| code as i64),
            background: id.clone(),
            ..CommandCard::default()
        };
        let status = text(task.and_then(|task| task.status()));
        let gist = match card.exit_code {
            Some(code) if code != 0 => format!("{status}, exit {code}"),
            _ => status,
        };
        let subject =
            if card.description.is_empty() { id.unwrap_or_default() } else { card.description.clone() };
        Told { card: Card::Command(card), subject, gist }
    }
}

/// How a command ended, as the text for the model begins.
fn exit_code(text: &str) -> Option<i64> {
    let rest = text.trim_start().trim_start_matches("Error: ").strip_prefix("Exit code ")?;
    let digits = rest.find(|ch: char| !ch.is_ascii_digit() && ch != '-').unwrap_or(rest.len());
    rest[..digits].parse().ok()
}
