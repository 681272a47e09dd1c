//! Makes untrusted text safe to print: control characters are shown instead of executed.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with control and direction characters made visible; newlines and tabs stay.
///
/// A carriage return before a newline is removed. A character that is not written as an escape in JSON has a
/// name of up to four times its length; beyond the first 64 of a text, each becomes a question mark.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !has_hidden(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    let mut n_named = 0;
    while let Some(ch) = chars.next() {
        // Windows line ending.
        if ch == '\r' && chars.peek() == Some(&'\n') {
            continue;
        }
        if !is_hidden(ch) {
            out.push(ch);
            continue;
        }
        if ch < ' ' {
            out.push('^');
            out.push(char::from(ch as u8 + 0x40));
            continue;
        }
        n_named += 1;
        match ch {
            _ if n_named > MAX_NAMED => out.push('?'),
            '\u{7f}' => out.push_str("^?"),
            ch => {
                let _ = write!(out, "<U+{:04X}>", ch as u32);
            }
        }
    }
    Cow::Owned(out)
}

/// Returns the text of a name or a path, as [`visible`] does, with newlines and tabs visible too, so that it
/// stays on one line.
pub fn visible_name(name: &str) -> Cow<'_, str> {
    let visible = visible(name);
    if !visible.contains(['\n', '\t']) {
        return visible;
    }
    Cow::Owned(visible.replace('\n', "^J").replace('\t', "^I"))
}

/// The number of characters of a text that are named.
const MAX_NAMED: usize = 64;

/// Returns whether a text contains hidden characters.
///
/// Few bytes can begin one, so most text is checked many bytes at a time, also text in other languages.
fn has_hidden(text: &str) -> bool {
    const CHUNK: usize = 32;
    for (n, chunk) in text.as_bytes().chunks(CHUNK).enumerate() {
        // Without an early exit, the loop is vectorized.
        if !chunk.iter().fold(false, |found, byte| found | may_begin_hidden(*byte)) {
            continue;
        }
        let starts = (n * CHUNK..).zip(chunk).filter(|(_, byte)| may_begin_hidden(**byte));
        if starts.into_iter().any(|(at, _)| text[at..].chars().next().is_some_and(is_hidden)) {
            return true;
        }
    }
    false
}

/// Returns whether a byte can be the first of a hidden character in UTF-8.
fn may_begin_hidden(byte: u8) -> bool {
    (byte < b' ') & (byte != b'\n') & (byte != b'\t')
        | (byte == 0x7F)
        | (byte == 0xC2)
        | (byte == 0xD8)
        | (byte == 0xE2)
        | (byte == 0xEF)
        | (byte == 0xF3)
}

/// Returns whether [`visible`] writes a character as an escape.
///
/// These are control characters, characters that change the direction of text, line separators, and
/// characters that can carry hidden text.
pub fn is_hidden(ch: char) -> bool {
    match ch {
        '\n' | '\t' => false,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        '\u{2028}' | '\u{2029}' | '\u{206a}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        ch => ch.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::{has_hidden, is_hidden, visible, visible_name};

    #[test]
    fn every_hidden_character_is_found_at_any_place() {
        for ch in '\0'..=char::MAX {
            let text = format!("织布 weft{ch}");
            assert_eq!(has_hidden(&text), is_hidden(ch), "{:04X}", ch as u32);
        }
        for n in 0..70 {
            let text = format!("{}\u{202e}é", "織".repeat(n));
            assert!(has_hidden(&text) && !has_hidden(&text.replace('\u{202e}', "—")), "{n}");
        }
    }

    #[test]
    fn a_name_stays_on_one_line() {
        assert_eq!(visible_name("a  b"), "a  b");
        assert_eq!(visible_name("a\nb\tc\r\n\u{1b}"), "a^Jb^Ic^J^[");
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(visible("\u{1b}[31mred\u{1b}[0m"), "^[[31mred^[[0m");
        assert_eq!(visible("a\rb\r\nc\0"), "a^Mb\nc^@");
        assert_eq!(visible("\u{9b}31m \u{7f} \u{202e}evil"), "<U+009B>31m ^? <U+202E>evil");
        assert_eq!(visible("a\u{2028}b\u{e0041}\u{e007f}"), "a<U+2028>b<U+E0041><U+E007F>");
        let many = visible(&"\u{9b}a".repeat(1000)).into_owned();
        assert_eq!(many, format!("{}{}", "<U+009B>a".repeat(64), "?a".repeat(936)));
        assert_eq!(visible(&"\u{1b}".repeat(1000)), "^[".repeat(1000));
        // Joiners of emoji and letters stay.
        assert_eq!(visible("👩\u{200d}🚀 ❤\u{fe0f} \u{feff}"), "👩\u{200d}🚀 ❤\u{fe0f} \u{feff}");
    }
}
