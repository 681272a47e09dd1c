//! Tokens that are recognized by prefix, character set and length.

use crate::alphabet::Alphabet;
use crate::heuristics;

/// The form of a token.
pub(crate) struct TokenForm {
    pub(crate) kind: &'static str,
    pub(crate) description: &'static str,
    pub(crate) prefix: &'static str,
    alphabet: Alphabet,
    /// The minimum and maximum number of characters after the prefix.
    length: (usize, usize),
}

impl TokenForm {
    pub(crate) const fn new(
        kind: &'static str,
        what: &'static str,
        start: &'static str,
        alphabet: Alphabet,
        length: (usize, usize),
    ) -> Self {
        Self { kind, description: what, prefix: start, alphabet, length }
    }

    /// Returns the end of the token of this form that begins at `at`.
    pub(crate) fn end(&self, text: &[u8], at: usize) -> Option<usize> {
        let rest = text[at..].strip_prefix(self.prefix.as_bytes())?;
        if !self.may_begin(text, at) {
            return None;
        }
        // More is too long for a token. A text may be one long word with very many prefixes.
        let length = self.alphabet.run(&rest[..rest.len().min(self.length.1 + 4)]);
        if length < self.length.0 {
            return Some(at + self.prefix.len() + self.wrapped_length(rest, length)?);
        }
        // A full stop at the end of a sentence is not part of the token.
        let length = length - rest[..length].iter().rev().take_while(|byte| **byte == b'.').count();
        if !(self.length.0..=self.length.1).contains(&length) {
            return None;
        }
        // The word continues after the characters of the set, so it is not a token. Two underscores separate
        // the parts of a name: `mcp__ghp_…__get`.
        let is_separated = rest[length..].starts_with(b"__");
        let continues = |next: &u8| *next == b'_' || next.is_ascii_alphanumeric();
        if !is_separated && rest.get(length).is_some_and(continues) {
            return None;
        }
        self.looks_real(&rest[..length]).then_some(at + self.prefix.len() + length)
    }

    /// Returns whether a token of this form may begin here. A short prefix inside a longer word does not
    /// count: `task-…` contains `sk-`. A prefix of several characters with a separator, or of a token in
    /// capitals, may follow a joined name: `fix-ghp_…`, `claude-AKIA…`.
    fn may_begin(&self, text: &[u8], at: usize) -> bool {
        let is_joined = || at > 0 && matches!(text[at - 1], b'-' | b'_');
        let is_set_off = || self.prefix.ends_with(['_', '-', '.']) || self.alphabet == Alphabet::Upper;
        let is_distinct = || self.prefix.len() >= 4 && is_set_off();
        self.prefix.len() > 8 || begins_word(text, at) || is_joined() && is_distinct()
    }

    /// Returns the length of a token that continues on the following lines, with the line breaks. Its first
    /// line has `length` characters, which are too few for a whole token.
    fn wrapped_length(&self, text: &[u8], length: usize) -> Option<usize> {
        if length < MIN_WRAPPED {
            return None;
        }
        let mut token = text[..length].to_vec();
        let mut end = length;
        // A token is on few lines, which are indented little.
        for _ in 0..4 {
            let rest = &text[end..];
            let line = rest.strip_prefix(b"\\").unwrap_or(rest);
            let line = line.strip_prefix(b"\r").unwrap_or(line).strip_prefix(b"\n")?;
            let indent = line.iter().take(40).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let part = self.alphabet.run(&line[indent..]);
            if part == 0 {
                return None;
            }
            token.extend_from_slice(&line[indent..indent + part]);
            end = text.len() - line.len() + indent + part;
            if token.len() >= self.length.0 {
                let ends_word = !text.get(end).is_some_and(|next| Alphabet::Word.has(*next));
                let is_token = token.len() <= self.length.1 && ends_word && self.looks_real(&token);
                return is_token.then_some(end);
            }
        }
        None
    }

    /// Returns whether a token looks real: names have no digits, unless they are random letters, and
    /// placeholders repeat characters.
    fn looks_real(&self, token: &[u8]) -> bool {
        if has_checksum(token, self.prefix) {
            return true;
        }
        let is_mixed = token.iter().any(u8::is_ascii_digit)
            || heuristics::is_scrambled(token)
            || self.alphabet == Alphabet::Upper && heuristics::is_scrambled_upper(token);
        let few = if token.len() < 12 { 5 } else { 8 };
        let plain = token.iter().filter(|byte| !byte.is_ascii_alphanumeric()).count();
        is_mixed && heuristics::distinct(token) >= few && plain * 4 <= token.len() && !is_name(token)
    }
}

/// The minimum number of characters of a token before its first line break.
const MIN_WRAPPED: usize = 4;

/// Returns whether a word may begin here: at a word boundary, or after an escape or a terminal colour.
pub(crate) fn begins_word(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1).map(|before| text[before]) else { return true };
    if !Alphabet::Url.has(before) {
        return true;
    }
    let head = &text[..at];
    match before {
        // An escape inside a string: `\nghp_…`.
        b'n' | b'r' | b't' if head.ends_with(&[b'\\', before]) => true,
        // A terminal colour: `ESC [32mghp_…`.
        b'm' => {
            let codes =
                head[..at - 1].iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';');
            let codes = codes.count();
            head[..at - 1 - codes].ends_with(b"\x1b[")
        }
        // A percent-encoded character: `%3Dghp_…`.
        _ => at >= 3 && head[at - 3] == b'%' && head[at - 2..].iter().all(u8::is_ascii_hexdigit),
    }
}

/// Returns whether the token consists of words joined by `_`, `-` or `.`, like names of files and functions.
fn is_name(token: &[u8]) -> bool {
    let mut parts = token.split(|byte| matches!(byte, b'_' | b'-' | b'.'));
    let word = |part: &[u8]| {
        let rest = &part[usize::from(!part.is_empty())..];
        rest.iter().all(u8::is_ascii_lowercase) || part.iter().all(u8::is_ascii_digit)
    };
    parts.clone().count() >= 3 && parts.all(word) || heuristics::is_wordy(token)
}

/// Returns whether the token ends in the checksum that GitHub and npm use. Such a token is always real.
fn has_checksum(token: &[u8], start: &str) -> bool {
    if token.len() != 36 || !matches!(start, "ghp_" | "gho_" | "ghu_" | "ghs_" | "ghr_" | "npm_") {
        return false;
    }
    let (body, sum) = token.split_at(30);
    let mut value = 0_u64;
    for byte in sum {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'A'..=b'Z' => byte - b'A' + 10,
            b'a'..=b'z' => byte - b'a' + 36,
            _ => return false,
        };
        value = value * 62 + u64::from(digit);
    }
    value == u64::from(crc32(body))
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn crc32_matches_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
