//! JSON of the overview.

use serde::Serialize;
use threadline_entry::Millis;
use threadline_usage::Money;

use super::{FiguresObject, exact, moment};
use crate::overview::{
    CommandFigures, DayActivity, FileFigures, OpenSessionFigure, Overview, OverviewPeriod, PeriodFigures,
    ProjectFigures, ToolFigures, TopSession, UsageBin,
};

/// The overview.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct OverviewObject<'a> {
    pub periods: Vec<PeriodObject<'a>>,
    pub selected: PeriodObject<'a>,
    pub bin_size: &'static str,
    pub bins: Vec<BinObject<'a>>,
    pub models: Vec<ModelUsageObject<'a>>,
    pub calendar: Vec<CalendarDayObject>,
    pub prompts_by_weekday_and_hour: Vec<[u64; 24]>,
    pub projects: Vec<ProjectFiguresObject<'a>>,
    pub project_count: usize,
    pub sessions: Vec<TopSessionObject<'a>>,
    pub tools: Vec<ToolFiguresObject<'a>>,
    pub tool_count: usize,
    pub failing_commands: Vec<CommandFiguresObject<'a>>,
    pub failing_command_count: usize,
    pub files: Vec<FileFiguresObject<'a>>,
    pub file_count: usize,
    pub sub_agent_usage: FiguresObject<'a>,
    pub undated_usage: FiguresObject<'a>,
    pub live: Vec<OpenSessionObject<'a>>,
    pub waiting: Vec<OpenSessionObject<'a>>,
}

/// A period and the one before.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct PeriodObject<'a> {
    pub name: &'static str,
    pub from: Option<String>,
    pub to: Option<String>,
    pub figures: PeriodFiguresObject<'a>,
    pub previous: Option<PeriodFiguresObject<'a>>,
}

/// The figures of a period.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct PeriodFiguresObject<'a> {
    pub sessions: u64,
    pub prompts: u64,
    pub usage: FiguresObject<'a>,
    pub tool_calls: u64,
    pub failed_tool_calls: u64,
    pub agent_calls: u64,
    pub compactions: u64,
    pub active_ms: Millis,
    pub waiting_ms: Millis,
    pub idle_ms: Millis,
}

/// The usage in a part of the period.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct BinObject<'a> {
    pub label: &'a str,
    pub usage: FiguresObject<'a>,
    pub models: Vec<ModelUsageObject<'a>>,
}

/// The usage of a model.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ModelUsageObject<'a> {
    pub model: &'a str,
    pub usage: FiguresObject<'a>,
}

/// A day of the calendar.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CalendarDayObject {
    pub day: String,
    pub prompts: u64,
    pub cost_usd: Option<Box<serde_json::value::RawValue>>,
}

/// A project.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ProjectFiguresObject<'a> {
    pub project: &'a str,
    pub sessions: u64,
    pub prompts: u64,
    pub usage: FiguresObject<'a>,
    pub active_ms: Millis,
}

/// A session.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct TopSessionObject<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub project: &'a str,
    pub prompts: u64,
    pub tool_calls: u64,
    pub usage: FiguresObject<'a>,
    pub active_ms: Millis,
}

/// A tool.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ToolFiguresObject<'a> {
    pub tool: &'a str,
    pub calls: u64,
    pub failed: u64,
    pub median_ms: Option<Millis>,
    pub p95_ms: Option<Millis>,
}

/// A group of shell commands.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct CommandFiguresObject<'a> {
    pub command: &'a str,
    pub runs: u64,
    pub failed: u64,
}

/// An edited file.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct FileFiguresObject<'a> {
    pub path: &'a str,
    pub edits: u64,
    pub shell_edits: u64,
    pub sessions: u64,
}

/// A session that is live, or waits for a person.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct OpenSessionObject<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub project: &'a str,
    pub last_active_at: String,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
}

/// A call, prompt or compaction that the overview counts.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct OverviewRecordObject<'a> {
    pub at: Option<String>,
    pub session: &'a str,
    pub project: &'a str,
    pub agent: Option<&'a str>,
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Millis>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<FiguresObject<'a>>,
}

impl<'a> From<&'a Overview> for OverviewObject<'a> {
    fn from(overview: &'a Overview) -> Self {
        let model = |(place, usage): &'a (usize, threadline_usage::UsageTotals)| {
            let model = overview.models.get(*place).map_or("", |(name, _)| name);
            ModelUsageObject { model, usage: usage.into() }
        };
        let bin = |bin: &'a UsageBin| BinObject {
            label: &bin.label,
            usage: (&bin.totals).into(),
            models: bin.models.iter().map(model).collect(),
        };
        let models = overview.models.iter();
        Self {
            periods: overview.periods.iter().map(Into::into).collect(),
            selected: (&overview.selected).into(),
            bin_size: overview.bin_size.name(),
            bins: overview.bins.iter().map(bin).collect(),
            models: models.map(|(model, usage)| ModelUsageObject { model, usage: usage.into() }).collect(),
            calendar: overview.calendar.iter().map(Into::into).collect(),
            prompts_by_weekday_and_hour: overview.hours.to_vec(),
            projects: overview.projects.iter().map(Into::into).collect(),
            project_count: overview.n_projects,
            sessions: overview.sessions.iter().map(Into::into).collect(),
            tools: overview.tools.iter().map(Into::into).collect(),
            tool_count: overview.n_tools,
            failing_commands: overview.commands.iter().map(Into::into).collect(),
            failing_command_count: overview.n_commands,
            files: overview.files.iter().map(Into::into).collect(),
            file_count: overview.n_files,
            sub_agent_usage: (&overview.agent_usage).into(),
            undated_usage: (&overview.undated).into(),
            live: overview.live.iter().map(Into::into).collect(),
            waiting: overview.waiting.iter().map(Into::into).collect(),
        }
    }
}

impl<'a> From<&'a OverviewPeriod> for PeriodObject<'a> {
    fn from(period: &'a OverviewPeriod) -> Self {
        Self {
            name: period.name,
            from: period.from.map(moment),
            to: period.to.map(moment),
            figures: (&period.figures).into(),
            previous: period.previous.as_ref().map(Into::into),
        }
    }
}

impl<'a> From<&'a PeriodFigures> for PeriodFiguresObject<'a> {
    fn from(figures: &'a PeriodFigures) -> Self {
        Self {
            sessions: figures.sessions,
            prompts: figures.prompts,
            usage: (&figures.usage).into(),
            tool_calls: figures.calls,
            failed_tool_calls: figures.failed,
            agent_calls: figures.agent_calls,
            compactions: figures.compactions,
            active_ms: figures.active,
            waiting_ms: figures.waiting,
            idle_ms: figures.idle,
        }
    }
}

impl From<&DayActivity> for CalendarDayObject {
    fn from(day: &DayActivity) -> Self {
        let cost: Money = day.cost;
        Self { day: day.day.to_string(), prompts: day.prompts, cost_usd: exact(cost) }
    }
}

impl<'a> From<&'a ProjectFigures> for ProjectFiguresObject<'a> {
    fn from(figures: &'a ProjectFigures) -> Self {
        Self {
            project: &figures.project,
            sessions: figures.sessions,
            prompts: figures.prompts,
            usage: (&figures.usage).into(),
            active_ms: figures.active,
        }
    }
}

impl<'a> From<&'a TopSession> for TopSessionObject<'a> {
    fn from(figures: &'a TopSession) -> Self {
        Self {
            id: &figures.id,
            title: &figures.title,
            project: &figures.project,
            prompts: figures.prompts,
            tool_calls: figures.calls,
            usage: (&figures.usage).into(),
            active_ms: figures.active,
        }
    }
}

impl<'a> From<&'a ToolFigures> for ToolFiguresObject<'a> {
    fn from(figures: &'a ToolFigures) -> Self {
        Self {
            tool: &figures.tool,
            calls: figures.calls,
            failed: figures.failed,
            median_ms: figures.median,
            p95_ms: figures.p95,
        }
    }
}

impl<'a> From<&'a CommandFigures> for CommandFiguresObject<'a> {
    fn from(figures: &'a CommandFigures) -> Self {
        Self { command: &figures.command, runs: figures.runs, failed: figures.failed }
    }
}

impl<'a> From<&'a FileFigures> for FileFiguresObject<'a> {
    fn from(figures: &'a FileFigures) -> Self {
        Self {
            path: &figures.path,
            edits: figures.edits,
            shell_edits: figures.shell_edits,
            sessions: figures.sessions,
        }
    }
}

impl<'a> From<&'a OpenSessionFigure> for OpenSessionObject<'a> {
    fn from(figure: &'a OpenSessionFigure) -> Self {
        Self {
            id: &figure.id,
            title: &figure.title,
            project: &figure.project,
            last_active_at: moment(figure.last_active),
            state: figure.state.name(),
            tool: figure.state.tool(),
        }
    }
}
