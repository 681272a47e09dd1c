//! Search: matches in all sessions, each with a link to its block.

use std::ops::Range;

use jiff::tz::TimeZone;

use super::filter_panel::{date, select};
use super::footer::foot;
use super::link;
use threadline_view::{FilterChoices, add_condition, humanize, short_tool};

use crate::markup::Markup;
use crate::text_format;

/// The data of the search page.
#[derive(Clone, Debug)]
pub struct SearchPage<'a> {
    /// The query as typed.
    pub typed: &'a str,
    /// The same with the conditions of the filters.
    pub query: &'a str,
    /// The filters.
    pub filters: &'a SearchFilters,
    /// The values that the filters offer.
    pub choices: &'a FilterChoices,
    /// The error of an invalid query, and the byte range of the part that caused it.
    pub problem: Option<(&'a str, Option<Range<usize>>)>,
    /// Whether the sessions are sorted by last activity instead of relevance.
    pub newest_first: bool,
    /// The first sessions with matches, in display order.
    pub sessions: &'a [SessionMatches],
    /// The number of all matches.
    pub n_matches: usize,
    /// The number of all sessions with matches.
    pub n_sessions: usize,
    /// Errors of logs that could not be searched.
    pub read_errors: &'a [String],
    /// The current time in milliseconds since 1970.
    pub now: i64,
    /// The time zone of the times shown.
    pub zone: &'a TimeZone,
}

/// The filters of a search, as controls of the page. Each is a condition of the query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchFilters {
    /// The name and the value of each condition that is set, in the order of [`SearchFilters::FIELDS`].
    set: Vec<(&'static str, String)>,
}

impl SearchFilters {
    /// The names of the conditions.
    pub const FIELDS: [&'static str; 6] = ["project", "kind", "tool", "error", "since", "until"];

    /// Collects the filters. `value` returns the value of each.
    pub fn of<'v>(value: impl Fn(&str) -> Option<&'v str>) -> Self {
        let set = Self::FIELDS.into_iter().filter_map(|name| Some((name, value(name)?.to_owned())));
        let set = set.filter(|(name, value)| (*name, &**value) != ("since", "all"));
        Self { set: set.collect() }
    }

    /// Returns the query with the conditions of the filters.
    pub fn query(&self, typed: &str) -> String {
        let mut query = typed.trim().to_owned();
        for (name, value) in &self.set {
            add_condition(&mut query, name, value);
        }
        query
    }

    fn get(&self, name: &str) -> &str {
        self.set.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }
}

/// A session with matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionMatches {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// Its project directory.
    pub project: String,
    /// When it was last active, in milliseconds since 1970.
    pub last_active: i64,
    /// The number of matches in it.
    pub count: usize,
    /// The first matches.
    pub blocks: Vec<BlockMatch>,
}

/// A block with matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockMatch {
    /// Its anchor in its log.
    pub anchor: String,
    /// The sub-agent that the log belongs to.
    pub agent: Option<String>,
    /// Its kind, in one word.
    pub kind: &'static str,
    /// The tool of a call or result.
    pub tool: Option<String>,
    /// Its time in milliseconds since 1970.
    pub at: Option<i64>,
    /// The text around the match.
    pub text: String,
    /// The matches, as byte ranges of `text`.
    pub ranges: Vec<Range<usize>>,
    /// The number of other sessions with a copy of the block.
    pub copies: usize,
}

/// Renders the main content and the footer of the search page.
pub fn search(page: &SearchPage<'_>) -> Markup {
    let mut out = Markup::new();
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"search\">\n<h1 class=\"sr\">Search</h1><form role=\"search\" class=\"search-form\" id=\"search-form\" action=\"/search\">");
    out.lit("<input type=\"search\" name=\"q\" id=\"q\" aria-label=\"Search all sessions\" placeholder=\"words, &quot;phrases&quot;, /patterns/, tool:Bash\" autocomplete=\"off\" spellcheck=\"false\" autofocus value=\"");
    out.text(page.typed).lit("\"><select name=\"sort\" aria-label=\"Order of sessions\"><option value=\"\">Most relevant first</option><option value=\"newest\"");
    out.lit(if page.newest_first { " selected" } else { "" });
    out.lit(">Newest first</option></select><button class=\"apply\">Search</button>");
    filter_controls(&mut out, page);
    out.lit("</form>\n<div id=\"results\">");
    out.add(&search_results(page));
    out.lit("</div></main>\n");
    foot(&mut out, &link::href("/search.json", [("q", page.query)]), None);
    out
}

/// The kinds of blocks to choose from.
const KINDS: &[&str] = &["prompt", "reply", "thinking", "tool", "result", "output", "summary", "title"];

fn filter_controls(out: &mut Markup, page: &SearchPage<'_>) {
    let filters = page.filters;
    let FilterChoices { projects, tools, .. } = page.choices;
    out.lit("<fieldset class=\"search-filters\"><legend class=\"sr\">Filters</legend>");
    let chosen = |name: &str| Some(filters.get(name)).filter(|value| !value.is_empty());
    let (projects, tools) = (projects.iter(), tools.iter());
    select(out, "Project", "project", projects.map(|(name, _)| (&**name, None)), chosen("project"));
    select(out, "Kind", "kind", KINDS.iter().map(|kind| (*kind, None)), chosen("kind"));
    select(out, "Tool", "tool", tools.map(|(name, _)| (&**name, None)), chosen("tool"));
    out.lit(
        "<label class=\"field\"><span>Errors</span><select name=\"error\"><option value=\"\">any</option>",
    );
    for (value, label) in [("true", "only errors"), ("false", "no errors")] {
        out.lit("<option value=\"").lit(value);
        out.lit(if filters.get("error") == value { "\" selected>" } else { "\">" })
            .lit(label)
            .lit("</option>");
    }
    out.lit("</select></label>");
    for (label, name) in [("From", "since"), ("To", "until")] {
        date(out, label, name, chosen(name));
    }
    out.lit("</fieldset>");
}

/// Renders only the results, to replace those of a page that is already open.
pub fn search_results(page: &SearchPage<'_>) -> Markup {
    let mut out = Markup::new();
    if let Some((problem, part)) = &page.problem {
        query_error(&mut out, page.query, problem, part.clone());
        return out;
    }
    if page.query.trim().is_empty() {
        syntax_help(&mut out);
        return out;
    }
    out.lit("<p class=\"status\" id=\"count\">");
    match page.n_matches {
        0 => out.lit("No matches"),
        n_matches => out
            .text(&humanize::plural(n_matches as u64, "match"))
            .lit(" in ")
            .text(&humanize::plural(page.n_sessions as u64, "session")),
    };
    out.lit("</p>\n");
    for session in page.sessions {
        session_section(&mut out, page, session);
    }
    let n_hidden = page.n_sessions.saturating_sub(page.sessions.len());
    if n_hidden > 0 {
        let n_shown = page.sessions.iter().map(|session| session.count).sum();
        let n_matches = page.n_matches.saturating_sub(n_shown);
        out.lit("<p class=\"note\">Not shown: ")
            .text(&humanize::plural(n_matches as u64, "match"))
            .lit(" in ")
            .text(&humanize::plural(n_hidden as u64, "more session"))
            .lit(if page.newest_first { ", last active earlier" } else { ", less relevant" })
            .lit(". Narrow the query or set a filter to see them.</p>\n");
    }
    for trouble in page.read_errors {
        out.lit("<p class=\"error-message\">").text(trouble).lit("</p>\n");
    }
    out
}

fn query_error(out: &mut Markup, query: &str, problem: &str, part: Option<Range<usize>>) {
    out.lit("<div class=\"empty\"><p class=\"error-message\">").text(problem).lit("</p>");
    if let Some((before, at, behind)) = part
        .and_then(|part| Some((query.get(..part.start)?, query.get(part.clone())?, query.get(part.end..)?)))
    {
        out.lit("<p><code>").text(before).text_element("mark", at).text(behind).lit("</code></p>");
    }
    out.lit("</div>\n");
    syntax_help(out);
}

fn session_section(out: &mut Markup, page: &SearchPage<'_>, session: &SessionMatches) {
    out.lit("<section class=\"hits\"><h2><a href=\"").text(&link::session(&session.id)).lit("\">");
    out.text(&text_format::excerpt(&session.title, 160))
        .lit("</a></h2><p class=\"facts\"><span title=\"")
        .text(&session.project)
        .lit("\">");
    out.text(link::project_name(&session.project)).lit("</span>");
    text_format::add_time(
        out,
        session.last_active,
        &text_format::relative_time(session.last_active, page.now, page.zone),
        page.zone,
    );
    out.lit("</p>\n<ol>");
    for block in &session.blocks {
        out.lit("<li class=\"s\"><a class=\"go\" href=\"")
            .text(&to(page.query, session, block))
            .lit("\"><span class=\"kind\">");
        match &block.tool {
            Some(tool) => out.text(short_tool(tool)),
            None => out.lit(block.kind),
        };
        out.lit("</span> <span class=\"excerpt\">");
        marked(out, &block.text, &block.ranges);
        out.lit("</span></a>");
        if block.agent.is_some() {
            out.lit(" <span class=\"quiet\">sub-agent</span>");
        }
        if block.copies > 0 {
            out.lit(" <span class=\"quiet\">also in ")
                .text(&humanize::plural(block.copies as u64, "other session"))
                .lit("</span>");
        }
        out.lit("</li>\n");
    }
    out.lit("</ol>");
    let more = session.count.saturating_sub(session.blocks.len());
    if more > 0 {
        let narrower = format!("{} session:{}", page.query, session.id);
        out.lit("<p class=\"quiet\"><a href=\"").text(&link::href("/search", [("q", &*narrower)])).lit("\">");
        out.text(&humanize::count(more as u64)).lit(" more in this session</a></p>");
    }
    out.lit("</section>\n");
}

/// Returns the link to a block. It includes the query, so that the page can highlight the matches.
fn to(query: &str, session: &SessionMatches, block: &BlockMatch) -> String {
    let mut href = link::href(&link::session(&session.id), [("q", query)]);
    href.push('#');
    if let Some(agent) = &block.agent {
        href.push_str("a-");
        href.extend(link::encode(agent));
        href.push('-');
    }
    href.extend(link::encode(&block.anchor));
    href
}

/// The maximum number of characters before the first match, and between two matches, of an excerpt.
const LEAD: usize = 60;
const GAP: usize = 80;

/// Adds text with the ranges highlighted. The page shows only a few lines of it, so long text before and
/// between matches is shortened.
fn marked(out: &mut Markup, text: &str, ranges: &[Range<usize>]) {
    let ranges: Vec<_> = ranges.iter().filter(|range| text.get((*range).clone()).is_some()).collect();
    let first = first_needed(text, &ranges);
    let mut done = 0;
    for (n, range) in ranges.iter().enumerate().skip(first) {
        let Some(gap) = text.get(done..range.start) else { continue };
        if n == first {
            add_lead(out, gap);
        } else {
            add_gap(out, gap);
        }
        out.text_element("mark", &text[(*range).clone()]);
        done = range.end;
    }
    out.text(text.get(done..).unwrap_or_default());
}

/// Returns the index of the first match to show: of the first one whose text does not recur later, or of an
/// earlier one that would be part of the text before it.
fn first_needed(text: &str, ranges: &[&Range<usize>]) -> usize {
    let found: Vec<String> = ranges.iter().map(|range| text[(*range).clone()].to_lowercase()).collect();
    let needed = (0..found.len()).find(|n| !found[n + 1..].contains(&found[*n])).unwrap_or(0);
    let is_near = |n: &usize| {
        let between = text.get(ranges[*n].start..ranges[needed].start);
        between.is_some_and(|text| !text.contains('\n') && text.chars().count() <= LEAD)
    };
    (0..needed).rev().take_while(is_near).last().unwrap_or(needed)
}

/// Adds the text before the first match: the end of its line.
fn add_lead(out: &mut Markup, gap: &str) {
    let line = gap.rsplit('\n').next().unwrap_or_default().trim_start();
    let shown = last_words(line, LEAD);
    out.lit(if shown.len() < line.len() { "…" } else { "" }).text(shown);
}

/// Adds the text between two matches.
fn add_gap(out: &mut Markup, gap: &str) {
    let is_short = gap.chars().nth(GAP).is_none() && gap.matches('\n').count() < 2;
    if is_short {
        out.text(gap);
        return;
    }
    let words = humanize::one_line(gap);
    let space = |is_space: bool| if is_space { " " } else { "" };
    out.lit(space(gap.starts_with(char::is_whitespace)));
    match words.chars().nth(GAP) {
        None => out.text(&words),
        Some(_) => out.text(first_words(&words, GAP / 2)).lit(" … ").text(last_words(&words, GAP / 2)),
    };
    out.lit(space(gap.ends_with(char::is_whitespace) && !words.is_empty()));
}

/// Returns the first `max` characters of a text, up to the end of a word if one is near.
fn first_words(text: &str, max: usize) -> &str {
    let end = text.char_indices().nth(max).map_or(text.len(), |(at, _)| at);
    let cut = &text[..end];
    cut.rfind(char::is_whitespace).filter(|at| *at > end / 2).map_or(cut, |at| &cut[..at])
}

/// Returns the last `max` characters of a text, from the beginning of a word if one is near.
fn last_words(text: &str, max: usize) -> &str {
    let Some((start, _)) = text.char_indices().rev().nth(max) else { return text };
    let cut = &text[start..];
    let word = cut.find(char::is_whitespace).filter(|at| *at < cut.len() / 2);
    word.map_or(cut, |at| cut[at..].trim_start())
}

const SYNTAX: &[(&str, &str)] = &[
    ("slow loom", "both words in one block; case-sensitive if a word has a capital letter"),
    ("\"slow loom\"", "whole words in sequence"),
    ("/slow(er)?/i", "a regular expression"),
    ("-loom  -\"a b\"", "must not occur"),
    ("kind:prompt", "prompt, reply, thinking, tool, result, output, task, summary, title, notice"),
    ("role:assistant", "user, assistant, system"),
    ("tool:Bash", "calls of a tool and their results; wildcards: tool:mcp__*"),
    ("path:src/main.rs", "calls that use a file, and their results"),
    ("command:\"git push\"", "calls that run a command, and their results"),
    ("error:true", "errors; error:timeout: errors with this text"),
    ("branch:  model:", "the branch of the line, the model of the reply"),
    ("project:  session:", "the directory of the session, a prefix of its id"),
    ("since:  until:", "2026-03-01, 2026-03, 7d, 12h, today, yesterday"),
];

fn syntax_help(out: &mut Markup) {
    out.lit("<section class=\"search-syntax\"><h2>Search syntax</h2><dl>");
    for (example, meaning) in SYNTAX {
        out.lit("<dt><code>").text(example).lit("</code></dt><dd>").text(meaning).lit("</dd>\n");
    }
    out.lit("</dl></section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(text: &str, words: &[&str]) -> String {
        let mut ranges: Vec<_> = words
            .iter()
            .flat_map(|word| text.match_indices(word).map(|(at, found)| at..at + found.len()))
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        let mut out = Markup::new();
        marked(&mut out, text, &ranges);
        out.into_string()
    }

    #[test]
    fn matches_are_near_the_beginning_of_an_excerpt() {
        assert_eq!(excerpt("a slow loom", &["slow"]), "a <mark>slow</mark> loom");
        let far =
            format!("{}slow\n{}\n{}fast end", "filler ".repeat(20), "middle ".repeat(30), "more ".repeat(30));
        let shown = excerpt(&far, &["slow", "fast"]);
        assert!(shown.starts_with("…filler") && shown.ends_with("<mark>fast</mark> end"), "{shown}");
        assert!(shown.chars().count() < 250 && shown.contains(" … ") && !shown.contains('\n'), "{shown}");
        // Lines above the match, and matches that recur near the others, are left out.
        assert_eq!(
            excerpt("slow one\n\nslow two\n  then fast", &["slow", "fast"]),
            "<mark>slow</mark> two\n  then <mark>fast</mark>"
        );
        assert_eq!(excerpt("slow\n\n\n\nfast", &["slow", "fast"]), "<mark>slow</mark> <mark>fast</mark>");
        assert_eq!(excerpt("x\nslow slow", &["slow"]), "<mark>slow</mark> <mark>slow</mark>");
        let wide = "误".repeat(500);
        let shown = excerpt(&format!("{wide}slow{wide}fast"), &["slow", "fast"]);
        assert!(shown.starts_with("…误") && shown.chars().count() < 250, "{shown}");
        assert_eq!(excerpt("no match", &[]), "no match");
    }
}
