//! The records behind a figure of the overview: calls, prompts, compactions, periods or sessions.

use std::collections::{BTreeSet, HashMap};

use jiff::tz::TimeZone;
use threadline_view::{UsageTotals, humanize, short_path};

use super::figure_table::{FigureCell, figure_table};
use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The data of the page.
#[derive(Clone, Copy, Debug)]
pub struct RecordsPage<'a> {
    /// The query parameters of the page.
    pub parameters: &'a [(String, String)],
    /// The name of one record, such as `prompt`.
    pub noun: &'static str,
    /// The records of the current page, in order.
    pub records: &'a [RecordLine],
    /// The number of records on all pages.
    pub total: usize,
    /// The page number, from 0, and the number of pages.
    pub page: (usize, usize),
    /// Whether logs are being read that the records do not include.
    pub is_reading: bool,
    /// The sequence number of the last server event.
    pub event_no: u64,
    /// The time zone of the times shown.
    pub zone: &'a TimeZone,
    /// The user's home folder, which is written as `~` in paths.
    pub home: Option<&'a str>,
}

/// A record.
#[derive(Clone, Debug, Default)]
pub struct RecordLine {
    /// When it was written.
    pub at: Option<i64>,
    /// The id and the title of the session.
    pub session: (String, String),
    /// The directory of the project.
    pub project: String,
    /// The id of the sub-agent, if its log contains it.
    pub agent: Option<String>,
    /// The number of its line, if it has one.
    pub line: Option<u64>,
    /// The tool of a call.
    pub tool: Option<String>,
    /// The command group or the path of a call.
    pub detail: Option<String>,
    /// The time until the result, in milliseconds.
    pub duration: Option<i64>,
    /// The outcome of a call.
    pub outcome: Option<&'static str>,
    /// The state of a period.
    pub state: Option<&'static str>,
    /// The cost of sub-agents.
    pub cost: Option<UsageTotals>,
    /// The title of a prompt.
    pub prompt: Option<String>,
}

impl RecordLine {
    /// Returns the link to the line in its session.
    fn href(&self) -> String {
        let mut href = link::session(&self.session.0);
        let Some(line) = self.line else { return href };
        href.push('#');
        if let Some(agent) = &self.agent {
            href.push_str("a-");
            href.extend(link::encode(agent));
            href.push('-');
        }
        href.push_str(&format!("m{line}"));
        href
    }
}

/// Renders the main content and the footer of the page.
pub fn records(page: &RecordsPage<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"usage explain records\" data-news=\"")
        .num(page.event_no);
    out.lit("\">\n<header class=\"opening\"><h1>Records</h1><p class=\"facts\">");
    for (key, value) in page.parameters.iter().filter(|(key, _)| !["page", "kind"].contains(&&**key)) {
        out.text(key).lit(" <b>").text(&shown_value(key, value)).lit("</b> <span>·</span> ");
    }
    out.lit("<span id=\"count\">").text(&humanize::plural(page.total as u64, page.noun)).lit("</span></p>");
    out.lit("<p class=\"facts\"><a href=\"/\">Overview</a></p>");
    if page.is_reading {
        out.lit("<p class=\"quiet indexing\">Reading logs that have changed …</p>");
    }
    out.lit("</header>\n");
    if page.records.is_empty() {
        out.lit("<div class=\"empty\"><p>No records match these filters</p></div>\n");
    } else {
        let columns = Columns::of(page.records);
        let projects: BTreeSet<&str> = page.records.iter().map(|record| &*record.project).collect();
        let names = link::project_names(projects.into_iter());
        let rows = page.records.iter().map(|record| row(page, record, columns, &names));
        figure_table(&mut out, &columns.names(), rows, None);
    }
    pages(&mut out, page);
    out.lit("</main>\n");
    foot(&mut out, &page_link(page, "/records.json", None), None);
    out
}

fn shown_value(key: &str, value: &str) -> String {
    const WEEKDAYS: [&str; 7] =
        ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
    match (key, value.parse::<usize>()) {
        ("weekday", Ok(day)) => WEEKDAYS.get(day).map_or(value, |name| name).to_owned(),
        ("failed" | "agents", _) => "yes".to_owned(),
        ("sort", _) => format!("{value} first"),
        _ => value.to_owned(),
    }
}

/// The columns that depend on the kind of the records.
#[derive(Clone, Copy)]
struct Columns {
    prompts: bool,
    tools: bool,
    periods: bool,
    costs: bool,
}

impl Columns {
    fn of(records: &[RecordLine]) -> Self {
        Self {
            prompts: records.iter().any(|record| record.prompt.is_some()),
            tools: records.iter().any(|record| record.tool.is_some()),
            periods: records.iter().any(|record| record.state.is_some()),
            costs: records.iter().any(|record| record.cost.is_some()),
        }
    }

    fn names(self) -> Vec<(&'static str, bool)> {
        let mut names = vec![("time", false)];
        names.extend(self.prompts.then_some(("prompt", false)));
        names.push(("session", false));
        if self.tools {
            names.extend([("tool", false), ("command or file", false)]);
            names.extend([("time taken", true), ("outcome", false)]);
        }
        if self.periods {
            names.extend([("state", false), ("length", true)]);
        }
        if self.costs {
            names.push(("cost of sub-agents", true));
        }
        names.push(("project", false));
        names
    }
}

fn row(
    page: &RecordsPage<'_>,
    record: &RecordLine,
    columns: Columns,
    names: &HashMap<&str, &str>,
) -> Vec<FigureCell> {
    let at = record.at.and_then(|at| text_format::format_time(at, page.zone, "%Y-%m-%d %H:%M:%S"));
    let at = at.map_or_else(|| "undated".to_owned(), |(shown, _)| shown);
    let at = FigureCell::link(at, record.href());
    let at = match record.line {
        Some(line) => at.titled(format!("line {line}")),
        None => at,
    };
    let title = text_format::excerpt(&record.session.1, 60);
    let mut cells = vec![at];
    if columns.prompts {
        let prompt = record.prompt.as_deref().unwrap_or_default();
        cells.push(FigureCell::link(text_format::excerpt(prompt, 120), record.href()));
    }
    cells.push(FigureCell::link(title, link::session(&record.session.0)));
    let duration = || FigureCell::plain(record.duration.map(humanize::duration).unwrap_or_default());
    if columns.tools {
        let detail = record.detail.as_deref().map(|detail| short_path(detail, page.home));
        cells.extend([
            FigureCell::plain(record.tool.clone().unwrap_or_default()),
            FigureCell::plain(detail.unwrap_or_default()),
            duration(),
            FigureCell::plain(record.outcome.unwrap_or_default()),
        ]);
    }
    if columns.periods {
        cells.extend([FigureCell::plain(record.state.unwrap_or_default()), duration()]);
    }
    if columns.costs {
        let cost = record.cost.as_ref().map(|totals| totals.short_cost()).unwrap_or_default();
        let usage = link::href("/usage", [("session", &*record.session.0)]);
        cells.push(FigureCell::link(cost, usage));
    }
    let project = link::href("/project", [("name", &*record.project)]);
    let name = text_format::excerpt(names[&*record.project], 40);
    cells.push(FigureCell::link(name, project).titled(short_path(&record.project, page.home)));
    cells
}

fn page_link(page: &RecordsPage<'_>, path: &str, at: Option<usize>) -> String {
    let number = at.map(|at| (at + 1).to_string());
    let kept = page.parameters.iter().filter(|(key, _)| key != "page").map(|(key, value)| (&**key, &**value));
    link::href(path, kept.chain(number.as_deref().map(|number| ("page", number))))
}

fn pages(out: &mut Markup, page: &RecordsPage<'_>) {
    let (at, pages) = page.page;
    if pages < 2 {
        return;
    }
    out.lit("<nav class=\"pages\" aria-label=\"Pages of records\">");
    if at > 0 {
        let href = page_link(page, "/records", Some(at - 1));
        out.lit("<a rel=\"prev\" href=\"").text(&href).lit("\">← Previous</a>");
    }
    out.lit("<span>Page ").num(at as u64 + 1).lit(" of ").num(pages as u64).lit("</span>");
    if at + 1 < pages {
        let href = page_link(page, "/records", Some(at + 1));
        out.lit("<a rel=\"next\" href=\"").text(&href).lit("\">Next →</a>");
    }
    out.lit("</nav>\n");
}
