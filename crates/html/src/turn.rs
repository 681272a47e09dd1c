//! Turns: the prompt as a heading, figures in the margin, and the items below.

use std::collections::BTreeSet;

use threadline_view::{
    InputKind, ItemBody, TranscriptItem, TurnView, UsageTotals, agent_anchor, humanize, input_name,
    input_title, short_model, strip_markdown,
};

use crate::item::{TurnItems, close_item, is_background, open_item};
use crate::markup::Markup;
use crate::message_files::render_files;
use crate::outline::MAX_TITLE;
use crate::render_context::RenderContext;
use crate::{prose, text_format};

/// The rest of a prompt is collapsed after its beginning if it is longer than this.
const LONG_PROMPT: usize = 2000;

/// If the first line is longer than this, the heading is its first sentence.
const LONG_HEAD: usize = 150;

/// A report of another agent that is longer than this is collapsed.
const LONG_REPORT: usize = 700;

/// The context of a turn: the session, a branch, or a sub-agent.
#[derive(Clone, Copy)]
pub(crate) struct TurnContext<'a> {
    /// The sub-agent's id.
    pub(crate) agent: Option<&'a str>,
    /// The prefix of turn ids; empty if turns have no ids and numbers.
    pub(crate) id_prefix: &'static str,
    /// Whether this is the continuation of a turn whose head is in another part.
    pub(crate) is_continuation: bool,
}

impl TurnContext<'_> {
    pub(crate) const MAIN: TurnContext<'static> =
        TurnContext { agent: None, id_prefix: "t", is_continuation: false };
    pub(crate) const BRANCH: TurnContext<'static> =
        TurnContext { agent: None, id_prefix: "", is_continuation: false };
    pub(crate) const CONTINUATION: TurnContext<'static> =
        TurnContext { agent: None, id_prefix: "t", is_continuation: true };

    /// Returns the element id of an anchor. Anchors of the session itself are used unchanged.
    pub(crate) fn element_id(self, anchor: &str) -> String {
        match self.agent {
            Some(agent) => agent_anchor(agent, anchor),
            None => anchor.to_owned(),
        }
    }
}

/// Adds a turn.
pub(crate) fn turn(cx: &mut RenderContext<'_>, out: &mut Markup, turn: &TurnView, place: TurnContext<'_>) {
    let mut opened = TurnBuilder::new(cx, out, place);
    turn.items.iter().for_each(|item| opened.add(cx, out, item));
    opened.finish(cx, out, turn);
}

/// A turn under construction. Its items are already written; the head is inserted before them at the end.
pub(crate) struct TurnBuilder<'a> {
    context: TurnContext<'a>,
    /// The byte offset at which it begins.
    at: usize,
    /// The number of calls of the page before this turn.
    n_calls_before: usize,
    head: Option<TurnHead>,
    /// Input without text and the items after it. Text may follow and become the head instead.
    pending: Vec<TranscriptItem>,
    items: TurnItems<'a>,
    /// Whether it consists of background items only.
    is_aside: bool,
    is_bad: bool,
}

impl<'a> TurnBuilder<'a> {
    /// Begins a turn at the end of `out`.
    pub(crate) fn new(cx: &RenderContext<'_>, out: &Markup, place: TurnContext<'a>) -> Self {
        let n_calls_before = cx.calls.len();
        let (head, work) = (None, TurnItems::new(cx, place));
        Self {
            context: place,
            at: out.len(),
            n_calls_before,
            head,
            pending: Vec::new(),
            items: work,
            is_aside: true,
            is_bad: false,
        }
    }

    /// Adds the next item.
    pub(crate) fn add(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup, item: &TranscriptItem) {
        self.is_bad |= item.is_error();
        self.is_aside &= is_background(&item.body);
        let may_be_head = self.head.is_none() && !self.context.is_continuation;
        match &item.body {
            ItemBody::Input { input, text, .. }
                if may_be_head && (input.is_typed() || input.opens_turn()) =>
            {
                self.is_aside = false;
                if text.trim().is_empty() {
                    self.pending.push(item.clone());
                } else {
                    self.head = Some(TurnHead::of(cx, item, self.context));
                    self.flush_pending(cx, out);
                }
            }
            ItemBody::Input { .. } if !self.pending.is_empty() => self.pending.push(item.clone()),
            body if !self.pending.is_empty() && is_background(body) => self.pending.push(item.clone()),
            _ => {
                self.flush_pending(cx, out);
                self.items.add(cx, out, item);
            }
        }
    }

    /// Puts the items from now on into deferred sections.
    pub(crate) fn defer_items(&mut self) {
        self.items.defer();
    }

    /// Draws the items kept back. The first becomes the head if there is none yet.
    fn flush_pending(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup) {
        for item in std::mem::take(&mut self.pending) {
            if self.head.is_none() {
                self.head = Some(TurnHead::of(cx, &item, self.context));
            } else {
                self.items.add(cx, out, &item);
            }
        }
    }

    /// Ends the turn and inserts its head. `turn` provides its totals.
    pub(crate) fn finish(mut self, cx: &mut RenderContext<'_>, out: &mut Markup, turn: &TurnView) {
        let place = self.context;
        self.flush_pending(cx, out);
        self.items.finish(cx, out);
        let mut start = Markup::new();
        // A command that no model answered.
        let is_minor = turn.models.is_empty() && self.head.as_ref().is_some_and(|head| head.is_command);
        start.lit(match (place.is_continuation, self.is_aside) {
            (true, _) => "<section class=\"turn more\"",
            // Hidden together with events.
            (false, true) => "<section class=\"turn aside\"",
            (false, false) if is_minor => "<section class=\"turn minor\"",
            (false, false) => "<section class=\"turn\"",
        });
        if !place.id_prefix.is_empty() {
            if !place.is_continuation {
                start.lit(" id=\"").lit(place.id_prefix).num(turn.number as u64).lit("\"");
            }
            start.lit(" data-a=\"").text(&turn.anchor).lit("\" data-tools=\"");
            let tools: BTreeSet<usize> = cx.calls[self.n_calls_before..].iter().copied().collect();
            for number in tools {
                start.num(number as u64).lit(" ");
            }
            start.lit(if self.is_bad { "\" data-bad" } else { "\"" });
        }
        start.lit(">");
        match self.head {
            Some(head) => head.put(cx, &mut start, turn, place),
            None if place.is_continuation => {}
            None => render_empty_head(cx, &mut start, turn, place),
        }
        if out.len() > self.at {
            start.lit("<div class=\"items\">");
            out.insert(self.at, &start);
            out.lit("</div>");
        } else {
            out.add(&start);
        }
        out.lit("</section>\n");
    }
}

/// The head of a turn, rendered except for the figures of the turn.
struct TurnHead {
    start: Markup,
    text: Markup,
    end: Markup,
    /// Whether the prompt is a command, such as `/clear` or `!ls`.
    is_command: bool,
}

impl TurnHead {
    fn of(cx: &mut RenderContext<'_>, item: &TranscriptItem, place: TurnContext<'_>) -> Self {
        let (mut start, mut text, mut end) = (Markup::new(), Markup::new(), Markup::new());
        open_item(cx, &mut start, "head", "", item, place);
        prompt_head(cx, &mut text, item, place);
        close_item(&mut end, item, place);
        let is_command = matches!(
            item.body,
            ItemBody::Input { input: InputKind::SlashCommand | InputKind::BashInput, .. }
        );
        Self { start, text, end, is_command }
    }

    fn put(&self, cx: &RenderContext<'_>, out: &mut Markup, turn: &TurnView, place: TurnContext<'_>) {
        out.add(&self.start);
        number(out, turn, place);
        out.add(&self.text);
        margin(cx, out, turn);
        out.add(&self.end);
    }
}

fn prompt_head(cx: &mut RenderContext<'_>, out: &mut Markup, item: &TranscriptItem, place: TurnContext<'_>) {
    let ItemBody::Input { input, text, files, context } = &item.body else { return };
    let text = text.trim();
    // The outline names some turns otherwise than by the first line: after a plan or attached files.
    let title =
        input_title(item).filter(|title| !input.is_task_notification() && !text.starts_with(&**title));
    let (first, rest) = title.as_deref().map_or_else(|| split_heading(text), |title| (title, text));
    let code = matches!(input, InputKind::SlashCommand | InputKind::BashInput);
    let machine =
        matches!(input, InputKind::TaskNotification | InputKind::TeammateMessage | InputKind::HostEvent);
    let level = if place.agent.is_some() { ("<h3", "</h3>") } else { ("<h2", "</h2>") };
    out.lit(level.0).lit(if machine || first.len() > LONG_HEAD { " class=\"smaller\">" } else { ">" });
    label(out, *input);
    if code {
        out.text_element("code", first);
    } else if first.is_empty() {
        out.lit("<span class=\"note\">(no text)</span>");
    } else {
        out.text(first.trim_end());
    }
    out.lit(level.1);
    let name = place.element_id(&item.anchor);
    if machine {
        report(cx, out, rest, &name);
    } else {
        prompt_rest(cx, out, rest, &name);
    }
    render_files(cx, out, files, context);
}

fn render_empty_head(cx: &mut RenderContext<'_>, out: &mut Markup, turn: &TurnView, place: TurnContext<'_>) {
    out.lit("<div class=\"i head\"");
    // The first item may already have this id.
    if let Some(name) = cx.unique_id(place.element_id(&turn.anchor)) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(">");
    number(out, turn, place);
    let (start, end) = if place.agent.is_some() {
        ("<h3 class=\"none\">", "</h3>")
    } else {
        ("<h2 class=\"none\">", "</h2>")
    };
    out.lit(start).text(&name(turn)).lit(end);
    margin(cx, out, turn);
    out.lit("</div>");
}

/// Returns the name of a turn without a prompt, as in the outline.
fn name(turn: &TurnView) -> String {
    let title = text_format::excerpt(&turn.title, MAX_TITLE);
    if title.is_empty() { "No prompt".to_owned() } else { title }
}

fn number(out: &mut Markup, turn: &TurnView, place: TurnContext<'_>) {
    if !place.id_prefix.is_empty() {
        out.lit("<span class=\"no\" aria-hidden=\"true\">").num(turn.number as u64).lit("</span>");
    }
}

/// Splits a prompt into heading and rest: after the first line or, if that is long, after its first sentence.
fn split_heading(text: &str) -> (&str, &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.len() <= LONG_HEAD {
        return (first, rest);
    }
    let start = &first[..first.floor_char_boundary(LONG_HEAD)];
    let ends =
        [". ", "? ", "! ", ": ", "。", "？"].into_iter().filter_map(|end| Some(start.find(end)? + end.len()));
    match ends.filter(|end| *end > 12).min() {
        Some(end) => (first[..end].trim_end(), &text[end..]),
        // A line without sentences that is much too long for a heading.
        None if first.len() > LONG_PROMPT => text.split_at(start.rfind(' ').unwrap_or(start.len())),
        None => (first, rest),
    }
}

/// Adds a report of another agent as Markdown, collapsed if it is long.
fn report(cx: &mut RenderContext<'_>, out: &mut Markup, text: &str, name: &str) {
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
        .text(&strip_markdown(&text_format::excerpt(text, 160)));
    summary
        .lit("</span><span class=\"gist\">")
        .text(&humanize::plural(text.lines().count() as u64, "line"))
        .lit("</span>");
    cx.collapsible(out, Some(name), &summary, body);
}

/// Adds the rest of a prompt, after its heading. The end of a long text is collapsed.
pub(crate) fn prompt_rest(cx: &mut RenderContext<'_>, out: &mut Markup, rest: &str, name: &str) {
    let rest = rest.trim_matches(['\n', '\r']).trim_end();
    if rest.is_empty() {
        return;
    }
    let end = rest.floor_char_boundary(LONG_PROMPT / 2);
    let end = rest[..end].rfind('\n').unwrap_or(end);
    let end = fence_around(rest, end).unwrap_or(end);
    if rest.len() <= LONG_PROMPT || end == 0 {
        return render_typed_text(out, rest);
    }
    let (start, more) = rest.split_at(end);
    render_typed_text(out, start);
    let (mut summary, mut body) = (Markup::new(), Markup::new());
    summary.text_element(
        "span class=\"tool\"",
        &humanize::plural(more.trim().lines().count() as u64, "more line"),
    );
    render_typed_text(&mut body, more.trim_start_matches('\n'));
    cx.collapsible(out, Some(name), &summary, body);
}

/// Adds typed text verbatim. Fenced blocks are shown as code, and a text with headings is rendered as
/// Markdown.
fn render_typed_text(out: &mut Markup, text: &str) {
    let headings = text.lines().filter(|line| line.starts_with("## ") || line.starts_with("### "));
    if headings.take(2).count() == 2 {
        out.lit("<div class=\"prose\">");
        prose::markdown(out, text);
        out.lit("</div>");
        return;
    }
    let mut rest = text;
    while let Some((before, language, code, after)) = next_fence(rest) {
        plain(out, before);
        out.lit("<div class=\"code\"");
        if !language.is_empty() {
            out.lit(" data-lang=\"").text(language).lit("\"");
        }
        out.lit("><pre tabindex=\"0\"><code>").text(code).lit("</code></pre></div>");
        rest = after;
    }
    plain(out, rest);
}

fn plain(out: &mut Markup, text: &str) {
    let text = text.trim_matches(['\n', '\r']).trim_end();
    if !text.is_empty() {
        out.text_element("div class=\"prompt\"", text);
    }
}

/// Returns the text before the first fenced block, its language, its content, and the text after it. An
/// unclosed fence does not count.
fn next_fence(text: &str) -> Option<(&str, &str, &str, &str)> {
    let lines = || {
        text.split_inclusive('\n').scan(0, |at, line| Some((std::mem::replace(at, *at + line.len()), line)))
    };
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let mut fences = lines().filter(|(_, line)| is_fence(line));
    let (start, open) = fences.next()?;
    let (end, close) = fences.find(|(_, line)| line.trim() == "```")?;
    let language = open.trim().trim_start_matches('`').split([' ', ',', '{']).next().unwrap_or_default();
    Some((&text[..start], language, &text[start + open.len()..end], &text[end + close.len()..]))
}

/// Returns the start of the fenced block that contains the offset `at`.
fn fence_around(text: &str, at: usize) -> Option<usize> {
    let mut rest = text;
    while let Some((before, .., after)) = next_fence(rest) {
        let start = text.len() - rest.len() + before.len();
        let end = text.len() - after.len();
        if at < end {
            return (start < at).then_some(start);
        }
        rest = after;
    }
    None
}

/// Adds a label for input that was not typed.
pub(crate) fn label(out: &mut Markup, input: InputKind) {
    let Some(word) = input_name(input) else { return };
    out.lit("<span class=\"kind\">").lit(word).lit("</span> ");
}

/// Adds time, model, duration, tokens and cost of a turn, in the margin.
fn margin(cx: &RenderContext<'_>, out: &mut Markup, turn: &TurnView) {
    out.lit("<dl class=\"margin\">");
    let start = turn
        .span
        .and_then(|(start, _)| text_format::format_time(start, &cx.options.zone, "%-d %b %Y, %H:%M"));
    if let Some((shown, exact)) = start {
        out.lit("<dt>Started</dt><dd><time datetime=\"")
            .text(&exact)
            .lit("\" title=\"")
            .text(&exact)
            .lit("\">");
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
        out.lit("<dt>Duration</dt><dd title=\"model ").text(&humanize::duration(timing.model));
        out.lit(", tools ").text(&humanize::duration(timing.tools));
        if timing.user_response > 0 {
            out.lit(", user answers ").text(&humanize::duration(timing.user_response));
        }
        if timing.idle > 0 {
            out.lit("; idle ").text(&humanize::duration(timing.idle)).lit(" before");
        }
        out.lit("\">").text(&humanize::duration(end - start)).lit("</dd>");
    }
    let tokens = turn.tokens;
    if tokens.context() + tokens.output > 0 {
        out.lit("<dt>Tokens</dt><dd title=\"").num(tokens.input).lit(" input, ").num(tokens.cache_read);
        out.lit(" cache read, ")
            .num(tokens.cache_write)
            .lit(" cache write, ")
            .num(tokens.output)
            .lit(" output\">");
        out.text(&humanize::short_count(tokens.context()))
            .lit(" in · ")
            .text(&humanize::short_count(tokens.output))
            .lit(" out</dd>");
    }
    if turn.spent.calls > 0 {
        out.lit("<dt>Cost</dt><dd title=\"").text(&cost_summary(&turn.spent));
        if turn.spent_by_agents.calls > 0 {
            out.lit("; including sub-agents ").text(&turn.spent_by_agents.short_cost());
        }
        out.lit("\">").text(&turn.spent.short_cost()).lit("</dd>");
    }
    if turn.open {
        out.lit("<dt>State</dt><dd>unfinished</dd>");
    }
    out.lit("</dl>");
}

/// Returns the number of calls, and the reason if the cost is only a lower bound.
pub(crate) fn cost_summary(spent: &UsageTotals) -> String {
    let calls = humanize::plural(spent.calls, "call");
    match spent.caveat() {
        Some(caveat) => format!("{calls}; {caveat}"),
        None => calls,
    }
}
