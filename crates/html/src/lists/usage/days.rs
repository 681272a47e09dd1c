//! Usage per day: columns by model, a calendar, and the cache share.

use std::fmt::Write;

use jiff::ToSpan;
use jiff::civil::Date;
use threadline_view::{DayUsage, Money, UsageBoard, UsageTotals, humanize, short_model};

use super::{UsagePage, section};
use crate::lists::chart::{self, CalendarDay, ChartColumn, ColumnChart, SERIES};
use crate::lists::model_colors::ModelColors;
use crate::lists::usage_table::{UsageTableRow, cache_share, dollars, figures, percent, table};
use crate::markup::Markup;
use crate::text_format;

/// The maximum number of days in a chart. The table lists all of them.
pub(super) const MAX_CHART_DAYS: usize = 92;

/// Returns the last days up to the last one with calls, including days without calls, at most `most`.
fn recent_days(board: &UsageBoard, most: usize) -> Vec<(Date, Option<&DayUsage>)> {
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

/// Returns the label below a column: every day if there are few, else Mondays, else the 1st and 15th of a
/// month.
fn label(day: Date, count: usize) -> Option<String> {
    match count {
        0..=14 => Some(day.strftime("%-d %b").to_string()),
        15..=45 => {
            (day.weekday() == jiff::civil::Weekday::Monday).then(|| day.strftime("%-d %b").to_string())
        }
        _ => (day.day() == 1 || day.day() == 15).then(|| day.strftime("%-d %b").to_string()),
    }
}

pub(super) fn by_day(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    let by_cost = board.total.cost > Money::ZERO;
    let value =
        |totals: &UsageTotals| if by_cost { totals.cost.to_f64() } else { totals.tokens.total() as f64 };
    section(out, "By day and model", if by_cost { "dollars per day" } else { "tokens per day" });
    let days = recent_days(board, MAX_CHART_DAYS);
    let colors = ModelColors(page.choices.1);
    legend(out, page, &days, &value);
    let columns: Vec<ChartColumn> = days
        .iter()
        .map(|(day, used)| {
            let date = day.to_string();
            let mut title = day.strftime("%A, %-d %B %Y").to_string();
            let mut parts = Vec::new();
            if let Some(used) = used {
                let _ = write!(title, ": {}", figures(&used.totals));
                for (model, totals) in &used.models {
                    let name = board.models.get(*model).map_or("", |(name, _)| name);
                    parts.push((colors.series(name), value(totals)));
                    let _ = write!(title, "\n{}: {}", short_model(name), totals.short_cost());
                }
            }
            let href = used.map(|_| page.sessions_link(&[("since", &date), ("until", &date)]));
            ChartColumn { label: label(*day, days.len()), href, title, parts }
        })
        .collect();
    let scale = |value: f64| if by_cost { dollars(value) } else { humanize::short_count(value as u64) };
    let name = if by_cost { "Cost per day, stacked by model" } else { "Tokens per day, stacked by model" };
    chart::columns(out, &ColumnChart { name, columns: &columns, scale: &scale, top: None });
    partial_chart_note(out, board.days.len(), &days);
    table(
        out,
        ("day", None),
        board.days.iter().rev().map(|day| UsageTableRow {
            name: day.day.to_string(),
            href: page.sessions_link(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            explain_href: page
                .explain_link(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            totals: &day.totals,
            extra: None,
        }),
        &page.board.total,
        board.days.len(),
    );
    out.lit("<h3>By model</h3>\n");
    table(
        out,
        ("model", None),
        board.models.iter().map(|(model, totals)| UsageTableRow {
            name: short_model(model).to_owned(),
            href: page.sessions_link(&[("model", model)]),
            explain_href: page.explain_link(&[("model", model)]),
            totals,
            extra: None,
        }),
        &page.board.total,
        0,
    );
    out.lit("</section>\n");
}

fn partial_chart_note(out: &mut Markup, all: usize, days: &[(Date, Option<&DayUsage>)]) {
    let drawn = days.iter().filter(|(_, used)| used.is_some()).count();
    if let (true, Some((first, _)), Some((last, _))) = (drawn < all, days.first(), days.last()) {
        let name = |day: &Date| day.strftime("%-d %B %Y").to_string();
        out.lit("<p class=\"note\">Chart: ").text(&name(first)).lit(" to ").text(&name(last));
        out.lit(". Table: all ");
        out.text(&humanize::count(all as u64)).lit(" active days</p>");
    }
}

/// Returns the sum of the given days for each model of [`UsageBoard::models`].
fn sums_by_model(board: &UsageBoard, days: &[(Date, Option<&DayUsage>)]) -> Vec<UsageTotals> {
    let mut sums = vec![UsageTotals::default(); board.models.len()];
    for (model, totals) in days.iter().filter_map(|(_, used)| *used).flat_map(|used| &used.models) {
        sums[*model] += totals;
    }
    sums
}

/// Adds the models with their colours and their sums over the days of the chart.
fn legend(
    out: &mut Markup,
    page: &UsagePage<'_>,
    days: &[(Date, Option<&DayUsage>)],
    value: &dyn Fn(&UsageTotals) -> f64,
) {
    let models = &page.board.models;
    let sums = sums_by_model(page.board, days);
    let day = |day: Option<&(Date, Option<&DayUsage>)>| day.map(|(day, _)| day.to_string());
    let (since, until) = (day(days.first()).unwrap_or_default(), day(days.last()).unwrap_or_default());
    let colors = ModelColors(page.choices.1);
    let drawn = models.iter().zip(&sums).filter(|(_, totals)| value(totals) > 0.0);
    let (mut others, mut own): (Vec<_>, Vec<_>) = drawn.partition(|((model, _), _)| colors.is_shared(model));
    // The name of a single one is as short as a count.
    if others.len() == 1 {
        own.append(&mut others);
    }
    out.lit("<ul class=\"legend\">");
    for ((model, _), totals) in own {
        let parameters = [("model", &**model), ("since", &*since), ("until", &*until)];
        key(out, SERIES[colors.series(model)]);
        out.lit("<a href=\"").text(&page.sessions_link(&parameters)).lit("\">");
        out.text(short_model(model))
            .lit("</a> <a class=\"num\" href=\"")
            .text(&page.explain_link(&parameters))
            .lit("\">");
        out.text(&totals.short_cost()).lit("</a></li>");
    }
    if !others.is_empty() {
        let mut rest = UsageTotals::default();
        others.iter().for_each(|(_, totals)| rest += totals);
        let names: Vec<&str> = others.iter().map(|((model, _), _)| short_model(model)).collect();
        key(out, SERIES[SERIES.len() - 1]);
        out.lit("<span title=\"").text(&names.join(", ")).lit("\">");
        out.text(&humanize::plural(names.len() as u64, "other"));
        out.lit("</span> <span class=\"num\">").text(&rest.short_cost()).lit("</span></li>");
    }
    out.lit("</ul>\n");
}

/// Begins a legend entry with its colour swatch.
fn key(out: &mut Markup, colour: &'static str) {
    out.lit("<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"").lit(colour);
    out.lit("\" width=\"10\" height=\"10\"/></svg>");
}

pub(super) fn calendar(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    let Some(last) = board.days.last() else { return };
    let today = text_format::date(page.now, page.zone).unwrap_or(last.day).max(last.day);
    section(out, "Last year", "cost per day; darker is more");
    let weight = |totals: &UsageTotals| totals.cost.to_f64().max(totals.tokens.total() as f64 / 1e9);
    let most = board.days.iter().map(|day| weight(&day.totals)).fold(f64::MIN_POSITIVE, f64::max);
    let cells: Vec<CalendarDay> = board
        .days
        .iter()
        .map(|day| {
            let date = day.day.to_string();
            CalendarDay {
                day: day.day,
                href: page.sessions_link(&[("since", &date), ("until", &date)]),
                title: format!("{}: {}", day.day.strftime("%A, %-d %B %Y"), figures(&day.totals)),
                share: weight(&day.totals) / most,
            }
        })
        .collect();
    chart::calendar(out, "Cost per day of the last year", &cells, today);
    let mut months: Vec<(String, UsageTotals)> = Vec::new();
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
        months.iter().rev().map(|(month, totals)| UsageTableRow {
            name: month.clone(),
            href: page.sessions_link(&[("since", month), ("until", month)]),
            explain_href: page.explain_link(&[("since", month), ("until", month)]),
            totals,
            extra: None,
        }),
        &board.total,
        months.len(),
    );
    out.lit("</section>\n");
}

pub(super) fn cache(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(out, "Cache", "input tokens per day: cache read, cache write, uncached");
    out.lit("<ul class=\"legend\">");
    for (class, name) in [("c0", "cache read"), ("c2", "cache write"), ("c1", "uncached")] {
        key(out, class);
        out.lit(name).lit("</li>");
    }
    out.lit("</ul>\n");
    let days = recent_days(board, MAX_CHART_DAYS);
    let columns: Vec<ChartColumn> = days
        .iter()
        .map(|(day, used)| {
            let date = day.to_string();
            let all = used.map(|used| used.context()).unwrap_or_default();
            let sum = all.iter().sum::<u64>().max(1) as f64;
            let [read, written, neither] = all.map(|tokens| tokens as f64 / sum * 100.0);
            let title = format!(
                "{}: {read:.0} % cache read, {written:.0} % cache write, {neither:.0} % uncached",
                day.strftime("%A, %-d %B %Y")
            );
            let href = used.map(|_| page.explain_link(&[("since", &date), ("until", &date)]));
            ChartColumn {
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
        &ColumnChart { name: "Cache share per day", columns: &columns, scale: &scale, top: Some(100.0) },
    );
    table(
        out,
        ("day", Some("cache hit rate")),
        board.days.iter().rev().map(|day| UsageTableRow {
            name: day.day.to_string(),
            href: page.sessions_link(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            explain_href: page
                .explain_link(&[("since", &day.day.to_string()), ("until", &day.day.to_string())]),
            totals: &day.totals,
            extra: Some(percent(cache_share(&day.totals))),
        }),
        &board.total,
        board.days.len(),
    );
    out.lit("</section>\n");
}
