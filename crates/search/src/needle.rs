//! The needle: bytes that a line must contain to match.
//!
//! The query is folded, decoded text, but lines are raw JSON, in which a letter may be written as `\u0061`,
//! with an accent, or followed by a combining mark. So a line is a candidate if it contains the needle
//! literally, or any byte sequence that may encode a letter differently: see [`is_odd`].

use std::ops::ControlFlow;

use fearless_simd::prelude::*;
use fearless_simd::{Level, dispatch, u8x64};
use memchr::{memchr, memchr_iter, memmem, memrchr};
use threadline_entry::key::FREQUENT_WORDS;
use threadline_entry::{Ending, LineBlock, LogLine, Position};

use crate::fold::Case;

/// Selects the lines worth decoding.
#[derive(Clone, Debug)]
pub(crate) enum Needle {
    /// Lines that contain these bytes, or an odd sequence.
    Exact(Box<memmem::Finder<'static>>),
    /// The same, ignoring ASCII case.
    AnyCase(Box<CaseInsensitiveNeedle>),
    /// All lines.
    None,
}

impl Needle {
    /// Builds the most selective needle from texts that must all occur.
    pub(crate) fn of<'t>(texts: impl IntoIterator<Item = (&'t str, Case)>) -> Self {
        let runs = texts.into_iter().flat_map(|(text, case)| plain_runs(text).map(move |run| (run, case)));
        let Some((run, case)) = runs.max_by_key(|(run, _)| rarity(run)) else { return Self::None };
        if case == Case::Sensitive || !run.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return Self::Exact(Box::new(memmem::Finder::new(run).into_owned()));
        }
        CaseInsensitiveNeedle::new(run).map_or(Self::None, |needle| Self::AnyCase(Box::new(needle)))
    }

    fn find(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Exact(finder) => finder.find(bytes),
            Self::AnyCase(needle) => needle.find(bytes),
            Self::None => Some(0),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Exact(finder) => finder.needle().len(),
            Self::AnyCase(needle) => needle.length,
            Self::None => 0,
        }
    }

    /// Calls `sink` with each candidate line of the block and its offset, until `sink` breaks.
    ///
    /// The lines have no numbers. In windows without odd sequences, lines without the needle are not split at
    /// all.
    pub(crate) fn candidates<'b, B>(
        &self,
        block: LineBlock<'b>,
        mut sink: impl FnMut(LogLine<'b>, usize) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let bytes = block.bytes;
        let line_at = |start: usize| {
            let (stop, ending) = match memchr(b'\n', &bytes[start..]) {
                Some(newline) => (start + newline, Ending::Newline),
                None => (bytes.len(), Ending::None),
            };
            let at = Position { byte_offset: block.at.byte_offset + start as u64, ..block.at };
            LogLine { bytes: &bytes[start..stop], ending, at }
        };
        // Lines before `done` are processed; the needle was not searched from `at` on; no sequence before
        // `plain` is odd.
        let (mut done, mut at, mut plain) = (0, 0, 0);
        while at < bytes.len() {
            if at == plain {
                let stop = (at + WINDOW).min(bytes.len());
                plain = stop;
                if matches!(self, Self::None) || is_odd(&bytes[at..(stop + ESCAPE).min(bytes.len())]) {
                    // Checks the lines that overlap the window one by one.
                    at = memrchr(b'\n', &bytes[done..at]).map_or(done, |newline| done + newline + 1);
                    while at < stop {
                        let line = line_at(at);
                        if self.find(line.bytes).is_some() || is_odd(line.bytes) {
                            sink(line, at)?;
                        }
                        at += line.bytes.len() + 1;
                    }
                    (done, plain) = (at, at);
                    continue;
                }
            }
            let reach = (plain + self.len()).saturating_sub(1).min(bytes.len());
            let Some(found) = self.find(&bytes[at..reach]) else {
                at = plain;
                continue;
            };
            let start = memrchr(b'\n', &bytes[done..at + found]).map_or(done, |newline| done + newline + 1);
            let line = line_at(start);
            sink(line, start)?;
            at = start + line.bytes.len() + 1;
            done = at;
            plain = plain.max(at);
        }
        ControlFlow::Continue(())
    }
}

/// A needle that ignores ASCII case.
#[derive(Clone, Debug)]
pub(crate) struct CaseInsensitiveNeedle {
    regex: regex::bytes::Regex,
    length: usize,
    /// The two rarest bytes of the needle: offset and lower-case value.
    rarest: [(usize, u8); 2],
}

impl CaseInsensitiveNeedle {
    fn new(run: &str) -> Option<Self> {
        let regex = regex::bytes::RegexBuilder::new(&regex::escape(run))
            .case_insensitive(true)
            .unicode(false)
            .build()
            .ok()?;
        let mut bytes: Vec<_> = run.bytes().map(|byte| byte.to_ascii_lowercase()).enumerate().collect();
        bytes.sort_by_key(|(_, byte)| std::cmp::Reverse(byte_rarity(*byte)));
        let rarest = [*bytes.first()?, *bytes.get(1).or(bytes.first())?];
        Some(Self { regex, length: run.len(), rarest })
    }

    /// Searches for the two rarest bytes, one chunk at a time, and verifies with the regular expression.
    fn find(&self, bytes: &[u8]) -> Option<usize> {
        let [(a, _), (b, _)] = self.rarest;
        let places = bytes.len().checked_sub(self.length - 1).filter(|places| *places > 0)?;
        let (a_chunks, _) = bytes[a..a + places].as_chunks::<CHUNK>();
        let (b_chunks, _) = bytes[b..b + places].as_chunks::<CHUNK>();
        let from = |start: usize, stop: usize| {
            let found = self.regex.find(&bytes[start..stop.min(bytes.len())])?;
            Some(start + found.start())
        };
        let mut in_vain = 0;
        let mut next = 0;
        let skipped = |next: usize| dispatch!(Level::new(), simd => self.first_matching_chunk(simd, &a_chunks[next..], &b_chunks[next..]));
        while let Some(skipped) = skipped(next) {
            let start = (next + skipped) * CHUNK;
            let found = from(start, start + CHUNK + self.length - 1);
            if found.is_some() {
                return found;
            }
            next += skipped + 1;
            in_vain += 1;
            if in_vain > 8 {
                // The two bytes are too common here.
                return from(start + CHUNK, bytes.len());
            }
        }
        from(a_chunks.len() * CHUNK, bytes.len())
    }

    /// Returns the number of chunks before the first one with both bytes at matching offsets. A plain loop
    /// would be as fast in builds that vectorize it, which those for size do not.
    #[inline(always)]
    fn first_matching_chunk<S: Simd>(
        &self,
        simd: S,
        a_chunks: &[[u8; CHUNK]],
        b_chunks: &[[u8; CHUNK]],
    ) -> Option<usize> {
        let [(_, a_byte), (_, b_byte)] = self.rarest;
        let mask = |byte: u8| if byte.is_ascii_alphabetic() { 0x20 } else { 0 };
        let (a_mask, b_mask) = (u8x64::splat(simd, mask(a_byte)), u8x64::splat(simd, mask(b_byte)));
        let (a_byte, b_byte) = (u8x64::splat(simd, a_byte), u8x64::splat(simd, b_byte));
        for (n, (a_chunk, b_chunk)) in a_chunks.iter().zip(b_chunks).enumerate() {
            // The least difference at each place of a block; zero if both bytes match.
            let mut least = u8x64::splat(simd, u8::MAX);
            for (a, b) in a_chunk.as_chunks::<BLOCK>().0.iter().zip(b_chunk.as_chunks::<BLOCK>().0) {
                let a = (u8x64::from_slice(simd, a) | a_mask) ^ a_byte;
                let b = (u8x64::from_slice(simd, b) | b_mask) ^ b_byte;
                least = least.min(a | b);
            }
            if least.simd_eq(0).any_true() {
                return Some(n);
            }
        }
        None
    }
}

/// The number of offsets tested at once.
const CHUNK: usize = 512;

/// The size of a window, which fits into the processor's cache while it is scanned several times.
const WINDOW: usize = 1 << 15;

/// The number of bytes needed to classify an escape: `\u` and three digits.
const ESCAPE: usize = 5;

/// Returns the runs of a folded text that occur literally in raw lines, unless these contain odd sequences.
fn plain_runs(text: &str) -> impl Iterator<Item = &str> {
    // A slash may be escaped as `\/`.
    let escaped = |ch: char| matches!(ch, '"' | '\\' | '/' | '\u{7f}') || ch < ' ';
    let plain = move |ch: char| (ch.is_ascii() && !escaped(ch)) || has_one_spelling(ch);
    text.split(move |ch| !plain(ch)).filter(|run| !run.is_empty())
}

/// Returns whether a non-ASCII character has no case and no other spelling: ideographs, kana, symbols.
fn has_one_spelling(ch: char) -> bool {
    matches!(ch, '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{2328}' | '\u{232b}'..='\u{23ff}' | '\u{2500}'..='\u{2bff}'
        | '\u{3001}'..='\u{3007}' | '\u{300a}'..='\u{301f}' | '\u{3041}'..='\u{3098}' | '\u{309b}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..='\u{2a6df}')
        && unicode_normalization::is_nfd(ch.encode_utf8(&mut [0; 4]))
}

/// Estimates how rare a text is: longer is rarer, and text that is part of the usual JSON keys is common.
fn rarity(run: &str) -> usize {
    let weight: usize = run.bytes().map(byte_rarity).sum();
    if FREQUENT_WORDS.to_ascii_lowercase().contains(&run.to_ascii_lowercase()) { weight / 8 } else { weight }
}

/// Estimates how rare a byte is.
fn byte_rarity(byte: u8) -> usize {
    match byte.to_ascii_lowercase() {
        b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 2,
        b'j' | b'q' | b'x' | b'z' | b'k' | b'v' | b'w' | 0x80.. => 4,
        _ => 3,
    }
}

/// Returns whether raw text contains a sequence that may decode or fold to a plain letter without being
/// written as one: an escaped character, an accented letter, or a combining mark.
fn is_odd(bytes: &[u8]) -> bool {
    dispatch!(Level::new(), simd => is_odd_by(simd, bytes))
}

#[inline(always)]
fn is_odd_by<S: Simd>(simd: S, bytes: &[u8]) -> bool {
    // Each byte needs a successor, so the last one is handled below.
    let (blocks, rest) = bytes[..bytes.len().saturating_sub(1)].as_chunks::<BLOCK>();
    let rest = bytes.len().min(rest.len() + 1);
    for (n, block) in blocks.iter().enumerate() {
        let start = n * BLOCK;
        let block = u8x64::from_slice(simd, block);
        let next = u8x64::from_slice(simd, &bytes[start + 1..][..BLOCK]);
        let odd = (block - 0xc3).simd_le(0xcd - 0xc3) | block.simd_eq(0xe1);
        let escape = block.simd_eq(b'\\') & next.simd_eq(b'u');
        if (odd | escape).any_true() {
            let mut escapes = escape.to_bitmask();
            if odd.any_true() {
                return true;
            }
            while escapes != 0 {
                if is_odd_escape(bytes, start + escapes.trailing_zeros() as usize) {
                    return true;
                }
                escapes &= escapes - 1;
            }
        }
    }
    (bytes.len() - rest..bytes.len()).any(|at| match bytes[at] {
        b'\\' => bytes.get(at + 1) == Some(&b'u') && is_odd_escape(bytes, at),
        byte => matches!(byte, 0xc3..=0xcd | 0xe1),
    })
}

/// The number of bytes tested at once.
const BLOCK: usize = 64;

/// Returns whether the `\u` escape at `at` encodes anything but a control character. Those are always
/// escaped, and are never part of a needle.
fn is_odd_escape(bytes: &[u8], at: usize) -> bool {
    !matches!(bytes.get(at + 2..at + 5), Some(b"000" | b"001"))
}

/// Counts the newlines in `bytes`.
pub(crate) fn count_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fold::fold;

    #[test]
    fn characters_that_fold_to_others_are_odd() {
        for ch in ('\0'..=char::MAX).filter(|ch| !ch.is_ascii()) {
            let text = ch.to_string();
            for case in [Case::Sensitive, Case::Insensitive] {
                let folded = fold(&text, case);
                let disguised =
                    folded.chars().any(|out| out != ch && (out.is_ascii() || has_one_spelling(out)));
                assert!(!disguised || is_odd(text.as_bytes()), "U+{:04X} {folded}", ch as u32);
                assert!(!has_one_spelling(ch) || folded == text, "U+{:04X}", ch as u32);
                // A mark that folds to nothing may occur within a needle.
                assert!(!folded.is_empty() || is_odd(text.as_bytes()), "U+{:04X}", ch as u32);
            }
        }
    }

    #[test]
    fn a_case_insensitive_needle_is_found_at_any_offset() {
        for needle in ["x", "xy", "a-b", "the end", "eee", "x1z"] {
            let find = CaseInsensitiveNeedle::new(needle).unwrap();
            for filler in [&b"."[..], b"e", b"th", b"ex"] {
                for place in [0, 1, 250, 254, 255, 256, 257, 600, 5000] {
                    let mut bytes: Vec<u8> = filler.iter().copied().cycle().take(place).collect();
                    bytes.extend(needle.to_ascii_uppercase().bytes());
                    bytes.extend(filler.iter().copied().cycle().take(place % 7));
                    assert_eq!(
                        find.find(&bytes),
                        find.regex.find(&bytes).map(|found| found.start()),
                        "{needle} {place}"
                    );
                    bytes.truncate(place);
                    assert_eq!(
                        find.find(&bytes),
                        find.regex.find(&bytes).map(|found| found.start()),
                        "{needle} {place}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_best_needle_is_long_and_rare() {
        let best = |texts: &[&str]| match Needle::of(texts.iter().map(|text| (*text, Case::Sensitive))) {
            Needle::Exact(finder) => String::from_utf8(finder.needle().to_vec()).unwrap(),
            _ => "-".into(),
        };
        assert_eq!(best(&["user", "xylo"]), "xylo");
        assert_eq!(best(&["src/main.rs"]), "main.rs");
        assert_eq!(best(&["say \"hello\""]), "hello");
        assert_eq!(best(&["错误"]), "错误");
        assert_eq!(best(&["привет"]), "-");
        assert_eq!(best(&["\"\\\n"]), "-");
        assert_eq!(best(&[]), "-");
    }

    #[test]
    fn terminal_colours_are_not_odd() {
        assert!(!is_odd(r#"{"text":"\u001b[31m \n \\ \" 错 \u0000"}"#.as_bytes()));
        let colours = r"\u001b[31m".repeat(900);
        assert!(!is_odd(colours.as_bytes()));
        for odd in [r"\u0061", r"\u00e9", r"\u9519", r"\ud83e", "é", "e\u{301}", r"\u00"] {
            assert!(is_odd(odd.as_bytes()), "{odd}");
            // At any offset.
            for place in [1, 1000, 1018, 1019, 1020, 1021, 1022, 1023, 1024, 1025, 2047, 2048, 3000] {
                let before = &colours.as_bytes()[..place];
                let before = &before[..before.iter().rposition(|byte| *byte == b'm').map_or(0, |at| at + 1)];
                for behind in [0, 1, 5, 2000] {
                    let filler = vec![b'.'; place - before.len()];
                    let text = [before, &filler, odd.as_bytes(), &vec![b' '; behind]].concat();
                    assert!(is_odd(&text), "{odd} {place} {behind}");
                }
            }
        }
    }
}
