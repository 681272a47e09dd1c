//! Usage: tokens and cost as charts. Each chart has a table below it, and each figure links to its records.

mod days;
mod window;

use std::fmt::Write;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_view::{Money, UsageBoard, UsageTotals, humanize};

use self::days::{by_day, cache, calendar};
use self::window::{span, windows};
use super::chart::{self, ChartBar};
use super::footer::foot;
use super::link;
use super::usage_table::{UsageTableRow, cache_share, figures, percent, table};
use crate::markup::Markup;
use crate::text_format;

/// The data of the usage page.
#[derive(Clone, Copy, Debug)]
pub struct UsagePage<'a> {
    /// The totals.
    pub board: &'a UsageBoard,
    /// The query parameters of the page, such as `since`, `until`, `project` and `model`.
    pub parameters: &'a [(String, String)],
    /// The projects and models to choose from: all of them, highest cost first. The models determine the
    /// colours.
    pub choices: (&'a [String], &'a [String]),
    /// Notes about the figures.
    pub notes: &'a [String],
    /// The number of logs that are not yet read.
    pub unread: usize,
    /// The sequence number of the last server event, so that the page can detect events it missed.
    pub event_no: u64,
    /// The current time in milliseconds since 1970.
    pub now: i64,
    /// The time zone of the days.
    pub zone: &'a TimeZone,
}

impl UsagePage<'_> {
    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// Returns a link with the same parameters, in which `extra` replaces those of the same name.
    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let kept = self.parameters.iter().map(|(key, value)| (&**key, &**value));
        let kept = kept.filter(|(key, _)| !more.iter().any(|(other, _)| other == key));
        link::href(path, kept.chain(more.iter().copied()).filter(|(_, value)| !value.is_empty()))
    }

    /// Returns the link to the records behind a figure.
    fn explain_link(&self, more: &[(&str, &str)]) -> String {
        self.link("/usage/explain", more)
    }

    /// Returns the link to the sessions behind a figure.
    fn sessions_link(&self, more: &[(&str, &str)]) -> String {
        self.link("/sessions", more)
    }
}

/// Renders the main content and the footer of the usage page.
pub fn usage(page: &UsagePage<'_>) -> Markup {
    let mut out = Markup::new();
    let board = page.board;
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"usage\" data-news=\"")
        .num(page.event_no)
        .lit("\">\n<header class=\"opening\"><h1>Usage</h1>");
    filter_form(&mut out, page);
    if board.total.calls == 0 {
        out.lit("</header><div class=\"empty\"><p>No model calls</p>");
        if page.unread > 0 {
            out.lit("<p class=\"quiet indexing\">")
                .text(&humanize::plural(page.unread as u64, "log"))
                .lit(" not indexed yet</p>");
        }
        out.lit("</div>");
    } else {
        sums(&mut out, page);
        out.lit("</header>\n");
        by_day(&mut out, page);
        calendar(&mut out, page);
        projects(&mut out, page);
        cache(&mut out, page);
        windows(&mut out, page);
    }
    for note in page.notes {
        out.lit("<p class=\"note\">").text(note).lit("</p>\n");
    }
    out.lit("</main>\n");
    foot(&mut out, &page.link("/usage.json", &[]), Some(&page.link("/usage.md", &[])));
    out
}

/// The preset time ranges.
const TIME_RANGES: &[(&str, &str)] =
    &[("", "all"), ("today", "today"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days")];

fn filter_form(out: &mut Markup, page: &UsagePage<'_>) {
    out.lit("<form class=\"usage-filters\" id=\"filters\" action=\"/usage\"><p class=\"sorter\">");
    for (since, name) in TIME_RANGES {
        let chosen =
            page.parameter("since").unwrap_or_default() == *since && page.parameter("until").is_none();
        out.lit("<a href=\"").text(&page.link("/usage", &[("since", since), ("until", "")])).lit("\"");
        out.lit(if chosen { " aria-current=\"true\">" } else { ">" }).text(name).lit("</a> ");
    }
    out.lit("</p>");
    for (label, name, choices) in [("Project", "project", page.choices.0), ("Model", "model", page.choices.1)]
    {
        out.lit("<label class=\"field\"><span>")
            .lit(label)
            .lit("</span><select name=\"")
            .lit(name)
            .lit("\"><option value=\"\">all</option>");
        for choice in choices {
            out.lit("<option value=\"").text(choice);
            out.lit(if page.parameter(name) == Some(choice) { "\" selected>" } else { "\">" });
            out.text(choice).lit("</option>");
        }
        out.lit("</select></label>");
    }
    for (label, name) in [("From", "since"), ("To", "until")] {
        let value = page.parameter(name).unwrap_or_default();
        let plain = value.is_empty() || value.parse::<Date>().is_ok();
        out.lit("<label class=\"field\"><span>").lit(label).lit("</span><input type=\"");
        out.lit(if plain { "date" } else { "text" })
            .lit("\" name=\"")
            .lit(name)
            .lit("\" value=\"")
            .text(value)
            .lit("\"></label>");
    }
    out.lit("<button class=\"apply\">Apply</button></form>\n");
}

fn sums(out: &mut Markup, page: &UsagePage<'_>) {
    let total = &page.board.total;
    let tokens = total.tokens;
    let exact = format!(
        "{} input, {} output, {} cache read, {} cache write",
        humanize::count(tokens.input),
        humanize::count(tokens.output),
        humanize::count(tokens.cache_read),
        humanize::count(tokens.cache_write())
    );
    let days = page.board.days.len() as u64;
    let a_day =
        (days > 0).then(|| total.cost.to_f64() / days as f64).and_then(Money::from_f64).unwrap_or_default();
    out.lit("<dl class=\"totals\">");
    for (name, shown, title) in [
        ("Cost", total.short_cost(), format!("${}", total.cost)),
        (
            "Average per active day",
            format!("{}{}", if total.is_lower_bound() { "≥ " } else { "" }, text_format::money(a_day)),
            format!("over {}", humanize::plural(days, "active day")),
        ),
        ("Model calls", humanize::count(total.calls), "each counted once".to_owned()),
        ("Tokens", humanize::short_count(tokens.total()), exact),
        (
            "Cache hit rate",
            percent(cache_share(total)),
            "share of input tokens read from the cache".to_owned(),
        ),
    ] {
        out.lit("<div><dt>")
            .lit(name)
            .lit("</dt><dd><a href=\"")
            .text(&page.explain_link(&[]))
            .lit("\" title=\"")
            .text(&title);
        out.lit("\">").text(&shown).lit("</a></dd></div>");
    }
    out.lit("</dl>\n");
    if page.unread > 0 {
        out.lit("<p class=\"indexing\">")
            .text(&humanize::plural(page.unread as u64, "log"))
            .lit(" not indexed yet</p>");
    }
}

fn projects(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(out, "By project", "cost, highest first");
    let by_cost = board.total.cost > Money::ZERO;
    let names = link::project_names(board.projects.iter().map(|(project, _)| &**project));
    let bars: Vec<ChartBar> = board
        .projects
        .iter()
        .take(14)
        .map(|(project, totals)| ChartBar {
            label: text_format::excerpt(names[&**project], 24),
            href: Some(page.sessions_link(&[("project", project)])),
            title: format!("{project}: {}", figures(totals)),
            value: if by_cost { totals.cost.to_f64() } else { totals.tokens.total() as f64 },
            shown: if by_cost { totals.short_cost() } else { humanize::short_count(totals.tokens.total()) },
        })
        .collect();
    chart::bars(out, "Cost by project", &bars);
    table(
        out,
        ("project", None),
        board.projects.iter().map(|(project, totals)| UsageTableRow {
            name: project.clone(),
            href: page.sessions_link(&[("project", project)]),
            explain_href: page.explain_link(&[("project", project)]),
            totals,
            extra: None,
        }),
        &board.total,
        board.projects.len(),
    );
    out.lit("</section>\n");
}

fn section(out: &mut Markup, name: &str, more: &str) {
    out.lit("<section class=\"figure\"><h2>")
        .text(name)
        .lit("</h2><p class=\"quiet\">")
        .text(more)
        .lit("</p>\n");
}

fn named(all: &[(String, UsageTotals)]) -> Vec<(String, &UsageTotals)> {
    all.iter().map(|(name, totals)| (text_format::markdown(name), totals)).collect()
}

/// Renders the tables of the page as Markdown.
pub fn usage_markdown(page: &UsagePage<'_>) -> String {
    let board = page.board;
    let mut out = "# Usage\n".to_owned();
    let mut table = |name: &str, rows: Vec<(String, &UsageTotals)>| {
        let _ = write!(
            out,
            "\n## By {name}\n\n| {name} | calls | input | output | cache read | cache write | cost |\n|---|--:|--:|--:|--:|--:|--:|\n"
        );
        for (name, totals) in rows.into_iter().chain([("**total**".to_owned(), &board.total)]) {
            let tokens = totals.tokens;
            let _ = writeln!(
                out,
                "| {name} | {} | {} | {} | {} | {} | {} |",
                totals.calls,
                tokens.input,
                tokens.output,
                tokens.cache_read,
                tokens.cache_write(),
                totals.short_cost()
            );
        }
    };
    let mut days: Vec<_> = board.days.iter().map(|day| (day.day.to_string(), &day.totals)).collect();
    if board.undated.calls > 0 {
        days.push(("undated".to_owned(), &board.undated));
    }
    table("day", days);
    table("model", named(&board.models));
    table("project", named(&board.projects));
    let windows = board.windows.iter().map(|window| {
        let (from, to) = span(window, page.zone);
        (format!("{from} – {to}"), &window.totals)
    });
    table("five-hour window", windows.collect());
    for note in page.notes {
        let _ = write!(out, "\n{}\n", text_format::markdown(note));
    }
    out
}
