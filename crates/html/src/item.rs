//! The items of a turn: replies, thinking, tool calls and events.

use threadline_view::{
    CallView, InputKind, ItemBody, ToolCard, ToolOutcome, TranscriptItem, UsageTotals, humanize,
    outcome_name, short_tool, strip_markdown,
};

use crate::markup::Markup;
use crate::message_files::render_files;
use crate::render_context::RenderContext;
use crate::turn::{TurnContext, label, prompt_rest};
use crate::{ansi, card, prose, text_format};

/// A turn with more markup than this is split into deferred sections.
const SECTION_SIZE: usize = 48 << 10;

/// Meta inputs of at least this many bytes are shown on their own, not grouped with background events.
const LONG_META: usize = 400;

/// The maximum number of characters of the labels of a run of events, which is also that of the labels.
const MAX_LABELS: usize = 120;

/// The items of a turn, without its head, while they are drawn.
pub(crate) struct TurnItems<'a> {
    context: TurnContext<'a>,
    /// The pending run of background items. Several are drawn as one line, so the run ends at the next other
    /// item.
    run: Vec<TranscriptItem>,
    is_deferred: bool,
    section: Markup,
    /// The range of lines in the section, and the number of items.
    lines: (u64, u64),
    rows: usize,
    /// Whether an earlier section was already added.
    has_sections: bool,
}

/// An empty range of lines, which [`extend_range`] extends.
pub(crate) const EMPTY_RANGE: (u64, u64) = (u64::MAX, 0);

/// Extends a range of lines by the line of an item.
pub(crate) fn extend_range(lines: (u64, u64), item: &TranscriptItem) -> (u64, u64) {
    (lines.0.min(item.line_no), lines.1.max(item.line_no))
}

impl<'a> TurnItems<'a> {
    pub(crate) fn new(cx: &RenderContext<'_>, place: TurnContext<'a>) -> Self {
        Self {
            context: place,
            run: Vec::new(),
            is_deferred: cx.sections.is_some() && place.agent.is_none(),
            section: Markup::new(),
            lines: EMPTY_RANGE,
            rows: 0,
            has_sections: false,
        }
    }

    /// Puts the items from now on into deferred sections.
    pub(crate) fn defer(&mut self) {
        self.is_deferred = true;
    }

    /// Adds the next item.
    pub(crate) fn add(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup, item: &TranscriptItem) {
        if is_background(&item.body) {
            self.run.push(item.clone());
        } else {
            self.end_run(cx, out);
            self.draw(cx, out, std::slice::from_ref(item));
        }
    }

    fn end_run(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup) {
        if !self.run.is_empty() {
            let mut run = std::mem::take(&mut self.run);
            self.draw(cx, out, &run);
            run.clear();
            self.run = run;
        }
    }

    fn draw(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup, items: &[TranscriptItem]) {
        if self.section.len() >= SECTION_SIZE {
            self.end_section(cx, out);
        }
        let to = if self.is_deferred { &mut self.section } else { out };
        match items {
            [one] => item(cx, to, one, self.context),
            several => render_background(cx, to, several, self.context),
        }
        self.lines = items.iter().fold(self.lines, extend_range);
        self.rows += items.len();
    }

    fn end_section(&mut self, cx: &mut RenderContext<'_>, out: &mut Markup) {
        cx.deferred_section(out, &mut self.section, self.lines, self.rows);
        (self.lines, self.rows) = (EMPTY_RANGE, 0);
        self.has_sections = true;
    }

    pub(crate) fn finish(mut self, cx: &mut RenderContext<'_>, out: &mut Markup) {
        self.end_run(cx, out);
        // A very large section is not copied.
        if self.has_sections || (self.is_deferred && self.section.len() > 4 * SECTION_SIZE) {
            self.end_section(cx, out);
        } else {
            out.add(&self.section);
        }
    }
}

/// Returns whether an item is not part of the conversation. Consecutive ones are collapsed into one line.
pub(crate) fn is_background(body: &ItemBody) -> bool {
    match body {
        ItemBody::Event { .. } => !body.is_attachment(),
        ItemBody::Thinking(text) => text.is_empty(),
        // Long meta inputs are the text of a command or a skill.
        ItemBody::Input { input, files, text, .. } => {
            *input == InputKind::Meta && files.is_empty() && text.len() < LONG_META
        }
        _ => false,
    }
}

fn render_background(
    cx: &mut RenderContext<'_>,
    out: &mut Markup,
    items: &[TranscriptItem],
    place: TurnContext<'_>,
) {
    let thoughts = items.iter().filter(|item| matches!(item.body, ItemBody::Thinking(_))).count();
    let events = items.len() - thoughts;
    if events == 0 {
        out.lit("<div class=\"run k-thinking\">");
        for item in items {
            open_item(cx, out, "mark", "", item, place);
            out.lit("</div>");
        }
        out.lit("<p class=\"quiet\">")
            .text(&humanize::plural(thoughts as u64, "thinking block"))
            .lit(" not recorded in the log</p></div>");
        return;
    }
    let (mut summary, mut body) = (Markup::new(), Markup::new());
    for found in items {
        item(cx, &mut body, found, place);
    }
    summary
        .lit("<span class=\"tool\">")
        .text(&humanize::plural(events as u64, "event"))
        .lit("</span><span class=\"subject\">");
    let mut labels: Vec<&str> = Vec::new();
    for item in items {
        let label = match &item.body {
            ItemBody::Event { label, .. } => label,
            ItemBody::Thinking(_) => continue,
            _ => "context",
        };
        // More of them are not shown.
        if labels.len() < MAX_LABELS && !labels.contains(&label) {
            labels.push(label);
        }
    }
    summary.text(&text_format::excerpt(&labels.join(", "), MAX_LABELS)).lit("</span>");
    out.lit("<div class=\"run k-event\">");
    // The items have their own anchors and must be found by links, so the section is not deferred.
    cx.collapsible(out, None, &summary, body);
    out.lit("</div>");
}

/// Opens the element of an item and sets its id.
pub(crate) fn open_item(
    cx: &mut RenderContext<'_>,
    out: &mut Markup,
    class: &'static str,
    kind: &'static str,
    item: &TranscriptItem,
    place: TurnContext<'_>,
) {
    out.lit("<div class=\"i ").lit(class).lit(kind).lit("\"");
    if let Some(name) = cx.unique_id(place.element_id(&item.anchor)) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(">");
}

pub(crate) fn close_item(out: &mut Markup, item: &TranscriptItem, place: TurnContext<'_>) {
    if let Some(spent) = &item.spent {
        out.lit("<span class=\"cost\">").text(&humanize::short_count(spent.tokens.context()));
        out.lit(" in · ").text(&humanize::short_count(spent.tokens.output)).lit(" out · ");
        out.text(&spent.short_cost()).lit("</span>");
    }
    out.lit("<a class=\"at\" href=\"#")
        .text(&place.element_id(&item.anchor))
        .lit("\">")
        .text(&item.anchor)
        .lit("</a></div>");
}

fn item(cx: &mut RenderContext<'_>, out: &mut Markup, item: &TranscriptItem, place: TurnContext<'_>) {
    let name = place.element_id(&item.anchor);
    match &item.body {
        ItemBody::Input { input, text, files, context } => {
            let quiet = *input == InputKind::Meta;
            open_item(cx, out, "user-input ", if quiet { "k-context" } else { "k-user" }, item, place);
            input_item(cx, out, *input, text, &name);
            render_files(cx, out, files, context);
        }
        ItemBody::Text(text) if text.trim().is_empty() => {
            open_item(cx, out, "mark ", "k-reply", item, place);
            out.lit("</div>");
            return;
        }
        ItemBody::Text(text) => {
            open_item(cx, out, "reply ", "k-reply", item, place);
            prose::markdown(out, text);
        }
        ItemBody::Thinking(text) if text.trim().is_empty() => {
            open_item(cx, out, "thinking ", "k-thinking", item, place);
            out.lit("<p class=\"quiet\">thinking not recorded in the log</p>");
        }
        ItemBody::Thinking(text) => {
            open_item(cx, out, "thinking ", "k-thinking", item, place);
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Thinking</span><span class=\"subject\">");
            summary.text(&strip_markdown(&text_format::excerpt(text, 160))).lit("</span>");
            prose::markdown(&mut body, text);
            cx.collapsible(out, Some(&name), &summary, body);
        }
        ItemBody::Call(call) => return call_item(cx, out, item, call, place),
        ItemBody::Compaction { trigger, before, after, dropped, summary } => {
            open_item(cx, out, "compaction ", "k-reply", item, place);
            compaction(cx, out, trigger.as_deref(), (*before, *after), *dropped, summary.as_deref(), &name);
        }
        ItemBody::Link { label, url } => {
            open_item(cx, out, "link ", "k-reply", item, place);
            out.lit("<p class=\"line\"><span class=\"tool\">Link</span> ");
            prose::link(out, url, label);
            out.lit("</p>");
        }
        ItemBody::Error { label, text } => {
            open_item(cx, out, "failure bad ", "k-reply", item, place);
            out.lit("<p class=\"line\"><span class=\"outcome\">")
                .text(label)
                .lit("</span> <span class=\"subject\">");
            out.text(text).lit("</span></p>");
        }
        ItemBody::Event { label, text } => {
            let given = item.body.is_attachment();
            open_item(cx, out, "event ", if given { "k-user" } else { "k-event" }, item, place);
            out.lit("<p class=\"line\"><span class=\"tool\">")
                .text(label)
                .lit("</span> <span class=\"subject\">");
            let (text, left) = text_format::truncate(text, Some(cx.options.max_output.unwrap_or(usize::MAX)));
            ansi::terminal(out, text);
            out.lit("</span></p>");
            crate::render_context::omitted_note(out, left);
        }
        ItemBody::Unknown { kind, raw } => {
            open_item(cx, out, "unknown bad ", "k-unknown", item, place);
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"outcome\">unknown line</span><span class=\"subject\">");
            summary.text(&text_format::excerpt(kind.as_deref().unwrap_or(raw), 160)).lit("</span>");
            cx.output(&mut body, raw);
            cx.collapsible(out, Some(&name), &summary, body);
        }
    }
    close_item(out, item, place);
}

/// Adds input of the user that does not open a turn.
fn input_item(cx: &mut RenderContext<'_>, out: &mut Markup, input: InputKind, text: &str, name: &str) {
    match input {
        InputKind::Interrupt => {
            out.lit(
                "<p class=\"line warn\"><span class=\"outcome\">interrupted</span> <span class=\"subject\">",
            );
            let said = text
                .trim()
                .strip_prefix("[Request interrupted by user")
                .and_then(|rest| rest.strip_suffix(']'));
            out.text(&said.map_or(text, str::trim).replace("for tool use", "during a tool call"))
                .lit("</span></p>");
        }
        InputKind::CommandOutput | InputKind::BashOutput | InputKind::ToolResult => cx.output(out, text),
        InputKind::Meta | InputKind::CompactSummary => {
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Context</span><span class=\"subject\">");
            summary.text(&text_format::excerpt(text, 160)).lit("</span>");
            // Skills and commands are Markdown files.
            body.lit("<div class=\"prose\">");
            prose::markdown(&mut body, text.trim());
            body.lit("</div>");
            cx.collapsible(out, Some(name), &summary, body);
        }
        _ => {
            let text = text.trim();
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            out.lit("<p class=\"follow-up\">");
            label(out, input);
            if matches!(input, InputKind::SlashCommand | InputKind::BashInput) {
                out.lit("<code>").text(first).lit("</code></p>");
            } else {
                out.text(first).lit("</p>");
            }
            prompt_rest(cx, out, rest, name);
        }
    }
}

fn call_item(
    cx: &mut RenderContext<'_>,
    out: &mut Markup,
    item: &TranscriptItem,
    call: &CallView,
    place: TurnContext<'_>,
) {
    let bad = call.is_error();
    let name = place.element_id(&item.anchor);
    let number = cx.count_tool_call(&call.name);
    let errors_inside: usize = call.agents.iter().map(|agent| agent.errors).sum();
    out.lit(match (bad, errors_inside > 0) {
        (true, _) => "<div class=\"i call bad k-tool\"",
        (false, true) => "<div class=\"i call bad-inside k-tool\"",
        (false, false) => "<div class=\"i call k-tool\"",
    });
    if let Some(name) = cx.unique_id(name.clone()) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(" data-t=\"").num(number as u64).lit("\">");
    let mut summary = Markup::new();
    let words = matches!(
        call.card,
        ToolCard::Agent { .. }
            | ToolCard::Todos(_)
            | ToolCard::Plan(_)
            | ToolCard::Questions(_)
            | ToolCard::Message { .. }
    );
    summary.lit("<span class=\"tool\"");
    let short = short_tool(&call.name);
    if short != call.name {
        summary.lit(" title=\"").text(&call.name).lit("\"");
    }
    summary.lit(">").text(short);
    summary.lit(if words {
        "</span><span class=\"subject words\">"
    } else {
        "</span><span class=\"subject\">"
    });
    summary
        .text(&text_format::excerpt(text_format::path(&call.subject, cx.cwd.as_deref()), 240))
        .lit("</span>");
    if bad {
        summary.text_element("span class=\"outcome\"", outcome_name(call.outcome));
    }
    if errors_inside > 0 {
        card::errors_inside(&mut summary, errors_inside);
    }
    // A command can complete without a tool error and still have a non-zero exit code.
    let ended_badly =
        !bad && matches!(&call.card, ToolCard::Command(card) if card.exit_code.is_some_and(|code| code != 0));
    // The outcome is shown only if there is no other text.
    let is_silent = !bad && call.outcome != ToolOutcome::Ok && call.running.is_none();
    let outcome = || is_silent.then(|| outcome_name(call.outcome));
    let gist = call.short_result();
    let gist = Some(&*gist).filter(|gist| !gist.is_empty());
    let gist = gist.or_else(|| call.error_text()).or_else(outcome).unwrap_or_default();
    if let Some(elapsed) = call.running {
        summary.lit("<span class=\"running\" data-elapsed=\"").num(elapsed as u64).lit("\">");
        summary.text(&call.state()).lit("</span>");
    }
    summary
        .lit(if ended_badly { "<span class=\"gist bad\">" } else { "<span class=\"gist\">" })
        .text(&text_format::excerpt(gist, 160));
    let mut spent = UsageTotals::default();
    call.agents.iter().for_each(|agent| spent += &agent.spent);
    if spent.calls > 0 {
        summary.lit(if gist.is_empty() { "" } else { " · " }).text(&spent.short_cost());
    }
    summary.lit("</span>");
    if let Some(duration) = call.duration.filter(|duration| *duration >= 1000) {
        summary.text_element("span class=\"duration\"", &humanize::duration(duration));
    }
    let mut body = Markup::new();
    body.lit("<div class=\"body\">");
    card::render_body(cx, &mut body, call, &name);
    body.lit("</div>");
    cx.collapsible(out, Some(&name), &summary, body);
    if let Some(said) = call.denial_reason() {
        out.text_element("p class=\"follow-up\"", said);
    }
    close_item(out, item, place);
}

fn compaction(
    cx: &mut RenderContext<'_>,
    out: &mut Markup,
    trigger: Option<&str>,
    tokens: (Option<u64>, Option<u64>),
    dropped: usize,
    summary: Option<&str>,
    name: &str,
) {
    let mut heading = Markup::new();
    heading.lit("<span class=\"tool\">Compacted</span><span class=\"subject\">");
    let mut parts: Vec<String> = trigger.map(str::to_owned).into_iter().collect();
    match tokens {
        (Some(before), Some(after)) => {
            parts.push(format!("{} → {} tokens", humanize::short_count(before), humanize::short_count(after)))
        }
        (Some(before), None) => parts.push(format!("at {} tokens", humanize::short_count(before))),
        _ => {}
    }
    if dropped > 0 {
        parts.push(format!("{} dropped", humanize::plural(dropped as u64, "line")));
    }
    heading.text(&parts.join(" · ")).lit("</span>");
    match summary {
        Some(summary) => {
            let mut body = Markup::new();
            body.lit("<div class=\"body\">");
            prose::markdown(&mut body, summary);
            body.lit("</div>");
            cx.collapsible(out, Some(name), &heading, body);
        }
        None => {
            out.lit("<p class=\"line\">").add(&heading).lit("</p>");
        }
    }
}
