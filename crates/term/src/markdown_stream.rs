//! Rendering of Markdown while it arrives: each block once, when it can no longer change.

use unicode_width::UnicodeWidthStr;

use crate::highlight::CodeHighlighter;
use crate::markdown::{code_line, render_part};
use crate::page::{TermPage, truncate};
use crate::text::TermText;
use crate::visible;

/// The longest block. A longer one is rendered in parts, so that the time per piece of text has a bound.
const MAX_BLOCK_BYTES: usize = 8 << 10;

/// Splits Markdown that arrives in pieces into blocks, and renders each block when it can no longer change.
///
/// A paragraph ends at an empty line, an item of a list where the next one begins, and a line of fenced code
/// at its newline. The time for a piece does not depend on the length of the text before it.
#[derive(Default)]
pub struct MarkdownStream {
    /// The text that is not rendered yet.
    pending: String,
    /// The offset in `pending` of the first line that was not looked at.
    scanned: usize,
    /// The kind of the first line in `pending`.
    first_line: LineKind,
    /// The kind of the last complete line in `pending`.
    last_line: LineKind,
    /// The fenced code block that is open.
    code: Option<OpenFence>,
    /// The kind of the last block that was rendered.
    last_block: LastBlock,
}

/// The kind of a line, as far as it decides where a block ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LineKind {
    /// No line.
    #[default]
    None,
    Blank,
    Heading,
    /// The first line of an item of a list at the outermost level.
    Item,
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum LastBlock {
    /// Nothing was rendered yet.
    #[default]
    None,
    /// An item of a list, and whether the list is numbered.
    Item {
        is_numbered: bool,
    },
    Other,
}

struct OpenFence {
    mark: char,
    length: usize,
    highlighter: CodeHighlighter,
}

impl MarkdownStream {
    /// Creates a stream without text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds text. Returns the number of bytes that are finished now, counted from the end of the bytes that
    /// were finished before, and their lines.
    pub fn push(&mut self, text: &str, page: TermPage) -> (usize, Vec<TermText>) {
        self.pending.push_str(text);
        let (mut bytes, mut lines) = (0, Vec::new());
        while let Some((cut, more)) = self.next_block(page) {
            bytes += cut;
            lines.extend(more);
        }
        (bytes, lines)
    }

    /// Ends the text. Returns the remaining lines.
    pub fn finish(&mut self, page: TermPage) -> Vec<TermText> {
        let rest = std::mem::take(&mut self.pending);
        let lines = match self.code.take() {
            Some(mut fence) if !fence.is_closed_by(&rest) && !rest.is_empty() => {
                vec![fence.render(&rest, page)]
            }
            Some(_) => Vec::new(),
            None => self.block(&rest, page),
        };
        *self = Self::default();
        lines
    }

    /// Returns whether the text that is not rendered yet is code.
    pub fn is_code(&self) -> bool {
        self.code.is_some()
    }

    /// Cuts the next finished block off. Returns its length and its lines.
    fn next_block(&mut self, page: TermPage) -> Option<(usize, Vec<TermText>)> {
        if self.code.is_some() {
            return self.next_code_line(page);
        }
        while let Some(end) = self.pending[self.scanned..].find('\n') {
            let start = self.scanned;
            let end = start + end + 1;
            let line = &self.pending[start..end];
            let fence = fence_of(line);
            let kind = line_kind(line);
            if start > 0 && (fence.is_some() || self.ends_before(line, kind)) {
                return Some(self.cut(start, page));
            }
            if let Some((mark, length, language)) = fence {
                let highlighter = CodeHighlighter::new(language, page);
                self.code = Some(OpenFence { mark, length, highlighter });
                self.forget(end);
                return Some((end, self.gap(LastBlock::Other)));
            }
            if start == 0 {
                self.first_line = kind;
            }
            self.last_line = kind;
            self.scanned = end;
            if kind == LineKind::Heading {
                return Some(self.cut(end, page));
            }
        }
        self.cut_long_block(page)
    }

    /// Cuts a part off a block that is too long.
    fn cut_long_block(&mut self, page: TermPage) -> Option<(usize, Vec<TermText>)> {
        if self.pending.len() <= MAX_BLOCK_BYTES {
            return None;
        }
        let longest = self.pending.floor_char_boundary(MAX_BLOCK_BYTES);
        let text = &self.pending[..longest];
        let end = text.rfind('\n').or_else(|| text.rfind(' ')).map_or(longest, |at| at + 1);
        Some(self.cut(end, page))
    }

    fn next_code_line(&mut self, page: TermPage) -> Option<(usize, Vec<TermText>)> {
        let fence = self.code.as_mut()?;
        let longest = self.pending.floor_char_boundary(MAX_BLOCK_BYTES);
        let end = match self.pending.find('\n') {
            Some(end) => end + 1,
            None if self.pending.len() > MAX_BLOCK_BYTES => longest,
            None => return None,
        };
        let line = self.pending[..end].trim_end_matches(['\n', '\r']).to_owned();
        self.pending.drain(..end);
        if fence.is_closed_by(&line) {
            self.code = None;
            return Some((end, Vec::new()));
        }
        Some((end, vec![fence.render(&line, page)]))
    }

    fn cut(&mut self, end: usize, page: TermPage) -> (usize, Vec<TermText>) {
        let block = self.pending[..end].to_owned();
        self.forget(end);
        (end, self.block(&block, page))
    }

    fn forget(&mut self, end: usize) {
        self.pending.drain(..end);
        self.scanned = 0;
        self.first_line = LineKind::None;
        self.last_line = LineKind::None;
    }

    /// Returns whether the block before `line` is complete.
    fn ends_before(&self, line: &str, kind: LineKind) -> bool {
        let is_indented = line.starts_with([' ', '\t']);
        match (self.last_line, kind) {
            (_, LineKind::Blank) => false,
            (LineKind::Blank, _) => !is_indented,
            (_, LineKind::Heading) => true,
            // An item ends the previous one. In a paragraph it may be a continuation of the text.
            (_, LineKind::Item) => self.first_line == LineKind::Item,
            _ => false,
        }
    }

    fn block(&mut self, source: &str, page: TermPage) -> Vec<TermText> {
        let rendered = render_part(source.trim_matches('\n'), page, true);
        if rendered.iter().all(|line| line.plain().trim().is_empty()) {
            return Vec::new();
        }
        let first = source.trim_start_matches('\n').lines().next().unwrap_or_default();
        let mut lines = self.gap(match line_kind(first) {
            LineKind::Item => {
                LastBlock::Item { is_numbered: first.starts_with(|ch: char| ch.is_ascii_digit()) }
            }
            _ => LastBlock::Other,
        });
        lines.extend(rendered);
        lines
    }

    /// Returns the empty line between the last block and one of this kind, if there is one.
    fn gap(&mut self, next: LastBlock) -> Vec<TermText> {
        let last = std::mem::replace(&mut self.last_block, next);
        let is_same_list = last == next && next != LastBlock::Other;
        if last == LastBlock::None || is_same_list { Vec::new() } else { vec![TermText::new()] }
    }
}

impl OpenFence {
    fn is_closed_by(&self, line: &str) -> bool {
        let line = line.trim();
        line.len() >= self.length && line.chars().all(|ch| ch == self.mark)
    }

    fn render(&mut self, line: &str, page: TermPage) -> TermText {
        let line = visible(line).into_owned();
        code_line(self.highlighter.line(&line), page.prose_width(0).saturating_sub(2))
    }
}

/// Renders the end of a text that is not finished, as at most `height` lines.
pub fn render_tail(text: &str, is_code: bool, page: TermPage, height: usize) -> Vec<TermText> {
    let mut lines = if is_code {
        let room = page.prose_width(0).saturating_sub(2);
        text.lines().map(|line| code_line(truncate(line, room).into(), room)).collect()
    } else {
        render_part(text.trim_matches('\n'), page, false)
    };
    lines.drain(..lines.len().saturating_sub(height));
    lines
}

fn line_kind(line: &str) -> LineKind {
    let text = line.trim_end();
    if text.is_empty() {
        return LineKind::Blank;
    }
    let hashes = text.len() - text.trim_start_matches('#').len();
    if (1..=6).contains(&hashes) && (text.len() == hashes || text[hashes..].starts_with(' ')) {
        return LineKind::Heading;
    }
    if is_item(text) { LineKind::Item } else { LineKind::Other }
}

/// Returns whether a line begins an item of a list that is not indented.
fn is_item(line: &str) -> bool {
    let rest = line.strip_prefix(['-', '*', '+']).or_else(|| {
        let digits = line.width() - line.trim_start_matches(|ch: char| ch.is_ascii_digit()).width();
        (1..=9).contains(&digits).then(|| line[digits..].strip_prefix(['.', ')'])).flatten()
    });
    rest.is_some_and(|rest| rest.starts_with(' '))
}

/// Returns the mark, its length and the language of a line that opens fenced code.
fn fence_of(line: &str) -> Option<(char, usize, &str)> {
    let mark = line.chars().next().filter(|mark| ['`', '~'].contains(mark))?;
    let rest = line.trim_start_matches(mark);
    let length = line.len() - rest.len();
    let language = rest.trim();
    (length >= 3 && !(mark == '`' && language.contains('`'))).then_some((mark, length, language))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: TermPage = TermPage { width: Some(44), color: true, links: false, whole_lines: false };

    /// Streams a text in pieces of `size` bytes. Returns its lines, and the text without what was finished.
    fn stream(text: &str, size: usize) -> (Vec<String>, String) {
        let mut stream = MarkdownStream::new();
        let (mut lines, mut tail) = (Vec::new(), String::new());
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.ceil_char_boundary(size.min(rest.len()));
            tail.push_str(&rest[..end]);
            let (bytes, more) = stream.push(&rest[..end], PAGE);
            tail.drain(..bytes);
            lines.extend(more);
            rest = &rest[end..];
        }
        lines.extend(stream.finish(PAGE));
        (lines.iter().map(|line| line.plain().into_owned()).collect(), tail)
    }

    const SAMPLE: &str = "# Title\n\nA paragraph of\ntwo lines.\n\n- one\n- two\n  - inner\n- three\n\n1. a\n2. b\n\n\
        ```rust\nlet x = 1;\n\nlet y = 2;\n```\nafter\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n> quote\n\nend";

    #[test]
    fn blocks_look_as_in_the_whole_text() {
        let whole = render_part(SAMPLE, PAGE, true);
        let whole: Vec<String> = whole.iter().map(|line| line.plain().into_owned()).collect();
        for size in [1, 3, 7, 1000] {
            let (lines, _) = stream(SAMPLE, size);
            assert_eq!(lines.join("\n"), whole.join("\n"), "pieces of {size} bytes");
        }
    }

    #[test]
    fn a_line_of_code_is_finished_with_its_newline() {
        let mut stream = MarkdownStream::new();
        let (_, lines) = stream.push("text\n\n```sh\nls -l\nec", PAGE);
        let lines: Vec<_> = lines.iter().map(|line| line.plain().into_owned()).collect();
        assert_eq!(lines, ["text", "", "  ls -l"]);
        assert!(stream.is_code());
        assert_eq!(render_tail("ec", true, PAGE, 5)[0].plain(), "  ec");
    }

    #[test]
    fn the_rest_that_is_rendered_again_stays_short() {
        for text in ["word ".repeat(40_000), "x".repeat(200_000), "| a | b |\n".repeat(20_000)] {
            let mut stream = MarkdownStream::new();
            let mut pieces = text.as_bytes().chunks(16).map(|piece| std::str::from_utf8(piece).unwrap());
            assert!(pieces.all(|piece| {
                let _ = stream.push(piece, PAGE);
                stream.pending.len() <= MAX_BLOCK_BYTES + 16
            }));
        }
    }

    proptest! {
        #[test]
        fn no_text_is_lost(text in "([a-z#>*`|\\- \n0-9.]{0,80})", size in 1usize..9) {
            let words = |text: &str| -> String { text.chars().filter(char::is_ascii_lowercase).collect() };
            let whole = render_part(&text, PAGE, true).iter().map(|line| line.plain().into_owned()).collect::<String>();
            let (lines, tail) = stream(&text, size);
            // The language of fenced code is not shown.
            prop_assume!(!text.contains("```") && !text.contains('['));
            prop_assert_eq!(words(&lines.concat()), words(&whole));
            prop_assert!(text.ends_with(&tail));
        }
    }
}
