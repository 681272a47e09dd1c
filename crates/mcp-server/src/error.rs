//! Errors of requests, as the client reads them.

use std::io;

use threadline_app::blame::BlameError;
use threadline_app::restore::RestoreError;
use threadline_app::search::QueryError;
use threadline_app::{AppError, LiveError};

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) struct HistoryError {
    pub(crate) message: String,
    pub(crate) hints: Vec<String>,
}

impl HistoryError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hints: Vec::new() }
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Formats the error, with one line per hint.
    pub(crate) fn text(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("\nhint: {hint}"));
        std::iter::once(self.message.clone()).chain(hints).collect()
    }
}

impl From<AppError> for HistoryError {
    fn from(error: AppError) -> Self {
        let hints = match &error {
            AppError::Find(_) if error.hints().len() == 1 => {
                vec!["list_sessions lists the sessions".to_owned()]
            }
            error => error.hints(),
        };
        Self { message: error.to_string(), hints }
    }
}

impl From<io::Error> for HistoryError {
    fn from(error: io::Error) -> Self {
        Self::new(error.to_string())
    }
}

impl From<LiveError> for HistoryError {
    fn from(error: LiveError) -> Self {
        let hint = match error {
            LiveError::NoAgent => Some("read_session with part: agents lists the sub-agents"),
            LiveError::NoLine => Some("read_session without item returns the outline with its anchors"),
            LiveError::Io(_) => None,
        };
        Self { message: error.to_string(), hints: hint.map(str::to_owned).into_iter().collect() }
    }
}

impl From<BlameError> for HistoryError {
    fn from(error: BlameError) -> Self {
        match error {
            BlameError::App(error) => error.into(),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<RestoreError> for HistoryError {
    fn from(error: RestoreError) -> Self {
        match error {
            RestoreError::App(error) => error.into(),
            RestoreError::NoSuchFile => Self::new(error.to_string())
                .hint("session_changes without file lists the files that the session changed"),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<QueryError> for HistoryError {
    fn from(error: QueryError) -> Self {
        Self::new(format!("invalid query: {error}"))
            .hint("words, \"phrases\", /patterns/, and fields such as tool:Bash, kind:prompt, since:7d")
    }
}
