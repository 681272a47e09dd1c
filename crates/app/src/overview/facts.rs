//! The facts of all logs, merged: each call, prompt, compaction and period once.

use serde::{Deserialize, Serialize};
use threadline_entry::Millis;
use threadline_session::{ActivityState, LogEnding, ToolOutcome};
use threadline_usage::UsageTotals;

use crate::config::App;

/// The length of the periods in which model calls are added up. Days begin at a multiple of it in every time
/// zone.
pub(super) const QUARTER: Millis = 15 * 60 * 1000;

/// The time of a fact without one.
pub(super) const UNDATED: Millis = Millis::MIN;

/// The facts of all sessions, for the figures of any period.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OverviewFacts {
    /// Messages about logs that could not be read.
    #[serde(skip)]
    pub unread: Vec<String>,
    /// Whether all facts came from the cache.
    #[serde(skip)]
    pub is_cached: bool,
    /// The names that facts refer to by their index: projects, models, tools, command groups and paths.
    pub(super) names: Vec<String>,
    pub(super) sessions: Vec<SessionFact>,
    pub(super) logs: Vec<LogFact>,
    /// Sorted by time, as all that follow.
    pub(super) usage: Vec<UsageFact>,
    pub(super) calls: Vec<CallFact>,
    /// The paths of the files that shell commands changed, by the calls that refer to a range of them. Not
    /// sorted.
    pub(super) shell_edits: Vec<u32>,
    pub(super) prompts: Vec<MarkFact>,
    pub(super) compactions: Vec<MarkFact>,
    pub(super) periods: Vec<PeriodFact>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SessionFact {
    pub(super) id: String,
    /// The title; `None` if the session is not in lists.
    pub(super) title: Option<String>,
    /// The directory of the project.
    pub(super) project: u32,
    /// The working directory at the start.
    pub(super) cwd: Option<u32>,
    /// The branch of the last line that names one.
    pub(super) branch: Option<u32>,
    pub(super) started: Option<Millis>,
    pub(super) last_active: Millis,
    /// When a log of the session, or of one of its sub-agents, was last modified.
    pub(super) modified: Millis,
    /// When the last message was written, of the session or of one of its sub-agents.
    pub(super) last_message: Option<Millis>,
    /// How its log ends; names are those of the facts.
    pub(super) ending: LogEnding,
}

/// A log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LogFact {
    pub(super) session: u32,
    /// The id of the sub-agent that the log belongs to.
    pub(super) agent: Option<String>,
}

/// The model calls of a session with one model on one branch in a quarter of an hour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UsageFact {
    /// The start of the quarter, or [`UNDATED`].
    pub(super) at: Millis,
    pub(super) session: u32,
    pub(super) model: u32,
    /// The branch that was checked out; an empty name if there was none.
    pub(super) branch: u32,
    /// Whether a sub-agent made the calls.
    pub(super) is_agent: bool,
    pub(super) totals: UsageTotals,
}

/// A tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CallFact {
    pub(super) at: Millis,
    pub(super) log: u32,
    pub(super) line: u32,
    pub(super) tool: u32,
    /// The command group or path.
    pub(super) detail: Option<u32>,
    pub(super) duration: Option<u32>,
    pub(super) outcome: ToolOutcome,
    /// The first of the files that a shell command changed, in the facts, and their number.
    pub(super) shell_edits: (u32, u32),
}

/// A prompt or a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MarkFact {
    pub(super) at: Millis,
    pub(super) log: u32,
    pub(super) line: u32,
}

/// A period of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PeriodFact {
    pub(super) start: Millis,
    pub(super) end: Millis,
    pub(super) session: u32,
    pub(super) state: ActivityState,
}

impl OverviewFacts {
    /// Whether there are no sessions.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(super) fn name(&self, id: u32) -> &str {
        self.names.get(id as usize).map_or("", |name| name)
    }

    /// Returns the name that is shown as this text. `app` masks secrets in names, if its configuration
    /// requires it, so links contain them that way.
    pub(super) fn name_shown_as<'n>(&'n self, shown: &'n str, app: &App) -> &'n str {
        if !shown.contains("[secret:") {
            return shown;
        }
        self.names.iter().find(|name| app.masked(name) == shown).map_or(shown, |name| name)
    }

    /// Returns the facts of one project, by the name that `app` shows; `None` if no session belongs to it.
    pub fn of_project(&self, project: &str, app: &App) -> Option<Self> {
        let project = self.name_shown_as(project, app);
        let project = self.names.iter().position(|name| name == project)? as u32;
        let is_in = |session: u32| self.session(session).is_some_and(|session| session.project == project);
        self.sessions.iter().any(|session| session.project == project).then_some(())?;
        let marks = |marks: &[MarkFact]| -> Vec<MarkFact> {
            marks.iter().filter(|mark| is_in(self.session_of(mark.log))).copied().collect()
        };
        let mut sessions = self.sessions.clone();
        // Indices stay the same. Sessions without a title are in no list.
        sessions.iter_mut().filter(|session| session.project != project).for_each(|session| {
            session.title = None;
        });
        Some(Self {
            unread: self.unread.clone(),
            is_cached: self.is_cached,
            names: self.names.clone(),
            sessions,
            logs: self.logs.clone(),
            usage: self.usage.iter().filter(|fact| is_in(fact.session)).cloned().collect(),
            shell_edits: self.shell_edits.clone(),
            calls: self.calls.iter().filter(|call| is_in(self.session_of(call.log))).copied().collect(),
            prompts: marks(&self.prompts),
            compactions: marks(&self.compactions),
            periods: self.periods.iter().filter(|period| is_in(period.session)).copied().collect(),
        })
    }

    /// Returns the paths of the files that the command of a call changed.
    pub(super) fn shell_edits(&self, call: &CallFact) -> &[u32] {
        let (first, count) = (call.shell_edits.0 as usize, call.shell_edits.1 as usize);
        self.shell_edits.get(first..first.saturating_add(count)).unwrap_or_default()
    }

    /// Returns the session of a log.
    pub(super) fn session_of(&self, log: u32) -> u32 {
        self.logs.get(log as usize).map_or(u32::MAX, |log| log.session)
    }

    /// Returns the session with this index.
    pub(super) fn session(&self, index: u32) -> Option<&SessionFact> {
        self.sessions.get(index as usize)
    }
}
