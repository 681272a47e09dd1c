//! Five-hour windows.

use jiff::tz::TimeZone;
use threadline_view::{LimitWindow, humanize};

use super::days::MAX_CHART_DAYS;
use super::{UsagePage, section};
use crate::lists::chart::{self, ChartColumn, ColumnChart};
use crate::lists::usage_table::{UsageTableRow, dollars, figures, table};
use crate::markup::Markup;
use crate::text_format;

pub(super) fn windows(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(
        out,
        "Five-hour windows",
        "of a subscription; exact if Claude Code reported the end, otherwise estimated",
    );
    // The table lists all windows.
    let start = board.windows.len().saturating_sub(MAX_CHART_DAYS);
    let drawn = &board.windows[start..];
    let columns: Vec<ChartColumn> = drawn
        .iter()
        .enumerate()
        .map(|(n, window)| {
            let (from, to) = span(window, page.zone);
            let every = (drawn.len() / 8).max(1);
            let label = (n % every == every / 2)
                .then(|| text_format::format_time(window.start, page.zone, "%-d %b").unwrap_or_default().0);
            ChartColumn {
                label,
                href: Some(explain_window_link(page, window)),
                title: format!("{from} to {to}: {}{}", figures(&window.totals), rate(window, page.now)),
                parts: vec![(if window.is_active(page.now) { 1 } else { 0 }, window.totals.cost.to_f64())],
            }
        })
        .collect();
    chart::columns(
        out,
        &ColumnChart { name: "Cost of five-hour windows", columns: &columns, scale: &dollars, top: None },
    );
    let names: Vec<(String, &LimitWindow)> = board
        .windows
        .iter()
        .rev()
        .map(|window| {
            let (from, to) = span(window, page.zone);
            let kind = if window.stated { "" } else { " (estimated)" };
            let open = if window.is_active(page.now) { ", active" } else { "" };
            (format!("{from} – {to}{kind}{open}"), window)
        })
        .collect();
    table(
        out,
        ("window", Some("rate")),
        names.iter().map(|(name, window)| UsageTableRow {
            name: name.clone(),
            href: explain_window_link(page, window),
            explain_href: explain_window_link(page, window),
            totals: &window.totals,
            extra: Some(
                window
                    .cost_per_hour()
                    .map(|cost| format!("{} per hour", text_format::money(cost)))
                    .unwrap_or_default(),
            ),
        }),
        &board.total,
        names.len(),
    );
    out.lit("</section>\n");
}

fn rate(window: &LimitWindow, now: i64) -> String {
    match window.projected(now).filter(|_| window.is_active(now)) {
        Some(cost) => format!("; active, projected {}", text_format::money(cost)),
        None => String::new(),
    }
}

pub(super) fn span(window: &LimitWindow, zone: &TimeZone) -> (String, String) {
    let end = text_format::format_time(window.end, zone, "%H:%M").unwrap_or_default().0;
    (humanize::minute(window.start, zone), end)
}

fn explain_window_link(page: &UsagePage<'_>, window: &LimitWindow) -> String {
    let at = |millis| jiff::Timestamp::from_millisecond(millis).map(|at| at.to_string()).unwrap_or_default();
    page.explain_link(&[("since", &at(window.first_at)), ("until", &at(window.last_at.saturating_add(1)))])
}
