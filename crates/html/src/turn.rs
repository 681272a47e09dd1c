//! Turns: what was asked as the head, figures in the margin, and below what happened.

use threadline_view::{Body, Input, Item, Totals, TurnView, figure, input_name, short_model};

use crate::item::{close_item, is_background, items, open_item};
use crate::markup::Markup;
use crate::picture::attached;
use crate::sheet::Sheet;
use crate::{prose, words};

/// A prompt longer than this is folded behind its beginning.
const LONG_PROMPT: usize = 2000;

/// A first line longer than this is no head; its first sentence is.
const LONG_HEAD: usize = 150;

/// A report of another agent longer than this is folded.
const LONG_REPORT: usize = 700;

/// Where turns stand: in the session, or in one of its sub-agents.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// The sub-agent's id.
    pub(crate) agent: Option<&'a str>,
    /// What stands before the number in a turn's name; empty where turns have none.
    pub(crate) turns: &'static str,
    /// Whether a turn goes on here that has its head elsewhere.
    pub(crate) goes_on: bool,
}

impl Place<'_> {
    pub(crate) const MAIN: Place<'static> = Place { agent: None, turns: "t", goes_on: false };
    pub(crate) const BRANCH: Place<'static> = Place { agent: None, turns: "", goes_on: false };
    pub(crate) const MORE: Place<'static> = Place { agent: None, turns: "t", goes_on: true };

    /// The name of something here. Those of the session itself are as everywhere else.
    pub(crate) fn name(self, anchor: &str) -> String {
        match self.agent {
            Some(agent) => format!("a-{agent}-{anchor}"),
            None => anchor.to_owned(),
        }
    }
}

/// Adds a turn.
pub(crate) fn turn(sheet: &mut Sheet<'_>, out: &mut Markup, turn: &TurnView, place: Place<'_>) {
    let heads = |worded: bool| {
        turn.items.iter().position(|item| match &item.body {
            Body::Input { input, text, .. } if input.is_typed() || input.opens_turn() => {
                !worded || !text.trim().is_empty()
            }
            _ => false,
        })
    };
    // Pictures may stand before the words about them.
    let head = if place.goes_on { None } else { heads(true).or_else(|| heads(false)) };
    let counts: Vec<usize> = sheet.tools.iter().map(|(_, count)| *count).collect();
    // A turn in which nobody asked and nothing was answered goes where its events go.
    let aside = head.is_none() && turn.items.iter().all(|item| is_background(&item.body));
    out.lit(match (place.goes_on, aside) {
        (true, _) => "<section class=\"turn more\"",
        (false, true) => "<section class=\"turn aside\"",
        (false, false) => "<section class=\"turn\"",
    });
    let mut tools_at = None;
    if !place.turns.is_empty() {
        if !place.goes_on {
            out.lit(" id=\"").lit(place.turns).num(turn.number as u64).lit("\"");
        }
        out.lit(" data-a=\"").text(&turn.anchor).lit("\" data-tools=\"");
        tools_at = Some(out.len());
        out.lit("\"");
        if turn.items.iter().any(Item::is_bad) {
            out.lit(" data-bad");
        }
    }
    out.lit(">");
    match head {
        Some(head) => prompt_head(sheet, out, turn, &turn.items[head], place),
        None if place.goes_on => {}
        None => bare_head(sheet, out, turn, place),
    }
    let (before, work) = (out.len(), "<div class=\"work\">");
    out.lit(work);
    items(sheet, out, turn, head, place);
    if out.len() > before + work.len() {
        out.lit("</div>");
    } else {
        out.truncate(before);
    }
    out.lit("</section>\n");
    // Which tools a turn uses is known once it is drawn.
    if let Some(at) = tools_at {
        let mut tools = Markup::new();
        for (number, (_, count)) in sheet.tools.iter().enumerate() {
            if counts.get(number).is_none_or(|before| count > before) {
                tools.num(number as u64).lit(" ");
            }
        }
        out.insert(at, &tools);
    }
}

fn prompt_head(sheet: &mut Sheet<'_>, out: &mut Markup, turn: &TurnView, item: &Item, place: Place<'_>) {
    let Body::Input { input, text, files, context } = &item.body else { return };
    open_item(sheet, out, "head", "", item, place);
    number(out, turn, place);
    let (first, rest) = headed(text.trim());
    let code = matches!(input, Input::SlashCommand | Input::BashInput);
    let machine = matches!(input, Input::TaskNotification | Input::TeammateMessage);
    let level = if place.agent.is_some() { ("<h3", "</h3>") } else { ("<h2", "</h2>") };
    out.lit(level.0).lit(if machine || first.len() > LONG_HEAD { " class=\"less\">" } else { ">" });
    label(out, *input);
    if code {
        out.lit("<code>").text(first).lit("</code>");
    } else if first.is_empty() {
        out.lit("<span class=\"note\">(no text)</span>");
    } else {
        out.text(first.trim_end());
    }
    out.lit(level.1);
    let name = place.name(&item.anchor);
    if machine {
        report(sheet, out, rest, &name);
    } else {
        prompt_rest(sheet, out, rest, &name);
    }
    attached(sheet, out, files, context);
    margin(sheet, out, turn);
    close_item(out, item, place);
}

fn bare_head(sheet: &mut Sheet<'_>, out: &mut Markup, turn: &TurnView, place: Place<'_>) {
    let taken = turn.items.iter().any(|item| item.anchor == turn.anchor);
    out.lit("<div class=\"i head\"");
    if let Some(name) = (!taken).then(|| sheet.name(place.name(&turn.anchor))).flatten() {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(">");
    number(out, turn, place);
    out.lit(if place.agent.is_some() {
        "<h3 class=\"none\">No prompt</h3>"
    } else {
        "<h2 class=\"none\">No prompt</h2>"
    });
    margin(sheet, out, turn);
    out.lit("</div>");
}

fn number(out: &mut Markup, turn: &TurnView, place: Place<'_>) {
    if !place.turns.is_empty() {
        out.lit("<span class=\"no\" aria-hidden=\"true\">").num(turn.number as u64).lit("</span>");
    }
}

/// A prompt's head and the rest: its first line or, where that is long, the first sentence of it.
fn headed(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.len() <= LONG_HEAD {
        return (first, rest);
    }
    let start = &first[..first.floor_char_boundary(LONG_HEAD)];
    let ends =
        [". ", "? ", "! ", ": ", "。", "？"].into_iter().filter_map(|end| Some(start.find(end)? + end.len()));
    match ends.filter(|end| *end > 12).min() {
        Some(end) => (first[..end].trim_end(), &text[end..]),
        None => (first, rest),
    }
}

/// What another agent had to say, in Markdown; folded where it is long.
fn report(sheet: &mut Sheet<'_>, out: &mut Markup, text: &str, name: &str) {
    let text = text.trim();
    let mut body = Markup::new();
    body.lit("<div class=\"prose\">");
    prose::markdown(&mut body, text);
    body.lit("</div>");
    if text.len() <= LONG_REPORT {
        out.add(&body);
        return;
    }
    let mut summary = Markup::new();
    summary
        .lit("<span class=\"tool\">Report</span><span class=\"subject\">")
        .text(&words::first_words(text, 160));
    summary
        .lit("</span><span class=\"gist\">")
        .text(&figure::plural(text.lines().count() as u64, "line"))
        .lit("</span>");
    sheet.fold(out, Some(name), &summary, &body);
}

/// What a prompt says after its first line.
pub(crate) fn prompt_rest(sheet: &mut Sheet<'_>, out: &mut Markup, rest: &str, name: &str) {
    let rest = rest.trim_matches(['\n', '\r']).trim_end();
    if rest.is_empty() {
        return;
    }
    let end = rest.floor_char_boundary(LONG_PROMPT / 2);
    let end = rest[..end].rfind('\n').unwrap_or(end);
    if rest.len() <= LONG_PROMPT || end == 0 {
        out.lit("<div class=\"ask\">").text(rest).lit("</div>");
        return;
    }
    let (start, more) = rest.split_at(end);
    out.lit("<div class=\"ask\">").text(start).lit("</div>");
    let (mut summary, mut body) = (Markup::new(), Markup::new());
    summary
        .lit("<span class=\"tool\">")
        .text(&figure::plural(more.trim().lines().count() as u64, "more line"))
        .lit("</span>");
    body.lit("<div class=\"ask\">").text(more.trim_start_matches('\n')).lit("</div>");
    sheet.fold(out, Some(name), &summary, &body);
}

/// A word about text that came to the user's side in another way than by typing.
pub(crate) fn label(out: &mut Markup, input: Input) {
    let Some(word) = input_name(input) else { return };
    out.lit("<span class=\"kind\">").lit(word).lit("</span> ");
}

/// When, which model, how long, how many tokens: once a turn, in the margin.
fn margin(sheet: &Sheet<'_>, out: &mut Markup, turn: &TurnView) {
    out.lit("<dl class=\"margin\">");
    let start =
        turn.span.and_then(|(start, _)| words::moment(start, &sheet.options.zone, "%-d %b %Y, %H:%M"));
    if let Some((shown, exact)) = start {
        out.lit("<dt>When</dt><dd><time datetime=\"").text(&exact).lit("\" title=\"").text(&exact).lit("\">");
        out.text(&shown).lit("</time></dd>");
    }
    if !turn.models.is_empty() {
        let models: Vec<&str> = turn.models.iter().map(|model| short_model(model)).collect();
        out.lit("<dt>Model</dt><dd title=\"")
            .text(&turn.models.join(", "))
            .lit("\">")
            .text(&models.join(", "))
            .lit("</dd>");
    }
    if let Some((start, end)) = turn.span.filter(|(start, end)| end > start) {
        let timing = turn.timing;
        out.lit("<dt>Took</dt><dd title=\"model ").text(&figure::duration(timing.model));
        out.lit(", tools ").text(&figure::duration(timing.tools));
        if timing.answering > 0 {
            out.lit(", answers of the person ").text(&figure::duration(timing.answering));
        }
        if timing.waiting > 0 {
            out.lit("; waited ").text(&figure::duration(timing.waiting)).lit(" before");
        }
        out.lit("\">").text(&figure::duration(end - start)).lit("</dd>");
    }
    let tokens = turn.tokens;
    if tokens.context() + tokens.output > 0 {
        out.lit("<dt>Tokens</dt><dd title=\"").num(tokens.input).lit(" input, ").num(tokens.cache_read);
        out.lit(" from the cache, ")
            .num(tokens.cache_write)
            .lit(" into it, ")
            .num(tokens.output)
            .lit(" output\">");
        out.text(&figure::short_count(tokens.context()))
            .lit(" in · ")
            .text(&figure::short_count(tokens.output))
            .lit(" out</dd>");
    }
    if turn.spent.calls > 0 {
        out.lit("<dt>Cost</dt><dd title=\"").text(&spent_words(&turn.spent));
        if turn.spent_by_agents.calls > 0 {
            out.lit("; of it sub-agents ").text(&turn.spent_by_agents.short_cost());
        }
        out.lit("\">").text(&turn.spent.short_cost()).lit("</dd>");
    }
    if turn.open {
        out.lit("<dt>State</dt><dd>unfinished</dd>");
    }
    out.lit("</dl>");
}

/// How many calls there were, and why they cost more than is known.
pub(crate) fn spent_words(spent: &Totals) -> String {
    let calls = figure::plural(spent.calls, "call");
    match spent.caveat() {
        Some(caveat) => format!("{calls}; {caveat}"),
        None => calls,
    }
}
