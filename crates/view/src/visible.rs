//! Makes untrusted text safe to print: control characters are shown instead of executed.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns the text with control and direction characters made visible; newlines and tabs stay.
///
/// A carriage return before a newline is removed.
pub fn visible(text: &str) -> Cow<'_, str> {
    // Nearly all text is plain ASCII, which can be checked many bytes at a time.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    if text.bytes().all(is_plain) || !text.chars().any(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        match ch {
            // Windows line ending.
            '\r' if chars.peek() == Some(&'\n') => {}
            '\0'..='\u{1f}' if is_hidden(ch) => {
                out.push('^');
                out.push(char::from(ch as u8 + 0x40));
            }
            '\u{7f}' => out.push_str("^?"),
            ch if is_hidden(ch) => {
                let _ = write!(out, "<U+{:04X}>", ch as u32);
            }
            ch => out.push(ch),
        }
    }
    Cow::Owned(out)
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
    use super::visible;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(visible("\u{1b}[31mred\u{1b}[0m"), "^[[31mred^[[0m");
        assert_eq!(visible("a\rb\r\nc\0"), "a^Mb\nc^@");
        assert_eq!(visible("\u{9b}31m \u{7f} \u{202e}evil"), "<U+009B>31m ^? <U+202E>evil");
        assert_eq!(visible("a\u{2028}b\u{e0041}\u{e007f}"), "a<U+2028>b<U+E0041><U+E007F>");
        // Joiners of emoji and letters stay.
        assert_eq!(visible("👩\u{200d}🚀 ❤\u{fe0f} \u{feff}"), "👩\u{200d}🚀 ❤\u{fe0f} \u{feff}");
    }
}
