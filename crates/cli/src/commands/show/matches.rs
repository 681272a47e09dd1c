//! Matches of `--find` in a rendered transcript: their highlighting, and the line at which the pager opens.

use std::collections::VecDeque;

use threadline_search::Query;
use threadline_term::{RenderedTranscript, TermText};

use crate::context::Context;
use crate::error::CommandError;
use crate::ui::PagerStart;

/// Writes a transcript with the matches of a query highlighted. The pager opens at the best match in the
/// requested item, else at the best one below the header, and searches for the matches. Without a match, the
/// pager opens at the item, whose first line is highlighted. Returns whether there is a match.
pub(super) fn write_highlighted(
    cx: &Context,
    rendered: &RenderedTranscript,
    query: Option<&Query>,
) -> Result<bool, CommandError> {
    let (text, has_colors) = (&rendered.text, cx.ui.page().color);
    let mut found = FoundMatches::default();
    let mut marked = None;
    if let Some(query) = query {
        let mut highlight = |number: usize, line: &str| {
            if number < rendered.header_lines {
                return Vec::new();
            }
            let ranges = query.highlight(line);
            if !ranges.is_empty() {
                let in_item = rendered.item_lines.as_ref().is_some_and(|lines| lines.contains(&number));
                found.add(number, in_item, ranges.iter().map(|range| &line[range.clone()]));
            }
            ranges
        };
        if has_colors {
            marked = Some(text.highlighted(&mut highlight));
        } else {
            text.each_plain_line(&mut |number, line| {
                highlight(number, line);
            });
        }
    }
    let mut line = found.best_line();
    let is_found = line.is_some();
    if !is_found {
        (marked, line) = mark_item(rendered);
    }
    let start = line.map(|line| PagerStart { line, pattern: pager_pattern(&found.texts) });
    let mut answer = cx.ui.paged_output_at(start.as_ref());
    answer.text(marked.as_ref().filter(|_| has_colors).unwrap_or(text))?;
    answer.finish()?;
    Ok(is_found)
}

/// Highlights the first line of the requested item, and returns its number.
fn mark_item(rendered: &RenderedTranscript) -> (Option<TermText>, Option<usize>) {
    let Some(item_lines) = &rendered.item_lines else { return (None, None) };
    let mut first = None;
    let marked = rendered.text.highlighted(&mut |number, line| {
        if number < item_lines.start || first.is_some() || line.trim().is_empty() {
            return Vec::new();
        }
        first = Some(number);
        std::iter::once(line.len() - line.trim_start().len()..line.len()).collect()
    });
    (first.is_some().then_some(marked), first)
}

/// The maximum number of different texts that are distinguished. Each is a bit of a [`TextSet`].
const MAX_TEXTS: usize = 64;

/// The maximum length of these texts, which is that of a regular expression that pagers accept.
const MAX_PATTERN: usize = 400;

/// A set of texts of [`FoundMatches`], by index.
type TextSet = u64;

/// The texts that match a query, and the best lines.
#[derive(Default)]
struct FoundMatches {
    /// The first different texts, in lower case.
    texts: Vec<String>,
    in_item: BestLineSearch,
    anywhere: BestLineSearch,
}

impl FoundMatches {
    /// Adds a line with the texts in it that match.
    fn add<'t>(&mut self, number: usize, in_item: bool, texts: impl Iterator<Item = &'t str>) {
        let mut set: TextSet = 0;
        for text in texts.filter(|text| text.len() <= MAX_PATTERN) {
            let text = text.to_lowercase();
            let known = self.texts.iter().position(|other| *other == text);
            let idx = known.unwrap_or(self.texts.len());
            if idx < MAX_TEXTS {
                set |= 1 << idx;
                if known.is_none() {
                    self.texts.push(text);
                }
            }
        }
        self.anywhere.add(number, set);
        if in_item {
            self.in_item.add(number, set);
        }
    }

    fn best_line(&mut self) -> Option<usize> {
        self.in_item.finish().or_else(|| self.anywhere.finish())
    }
}

/// Finds the first line with most of the different texts in it and the two lines below it.
#[derive(Default)]
struct BestLineSearch {
    /// The number of texts, and the line.
    best: Option<(u32, usize)>,
    /// The last lines with a match, with the texts in them and below them.
    last: VecDeque<(usize, TextSet)>,
}

impl BestLineSearch {
    const WINDOW: usize = 3;

    fn add(&mut self, number: usize, texts: TextSet) {
        while self.last.front().is_some_and(|(first, _)| first + Self::WINDOW <= number) {
            self.compare_first();
        }
        self.last.iter_mut().for_each(|(_, below)| *below |= texts);
        self.last.push_back((number, texts));
    }

    fn compare_first(&mut self) {
        if let Some((number, texts)) = self.last.pop_front() {
            let count = texts.count_ones();
            if self.best.is_none_or(|(best, _)| count > best) {
                self.best = Some((count, number));
            }
        }
    }

    fn finish(&mut self) -> Option<usize> {
        while !self.last.is_empty() {
            self.compare_first();
        }
        self.best.map(|(_, number)| number)
    }
}

/// Returns a regular expression for a pager that matches these texts. Texts beyond a length that pagers
/// accept are left out.
///
/// The texts are from a log. `less` takes the text after a `$` in this argument for further options, so that
/// the expression contains none.
fn pager_pattern(texts: &[String]) -> String {
    let mut texts: Vec<&String> = texts.iter().collect();
    texts.sort();
    let mut pattern = String::from("(");
    for text in texts.into_iter().filter(|text| !text.contains(char::is_control)) {
        let separator = if pattern.len() > 1 { "|" } else { "" };
        let mut escaped = String::new();
        for ch in text.chars() {
            if r"\.[]{}()*+?^|".contains(ch) {
                escaped.push('\\');
            }
            escaped.push(if ch == '$' { '.' } else { ch });
        }
        if pattern.len() + separator.len() + escaped.len() <= MAX_PATTERN {
            pattern.push_str(separator);
            pattern.push_str(&escaped);
        }
    }
    if pattern.len() > 1 { pattern + ")" } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_line(lines: &[(usize, &str)]) -> Option<usize> {
        let mut found = FoundMatches::default();
        for (number, texts) in lines {
            found.add(*number, false, texts.split(' '));
        }
        found.best_line()
    }

    #[test]
    fn the_best_line_is_the_first_with_most_texts_in_it_and_below() {
        assert_eq!(best_line(&[]), None);
        assert_eq!(best_line(&[(4, "a"), (9, "b")]), Some(4));
        assert_eq!(best_line(&[(4, "a"), (9, "b"), (11, "A")]), Some(9));
        assert_eq!(best_line(&[(4, "a"), (9, "b"), (12, "a")]), Some(4));
        assert_eq!(best_line(&[(1, "a a A"), (5, "b"), (6, "c"), (7, "a"), (8, "b c a")]), Some(5));
    }

    #[test]
    fn of_very_many_different_texts_the_first_are_counted() {
        let mut found = FoundMatches::default();
        let texts: Vec<String> = (0..1000).map(|idx| format!("t{idx}")).collect();
        found.add(3, true, texts.iter().map(String::as_str));
        found.add(4, true, std::iter::once(&*"x".repeat(1000)));
        assert_eq!((found.best_line(), found.texts.len()), (Some(3), MAX_TEXTS));
    }

    #[test]
    fn text_of_a_log_adds_no_option_to_the_pager() {
        assert_eq!(
            pager_pattern(&["b.c", "a$-O/tmp/x", "d\u{1b}e"].map(str::to_owned)),
            r"(a.-O/tmp/x|b\.c)"
        );
        assert_eq!(pager_pattern(&[]), "");
    }

    #[test]
    fn texts_that_a_pager_does_not_accept_are_left_out_of_its_pattern() {
        let texts = ["y", "z"].map(|text| text.repeat(300));
        assert_eq!(pager_pattern(&texts), format!("({})", texts[0]));
    }
}
