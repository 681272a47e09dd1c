//! Snippets: the lines of a text around a match.

use std::ops::Range;

/// The number of bytes of a line that are kept before and after a match.
const BEFORE: usize = 160;
const AFTER: usize = 320;

/// The number of bytes in which a word boundary is searched.
const GAP: usize = 40;

/// The number of bytes that each line of context may add.
const CONTEXT_LINE: usize = 400;

/// The separator between two excerpts of a block, and the one if they have lines of context.
const JOINT: &str = " … ";
const CONTEXT_JOINT: &str = "\n…\n";

/// The bytes of a line that are kept around a match in each of two excerpts.
const JOINED_BEFORE: usize = 60;
const JOINED_AFTER: usize = 120;

/// Sorts the ranges and merges those that overlap or touch.
pub(crate) fn merge(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// The parts of a text to show for a match.
pub(crate) struct Excerpts {
    /// One part, or two in the order of the text.
    pub(crate) parts: Vec<Range<usize>>,
    /// The text between two parts.
    pub(crate) joint: &'static str,
}

/// Returns the part of `text` to show: the shortest window with the most terms, and `context` lines around
/// it. If a term does not occur in it, a second part contains most of the missing terms.
///
/// `found` contains the occurrences of each term; of many terms, only the rarest are considered. Parts are
/// truncated if lines are very long, and have no white space at their ends.
pub(crate) fn choose_excerpts(text: &str, found: &[Vec<Range<usize>>], context: usize) -> Excerpts {
    let mut found: Vec<&[Range<usize>]> =
        found.iter().map(|ranges| &**ranges).filter(|ranges| !ranges.is_empty()).collect();
    if found.len() > MAX_TERMS {
        found.sort_by_key(|ranges| ranges.len());
        found.truncate(MAX_TERMS);
    }
    let joint = if context > 0 { CONTEXT_JOINT } else { JOINT };
    let best = best_window(text, &found);
    let only = excerpt_around(text, &best, context, [BEFORE, AFTER]);
    let is_missing = |ranges: &&[Range<usize>]| {
        let is_shown = |range: &Range<usize>| only.start <= range.start && range.end <= only.end;
        !ranges.iter().any(is_shown)
    };
    let missing: Vec<&[Range<usize>]> = found.iter().copied().filter(is_missing).collect();
    if missing.is_empty() {
        return Excerpts { parts: vec![only], joint };
    }
    let windows = [best, best_window(text, &missing)];
    let around = |window| excerpt_around(text, &window, context, [JOINED_BEFORE, JOINED_AFTER]);
    Excerpts { parts: merge(windows.map(around).into()), joint }
}

/// Returns the lines around a window, truncated to `reach` bytes before and after it.
fn excerpt_around(text: &str, best: &Range<usize>, context: usize, reach: [usize; 2]) -> Range<usize> {
    let (from, to) = (line_start(text, best.start), line_end(text, best.end));
    let mut start = from.max(floor(text, best.start.saturating_sub(reach[0])));
    let mut end = to.min(ceil(text, best.end.saturating_add(reach[1])));
    if context > 0 {
        let (mut above, mut below) = (from, to);
        for _ in 0..context {
            above = if above == 0 { 0 } else { line_start(text, above - 1) };
            below = if below == text.len() { below } else { line_end(text, below + 1) };
        }
        let reach = context.saturating_mul(CONTEXT_LINE);
        start = above.max(floor(text, start.saturating_sub(reach)));
        end = below.min(ceil(text, end.saturating_add(reach)));
    }
    // A cut within a line is moved to a word boundary if one is near.
    if start > line_start(text, start) {
        let near = &text[start..floor(text, best.start.min(start + GAP))];
        start += near.find(char::is_whitespace).unwrap_or(0);
    }
    if end < line_end(text, end) {
        let from = ceil(text, best.end.max(end.saturating_sub(GAP)));
        end = text[from..end].rfind(char::is_whitespace).map_or(end, |gap| from + gap);
    }
    let piece = &text[start..end];
    let lead = piece.len() - piece.trim_start().len();
    let kept = piece.trim().len();
    start + lead..start + lead + kept
}

/// Returns whether a part of `text` begins or ends within a line.
pub(crate) fn is_truncated(text: &str, part: &Range<usize>) -> [bool; 2] {
    let before = text[..part.start].trim_end_matches([' ', '\t']);
    let behind = text[part.end..].trim_start_matches([' ', '\t', '\r']);
    [!(before.is_empty() || before.ends_with('\n')), !(behind.is_empty() || behind.starts_with('\n'))]
}

/// The maximum number of terms that an excerpt is chosen by. The search for the best one takes time for each
/// pair of an occurrence and a term.
const MAX_TERMS: usize = 32;

/// The maximum length of a window with several matches.
const WINDOW: usize = 320;

/// Returns the window that contains the most terms: of several, the one on the fewest lines, then the
/// shortest, then the first. Without matches, returns the start of the text.
fn best_window(text: &str, found: &[&[Range<usize>]]) -> Range<usize> {
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for (term, ranges) in found.iter().enumerate() {
        // A better window further down is not worth the search.
        places.extend(ranges.iter().take(1000).map(|range| (range.start, range.end, term)));
    }
    places.sort_unstable();
    let mut best: Option<(std::cmp::Reverse<usize>, usize, usize, Range<usize>)> = None;
    for (i, &(start, ..)) in places.iter().enumerate() {
        let mut terms = Vec::new();
        let (mut end, mut lines) = (start, 0);
        for &(_, stop, term) in places[i..].iter().take_while(|(_, stop, _)| *stop <= start + WINDOW) {
            if terms.contains(&term) {
                continue;
            }
            terms.push(term);
            if stop > end {
                lines += text[end..stop].matches('\n').count();
                end = stop;
            }
            let window = (std::cmp::Reverse(terms.len()), lines, end - start, start..end);
            if best.as_ref().is_none_or(|best| (window.0, window.1, window.2) < (best.0, best.1, best.2)) {
                best = Some(window);
            }
        }
    }
    // A single match may be longer than a window.
    let first = || places.first().map(|&(start, end, _)| start..end);
    let blank = text.len() - text.trim_start().len();
    best.map(|(.., window)| window).or_else(first).unwrap_or(blank..blank)
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline)
}

fn floor(text: &str, at: usize) -> usize {
    text.floor_char_boundary(at)
}

fn ceil(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, words: &[&str], context: usize) -> String {
        let found: Vec<_> = words
            .iter()
            .map(|word| text.match_indices(word).map(|(at, _)| at..at + word.len()).collect())
            .collect();
        let Excerpts { parts, joint } = choose_excerpts(text, &found, context);
        parts.into_iter().map(|part| &text[part]).collect::<Vec<_>>().join(joint)
    }

    #[test]
    fn the_line_with_the_most_terms_is_shown_with_context() {
        let text = "one\n  two slow\nthree\nslow fast\nfive\n";
        assert_eq!(shown(text, &["slow", "fast"], 0), "slow fast");
        assert_eq!(shown(text, &["slow"], 0), "two slow");
        assert_eq!(shown(text, &["one", "fast"], 0), text.trim().strip_suffix("\nfive").unwrap());
        let far = format!("slow {}slow and fast{}", "filler ".repeat(200), " filler".repeat(200));
        assert!(shown(&far, &["slow", "fast"], 0).contains("slow and fast"));
        assert_eq!(shown(text, &["slow"], 1), "one\n  two slow\nthree");
        assert_eq!(shown(text, &["slow"], 9), text.trim());
        assert_eq!(shown(text, &[], 0), "one");
        assert_eq!(shown("\n\n x", &[], 0), "x");
        assert_eq!(shown("", &[], 3), "");
        let long = format!("{}错slow误{}", "错".repeat(500), "误".repeat(500));
        let cut = shown(&long, &["slow"], 0);
        assert!(cut.contains("slow") && cut.len() < 600, "{cut}");
        let words = format!("{}slow {}", "before ".repeat(50), "behind ".repeat(90));
        let cut = shown(&words, &["slow"], 0);
        assert!(cut.starts_with("before before") && cut.ends_with("behind behind"), "{cut}");
    }

    #[test]
    fn terms_that_are_far_apart_are_shown_in_two_excerpts() {
        let text = format!("one\nslow loom\n{}and fast reed\nend", "filler\n".repeat(100));
        assert_eq!(shown(&text, &["slow", "fast"], 0), "slow loom … and fast reed");
        assert_eq!(shown(&text, &["fast", "slow"], 0), "slow loom … and fast reed");
        assert_eq!(
            shown(&text, &["slow", "fast"], 1),
            "one\nslow loom\nfiller\n…\nfiller\nand fast reed\nend"
        );
        assert_eq!(shown(&text, &["slow", "absent"], 0), "slow loom");
        let line = format!("slow {}fast", "filler ".repeat(100));
        let both = shown(&line, &["slow", "fast"], 0);
        assert!(both.starts_with("slow filler") && both.contains("filler … filler"), "{both}");
        assert!(both.ends_with("filler fast") && both.len() < 300, "{both}");
    }

    #[test]
    fn excerpts_are_chosen_by_the_rarest_terms() {
        let rare: Vec<String> = (0..MAX_TERMS).map(|number| format!("rare{number:02}")).collect();
        let line = rare.join(" ");
        let text = format!("{line}\n{}{}", "filler\n".repeat(100), "common\n".repeat(50));
        let mut words: Vec<&str> = vec!["common"];
        words.extend(rare.iter().map(|word| &**word));
        assert_eq!(shown(&text, &words, 0), line);
        assert_eq!(shown(&text, &words[..MAX_TERMS], 0).matches(JOINT).count(), 1);
    }

    #[test]
    fn truncated_lines_are_detected() {
        let text = "one two\n  three four ";
        for (part, expected) in [
            ("one two", [false, false]),
            ("two", [true, false]),
            ("one", [false, true]),
            ("three four", [false, false]),
            ("two\n  three", [true, true]),
        ] {
            let at = text.find(part).unwrap();
            assert_eq!(is_truncated(text, &(at..at + part.len())), expected, "{part}");
        }
    }

    #[test]
    fn adjacent_ranges_are_merged() {
        assert_eq!(merge(vec![4..6, 0..2, 1..3, 6..7, 9..9]), [0..3, 4..7]);
    }
}
