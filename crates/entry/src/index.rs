//! Where things stand in a line: its members, those of its message, and those of the message's blocks.
//!
//! The walk that checks a line goes over every byte anyway. What it passes on the way to the content
//! blocks is noted here, eight bytes a member, so that no lens has to walk there again.

use std::borrow::Cow;

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
    /// Whether a key may be written with escapes; hardly any is.
    escaped: bool,
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
        let mut builder = Builder { start, ..Builder::default() };
        let mut walker = Walker::new(&text[start..]);
        let walked = builder.line(&mut walker);
        if walked.is_err() || json::skip_white(text.as_bytes(), start + walker.pos()) != text.len() {
            return Self::by_serde(text, start);
        }
        let seen = Seen { deepest: walker.deepest + 1, surrogates: walker.surrogates };
        Ok((builder.finish(walker.escaped_key), seen))
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
        let index = Self { top: fields.len() as u32, fields, message: None, escaped: true };
        Ok((index, Seen { deepest: 1, surrogates: true }))
    }

    /// The members of the line.
    pub(crate) fn top<'a>(&'a self, text: &'a str) -> Fields<'a> {
        let fields = &self.fields[..self.top as usize];
        Fields { text, end: text.len(), fields, escaped: self.escaped }
    }

    /// The members of the line's message, and its blocks.
    pub(crate) fn message<'a>(&'a self, text: &'a str) -> Option<(Fields<'a>, Blocks<'a>)> {
        let (end, count) = self.message?;
        let rest = &self.fields[self.top as usize..];
        let (fields, blocks) = rest.split_at_checked(count as usize)?;
        let escaped = self.escaped;
        Some((Fields { text, end: end as usize, fields, escaped }, Blocks { text, fields: blocks, escaped }))
    }

    /// A key that the line has twice.
    pub(crate) fn doubled_key<'a>(&'a self, text: &'a str) -> Option<Cow<'a, str>> {
        let top = self.top(text);
        let mut marks = 0u64;
        for (i, field) in top.fields.iter().enumerate() {
            // Keys that look alike from afar are few: only those are compared.
            let written = text.as_bytes().get(field.key as usize..field.value as usize)?;
            let middle = usize::from(written[written.len() / 2]) * 31 + usize::from(written[1]);
            let mark = (middle + written.len() * 7) % 64;
            let known = marks & (1 << mark) != 0 || self.escaped;
            marks |= 1 << mark;
            if known && let Some(key) = top.key(field) {
                let mut before = top.fields[..i].iter().filter_map(|field| top.key(field));
                if before.any(|other| other.is(&key.name())) {
                    return Some(key.name());
                }
            }
        }
        None
    }
}

/// An index in the making.
#[derive(Default)]
struct Builder {
    start: usize,
    top: Vec<Field>,
    message: Vec<Field>,
    blocks: Vec<Field>,
    message_end: Option<u32>,
}

impl Builder {
    fn at(&self, pos: usize) -> u32 {
        // Longer texts are refused before they come here.
        (self.start + pos) as u32
    }

    fn line(&mut self, walker: &mut Walker<'_>) -> Result<(), Refusal> {
        self.top.reserve(24);
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
        let header = self.blocks.len();
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
        self.blocks[header].value = self.at(walker.pos());
        Ok(())
    }

    fn finish(self, escaped: bool) -> Index {
        let (top, count) = (self.top.len() as u32, self.message.len() as u32);
        let mut fields = self.top;
        fields.reserve_exact(self.message.len() + self.blocks.len());
        fields.extend_from_slice(&self.message);
        fields.extend_from_slice(&self.blocks);
        Index { fields: fields.into(), top, message: self.message_end.map(|end| (end, count)), escaped }
    }
}

/// The members of one object, by where they stand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    text: &'a str,
    /// Where the object ends.
    end: usize,
    fields: &'a [Field],
    escaped: bool,
}

impl<'a> Fields<'a> {
    /// The value of `key`; of two, the last.
    pub(crate) fn get(self, key: &str) -> Option<Json<'a>> {
        let bytes = self.text.as_bytes();
        let is_it = |field: &Field| {
            let start = field.key as usize + 1;
            let end = start + key.len();
            // The closing quote is the quickest to look for, and tells nearly all others apart.
            bytes.get(end) == Some(&b'"') && &bytes[start..end] == key.as_bytes()
        };
        let i = self.fields.iter().rposition(is_it).or_else(|| self.escaped(key))?;
        self.value(i)
    }

    /// The member whose key is `key` once it is decoded.
    fn escaped(self, key: &str) -> Option<usize> {
        if !self.escaped {
            return None;
        }
        self.fields.iter().rposition(|field| self.key(field).is_some_and(|name| name.is(key)))
    }

    fn key(self, field: &Field) -> Option<Key<'a>> {
        let start = field.key as usize;
        let end = json::skip_value(self.text.as_bytes(), start) - 1;
        Some(Key::new(self.text.get(start + 1..end)?))
    }

    /// A value ends where the comma before the next key stands, or the closing brace.
    fn value(self, i: usize) -> Option<Json<'a>> {
        let start = self.fields.get(i)?.value as usize;
        let (limit, close) = match self.fields.get(i + 1) {
            Some(next) => (next.key as usize, ','),
            None => (self.end, '}'),
        };
        let value = self.text.get(start..limit)?;
        Some(Json::trusted(value[..value.rfind(close)?].trim_end()))
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
    escaped: bool,
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
        Some((json, Fields { text: self.text, end: end as usize, fields, escaped: self.escaped }))
    }
}
