//! Personal data: e-mail addresses, and user names in home directories.

use std::ops::Range;

use crate::alphabet::Alphabet;

/// Returns the e-mail address around the `@` at `at`.
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
        && !is_not_personal(name, host)
        // `git@github.com:owner/name` is not a mailbox.
        && name != "git"
        && name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
        // Package versions, image sizes and file references: `left-pad@1.2.js`, `icon@2x.png`, `@AGENTS.md`.
        && !domain.trim_start_matches('v').starts_with(|letter: char| letter.is_ascii_digit())
        && !FILE_EXTENSIONS.contains(&top);
    real.then(|| start..at.end + host.len())
}

/// File extensions that are not used as top-level domains in practice.
const FILE_EXTENSIONS: &[&str] = &[
    "css", "go", "html", "jpg", "js", "json", "linux", "lock", "md", "png", "py", "rs", "service", "svg",
    "toml", "ts", "txt", "yaml", "yml",
];

/// Returns whether an address does not belong to a person: examples and no-reply addresses.
fn is_not_personal(name: &str, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let example = ["example.com", "example.org", "example.net", "test.com", "domain.com", "email.com"];
    example.iter().any(|domain| host == *domain || host.ends_with(&format!(".{domain}")))
        || [".example", ".test", ".invalid", ".localhost", ".local"].iter().any(|top| host.ends_with(top))
        || name.eq_ignore_ascii_case("noreply")
        || name.eq_ignore_ascii_case("no-reply")
}

/// Returns the user name after a home directory prefix such as `/Users/` or `/home/`, which is at `at`.
pub(crate) fn user(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let slug = bytes[at.start] == b'-';
    let part = |byte: u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.') || byte >= 0x80 || (byte == b'-' && !slug)
    };
    let length = bytes[at.end..].iter().take_while(|byte| part(**byte)).count();
    let name = text[at.end..at.end + length].trim_end_matches('.');
    // System accounts and names from examples.
    let generic_names = [
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
        && !generic_names.contains(&name.to_ascii_lowercase().as_str());
    real.then(|| at.end..at.end + name.len())
}

/// Prefixes of home directories on all systems, and in the project folder names of Claude Code.
pub(crate) static HOMES: &[&str] = &["/users/", "/home/", "\\users\\", "\\\\users\\\\", "-users-", "-home-"];
