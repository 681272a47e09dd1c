//! Usage over time: columns by model, a calendar, and the cache share.

use std::collections::BTreeMap;
use std::fmt::Write;

use jiff::civil::{Date, Weekday};
use threadline_view::{BinSize, DayUsage, Money, UsageBoard, UsageTotals, humanize, short_model};

use super::{UsagePage, section};
use crate::lists::chart::{self, CalendarDay, ChartColumn, ColumnChart, SERIES};
use crate::lists::model_colors::ModelColors;
use crate::lists::usage_table::{UsageTableRow, cache_share, dollars, figures, percent, table};
use crate::markup::Markup;
use crate::text_format;

/// The maximum number of days for which a chart has a column per day. Longer periods have one per week or
/// month, as in the overview.
pub(super) const MAX_CHART_DAYS: usize = 92;

/// A column of a chart over time.
struct TimeBin<'a> {
    size: BinSize,
    /// Its first day.
    first: Date,
    /// Its days with calls.
    days: Vec<&'a DayUsage>,
}

impl TimeBin<'_> {
    /// Returns the last day.
    fn last(&self) -> Date {
        self.size.next_first_day(self.first).yesterday().unwrap_or(self.first)
    }

    /// Returns the values of `since` and `until` that select it.
    fn bounds(&self) -> [(&'static str, String); 2] {
        [("since", self.first.to_string()), ("until", self.last().to_string())]
    }

    fn name(&self) -> String {
        match self.size {
            BinSize::Hour | BinSize::Day => self.first.strftime("%A, %-d %B %Y").to_string(),
            BinSize::Week => {
                format!("{} to {}", self.first.strftime("%-d %B"), self.last().strftime("%-d %B %Y"))
            }
            BinSize::Month => self.first.strftime("%B %Y").to_string(),
        }
    }

    fn totals(&self) -> UsageTotals {
        let mut sum = UsageTotals::default();
        self.days.iter().for_each(|day| sum += &day.totals);
        sum
    }

    /// Returns the sums by model, as indices into [`UsageBoard::models`], in that order.
    fn models(&self) -> BTreeMap<usize, UsageTotals> {
        let mut sums: BTreeMap<usize, UsageTotals> = BTreeMap::new();
        for (model, totals) in self.days.iter().flat_map(|day| &day.models) {
            *sums.entry(*model).or_default() += totals;
        }
        sums
    }
}

/// Returns the columns from the first to the last day with calls, including those without calls.
fn time_bins(board: &UsageBoard) -> Vec<TimeBin<'_>> {
    let (Some(first), Some(last)) = (board.days.first(), board.days.last()) else { return Vec::new() };
    let n_days = first.day.until(last.day).map_or(0, |span| i64::from(span.get_days())) + 1;
    let size = if n_days <= MAX_CHART_DAYS as i64 { BinSize::Day } else { BinSize::for_days(n_days) };
    let mut rest = board.days.iter().rev().peekable();
    let mut bins = Vec::new();
    let mut start = size.first_day(last.day);
    while bins.len() < BinSize::MAX_BINS && rest.peek().is_some() {
        let mut days: Vec<&DayUsage> = Vec::new();
        while let Some(day) = rest.next_if(|day| day.day >= start) {
            days.push(day);
        }
        bins.push(TimeBin { size, first: start, days });
        let Ok(before) = start.yesterday() else { break };
        start = size.first_day(before);
    }
    bins.reverse();
    bins
}

/// Returns the label below a column: every day if there are few, else Mondays, else the 1st and 15th of a
/// month; the first week of a month; every month if there are few, else January.
fn label(bin: &TimeBin<'_>, count: usize) -> Option<String> {
    let day = bin.first;
    let (is_labelled, format) = match (bin.size, count) {
        (BinSize::Hour | BinSize::Day, 0..=14) => (true, "%-d %b"),
        (BinSize::Hour | BinSize::Day, 15..=45) => (day.weekday() == Weekday::Monday, "%-d %b"),
        (BinSize::Hour | BinSize::Day, _) => (day.day() == 1 || day.day() == 15, "%-d %b"),
        (BinSize::Week, _) => (day.day() <= 7, "%-d %b"),
        (BinSize::Month, 0..=14) => (true, "%b %y"),
        (BinSize::Month, _) => (day.month() == 1, "%Y"),
    };
    is_labelled.then(|| day.strftime(format).to_string())
}

pub(super) fn by_day(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    let by_cost = board.total.cost > Money::ZERO;
    let value =
        |totals: &UsageTotals| if by_cost { totals.cost.to_f64() } else { totals.tokens.total() as f64 };
    let bins = time_bins(board);
    let size = bins.first().map_or(BinSize::Day, |bin| bin.size).name();
    let unit = if by_cost { "dollars" } else { "tokens" };
    section(out, &format!("By {size} and model"), &format!("{unit} per {size}"));
    let colors = ModelColors(page.choices.1);
    legend(out, page, &bins, &value);
    let columns: Vec<ChartColumn> = bins
        .iter()
        .map(|bin| {
            let mut title = bin.name();
            let mut parts = Vec::new();
            if !bin.days.is_empty() {
                let _ = write!(title, ": {}", figures(&bin.totals()));
            }
            for (model, totals) in bin.models() {
                let name = board.models.get(model).map_or("", |(name, _)| name);
                parts.push((colors.series(name), value(&totals)));
                let _ = write!(title, "\n{}: {}", short_model(name), totals.short_cost());
            }
            let href = (!bin.days.is_empty()).then(|| page.sessions_link(&borrowed(&bin.bounds())));
            ChartColumn { label: label(bin, bins.len()), href, title, parts }
        })
        .collect();
    let scale = |value: f64| if by_cost { dollars(value) } else { humanize::short_count(value as u64) };
    let name = format!("{} per {size}, stacked by model", if by_cost { "Cost" } else { "Tokens" });
    chart::columns(out, &ColumnChart { name: &name, columns: &columns, scale: &scale, top: None });
    partial_chart_note(out, board.days.len(), &bins);
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

/// Returns parameters with borrowed values.
fn borrowed<'v>(parameters: &'v [(&'static str, String); 2]) -> [(&'static str, &'v str); 2] {
    parameters.each_ref().map(|(name, value)| (*name, &**value))
}

/// Names the period of a chart that does not contain all days.
fn partial_chart_note(out: &mut Markup, all: usize, bins: &[TimeBin<'_>]) {
    let drawn: usize = bins.iter().map(|bin| bin.days.len()).sum();
    if let (true, Some(first), Some(last)) = (drawn < all, bins.first(), bins.last()) {
        let name = |day: Date| day.strftime("%-d %B %Y").to_string();
        out.lit("<p class=\"note\">Chart: ").text(&name(first.first)).lit(" to ").text(&name(last.last()));
        out.lit(". Table: all ");
        out.text(&humanize::count(all as u64)).lit(" active days</p>");
    }
}

/// Adds the models with their colours and their sums over the chart.
fn legend(out: &mut Markup, page: &UsagePage<'_>, bins: &[TimeBin<'_>], value: &dyn Fn(&UsageTotals) -> f64) {
    let models = &page.board.models;
    let mut sums = vec![UsageTotals::default(); models.len()];
    for (model, totals) in bins.iter().flat_map(TimeBin::models) {
        sums[model] += &totals;
    }
    let day = |day: Option<Date>| day.map(|day| day.to_string()).unwrap_or_default();
    let since = day(bins.first().and_then(|bin| Some(bin.days.last()?.day)));
    let until = day(bins.last().and_then(|bin| Some(bin.days.first()?.day)));
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
    let bins = time_bins(board);
    let size = bins.first().map_or(BinSize::Day, |bin| bin.size).name();
    let about = format!("input tokens per {size}: cache read, cache write, uncached");
    section(out, "Cache", &about);
    out.lit("<ul class=\"legend\">");
    for (class, name) in [("c0", "cache read"), ("c2", "cache write"), ("c1", "uncached")] {
        key(out, class);
        out.lit(name).lit("</li>");
    }
    out.lit("</ul>\n");
    let columns: Vec<ChartColumn> = bins
        .iter()
        .map(|bin| {
            let all = bin.days.iter().map(|day| day.context()).fold([0; 3], |mut sums, day| {
                sums.iter_mut().zip(day).for_each(|(sum, tokens)| *sum += tokens);
                sums
            });
            let sum = all.iter().sum::<u64>().max(1) as f64;
            let [read, written, neither] = all.map(|tokens| tokens as f64 / sum * 100.0);
            let title = format!(
                "{}: {read:.0} % cache read, {written:.0} % cache write, {neither:.0} % uncached",
                bin.name()
            );
            let href = (!bin.days.is_empty()).then(|| page.explain_link(&borrowed(&bin.bounds())));
            let parts = vec![(0, read), (2, written), (1, neither)];
            ChartColumn { label: label(bin, bins.len()), href, title, parts }
        })
        .collect();
    let scale = |value: f64| format!("{value:.0} %");
    chart::columns(
        out,
        &ColumnChart {
            name: &format!("Cache share per {size}"),
            columns: &columns,
            scale: &scale,
            top: Some(100.0),
        },
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
