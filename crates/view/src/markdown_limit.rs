//! The limits within which Markdown is formatted, in a terminal and on a page.

/// Longer texts are not parsed, since a parser needs many times their size.
const MAX_LENGTH: usize = 128 << 10;

/// The maximum length of a formatted text, per byte of its source and beside it. Ordinary texts stay below a
/// quarter of it.
const MAX_GROWTH: usize = 16;
const MIN_OUTPUT: usize = 4 << 10;

/// The maximum number of cells of the tables of a text, per byte of its source and beside it. A parser adds
/// the cells that rows lack.
const MAX_CELLS_PER_BYTE: usize = 4;
const MIN_CELLS: usize = 4 << 10;

/// Returns the maximum length of a Markdown text when it is formatted; `None` if it is not to be parsed.
///
/// A text that is not to be parsed or would become longer is shown as its source. Tables and references to
/// links can make few bytes very long.
pub fn markdown_limit(text: &str) -> Option<usize> {
    let has_few_cells = || max_cells(text) <= MIN_CELLS + MAX_CELLS_PER_BYTE * text.len();
    (text.len() <= MAX_LENGTH && has_few_cells()).then_some(MIN_OUTPUT + MAX_GROWTH * text.len())
}

/// Returns an upper bound of the number of cells of the tables of a text: as if each line was a row of the
/// widest table.
fn max_cells(text: &str) -> usize {
    let is_delimiter = |line: &&str| line.contains('-') && line.contains('|');
    let columns = |line: &str| line.bytes().filter(|byte| *byte == b'|').count() + 1;
    // The delimiter row of a table has as many columns as the table.
    let widest = text.lines().filter(is_delimiter).map(columns).max();
    widest.map_or(0, |widest| widest * text.lines().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_with_far_more_cells_than_their_source_has_bytes_are_not_parsed() {
        let table = |n_columns: usize, row: &str, n_rows: usize| {
            format!("{}|\n{}|\n{}", "|a".repeat(n_columns), "|-".repeat(n_columns), row.repeat(n_rows))
        };
        assert_eq!(markdown_limit(&table(1000, "|a\n", 10_000)), None);
        assert_eq!(markdown_limit(&table(1000, "|a\n", 100)), None);
        for (n_columns, row, n_rows) in [(6, "|1|2|3|4|5|6|\n", 1000), (1000, "", 0), (12, "a\n", 300)] {
            assert!(markdown_limit(&table(n_columns, row, n_rows)).is_some(), "{n_columns} {n_rows}");
        }
        assert_eq!(markdown_limit("a\n"), Some(MIN_OUTPUT + 2 * MAX_GROWTH));
        assert_eq!(markdown_limit(&"a".repeat(MAX_LENGTH + 1)), None);
    }
}
