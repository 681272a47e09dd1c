//! Five-hour windows.

use jiff::tz::TimeZone;
use threadline_view::Window;

use super::days::DRAWN;
use super::{UsagePage, section};
use crate::lists::chart::{self, Column, Columns};
use crate::lists::numbers::{Row, dollars, figures, table};
use crate::markup::Markup;
use crate::words;

pub(super) fn windows(out: &mut Markup, page: &UsagePage<'_>) {
    let board = page.board;
    section(
        out,
        "Five-hour windows",
        "of a subscription; exact if Claude Code reported the end, otherwise estimated",
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
            let kind = if window.stated { "" } else { " (estimated)" };
            let open = if window.is_active(page.now) { ", active" } else { "" };
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
                    .map(|cost| format!("{} per hour", words::money(cost)))
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
        Some(cost) => format!("; active, projected {}", words::money(cost)),
        None => String::new(),
    }
}

pub(super) fn span(window: &Window, zone: &TimeZone) -> (String, String) {
    let shown = |at, format| words::moment(at, zone, format).unwrap_or_default().0;
    (shown(window.start, "%Y-%m-%d %H:%M"), shown(window.end, "%H:%M"))
}

fn window_why(page: &UsagePage<'_>, window: &Window) -> String {
    let at = |millis| jiff::Timestamp::from_millisecond(millis).map(|at| at.to_string()).unwrap_or_default();
    page.why(&[("since", &at(window.first_at)), ("until", &at(window.last_at.saturating_add(1)))])
}
