//! Compare: two sessions or branches side by side.

use std::collections::BTreeSet;

use threadline_view::wire::{CompareObject, ComparedFileObject, ConversationObject};
use threadline_view::{Hunk, humanize, short_model};

use super::footer::foot;
use super::link;
use crate::card::render_diff;
use crate::markup::Markup;
use crate::page::RenderOptions;
use crate::page_header::read_errors;
use crate::render_context::RenderContext;
use crate::text_format;

/// The data of the comparison page.
#[derive(Clone, Debug)]
pub struct ComparePage<'a> {
    /// The names of the two conversations, as typed.
    pub names: [&'a str; 2],
    /// Why there is no comparison.
    pub problem: Option<&'a str>,
    /// The comparison.
    pub compared: Option<&'a CompareObject>,
    /// The costs of the two conversations, and the second minus the first, as text.
    pub costs: [String; 3],
    /// How the figures of each conversation differ from those of its session in lists.
    pub notes: [Vec<String>; 2],
    /// By file: the difference, if the texts are known.
    pub diffs: &'a [Vec<Hunk>],
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
}

/// Renders the main content and the footer of the comparison page.
pub fn compare(page: &ComparePage<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit(
        "<main id=\"main\" tabindex=\"-1\" class=\"compare\">\n<header class=\"opening\"><h1>Compare</h1>",
    );
    out.lit("<form class=\"compare-form\" action=\"/compare\">");
    for (name, label, value) in [("a", "A", page.names[0]), ("b", "B", page.names[1])] {
        out.lit("<label class=\"field\"><span>").lit(label).lit("</span><input name=\"").lit(name);
        out.lit("\" placeholder=\"session, or session#m42 for a branch\" spellcheck=\"false\" autocomplete=\"off\" value=\"");
        out.text(value).lit("\"></label>");
    }
    out.lit("<button>Compare</button></form></header>\n");
    if let Some(problem) = page.problem {
        out.text_element("p class=\"error-message\"", problem);
    }
    read_errors(&mut out, page.read_errors);
    if let Some(compared) = page.compared {
        figures(&mut out, compared, &page.costs);
        notes(&mut out, &page.notes);
        prompts(&mut out, compared);
        tools(&mut out, compared);
        files(&mut out, compared, page.diffs);
    }
    out.lit("</main>\n");
    foot(&mut out, &link::href("/compare.json", [("a", page.names[0]), ("b", page.names[1])]), None);
    out
}

fn conversation_link(side: &ConversationObject) -> String {
    let mut href = link::session(&side.session);
    if let Some(branch) = &side.branch {
        href.push_str("?branch=");
        href.extend(link::encode(branch));
    }
    href
}

fn figures(out: &mut Markup, compared: &CompareObject, costs: &[String; 3]) {
    let (a, b) = (&compared.a, &compared.b);
    out.lit("<section class=\"figure\"><table class=\"numbers sides\"><caption class=\"sr\">Figures</caption><thead><tr><td></td>");
    for (letter, side) in [("A", a), ("B", b)] {
        let title = side.title.as_deref().unwrap_or(&side.session);
        out.lit("<th scope=\"col\" class=\"n\"><b>").lit(letter).lit("</b> <a href=\"");
        out.text(&conversation_link(side)).lit("\">").text(&text_format::excerpt(title, 80)).lit("</a>");
        out.lit(match (&side.branch, side.other_branches) {
            (Some(_), _) => "<div class=\"quiet\">abandoned branch</div></th>",
            (None, 0) => "</th>",
            (None, _) => "<div class=\"quiet\">active branch</div></th>",
        });
    }
    out.lit("<th scope=\"col\" class=\"n\">B − A</th></tr></thead><tbody>");
    let count = |out: &mut Markup, name: &'static str, values: [u64; 2]| {
        row(
            out,
            name,
            values.map(humanize::count),
            difference(values.map(|value| value as i64), &humanize::count),
        );
    };
    let time = |out: &mut Markup, name: &'static str, values: [i64; 2]| {
        let format = |value: u64| humanize::duration(value as i64);
        row(out, name, values.map(humanize::duration), difference(values, &format));
    };
    let plain =
        |out: &mut Markup, name: &'static str, values: [String; 2]| row(out, name, values, String::new());
    let models = |side: &ConversationObject| {
        side.models.iter().map(|model| short_model(model)).collect::<Vec<_>>().join(", ")
    };
    let started = |side: &ConversationObject| {
        side.started_at.as_deref().and_then(|at| at.get(..16)).unwrap_or_default().replace('T', " ")
    };
    plain(out, "Started (UTC)", [started(a), started(b)]);
    plain(out, "Models", [models(a), models(b)]);
    count(out, "Turns", [a.turns, b.turns]);
    count(out, "Model calls", [a.model_calls, b.model_calls]);
    count(out, "Tool calls", [a.tool_calls, b.tool_calls]);
    count(out, "Errors", [a.errors, b.errors]);
    count(out, "Sub-agents", [a.sub_agents, b.sub_agents]);
    count(out, "Compactions", [a.compactions, b.compactions]);
    count(out, "Input tokens", [a.tokens.input, b.tokens.input]);
    count(out, "Output tokens", [a.tokens.output, b.tokens.output]);
    count(out, "Cache read", [a.tokens.cache_read, b.tokens.cache_read]);
    count(out, "Cache write", [a.tokens.cache_write, b.tokens.cache_write]);
    let [cost_a, cost_b, change] = costs.clone();
    row(out, "Cost", [cost_a, cost_b], change);
    time(out, "Elapsed", [a.elapsed_ms, b.elapsed_ms]);
    time(out, "Model time", [a.timing.model_ms, b.timing.model_ms]);
    time(out, "Tool time", [a.timing.tools_ms, b.timing.tools_ms]);
    time(out, "Waiting for an answer", [a.timing.user_response_ms, b.timing.user_response_ms]);
    time(out, "Idle", [a.timing.idle_ms, b.timing.idle_ms]);
    out.lit("</tbody></table></section>\n");
}

/// Adds how the figures differ from those of lists.
fn notes(out: &mut Markup, notes: &[Vec<String>; 2]) {
    for (letter, notes) in ["A", "B"].into_iter().zip(notes) {
        for note in notes {
            out.lit("<p class=\"quiet\">").lit(letter).lit(": ").text(note).lit("</p>\n");
        }
    }
}

fn row(out: &mut Markup, name: &'static str, values: [String; 2], change: String) {
    out.lit("<tr><th scope=\"row\">").lit(name).lit("</th>");
    for value in values.iter().chain([&change]) {
        out.text_element("td class=\"n\"", value);
    }
    out.lit("</tr>");
}

fn difference([a, b]: [i64; 2], format: &dyn Fn(u64) -> String) -> String {
    match b - a {
        0 => String::new(),
        more if more > 0 => format!("+{}", format(more as u64)),
        less => format!("−{}", format(less.unsigned_abs())),
    }
}

fn prompts(out: &mut Markup, compared: &CompareObject) {
    out.lit("<section class=\"figure\"><h2>Prompts</h2>");
    if compared.shared_turns > 0 {
        out.lit("<p class=\"quiet\">Both begin with the same ");
        out.text(&humanize::plural(compared.shared_turns, "turn")).lit(".</p>");
    }
    out.lit("<div class=\"prompt-columns\">");
    for (letter, side) in [("A", &compared.a), ("B", &compared.b)] {
        out.lit("<div><h3>").lit(letter).lit("</h3><ol>");
        let base = conversation_link(side);
        for prompt in &side.prompts {
            out.lit(if prompt.shared { "<li class=\"shared\" value=\"" } else { "<li value=\"" })
                .num(prompt.turn);
            out.lit("\"><a href=\"").text(&base).lit("#").text(&prompt.anchor).lit("\">");
            out.text(&text_format::excerpt(&prompt.prompt, 160)).lit("</a>");
            if let Some(duration) = prompt.duration_ms {
                out.lit(" <span class=\"note\">").text(&humanize::duration(duration)).lit("</span>");
            }
            out.lit("</li>");
        }
        out.lit("</ol></div>");
    }
    out.lit("</div></section>\n");
}

fn tools(out: &mut Markup, compared: &CompareObject) {
    let names: BTreeSet<&String> = compared.a.tools.keys().chain(compared.b.tools.keys()).collect();
    if names.is_empty() {
        return;
    }
    out.lit("<section class=\"figure\"><h2>Tools</h2><table class=\"numbers\"><thead><tr><th scope=\"col\">Tool</th><th scope=\"col\" class=\"n\">A</th><th scope=\"col\" class=\"n\">B</th></tr></thead><tbody>");
    for name in names {
        out.lit("<tr><th scope=\"row\">").text(name).lit("</th>");
        for side in [&compared.a, &compared.b] {
            out.lit("<td class=\"n\">");
            match side.tools.get(name) {
                Some(tally) => {
                    out.text(&humanize::count(tally.calls));
                    if tally.errors > 0 {
                        out.lit(" (").text(&humanize::plural(tally.errors, "error")).lit(")");
                    }
                }
                None => drop(out.lit("–")),
            }
            out.lit("</td>");
        }
        out.lit("</tr>");
    }
    out.lit("</tbody></table></section>\n");
}

fn files(out: &mut Markup, compared: &CompareObject, diffs: &[Vec<Hunk>]) {
    out.lit("<section class=\"figure\"><h2>Files</h2>");
    if compared.files.is_empty() {
        out.lit("<p class=\"quiet\">No net file changes</p>");
    }
    let options = RenderOptions::new(jiff::tz::TimeZone::UTC);
    let cx = RenderContext::new(&options, None);
    for (file, hunks) in compared.files.iter().zip(diffs) {
        out.lit("<details class=\"file\"><summary><h3>").text(&file.path).lit("</h3> <span class=\"facts\">");
        out.lit(match file.relation {
            "same" => "same result",
            "different" => "different results",
            "only_a" => "only A changed it",
            "only_b" => "only B changed it",
            _ => "the log does not contain the whole text",
        });
        changed_lines(out, file);
        out.lit("</span></summary>");
        render_diff(&cx, out, &file.path, hunks);
        for change in [&file.a, &file.b].into_iter().flatten().take(1) {
            out.lit("<p class=\"note\"><a href=\"").text(&link::href("/file", [("path", &*change.path)]));
            out.lit("\">all edits of this file</a></p>");
        }
        out.lit("</details>\n");
    }
    out.lit("</section>\n");
}

fn changed_lines(out: &mut Markup, file: &ComparedFileObject) {
    for (letter, change) in [("A", &file.a), ("B", &file.b)] {
        if let Some(change) = change {
            let lines = humanize::line_change(change.lines_added as usize, change.lines_removed as usize);
            out.lit(" <span>·</span> ").lit(letter).lit(" ").text(&lines);
        }
    }
}
