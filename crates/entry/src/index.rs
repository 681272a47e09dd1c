//! Where things stand in a line: its members, those of its message, and those of the message's blocks.
//!
//! The walk that checks a line goes over every byte anyway. What it passes on the way to the content
//! blocks is noted here, eight bytes a member, so that no lens has to walk there again.

use std::borrow::Cow;

use memchr::memrchr;
use serde_json::value::RawValue;

use crate::json::{self, Json, Key, Refusal, Walker};

/// Where a member stands in the text: the opening quote of its key, and its value's first byte.
#[derive(Clone, Copy, Debug)]
struct Field {
    key: u32,
    value: u32,
}

/// The index of a line that is an object.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    /// The members of the line, then those of its message, then its blocks: for each block a field
    /// with its start and end, and behind it the block's members.
    fields: Box<[Field]>,
    /// How many of them are the line's own.
    top: u32,
    /// Where the message ends, and how many fields it has; nothing if it is not indexed.
    message: Option<(u32, u32)>,
    /// Whether a key may be written with escapes, or with white space behind it; hardly any is.
    odd: bool,
}

/// What was seen while walking over a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// How deep values are nested.
    pub(crate) deepest: usize,
    /// Whether halves of surrogate pairs may stand in it.
    pub(crate) surrogates: bool,
}

impl Index {
    /// Walks over the object that begins at `start` and ends with the text; or says why it is none.
    pub(crate) fn of(text: &str, start: usize) -> Result<(Self, Seen), String> {
        let mut builder = Builder {
            start,
            top: Short::EMPTY,
            message: Short::EMPTY,
            blocks: Short::EMPTY,
            message_end: None,
        };
        let mut walker = Walker::new(&text[start..]);
        let walked = builder.line(&mut walker);
        if walked.is_err() || json::skip_white(text.as_bytes(), start + walker.pos()) != text.len() {
            return Self::by_serde(text, start);
        }
        let seen = Seen { deepest: walker.deepest + 1, surrogates: walker.surrogates() };
        Ok((builder.finish(walker.odd_key), seen))
    }

    /// The same by serde_json, which has the last word on what our walker refuses.
    fn by_serde(text: &str, start: usize) -> Result<(Self, Seen), String> {
        let whole: &RawValue = serde_json::from_str(&text[start..]).map_err(|error| error.to_string())?;
        let json = Json::trusted(whole.get());
        if !json.is_object() {
            return Err(format!("a JSON {} stands where an object should", json.kind().name()));
        }
        let place =
            |part: &str| u32::try_from(part.as_ptr() as usize - text.as_ptr() as usize).unwrap_or(u32::MAX);
        let member = |(key, value): (Key<'_>, Json<'_>)| Field {
            key: place(key.raw()) - 1,
            value: place(value.raw()),
        };
        let fields: Box<[Field]> = json.members().map(member).collect();
        let index = Self { top: fields.len() as u32, fields, message: None, odd: true };
        Ok((index, Seen { deepest: 1, surrogates: true }))
    }

    /// The members of the line.
    pub(crate) fn top<'a>(&'a self, text: &'a str) -> Fields<'a> {
        let fields = &self.fields[..self.top as usize];
        Fields { text, end: text.len(), fields, odd: self.odd }
    }

    /// The members of the line's message, and its blocks.
    pub(crate) fn message<'a>(&'a self, text: &'a str) -> Option<(Fields<'a>, Blocks<'a>)> {
        let (end, count) = self.message?;
        let rest = &self.fields[self.top as usize..];
        let (fields, blocks) = rest.split_at_checked(count as usize)?;
        let odd = self.odd;
        Some((Fields { text, end: end as usize, fields, odd }, Blocks { text, fields: blocks, odd }))
    }

    /// A key that the line has twice.
    pub(crate) fn doubled_key<'a>(&'a self, text: &'a str) -> Option<Cow<'a, str>> {
        let top = self.top(text);
        let mut seen = [0u64; 16];
        for (i, field) in top.fields.iter().enumerate() {
            // Keys that look alike from afar are few: only those are compared.
            let key = top.key(field)?;
            let mark = mark(key.raw().as_bytes());
            let (word, bit) = (&mut seen[mark / 64 % 16], 1 << (mark % 64));
            let known = *word & bit != 0 || self.odd;
            *word |= bit;
            if known {
                let mut before = top.fields[..i].iter().filter_map(|field| top.key(field));
                if before.any(|other| other.raw() == key.raw() || other.is(&key.name())) {
                    return Some(key.name());
                }
            }
        }
        None
    }
}

/// A number below 1024 that is the same for equal keys, and mostly another for others.
fn mark(key: &[u8]) -> usize {
    let [Some(first), Some(last), Some(middle)] = [key.first(), key.last(), key.get(key.len() / 2)] else {
        return 0;
    };
    let word = u32::from_le_bytes([*first, *last, *middle, key.len() as u8]);
    (word.wrapping_mul(0x9e37_79b9) >> 22) as usize
}

/// A list that needs no memory of its own while it is short.
struct Short<const N: usize> {
    first: [Field; N],
    count: usize,
    rest: Vec<Field>,
}

impl<const N: usize> Short<N> {
    const NONE: Field = Field { key: 0, value: 0 };
    const EMPTY: Self = Self { first: [Self::NONE; N], count: 0, rest: Vec::new() };

    #[inline(always)]
    fn push(&mut self, field: Field) {
        match self.first.get_mut(self.count) {
            Some(place) => *place = field,
            None => self.rest.push(field),
        }
        self.count += 1;
    }

    fn clear(&mut self) {
        self.count = 0;
        self.rest.clear();
    }

    fn set_value(&mut self, i: usize, value: u32) {
        let field = if i < N { self.first.get_mut(i) } else { self.rest.get_mut(i - N) };
        if let Some(field) = field {
            field.value = value;
        }
    }

    /// The two parts of the list, one behind the other.
    fn parts(&self) -> [&[Field]; 2] {
        [&self.first[..self.count.min(N)], &self.rest]
    }
}

/// An index in the making.
struct Builder {
    start: usize,
    top: Short<32>,
    message: Short<16>,
    blocks: Short<16>,
    message_end: Option<u32>,
}

impl Builder {
    fn at(&self, pos: usize) -> u32 {
        // Longer texts are refused before they come here.
        (self.start + pos) as u32
    }

    fn line(&mut self, walker: &mut Walker<'_>) -> Result<(), Refusal> {
        walker.object(|walker, key| {
            let field = Field { key: self.at(key), value: self.at(walker.pos()) };
            self.top.push(field);
            if walker.key_is(key, "message") && walker.peek() == Some(b'{') {
                self.message(walker)
            } else {
                walker.value()
            }
        })
    }

    fn message(&mut self, walker: &mut Walker<'_>) -> Result<(), Refusal> {
        // Of two messages the last one counts.
        self.message.clear();
        self.blocks.clear();
        walker.object(|walker, key| {
            let field = Field { key: self.at(key), value: self.at(walker.pos()) };
            self.message.push(field);
            if walker.key_is(key, "content") && walker.peek() == Some(b'[') {
                self.blocks.clear();
                walker.array(|walker| self.block(walker))
            } else {
                walker.value()
            }
        })?;
        self.message_end = Some(self.at(walker.pos()));
        Ok(())
    }

    fn block(&mut self, walker: &mut Walker<'_>) -> Result<(), Refusal> {
        let header = self.blocks.count;
        let start = self.at(walker.pos());
        self.blocks.push(Field { key: start, value: start });
        if walker.peek() == Some(b'{') {
            walker.object(|walker, key| {
                let field = Field { key: self.at(key), value: self.at(walker.pos()) };
                self.blocks.push(field);
                walker.value()
            })?;
        } else {
            walker.value()?;
        }
        self.blocks.set_value(header, self.at(walker.pos()));
        Ok(())
    }

    fn finish(self, odd: bool) -> Index {
        let (top, count) = (self.top.count, self.message.count);
        let mut fields = Vec::with_capacity(top + count + self.blocks.count);
        for part in [self.top.parts(), self.message.parts(), self.blocks.parts()].into_iter().flatten() {
            fields.extend_from_slice(part);
        }
        let message = self.message_end.map(|end| (end, count as u32));
        Index { fields: fields.into(), top: top as u32, message, odd }
    }
}

/// The members of one object, by where they stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    text: &'a str,
    /// Where the object ends.
    end: usize,
    fields: &'a [Field],
    odd: bool,
}

impl<'a> Fields<'a> {
    /// The value of `key`; of two, the last.
    pub(crate) fn get(self, key: &str) -> Option<Json<'a>> {
        if self.odd {
            let i = self.fields.iter().rposition(|field| self.key(field).is_some_and(|name| name.is(key)))?;
            return self.value(i);
        }
        let bytes = self.text.as_bytes();
        // Two quotes and a colon stand between a key and its value, so most keys are told apart by length.
        let span = key.len() as u32 + 3;
        let is_it = |field: &Field| {
            let start = field.key as usize + 1;
            field.value.wrapping_sub(field.key) == span
                && bytes.get(start..start + key.len()) == Some(key.as_bytes())
        };
        self.value(self.fields.iter().rposition(is_it)?)
    }

    #[inline(always)]
    fn key(self, field: &Field) -> Option<Key<'a>> {
        let written = self.text.get(field.key as usize + 1..field.value as usize)?;
        // Between a key and its value there is no quote but the one that ends the key.
        let end = match self.odd {
            true => written.bytes().rposition(|byte| byte == b'"')?,
            false => written.len().checked_sub(2)?,
        };
        Some(Key::new(&written[..end]))
    }

    /// A value ends where the comma before the next key stands, or the closing brace.
    fn value(self, i: usize) -> Option<Json<'a>> {
        let start = self.fields.get(i)?.value as usize;
        let (limit, close) = match self.fields.get(i + 1) {
            Some(next) => (next.key as usize, b','),
            None => (self.end, b'}'),
        };
        let mut end = limit.checked_sub(1)?;
        let bytes = self.text.as_bytes();
        if bytes.get(end) != Some(&close) || bytes[end - 1] <= b' ' {
            // White space stands around.
            let written = bytes.get(start..limit)?;
            end = start + written[..memrchr(close, written)?].trim_ascii_end().len();
        }
        Some(Json::trusted(self.text.get(start..end)?))
    }

    /// The members in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = (Key<'a>, Json<'a>)> {
        (0..self.fields.len()).filter_map(move |i| Some((self.key(&self.fields[i])?, self.value(i)?)))
    }
}

/// The blocks of a message, by where they stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Blocks<'a> {
    text: &'a str,
    fields: &'a [Field],
    odd: bool,
}

impl<'a> Iterator for Blocks<'a> {
    type Item = (Json<'a>, Fields<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.fields.split_first()?;
        let end = header.value;
        let count = rest.iter().take_while(|field| field.key < end).count();
        let (fields, rest) = rest.split_at(count);
        self.fields = rest;
        let json = Json::trusted(self.text.get(header.key as usize..end as usize)?);
        Some((json, Fields { text: self.text, end: end as usize, fields, odd: self.odd }))
    }
}
