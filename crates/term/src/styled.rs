//! Text with styles in it, wrapped by columns.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::page::Page;

/// Pieces of text, each with a style.
#[derive(Clone, Debug, Default)]
pub(crate) struct Styled {
    runs: Vec<(Style, String)>,
}

impl Styled {
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        match self.runs.last_mut() {
            Some((last, run)) if *last == style => run.push_str(text),
            _ => self.runs.push((style, text.to_owned())),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.iter().all(|(_, text)| text.is_empty())
    }

    pub(crate) fn width(&self) -> usize {
        self.runs.iter().map(|(_, text)| text.width()).sum()
    }

    /// One line, painted.
    pub(crate) fn paint(&self, page: Page) -> String {
        self.runs.iter().map(|(style, text)| page.paint_style(*style, text)).collect()
    }

    /// Lines of at most `width` columns, painted. Breaks at blanks where it can, and at newlines.
    pub(crate) fn wrap(&self, page: Page, width: usize) -> Vec<String> {
        let mut lines = vec![Self::default()];
        let mut used = 0;
        for (style, word) in self.words() {
            if word == "\n" {
                lines.push(Self::default());
                used = 0;
                continue;
            }
            let wide = word.width();
            if word == " " {
                if used > 0 && used < width {
                    last(&mut lines).push(style, " ");
                    used += 1;
                }
                continue;
            }
            if used + wide > width && used > 0 {
                lines.push(Self::default());
                used = 0;
            }
            if wide <= width {
                last(&mut lines).push(style, word);
                used += wide;
                continue;
            }
            // A word longer than the page is cut where it must.
            for ch in word.chars() {
                let wide = ch.width().unwrap_or(0);
                if used + wide > width {
                    lines.push(Self::default());
                    used = 0;
                }
                last(&mut lines).push(style, ch.encode_utf8(&mut [0; 4]));
                used += wide;
            }
        }
        lines.iter().map(|line| line.paint(page)).collect()
    }

    /// Words, blanks and newlines, one by one.
    fn words(&self) -> impl Iterator<Item = (Style, &str)> {
        self.runs.iter().flat_map(|(style, text)| {
            let mut rest = &**text;
            std::iter::from_fn(move || {
                let first = rest.chars().next()?;
                let length = match first {
                    ' ' | '\n' => 1,
                    _ => rest.find([' ', '\n']).unwrap_or(rest.len()),
                };
                let (word, tail) = rest.split_at(length);
                rest = tail;
                Some((*style, word))
            })
        })
    }
}

fn last(lines: &mut [Styled]) -> &mut Styled {
    let end = lines.len() - 1;
    &mut lines[end]
}
