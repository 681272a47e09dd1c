//! The sessions that the server answers about.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use jiff::Zoned;
use jiff::tz::TimeZone;
use serde_json::Value;
use threadline_app::{App, AppError, ProjectScope, SessionCache, SessionFile, SessionSummary, split_anchor};
use threadline_entry::Millis;
use threadline_view::humanize::minute;
pub(crate) use threadline_view::humanize::one_line;
use threadline_view::visible;

use crate::error::HistoryError;

/// Options of the server.
#[derive(Clone, Debug)]
pub struct HistoryOptions {
    /// The project whose sessions are answered about.
    pub scope: ProjectScope,
    /// The time zone of days and of times in texts.
    pub zone: TimeZone,
    /// The version of the program.
    pub version: String,
    /// The process of the client. If it is Claude Code, its own session is left out of searches.
    pub client: Option<u32>,
}

/// The sessions that the server answers about.
pub(crate) struct History {
    pub(crate) app: Arc<App>,
    pub(crate) scope: ProjectScope,
    pub(crate) zone: TimeZone,
    pub(crate) version: String,
    client: Option<u32>,
    pub(crate) sessions: SessionCache,
}

impl History {
    pub(crate) fn new(app: Arc<App>, options: HistoryOptions) -> Result<Self, AppError> {
        let HistoryOptions { scope, zone, version, client } = options;
        let sessions = SessionCache::new(app.prices()?);
        Ok(Self { app, scope, zone, version, client, sessions })
    }

    /// Returns the id of the session of the client, which may change while it runs.
    pub(crate) fn current_session(&self) -> Option<String> {
        self.client.and_then(|pid| self.app.session_of_process(pid))
    }

    /// Finds a session of the scope. `last` is the last one besides that of the client. The anchor of an item
    /// may follow the name, as in `3f2a#m42`. Returns both.
    pub(crate) fn find(&self, name: &str) -> Result<(SessionFile, Option<String>), HistoryError> {
        let name = name.trim();
        let (name, item) = split_anchor(name);
        let item = item.map(str::to_owned);
        if name == "last"
            && let Some(current) = self.current_session()
        {
            let sessions = self.app.list_in(&self.scope).into_iter();
            let last = sessions.map(|session| session.file).find(|file| *file.id != *current);
            return last
                .map(|file| (file, item))
                .ok_or_else(|| HistoryError::new("there is no earlier session"));
        }
        let found = self.app.find_in(name, &self.scope).map_err(|error| {
            let error = HistoryError::from(error);
            match self.scope {
                ProjectScope::All => error,
                _ => {
                    error.hint("the server answers about one project; start it with --all for every project")
                }
            }
        });
        Ok((found?, item))
    }

    /// Returns the head and the tail of a session.
    pub(crate) fn summary(&self, file: SessionFile) -> Result<SessionSummary, HistoryError> {
        Ok(SessionSummary::of(file)?)
    }

    /// Returns a note that the project has no such results, and how to answer about other projects.
    pub(crate) fn nothing_found(&self, nothing: &str) -> String {
        let note = format!("{nothing} in {}", self.scope.label());
        match self.scope {
            ProjectScope::All => note,
            _ => note + "; start `threadline mcp` with --all for all projects, or with --project for another",
        }
    }

    /// Returns the ids of the sessions of the scope; `None` if it is all of them.
    pub(crate) fn session_ids(&self) -> Option<HashSet<String>> {
        if self.scope == ProjectScope::All {
            return None;
        }
        let sessions = self.app.search_scope_in(None, &self.scope).sessions;
        Some(sessions.into_iter().map(|session| session.id).collect())
    }

    /// Returns the current time in the time zone of the server.
    pub(crate) fn now(&self) -> Zoned {
        jiff::Timestamp::try_from(self.clock()).unwrap_or_default().to_zoned(self.zone.clone())
    }

    /// Returns the current time.
    #[expect(clippy::disallowed_methods, reason = "a server that answers about the last days has a clock")]
    pub(crate) fn clock(&self) -> SystemTime {
        SystemTime::now()
    }

    /// Formats a time for reading.
    pub(crate) fn shown_time(&self, at: Option<Millis>) -> String {
        at.map(|at| minute(at, &self.zone)).unwrap_or_default()
    }

    /// Masks secrets, and makes control characters visible. Everything that is sent passes through here.
    pub(crate) fn mask(&self, text: &str) -> String {
        visible(&self.app.masked(text)).into_owned()
    }

    /// Masks all strings of a value.
    pub(crate) fn mask_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask_value(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.mask_value(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
