//! The header of a session page: title, metadata, totals and findings.

use jiff::tz::TimeZone;
use threadline_view::{FindingSummary, InheritedCalls, OutlineLine, TranscriptHeader, humanize};

use crate::markup::Markup;
use crate::text_format;

/// Adds the header of a session page. The `header` element is left open for the caller to extend.
pub(crate) fn render_header(
    out: &mut Markup,
    header: &TranscriptHeader,
    findings: &FindingSummary,
    title: &str,
    lines: &[OutlineLine],
    error_anchors: &[String],
    zone: &TimeZone,
) {
    out.lit("<header class=\"opening\"><h1>").text(title).lit("</h1><p class=\"facts\">");
    let mut facts: Vec<String> = Vec::new();
    facts.extend(header.active.and_then(|span| Some(text_format::format_span(span, zone, "%-d %B %Y")?.0)));
    facts.extend(header.cwd.clone());
    facts.extend(header.git_branch.clone().map(|branch| format!("branch {branch}")));
    facts.push(humanize::plural(lines.len() as u64, "turn"));
    let sum = |figure: fn(&OutlineLine) -> usize| lines.iter().map(figure).sum::<usize>();
    let errors = header.errors;
    if header.n_calls > 0 {
        facts.push(humanize::plural(header.n_calls as u64, "tool call"));
    }
    if header.n_agents > 0 {
        facts.push(humanize::plural(header.n_agents as u64, "sub-agent"));
    }
    let edits = sum(OutlineLine::all_edits);
    if edits > 0 {
        let changed = humanize::line_change(sum(|line| line.all_lines().0), sum(|line| line.all_lines().1));
        let by_shell = match sum(|line| line.shell_edits) {
            0 => String::new(),
            count => format!(" ({} by shell)", humanize::count(count as u64)),
        };
        facts.push(format!("{}{by_shell}, {changed}", humanize::plural(edits as u64, "edit")));
    }
    // The totals include sub-agents; the sums over turns are the fallback if no call was counted.
    let spent = &header.spent.tokens;
    let (input, output) = match header.spent.calls {
        0 => {
            lines.iter().fold((0, 0), |sum, line| (sum.0 + line.tokens.context(), sum.1 + line.tokens.output))
        }
        _ => (spent.context(), spent.output),
    };
    if output + input > 0 {
        facts.push(format!(
            "{} tokens in, {} out",
            humanize::short_count(input),
            humanize::short_count(output)
        ));
    }
    if header.spent.calls > 0 {
        facts.push(header.spent.short_cost());
    }
    facts.extend(header.inherited.as_ref().map(InheritedCalls::label));
    facts.extend(header.version.clone().map(|version| format!("Claude Code {version}")));
    for (i, fact) in facts.iter().enumerate() {
        out.lit(if i > 0 { " <span>·</span> " } else { "" }).text(fact);
    }
    out.lit("</p>");
    if let Some(id) = &header.id {
        out.text_element("p class=\"facts id\"", id);
    }
    if let Some(caveat) = header.spent.caveat() {
        out.lit("<p class=\"facts\">Minimum: ").text(&caveat).lit("</p>");
    }
    if errors > 0 {
        let first = error_anchors.first().map_or("", |anchor| &**anchor);
        out.lit("<p class=\"error-message\"><a class=\"next-error\" title=\"Next error (e)\" href=\"#")
            .text(first);
        out.lit("\">").text(&humanize::plural(errors as u64, "error")).lit("</a></p>");
    }
    if findings.count > 0 {
        out.lit("<details class=\"findings\"><summary><span class=\"outcome\">");
        out.text(&humanize::plural(findings.count as u64, "finding")).lit(" in the log</span></summary><ul>");
        for finding in &findings.first {
            out.lit("<li>");
            if let Some(at) = finding.at {
                out.lit("line ").num(at.line_no).lit(": ");
            }
            out.text(&finding.message).lit("</li>");
        }
        out.lit("</ul></details>");
    }
}

/// Adds the errors of logs that could not be read.
pub(crate) fn read_errors(out: &mut Markup, errors: &[String]) {
    for error in errors {
        out.text_element("p class=\"error-message\"", error);
    }
}

pub(crate) fn title(header: &TranscriptHeader, lines: &[OutlineLine]) -> String {
    let first = lines.iter().map(|line| &*line.title);
    let titles = [header.title.as_deref(), header.first_prompt.as_deref()].into_iter().flatten();
    let mut titles = titles.chain(first).chain(header.id.as_deref());
    let title = titles.find(|title| !title.trim().is_empty()).unwrap_or("Session");
    text_format::excerpt(title, 120)
}
