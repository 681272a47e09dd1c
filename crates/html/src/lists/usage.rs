//! Usage: tokens and money as charts, each with its table below it, each figure with a way to its records.

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadline_view::{DayUse, Money, Totals, UsageBoard, Window, figure, short_model};

use super::chart::{self, Bar, Cell, Column, Columns, SERIES};
use super::foot::foot;
use super::link;
use super::numbers::{Row, cache_share, dollars, figures, percent, table};
use crate::markup::Markup;
use crate::words;

/// What the usage page shows.
#[derive(Clone, Copy, Debug)]
pub struct UsagePage<'a> {
    /// The sums.
    pub board: &'a UsageBoard,
    /// What was asked for: the parts of the page's link, such as `since`, `until`, `project` and `model`.
    pub asked: &'a [(String, String)],
    /// The projects and models that there are.
    pub choices: (&'a [String], &'a [String]),
    /// What a reader should know of the figures, in words.
    pub notes: &'a [String],
    /// How many logs are still to be read.
    pub unread: usize,
    /// How much the server had told when the page was made, so that it knows what it missed.
    pub news: u64,
    /// In milliseconds since 1970.
    pub now: i64,
    /// The zone that days begin in.
    pub zone: &'a TimeZone,
}

impl UsagePage<'_> {
    fn asked(&self, name: &str) -> Option<&str> {
        self.asked.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    /// A link that asks for the same and for `more` instead of what it had there.
    fn link(&self, path: &str, more: &[(&str, &str)]) -> String {
        let kept = self.asked.iter().map(|(key, value)| (&**key, &**value));
        let kept = kept.filter(|(key, _)| !more.iter().any(|(other, _)| other == key));
        link::href(path, kept.chain(more.iter().copied()).filter(|(_, value)| !value.is_empty()))
    }

    /// Where a figure is explained.
    fn why(&self, more: &[(&str, &str)]) -> String {
        self.link("/usage/explain", more)
    }

    /// The sessions behind a figure.
    fn sessions(&self, more: &[(&str, &str)]) -> String {
        self.link("/", more)
    }
}

/// What stands between the bar and the end of the usage page.
pub fn usage(page: &UsagePage<'_>) -> Markup {
    let mut out = Markup::new();
    let board = page.board;
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"usage\" data-news=\"")
        .num(page.news)
        .lit("\">\n<header class=\"opening\"><h1>Usage</h1>");
    chooser(&mut out, page);
    if board.total.calls == 0 {
        out.lit("</header><div class=\"nothing\"><p>No model was asked here.</p>");
        if page.unread > 0 {
            out.lit("<p class=\"quiet counting\">")
                .text(&figure::plural(page.unread as u64, "log"))
                .lit(" still to be read.</p>");
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

/// The stretches of time that one click chooses.
const STRETCHES: &[(&str, &str)] =
    &[("", "all"), ("today", "today"), ("7d", "7 days"), ("30d", "30 days"), ("90d", "90 days")];

fn chooser(out: &mut Markup, page: &UsagePage<'_>) {
    out.lit("<form class=\"choose-usage\" id=\"chooser\" action=\"/usage\"><p class=\"sorter\">");
    for (since, name) in STRETCHES {
        let chosen = page.asked("since").unwrap_or_default() == *since && page.asked("until").is_none();
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
            out.lit(if page.asked(name) == Some(choice) { "\" selected>" } else { "\">" });
            out.text(choice).lit("</option>");
        }
        out.lit("</select></label>");
    }
    for (label, name) in [("From", "since"), ("To", "until")] {
        let value = page.asked(name).unwrap_or_default();
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
        "{} in, {} out, {} read from the cache, {} written to it",
        figure::count(tokens.input),
        figure::count(tokens.output),
        figure::count(tokens.cache_read),
        figure::count(tokens.cache_write())
    );
    let days = page.board.days.len() as u64;
    let a_day =
        (days > 0).then(|| total.cost.to_f64() / days as f64).and_then(Money::from_f64).unwrap_or_default();
    out.lit("<dl class=\"sums\">");
    for (name, shown, title) in [
        ("cost", words::cost(total), format!("${}", total.cost)),
        ("a day with calls", words::money(a_day), format!("over {}", figure::plural(days, "day"))),
        ("calls of models", figure::count(total.calls), "each counted once".to_owned()),
        ("tokens", figure::short_count(tokens.total()), exact),
        ("from the cache", percent(cache_share(total)), "the share of what models were given".to_owned()),
    ] {
        out.lit("<div><dt>")
            .lit(name)
            .lit("</dt><dd><a href=\"")
            .text(&page.why(&[]))
            .lit("\" title=\"")
            .text(&title);
        out.lit("\">").text(&shown).lit("</a></dd></div>");
    }
    out.lit("</dl>\n");
    if page.unread > 0 {
        out.lit("<p class=\"counting\">")
            .text(&figure::plural(page.unread as u64, "log"))
            .lit(" still to be read</p>");
    }
}

/// So many days are drawn; the table has all of them.
const DRAWN: usize = 92;

/// The days up to the last one with calls, those without calls between them.
fn stretch(board: &UsageBoard, most: usize) -> Vec<(Date, Option<&DayUse>)> {
    let (Some(first), Some(last)) = (board.days.first(), board.days.last()) else { return Vec::new() };
    let start = last.day.saturating_sub((most as i64 - 1).days()).max(first.day);
    let mut known = board.days.iter().skip_while(|day| day.day < start).peekable();
    let mut days = Vec::new();
    let mut day = start;
    while day <= last.day {
        days.push((day, known.next_if(|use_of| use_of.day == day)));
        let Ok(next) = day.tomorrow() else { break };
        day = next;
    }
    days
}

/// The words below a column: days when there are few, else the first day of a month or week.
fn label(day: Date, count: usize) -> Option<String> {
    match count {
        0..=14 => Some(day.strftime("%-d %b").to_string()),
        15..=45 => {
            (day.weekday() == jiff::civil::Weekday::Monday).then(|| day.strftime("%-d %b").to_string())
        }
        _ => (day.day() == 1 || day.day() == 15).then(|| day.strftime("%-d %b").to_string()),
    }
}

fn by_day(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    let by_cost = board.total.cost > Money::ZERO;
    let value = |totals: &Totals| if by_cost { totals.cost.to_f64() } else { totals.tokens.total() as f64 };
    section(out, "By day and model", if by_cost { "dollars a day" } else { "tokens a day" });
    legend(out, page, &value);
    let days = stretch(board, DRAWN);
    let columns: Vec<Column> = days
        .iter()
        .map(|(day, used)| {
            let date = day.to_string();
            let mut title = day.strftime("%A, %-d %B %Y").to_string();
            let mut parts = Vec::new();
            if let Some(used) = used {
                let _ = write!(title, ": {}", figures(&used.totals));
                for (model, totals) in &used.models {
                    parts.push(((*model).min(SERIES.len() - 1), value(totals)));
                    let name = board.models.get(*model).map_or("", |(name, _)| name);
                    let _ = write!(title, "\n{}: {}", short_model(name), words::cost(totals));
                }
            }
            let href = used.map(|_| page.sessions(&[("since", &date), ("until", &date)]));
            Column { label: label(*day, days.len()), href, title, parts }
        })
        .collect();
    let scale = |value: f64| if by_cost { dollars(value) } else { figure::short_count(value as u64) };
    let name = "Cost a day, stacked by model";
    chart::columns(out, &Columns { name, columns: &columns, scale: &scale, top: None });
    told_less(out, board.days.len(), &days);
    table(
        out,
        ("day", None),
        board.days.iter().rev().map(|day| Row {
            name: day.day.to_string(),
            href: page.sessions(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            why: page.why(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            totals: &day.totals,
            more: None,
        }),
        &page.board.total,
        board.days.len(),
    );
    out.lit("<h3>By model</h3>\n");
    table(
        out,
        ("model", None),
        board.models.iter().map(|(model, totals)| Row {
            name: model.clone(),
            href: page.sessions(&[("model", model)]),
            why: page.why(&[("model", model)]),
            totals,
            more: None,
        }),
        &page.board.total,
        0,
    );
    out.lit("</section>\n");
}

fn told_less(out: &mut Markup, all: usize, days: &[(Date, Option<&DayUse>)]) {
    let drawn = days.iter().filter(|(_, used)| used.is_some()).count();
    if drawn < all {
        out.lit("<p class=\"note\">Drawn are the last ").num(DRAWN as u64).lit(" days; the table has all ");
        out.text(&figure::count(all as u64)).lit(" days with calls.</p>");
    }
}

fn legend(out: &mut Markup, page: &UsagePage<'_>, value: &dyn Fn(&Totals) -> f64) {
    let models = &page.board.models;
    // Where there are more models than colours, the last colour is that of all the rest.
    let own = if models.len() > SERIES.len() { SERIES.len() - 1 } else { models.len() };
    out.lit("<ul class=\"legend\">");
    for (colour, (model, totals)) in SERIES.iter().zip(&models[..own]) {
        if value(totals) == 0.0 {
            continue;
        }
        key(out, colour);
        out.lit("<a href=\"").text(&page.sessions(&[("model", model)])).lit("\">");
        out.text(short_model(model))
            .lit("</a> <a class=\"num\" href=\"")
            .text(&page.why(&[("model", model)]))
            .lit("\">");
        out.text(&words::cost(totals)).lit("</a></li>");
    }
    let mut rest = Totals::default();
    models[own..].iter().for_each(|(_, totals)| rest += totals);
    if value(&rest) > 0.0 {
        key(out, SERIES[own]);
        let names: Vec<&str> = models[own..].iter().map(|(model, _)| short_model(model)).collect();
        out.lit("<span title=\"")
            .text(&names.join(", "))
            .lit("\">")
            .num(names.len() as u64)
            .lit(" others</span> ");
        out.lit("<span class=\"num\">").text(&words::cost(&rest)).lit("</span></li>");
    }
    out.lit("</ul>\n");
}

/// The beginning of an entry of a legend: the colour that it explains.
fn key(out: &mut Markup, colour: &'static str) {
    out.lit("<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"").lit(colour);
    out.lit("\" width=\"10\" height=\"10\"/></svg>");
}

fn calendar(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    let Some(last) = board.days.last() else { return };
    let today = words::date(page.now, page.zone).unwrap_or(last.day).max(last.day);
    section(out, "A year", "how much a day cost; darker is more");
    let weight = |totals: &Totals| totals.cost.to_f64().max(totals.tokens.total() as f64 / 1e9);
    let most = board.days.iter().map(|day| weight(&day.totals)).fold(f64::MIN_POSITIVE, f64::max);
    let cells: Vec<Cell> = board
        .days
        .iter()
        .map(|day| {
            let date = day.day.to_string();
            Cell {
                day: day.day,
                href: page.sessions(&[("since", &date), ("until", &date)]),
                title: format!("{}: {}", day.day.strftime("%A, %-d %B %Y"), figures(&day.totals)),
                share: weight(&day.totals) / most,
            }
        })
        .collect();
    chart::calendar(out, "Cost of every day of a year", &cells, today);
    let mut months: Vec<(String, Totals)> = Vec::new();
    for day in &board.days {
        let month = day.day.strftime("%Y-%m").to_string();
        match months.last_mut().filter(|(last, _)| *last == month) {
            Some((_, totals)) => *totals += &day.totals,
            None => months.push((month, day.totals.clone())),
        }
    }
    table(
        out,
        ("month", None),
        months.iter().rev().map(|(month, totals)| Row {
            name: month.clone(),
            href: page.sessions(&[("since", month), ("until", month)]),
            why: page.why(&[("since", month), ("until", month)]),
            totals,
            more: None,
        }),
        &board.total,
        months.len(),
    );
    out.lit("</section>\n");
}

/// So many projects are drawn.
const BARS: usize = 14;

fn projects(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(out, "By project", "cost, the dearest first");
    let by_cost = board.total.cost > Money::ZERO;
    let names = link::project_names(board.projects.iter().map(|(project, _)| &**project));
    let bars: Vec<Bar> = board
        .projects
        .iter()
        .take(BARS)
        .map(|(project, totals)| Bar {
            label: words::first_words(names[&**project], 24),
            href: Some(page.sessions(&[("project", project)])),
            title: format!("{project}: {}", figures(totals)),
            value: if by_cost { totals.cost.to_f64() } else { totals.tokens.total() as f64 },
            shown: if by_cost { words::cost(totals) } else { figure::short_count(totals.tokens.total()) },
        })
        .collect();
    chart::bars(out, "Cost by project", &bars);
    table(
        out,
        ("project", None),
        board.projects.iter().map(|(project, totals)| Row {
            name: project.clone(),
            href: page.sessions(&[("project", project)]),
            why: page.why(&[("project", project)]),
            totals,
            more: None,
        }),
        &board.total,
        board.projects.len(),
    );
    out.lit("</section>\n");
}

fn cache(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(out, "Cache", "what models were given, a day: read from the cache, written to it, and neither");
    out.lit("<ul class=\"legend\">");
    for (class, name) in [("c0", "read from the cache"), ("c2", "written to it"), ("c1", "neither")] {
        key(out, class);
        out.lit(name).lit("</li>");
    }
    out.lit("</ul>\n");
    let days = stretch(board, DRAWN);
    let columns: Vec<Column> = days
        .iter()
        .map(|(day, used)| {
            let date = day.to_string();
            let all = used.map(|used| used.context()).unwrap_or_default();
            let sum = all.iter().sum::<u64>().max(1) as f64;
            let [read, written, neither] = all.map(|tokens| tokens as f64 / sum * 100.0);
            let title = format!(
                "{}: {read:.0} % read from the cache, {written:.0} % written to it, {neither:.0} % neither",
                day.strftime("%A, %-d %B %Y")
            );
            let href = used.map(|_| page.why(&[("since", &date), ("until", &date)]));
            Column {
                label: label(*day, days.len()),
                href,
                title,
                parts: vec![(0, read), (2, written), (1, neither)],
            }
        })
        .collect();
    let scale = |value: f64| format!("{value:.0} %");
    chart::columns(
        out,
        &Columns { name: "Share of the cache a day", columns: &columns, scale: &scale, top: Some(100.0) },
    );
    table(
        out,
        ("day", Some("from the cache")),
        board.days.iter().rev().map(|day| Row {
            name: day.day.to_string(),
            href: page.sessions(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            why: page.why(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            totals: &day.totals,
            more: Some(percent(cache_share(&day.totals))),
        }),
        &board.total,
        board.days.len(),
    );
    out.lit("</section>\n");
}

fn windows(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(
        out,
        "Five-hour windows",
        "of a subscription; an end that Claude Code named is exact, all others are estimates",
    );
    let start = board.windows.len().saturating_sub(DRAWN);
    let drawn = &board.windows[start..];
    let columns: Vec<Column> = drawn
        .iter()
        .enumerate()
        .map(|(n, window)| {
            let (from, to) = span(window, page.zone);
            let every = (drawn.len() / 8).max(1);
            let label = (n % every == every / 2)
                .then(|| words::moment(window.start, page.zone, "%-d %b").unwrap_or_default().0);
            Column {
                label,
                href: Some(window_why(page, window)),
                title: format!("{from} to {to}: {}{}", figures(&window.totals), rate(window, page.now)),
                parts: vec![(if window.is_active(page.now) { 1 } else { 0 }, window.totals.cost.to_f64())],
            }
        })
        .collect();
    chart::columns(
        out,
        &Columns { name: "Cost of five-hour windows", columns: &columns, scale: &dollars, top: None },
    );
    let names: Vec<(String, &Window)> = board
        .windows
        .iter()
        .rev()
        .map(|window| {
            let (from, to) = span(window, page.zone);
            let kind = if window.stated { "" } else { " (estimate)" };
            let open = if window.is_active(page.now) { ", open" } else { "" };
            (format!("{from} – {to}{kind}{open}"), window)
        })
        .collect();
    table(
        out,
        ("window", Some("rate")),
        names.iter().map(|(name, window)| Row {
            name: name.clone(),
            href: window_why(page, window),
            why: window_why(page, window),
            totals: &window.totals,
            more: Some(
                window
                    .cost_per_hour()
                    .map(|cost| format!("{} an hour", words::money(cost)))
                    .unwrap_or_default(),
            ),
        }),
        &board.total,
        names.len(),
    );
    out.lit("</section>\n");
}

fn rate(window: &Window, now: i64) -> String {
    match window.projected(now).filter(|_| window.is_active(now)) {
        Some(cost) => format!("; open, {} at this rate", words::money(cost)),
        None => String::new(),
    }
}

fn span(window: &Window, zone: &TimeZone) -> (String, String) {
    let shown = |at, format| words::moment(at, zone, format).unwrap_or_default().0;
    (shown(window.start, "%Y-%m-%d %H:%M"), shown(window.end, "%H:%M"))
}

fn window_why(page: &UsagePage<'_>, window: &Window) -> String {
    let at = |millis| jiff::Timestamp::from_millisecond(millis).map(|at| at.to_string()).unwrap_or_default();
    page.why(&[("since", &at(window.first_at)), ("until", &at(window.last_at.saturating_add(1)))])
}

fn section(out: &mut Markup, name: &'static str, more: &'static str) {
    out.lit("<section class=\"figure\"><h2>")
        .lit(name)
        .lit("</h2><p class=\"quiet\">")
        .lit(more)
        .lit("</p>\n");
}

fn named(all: &[(String, Totals)]) -> Vec<(String, &Totals)> {
    all.iter().map(|(name, totals)| (words::markdown(name), totals)).collect()
}

/// The same as Markdown: the tables.
pub fn usage_markdown(page: &UsagePage<'_>) -> String {
    let board = page.board;
    let mut out = "# Usage\n".to_owned();
    let mut table = |name: &str, rows: Vec<(String, &Totals)>| {
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
                words::cost(totals)
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
        let _ = write!(out, "\n{}\n", words::markdown(note));
    }
    out
}
