//! Lines that occur exactly once in each of two texts.

use std::cmp::Ordering;

use super::text_lines::{count_lines, lines_of};

/// Returns the offsets of the lines of a text, sorted by their text.
pub(super) fn sorted_lines(text: &str) -> Vec<u32> {
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
pub(super) fn compare_first_lines(a: &str, b: &str) -> Ordering {
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
pub(super) fn anchors(old: &str, new: &str) -> Vec<(u32, u32)> {
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
