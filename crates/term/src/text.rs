//! Text that is safe to write to a terminal.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::ops::{AddAssign, Range};

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::page::without_tabs;
use crate::visible;

/// Text in which every control sequence was written by this crate.
///
/// It cannot be built from raw text: [`From`], [`fmt::Write`] and [`text!`](crate::text) make
/// control and direction characters [visible]. Only [`TermPage::paint`](crate::TermPage::paint) and the
/// renderers of this crate add styles and links. A `TermText` that is formatted into another one keeps its
/// styles, so `write!` and `text!` can mix styled text with text from logs:
///
/// ```
/// use threadline_term::{TermPage, TextLabel, text};
///
/// let page = TermPage { width: None, color: true, links: false, whole_lines: false };
/// let name = "a\u{1b}[2Jb";
/// let line = text!("{}: {name}", page.paint(TextLabel::Dim, "name"));
/// assert_eq!(line.as_str(), "\u{1b}[2mname\u{1b}[0m: a^[[2Jb");
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TermText {
    text: String,
}

thread_local! {
    /// Whether a `TermText` is being formatted on this thread.
    ///
    /// A formatter only receives strings. This flag is how one `TermText` recognises another in the
    /// arguments of `write!`.
    static IS_SAFE: Cell<bool> = const { Cell::new(false) };
}

/// Sets [`IS_SAFE`] until it is dropped.
struct SafeGuard;

impl SafeGuard {
    fn new() -> Self {
        IS_SAFE.set(true);
        Self
    }
}

impl Drop for SafeGuard {
    fn drop(&mut self) {
        IS_SAFE.set(false);
    }
}

impl TermText {
    /// Returns empty text.
    pub const fn new() -> Self {
        Self { text: String::new() }
    }

    /// Formats `args`, as [`text!`](crate::text) does.
    pub fn format(args: fmt::Arguments<'_>) -> Self {
        let mut out = Self::new();
        // Formatting fails only if a `Display` in the arguments fails. The rest is then missing.
        let _ = fmt::Write::write_fmt(&mut out, args);
        out
    }

    /// Returns the text with its styles and links, for output.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the length in bytes, styles included.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Appends text.
    pub fn push(&mut self, text: impl Into<Self>) {
        let text = text.into();
        if self.text.is_empty() {
            self.text = text.text;
        } else {
            self.text.push_str(&text.text);
        }
    }

    /// Concatenates `parts` with `separator` between them.
    pub fn join(parts: impl IntoIterator<Item = Self>, separator: &Self) -> Self {
        let mut out = Self::new();
        for (i, part) in parts.into_iter().enumerate() {
            if i > 0 {
                out.push(separator);
            }
            out.push(part);
        }
        out
    }

    /// Returns the lines. Every line has its styles, because no renderer lets a style continue after a
    /// newline.
    pub fn lines(&self) -> Vec<Self> {
        self.text.lines().map(|line| Self { text: line.to_owned() }).collect()
    }

    /// Removes white space from the end.
    #[must_use]
    pub fn trim_end(mut self) -> Self {
        self.text.truncate(self.text.trim_end().len());
        self
    }

    /// Returns the text without its styles and links.
    pub fn plain(&self) -> Cow<'_, str> {
        without_styles(&self.text)
    }

    /// Calls `visit` with the number of each line, from 0, and its text without styles.
    pub fn each_plain_line(&self, visit: &mut dyn FnMut(usize, &str)) {
        for (number, line) in self.text.lines().enumerate() {
            visit(number, &without_styles(line));
        }
    }

    /// Highlights the byte ranges that `find` returns for the number of each line, from 0, and its text
    /// without styles.
    #[must_use]
    pub fn highlighted(&self, find: &mut dyn FnMut(usize, &str) -> Vec<Range<usize>>) -> Self {
        const START: &str = "\u{1b}[7m";
        const END: &str = "\u{1b}[27m";
        let mut out = Self::new();
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let mut ranges = find(number, without_styles(line).trim_end_matches('\n'));
            if ranges.is_empty() {
                out.text.push_str(line);
                continue;
            }
            let (mut at, mut rest) = (0, line);
            ranges.sort_unstable_by_key(|range| range.start);
            let mut ranges = ranges.into_iter().peekable();
            let mut open = false;
            while let Some(ch) = rest.chars().next() {
                let length = if ch == '\u{1b}' { sequence_length(rest) } else { ch.len_utf8() };
                if ch != '\u{1b}' {
                    while ranges.next_if(|range| range.end <= at).is_some() {}
                    if ranges.peek().is_some_and(|range| range.contains(&at)) != open {
                        open = !open;
                        out.text.push_str(if open { START } else { END });
                    }
                    at += length;
                }
                out.text.push_str(&rest[..length]);
                // A style may end within a match; the highlight must not end with it.
                if ch == '\u{1b}' && open {
                    out.text.push_str(START);
                }
                rest = &rest[length..];
            }
            if open {
                out.text.push_str(END);
            }
        }
        out
    }

    /// Returns the width in columns.
    pub fn width(&self) -> usize {
        self.plain().width()
    }

    pub(crate) fn ends_with(&self, end: &str) -> bool {
        self.text.ends_with(end)
    }

    /// Wraps the text in a style.
    pub(crate) fn styled(self, style: Style) -> Self {
        let length = self.text.len();
        self.styled_start(length, style)
    }

    /// Wraps the first `length` bytes of the text in a style.
    pub(crate) fn styled_start(mut self, length: usize, style: Style) -> Self {
        if length == 0 || style == Style::new() {
            return self;
        }
        // In place, since a text may have megabytes.
        let (start, end) = (style.to_string(), format!("{style:#}"));
        self.text.reserve_exact(start.len() + end.len());
        self.text.insert_str(length, &end);
        self.text.insert_str(0, &start);
        self
    }

    /// Makes the text a link. Does nothing if the URL contains control or other invisible characters.
    pub(crate) fn linked(self, url: &str) -> Self {
        if visible(url) != url || url.contains(['\n', '\t']) {
            return self;
        }
        Self { text: format!("\u{1b}]8;;{url}\u{1b}\\{}\u{1b}]8;;\u{1b}\\", self.text) }
    }

    /// Replaces the tabs of a line with spaces.
    pub(crate) fn without_tabs(self) -> Self {
        Self { text: without_tabs(self.text).into_owned() }
    }
}

/// Returns a text without the sequences of styles and links.
fn without_styles(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('\u{1b}') else { return Cow::Borrowed(text) };
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut next = Some(first);
    while let Some(start) = next {
        out.push_str(&rest[..start]);
        let sequence = &rest[start..];
        rest = &sequence[sequence_length(sequence)..];
        next = rest.find('\u{1b}');
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Returns the length of the style or link sequence that `text` starts with.
fn sequence_length(text: &str) -> usize {
    let end = match text.strip_prefix("\u{1b}]") {
        Some(_) => text.find("\u{1b}\\").map(|end| end + 2),
        None => text.find('m').map(|end| end + 1),
    };
    end.unwrap_or(text.len())
}

impl fmt::Write for TermText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if IS_SAFE.get() {
            self.text.push_str(text);
        } else {
            self.text.push_str(&visible(text));
        }
        Ok(())
    }
}

impl fmt::Display for TermText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let _guard = SafeGuard::new();
        f.pad(&self.text)
    }
}

impl fmt::Debug for TermText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl From<Cow<'_, str>> for TermText {
    fn from(text: Cow<'_, str>) -> Self {
        match text {
            Cow::Borrowed(text) => text.into(),
            Cow::Owned(text) => text.into(),
        }
    }
}

impl From<&str> for TermText {
    fn from(text: &str) -> Self {
        Self { text: visible(text).into_owned() }
    }
}

impl From<String> for TermText {
    fn from(text: String) -> Self {
        match visible(&text) {
            Cow::Borrowed(_) => Self { text },
            Cow::Owned(text) => Self { text },
        }
    }
}

impl From<&String> for TermText {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<&Cow<'_, str>> for TermText {
    fn from(text: &Cow<'_, str>) -> Self {
        (**text).into()
    }
}

impl From<&Self> for TermText {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl<T: Into<Self>> AddAssign<T> for TermText {
    fn add_assign(&mut self, text: T) {
        self.push(text);
    }
}

impl<T: Into<Self>> std::ops::Add<T> for TermText {
    type Output = Self;

    fn add(mut self, text: T) -> Self {
        self.push(text);
        self
    }
}

impl PartialEq<str> for TermText {
    fn eq(&self, other: &str) -> bool {
        self.text == other
    }
}

impl PartialEq<&str> for TermText {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

/// Formats [`TermText`](crate::TermText) from the arguments of `format!`. Arguments that are not `TermText`
/// are made visible.
#[macro_export]
macro_rules! text {
    ($($arg:tt)*) => { $crate::TermText::format(::std::format_args!($($arg)*)) };
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use super::*;
    use crate::{TermPage, TextLabel};

    const PAGE: TermPage = TermPage { width: None, color: true, links: true, whole_lines: false };
    const HOSTILE: &str = "\u{1b}[31m\u{9b}2J\u{7}\u{202e}\r\u{8}\u{7f}";
    const SHOWN: &str = "^[[31m<U+009B>2J^G<U+202E>^M^H^?";

    #[test]
    fn all_conversions_make_control_characters_visible() {
        let painted = PAGE.paint(TextLabel::Dim, HOSTILE);
        assert_eq!(painted.as_str(), format!("\u{1b}[2m{SHOWN}\u{1b}[0m"));
        let owned = HOSTILE.to_owned();
        for text in [HOSTILE.into(), TermText::from(&owned), owned.clone().into(), Cow::from(HOSTILE).into()]
        {
            assert_eq!(text.as_str(), SHOWN);
        }
        let mut written = TermText::from("a ");
        write!(written, "{HOSTILE} {painted:<3} {HOSTILE:?}").unwrap();
        assert_eq!(written.plain(), format!("a {SHOWN} {SHOWN} {HOSTILE:?}"));
        // Styled text that was converted to a `String` loses its special status.
        assert_eq!(text!("{}", format!("{painted}")).plain(), format!("^[[2m{SHOWN}^[[0m"));
        assert_eq!(text!("{HOSTILE}").as_str(), SHOWN, "no state is kept");
    }

    #[test]
    fn a_link_with_control_characters_is_dropped() {
        let link = TermText::from("x").linked("https://example.org");
        assert_eq!(link.as_str(), "\u{1b}]8;;https://example.org\u{1b}\\x\u{1b}]8;;\u{1b}\\");
        assert_eq!((&*link.plain(), link.width()), ("x", 1));
        for url in ["https://a\u{1b}\\b", "https://a\u{9c}b", "https://a\nb", "https://a\u{202e}b"] {
            assert_eq!(TermText::from("x").linked(url).as_str(), "x", "{url:?}");
        }
    }
}
