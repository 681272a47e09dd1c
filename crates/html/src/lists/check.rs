//! Check: the findings of a session and the plan of a repair.

use threadline_view::{Finding, Severity, humanize};

use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::page_header::read_errors;
use crate::text_format;

/// The data of the check page.
#[derive(Clone, Copy, Debug)]
pub struct CheckPage<'a> {
    /// The session id.
    pub id: &'a str,
    /// Its title.
    pub title: &'a str,
    /// Findings by log: the sub-agent (`None` for the session itself), the path, and the findings.
    pub logs: &'a [(Option<String>, String, Vec<Finding>)],
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
    /// The plan of `edit repair`; `None` if there is none.
    pub plan: Option<&'a RepairPlan>,
}

/// The plan of a repair.
#[derive(Clone, Debug, Default)]
pub struct RepairPlan {
    /// The changes, in one line each.
    pub steps: Vec<String>,
    /// Why the repair would not be written: the error and its causes. Empty if it would be.
    pub refusal: Vec<String>,
}

/// Renders the main content and the footer of the check page.
pub fn check(page: &CheckPage<'_>) -> Markup {
    let mut out = Markup::new();
    let all = || page.logs.iter().flat_map(|(_, _, findings)| findings);
    let of = |severity| all().filter(|finding| finding.severity == severity).count() as u64;
    let here = link::session(page.id);
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"check\">\n<header class=\"opening\"><h1>Health check</h1><p class=\"facts\"><a href=\"");
    out.text(&here).lit("\">").text(&text_format::excerpt(page.title, 160)).lit("</a> <span>·</span> ");
    out.text(&humanize::plural(of(Severity::Error), "error"))
        .lit(" <span>·</span> ")
        .text(&humanize::plural(of(Severity::Warning), "warning"));
    out.lit(" <span>·</span> ").text(&humanize::plural(of(Severity::Note), "note")).lit("</p></header>\n");
    read_errors(&mut out, page.read_errors);
    if !all().any(|finding| finding.severity.is_problem()) {
        out.lit("<div class=\"empty\"><p>No problems found</p></div>\n");
    }
    for (agent, path, findings) in page.logs.iter().filter(|(_, _, findings)| !findings.is_empty()) {
        log(&mut out, &here, (agent.as_deref(), path), findings);
    }
    if let Some(plan) = page.plan {
        repair(&mut out, page.id, plan);
    }
    out.lit("</main>\n");
    foot(&mut out, &format!("{here}/check.json"), Some(&format!("{here}/check.md")));
    out
}

fn log(out: &mut Markup, here: &str, (agent, path): (Option<&str>, &str), findings: &[Finding]) {
    out.lit("<section class=\"log\"><h2 class=\"path\">").text(path).lit("</h2>\n");
    let notes = findings.iter().filter(|finding| !finding.severity.is_problem());
    let rest = findings.iter().filter(|finding| finding.severity.is_problem());
    list(out, here, agent, rest);
    let count = notes.clone().count() as u64;
    if count > 0 {
        out.lit("<details class=\"figures\"><summary>").text(&humanize::plural(count, "note"));
        out.lit(" (informational)</summary>");
        list(out, here, agent, notes);
        out.lit("</details>");
    }
    out.lit("</section>\n");
}

fn list<'f>(out: &mut Markup, here: &str, agent: Option<&str>, findings: impl Iterator<Item = &'f Finding>) {
    out.lit("<ol class=\"finding-list\">");
    for finding in findings {
        out.lit("<li class=\"s ")
            .lit(finding.severity.name())
            .lit("\"><p><b class=\"sev\">")
            .lit(finding.severity.name())
            .lit("</b> ");
        out.lit("<span class=\"code-name\" title=\"")
            .lit(finding.code.id())
            .lit("\">")
            .lit(finding.code.name())
            .lit("</span> ");
        if let Some(at) = finding.at {
            let mut href = format!("{here}#");
            if let Some(agent) = agent {
                href.push_str("a-");
                href.extend(link::encode(agent));
                href.push('-');
            }
            href.push_str(&format!("m{}", at.line_no));
            out.lit("<a class=\"go\" href=\"")
                .text(&href)
                .lit("\" title=\"byte ")
                .num(at.byte_offset)
                .lit("\">line ");
            out.num(at.line_no).lit("</a>");
        }
        out.lit("</p><p class=\"message\">")
            .text(&finding.message)
            .lit("</p><p class=\"repair\">Repair: ")
            .lit(finding.code.repair())
            .lit("</p></li>\n");
    }
    out.lit("</ol>");
}

fn repair(out: &mut Markup, id: &str, plan: &RepairPlan) {
    out.lit("<section class=\"log\"><h2>Repair plan</h2>");
    if let [error, causes @ ..] = &plan.refusal[..] {
        out.lit("<p>No repair is possible: ").text(error).lit("</p><ul class=\"plan\">");
        for cause in causes {
            out.text_element("li", cause);
        }
        out.lit("</ul><details class=\"figures\"><summary>Changes that were tried</summary>");
        steps(out, &plan.steps);
        out.lit("</details>");
    } else if plan.steps.is_empty() {
        out.lit("<p>No automatic repairs</p>");
    } else {
        steps(out, &plan.steps);
        out.lit("<p class=\"quiet\">Nothing is changed here. <code>threadline edit repair ").text(id);
        out.lit(" --apply</code> writes a repaired copy.</p>");
    }
    out.lit("</section>\n");
}

fn steps(out: &mut Markup, steps: &[String]) {
    out.lit("<ol class=\"plan\">");
    for step in steps {
        out.text_element("li", step);
    }
    out.lit("</ol>");
}
