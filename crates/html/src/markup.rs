//! Markup under construction: literals are added unchanged, everything else is escaped.

use std::fmt::Write as _;
use std::io;

/// Markup under construction.
///
/// Literals are added unchanged. They must be `'static`, so that text from a session cannot be added
/// unescaped by accident. All other text is escaped for element content and quoted attributes alike. Control
/// characters and characters that hide text or change its direction are shown as visible text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(String);

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
        escape(text, &mut self.0);
        self
    }

    /// Adds an element with escaped text. `tag` is its name, and its attributes if it has any.
    pub fn text_element(&mut self, tag: &'static str, text: &str) -> &mut Self {
        let name = tag.split(' ').next().unwrap_or_default();
        self.lit("<").lit(tag).lit(">").text(text).lit("</").lit(name).lit(">")
    }

    /// Inserts other markup at an offset, which is the length that this markup had.
    pub(crate) fn insert(&mut self, at: usize, other: &Self) {
        self.0.insert_str(at, &other.0);
    }

    /// Removes everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
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
        let out = &mut self.0;
        out.push('"');
        for unit in text.encode_utf16() {
            match char::from_u32(u32::from(unit)) {
                Some(ch) if ch.is_ascii_alphanumeric() || " -_.:/".contains(ch) => out.push(ch),
                _ => {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
        out.push('"');
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
        self.len() == 0
    }

    /// Returns the markup as text.
    pub fn into_string(self) -> String {
        self.0
    }

    /// Returns the markup as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Writes the markup.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_to(&self, to: &mut dyn io::Write) -> io::Result<()> {
        to.write_all(self.0.as_bytes())
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

/// Appends escaped text.
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
                '\0'..='\u{1f}' => out.extend(['^', char::from(ch as u8 + 0x40)]),
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
        let mut markup = Markup::new();
        markup.text(text);
        markup.into_string()
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
        let mut json = Markup::new();
        json.json("</script><!--\u{2028}\"\\😀");
        assert_eq!(
            json.into_string(),
            "\"\\u003c/script\\u003e\\u003c\\u0021--\\u2028\\u0022\\u005c\\ud83d\\ude00\""
        );
    }
}
