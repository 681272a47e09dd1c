//! Home: the sessions of all projects.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use threadline_view::{
    Choices, Chosen, Figures, Selection, SessionCard, SortBy, figure, short_model, short_tool,
};

use super::chooser::chooser;
use super::foot::foot;
use super::link;
use crate::markup::Markup;
use crate::words;

/// The data of the home page.
#[derive(Clone, Copy, Debug)]
pub struct HomePage<'a> {
    /// The filters and sort order.
    pub selection: &'a Selection,
    /// The matching sessions of the current page.
    pub chosen: &'a Chosen<'a>,
    /// The values that each filter offers, with counts.
    pub choices: &'a Choices,
    /// The total number of sessions.
    pub total: usize,
    /// Errors of logs that could not be read.
    pub unread: &'a [String],
    /// The folders that were searched, shown if there are no sessions.
    pub homes: &'a [String],
    /// The sequence number of the last server event, so that the page can detect events it missed.
    pub news: u64,
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
    .num(page.news)
    .lit("\">");
    shelf(&mut out, page, &names);
    out.lit("</div></main>\n</div>\n");
    let pairs = page.selection.pairs();
    let twin = |path| link::href(path, pairs.iter().map(|(key, value)| (*key, &**value)));
    foot(&mut out, &twin("/index.json"), Some(&twin("/index.md")));
    out
}

/// Returns the link to a selection.
fn to(selection: &Selection) -> String {
    let pairs = selection.pairs();
    link::href("/", pairs.iter().map(|(key, value)| (*key, &**value)))
}

/// Returns the link to the current selection after a change, at its first page.
pub(super) fn with(page: &HomePage<'_>, change: impl FnOnce(&mut Selection)) -> String {
    let mut selection = Selection { page: 0, ..page.selection.clone() };
    change(&mut selection);
    to(&selection)
}

/// Adds the list of sessions, with its status line.
fn shelf(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>) {
    status(out, page);
    for error in page.unread {
        out.lit("<p class=\"error-message\">").text(error).lit("</p>\n");
    }
    if page.chosen.cards.is_empty() {
        return nothing(out, page);
    }
    out.lit("<table class=\"session-list\"><thead><tr>");
    for (sort, name) in [
        (SortBy::Title, "Session"),
        (SortBy::Turns, "Turns"),
        (SortBy::Tokens, "Tokens"),
        (SortBy::Cost, "Cost"),
        (SortBy::Modified, "Last active"),
    ] {
        column(out, page, sort, name);
    }
    out.lit("</tr></thead>\n<tbody>");
    let by_day = matches!(page.selection.sort, SortBy::Modified);
    let today = words::date(page.now, page.zone);
    let mut last = None;
    for card in &page.chosen.cards {
        let day = words::date(card.modified, page.zone).filter(|_| by_day);
        if day != last {
            if let Some(day) = day {
                out.lit("</tbody>\n<tbody><tr class=\"day\"><th colspan=\"5\" scope=\"rowgroup\">");
                out.text(&words::day(day, today)).lit("</th></tr>\n");
            }
            last = day;
        }
        row(out, page, names, card, by_day);
    }
    out.lit("</tbody></table>\n");
    pages(out, page);
}

fn status(out: &mut Markup, page: &HomePage<'_>) {
    let Chosen { total, .. } = page.chosen;
    out.lit("<div class=\"status\"><p id=\"count\">");
    if page.selection.is_narrowed() {
        out.text(&figure::count(*total as u64)).lit(" of ");
    }
    out.text(&figure::plural(page.total as u64, "session"));
    if page.choices.live > 0 {
        out.lit(" <span>·</span> <span class=\"live-badge\">")
            .num(page.choices.live as u64)
            .lit(" live</span>");
    }
    if page.choices.unread > 0 {
        let read = page.total - page.choices.unread;
        out.lit(" <span>·</span> <span class=\"indexing\">")
            .text(&figure::count(read as u64))
            .lit(" indexed</span>");
    }
    out.lit("</p>");
    chips(out, page);
    sorter(out, page);
    out.lit("</div>\n");
}

/// Adds one chip per active filter, which links to the list without it.
fn chips(out: &mut Markup, page: &HomePage<'_>) {
    let selection = page.selection;
    if !selection.is_narrowed() {
        return;
    }
    out.lit("<p class=\"chips\">");
    let when = |when: &Option<threadline_view::When>| when.as_ref().map(|when| when.text.clone());
    let words = Some(selection.words.clone()).filter(|words| !words.is_empty());
    type Out = fn(&mut Selection);
    let all: [(&'static str, Option<String>, Out); 9] = [
        ("title", words, |selection| selection.words.clear()),
        ("project", selection.project.clone(), |selection| selection.project = None),
        ("branch", selection.branch.clone(), |selection| selection.branch = None),
        ("model", selection.model.clone(), |selection| selection.model = None),
        ("tool", selection.tool.clone(), |selection| selection.tool = None),
        ("from", when(&selection.since), |selection| selection.since = None),
        ("to", when(&selection.until), |selection| selection.until = None),
        ("with errors", selection.errors.then(String::new), |selection| selection.errors = false),
        ("live", selection.live.then(String::new), |selection| selection.live = false),
    ];
    for (name, value, leave) in all {
        let Some(value) = value else { continue };
        out.lit("<a class=\"chip\" href=\"")
            .text(&with(page, leave))
            .lit("\" title=\"Remove this filter\">")
            .lit(name);
        if !value.is_empty() {
            out.lit(" <b>").text(&words::first_words(&value, 60)).lit("</b>");
        }
        out.lit(" <span aria-hidden=\"true\">×</span></a> ");
    }
    let clear = to(&Selection { sort: selection.sort, ..Selection::default() });
    out.lit("<a id=\"clear\" href=\"").text(&clear).lit("\" title=\"Clear the filters (x)\">Clear</a></p>");
}

/// Adds links to the sort orders, including those without a column.
fn sorter(out: &mut Markup, page: &HomePage<'_>) {
    out.lit("<p class=\"sorter\">Sort by ");
    for (sort, name) in [
        (SortBy::Modified, "last active"),
        (SortBy::Created, "started"),
        (SortBy::Cost, "cost"),
        (SortBy::Errors, "errors"),
        (SortBy::Size, "size"),
    ] {
        out.lit("<a href=\"").text(&with(page, |selection| selection.sort = sort)).lit("\"");
        if page.selection.sort == sort {
            out.lit(" aria-current=\"true\"");
        }
        out.lit(">").lit(name).lit("</a> ");
    }
    out.lit("</p>");
}

fn column(out: &mut Markup, page: &HomePage<'_>, sort: SortBy, name: &'static str) {
    out.lit("<th scope=\"col\"");
    if sort != SortBy::Title {
        out.lit(" class=\"n\"");
    }
    if page.selection.sort == sort {
        out.lit(if sort == SortBy::Title { " aria-sort=\"ascending\"" } else { " aria-sort=\"descending\"" });
    }
    out.lit("><a href=\"")
        .text(&with(page, |selection| selection.sort = sort))
        .lit("\">")
        .lit(name)
        .lit("</a></th>");
}

fn row(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>, card: &SessionCard, by_day: bool) {
    out.lit("<tr class=\"s").lit(if card.live { " live" } else { "" }).lit("\" data-id=\"").text(&card.id);
    out.lit("\"><td class=\"session-cell\">");
    if card.live {
        out.lit("<span class=\"live-badge\">Live</span>");
    }
    out.lit("<a class=\"go\" href=\"").text(&link::session(&card.id)).lit("\">");
    out.text(&words::first_words(&card.title, 180)).lit("</a>");
    let prompt = card.first_prompt.as_deref().map(|prompt| words::first_words(prompt, 220));
    if let Some(prompt) = prompt.filter(|prompt| *prompt != words::first_words(&card.title, 220)) {
        out.lit("<p class=\"first\">").text(&prompt).lit("</p>");
    }
    facts(out, page, names, card);
    out.lit("</td>");
    let figures = card.figures.as_ref();
    number(out, "turns", figures.map(|figures| (figure::count(figures.tally.turns), None)));
    number(out, "tokens", figures.map(tokens));
    number(out, "cost", figures.map(cost));
    out.lit("<td class=\"n f-when\">");
    let now = page.now;
    let shown = if by_day {
        words::clock_or_ago(card.modified, now, page.zone)
    } else {
        words::ago(card.modified, now, page.zone)
    };
    words::time(out, card.modified, &shown, page.zone);
    out.lit("</td></tr>\n");
}

fn number(out: &mut Markup, name: &'static str, figure: Option<(String, Option<String>)>) {
    out.lit("<td class=\"n f-").lit(name).lit("\"");
    match figure {
        Some((shown, exact)) => {
            if let Some(exact) = exact {
                out.lit(" title=\"").text(&exact).lit("\"");
            }
            out.lit(">").text(&shown).lit("<span class=\"unit\"> ").lit(name).lit("</span>");
        }
        None => {
            out.lit("><span class=\"pending\" title=\"Not indexed yet\">…</span>");
        }
    }
    out.lit("</td>");
}

fn tokens(figures: &Figures) -> (String, Option<String>) {
    let tokens = figures.totals.tokens;
    let told = format!(
        "{} input, {} output, {} cache read, {} cache write",
        figure::count(tokens.input),
        figure::count(tokens.output),
        figure::count(tokens.cache_read),
        figure::count(tokens.cache_write())
    );
    (figure::short_count(tokens.total()), Some(told))
}

fn cost(figures: &Figures) -> (String, Option<String>) {
    let totals = &figures.totals;
    let told = match totals.caveat() {
        Some(caveat) => format!("at least ${}: {caveat}", totals.cost),
        None => format!("${}", totals.cost),
    };
    (words::cost(totals), Some(told))
}

/// Adds the project, branch, models, tools and errors of a session.
fn facts(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>, card: &SessionCard) {
    out.lit("<p class=\"facts\">");
    if page.selection.project.is_none() {
        let href = with(page, |selection| selection.project = Some(card.project.clone()));
        out.lit("<a class=\"in\" href=\"").text(&href).lit("\" title=\"").text(&card.project).lit("\">");
        let name = names.get(&*card.project).copied();
        out.text(name.unwrap_or_else(|| link::project_name(&card.project))).lit("</a>");
    }
    if let Some(branch) = &card.branch {
        let href = with(page, |selection| selection.branch = Some(branch.clone()));
        out.lit("<a class=\"branch\" href=\"")
            .text(&href)
            .lit("\" title=\"Branch\">")
            .text(branch)
            .lit("</a>");
    }
    if let Some(tag) = &card.tag {
        out.lit("<span class=\"tag\">").text(tag).lit("</span>");
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
        let errors = figures.tally.errors;
        if errors > 0 {
            out.lit("<a class=\"bad\" href=\"").text(&link::session(&card.id)).lit("?only=bad\">");
            out.text(&figure::plural(errors, "error")).lit("</a>");
        }
    }
    if card.agents > 0 {
        out.lit("<span>").text(&figure::plural(card.agents as u64, "sub-agent")).lit("</span>");
    }
    out.lit("</p>");
}

/// The number of tools that are named; the rest is counted.
const TOOLS: usize = 4;

fn tools(out: &mut Markup, tools: &[(String, u64)]) {
    if tools.is_empty() {
        return;
    }
    let told: Vec<String> = tools.iter().map(|(name, count)| format!("{name} {count}")).collect();
    out.lit("<span class=\"used\" title=\"").text(&told.join(", ")).lit("\">");
    for (n, (name, count)) in tools.iter().take(TOOLS).enumerate() {
        out.lit(if n > 0 { ", " } else { "" }).text(&words::first_words(short_tool(name), 28)).lit(" <b>");
        out.text(&figure::short_count(*count)).lit("</b>");
    }
    if tools.len() > TOOLS {
        out.lit(", +").num((tools.len() - TOOLS) as u64);
    }
    out.lit("</span>");
}

fn nothing(out: &mut Markup, page: &HomePage<'_>) {
    out.lit("<div class=\"empty\">");
    if page.total > 0 {
        out.lit("<p>No sessions match these filters</p>");
        if page.choices.unread > 0 && page.selection.needs_figures() {
            out.lit("<p class=\"quiet\">").text(&figure::plural(page.choices.unread as u64, "session"));
            out.lit(" not indexed yet; matches will appear here</p>");
        }
    } else {
        out.lit("<p>No sessions found</p><p class=\"quiet\">Searched ");
        out.text(&page.homes.join(", ")).lit(". Use <code>threadline serve --home DIR</code> for another folder, or <code>--demo</code> for sample sessions.</p>");
    }
    out.lit("</div>\n");
}

fn pages(out: &mut Markup, page: &HomePage<'_>) {
    let Chosen { page: at, pages, .. } = *page.chosen;
    if pages < 2 {
        return;
    }
    let link = |n: usize| to(&Selection { page: n, ..page.selection.clone() });
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
    let mut out =
        format!("# Sessions\n\n{} of {}\n", page.chosen.total, figure::plural(page.total as u64, "session"));
    let mut last = None;
    for card in &page.chosen.cards {
        if last != Some(&card.project) {
            let _ = write!(out, "\n## {}\n\n", words::one_line(&card.project));
            last = Some(&card.project);
        }
        let title = words::markdown(&words::first_words(&card.title, 180));
        let _ = write!(out, "- [{title}]({})", link::session(&card.id));
        let mut facts: Vec<String> = card.branch.iter().map(|branch| words::markdown(branch)).collect();
        if let Some(figures) = &card.figures {
            facts.push(figure::plural(figures.tally.turns, "turn"));
            facts.push(format!("{} tokens", figure::short_count(figures.totals.tokens.total())));
            facts.push(words::cost(&figures.totals));
            if figures.tally.errors > 0 {
                facts.push(figure::plural(figures.tally.errors, "error"));
            }
        }
        if card.live {
            facts.push("live".to_owned());
        }
        facts.extend(words::moment(card.modified, page.zone, "%Y-%m-%d %H:%M").map(|(shown, _)| shown));
        let _ = writeln!(out, " — {}", facts.join(" · "));
    }
    out
}
