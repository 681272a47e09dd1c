//! Usage figures as text and tables.

use threadline_view::{UsageTotals, humanize};

use crate::markup::Markup;

/// Returns the share of input tokens that were read from the cache.
pub(super) fn cache_share(totals: &UsageTotals) -> Option<f64> {
    let context = totals.tokens.context();
    (context > 0).then(|| totals.tokens.cache_read as f64 / context as f64)
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Formats totals as one line.
pub(super) fn figures(totals: &UsageTotals) -> String {
    format!(
        "{}, {}, {} tokens",
        totals.short_cost(),
        humanize::plural(totals.calls, "call"),
        humanize::short_count(totals.tokens.total())
    )
}

/// Formats a value of the cost axis: `$2`, `$0.25`.
pub(super) fn dollars(value: f64) -> String {
    match value {
        _ if value == 0.0 => "$0".to_owned(),
        _ if value >= 1.0 && value.fract().abs() < 1e-9 => format!("${}", humanize::count(value as u64)),
        _ if value < 0.01 => format!("${value:.4}"),
        _ => format!("${value:.2}"),
    }
}

/// A row of a usage table.
pub(super) struct UsageTableRow<'a> {
    pub(super) name: String,
    pub(super) href: String,
    /// The link to the records behind its figures.
    pub(super) explain_href: String,
    pub(super) totals: &'a UsageTotals,
    /// The value of the additional column, if the table has one.
    pub(super) extra: Option<String>,
}

/// Adds the table below a chart, with a total. It is collapsed if `rows` is large.
pub(super) fn table<'a>(
    out: &mut Markup,
    (name, more): (&'static str, Option<&'static str>),
    lines: impl Iterator<Item = UsageTableRow<'a>>,
    total: &UsageTotals,
    rows: usize,
) {
    let folded = rows > 8;
    if folded {
        out.lit("<details class=\"figures\"><summary>Table of ")
            .text(&humanize::plural(rows as u64, name))
            .lit("</summary>");
    }
    out.lit("<div class=\"table\"><table class=\"numbers\"><thead><tr><th scope=\"col\">")
        .lit(name)
        .lit("</th>");
    for column in ["calls", "input", "output", "cache read", "cache write", "cost"] {
        out.lit("<th scope=\"col\" class=\"n\">").lit(column).lit("</th>");
    }
    if let Some(more) = more {
        out.lit("<th scope=\"col\" class=\"n\">").lit(more).lit("</th>");
    }
    out.lit("</tr></thead><tbody>\n");
    for row in lines {
        out.lit("<tr><th scope=\"row\"><a href=\"")
            .text(&row.href)
            .lit("\">")
            .text(&row.name)
            .lit("</a></th>");
        cells(out, row.totals, Some(&row.explain_href), row.extra.as_deref());
        out.lit("</tr>\n");
    }
    out.lit("</tbody><tfoot><tr><th scope=\"row\">total</th>");
    cells(out, total, None, None);
    out.lit("</tr></tfoot></table></div>");
    out.lit(if folded { "</details>\n" } else { "\n" });
}

fn cells(out: &mut Markup, totals: &UsageTotals, why: Option<&str>, more: Option<&str>) {
    let tokens = totals.tokens;
    let counts = [totals.calls, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write()];
    let shown = counts.map(humanize::count).into_iter().chain([totals.short_cost()]);
    for (n, figure) in shown.enumerate() {
        out.lit("<td class=\"n\"");
        if n == 5 {
            out.lit(" title=\"$").text(&totals.cost.to_string()).lit("\"");
        }
        out.lit(">");
        match why {
            Some(why) => out.lit("<a href=\"").text(why).lit("\">").text(&figure).lit("</a>"),
            None => out.text(&figure),
        };
        out.lit("</td>");
    }
    if let Some(more) = more {
        out.text_element("td class=\"n\"", more);
    }
}
