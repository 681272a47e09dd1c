//! A validating JSON parser that reports positions and builds no values.

use super::marks::{Quotes, SHORT_ESCAPE, all_hex};
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
pub(crate) struct Walker<'a> {
    bytes: &'a [u8],
    pos: usize,
    quotes: Quotes<'a>,
    open: Nesting,
    pub(crate) deepest: usize,
    /// Whether any key contains escapes, or is separated from its value by white space.
    pub(crate) odd_key: bool,
}

/// The error for text that the walker rejects, with its offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) pos: usize,
}

impl<'a> Walker<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let bytes = text.as_bytes();
        let (quotes, open) = (Quotes::new(bytes), Nesting::default());
        Self { bytes, pos: 0, quotes, open, deepest: 0, odd_key: false }
    }

    /// Returns whether the text may contain escaped surrogates.
    pub(crate) fn surrogates(&self) -> bool {
        self.quotes.surrogates
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

    /// Parses one value, with nothing but white space around it.
    pub(crate) fn whole(&mut self) -> Result<(), Refusal> {
        self.white();
        self.value()?;
        self.white();
        if self.pos == self.bytes.len() { Ok(()) } else { self.refuse() }
    }

    /// Parses one object. `member` receives the offset of each key, and must parse the value.
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

    /// Parses one array. `item` must parse each item.
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

    /// Returns whether the key at offset `key` is written as `name`, without escapes.
    pub(crate) fn key_is(&self, key: usize, name: &str) -> bool {
        let text = &self.bytes[key + 1..];
        text.len() > name.len() && text[name.len()] == b'"' && text.starts_with(name.as_bytes())
    }

    /// Parses a key and its colon, up to the start of the value.
    #[inline(always)]
    fn key(&mut self) -> Result<(), Refusal> {
        let start = self.pos;
        if self.peek() != Some(b'"') {
            return self.refuse();
        }
        self.string()?;
        let end = self.pos;
        self.white();
        if self.peek() != Some(b':') {
            return self.refuse();
        }
        self.pos += 1;
        self.white();
        self.odd_key |= self.pos != end + 1 || self.quotes.is_escaped(start, end);
        Ok(())
    }

    /// Parses one value of any kind. Iterative, so that nesting does not use the call stack.
    pub(crate) fn value(&mut self) -> Result<(), Refusal> {
        let floor = self.open.depth;
        loop {
            // A value must begin here.
            match self.peek() {
                Some(b'"') => self.string()?,
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
            // A value has ended: close the containers that end after it.
            loop {
                if self.open.depth == floor {
                    return Ok(());
                }
                let object = self.open.in_object();
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
                self.open.leave();
            }
        }
    }

    #[inline(always)]
    fn enter(&mut self, object: bool) {
        self.open.enter(object);
        self.deepest = self.deepest.max(self.open.depth);
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Refusal> {
        if self.bytes[self.pos..].starts_with(word) {
            self.pos += word.len();
            return Ok(());
        }
        self.refuse()
    }

    /// Parses one string.
    #[inline(always)]
    fn string(&mut self) -> Result<(), Refusal> {
        let Some(end) = self.quotes.pop_two(self.pos) else { return self.refuse() };
        if self.quotes.odd {
            self.look_at_string(end)?;
        }
        self.pos = end + 1;
        Ok(())
    }

    /// Validates each byte of the string that begins here, because the marked text contains something
    /// invalid.
    #[cold]
    fn look_at_string(&mut self, end: usize) -> Result<(), Refusal> {
        let mut at = self.pos + 1;
        while at < end {
            at += match self.bytes[at..end] {
                [b'\\', b'u', a, b, c, d, ..] if all_hex(&[a, b, c, d]) => 6,
                [b'\\', byte, ..] if SHORT_ESCAPE[usize::from(byte)] => 2,
                [b'\\' | ..0x20, ..] => {
                    self.pos = at;
                    return self.refuse();
                }
                _ => 1,
            };
        }
        Ok(())
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

/// Returns whether `text` is one valid JSON value.
pub fn check(text: &str) -> bool {
    Walker::new(text).whole().is_ok()
}
