//! The items of a turn: replies, thinking, tool calls and events.

use threadline_view::{
    Body, CallView, Card, Input, Item, Outcome, Totals, figure, outcome_name, short_tool, unmarked,
};

use crate::markup::Markup;
use crate::picture::attached;
use crate::sheet::Sheet;
use crate::turn::{Place, label, prompt_rest};
use crate::{ansi, card, prose, words};

/// A turn with more markup than this is split into deferred sections.
const PIECE: usize = 48 << 10;

/// Meta inputs of at least this many bytes are shown on their own, not grouped with background events.
const LONG_ASIDE: usize = 400;

/// The items of a turn, without its head, while they are drawn.
pub(crate) struct Work<'a> {
    place: Place<'a>,
    /// The pending run of background items. Several are drawn as one line, so the run ends at the next other
    /// item.
    run: Vec<Item>,
    in_pieces: bool,
    piece: Markup,
    /// The range of lines in the section, and the number of items.
    lines: (u64, u64),
    rows: usize,
    /// Whether an earlier section was already added.
    is_cut: bool,
}

/// An empty range of lines, which [`covering`] extends.
pub(crate) const NO_LINES: (u64, u64) = (u64::MAX, 0);

/// Extends a range of lines by the line of an item.
pub(crate) fn covering(lines: (u64, u64), item: &Item) -> (u64, u64) {
    (lines.0.min(item.line_no), lines.1.max(item.line_no))
}

impl<'a> Work<'a> {
    pub(crate) fn new(sheet: &Sheet<'_>, place: Place<'a>) -> Self {
        Self {
            place,
            run: Vec::new(),
            in_pieces: sheet.pack.is_some() && place.agent.is_none(),
            piece: Markup::new(),
            lines: NO_LINES,
            rows: 0,
            is_cut: false,
        }
    }

    /// Adds the next item.
    pub(crate) fn add(&mut self, sheet: &mut Sheet<'_>, out: &mut Markup, item: &Item) {
        if is_background(&item.body) {
            self.run.push(item.clone());
        } else {
            self.end_run(sheet, out);
            self.draw(sheet, out, std::slice::from_ref(item));
        }
    }

    fn end_run(&mut self, sheet: &mut Sheet<'_>, out: &mut Markup) {
        if !self.run.is_empty() {
            let mut run = std::mem::take(&mut self.run);
            self.draw(sheet, out, &run);
            run.clear();
            self.run = run;
        }
    }

    fn draw(&mut self, sheet: &mut Sheet<'_>, out: &mut Markup, items: &[Item]) {
        if self.piece.len() >= PIECE {
            self.end_piece(sheet, out);
        }
        let to = if self.in_pieces { &mut self.piece } else { out };
        match items {
            [one] => item(sheet, to, one, self.place),
            several => background(sheet, to, several, self.place),
        }
        self.lines = items.iter().fold(self.lines, covering);
        self.rows += items.len();
    }

    fn end_piece(&mut self, sheet: &mut Sheet<'_>, out: &mut Markup) {
        sheet.piece(out, &self.piece, self.lines, self.rows);
        // Keeps the allocation.
        self.piece.truncate(0);
        (self.lines, self.rows) = (NO_LINES, 0);
        self.is_cut = true;
    }

    pub(crate) fn finish(mut self, sheet: &mut Sheet<'_>, out: &mut Markup) {
        self.end_run(sheet, out);
        if self.is_cut {
            self.end_piece(sheet, out);
        } else {
            out.add(&self.piece);
        }
    }
}

/// Returns whether an item is not part of the conversation. Consecutive ones are collapsed into one line.
pub(crate) fn is_background(body: &Body) -> bool {
    match body {
        Body::Event { .. } => !body.is_attachment(),
        Body::Thinking(text) => text.is_empty(),
        // Long meta inputs are the text of a command or a skill.
        Body::Input { input, files, text, .. } => {
            *input == Input::Meta && files.is_empty() && text.len() < LONG_ASIDE
        }
        _ => false,
    }
}

fn background(sheet: &mut Sheet<'_>, out: &mut Markup, items: &[Item], place: Place<'_>) {
    let thoughts = items.iter().filter(|item| matches!(item.body, Body::Thinking(_))).count();
    let events = items.len() - thoughts;
    if events == 0 {
        out.lit("<div class=\"run k-thinking\">");
        for item in items {
            open_item(sheet, out, "mark", "", item, place);
            out.lit("</div>");
        }
        out.lit("<p class=\"quiet\">")
            .text(&figure::plural(thoughts as u64, "thinking block"))
            .lit(" not recorded in the log</p></div>");
        return;
    }
    let (mut summary, mut body) = (Markup::new(), Markup::new());
    for found in items {
        item(sheet, &mut body, found, place);
    }
    summary
        .lit("<span class=\"tool\">")
        .text(&figure::plural(events as u64, "event"))
        .lit("</span><span class=\"subject\">");
    let mut labels: Vec<&str> = Vec::new();
    for item in items {
        let label = match &item.body {
            Body::Event { label, .. } => label,
            Body::Thinking(_) => continue,
            _ => "context",
        };
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    summary.text(&words::first_words(&labels.join(", "), 120)).lit("</span>");
    out.lit("<div class=\"run k-event\">");
    // The items have their own anchors and must be found by links, so the section is not deferred.
    sheet.fold(out, None, &summary, &body);
    out.lit("</div>");
}

/// Opens the element of an item and sets its id.
pub(crate) fn open_item(
    sheet: &mut Sheet<'_>,
    out: &mut Markup,
    class: &'static str,
    kind: &'static str,
    item: &Item,
    place: Place<'_>,
) {
    out.lit("<div class=\"i ").lit(class).lit(kind).lit("\"");
    if let Some(name) = sheet.name(place.name(&item.anchor)) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(">");
}

pub(crate) fn close_item(out: &mut Markup, item: &Item, place: Place<'_>) {
    if let Some(spent) = &item.spent {
        out.lit("<span class=\"cost\">").text(&figure::short_count(spent.tokens.context()));
        out.lit(" in · ").text(&figure::short_count(spent.tokens.output)).lit(" out · ");
        out.text(&spent.short_cost()).lit("</span>");
    }
    out.lit("<a class=\"at\" href=\"#")
        .text(&place.name(&item.anchor))
        .lit("\">")
        .text(&item.anchor)
        .lit("</a></div>");
}

fn item(sheet: &mut Sheet<'_>, out: &mut Markup, item: &Item, place: Place<'_>) {
    let name = place.name(&item.anchor);
    match &item.body {
        Body::Input { input, text, files, context } => {
            let quiet = *input == Input::Meta;
            open_item(sheet, out, "user-input ", if quiet { "k-context" } else { "k-user" }, item, place);
            input_item(sheet, out, *input, text, &name);
            attached(sheet, out, files, context);
        }
        Body::Text(text) if text.trim().is_empty() => {
            open_item(sheet, out, "mark ", "k-reply", item, place);
            out.lit("</div>");
            return;
        }
        Body::Text(text) => {
            open_item(sheet, out, "reply ", "k-reply", item, place);
            prose::markdown(out, text);
        }
        Body::Thinking(text) if text.trim().is_empty() => {
            open_item(sheet, out, "thinking ", "k-thinking", item, place);
            out.lit("<p class=\"quiet\">thinking not recorded in the log</p>");
        }
        Body::Thinking(text) => {
            open_item(sheet, out, "thinking ", "k-thinking", item, place);
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Thinking</span><span class=\"subject\">");
            summary.text(&unmarked(&words::first_words(text, 160))).lit("</span>");
            prose::markdown(&mut body, text);
            sheet.fold(out, Some(&name), &summary, &body);
        }
        Body::Call(call) => return call_item(sheet, out, item, call, place),
        Body::Compaction { trigger, before, after, dropped, summary } => {
            open_item(sheet, out, "compaction ", "k-reply", item, place);
            compaction(
                sheet,
                out,
                trigger.as_deref(),
                (*before, *after),
                *dropped,
                summary.as_deref(),
                &name,
            );
        }
        Body::Link { label, url } => {
            open_item(sheet, out, "link ", "k-reply", item, place);
            out.lit("<p class=\"line\"><span class=\"tool\">Link</span> ");
            prose::link(out, url, label);
            out.lit("</p>");
        }
        Body::Trouble { label, text } => {
            open_item(sheet, out, "failure bad ", "k-reply", item, place);
            out.lit("<p class=\"line\"><span class=\"outcome\">")
                .text(label)
                .lit("</span> <span class=\"subject\">");
            out.text(text).lit("</span></p>");
        }
        Body::Event { label, text } => {
            let given = item.body.is_attachment();
            open_item(sheet, out, "event ", if given { "k-user" } else { "k-event" }, item, place);
            out.lit("<p class=\"line\"><span class=\"tool\">")
                .text(label)
                .lit("</span> <span class=\"subject\">");
            let (text, left) = words::clip(text, Some(sheet.options.max_output.unwrap_or(usize::MAX)));
            ansi::terminal(out, text);
            out.lit("</span></p>");
            crate::sheet::left_out(out, left);
        }
        Body::Unknown { kind, raw } => {
            open_item(sheet, out, "unknown bad ", "k-unknown", item, place);
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"outcome\">unknown line</span><span class=\"subject\">");
            summary.text(&words::first_words(kind.as_deref().unwrap_or(raw), 160)).lit("</span>");
            sheet.output(&mut body, raw);
            sheet.fold(out, Some(&name), &summary, &body);
        }
    }
    close_item(out, item, place);
}

/// Adds input of the user that does not open a turn.
fn input_item(sheet: &mut Sheet<'_>, out: &mut Markup, input: Input, text: &str, name: &str) {
    match input {
        Input::Interrupt => {
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
        Input::CommandOutput | Input::BashOutput | Input::ToolResult => sheet.output(out, text),
        Input::Meta | Input::CompactSummary => {
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Context</span><span class=\"subject\">");
            summary.text(&words::first_words(text, 160)).lit("</span>");
            // Skills and commands are Markdown files.
            body.lit("<div class=\"prose\">");
            prose::markdown(&mut body, text.trim());
            body.lit("</div>");
            sheet.fold(out, Some(name), &summary, &body);
        }
        _ => {
            let text = text.trim();
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            out.lit("<p class=\"follow-up\">");
            label(out, input);
            if matches!(input, Input::SlashCommand | Input::BashInput) {
                out.lit("<code>").text(first).lit("</code></p>");
            } else {
                out.text(first).lit("</p>");
            }
            prompt_rest(sheet, out, rest, name);
        }
    }
}

fn call_item(sheet: &mut Sheet<'_>, out: &mut Markup, item: &Item, call: &CallView, place: Place<'_>) {
    let bad = call.is_bad();
    let name = place.name(&item.anchor);
    let number = sheet.tool(&call.name);
    out.lit(if bad { "<div class=\"i call bad k-tool\"" } else { "<div class=\"i call k-tool\"" });
    if let Some(name) = sheet.name(name.clone()) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(" data-t=\"").num(number as u64).lit("\">");
    let mut summary = Markup::new();
    let words = matches!(
        call.card,
        Card::Agent { .. } | Card::Todos(_) | Card::Plan(_) | Card::Questions(_) | Card::Message { .. }
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
    summary.text(&words::first_words(words::path(&call.subject, sheet.cwd.as_deref()), 240)).lit("</span>");
    if bad {
        summary.lit("<span class=\"outcome\">").text(outcome_name(call.outcome)).lit("</span>");
    }
    // A command can complete without a tool error and still have a non-zero exit code.
    let ended_badly =
        !bad && matches!(&call.card, Card::Command(card) if card.exit_code.is_some_and(|code| code != 0));
    // The outcome is shown only if there is no other text.
    let outcome = || (!bad && call.outcome != Outcome::Ok).then(|| outcome_name(call.outcome));
    let gist = Some(&*call.gist).filter(|gist| !gist.is_empty());
    let gist = gist.or_else(|| call.complaint()).or_else(outcome).unwrap_or_default();
    summary
        .lit(if ended_badly { "<span class=\"gist bad\">" } else { "<span class=\"gist\">" })
        .text(&words::first_words(gist, 160));
    let mut spent = Totals::default();
    call.agents.iter().for_each(|agent| spent += &agent.spent);
    if spent.calls > 0 {
        summary.lit(if gist.is_empty() { "" } else { " · " }).text(&spent.short_cost());
    }
    summary.lit("</span>");
    if let Some(duration) = call.duration.filter(|duration| *duration >= 1000) {
        summary.lit("<span class=\"duration\">").text(&figure::duration(duration)).lit("</span>");
    }
    let mut body = Markup::new();
    body.lit("<div class=\"body\">");
    card::body(sheet, &mut body, call, &name);
    body.lit("</div>");
    sheet.fold(out, Some(&name), &summary, &body);
    if let Some(said) = call.objection() {
        out.lit("<p class=\"follow-up\">").text(said).lit("</p>");
    }
    close_item(out, item, place);
}

fn compaction(
    sheet: &mut Sheet<'_>,
    out: &mut Markup,
    trigger: Option<&str>,
    tokens: (Option<u64>, Option<u64>),
    dropped: usize,
    summary: Option<&str>,
    name: &str,
) {
    let mut told = Markup::new();
    told.lit("<span class=\"tool\">Compacted</span><span class=\"subject\">");
    let mut parts: Vec<String> = trigger.map(str::to_owned).into_iter().collect();
    match tokens {
        (Some(before), Some(after)) => {
            parts.push(format!("{} → {} tokens", figure::short_count(before), figure::short_count(after)))
        }
        (Some(before), None) => parts.push(format!("at {} tokens", figure::short_count(before))),
        _ => {}
    }
    if dropped > 0 {
        parts.push(format!("{} dropped", figure::plural(dropped as u64, "line")));
    }
    told.text(&parts.join(" · ")).lit("</span>");
    match summary {
        Some(summary) => {
            let mut body = Markup::new();
            body.lit("<div class=\"body\">");
            prose::markdown(&mut body, summary);
            body.lit("</div>");
            sheet.fold(out, Some(name), &told, &body);
        }
        None => {
            out.lit("<p class=\"line\">").add(&told).lit("</p>");
        }
    }
}
