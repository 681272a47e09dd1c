//! Turns, and what happened in them.

use threadline_view::{
    Attached, Body, CallView, Card, Input, Item, Outcome, Totals, TurnView, short_model, short_tool,
};

use crate::markup::Markup;
use crate::page::Images;
use crate::sheet::Sheet;
use crate::{ansi, card, prose, words};

/// A turn with more markup than this is drawn in pieces.
const PIECE: usize = 48 << 10;

/// A prompt longer than this is folded behind its beginning.
const LONG_PROMPT: usize = 2000;

/// Words put in the user's mouth that are longer than this are no aside.
const LONG_ASIDE: usize = 400;

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
    fn name(self, anchor: &str) -> String {
        match self.agent {
            Some(agent) => format!("a-{agent}-{anchor}"),
            None => anchor.to_owned(),
        }
    }
}

/// Adds a turn.
pub(crate) fn turn(sheet: &mut Sheet<'_>, out: &mut Markup, turn: &TurnView, place: Place<'_>) {
    let head = turn.items.iter().position(|item| match &item.body {
        Body::Input { input, .. } => !place.goes_on && (input.is_typed() || input.opens_turn()),
        _ => false,
    });
    let mut work = Markup::new();
    let mut head_markup = Markup::new();
    let counts: Vec<usize> = sheet.tools.iter().map(|(_, count)| *count).collect();
    match head {
        Some(head) => prompt_head(sheet, &mut head_markup, turn, &turn.items[head], place),
        None if place.goes_on => {}
        None => bare_head(sheet, &mut head_markup, turn, place),
    }
    items(sheet, &mut work, turn, head, place);
    // A turn in which nobody asked and nothing was answered goes where its events go.
    let aside = head.is_none() && turn.items.iter().all(|item| is_background(&item.body));
    out.lit(match (place.goes_on, aside) {
        (true, _) => "<section class=\"turn more\"",
        (false, true) => "<section class=\"turn aside\"",
        (false, false) => "<section class=\"turn\"",
    });
    if !place.turns.is_empty() {
        if !place.goes_on {
            out.lit(" id=\"").lit(place.turns).num(turn.number as u64).lit("\"");
        }
        out.lit(" data-a=\"").text(&turn.anchor).lit("\" data-tools=\"");
        for (number, (_, count)) in sheet.tools.iter().enumerate() {
            if counts.get(number).is_none_or(|before| count > before) {
                out.num(number as u64).lit(" ");
            }
        }
        out.lit("\"");
        if turn.items.iter().any(Item::is_bad) {
            out.lit(" data-bad");
        }
    }
    out.lit(">").add(&head_markup);
    if !work.is_empty() {
        out.lit("<div class=\"work\">").add(&work).lit("</div>");
    }
    out.lit("</section>\n");
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
        .text(&words::plural(text.lines().count(), "line"))
        .lit("</span>");
    sheet.fold(out, Some(name), &summary, &body);
}

/// What a prompt says after its first line.
fn prompt_rest(sheet: &mut Sheet<'_>, out: &mut Markup, rest: &str, name: &str) {
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
        .text(&words::plural(more.trim().lines().count(), "more line"))
        .lit("</span>");
    body.lit("<div class=\"ask\">").text(more.trim_start_matches('\n')).lit("</div>");
    sheet.fold(out, Some(name), &summary, &body);
}

/// A word about text that came to the user's side in another way than by typing.
fn label(out: &mut Markup, input: Input) {
    let word = match input {
        Input::QueuedPrompt => "queued",
        Input::TeammateMessage => "from a teammate",
        Input::TaskNotification => "task notification",
        _ => return,
    };
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
        out.lit("<dt>Took</dt><dd title=\"model ").text(&words::duration(timing.model));
        out.lit(", tools ").text(&words::duration(timing.tools));
        if timing.waiting > 0 {
            out.lit("; waited ").text(&words::duration(timing.waiting)).lit(" before");
        }
        out.lit("\">").text(&words::duration(end - start)).lit("</dd>");
    }
    let tokens = turn.tokens;
    if tokens.context() + tokens.output > 0 {
        out.lit("<dt>Tokens</dt><dd title=\"").num(tokens.input).lit(" input, ").num(tokens.cache_read);
        out.lit(" from the cache, ")
            .num(tokens.cache_write)
            .lit(" into it, ")
            .num(tokens.output)
            .lit(" output\">");
        out.text(&words::count(tokens.context()))
            .lit(" in · ")
            .text(&words::count(tokens.output))
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
    let calls = words::plural(usize::try_from(spent.calls).unwrap_or(usize::MAX), "call");
    match spent.caveat() {
        Some(caveat) => format!("{calls}; {caveat}"),
        None => calls,
    }
}

/// Adds everything of a turn but its head.
fn items(sheet: &mut Sheet<'_>, out: &mut Markup, turn: &TurnView, head: Option<usize>, place: Place<'_>) {
    let rest: Vec<&Item> =
        turn.items.iter().enumerate().filter(|(i, _)| Some(*i) != head).map(|(_, item)| item).collect();
    let mut piece = Markup::new();
    let mut from = 0;
    let mut at = 0;
    while at < rest.len() {
        let run = rest[at..].iter().take_while(|item| is_background(&item.body)).count();
        if run > 1 {
            background(sheet, &mut piece, &rest[at..at + run], place);
            at += run;
        } else {
            item(sheet, &mut piece, rest[at], place);
            at += 1;
        }
        if sheet.pack.is_some() && place.agent.is_none() && piece.len() >= PIECE && at < rest.len() {
            sheet.piece(out, &piece, lines(&rest[from..at]), at - from);
            (piece, from) = (Markup::new(), at);
        }
    }
    if from > 0 {
        sheet.piece(out, &piece, lines(&rest[from..]), rest.len() - from);
    } else {
        out.add(&piece);
    }
}

/// The first and the last line that items stand on.
fn lines(items: &[&Item]) -> (u64, u64) {
    let numbers = || items.iter().map(|item| item.line_no);
    (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0))
}

/// Things that happened around the conversation; several in a row are told in one line.
fn is_background(body: &Body) -> bool {
    match body {
        Body::Event { .. } => true,
        Body::Thinking(text) => text.is_empty(),
        // What is long is what a command or a skill told the model.
        Body::Input { input, files, text, .. } => {
            *input == Input::Meta && files.is_empty() && text.len() < LONG_ASIDE
        }
        _ => false,
    }
}

fn background(sheet: &mut Sheet<'_>, out: &mut Markup, items: &[&Item], place: Place<'_>) {
    let thoughts = items.iter().filter(|item| matches!(item.body, Body::Thinking(_))).count();
    let events = items.len() - thoughts;
    if events == 0 {
        out.lit("<div class=\"run k-thinking\">");
        for item in items {
            open_item(sheet, out, "mark", "", item, place);
            out.lit("</div>");
        }
        out.lit("<p class=\"quiet\">thought ")
            .num(thoughts as u64)
            .lit(" times, not kept in the log</p></div>");
        return;
    }
    let (mut summary, mut body) = (Markup::new(), Markup::new());
    for found in items {
        item(sheet, &mut body, found, place);
    }
    summary
        .lit("<span class=\"tool\">")
        .text(&words::plural(events, "event"))
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
    // The items in it have names of their own, so it is not put aside.
    sheet.fold(out, None, &summary, &body);
    out.lit("</div>");
}

/// Opens the element of an item, with its name.
fn open_item(
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

fn close_item(out: &mut Markup, item: &Item, place: Place<'_>) {
    if let Some(spent) = &item.spent {
        out.lit("<span class=\"cost\">").text(&words::count(spent.tokens.context()));
        out.lit(" in · ").text(&words::count(spent.tokens.output)).lit(" out · ");
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
            open_item(sheet, out, "said ", if quiet { "k-context" } else { "k-user" }, item, place);
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
            open_item(sheet, out, "thought ", "k-thinking", item, place);
            out.lit("<p class=\"quiet\">thought, not kept in the log</p>");
        }
        Body::Thinking(text) => {
            open_item(sheet, out, "thought ", "k-thinking", item, place);
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Thinking</span><span class=\"subject\">");
            summary.text(&words::first_words(text, 160)).lit("</span>");
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
            open_item(sheet, out, "trouble bad ", "k-reply", item, place);
            out.lit("<p class=\"line\"><span class=\"outcome\">")
                .text(label)
                .lit("</span> <span class=\"subject\">");
            out.text(text).lit("</span></p>");
        }
        Body::Event { label, text } => {
            open_item(sheet, out, "event ", "k-event", item, place);
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
            summary.text(kind.as_deref().unwrap_or("no entry")).lit("</span>");
            sheet.output(&mut body, raw);
            sheet.fold(out, Some(&name), &summary, &body);
        }
    }
    close_item(out, item, place);
}

/// The user's side inside a turn.
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
            out.text(said.map_or(text, str::trim)).lit("</span></p>");
        }
        Input::CommandOutput | Input::BashOutput | Input::ToolResult => sheet.output(out, text),
        Input::Meta | Input::CompactSummary => {
            let (mut summary, mut body) = (Markup::new(), Markup::new());
            summary.lit("<span class=\"tool\">Context</span><span class=\"subject\">");
            summary.text(&words::first_words(text, 160)).lit("</span>");
            body.lit("<div class=\"ask\">").text(text.trim()).lit("</div>");
            sheet.fold(out, Some(name), &summary, &body);
        }
        _ => {
            let text = text.trim();
            let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
            out.lit("<p class=\"again\">");
            label(out, input);
            out.text(first).lit("</p>");
            prompt_rest(sheet, out, rest, name);
        }
    }
}

fn call_item(sheet: &mut Sheet<'_>, out: &mut Markup, item: &Item, call: &CallView, place: Place<'_>) {
    let bad = call.outcome != Outcome::Ok;
    let name = place.name(&item.anchor);
    let number = sheet.tool(&call.name);
    out.lit(if bad { "<div class=\"i call bad k-tool\"" } else { "<div class=\"i call k-tool\"" });
    if let Some(name) = sheet.name(name.clone()) {
        out.lit(" id=\"").text(&name).lit("\"");
    }
    out.lit(" data-t=\"").num(number as u64).lit("\">");
    let mut summary = Markup::new();
    summary.lit("<span class=\"tool\">").text(short_tool(&call.name)).lit("</span><span class=\"subject\">");
    summary.text(&words::first_words(words::path(&call.subject, sheet.cwd.as_deref()), 240)).lit("</span>");
    if bad {
        summary.lit("<span class=\"outcome\">").text(call.outcome.name()).lit("</span>");
    }
    // A command may be run well and fail all the same.
    let ended_badly =
        !bad && matches!(&call.card, Card::Command(card) if card.exit_code.is_some_and(|code| code != 0));
    summary
        .lit(if ended_badly { "<span class=\"gist bad\">" } else { "<span class=\"gist\">" })
        .text(&words::first_words(&call.gist, 160));
    let mut spent = Totals::default();
    call.agents.iter().for_each(|agent| spent += &agent.spent);
    if spent.calls > 0 {
        summary.lit(if call.gist.is_empty() { "" } else { " · " }).text(&spent.short_cost());
    }
    summary.lit("</span>");
    if let Some(duration) = call.duration.filter(|duration| *duration >= 1000) {
        summary.lit("<span class=\"took\">").text(&words::duration(duration)).lit("</span>");
    }
    let mut body = Markup::new();
    body.lit("<div class=\"body\">");
    card::body(sheet, &mut body, call, &name);
    body.lit("</div>");
    sheet.fold(out, Some(&name), &summary, &body);
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
            parts.push(format!("{} → {} tokens", words::count(before), words::count(after)))
        }
        (Some(before), None) => parts.push(format!("at {} tokens", words::count(before))),
        _ => {}
    }
    if dropped > 0 {
        parts.push(format!("{} left behind", words::plural(dropped, "line")));
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

/// What came with a text: the editor's context, images, documents.
pub(crate) fn attached(sheet: &Sheet<'_>, out: &mut Markup, files: &[Attached], context: &[String]) {
    for about in context {
        out.lit("<p class=\"note context\">").text(&words::first_words(about, 400)).lit("</p>");
    }
    for file in files {
        picture(sheet, out, file);
    }
}

/// The images that a browser shows and that cannot do anything.
const PICTURES: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp"];

fn picture(sheet: &Sheet<'_>, out: &mut Markup, file: &Attached) {
    let data = file.data.trim();
    let is_base64 = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
    let kind = PICTURES.iter().find(|kind| **kind == file.media_type);
    match kind.filter(|_| is_base64 && !data.is_empty() && sheet.options.images == Images::Inline) {
        Some(kind) => {
            out.lit("<figure><img alt=\"\" loading=\"lazy\" src=\"data:")
                .lit(kind)
                .lit(";base64,")
                .text(data);
            out.lit("\"></figure>");
        }
        None => {
            out.lit("<p class=\"note\">").text(&file.media_type);
            if is_base64 {
                out.lit(", ").text(&words::size(data.len() as u64 * 3 / 4));
            } else {
                out.lit(", <code>").text(&words::first_words(data, 200)).lit("</code>");
            }
            out.lit(", not shown</p>");
        }
    }
}
