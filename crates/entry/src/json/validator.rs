//! A validating JSON parser that reports positions and builds no values.

use super::masks::{QuoteScanner, SHORT_ESCAPE, all_hex};
use super::skip_white;

/// The open containers: one bit each, set for an object; the innermost is the lowest bit.
#[derive(Default)]
struct Nesting {
    bits: u64,
    depth: usize,
    /// The outer containers, 64 per word.
    outer: Vec<u64>,
}

impl Nesting {
    #[inline(always)]
    fn enter(&mut self, object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.outer.push(self.bits);
        }
        self.bits = self.bits << 1 | u64::from(object);
        self.depth += 1;
    }

    #[inline(always)]
    fn in_object(&self) -> bool {
        self.bits & 1 != 0
    }

    #[inline(always)]
    fn leave(&mut self) {
        self.bits >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64)
            && let Some(bits) = self.outer.pop()
        {
            self.bits = bits;
        }
    }
}

/// A strict JSON parser that only validates: it builds nothing and rejects any text it does not accept as
/// JSON.
///
/// It supports the whole grammar at any depth, and stops at the first invalid byte.
pub(crate) struct JsonValidator<'a> {
    bytes: &'a [u8],
    pos: usize,
    quotes: QuoteScanner<'a>,
    open: Nesting,
    /// The number of levels of nested objects and arrays. The innermost does not count if it is empty.
    pub(crate) max_depth: usize,
    /// The number of values, at any depth.
    pub(crate) n_values: usize,
    /// Whether any key contains escapes, or is separated from its value by white space.
    pub(crate) has_unusual_key: bool,
}

/// The error for text that the walker rejects, with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JsonSyntaxError {
    pub(crate) pos: usize,
}

impl<'a> JsonValidator<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let (quotes, open) = (QuoteScanner::new(bytes), Nesting::default());
        Self { bytes, pos: 0, quotes, open, max_depth: 0, n_values: 0, has_unusual_key: false }
    }

    /// Returns whether the text may contain escaped surrogates.
    pub(crate) fn may_have_surrogates(&self) -> bool {
        self.quotes.may_have_surrogates
    }

    pub(crate) fn pos(&self) -> usize {
        self.pos
    }

    fn reject<T>(&self) -> Result<T, JsonSyntaxError> {
        Err(JsonSyntaxError { pos: self.pos })
    }

    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    #[inline(always)]
    fn skip_white_space(&mut self) {
        self.pos = skip_white(self.bytes, self.pos);
    }

    /// Parses one value, with nothing but white space around it.
    pub(crate) fn document(&mut self) -> Result<(), JsonSyntaxError> {
        self.skip_white_space();
        self.value()?;
        self.skip_white_space();
        if self.pos == self.bytes.len() { Ok(()) } else { self.reject() }
    }

    /// Parses one object. `member` receives the offset of each key, and must parse the value.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, usize) -> Result<(), JsonSyntaxError>,
    ) -> Result<(), JsonSyntaxError> {
        self.container(b'{', b'}', |walker| {
            let key = walker.pos;
            walker.key()?;
            member(walker, key)
        })
    }

    /// Parses one array. `item` must parse each item.
    pub(crate) fn array(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<(), JsonSyntaxError>,
    ) -> Result<(), JsonSyntaxError> {
        self.container(b'[', b']', item)
    }

    fn container(
        &mut self,
        open: u8,
        close: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), JsonSyntaxError>,
    ) -> Result<(), JsonSyntaxError> {
        if self.peek() != Some(open) {
            return self.reject();
        }
        self.n_values += 1;
        self.pos += 1;
        self.skip_white_space();
        if self.peek() == Some(close) {
            self.pos += 1;
            return Ok(());
        }
        self.enter(open == b'{');
        loop {
            item(self)?;
            self.skip_white_space();
            match self.peek() {
                Some(b',') => {
                    self.pos += 1;
                    self.skip_white_space();
                }
                Some(byte) if byte == close => {
                    self.pos += 1;
                    self.open.leave();
                    return Ok(());
                }
                _ => return self.reject(),
            }
        }
    }

    /// Returns whether the key at offset `key` is written as `name`, without escapes.
    pub(crate) fn key_is(&self, key: usize, name: &str) -> bool {
        let text = &self.bytes[key + 1..];
        text.len() > name.len() && text[name.len()] == b'"' && text.starts_with(name.as_bytes())
    }

    /// Parses a key and its colon, up to the start of the value.
    #[inline(always)]
    fn key(&mut self) -> Result<(), JsonSyntaxError> {
        let start = self.pos;
        if self.peek() != Some(b'"') {
            return self.reject();
        }
        self.string()?;
        let end = self.pos;
        self.skip_white_space();
        if self.peek() != Some(b':') {
            return self.reject();
        }
        self.pos += 1;
        self.skip_white_space();
        self.has_unusual_key |= self.pos != end + 1 || self.quotes.is_escaped(start, end);
        Ok(())
    }

    /// Parses one value of any kind. Iterative, so that nesting does not use the call stack.
    pub(crate) fn value(&mut self) -> Result<(), JsonSyntaxError> {
        let floor = self.open.depth;
        loop {
            // A value must begin here.
            self.n_values += 1;
            match self.peek() {
                Some(b'"') => self.string()?,
                Some(b'{') => {
                    self.pos += 1;
                    self.skip_white_space();
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
                    self.skip_white_space();
                    if self.peek() == Some(b']') {
                        self.pos += 1;
                    } else {
                        self.enter(false);
                        continue;
                    }
                }
                Some(b't') => self.literal(b"true")?,
                Some(b'f') => self.literal(b"false")?,
                Some(b'n') => self.literal(b"null")?,
                _ => self.number()?,
            }
            // A value has ended: close the containers that end after it.
            loop {
                if self.open.depth == floor {
                    return Ok(());
                }
                let object = self.open.in_object();
                self.skip_white_space();
                match self.peek() {
                    Some(b',') => {
                        self.pos += 1;
                        self.skip_white_space();
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if object => self.pos += 1,
                    Some(b']') if !object => self.pos += 1,
                    _ => return self.reject(),
                }
                self.open.leave();
            }
        }
    }

    #[inline(always)]
    fn enter(&mut self, object: bool) {
        self.open.enter(object);
        self.max_depth = self.max_depth.max(self.open.depth);
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), JsonSyntaxError> {
        if self.bytes[self.pos..].starts_with(word) {
            self.pos += word.len();
            return Ok(());
        }
        self.reject()
    }

    /// Parses one string.
    #[inline(always)]
    fn string(&mut self) -> Result<(), JsonSyntaxError> {
        let Some(end) = self.quotes.pop_string_end(self.pos) else { return self.reject() };
        if self.quotes.has_invalid {
            self.validate_string(end)?;
        }
        self.pos = end + 1;
        Ok(())
    }

    /// Validates each byte of the string that begins here, because the marked text contains something
    /// invalid.
    #[cold]
    fn validate_string(&mut self, end: usize) -> Result<(), JsonSyntaxError> {
        let mut at = self.pos + 1;
        while at < end {
            at += match self.bytes[at..end] {
                [b'\\', b'u', a, b, c, d, ..] if all_hex(&[a, b, c, d]) => 6,
                [b'\\', byte, ..] if SHORT_ESCAPE[usize::from(byte)] => 2,
                [b'\\' | ..0x20, ..] => {
                    self.pos = at;
                    return self.reject();
                }
                _ => 1,
            };
        }
        Ok(())
    }

    fn number(&mut self) -> Result<(), JsonSyntaxError> {
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        match self.peek() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.reject(),
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

    fn digits(&mut self) -> Result<(), JsonSyntaxError> {
        let start = self.pos;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.pos += 1;
        }
        if self.pos == start { self.reject() } else { Ok(()) }
    }
}

/// Returns whether `text` is one valid JSON value.
pub fn check(text: &str) -> bool {
    JsonValidator::new(text).document().is_ok()
}
