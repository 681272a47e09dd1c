//! The records behind the figures of the overview: calls, prompts and compactions.

use jiff::tz::TimeZone;
use threadline_entry::Millis;
use threadline_session::ToolOutcome;
use threadline_view::starts_agents;

use super::facts::{OverviewFacts, UNDATED};
use super::local_time::LocalTime;
use crate::config::App;
use crate::time::TimeRange;

/// The kind of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordKind {
    /// Tool calls.
    #[default]
    Calls,
    /// Prompts.
    Prompts,
    /// Compactions.
    Compactions,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Calls, Self::Prompts, Self::Compactions];

    /// Returns the name of the kind in links.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Prompts => "prompts",
            Self::Compactions => "compactions",
        }
    }
}

/// Which records to list. A filter that does not apply to their kind is ignored.
#[derive(Clone, Debug, Default)]
pub struct RecordFilter {
    /// The kind.
    pub kind: RecordKind,
    /// The times.
    pub range: TimeRange,
    /// The exact project.
    pub project: Option<String>,
    /// The id of the session.
    pub session: Option<String>,
    /// The name of the tool.
    pub tool: Option<String>,
    /// The group of shell commands.
    pub command: Option<String>,
    /// The path of an edited file. Only successful edits count.
    pub file: Option<String>,
    /// Only failed calls.
    pub failed: bool,
    /// Only calls that started a sub-agent.
    pub agents: bool,
    /// The weekday, from 0 for Monday.
    pub weekday: Option<usize>,
    /// The hour of the day.
    pub hour: Option<usize>,
}

/// A record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordRow {
    /// When it was written.
    pub at: Option<Millis>,
    /// The id of the session.
    pub session: String,
    /// The title of the session; its id if it has none.
    pub title: String,
    /// The directory of the project.
    pub project: String,
    /// The id of the sub-agent, if its log contains it.
    pub agent: Option<String>,
    /// The number of its line in that log.
    pub line: u32,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The command group or the path of a call.
    pub detail: Option<String>,
    /// The time until the result, in milliseconds.
    pub duration: Option<Millis>,
    /// The outcome of a call.
    pub outcome: Option<ToolOutcome>,
}

/// Some of the records that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRows {
    /// The records, newest first.
    pub rows: Vec<RecordRow>,
    /// The number of records that match.
    pub total: usize,
}

impl OverviewFacts {
    /// Returns the records that match a filter, newest first: `count` of them after the first `skip`. `app`
    /// masks secrets in texts, if its configuration requires it.
    pub fn records(
        &self,
        filter: &RecordFilter,
        zone: &TimeZone,
        app: &App,
        skip: usize,
        count: usize,
    ) -> RecordRows {
        let mut found: Vec<RecordRef> = Vec::new();
        let mut local = LocalTime::new(zone);
        match filter.kind {
            RecordKind::Calls => {
                // Texts are shown with secrets masked, so links contain them that way.
                let is_shown_as = |wanted: &Option<String>| -> Option<Vec<bool>> {
                    let wanted = wanted.as_ref()?;
                    Some(self.names.iter().map(|name| *app.redacted(name) == **wanted).collect())
                };
                let [tool, command, file] = [&filter.tool, &filter.command, &filter.file].map(is_shown_as);
                let bash: Vec<bool> = self.names.iter().map(|name| name == "Bash").collect();
                let agents: Vec<bool> = self.names.iter().map(|name| starts_agents(name)).collect();
                let is = |names: &Option<Vec<bool>>, id: Option<u32>| {
                    names.as_ref().is_none_or(|names| id.is_some_and(|id| names[id as usize]))
                };
                for (place, call) in self.calls.iter().enumerate() {
                    let is_bash = bash[call.tool as usize];
                    let matches = is(&tool, Some(call.tool))
                        && (command.is_none() || (is_bash && is(&command, call.detail)))
                        && (file.is_none()
                            || (!is_bash && call.outcome == ToolOutcome::Ok && is(&file, call.detail)))
                        && (!filter.failed || call.outcome == ToolOutcome::Error)
                        && (!filter.agents || agents[call.tool as usize]);
                    if matches && self.keeps(filter, call.at, call.log, &mut local) {
                        found.push(RecordRef { place, at: call.at, log: call.log, line: call.line });
                    }
                }
            }
            RecordKind::Prompts | RecordKind::Compactions => {
                let marks =
                    if filter.kind == RecordKind::Prompts { &self.prompts } else { &self.compactions };
                for (place, mark) in marks.iter().enumerate() {
                    if self.keeps(filter, mark.at, mark.log, &mut local) {
                        found.push(RecordRef { place, at: mark.at, log: mark.log, line: mark.line });
                    }
                }
            }
        }
        let total = found.len();
        let shown = found.iter().rev().skip(skip).take(count);
        RecordRows { rows: shown.map(|record| self.row(filter.kind, record, app)).collect(), total }
    }

    fn keeps(&self, filter: &RecordFilter, at: Millis, log: u32, local: &mut LocalTime<'_>) -> bool {
        if !filter.range.contains((at != UNDATED).then_some(at)) {
            return false;
        }
        let session = self.session(self.session_of(log));
        let project = |wanted: &String| session.is_some_and(|session| self.name(session.project) == wanted);
        let is_session = |wanted: &String| session.is_some_and(|session| session.id == *wanted);
        if !filter.project.as_ref().is_none_or(project) || !filter.session.as_ref().is_none_or(is_session) {
            return false;
        }
        if filter.weekday.is_none() && filter.hour.is_none() {
            return true;
        }
        let Some(hour) = local.hour_of(at) else { return false };
        filter.weekday.is_none_or(|wanted| hour.weekday() == wanted)
            && filter.hour.is_none_or(|wanted| hour.hour == wanted)
    }

    fn row(&self, kind: RecordKind, record: &RecordRef, app: &App) -> RecordRow {
        let shown = |text: &str| app.redacted(text).into_owned();
        let session = self.session(self.session_of(record.log));
        let id = session.map(|session| session.id.clone()).unwrap_or_default();
        let title = session.and_then(|session| session.title.as_deref()).map(shown);
        let mut row = RecordRow {
            at: (record.at != UNDATED).then_some(record.at),
            title: title.unwrap_or_else(|| id.clone()),
            session: id,
            project: session.map(|session| self.name(session.project).to_owned()).unwrap_or_default(),
            agent: self.logs.get(record.log as usize).and_then(|log| log.agent.clone()),
            line: record.line,
            tool: None,
            detail: None,
            duration: None,
            outcome: None,
        };
        if let Some(call) = self.calls.get(record.place).filter(|_| kind == RecordKind::Calls) {
            row.tool = Some(self.name(call.tool).to_owned());
            row.detail = call.detail.map(|detail| shown(self.name(detail)));
            row.duration = call.duration.map(Millis::from);
            row.outcome = Some(call.outcome);
        }
        row
    }
}

/// A record that matches.
struct RecordRef {
    /// Its index among the facts of its kind.
    place: usize,
    at: Millis,
    log: u32,
    line: u32,
}
