//! The records behind the figures of the overview: calls, prompts, compactions, periods and sessions.

use std::io;
use std::path::Path;

use foldhash::{HashMap, HashSet};
use jiff::tz::TimeZone;
use threadline_entry::{LineReader, Millis, parse_line};
use threadline_session::{ActivityState, ToolOutcome};
use threadline_store::{SessionLogs, open_regular};
use threadline_usage::UsageTotals;
use threadline_view::{line_title, starts_agents};

use super::facts::{CallFact, MarkFact, OverviewFacts, UNDATED};
use super::figures::overlap;
use super::local_time::LocalTime;
use crate::config::App;
use crate::time::TimeRange;
use crate::usage::MAX_LINE;

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
    /// Periods in which a session was active, waiting or idle.
    Periods,
    /// Sessions.
    Sessions,
    /// Sessions with the cost of their sub-agents.
    AgentCosts,
}

impl RecordKind {
    /// Every kind.
    pub const ALL: [Self; 6] =
        [Self::Calls, Self::Prompts, Self::Compactions, Self::Periods, Self::Sessions, Self::AgentCosts];

    /// Returns the name of the kind in links.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Prompts => "prompts",
            Self::Compactions => "compactions",
            Self::Periods => "periods",
            Self::Sessions => "sessions",
            Self::AgentCosts => "agent-costs",
        }
    }

    /// Returns the name of one record.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Calls => "call",
            Self::Prompts => "prompt",
            Self::Compactions => "compaction",
            Self::Periods => "period",
            Self::Sessions | Self::AgentCosts => "session",
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
    /// The path of an edited file. Successful edits and commands that changed it count.
    pub file: Option<String>,
    /// Only failed calls.
    pub failed: bool,
    /// Only calls that started a sub-agent.
    pub agents: bool,
    /// The weekday, from 0 for Monday.
    pub weekday: Option<usize>,
    /// The hour of the day.
    pub hour: Option<usize>,
    /// The state of periods.
    pub state: Option<ActivityState>,
    /// The working directory at the start of sessions.
    pub directory: Option<String>,
    /// Whether the longest records are first, and not the newest.
    pub longest_first: bool,
}

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRow {
    /// When it was written or began; of a session, when it was last active.
    pub at: Option<Millis>,
    /// The id of the session.
    pub session: String,
    /// The title of the session; its id if it has none.
    pub title: String,
    /// The directory of the project.
    pub project: String,
    /// The id of the sub-agent, if its log contains it.
    pub agent: Option<String>,
    /// The number of its line in that log. `None` for periods and sessions.
    pub line: Option<u32>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The command group or the path of a call.
    pub detail: Option<String>,
    /// The time until the result, or the length of a period within the filter, in milliseconds.
    pub duration: Option<Millis>,
    /// The outcome of a call.
    pub outcome: Option<ToolOutcome>,
    /// The state of a period.
    pub state: Option<ActivityState>,
    /// The cost of sub-agents.
    pub cost: Option<UsageTotals>,
    /// The title of a prompt; see [`App::add_prompts`].
    pub prompt: Option<String>,
}

/// Some of the records that match a filter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordRows {
    /// The records, in order.
    pub rows: Vec<RecordRow>,
    /// The number of records that match.
    pub total: usize,
}

impl OverviewFacts {
    /// Returns the records that match a filter, newest first unless the filter says otherwise: `count` of
    /// them after the first `skip`. `app` masks secrets in texts, if its configuration requires it.
    pub fn records(
        &self,
        filter: &RecordFilter,
        zone: &TimeZone,
        app: &App,
        skip: usize,
        count: usize,
    ) -> RecordRows {
        let project = filter.project.as_deref().map(|shown| self.name_shown_as(shown, app).to_owned());
        let filter = &RecordFilter { project, ..filter.clone() };
        let mut found = match filter.kind {
            RecordKind::Calls => self.calls(filter, zone, app).map(Record::Call).collect(),
            RecordKind::Prompts => self.marks(filter, &self.prompts, zone),
            RecordKind::Compactions => self.marks(filter, &self.compactions, zone),
            RecordKind::Periods => self.periods(filter),
            RecordKind::Sessions => self.sessions(filter, zone, app),
            RecordKind::AgentCosts => self.agent_costs(filter),
        };
        // Facts are sorted by time.
        if matches!(filter.kind, RecordKind::Calls | RecordKind::Prompts | RecordKind::Compactions) {
            found.reverse();
        }
        if filter.longest_first {
            found.sort_by_key(|record| std::cmp::Reverse(record.length()));
        }
        let shown = found.iter().skip(skip).take(count);
        RecordRows { rows: shown.map(|record| self.row(record, app)).collect(), total: found.len() }
    }

    fn calls<'f>(
        &'f self,
        filter: &'f RecordFilter,
        zone: &'f TimeZone,
        app: &App,
    ) -> impl Iterator<Item = &'f CallFact> {
        // Texts are shown with secrets masked, so links contain them that way.
        let is_shown_as = |wanted: &Option<String>| -> Option<Vec<bool>> {
            let wanted = wanted.as_ref()?;
            Some(self.names.iter().map(|name| *app.masked(name) == **wanted).collect())
        };
        let [tool, command, file] = [&filter.tool, &filter.command, &filter.file].map(is_shown_as);
        let bash: Vec<bool> = self.names.iter().map(|name| name == "Bash").collect();
        let agents: Vec<bool> = self.names.iter().map(|name| starts_agents(name)).collect();
        let is = |names: &Option<Vec<bool>>, id: Option<u32>| {
            names.as_ref().is_none_or(|names| id.is_some_and(|id| names[id as usize]))
        };
        let mut local = LocalTime::new(zone);
        self.calls.iter().filter(move |call| {
            let is_bash = bash[call.tool as usize];
            is(&tool, Some(call.tool))
                && (command.is_none() || (is_bash && is(&command, call.detail)))
                && (file.is_none()
                    || (!is_bash && call.outcome == ToolOutcome::Ok && is(&file, call.detail))
                    || self.shell_edits(call).iter().any(|path| is(&file, Some(*path))))
                && (!filter.failed || call.outcome.is_error())
                && (!filter.agents || agents[call.tool as usize])
                && self.keeps(filter, call.at, call.log, &mut local)
        })
    }

    fn marks<'f>(&self, filter: &RecordFilter, marks: &'f [MarkFact], zone: &TimeZone) -> Vec<Record<'f>> {
        let mut local = LocalTime::new(zone);
        let kept = marks.iter().filter(|mark| self.keeps(filter, mark.at, mark.log, &mut local));
        kept.map(Record::Mark).collect()
    }

    fn periods(&self, filter: &RecordFilter) -> Vec<Record<'_>> {
        let wanted = self.periods.iter().filter(|period| {
            filter.state.is_none_or(|state| period.state == state) && self.is_of(filter, period.session)
        });
        let mut found: Vec<Record<'_>> = wanted
            .map(|period| Record::Period {
                start: period.start,
                session: period.session,
                state: period.state,
                length: overlap(&filter.range, period.start, period.end),
            })
            .filter(|period| period.length() > Some(0))
            .collect();
        found.reverse();
        found
    }

    fn sessions<'f>(&'f self, filter: &RecordFilter, zone: &TimeZone, app: &App) -> Vec<Record<'f>> {
        let of_file: Option<HashSet<u32>> = filter
            .file
            .as_ref()
            .map(|_| self.calls(filter, zone, app).map(|call| self.session_of(call.log)).collect());
        let starts_in = |wanted: &String, cwd: Option<u32>| cwd.is_some_and(|cwd| self.name(cwd) == wanted);
        let mut found: Vec<(Millis, u32)> = (0..)
            .zip(&self.sessions)
            .filter(|(index, session)| match &of_file {
                // A sub-agent of an unlisted session may have edited the file, too.
                Some(sessions) => sessions.contains(index),
                None => session.title.is_some() && session.is_in(&filter.range),
            })
            .filter(|(index, session)| {
                self.is_of(filter, *index)
                    && filter.directory.as_ref().is_none_or(|wanted| starts_in(wanted, session.cwd))
            })
            .map(|(index, session)| (session.last_active, index))
            .collect();
        found.sort_by_key(|(last_active, _)| std::cmp::Reverse(*last_active));
        found.into_iter().map(|(_, session)| Record::Session { session, cost: None }).collect()
    }

    /// Returns the sessions whose sub-agents made calls, highest cost first.
    fn agent_costs(&self, filter: &RecordFilter) -> Vec<Record<'_>> {
        let mut sums: HashMap<u32, UsageTotals> = HashMap::default();
        let dated = |at: Millis| (at != UNDATED).then_some(at);
        for fact in self.usage.iter().filter(|fact| fact.is_agent && self.is_of(filter, fact.session)) {
            if filter.range.contains(dated(fact.at)) {
                *sums.entry(fact.session).or_default() += &fact.totals;
            }
        }
        let mut sums: Vec<(u32, UsageTotals)> = sums.into_iter().collect();
        sums.sort_by(|a, b| b.1.cost.cmp(&a.1.cost).then(a.0.cmp(&b.0)));
        let record = |(session, totals)| Record::Session { session, cost: Some(Box::new(totals)) };
        sums.into_iter().map(record).collect()
    }

    fn keeps(&self, filter: &RecordFilter, at: Millis, log: u32, local: &mut LocalTime<'_>) -> bool {
        if !filter.range.contains((at != UNDATED).then_some(at)) || !self.is_of(filter, self.session_of(log))
        {
            return false;
        }
        if filter.weekday.is_none() && filter.hour.is_none() {
            return true;
        }
        let Some(hour) = local.hour_of(at) else { return false };
        filter.weekday.is_none_or(|wanted| hour.weekday() == wanted)
            && filter.hour.is_none_or(|wanted| hour.hour == wanted)
    }

    /// Returns whether a session is the wanted one, and of the wanted project.
    fn is_of(&self, filter: &RecordFilter, session: u32) -> bool {
        let session = self.session(session);
        let project = |wanted: &String| session.is_some_and(|session| self.name(session.project) == wanted);
        let is_session = |wanted: &String| session.is_some_and(|session| session.id == *wanted);
        filter.project.as_ref().is_none_or(project) && filter.session.as_ref().is_none_or(is_session)
    }

    fn row(&self, record: &Record<'_>, app: &App) -> RecordRow {
        let shown = |text: &str| app.masked(text).into_owned();
        let dated = |at: Millis| (at != UNDATED).then_some(at);
        let agent = |log: u32| self.logs.get(log as usize).and_then(|log| log.agent.clone());
        let (session, row) = match record {
            Record::Call(call) => {
                let row = RecordRow {
                    at: dated(call.at),
                    agent: agent(call.log),
                    line: Some(call.line),
                    tool: Some(shown(self.name(call.tool))),
                    detail: call.detail.map(|detail| shown(self.name(detail))),
                    duration: call.duration.map(Millis::from),
                    outcome: Some(call.outcome),
                    ..RecordRow::default()
                };
                (self.session_of(call.log), row)
            }
            Record::Mark(mark) => {
                let (at, line) = (dated(mark.at), Some(mark.line));
                let row = RecordRow { at, line, agent: agent(mark.log), ..RecordRow::default() };
                (self.session_of(mark.log), row)
            }
            Record::Period { start, session, state, length } => {
                let (at, duration) = (Some(*start), Some(*length));
                (*session, RecordRow { at, duration, state: Some(*state), ..RecordRow::default() })
            }
            Record::Session { session, cost } => {
                let at = self.session(*session).map(|session| session.last_active);
                (*session, RecordRow { at, cost: cost.as_deref().cloned(), ..RecordRow::default() })
            }
        };
        let session = self.session(session);
        let id = session.map(|session| session.id.clone()).unwrap_or_default();
        let title = session.and_then(|session| session.title.as_deref()).map(shown);
        RecordRow {
            title: title.unwrap_or_else(|| id.clone()),
            session: id,
            project: session.map(|session| self.name(session.project).to_owned()).unwrap_or_default(),
            ..row
        }
    }
}

impl App {
    /// Adds the titles of prompts, which are not among the facts, from the logs. `sessions` are those of the
    /// homes.
    pub fn add_prompts(&self, rows: &mut [RecordRow], sessions: &[SessionLogs]) {
        let mut by_session: HashMap<&str, Vec<&mut RecordRow>> = HashMap::default();
        let own_logs: HashMap<&str, &Path> = sessions
            .iter()
            .filter_map(|session| Some((&*session.file.id, &*session.own.as_ref()?.path)))
            .collect();
        for row in rows.iter_mut().filter(|row| row.agent.is_none()) {
            if let Some((id, _)) = own_logs.get_key_value(&*row.session) {
                by_session.entry(id).or_default().push(row);
            }
        }
        for (session, rows) in by_session {
            let path = own_logs[session];
            let lines = rows.iter().filter_map(|row| row.line.map(u64::from)).collect();
            // A log that was deleted meanwhile has no prompts.
            let titles = read_titles(path, &lines).unwrap_or_default();
            let texts: Vec<&str> = titles.values().map(String::as_str).collect();
            let logs = [path.to_owned()];
            let mask = self.mask_for(&texts, &logs);
            for row in rows {
                let title = row.line.and_then(|line| titles.get(&line.into()));
                row.prompt = title.map(|title| mask.text(title).into_owned());
            }
        }
    }
}

/// Returns the titles of the turns that some lines of a log open, as the outline of the session has them.
fn read_titles(path: &Path, wanted: &HashSet<u64>) -> io::Result<HashMap<u64, String>> {
    let mut titles = HashMap::default();
    let mut lines = LineReader::new(open_regular(path)?).skip_longer_than(MAX_LINE);
    while titles.len() < wanted.len()
        && let Some(line) = lines.next()?
    {
        if !wanted.contains(&line.at.line_no) {
            continue;
        }
        let mut title = None;
        parse_line(&line, |entry, _| title = title.take().or_else(|| line_title(entry)));
        titles.insert(line.at.line_no, title.unwrap_or_default());
    }
    Ok(titles)
}

/// A record that matches.
enum Record<'f> {
    Call(&'f CallFact),
    Mark(&'f MarkFact),
    Period { start: Millis, session: u32, state: ActivityState, length: Millis },
    Session { session: u32, cost: Option<Box<UsageTotals>> },
}

impl Record<'_> {
    /// Returns the milliseconds that the record took.
    fn length(&self) -> Option<Millis> {
        match self {
            Self::Call(call) => call.duration.map(Millis::from),
            Self::Period { length, .. } => Some(*length),
            Self::Mark(_) | Self::Session { .. } => None,
        }
    }
}
