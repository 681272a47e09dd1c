//! Diffs of texts: hunks of lines, with the changed words of changed lines.
//!
//! Texts may have millions of lines of one byte. Neither a comparison nor a hunk has a fixed number of bytes
//! per line: both consist of texts and of lengths of variable size, and are read from start to end.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use similar::{Algorithm, ChangeTag, DiffTag, TextDiff};
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

/// Returns the first line of a text with its end, as [`similar::DiffableStr::tokenize_lines`] does.
fn first_line(text: &str) -> &str {
    let end = match text.bytes().position(|byte| matches!(byte, b'\n' | b'\r')) {
        Some(at) if text[at..].starts_with("\r\n") => at + 2,
        Some(at) => at + 1,
        None => text.len(),
    };
    &text[..end]
}

/// Returns the lines of a text with their ends.
fn lines_of(text: &str) -> impl Iterator<Item = &str> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        let line = first_line(rest);
        rest = &rest[line.len()..];
        (!line.is_empty()).then_some(line)
    })
}

/// Returns the lines of a text with their ends, the last line first.
fn lines_from_end(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let inner = rest.strip_suffix("\r\n").or_else(|| rest.strip_suffix(['\n', '\r'])).unwrap_or(rest);
        let start = inner.bytes().rposition(|byte| matches!(byte, b'\n' | b'\r')).map_or(0, |at| at + 1);
        let (before, line) = rest.split_at(start);
        rest = before;
        (!line.is_empty()).then_some(line)
    })
}

fn count_lines(text: &str) -> usize {
    lines_of(text).count()
}

/// Returns the length of the equal lines at the start of both texts.
fn common_head(old: &str, new: &str) -> usize {
    common_length(lines_of(old).zip(lines_of(new)))
}

/// Returns the length of the equal lines at the end of both texts.
fn common_tail(old: &str, new: &str) -> usize {
    common_length(lines_from_end(old).zip(lines_from_end(new)))
}

fn common_length<'l>(pairs: impl Iterator<Item = (&'l str, &'l str)>) -> usize {
    pairs.take_while(|(old, new)| old == new).map(|(line, _)| line.len()).sum()
}

/// Returns the length of some lines.
fn length(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}

/// Parts of texts with a larger product of line counts (old times new) are not compared line by line, which
/// would be too slow if they have little in common.
const MAX_LINE_PAIRS: usize = 2000 * 2000;

/// Parts of texts with more lines are not compared line by line, which would take many bytes per line.
const MAX_LINES: usize = 100_000;

/// The number of unchanged lines around changed ones.
const CONTEXT: usize = 3;

/// Follows a last line without a newline in a unified diff.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// Two texts, and the lines that turn one into the other.
struct LineDiff<'t> {
    old: &'t str,
    new: &'t str,
    /// The lengths of the three texts of each section.
    lengths: Vec<u8>,
}

/// Changed lines of both texts, and the unchanged lines after them.
///
/// Only the first section may be without changed lines, and only the last one without unchanged lines.
#[derive(Clone, Copy)]
struct DiffSection<'t> {
    removed: &'t str,
    added: &'t str,
    kept: &'t str,
}

impl<'t> LineDiff<'t> {
    /// Compares two texts, in time proportional to their length, or for long texts to that of sorting their
    /// lines.
    ///
    /// Long texts are split at lines that occur exactly once in each. A part that is still too long is
    /// replaced as a whole.
    fn new(old: &'t str, new: &'t str) -> Self {
        Self::with_max_pairs(old, new, MAX_LINE_PAIRS)
    }

    fn with_max_pairs(old: &'t str, new: &'t str, max_pairs: usize) -> Self {
        let head = common_head(old, new);
        let tail = common_tail(&old[head..], &new[head..]);
        let (old_end, new_end) = (old.len() - tail, new.len() - tail);
        let mut builder = LineDiffBuilder::new(old, new, max_pairs);
        builder.keep(0, 0, head);
        if builder.is_comparable(old_end, new_end) {
            builder.compare(old_end, new_end);
            // Lines that were added before equal ones are moved down as far as possible, as within the part
            // that was compared.
            let (_, added) = builder.ends();
            let moved = if added < new_end { common_head(&old[old_end..], &new[added..]) } else { 0 };
            builder.keep(old_end, added, moved);
            builder.keep(old_end + moved, new_end + moved, tail - moved);
        } else {
            for (old_anchor, new_anchor) in anchors(&old[head..old_end], &new[head..new_end]) {
                let (old_anchor, new_anchor) = (head + old_anchor as usize, head + new_anchor as usize);
                builder.compare(old_anchor, new_anchor);
                builder.keep(old_anchor, new_anchor, first_line(&old[old_anchor..]).len());
            }
            builder.compare(old_end, new_end);
            builder.keep(old_end, new_end, tail);
        }
        Self { old, new, lengths: builder.finish() }
    }

    /// Returns the sections, which make up both texts.
    fn sections(&self) -> DiffSections<'_, 't> {
        DiffSections { old: self.old, new: self.new, lengths: &self.lengths }
    }

    /// Returns the changes in groups, with up to three unchanged lines around each.
    fn groups(&self) -> DiffGroups<'_, 't> {
        DiffGroups { sections: self.sections(), kept: "", old_line: 0, new_line: 0 }
    }

    /// Appends the changes as a unified diff, without a header.
    fn write_unified(&self, out: &mut String) {
        let length = |(_, line): (_, &str)| 1 + line.len() + line_end(line).len();
        let group_length =
            |group: DiffGroup<'_, '_>| group.header().len() + group.lines().map(length).sum::<usize>();
        // Allocated once: growing step by step would need twice the memory.
        out.reserve_exact(self.groups().map(group_length).sum());
        for group in self.groups() {
            out.push_str(&group.header());
            for (change, line) in group.lines() {
                out.push(change.sign());
                out.push_str(line);
                out.push_str(line_end(line));
            }
        }
    }
}

/// Returns the text that follows a line in a unified diff.
fn line_end(line: &str) -> &'static str {
    if line.ends_with(['\n', '\r']) { "" } else { NO_NEWLINE }
}

/// Collects the equal lines of two texts in their order.
struct LineDiffBuilder<'t> {
    old: &'t str,
    new: &'t str,
    max_pairs: usize,
    /// The lengths of the sections before `last`, and their end in both texts.
    lengths: Vec<u8>,
    old_end: usize,
    new_end: usize,
    /// The last equal lines: their offsets in both texts, and their length.
    last: (usize, usize, usize),
}

impl<'t> LineDiffBuilder<'t> {
    fn new(old: &'t str, new: &'t str, max_pairs: usize) -> Self {
        Self { old, new, max_pairs, lengths: Vec::new(), old_end: 0, new_end: 0, last: (0, 0, 0) }
    }

    /// Returns the ends of the last equal lines in both texts.
    fn ends(&self) -> (usize, usize) {
        let (old, new, length) = self.last;
        (old + length, new + length)
    }

    /// Adds equal lines, and joins them to preceding ones.
    fn keep(&mut self, old: usize, new: usize, length: usize) {
        if length == 0 {
            return;
        }
        if self.ends() == (old, new) {
            self.last.2 += length;
        } else {
            self.push_last();
            self.last = (old, new, length);
        }
    }

    /// Adds the section that ends with the last equal lines.
    fn push_last(&mut self) {
        let (old, new, length) = self.last;
        let lengths = [old - self.old_end, new - self.new_end, length];
        if lengths != [0; 3] {
            lengths.into_iter().for_each(|length| push_number(&mut self.lengths, length));
        }
        (self.old_end, self.new_end) = self.ends();
    }

    /// Returns the lengths of all sections.
    fn finish(mut self) -> Vec<u8> {
        self.push_last();
        self.last = (self.old.len(), self.new.len(), 0);
        self.push_last();
        self.lengths
    }

    /// Returns whether the lines from the last equal ones up to these offsets can be compared one by one.
    fn is_comparable(&self, old_end: usize, new_end: usize) -> bool {
        let (old_start, new_start) = self.ends();
        if old_start == old_end || new_start == new_end {
            return true;
        }
        let n_old = count_lines(&self.old[old_start..old_end]);
        let n_new = count_lines(&self.new[new_start..new_end]);
        n_old.max(n_new) <= MAX_LINES && n_old.saturating_mul(n_new) <= self.max_pairs
    }

    /// Adds the equal lines from the last ones up to these offsets; none if there are too many lines.
    fn compare(&mut self, old_end: usize, new_end: usize) {
        let (mut old_at, mut new_at) = self.ends();
        if old_at == old_end || new_at == new_end || !self.is_comparable(old_end, new_end) {
            return;
        }
        let old: Vec<&str> = lines_of(&self.old[old_at..old_end]).collect();
        let new: Vec<&str> = lines_of(&self.new[new_at..new_end]).collect();
        for op in similar::capture_diff_slices(Algorithm::Myers, &old, &new) {
            let (old_length, new_length) = (length(&old[op.old_range()]), length(&new[op.new_range()]));
            if op.tag() == DiffTag::Equal {
                self.keep(old_at, new_at, old_length);
            }
            (old_at, new_at) = (old_at + old_length, new_at + new_length);
        }
    }
}

/// An iterator over the sections of a [`LineDiff`].
#[derive(Clone)]
struct DiffSections<'d, 't> {
    /// The rest of both texts.
    old: &'t str,
    new: &'t str,
    /// The rest of the lengths.
    lengths: &'d [u8],
}

impl<'t> Iterator for DiffSections<'_, 't> {
    type Item = DiffSection<'t>;

    fn next(&mut self) -> Option<DiffSection<'t>> {
        let mut number = || read_number(&mut self.lengths);
        let (n_removed, n_added, n_kept) = (number()?, number()?, number()?);
        let (removed, old) = self.old.split_at(n_removed);
        let (added, new) = self.new.split_at(n_added);
        let kept = &old[..n_kept];
        (self.old, self.new) = (&old[n_kept..], &new[n_kept..]);
        Some(DiffSection { removed, added, kept })
    }
}

/// Changed lines with the unchanged lines between and around them.
#[derive(Clone)]
struct DiffGroup<'d, 't> {
    /// The number of lines before it in each text.
    old_line: usize,
    new_line: usize,
    /// The unchanged lines before the first section.
    context: &'t str,
    /// The sections, followed by those of the next groups.
    sections: DiffSections<'d, 't>,
    n_sections: usize,
}

impl<'d, 't: 'd> DiffGroup<'d, 't> {
    /// Returns the lines, with their newlines.
    fn lines(&self) -> impl Iterator<Item = (DiffChange, &'t str)> + Clone + use<'d, 't> {
        let n_sections = self.n_sections;
        let sections = self.sections.clone().take(n_sections).enumerate().flat_map(move |(i, section)| {
            let DiffSection { removed, added, kept } = section;
            let is_last = i + 1 == n_sections;
            let kept = if is_last { first_lines(kept, CONTEXT) } else { kept };
            [(DiffChange::Removed, removed), (DiffChange::Added, added), (DiffChange::Kept, kept)]
        });
        let parts = std::iter::once((DiffChange::Kept, self.context)).chain(sections);
        parts.flat_map(|(change, text)| lines_of(text).map(move |line| (change, line)))
    }

    /// Returns its header in a unified diff.
    fn header(&self) -> String {
        let (mut n_old, mut n_new) = (0, 0);
        for (change, _) in self.lines() {
            n_old += usize::from(change != DiffChange::Added);
            n_new += usize::from(change != DiffChange::Removed);
        }
        let range = |start: usize, count: usize| match count {
            0 => format!("{start},0"),
            1 => format!("{}", start + 1),
            _ => format!("{},{count}", start + 1),
        };
        format!("@@ -{} +{} @@\n", range(self.old_line, n_old), range(self.new_line, n_new))
    }
}

/// Returns the first lines of a text, at most this many.
fn first_lines(text: &str, n_lines: usize) -> &str {
    let length: usize = lines_of(text).take(n_lines).map(str::len).sum();
    &text[..length]
}

/// Returns the last lines of a text, at most this many.
fn last_lines(text: &str, n_lines: usize) -> &str {
    let length: usize = lines_from_end(text).take(n_lines).map(str::len).sum();
    &text[text.len() - length..]
}

/// An iterator over the groups of a [`LineDiff`], as [`similar::group_diff_ops`] makes them.
#[derive(Clone)]
struct DiffGroups<'d, 't> {
    sections: DiffSections<'d, 't>,
    /// The unchanged lines before the next section.
    kept: &'t str,
    /// The number of lines before the next section in each text.
    old_line: usize,
    new_line: usize,
}

impl<'d, 't> DiffGroups<'d, 't> {
    /// Reads a section, and returns the number of its unchanged lines.
    fn skip_section(&mut self) -> Option<usize> {
        let section = self.sections.next()?;
        let n_kept = count_lines(section.kept);
        self.old_line += count_lines(section.removed) + n_kept;
        self.new_line += count_lines(section.added) + n_kept;
        self.kept = section.kept;
        Some(n_kept)
    }
}

impl<'d, 't> Iterator for DiffGroups<'d, 't> {
    type Item = DiffGroup<'d, 't>;

    fn next(&mut self) -> Option<DiffGroup<'d, 't>> {
        let first = self.sections.clone().next()?;
        if first.removed.is_empty() && first.added.is_empty() {
            self.skip_section();
        }
        let context = last_lines(self.kept, CONTEXT);
        let n_context = count_lines(context);
        let mut group = DiffGroup {
            old_line: self.old_line - n_context,
            new_line: self.new_line - n_context,
            context,
            sections: self.sections.clone(),
            n_sections: 0,
        };
        while let Some(n_kept) = self.skip_section() {
            group.n_sections += 1;
            if n_kept > 2 * CONTEXT {
                break;
            }
        }
        (group.n_sections > 0).then_some(group)
    }
}

/// Returns the offsets of the lines of a text, sorted by their text.
fn sorted_lines(text: &str) -> Vec<u32> {
    let mut starts = Vec::with_capacity(count_lines(text));
    let mut start = 0;
    for line in lines_of(text) {
        starts.push(start as u32);
        start += line.len();
    }
    starts.sort_unstable_by(|a, b| compare_first_lines(&text[*a as usize..], &text[*b as usize..]));
    starts
}

/// Compares the first lines of two texts, up to the first difference: one long line may be compared with very
/// many others.
fn compare_first_lines(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let is_end = |(a, b): (&u8, &u8)| a != b || matches!(a, b'\n' | b'\r');
    let at = a.iter().zip(b).position(is_end).unwrap_or(a.len().min(b.len()));
    let is_windows_end = |text: &[u8]| text[at..].starts_with(b"\r\n");
    a.get(at).cmp(&b.get(at)).then(is_windows_end(a).cmp(&is_windows_end(b)))
}

/// Returns the offsets of the lines that occur exactly once in each text, sorted by their text.
fn unique_lines(
    old: &str,
    new: &str,
    old_sorted: &[u32],
    new_sorted: &[u32],
) -> impl Iterator<Item = (u32, u32)> {
    let old_line = |start: &u32| &old[*start as usize..];
    let new_line = |start: &u32| &new[*start as usize..];
    let is_equal = |a: &str, b: &str| compare_first_lines(a, b) == Ordering::Equal;
    let (mut old_rest, mut new_rest) = (old_sorted, new_sorted);
    std::iter::from_fn(move || {
        loop {
            let (old_start, new_start) = (old_rest.first()?, new_rest.first()?);
            let line = old_line(old_start);
            let (n_old, n_new) = match compare_first_lines(line, new_line(new_start)) {
                Ordering::Less => (1, 0),
                Ordering::Greater => (0, 1),
                Ordering::Equal => (
                    old_rest.iter().take_while(|start| is_equal(old_line(start), line)).count(),
                    new_rest.iter().take_while(|start| is_equal(new_line(start), line)).count(),
                ),
            };
            (old_rest, new_rest) = (&old_rest[n_old..], &new_rest[n_new..]);
            if (n_old, n_new) == (1, 1) {
                return Some((*old_start, *new_start));
            }
        }
    })
}

/// Returns pairs of lines that occur exactly once in each text, by their offsets: the longest sequence in the
/// order of both. Texts of more than 4 GiB have none.
fn anchors(old: &str, new: &str) -> Vec<(u32, u32)> {
    /// Before the first pair of a sequence.
    const NONE: u32 = u32::MAX;
    if u32::try_from(old.len().max(new.len())).is_err() {
        return Vec::new();
    }
    let (old_sorted, new_sorted) = (sorted_lines(old), sorted_lines(new));
    let unique = || unique_lines(old, new, &old_sorted, &new_sorted);
    let mut pairs: Vec<(u32, u32)> = Vec::with_capacity(unique().count());
    pairs.extend(unique());
    drop((old_sorted, new_sorted));
    pairs.sort_unstable();
    // Longest increasing subsequence of the new offsets: `ends` has, for each length, the pair with the
    // smallest last offset.
    let mut ends: Vec<u32> = Vec::with_capacity(pairs.len());
    let mut before: Vec<u32> = vec![NONE; pairs.len()];
    for (at, (_, new_at)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|&end| pairs[end as usize].1 < *new_at);
        if let Some(shorter) = length.checked_sub(1) {
            before[at] = ends[shorter];
        }
        match ends.get_mut(length) {
            Some(end) => *end = at as u32,
            None => ends.push(at as u32),
        }
    }
    // The sequence replaces first the ends, then the pairs.
    let mut at = ends.last().copied().unwrap_or(NONE);
    for end in ends.iter_mut().rev() {
        *end = at;
        at = before[at as usize];
    }
    for (to, from) in ends.iter().enumerate() {
        pairs[to] = pairs[*from as usize];
    }
    pairs.truncate(ends.len());
    pairs
}

/// Returns the changes between two texts as a unified diff, with the names of both files above it; nothing if
/// no line changed.
pub fn unified(old: &str, new: &str, (from, to): (&str, &str)) -> String {
    let mut out = format!("--- {from}\n+++ {to}\n");
    let header = out.len();
    LineDiff::new(old, new).write_unified(&mut out);
    if out.len() == header { String::new() } else { out }
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

/// Calls `mark` with the ranges of the words that differ between two lines, and whether they are in the new
/// line; not at all if the lines have little in common.
fn changed_words(old: &str, new: &str, mut mark: impl FnMut(bool, Range<usize>)) {
    if old.len().max(new.len()) > MAX_COMPARED_LENGTH {
        return;
    }
    let diff = TextDiff::from_words(old, new);
    if diff.ratio() < 0.4 {
        return;
    }
    let (mut old_at, mut new_at) = (0, 0);
    for change in diff.iter_all_changes() {
        let length = change.value().len();
        match change.tag() {
            ChangeTag::Equal => {
                old_at += length;
                new_at += length;
            }
            ChangeTag::Delete => {
                mark(false, old_at..old_at + length);
                old_at += length;
            }
            ChangeTag::Insert => {
                mark(true, new_at..new_at + length);
                new_at += length;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use similar::{DiffOp, DiffableStr};
    use threadline_entry::Json;
    use threadline_entry::lens::FromJson;

    use super::*;

    /// Returns the lines of operations of the library.
    fn op_lines<'t>(ops: &[DiffOp], old: &[&'t str], new: &[&'t str]) -> Vec<(DiffChange, &'t str)> {
        let changes = ops.iter().flat_map(|op| op.iter_changes(old, new));
        let line = |change: similar::Change<&'t str>| match change.tag() {
            ChangeTag::Equal => (DiffChange::Kept, change.value()),
            ChangeTag::Delete => (DiffChange::Removed, change.value()),
            ChangeTag::Insert => (DiffChange::Added, change.value()),
        };
        changes.map(line).collect()
    }

    /// Returns a text of the lines with these numbers. Few lines are different, and all ends of lines occur.
    fn text_of(numbers: &[usize]) -> String {
        const LINES: [&str; 9] = ["a\n", "b\n", "\n", "c\r\n", "a\r", "é d\n", "x y z\n", "x w z\n", "end"];
        numbers.iter().map(|number| LINES[*number]).collect()
    }

    /// Returns two texts, of which the second often is an edited copy of the first.
    fn any_texts() -> impl Strategy<Value = (String, String)> {
        let numbers = |kinds: usize, count: usize| prop::collection::vec(0..kinds, 0..count);
        let edit = (0_usize..60, 0_usize..4, numbers(9, 5));
        let edited = (numbers(9, 60), prop::collection::vec(edit, 0..5)).prop_map(|(old, edits)| {
            let mut new = old.clone();
            for (at, n_removed, added) in edits {
                let at = at.min(new.len());
                let end = (at + n_removed).min(new.len());
                new.splice(at..end, added);
            }
            (old, new)
        });
        let texts = prop_oneof![edited, (numbers(3, 40), numbers(3, 40)), (numbers(9, 20), numbers(9, 20))];
        texts.prop_map(|(old, new)| (text_of(&old), text_of(&new)))
    }

    #[test]
    fn first_lines_are_compared_as_texts() {
        let texts = ["", "a", "a\n", "a\nb", "a\r\nc", "a\rc", "a\r", "ab\n", "b", "\n", "\r\n", "é\n"];
        for a in texts {
            for b in texts {
                assert_eq!(compare_first_lines(a, b), first_line(a).cmp(first_line(b)), "{a:?} {b:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn groups_and_lines_are_those_of_the_library((old, new) in any_texts()) {
            let (old_lines, new_lines) = (old.tokenize_lines(), new.tokenize_lines());
            let ops = similar::capture_diff_slices(Algorithm::Myers, &old_lines, &new_lines);
            let expected = similar::group_diff_ops(ops.clone(), CONTEXT);
            let diff = LineDiff::new(&old, &new);
            prop_assert_eq!(diff.groups().count(), expected.len());
            let hunks = hunks(&old, &new);
            prop_assert_eq!(hunks.len(), expected.len());
            for ((group, ops), hunk) in diff.groups().zip(&expected).zip(&hunks) {
                let (old_line, new_line) = (ops[0].old_range().start, ops[0].new_range().start);
                prop_assert_eq!((group.old_line, group.new_line), (old_line, new_line));
                prop_assert_eq!((hunk.old_start, hunk.new_start), (old_line as u64 + 1, new_line as u64 + 1));
                let lines = op_lines(ops, &old_lines, &new_lines);
                prop_assert_eq!(group.lines().collect::<Vec<_>>(), lines.clone());
                let lines = lines.iter().map(|(change, line)| (*change, line.trim_end_matches(['\n', '\r'])));
                prop_assert!(hunk.lines().map(|line| (line.change, line.text)).eq(lines));
            }
            let mut unified = String::new();
            diff.write_unified(&mut unified);
            prop_assert_eq!(&unified, &TextDiff::from_lines(&old, &new).unified_diff().to_string());
            let lines = op_lines(&ops, &old_lines, &new_lines);
            let count = |change| lines.iter().filter(|(of, _)| *of == change).count();
            prop_assert_eq!(line_counts(&old, &new), (count(DiffChange::Added), count(DiffChange::Removed)));
        }

        #[test]
        fn texts_that_are_compared_in_parts_consist_of_their_sections(
            (old, new) in any_texts(), max_pairs in 0_usize..20,
        ) {
            let diff = LineDiff::with_max_pairs(&old, &new, max_pairs);
            let (mut old_text, mut new_text) = (String::new(), String::new());
            for (i, section) in diff.sections().enumerate() {
                old_text.extend([section.removed, section.kept]);
                new_text.extend([section.added, section.kept]);
                prop_assert!(i == 0 || !section.removed.is_empty() || !section.added.is_empty());
            }
            prop_assert_eq!((old_text, new_text), (old, new));
        }
    }

    #[test]
    fn many_short_lines_take_few_bytes() {
        let many = "\n".repeat(100_000);
        for (old, new) in [(&*many, "a\nb\n"), ("a\nb\n", &*many), (&*many, ""), ("", &*many)] {
            assert!(LineDiff::new(old, new).lengths.capacity() <= 16);
            let hunks = hunks(old, new);
            let bytes =
                |hunk: &Hunk| hunk.text.capacity() + hunk.headers.capacity() + hunk.changed.capacity();
            assert_eq!(hunks.len(), 1);
            assert!(bytes(&hunks[0]) <= 100_010, "{}", bytes(&hunks[0]));
            let patch = unified(old, new, ("x", "y"));
            assert!(patch.capacity() <= 200_100, "{}", patch.capacity());
        }
        // Too many lines to compare them one by one.
        let more = many.repeat(2) + "a\n";
        let diff = LineDiff::new(&more, "b\na\nb\n");
        assert!(diff.sections().count() == 2 && diff.lengths.capacity() <= 16);
        assert_eq!(line_counts(&more, "b\na\nb\n"), (2, 200_000));
        assert_eq!((sorted_lines(&more).len(), sorted_lines(&more).capacity()), (200_001, 200_001));
    }

    #[test]
    fn alternating_short_lines_take_few_bytes() {
        let old: String = (0..3_000).map(|idx| format!("{}{idx}\n", "\n".repeat(9))).collect();
        let new: String = (0..3_000).map(|idx| format!("{}{idx}\n", "a\n\n".repeat(9))).collect();
        let length = old.len() + new.len();
        let diff = LineDiff::new(&old, &new);
        assert_eq!(line_counts(&old, &new), (27_000, 0));
        assert!(diff.lengths.capacity() <= 3 * length, "{} {length}", diff.lengths.capacity());
        let hunk = hunks(&old, &new).remove(0);
        assert!(hunk.text.capacity() + hunk.headers.capacity() + hunk.changed.capacity() <= length);
    }

    #[test]
    fn very_many_hunks_are_joined() {
        let text = |changed: &str| {
            let lines = (0..(MAX_HUNKS + 3) * 8).map(|idx| match idx % 8 {
                0 => format!("{changed}\n"),
                _ => format!("{idx}\n"),
            });
            lines.collect::<String>()
        };
        let (old, new) = (text("a"), text("b"));
        let hunks = hunks(&old, &new);
        assert_eq!(hunks.len(), MAX_HUNKS + 1);
        assert_eq!(Hunk::counts(&hunks), (MAX_HUNKS + 3, MAX_HUNKS + 3));
        let last = &hunks[MAX_HUNKS];
        assert_eq!(
            (last.old_start, last.new_start, Hunk::counts(std::slice::from_ref(last))),
            (0, 0, (3, 3))
        );
    }

    #[test]
    fn a_new_or_deleted_text_is_one_hunk_of_all_lines() {
        for text in ["a", "a\n", "\n\n", "a\r\nb\rc\n\r\nd", "\r", "é\n\n\nx"] {
            assert_eq!(lines_of(text).collect::<Vec<_>>(), text.tokenize_lines(), "{text:?}");
            let mut from_end: Vec<&str> = lines_from_end(text).collect();
            from_end.reverse();
            assert_eq!(from_end, text.tokenize_lines(), "{text:?}");
            for (old, new, change) in [("", text, DiffChange::Added), (text, "", DiffChange::Removed)] {
                let found = hunks(old, new);
                let expected = text.tokenize_lines().into_iter();
                let expected = expected.map(|line| (change, line.trim_end_matches(['\n', '\r'])));
                let lines = found[0].lines().map(|line| (line.change, line.text));
                assert!(lines.eq(expected), "{text:?}");
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
                let sign = line.change.sign();
                let mut text = line.text.to_string();
                for range in line.changed().collect::<Vec<_>>().into_iter().rev() {
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
            hunks[0].lines().filter(|line| line.changed().next().is_some()).count()
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
    fn appended_hunks_keep_their_lines_and_marks() {
        let first = hunks("one two three\nx\n", "one too three\nx\n").remove(0);
        let second = hunks("a\nfour five six\n", "a\nfour fife six\n").remove(0);
        let mut joined = first.clone();
        joined.append(&second);
        assert_eq!(
            shown(&[joined.clone()]),
            shown(&[first]) + shown(&[second]).trim_start_matches("@@ -1 +1\n")
        );
        assert_eq!(joined.lines().filter(|line| line.changed().next().is_some()).count(), 4);
        assert_eq!(Hunk::counts(&[joined]), (2, 2));
    }

    #[test]
    fn the_patch_of_a_whole_file_is_that_of_the_library() {
        for text in ["a", "a\n", "a\nb", "a\nb\n", "\n", "a\r\nb\r", "é\n\n\nz"] {
            for (old, new) in [("", text), (text, "")] {
                let expected = TextDiff::from_lines(old, new).unified_diff().header("x", "y").to_string();
                assert_eq!(unified(old, new, ("x", "y")), expected);
            }
        }
        assert_eq!(unified("", "", ("x", "y")), "");
    }
}
