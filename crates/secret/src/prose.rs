//! Secrets in sentences: "the password is …", "use the API key …".

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::heuristics;

/// Words after which a sentence may contain a secret.
pub(crate) const WORDS: &[&str] = &[
    "password",
    "passphrase",
    "passcode",
    "passwort",
    "kennwort",
    "api key",
    "access key",
    "token",
    "secret",
    "key is",
    "credentials",
    "log in as",
    "log in with",
    "login as",
];

/// The words between the name and the value, and the value with the marks around it.
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^( key| token)?(?: (?:for|of) [^\s:=]{1,40}(?: [^\s:=]{1,40})?)?(?:( (?:is|was|ist|to|as|will be|should be|is now|is still):?)|( ?[:=])|) ?(?:\\*["'`]|\*\*|“|‘|«)?([!-~]{8,200})"#;
    #[expect(clippy::unwrap_used, reason = "the pattern is ours, and every test of this module compiles it")]
    Regex::new(pattern).unwrap()
});

/// A user with a password, after words that announce them.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    let pattern =
        r#"^:? (?:\\*["'`])?[A-Za-z0-9_.@-]{2,40}(?:\\*["'`])?(?: ?/ ?|:)(?:\\*["'`])?([!-~]{8,100})"#;
    #[expect(clippy::unwrap_used, reason = "the pattern is ours, and every test of this module compiles it")]
    Regex::new(pattern).unwrap()
});

/// The maximum number of bytes examined after a word.
const REACH: usize = 320;

/// Returns the value that a sentence names as the secret after the word at `at`.
///
/// After "password" it may be one that a person made up; after other words, only a long random value counts.
pub(crate) fn find(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[at.end..text.floor_char_boundary(at.end + REACH)];
    if !rest.starts_with([' ', ':', '=']) {
        return None;
    }
    let word = text[at.clone()].to_ascii_lowercase();
    let is_login = word.starts_with("cred") || word.starts_with("log");
    let found = if is_login { LOGIN.captures(rest)? } else { VALUE.captures(rest)? };
    let value = found.get(if is_login { 1 } else { 4 })?;
    let secret = value.as_str();
    let length = secret.find(['"', '\'', '`', '\\', '<', '(', '{', '[']).unwrap_or(secret.len());
    let secret = secret[..length].trim_end_matches(['.', ',', ';', ':', '?', ')', '*', '!']);
    let is_password = is_login || word.starts_with("pass") || word == "kennwort";
    let is_assigned = !is_login && found.get(3).is_some();
    // Names without a space are checked with the assignments.
    if is_assigned && !word.contains(' ') && found.get(1).is_none() {
        return None;
    }
    let is_real = match is_password && !is_assigned {
        true => secret.len() >= 8 && heuristics::is_varied(secret) && heuristics::is_password(secret),
        false => {
            let least = if word.ends_with("key") || is_assigned { 16 } else { 20 };
            secret.len() >= least && heuristics::is_random(secret.as_bytes())
        }
    };
    let is_plain = !is_term(secret) && !heuristics::is_placeholder_value(secret) && !secret.contains("://");
    let start = at.end + value.start();
    (is_real && is_plain).then(|| start..start + secret.len())
}

/// Returns whether a value consists of terms with numbers, such as `SHA256` or `PBKDF2-HMAC`, or of paths.
fn is_term(value: &str) -> bool {
    const TERMS: &[&str] =
        &["argon2", "base64", "base32", "oauth", "sha-", "sha1", "sha2", "pbkdf", "utf", "http"];
    let lower = value.to_ascii_lowercase();
    let is_word = |part: &str| {
        let digits = part.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    TERMS.iter().any(|term| lower.starts_with(term))
        || value.starts_with(['/', '~', '$', '@', '#', '-'])
        || value.split(['-', '_', '.', '/', ':', '=', ',']).all(is_word)
        || value.len() == 36 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
