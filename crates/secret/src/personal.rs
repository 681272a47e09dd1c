//! What tells of a person: addresses of mail, and the names of people in the paths of their homes.

use std::ops::Range;

use crate::alphabet::Alphabet;

/// The address around the `@` at `at`.
pub(crate) fn email(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let local = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-');
    let start = at.start
        - bytes[at.start.saturating_sub(64)..at.start].iter().rev().take_while(|byte| local(**byte)).count();
    let length = Alphabet::Dotted.run(&bytes[at.end..bytes.len().min(at.end + 255)]);
    let host = text[at.end..at.end + length].trim_end_matches(['.', '-', '_']);
    let name = text[start..at.start].trim_start_matches('.');
    let start = at.start - name.len();
    let (domain, top) = host.rsplit_once('.')?;
    let real = !name.is_empty()
        && !domain.is_empty()
        && top.len() >= 2
        && top.bytes().all(|byte| byte.is_ascii_alphabetic())
        && host.split('.').all(|part| !part.is_empty() && !part.starts_with('-') && !part.contains('_'))
        && !is_nobody(name, host)
        // `git@github.com:owner/name` and `user@host.tld:path` name no person's mailbox.
        && name != "git"
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        // Versions of packages, files with two sizes, files that are mentioned: `left-pad@1.2.js`, `icon@2x.png`, `@AGENTS.md`.
        && !domain.trim_start_matches('v').starts_with(|letter: char| letter.is_ascii_digit())
        && !FILES.contains(&top);
    real.then(|| start..at.end + host.len())
}

/// What files end with, and hosts do not.
const FILES: &[&str] = &[
    "css", "go", "html", "jpg", "js", "json", "linux", "lock", "md", "png", "py", "rs", "service", "svg",
    "toml", "ts", "txt", "yaml", "yml",
];

/// Addresses that are nobody's: those of examples and of machines.
fn is_nobody(name: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let example = ["example.com", "example.org", "example.net", "test.com", "domain.com", "email.com"];
    example.iter().any(|nobody| host == *nobody || host.ends_with(&format!(".{nobody}")))
        || [".example", ".test", ".invalid", ".localhost", ".local"].iter().any(|top| host.ends_with(top))
        || name.eq_ignore_ascii_case("noreply")
        || name.eq_ignore_ascii_case("no-reply")
}

/// The name of a person in the path of a home; `at` is `/Users/`, `/home/` or the like.
pub(crate) fn user(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let slug = bytes[at.start] == b'-';
    let part = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || byte >= 0x80 || (byte == b'-' && !slug)
    };
    let length = bytes[at.end..].iter().take_while(|byte| part(**byte)).count();
    let name = text[at.end..at.end + length].trim_end_matches('.');
    // Nobody's home: what a path begins with on every machine, and names in examples.
    let nobody = [
        "shared",
        "public",
        "default",
        "user",
        "username",
        "you",
        "me",
        "runner",
        "node",
        "ubuntu",
        "vscode",
        "linuxbrew",
        "app",
        "root",
    ];
    let real = !name.is_empty()
        && (at.start == 0
            || !bytes[at.start - 1].is_ascii_alphanumeric()
            || slug
            || bytes[at.start - 1] == b':'
            || bytes[at.start] == b'\\')
        && !nobody.contains(&name.to_ascii_lowercase().as_str());
    real.then(|| at.end..at.end + name.len())
}

/// Where the homes of people are, on every system, and as Claude Code names the folders of projects.
pub(crate) static HOMES: &[&str] = &["/users/", "/home/", "\\users\\", "\\\\users\\\\", "-users-", "-home-"];
