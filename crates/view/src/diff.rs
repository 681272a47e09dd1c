//! Diffs of texts: hunks of lines, with the changed words of changed lines.
//!
//! Texts may have millions of lines of one byte. Neither a comparison nor a hunk has a fixed number of bytes
//! per line: both consist of texts and of lengths of variable size, and are read from start to end.

mod anchor;
mod line_diff;
mod text_lines;

use std::borrow::Cow;
use std::ops::Range;

use similar::{DiffTag, DiffableStr, TextDiff};
use threadline_entry::lens::{List, PatchHunk};
use threadline_session::{LineHunk, TextList};

use self::line_diff::{DiffGroup, LineDiff};
use self::text_lines::count_lines;

/// A group of changed lines with some unchanged lines around them.
///
/// The lines share one text, since a diff may have very many short ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hunk {
    /// The number of its first line in the old text, from 1; 0 if unknown.
    pub old_start: u64,
    /// The number of its first line in the new text, from 1; 0 if unknown.
    pub new_start: u64,
    /// All lines, without their newlines.
    text: String,
    /// The length and the kind of each line, as one number of variable size.
    headers: Vec<u8>,
    /// One bit per byte of the text that is set in changed words; may be shorter than the text.
    changed: Vec<u8>,
}

/// One line of a hunk.
#[derive(Clone, Copy, Debug)]
pub struct DiffLine<'h> {
    /// Whether it was kept, added or removed.
    pub change: DiffChange,
    /// The line, without its newline.
    pub text: &'h str,
    /// The offset of the line in the text of the hunk.
    start: usize,
    /// The bits of the hunk.
    bits: &'h [u8],
}

impl DiffLine<'_> {
    /// Returns the byte ranges that differ from the line that it replaces or is replaced by, in order.
    pub fn changed(&self) -> impl Iterator<Item = Range<usize>> {
        let (bits, start) = (self.bits, self.start);
        let end = self.text.len().min((bits.len() * 8).saturating_sub(start));
        let is_changed = move |at: &usize| bits[(start + at) / 8] >> ((start + at) % 8) & 1 == 1;
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = (at..end).find(is_changed)?;
            at = (first..end).find(|at| !is_changed(at)).unwrap_or(end);
            Some(first..at)
        })
    }
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

/// Appends a number in groups of seven bits, the lowest first.
fn push_number(bytes: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Removes a number that [`push_number`] wrote from the start of some bytes; `None` at their end.
fn read_number(bytes: &mut &[u8]) -> Option<usize> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if *byte < 0x80 {
            return Some(number);
        }
    }
}

impl Hunk {
    /// Returns the numbers of added and removed lines of some hunks.
    pub fn counts(hunks: &[Self]) -> (usize, usize) {
        let count = |change: DiffChange| {
            hunks.iter().flat_map(Self::lines).filter(|line| line.change == change).count()
        };
        (count(DiffChange::Added), count(DiffChange::Removed))
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

    /// Returns the lines.
    pub fn lines(&self) -> impl Iterator<Item = DiffLine<'_>> + Clone {
        let (mut headers, mut start) = (&*self.headers, 0);
        std::iter::from_fn(move || {
            let header = read_number(&mut headers)?;
            let change = match header & 3 {
                0 => DiffChange::Kept,
                1 => DiffChange::Added,
                _ => DiffChange::Removed,
            };
            let text = &self.text[start..start + (header >> 2)];
            let line = DiffLine { change, text, start, bits: &self.changed };
            start += text.len();
            Some(line)
        })
    }

    fn push_line(&mut self, change: DiffChange, text: &str) {
        push_number(&mut self.headers, text.len() << 2 | change as usize);
        self.text.push_str(text);
    }

    /// Creates a hunk of lines that are read twice, to allocate their memory at once.
    fn of_lines<'l>(
        (old_start, new_start): (u64, u64),
        lines: impl Iterator<Item = (DiffChange, &'l str)> + Clone,
    ) -> Self {
        let lines = lines.map(|(change, line)| (change, line.trim_end_matches(['\n', '\r'])));
        let sizes = |(n_lines, length), (_, line): (_, &str)| (n_lines + 1, length + line.len());
        let (n_lines, length) = lines.clone().fold((0, 0), sizes);
        let (text, headers) = (String::with_capacity(length), Vec::with_capacity(n_lines));
        let mut hunk = Self { old_start, new_start, text, headers, ..Self::default() };
        lines.for_each(|(change, line)| hunk.push_line(change, line));
        hunk.finish()
    }

    /// Marks the words that differ, and releases unused memory.
    fn finish(mut self) -> Self {
        self.text.shrink_to_fit();
        self.headers.shrink_to_fit();
        self.changed = self.changed_bits();
        self
    }

    /// Returns the bits of the words that differ within each pair of lines, where as many lines were added as
    /// removed; none if no words differ.
    fn changed_bits(&self) -> Vec<u8> {
        let mut bits = Vec::new();
        let mut rest = self.lines();
        while let Some(first) = rest.clone().next() {
            let run = |line: &DiffLine<'_>| line.change == first.change;
            let n_lines = rest.clone().take_while(run).count();
            let mut next = rest.clone();
            next.nth(n_lines - 1);
            if first.change == DiffChange::Removed && n_lines <= MAX_COMPARED_LINES {
                let added = |line: &DiffLine<'_>| line.change == DiffChange::Added;
                if next.clone().take_while(added).take(n_lines + 1).count() == n_lines {
                    for (old, new) in rest.zip(next.clone()).take(n_lines) {
                        changed_words(old.text, new.text, |is_new, word| {
                            let start = if is_new { new.start } else { old.start };
                            set_bits(&mut bits, start + word.start..start + word.end, self.text.len());
                        });
                    }
                }
            }
            rest = next;
        }
        bits
    }

    /// Appends the lines of another hunk.
    pub(crate) fn append(&mut self, other: &Self) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        self.headers.extend_from_slice(&other.headers);
        for line in other.lines() {
            let start = start + line.start;
            for word in line.changed() {
                set_bits(&mut self.changed, start + word.start..start + word.end, self.text.len());
            }
        }
    }

    /// Converts a hunk of a structured patch that Claude Code logged.
    pub fn from_patch(hunk: PatchHunk<'_>) -> Self {
        let lines = hunk.lines().into_iter().flat_map(|lines| lines.iter());
        Self::from_signed_lines(hunk.old_start().unwrap_or(0), hunk.new_start().unwrap_or(0), lines)
    }

    /// Converts a hunk of an edit.
    pub fn from_edit(hunk: &LineHunk) -> Self {
        let lines = hunk.lines.iter().map(Cow::Borrowed);
        Self::from_signed_lines(hunk.old_start, hunk.new_start, lines)
    }

    fn from_signed_lines<'l>(
        old_start: u64,
        new_start: u64,
        signed: impl Iterator<Item = Cow<'l, str>>,
    ) -> Self {
        let mut hunk = Self { old_start, new_start, ..Self::default() };
        for line in signed {
            match DiffChange::of_signed_line(&line) {
                Some(change) => hunk.push_line(change, &line[1..]),
                // `\ No newline at end of file` is no line.
                None if line.starts_with('\\') => {}
                None => hunk.push_line(DiffChange::Kept, &line),
            }
        }
        hunk.finish()
    }
}

/// Sets the bits of a range of a text of this length.
fn set_bits(bits: &mut Vec<u8>, range: Range<usize>, length: usize) {
    let n_bytes = length.div_ceil(8);
    if bits.len() < n_bytes {
        bits.resize(n_bytes, 0);
    }
    range.for_each(|at| bits[at / 8] |= 1 << (at % 8));
}

/// Returns the changes between two texts as a unified diff, with the names of both files above it; nothing if
/// no line changed.
pub fn unified(old: &str, new: &str, (from, to): (&str, &str)) -> String {
    let mut out = format!("--- {from}\n+++ {to}\n");
    let header = out.len();
    LineDiff::new(old, new).write_unified(&mut out);
    if out.len() == header { String::new() } else { out }
}

/// Returns the hunks between two texts in the form in which tools log them.
pub(crate) fn line_hunks(old: &str, new: &str) -> Vec<LineHunk> {
    let hunk = |group: DiffGroup<'_, '_>| {
        let (mut has_old, mut has_new) = (0, 0);
        let mut lines = TextList::default();
        for (change, line) in group.lines() {
            has_old |= u64::from(change != DiffChange::Added);
            has_new |= u64::from(change != DiffChange::Removed);
            match line.strip_suffix('\n') {
                Some(line) => lines.push(&format!("{}{line}", change.sign())),
                None => {
                    lines.push(&format!("{}{line}", change.sign()));
                    lines.push("\\ No newline at end of file");
                }
            }
        }
        // A side without lines begins with the line before it.
        let (old_start, new_start) = (group.old_line as u64 + has_old, group.new_line as u64 + has_new);
        LineHunk { old_start, new_start, lines }
    };
    LineDiff::new(old, new).groups().map(hunk).collect()
}

/// Returns how many lines were added and how many were removed between two texts.
pub fn line_counts(old: &str, new: &str) -> (usize, usize) {
    LineDiff::new(old, new).sections().fold((0, 0), |(added, removed), section| {
        (added + count_lines(section.added), removed + count_lines(section.removed))
    })
}

/// The maximum number of hunks of a call or of a comparison. A hunk of one short line takes far more memory
/// than its text. The lines of further hunks are joined to one, whose position is unknown.
pub(crate) const MAX_HUNKS: usize = 10_000;

/// Returns the hunks between two texts, with three lines around each.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    let diff = LineDiff::new(old, new);
    let mut groups = diff.groups();
    let hunk = |group: DiffGroup<'_, '_>| {
        Hunk::of_lines((group.old_line as u64 + 1, group.new_line as u64 + 1), group.lines())
    };
    let mut found: Vec<Hunk> = groups.by_ref().take(MAX_HUNKS).map(hunk).collect();
    if groups.clone().next().is_some() {
        found.push(Hunk::of_lines((0, 0), groups.flat_map(|group| group.lines())));
    }
    found
}

/// Lines longer than this are not worth comparing word by word.
const MAX_COMPARED_LENGTH: usize = 2000;

/// The maximum number of consecutive lines whose words are compared. In longer runs, the lines that are
/// paired have little to do with each other.
const MAX_COMPARED_LINES: usize = 1000;

/// The maximum number of pairs of words of two lines that are compared, per byte of the lines. Words at their
/// start and end that are equal do not count. Ordinary text has about a hundred.
const MAX_WORD_PAIRS_PER_BYTE: usize = 200;

/// Calls `mark` with the ranges of the words that differ between two lines, and whether they are in the new
/// line; not at all if the lines have little in common, or too many words to compare.
fn changed_words(old: &str, new: &str, mut mark: impl FnMut(bool, Range<usize>)) {
    if old.len().max(new.len()) > MAX_COMPARED_LENGTH {
        return;
    }
    let (old_words, new_words) = (old.tokenize_words(), new.tokenize_words());
    if word_pairs(&old_words, &new_words) > MAX_WORD_PAIRS_PER_BYTE * (old.len() + new.len()) {
        return;
    }
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
            mark(false, old_at..old_end);
            mark(true, new_at..new_end);
        }
        (old_at, new_at) = (old_end, new_end);
    }
}

/// Returns the number of pairs of words between the first and the last ones that differ.
fn word_pairs(old: &[&str], new: &[&str]) -> usize {
    let n_first = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[n_first..], &new[n_first..]);
    let n_last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    (old.len() - n_last) * (new.len() - n_last)
}

#[cfg(test)]
mod tests;
