//! The data of the overview: activity and cost over all sessions in a period, and in the period before.

use jiff::civil::{Date, Weekday};
use threadline_entry::Millis;
use threadline_usage::{Money, UsageTotals};

/// The data of the overview.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Today, the last 7 and 30 days, and the last year, each with the period before.
    pub periods: Vec<OverviewPeriod>,
    /// The selected period, which all that follows is about.
    pub selected: OverviewPeriod,
    /// The last day on which a session was active, in any period.
    pub last_active: Option<Date>,
    /// The length of the bins.
    pub bin_size: BinSize,
    /// Cost and tokens over time, without gaps.
    pub bins: Vec<UsageBin>,
    /// The sum of the calls without a time; they are in no bin.
    pub undated: UsageTotals,
    /// Models, highest cost first.
    pub models: Vec<(String, UsageTotals)>,
    /// Every day of the year up to the end of the selected period.
    pub calendar: Vec<DayActivity>,
    /// The number of prompts by weekday, from Monday, and hour.
    pub hours: [[u64; 24]; 7],
    /// Projects, highest cost first, as many as are shown.
    pub projects: Vec<ProjectFigures>,
    /// The number of projects.
    pub n_projects: usize,
    /// Sessions, highest cost first, as many as are shown.
    pub sessions: Vec<TopSession>,
    /// Tools, most calls first, as many as are shown.
    pub tools: Vec<ToolFigures>,
    /// The number of tools.
    pub n_tools: usize,
    /// Groups of shell commands with failures, most failures first, as many as are shown.
    pub commands: Vec<CommandFigures>,
    /// The number of groups of shell commands with failures.
    pub n_commands: usize,
    /// Edited files, most edits first, as many as are shown.
    pub files: Vec<FileFigures>,
    /// The number of edited files.
    pub n_files: usize,
    /// The sum of the calls that sub-agents made.
    pub agent_usage: UsageTotals,
    /// Sessions that are being written to, last active first.
    pub live: Vec<OpenSessionFigure>,
    /// Sessions that wait for a person, last active first.
    pub waiting: Vec<OpenSessionFigure>,
    /// Messages about logs that could not be read.
    pub unread: Vec<String>,
}

impl Overview {
    /// Returns a message if there was no activity in the selected period, but in another: `No activity in the
    /// last 30 days. Last active 1 August 2026.`
    pub fn inactivity(&self) -> Option<String> {
        let selected = &self.selected;
        if selected.figures.sessions > 0 || selected.figures.usage.calls > 0 {
            return None;
        }
        let period = match selected.name {
            "today" => "today",
            "7d" => "in the last 7 days",
            "30d" => "in the last 30 days",
            "year" => "in the last year",
            _ => "in this period",
        };
        let day = self.last_active?.strftime("%-d %B %Y");
        Some(format!("No activity {period}. Last active {day}."))
    }
}

/// A period with its figures and those of the period before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverviewPeriod {
    /// `today`, `7d`, `30d`, `year`, `all`, or `range`.
    pub name: &'static str,
    /// The start, inclusive.
    pub from: Option<Millis>,
    /// The end, exclusive.
    pub to: Option<Millis>,
    /// The values of `since` and `until` that select the period in links and on the command line.
    pub since: Option<String>,
    /// See `since`.
    pub until: Option<String>,
    /// Its figures.
    pub figures: PeriodFigures,
    /// The figures of the period of the same length before it, up to the same point if it is not over yet;
    /// `None` if the period has no start.
    pub previous: Option<PeriodFigures>,
}

/// The figures of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodFigures {
    /// Sessions with a message at or after the start that began before the end.
    pub sessions: u64,
    /// Prompts that a person typed.
    pub prompts: u64,
    /// Tokens and cost.
    pub usage: UsageTotals,
    /// Tool calls.
    pub calls: u64,
    /// Failed tool calls.
    pub failed: u64,
    /// Calls of tools that start sub-agents.
    pub agent_calls: u64,
    /// Compactions.
    pub compactions: u64,
    /// Milliseconds in which the model or tools worked, added up over all sessions.
    pub active: Millis,
    /// Milliseconds in which sessions waited for a person.
    pub waiting: Millis,
    /// Milliseconds of pauses that are longer.
    pub idle: Millis,
}

/// The change of a figure against the period before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureChange {
    /// Both are zero, or there is no period before.
    None,
    /// The figure was zero before.
    New,
    /// The change in percent of the figure before.
    Percent(i64),
}

impl FigureChange {
    /// Compares a figure with the one before.
    pub fn of(now: i128, before: Option<i128>) -> Self {
        match before {
            None => Self::None,
            Some(0) if now == 0 => Self::None,
            Some(0) => Self::New,
            Some(before) => {
                let percent = ((now - before) as f64 / before as f64 * 100.0).round();
                Self::Percent(percent.clamp(-1e9, 1e9) as i64)
            }
        }
    }

    /// Formats the change: `+12 %`, `new`; empty if there is none.
    pub fn text(self) -> String {
        match self {
            Self::None => String::new(),
            Self::New => "new".to_owned(),
            Self::Percent(0) => "±0 %".to_owned(),
            Self::Percent(percent) if percent > 99_999 => "> ×1000".to_owned(),
            Self::Percent(percent) if percent > 999 => format!("×{}", percent / 100 + 1),
            Self::Percent(percent) => format!("{percent:+} %").replace('-', "−"),
        }
    }
}

impl OverviewPeriod {
    /// Returns the change of a figure.
    pub fn change(&self, figure: impl Fn(&PeriodFigures) -> i128) -> FigureChange {
        FigureChange::of(figure(&self.figures), self.previous.as_ref().map(figure))
    }
}

/// The length of bins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BinSize {
    /// One hour.
    Hour,
    /// One day.
    #[default]
    Day,
    /// One week, from Monday.
    Week,
    /// One month.
    Month,
}

impl BinSize {
    /// The maximum number of bins. Times of logs may be far in the past or the future.
    pub const MAX_BINS: usize = 600;

    /// Returns the size for a period of this many days, so that there are enough bins and not too many.
    pub fn for_days(days: i64) -> Self {
        match days {
            ..=2 => Self::Hour,
            3..=62 => Self::Day,
            63..=400 => Self::Week,
            _ => Self::Month,
        }
    }

    /// Returns the name: `hour`, `day`, `week`, `month`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// Returns the first day of the bin that contains a day. Hours begin within a day.
    pub fn first_day(self, day: Date) -> Date {
        match self {
            Self::Hour | Self::Day => day,
            Self::Week => {
                let days = i64::from(day.weekday().since(Weekday::Monday));
                day.checked_sub(jiff::Span::new().days(days)).unwrap_or(day)
            }
            Self::Month => day.first_of_month(),
        }
    }

    /// Returns the first day of the bin after the one that begins on a day.
    pub fn next_first_day(self, day: Date) -> Date {
        let span = match self {
            Self::Hour | Self::Day => jiff::Span::new().days(1),
            Self::Week => jiff::Span::new().weeks(1),
            Self::Month => jiff::Span::new().months(1),
        };
        day.checked_add(span).unwrap_or(day)
    }

    /// Returns the label of the bin that begins on a day: `2026-11-01`, `2026-W44`, `2026-11`.
    pub fn label(self, day: Date) -> String {
        match self {
            Self::Hour | Self::Day => day.to_string(),
            Self::Week => {
                let week = day.iso_week_date();
                format!("{:04}-W{:02}", week.year(), week.week())
            }
            Self::Month => day.strftime("%Y-%m").to_string(),
        }
    }
}

/// The usage in one bin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageBin {
    /// Its name: `14:00`, `2026-11-01`, `2026-W44`, `2026-11`.
    pub label: String,
    /// The values of `since` and `until` that select it.
    pub since: String,
    /// See `since`.
    pub until: String,
    /// The sum.
    pub totals: UsageTotals,
    /// The sums by model, as indices into [`Overview::models`], in that order.
    pub models: Vec<(usize, UsageTotals)>,
}

/// The activity of one day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayActivity {
    /// The day.
    pub day: Date,
    /// The number of prompts.
    pub prompts: u64,
    /// The cost.
    pub cost: Money,
}

/// The figures of a project in the selected period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectFigures {
    /// The directory of the project.
    pub project: String,
    /// Sessions, as in [`PeriodFigures::sessions`].
    pub sessions: u64,
    /// Prompts.
    pub prompts: u64,
    /// Tokens and cost.
    pub usage: UsageTotals,
    /// Active time in milliseconds.
    pub active: Millis,
}

/// The figures of a session in the selected period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TopSession {
    /// The id.
    pub id: String,
    /// The title; the id if it has none.
    pub title: String,
    /// The directory of the project.
    pub project: String,
    /// Prompts.
    pub prompts: u64,
    /// Tool calls.
    pub calls: u64,
    /// Tokens and cost.
    pub usage: UsageTotals,
    /// Active time in milliseconds.
    pub active: Millis,
    /// The time of the last message.
    pub last_active: Millis,
}

/// The figures of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolFigures {
    /// The name of the tool.
    pub tool: String,
    /// Its calls.
    pub calls: u64,
    /// Its failed calls.
    pub failed: u64,
    /// The median of the time from the call to its result, in milliseconds.
    pub median: Option<Millis>,
    /// The 95th percentile of that time.
    pub p95: Option<Millis>,
}

/// The figures of a group of shell commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFigures {
    /// The program, with its sub-command.
    pub command: String,
    /// How often it ran.
    pub runs: u64,
    /// How often it failed.
    pub failed: u64,
}

/// The figures of an edited file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFigures {
    /// The path.
    pub path: String,
    /// The number of successful edits.
    pub edits: u64,
    /// The number of shell commands that changed it.
    pub shell_edits: u64,
    /// The number of sessions with such an edit.
    pub sessions: u64,
}

/// A session that is live, or waits for a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSessionFigure {
    /// The id.
    pub id: String,
    /// The title.
    pub title: String,
    /// The directory of the project.
    pub project: String,
    /// The time of the last message.
    pub last_active: Millis,
    /// Whether the session works or waits.
    pub state: OpenState,
}

/// The state of an open session, as its log shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenState {
    /// The model works.
    Working,
    /// A call of this tool runs, or waits for permission: the log does not show which.
    Calling(String),
    /// A question of this tool waits for its answer.
    Asking(String),
    /// The reply is complete and waits for the next prompt.
    Replied,
}

impl OpenState {
    /// Returns the name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::Calling(_) => "call",
            Self::Asking(_) => "question",
            Self::Replied => "reply",
        }
    }

    /// Returns the tool that is called.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Calling(tool) | Self::Asking(tool) => Some(tool),
            Self::Working | Self::Replied => None,
        }
    }

    /// Describes the state.
    pub fn text(&self) -> String {
        match self {
            Self::Working => "Working".to_owned(),
            Self::Calling(tool) => format!("{tool}: running or waiting for permission"),
            Self::Asking(_) => "Question".to_owned(),
            Self::Replied => "Reply finished".to_owned(),
        }
    }
}

/// The branches and worktrees of a project.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectDetails {
    /// Its last active sessions, as many as are shown.
    pub sessions: Vec<TopSession>,
    /// Its branches, highest cost first.
    pub branches: Vec<BranchFigures>,
    /// The working directories of its sessions other than its own, most sessions first.
    pub worktrees: Vec<(String, u64)>,
}

/// The figures of a branch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BranchFigures {
    /// The name; empty if none was checked out.
    pub branch: String,
    /// The sessions that ended on it.
    pub sessions: u64,
    /// Tokens and cost of the calls on it.
    pub usage: UsageTotals,
}

/// Returns the value at a percentile of durations, by the nearest rank. Sorts them.
pub fn percentile(durations: &mut [u32], percent: usize) -> Option<Millis> {
    if durations.is_empty() {
        return None;
    }
    let rank = (durations.len() * percent).div_ceil(100).clamp(1, durations.len());
    let (_, value, _) = durations.select_nth_unstable(rank - 1);
    Some(Millis::from(*value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_in_percent_of_the_figure_before() {
        for (now, before, text) in [
            (0, None, ""),
            (5, None, ""),
            (0, Some(0), ""),
            (5, Some(0), "new"),
            (5, Some(5), "±0 %"),
            (3, Some(2), "+50 %"),
            (1, Some(3), "−67 %"),
            (0, Some(3), "−100 %"),
            (300, Some(3), "×100"),
            (30_000, Some(3), "> ×1000"),
        ] {
            assert_eq!(FigureChange::of(now, before).text(), text, "{now} {before:?}");
        }
    }

    #[test]
    fn percentiles_are_values_of_the_list() {
        assert_eq!(percentile(&mut [], 50), None);
        assert_eq!(percentile(&mut [7], 95), Some(7));
        assert_eq!(percentile(&mut [4, 1, 3, 2], 50), Some(2));
        let mut hundred: Vec<u32> = (1..=100).rev().collect();
        assert_eq!((percentile(&mut hundred, 50), percentile(&mut hundred, 95)), (Some(50), Some(95)));
    }

    #[test]
    fn bins_fit_the_period() {
        let sizes = [1, 7, 30, 365, 3650].map(|days| BinSize::for_days(days).name());
        assert_eq!(sizes, ["hour", "day", "day", "week", "month"]);
        let day = Date::constant(2026, 11, 15);
        let first = [BinSize::Day, BinSize::Week, BinSize::Month].map(|size| size.first_day(day).to_string());
        assert_eq!(first, ["2026-11-15", "2026-11-09", "2026-11-01"]);
    }
}
