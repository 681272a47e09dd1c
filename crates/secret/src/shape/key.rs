//! Private keys, and secret keys beside their ids.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{KEY_REACH, near, reach, regex};
use crate::alphabet::Alphabet;
use crate::form::begins_word;
use crate::heuristics;

/// Finds a PEM private key: `-----BEGIN … PRIVATE KEY-----`, base64, `-----END … PRIVATE KEY-----`.
///
/// The body may be escaped, quoted, or have line numbers. A truncated key ends with its last line.
pub(super) fn private_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        regex(r"^-----BEGIN (?:(?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?|OpenVPN Static key V1)-----")
    });
    static BODY: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:\s|\\[nrt]|["'`,+|>→-]|[0-9]{1,6}(?:→|\t|: )|[A-Za-z][A-Za-z-]*: [^\n\\]*|[A-Za-z0-9+/=]{1,})+"#,
        )
    });
    let rest = reach(text, at.start);
    let head = HEAD.find(rest)?.end();
    // Any further `-----` ends the key. This keeps the cost of many headers linear.
    let rule = rest[head..].find("-----").map(|rule| head + rule);
    let closed = rule.filter(|rule| rest[*rule..].starts_with("-----END ")).and_then(|rule| {
        let tail = &rest[rule + 9..];
        let end = tail.find("-----").filter(|end| *end < 50)?;
        Some(rule + 9 + end + 5)
    });
    let open = || Some(head + BODY.find(&rest[head..rule.unwrap_or(rest.len())])?.end());
    let end = closed.or_else(open)?;
    let runs = rest.as_bytes()[head..end].split(|byte| !Alphabet::Base64.has(*byte) || *byte == b'=');
    let body: usize = runs
        .filter(|run| run.len() >= 16)
        .map(|run| if heuristics::distinct(run) >= 8 { run.len() } else { 0 })
        .sum();
    (body >= 48).then(|| at.start..at.start + end)
}

/// Finds the last lines of a private key whose first lines were not printed: base64 before `-----END`.
pub(super) fn private_key_end(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static TAIL: LazyLock<Regex> =
        LazyLock::new(|| regex(r"^-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"));
    TAIL.find(near(text, at.start))?;
    let bytes = &text.as_bytes()[at.start.saturating_sub(KEY_REACH)..at.start];
    let is_part = |byte: &u8| Alphabet::Base64.has(*byte) || byte.is_ascii_whitespace();
    let length = bytes.iter().rev().take_while(|byte| is_part(byte)).count();
    let start = at.start - length;
    // The key begins with its own header.
    if text[..start].ends_with('-') || length == bytes.len() && start > 0 {
        return None;
    }
    let body = text[start..at.start].trim_start();
    let is_key = body.lines().next().is_some_and(|line| line.len() >= 40)
        && heuristics::is_random(body.lines().next().unwrap_or_default().as_bytes());
    is_key.then(|| at.start - body.len()..at.start)
}

/// Finds the private members of a JSON web key: `"kty": "RSA", …, "d": "…"`.
pub(super) fn json_web_key(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static MEMBER: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"["'](?:d|p|q|dp|dq|qi|k)\\*["']\s*:\s*\\*["']([A-Za-z0-9_-]{20,})"#));
    let from = text.floor_char_boundary(at.start.saturating_sub(KEY_REACH));
    let start = text[from..at.start].rfind('{').map_or(from, |brace| from + brace);
    let end = text.floor_char_boundary(at.end + KEY_REACH);
    // Another key begins with its own brace.
    let end = text[at.end..end].find(['{', '}']).map_or(end, |brace| at.end + brace);
    for member in MEMBER.captures_iter(&text[start..end]).filter_map(|found| found.get(1)) {
        if heuristics::distinct(member.as_str().as_bytes()) >= 8 {
            found(start + member.start()..start + member.end());
        }
    }
}

/// Finds the secret access key beside the id of an AWS key: 40 characters of base64.
pub(super) fn aws_secret(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    const LENGTH: usize = 40;
    const ID: usize = 20;
    let bytes = text.as_bytes();
    let id = bytes.get(at.start..at.start + ID)?;
    if !begins_word(bytes, at.start) || Alphabet::Upper.run(id) != ID {
        return None;
    }
    let end = bytes.len().min(at.start + ID + 160);
    let mut from = at.start + ID;
    while from < end {
        let length = Alphabet::Base64.run(&bytes[from..bytes.len().min(from + LENGTH + 1)]);
        let word = &bytes[from..from + length];
        let has = |kind: fn(&u8) -> bool| word.iter().any(kind);
        if length == LENGTH
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
            && has(u8::is_ascii_digit)
            && heuristics::is_random(word)
        {
            return Some(from..from + LENGTH);
        }
        from += length.max(1);
    }
    None
}
