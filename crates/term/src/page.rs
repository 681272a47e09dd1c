//! The page: its width, and the styles of labels.

use std::borrow::Cow;

use anstyle::{AnsiColor, Effects, Style};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::text::TermText;
use crate::visible;

/// The output settings: the width in columns, and the features of the terminal.
#[derive(Clone, Copy, Debug)]
pub struct TermPage {
    /// The width in columns. With `None`, text is not wrapped.
    pub width: Option<usize>,
    /// Whether to use colours, and to render Markdown instead of printing its source.
    pub color: bool,
    /// Whether the terminal supports hyperlinks.
    pub links: bool,
    /// Whether long lines of code and data are left to the pager to wrap, instead of truncated.
    pub whole_lines: bool,
}

/// The role of a piece of text, which determines its style.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum TextLabel {
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

impl TextLabel {
    /// Returns the style. It uses only the 16 colours of the terminal theme, which are readable on any
    /// background.
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

impl TermPage {
    /// Styles text according to its label.
    pub fn paint(self, label: TextLabel, text: impl Into<TermText>) -> TermText {
        self.paint_style(label.style(), text)
    }

    pub(crate) fn paint_style(self, style: Style, text: impl Into<TermText>) -> TermText {
        let text = text.into();
        if self.color { text.styled(style) } else { text }
    }

    /// Styles the first `length` bytes of a text.
    pub(crate) fn paint_start(self, label: TextLabel, length: usize, text: TermText) -> TermText {
        if self.color { text.styled_start(length, label.style()) } else { text }
    }

    /// Returns the number of columns for prose after an indent.
    pub(crate) fn prose_width(self, indent: usize) -> usize {
        self.width.map_or(usize::MAX, |width| width.min(100 + indent).saturating_sub(indent).max(20))
    }

    /// Returns the number of columns for code or data after an indent.
    pub(crate) fn line_width(self, indent: usize) -> usize {
        let width = self.width.filter(|_| !self.whole_lines);
        width.map_or(usize::MAX, |width| width.saturating_sub(indent).max(20))
    }

    /// Like [`wrap`](Self::wrap), but passes the lines to `emit` one at a time.
    pub(crate) fn wrap_each(self, text: &str, indent: usize, emit: impl FnMut(TermText)) {
        let width = self.prose_width(indent);
        visible(text).lines().flat_map(|line| wrap_line(line, width)).map(TermText::from).for_each(emit);
    }

    /// Wraps text to lines that fit after an indent of `indent` columns. Breaks at spaces if possible.
    pub fn wrap(self, text: &str, indent: usize) -> Vec<TermText> {
        let mut lines = Vec::new();
        self.wrap_each(text, indent, |line| lines.push(line));
        lines
    }
}

/// Splits a text at all possible line breaks: into words, spaces, newlines, and single characters of
/// scripts without spaces.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let length = word_length(rest)?;
        let (word, tail) = rest.split_at(length);
        rest = tail;
        Some(word)
    })
}

/// Characters that must not begin a line.
const CLOSING_PUNCTUATION: &str = "，。、：；！？）」』】》〉”’…·ー々,.:;!?)]}";

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
    // Includes combining marks, the rest of an emoji sequence, and closing punctuation.
    let mut joined = false;
    let end = text.char_indices().skip(1).find(|(_, ch)| {
        let belongs = joined || ch.width() == Some(0) || CLOSING_PUNCTUATION.contains(*ch);
        joined = *ch == '\u{200d}';
        !belongs
    });
    Some(end.map_or(text.len(), |(at, _)| at))
}

fn wrap_line(line: &str, width: usize) -> Vec<String> {
    let line = without_tabs(line);
    if width == usize::MAX || line.width() <= width {
        return vec![line.into_owned()];
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
        // A word wider than a line is broken anywhere.
        let mut rest = word;
        while !rest.is_empty() {
            let fits = fitting_len(rest, width - used).max(if used == 0 { first_char(rest) } else { 0 });
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

/// Returns the number of bytes of `text` that fit into `width` columns. Grapheme clusters are not split.
///
/// The width of a text is not the sum of the widths of its characters: an emoji with a variation selector
/// takes two columns, the base character alone takes one.
pub(crate) fn fitting_len(text: &str, width: usize) -> usize {
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

/// Returns the offset of the last grapheme cluster of `text`.
fn last_cluster(text: &str) -> usize {
    text.grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
}

/// Returns the text as one line, with tabs and newlines replaced by spaces.
pub(crate) fn to_one_line(text: &str) -> String {
    let line = without_tabs(visible(text));
    if line.contains('\n') { line.replace('\n', " ") } else { line.into_owned() }
}

/// Replaces the tabs of a line with four spaces, because the width of a tab depends on its column. A text
/// without tabs is not copied.
pub(crate) fn without_tabs<'t>(text: impl Into<Cow<'t, str>>) -> Cow<'t, str> {
    let text = text.into();
    if text.contains('\t') { Cow::Owned(text.replace('\t', "    ")) } else { text }
}

/// Returns the text as one line, truncated to `width` columns. An ellipsis marks the truncation.
pub fn truncate(text: &str, width: usize) -> String {
    let mut text = to_one_line(text);
    if text.width() <= width {
        return text;
    }
    if width == 0 {
        return String::new();
    }
    let mut end = fitting_len(&text, width - 1);
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
    use super::{TermPage, truncate, without_tabs};

    #[test]
    fn tabs_become_four_spaces() {
        assert_eq!(without_tabs("\ta\t\tb"), "    a        b");
    }

    #[test]
    fn text_is_wrapped_by_columns_not_characters() {
        let page = TermPage { width: Some(24), color: false, links: false, whole_lines: false };
        assert_eq!(page.wrap("one two three four five six", 2), ["one two three four", "five six"]);
        assert_eq!(page.wrap("错误修复错误修复错误修复", 0), ["错误修复错误修复错误修复"]);
        assert_eq!(page.wrap("错误修复错误修复错误修复错误", 0), ["错误修复错误修复错误修复", "错误"]);
        assert_eq!(truncate("错误修复", 5), "错误…");
        // Lines are filled, and none begins with closing punctuation.
        assert_eq!(page.wrap("see 错误修复错误修复错误，修复", 0), ["see 错误修复错误修复错", "误，修复"]);
        assert_eq!(page.wrap("a  b", 0), ["a  b"]);
        assert_eq!(truncate("\tone two", 8), "    one…");
        assert_eq!(truncate("one\ntwo", 20), "one two");
        assert_eq!(truncate("one", 0), "");
    }

    #[test]
    fn grapheme_clusters_are_not_split() {
        assert_eq!(truncate("ab⚠\u{fe0f}cd", 4), "ab…");
        assert_eq!(truncate("ab⚠\u{fe0f}cd", 5), "ab⚠\u{fe0f}…");
        assert_eq!(truncate("👩\u{200d}🚀👩\u{200d}🚀", 3), "👩\u{200d}🚀…");
        assert_eq!(truncate("👩\u{200d}🚀👩\u{200d}🚀", 2), "…");
        assert_eq!(truncate("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
    }
}
