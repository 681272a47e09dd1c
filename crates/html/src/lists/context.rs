//! Context: what filled the window at each model call of a session.

use threadline_view::{
    AgentContext, ContextCall, ContextLedger, WindowItem, WindowPart, humanize, short_model,
};

use super::chart::{ChartBar, ChartColumn, ColumnChart, SERIES, bars, columns};
use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::page_header::read_errors;
use crate::text_format;

/// The data of the context page.
#[derive(Clone, Debug)]
pub struct ContextPage<'a> {
    /// The session id.
    pub id: &'a str,
    /// Its title.
    pub title: &'a str,
    /// The id and the name of the sub-agent, if the windows are those of one.
    pub agent: Option<(&'a str, &'a str)>,
    /// The windows.
    pub ledger: &'a ContextLedger,
    /// The windows of the sub-agents of the session in short.
    pub agents: &'a [AgentContext],
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
}

/// The series of the chart, from the bottom up.
const LEGEND: [&str; 8] = [
    "system and tools",
    "tool results",
    "tool calls",
    "replies",
    "thinking",
    "prompts",
    "attachments",
    "summary",
];

fn series(part: &WindowPart) -> usize {
    match part {
        WindowPart::System => 0,
        WindowPart::Results(_) => 1,
        WindowPart::Calls => 2,
        WindowPart::Replies => 3,
        WindowPart::Thinking => 4,
        WindowPart::Prompts => 5,
        WindowPart::Attachments => 6,
        WindowPart::Summary => 7,
    }
}

/// Renders the main content and the footer of the context page.
pub fn context(page: &ContextPage<'_>) -> Markup {
    let ledger = page.ledger;
    let session = link::session(page.id);
    let query = page.agent.map(|(agent, _)| link::href("", [("agent", agent)])).unwrap_or_default();
    let here = format!("{session}{query}");
    let mut out = Markup::new();
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"context\">\n<header class=\"opening\"><h1>Context window</h1><p class=\"facts\"><a href=\"");
    out.text(&session).lit("\">").text(&text_format::excerpt(page.title, 160)).lit("</a> <span>·</span> ");
    if let Some((_, name)) = page.agent {
        out.lit("<a href=\"").text(&here).lit("\">sub-agent ").text(&text_format::excerpt(name, 80));
        out.lit("</a> <span>·</span> ");
    }
    out.text(&humanize::plural(ledger.calls.len() as u64, "model call"));
    if ledger.n_unrecorded > 0 {
        out.lit(" <span>·</span> ").num(ledger.n_unrecorded as u64).lit(" without recorded usage left out");
    }
    out.lit("</p><p class=\"facts\">Sizes of windows are recorded. Those of their parts are estimates from the lengths of texts, scaled to the recorded growth.</p>");
    read_errors(&mut out, page.read_errors);
    out.lit("</header>\n");
    match ledger.largest() {
        None => {
            out.lit("<div class=\"empty\"><p>No model call with recorded usage</p></div>\n");
        }
        Some(largest) => {
            chart(&mut out, &here, ledger);
            parts(&mut out, &here, largest);
            misses(&mut out, ledger);
            calls(&mut out, &here, ledger);
            unused(&mut out, &here, ledger);
        }
    }
    sub_agents(&mut out, &session, page.agents);
    out.lit("</main>\n");
    foot(&mut out, &format!("{session}/context.json{query}"), None);
    out
}

fn chart(out: &mut Markup, here: &str, ledger: &ContextLedger) {
    // Of more calls than columns, some are left out.
    let step = ledger.calls.len().div_ceil(160).max(1);
    let column = |(at, call): (usize, &ContextCall)| {
        let mut heights = [0.0; LEGEND.len()];
        for (part, tokens) in &call.parts {
            heights[series(part)] += *tokens as f64;
        }
        let miss = call.miss.map_or_else(String::new, |miss| {
            format!(", {} missed ({})", humanize::short_count(miss.tokens), miss.reason.label())
        });
        ChartColumn {
            label: (at % (20 * step) == 0).then(|| call.anchor.clone()),
            href: Some(format!("{here}#{}", call.anchor)),
            title: format!("{}: {} tokens{miss}", call.anchor, humanize::count(call.window())),
            parts: heights.into_iter().enumerate().collect(),
        }
    };
    let columns_shown: Vec<ChartColumn> = ledger.calls.iter().enumerate().step_by(step).map(column).collect();
    out.lit("<section class=\"figure\"><h2>Window by call</h2><ul class=\"legend\">");
    for (at, name) in LEGEND.iter().enumerate() {
        out.lit("<li><svg class=\"key\" viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"");
        out.lit(SERIES[at]).lit("\" width=\"10\" height=\"10\"/></svg>").lit(name).lit("</li>");
    }
    out.lit("</ul>");
    let scale = |value: f64| humanize::short_count(value as u64);
    let name = "Tokens in the context window by model call";
    columns(out, &ColumnChart { name, columns: &columns_shown, scale: &scale, top: None });
    if step > 1 {
        out.lit("<p class=\"quiet\">Chart: one of every ")
            .num(step as u64)
            .lit(" calls. The table has all of them.</p>");
    }
    out.lit("</section>\n");
}

fn parts(out: &mut Markup, here: &str, call: &ContextCall) {
    let mut parts: Vec<(&WindowPart, u64)> =
        call.parts.iter().map(|(part, tokens)| (part, *tokens)).collect();
    parts.sort_by_key(|(_, tokens)| std::cmp::Reverse(*tokens));
    let window = call.window().max(1);
    let bar = |(part, tokens): &(&WindowPart, u64)| {
        let share = humanize::share(*tokens as f64 / window as f64);
        ChartBar {
            label: text_format::excerpt(&part.label(), 26),
            href: None,
            title: part.label().into_owned(),
            value: *tokens as f64,
            shown: format!("{} ({share})", humanize::short_count(*tokens)),
        }
    };
    out.lit("<section class=\"figure\"><h2>Largest window</h2><p class=\"quiet\">");
    out.text(&humanize::count(call.window()))
        .lit(" tokens at <a href=\"")
        .text(here)
        .lit("#")
        .text(&call.anchor);
    out.lit("\">").text(&call.anchor).lit("</a>, by part (estimate)</p>");
    bars(out, "Parts of the largest window", &parts.iter().take(14).map(bar).collect::<Vec<_>>());
    out.lit("</section>\n");
}

fn misses(out: &mut Markup, ledger: &ContextLedger) {
    let found = ledger.misses();
    out.lit("<section class=\"figure\"><h2>Cache misses</h2>");
    if found.is_empty() {
        out.lit("<p class=\"quiet\">None</p></section>\n");
        return;
    }
    out.lit("<table class=\"numbers\"><thead><tr><th scope=\"col\">Reason</th><th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Tokens</th></tr></thead><tbody>");
    for (reason, n_calls, tokens) in found {
        out.lit("<tr><th scope=\"row\">")
            .lit(reason.label())
            .lit("</th><td class=\"n\">")
            .num(n_calls as u64);
        out.lit("</td><td class=\"n\">").text(&humanize::count(tokens)).lit("</td></tr>");
    }
    out.lit("</tbody></table></section>\n");
}

fn calls(out: &mut Markup, here: &str, ledger: &ContextLedger) {
    out.lit("<section class=\"figure\"><h2>Calls</h2><table class=\"numbers calls\"><thead><tr><th scope=\"col\">Call</th><th scope=\"col\" class=\"n\">Turn</th><th scope=\"col\">Model</th><th scope=\"col\" class=\"n\">Window</th><th scope=\"col\" class=\"n\">Growth</th><th scope=\"col\">Cache miss</th><th scope=\"col\">Added</th></tr></thead><tbody>\n");
    for call in &ledger.calls {
        out.lit("<tr><th scope=\"row\"><a href=\"").text(here).lit("#").text(&call.anchor).lit("\">");
        out.text(&call.anchor).lit("</a></th><td class=\"n\">");
        if let Some(turn) = call.turn {
            out.num(turn as u64);
        }
        out.lit("</td><td>").text(call.model.as_deref().map(short_model).unwrap_or_default());
        out.lit("</td><td class=\"n\">").text(&humanize::count(call.window())).lit("</td><td class=\"n\">");
        out.lit(if call.growth < 0 { "−" } else { "+" }).text(&humanize::count(call.growth.unsigned_abs()));
        out.lit("</td><td>");
        if let Some(miss) = call.miss {
            out.text(&humanize::short_count(miss.tokens)).lit(" ").lit(miss.reason.label());
        }
        out.lit("</td><td class=\"added-items\">").lit(if call.is_compacted { "compacted " } else { "" });
        for (at, item) in call.added.iter().enumerate() {
            out.lit(if at > 0 { ", " } else { "" });
            item_link(out, here, item);
        }
        out.lit("</td></tr>\n");
    }
    out.lit("</tbody></table></section>\n");
}

/// Adds one row per sub-agent.
fn sub_agents(out: &mut Markup, session: &str, agents: &[AgentContext]) {
    if agents.is_empty() {
        return;
    }
    out.lit("<section class=\"figure\"><h2>Sub-agents</h2><p class=\"quiet\">Each has a window of its own.</p><table class=\"numbers sub-agents\"><thead><tr><th scope=\"col\">Task</th><th scope=\"col\">Type</th><th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Largest window</th><th scope=\"col\" class=\"n\">Missed the cache</th><th scope=\"col\" class=\"n\">Cost</th></tr></thead><tbody>\n");
    for agent in agents {
        let href = link::href(&format!("{session}/context"), [("agent", &*agent.id)]);
        out.lit("<tr><th scope=\"row\"><a href=\"").text(&href).lit("\" title=\"").text(&agent.id);
        out.lit("\">").text(&text_format::excerpt(agent.description.as_deref().unwrap_or(&agent.id), 80));
        out.lit("</a></th><td>").text(agent.agent_type.as_deref().unwrap_or_default());
        out.lit("</td><td class=\"n\">").num(agent.n_calls as u64).lit("</td><td class=\"n\">");
        out.text(&humanize::count(agent.peak)).lit("</td><td class=\"n\">");
        out.text(&humanize::count(agent.missed)).lit("</td><td class=\"n\">");
        out.text(&agent.spent.short_cost()).lit("</td></tr>\n");
    }
    out.lit("</tbody></table></section>\n");
}

fn item_link(out: &mut Markup, here: &str, item: &WindowItem) {
    let name = match &item.part {
        WindowPart::Results(tool) => tool.to_string(),
        part => part.label().into_owned(),
    };
    out.lit("<a href=\"")
        .text(here)
        .lit("#")
        .text(&item.anchor)
        .lit("\" title=\"")
        .text(&item.label)
        .lit("\">");
    out.text(&name).lit("</a> ").text(&humanize::short_count(item.tokens));
}

fn unused(out: &mut Markup, here: &str, ledger: &ContextLedger) {
    out.lit("<section class=\"figure\"><h2>Output of which no line recurs</h2><p class=\"quiet\">");
    out.text(&humanize::plural(ledger.unused.len() as u64, "result")).lit(" with about ");
    out.text(&humanize::count(ledger.unused_tokens()));
    out.lit(" tokens. No line of them is in a later prompt, reply or call. An estimate: they may have been useful all the same.</p>");
    if !ledger.unused.is_empty() {
        out.lit("<table class=\"numbers\"><thead><tr><th scope=\"col\">Call</th><th scope=\"col\">Tool</th><th scope=\"col\" class=\"n\">Tokens</th></tr></thead><tbody>");
        for item in ledger.unused.iter().take(50) {
            out.lit("<tr><th scope=\"row\"><a href=\"").text(here).lit("#").text(&item.anchor).lit("\">");
            out.text(if item.label.is_empty() { &item.anchor } else { &item.label }).lit("</a></th><td>");
            if let WindowPart::Results(tool) = &item.part {
                out.text(tool);
            }
            out.lit("</td><td class=\"n\">").text(&humanize::count(item.tokens)).lit("</td></tr>");
        }
        out.lit("</tbody></table>");
    }
    out.lit("</section>\n");
}
