//! Overview: activity and cost over all sessions. Each chart has a table with the same figures, and each
//! figure links to the sessions, calls or lines that it counts.

mod activity;
mod project;
mod spending;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_view::{
    FigureChange, OpenSessionFigure, Overview, OverviewPeriod, PeriodFigures, ProjectDetails, humanize,
    short_path,
};

use self::activity::{calendar, commands, files, hours, times, tools};
use self::spending::{over_time, projects, sessions};
use super::figure_table::{FigureCell, figure_table};
use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The data of the overview.
#[derive(Clone, Copy, Debug)]
pub struct OverviewPage<'a> {
    /// The figures; `None` until the logs were read once.
    pub overview: Option<&'a Overview>,
    /// All models of all times and projects, highest cost first. They determine the colours.
    pub models: &'a [String],
    /// Whether logs are being read that the figures do not include.
    pub is_reading: bool,
    /// The sequence number of the last server event, so that the page can detect events it missed.
    pub event_no: u64,
    /// The current time in milliseconds since 1970.
    pub now: i64,
    /// The time zone of the times shown.
    pub zone: &'a TimeZone,
    /// The user's home folder, which is written as `~` in paths.
    pub home: Option<&'a str>,
    /// The project that the figures are limited to, with its details; `None` for the overview of all.
    pub project: Option<(&'a str, &'a ProjectDetails)>,
}

impl OverviewPage<'_> {
    /// Returns the address of the page, and its parameters besides the period.
    fn address(&self) -> (&'static str, Option<(&str, &str)>) {
        match self.project {
            Some((project, _)) => ("/project", Some(("name", project))),
            None => ("/", None),
        }
    }
}

/// The figures and the links of a page.
#[derive(Clone, Copy)]
struct Figures<'a> {
    overview: &'a Overview,
    page: &'a OverviewPage<'a>,
}

impl Figures<'_> {
    /// Returns a link with a target limited to the selected period, and to the project of the page.
    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        self.period_link(&self.overview.selected, path, more)
    }

    /// Returns a link with a target limited to a period, and to the project of the page.
    fn period_link(&self, period: &OverviewPeriod, path: &str, more: &[(&str, &str)]) -> String {
        let own = self.page.project.map(|(project, _)| ("project", project));
        let own = own.filter(|_| more.iter().all(|(key, _)| *key != "project"));
        let parameters: Vec<(&str, &str)> = more.iter().copied().chain(own).collect();
        period_link(period, path, &parameters)
    }

    /// Returns a link with a target limited to a time, and to the project of the page.
    fn time_link(&self, path: &str, since: &str, until: &str, more: &[(&str, &str)]) -> String {
        let own = self.page.project.map(|(project, _)| ("project", project));
        let bounds = [("since", since), ("until", until)];
        link::href(path, more.iter().copied().chain(own).chain(bounds))
    }

    fn records(&self, more: &[(&str, &str)]) -> String {
        self.link("/records", more)
    }

    fn path(&self, path: &str) -> String {
        short_path(path, self.page.home)
    }
}

/// Returns a link with a target limited to a period. Parameters of `more` replace those of the period.
fn period_link(period: &OverviewPeriod, path: &str, more: &[(&str, &str)]) -> String {
    let since = period.since.as_deref().map(|since| ("since", since));
    let until = period.until.as_deref().map(|until| ("until", until));
    let kept = since.into_iter().chain(until).filter(|(key, _)| more.iter().all(|(other, _)| other != key));
    link::href(path, more.iter().copied().chain(kept))
}

/// Renders the main content and the footer of the overview.
pub fn overview(page: &OverviewPage<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"overview\" data-news=\"")
        .num(page.event_no)
        .lit("\">\n");
    out.lit("<header class=\"opening\"><h1>");
    match page.project {
        Some((project, _)) => {
            out.text(link::project_name(project)).lit("</h1><p class=\"facts\">");
            out.text(&short_path(project, page.home)).lit("</p>")
        }
        None => out.lit("Overview</h1>"),
    };
    match page.overview {
        None => {
            out.lit("</header><div class=\"empty\"><p class=\"indexing\">Reading the logs …</p></div>");
        }
        Some(overview) => content(&mut out, Figures { overview, page }),
    }
    out.lit("</main>\n");
    let path = if page.project.is_some() { "/project.json" } else { "/overview.json" };
    let name = page.address().1;
    let json = page
        .overview
        .map_or_else(|| link::href(path, name), |overview| range_link(&overview.selected, path, name));
    foot(&mut out, &json, None);
    out
}

fn content(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    ranges(out, figures);
    if figures.page.is_reading {
        out.lit("<p class=\"quiet indexing\">Reading logs that have changed …</p>");
    }
    match overview.inactivity() {
        Some(message) => {
            let (path, own) = figures.page.address();
            let all = link::href(path, own.into_iter().chain([("range", "all")]));
            out.lit("<p class=\"inactive\">").text(&message).lit(" <a href=\"").text(&all);
            out.lit("\">Show all time</a></p>");
        }
        None => tiles(out, figures),
    }
    out.lit("</header>\n");
    open_sessions(out, figures);
    if let Some((_, details)) = figures.page.project {
        project::details(out, figures, details);
    }
    over_time(out, figures);
    calendar(out, figures);
    hours(out, figures);
    periods(out, figures);
    if figures.page.project.is_none() {
        out.lit("<div class=\"pair\">");
        projects(out, figures);
        sessions(out, figures);
        out.lit("</div>\n");
    }
    out.lit("<div class=\"pair\">");
    tools(out, figures);
    commands(out, figures);
    out.lit("</div>\n<div class=\"pair\">");
    files(out, figures);
    times(out, figures);
    out.lit("</div>\n");
    for message in &overview.unread {
        out.lit("<p class=\"error-message\">").text(message).lit("</p>\n");
    }
}

/// The named periods.
const RANGES: &[(&str, &str)] =
    &[("today", "Today"), ("7d", "7 days"), ("30d", "30 days"), ("year", "Year"), ("all", "All")];

/// Returns the link to the overview of a period. `more` is another parameter of it.
fn range_link(period: &OverviewPeriod, path: &str, more: Option<(&str, &str)>) -> String {
    match period.name {
        "range" => {
            let parameters: Vec<(&str, &str)> = more.into_iter().chain([("range", "custom")]).collect();
            period_link(period, path, &parameters)
        }
        name => link::href(path, more.into_iter().chain([("range", name)])),
    }
}

fn ranges(out: &mut Markup, figures: Figures<'_>) {
    let selected = &figures.overview.selected;
    let (path, own) = figures.page.address();
    out.lit("<form class=\"usage-filters\" id=\"filters\" action=\"").text(path);
    out.lit("\"><p class=\"sorter\">");
    for (range, name) in RANGES {
        let parameters = own.into_iter().chain([("range", *range)]);
        out.lit("<a href=\"").text(&link::href(path, parameters)).lit("\"");
        out.lit(if selected.name == *range { " aria-current=\"true\">" } else { ">" });
        out.lit(name).lit("</a> ");
    }
    out.lit("</p><input type=\"hidden\" name=\"range\" value=\"custom\">");
    if let Some((_, project)) = own {
        out.lit("<input type=\"hidden\" name=\"name\" value=\"").text(project).lit("\">");
    }
    for (label, name, value) in [("From", "since", &selected.since), ("To", "until", &selected.until)] {
        let value = value.as_deref().unwrap_or_default();
        let plain = value.is_empty() || value.parse::<Date>().is_ok();
        out.lit("<label class=\"field\"><span>").lit(label).lit("</span><input type=\"");
        out.lit(if plain { "date" } else { "text" }).lit("\" name=\"").lit(name).lit("\" value=\"");
        out.text(value).lit("\"></label>");
    }
    out.lit("<button class=\"apply\">Apply</button></form>\n");
}

/// A figure of a period: its name, its text, its value, and the link to what it counts.
struct PeriodFigure {
    name: &'static str,
    text: fn(&PeriodFigures) -> String,
    value: fn(&PeriodFigures) -> i128,
    path: &'static str,
    parameters: &'static [(&'static str, &'static str)],
    /// Whether a higher figure is worse.
    is_bad: bool,
}

const PERIOD_FIGURES: &[PeriodFigure] = &[
    PeriodFigure {
        name: "Cost",
        text: |figures| figures.usage.short_cost(),
        value: |figures| figures.usage.cost.steps(),
        path: "/usage",
        parameters: &[],
        is_bad: false,
    },
    PeriodFigure {
        name: "Tokens",
        text: |figures| humanize::short_count(figures.usage.tokens.total()),
        value: |figures| figures.usage.tokens.total().into(),
        path: "/usage",
        parameters: &[],
        is_bad: false,
    },
    PeriodFigure {
        name: "Sessions",
        text: |figures| humanize::count(figures.sessions),
        value: |figures| figures.sessions.into(),
        path: "/sessions",
        parameters: &[],
        is_bad: false,
    },
    PeriodFigure {
        name: "Prompts",
        text: |figures| humanize::count(figures.prompts),
        value: |figures| figures.prompts.into(),
        path: "/records",
        parameters: &[("kind", "prompts")],
        is_bad: false,
    },
    PeriodFigure {
        name: "Tool calls",
        text: |figures| humanize::count(figures.calls),
        value: |figures| figures.calls.into(),
        path: "/records",
        parameters: &[("kind", "calls")],
        is_bad: false,
    },
    PeriodFigure {
        name: "Failed calls",
        text: |figures| humanize::count(figures.failed),
        value: |figures| figures.failed.into(),
        path: "/records",
        parameters: &[("kind", "calls"), ("failed", "1")],
        is_bad: true,
    },
    PeriodFigure {
        name: "Agent calls",
        text: |figures| humanize::count(figures.agent_calls),
        value: |figures| figures.agent_calls.into(),
        path: "/records",
        parameters: &[("kind", "calls"), ("agents", "1")],
        is_bad: false,
    },
    PeriodFigure {
        name: "Compactions",
        text: |figures| humanize::count(figures.compactions),
        value: |figures| figures.compactions.into(),
        path: "/records",
        parameters: &[("kind", "compactions")],
        is_bad: false,
    },
    PeriodFigure {
        name: "Active time",
        text: |figures| time(figures.active),
        value: |figures| figures.active.into(),
        path: "/sessions",
        parameters: &[],
        is_bad: false,
    },
];

/// Formats a sum of times, which are never as short as milliseconds.
fn time(millis: i64) -> String {
    if millis < 1000 { "0 s".to_owned() } else { humanize::duration(millis) }
}

fn tiles(out: &mut Markup, figures: Figures<'_>) {
    let selected = &figures.overview.selected;
    out.lit("<dl class=\"totals\">");
    for figure in PERIOD_FIGURES {
        out.lit("<div><dt>").lit(figure.name).lit("</dt><dd><a href=\"");
        out.text(&figures.period_link(selected, figure.path, figure.parameters)).lit("\">");
        out.text(&(figure.text)(&selected.figures)).lit("</a>");
        let change = selected.change(figure.value);
        if change != FigureChange::None {
            let before = selected.previous.as_ref().map(figure.text).unwrap_or_default();
            out.lit(if figure.is_bad { "<small class=\"bad-if-up" } else { "<small class=\"" });
            out.lit(match change {
                FigureChange::Percent(percent) if percent < 0 => " down",
                FigureChange::Percent(0) => "",
                _ => " up",
            });
            out.lit("\" title=\"Period before: ").text(&before).lit("\">").text(&change.text());
            out.lit("</small>");
        }
        out.lit("</dd></div>");
    }
    out.lit("</dl>\n");
}

fn open_sessions(out: &mut Markup, figures: Figures<'_>) {
    let overview = figures.overview;
    if overview.live.is_empty() && overview.waiting.is_empty() {
        return;
    }
    out.lit("<section class=\"figure now\"><h2>Now</h2>\n<div class=\"pair\">");
    for (title, sessions) in [("Live", &overview.live), ("Waiting for you", &overview.waiting)] {
        out.lit("<div><h3>").lit(title).lit("</h3>");
        if sessions.is_empty() {
            out.lit("<p class=\"quiet\">None</p>");
        } else {
            let rows = sessions.iter().map(|session| open_row(figures, session));
            figure_table(out, &[("session", false), ("state", false), ("last active", true)], rows, None);
        }
        out.lit("</div>");
    }
    out.lit("</div></section>\n");
}

fn open_row(figures: Figures<'_>, session: &OpenSessionFigure) -> Vec<FigureCell> {
    let at = text_format::relative_time(session.last_active, figures.page.now, figures.page.zone);
    let title = text_format::excerpt(&session.title, 80);
    vec![
        FigureCell::link(title, link::session(&session.id)).titled(figures.path(&session.project)),
        FigureCell::plain(session.state.text()),
        FigureCell::plain(at),
    ]
}

/// Adds the figures of today, 7 days, 30 days and a year, with the change against the period before.
fn periods(out: &mut Markup, figures: Figures<'_>) {
    section(out, "Periods", "with the change against the period before");
    let columns: Vec<(&'static str, bool)> = std::iter::once(("", false))
        .chain(figures.overview.periods.iter().map(|period| (range_name(period.name), true)))
        .collect();
    let rows = PERIOD_FIGURES.iter().map(|figure| {
        let cells = figures.overview.periods.iter().map(|period| {
            let change = period.change(figure.value).text();
            let text = (figure.text)(&period.figures);
            let text = if change.is_empty() { text } else { format!("{text} ({change})") };
            FigureCell::link(text, figures.period_link(period, figure.path, figure.parameters))
        });
        std::iter::once(FigureCell::plain(figure.name)).chain(cells).collect()
    });
    figure_table(out, &columns, rows, None);
    out.lit("</section>\n");
}

fn range_name(name: &str) -> &'static str {
    RANGES.iter().find(|(known, _)| *known == name).map_or("Selected", |(_, name)| name)
}

fn section(out: &mut Markup, name: &'static str, more: &str) {
    out.lit("<section class=\"figure\"><h2>")
        .lit(name)
        .lit("</h2><p class=\"quiet\">")
        .text(more)
        .lit("</p>\n");
}
