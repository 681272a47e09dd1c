//! What the person is told when something could not be done.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// How a command ended, if it could be done at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Done, or found.
    Done,
    /// Done, and the answer is no.
    No,
    /// Done in part: some of what was asked could not be read, and that was said.
    Partly,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::SUCCESS,
            Outcome::No => Self::from(1),
            Outcome::Partly => Self::from(2),
        }
    }
}

/// A command could not be done: what, why, and what to try.
#[derive(Debug)]
pub(crate) struct CommandError {
    message: String,
    causes: Vec<String>,
    hints: Vec<String>,
    closed_pipe: bool,
}

impl CommandError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), causes: Vec::new(), hints: Vec::new(), closed_pipe: false }
    }

    /// Adds why it could not be done.
    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// Adds something that the reader can type or do.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Whether the reader of our output went away, which is no error of ours.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Lines after a newline are indented, so that no text in a message looks like another part of it.
        writeln!(f, "error: {}", self.message.replace('\n', "\n  "))?;
        for cause in &self.causes {
            writeln!(f, "cause: {}", cause.replace('\n', "\n  "))?;
        }
        for hint in &self.hints {
            writeln!(f, "hint: {}", hint.replace('\n', "\n  "))?;
        }
        Ok(())
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { closed_pipe, ..Self::new(error.to_string()) }
    }
}

impl From<serde_json::Error> for CommandError {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}
