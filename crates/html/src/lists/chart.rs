//! Charts as SVG: zero-based and directly labelled. Colours come from classes only, so that both themes and
//! print styles apply.
//!
//! A table with the same figures is shown below every chart.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::markup::Markup;

/// A column of a chart.
pub(crate) struct ChartColumn {
    /// The label below the column; only some columns have one.
    pub(crate) label: Option<String>,
    /// The target of its link.
    pub(crate) href: Option<String>,
    /// The tooltip.
    pub(crate) title: String,
    /// Its segments from the bottom up: series number and height.
    pub(crate) parts: Vec<(usize, f64)>,
}

/// A chart of stacked columns.
pub(crate) struct ColumnChart<'a> {
    /// The accessible name.
    pub(crate) name: &'a str,
    /// The columns from left to right.
    pub(crate) columns: &'a [ChartColumn],
    /// Formats a value for the axis.
    pub(crate) scale: &'a dyn Fn(f64) -> String,
    /// The upper end of the scale; by default the next round value above the tallest column.
    pub(crate) top: Option<f64>,
}

/// The size of the plot area, in units of about one pixel.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 190.0;
/// Space for labels.
const LEFT: f64 = 56.0;
const BELOW: f64 = 22.0;
const ABOVE: f64 = 8.0;
/// The width of a character of a label.
const LABEL_CHAR: f64 = 7.2;

/// Draws stacked columns.
pub(crate) fn columns(out: &mut Markup, chart: &ColumnChart<'_>) {
    let tall = |column: &ChartColumn| column.parts.iter().map(|(_, value)| value).sum::<f64>();
    let most = chart.columns.iter().map(tall).fold(0.0, f64::max);
    let (step, top) = match chart.top {
        Some(top) => (top / 4.0, top),
        None => scale_steps(most),
    };
    let y = |value: f64| ABOVE + HEIGHT - value / top * HEIGHT;
    let mut lines = vec![0.0];
    while let Some(next) = lines.last().map(|line| line + step).filter(|next| *next <= top + step / 2.0) {
        lines.push(next);
    }
    let height = ABOVE + HEIGHT + BELOW;
    let ticks = lines.iter().map(|line| (y(*line) + 3.5, (chart.scale)(*line)));
    open(out, "chart timeline", chart.name, height, ChartAxis { width: LEFT, gap: 7.0, ticks });
    for line in &lines {
        out.lit("<line class=\"grid\" x1=\"");
        point(out, LEFT).lit("\" x2=\"");
        point(out, WIDTH).lit("\" y1=\"");
        point(out, y(*line)).lit("\" y2=\"");
        point(out, y(*line)).lit("\"/>");
    }
    let room = (WIDTH - LEFT) / chart.columns.len().max(1) as f64;
    let wide = (room * 0.78).clamp(0.8, 34.0);
    for (n, column) in chart.columns.iter().enumerate() {
        let left = LEFT + room * n as f64;
        if let Some(label) = &column.label {
            let half = label.chars().count() as f64 * LABEL_CHAR / 2.0;
            out.lit("<text class=\"tick\" text-anchor=\"middle\" x=\"");
            // Whole labels at both ends: the scale on the left covers what is below it.
            point(out, (left + room / 2.0).min(WIDTH - half.max(18.0)).max(LEFT + half)).lit("\" y=\"");
            point(out, ABOVE + HEIGHT + 15.0).lit("\">").text(label).lit("</text>");
        }
        if column.parts.iter().all(|(_, value)| *value <= 0.0) {
            continue;
        }
        mark(out, column.href.as_deref(), &column.title, Some(&column.title), |out| {
            // The full height of a column is clickable, even if the column is short.
            rect(out, "hit-area", (left, ABOVE), (room, HEIGHT));
            let mut bottom = 0.0;
            for (class, value) in &column.parts {
                let (low, high) = (y(bottom), y(bottom + value));
                rect(
                    out,
                    SERIES[class % SERIES.len()],
                    (left + (room - wide) / 2.0, high),
                    (wide, (low - high).max(0.4)),
                );
                bottom += value;
            }
        });
    }
    out.lit("</svg></div></div>");
}

/// The classes of the series colours.
pub(crate) const SERIES: [&str; 8] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

/// A bar of a bar chart.
pub(crate) struct ChartBar {
    /// The label in front of the bar.
    pub(crate) label: String,
    /// The target of its link.
    pub(crate) href: Option<String>,
    /// The tooltip.
    pub(crate) title: String,
    /// Its length.
    pub(crate) value: f64,
    /// The value as text, shown after the bar.
    pub(crate) shown: String,
}

/// Lists horizontal bars, each with its label and value. They fit any width, so that all values are in view.
pub(crate) fn bars(out: &mut Markup, name: &str, bars: &[ChartBar]) {
    let most = bars.iter().map(|bar| bar.value).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    out.lit("<ul class=\"bars\" aria-label=\"").text(name).lit("\">");
    for bar in bars {
        out.lit("<li>");
        match &bar.href {
            Some(href) => out.lit("<a href=\"").text(href).lit("\" title=\"").text(&bar.title),
            None => out.lit("<span title=\"").text(&bar.title),
        };
        out.lit("\"><span class=\"label\">").text(&bar.label);
        out.lit("</span> <span class=\"bar-line\"><svg aria-hidden=\"true\" width=\"");
        point(out, (bar.value / most * 100.0).max(0.2)).lit("%\" height=\"100%\">");
        out.lit("<rect class=\"c0\" width=\"100%\" height=\"100%\"/></svg> <span class=\"num\">");
        out.text(&bar.shown).lit("</span></span>").lit(if bar.href.is_some() { "</a>" } else { "</span>" });
        out.lit("</li>");
    }
    out.lit("</ul>");
}

/// A day of a calendar.
pub(crate) struct CalendarDay {
    pub(crate) day: Date,
    pub(crate) href: String,
    pub(crate) title: String,
    /// The intensity from 0 to 1. Even 0 is drawn in a colour that differs from a day without a cell.
    pub(crate) share: f64,
}

/// Draws a calendar of 53 weeks, one column per week, ending with the week of `last`. `cells` is sorted by
/// day.
pub(crate) fn calendar(out: &mut Markup, name: &str, cells: &[CalendarDay], last: Date) {
    const SIDE: f64 = 15.4;
    const GAP: f64 = 2.8;
    const TOP: f64 = 18.0;
    const SIDE_LABEL: f64 = 32.0;
    let monday = |day: Date| day.saturating_sub(i64::from(day.weekday().to_monday_zero_offset()).days());
    let end = monday(last);
    let start = end.saturating_sub(52.weeks());
    let days_between = |from: Date, to: Date| from.until(to).map_or(0, |span| i64::from(span.get_days()));
    let ticks = [(0.0, "Mon"), (2.0, "Wed"), (4.0, "Fri")];
    let ticks = ticks.into_iter().map(|(row, label)| (TOP + row * SIDE + 10.5, label));
    let axis = ChartAxis { width: SIDE_LABEL, gap: 8.0, ticks };
    open(out, "chart timeline", name, TOP + 7.0 * SIDE + 2.0, axis);
    let mut day = start;
    let mut month = None;
    let mut known = cells.iter().peekable();
    while day <= last {
        let days = days_between(start, day);
        let (left, row) = (SIDE_LABEL + (days / 7) as f64 * SIDE, (days % 7) as f64);
        // A month is labelled above the first week that begins in it.
        if row == 0.0 && month != Some(day.month()) && day < last.saturating_sub(14.days()) {
            if month.is_some() || day.day() <= 7 {
                out.lit("<text class=\"tick\" x=\"");
                point(out, left).lit("\" y=\"11\">").text(&day.strftime("%b").to_string()).lit("</text>");
            }
            month = Some(day.month());
        }
        while known.peek().is_some_and(|cell| cell.day < day) {
            known.next();
        }
        let (at, size) = ((left, TOP + row * SIDE), (SIDE - GAP, SIDE - GAP));
        match known.peek().filter(|cell| cell.day == day) {
            Some(cell) => {
                let level = 1 + (cell.share.clamp(0.0, 1.0).sqrt() * 3.99) as usize;
                mark(out, Some(&cell.href), &cell.title, Some(&cell.title), |out| {
                    rect(out, ["h0", "h1", "h2", "h3", "h4"][level.min(4)], at, size);
                });
            }
            None => rect(out, "h0", at, size),
        }
        let Ok(next) = day.tomorrow() else { break };
        day = next;
    }
    out.lit("</svg></div></div>");
}

/// A cell of a heat map.
pub(crate) struct HeatCell {
    /// The position, from the top left.
    pub(crate) row: usize,
    pub(crate) column: usize,
    /// The target of its link.
    pub(crate) href: String,
    /// The tooltip.
    pub(crate) title: String,
    /// The intensity from 0 to 1.
    pub(crate) share: f64,
}

/// Draws one row per name with a cell per hour. `cells` is sorted by row and column; the other cells are
/// empty.
pub(crate) fn heat_map(out: &mut Markup, name: &str, rows: &[&str], cells: &[HeatCell]) {
    const HOURS: usize = 24;
    const LABEL: f64 = 44.0;
    const TOP: f64 = 18.0;
    const HEIGHT: f64 = 20.0;
    const GAP: f64 = 2.8;
    let wide = (WIDTH - LABEL) / HOURS as f64;
    let ticks = rows.iter().enumerate().map(|(row, label)| (TOP + row as f64 * HEIGHT + 13.0, *label));
    let axis = ChartAxis { width: LABEL, gap: 8.0, ticks };
    open(out, "chart", name, TOP + rows.len() as f64 * HEIGHT + 2.0, axis);
    for hour in (0..HOURS).step_by(3) {
        out.lit("<text class=\"tick\" x=\"");
        point(out, LABEL + hour as f64 * wide).lit("\" y=\"11\">").num(hour as u64).lit("h</text>");
    }
    let mut known = cells.iter().peekable();
    for row in 0..rows.len() {
        let top = TOP + row as f64 * HEIGHT;
        for column in 0..HOURS {
            let (at, size) = ((LABEL + column as f64 * wide, top), (wide - GAP, HEIGHT - GAP));
            match known.next_if(|cell| (cell.row, cell.column) == (row, column)) {
                Some(cell) => {
                    let level = 1 + (cell.share.clamp(0.0, 1.0).sqrt() * 3.99) as usize;
                    mark(out, Some(&cell.href), &cell.title, Some(&cell.title), |out| {
                        rect(out, ["h0", "h1", "h2", "h3", "h4"][level.min(4)], at, size);
                    });
                }
                None => rect(out, "h0", at, size),
            }
        }
    }
    out.lit("</svg></div></div>");
}

/// The labels on the left of a chart: each with the position of its baseline.
struct ChartAxis<T> {
    /// The width of the axis, at the left of the chart.
    width: f64,
    /// The distance of the labels from the rest of the chart.
    gap: f64,
    ticks: T,
}

/// Begins a chart: the box in which it is scrolled if it is too wide, its axis, and the graphic. The box can
/// be focused, so that keys scroll it.
fn open<L: AsRef<str>>(
    out: &mut Markup,
    class: &'static str,
    name: &str,
    height: f64,
    axis: ChartAxis<impl Iterator<Item = (f64, L)>>,
) {
    out.lit("<div class=\"chart-scroller\" role=\"region\" tabindex=\"0\" aria-label=\"").text(name);
    // The axis is a graphic of its own, so that it stays in view when the rest is scrolled.
    out.lit(", scrollable\"><div class=\"plot\"><svg class=\"axis chart\" aria-hidden=\"true\" width=\"");
    point(out, axis.width / WIDTH * 100.0).lit("%\" viewBox=\"0 0 ");
    point(out, axis.width).lit(" ");
    point(out, height).lit("\">");
    for (y, label) in axis.ticks {
        out.lit("<text class=\"tick\" text-anchor=\"end\" x=\"");
        point(out, axis.width - axis.gap).lit("\" y=\"");
        point(out, y).lit("\">").text(label.as_ref()).lit("</text>");
    }
    out.lit("</svg><svg class=\"").lit(class).lit("\" role=\"group\" aria-label=\"").text(name);
    out.lit("\" viewBox=\"0 0 ");
    point(out, WIDTH).lit(" ");
    point(out, height).lit("\">");
}

/// Adds a graphic with a tooltip, as a link if there is a target. Links without visible text need a `name`.
fn mark(
    out: &mut Markup,
    href: Option<&str>,
    title: &str,
    name: Option<&str>,
    draw: impl FnOnce(&mut Markup),
) {
    match href {
        Some(href) => {
            out.lit("<a href=\"").text(href);
            if let Some(name) = name {
                out.lit("\" aria-label=\"").text(name);
            }
            out.lit("\">")
        }
        None => out.lit("<g>"),
    };
    out.text_element("title", title);
    draw(out);
    out.lit(if href.is_some() { "</a>" } else { "</g>" });
}

fn rect(out: &mut Markup, class: &'static str, (x, y): (f64, f64), (width, height): (f64, f64)) {
    out.lit("<rect class=\"").lit(class).lit("\" x=\"");
    point(out, x).lit("\" y=\"");
    point(out, y).lit("\" width=\"");
    point(out, width).lit("\" height=\"");
    point(out, height).lit("\"/>");
}

/// Adds a coordinate, rounded to one decimal.
fn point(out: &mut Markup, value: f64) -> &mut Markup {
    let value = if value.is_finite() { value } else { 0.0 };
    out.text(&format!("{}", (value * 10.0).round() / 10.0))
}

/// Returns the distance of the grid lines and the end of the scale: round values, with three or four steps.
fn scale_steps(most: f64) -> (f64, f64) {
    if !(most > 0.0 && most.is_finite()) {
        return (1.0, 1.0);
    }
    let rough = most / 4.0;
    let unit = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|n| n * unit)
        .find(|step| *step >= rough)
        .unwrap_or(unit * 10.0);
    (step, (most / step).ceil() * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_round_and_cover_all_values() {
        for (most, expected) in
            [(3.2, (1.0, 4.0)), (0.07, (0.02, 0.08)), (950.0, (250.0, 1000.0)), (0.0, (1.0, 1.0))]
        {
            let (step, top) = scale_steps(most);
            assert!(
                (step - expected.0).abs() < 1e-9 && (top - expected.1).abs() < 1e-9,
                "{most}: {step} {top}"
            );
        }
        assert_eq!(scale_steps(f64::NAN), (1.0, 1.0));
    }

    #[test]
    fn columns_start_at_zero_and_have_titles() {
        let column = |parts: &[(usize, f64)]| ChartColumn {
            label: Some("1 <Jan>".to_owned()),
            href: Some("/?since=2026-01-01".to_owned()),
            title: "1 Jan: \"$2\"".to_owned(),
            parts: parts.to_vec(),
        };
        let mut out = Markup::new();
        let all = [column(&[(0, 1.0), (9, 3.0)]), column(&[])];
        columns(
            &mut out,
            &ColumnChart { name: "Cost", columns: &all, scale: &|value| format!("${value}"), top: None },
        );
        let svg = out.into_string();
        // The scale ends at four dollars, and the second segment is on top of the first.
        assert!(svg.contains(r#"<rect class="c0" x="240" y="150.5" width="34" height="47.5"/>"#), "{svg}");
        assert!(svg.contains(r#"<rect class="c1" x="240" y="8" width="34" height="142.5"/>"#), "{svg}");
        assert!(
            svg.contains("1 &lt;Jan&gt;") && svg.contains("&quot;$2&quot;") && svg.contains(">$4</text>")
        );
        assert!(!svg.contains("style") && !svg.contains("NaN"));
        // The box that scrolls can be focused and has a name.
        assert!(svg.contains(r#"role="region" tabindex="0" aria-label="Cost, scrollable""#), "{svg}");
        assert_eq!(svg.matches("<a ").count(), 1, "an empty column has no link");
    }

    #[test]
    fn the_scale_does_not_cover_the_first_label() {
        let column = |at: usize| ChartColumn {
            label: [(0, "29 Oct"), (59, "27 Dec")]
                .iter()
                .find(|(n, _)| *n == at)
                .map(|(_, label)| (*label).into()),
            href: None,
            title: String::new(),
            parts: vec![(0, 1.0)],
        };
        let all: Vec<ChartColumn> = (0..60).map(column).collect();
        let mut out = Markup::new();
        columns(&mut out, &ColumnChart { name: "Cost", columns: &all, scale: &|_| String::new(), top: None });
        let svg = out.into_string();
        let x = |label: &str| -> f64 {
            let before = &svg[..svg.find(&format!(">{label}<")).unwrap()];
            before.rsplit("x=\"").next().unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let (first, last, half) = (x("29 Oct"), x("27 Dec"), 6.0 * LABEL_CHAR / 2.0 - 0.1);
        assert!(first - half >= LEFT && last + half <= WIDTH, "{first} {last}");
    }

    #[test]
    fn bars_are_shares_of_the_longest_one() {
        let bar = |value: f64, href: Option<&str>| ChartBar {
            label: "a <b>".to_owned(),
            href: href.map(str::to_owned),
            title: "\"all\"".to_owned(),
            value,
            shown: format!("{value} MB"),
        };
        let mut out = Markup::new();
        bars(&mut out, "Sizes", &[bar(8.0, Some("/x")), bar(2.0, None), bar(0.0, None)]);
        let list = out.into_string();
        let widths: Vec<&str> = list.split("<svg aria-hidden=\"true\" width=\"").skip(1).collect();
        let widths: Vec<&str> = widths.iter().filter_map(|text| text.split('"').next()).collect();
        assert_eq!(widths, ["100%", "25%", "0.2%"]);
        assert!(
            list.contains("a &lt;b&gt;")
                && list.contains("title=\"&quot;all&quot;\"")
                && list.contains(">8 MB<")
        );
        assert_eq!(list.matches("<a ").count(), 1, "{list}");
    }

    #[test]
    fn a_calendar_has_a_cell_for_every_day_of_a_year() {
        let last = Date::constant(2026, 11, 15);
        let day = Date::constant(2026, 11, 12);
        let cell = CalendarDay { day, href: "/x".to_owned(), title: "much".to_owned(), share: 1.0 };
        let mut out = Markup::new();
        calendar(&mut out, "Days", &[cell], last);
        let svg = out.into_string();
        assert_eq!(svg.matches("<rect").count(), 52 * 7 + 7);
        assert_eq!((svg.matches("\"h4\"").count(), svg.matches("\"h0\"").count()), (1, 52 * 7 + 6));
        assert!(svg.contains(">Mon<") && svg.contains(">Jul<"));
    }
}
