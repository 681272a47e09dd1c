//! Diffs of texts: hunks of lines, with the changed words of changed lines.

use std::borrow::Cow;
use std::ops::Range;

use similar::{ChangeTag, TextDiff};
use threadline_entry::lens::PatchHunk;
use threadline_session::LineHunk;

/// A group of changed lines with some unchanged lines around them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The number of its first line in the old text, from 1; 0 if unknown.
    pub old_start: u64,
    /// The number of its first line in the new text, from 1; 0 if unknown.
    pub new_start: u64,
    /// The lines.
    pub lines: Vec<DiffLine>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffLine {
    /// Whether it was kept, added or removed.
    pub change: Change,
    /// The line, without its newline.
    pub text: String,
    /// The byte ranges that differ from the line that it replaces or is replaced by.
    pub changed: Vec<Range<usize>>,
}

/// The kind of change of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum Change {
    Kept,
    Added,
    Removed,
}

impl Hunk {
    /// Returns the numbers of added and removed lines of some hunks.
    pub fn counts(hunks: &[Self]) -> (usize, usize) {
        let count = |change: Change| {
            hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.change == change).count()
        };
        (count(Change::Added), count(Change::Removed))
    }

    /// Converts a hunk of a structured patch that Claude Code logged.
    pub fn noted(hunk: PatchHunk<'_>) -> Self {
        let lines = hunk.lines().into_iter().flat_map(|lines| lines.iter());
        Self::of_signed_lines(hunk.old_start().unwrap_or(0), hunk.new_start().unwrap_or(0), lines)
    }

    /// Converts a hunk of an edit.
    pub fn of_lines(hunk: &LineHunk) -> Self {
        let lines = hunk.lines.iter().map(|line| Cow::Borrowed(&**line));
        Self::of_signed_lines(hunk.old_start, hunk.new_start, lines)
    }

    fn of_signed_lines<'l>(
        old_start: u64,
        new_start: u64,
        signed: impl Iterator<Item = Cow<'l, str>>,
    ) -> Self {
        let mut lines: Vec<DiffLine> = Vec::new();
        for line in signed {
            let (change, text) = match line.as_bytes().first() {
                Some(b'+') => (Change::Added, &line[1..]),
                Some(b'-') => (Change::Removed, &line[1..]),
                Some(b' ') => (Change::Kept, &line[1..]),
                // `\ No newline at end of file`
                Some(b'\\') => continue,
                _ => (Change::Kept, &*line),
            };
            lines.push(DiffLine { change, text: text.to_owned(), changed: Vec::new() });
        }
        mark_words(&mut lines);
        Self { old_start, new_start, lines }
    }
}

/// The largest product of line counts for which two texts are compared line by line. The time for texts
/// that have little in common grows faster than their size.
const MOST_PAIRS: usize = 2000 * 2000;

/// Computes the hunks between two texts, with three lines of context.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    if let Some(replaced) = replaced(old, new) {
        return vec![replaced];
    }
    let diff = TextDiff::from_lines(old, new);
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(3) {
        let first = &group[0];
        let mut lines = Vec::new();
        for op in &group {
            for change in diff.iter_changes(op) {
                let kind = match change.tag() {
                    ChangeTag::Equal => Change::Kept,
                    ChangeTag::Insert => Change::Added,
                    ChangeTag::Delete => Change::Removed,
                };
                let text = change.value().trim_end_matches(['\n', '\r']).to_owned();
                lines.push(DiffLine { change: kind, text, changed: Vec::new() });
            }
        }
        mark_words(&mut lines);
        let (old_start, new_start) = (first.old_range().start as u64 + 1, first.new_range().start as u64 + 1);
        hunks.push(Hunk { old_start, new_start, lines });
    }
    hunks
}

/// Returns one hunk that replaces all lines between the common prefix and suffix, for texts that are too
/// long to compare.
fn replaced(old: &str, new: &str) -> Option<Hunk> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old_lines.iter().zip(&new_lines).take_while(same).count();
    let (gone, come) = (&old_lines[head..], &new_lines[head..]);
    let tail = gone.iter().rev().zip(come.iter().rev()).take_while(same).count();
    let (gone, come) = (&gone[..gone.len() - tail], &come[..come.len() - tail]);
    if gone.len().saturating_mul(come.len()) <= MOST_PAIRS {
        return None;
    }
    let line = |change: Change| {
        move |text: &&str| DiffLine { change, text: (*text).to_owned(), changed: Vec::new() }
    };
    let around = head.saturating_sub(3);
    let end = old_lines.len() - tail;
    let mut lines: Vec<DiffLine> = old_lines[around..head].iter().map(line(Change::Kept)).collect();
    lines.extend(gone.iter().map(line(Change::Removed)));
    lines.extend(come.iter().map(line(Change::Added)));
    lines.extend(old_lines[end..(end + 3).min(old_lines.len())].iter().map(line(Change::Kept)));
    let start = around as u64 + 1;
    Some(Hunk { old_start: start, new_start: start, lines })
}

/// The length in bytes above which lines are not compared word by word.
const LONG_LINE: usize = 2000;

/// Marks the words that differ within each pair of lines, where as many lines were added as removed.
fn mark_words(lines: &mut [DiffLine]) {
    let mut at = 0;
    while at < lines.len() {
        let removed = lines[at..].iter().take_while(|line| line.change == Change::Removed).count();
        let added = lines[at + removed..].iter().take_while(|line| line.change == Change::Added).count();
        if removed == added && removed > 0 {
            for i in at..at + removed {
                let (old, new) = changed_words(&lines[i].text, &lines[i + removed].text);
                lines[i].changed = old;
                lines[i + removed].changed = new;
            }
        }
        at += (removed + added).max(1);
    }
}

/// Returns the ranges that differ between two lines; none if the lines have little in common.
fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len().max(new.len()) > LONG_LINE {
        return (Vec::new(), Vec::new());
    }
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < 0.4 {
        return (Vec::new(), Vec::new());
    }
    let (mut olds, mut news) = (Vec::new(), Vec::new());
    let (mut old_at, mut new_at) = (0, 0);
    for change in diff.iter_all_changes() {
        let length = change.value().len();
        match change.tag() {
            ChangeTag::Equal => {
                old_at += length;
                new_at += length;
            }
            ChangeTag::Delete => {
                push_range(&mut olds, old_at..old_at + length);
                old_at += length;
            }
            ChangeTag::Insert => {
                push_range(&mut news, new_at..new_at + length);
                new_at += length;
            }
        }
    }
    (olds, news)
}

/// Adds a range, merged with the last one if they are adjacent.
fn push_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => ranges.push(range),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_with_little_in_common_are_replaced_whole() {
        let text = |step: usize| {
            let lines = (0..6000).map(|idx| format!("line {}", idx * step % 4001));
            format!("same\n{}\nend", lines.collect::<Vec<_>>().join("\n"))
        };
        let hunks = hunks(&text(7), &text(13));
        assert_eq!((hunks.len(), hunks[0].lines.len()), (1, 1 + 5999 + 5999 + 2));
        assert_eq!(Hunk::counts(&hunks), (5999, 5999));
    }

    fn shown(hunks: &[Hunk]) -> String {
        let mut out = String::new();
        for hunk in hunks {
            out.push_str(&format!("@@ -{} +{}\n", hunk.old_start, hunk.new_start));
            for line in &hunk.lines {
                let sign = match line.change {
                    Change::Kept => ' ',
                    Change::Added => '+',
                    Change::Removed => '-',
                };
                let mut text = line.text.clone();
                for range in line.changed.iter().rev() {
                    text.insert(range.end, ']');
                    text.insert(range.start, '[');
                }
                out.push_str(&format!("{sign}{text}\n"));
            }
        }
        out
    }

    #[test]
    fn a_replaced_line_shows_the_words_that_differ() {
        let old = "a\nb\nlet count = 3;\nc\nd\n";
        let new = "a\nb\nlet count = 40;\nc\nd\n";
        insta::assert_snapshot!(shown(&hunks(old, new)), @r"
        @@ -1 +1
         a
         b
        -let count = [3;]
        +let count = [40;]
         c
         d
        ");
    }

    #[test]
    fn lines_that_have_nothing_in_common_are_not_marked() {
        assert_eq!(
            shown(&hunks("one\n", "completely different words\n")),
            "@@ -1 +1\n-one\n+completely different words\n"
        );
    }
}
