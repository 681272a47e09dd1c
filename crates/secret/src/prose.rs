//! Secrets in sentences: "the password is …", "use the API key …".

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::{assignment, heuristics};

/// Words after which a sentence may contain a secret.
pub(crate) const WORDS: &[&str] = &[
    "password",
    "passphrase",
    "passcode",
    " pw",
    " pass is",
    " pass:",
    "passwort",
    "kennwort",
    "contraseña",
    "clave de acceso",
    "mot de passe",
    "mdp",
    "senha",
    "wachtwoord",
    "parola",
    "şifre",
    "jelszó",
    "hasło",
    "lösenord",
    "heslo",
    "пароль",
    "Пароль",
    "пароля",
    "密码",
    "密碼",
    "口令",
    "パスワード",
    "暗証番号",
    "비밀번호",
    "api key",
    "access key",
    "token",
    "secret",
    "key is",
    "credentials",
    "log in as",
    "log in with",
    "login with",
    "login as",
    "sign in with",
    "sign in as",
    "connect as",
    "login:",
    "logins:",
    "creds:",
    "zugang:",
    "identifiants :",
];

/// Words after which a sentence names the secret that precedes them: "use … as the password".
pub(crate) const WORDS_AFTER: &[&str] =
    &[" as the password", " as password", " is the password", " as your password", " as the passphrase"];

/// The words of [`WORDS`] that are followed by a key, which is long and random, not by a password.
const KEY_WORDS: &[&str] = &["api key", "access key", "token", "secret", "key is"];

/// The words between the name and the value, and the value with the marks around it.
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^( key| token)?(?: (?:for|of) [^\s:=]{1,40}(?: [^\s:=]{1,40})?)?(?:((?:'s|’s| (?:is|was|ist|lautet|es|est|è|é|jest|är|je|has been|will be|should be|must be|now|still|set|reset|changed|updated|to|as)){1,4}:?)|( ?[:=：])| (?:->|=>|→|–|—|-)|(?:は|是|为|為|는|은)|) ?(?:\\*["'`(]|\*\*|“|‘|«|「)?([!-~]{8,200})"#;
    #[expect(clippy::unwrap_used, reason = "the pattern is ours, and every test of this module compiles it")]
    Regex::new(pattern).unwrap()
});

/// The purpose of a password, the words before the value, and the value: "password for the admin user: …".
static VALUE_WITH_PURPOSE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^(?: key| token)?(?: (?:is|was) (?:generated|created))? (?:for|of|on|to|für|de|del|pour|para|per|voor)(?: [^\s:=]{1,40}){1,6}?(?:(?: (?:is|was|ist|lautet|es|est|now|still)){1,2}:?| ?[:=：]) ?(?:\\*["'`(]|\*\*|“|‘|«)?([!-~]{8,200})"#;
    #[expect(clippy::unwrap_used, reason = "the pattern is ours, and every test of this module compiles it")]
    Regex::new(pattern).unwrap()
});

/// A user with a password, after words that announce them.
static LOGIN: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r#"^(?::| are:?| is:?)? (?:\\*["'`])?[A-Za-z0-9_.@-]{2,40}(?:\\*["'`])?(?: ?/ ?|:| and | with | and password | with password )(?:\\*["'`])?([!-~]{8,100})"#;
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
    if !rest.starts_with([' ', ':', '=', '\'', '’', '：', 'は', '是', '为', '為', '는', '은']) {
        return None;
    }
    let word = text[at.clone()].to_ascii_lowercase();
    // The result of a test in Go: `--- PASS: TestParse2Files`.
    if word == " pass:" && text[..at.start].ends_with("---") {
        return None;
    }
    if word.starts_with("cred")
        || word.starts_with("log")
        || word.starts_with("sign")
        || word.starts_with("conn")
        || word.ends_with(':') && word != " pass:"
    {
        let value = LOGIN.captures(rest)?.get(1)?;
        return password_at(text, at.end + value.start(), value.as_str());
    }
    let is_key = KEY_WORDS.contains(&&*word);
    if let Some(found) = (!is_key).then(|| VALUE_WITH_PURPOSE.captures(rest)).flatten()
        && let Some(value) = found.get(1)
        && let Some(range) = password_at(text, at.end + value.start(), value.as_str())
    {
        return Some(range);
    }
    let found = VALUE.captures(rest)?;
    let value = found.get(4)?;
    let is_assigned = found.get(3).is_some();
    // Names without a space are checked with the assignments.
    let is_name = assignment::is_secret_word(word.trim_start());
    if is_assigned && is_name && found.get(1).is_none() {
        return None;
    }
    let start = at.end + value.start();
    let is_name = is_assigned && is_name;
    if !is_key && !is_name {
        return password_at(text, start, value.as_str());
    }
    let secret = trimmed(value.as_str());
    let least = if word.ends_with("key") || is_assigned { 16 } else { 20 };
    let is_real = secret.len() >= least && heuristics::is_random(secret.as_bytes());
    (is_real && is_plain(secret)).then(|| start..start + secret.len())
}

/// Returns the value that a sentence names as the secret before the words at `at`.
pub(crate) fn find_before(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let from = text.floor_char_boundary(at.start.saturating_sub(REACH));
    let start = text[from..at.start]
        .rfind(char::is_whitespace)
        .map_or(from, |space| from + space + text[from + space..].chars().next().map_or(1, char::len_utf8));
    let marks = ['"', '\'', '`', '*', '“', '‘', '«', '('];
    let value = text[start..at.start].trim_start_matches(marks);
    password_at(text, at.start - value.len(), value.trim_end_matches(['”', '’', '»']))
}

/// Returns the range of a password that a sentence contains at `start`, without the marks after it.
fn password_at(text: &str, start: usize, value: &str) -> Option<Range<usize>> {
    debug_assert!(text[start..].starts_with(value));
    let secret = trimmed(value);
    let is_random = secret.len() >= 16 && heuristics::is_random(secret.as_bytes());
    let is_real = secret.len() >= 8 && heuristics::is_varied(secret) && heuristics::is_password(secret);
    // Nothing but letters that form no words.
    let is_letters = secret.len() >= 12
        && secret.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (heuristics::is_scrambled(secret.as_bytes())
            || heuristics::has_uncommon_letters(secret.as_bytes(), 3));
    // Words that are joined by a hyphen: `weaver7-prod`.
    let n_hyphens = secret.matches('-').count();
    let ends_with_number = secret.bytes().rev().take(2).all(|byte| byte.is_ascii_digit());
    let is_phrase = assignment::is_phrase(secret, false) && (n_hyphens == 1 || ends_with_number);
    (is_letters && !heuristics::is_placeholder_value(secret)
        || (is_real || is_random) && is_plain(secret)
        || is_phrase && !begins_with_term(secret) && !heuristics::is_placeholder_value(secret))
    .then(|| start..start + secret.len())
}

/// Returns a value without the marks of the sentence after it.
fn trimmed(value: &str) -> &str {
    let length = value.find(['"', '\'', '`', '\\', '<', '(', '{', '[']).unwrap_or(value.len());
    let bare = value[..length].trim_end_matches(['.', ',', ';', ':', '?', ')', '*', '!']);
    // A password may end with a number and an exclamation mark.
    let has_mark =
        bare.ends_with(|letter: char| letter.is_ascii_digit()) && value[bare.len()..].starts_with('!');
    &value[..bare.len() + usize::from(has_mark)]
}

/// Returns whether a value is neither a term, a placeholder nor a URL.
fn is_plain(secret: &str) -> bool {
    !is_term(secret) && !heuristics::is_placeholder_value(secret) && !secret.contains("://")
}

/// Returns whether a value begins with a term that has a number: `SHA256`.
fn begins_with_term(value: &str) -> bool {
    const TERMS: &[&str] = &[
        "argon2", "base64", "base32", "bcrypt", "oauth", "scrypt", "sha-", "sha1", "sha2", "pbkdf", "utf",
        "http",
    ];
    let lower = value.to_ascii_lowercase();
    TERMS.iter().any(|term| lower.starts_with(term))
}

/// Returns whether a value consists of terms with numbers, such as `SHA256` or `PBKDF2-HMAC`, or of paths.
fn is_term(value: &str) -> bool {
    let is_word = |part: &str| {
        let digits = part.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
        let is_word = digits.len() <= 4 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_word && !heuristics::is_scrambled(part.as_bytes())
    };
    begins_with_term(value)
        || value.starts_with(['/', '~', '$', '@', '#', '-'])
        || value.split(['-', '_', '.', '/', ':', '=', ',']).all(is_word)
        || value.len() == 36 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
