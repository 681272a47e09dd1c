//! Words that may be secrets without the context that identifies them.

use crate::heuristics;
use crate::known_secrets::SHORTEST;

/// The distance to the next letter up to which a digit may be part of a password.
const LETTER_REACH: usize = 12;

/// Returns whether a text contains a word that may be a secret. Words of letters alone that look like words
/// of a language are none.
pub(crate) fn has_odd_word(text: &str) -> bool {
    text.split(|ch: char| ch <= ' ' || ch == '\x7F').map(without_marks).any(|run| {
        let bytes = run.as_bytes();
        let is_plain = is_date(bytes) || is_hex_number(run) || !bytes.iter().any(u8::is_ascii_alphabetic);
        if run.len() < SHORTEST || is_plain {
            return false;
        }
        // The number of a line after the name of a file is none.
        let name = run.trim_end_matches(|ch: char| ch.is_ascii_digit());
        let name = if name.ends_with(':') { name } else { run };
        let has_digit = name.bytes().enumerate().any(|(at, byte)| {
            let near = at.saturating_sub(LETTER_REACH)..bytes.len().min(at + 1 + LETTER_REACH);
            byte.is_ascii_digit() && bytes[near].iter().any(u8::is_ascii_alphabetic)
        });
        has_digit || run.split(|ch: char| "=,;:()<>{}[]|\"'`".contains(ch)).any(is_odd_word)
    })
}

/// Returns a word without the colour of a terminal before it, and without the ellipsis after it that marks a
/// shortened text.
fn without_marks(run: &str) -> &str {
    let run = run.trim_end_matches('…');
    let colour = run
        .strip_prefix('[')
        .map(|rest| rest.trim_start_matches(|ch: char| ch.is_ascii_digit() || ch == ';'));
    colour.and_then(|rest| rest.strip_prefix('m')).unwrap_or(run)
}

/// Returns whether a part without digits may be a password: it contains signs, or letters that form no words.
fn is_odd_word(part: &str) -> bool {
    let bytes = part.as_bytes();
    if part.len() < SHORTEST || bytes.iter().any(u8::is_ascii_digit) {
        return false;
    }
    let is_name = bytes.iter().all(|byte| byte.is_ascii_alphabetic() || b"_-./".contains(byte));
    match is_name {
        true => bytes.iter().all(u8::is_ascii_alphabetic) && !heuristics::is_wordy(bytes),
        false => heuristics::is_password(part),
    }
}

/// Returns whether a word begins with a date, as times do.
fn is_date(run: &[u8]) -> bool {
    let is_digit = |at: usize| run.get(at).is_some_and(u8::is_ascii_digit);
    (0..4).chain(5..7).chain(8..10).all(is_digit)
        && run[4] == b'-'
        && run[7] == b'-'
        && run[10..].iter().all(|byte| byte.is_ascii_digit() || b"TZ:.+-,".contains(byte))
}

/// Returns whether a word is a hexadecimal number of at most 64 bits, such as `0x5eed` or `(0xFF,`.
fn is_hex_number(run: &str) -> bool {
    let number = run.trim_matches(|ch: char| ch.is_ascii_punctuation()).strip_prefix("0x");
    number.is_some_and(|digits| u64::from_str_radix(digits, 16).is_ok())
}

#[cfg(test)]
mod tests {
    use super::has_odd_word;

    #[test]
    fn words_like_passwords_are_odd_and_ordinary_text_is_not() {
        for text in [
            "log in with Hunter22secret now",
            "it is Heddle#42/weft.",
            "it is a\"b\\c1234, I think",
            "(Tr!cky$Pwrd)",
            "qzxvkjwp it is",
            "SGVkZGxlIzQyL3dlZnQ=",
            "Heddle%2342%2Fweft",
            "Hed\u{200b}dle#42/weft",
            "\u{1b}[0;32mHeddle#42/weft\u{1b}[0m",
            "as Heddle#42/weft…",
        ] {
            assert!(has_odd_word(text), "{text}");
        }
        for text in [
            "an ordinary sentence about passwords, sessions and src/main.rs",
            "at 2026-03-01T12:30:05.123Z, 1234567890 times, on line 42",
            "see crates/app/src/search.rs:227",
            "shortened at crates/app/src/search.rs:227…",
            "\u{1b}[0mtreadles and \u{1b}[1;31mshuttles\u{1b}[0m",
            "at 0x5eed, (0xDEADBEEF) and 0x7fff5fbff8a0;",
            "let search_scope = app.search_scope_in(query, &scope)?;",
        ] {
            assert!(!has_odd_word(text), "{text}");
        }
    }
}
