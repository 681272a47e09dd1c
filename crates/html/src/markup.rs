//! Markup under construction: literals are added unchanged, everything else is escaped.

use std::fmt::Write;

/// Markup under construction.
///
/// Literals are added unchanged. They must be `'static`, so that text from a session cannot be added
/// unescaped by accident. All other text is escaped for element content and quoted attributes alike. Control
/// characters and characters that hide text or change its direction are shown as visible text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

/// Memory for a text of more bytes is reserved at once.
const LONG_TEXT: usize = 1 << 20;
/// Memory in bytes for what follows a long text.
const SPACE_AFTER_LONG_TEXT: usize = 4 << 10;

impl Markup {
    /// Creates empty markup.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates empty markup with a capacity in bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// Adds a literal without escaping.
    pub fn lit(&mut self, literal: &'static str) -> &mut Self {
        self.0.push_str(literal);
        self
    }

    /// Adds escaped text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        if text.len() > LONG_TEXT {
            // Allocated once: growing step by step would need twice the memory, also for the end of an
            // element.
            let n_special = text.bytes().filter(|byte| MAY_NEED_ESCAPE[usize::from(*byte)]).count();
            self.0.reserve_exact(text.len() + 4 * n_special + SPACE_AFTER_LONG_TEXT);
        }
        escape(text, &mut self.0);
        self
    }

    /// Inserts other markup at a byte offset.
    pub(crate) fn insert(&mut self, at: usize, other: &Self) {
        self.0.insert_str(at, &other.0);
    }

    /// Truncates the markup to `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// Adds a number.
    pub fn num(&mut self, number: u64) -> &mut Self {
        let _ = write!(self.0, "{number}");
        self
    }

    /// Adds other markup.
    pub fn add(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Adds text as a JSON string that is safe inside a `script` element.
    pub fn json(&mut self, text: &str) -> &mut Self {
        self.0.push('"');
        for unit in text.encode_utf16() {
            match char::from_u32(u32::from(unit)) {
                Some(ch) if ch.is_ascii_alphanumeric() || " -_.:/".contains(ch) => self.0.push(ch),
                _ => {
                    let _ = write!(self.0, "\\u{unit:04x}");
                }
            }
        }
        self.0.push('"');
        self
    }

    /// Adds bytes as base64, which contains no markup.
    pub fn base64(&mut self, bytes: &[u8]) -> &mut Self {
        // One call: encoding in pieces is several times slower.
        self.0.push_str(&base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes));
        self
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the markup is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the markup as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the markup as text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Bytes that may need escaping.
const MAY_NEED_ESCAPE: [bool; 256] = {
    let mut look = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        look[byte] = true;
        byte += 1;
    }
    look[b'\n' as usize] = false;
    look[b'\t' as usize] = false;
    look[b'&' as usize] = true;
    look[b'<' as usize] = true;
    look[b'>' as usize] = true;
    look[b'"' as usize] = true;
    look[b'\'' as usize] = true;
    look[0x7f] = true;
    // The first bytes of C1 controls, U+061C, and U+200E to U+2069.
    look[0xc2] = true;
    look[0xd8] = true;
    look[0xe2] = true;
    look
};

fn escape(text: &str, out: &mut String) {
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| MAY_NEED_ESCAPE[usize::from(*byte)]) {
        at += found;
        let ch = text[at..].chars().next().unwrap_or_default();
        let end = at + ch.len_utf8();
        if ch.is_ascii() || is_hidden(ch) {
            out.push_str(&text[done..at]);
            match ch {
                '&' => out.push_str("&amp;"),
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '"' => out.push_str("&quot;"),
                '\'' => out.push_str("&#39;"),
                // Part of a Windows line ending.
                '\r' if bytes.get(end) == Some(&b'\n') => {}
                '\0'..='\u{1f}' => {
                    out.push('^');
                    out.push(char::from(ch as u8 + 0x40));
                }
                '\u{7f}' => out.push_str("^?"),
                ch => {
                    let _ = write!(out, "&lt;U+{:04X}&gt;", ch as u32);
                }
            }
            done = end;
        }
        at = end;
    }
    out.push_str(&text[done..]);
}

/// Returns whether a non-ASCII character hides text or changes its direction.
fn is_hidden(ch: char) -> bool {
    match ch {
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        ch => ch.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::Markup;

    fn escaped(text: &str) -> String {
        Markup::new().text(text).as_str().to_owned()
    }

    #[test]
    fn text_is_escaped_for_text_and_attributes() {
        assert_eq!(escaped("a < b && \"c\" > 'd'"), "a &lt; b &amp;&amp; &quot;c&quot; &gt; &#39;d&#39;");
        assert_eq!(escaped("plain\ttext\nwith é, 织机, — and 😀"), "plain\ttext\nwith é, 织机, — and 😀");
    }

    #[test]
    fn hidden_characters_are_shown() {
        assert_eq!(escaped("a\rb\r\nc\0\u{7f}"), "a^Mb\nc^@^?");
        assert_eq!(escaped("\u{1b}[31m\u{9b} \u{202e}evil"), "^[[31m&lt;U+009B&gt; &lt;U+202E&gt;evil");
        assert_eq!(escaped("\u{1c}"), "^\\");
    }

    #[test]
    fn json_is_inert_in_a_script() {
        let json = Markup::new().json("</script><!--\u{2028}\"\\😀").as_str().to_owned();
        assert_eq!(json, "\"\\u003c/script\\u003e\\u003c\\u0021--\\u2028\\u0022\\u005c\\ud83d\\ude00\"");
    }
}
