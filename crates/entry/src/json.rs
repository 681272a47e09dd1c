//! JSON as it stands in a line: a slice of text that is known to be valid, read on demand.
//!
//! [`check`] decides once whether a text is JSON. After that a [`Json`] is two words wide and copies
//! nothing: looking into an object walks its text, and a string is decoded only when somebody asks.

use std::borrow::Cow;
use std::fmt;

use memchr::{memchr, memchr2};

/// One JSON value, as the text it was written as.
///
/// The text is valid JSON: values are made only from text that [`check`] accepted. Every method is
/// total all the same, and answers `None` when the value is of another kind than the one asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// The six kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it all")]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl JsonKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "boolean",
            Self::Number => "number",
            Self::String => "string",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

impl<'a> Json<'a> {
    /// The value `null`.
    pub const NULL: Self = Self("null");

    /// Parses a whole text as one JSON value; `None` if it is not JSON.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut walker = Walker::new(text);
        walker.whole().ok()?;
        Some(Self(text.trim_matches(WHITE_SPACE)))
    }

    /// Takes a slice of a text that was checked before.
    pub(crate) fn trusted(text: &'a str) -> Self {
        Self(text)
    }

    /// The value's text, without surrounding white space.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// What kind of value it is.
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'"') => JsonKind::String,
            Some(b'{') => JsonKind::Object,
            Some(b'[') => JsonKind::Array,
            Some(b't' | b'f') => JsonKind::Bool,
            Some(b'n') | None => JsonKind::Null,
            Some(_) => JsonKind::Number,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.kind() == JsonKind::Object
    }

    /// The boolean, if it is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The number as an unsigned integer, if it is one.
    pub fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// The number, if it is one.
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.0.parse().ok()).flatten()
    }

    /// The string, decoded; borrowed where nothing was escaped.
    ///
    /// Half of a surrogate pair cannot be text: it comes back as U+FFFD.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        Some(decode(self.quoted()?))
    }

    /// Whether this is the string `text`, without decoding it if that can be seen from afar.
    pub fn is_str(self, text: &str) -> bool {
        self.quoted().is_some_and(|inner| inner == text || (inner.contains('\\') && decode(inner) == text))
    }

    /// What stands between the quotes of a string, escapes and all.
    pub fn quoted(self) -> Option<&'a str> {
        self.0.strip_prefix('"')?.strip_suffix('"')
    }

    /// The value of `key`. Of a key that is written twice the last one counts, as in JavaScript.
    pub fn get(self, key: &str) -> Option<Self> {
        self.members().filter(|(name, _)| name.is(key)).last().map(|(_, value)| value)
    }

    /// The members of an object, in order; nothing for other kinds.
    pub fn members(self) -> Members<'a> {
        Members { text: self.0, pos: if self.is_object() { 1 } else { self.0.len() } }
    }

    /// The items of an array, in order; nothing for other kinds.
    pub fn items(self) -> Items<'a> {
        Items { text: self.0, pos: if self.kind() == JsonKind::Array { 1 } else { self.0.len() } }
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The name of a member, as written.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    pub(crate) fn new(inner: &'a str) -> Self {
        Self(inner)
    }

    /// The name as written, escapes and all.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Whether this is the name `name`.
    pub fn is(self, name: &str) -> bool {
        self.0 == name || (self.0.contains('\\') && decode(self.0) == name)
    }

    /// The name, decoded.
    pub fn name(self) -> Cow<'a, str> {
        decode(self.0)
    }
}

/// Walks over the members of an object.
#[derive(Clone)]
pub struct Members<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Iterator for Members<'a> {
    type Item = (Key<'a>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let key_start = next_item(bytes, self.pos)?;
        let key_end = skip_value(bytes, key_start);
        let colon = skip_white(bytes, key_end);
        let start = skip_white(bytes, colon + 1);
        let end = skip_value(bytes, start);
        self.pos = end;
        let key = self.text.get(key_start + 1..key_end.checked_sub(1)?)?;
        Some((Key(key), Json(self.text.get(start..end)?)))
    }
}

/// Walks over the items of an array.
#[derive(Clone)]
pub struct Items<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let start = next_item(bytes, self.pos)?;
        let end = skip_value(bytes, start);
        self.pos = end;
        Some(Json(self.text.get(start..end)?))
    }
}

/// The start of the next item of a container, or `None` at its end.
fn next_item(bytes: &[u8], pos: usize) -> Option<usize> {
    let mut at = skip_white(bytes, pos);
    if bytes.get(at) == Some(&b',') {
        at = skip_white(bytes, at + 1);
    }
    match bytes.get(at) {
        None | Some(b'}' | b']') => None,
        Some(_) => Some(at),
    }
}

const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

#[inline(always)]
pub(crate) fn skip_white(bytes: &[u8], mut pos: usize) -> usize {
    // Claude Code writes none, so this is nearly always one comparison.
    while bytes.get(pos).is_some_and(|&byte| byte <= b' ' && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        pos += 1;
    }
    pos
}

/// The end of the value that starts at `pos`, in text that is known to be valid. Always moves on.
pub(crate) fn skip_value(bytes: &[u8], pos: usize) -> usize {
    match bytes.get(pos) {
        Some(b'"') => skip_string(bytes, pos),
        Some(b'{' | b'[') => {
            let mut depth = 0usize;
            let mut at = pos;
            while let Some(&byte) = bytes.get(at) {
                match byte {
                    b'"' => {
                        at = skip_string(bytes, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return at + 1;
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
            bytes.len()
        }
        _ => {
            let mut at = pos + 1;
            while let Some(byte) = bytes.get(at) {
                if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                    break;
                }
                at += 1;
            }
            at
        }
    }
}

/// The end of the string that starts at `pos`, its closing quote included.
fn skip_string(bytes: &[u8], pos: usize) -> usize {
    let mut at = pos + 1;
    while let Some(hit) = find_special(bytes, at) {
        if bytes[hit] == b'"' {
            return hit + 1;
        }
        at = hit + 2;
    }
    bytes.len()
}

/// The next quote or backslash from `at` on.
///
/// Keys are short, and in prose and code an escape is never far: the next bytes are looked at here,
/// eight at a time; only a long stretch without either is worth a call to `memchr`.
#[inline(always)]
fn find_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    // A byte of the word is zero where the text has `byte`; the lowest such byte is always found.
    let hits = |word: u64, byte: u8| {
        let zero = word ^ (ONES * u64::from(byte));
        zero.wrapping_sub(ONES) & !zero
    };
    for _ in 0..4 {
        let Some((chunk, _)) = bytes.get(at..)?.split_first_chunk::<8>() else { break };
        let word = u64::from_le_bytes(*chunk);
        let found = (hits(word, b'"') | hits(word, b'\\')) & HIGH;
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|hit| at + hit)
}

/// Decodes what stands between the quotes of a valid string.
pub fn decode(inner: &str) -> Cow<'_, str> {
    let bytes = inner.as_bytes();
    let Some(mut at) = memchr(b'\\', bytes) else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    let mut copied = 0;
    loop {
        out.push_str(&inner[copied..at]);
        let (ch, next) = decode_escape(bytes, at);
        out.push(ch);
        copied = next;
        match find_escape(bytes, next) {
            Some(hit) => at = hit,
            None => break,
        }
    }
    out.push_str(&inner[copied..]);
    Cow::Owned(out)
}

/// The next backslash from `at` on. Inside a string every quote stands behind one, so it is the first found.
fn find_escape(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let hit = find_special(bytes, at)?;
        if bytes[hit] == b'\\' {
            return Some(hit);
        }
        at = hit + 1;
    }
}

/// The character of the escape at `at`, and where the text goes on.
fn decode_escape(bytes: &[u8], at: usize) -> (char, usize) {
    let plain = |ch| (ch, at + 2);
    match bytes.get(at + 1) {
        Some(b'n') => plain('\n'),
        Some(b't') => plain('\t'),
        Some(b'r') => plain('\r'),
        Some(b'b') => plain('\u{8}'),
        Some(b'f') => plain('\u{c}'),
        Some(b'u') => {
            let unit = hex4(bytes, at + 2);
            if (0xD800..0xDC00).contains(&unit) && bytes.get(at + 6..at + 8) == Some(b"\\u") {
                let low = hex4(bytes, at + 8);
                if (0xDC00..0xE000).contains(&low) {
                    let code = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
                    return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), at + 12);
                }
            }
            (char::from_u32(unit).unwrap_or(char::REPLACEMENT_CHARACTER), (at + 6).min(bytes.len()))
        }
        Some(&other) if other.is_ascii() => plain(char::from(other)),
        _ => (char::REPLACEMENT_CHARACTER, (at + 1).min(bytes.len())),
    }
}

fn hex4(bytes: &[u8], at: usize) -> u32 {
    let digits = bytes.get(at..at + 4).unwrap_or_default();
    digits.iter().fold(0, |sum, &digit| sum << 4 | char::from(digit).to_digit(16).unwrap_or(0))
}

/// Whether the text holds an escaped half of a surrogate pair without its other half.
pub fn has_lone_surrogate(text: &str) -> bool {
    let bytes = text.as_bytes();
    // A cheap look first: nearly no line has any escape of that range.
    if memchr::memmem::find(bytes, b"\\ud").is_none() && memchr::memmem::find(bytes, b"\\uD").is_none() {
        return false;
    }
    let mut at = 0;
    while let Some(hit) = memchr(b'\\', &bytes[at..]) {
        at += hit;
        if bytes.get(at + 1) != Some(&b'u') {
            at = (at + 2).min(bytes.len());
            continue;
        }
        let unit = hex4(bytes, at + 2);
        at = (at + 6).min(bytes.len());
        if (0xDC00..0xE000).contains(&unit) {
            return true;
        }
        if (0xD800..0xDC00).contains(&unit) {
            let paired =
                bytes.get(at..at + 2) == Some(b"\\u") && (0xDC00..0xE000).contains(&hex4(bytes, at + 2));
            if !paired {
                return true;
            }
            at = (at + 6).min(bytes.len());
        }
    }
    false
}

/// The same JSON text, with U+FFFD for every half of a surrogate pair that stands alone.
pub fn mend_surrogates(text: &str) -> Cow<'_, str> {
    if !has_lone_surrogate(text) {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut at = 0;
    while let Some(hit) = memchr(b'\\', &bytes[at..]) {
        at += hit;
        let (ch, next) = decode_escape(bytes, at);
        if ch == char::REPLACEMENT_CHARACTER && bytes.get(at + 1) == Some(&b'u') {
            out.push_str(&text[copied..at]);
            out.push(ch);
            copied = next;
        }
        at = next;
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// How deep a reader with a fixed limit (ours would be serde_json's) can follow.
pub const DEPTH_LIMIT: usize = 128;

/// A strict reader of JSON that only looks: it builds nothing, and refuses whatever it doubts.
///
/// It knows the whole grammar, follows any depth, and stops at the first byte that does not fit.
pub(crate) struct Walker<'a> {
    bytes: &'a [u8],
    pos: usize,
    /// Whether a control character stands anywhere; without one, strings need no look at each byte.
    control: bool,
    /// The containers we are in, outermost first: `true` for an object.
    open: Vec<bool>,
    pub(crate) deepest: usize,
    /// Whether an escape was met that may be half of a surrogate pair.
    pub(crate) surrogates: bool,
    /// Whether a key was met that is not written plainly.
    pub(crate) escaped_key: bool,
}

/// The walker met something that it does not take for JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) pos: usize,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        // Written as a fold without an early exit, so that it runs at the speed of memory.
        let control = bytes.iter().fold(false, |any, &byte| any | (byte < 0x20));
        Self { bytes, pos: 0, control, open: Vec::new(), deepest: 0, surrogates: false, escaped_key: false }
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    fn refuse<T>(&self) -> Result<T, Refusal> {
        Err(Refusal { pos: self.pos })
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    #[inline(always)]
    fn white(&mut self) {
        self.pos = skip_white(self.bytes, self.pos);
    }

    /// One value and nothing else.
    pub(crate) fn whole(&mut self) -> Result<(), Refusal> {
        self.white();
        self.value()?;
        self.white();
        if self.pos == self.bytes.len() { Ok(()) } else { self.refuse() }
    }

    /// One object. `member` is told where each member's key stands, and must walk over its value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, usize) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.container(b'{', b'}', |walker| {
            let key = walker.pos;
            walker.key()?;
            member(walker, key)
        })
    }

    /// One array. `item` must walk over each item.
    pub(crate) fn array(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        self.container(b'[', b']', item)
    }

    fn container(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if self.peek() != Some(open) {
            return self.refuse();
        }
        self.pos += 1;
        self.white();
        if self.peek() == Some(close) {
            self.pos += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            self.white();
            match self.peek() {
                Some(b',') => {
                    self.pos += 1;
                    self.white();
                }
                Some(byte) if byte == close => {
                    self.pos += 1;
                    return Ok(());
                }
                _ => return self.refuse(),
            }
        }
    }

    /// Whether the key that stands at `key` is written as `name`.
    pub(crate) fn key_is(&self, key: usize, name: &str) -> bool {
        let text = &self.bytes[key + 1..];
        text.len() > name.len() && text[name.len()] == b'"' && text.starts_with(name.as_bytes())
    }

    /// A key and its colon, up to the start of the value.
    #[inline]
    fn key(&mut self) -> Result<(), Refusal> {
        if self.peek() != Some(b'"') {
            return self.refuse();
        }
        self.escaped_key |= self.string()?;
        self.white();
        if self.peek() != Some(b':') {
            return self.refuse();
        }
        self.pos += 1;
        self.white();
        Ok(())
    }

    /// One value of any kind. A loop with its own stack, so that depth costs no stack of ours.
    pub(crate) fn value(&mut self) -> Result<(), Refusal> {
        let floor = self.open.len();
        loop {
            // Here a value must begin.
            match self.peek() {
                Some(b'"') => {
                    self.string()?;
                }
                Some(b'{') => {
                    self.pos += 1;
                    self.white();
                    if self.peek() == Some(b'}') {
                        self.pos += 1;
                    } else {
                        self.enter(true);
                        self.key()?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.pos += 1;
                    self.white();
                    if self.peek() == Some(b']') {
                        self.pos += 1;
                    } else {
                        self.enter(false);
                        continue;
                    }
                }
                Some(b't') => self.word(b"true")?,
                Some(b'f') => self.word(b"false")?,
                Some(b'n') => self.word(b"null")?,
                _ => self.number()?,
            }
            // Here a value has ended: close what ends with it.
            loop {
                if self.open.len() == floor {
                    return Ok(());
                }
                let object = self.open.last() == Some(&true);
                self.white();
                match self.peek() {
                    Some(b',') => {
                        self.pos += 1;
                        self.white();
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if object => self.pos += 1,
                    Some(b']') if !object => self.pos += 1,
                    _ => return self.refuse(),
                }
                self.open.pop();
            }
        }
    }

    fn enter(&mut self, object: bool) {
        self.open.push(object);
        self.deepest = self.deepest.max(self.open.len());
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Refusal> {
        if self.bytes[self.pos..].starts_with(word) {
            self.pos += word.len();
            return Ok(());
        }
        self.refuse()
    }

    /// One string; tells whether anything in it is escaped.
    fn string(&mut self) -> Result<bool, Refusal> {
        let start = self.pos + 1;
        let mut at = start;
        let mut escaped = false;
        loop {
            let Some(hit) = find_special(self.bytes, at) else { return self.refuse() };
            if self.bytes[hit] == b'"' {
                at = hit;
                break;
            }
            escaped = true;
            at = match self.bytes.get(hit + 1) {
                Some(&byte) if SHORT_ESCAPE[usize::from(byte)] => hit + 2,
                Some(b'u') if self.bytes.get(hit + 2..hit + 6).is_some_and(all_hex) => {
                    self.surrogates |= matches!(self.bytes[hit + 2], b'd' | b'D');
                    hit + 6
                }
                _ => {
                    self.pos = hit;
                    return self.refuse();
                }
            };
        }
        if self.control
            && let Some(hit) = self.bytes[start..at].iter().position(|&byte| byte < 0x20)
        {
            self.pos = start + hit;
            return self.refuse();
        }
        self.pos = at + 1;
        Ok(escaped)
    }

    fn number(&mut self) -> Result<(), Refusal> {
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        match self.peek() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.refuse(),
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.pos += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.pos += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Refusal> {
        let start = self.pos;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        if self.pos == start { self.refuse() } else { Ok(()) }
    }
}

/// The bytes that may follow a backslash by themselves. A table, since nothing is asked more often.
const SHORT_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let bytes = b"\"\\/bfnrt";
    let mut i = 0;
    while i < bytes.len() {
        table[bytes[i] as usize] = true;
        i += 1;
    }
    table
};

fn all_hex(digits: &[u8]) -> bool {
    digits.iter().all(u8::is_ascii_hexdigit)
}

/// Whether `text` is one JSON value, by our own walker.
pub fn check(text: &str) -> bool {
    Walker::new(text).whole().is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// What serde_json says of the same text.
    fn reference(text: &str) -> bool {
        serde_json::from_str::<&RawValue>(text).is_ok()
    }

    #[test]
    fn walker_and_serde_json_agree_on_a_table() {
        let table = [
            "",
            " ",
            "{}",
            "[]",
            "null",
            "nul",
            "nulll",
            "true",
            "tru",
            "0",
            "-0",
            "01",
            "1.",
            "1.5e+3",
            "1e",
            ".5",
            "-",
            "\"\"",
            "\"\\u12\"",
            "\"\\u12G4\"",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"a",
            "{\"a\":1}",
            "{\"a\" : 1 , \"b\":[ ]}",
            "{\"a\":1,}",
            "[1,]",
            "[1 2]",
            "{a:1}",
            "{\"a\"}",
            "{\"a\":}",
            "{}{}",
            "[[]",
            "[}",
            "{]",
            "\t{}\r",
            "\"\t\"",
            "// no",
            "{\"a\":1}x",
            "\u{feff}{}",
            "1 ",
            "NaN",
            "\"\u{2028}\"",
            "123456789012345678901234567890",
        ];
        for text in table {
            assert_eq!(check(text), reference(text), "{text:?}");
        }
    }

    #[test]
    fn depth_costs_nothing() {
        let deep = "[".repeat(200_000) + &"]".repeat(200_000);
        assert!(check(&deep));
        let open = "{\"a\":".repeat(200_000);
        assert!(!check(&open));
    }

    #[test]
    fn strings_are_decoded() {
        let text = r#"{"plain":"x","esc":"a\n\t\"\\\/\u0041\u00e9","pair":"\ud83d\ude00","lone":"\ud83d!","k\u0065y":1}"#;
        let json = Json::parse(text).unwrap();
        assert_eq!(json.get("plain").unwrap().as_str().unwrap(), "x");
        assert_eq!(json.get("esc").unwrap().as_str().unwrap(), "a\n\t\"\\/Aé");
        assert_eq!(json.get("pair").unwrap().as_str().unwrap(), "😀");
        assert_eq!(json.get("lone").unwrap().as_str().unwrap(), "\u{fffd}!");
        assert_eq!(json.get("key").unwrap().as_u64(), Some(1));
        assert!(has_lone_surrogate(text));
        assert!(!has_lone_surrogate(r#""\ud83d\ude00 \\ud800""#));
        assert_eq!(
            mend_surrogates(r#""\ud800x\ud83d\ude00 \\ud800 \udc00\n""#),
            "\"\u{fffd}x\\ud83d\\ude00 \\\\ud800 \u{fffd}\\n\""
        );
    }

    #[test]
    fn the_last_of_two_equal_keys_counts() {
        assert_eq!(Json::parse(r#"{"a":1,"a":2}"#).unwrap().get("a").unwrap().raw(), "2");
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..5)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// The same value, rebuilt through our lenses.
    fn rebuild(json: Json<'_>) -> serde_json::Value {
        match json.kind() {
            JsonKind::Array => json.items().map(rebuild).collect(),
            JsonKind::Object => serde_json::Value::Object(
                json.members().map(|(k, v)| (k.name().into_owned(), rebuild(v))).collect(),
            ),
            JsonKind::String => json.as_str().unwrap().into_owned().into(),
            _ => serde_json::from_str(json.raw()).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn walker_and_serde_json_agree_on_any_text(text in "[\\[\\]{}:,\"\\\\a-f0-9.eE+\\- \tu\u{e9}ntrlse]{0,40}") {
            prop_assert_eq!(check(&text), reference(&text));
        }

        #[test]
        fn any_value_reads_back(value in any_json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            prop_assert_eq!(rebuild(Json::parse(&text).unwrap()), value);
        }

        #[test]
        fn a_broken_value_is_broken_for_both(value in any_json(), cut in any::<prop::sample::Index>()) {
            let text = serde_json::to_string(&value).unwrap();
            let mut at = cut.index(text.len() + 1);
            while !text.is_char_boundary(at) { at -= 1; }
            prop_assert_eq!(check(&text[..at]), reference(&text[..at]));
        }
    }
}
