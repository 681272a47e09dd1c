//! Alignment of two versions of a file, line by line, that reports doubt instead of guessing.
//!
//! A diff returns one of the shortest ways to turn a text into another. If there are several, as for a block
//! that was inserted between equal lines, it chooses one. [`align`] returns a line as kept or added only if
//! it is in every shortest way.

use foldhash::{HashMap, HashSet};

/// A line, numbered so that equal lines have equal numbers.
pub(crate) type LineId = u32;

/// The relation of a line of the new text to the old text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LineSource {
    /// The line with this index of the old text.
    Kept(usize),
    /// The line with this index of the old text, as part of a block that is elsewhere in the new text.
    Moved(usize),
    /// A line that the old text does not contain, or contains only at lines that were kept.
    Added,
    /// One of these lines of the old text, or an added one if that is possible.
    Unclear {
        /// The lines; see [`has_more_sources`].
        sources: Vec<usize>,
        can_be_added: bool,
    },
}

/// The number of letters and digits that a moved block must have to be recognised, as for `git blame -M`.
const MOVED_CHARACTERS: u32 = 20;

/// The maximum number of old lines that are reported for an unclear line.
const MAX_SOURCES: usize = 8;

/// The maximum number of pairs of lines to compare in two texts.
const MAX_PAIRS: usize = 1 << 22;

/// Aligns lines. `weights` has the number of letters and digits of each line, and `budget` is the number of
/// pairs of lines that may still be compared; texts that would exceed it are unclear.
///
/// Takes time in proportion to the number of lines times the number of changed lines.
pub(crate) fn align(old: &[LineId], new: &[LineId], weights: &[u32], budget: &mut usize) -> Vec<LineSource> {
    let head = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    if head == old.len() && head == new.len() {
        return (0..head).map(LineSource::Kept).collect();
    }
    let mut alignment =
        Alignment { old, new, sources: vec![LineSource::Added; new.len()], is_kept: vec![false; old.len()] };
    alignment.align_common(budget);
    alignment.find_moved(weights);
    alignment.sources
}

/// Returns the positions of the lines that occur exactly once in both texts, in the order of the old one.
fn unique_pairs(old: &[LineId], new: &[LineId]) -> Vec<(usize, usize)> {
    let mut counts: HashMap<LineId, (u32, u32, usize)> = HashMap::default();
    for &line in old {
        counts.entry(line).or_default().0 += 1;
    }
    for (at, line) in new.iter().enumerate() {
        if let Some(count) = counts.get_mut(line) {
            (count.1, count.2) = (count.1 + 1, at);
        }
    }
    let unique = |(at, line): (usize, &LineId)| match counts.get(line) {
        Some(&(1, 1, new_at)) => Some((at, new_at)),
        _ => None,
    };
    old.iter().enumerate().filter_map(unique).collect()
}

struct Alignment<'l> {
    old: &'l [LineId],
    new: &'l [LineId],
    sources: Vec<LineSource>,
    /// By old line: whether it is certainly a line of the new text.
    is_kept: Vec<bool>,
}

impl Alignment<'_> {
    fn keep(&mut self, old_at: usize, new_at: usize) {
        self.sources[new_at] = LineSource::Kept(old_at);
        self.is_kept[old_at] = true;
    }

    /// Aligns the lines that both texts contain.
    fn align_common(&mut self, budget: &mut usize) {
        // A line that only one text contains is in no pair. Without those, different texts are short.
        let ids = |lines: &[LineId]| lines.iter().copied().collect::<HashSet<_>>();
        let (in_old, in_new) = (ids(self.old), ids(self.new));
        let rows: Vec<usize> = (0..self.old.len()).filter(|&at| in_new.contains(&self.old[at])).collect();
        let columns: Vec<usize> = (0..self.new.len()).filter(|&at| in_old.contains(&self.new[at])).collect();
        if rows.is_empty() || columns.is_empty() {
            return;
        }
        let common = CommonLines::new(
            rows.iter().map(|&at| self.old[at]).collect(),
            columns.iter().map(|&at| self.new[at]).collect(),
            budget,
        );
        let Some(common) = common else {
            for &new_at in &columns {
                self.sources[new_at] = LineSource::Unclear { sources: Vec::new(), can_be_added: true };
            }
            return;
        };
        for (column, &new_at) in columns.iter().enumerate() {
            let (found, can_be_added) = common.sources(column);
            match found[..] {
                [] => {}
                [row] if !can_be_added => self.keep(rows[row], new_at),
                _ => {
                    let sources = found.iter().take(MAX_SOURCES + 1).map(|&row| rows[row]).collect();
                    self.sources[new_at] = LineSource::Unclear { sources, can_be_added };
                }
            }
        }
    }

    /// Relates the added lines to equal lines that were removed elsewhere: as moved if they are in a block
    /// that is long enough and unmistakable, otherwise as unclear.
    fn find_moved(&mut self, weights: &[u32]) {
        let mut removed: HashMap<LineId, Vec<usize>> = HashMap::default();
        for (at, line) in self.old.iter().enumerate().filter(|(at, _)| !self.is_kept[*at]) {
            removed.entry(*line).or_default().push(at);
        }
        if removed.is_empty() {
            return;
        }
        let unique: HashMap<usize, usize> =
            unique_pairs(self.old, self.new).into_iter().map(|(old_at, new_at)| (new_at, old_at)).collect();
        let mut new_at = 0;
        while new_at < self.new.len() {
            let matched = |source: &LineSource| matches!(source, LineSource::Kept(_));
            let block = (new_at..self.new.len())
                .take_while(|&at| {
                    !matched(&self.sources[at])
                        && unique.get(&at).is_some_and(|old_at| {
                            at == new_at || unique.get(&(at - 1)) == old_at.checked_sub(1).as_ref()
                        })
                })
                .count();
            let lines = new_at..new_at + block;
            if lines.clone().map(|at| weights[self.new[at] as usize]).sum::<u32>() >= MOVED_CHARACTERS {
                for at in lines {
                    self.sources[at] = LineSource::Moved(unique[&at]);
                }
            }
            new_at += block.max(1);
        }
        for (at, source) in self.sources.iter_mut().enumerate() {
            if *source == LineSource::Added
                && let Some(found) = removed.get(&self.new[at])
            {
                let sources = found.iter().take(MAX_SOURCES + 1).copied().collect();
                *source = LineSource::Unclear { sources, can_be_added: true };
            }
        }
    }
}

/// Whether an unclear line has so many possible sources that not all of them are listed.
pub(crate) fn has_more_sources(sources: &[usize]) -> bool {
    sources.is_empty() || sources.len() > MAX_SOURCES
}

/// All longest common subsequences of two lists of lines.
///
/// A way from the old to the new text that removes and adds at most `reach` lines each pairs only lines
/// whose indexes differ by at most `reach`. Only such pairs are compared.
struct CommonLines {
    old: Vec<LineId>,
    new: Vec<LineId>,
    reach: usize,
    /// By pair: the length of the longest common subsequence of the lines before them.
    before: Vec<u32>,
    /// The same for the lines from there on.
    after: Vec<u32>,
}

impl CommonLines {
    /// Compares lines. `None` if that takes more pairs than the budget or [`MAX_PAIRS`].
    fn new(mut old: Vec<LineId>, mut new: Vec<LineId>, budget: &mut usize) -> Option<Self> {
        let longest = old.len().max(new.len());
        let mut reach = (old.len().abs_diff(new.len()) + 16).min(longest);
        loop {
            let n_pairs = (old.len() + 1).saturating_mul(2 * reach + 1);
            *budget = budget.checked_sub(n_pairs).filter(|_| n_pairs <= MAX_PAIRS)?;
            let mut common = Self { old, new, reach, before: vec![0; n_pairs], after: vec![0; n_pairs] };
            common.fill_after();
            // Enough if no longer subsequence can need a wider reach.
            if longest - common.length() <= reach {
                common.fill_before();
                return Some(common);
            }
            Self { old, new, .. } = common;
            reach = (reach * 4).min(longest);
        }
    }

    /// Returns the index of a pair; `None` if it is out of reach.
    fn pair(&self, row: usize, column: usize) -> Option<usize> {
        let offset = (column + self.reach).checked_sub(row).filter(|offset| *offset <= 2 * self.reach)?;
        Some(row * (2 * self.reach + 1) + offset)
    }

    /// Returns the columns within reach of a row, up to `end`.
    fn columns(&self, row: usize, end: usize) -> std::ops::Range<usize> {
        let start = row.saturating_sub(self.reach);
        start..(row + self.reach + 1).min(end).max(start)
    }

    fn value(&self, table: &[u32], row: usize, column: usize) -> u32 {
        self.pair(row, column).map_or(0, |at| table[at])
    }

    fn fill_before(&mut self) {
        let mut before = std::mem::take(&mut self.before);
        for row in 0..=self.old.len() {
            for column in self.columns(row, self.new.len() + 1) {
                let Some(at) = self.pair(row, column).filter(|_| row > 0 && column > 0) else { continue };
                before[at] = match self.old[row - 1] == self.new[column - 1] {
                    true => self.value(&before, row - 1, column - 1) + 1,
                    false => self.value(&before, row - 1, column).max(self.value(&before, row, column - 1)),
                };
            }
        }
        self.before = before;
    }

    fn fill_after(&mut self) {
        let mut after = std::mem::take(&mut self.after);
        for row in (0..self.old.len()).rev() {
            for column in self.columns(row, self.new.len()).rev() {
                let Some(at) = self.pair(row, column) else { continue };
                after[at] = match self.old[row] == self.new[column] {
                    true => self.value(&after, row + 1, column + 1) + 1,
                    false => self.value(&after, row + 1, column).max(self.value(&after, row, column + 1)),
                };
            }
        }
        self.after = after;
    }

    /// Returns the length of the longest common subsequences.
    fn length(&self) -> usize {
        self.value(&self.after, 0, 0) as usize
    }

    /// Returns the old lines that a new line can be, and whether it can also be none of them.
    fn sources(&self, column: usize) -> (Vec<usize>, bool) {
        let length = self.length();
        let is_longest = |row: usize, next_row: usize, paired: usize| {
            let [Some(here), Some(next)] = [self.pair(row, column), self.pair(next_row, column + 1)] else {
                return false;
            };
            self.before[here] as usize + paired + self.after[next] as usize == length
        };
        let near = column.saturating_sub(self.reach)..(column + self.reach + 1).min(self.old.len());
        let is_pair = |&row: &usize| self.old[row] == self.new[column] && is_longest(row, row + 1, 1);
        let is_added = (near.start..near.end + 1).any(|row| is_longest(row, row, 0));
        (near.filter(is_pair).collect(), is_added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Aligns two texts with one letter per line: `=` kept, `>` moved, `+` added, `?` unclear.
    fn marks(old: &str, new: &str) -> String {
        let ids = |text: &str| text.bytes().map(LineId::from).collect::<Vec<_>>();
        let weights: Vec<u32> = (0..=255).map(|line| if line < 97 { 25 } else { 1 }).collect();
        let sources = align(&ids(old), &ids(new), &weights, &mut usize::MAX.clone());
        let mark = |source: &LineSource| match source {
            LineSource::Kept(_) => '=',
            LineSource::Moved(_) => '>',
            LineSource::Added => '+',
            LineSource::Unclear { .. } => '?',
        };
        sources.iter().map(mark).collect()
    }

    #[test]
    fn lines_are_kept_or_added() {
        assert_eq!(marks("", "ab"), "++");
        assert_eq!(marks("abc", "abc"), "===");
        assert_eq!(marks("abc", "axbyc"), "=+=+=");
        assert_eq!(marks("abc", "ac"), "==");
        assert_eq!(marks("abc", "xyz"), "+++");
    }

    #[test]
    fn a_block_between_equal_lines_is_unclear() {
        // Either the first or the second `e` is new.
        assert_eq!(marks("ae", "aebe"), "=?+?");
        assert_eq!(marks("aeb", "aeeb"), "=??=");
        assert_eq!(marks("aaa", "aaaa"), "????");
        // Which of the equal lines was removed does not matter for the text, but for its origin.
        assert_eq!(marks("xaay", "xay"), "=?=");
    }

    #[test]
    fn equal_lines_between_the_same_neighbours_are_kept() {
        assert_eq!(marks("aebecd", "aebecxd"), "=====+=");
    }

    #[test]
    fn blocks_that_are_long_enough_are_moved() {
        assert_eq!(marks("aBcd", "acdB"), "===>");
        // Short lines could have been typed again.
        assert_eq!(marks("abcd", "acdb"), "===?");
        assert_eq!(marks("ab", "ba"), "??");
        assert_eq!(marks("AB", "BA"), ">>");
    }

    #[test]
    fn texts_beyond_the_budget_are_unclear() {
        let old: Vec<LineId> = (0..4000).map(|at| at % 2).collect();
        let new: Vec<LineId> = (0..4000).map(|at| at % 3).collect();
        let sources = align(&old, &new, &[1; 3], &mut usize::MAX.clone());
        assert_eq!(sources[0], LineSource::Unclear { sources: Vec::new(), can_be_added: true });
        assert_eq!(sources[2], LineSource::Added);
        let sources = align(&[0, 0, 1], &[0, 1, 1], &[1; 2], &mut 3);
        let is_unclear = |source: &LineSource| matches!(source, LineSource::Unclear { sources, .. } if has_more_sources(sources));
        assert!(sources.iter().all(is_unclear));
    }
}
