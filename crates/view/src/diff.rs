//! Diffs of texts: hunks of lines, with the changed words of changed lines.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use rustc_hash::FxHashMap;
use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, DiffableStr, TextDiff};
use threadline_entry::lens::{List, PatchHunk};
use threadline_session::LineHunk;

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
    /// The end of each line in the text.
    ends: Vec<u32>,
    /// The consecutive lines of the same kind.
    runs: Vec<LineRun>,
    /// The changed ranges of all lines, and the index of the line of each.
    changed: Vec<Range<usize>>,
    changed_lines: Vec<u32>,
}

/// Consecutive lines of a hunk that were all kept, added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineRun {
    /// The index of the first line.
    start: u32,
    change: DiffChange,
}

/// One line of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffLine<'h> {
    /// Whether it was kept, added or removed.
    pub change: DiffChange,
    /// The line, without its newline.
    pub text: &'h str,
    /// The byte ranges that differ from the line that it replaces or is replaced by.
    pub changed: &'h [Range<usize>],
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
}

impl Hunk {
    /// Returns the numbers of added and removed lines of some hunks.
    pub fn counts(hunks: &[Self]) -> (usize, usize) {
        let count = |change: DiffChange| {
            let runs = hunks.iter().flat_map(Self::runs);
            runs.filter(|(_, of)| *of == change).map(|(lines, _)| lines.len()).sum()
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
    pub fn lines(&self) -> impl Iterator<Item = DiffLine<'_>> {
        self.runs().flat_map(move |(lines, change)| lines.map(move |i| self.line(i, change)))
    }

    /// Returns the ranges of consecutive lines of the same kind.
    fn runs(&self) -> impl Iterator<Item = (Range<usize>, DiffChange)> {
        self.runs.iter().enumerate().map(|(number, run)| {
            let end = self.runs.get(number + 1).map_or(self.ends.len(), |next| next.start as usize);
            (run.start as usize..end, run.change)
        })
    }

    fn line(&self, i: usize, change: DiffChange) -> DiffLine<'_> {
        let marks_before = |i: usize| self.changed_lines.partition_point(|line| (*line as usize) < i);
        let changed = marks_before(i)..marks_before(i + 1);
        DiffLine { change, text: self.text_of(i), changed: &self.changed[changed] }
    }

    /// Returns the text of a line.
    fn text_of(&self, i: usize) -> &str {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[i] as usize]
    }

    /// Adds a run of lines that begins with the line at this index.
    fn add_run(&mut self, start: usize, change: DiffChange) {
        if self.runs.last().is_none_or(|last| last.change != change) {
            self.runs.push(LineRun { start: start as u32, change });
        }
    }

    /// Creates a hunk, and marks the words that differ.
    fn new<'l>(starts: (u64, u64), lines: impl Iterator<Item = (DiffChange, Cow<'l, str>)>) -> Self {
        Self::default().with_lines(starts, lines)
    }

    /// Adds the lines of an empty hunk, and marks the words that differ.
    fn with_lines<'l>(
        self,
        (old_start, new_start): (u64, u64),
        lines: impl Iterator<Item = (DiffChange, Cow<'l, str>)>,
    ) -> Self {
        let mut hunk = Self { old_start, new_start, ..self };
        for (change, text) in lines {
            hunk.add_run(hunk.ends.len(), change);
            hunk.text.push_str(&text);
            // Lines of a log are shorter than 4 GiB.
            hunk.ends.push(hunk.text.len() as u32);
        }
        hunk.text.shrink_to_fit();
        hunk.ends.shrink_to_fit();
        hunk.runs.shrink_to_fit();
        hunk.mark_words();
        hunk
    }

    /// Marks the words that differ within each pair of lines, where as many lines were added as removed.
    fn mark_words(&mut self) {
        let mut found: Vec<(usize, Range<usize>)> = Vec::new();
        let mut runs = self.runs().peekable();
        while let Some((removed, change)) = runs.next() {
            let added =
                runs.peek().filter(|(_, next)| *next == DiffChange::Added).map(|(lines, _)| lines.len());
            if change == DiffChange::Removed
                && added == Some(removed.len())
                && removed.len() <= MAX_COMPARED_LINES
            {
                for i in removed.clone() {
                    let pair = i + removed.len();
                    let (old, new) = changed_words(self.text_of(i), self.text_of(pair));
                    found.extend(old.into_iter().map(|range| (i, range)));
                    found.extend(new.into_iter().map(|range| (pair, range)));
                }
            }
        }
        drop(runs);
        found.sort_by_key(|(line, _)| *line);
        for (line, range) in found {
            self.changed.push(range);
            self.changed_lines.push(line as u32);
        }
    }

    /// Appends the lines of another hunk.
    pub(crate) fn append(&mut self, other: &Self) {
        let (text, n_lines) = (self.text.len() as u32, self.ends.len());
        self.text.push_str(&other.text);
        self.changed.extend_from_slice(&other.changed);
        self.changed_lines.extend(other.changed_lines.iter().map(|line| line + n_lines as u32));
        self.ends.extend(other.ends.iter().map(|end| text + end));
        other.runs().for_each(|(lines, change)| self.add_run(n_lines + lines.start, change));
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
        let lines = signed.filter_map(|line| {
            let Some(change) = DiffChange::of_signed_line(&line) else {
                // `\ No newline at end of file` is no line.
                return (!line.starts_with('\\')).then_some((DiffChange::Kept, line));
            };
            let text = match line {
                Cow::Borrowed(line) => Cow::Borrowed(&line[1..]),
                Cow::Owned(line) => Cow::Owned(line[1..].to_owned()),
            };
            Some((change, text))
        });
        Self::new((old_start, new_start), lines)
    }
}

/// Returns the lines of a text with their ends, as [`DiffableStr::tokenize_lines`] does.
fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = match rest.find(['\n', '\r']) {
            Some(at) if rest[at..].starts_with("\r\n") => at + 2,
            Some(at) => at + 1,
            None => rest.len(),
        };
        let (line, tail) = rest.split_at(end);
        rest = tail;
        (!line.is_empty()).then_some(line)
    })
}

/// Sections with a larger product of line counts (old times new) are not compared line by line, which would
/// be too slow if they have little in common.
const MAX_LINE_PAIRS: usize = 2000 * 2000;

/// Follows a last line without a newline in a unified diff.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// Two texts as lines, and the operations that turn one into the other.
struct LineDiff<'t> {
    old: Vec<&'t str>,
    new: Vec<&'t str>,
    ops: Vec<DiffOp>,
}

impl<'t> LineDiff<'t> {
    /// Compares two texts, in time proportional to their length.
    ///
    /// Long texts are split into sections at lines that occur exactly once in each. A section that is still
    /// too long is replaced as a whole.
    fn new(old: &'t str, new: &'t str) -> Self {
        let (old, new) = (old.tokenize_lines(), new.tokenize_lines());
        let mut ops = Vec::new();
        if is_comparable(&old, &new) {
            ops = similar::capture_diff_slices(Algorithm::Myers, &old, &new);
        } else {
            let head = common(old.iter().zip(&new));
            let tail = common(old[head..].iter().rev().zip(new[head..].iter().rev()));
            let (old_end, new_end) = (old.len() - tail, new.len() - tail);
            let (mut old_at, mut new_at) = (head, head);
            push_equal(&mut ops, 0, 0, head);
            for (old_anchor, new_anchor) in anchors(&old[head..old_end], &new[head..new_end]) {
                let (old_anchor, new_anchor) = (old_anchor + head, new_anchor + head);
                push_stretch(&mut ops, &old, &new, old_at..old_anchor, new_at..new_anchor);
                push_equal(&mut ops, old_anchor, new_anchor, 1);
                (old_at, new_at) = (old_anchor + 1, new_anchor + 1);
            }
            push_stretch(&mut ops, &old, &new, old_at..old_end, new_at..new_end);
            push_equal(&mut ops, old_end, new_end, tail);
        }
        Self { old, new, ops }
    }

    /// Returns the changes in groups, with up to three unchanged lines around each.
    fn groups(&self) -> Vec<Vec<DiffOp>> {
        similar::group_diff_ops(self.ops.clone(), 3)
    }

    /// Returns the lines of an operation, with their newlines.
    fn lines(&self, op: &DiffOp) -> impl Iterator<Item = (DiffChange, &'t str)> {
        let (kept, removed, added) = match op.tag() {
            DiffTag::Equal => (op.old_range(), 0..0, 0..0),
            _ => (0..0, op.old_range(), op.new_range()),
        };
        let kept = self.old[kept].iter().map(|line| (DiffChange::Kept, *line));
        let removed = self.old[removed].iter().map(|line| (DiffChange::Removed, *line));
        kept.chain(removed).chain(self.new[added].iter().map(|line| (DiffChange::Added, *line)))
    }

    /// Writes the changes as a unified diff, without a header.
    fn write_unified(&self, out: &mut String) {
        for group in self.groups() {
            let [Some(first), Some(last)] = [group.first(), group.last()] else { continue };
            let range = |start: usize, end: usize| match end - start {
                0 => format!("{start},0"),
                1 => format!("{}", start + 1),
                count => format!("{},{count}", start + 1),
            };
            let old = range(first.old_range().start, last.old_range().end);
            let new = range(first.new_range().start, last.new_range().end);
            let _ = writeln!(out, "@@ -{old} +{new} @@");
            for (change, line) in group.iter().flat_map(|op| self.lines(op)) {
                out.push(match change {
                    DiffChange::Kept => ' ',
                    DiffChange::Added => '+',
                    DiffChange::Removed => '-',
                });
                out.push_str(line);
                if !line.ends_with(['\n', '\r']) {
                    out.push_str(NO_NEWLINE);
                }
            }
        }
    }
}

fn is_comparable(old: &[&str], new: &[&str]) -> bool {
    let head = common(old.iter().zip(new));
    let tail = common(old[head..].iter().rev().zip(new[head..].iter().rev()));
    let (gone, come) = (old.len() - head - tail, new.len() - head - tail);
    gone.saturating_mul(come) <= MAX_LINE_PAIRS
}

/// Returns the number of equal pairs before the first difference.
fn common<'l>(pairs: impl Iterator<Item = (&'l &'l str, &'l &'l str)>) -> usize {
    pairs.take_while(|(old, new)| old == new).count()
}

/// Adds the operations for a section of both texts.
fn push_stretch(ops: &mut Vec<DiffOp>, old: &[&str], new: &[&str], gone: Range<usize>, come: Range<usize>) {
    if gone.len().saturating_mul(come.len()) <= MAX_LINE_PAIRS {
        for op in similar::capture_diff_slices(Algorithm::Myers, &old[gone.clone()], &new[come.clone()]) {
            let (old_index, new_index) =
                (op.old_range().start + gone.start, op.new_range().start + come.start);
            match op {
                DiffOp::Equal { len, .. } => push_equal(ops, old_index, new_index, len),
                DiffOp::Delete { old_len, .. } => ops.push(DiffOp::Delete { old_index, old_len, new_index }),
                DiffOp::Insert { new_len, .. } => ops.push(DiffOp::Insert { old_index, new_index, new_len }),
                DiffOp::Replace { old_len, new_len, .. } => {
                    ops.push(DiffOp::Replace { old_index, old_len, new_index, new_len });
                }
            }
        }
        return;
    }
    let (old_index, old_len) = (gone.start, gone.len());
    let (new_index, new_len) = (come.start, come.len());
    ops.push(DiffOp::Replace { old_index, old_len, new_index, new_len });
}

/// Adds unchanged lines, and joins them to a preceding equal operation.
fn push_equal(ops: &mut Vec<DiffOp>, old_index: usize, new_index: usize, len: usize) {
    match ops.last_mut() {
        _ if len == 0 => {}
        Some(DiffOp::Equal { len: before, .. }) => *before += len,
        _ => ops.push(DiffOp::Equal { old_index, new_index, len }),
    }
}

/// Returns pairs of lines that occur exactly once in each text: the longest sequence in the order of both.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    #[derive(Default)]
    struct Places {
        old: (usize, usize),
        new: (usize, usize),
    }
    let mut places: FxHashMap<&str, Places> = FxHashMap::default();
    for (at, line) in old.iter().enumerate() {
        let place = places.entry(line).or_default();
        place.old = (place.old.0 + 1, at);
    }
    for (at, line) in new.iter().enumerate() {
        if let Some(place) = places.get_mut(line) {
            place.new = (place.new.0 + 1, at);
        }
    }
    let once = old.iter().enumerate().filter_map(|(at, line)| {
        let place = places.get(line).filter(|place| place.old.0 == 1 && place.new.0 == 1)?;
        Some((at, place.new.1))
    });
    let pairs: Vec<(usize, usize)> = once.collect();
    // Longest increasing subsequence of the new indexes: `ends` has, for each length, the pair with the
    // smallest last index.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; pairs.len()];
    for (at, (_, new_at)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end].1 < *new_at);
        before[at] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut row: Vec<(usize, usize)> =
        std::iter::successors(ends.last().copied(), |&at| before[at]).map(|at| pairs[at]).collect();
    row.reverse();
    row
}

/// Returns the changes between two texts as a unified diff, with the names of both files above it; nothing if
/// no line changed.
pub fn unified(old: &str, new: &str, (from, to): (&str, &str)) -> String {
    let mut out = format!("--- {from}\n+++ {to}\n");
    if let Some((change, text)) = whole_file(old, new) {
        write_whole_file(change, text, &mut out);
        return out;
    }
    let diff = LineDiff::new(old, new);
    let header = out.len();
    diff.write_unified(&mut out);
    if out.len() == header { String::new() } else { out }
}

/// Returns how many lines were added and how many were removed between two texts.
pub fn line_counts(old: &str, new: &str) -> (usize, usize) {
    let changes = LineDiff::new(old, new).ops;
    let changes = changes.iter().filter(|op| op.tag() != DiffTag::Equal);
    changes
        .fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()))
}

/// Returns the text of a new or deleted file. It may have very many short lines, which take far more memory
/// when they are compared.
fn whole_file<'t>(old: &'t str, new: &'t str) -> Option<(DiffChange, &'t str)> {
    match (old.is_empty(), new.is_empty()) {
        (true, false) => Some((DiffChange::Added, new)),
        (false, true) => Some((DiffChange::Removed, old)),
        _ => None,
    }
}

/// Writes all lines of a new or deleted file as [`LineDiff::write_unified`] does.
fn write_whole_file(change: DiffChange, text: &str, out: &mut String) {
    let n_lines = lines_of(text).count();
    out.reserve_exact(text.len() + n_lines + 128);
    let range = if n_lines == 1 { "1".to_owned() } else { format!("1,{n_lines}") };
    let (ranges, sign) = match change {
        DiffChange::Removed => (format!("-{range} +0,0"), '-'),
        _ => (format!("-0,0 +{range}"), '+'),
    };
    let _ = writeln!(out, "@@ {ranges} @@");
    for line in lines_of(text) {
        out.push(sign);
        out.push_str(line);
    }
    if !text.ends_with(['\n', '\r']) {
        out.push_str(NO_NEWLINE);
    }
}

/// The hunks between two texts, with three lines around each.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    if let Some((change, text)) = whole_file(old, new) {
        let lines = || lines_of(text).map(|line| line.trim_end_matches(['\n', '\r']));
        let (n_lines, length) =
            lines().fold((0, 0), |(n_lines, length), line| (n_lines + 1, length + line.len()));
        // Allocated once: growing step by step would need twice the memory.
        let hunk = Hunk {
            ends: Vec::with_capacity(n_lines),
            text: String::with_capacity(length),
            ..Hunk::default()
        };
        return vec![hunk.with_lines((1, 1), lines().map(|line| (change, Cow::Borrowed(line))))];
    }
    let diff = LineDiff::new(old, new);
    let hunk = |group: Vec<DiffOp>| {
        let first = &group[0];
        let starts = (first.old_range().start as u64 + 1, first.new_range().start as u64 + 1);
        let lines = group.iter().flat_map(|op| diff.lines(op));
        Hunk::new(
            starts,
            lines.map(|(change, line)| (change, Cow::Borrowed(line.trim_end_matches(['\n', '\r'])))),
        )
    };
    diff.groups().into_iter().map(hunk).collect()
}

/// Lines longer than this are not worth comparing word by word.
const MAX_COMPARED_LENGTH: usize = 2000;

/// The maximum number of consecutive lines whose words are compared. In longer runs, the lines that are
/// paired have little to do with each other, and marks would take more memory than the lines.
const MAX_COMPARED_LINES: usize = 1000;

/// Returns the ranges that differ between two lines; none if the lines have little in common.
fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old.len().max(new.len()) > MAX_COMPARED_LENGTH {
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
    use threadline_entry::Json;
    use threadline_entry::lens::FromJson;

    use super::*;

    #[test]
    fn a_new_or_deleted_text_is_one_hunk_of_all_lines() {
        for text in ["a", "a\n", "\n\n", "a\r\nb\rc\n\r\nd", "\r", "é\n\n\nx"] {
            assert_eq!(lines_of(text).collect::<Vec<_>>(), text.tokenize_lines(), "{text:?}");
            for (old, new, change) in [("", text, DiffChange::Added), (text, "", DiffChange::Removed)] {
                let found = hunks(old, new);
                let diff = LineDiff::new(old, new);
                let expected = diff.ops.iter().flat_map(|op| diff.lines(op));
                let expected = expected.map(|(change, line)| (change, line.trim_end_matches(['\n', '\r'])));
                let lines = found[0].lines().map(|line| (line.change, line.text));
                assert!(lines.eq(expected) && found[0].lines().all(|line| line.change == change), "{text:?}");
                assert_eq!((found.len(), found[0].old_start, found[0].new_start), (1, 1, 1), "{text:?}");
            }
        }
    }

    #[test]
    fn a_patch_has_the_counts_of_its_hunks() {
        let patch = r#"[{"lines":["+a","-b"," c","d","","\\ No newline","-"]},{},{"lines":["+","++","é"]}]"#;
        let hunks = || Json::parse(patch).unwrap().items().filter_map(PatchHunk::from_json);
        assert_eq!(Hunk::patch_counts(hunks()), (3, 2));
        assert_eq!(Hunk::counts(&hunks().map(Hunk::from_patch).collect::<Vec<_>>()), (3, 2));
    }

    #[test]
    fn long_texts_with_little_in_common_are_replaced_whole() {
        let text = |step: usize| {
            let lines = (0..6000).map(|idx| format!("line {}", idx * step % 2999));
            format!("same\n{}\nend", lines.collect::<Vec<_>>().join("\n"))
        };
        let hunks = hunks(&text(7), &text(13));
        assert_eq!((hunks.len(), hunks[0].lines().count()), (1, 1 + 5999 + 5999 + 2));
        assert_eq!(Hunk::counts(&hunks), (5999, 5999));
    }

    #[test]
    fn long_texts_are_compared_between_the_lines_that_they_have_in_common() {
        let lines: Vec<String> = (0..9000).map(|idx| format!("line {idx}")).collect();
        let mut changed = lines.clone();
        changed[10] = "one".to_owned();
        changed.remove(4000);
        changed.insert(8000, "two".to_owned());
        let hunks = hunks(&lines.join("\n"), &changed.join("\n"));
        assert_eq!((hunks.len(), Hunk::counts(&hunks)), (3, (2, 2)));
        let starts: Vec<u64> = hunks.iter().map(|hunk| hunk.old_start).collect();
        assert_eq!(starts, [8, 3998, 7999]);
    }

    #[test]
    fn a_unified_diff_is_that_of_the_library() {
        let long = |step: usize| (0..40).map(|idx| format!("{}\n", idx * step % 31)).collect::<String>();
        let texts = ["", "a", "a\n", "a\nb\n", "a\nc\nd", "a\r\nb\rc", &long(3), &long(7)];
        for (old, new) in texts.iter().flat_map(|old| texts.iter().map(move |new| (*old, *new))) {
            let mut out = String::new();
            LineDiff::new(old, new).write_unified(&mut out);
            assert_eq!(out, TextDiff::from_lines(old, new).unified_diff().to_string(), "{old:?} {new:?}");
        }
    }

    fn shown(hunks: &[Hunk]) -> String {
        let mut out = String::new();
        for hunk in hunks {
            out.push_str(&format!("@@ -{} +{}\n", hunk.old_start, hunk.new_start));
            for line in hunk.lines() {
                let sign = match line.change {
                    DiffChange::Kept => ' ',
                    DiffChange::Added => '+',
                    DiffChange::Removed => '-',
                };
                let mut text = line.text.to_string();
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
    fn words_of_very_many_replaced_lines_are_not_marked() {
        let text = |count: usize, end: &str| (0..count).map(|idx| format!("let a{idx} = {end}\n")).collect();
        let marks = |count: usize| {
            let (old, new): (String, String) = (text(count, "1"), text(count, "2"));
            let hunks = hunks(&old, &new);
            hunks[0].lines().filter(|line| !line.changed.is_empty()).count()
        };
        assert_eq!(marks(MAX_COMPARED_LINES), 2 * MAX_COMPARED_LINES);
        assert_eq!(marks(MAX_COMPARED_LINES + 1), 0);
    }

    #[test]
    fn lines_that_have_nothing_in_common_are_not_marked() {
        assert_eq!(
            shown(&hunks("one\n", "completely different words\n")),
            "@@ -1 +1\n-one\n+completely different words\n"
        );
    }

    #[test]
    fn lines_of_the_same_kind_share_their_kind() {
        let new_file = hunks("", &"a\n".repeat(1000));
        assert_eq!((new_file.len(), new_file[0].runs.len(), new_file[0].ends.len()), (1, 1, 1000));
        assert_eq!(new_file[0].ends.capacity(), 1000);
        assert_eq!(Hunk::counts(&new_file), (1000, 0));
    }

    #[test]
    fn appended_hunks_keep_their_lines_and_marks() {
        let first = hunks("one two three\nx\n", "one too three\nx\n").remove(0);
        let second = hunks("a\nfour five six\n", "a\nfour fife six\n").remove(0);
        let mut joined = first.clone();
        joined.append(&second);
        assert!(joined.lines().eq(first.lines().chain(second.lines())));
        assert_eq!(joined.lines().filter(|line| !line.changed.is_empty()).count(), 4);
        assert_eq!(Hunk::counts(&[joined]), (2, 2));
    }

    #[test]
    fn the_patch_of_a_whole_file_is_that_of_the_comparison() {
        for text in ["a", "a\n", "a\nb", "a\nb\n", "\n", "a\r\nb\r", "é\n\n\nz"] {
            for (old, new) in [("", text), (text, "")] {
                let mut compared = "--- x\n+++ y\n".to_owned();
                LineDiff::new(old, new).write_unified(&mut compared);
                assert_eq!(unified(old, new, ("x", "y")), compared);
            }
        }
        assert_eq!(unified("", "", ("x", "y")), "");
    }
}
