//! The lines that turn one text into another.

use similar::{Algorithm, DiffTag};

use super::anchor::anchors;
use super::text_lines::{common_head, common_tail, count_lines, first_line, lines_from_end, lines_of};
use super::{DiffChange, push_number, read_number};

/// Parts of texts with a larger product of line counts (old times new) are not compared line by line, which
/// would be too slow if they have little in common.
const MAX_LINE_PAIRS: usize = 2000 * 2000;

/// Parts of texts with more lines are not compared line by line, which would take many bytes per line.
const MAX_LINES: usize = 100_000;

/// The number of unchanged lines around changed ones.
pub(super) const CONTEXT: usize = 3;

/// Follows a last line without a newline in a unified diff.
const NO_NEWLINE: &str = "\n\\ No newline at end of file\n";

/// Two texts, and the lines that turn one into the other.
pub(super) struct LineDiff<'t> {
    old: &'t str,
    new: &'t str,
    /// The lengths of the three texts of each section.
    pub(super) lengths: Vec<u8>,
}

/// Changed lines of both texts, and the unchanged lines after them.
///
/// Only the first section may be without changed lines, and only the last one without unchanged lines.
#[derive(Clone, Copy)]
pub(super) struct DiffSection<'t> {
    pub(super) removed: &'t str,
    pub(super) added: &'t str,
    pub(super) kept: &'t str,
}

impl<'t> LineDiff<'t> {
    /// Compares two texts, in time proportional to their length, or for long texts to that of sorting their
    /// lines.
    ///
    /// Long texts are split at lines that occur exactly once in each. A part that is still too long is
    /// replaced as a whole.
    pub(super) fn new(old: &'t str, new: &'t str) -> Self {
        Self::with_max_pairs(old, new, MAX_LINE_PAIRS)
    }

    pub(super) fn with_max_pairs(old: &'t str, new: &'t str, max_pairs: usize) -> Self {
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
    pub(super) fn sections(&self) -> DiffSections<'_, 't> {
        DiffSections { old: self.old, new: self.new, lengths: &self.lengths }
    }

    /// Returns the changes in groups, with up to three unchanged lines around each.
    pub(super) fn groups(&self) -> DiffGroups<'_, 't> {
        DiffGroups { sections: self.sections(), kept: "", old_line: 0, new_line: 0 }
    }

    /// Appends the changes as a unified diff, without a header.
    pub(super) fn write_unified(&self, out: &mut String) {
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
pub(super) struct DiffSections<'d, 't> {
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
pub(super) struct DiffGroup<'d, 't> {
    /// The number of lines before it in each text.
    pub(super) old_line: usize,
    pub(super) new_line: usize,
    /// The unchanged lines before the first section.
    context: &'t str,
    /// The sections, followed by those of the next groups.
    sections: DiffSections<'d, 't>,
    n_sections: usize,
}

impl<'d, 't: 'd> DiffGroup<'d, 't> {
    /// Returns the lines, with their newlines.
    pub(super) fn lines(&self) -> impl Iterator<Item = (DiffChange, &'t str)> + Clone + use<'d, 't> {
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
pub(super) struct DiffGroups<'d, 't> {
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

/// Returns the length of some lines.
fn length(lines: &[&str]) -> usize {
    lines.iter().map(|line| line.len()).sum()
}
