//! Tokens whose parts have a certain form.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use regex::Regex;

use super::{reach, regex};
use crate::alphabet::Alphabet;
use crate::form::begins_word;
use crate::heuristics;

/// Finds a JWT: three or five parts of base64, the first of which is JSON with an algorithm.
pub(super) fn jwt(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^(eyJ[A-Za-z0-9_-]{10,})\.([A-Za-z0-9_-]*)\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]+){0,2}")
    });
    if !begins_word(text.as_bytes(), at.start) || !text[at.clone()].starts_with("eyJ") {
        return None;
    }
    let found = TOKEN.captures(reach(text, at.start))?;
    let header = URL_SAFE_NO_PAD.decode(&found[1]).ok()?;
    let names = |bytes: &[u8], name: &str| bytes.windows(name.len()).any(|part| part == name.as_bytes());
    names(&header, "\"alg\"").then(|| at.start..at.start + found[0].len())
}

/// Finds 52 characters of base32 on a line that mentions Azure or a PAT.
pub(super) fn azure_token(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let end = bytes.len().min(at.end + 200);
    let is_digit = |byte: &u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    let mut from = at.end;
    while from < end && bytes[from] != b'\n' {
        if !is_digit(&bytes[from]) {
            from += 1;
            continue;
        }
        let length = bytes[from..].iter().take(64).take_while(|byte| is_digit(byte)).count();
        let alone = begins_word(bytes, from)
            && !bytes.get(from + length).is_some_and(|byte| Alphabet::Word.has(*byte));
        if length == 52 && alone && heuristics::is_random(&bytes[from..from + 52]) {
            return Some(from..from + 52);
        }
        from += length;
    }
    None
}

/// Returns whether the first part of a Discord token is a number.
pub(super) fn begins_with_number(token: &str) -> bool {
    let number = token.split('.').next().and_then(|first| URL_SAFE_NO_PAD.decode(first).ok());
    number.is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

/// Returns the Discord token whose first part is a run of base64, whatever surrounds it. Its parts are
/// random, and have the lengths of those of a token.
pub(crate) fn discord_token(text: &str, run: &Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if !(24..=28).contains(&run.len()) || !matches!(bytes[run.start], b'M' | b'N' | b'O') {
        return None;
    }
    let middle = bytes[run.end..].strip_prefix(b".")?;
    let n_middle = Alphabet::Url.run(&middle[..middle.len().min(7)]);
    let last = middle[n_middle..].strip_prefix(b".")?;
    let n_last = Alphabet::Url.run(&last[..last.len().min(64)]);
    let (first, last) = (&bytes[run.clone()], &last[..n_last]);
    let is_mixed = |part: &[u8]| {
        part.iter().any(u8::is_ascii_digit) && part.iter().any(u8::is_ascii_uppercase) && {
            heuristics::entropy(part) >= 3.4 && !heuristics::is_wordy(part)
        }
    };
    let is_token = n_middle == 6 && (27..=38).contains(&n_last) && is_mixed(last);
    (is_token && is_mixed(first)).then(|| run.start..run.end + 2 + n_middle + n_last)
}
