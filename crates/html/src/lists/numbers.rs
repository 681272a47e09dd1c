//! Figures of usage, in words and in tables.

use threadline_view::{Totals, figure};

use crate::markup::Markup;
use crate::words;

/// The share of what models were given that came from the cache.
pub(super) fn cache_share(totals: &Totals) -> Option<f64> {
    let context = totals.tokens.context();
    (context > 0).then(|| totals.tokens.cache_read as f64 / context as f64)
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// A sum in words.
pub(super) fn figures(totals: &Totals) -> String {
    format!(
        "{}, {}, {} tokens",
        words::cost(totals),
        figure::plural(totals.calls, "call"),
        figure::short_count(totals.tokens.total())
    )
}

/// `$2`, `$0.25`: a mark of a scale.
pub(super) fn dollars(value: f64) -> String {
    match value {
        _ if value == 0.0 => "$0".to_owned(),
        _ if value >= 1.0 && value.fract().abs() < 1e-9 => format!("${}", figure::count(value as u64)),
        _ if value < 0.01 => format!("${value:.4}"),
        _ => format!("${value:.2}"),
    }
}

/// A line of a table.
pub(super) struct Row<'a> {
    pub(super) name: String,
    pub(super) href: String,
    /// Where its figures are explained.
    pub(super) why: String,
    pub(super) totals: &'a Totals,
    /// What only this table has.
    pub(super) more: Option<String>,
}

/// Tables longer than this are folded.
const FOLDED: usize = 8;

/// The figures of a chart, and their sum. `rows` says how many there are, for the fold.
pub(super) fn table<'a>(
    out: &mut Markup,
    (name, more): (&'static str, Option<&'static str>),
    lines: impl Iterator<Item = Row<'a>>,
    total: &Totals,
    rows: usize,
) {
    let folded = rows > FOLDED;
    if folded {
        out.lit("<details class=\"figures\"><summary>Table of ")
            .text(&figure::plural(rows as u64, name))
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
        cells(out, row.totals, Some(&row.why), row.more.as_deref());
        out.lit("</tr>\n");
    }
    out.lit("</tbody><tfoot><tr><th scope=\"row\">total</th>");
    cells(out, total, None, None);
    out.lit("</tr></tfoot></table></div>");
    out.lit(if folded { "</details>\n" } else { "\n" });
}

fn cells(out: &mut Markup, totals: &Totals, why: Option<&str>, more: Option<&str>) {
    let tokens = totals.tokens;
    let counts = [totals.calls, tokens.input, tokens.output, tokens.cache_read, tokens.cache_write()];
    let shown = counts.map(figure::count).into_iter().chain([words::cost(totals)]);
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
        out.lit("<td class=\"n\">").text(more).lit("</td>");
    }
}
