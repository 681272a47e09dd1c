//! Rendering of the outline as a table with one row per turn.

use threadline_view::OutlineLine;
use threadline_view::figure::{duration, short_count};

use crate::page::{Label, Page, cut};
use crate::table::{Align, Column, table};
use crate::text::TermText;

/// The maximum width of a turn title, on a page of any width.
const TITLE: usize = 80;

/// Renders an outline.
pub fn render_outline(lines: &[OutlineLine], page: Page) -> TermText {
    let number = |name: &'static str| Column { name, align: Align::Right, gives_way: false };
    let columns = [
        number("turn"),
        Column { name: "prompt", align: Align::Left, gives_way: true },
        number("calls"),
        number("errors"),
        number("lines"),
        number("in"),
        number("out"),
        number("time"),
        number("cost"),
        Column { name: "", align: Align::Left, gives_way: false },
    ];
    let some = |count: usize| if count == 0 { String::new() } else { count.to_string() };
    let rows: Vec<Vec<String>> = lines
        .iter()
        .map(|line| {
            let changed = if line.edits == 0 {
                String::new()
            } else {
                format!("+{} −{}", line.lines.0, line.lines.1)
            };
            let compacted = if line.compactions > 0 { " ══" } else { "" };
            let open = if line.open { " …" } else { "" };
            vec![
                line.number.to_string(),
                cut(if line.title.is_empty() { "(no prompt)" } else { &line.title }, TITLE),
                some(line.calls),
                some(line.errors),
                changed,
                short_count(line.tokens.context()),
                short_count(line.tokens.output),
                Some(line.timing.model + line.timing.tools)
                    .filter(|took| *took > 0)
                    .map_or_else(String::new, duration),
                if line.spent.calls > 0 { line.spent.short_cost() } else { String::new() },
                format!("{}{compacted}{open}", line.anchor),
            ]
        })
        .collect();
    let text = table(page, &columns, &rows);
    if lines.iter().any(|line| line.compactions > 0) {
        return text + page.paint(Label::Dim, "══ compacted in this turn") + "\n";
    }
    text
}
