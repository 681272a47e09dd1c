//! Passwords that commands are given, type or print.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::{is_varied_password, near, regex};
use crate::heuristics;

/// Finds the password that a script types: `send "…\\r"` of expect, `sendline("…")`, `tmux send-keys`.
pub(super) fn typed_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = near(text, at.end);
    let rest = if text[at.clone()].ends_with(' ') { rest.trim_start_matches(['"', '\'']) } else { rest };
    let start = at.end + near(text, at.end).len() - rest.len();
    let length = rest.find(['"', '\'', '\\', ' ', '\n', '$', '<', '{'])?;
    let word = &rest[..length];
    // After a prompt for a password: `expect "assword:"; send "…"`.
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(80))..at.start];
    let is_asked = ["assword", "assphrase", "PIN"].iter().any(|prompt| before.contains(prompt));
    let is_real = (8..=64).contains(&length)
        && heuristics::is_password(word)
        && (is_asked
            || heuristics::is_varied(word)
                && word.bytes().any(|byte| byte.is_ascii_uppercase())
                && !word.contains(['/', '=', '.', ':']));
    is_real.then(|| start..start + length)
}

/// Finds the password of `-passin pass:…`, and of similar options of other programs: `/pass:…`.
pub(super) fn pass_source(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = text.as_bytes()[..at.start].last().copied()?;
    if !matches!(before, b' ' | b'/' | b'"' | b'\'') {
        return None;
    }
    let head = &text[text.floor_char_boundary(at.start.saturating_sub(40))..at.start];
    if before == b' ' && !head.trim_end().ends_with(|letter: char| letter.is_ascii_alphanumeric()) {
        return None;
    }
    let is_flag = before == b'/'
        || head.trim_end().rsplit(' ').next().is_some_and(|word| {
            word.starts_with('-') && word.contains("pass") || word == "-k" || word == "-K"
        });
    let rest = &text.as_bytes()[at.end..text.len().min(at.end + 200)];
    let length = rest
        .iter()
        .position(|byte| *byte <= b' ' || *byte >= 0x7F || matches!(byte, b'"' | b'\'' | b'`' | b'\\'));
    let range = at.end..at.end + length.unwrap_or(rest.len());
    (is_flag && heuristics::is_password(&text[range.clone()])).then_some(range)
}

/// Finds a piped password: `echo … | sudo -S`, `echo … | docker login --password-stdin`, `echo user:… |
/// chpasswd`; or one that is written to a file: `echo … > /run/secrets/db`.
pub(super) fn piped(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static PIPE: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:-n\s+|-e\s+|['"]?(?:%s(?:\\n)?)+['"]?\s+)*['"]?([^\s'"|]{5,})['"]?(?:\s+['"]?[^\s'"|]+['"]?)?\)?\s*\|\s*(?:sudo (?:-\S+ )*-S|su |kinit |(?:sudo )?(?:smb)?passwd|sshpass |(?:sudo )?chpasswd|[^\n|]{0,120}?(?:--password-stdin|--passphrase-fd|--pass-stdin|--with-token|docker secret create|secrets? (?:set|put|create|add)|secrets versions add|create secret|env add|luks(?:Open|Format|AddKey)|vault (?:kv put|write|login)|secret-tool store|pass insert|op item|gpg |openssl enc|age |sops |htpasswd|-S\b))"#,
        )
    });
    // Other texts are encoded or written as well, so the value decides.
    static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
        regex(
            r#"^(?:-n\s+|-e\s+|['"]?%s(?:\\n)?['"]?\s+)*['"]?(?:[A-Za-z0-9_.@-]{2,40}:([^\s'"|]{5,})['"]?\s*\|\s*base64|([^\s'"|]{8,})['"]?\s*\|\s*(?:base64|(?:md5|sha[0-9]+)(?:sum)?|shasum|xxd|openssl (?:dgst|sha|base64))\b|([^\s'"|>]{8,})['"]?\s*>\s*[^\s|;&]*(?:passw|/secrets/|[_.]pass\b))"#,
        )
    });
    let rest = near(text, at.end);
    if let Some(written) = WRITTEN.captures(rest)
        && let Some(secret) = written.iter().skip(1).flatten().next()
        && is_varied_password(secret.as_str())
    {
        return Some(at.end + secret.start()..at.end + secret.end());
    }
    let value = PIPE.captures(rest)?;
    let secret = value.get(1)?;
    let range = at.end + secret.start()..at.end + secret.end();
    let range = match secret.as_str().split_once(':') {
        Some((user, _)) if value[0].contains("chpasswd") => range.start + user.len() + 1..range.end,
        _ => range,
    };
    heuristics::is_password(&text[range.clone()]).then_some(range)
}

/// Finds a password in a here-string: `docker login --password-stdin <<< …`.
pub(super) fn here_string(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    static VALUE: LazyLock<Regex> = LazyLock::new(|| regex(r#"^\s?['"]?([^\s'"]{5,})"#));
    const READERS: &[&str] = &[
        "password-stdin",
        "with-token",
        "passphrase-fd",
        "secret put",
        "secret create",
        "passwd",
        "kinit",
        "sudo -S",
        "su -",
        "su ",
        "read -s",
        "-S",
        "cryptsetup",
        "vncpasswd",
        "secret-tool store",
        "secrets create",
    ];
    let before = &text[text.floor_char_boundary(at.start.saturating_sub(160))..at.start];
    let command = before.lines().next_back()?;
    READERS.iter().find(|reader| command.contains(**reader))?;
    let value = VALUE.captures(near(text, at.end))?.get(1)?;
    let mut start = value.start();
    if command.contains("chpasswd") {
        start += value.as_str().split_once(':').map_or(0, |(user, _)| user.len() + 1);
    }
    let range = at.end + start..at.end + value.end();
    heuristics::is_password(&text[range.clone()]).then_some(range)
}
