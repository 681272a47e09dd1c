//! Styled text that can be wrapped to a width in columns.

use std::sync::Arc;

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

use crate::page::{TermPage, fitting_len, words};
use crate::text::TermText;
use crate::visible;

/// A sequence of text runs, each with a style and an optional link.
#[derive(Clone, Debug, Default)]
pub(crate) struct StyledText {
    runs: Vec<StyledRun>,
}

#[derive(Clone, Debug)]
struct StyledRun {
    format: RunFormat,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RunFormat {
    style: Style,
    link: Option<Arc<str>>,
}

impl StyledText {
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        self.push_run(&RunFormat { style, link: None }, text);
    }

    /// Appends text that links to `url`.
    pub(crate) fn push_link(&mut self, style: Style, text: &str, url: &Arc<str>) {
        self.push_run(&RunFormat { style, link: Some(url.clone()) }, text);
    }

    fn push_run(&mut self, look: &RunFormat, text: &str) {
        let text = visible(text);
        match self.runs.last_mut() {
            Some(run) if run.format == *look => run.text.push_str(&text),
            _ => self.runs.push(StyledRun { format: look.clone(), text: text.into_owned() }),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.iter().all(|run| run.text.is_empty())
    }

    pub(crate) fn width(&self) -> usize {
        self.runs.iter().map(|run| run.text.width()).sum()
    }

    /// Renders the text as one line.
    pub(crate) fn paint(&self, page: TermPage) -> TermText {
        let mut out = TermText::new();
        for run in &self.runs {
            let text = page.paint_style(run.format.style, &run.text);
            out.push(match run.format.link.as_ref().filter(|_| page.links) {
                Some(url) => text.linked(url),
                None => text,
            });
        }
        out
    }

    /// Passes the text as lines to `emit`, like [`StyledText::wrap_each`]. A text that is not wrapped, which
    /// may be very long, is not copied.
    pub(crate) fn into_lines(self, page: TermPage, width: usize, mut emit: impl FnMut(TermText)) {
        let is_plain = !page.color && !page.links;
        if width != usize::MAX || !is_plain || self.runs.iter().any(|run| run.text.contains('\n')) {
            return self.wrap_each(page, width, emit);
        }
        let mut out = TermText::new();
        self.runs.into_iter().for_each(|run| out.push(run.text));
        emit(out);
    }

    /// Renders the text as lines of at most `width` columns. Passes them to `emit` one at a time, so that a
    /// long text is not collected.
    ///
    /// Breaks at newlines and, if possible, at spaces. A space at a break may end the line but is not
    /// carried over to the next one. Indentation is kept.
    pub(crate) fn wrap_each(&self, page: TermPage, width: usize, mut emit: impl FnMut(TermText)) {
        // A line that is not wrapped may be very long.
        if width == usize::MAX && !self.runs.iter().any(|run| run.text.contains('\n')) {
            return emit(self.paint(page));
        }
        let mut line = Self::default();
        let mut end = |line: &mut Self| {
            emit(line.paint(page));
            line.runs.clear();
        };
        let mut used = 0;
        let mut broken = false;
        for (look, word) in self.words() {
            if word == "\n" {
                end(&mut line);
                (used, broken) = (0, false);
                continue;
            }
            let wide = word.width();
            if word == " " {
                if (used > 0 || !broken) && used < width {
                    line.push_run(look, " ");
                    used += 1;
                }
                continue;
            }
            if used + wide > width && used > 0 {
                end(&mut line);
                (used, broken) = (0, true);
            }
            if wide <= width {
                line.push_run(look, word);
                used += wide;
                continue;
            }
            // A word wider than a line is broken anywhere.
            let mut rest = word;
            while !rest.is_empty() {
                let first = rest.chars().next().map_or(0, char::len_utf8);
                let fits = fitting_len(rest, width - used).max(if used == 0 { first } else { 0 });
                line.push_run(look, &rest[..fits]);
                used += rest[..fits].width();
                rest = &rest[fits..];
                if !rest.is_empty() {
                    end(&mut line);
                    used = 0;
                }
            }
        }
        end(&mut line);
    }

    /// Returns the words, spaces and newlines, each with its style.
    fn words(&self) -> impl Iterator<Item = (&RunFormat, &str)> {
        self.runs.iter().flat_map(|run| words(&run.text).map(move |word| (&run.format, word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_is_kept() {
        let page = TermPage { width: Some(12), color: false, links: false, whole_lines: false };
        let mut text = StyledText::default();
        text.push(Style::new(), "if x:\n    return one two\n  done");
        let mut lines = Vec::new();
        text.wrap_each(page, 12, |line| lines.push(line));
        assert_eq!(lines, ["if x:", "    return ", "one two", "  done"]);
    }
}
