//! Cards: the full content of a tool call, shown below its summary line.

use threadline_view::{
    AgentView, CallView, CommandCard, CommandChanges, DiffChange, Hunk, Question, Todo, ToolCard,
    ToolOutcome, humanize, outcome_name,
};

use crate::markup::Markup;
use crate::render_context::{RenderContext, omitted_note};
use crate::turn::{self, TurnContext};
use crate::{message_files, prose, text_format};

/// Adds the body of the call with the anchor `name`.
pub(crate) fn render_body(cx: &mut RenderContext<'_>, out: &mut Markup, call: &CallView, name: &str) {
    let failed = call.outcome != ToolOutcome::Ok;
    if let ToolCard::Agent { .. } = call.card {
        agent(cx, out, call, name);
    } else {
        card(cx, out, call);
        for agent in &call.agents {
            render_subagent(cx, out, agent, name);
        }
    }
    // These cards already contain the result. An error is shown in any case.
    let in_card = !failed
        && matches!(
            call.card,
            ToolCard::Command(_)
                | ToolCard::File { .. }
                | ToolCard::Diff { .. }
                | ToolCard::Todos(_)
                | ToolCard::Page { .. }
                | ToolCard::Links { .. }
                | ToolCard::Agent { .. }
        );
    let shown = call.formatted_result();
    let said = if failed { call.error_text().unwrap_or_default() } else { shown.trim() };
    let in_card = in_card
        || matches!(&call.card, ToolCard::Command(card) if card.output.text(&call.result).trim() == said);
    let in_card = in_card || matches!(&call.card, ToolCard::File { text, .. } if *text == call.result);
    let in_card = in_card || matches!(&call.card, ToolCard::Matches { lines, .. } if *lines == call.result);
    let in_card = in_card
        || matches!(&call.card, ToolCard::Questions(questions) if questions.iter().all(|q| q.answer.is_some()));
    let in_card =
        in_card || matches!(&call.card, ToolCard::Matches { files, .. } if !failed && !files.is_empty());
    if !in_card && !said.is_empty() {
        if failed {
            out.text_element("p class=\"cap bad\"", outcome_name(call.outcome));
        } else {
            out.lit("<p class=\"cap\">result</p>");
        }
        cx.output(out, said);
    }
    message_files::render_files(cx, out, &call.files, &[]);
}

fn card(cx: &mut RenderContext<'_>, out: &mut Markup, call: &CallView) {
    match &call.card {
        ToolCard::Command(card) => command(cx, out, card, &call.result),
        ToolCard::File { path, text, start_line, .. } => {
            path_line(out, path);
            file(cx, out, path, text, *start_line);
        }
        ToolCard::Diff { path, hunks, by_hand, .. } => {
            path_line(out, path);
            if *by_hand {
                out.lit("<p class=\"note\">edited by the user before accepting</p>");
            }
            render_diff(cx, out, path, hunks);
        }
        ToolCard::Matches { pattern, place, files, lines } => {
            fields(out, &[("pattern", pattern), ("in", place)]);
            if !files.is_empty() {
                out.lit("<ul class=\"files\">");
                for file in files {
                    out.text_element("li", text_format::path(file, cx.cwd.as_deref()));
                }
                out.lit("</ul>");
            }
            cx.output(out, lines);
        }
        ToolCard::Todos(todos) => render_todos(out, todos),
        ToolCard::Page { url, status, prompt, text } => {
            out.lit("<p class=\"path\">");
            prose::link(out, url, url);
            out.lit("</p>");
            fields(out, &[("status", status), ("prompt", prompt)]);
            let (text, left) = text_format::truncate(text, cx.options.max_output);
            out.lit("<div class=\"prose\">");
            prose::markdown(out, text);
            out.lit("</div>");
            omitted_note(out, left);
        }
        ToolCard::Links { query, links, text } => {
            fields(out, &[("query", query)]);
            out.lit("<ol class=\"links\">");
            for (title, url) in links {
                out.lit("<li>");
                prose::link(out, url, title);
                out.lit("</li>");
            }
            out.lit("</ol>");
            if !text.is_empty() {
                out.lit("<div class=\"prose\">");
                prose::markdown(out, text);
                out.lit("</div>");
            }
        }
        ToolCard::Plan(plan) => {
            out.lit("<div class=\"prose\">");
            prose::markdown(out, plan);
            out.lit("</div>");
        }
        ToolCard::Questions(questions) => questions.iter().for_each(|asked| question(out, asked)),
        ToolCard::Message { to, text } => {
            fields(out, &[("to", to)]);
            out.lit("<div class=\"prose\">");
            prose::markdown(out, text);
            out.lit("</div>");
        }
        ToolCard::Fields(found) => {
            let found: Vec<(&str, &str)> = found.iter().map(|(key, value)| (&**key, &**value)).collect();
            fields(out, &found);
        }
        ToolCard::Agent { .. } => {}
    }
}

fn path_line(out: &mut Markup, path: &str) {
    out.text_element("p class=\"path\"", path);
}

/// Adds a list of named values, without the empty ones.
fn fields(out: &mut Markup, fields: &[(&str, &str)]) {
    if fields.iter().all(|(_, value)| value.is_empty()) {
        return;
    }
    out.lit("<dl class=\"fields\">");
    for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
        out.lit("<dt>").text(name).lit("</dt><dd>").text(value).lit("</dd>");
    }
    out.lit("</dl>");
}

fn command(cx: &RenderContext<'_>, out: &mut Markup, card: &CommandCard, result: &str) {
    if !card.description.is_empty() {
        out.text_element("p class=\"cap\"", &card.description);
    }
    if !card.command.is_empty() {
        out.lit("<div class=\"code command\" data-lang=\"sh\"><pre tabindex=\"0\"><code>")
            .text(&card.command)
            .lit("</code></pre></div>");
    }
    cx.output(out, card.output.text(result));
    if !card.errors.trim().is_empty() {
        out.lit("<p class=\"cap\">stderr</p>");
        cx.output(out, &card.errors);
    }
    if let Some(code) = card.exit_code.filter(|code| *code != 0) {
        out.lit("<p class=\"cap bad\">exit ").text(&code.to_string()).lit("</p>");
    }
    if let Some(path) = &card.kept_at {
        out.lit("<p class=\"note\">full output saved to <code>").text(path).lit("</code> (not included)</p>");
    }
    command_changes(cx, out, &card.changes);
}

/// Adds the changes that a command made to files.
fn command_changes(cx: &RenderContext<'_>, out: &mut Markup, changes: &CommandChanges) {
    for file in changes.detailed() {
        out.lit("<p class=\"path\">").text(&file.short_path);
        out.lit(" <span class=\"note\">").text(&file.gist()).lit("</span></p>");
        render_diff(cx, out, &file.path, &file.hunks);
    }
    if let Some(label) = changes.label_of_rest() {
        out.text_element("p class=\"note\"", &label);
    }
    let mut names = changes.names_only().peekable();
    if names.peek().is_some() {
        out.lit("<ul class=\"files\">");
        names.for_each(|name| {
            out.text_element("li", name);
        });
        out.lit("</ul>");
    }
}

/// Adds the language of a code element, derived from the extension of `path`. `page.js` highlights by it.
fn language(out: &mut Markup, path: &str) {
    let name = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let extension = name.rsplit('.').next().unwrap_or_default();
    if !extension.is_empty() && extension.len() <= 12 {
        out.lit(" data-lang=\"").text(extension).lit("\"");
    }
}

fn file(cx: &RenderContext<'_>, out: &mut Markup, path: &str, text: &str, start_line: u64) {
    let (text, left) = text_format::truncate(text.trim_end_matches('\n'), cx.options.max_output);
    if text.is_empty() {
        return;
    }
    out.lit("<div class=\"code lines\"");
    language(out, path);
    out.lit(">");
    out.lit("<pre class=\"nos\" aria-hidden=\"true\">");
    for line_no in start_line..start_line.saturating_add(text.lines().count() as u64) {
        out.num(line_no).lit("\n");
    }
    out.lit("</pre>");
    out.lit("<pre tabindex=\"0\"><code>").text(text).lit("</code></pre></div>");
    omitted_note(out, left);
}

pub(crate) fn render_diff(cx: &RenderContext<'_>, out: &mut Markup, path: &str, hunks: &[Hunk]) {
    if hunks.is_empty() {
        return;
    }
    let limit = cx.options.max_output.unwrap_or(usize::MAX);
    let mut shown = 0;
    let mut left = 0;
    out.lit("<div class=\"code diff\"");
    language(out, path);
    out.lit("><pre tabindex=\"0\">");
    for (i, hunk) in hunks.iter().enumerate() {
        if i > 0 && left == 0 {
            out.lit("<span class=\"gap\">⋯</span>");
        }
        let (mut old, mut new) = (hunk.old_start, hunk.new_start);
        for line in &hunk.lines {
            // Once a line does not fit, the rest of the diff is omitted.
            if left > 0 || shown + line.text.len() > limit {
                left += line.text.len();
                continue;
            }
            shown += line.text.len();
            let (class, sign) = match line.change {
                DiffChange::Kept => ("<span class=\"same\"", " "),
                DiffChange::Added => ("<span class=\"new\"", "+"),
                DiffChange::Removed => ("<span class=\"old\"", "-"),
            };
            out.lit(class);
            if line.change != DiffChange::Added {
                line_no(out, " data-o=\"", &mut old);
            }
            if line.change != DiffChange::Removed {
                line_no(out, " data-n=\"", &mut new);
            }
            out.lit(">").lit(sign);
            let mut at = 0;
            for range in &line.changed {
                out.text(&line.text[at..range.start]).text_element("b", &line.text[range.clone()]);
                at = range.end;
            }
            out.text(&line.text[at..]).lit("\n</span>");
        }
    }
    out.lit("</pre></div>");
    omitted_note(out, left);
}

/// Adds the line number and increments it. A number of 0 is unknown and is left out.
fn line_no(out: &mut Markup, attribute: &'static str, line_no: &mut u64) {
    if *line_no > 0 {
        out.lit(attribute).num(*line_no).lit("\"");
        *line_no += 1;
    }
}

fn render_todos(out: &mut Markup, todos: &[Todo]) {
    out.lit("<ul class=\"todos\">");
    for todo in todos {
        let (class, mark) = match &*todo.status {
            "completed" => ("<li class=\"done\">", "☑"),
            "in_progress" => ("<li class=\"active\">", "▶"),
            "deleted" => ("<li class=\"deleted\">", "☒"),
            _ => ("<li>", "☐"),
        };
        out.lit(class).lit("<span class=\"tick\">").lit(mark).lit("</span> ").text(&todo.text);
        if let Some(change) = todo.change() {
            out.lit(" <span class=\"detail\">").text(&change).lit("</span>");
        }
        if !todo.detail.is_empty() {
            out.text_element("div class=\"detail\"", &todo.detail);
        }
        out.lit("</li>");
    }
    out.lit("</ul>");
}

fn question(out: &mut Markup, question: &Question) {
    out.lit("<p class=\"question\">").text(&question.text).lit("</p><ul class=\"todos\">");
    for option in &question.options {
        let mark = if question.has_chosen(&option.label) {
            "<li class=\"active\"><span class=\"tick\">●</span> "
        } else {
            "<li><span class=\"tick\">○</span> "
        };
        out.lit(mark).text(&option.label);
        if !option.description.is_empty() {
            out.text_element("div class=\"detail\"", &option.description);
        }
        out.lit("</li>");
    }
    if let Some(answer) = question.free_text_answer() {
        out.lit("<li class=\"active\"><span class=\"tick\">●</span> ").text(&answer).lit("</li>");
    }
    if question.answer.is_none() {
        out.lit("<li class=\"detail\">not answered</li>");
    }
    out.lit("</ul>");
    if let Some(notes) = &question.notes {
        out.text_element("div class=\"prompt\"", notes);
    }
}

fn agent(cx: &mut RenderContext<'_>, out: &mut Markup, call: &CallView, name: &str) {
    let ToolCard::Agent { agent_type, prompt, answer, background, .. } = &call.card else { return };
    fields(out, &[("agent", agent_type), ("mode", if *background { "background" } else { "" })]);
    // The first turn of a sub-agent repeats the prompt.
    if call.agents.is_empty() && !prompt.is_empty() {
        let mut body = Markup::new();
        body.text_element("div class=\"prompt\"", prompt);
        let mut summary = Markup::new();
        summary.lit("<span class=\"tool\">Prompt</span><span class=\"subject\">");
        summary.text(&text_format::excerpt(prompt, 160)).lit("</span>");
        cx.collapsible(out, None, &summary, body);
    }
    for agent in &call.agents {
        render_subagent(cx, out, agent, name);
    }
    // A background agent reports its answer later, in a separate prompt.
    if !answer.trim().is_empty() && (!*background || call.agents.is_empty()) {
        let (answer, left) = text_format::truncate(answer, cx.options.max_output);
        out.lit("<p class=\"cap\">answer</p><div class=\"prose\">");
        prose::markdown(out, answer);
        out.lit("</div>");
        omitted_note(out, left);
    }
}

/// Adds the number of errors in sub-agents to the row of the call or of the sub-agent.
pub(crate) fn errors_inside(summary: &mut Markup, errors: usize) {
    summary.lit("<span class=\"outcome inside-errors\" title=\"errors in sub-agents\">");
    summary.text(&humanize::plural(errors as u64, "error")).lit("</span>");
}

/// Adds the turns of a sub-agent. One that no call started gets its own anchor.
pub(crate) fn render_subagent(cx: &mut RenderContext<'_>, out: &mut Markup, agent: &AgentView, call: &str) {
    cx.agents.push((agent.id.clone(), call.to_owned()));
    if let Some(at) = cx.options.served_at.clone() {
        return link_subagent(out, agent, &at);
    }
    let mut body = Markup::new();
    body.lit("<div class=\"agent\">");
    let place = TurnContext { agent: Some(&agent.id), id_prefix: "", is_continuation: false };
    for turn in &agent.turns {
        turn::turn(cx, &mut body, turn, place);
    }
    body.lit("</div>");
    let calls: usize = threadline_view::outline(&agent.turns).iter().map(|line| line.calls).sum();
    let mut summary = Markup::new();
    summary.lit("<span class=\"tool\">Sub-agent</span><span class=\"subject\">");
    summary.text(agent.name()).lit("</span>");
    if agent.errors > 0 {
        errors_inside(&mut summary, agent.errors);
    }
    summary.lit("<span class=\"gist\">").text(&humanize::plural(calls as u64, "call"));
    if agent.spent.calls > 0 {
        summary.lit(" · ").text(&agent.spent.short_cost());
    }
    summary.lit("</span>");
    if call.is_empty() {
        cx.collapsible_with_id(out, &format!("a-{}", agent.id), &summary, body);
    } else {
        cx.collapsible(out, None, &summary, body);
    }
}

/// Adds a link to the page of a sub-agent, and a collapsible section that fetches its turns when expanded.
fn link_subagent(out: &mut Markup, agent: &AgentView, at: &str) {
    let id = text_format::encode_url(&agent.id);
    out.lit("<details class=\"inside\" data-src=\"").text(at).lit("/agent?agent=").text(&id);
    out.lit("\"><summary><span class=\"tool\">Sub-agent</span><span class=\"subject\">");
    out.text(agent.name());
    out.lit("</span>");
    if agent.errors > 0 {
        errors_inside(out, agent.errors);
    }
    if agent.spent.calls > 0 {
        out.text_element("span class=\"gist\"", &agent.spent.short_cost());
    }
    out.lit("</summary></details><p class=\"note\"><a href=\"").text(at).lit("?agent=").text(&id);
    out.lit("\">open as a page</a></p>");
}
