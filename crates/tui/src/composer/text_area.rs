//! A text of several lines with a cursor. Positions are byte offsets at the borders of grapheme clusters.

use std::ops::Range;

use threadline_term::visible;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The number of steps that can be undone.
const MAX_UNDO: usize = 200;

/// A text with a cursor, a kill buffer and an undo history.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextArea {
    text: String,
    cursor: usize,
    /// The text that was removed last.
    killed: String,
    undo: Vec<(String, usize)>,
    /// Whether the last change was typing, which is undone as a whole.
    is_typing: bool,
    /// The column that moving up and down tries to keep.
    column: Option<usize>,
}

impl TextArea {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn cursor(&self) -> usize {
        self.cursor
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Replaces the text, and moves the cursor to its end.
    pub(crate) fn set(&mut self, text: &str) {
        self.save();
        text.clone_into(&mut self.text);
        self.move_to(self.text.len());
    }

    /// Removes and returns the text.
    pub(crate) fn take(&mut self) -> String {
        self.save();
        self.move_to(0);
        std::mem::take(&mut self.text)
    }

    pub(crate) fn insert(&mut self, text: &str) {
        let is_word = text.chars().all(|ch| !ch.is_whitespace());
        if !(self.is_typing && is_word) {
            self.save();
        }
        self.text.insert_str(self.cursor, text);
        let end = self.cursor + text.len();
        self.move_to(end);
        self.is_typing = is_word;
    }

    /// Replaces a range, and moves the cursor to the end of the new text.
    pub(crate) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.save();
        self.text.replace_range(range.clone(), text);
        self.move_to(range.start + text.len());
    }

    /// Moves the cursor.
    pub(crate) fn move_to(&mut self, position: usize) {
        self.cursor = position.min(self.text.len());
        self.column = None;
        self.is_typing = false;
    }

    pub(crate) fn previous(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    pub(crate) fn next(&self) -> usize {
        let rest = &self.text[self.cursor..];
        self.cursor + rest.graphemes(true).next().map_or(0, str::len)
    }

    pub(crate) fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    pub(crate) fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    /// Returns the beginning of the word before the cursor.
    pub(crate) fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let trimmed = before.trim_end_matches(|ch| !is_word(ch));
        trimmed.rfind(|ch| !is_word(ch)).map_or(0, |at| at + char_len(trimmed, at))
    }

    /// Returns the end of the word after the cursor.
    pub(crate) fn word_end(&self) -> usize {
        let after = &self.text[self.cursor..];
        let skipped = after.find(is_word).unwrap_or(after.len());
        let length = after[skipped..].find(|ch| !is_word(ch)).unwrap_or(after.len() - skipped);
        self.cursor + skipped + length
    }

    /// Returns the beginning of the text before the cursor that contains no white space.
    pub(crate) fn token_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + char_len(before, at))
    }

    /// Removes a range without keeping it.
    pub(crate) fn delete(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.save();
            self.text.replace_range(range.clone(), "");
            self.move_to(range.start);
        }
    }

    /// Removes a range and keeps it for [`yank`](Self::yank).
    pub(crate) fn kill(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.text[range.clone()].clone_into(&mut self.killed);
            self.delete(range);
        }
    }

    /// Inserts the text that was killed last.
    pub(crate) fn yank(&mut self) {
        let killed = self.killed.clone();
        self.insert(&killed);
        self.is_typing = false;
    }

    /// Swaps the characters around the cursor.
    pub(crate) fn transpose(&mut self) {
        let end = if self.cursor == self.text.len() { self.cursor } else { self.next() };
        let before = &self.text[..end];
        let mut clusters = before.grapheme_indices(true).rev();
        let (Some((last, b)), Some((first, a))) = (clusters.next(), clusters.next()) else { return };
        debug_assert!(first < last);
        let swapped = format!("{b}{a}");
        self.replace(first..end, &swapped);
    }

    pub(crate) fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            self.text = text;
            self.move_to(cursor);
        }
    }

    fn save(&mut self) {
        if self.undo.last().is_none_or(|(text, _)| *text != self.text) {
            self.undo.push((self.text.clone(), self.cursor));
            if self.undo.len() > MAX_UNDO {
                self.undo.remove(0);
            }
        }
        self.is_typing = false;
    }

    /// Moves the cursor a row up or down in the text as it is shown at this width. Returns whether there is
    /// such a row.
    pub(crate) fn move_row(&mut self, by: isize, width: usize) -> bool {
        let rows = self.rows(width);
        let (row, column) = self.cursor_in(&rows);
        let column = self.column.unwrap_or(column);
        let Some(target) = row.checked_add_signed(by).and_then(|row| rows.get(row)) else { return false };
        let position = target.start + offset_at(&self.text[target.clone()], column);
        self.move_to(position);
        self.column = Some(column);
        true
    }

    /// Returns the rows of the text at this width. Breaks at spaces if possible.
    pub(crate) fn rows(&self, width: usize) -> Vec<Range<usize>> {
        let width = width.max(2);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in self.text.split('\n') {
            wrap(line, start, width, &mut rows);
            start += line.len() + 1;
        }
        rows
    }

    /// Returns the row and the column of the cursor in these rows.
    pub(crate) fn cursor_in(&self, rows: &[Range<usize>]) -> (usize, usize) {
        let row = rows.iter().rposition(|row| row.start <= self.cursor).unwrap_or(0);
        let start = rows.get(row).map_or(0, |row| row.start);
        (row, shown(&self.text[start..self.cursor.max(start)]).width())
    }
}

/// Returns a part of the text as it is shown.
pub(crate) fn shown(text: &str) -> String {
    visible(text).replace('\t', "    ")
}

fn wrap(line: &str, offset: usize, width: usize, rows: &mut Vec<Range<usize>>) {
    let (mut start, mut used) = (0, 0);
    let mut space = None;
    for (at, cluster) in line.grapheme_indices(true) {
        let wide = shown(cluster).width();
        // A row that begins at a space may still be too long.
        while used + wide > width && at > start {
            let end = space.filter(|space| *space > start).unwrap_or(at);
            rows.push(offset + start..offset + end);
            start = end;
            used = shown(&line[start..at]).width();
            space = None;
        }
        used += wide;
        if cluster == " " {
            space = Some(at + 1);
        }
    }
    rows.push(offset + start..offset + line.len());
    // The cursor after a full row is at the beginning of the next one.
    if used >= width {
        rows.push(offset + line.len()..offset + line.len());
    }
}

/// Returns the offset of the cluster at a column.
fn offset_at(text: &str, column: usize) -> usize {
    let mut used = 0;
    for (at, cluster) in text.grapheme_indices(true) {
        let wide = shown(cluster).width();
        if used + wide > column {
            return at;
        }
        used += wide;
    }
    text.len()
}

fn is_word(ch: char) -> bool {
    ch.is_alphanumeric() || ch == '_'
}

fn char_len(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn area(text: &str) -> TextArea {
        let mut area = TextArea::default();
        area.insert(text);
        area
    }

    #[test]
    fn movement_is_by_grapheme_clusters_and_words() {
        let mut area = area("one 错误 👩\u{200d}🚀x e\u{301}");
        area.move_to(area.previous());
        assert_eq!(&area.text()[area.cursor()..], "e\u{301}");
        area.move_to(area.word_start());
        assert_eq!(&area.text()[area.cursor()..], "x e\u{301}");
        area.move_to(area.previous());
        assert_eq!(&area.text()[area.cursor()..], "👩\u{200d}🚀x e\u{301}");
        area.move_to(0);
        area.move_to(area.word_end());
        assert_eq!(area.cursor(), 3);
    }

    #[test]
    fn killed_text_can_be_inserted_and_changes_undone() {
        let mut area = area("one two three");
        area.kill(area.token_start()..area.cursor());
        area.move_to(0);
        area.yank();
        assert_eq!(area.text(), "threeone two ");
        area.undo();
        area.undo();
        assert_eq!(area.text(), "one two three");
        area.move_to(1);
        area.transpose();
        assert_eq!(area.text(), "noe two three");
    }

    #[test]
    fn rows_break_at_spaces_and_keep_wide_characters_whole() {
        let area = area("aaa bbb ccc\n错误错误x");
        let rows = area.rows(8);
        let texts: Vec<&str> = rows.iter().map(|row| &area.text()[row.clone()]).collect();
        assert_eq!(texts, ["aaa bbb ", "ccc", "错误错误", "x"]);
        assert_eq!(area.cursor_in(&rows), (3, 1));
    }

    #[test]
    fn moving_up_and_down_keeps_the_column() {
        let mut area = area("abcdef\nx\nabcdef");
        assert!(area.move_row(-1, 20) && area.cursor() == 8);
        assert!(area.move_row(-1, 20) && area.cursor() == 6);
        assert!(!area.move_row(-1, 20));
        assert!(area.move_row(1, 20) && area.move_row(1, 20) && area.cursor() == 15);
    }

    proptest! {
        #[test]
        fn rows_cover_the_text(text in "[a-z 错\n👩é]{0,60}", width in 2usize..20) {
            let area = area(&text);
            let joined: String = area.rows(width).iter().map(|row| &text[row.clone()]).collect();
            prop_assert_eq!(joined, text.replace('\n', ""));
            for row in area.rows(width) {
                prop_assert!(shown(text[row].trim_end()).width() <= width);
            }
        }
    }
}
