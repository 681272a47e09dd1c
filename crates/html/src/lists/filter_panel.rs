//! The sidebar of home: projects and filters.

use std::collections::HashMap;

use jiff::civil::Date;
use threadline_view::{SortBy, humanize};

use super::home::{HomePage, changed_link};
use crate::markup::Markup;
use crate::text_format;

/// Adds the sidebar with projects and filters.
pub(super) fn chooser(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>) {
    let selection = page.selection;
    out.lit("<form class=\"filters\" id=\"filters\" action=\"/sessions\" aria-label=\"Filter\">\n<details class=\"fold\" open><summary>Filter</summary>\n");
    out.lit("<label class=\"field\"><span class=\"sr\">Title contains</span><input type=\"search\" name=\"words\" id=\"words\" placeholder=\"Filter by title\" autocomplete=\"off\" spellcheck=\"false\" value=\"");
    out.text(&selection.words)
        .lit("\"></label>\n<fieldset class=\"switches\"><legend class=\"sr\">Show only</legend>");
    switch(out, "live", "Live", page.choices.live, selection.live);
    switch(out, "errors", "With errors", page.choices.errors, selection.errors);
    if page.choices.pinned > 0 || selection.pinned {
        switch(out, "pinned", "Pinned", page.choices.pinned, selection.pinned);
    }
    out.lit("</fieldset>\n");
    let choices = page.choices;
    let mut lists = vec![
        ("Branch", "branch", &choices.branches, &selection.branch),
        ("Model", "model", &choices.models, &selection.model),
        ("Tool", "tool", &choices.tools, &selection.tool),
    ];
    if !choices.tags.is_empty() || selection.tag.is_some() {
        lists.push(("Tag", "tag", &choices.tags, &selection.tag));
    }
    for (label, name, choices, chosen) in lists {
        let choices = choices.iter().map(|(choice, count)| (&**choice, Some(*count)));
        select(out, label, name, choices, chosen.as_deref());
        out.lit("\n");
    }
    out.lit("<div class=\"dates\">");
    date(out, "From", "since", selection.since.as_ref().map(|when| &*when.text));
    date(out, "To", "until", selection.until.as_ref().map(|when| &*when.text));
    out.lit("</div>\n");
    for (key, value) in [("project", selection.project.as_deref()), ("sort", Some(selection.sort.name()))] {
        if let Some(value) = value.filter(|value| *value != SortBy::default().name()) {
            out.lit("<input type=\"hidden\" name=\"").lit(key).lit("\" value=\"").text(value).lit("\">");
        }
    }
    out.lit("<button class=\"apply\">Apply</button>\n</details>\n");
    projects(out, page, names);
    out.lit("</form>\n");
}

/// The number of projects listed before the rest is collapsed.
const PROJECTS: usize = 24;

fn projects(out: &mut Markup, page: &HomePage<'_>, names: &HashMap<&str, &str>) {
    let chosen = page.selection.project.as_deref();
    out.lit("<nav class=\"projects\" aria-label=\"Projects\"><h2>Projects</h2><ul>");
    item(
        out,
        &changed_link(page, |selection| selection.project = None),
        ("All", "All projects"),
        page.total,
        chosen.is_none(),
    );
    let rest = page.choices.projects.len().saturating_sub(PROJECTS);
    for (n, (project, count)) in page.choices.projects.iter().enumerate() {
        if n == PROJECTS && rest > 1 {
            out.lit("</ul><details class=\"more\"><summary>").num(rest as u64).lit(" more</summary><ul>");
        }
        let href = changed_link(page, |selection| {
            selection.project = Some(project.clone());
            selection.branch = None;
        });
        item(out, &href, (names[&**project], project), *count, chosen == Some(project));
    }
    out.lit(if rest > 1 { "</ul></details></nav>\n" } else { "</ul></nav>\n" });
}

fn item(out: &mut Markup, href: &str, (name, title): (&str, &str), count: usize, current: bool) {
    out.lit("<li><a href=\"").text(href).lit("\" title=\"").text(title).lit("\"");
    if current {
        out.lit(" aria-current=\"true\"");
    }
    out.lit("><span>")
        .text(name)
        .lit("</span> <b>")
        .text(&humanize::count(count as u64))
        .lit("</b></a></li>");
}

fn switch(out: &mut Markup, name: &'static str, label: &'static str, count: usize, on: bool) {
    out.lit("<label><input type=\"checkbox\" value=\"1\" name=\"").lit(name).lit("\"");
    if on {
        out.lit(" checked");
    }
    out.lit("> ").lit(label).lit(" <b>").text(&humanize::count(count as u64)).lit("</b></label>");
}

/// Adds a list of choices with their counts, if these are known.
pub(super) fn select<'c>(
    out: &mut Markup,
    label: &'static str,
    name: &'static str,
    choices: impl Iterator<Item = (&'c str, Option<usize>)> + Clone,
    chosen: Option<&'c str>,
) {
    out.lit("<label class=\"field\"><span>").lit(label).lit("</span><select name=\"").lit(name);
    out.lit("\"><option value=\"\">any</option>");
    let missing = chosen.filter(|chosen| !choices.clone().any(|(choice, _)| choice == *chosen));
    for (choice, count) in missing.map(|chosen| (chosen, None)).into_iter().chain(choices) {
        out.lit("<option value=\"").text(choice);
        out.lit(if chosen == Some(choice) { "\" selected>" } else { "\">" });
        out.text(&text_format::excerpt(choice, 60));
        if let Some(count) = count {
            out.lit(" (").num(count as u64).lit(")");
        }
        out.lit("</option>");
    }
    out.lit("</select></label>");
}

/// Adds a field for a date.
pub(super) fn date(out: &mut Markup, label: &'static str, name: &'static str, value: Option<&str>) {
    // A date field cannot show relative values such as `7d`.
    let plain = value.is_none_or(|value| value.parse::<Date>().is_ok());
    out.lit("<label class=\"field\"><span>").lit(label).lit("</span><input type=\"");
    out.lit(if plain { "date" } else { "text" }).lit("\" name=\"").lit(name).lit("\" value=\"");
    out.text(value.unwrap_or_default()).lit("\"></label>");
}
