//! The records behind a usage figure, counted or not.

use jiff::tz::TimeZone;
use threadline_view::{Money, RecordExplanation, RecordVerdict, humanize, short_model};

use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The data of the page.
#[derive(Clone, Copy, Debug)]
pub struct ExplainPage<'a> {
    /// The query parameters of the page.
    pub parameters: &'a [(String, String)],
    /// All records, by log and line.
    pub records: &'a [RecordExplanation],
    /// The page number, from 0.
    pub page: usize,
    /// The time zone of the times shown.
    pub zone: &'a TimeZone,
}

/// The number of records per page.
const RECORDS: usize = 500;

/// Renders the main content and the footer of the page.
pub fn explain(page: &ExplainPage<'_>) -> Markup {
    let mut out = Markup::new();
    let records = page.records;
    let counted = records.iter().filter(|record| record.verdict == RecordVerdict::Counted).count();
    let cost: Money = records.iter().filter_map(|record| record.cost).sum();
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"usage explain\">\n<header class=\"opening\"><h1>Usage records</h1><p class=\"facts\">");
    for (key, value) in page.parameters.iter().filter(|(key, _)| key != "page") {
        out.text(key).lit(" <b>").text(value).lit("</b> <span>·</span> ");
    }
    out.text(&humanize::plural(counted as u64, "record")).lit(" counted <span>·</span> ");
    out.text(&humanize::count((records.len() - counted) as u64))
        .lit(" not counted <span>·</span> ")
        .text(&text_format::money(cost));
    out.lit("</p><p class=\"facts\"><a href=\"")
        .text(&link(page, "/usage", None))
        .lit("\">Usage</a></p></header>\n");
    let pages = records.len().div_ceil(RECORDS).max(1);
    let at = page.page.min(pages - 1);
    let mut last: Option<&str> = None;
    for record in records.iter().skip(at * RECORDS).take(RECORDS) {
        if last != Some(&record.path) {
            out.lit(if last.is_some() { "</tbody></table></div></section>\n" } else { "" });
            out.lit("<section class=\"log\"><h2 class=\"path\">").text(&record.path);
            out.lit("</h2><div class=\"table\"><table class=\"numbers\"><thead><tr><th scope=\"col\">line</th><th scope=\"col\">time</th><th scope=\"col\">model</th>");
            for column in ["input", "output", "cache read", "cache write", "cost"] {
                out.lit("<th scope=\"col\" class=\"n\">").lit(column).lit("</th>");
            }
            out.lit("<th scope=\"col\">counted?</th></tr></thead><tbody>\n");
            last = Some(&record.path);
        }
        line(&mut out, record, page.zone);
    }
    out.lit(if last.is_some() {
        "</tbody></table></div></section>\n"
    } else {
        "<div class=\"empty\"><p>No records match these filters</p></div>\n"
    });
    if pages > 1 {
        out.lit("<nav class=\"pages\" aria-label=\"Pages of records\">");
        if at > 0 {
            out.lit("<a rel=\"prev\" href=\"")
                .text(&link(page, "/usage/explain", Some(at - 1)))
                .lit("\">← Previous</a>");
        }
        out.lit("<span>Page ").num(at as u64 + 1).lit(" of ").num(pages as u64).lit("</span>");
        if at + 1 < pages {
            out.lit("<a rel=\"next\" href=\"")
                .text(&link(page, "/usage/explain", Some(at + 1)))
                .lit("\">Next →</a>");
        }
        out.lit("</nav>\n");
    }
    out.lit("</main>\n");
    foot(&mut out, &link(page, "/usage/explain.json", None), None);
    out
}

fn link(page: &ExplainPage<'_>, path: &str, at: Option<usize>) -> String {
    let number = at.map(|at| (at + 1).to_string());
    let kept = page.parameters.iter().filter(|(key, _)| key != "page").map(|(key, value)| (&**key, &**value));
    link::href(path, kept.chain(number.as_deref().map(|number| ("page", number))))
}

fn line(out: &mut Markup, record: &RecordExplanation, zone: &TimeZone) {
    let agent = record.path.rsplit(['/', '\\']).next().and_then(|name| name.strip_suffix(".jsonl"));
    let agent = agent.and_then(|name| name.strip_prefix("agent-"));
    let mut href = link::session(&record.session);
    href.push('#');
    if let Some(agent) = agent {
        href.push_str("a-");
        href.extend(link::encode(agent));
        href.push('-');
    }
    href.push_str(&format!("m{}", record.line));
    let counted = record.verdict == RecordVerdict::Counted;
    out.lit("<tr class=\"")
        .lit(if counted { "s" } else { "s rejected" })
        .lit("\"><th scope=\"row\"><a class=\"go\" href=\"")
        .text(&href);
    out.lit("\" title=\"byte ").num(record.byte_offset).lit("\">").num(record.line).lit("</a></th><td>");
    if let Some((shown, _)) = record.at.and_then(|at| text_format::format_time(at, zone, "%Y-%m-%d %H:%M:%S"))
    {
        out.text(&shown);
    }
    out.lit("</td><td title=\"").text(record.message_id.as_deref().unwrap_or_default()).lit("\">");
    out.text(short_model(record.model.as_deref().unwrap_or("–"))).lit("</td>");
    let tokens = record.tokens;
    for figure in [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write()] {
        out.text_element("td class=\"n\"", &humanize::count(figure));
    }
    out.lit("<td class=\"n\">");
    match (counted, record.cost) {
        (true, Some(cost)) => out
            .lit("<span title=\"$")
            .text(&cost.to_string())
            .lit("\">")
            .text(&text_format::money(cost))
            .lit("</span>"),
        (true, None) => out.lit("no price"),
        (false, _) => out.lit(""),
    };
    out.lit("</td><td>");
    match &record.verdict {
        RecordVerdict::Counted => out.lit("yes"),
        RecordVerdict::Rejected(reason) => out.lit("no: ").text(&reason.to_string()),
    };
    out.lit("</td></tr>\n");
}
