//! The page to write on: how wide it is, and what a label looks like.

use anstyle::{AnsiColor, Effects, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::TermText;
use crate::visible;

/// How to write: the width in columns, and whether with colours.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Columns to fill; text is not wrapped where there is none.
    pub width: Option<usize>,
    /// Whether labels have colours, and Markdown is set rather than shown as it is written.
    pub color: bool,
    /// Whether the terminal can open what a piece of text leads to.
    pub links: bool,
}

/// What a piece of text is, to be painted accordingly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum Label {
    Title,
    Prompt,
    Tool,
    Error,
    Warning,
    Added,
    Removed,
    AddedWord,
    RemovedWord,
    Code,
    Link,
    Dim,
    Strong,
    Emphasis,
}

impl Label {
    /// The sixteen colours of the terminal's own theme, so that it stays readable on any background.
    pub(crate) fn style(self) -> Style {
        let color = |color: AnsiColor| Style::new().fg_color(Some(color.into()));
        match self {
            Self::Title | Self::Strong => Style::new().effects(Effects::BOLD),
            Self::Prompt => color(AnsiColor::Cyan).effects(Effects::BOLD),
            Self::Tool => color(AnsiColor::Blue),
            Self::Error => color(AnsiColor::Red).effects(Effects::BOLD),
            Self::Warning => color(AnsiColor::Yellow),
            Self::Added => color(AnsiColor::Green),
            Self::Removed => color(AnsiColor::Red),
            Self::AddedWord => color(AnsiColor::Green).effects(Effects::INVERT),
            Self::RemovedWord => color(AnsiColor::Red).effects(Effects::INVERT),
            Self::Code => color(AnsiColor::Magenta),
            Self::Link => color(AnsiColor::Blue).effects(Effects::UNDERLINE),
            Self::Dim => Style::new().effects(Effects::DIMMED),
            Self::Emphasis => Style::new().effects(Effects::ITALIC),
        }
    }
}

/// A page is read in a column; wider lines tire the eye.
const COLUMN: usize = 100;

impl Page {
    /// The text, painted as what it is.
    pub fn paint(self, label: Label, text: impl Into<TermText>) -> TermText {
        self.paint_style(label.style(), text)
    }

    pub(crate) fn paint_style(self, style: Style, text: impl Into<TermText>) -> TermText {
        let text = text.into();
        if self.color { text.styled(style) } else { text }
    }

    /// How many columns prose may fill beside an indent.
    pub(crate) fn column(self, indent: usize) -> usize {
        self.width.map_or(usize::MAX, |width| width.min(COLUMN + indent).saturating_sub(indent).max(20))
    }

    /// How many columns a line of code or data may fill beside an indent.
    pub(crate) fn room(self, indent: usize) -> usize {
        self.width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20))
    }

    /// The lines of [`wrap`](Self::wrap), one by one.
    pub(crate) fn wrap_each(self, text: &str, indent: usize, emit: impl FnMut(TermText)) {
        let width = self.column(indent);
        visible(text).lines().flat_map(|line| wrap_line(line, width)).map(TermText::from).for_each(emit);
    }

    /// Lines of `text` that fit beside an indent of `indent` columns. Breaks at spaces where it can.
    pub fn wrap(self, text: &str, indent: usize) -> Vec<TermText> {
        let width = self.column(indent);
        visible(text).lines().flat_map(|line| wrap_line(line, width)).map(TermText::from).collect()
    }
}

/// What a line may be broken between: words, blanks and newlines, and each character of a script that sets no
/// blanks.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = word_length(rest)?;
        let (word, tail) = rest.split_at(length);
        rest = tail;
        Some(word)
    })
}

/// What does not stand at the beginning of a line.
const CLOSING: &str = "，。、：；！？）」』】》〉”’…·ー々,.:;!?)]}";

fn is_wide(ch: char) -> bool {
    ch.width() == Some(2)
}

fn word_length(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    if matches!(first, ' ' | '\n') {
        return Some(1);
    }
    if !is_wide(first) {
        return Some(text.find(|ch| matches!(ch, ' ' | '\n') || is_wide(ch)).unwrap_or(text.len()));
    }
    // With what belongs to it: marks, the rest of an emoji, and what closes.
    let mut joined = false;
    let end = text.char_indices().skip(1).find(|(_, ch)| {
        let belongs = joined || ch.width() == Some(0) || CLOSING.contains(*ch);
        joined = *ch == '\u{200d}';
        !belongs
    });
    Some(end.map_or(text.len(), |(at, _)| at))
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let line = line.replace('\t', "    ");
    if line.width() <= width {
        return vec![line];
    }
    let mut out = Vec::new();
    let mut current = String::new();
    let mut used = 0;
    for word in words(&line) {
        let wide = if word == " " { 0 } else { word.width() };
        if used + wide > width && used > 0 {
            out.push(std::mem::take(&mut current).trim_end().to_owned());
            used = 0;
        }
        if wide <= width {
            current.push_str(word);
            used += word.width();
            continue;
        }
        // A word longer than the page is cut where it must.
        let mut rest = word;
        while !rest.is_empty() {
            let fits = fitting(rest, width - used).max(if used == 0 { first_char(rest) } else { 0 });
            current.push_str(&rest[..fits]);
            used += rest[..fits].width();
            rest = &rest[fits..];
            if !rest.is_empty() {
                out.push(std::mem::take(&mut current));
                used = 0;
            }
        }
    }
    out.push(current.trim_end().to_owned());
    out
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Returns how many bytes of `text` fit into `width` columns. What belongs to one character stays together.
///
/// The width of a text is not the sum of the widths of its characters: an emoji with a variation selector
/// takes two columns, the letter alone takes one.
pub(crate) fn fitting(text: &str, width: usize) -> usize {
    let (mut end, mut used) = (0, 0);
    for (at, cluster) in text.grapheme_indices(true) {
        used += cluster.width();
        if used > width {
            break;
        }
        end = at + cluster.len();
    }
    while text[..end].width() > width {
        end = last_cluster(&text[..end]);
    }
    end
}

/// Returns where the last character of `text` begins, with all that belongs to it.
fn last_cluster(text: &str) -> usize {
    text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
}

/// The text in one line, without tabs and newlines, whose width depends on where they are.
pub(crate) fn flat(text: &str) -> String {
    visible(text).replace('\t', "    ").replace('\n', " ")
}

/// The text in one line, cut to `width` columns, with an ellipsis where something is missing.
pub fn cut(text: &str, width: usize) -> String {
    let mut text = flat(text);
    if text.width() <= width {
        return text;
    }
    if width == 0 {
        return String::new();
    }
    let mut end = fitting(&text, width - 1);
    loop {
        text.truncate(end);
        text.push('…');
        if end == 0 || text.width() <= width {
            return text;
        }
        end = last_cluster(&text[..end]);
    }
}

#[cfg(test)]
mod tests {
    use super::{Page, cut};

    #[test]
    fn text_is_wrapped_by_columns_not_characters() {
        let page = Page { width: Some(24), color: false, links: false };
        assert_eq!(page.wrap("one two three four five six", 2), ["one two three four", "five six"]);
        assert_eq!(page.wrap("错误修复错误修复错误修复", 0), ["错误修复错误修复错误修复"]);
        assert_eq!(page.wrap("错误修复错误修复错误修复错误", 0), ["错误修复错误修复错误修复", "错误"]);
        assert_eq!(cut("错误修复", 5), "错误…");
        // A line is filled, and none begins with what closes.
        assert_eq!(page.wrap("see 错误修复错误修复错误，修复", 0), ["see 错误修复错误修复错", "误，修复"]);
        assert_eq!(page.wrap("a  b", 0), ["a  b"]);
        assert_eq!(cut("\tone two", 8), "    one…");
        assert_eq!(cut("one\ntwo", 20), "one two");
        assert_eq!(cut("one", 0), "");
    }

    #[test]
    fn what_is_one_character_to_a_reader_is_cut_as_one() {
        assert_eq!(cut("ab⚠\u{fe0f}cd", 4), "ab…");
        assert_eq!(cut("ab⚠\u{fe0f}cd", 5), "ab⚠\u{fe0f}…");
        assert_eq!(cut("👩\u{200d}🚀👩\u{200d}🚀", 3), "👩\u{200d}🚀…");
        assert_eq!(cut("👩\u{200d}🚀👩\u{200d}🚀", 2), "…");
        assert_eq!(cut("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }
}
