//! Markup under construction: literals are added unchanged, everything else is escaped.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io;
use std::ops::Range;

/// Markup under construction.
///
/// Literals are added unchanged. They must be `'static`, so that text from a session cannot be added
/// unescaped by accident. All other text is escaped for element content and quoted attributes alike. Control
/// characters and characters that hide text or change its direction are shown as visible text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markup(MarkupBuffer);

impl Markup {
    /// Creates empty markup.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates empty markup with a capacity in bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes).into())
    }

    /// Adds a literal without escaping.
    pub fn lit(&mut self, literal: &'static str) -> &mut Self {
        self.0.push_str(literal);
        self
    }

    /// Adds escaped text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        self.0.push_text(text);
        self
    }

    /// Inserts other markup at an offset, which is the length that this markup had.
    pub(crate) fn insert(&mut self, at: usize, other: &Self) {
        self.0.insert(at, &other.0);
    }

    /// Removes everything, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a number.
    pub fn num(&mut self, number: u64) -> &mut Self {
        let _ = write!(self.0.stored, "{number}");
        self
    }

    /// Adds other markup.
    pub fn add(&mut self, other: &Self) -> &mut Self {
        self.0.push(&other.0);
        self
    }

    /// Adds other markup. Long markup is not copied: it takes over what precedes it.
    pub(crate) fn append(&mut self, mut other: Self) -> &mut Self {
        if other.len() <= self.len().max(LONG_TEXT) {
            return self.add(&other);
        }
        other.0.stored.reserve_exact(self.len() + SPACE_AFTER_LONG_TEXT);
        other.insert(0, self);
        *self = other;
        self
    }

    /// Adds text as a JSON string that is safe inside a `script` element.
    pub fn json(&mut self, text: &str) -> &mut Self {
        let out = &mut self.0.stored;
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

    /// Returns the length in memory in bytes. Texts that are not escaped yet have the length they have now.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether the markup is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the markup as text.
    pub fn into_string(self) -> String {
        self.0.into_string()
    }

    /// Writes the markup.
    ///
    /// # Errors
    ///
    /// Those of writing.
    pub fn write_to(&self, to: &mut dyn io::Write) -> io::Result<()> {
        self.0.pieces(WRITTEN_PIECE).try_for_each(|piece| to.write_all(self.0.read(piece).as_bytes()))
    }

    pub(crate) fn buffer(&self) -> &MarkupBuffer {
        &self.0
    }

    pub(crate) fn into_buffer(self) -> MarkupBuffer {
        self.0
    }
}

/// Memory for a text of more bytes is reserved at once.
const LONG_TEXT: usize = 1 << 20;
/// Memory in bytes for what follows a long text.
const SPACE_AFTER_LONG_TEXT: usize = 4 << 10;

/// Shorter texts are escaped at once.
const MIN_UNESCAPED: usize = 128;

/// Markup is written in pieces of this size, of which only the unescaped texts are copied.
const WRITTEN_PIECE: usize = 64 << 10;

/// The memory of markup. Texts that become much longer by escaping are escaped only when they are read: a
/// control character of two bytes becomes fourteen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MarkupBuffer {
    stored: String,
    /// The ranges of `stored` to escape, in order.
    unescaped: Vec<Range<usize>>,
}

impl From<String> for MarkupBuffer {
    /// Takes a text that is not to be escaped.
    fn from(stored: String) -> Self {
        Self { stored, unescaped: Vec::new() }
    }
}

impl MarkupBuffer {
    /// Returns the length in memory in bytes.
    pub(crate) fn len(&self) -> usize {
        self.stored.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.stored.is_empty()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.stored.capacity()
    }

    pub(crate) fn clear(&mut self) {
        self.stored.clear();
        self.unescaped.clear();
    }

    /// Adds text without escaping.
    pub(crate) fn push_str(&mut self, text: &str) {
        self.stored.push_str(text);
    }

    /// Adds text that is escaped now or when it is read.
    fn push_text(&mut self, text: &str) {
        if text.len() < MIN_UNESCAPED {
            return escape(text, &mut self.stored);
        }
        let len = escaped_len(text);
        let is_escaped = len <= text.len() + text.len() / 2;
        let len = if is_escaped { len } else { text.len() };
        if len > LONG_TEXT {
            // Allocated once: growing step by step would need twice the memory, also for the end of an
            // element.
            self.stored.reserve_exact(len + SPACE_AFTER_LONG_TEXT);
        }
        if is_escaped {
            escape(text, &mut self.stored);
        } else {
            self.unescaped.push(self.len()..self.len() + text.len());
            self.stored.push_str(text);
        }
    }

    /// Adds another buffer.
    pub(crate) fn push(&mut self, other: &Self) {
        self.insert(self.len(), other);
    }

    /// Inserts text without escaping, at an offset that is not inside an unescaped text.
    pub(crate) fn insert_str(&mut self, at: usize, text: &str) {
        self.stored.insert_str(at, text);
        let n_before = self.unescaped.partition_point(|range| range.start < at);
        for range in &mut self.unescaped[n_before..] {
            *range = range.start + text.len()..range.end + text.len();
        }
    }

    /// Inserts another buffer at an offset that is not inside an unescaped text.
    pub(crate) fn insert(&mut self, at: usize, other: &Self) {
        self.insert_str(at, &other.stored);
        let n_before = self.unescaped.partition_point(|range| range.start < at);
        let inserted = other.unescaped.iter().map(|range| range.start + at..range.end + at);
        self.unescaped.splice(n_before..n_before, inserted);
    }

    /// Returns consecutive ranges of at most `max_len` bytes, which is more than a character has.
    pub(crate) fn pieces(&self, max_len: usize) -> impl Iterator<Item = Range<usize>> + use<'_> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let mut end = self.stored.floor_char_boundary(from + max_len);
            // How a carriage return is escaped depends on what follows.
            if end < self.len() && self.stored.as_bytes()[end - 1] == b'\r' {
                end -= 1;
            }
            let piece = from..end.max((from + 1).min(self.len()));
            from = piece.end;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Returns the markup of one of the [`pieces`](Self::pieces).
    pub(crate) fn read(&self, piece: Range<usize>) -> Cow<'_, str> {
        let first = self.unescaped.partition_point(|range| range.end <= piece.start);
        let mut unescaped =
            self.unescaped[first..].iter().take_while(|range| range.start < piece.end).peekable();
        if unescaped.peek().is_none() {
            return Cow::Borrowed(&self.stored[piece]);
        }
        let mut out = String::new();
        let mut done = piece.start;
        for range in unescaped {
            let (start, end) = (range.start.max(piece.start), range.end.min(piece.end));
            out.push_str(&self.stored[done..start]);
            escape(&self.stored[start..end], &mut out);
            done = end;
        }
        out.push_str(&self.stored[done..piece.end]);
        Cow::Owned(out)
    }

    fn into_string(self) -> String {
        if self.unescaped.is_empty() { self.stored } else { self.read(0..self.len()).into_owned() }
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

fn escape(text: &str, out: &mut impl fmt::Write) {
    // Writing to memory does not fail.
    let _ = try_escape(text, out);
}

fn escaped_len(text: &str) -> usize {
    let mut counter = ByteCounter(0);
    escape(text, &mut counter);
    counter.0
}

/// Counts the bytes that are written to it.
struct ByteCounter(usize);

impl fmt::Write for ByteCounter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

fn try_escape(text: &str, out: &mut impl fmt::Write) -> fmt::Result {
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = bytes[at..].iter().position(|byte| MAY_NEED_ESCAPE[usize::from(*byte)]) {
        at += found;
        let ch = text[at..].chars().next().unwrap_or_default();
        let end = at + ch.len_utf8();
        if ch.is_ascii() || is_hidden(ch) {
            out.write_str(&text[done..at])?;
            match ch {
                '&' => out.write_str("&amp;")?,
                '<' => out.write_str("&lt;")?,
                '>' => out.write_str("&gt;")?,
                '"' => out.write_str("&quot;")?,
                '\'' => out.write_str("&#39;")?,
                // Part of a Windows line ending.
                '\r' if bytes.get(end) == Some(&b'\n') => {}
                '\0'..='\u{1f}' => {
                    out.write_char('^')?;
                    out.write_char(char::from(ch as u8 + 0x40))?;
                }
                '\u{7f}' => out.write_str("^?")?,
                ch => write!(out, "&lt;U+{:04X}&gt;", ch as u32)?,
            }
            done = end;
        }
        at = end;
    }
    out.write_str(&text[done..])
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

    /// Returns texts of many lengths with characters whose escaping depends on others.
    fn texts() -> impl Iterator<Item = String> {
        let parts = ["'", "\r\n", "\r", "\u{80}", "织", "<a>", "\u{202e}", "plain ", "&"];
        (0..300).map(move |n| (0..n).map(|i| parts[(i * i + n) % parts.len()]).collect())
    }

    #[test]
    fn texts_that_grow_are_kept_short_until_they_are_written() {
        for text in ["'".repeat(1 << 16), "\u{80}".repeat(1 << 15)] {
            let mut markup = Markup::new();
            markup.lit("<p>").text(&text).lit("</p>");
            assert_eq!(markup.len(), text.len() + "<p></p>".len());
            assert!(markup.into_string().len() > 4 * text.len());
        }
    }

    #[test]
    fn markup_is_the_same_whenever_it_is_escaped() {
        for text in texts() {
            let mut now = String::new();
            super::escape(&text, &mut now);
            assert_eq!(super::escaped_len(&text), now.len());
            assert_eq!(escaped(&text), now);
            let mut markup = Markup::new();
            markup.lit("<b>").text(&text).lit("</b>\r\n");
            let mut start = Markup::new();
            start.lit("<i>").text(&text).lit("</i>");
            markup.insert("<b>".len(), &start);
            let both = format!("<b><i>{now}</i>{now}</b>\r\n");
            for max_len in [4, 5, 7, 64, 1 << 20] {
                let pieces: Vec<_> = markup.0.pieces(max_len).collect();
                assert!(pieces.iter().all(|piece| piece.len() <= max_len));
                let read: String = pieces.into_iter().map(|piece| markup.0.read(piece)).collect();
                assert_eq!(read, both);
            }
            let mut written = Vec::new();
            markup.write_to(&mut written).unwrap();
            assert_eq!(String::from_utf8(written).unwrap(), both);
            assert_eq!(markup.into_string(), both);
        }
    }
}
