//! Blame and file index: the lines of a file with the turns that wrote them, and the edits of a file.

use std::collections::HashMap;

use threadline_view::humanize;
use threadline_view::wire::{BlameEditObject, BlameLineObject};

use super::chart::SERIES;
use super::footer::foot;
use super::link;
use crate::markup::Markup;
use crate::text_format;

/// The data of the blame page.
#[derive(Clone, Debug)]
pub struct BlamePage<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The lines.
    pub lines: &'a [BlameLineObject],
    /// The turns that wrote lines, and the number of lines of each.
    pub turns: &'a [(BlameEditObject, usize)],
    /// The number of edits by sessions.
    pub n_edits: usize,
    /// Whether the file is in a git repository.
    pub is_in_git: bool,
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
}

/// The location of a file that sessions edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLocation {
    /// On this machine.
    Here,
    /// Nowhere: it was deleted or moved.
    Gone,
    /// On another machine, whose sessions were copied here.
    OtherMachine,
}

/// The data of the page with the edits of a file.
#[derive(Clone, Debug)]
pub struct FilePage<'a> {
    /// The path of the file.
    pub path: &'a str,
    /// The edits in order.
    pub edits: &'a [BlameEditObject],
    /// Where the file is.
    pub location: FileLocation,
    /// Errors of logs that could not be read.
    pub read_errors: &'a [String],
}

/// Returns the link to the call of an edit.
fn edit_link(edit: &BlameEditObject) -> String {
    let mut href = link::session(&edit.session);
    href.push('#');
    href.extend(link::encode(&edit.anchor));
    href
}

fn header(out: &mut Markup, class: &'static str, title: &'static str, path: &str) {
    out.lit("<main id=\"main\" tabindex=\"-1\" class=\"").lit(class);
    out.lit("\">\n<header class=\"opening\"><h1>").lit(title).lit("</h1><p class=\"facts path\">");
    out.text(path).lit("</p>");
}

fn read_errors(out: &mut Markup, errors: &[String]) {
    for error in errors {
        out.text_element("p class=\"error-message\"", error);
    }
}

/// Renders the main content and the footer of the blame page.
pub fn blame(page: &BlamePage<'_>) -> Markup {
    let mut out = Markup::new();
    header(&mut out, "blame", "Blame", page.path);
    let known = page.lines.iter().filter(|line| line.edit.is_some()).count() as u64;
    out.lit("<p class=\"facts\">").text(&humanize::count(known)).lit(" of ");
    out.text(&humanize::plural(page.lines.len() as u64, "line")).lit(" written by sessions <span>·</span> ");
    out.lit("<a href=\"").text(&link::href("/file", [("path", page.path)])).lit("\">");
    out.text(&humanize::plural(page.n_edits as u64, "edit")).lit("</a>");
    out.lit(if page.is_in_git { "" } else { " <span>·</span> not in a git repository" });
    out.lit("</p></header>\n");
    read_errors(&mut out, page.read_errors);
    let colors = turns(&mut out, page.turns);
    out.lit("<div class=\"chart-scroller\"><table class=\"blame-lines\"><caption class=\"sr\">Lines with their origins</caption><thead class=\"sr\"><tr><th scope=\"col\">Origin</th><th scope=\"col\">Line</th><th scope=\"col\">Text</th></tr></thead><tbody>\n");
    let mut last = None;
    for line in page.lines {
        // The commit of a line by a session is not shown.
        let commit = line.commit.as_ref().filter(|_| line.edit.is_none()).map(|commit| &*commit.id);
        let origin = (line.edit.as_ref().map(turn_key), line.origin, commit);
        let is_new_run = last.as_ref() != Some(&origin);
        let color = line.edit.as_ref().and_then(|edit| colors.get(&turn_key(edit)));
        last = Some(origin);
        out.lit("<tr id=\"L").num(line.line).lit("\" class=\"");
        out.lit(color.map_or("unknown", |at| SERIES[at % SERIES.len()]));
        out.lit(if is_new_run { " run\"><td class=\"origin\">" } else { "\"><td class=\"origin\">" });
        if is_new_run {
            origin_cell(&mut out, line);
        }
        out.lit("</td><td class=\"n\"><a href=\"#L").num(line.line).lit("\">").num(line.line);
        out.lit("</a></td><td class=\"line\">").text(&line.text).lit("</td></tr>\n");
    }
    out.lit("</tbody></table></div></main>\n");
    foot(&mut out, &link::href("/blame.json", [("path", page.path)]), None);
    out
}

/// The session and the turn of an edit.
fn turn_key(edit: &BlameEditObject) -> (&str, Option<u64>) {
    (&edit.session, edit.turn)
}

fn turn_label(edit: &BlameEditObject) -> String {
    text_format::excerpt(edit.label(), 160)
}

/// Lists the turns that wrote lines. Returns the colour of each.
fn turns<'e>(
    out: &mut Markup,
    turns: &'e [(BlameEditObject, usize)],
) -> HashMap<(&'e str, Option<u64>), usize> {
    let mut colors = HashMap::new();
    if turns.is_empty() {
        out.lit("<div class=\"empty\"><p>No line was written by a session</p></div>\n");
        return colors;
    }
    out.lit("<section class=\"log\"><h2>Turns</h2><ol class=\"blame-turns\">");
    for (at, (edit, n_lines)) in turns.iter().enumerate() {
        colors.insert(turn_key(edit), at);
        out.lit("<li class=\"").lit(SERIES[at % SERIES.len()]).lit("\"><a href=\"").text(&edit_link(edit));
        out.lit("\">").text(&turn_label(edit)).lit("</a> <span class=\"note\">");
        edit_facts(out, edit);
        out.lit(" · ").text(&humanize::plural(*n_lines as u64, "line")).lit("</span></li>");
    }
    out.lit("</ol></section>\n");
    colors
}

/// Returns the title of the session of an edit, or the start of its id.
fn session_name(edit: &BlameEditObject, length: usize) -> String {
    let id = || edit.session.get(..8).unwrap_or(&edit.session);
    text_format::excerpt(edit.title.as_deref().unwrap_or_else(id), length)
}

/// Adds the session, turn and time of an edit.
fn edit_facts(out: &mut Markup, edit: &BlameEditObject) {
    out.lit("<a href=\"").text(&link::session(&edit.session)).lit("\" title=\"").text(&edit.session);
    out.lit("\">").text(&session_name(edit, 60)).lit("</a>");
    match edit.turn {
        Some(turn) => out.lit(", turn ").num(turn),
        None => out.lit(", abandoned branch"),
    };
    if edit.agent.is_some() {
        out.lit(", sub-agent");
    }
    if let Some(at) = &edit.edited_at {
        let minutes = at.get(..16).unwrap_or(at).replace('T', " ");
        out.lit(" · <time datetime=\"").text(at).lit("\">").text(&minutes).lit("</time>");
    }
}

fn origin_cell(out: &mut Markup, line: &BlameLineObject) {
    if let Some(edit) = &line.edit {
        let label = turn_label(edit);
        out.lit("<a href=\"").text(&edit_link(edit)).lit("\" title=\"").text(&label).lit("\">");
        out.text(&label).lit("</a>");
        if line.moved {
            out.lit(" <span class=\"note\">moved</span>");
        }
        return;
    }
    let candidates: Vec<String> = line.candidates.iter().map(turn_label).collect();
    out.lit("<span class=\"note\" title=\"");
    out.lit(match line.origin {
        "older" => "There before the first logged edit",
        "outside" => "Written outside of the logged edits",
        "reformatted" => "Only white space differs from a line of a session: ",
        _ => "Several edits may have written it: ",
    });
    out.text(&candidates.join(" / ")).lit("\">").lit(line.origin);
    if let Some(commit) = &line.commit {
        out.lit(", ").text(commit.id.get(..8).unwrap_or(&commit.id)).lit(" ").text(&commit.author);
    }
    out.lit("</span>");
    for edit in line.candidates.iter().take(3) {
        out.lit(" <a class=\"candidate\" href=\"")
            .text(&edit_link(edit))
            .lit("\" title=\"")
            .text(&turn_label(edit));
        out.lit("\">").text(&session_name(edit, 24)).lit("?</a>");
    }
}

/// Renders the main content and the footer of the page with the edits of a file.
pub fn file(page: &FilePage<'_>) -> Markup {
    let mut out = Markup::new();
    header(&mut out, "file-edits", "File", page.path);
    let sessions: std::collections::HashSet<&str> = page.edits.iter().map(|edit| &*edit.session).collect();
    out.lit("<p class=\"facts\">").text(&humanize::plural(page.edits.len() as u64, "edit")).lit(" in ");
    out.text(&humanize::plural(sessions.len() as u64, "session"));
    out.lit(" <span>·</span> ");
    match page.location {
        FileLocation::Here => {
            out.lit("<a href=\"").text(&link::href("/blame", [("path", page.path)])).lit("\">blame</a>")
        }
        FileLocation::Gone => out.lit("deleted or moved"),
        FileLocation::OtherMachine => out.lit("not on this machine"),
    };
    out.lit("</p></header>\n");
    read_errors(&mut out, page.read_errors);
    if page.edits.is_empty() {
        out.lit("<div class=\"empty\"><p>No session edited this file</p></div>\n");
    } else {
        out.lit("<div class=\"figure\"><table class=\"numbers\"><caption class=\"sr\">Edits in order</caption><thead><tr><th scope=\"col\">Prompt</th><th scope=\"col\">Session</th><th scope=\"col\">Tool</th><th scope=\"col\" class=\"n\">Added</th><th scope=\"col\" class=\"n\">Removed</th></tr></thead><tbody>\n");
        for edit in page.edits {
            out.lit("<tr><th scope=\"row\"><a href=\"").text(&edit_link(edit)).lit("\">");
            out.text(&turn_label(edit)).lit("</a></th><td>");
            edit_facts(&mut out, edit);
            out.lit("</td><td>").text(&edit.tool).lit("</td>");
            for (sign, count) in [("+", edit.lines_added), ("−", edit.lines_removed)] {
                out.lit("<td class=\"n\">");
                match count {
                    Some(0) => &mut out,
                    Some(count) => out.lit(sign).num(count),
                    None => out.lit("?"),
                };
                out.lit("</td>");
            }
            out.lit("</tr>\n");
        }
        out.lit("</tbody></table></div>");
    }
    out.lit("</main>\n");
    foot(&mut out, &link::href("/file.json", [("path", page.path)]), None);
    out
}
