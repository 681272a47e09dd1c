//! The figures of the overview, computed from the facts.

mod over_time;

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_entry::Millis;
use threadline_session::{ActivityState, LogEnding, ToolOutcome};
use threadline_store::LiveRule;
use threadline_usage::UsageTotals;
use threadline_view::{
    CommandFigures, FileFigures, OpenSessionFigure, OpenState, Overview, OverviewPeriod, PeriodFigures,
    ProjectFigures, ToolFigures, TopSession, percentile, starts_agents,
};

use super::facts::{MarkFact, OverviewFacts, SessionFact, UNDATED};
use super::period::OverviewRange;
use crate::config::App;
use crate::time::{TimeRange, from_millis};

/// The number of rows of most lists.
const N_ROWS: usize = 8;

/// How long a finished reply, and a call or question without a result, counts as waiting for a person.
const REPLY_WAITS: Millis = 60 * 60 * 1000;
const CALL_WAITS: Millis = 24 * 60 * 60 * 1000;

impl OverviewFacts {
    /// Returns the figures of a period. `app` masks secrets in texts, if its configuration requires it.
    pub fn overview(&self, range: &OverviewRange, now: &Zoned, app: &App) -> Overview {
        let computation = Computation { facts: self, range, now, zone: now.time_zone(), app };
        computation.overview()
    }

    /// Returns the figures of a period alone.
    pub(super) fn period_figures(&self, range: &TimeRange) -> PeriodFigures {
        let dated = |at: Millis| (at != UNDATED).then_some(at);
        let count =
            |marks: &[MarkFact]| marks.iter().filter(|mark| range.contains(dated(mark.at))).count() as u64;
        let mut figures = PeriodFigures {
            sessions: self.listed_sessions(range).count() as u64,
            prompts: count(&self.prompts),
            compactions: count(&self.compactions),
            ..PeriodFigures::default()
        };
        for fact in self.usage.iter().filter(|fact| range.contains(dated(fact.at))) {
            figures.usage += &fact.totals;
        }
        let agent_tools: Vec<bool> = self.names.iter().map(|name| starts_agents(name)).collect();
        for call in self.calls.iter().filter(|call| range.contains(dated(call.at))) {
            figures.calls += 1;
            figures.failed += u64::from(call.outcome.is_error());
            figures.agent_calls += u64::from(agent_tools[call.tool as usize]);
        }
        for period in &self.periods {
            let length = overlap(range, period.start, period.end);
            match period.state {
                ActivityState::Active => figures.active += length,
                ActivityState::Waiting => figures.waiting += length,
                ActivityState::Idle => figures.idle += length,
            }
        }
        figures
    }

    /// Returns the sessions of lists that were active in a period.
    pub(super) fn listed_sessions(&self, range: &TimeRange) -> impl Iterator<Item = &SessionFact> {
        self.sessions.iter().filter(move |session| session.title.is_some() && session.is_in(range))
    }
}

impl SessionFact {
    /// Whether the session was active in a period, as lists decide it.
    pub(super) fn is_in(&self, range: &TimeRange) -> bool {
        range.from.is_none_or(|from| self.last_active >= from)
            && range.to.is_none_or(|to| self.started.unwrap_or(self.last_active) < to)
    }
}

/// Returns the length of the part of a period that is in a range.
pub(super) fn overlap(range: &TimeRange, start: Millis, end: Millis) -> Millis {
    let start = range.from.map_or(start, |from| start.max(from));
    let end = range.to.map_or(end, |to| end.min(to));
    end.saturating_sub(start).max(0)
}

/// The inputs of an overview.
struct Computation<'a> {
    facts: &'a OverviewFacts,
    range: &'a OverviewRange,
    now: &'a Zoned,
    zone: &'a TimeZone,
    app: &'a App,
}

/// The figures of a project, while they are added up.
#[derive(Default)]
struct SessionSums {
    prompts: u64,
    calls: u64,
    usage: UsageTotals,
    active: Millis,
}

/// The figures of a tool, while they are added up.
#[derive(Default)]
struct ToolSums {
    calls: u64,
    failed: u64,
    durations: Vec<u32>,
}

/// The figures of an edited file, while they are added up.
#[derive(Default)]
struct FileSums {
    edits: u64,
    shell_edits: u64,
    sessions: HashSet<u32>,
}

impl Computation<'_> {
    fn overview(&self) -> Overview {
        let facts = self.facts;
        let mut overview = Overview {
            periods: OverviewRange::presets(self.now).iter().map(|range| self.period(range)).collect(),
            selected: self.period(self.range),
            last_active: self.last_active(),
            unread: facts.unread.clone(),
            ..Overview::default()
        };
        self.add_usage(&mut overview);
        self.add_calendar(&mut overview);
        self.add_calls(&mut overview);
        self.add_sessions(&mut overview);
        self.add_open(&mut overview);
        overview
    }

    /// Returns the last day on which a session was active.
    fn last_active(&self) -> Option<Date> {
        let titled = self.facts.sessions.iter().filter(|session| session.title.is_some());
        let last = titled.map(|session| session.last_active).max()?;
        let last = jiff::Timestamp::from_millisecond(last).ok()?;
        Some(last.to_zoned(self.zone.clone()).date())
    }

    fn period(&self, range: &OverviewRange) -> OverviewPeriod {
        OverviewPeriod {
            name: range.name,
            from: range.range.from,
            to: range.range.to,
            since: range.since.clone(),
            until: range.until.clone(),
            figures: self.facts.period_figures(&range.range),
            previous: range.previous(self.now).map(|range| self.facts.period_figures(&range)),
        }
    }

    fn contains(&self, at: Millis) -> bool {
        self.range.range.contains((at != UNDATED).then_some(at))
    }

    fn shown(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.app.mask_string(&mut text);
        text
    }

    /// Adds tools, commands and files.
    fn add_calls(&self, overview: &mut Overview) {
        let facts = self.facts;
        let mut tools: HashMap<u32, ToolSums> = HashMap::default();
        let mut commands: HashMap<u32, CommandFigures> = HashMap::default();
        let mut files: HashMap<u32, FileSums> = HashMap::default();
        let bash = facts.names.iter().position(|name| name == "Bash").map(|bash| bash as u32);
        for call in facts.calls.iter().filter(|call| self.contains(call.at)) {
            let is_failed = u64::from(call.outcome.is_error());
            let tool = tools.entry(call.tool).or_default();
            tool.calls += 1;
            tool.failed += is_failed;
            tool.durations.extend(call.duration);
            for path in facts.shell_edits(call) {
                let file = files.entry(*path).or_default();
                file.shell_edits += 1;
                file.sessions.insert(facts.session_of(call.log));
            }
            let Some(detail) = call.detail else { continue };
            if Some(call.tool) == bash {
                let command = commands.entry(detail).or_default();
                command.runs += 1;
                command.failed += is_failed;
            } else if call.outcome == ToolOutcome::Ok {
                let file = files.entry(detail).or_default();
                file.edits += 1;
                file.sessions.insert(facts.session_of(call.log));
            }
        }
        overview.n_tools = tools.len();
        overview.tools = tools
            .into_iter()
            .map(|(tool, mut sums)| ToolFigures {
                tool: self.shown(facts.name(tool)),
                calls: sums.calls,
                failed: sums.failed,
                median: percentile(&mut sums.durations, 50),
                p95: percentile(&mut sums.durations, 95),
            })
            .collect();
        overview.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        overview.tools.truncate(12);
        let failing = commands.into_iter().filter(|(_, command)| command.failed > 0);
        overview.commands = failing
            .map(|(id, figures)| CommandFigures { command: self.shown(facts.name(id)), ..figures })
            .collect();
        overview.n_commands = overview.commands.len();
        overview.commands.sort_by(|a, b| {
            (b.failed.cmp(&a.failed)).then(b.runs.cmp(&a.runs)).then_with(|| a.command.cmp(&b.command))
        });
        overview.commands.truncate(N_ROWS);
        overview.n_files = files.len();
        let mut files: Vec<(u32, FileSums)> = files.into_iter().collect();
        files.sort_by(|(a, x), (b, y)| {
            let by_edits = (y.edits + y.shell_edits).cmp(&(x.edits + x.shell_edits));
            let by_sessions = y.sessions.len().cmp(&x.sessions.len());
            by_edits.then(by_sessions).then_with(|| facts.name(*a).cmp(facts.name(*b)))
        });
        let shown = files.into_iter().take(10);
        overview.files = shown
            .map(|(path, sums)| FileFigures {
                path: self.shown(facts.name(path)),
                edits: sums.edits,
                shell_edits: sums.shell_edits,
                sessions: sums.sessions.len() as u64,
            })
            .collect();
    }

    /// Adds projects and top sessions.
    fn add_sessions(&self, overview: &mut Overview) {
        let facts = self.facts;
        let mut sums: HashMap<u32, SessionSums> = HashMap::default();
        for fact in facts.usage.iter().filter(|fact| self.contains(fact.at)) {
            sums.entry(fact.session).or_default().usage += &fact.totals;
        }
        for mark in facts.prompts.iter().filter(|mark| self.contains(mark.at)) {
            sums.entry(facts.session_of(mark.log)).or_default().prompts += 1;
        }
        for call in facts.calls.iter().filter(|call| self.contains(call.at)) {
            sums.entry(facts.session_of(call.log)).or_default().calls += 1;
        }
        for period in facts.periods.iter().filter(|period| period.state == ActivityState::Active) {
            let length = overlap(&self.range.range, period.start, period.end);
            if length > 0 {
                sums.entry(period.session).or_default().active += length;
            }
        }
        let mut projects: BTreeMap<u32, ProjectFigures> = BTreeMap::new();
        for session in facts.listed_sessions(&self.range.range) {
            projects.entry(session.project).or_default().sessions += 1;
        }
        for (session, sums) in &sums {
            let Some(session) = facts.session(*session) else { continue };
            let project = projects.entry(session.project).or_default();
            project.prompts += sums.prompts;
            project.usage += &sums.usage;
            project.active += sums.active;
        }
        overview.n_projects = projects.len();
        overview.projects = projects
            .into_iter()
            .map(|(project, figures)| ProjectFigures { project: self.shown(facts.name(project)), ..figures })
            .collect();
        overview.projects.sort_by(|a, b| {
            let by_cost = b.usage.cost.cmp(&a.usage.cost);
            by_cost.then(b.sessions.cmp(&a.sessions)).then_with(|| a.project.cmp(&b.project))
        });
        overview.projects.truncate(N_ROWS);
        let mut top: Vec<(u32, SessionSums)> = sums.into_iter().collect();
        top.sort_by(|(a, x), (b, y)| {
            let by_cost = y.usage.cost.cmp(&x.usage.cost);
            by_cost.then(y.calls.cmp(&x.calls)).then(y.prompts.cmp(&x.prompts)).then(a.cmp(b))
        });
        let shown = top.into_iter().take(N_ROWS);
        overview.sessions = shown
            .filter_map(|(index, sums)| {
                let session = facts.session(index)?;
                Some(TopSession {
                    id: session.id.clone(),
                    title: self.title(session),
                    project: self.shown(facts.name(session.project)),
                    prompts: sums.prompts,
                    calls: sums.calls,
                    usage: sums.usage,
                    active: sums.active,
                    last_active: session.last_active,
                })
            })
            .collect();
    }

    fn title(&self, session: &SessionFact) -> String {
        self.shown(session.title.as_deref().unwrap_or(&session.id))
    }

    /// Adds the sessions that are live or wait for a person.
    fn add_open(&self, overview: &mut Overview) {
        let now = self.now.timestamp().as_millisecond();
        let tool = |id: u32| self.shown(self.facts.name(id));
        let mut sessions: Vec<&SessionFact> =
            self.facts.sessions.iter().filter(|session| session.title.is_some()).collect();
        sessions.sort_by(|a, b| b.last_active.cmp(&a.last_active).then_with(|| a.id.cmp(&b.id)));
        let live_rule = LiveRule::read(self.app.store().homes());
        for session in sessions {
            let age = now.saturating_sub(session.last_active);
            // While a sub-agent works, only its log may grow.
            let last_message = session.last_message.max(Some(session.last_active));
            let [modified, at] = [session.modified, now].map(from_millis);
            let is_live =
                live_rule.evidence(&session.id, modified, last_message.map(from_millis), at).is_some();
            if age > CALL_WAITS && !is_live {
                continue;
            }
            let state = match session.ending {
                LogEnding::Empty | LogEnding::Working => OpenState::Working,
                LogEnding::Called(id) => OpenState::Calling(tool(id)),
                LogEnding::Asked(id) => OpenState::Asking(tool(id)),
                LogEnding::Replied => OpenState::Replied,
            };
            let waits = match state {
                OpenState::Working => false,
                OpenState::Asking(_) => age <= CALL_WAITS,
                OpenState::Calling(_) => !is_live,
                OpenState::Replied => age <= REPLY_WAITS,
            };
            let open = OpenSessionFigure {
                id: session.id.clone(),
                title: self.title(session),
                project: self.shown(self.facts.name(session.project)),
                last_active: session.last_active,
                state,
            };
            if is_live && overview.live.len() < N_ROWS {
                overview.live.push(open.clone());
            }
            if waits && overview.waiting.len() < N_ROWS {
                overview.waiting.push(open);
            }
        }
    }
}
