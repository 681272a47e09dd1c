//! Secrets in URLs, headers, cookies and forms.

use std::ops::Range;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use regex::Regex;

use super::{SHORT_REACH, is_varied_password, near, regex};
use crate::alphabet::Alphabet;
use crate::{assignment, heuristics};

/// Finds the password of `scheme://user:password@host`, or the token of `scheme://token@host`.
pub(super) fn address(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if at.start == 0 || !bytes[at.start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let rest = &bytes[at.end..bytes.len().min(at.end + 600)];
    let stop = |byte: u8| {
        byte <= b' ' || byte >= 0x7F || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\' | b'|')
    };
    // An unencoded password may contain `?` or `#`. A path before the `@` means that there is no password.
    let until =
        |ends: &[u8]| rest.iter().position(|byte| stop(*byte) || ends.contains(byte)).unwrap_or(rest.len());
    let login = |length: usize| Some((length, rest[..length].iter().rposition(|byte| *byte == b'@')?));
    let (length, login) = login(until(b"/?#")).or_else(|| login(until(b"/")))?;
    let host = &rest[login + 1..length];
    if !host.first().is_some_and(u8::is_ascii_alphanumeric) {
        return None;
    }
    let (user, secret) = match rest[..login].iter().position(|byte| *byte == b':') {
        Some(colon) => (&text[at.end..at.end + colon], at.end + colon + 1..at.end + login),
        None => ("", at.end..at.end + login),
    };
    let password = &text[secret.clone()];
    // Several asterisks mask a password.
    let has_signs =
        password.bytes().any(|byte| matches!(byte, b'$' | b'{' | b'}' | b'(' | b')' | b'[' | b']' | b','));
    let plain = !password.contains("**") && (!has_signs || heuristics::is_generated(password));
    let real = if user.is_empty() && secret.start == at.end {
        heuristics::is_random(password.as_bytes()) && password.len() >= 20
    } else {
        // A short word may be an example: `ada:loom`.
        let is_word =
            heuristics::is_wordy(password.as_bytes()) && !password.bytes().any(|byte| byte.is_ascii_digit());
        let least = if is_word { 8 } else { 5 };
        password.len() >= least && password != user && !heuristics::is_dummy(password)
    };
    (plain && real).then_some(secret)
}

/// Finds the random token after `Bearer`.
pub(super) fn bearer(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let token = Alphabet::Header.run(&text.as_bytes()[at.end..]);
    let range = at.end..at.end + token;
    let token = text[range.clone()].trim_end_matches('.');
    (token.len() >= 20 && heuristics::is_random(token.as_bytes()) && !heuristics::is_placeholder_value(token))
        .then(|| range.start..range.start + token.len())
}

/// Finds the base64 of `user:password` after `Basic`.
pub(super) fn basic(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let token = Alphabet::Base64.run(&text.as_bytes()[at.end..]);
    let range = at.end..at.end + token;
    if token < 8 {
        return None;
    }
    let decoded = STANDARD.decode(&text[range.clone()]).ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    let plain = decoded.iter().all(|byte| (b' '..0x7F).contains(byte));
    (plain && (!user.is_empty() || !password.is_empty()) && !heuristics::is_dummy(password)).then_some(range)
}

/// The names of attributes of a cookie.
const COOKIE_ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite", "priority"];

/// Finds cookies in `Cookie: a=…; b=…`, `Set-Cookie: a=…; Path=/` and `curl -b a=…`: random values, and
/// passwords in session cookies.
pub(super) fn cookies(text: &str, at: Range<usize>, found: &mut dyn FnMut(Range<usize>)) {
    static HEAD: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"(?i)^(?:cookies?(?:\\*["'])?\]?(?:\s*[:=,]\s*|\s+)[\[]?| -b )(?:\\*["'])?"#)
    });
    let rest = near(text, at.start);
    let Some(head) = HEAD.find(rest) else { return };
    // After a flag, the value follows a space; in prose, a space means nothing.
    let by_space = !head.as_str().contains([':', '=', ',']);
    let is_flag = match head.as_str().starts_with(' ') {
        true => {
            let from = text.floor_char_boundary(at.start.saturating_sub(SHORT_REACH));
            text[from..=at.start].lines().next_back().is_some_and(|line| line.contains("curl "))
        }
        false => text[..at.start].ends_with("--"),
    };
    if by_space && !is_flag {
        return;
    }
    cookie_dictionary(text, at.start + head.end(), found);
    let line = rest[head.end()..].split(['\n', '"', '\'', '\\']).next().unwrap_or_default();
    let mut from = at.start + head.end();
    for part in line.split(';') {
        let place = from;
        from += part.len() + 1;
        let Some((name, value)) = part.split_once('=') else { continue };
        let start = place + name.len() + 1;
        let value = value.trim_end();
        let lower = name.trim().to_ascii_lowercase();
        let is_attribute = COOKIE_ATTRIBUTES.contains(&&*lower);
        let is_session =
            ["sess", "sid", "auth", "token", "jwt", "login", "remember", "secret", "cookie", "csrf"]
                .iter()
                .any(|word| lower.contains(word));
        let bytes = value.as_bytes();
        let plain =
            bytes.iter().all(|byte| (b'!'..0x7F).contains(byte)) && !value.contains(['$', '{', '<', '(']);
        let real = value.len() >= 16 && heuristics::is_random(bytes)
            || is_session
                && value.len() >= 8
                && heuristics::is_password(value)
                && bytes.iter().any(u8::is_ascii_digit);
        if !is_attribute
            && plain
            && real
            && !heuristics::is_placeholder_value(value)
            && !lower.starts_with("_ga")
        {
            found(start..start + value.len());
        }
    }
}

/// Finds the random values of a dictionary of cookies: `cookies={'sessionid': '…'}`.
pub(super) fn cookie_dictionary(text: &str, start: usize, found: &mut dyn FnMut(Range<usize>)) {
    static PAIR: LazyLock<Regex> = LazyLock::new(|| {
        regex(r#"["']([A-Za-z0-9_.-]{1,64})\\*["']\s*(?::|=>)\s*\\*["']([!#-&(-\[\]-~]{16,})"#)
    });
    let Some(rest) = near(text, start).strip_prefix('{') else { return };
    let body = rest.split(['}', '\n']).next().unwrap_or_default();
    for (name, value) in PAIR.captures_iter(body).filter_map(|pair| pair.get(1).zip(pair.get(2))) {
        let is_attribute = COOKIE_ATTRIBUTES.contains(&&*name.as_str().to_ascii_lowercase());
        if !is_attribute && heuristics::is_random(value.as_str().as_bytes()) {
            found(start + 1 + value.start()..start + 1 + value.end());
        }
    }
}

/// Finds a key in a URL: `?key=…` and similar.
pub(super) fn url_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let length = Alphabet::Header.run(&text.as_bytes()[at.end..text.len().min(at.end + 600)]);
    let value = text[at.end..at.end + length].trim_end_matches('.');
    // A short code or session may identify a page; a key is long.
    let least = if text[at.start + 1..at.end].eq_ignore_ascii_case("key=") { 16 } else { 20 };
    let real = value.len() >= least
        && heuristics::is_random(value.as_bytes())
        && !heuristics::is_placeholder_value(value);
    let is_uuid = value.len() == 36 && Alphabet::Hyphened.run(value.as_bytes()) == 36;
    (real && !is_uuid).then(|| at.end..at.end + value.len())
}

/// Finds a random value with the name of a cookie: `{"name": "session", "value": "…"}`, or of an account key.
pub(super) fn named_value(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> =
        LazyLock::new(|| regex(r#"^"?value\\*"\s*:\s*\\*"([A-Za-z0-9_.%+/=~-]{16,600})\\*""#));
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"(?i)"(?:name\\*"\s*:\s*\\*"[^"]*(?:sess|sid\b|jwt|cookie|auth)[^"]*|keyName\\*"\s*:\s*\\*"key[12])\\*"[^{}]*$"#,
        )
    });
    let value = VALUE.captures(near(text, at.start))?.get(1)?;
    if !heuristics::is_random(value.as_str().as_bytes()) {
        return None;
    }
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(200))..at.start];
    NAME.is_match(before).then(|| at.start + value.start()..at.start + value.end())
}

/// Finds the value of `<input type="password" value="…">`, and of other fields and `<meta>` elements that are
/// named like a secret.
pub(super) fn form_field(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"(?i)\b(type|name|id|value|defaultValue|content)=(?:"([^"]*)"|'([^']*)'|\{?["'`]?([^\s"'>]+))"#,
        )
    });
    let rest = near(text, at.start);
    let tag = &rest[..rest.find('>').unwrap_or(rest.len())];
    let (mut is_secret, mut value) = (false, None);
    for found in ATTRIBUTE.captures_iter(tag) {
        let text = found.iter().skip(2).flatten().next()?;
        match &*found[1].to_ascii_lowercase() {
            "value" | "defaultvalue" | "content" => value = Some(text),
            "type" => is_secret |= text.as_str().eq_ignore_ascii_case("password"),
            _ => {
                let name = text.as_str().to_ascii_lowercase().replace('-', "_");
                is_secret |= [
                    "password",
                    "passwd",
                    "secret",
                    "api_key",
                    "apikey",
                    "api_token",
                    "access_token",
                    "auth_token",
                ]
                .iter()
                .any(|end| name.ends_with(end));
            }
        }
    }
    let value = value.filter(|_| is_secret)?;
    let is_real = value.len() >= 8
        && (is_varied_password(value.as_str()) || assignment::is_phrase(value.as_str(), false));
    is_real.then(|| at.start + value.start()..at.start + value.end())
}
