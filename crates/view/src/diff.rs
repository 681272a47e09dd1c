//! Diffs of texts: hunks of lines, with the changed words of changed lines.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use similar::{ChangeTag, DiffOp, DiffTag, DiffableStr, TextDiff};
use threadline_entry::lens::{List, PatchHunk};
use threadline_evidence::LineHunk;

/// The number of unchanged lines around changed ones.
const CONTEXT: usize = 3;

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
    pub change: DiffChange,
    /// The line, without its newline.
    pub text: String,
    /// The byte ranges that differ from the line that it replaces or is replaced by, in order.
    pub changed: Vec<Range<usize>>,
}

/// The kind of change of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum DiffChange {
    Kept,
    Added,
    Removed,
}

impl DiffChange {
    /// Returns the change that the first character of a line of a patch signifies.
    fn of_signed_line(line: &str) -> Option<Self> {
        match line.as_bytes().first()? {
            b'+' => Some(Self::Added),
            b'-' => Some(Self::Removed),
            b' ' => Some(Self::Kept),
            _ => None,
        }
    }

    /// Returns the first character of such a line of a patch.
    fn sign(self) -> char {
        match self {
            Self::Kept => ' ',
            Self::Added => '+',
            Self::Removed => '-',
        }
    }
}

impl Hunk {
    /// Returns the numbers of added and removed lines of some hunks.
    pub fn counts(hunks: &[Self]) -> (usize, usize) {
        let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
        let count = |change: DiffChange| lines().filter(|line| line.change == change).count();
        (count(DiffChange::Added), count(DiffChange::Removed))
    }

    /// Formats hunks as the lines of a patch.
    pub fn patch_text(hunks: &[Self]) -> String {
        let mut out = String::new();
        for hunk in hunks {
            let _ = writeln!(out, "@@ -{} +{} @@", hunk.old_start, hunk.new_start);
            for line in &hunk.lines {
                out.push(line.change.sign());
                out.push_str(&line.text);
                out.push('\n');
            }
        }
        out
    }

    /// Returns the numbers of added and removed lines of a structured patch, as [`Hunk::counts`] does for the
    /// hunks of [`Hunk::from_patch`].
    pub(crate) fn patch_counts<'p>(patch: impl Iterator<Item = PatchHunk<'p>>) -> (usize, usize) {
        let (mut added, mut removed) = (0, 0);
        for line in patch.filter_map(PatchHunk::lines).flat_map(List::iter) {
            match DiffChange::of_signed_line(&line) {
                Some(DiffChange::Added) => added += 1,
                Some(DiffChange::Removed) => removed += 1,
                _ => {}
            }
        }
        (added, removed)
    }

    /// Creates a hunk, and marks the words that differ within each pair of lines, where as many lines were
    /// added as removed.
    fn of_lines<'l>(
        (old_start, new_start): (u64, u64),
        lines: impl Iterator<Item = (DiffChange, Cow<'l, str>)>,
    ) -> Self {
        let line = |(change, text): (_, Cow<'_, str>)| DiffLine {
            change,
            text: text.into_owned(),
            changed: Vec::new(),
        };
        let mut lines: Vec<DiffLine> = lines.map(line).collect();
        let mut rest = &mut lines[..];
        while let Some(first) = rest.first() {
            let run =
                |lines: &[DiffLine], change| lines.iter().take_while(|line| line.change == change).count();
            let change = first.change;
            let n_lines = run(rest, change);
            let (old, new) = rest.split_at_mut(n_lines);
            let is_replaced = change == DiffChange::Removed && run(new, DiffChange::Added) == n_lines;
            if is_replaced && n_lines <= MAX_COMPARED_LINES {
                old.iter_mut().zip(&mut *new).for_each(|(old, new)| mark_words(old, new));
            }
            rest = new;
        }
        Self { old_start, new_start, lines }
    }

    /// Converts a hunk of a structured patch that Claude Code logged.
    pub fn from_patch(hunk: PatchHunk<'_>) -> Self {
        let lines = hunk.lines().into_iter().flat_map(|lines| lines.iter());
        Self::from_signed_lines(hunk.old_start().unwrap_or(0), hunk.new_start().unwrap_or(0), lines)
    }

    /// Converts a hunk of an edit.
    pub fn from_edit(hunk: &LineHunk) -> Self {
        let lines = hunk.lines.iter().map(|line| Cow::Borrowed(&**line));
        Self::from_signed_lines(hunk.old_start, hunk.new_start, lines)
    }

    fn from_signed_lines<'l>(
        old_start: u64,
        new_start: u64,
        signed: impl Iterator<Item = Cow<'l, str>>,
    ) -> Self {
        // `\ No newline at end of file` is no line.
        let lines = signed.filter(|line| !line.starts_with('\\'));
        let lines = lines.map(|line| match DiffChange::of_signed_line(&line) {
            Some(change) => (change, Cow::Owned(line[1..].to_owned())),
            None => (DiffChange::Kept, line),
        });
        Self::of_lines((old_start, new_start), lines)
    }
}

/// Returns the lines of a group of operations, with their newlines.
fn group_lines<'t>(
    diff: &'t TextDiff<'t, 't, str>,
    group: &'t [DiffOp],
) -> impl Iterator<Item = (DiffChange, &'t str)> {
    group.iter().flat_map(|op| diff.iter_changes(op)).map(|change| match change.tag() {
        ChangeTag::Equal => (DiffChange::Kept, change.value()),
        ChangeTag::Delete => (DiffChange::Removed, change.value()),
        ChangeTag::Insert => (DiffChange::Added, change.value()),
    })
}

/// Returns the changes between two texts as a unified diff, with the names of both files above it; nothing if
/// no line changed.
pub fn unified(old: &str, new: &str, (from, to): (&str, &str)) -> String {
    TextDiff::from_lines(old, new).unified_diff().header(from, to).to_string()
}

/// Returns the hunks between two texts in the form in which tools log them.
pub(crate) fn line_hunks(old: &str, new: &str) -> Vec<LineHunk> {
    let diff = TextDiff::from_lines(old, new);
    let hunk = |group: Vec<DiffOp>| {
        let (mut has_old, mut has_new) = (0, 0);
        let mut lines = Vec::new();
        for (change, line) in group_lines(&diff, &group) {
            has_old |= u64::from(change != DiffChange::Added);
            has_new |= u64::from(change != DiffChange::Removed);
            match line.strip_suffix('\n') {
                Some(line) => lines.push(format!("{}{line}", change.sign())),
                None => {
                    lines.push(format!("{}{line}", change.sign()));
                    lines.push("\\ No newline at end of file".to_owned());
                }
            }
        }
        // A side without lines begins with the line before it.
        let (old_line, new_line) = first_lines(&group);
        LineHunk { old_start: old_line + has_old, new_start: new_line + has_new, lines }
    };
    diff.grouped_ops(CONTEXT).into_iter().map(hunk).collect()
}

/// Returns the numbers of lines before a group in both texts.
fn first_lines(group: &[DiffOp]) -> (u64, u64) {
    group.first().map_or((0, 0), |op| (op.old_range().start as u64, op.new_range().start as u64))
}

/// Returns how many lines were added and how many were removed between two texts.
pub fn line_counts(old: &str, new: &str) -> (usize, usize) {
    let diff = TextDiff::from_lines(old, new);
    let changes = diff.ops().iter().filter(|op| op.tag() != DiffTag::Equal);
    changes
        .fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()))
}

/// Returns the hunks between two texts, with three lines around each.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = TextDiff::from_lines(old, new);
    let hunk = |group: Vec<DiffOp>| {
        let lines = group_lines(&diff, &group);
        let lines = lines.map(|(change, line)| (change, line.trim_end_matches(['\n', '\r']).into()));
        let (old_line, new_line) = first_lines(&group);
        Hunk::of_lines((old_line + 1, new_line + 1), lines)
    };
    diff.grouped_ops(CONTEXT).into_iter().map(hunk).collect()
}

/// Lines longer than this are not worth comparing word by word.
const MAX_COMPARED_LENGTH: usize = 2000;

/// The maximum number of consecutive lines whose words are compared. In longer runs, the lines that are
/// paired have little to do with each other.
const MAX_COMPARED_LINES: usize = 1000;

/// Marks the words that differ between two lines, unless the lines have little in common.
fn mark_words(old: &mut DiffLine, new: &mut DiffLine) {
    if old.text.len().max(new.text.len()) > MAX_COMPARED_LENGTH {
        return;
    }
    let (old_words, new_words) = (old.text.tokenize_words(), new.text.tokenize_words());
    let diff = TextDiff::from_slices(&old_words, &new_words);
    if diff.ratio() < 0.4 {
        return;
    }
    let (mut old_at, mut new_at) = (0, 0);
    for op in diff.ops() {
        let length = |words: &[&str]| words.iter().map(|word| word.len()).sum::<usize>();
        let (old_end, new_end) =
            (old_at + length(&old_words[op.old_range()]), new_at + length(&new_words[op.new_range()]));
        if op.tag() != DiffTag::Equal {
            old.changed.extend((old_at < old_end).then_some(old_at..old_end));
            new.changed.extend((new_at < new_end).then_some(new_at..new_end));
        }
        (old_at, new_at) = (old_end, new_end);
    }
}

#[cfg(test)]
mod tests;
