//! Tables with columns of natural width, some of which can be truncated.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr;

use crate::page::{TermPage, TextLabel, to_one_line, truncate};
use crate::text::TermText;

/// The alignment of the cells of a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum ColumnAlign {
    #[default]
    Left,
    Right,
}

/// A column of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableColumn {
    /// The heading.
    pub name: &'static str,
    /// The alignment of the cells.
    pub align: ColumnAlign,
    /// Whether the cells are truncated if the page is too narrow.
    pub can_shrink: bool,
    /// Whether a truncated cell keeps its end instead of its beginning, as is best for paths.
    pub keeps_end: bool,
    /// The minimum width of a truncated column, if it is more than the usual one.
    pub min_width: usize,
    /// Columns with a drop order above 1 are left out until this column has this width, if it needs it. A
    /// column that keeps its end has it before other columns have more than their minimum.
    pub good_width: usize,
    /// The share of the column in spare space, relative to its minimum width; 0 is as 1.
    pub weight: usize,
    /// If not 0, the column is left out if the page is too narrow; the one with the highest number first.
    pub drop_order: u8,
}

/// The usual minimum width of a truncated column.
const MIN_COLUMN_WIDTH: usize = 12;

impl TableColumn {
    /// Returns a column of text, which can be truncated.
    pub const fn text(name: &'static str) -> Self {
        Self {
            name,
            align: ColumnAlign::Left,
            can_shrink: true,
            keeps_end: false,
            min_width: 0,
            good_width: 0,
            weight: 1,
            drop_order: 0,
        }
    }

    /// Returns a column of numbers, which are never truncated.
    pub const fn number(name: &'static str) -> Self {
        let align = ColumnAlign::Right;
        Self {
            name,
            align,
            can_shrink: false,
            keeps_end: false,
            min_width: 0,
            good_width: 0,
            weight: 1,
            drop_order: 0,
        }
    }

    /// Returns the width that the column needs at least, given its natural width.
    fn narrowest(&self, width: usize) -> usize {
        if self.can_shrink { width.min(MIN_COLUMN_WIDTH.max(self.min_width)) } else { width }
    }
}

/// Returns the widths of columns that have `available` together, given their natural widths. What the columns
/// have beyond their minimum is in proportion to minimum and weight, so that no column takes all of it.
fn fitted_widths(columns: &[TableColumn], natural: &[usize], available: usize) -> Vec<usize> {
    let narrowest: Vec<usize> =
        columns.iter().zip(natural).map(|(column, width)| column.narrowest(*width)).collect();
    let share = |at: usize| narrowest[at] * columns[at].weight.max(1);
    let mut widths = narrowest.clone();
    for _ in widths.iter().sum::<usize>()..available {
        let can_grow = (0..widths.len()).filter(|&at| widths[at] < natural[at]);
        let is_first = |at: usize| columns[at].keeps_end && widths[at] < columns[at].good_width;
        // The column that is narrowest for its share.
        let key = |&at: &usize| (!is_first(at), (widths[at] << 16) / share(at).max(1));
        let Some(next) = can_grow.min_by_key(key) else { break };
        widths[next] += 1;
    }
    widths
}

/// Truncates the beginning of a text, so that it has at most `width` columns. A path begins with a whole
/// component, unless the last one is too long.
pub fn truncate_start(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut start = text.len();
    let mut used = 1;
    for (at, ch) in text.char_indices().rev() {
        used += ch.to_string().width();
        if used > width {
            break;
        }
        start = at;
    }
    let component = text[start..].find(['/', '\\']).unwrap_or(0);
    format!("…{}", &text[start + component..])
}

/// Renders a table with a heading line. Cells are flattened to one line.
///
/// The table is at most as wide as the page, unless the columns that must not be truncated need more.
pub fn table(page: TermPage, columns: &[TableColumn], rows: &[Vec<String>]) -> TermText {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.name.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            // One very long cell would make all rows as long.
            *width = (*width).max(to_one_line(cell).width().min(500));
        }
    }
    let mut shown = vec![true; columns.len()];
    if let Some(page_width) = page.width {
        let needed = |shown: &[bool], good: bool| {
            let columns = columns.iter().zip(&widths).zip(shown).filter(|(_, shown)| **shown);
            let widths = columns.map(|((column, width), _)| {
                let wanted = if good { column.good_width.min(*width) } else { 0 };
                column.narrowest(*width).max(wanted) + 2
            });
            widths.sum::<usize>().saturating_sub(2)
        };
        for (good, lowest) in [(true, 2), (false, 1)] {
            while needed(&shown, good) > page_width {
                let droppable =
                    (0..columns.len()).filter(|&at| shown[at] && columns[at].drop_order >= lowest);
                let Some(dropped) = droppable.max_by_key(|&at| columns[at].drop_order) else { break };
                shown[dropped] = false;
            }
        }
    }
    let keep = |at: &usize| shown[*at];
    let columns: Vec<TableColumn> = (0..columns.len()).filter(keep).map(|at| columns[at]).collect();
    let mut widths: Vec<usize> = (0..widths.len()).filter(keep).map(|at| widths[at]).collect();
    let columns = &columns[..];
    if let Some(page_width) = page.width {
        widths =
            fitted_widths(columns, &widths, page_width.saturating_sub(2 * widths.len().saturating_sub(1)));
    }
    let line = |cells: &mut dyn Iterator<Item = Cow<'_, str>>| {
        let mut out = String::new();
        for ((cell, width), column) in cells.zip(&widths).zip(columns) {
            let cell = if column.keeps_end { truncate_start(&cell, *width) } else { truncate(&cell, *width) };
            let gap = " ".repeat(width.saturating_sub(cell.width()));
            let cell = if column.align == ColumnAlign::Right { gap + &cell } else { cell + &gap };
            out.push_str(&cell);
            out.push_str("  ");
        }
        out.trim_end().to_owned()
    };
    let mut out = page.paint(TextLabel::Dim, line(&mut columns.iter().map(|column| column.name.into())));
    out.push("\n");
    for row in rows {
        let cells = row.iter().zip(&shown).filter(|(_, shown)| **shown);
        out.push(line(&mut cells.map(|(cell, _)| to_one_line(cell).into())));
        out.push("\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_page_drops_columns_in_order_and_keeps_the_end_of_paths() {
        let columns = [
            TableColumn { keeps_end: true, ..TableColumn::text("path") },
            TableColumn { drop_order: 1, ..TableColumn::number("size") },
            TableColumn { drop_order: 2, ..TableColumn::number("cache") },
            TableColumn::number("cost"),
        ];
        let row = ["/home/ada/projects/loom", "1.5 kB", "12,345", "$1.00"];
        let rows = [row.map(str::to_owned).to_vec()];
        let at = |width| {
            let page = TermPage { width: Some(width), color: false, links: false, whole_lines: false };
            table(page, &columns, &rows).as_str().to_owned()
        };
        insta::assert_snapshot!([80, 40, 30, 20].map(at).join(""), @r"
        path                       size   cache   cost
        /home/ada/projects/loom  1.5 kB  12,345  $1.00
        path                 size   cache   cost
        …/projects/loom    1.5 kB  12,345  $1.00
        path               size   cost
        …/projects/loom  1.5 kB  $1.00
        path            cost
        …/loom         $1.00
        ");
    }

    #[test]
    fn a_narrow_page_truncates_the_columns_that_can_shrink() {
        let columns = [
            TableColumn {
                name: "title",
                align: ColumnAlign::Left,
                can_shrink: true,
                ..TableColumn::default()
            },
            TableColumn { name: "n", align: ColumnAlign::Right, can_shrink: false, ..TableColumn::default() },
        ];
        let rows = [
            vec!["a rather long title 错误修复".to_owned(), "1".to_owned()],
            vec!["b".to_owned(), "20".to_owned()],
        ];
        let page = TermPage { width: Some(20), color: false, links: false, whole_lines: false };
        insta::assert_snapshot!(table(page, &columns, &rows).as_str(), @r"
        title              n
        a rather long t…   1
        b                 20
        ");
    }

    #[test]
    fn columns_share_the_space_of_a_wide_page() {
        let columns =
            [TableColumn::text("project"), TableColumn { min_width: 24, ..TableColumn::text("title") }];
        let rows = [vec!["p".repeat(60), "t".repeat(200)], vec!["q".repeat(60), "u".to_owned()]];
        let widths = |width| {
            let page = TermPage { width: Some(width), color: false, links: false, whole_lines: false };
            let text = table(page, &columns, &rows).as_str().to_owned();
            let row = text.lines().nth(1).unwrap().to_owned();
            let (project, title) = row.split_once("  ").unwrap();
            (project.trim_end().width(), title.width())
        };
        assert_eq!(widths(38), (12, 24));
        assert_eq!(widths(110), (36, 72));
        assert_eq!(widths(200), (60, 138));
        assert_eq!(widths(400), (60, 200));
    }

    #[test]
    fn columns_of_little_importance_make_room_for_a_good_width() {
        let columns = [
            TableColumn { drop_order: 1, ..TableColumn::text("project") },
            TableColumn { drop_order: 2, ..TableColumn::number("size") },
            TableColumn { min_width: 20, good_width: 40, ..TableColumn::text("title") },
        ];
        let rows = [vec!["p".repeat(12), "1.5 kB".to_owned(), "t".repeat(60)]];
        let heads = |width| {
            let page = TermPage { width: Some(width), color: false, links: false, whole_lines: false };
            let text = table(page, &columns, &rows).as_str().to_owned();
            text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(heads(62), "project size title");
        assert_eq!(heads(61), "project title");
        assert_eq!(heads(40), "project title");
        assert_eq!(heads(33), "title");
    }
}
