//! Rendering of the outline as a table with one row per turn.

use threadline_view::OutlineLine;
use threadline_view::humanize::{duration, line_change, plural, short_count};

use crate::page::{TermPage, TextLabel, truncate};
use crate::table::{ColumnAlign, TableColumn, table};
use crate::text::TermText;

/// Less important columns are left out on a page on which a title would be shorter.
const GOOD_TITLE_WIDTH: usize = 30;

/// Renders an outline.
pub fn render_outline(lines: &[OutlineLine], page: TermPage) -> TermText {
    let number = |name: &'static str| TableColumn {
        name,
        align: ColumnAlign::Right,
        can_shrink: false,
        ..TableColumn::default()
    };
    let columns = [
        number("turn"),
        TableColumn { good_width: GOOD_TITLE_WIDTH, weight: 3, ..TableColumn::text("prompt") },
        number("calls"),
        number("errors"),
        TableColumn { drop_order: 2, ..number("lines") },
        TableColumn { drop_order: 4, ..number("in") },
        TableColumn { drop_order: 3, ..number("out") },
        TableColumn { drop_order: 5, ..number("time") },
        number("cost"),
        TableColumn { name: "", align: ColumnAlign::Left, can_shrink: false, ..TableColumn::default() },
    ];
    let rows: Vec<Vec<String>> = lines.iter().map(cells).collect();
    let mut text = table(page, &columns, &rows);
    let by_shell: usize = lines.iter().map(|line| line.shell_edits).sum();
    if by_shell > 0 {
        let files = plural(by_shell as u64, "file change");
        text =
            text + page.paint(TextLabel::Dim, format!("lines: including {files} by shell commands")) + "\n";
    }
    match lines.iter().any(|line| line.compactions > 0) {
        true => text + page.paint(TextLabel::Dim, "══ compacted in this turn") + "\n",
        false => text,
    }
}

/// Returns the cells of a turn.
fn cells(line: &OutlineLine) -> Vec<String> {
    let some = |count: usize| if count == 0 { String::new() } else { count.to_string() };
    let (added, removed) = line.all_lines();
    let changed = if line.all_edits() == 0 { String::new() } else { line_change(added, removed) };
    let compacted = if line.compactions > 0 { " ══" } else { "" };
    let open = if line.open { " …" } else { "" };
    vec![
        line.number.to_string(),
        truncate(if line.title.is_empty() { "(no prompt)" } else { &line.title }, 80),
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
}
