//! Truncates the long strings of a line, for callers that need the structure but not all the text.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// The beginning of the notification of a background task, and the number of bytes that are kept of one.
const NOTIFICATION: &[u8] = b"<task-notification";
const NOTIFICATION_KEEP: usize = 1 << 10;

/// Appends `line` to `out` with its long strings truncated.
///
/// A string longer than `keep` bytes is cut after about that many (a notification of a background task after
/// 1,024), and the rest is replaced by `…`, the
/// length of the string, and as many line breaks as were cut. The line keeps its members, its short values,
/// the beginnings of its long values and their line counts; equal strings stay equal.
///
/// Strings with invalid escapes, control characters or invalid UTF-8 are not cut, so the abridged line is
/// valid JSON if and only if the line is. A line without long strings is appended unchanged.
pub fn abridge(line: &[u8], keep: usize, out: &mut Vec<u8>) {
    let mut done = 0;
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &line[at..]) {
        let start = at + quote + 1;
        // The outcome of a background task follows its ids and paths.
        let keep = if line[start..].starts_with(NOTIFICATION) { keep.max(NOTIFICATION_KEEP) } else { keep };
        let Some(text) = ScannedString::of(line, start, keep) else { break };
        if let Some(cut) = text.cut {
            out.extend_from_slice(&line[done..cut]);
            let length = (text.end - start).to_string();
            // If the string ended with a line break, the replacement does too.
            let (before, after) = if text.ends_with_break { (&*length, "") } else { ("", &*length) };
            out.extend_from_slice("…".as_bytes());
            out.extend_from_slice(before.as_bytes());
            for _ in 0..text.breaks {
                out.extend_from_slice(b"\\n");
            }
            out.extend_from_slice(after.as_bytes());
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
        // Text between tags is generated, and its content is needed to classify it.
        let limit = start + if line.get(start) == Some(&b'<') { keep.max(TAGGED_KEEP) } else { keep };
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
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<ide_"));
    // Without an early exit the compiler can vectorize the loop.
    let controls = rest.iter().fold(false, |found, byte| found | (*byte < 0x20));
    !controls && simdutf8::basic::from_utf8(rest).is_ok() && MARK.find(rest).is_none()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::abridge;
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

    proptest! {
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
