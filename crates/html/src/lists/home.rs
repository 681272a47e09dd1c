//! Home: the sessions of all projects.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use threadline_view::{
    FilterChoices, SelectedPage, Selection, SessionCard, SessionCardFigures, SortBy, humanize, short_model,
    short_tool,
};

use super::filter_panel::chooser;
use super::footer::foot;
use super::labels::LabelControls;
use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The data of the home page.
#[derive(Clone, Copy, Debug)]
pub struct HomePage<'a> {
    /// The filters and sort order.
    pub selection: &'a Selection,
    /// The matching sessions of the current page.
    pub chosen: &'a SelectedPage<'a>,
    /// The values that each filter offers, with counts.
    pub choices: &'a FilterChoices,
    /// The total number of sessions.
    pub total: usize,
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
    /// The folders that were searched, shown if there are no sessions.
    pub homes: &'a [String],
    /// The sequence number of the last server event, so that the page can detect events it missed.
    pub event_no: u64,
    /// The current time in milliseconds since 1970.
    pub now: i64,
    /// The time zone of the times shown.
    pub zone: &'a TimeZone,
}

/// Renders the main content and the footer of home.
pub fn home(page: &HomePage<'_>) -> Markup {
    let mut out = Markup::new();
    let names = link::project_names(page.choices.projects.iter().map(|(project, _)| &**project));
    out.lit("<div class=\"home\">\n");
    chooser(&mut out, page, &names);
    out.lit(
        "<main id=\"main\" tabindex=\"-1\"><h1 class=\"sr\">Sessions</h1>\n<div id=\"session-list\" data-news=\"",
    )
    .num(page.event_no)
    .lit("\">");
    session_list(&mut out, page, &names);
    out.lit("</div></main>\n</div>\n");
    let pairs = page.selection.pairs();
    let twin = |path| link::href(path, pairs.iter().map(|(key, value)| (*key, &**value)));
    foot(&mut out, &twin("/sessions.json"), Some(&twin("/sessions.md")));
    out
}

/// Returns the link to a selection.
fn selection_link(selection: &Selection) -> String {
    let pairs = selection.pairs();
    link::href("/sessions", pairs.iter().map(|(key, value)| (*key, &**value)))
}

/// Returns the link to the current selection after a change, at its first page.
pub(super) fn changed_link(page: &HomePage<'_>, change: impl FnOnce(&mut Selection)) -> String {
    let mut selection = Selection { page: 0, ..page.selection.clone() };
    change(&mut selection);
    selection_link(&selection)
}

/// Adds the list of sessions, with its status line.
fn session_list(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>) {
    status(out, page);
    for error in page.read_errors {
        out.lit("<p class=\"error-message\">").text(error).lit("</p>\n");
    }
    if page.chosen.cards.is_empty() {
        return empty_list(out, page);
    }
    out.lit("<table class=\"session-list\"><thead><tr>");
    for (sort, name) in [
        (SortBy::Title, "Session"),
        (SortBy::Turns, "Turns"),
        (SortBy::Tokens, "Tokens"),
        (SortBy::Cost, "Cost"),
        (SortBy::Started, "Started"),
        (SortBy::Active, "Last active"),
    ] {
        // Few sessions are looked for by size.
        if sort == SortBy::Started && page.selection.sort == SortBy::Size {
            column(out, page, SortBy::Size, "Size");
        }
        column(out, page, sort, name);
    }
    out.lit("</tr></thead>\n<tbody>");
    let by_day = matches!(page.selection.sort, SortBy::Active);
    let today = text_format::date(page.now, page.zone);
    let mut last = None;
    for card in &page.chosen.cards {
        let day = text_format::date(card.last_active, page.zone).filter(|_| by_day);
        if day != last {
            if let Some(day) = day {
                out.lit("</tbody>\n<tbody><tr class=\"day\"><th colspan=\"6\" scope=\"rowgroup\">");
                out.text(&text_format::day(day, today)).lit("</th></tr>\n");
            }
            last = day;
        }
        row(out, page, names, card, by_day);
    }
    out.lit("</tbody></table>\n");
    pages(out, page);
}

fn status(out: &mut Markup, page: &HomePage<'_>) {
    let SelectedPage { total, .. } = page.chosen;
    out.lit("<div class=\"status\"><p id=\"count\">");
    if page.selection.has_filter() {
        out.text(&humanize::count(*total as u64)).lit(" of ");
    }
    out.text(&humanize::plural(page.total as u64, "session"));
    if page.choices.live > 0 {
        out.lit(" <span>·</span> <span class=\"live-badge\">")
            .num(page.choices.live as u64)
            .lit(" live</span>");
    }
    if page.choices.unread > 0 {
        let read = page.total - page.choices.unread;
        out.lit(" <span>·</span> <span class=\"indexing\">")
            .text(&humanize::count(read as u64))
            .lit(" counted</span>");
    }
    out.lit("</p>");
    chips(out, page);
    sorter(out, page);
    out.lit("</div>\n");
}

/// Adds one chip per active filter, which links to the list without it.
fn chips(out: &mut Markup, page: &HomePage<'_>) {
    let selection = page.selection;
    if !selection.has_filter() {
        return;
    }
    out.lit("<p class=\"chips\">");
    let when = |when: &Option<threadline_view::TypedTime>| when.as_ref().map(|when| when.text.clone());
    let words = Some(selection.words.clone()).filter(|words| !words.is_empty());
    type Out = fn(&mut Selection);
    let all: [(&'static str, Option<String>, Out); 11] = [
        ("title", words, |selection| selection.words.clear()),
        ("project", selection.project.clone(), |selection| selection.project = None),
        ("branch", selection.branch.clone(), |selection| selection.branch = None),
        ("model", selection.model.clone(), |selection| selection.model = None),
        ("tool", selection.tool.clone(), |selection| selection.tool = None),
        ("from", when(&selection.since), |selection| selection.since = None),
        ("to", when(&selection.until), |selection| selection.until = None),
        ("with errors", selection.errors.then(String::new), |selection| selection.errors = false),
        ("live", selection.live.then(String::new), |selection| selection.live = false),
        ("pinned", selection.pinned.then(String::new), |selection| selection.pinned = false),
        ("tag", selection.tag.clone(), |selection| selection.tag = None),
    ];
    for (name, value, leave) in all {
        let Some(value) = value else { continue };
        out.lit("<a class=\"chip\" href=\"")
            .text(&changed_link(page, leave))
            .lit("\" title=\"Remove this filter\">")
            .lit(name);
        if !value.is_empty() {
            out.lit(" <b>").text(&text_format::excerpt(&value, 60)).lit("</b>");
        }
        out.lit(" <span aria-hidden=\"true\">×</span></a> ");
    }
    let clear = selection_link(&Selection { sort: selection.sort, ..Selection::default() });
    out.lit("<a id=\"clear\" href=\"").text(&clear).lit("\" title=\"Clear the filters (x)\">Clear</a></p>");
}

/// Adds links to the sort orders, including those without a column.
fn sorter(out: &mut Markup, page: &HomePage<'_>) {
    out.lit("<p class=\"sorter\">Sort by ");
    for (sort, name) in [
        (SortBy::Active, "last active"),
        (SortBy::Started, "started"),
        (SortBy::Cost, "cost"),
        (SortBy::Errors, "errors"),
        (SortBy::Turns, "turns"),
        (SortBy::Size, "size"),
    ] {
        out.lit("<a href=\"").text(&changed_link(page, |selection| selection.sort = sort)).lit("\"");
        if page.selection.sort == sort {
            out.lit(" aria-current=\"true\"");
        }
        out.lit(">").lit(name).lit("</a> ");
    }
    out.lit("</p>");
}

fn column(out: &mut Markup, page: &HomePage<'_>, sort: SortBy, name: &'static str) {
    out.lit("<th scope=\"col\"");
    out.lit(match sort {
        SortBy::Title => "",
        SortBy::Started => " class=\"n f-started\"",
        _ => " class=\"n\"",
    });
    if page.selection.sort == sort {
        out.lit(if sort == SortBy::Title { " aria-sort=\"ascending\"" } else { " aria-sort=\"descending\"" });
    }
    out.lit("><a href=\"")
        .text(&changed_link(page, |selection| selection.sort = sort))
        .lit("\">")
        .lit(name)
        .lit("</a></th>");
}

fn row(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>, card: &SessionCard, by_day: bool) {
    out.lit("<tr class=\"s").lit(if card.live { " live" } else { "" }).lit("\" data-id=\"").text(&card.id);
    out.lit("\"><td class=\"session-cell\"><div class=\"headline\">");
    if card.live {
        out.lit("<span class=\"live-badge\">Live</span>");
    }
    out.lit("<a class=\"go\" href=\"").text(&link::session(&card.id)).lit("\">");
    out.text(&text_format::excerpt(&card.title, 180)).lit("</a>");
    let prompt = card.first_prompt.as_deref().map(|prompt| text_format::excerpt(prompt, 220));
    if let Some(prompt) = prompt.filter(|prompt| *prompt != text_format::excerpt(&card.title, 220)) {
        out.text_element("p class=\"first\"", &prompt);
    }
    out.lit("</div>");
    facts(out, page, names, card);
    out.lit("</td>");
    let figures = card.figures.as_deref();
    let turns = |figures: &SessionCardFigures| {
        let (turns, unit) = (figures.tally.turns, if figures.tally.turns == 1 { "turn" } else { "turns" });
        RowFigure { shown: humanize::count(turns), unit, exact: None }
    };
    number(out, " f-turns", figures.map(turns));
    number(out, " f-tokens", figures.map(tokens));
    number(out, " f-cost", figures.map(cost));
    if page.selection.sort == SortBy::Size {
        let exact = Some(humanize::plural(card.size, "byte"));
        number(out, "", Some(RowFigure { shown: humanize::bytes(card.size), unit: "", exact }));
    }
    let now = page.now;
    out.lit("<td class=\"n f-started\">");
    if let Some(started) = card.started {
        let day = |at: i64| text_format::format_time(at, page.zone, "%F").map(|(day, _)| day);
        // Below the heading of the day, the time is enough if the session started on it.
        let shown = match by_day && day(started) == day(card.last_active) {
            true => text_format::time_of_day_or_relative(started, now, page.zone),
            false => text_format::relative_time(started, now, page.zone),
        };
        text_format::add_time(out, started, &shown, page.zone);
    }
    out.lit("</td><td class=\"n f-when\">");
    let shown = if by_day {
        text_format::time_of_day_or_relative(card.last_active, now, page.zone)
    } else {
        text_format::relative_time(card.last_active, now, page.zone)
    };
    text_format::add_time(out, card.last_active, &shown, page.zone);
    out.lit("</td></tr>\n");
}

/// A figure of a row.
struct RowFigure {
    shown: String,
    /// The unit, shown where the columns have no headings.
    unit: &'static str,
    /// The tooltip.
    exact: Option<String>,
}

fn number(out: &mut Markup, class: &'static str, figure: Option<RowFigure>) {
    out.lit("<td class=\"n").lit(class).lit("\"");
    match figure {
        Some(figure) => {
            if let Some(exact) = figure.exact {
                out.lit(" title=\"").text(&exact).lit("\"");
            }
            out.lit(">").text(&figure.shown).lit("<span class=\"unit\"> ").lit(figure.unit).lit("</span>");
        }
        None => {
            out.lit("><span class=\"pending\" title=\"Not counted yet\">…</span>");
        }
    }
    out.lit("</td>");
}

fn tokens(figures: &SessionCardFigures) -> RowFigure {
    let tokens = figures.totals.tokens;
    let exact = format!(
        "{} input, {} output, {} cache read, {} cache write",
        humanize::count(tokens.input),
        humanize::count(tokens.output),
        humanize::count(tokens.cache_read),
        humanize::count(tokens.cache_write())
    );
    RowFigure { shown: humanize::short_count(tokens.total()), unit: "tokens", exact: Some(exact) }
}

fn cost(figures: &SessionCardFigures) -> RowFigure {
    let totals = &figures.totals;
    let exact = match totals.caveat() {
        Some(caveat) => format!("at least ${}: {caveat}", totals.cost),
        None => format!("${}", totals.cost),
    };
    RowFigure { shown: totals.short_cost(), unit: "cost", exact: Some(exact) }
}

/// Adds the project, errors, branch, pin, tags, models and tools of a session.
fn facts(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>, card: &SessionCard) {
    out.lit("<div class=\"facts\">");
    if page.selection.project.is_none() {
        let href = changed_link(page, |selection| selection.project = Some(card.project.clone()));
        out.lit("<a class=\"in\" href=\"").text(&href).lit("\" title=\"").text(&card.project).lit("\">");
        let name = names.get(&*card.project).copied();
        out.text(name.unwrap_or_else(|| link::project_name(&card.project))).lit("</a>");
    }
    // Errors come early, since the end of a long line is cut off.
    let errors = card.figures.as_deref().map_or(0, |figures| figures.tally.errors);
    if errors > 0 {
        out.lit("<a class=\"bad\" href=\"").text(&link::session(&card.id)).lit("?only=bad\">");
        out.text(&humanize::plural(errors, "error")).lit("</a>");
    }
    let inherited = card.figures.as_deref().map_or(0, |figures| figures.inherited_calls);
    if inherited > 0 {
        out.lit("<span title=\"Calls of another session, which count there; the turns include them\">+ ");
        out.text(&humanize::plural(inherited, "inherited call")).lit("</span>");
    }
    if let Some(branch) = &card.branch {
        let href = changed_link(page, |selection| selection.branch = Some(branch.clone()));
        out.lit("<a class=\"branch\" href=\"")
            .text(&href)
            .lit("\" title=\"Branch\">")
            .text(branch)
            .lit("</a>");
    }
    let labels = LabelControls { id: &card.id, is_pinned: card.pinned, tags: &card.tags };
    out.add(
        &labels.render_with_links(|tag| changed_link(page, |selection| selection.tag = Some(tag.to_owned()))),
    );
    if let Some(tag) = card.tag.as_ref().filter(|tag| !card.tags.contains(tag)) {
        out.text_element("span class=\"tag\"", tag);
    }
    if let Some(figures) = &card.figures {
        if let Some((model, rest)) = figures.models.split_first() {
            out.lit("<span class=\"model\" title=\"").text(&figures.models.join(", ")).lit("\">");
            out.text(short_model(model));
            if !rest.is_empty() {
                out.lit(" +").num(rest.len() as u64);
            }
            out.lit("</span>");
        }
        tools(out, &figures.tools);
        if figures.tally.agents > 0 {
            out.text_element("span", &humanize::plural(figures.tally.agents, "sub-agent"));
        }
    }
    out.lit("</div>");
}

/// The number of tools that are named; the rest is counted.
const TOOLS: usize = 4;

fn tools(out: &mut Markup, tools: &[(String, u64)]) {
    if tools.is_empty() {
        return;
    }
    let names: Vec<String> = tools.iter().map(|(name, count)| format!("{name} {count}")).collect();
    out.lit("<span class=\"used\" title=\"").text(&names.join(", ")).lit("\">");
    for (n, (name, count)) in tools.iter().take(TOOLS).enumerate() {
        out.lit(if n > 0 { ", " } else { "" }).text(&text_format::excerpt(short_tool(name), 28)).lit(" <b>");
        out.text(&humanize::short_count(*count)).lit("</b>");
    }
    if tools.len() > TOOLS {
        out.lit(", +").num((tools.len() - TOOLS) as u64);
    }
    out.lit("</span>");
}

fn empty_list(out: &mut Markup, page: &HomePage<'_>) {
    out.lit("<div class=\"empty\">");
    if page.total > 0 {
        out.lit("<p>No sessions match these filters</p>");
        if page.choices.unread > 0 && page.selection.needs_figures() {
            out.lit("<p class=\"quiet\">").text(&humanize::plural(page.choices.unread as u64, "session"));
            out.lit(" not counted yet; matches will appear here</p>");
        }
    } else {
        out.lit("<p>No sessions found</p><p class=\"quiet\">Searched ");
        out.text(&page.homes.join(", ")).lit(". Use <code>threadline serve --home DIR</code> for another folder, or <code>--demo</code> for sample sessions.</p>");
    }
    out.lit("</div>\n");
}

fn pages(out: &mut Markup, page: &HomePage<'_>) {
    let SelectedPage { page: at, pages, .. } = *page.chosen;
    if pages < 2 {
        return;
    }
    let link = |n: usize| selection_link(&Selection { page: n, ..page.selection.clone() });
    out.lit("<nav class=\"pages\" aria-label=\"Pages of sessions\">");
    if at > 0 {
        out.lit("<a rel=\"prev\" href=\"")
            .text(&link(at - 1))
            .lit("\" title=\"Previous page ([)\">← Previous</a>");
    }
    out.lit("<span>Page ").num(at as u64 + 1).lit(" of ").num(pages as u64).lit("</span>");
    if at + 1 < pages {
        out.lit("<a rel=\"next\" href=\"").text(&link(at + 1)).lit("\" title=\"Next page (])\">Next →</a>");
    }
    out.lit("</nav>\n");
}

/// Renders the same list as Markdown.
pub fn home_markdown(page: &HomePage<'_>) -> String {
    use std::fmt::Write;
    let mut out = format!(
        "# Sessions\n\n{} of {}\n",
        page.chosen.total,
        humanize::plural(page.total as u64, "session")
    );
    let mut last = None;
    for card in &page.chosen.cards {
        if last != Some(&card.project) {
            let _ = write!(out, "\n## {}\n\n", humanize::one_line(&card.project));
            last = Some(&card.project);
        }
        let title = text_format::markdown(&text_format::excerpt(&card.title, 180));
        let _ = write!(out, "- [{title}]({})", link::session(&card.id));
        let mut facts: Vec<String> = card.branch.iter().map(|branch| text_format::markdown(branch)).collect();
        if let Some(figures) = &card.figures {
            facts.push(humanize::plural(figures.tally.turns, "turn"));
            facts.push(format!("{} tokens", humanize::short_count(figures.totals.tokens.total())));
            facts.push(figures.totals.short_cost());
            if figures.tally.errors > 0 {
                facts.push(humanize::plural(figures.tally.errors, "error"));
            }
        }
        if card.live {
            facts.push("live".to_owned());
        }
        facts.push(humanize::minute(card.last_active, page.zone));
        let _ = writeln!(out, " — {}", facts.join(" · "));
    }
    out
}
