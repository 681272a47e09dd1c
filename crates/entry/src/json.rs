//! JSON values as slices of valid text, read on demand.
//!
//! [`check`] validates a text once. After that a [`Json`] is only a string slice and copies nothing: a lookup
//! in an object scans its text, and strings are decoded on request.

mod masks;
mod validator;

use std::borrow::Cow;
use std::fmt;

use fearless_simd::{Level, SimdBase, SimdMask, dispatch, u8x16};
use memchr::{memchr, memchr2};

use self::masks::BackslashFinder;
pub(crate) use self::masks::{QuoteScanner, count_escaped_breaks};
pub use self::validator::check;
pub(crate) use self::validator::{JsonSyntaxError, JsonValidator};

/// One JSON value, as written.
///
/// The text is valid JSON: values are created only from validated text. Even so, no method panics. A method
/// returns `None` if the value has another kind than requested.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

/// The six kinds of JSON value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum JsonKind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl JsonKind {
    /// Returns the name of the kind.
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

    /// Parses a whole text as one JSON value; returns `None` if it is not JSON.
    pub fn parse(text: &'a str) -> Option<Self> {
        let mut walker = JsonValidator::new(text);
        walker.document().ok()?;
        Some(Self(text.trim_matches(WHITE_SPACE)))
    }

    /// Wraps the text of one value, without surrounding white space.
    ///
    /// Nothing is validated: what the accessors return for text that is not valid JSON is unspecified.
    pub fn from_valid(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the text of the value, without surrounding white space.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Returns the kind of the value, from its first byte.
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

    /// Returns whether the value is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// Returns whether the value is an object.
    pub fn is_object(self) -> bool {
        self.kind() == JsonKind::Object
    }

    /// Returns the boolean, if the value is one.
    pub fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// Returns the number as an unsigned integer, if it is one that fits.
    pub fn as_u64(self) -> Option<u64> {
        self.0.parse().ok()
    }

    /// Returns the number, if the value is one.
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == JsonKind::Number).then(|| self.0.parse().ok()).flatten()
    }

    /// Returns the decoded string, borrowed if it contains no escapes.
    ///
    /// An unpaired surrogate is decoded as U+FFFD.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        Some(decode(self.quoted()?))
    }

    /// Returns whether the value is the string `text`. Decodes only if the string contains escapes.
    pub fn is_str(self, text: &str) -> bool {
        self.quoted().is_some_and(|inner| {
            inner == text || (inner.len() > text.len() && is_escaped(inner) && decode(inner) == text)
        })
    }

    /// Returns the text between the quotes of a string, with its escapes.
    pub fn quoted(self) -> Option<&'a str> {
        self.0.strip_prefix('"')?.strip_suffix('"')
    }

    /// Returns the value of `key`. The last one counts if the key occurs twice, as in JavaScript.
    pub fn get(self, key: &str) -> Option<Self> {
        let [value] = self.get_all([key]);
        value
    }

    /// Returns the values of several keys of an object, like [`Json::get`] for each, in one pass.
    #[inline]
    pub fn get_all<const N: usize>(self, keys: [&str; N]) -> [Option<Self>; N] {
        let bytes = self.0.as_bytes();
        let mut found = [None; N];
        let walked = visit_members(bytes, 0, |name, start| {
            let end = skip_value(bytes, start);
            for (key, found) in keys.iter().zip(&mut found) {
                if name == key.as_bytes() {
                    *found = Some((start, end));
                }
            }
            Some(end)
        });
        if walked.is_some() {
            return found.map(|found| found.and_then(|(start, end)| self.0.get(start..end)).map(Self));
        }
        // Not an object, or an object with an escaped key.
        keys.map(|key| self.members().filter(|(name, _)| name.is(key)).last().map(|(_, value)| value))
    }

    /// Returns the members of an object in order; none for other kinds.
    pub fn members(self) -> JsonMembers<'a> {
        JsonMembers { text: self.0, pos: if self.is_object() { 1 } else { self.0.len() } }
    }

    /// Returns the items of an array in order; none for other kinds.
    pub fn items(self) -> JsonItems<'a> {
        JsonItems { text: self.0, pos: if self.kind() == JsonKind::Array { 1 } else { self.0.len() } }
    }
}

/// A value inside of another one, as [`Json::visit_nested`] finds it. Its end is not known yet.
#[derive(Clone, Copy, Debug)]
pub struct NestedJson<'a> {
    text: &'a str,
    pos: usize,
    key: Option<JsonKey<'a>>,
}

impl<'a> NestedJson<'a> {
    /// Returns the kind of the value.
    pub fn kind(self) -> JsonKind {
        Json(&self.text[self.pos..]).kind()
    }

    /// Returns the key of the innermost member that contains the value; `None` if there is none.
    pub fn key(self) -> Option<JsonKey<'a>> {
        self.key
    }

    /// Returns the value. The cost grows with its length.
    pub fn json(self) -> Json<'a> {
        let end = skip_value(self.text.as_bytes(), self.pos).min(self.text.len());
        Json(self.text.get(self.pos..end).unwrap_or("null"))
    }
}

impl<'a> Json<'a> {
    /// Visits the value and all values inside of it, in the order of the text. `visit` returns whether the
    /// values inside of an object or an array are visited, too.
    ///
    /// Takes one pass over the text and does not recurse, so the depth of the value is not limited.
    pub fn visit_nested(self, mut visit: impl FnMut(NestedJson<'a>) -> bool) {
        let (text, bytes) = (self.0, self.0.as_bytes());
        // The objects and arrays that are open: whether each is an object, and the key that contains it.
        let mut open: Vec<(bool, Option<JsonKey<'a>>)> = Vec::new();
        let (mut pos, mut key) = (0, None);
        while let Some(&first) = bytes.get(pos) {
            let is_visited = visit(NestedJson { text, pos, key });
            if is_visited && matches!(first, b'{' | b'[') {
                open.push((first == b'{', key));
                pos += 1;
            } else {
                pos = skip_value(bytes, pos);
            }
            loop {
                let Some(&(is_object, outer_key)) = open.last() else { return };
                let Some(start) = next_item(bytes, pos) else {
                    pos = skip_white(bytes, pos) + 1;
                    open.pop();
                    continue;
                };
                (pos, key) = (start, outer_key);
                if is_object {
                    let key_end = skip_value(bytes, start);
                    key = text.get(start + 1..key_end.saturating_sub(1)).map(JsonKey);
                    pos = skip_white(bytes, skip_white(bytes, key_end) + 1);
                }
                break;
            }
        }
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The key of a member, as written.
#[derive(Clone, Copy, Debug)]
pub struct JsonKey<'a>(&'a str);

impl<'a> JsonKey<'a> {
    pub(crate) fn new(inner: &'a str) -> Self {
        Self(inner)
    }

    /// Returns the key as written, with its escapes.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// Returns whether the decoded key is `name`.
    pub fn is(self, name: &str) -> bool {
        // Decoding never makes a key longer.
        self.0 == name || (self.0.len() > name.len() && is_escaped(self.0) && decode(self.0) == name)
    }

    /// Returns the decoded key.
    pub fn name(self) -> Cow<'a, str> {
        decode(self.0)
    }
}

/// An iterator over the members of an object.
#[derive(Clone)]
pub struct JsonMembers<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Iterator for JsonMembers<'a> {
    type Item = (JsonKey<'a>, Json<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        let key_start = next_item(bytes, self.pos)?;
        let key_end = skip_value(bytes, key_start);
        let colon = skip_white(bytes, key_end);
        let start = skip_white(bytes, colon + 1);
        let end = skip_value(bytes, start);
        self.pos = end;
        let key = self.text.get(key_start + 1..key_end.checked_sub(1)?)?;
        Some((JsonKey(key), Json(self.text.get(start..end)?)))
    }
}

/// An iterator over the items of an array.
#[derive(Clone)]
pub struct JsonItems<'a> {
    text: &'a str,
    pos: usize,
}

impl<'a> Iterator for JsonItems<'a> {
    type Item = Json<'a>;

    fn next(&mut self) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let start = next_item(bytes, self.pos)?;
        let end = skip_value(bytes, start);
        self.pos = end;
        Some(Json(self.text.get(start..end)?))
    }
}

/// Returns the offset of the next item of a container, or `None` at its end.
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

pub(crate) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

#[inline(always)]
pub(crate) fn skip_white(bytes: &[u8], mut pos: usize) -> usize {
    // Claude Code writes no white space, so this is nearly always one comparison.
    while bytes.get(pos).is_some_and(|&byte| byte <= b' ' && matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        pos += 1;
    }
    pos
}

/// Returns the end of the value that starts at `pos` of valid text. The result is always greater than `pos`.
pub fn skip_value(bytes: &[u8], pos: usize) -> usize {
    match bytes.get(pos) {
        Some(b'"') => skip_string(bytes, pos),
        Some(b'{' | b'[') => masks::end_of_container(bytes, pos),
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

/// Visits the members of the object at `start` of text that is assumed to be valid, and returns its end.
///
/// `member` receives each key and the offset of its value, and returns the end of the value. Returns `None`
/// if the value is not an object, if a key contains escapes, or if `member` returns `None`.
#[inline(always)]
pub fn visit_members<'a>(
    bytes: &'a [u8],
    start: usize,
    mut member: impl FnMut(&'a [u8], usize) -> Option<usize>,
) -> Option<usize> {
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    let mut at = skip_white(bytes, start + 1);
    if bytes.get(at) == Some(&b'}') {
        return Some(at + 1);
    }
    loop {
        if bytes.get(at) != Some(&b'"') {
            return None;
        }
        let close = find_special(bytes, at + 1).filter(|&close| bytes[close] == b'"')?;
        let colon = skip_white(bytes, close + 1);
        if bytes.get(colon) != Some(&b':') {
            return None;
        }
        let end = member(&bytes[at + 1..close], skip_white(bytes, colon + 1))?;
        at = skip_white(bytes, end);
        match bytes.get(at) {
            Some(b',') => at = skip_white(bytes, at + 1),
            Some(b'}') => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Returns the end of the string that starts at `pos`, after its closing quote.
fn skip_string(bytes: &[u8], pos: usize) -> usize {
    const FEW: usize = 3;
    let mut at = pos + 1;
    for _ in 0..FEW {
        let Some(hit) = find_special(bytes, at) else { return bytes.len() };
        if bytes[hit] == b'"' {
            return hit + 1;
        }
        at = hit + 2;
    }
    // A string with some escapes usually has many: in code every line ends with one.
    if at < bytes.len() { masks::end_of_string(bytes, at) } else { bytes.len() }
}

/// Returns the offset of the next quote or backslash at or after `at`.
///
/// Keys and ids are short, and prose and code contain frequent escapes. So the next 48 bytes are searched
/// inline, 16 at a time with the vectors that every CPU of the target has. Only longer runs call `memchr`.
#[inline(always)]
pub(crate) fn find_special(bytes: &[u8], mut at: usize) -> Option<usize> {
    for _ in 0..3 {
        let Some((chunk, _)) = bytes.get(at..)?.split_first_chunk::<16>() else { break };
        let found = dispatch!(Level::baseline(), simd => {
            let chunk = u8x16::from_slice(simd, chunk);
            (chunk.simd_eq(b'"') | chunk.simd_eq(b'\\')).to_bitmask()
        });
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize);
        }
        at += 16;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|hit| at + hit)
}

/// Decodes the text between the quotes of a valid string.
pub fn decode(inner: &str) -> Cow<'_, str> {
    if memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    Cow::Owned(decode_into(inner, Vec::new()))
}

/// Decodes the text between the quotes of a valid string, in the memory of `buffer`. Its content is lost.
pub fn decode_into(inner: &str, mut buffer: Vec<u8>) -> String {
    let bytes = inner.as_bytes();
    buffer.clear();
    // Decoded text is never longer than the input.
    buffer.reserve_exact(bytes.len() + COPY_STEP);
    let mut out = buffer;
    let mut from = 0;
    let mut backslashes = BackslashFinder::new();
    let mut start = 0;
    while start < bytes.len() {
        let (places, looked_at) = backslashes.find(&bytes[start..]);
        for at in places.iter().map(|&place| start + usize::from(place)) {
            // This backslash was consumed by the previous escape.
            if at < from {
                continue;
            }
            copy(&bytes[from..], at - from, &mut out);
            let plain = bytes.get(at + 1).map_or(0, |&byte| ESCAPED_CHAR[usize::from(byte)]);
            if plain != 0 {
                out.push(plain);
                from = at + 2;
            } else {
                let (ch, next) = decode_escape(bytes, at);
                out.extend_from_slice(ch.encode_utf8(&mut [0; 4]).as_bytes());
                from = next;
            }
        }
        start += looked_at;
    }
    out.extend_from_slice(&bytes[from..]);
    into_string(out)
}

/// The number of bytes that `copy` copies at once.
const COPY_STEP: usize = 64;

/// Appends the first `n` bytes of `from`. Most runs are short: copying a fixed 64 bytes and truncating is
/// faster.
#[inline(always)]
fn copy(from: &[u8], n: usize, to: &mut Vec<u8>) {
    match from.first_chunk::<COPY_STEP>() {
        Some(piece) if n <= COPY_STEP => {
            let end = to.len() + n;
            to.extend_from_slice(piece);
            to.truncate(end);
        }
        _ => to.extend_from_slice(&from[..n]),
    }
}

/// Returns whether the text of a string contains escapes. Meant for short strings.
pub(crate) fn is_escaped(inner: &str) -> bool {
    inner.bytes().fold(false, |any, byte| any | (byte == b'\\'))
}

/// Converts bytes that are valid UTF-8 to a string.
fn into_string(bytes: Vec<u8>) -> String {
    if bytes.is_ascii() {
        return String::from_utf8(bytes).unwrap_or_default();
    }
    // simdutf8 validates only borrowed bytes, but with a copy it is still faster than `from_utf8`.
    match simdutf8::basic::from_utf8(&bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => String::from_utf8_lossy(&bytes).into_owned(),
    }
}

/// The character of each single-letter escape; zero for other bytes.
const ESCAPED_CHAR: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = b"\"\"\\\\//b\x08f\x0cn\nr\rt\t";
    let mut i = 0;
    while i < pairs.len() {
        table[pairs[i] as usize] = pairs[i + 1];
        i += 2;
    }
    table
};

/// Decodes the escape at `at`; returns its character and the offset after it.
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

/// Returns whether the text contains an escaped surrogate without its other half.
pub fn has_lone_surrogate(text: &str) -> bool {
    let bytes = text.as_bytes();
    // A quick check first: hardly any line has an escape of that range.
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

/// Replaces every unpaired surrogate of a JSON text by U+FFFD.
pub fn replace_lone_surrogates(text: &str) -> Cow<'_, str> {
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

#[cfg(test)]
mod tests;
