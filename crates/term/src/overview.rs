//! The overview on one screen: figures of four periods, a chart line, and lists side by side.

use threadline_view::humanize::{count, duration, plural, share, short_count, short_id};
use threadline_view::{
    OpenSessionFigure, Overview, OverviewPeriod, PeriodFigures, short_model, short_path, short_tool,
};
use unicode_width::UnicodeWidthStr;

use crate::page::{TermPage, TextLabel, truncate};
use crate::table::{TableColumn, table};
use crate::text::TermText;

/// The width if the page has none.
const DEFAULT_WIDTH: usize = 100;

/// The least width of a list, and the space between two.
const MIN_LIST_WIDTH: usize = 38;
const GAP: usize = 2;

/// Renders the overview. At 80 columns it has at most 24 lines; wider pages show more rows. The user's `home`
/// folder is written as `~` in paths.
pub fn render_overview(overview: &Overview, page: TermPage, home: Option<&str>) -> TermText {
    let width = page.width.unwrap_or(DEFAULT_WIDTH).max(MIN_LIST_WIDTH);
    let renderer = Renderer { overview, page, home, width };
    let mut lines = vec![renderer.heading()];
    if let Some(message) = overview.inactivity() {
        lines.push(TermText::from(&*message));
    }
    lines.extend(renderer.periods().lines());
    lines.push(renderer.cost_line());
    lines.push(renderer.model_line());
    lines.push(renderer.prompt_line());
    lines.push(renderer.time_line());
    lines.extend(renderer.lists());
    let mut out = TermText::new();
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        out.push(line.trim_end());
        out.push("\n");
    }
    out
}

struct Renderer<'a> {
    overview: &'a Overview,
    page: TermPage,
    home: Option<&'a str>,
    width: usize,
}

/// A figure of the table of periods: its name, its text, and its value for the change.
type FigureRow = (&'static str, fn(&PeriodFigures) -> String, fn(&PeriodFigures) -> i128);

const FIGURES: &[FigureRow] = &[
    ("cost", |figures| figures.usage.short_cost(), |figures| figures.usage.cost.steps()),
    (
        "tokens",
        |figures| short_count(figures.usage.tokens.total()),
        |figures| figures.usage.tokens.total().into(),
    ),
    ("sessions", |figures| count(figures.sessions), |figures| figures.sessions.into()),
    ("prompts", |figures| count(figures.prompts), |figures| figures.prompts.into()),
    ("tool calls", |figures| count(figures.calls), |figures| figures.calls.into()),
    ("failed", |figures| count(figures.failed), |figures| figures.failed.into()),
    ("active", |figures| short_time(figures.active), |figures| figures.active.into()),
];

/// Joins items in one line of at most `width` columns. Those that do not fit are counted.
fn whole_items(items: &[String], width: usize) -> String {
    const SEPARATOR: &str = " · ";
    let first = |n_shown: usize| match items.len() - n_shown {
        0 => items.join(SEPARATOR),
        n_more => format!("{}{SEPARATOR}{n_more} more", items[..n_shown].join(SEPARATOR)),
    };
    // There may be very many, of which more than these cannot fit.
    let mut n_shown = items.len().min(width / SEPARATOR.width() + 1);
    while n_shown > 1 && first(n_shown).width() > width {
        n_shown -= 1;
    }
    first(n_shown)
}

impl Renderer<'_> {
    fn heading(&self) -> TermText {
        let selected = &self.overview.selected;
        let period = match (&selected.since, &selected.until) {
            (Some(since), Some(until)) if since == until => since.clone(),
            (Some(since), Some(until)) => format!("{since} to {until}"),
            (Some(since), None) => format!("since {since}"),
            (None, Some(until)) => format!("until {until}"),
            (None, None) => "all time".to_owned(),
        };
        let open =
            format!("{} live, {} waiting for you", self.overview.live.len(), self.overview.waiting.len());
        let mut line = self.page.paint(TextLabel::Title, "Overview");
        line.push(" ");
        line.push(&*period);
        if let Some(space) = self.width.checked_sub(line.width() + open.len()).filter(|space| *space > 1) {
            line.push(&*" ".repeat(space));
            line.push(self.page.paint(TextLabel::Dim, &*open));
        }
        line
    }

    /// Returns the figures of the periods, each with its change.
    fn periods(&self) -> TermText {
        let overview = self.overview;
        let is_preset = overview.periods.iter().any(|period| period.name == overview.selected.name);
        let selected = (!is_preset).then_some(&overview.selected);
        // A selected period that has no name takes the place of today.
        let presets = overview.periods.iter().skip(usize::from(!is_preset));
        let periods: Vec<&OverviewPeriod> = selected.into_iter().chain(presets).collect();
        let mut columns = vec![TableColumn::text("")];
        columns.extend(periods.iter().map(|period| TableColumn::number(period_name(period))));
        let rendered = |has_changes: bool| {
            let row = |(name, text, value): &FigureRow| -> Vec<String> {
                let cells = periods.iter().map(|period| {
                    let change = period.change(value).text().replace(' ', "");
                    let has_change = has_changes && !change.is_empty();
                    let change = if has_change { format!(" {change:>5}") } else { String::new() };
                    format!("{}{change}", text(&period.figures).replace("≥ ", "≥"))
                });
                std::iter::once((*name).to_owned()).chain(cells).collect()
            };
            let rows: Vec<Vec<String>> = FIGURES.iter().map(row).collect();
            table(TermPage { width: Some(self.width), ..self.page }, &columns, &rows)
        };
        let with_changes = rendered(true);
        let fits = with_changes.lines().iter().all(|line| line.width() <= self.width);
        if fits { with_changes } else { rendered(false) }
    }

    fn labelled(&self, label: &str, text: &str) -> TermText {
        let mut line = self.page.paint(TextLabel::Strong, label);
        line.push("  ");
        let width = self.width.saturating_sub(label.len() + 2);
        line.push(&*truncate(text, width));
        line
    }

    fn cost_line(&self) -> TermText {
        let overview = self.overview;
        let label = format!("Cost by {}", overview.bin_size.name());
        let highest = overview.bins.iter().max_by_key(|bin| bin.totals.cost);
        let peak = highest.map(|bin| format!("  max {} ({})", bin.totals.cost.short(), bin.label));
        let peak = peak.unwrap_or_default();
        let space = self.width.saturating_sub(label.len() + 2 + peak.chars().count());
        let costs: Vec<f64> = overview.bins.iter().map(|bin| bin.totals.cost.to_f64()).collect();
        let skipped = costs.len().saturating_sub(space);
        self.labelled(&label, &format!("{}{peak}", spark_line(&costs[skipped..])))
    }

    fn model_line(&self) -> TermText {
        let total = self.overview.selected.figures.usage.cost.to_f64();
        let models = self.overview.models.iter().map(|(name, totals)| {
            let part = totals.cost.to_f64() / total;
            let share = if part.is_finite() { format!(" {}", share(part)) } else { String::new() };
            format!("{} {}{share}", short_model(name), totals.short_cost())
        });
        self.labelled("Models", &whole_items(&models.collect::<Vec<_>>(), self.width.saturating_sub(8)))
    }

    fn prompt_line(&self) -> TermText {
        let hours = &self.overview.hours;
        let by_hour: Vec<f64> =
            (0..24).map(|hour| hours.iter().map(|day| day[hour]).sum::<u64>() as f64).collect();
        let by_day: Vec<f64> = hours.iter().map(|day| day.iter().sum::<u64>() as f64).collect();
        let text = format!("0h {} 23h   Mo {} Su", spark_line(&by_hour), spark_line(&by_day));
        self.labelled("Prompts", &text)
    }

    fn time_line(&self) -> TermText {
        let figures = &self.overview.selected.figures;
        let [active, waiting, idle] = [figures.active, figures.waiting, figures.idle].map(time);
        let mut text = format!(
            "{active} active, {waiting} waiting, {idle} idle · {}",
            plural(figures.agent_calls, "Agent call")
        );
        if self.overview.agent_usage.calls > 0 {
            text.push_str(&format!(" ({})", self.overview.agent_usage.short_cost()));
        }
        text.push_str(&format!(" · {}", plural(figures.compactions, "compaction")));
        self.labelled("Time", &text)
    }

    /// Returns the lists, side by side.
    fn lists(&self) -> Vec<TermText> {
        let n_columns = ((self.width + GAP) / (MIN_LIST_WIDTH + GAP)).clamp(1, 4);
        let width = (self.width + GAP) / n_columns - GAP;
        let (long, short) = if n_columns > 2 { (8, 8) } else { (3, 2) };
        type MakeList<'a> = fn(&Renderer<'a>, usize, usize) -> TermText;
        let lists: [(MakeList<'_>, usize); 6] = [
            (Self::projects, long),
            (Self::tools, long),
            (Self::commands, short),
            (Self::files, short),
            (Self::sessions, short),
            (Self::open, short),
        ];
        let lists: Vec<_> =
            lists.iter().filter(|(list, most)| !list(self, width, *most).is_empty()).collect();
        let mut lines = Vec::new();
        for row in lists.chunks(n_columns) {
            // Fewer lists have more room.
            let width = (self.width + GAP) / row.len() - GAP;
            let row: Vec<Vec<TermText>> =
                row.iter().map(|(list, most)| list(self, width, *most).lines()).collect();
            let height = row.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = TermText::new();
                for (place, list) in row.iter().enumerate() {
                    let start = place * (width + GAP);
                    line.push(&*" ".repeat(start.saturating_sub(line.width())));
                    line.push(list.get(at).cloned().unwrap_or_default());
                }
                lines.push(line);
            }
        }
        lines
    }

    fn list(&self, width: usize, columns: &[TableColumn], rows: Vec<Vec<String>>) -> TermText {
        if rows.is_empty() {
            return TermText::new();
        }
        table(TermPage { width: Some(width), ..self.page }, columns, &rows)
    }

    fn projects(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn { keeps_end: true, ..TableColumn::text("project") },
            TableColumn { drop_order: 2, ..TableColumn::number("sessions") },
            TableColumn::number("cost"),
        ];
        let rows = self.overview.projects.iter().take(most).map(|project| {
            vec![short_path(&project.project, self.home), count(project.sessions), project.usage.short_cost()]
        });
        self.list(width, &columns, rows.collect())
    }

    fn tools(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn::text("tool"),
            TableColumn::number("calls"),
            TableColumn::number("failed"),
            TableColumn { drop_order: 3, ..TableColumn::number("median") },
            TableColumn { drop_order: 2, ..TableColumn::number("p95") },
        ];
        let measured = |time: Option<i64>| time.map(duration).unwrap_or_default();
        let rows = self.overview.tools.iter().take(most).map(|tool| {
            vec![
                short_tool(&tool.tool).to_string(),
                count(tool.calls),
                count(tool.failed),
                measured(tool.median),
                measured(tool.p95),
            ]
        });
        self.list(width, &columns, rows.collect())
    }

    fn commands(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn::text("failing command"),
            TableColumn::number("failed"),
            TableColumn::number("runs"),
        ];
        let rows = self.overview.commands.iter().take(most);
        let rows =
            rows.map(|command| vec![command.command.clone(), count(command.failed), count(command.runs)]);
        self.list(width, &columns, rows.collect())
    }

    fn files(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn { keeps_end: true, ..TableColumn::text("edited file") },
            TableColumn::number("edits"),
            TableColumn { drop_order: 1, ..TableColumn::number("by shell") },
        ];
        let rows = self.overview.files.iter().take(most);
        let has_shell_edits = rows.clone().any(|file| file.shell_edits > 0);
        let columns = &columns[..if has_shell_edits { 3 } else { 2 }];
        let rows = rows.map(|file| {
            let by_shell = if file.shell_edits > 0 { count(file.shell_edits) } else { String::new() };
            let mut row =
                vec![short_path(&file.path, self.home), count(file.edits + file.shell_edits), by_shell];
            row.truncate(columns.len());
            row
        });
        self.list(width, columns, rows.collect())
    }

    fn sessions(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn { can_shrink: false, drop_order: 2, ..TableColumn::text("id") },
            TableColumn::text("top session"),
            TableColumn::number("cost"),
        ];
        let rows = self.overview.sessions.iter().take(most);
        let rows = rows.map(|session| {
            let id = short_id(&session.id).to_owned();
            vec![id, session.title.clone(), session.usage.short_cost()]
        });
        self.list(width, &columns, rows.collect())
    }

    /// Returns the live sessions, and those that wait for a person.
    fn open(&self, width: usize, most: usize) -> TermText {
        let columns = [
            TableColumn { can_shrink: false, drop_order: 2, ..TableColumn::text("id") },
            TableColumn::text("open session"),
            TableColumn { can_shrink: false, ..TableColumn::text("state") },
        ];
        let waiting = &self.overview.waiting;
        let is_new = |session: &&OpenSessionFigure| waiting.iter().all(|known| known.id != session.id);
        let live = self.overview.live.iter().filter(is_new);
        let rows = waiting.iter().map(|session| (session, true)).chain(live.map(|session| (session, false)));
        let rows = rows.take(most).map(|(session, waits)| {
            let id = short_id(&session.id).to_owned();
            let state = if waits { format!("waits: {}", session.state.name()) } else { "live".to_owned() };
            vec![id, session.title.clone(), state]
        });
        self.list(width, &columns, rows.collect())
    }
}

/// Returns the name of a period in the table.
fn period_name(period: &OverviewPeriod) -> &'static str {
    match period.name {
        "7d" => "7 days",
        "30d" => "30 days",
        "range" => "selected",
        "all" => "all time",
        name => name,
    }
}

/// Formats a sum of times, which are never as short as milliseconds.
fn time(millis: i64) -> String {
    if millis < 1000 { "0 s".to_owned() } else { duration(millis) }
}

/// Formats a sum of times in one unit: `28 min`, `7.7 h`.
fn short_time(millis: i64) -> String {
    match millis / 1000 {
        seconds @ ..60 => format!("{} s", seconds.max(0)),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..360_000 => format!("{:.1} h", seconds as f64 / 3600.0),
        seconds => format!("{} h", seconds / 3600),
    }
}

/// Returns one block character per value, as high as the value is compared with the highest.
fn spark_line(values: &[f64]) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let highest = values.iter().copied().fold(0.0, f64::max);
    let block = |value: &f64| {
        if *value <= 0.0 || highest <= 0.0 {
            return '·';
        }
        BLOCKS[((value / highest * 8.0).ceil() as usize).clamp(1, 8) - 1]
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use threadline_view::{CommandFigures, FileFigures, ProjectFigures, ToolFigures, TopSession};

    use super::*;

    #[test]
    fn items_that_do_not_fit_are_counted() {
        let items = ["opus $9", "sonnet $5", "haiku $1"].map(str::to_owned);
        let at = |width| whole_items(&items, width);
        assert_eq!(at(30), "opus $9 · sonnet $5 · haiku $1");
        assert_eq!(at(29), "opus $9 · sonnet $5 · 1 more");
        assert_eq!([at(27), at(2)], ["opus $9 · 2 more"; 2]);
        assert_eq!([whole_items(&[], 0), whole_items(&items[..1], 0)], ["", "opus $9"]);
        let many = vec!["a".to_owned(); 100_000];
        assert_eq!(whole_items(&many, 20), "a · a · 99998 more");
    }

    #[test]
    fn blocks_are_as_high_as_their_share() {
        assert_eq!(spark_line(&[]), "");
        assert_eq!(spark_line(&[0.0, 0.0]), "··");
        assert_eq!(spark_line(&[0.0, 0.1, 4.0, 8.0]), "·▁▄█");
    }

    #[test]
    fn a_full_overview_fits_on_a_screen() {
        let periods = ["today", "7d", "30d", "year"];
        let mut overview = Overview {
            periods: periods.map(|name| OverviewPeriod { name, ..OverviewPeriod::default() }).to_vec(),
            ..Overview::default()
        };
        for period in &mut overview.periods {
            let mut figures = PeriodFigures { calls: 12_345, active: 70_000_000, ..PeriodFigures::default() };
            figures.usage.cost = threadline_view::Money::from_f64(1276.12).unwrap();
            figures.usage.under_reported = 1;
            period.figures = figures;
            period.previous = Some(PeriodFigures { calls: 1, active: 1, ..PeriodFigures::default() });
        }
        overview.selected = overview.periods[2].clone();
        let name = |n: usize| format!("/home/ada/a-rather-long-name-of-a-project-{n}");
        overview.projects =
            (0..8).map(|n| ProjectFigures { project: name(n), ..ProjectFigures::default() }).collect();
        overview.tools = (0..12).map(|n| ToolFigures { tool: name(n), ..ToolFigures::default() }).collect();
        overview.commands =
            (0..8).map(|n| CommandFigures { command: name(n), ..CommandFigures::default() }).collect();
        overview.files = Vec::new();
        for width in [80, 120, 200, 300] {
            let page = TermPage { width: Some(width), color: false, links: false, whole_lines: false };
            let text = render_overview(&overview, page, None);
            let lines = text.lines();
            assert!(lines.iter().all(|line| line.width() <= width), "{width}:\n{}", text.as_str());
            assert!(width != 80 || lines.len() <= 24, "{}", text.as_str());
        }
    }
    #[test]
    fn the_lists_of_an_incomplete_row_use_its_width() {
        let name = "a rather long title of a session, of which all words are shown in a wide terminal";
        let overview = Overview {
            projects: vec![ProjectFigures { project: "/home/ada/loom".to_owned(), ..Default::default() }],
            tools: vec![ToolFigures { tool: "Bash".to_owned(), ..Default::default() }],
            commands: vec![CommandFigures { command: "make".to_owned(), ..Default::default() }],
            files: vec![FileFigures { path: "/home/ada/loom/a.rs".to_owned(), ..Default::default() }],
            sessions: vec![TopSession { title: name.to_owned(), ..Default::default() }],
            ..Overview::default()
        };
        let page = TermPage { width: Some(200), color: false, links: false, whole_lines: false };
        let text = render_overview(&overview, page, None);
        assert!(text.as_str().contains(name), "{}", text.as_str());
    }
}
