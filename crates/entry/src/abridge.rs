//! Truncates the long strings of a line, for callers that need the structure but not all the text.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

use crate::json::{QuoteScanner, count_escaped_breaks};

/// Appends `line` to `out` with its long strings truncated.
///
/// A string longer than `keep` bytes is cut after about that many (one that begins with a tag after at least
/// 2,048), and the rest is replaced by `…`, the length of the string, and as many line breaks as were cut.
/// The line keeps its members, its short values, the beginnings of its long values and their line counts;
/// equal strings stay equal.
///
/// Strings with invalid escapes, control characters or invalid UTF-8 are not cut, so the abridged line is
/// valid JSON if and only if the line is. A line without long strings is appended unchanged.
pub fn abridge(line: &[u8], keep: usize, out: &mut Vec<u8>) {
    let before = out.len();
    if !abridge_plain(line, keep, out) {
        out.truncate(before);
        abridge_any(line, keep, out);
    }
}

/// Abridges a line whose strings are valid, and contain no escapes that may be surrogates. Returns `false`
/// for other lines; the bytes that were appended are then to be removed.
///
/// The ends of all strings are found at once, so that only those of long strings are examined.
fn abridge_plain(line: &[u8], keep: usize, out: &mut Vec<u8>) -> bool {
    let mut quotes = QuoteScanner::new(line);
    let (mut done, mut at) = (0, 0);
    loop {
        let open = quotes.pop();
        // After a backslash outside of strings, other quotes would open and close strings.
        if line[at..open.unwrap_or(line.len())].contains(&b'\\') {
            return false;
        }
        let Some((open, end)) = open.zip(quotes.pop()) else { break };
        at = end + 1;
        let start = open + 1;
        let limit = start + kept_length(&line[start..], keep);
        if end <= limit {
            continue;
        }
        let cut = first_cut(line, start, limit, end);
        let rest = &line[cut..end];
        // A control character would make the whole line invalid below.
        if rest.len() > MIN_SAVED && is_plain_text(rest) {
            out.extend_from_slice(&line[done..cut]);
            let breaks = count_escaped_breaks(rest);
            push_replacement(out, end - start, breaks, ends_with_break(&line[start..end]));
            done = end;
        }
    }
    out.extend_from_slice(&line[done..]);
    !quotes.has_invalid && !quotes.may_have_surrogates
}

/// Returns the first offset from `limit` on at which the string `start..end` can be cut: not within an escape
/// or a character. Its escapes are valid, and none of them is a surrogate.
fn first_cut(line: &[u8], start: usize, limit: usize, end: usize) -> usize {
    let mut at = start;
    while at <= limit
        && let Some(hit) = memchr(b'\\', &line[at..=limit])
    {
        at += hit + if line[at + hit + 1] == b'u' { 6 } else { 2 };
    }
    let at = at.min(end);
    char_start(line, limit.max(at), at)
}

/// Returns whether the text of a string ends with an escaped line break.
fn ends_with_break(text: &[u8]) -> bool {
    let Some(before) = text.strip_suffix(b"n") else { return false };
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Returns the number of bytes that are kept of a string that begins a text.
fn kept_length(text: &[u8], keep: usize) -> usize {
    // Text between tags is generated, and its content is needed to classify it. So are the ids, paths and the
    // outcome in the notification of a background task.
    if text.first() == Some(&b'<') { keep.max(TAGGED_KEEP) } else { keep }
}

/// Appends the replacement of the end of a string of `length` bytes.
fn push_replacement(out: &mut Vec<u8>, length: usize, breaks: usize, ends_with_break: bool) {
    let length = length.to_string();
    // If the string ended with a line break, the replacement does too.
    let (before, after) = if ends_with_break { (&*length, "") } else { ("", &*length) };
    out.extend_from_slice("…".as_bytes());
    out.extend_from_slice(before.as_bytes());
    for _ in 0..breaks {
        out.extend_from_slice(b"\\n");
    }
    out.extend_from_slice(after.as_bytes());
}

/// Abridges any line, byte by byte.
fn abridge_any(line: &[u8], keep: usize, out: &mut Vec<u8>) {
    let mut done = 0;
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &line[at..]) {
        let start = at + quote + 1;
        let Some(text) = ScannedString::of(line, start, keep) else { break };
        if let Some(cut) = text.cut {
            out.extend_from_slice(&line[done..cut]);
            push_replacement(out, text.end - start, text.breaks, text.ends_with_break);
            done = text.end;
        }
        at = text.end + 1;
    }
    out.extend_from_slice(&line[done..]);
}

/// A string in a line.
struct ScannedString {
    /// The offset of the closing quote.
    end: usize,
    /// The offset to cut at, if the string is long and valid.
    cut: Option<usize>,
    /// The number of line breaks after the cut.
    breaks: usize,
    /// Whether the string ends with a line break.
    ends_with_break: bool,
}

impl ScannedString {
    /// Scans the string whose text begins at `start`; returns `None` if it is not terminated.
    fn of(line: &[u8], start: usize, keep: usize) -> Option<Self> {
        let limit = start + kept_length(&line[start..], keep);
        let (mut at, mut cut, mut breaks, mut sound) = (start, None, 0, true);
        let mut ends_line = false;
        loop {
            let hit = at + memchr2(b'"', b'\\', &line[at..])?;
            ends_line &= hit == at;
            if cut.is_none() && hit > limit {
                cut = Some(char_start(line, limit.max(at), at));
            }
            if line[hit] == b'"' {
                let cut = cut.filter(|cut| sound && hit - cut > MIN_SAVED && may_be_cut(&line[*cut..hit]));
                return Some(Self { end: hit, cut, breaks, ends_with_break: ends_line });
            }
            let escape = *line.get(hit + 1)?;
            sound &= matches!(escape, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u');
            if cut.is_some() && escape == b'n' {
                breaks += 1;
            }
            at = hit + 2;
            ends_line = escape == b'n';
            if escape == b'u' {
                sound &= line.get(at..at + 4)?.iter().all(u8::is_ascii_hexdigit);
                let first =
                    matches!(line[at..at + 2], [b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B']);
                sound &= first || !is_low_surrogate(&line[at..at + 2]);
                at += 4;
                // Surrogate pairs are not split; an unpaired surrogate makes the string invalid.
                if first {
                    let pair = line
                        .get(at..at + 6)
                        .is_some_and(|next| next.starts_with(b"\\u") && is_low_surrogate(&next[2..]));
                    sound &= pair;
                    at += if pair { 6 } else { 0 };
                }
            }
        }
    }
}

/// Returns whether the hex digits of an escape are those of a low surrogate.
fn is_low_surrogate(digits: &[u8]) -> bool {
    matches!(digits, [b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..])
}

/// The number of bytes to keep of a string that begins with a tag.
const TAGGED_KEEP: usize = 2 << 10;

/// The minimum number of bytes to cut, so that the replacement is shorter.
const MIN_SAVED: usize = 32;

/// Returns the start of the character at `at`, but no offset before `from`.
fn char_start(line: &[u8], mut at: usize, from: usize) -> usize {
    while at > from && line[at] & 0xc0 == 0x80 {
        at -= 1;
    }
    at
}

/// Returns whether the rest of a string may be cut.
///
/// It must be valid UTF-8 without control characters, and must not contain the tags that distinguish an
/// editor's context from a prompt.
fn may_be_cut(rest: &[u8]) -> bool {
    // Without an early exit the compiler can vectorize the loop.
    let controls = rest.iter().fold(false, |found, byte| found | (*byte < 0x20));
    !controls && is_plain_text(rest)
}

/// Returns whether the rest of a string without control characters may be cut.
fn is_plain_text(rest: &[u8]) -> bool {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<ide_"));
    simdutf8::basic::from_utf8(rest).is_ok() && MARK.find(rest).is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{abridge, abridge_any, abridge_plain};
    use crate::{Entry, Kind};

    fn abridged(line: &str, keep: usize) -> String {
        let mut out = Vec::new();
        abridge(line.as_bytes(), keep, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn long_strings_are_cut_and_keep_their_lines() {
        let long = "0123456789".repeat(10);
        assert_eq!(abridged(&format!(r#"{{"a":"{long}","b":1}}"#), 4), r#"{"a":"0123…100","b":1}"#);
        let lines = r"one\ntwo\nthree\n".repeat(8);
        assert_eq!(
            abridged(&format!(r#"["{lines}"]"#), 5),
            format!(r#"["one\n…{}{}"]"#, lines.len(), r"\n".repeat(23))
        );
        assert_eq!(abridged(r#"{"a":"short","b":[1,"x"]}"#, 5), r#"{"a":"short","b":[1,"x"]}"#);
    }

    #[test]
    fn characters_and_surrogate_pairs_are_not_split() {
        let wide = "é".repeat(50);
        assert_eq!(abridged(&format!(r#"["{wide}"]"#), 5), r#"["éé…100"]"#);
        let pairs = r"\ud83d\ude00".repeat(10);
        assert_eq!(abridged(&format!(r#"["{pairs}"]"#), 5), r#"["\ud83d\ude00…120"]"#);
    }

    #[test]
    fn invalid_strings_are_not_cut() {
        let long = "x".repeat(100);
        for odd in ["\t", "\u{1}", r"\x", r"\u12g4", r"\ud83d ", r"\udc00 ", "<ide_selection>"] {
            let line = format!(r#"{{"a":"{long}{odd}{long}"}}"#);
            assert_eq!(abridged(&line, 10), line, "{odd:?}");
        }
        let torn = format!(r#"{{"a":"{long}"#);
        assert_eq!(abridged(&torn, 10), torn);
        let mut out = Vec::new();
        let bytes = [b"[\"".as_slice(), &[b'x'; 90], b"\xff", &[b'x'; 90], b"\"]"].concat();
        abridge(&bytes, 10, &mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn both_ways_to_abridge_a_line_agree() {
        let long = "x".repeat(300);
        for text in [
            "<task-notification>".to_owned() + &long,
            format!("<a>{}", long.repeat(8)),
            format!("{}\\\\n{long}\\\\n", "é".repeat(9)),
            format!("{long}\\\\\\\\n"),
            format!("{long}\\u000an\\n\\u00e9"),
            format!(r"{long}\n"),
            r"\n".repeat(99),
        ] {
            let line = format!(r#"{{"a":"{text}","b":"{text}"}}"#);
            for keep in (0..200).chain([1030, 2100]) {
                let (mut plain, mut any) = (Vec::new(), Vec::new());
                assert!(abridge_plain(line.as_bytes(), keep, &mut plain), "{line}");
                abridge_any(line.as_bytes(), keep, &mut any);
                assert_eq!(String::from_utf8(plain), String::from_utf8(any), "{keep} {line}");
            }
        }
    }

    proptest! {
        /// Whether strings are examined byte by byte or not does not matter, also in lines that are not JSON.
        #[test]
        fn every_line_is_abridged_as_byte_by_byte(
            line in r#"((\PC|\\n|\\"|\\\\|\\u00e9|\\ud83d\\ude00|\\ud83d|\\q|\t){0,60}|"|\\|:|,){0,9}"#,
            keep in 0usize..60,
        ) {
            let (mut whole, mut any) = (b"before".to_vec(), b"before".to_vec());
            abridge(line.as_bytes(), keep, &mut whole);
            abridge_any(line.as_bytes(), keep, &mut any);
            prop_assert_eq!(String::from_utf8(whole), String::from_utf8(any));
        }

        /// An abridged line is valid if and only if the line is, and has the same members.
        #[test]
        fn validity_is_preserved(
            text in r#"(\PC|\\n|\\"|\\\\|\\u00e9|\\ud83d\\ude00|\\ud83d|\\q|\t|"){0,120}"#,
            keep in 0usize..60,
        ) {
            let line = format!(r#"{{"type":"user","a":"{text}","b":[1,{{"c":"{text}"}}]}}"#);
            let short = abridged(&line, keep);
            let ((before, _), (after, _)) = (Entry::parse(line.as_bytes()), Entry::parse(short.as_bytes()));
            prop_assert_eq!(before.kind(), after.kind());
            let keys = |entry: &Entry| entry.members().map(|(key, _)| key.name().into_owned()).collect::<Vec<_>>();
            if before.kind() != Kind::Bad {
                prop_assert_eq!(keys(&before), keys(&after));
            }
            let text = |entry: &Entry| entry.get("a").and_then(|a| a.as_str()).map(|a| a.lines().count());
            if before.kind() == Kind::User {
                prop_assert_eq!(text(&after), text(&before));
            }
        }
    }
}
