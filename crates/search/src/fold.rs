//! Folding: removes accents from text and, if case is ignored, converts it to lower case.
//!
//! Latin, Greek and Cyrillic letters lose their accents, and composed and decomposed spellings become the
//! same. Characters from U+2000 on are unchanged. So are Korean syllables and voiced Japanese kana, where a
//! mark makes a different letter.

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Whether case is significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Case {
    Sensitive,
    Insensitive,
}

/// A folded text that maps its offsets back to the original.
pub(crate) struct Folded<'t> {
    pub(crate) text: Cow<'t, str>,
    original: &'t str,
    case: Case,
    /// Offsets of some letters in the folded and in the original text, from the beginning on; empty if all
    /// offsets are the same in both. Few of them, since a table of all letters would need many times the
    /// size of the text. Lines of 4 GiB are not entries, so that offsets have 32 bits.
    marks: Vec<(u32, u32)>,
}

/// The number of bytes after which the next letter is marked.
const MARK_INTERVAL: usize = 64;

impl<'t> Folded<'t> {
    pub(crate) fn new(text: &'t str, case: Case) -> Self {
        let original = text;
        if text.is_ascii() {
            let text = match case {
                Case::Sensitive => Cow::Borrowed(text),
                Case::Insensitive => Cow::Owned(text.to_ascii_lowercase()),
            };
            return Self { text, original, case, marks: Vec::new() };
        }
        let mut out = String::with_capacity(text.len());
        let mut marks = vec![(0, 0)];
        let (mut marked_folded, mut marked_original) = (0, 0);
        let mut mark = |folded: usize, original: usize| {
            if folded - marked_folded >= MARK_INTERVAL || original - marked_original >= MARK_INTERVAL {
                marks.push((folded as u32, original as u32));
                (marked_folded, marked_original) = (folded, original);
            }
        };
        let mut at = 0;
        while at < text.len() {
            let folded = out.len();
            // A mark can only belong to the last ASCII letter before it, so that one is not part of the plain
            // run.
            let plain = text.as_bytes()[at..].iter().position(|byte| !byte.is_ascii());
            let plain = plain.map_or(text.len(), |length| at + length.saturating_sub(1));
            if plain > at {
                out.push_str(&text[at..plain]);
                if case == Case::Insensitive {
                    out[folded..].make_ascii_lowercase();
                }
                (0..plain - at).step_by(MARK_INTERVAL).for_each(|length| mark(folded + length, at + length));
                at = plain;
                continue;
            }
            mark(folded, at);
            let length = letter_len(&text[at..]);
            fold_letter(&text[at..at + length], case, &mut out);
            at += length;
        }
        Self { text: Cow::Owned(out), original, case, marks }
    }

    /// Maps a non-empty range of the folded text to the original, extended to whole letters.
    pub(crate) fn original_range(&self, range: Range<usize>) -> Range<usize> {
        if self.marks.is_empty() {
            return range;
        }
        self.letter_at(range.start).start..self.letter_at(range.end - 1).end
    }

    /// Returns where the original has the letter that includes an offset of the folded text.
    fn letter_at(&self, at: usize) -> Range<usize> {
        let next = self.marks.partition_point(|(folded, _)| *folded as usize <= at);
        let (folded, original) = self.marks[next - 1];
        let (mut folded, mut start) = (folded as usize, original as usize);
        let mut letter = String::new();
        while start < self.original.len() {
            let end = start + letter_len(&self.original[start..]);
            letter.clear();
            fold_letter(&self.original[start..end], self.case, &mut letter);
            folded += letter.len();
            if at < folded {
                return start..end;
            }
            start = end;
        }
        start..start
    }
}

/// Returns only the folded text.
pub(crate) fn fold(text: &str, case: Case) -> String {
    Folded::new(text, case).text.into_owned()
}

/// Returns the length of the first letter, including its combining marks.
fn letter_len(text: &str) -> usize {
    let bytes = text.as_bytes();
    if bytes[0] < 0x80 && bytes.get(1).is_none_or(|next| *next < 0x80) {
        return 1;
    }
    let mut chars = text.char_indices().skip(1);
    // The vowel and the final consonant of a Korean syllable may be separate characters.
    let joins = |ch: char| is_combining_mark(ch) || matches!(ch, '\u{1160}'..='\u{11ff}');
    chars.find(|(_, ch)| !joins(*ch)).map_or(text.len(), |(at, _)| at)
}

fn fold_letter(letter: &str, case: Case, out: &mut String) {
    let mut chars = letter.chars();
    let first = chars.next().unwrap_or_default();
    if chars.next().is_none() && (first.is_ascii() || first >= '\u{2000}') {
        return push(first, case, out);
    }
    let mut bare = String::new();
    // Symbols that look like letters, such as the kelvin sign. NFC would replace them with letters.
    let start = if is_sign(first) { first.len_utf8() } else { 0 };
    out.push_str(&letter[..start]);
    for ch in letter[start..].chars() {
        if ch >= '\u{2000}' {
            push(ch, case, &mut bare);
            continue;
        }
        let parts = std::iter::once(ch).nfd().filter(|ch| !is_accent(*ch));
        parts.for_each(|ch| push(ch, case, &mut bare));
    }
    out.extend(bare.nfc());
}

/// Combining accents. U+0338 is not one of them: it negates a symbol, as in `≠`.
fn is_accent(ch: char) -> bool {
    matches!(ch, '\u{300}'..='\u{36f}') && ch != '\u{338}'
}

fn push(ch: char, case: Case, out: &mut String) {
    if case == Case::Sensitive || is_sign(ch) {
        out.push(ch);
    } else {
        out.extend(ch.to_lowercase().map(|ch| if ch == 'ς' { 'σ' } else { ch }));
    }
}

fn is_sign(ch: char) -> bool {
    matches!(ch, '\u{2100}'..='\u{214f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_case_are_folded() {
        for (text, folded) in [
            ("Café", "cafe"),
            ("Cafe\u{301}s", "cafes"),
            ("İstanbul", "istanbul"),
            ("ΣΊΣΥΦΟΣ", "σισυφοσ"),
            ("ёлка Ёлка", "елка елка"),
            ("错误修复", "错误修复"),
            ("が", "が"),
            ("か\u{3099}", "が"),
            ("\u{1112}\u{1161}\u{11ab}", "한"),
            ("Tiếng Việt", "tieng viet"),
            ("≠ =\u{338} 🦀", "≠ ≠ 🦀"),
            ("\u{301}x", "x"),
        ] {
            assert_eq!(fold(text, Case::Insensitive), folded, "{text}");
        }
        assert_eq!(fold("Café", Case::Sensitive), "Cafe");
    }

    #[test]
    fn ranges_map_back_to_the_original_text() {
        let text = "x Cafe\u{301}s é\u{301}错 end";
        let folded = Folded::new(text, Case::Insensitive);
        let find = |what: &str| {
            let at = folded.text.find(what).unwrap();
            &text[folded.original_range(at..at + what.len())]
        };
        assert_eq!(find("cafes"), "Cafe\u{301}s");
        assert_eq!(find("cafe"), "Cafe\u{301}");
        assert_eq!(find("e错"), "é\u{301}错");
        assert_eq!(find("end"), "end");
        assert_eq!(find("x c"), "x C");
    }

    #[test]
    fn every_letter_maps_back_with_few_marks() {
        for text in ["é", "aé", "ab é", "\u{a0}", "e\u{301}\u{302}", "错x", "Ĳ", "plain text, mostly ", "İ"]
        {
            let text = text.repeat(500) + "é";
            let folded = Folded::new(&text, Case::Insensitive);
            assert!(folded.marks.len() <= text.len().max(folded.text.len()) / MARK_INTERVAL + 1, "{text}");
            let mut at = 0;
            let mut start = 0;
            while start < text.len() {
                let length = letter_len(&text[start..]);
                let end = at + fold(&text[start..start + length], Case::Insensitive).len();
                assert_eq!(folded.original_range(at..end), start..start + length, "{text} {at}");
                (at, start) = (end, start + length);
            }
            assert_eq!(at, folded.text.len());
        }
    }
}
