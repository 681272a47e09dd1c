//! Lines with their long texts cut, for those who need to know what stands where and not every word.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr2};

/// How a line looks with its long strings cut.
///
/// A string that is longer than `keep` bytes ends after about as many, with `…`, its length, and as many line breaks
/// as were cut. So a line keeps its members, its short values, the beginnings of its long ones, and how many lines
/// those have; and two strings that are the same stay so. What is odd about a line (bytes that are no text, escapes
/// that are none) is not cut: an abridged line is sound if and only if the line is.
///
/// A line that needs no cut is appended as it stands.
pub fn abridge(line: &[u8], keep: usize, out: &mut Vec<u8>) {
    let mut done = 0;
    let mut at = 0;
    while let Some(quote) = memchr(b'"', &line[at..]) {
        let start = at + quote + 1;
        let Some(text) = Text::of(line, start, keep) else { break };
        if let Some(cut) = text.cut {
            out.extend_from_slice(&line[done..cut]);
            let length = (text.end - start).to_string();
            // The last line has an end where it had one.
            let (before, after) = if text.ends_line { (&*length, "") } else { ("", &*length) };
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
struct Text {
    /// Where its closing quote stands.
    end: usize,
    /// Where it may be cut, if it is long and sound.
    cut: Option<usize>,
    /// How many line breaks stand behind the cut.
    breaks: usize,
    /// Whether it ends with one.
    ends_line: bool,
}

impl Text {
    /// The string that begins at `start`; `None` if it does not end.
    fn of(line: &[u8], start: usize, keep: usize) -> Option<Self> {
        // What a machine put between tags is told by what stands in them.
        let limit = start + if line.get(start) == Some(&b'<') { keep.max(TAGGED) } else { keep };
        let (mut at, mut cut, mut breaks, mut sound) = (start, None, 0, true);
        let mut ends_line = false;
        loop {
            let hit = at + memchr2(b'"', b'\\', &line[at..])?;
            ends_line &= hit == at;
            if cut.is_none() && hit > limit {
                cut = Some(char_start(line, limit.max(at), at));
            }
            if line[hit] == b'"' {
                let cut = cut.filter(|cut| sound && hit - cut > SAVES && is_plain(&line[*cut..hit]));
                return Some(Self { end: hit, cut, breaks, ends_line });
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
                sound &= first || !is_second(&line[at..at + 2]);
                at += 4;
                // Halves of a pair stay together; half of one that stands alone is odd.
                if first {
                    let pair = line
                        .get(at..at + 6)
                        .is_some_and(|next| next.starts_with(b"\\u") && is_second(&next[2..]));
                    sound &= pair;
                    at += if pair { 6 } else { 0 };
                }
            }
        }
    }
}

/// Whether the digits of an escape make it the second half of a pair.
fn is_second(digits: &[u8]) -> bool {
    matches!(digits, [b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..])
}

/// So much is kept of a text that begins with a tag.
const TAGGED: usize = 2 << 10;

/// A cut must save more than what is put in its place.
const SAVES: usize = 32;

/// The start of the character at `at`, but not before `from`.
fn char_start(line: &[u8], mut at: usize, from: usize) -> usize {
    while at > from && line[at] & 0xc0 == 0x80 {
        at -= 1;
    }
    at
}

/// Whether the rest of a string may go unsaid: it is text, without control characters, and holds none of the marks
/// by which an editor's context is told from a prompt.
fn is_plain(rest: &[u8]) -> bool {
    static MARK: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("<ide_"));
    // Without an early exit, so that the compiler makes vectors of it.
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
    fn characters_and_pairs_stay_whole() {
        let wide = "é".repeat(50);
        assert_eq!(abridged(&format!(r#"["{wide}"]"#), 5), r#"["éé…100"]"#);
        let pairs = r"\ud83d\ude00".repeat(10);
        assert_eq!(abridged(&format!(r#"["{pairs}"]"#), 5), r#"["\ud83d\ude00…120"]"#);
    }

    #[test]
    fn what_is_odd_is_not_cut() {
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
        /// An abridged line is sound if the line is, and has the same members.
        #[test]
        fn soundness_is_kept(
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
