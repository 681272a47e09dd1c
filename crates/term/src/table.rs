//! Tables with columns of natural width, some of which can be truncated.

use unicode_width::UnicodeWidthStr;

use crate::page::{TermPage, TextLabel, to_one_line, truncate};
use crate::text::TermText;

/// The alignment of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum ColumnAlign {
    Left,
    Right,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableColumn {
    /// The heading.
    pub name: &'static str,
    /// The alignment of the cells.
    pub align: ColumnAlign,
    /// Whether the cells are truncated if the page is too narrow.
    pub can_shrink: bool,
}

/// The minimum width of a truncated column.
const MIN_COLUMN_WIDTH: usize = 12;

/// Renders a table with a heading line. Cells are flattened to one line.
///
/// The table is at most as wide as the page, unless the columns that must not be truncated need more.
pub fn table(page: TermPage, columns: &[TableColumn], rows: &[Vec<String>]) -> TermText {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| to_one_line(cell)).collect()).collect();
    let mut widths: Vec<usize> = columns.iter().map(|column| column.name.width()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    if let Some(page_width) = page.width {
        let total: usize = widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1);
        let mut excess = total.saturating_sub(page_width);
        for (width, _) in widths.iter_mut().zip(columns).filter(|(_, column)| column.can_shrink) {
            let given = excess.min(width.saturating_sub(MIN_COLUMN_WIDTH));
            *width -= given;
            excess -= given;
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut out = String::new();
        for ((cell, width), column) in cells.zip(&widths).zip(columns) {
            let cell = truncate(cell, *width);
            let gap = " ".repeat(width.saturating_sub(cell.width()));
            let cell = if column.align == ColumnAlign::Right { gap + &cell } else { cell + &gap };
            out.push_str(&cell);
            out.push_str("  ");
        }
        out.trim_end().to_owned()
    };
    let mut out = page.paint(TextLabel::Dim, line(&mut columns.iter().map(|column| column.name)));
    out.push("\n");
    for row in &rows {
        out.push(line(&mut row.iter().map(|cell| &**cell)));
        out.push("\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_page_truncates_the_columns_that_can_shrink() {
        let columns = [
            TableColumn { name: "title", align: ColumnAlign::Left, can_shrink: true },
            TableColumn { name: "n", align: ColumnAlign::Right, can_shrink: false },
        ];
        let rows = [
            vec!["a rather long title 错误修复".to_owned(), "1".to_owned()],
            vec!["b".to_owned(), "20".to_owned()],
        ];
        let page = TermPage { width: Some(20), color: false, links: false };
        insta::assert_snapshot!(table(page, &columns, &rows).as_str(), @r"
        title              n
        a rather long t…   1
        b                 20
        ");
    }
}
