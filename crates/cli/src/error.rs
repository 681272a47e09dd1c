//! Results and errors of commands.

use std::fmt;
use std::io;
use std::process::ExitCode;

use threadline_app::AppError;
use threadline_view::wire::ErrorObject;

use crate::ui::with_source_options;

/// The result of a command that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// Succeeded.
    Done,
    /// Succeeded, and the result is negative or empty.
    Negative,
    /// Partly succeeded: some input could not be read, which was reported.
    Partial,
}

impl From<CommandOutcome> for ExitCode {
    fn from(outcome: CommandOutcome) -> Self {
        match outcome {
            CommandOutcome::Done => Self::SUCCESS,
            CommandOutcome::Negative => Self::from(1),
            CommandOutcome::Partial => Self::from(2),
        }
    }
}

/// An error of a command: a message, its causes and hints.
#[derive(Debug)]
pub(crate) struct CommandError {
    /// A stable name of the kind of error, for programs.
    code: &'static str,
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    closed_pipe: bool,
}

impl CommandError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code: "failed", message, causes: Vec::new(), hints: Vec::new(), closed_pipe: false }
    }

    /// Adds a cause.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds a hint, something that the user can type or do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Returns the message without its causes and hints.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the error as one line of JSON.
    pub(crate) fn to_json(&self) -> String {
        let message =
            std::iter::once(&self.message).chain(&self.causes).cloned().collect::<Vec<_>>().join(": ");
        let hints: Vec<String> = self.hints.iter().map(|hint| with_source_options(hint)).collect();
        let hint = (!hints.is_empty()).then(|| hints.join("\n"));
        json_error(self.code, &message, hint.as_deref())
    }

    /// Returns whether the reader of stdout closed the pipe, which is not reported.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

/// Returns an error as one line of JSON.
pub(crate) fn json_error(code: &str, message: &str, hint: Option<&str>) -> String {
    let object = ErrorObject::new(message, hint).with_code(code);
    serde_json::to_string(&object).unwrap_or_default() + "\n"
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Continuation lines are indented, so that no line of a message can pass for a cause or a hint.
        writeln!(f, "error: {}", self.message.replace('\n', "\n  "))?;
        for cause in &self.causes {
            writeln!(f, "cause: {}", cause.replace('\n', "\n  "))?;
        }
        for hint in &self.hints {
            writeln!(f, "hint: {}", with_source_options(hint).replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { code: "io", closed_pipe, ..Self::new(error.to_string()) }
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<AppError> for CommandError {
    fn from(error: AppError) -> Self {
        let (hints, code) = (error.hints(), error.code());
        let converted = match error {
            AppError::Io(error) => Self::from(error),
            error => Self::new(error.to_string()),
        };
        Self { hints, code, ..converted }
    }
}
