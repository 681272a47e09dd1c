//! Offsets of the members of a line, of its message, and of the message's content blocks.
//!
//! The parser that validates a line visits every byte anyway. It records the offsets of those members here,
//! eight bytes each, so that lenses need not scan the line again.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memrchr;
use serde_json::value::RawValue;

use crate::json::{self, Json, JsonKey, JsonSyntaxError, JsonValidator};

/// The offsets of a member: the opening quote of its key, and the first byte of its value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldOffsets {
    key: u32,
    value: u32,
}

/// The index of a line that is an object: a part of the fields that the lines of a text share.
///
/// Two fields precede those of the line: the number of its own members and the number of all its fields,
/// then the end of its message (0 if it is not indexed) and the number of the message's members.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineIndex<'a> {
    /// The members of the line, then those of its message, then its blocks that are objects. Each block is
    /// one field with the start and end of the block, followed by the members of the block.
    fields: &'a [FieldOffsets],
    /// The number of members of the line itself.
    top: u32,
    /// The end of the message, 0 if it is not indexed, and the number of its members.
    message: (u32, u32),
    /// Whether any key may contain escapes or be followed by white space, which is rare.
    has_unusual_keys: bool,
}

/// Properties of a line that the parser observed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineProperties {
    /// The nesting depth of the deepest value.
    pub(crate) max_depth: usize,
    /// Whether the line may contain escaped surrogates.
    pub(crate) may_have_surrogates: bool,
    /// Whether any key may contain escapes or be followed by white space.
    pub(crate) has_unusual_keys: bool,
}

impl<'a> LineIndex<'a> {
    /// Returns the index that [`LineIndex::build`] appended at `position` of `fields`.
    pub(crate) fn at(fields: &'a [FieldOffsets], position: usize, has_unusual_keys: bool) -> Option<Self> {
        let [header, message, fields @ ..] = fields.get(position..)? else { return None };
        Some(Self {
            fields: fields.get(..header.value as usize)?,
            top: header.key,
            message: (message.key, message.value),
            has_unusual_keys,
        })
    }

    /// Indexes the object that begins at `start` and extends to the end of the text. Appends the index to
    /// `fields`.
    ///
    /// Returns an error message if the text is not a JSON object.
    pub(crate) fn build(
        text: &str,
        start: usize,
        fields: &mut Vec<FieldOffsets>,
    ) -> Result<LineProperties, String> {
        let mut builder = IndexBuilder {
            start,
            top: InlineVec::EMPTY,
            message: InlineVec::EMPTY,
            blocks: InlineVec::EMPTY,
            message_end: None,
        };
        let mut walker = JsonValidator::new(&text[start..]);
        let walked = builder.line(&mut walker);
        if walked.is_err() || json::skip_white(text.as_bytes(), start + walker.pos()) != text.len() {
            return Self::index_with_serde(text, start, fields);
        }
        let seen = LineProperties {
            max_depth: walker.max_depth + 1,
            may_have_surrogates: walker.may_have_surrogates(),
            has_unusual_keys: walker.has_unusual_key,
        };
        builder.finish(fields);
        Ok(seen)
    }

    /// Indexes the object with serde_json, which decides about any text that our parser rejects.
    fn index_with_serde(
        text: &str,
        start: usize,
        fields: &mut Vec<FieldOffsets>,
    ) -> Result<LineProperties, String> {
        let whole: &RawValue = serde_json::from_str(&text[start..]).map_err(|error| error.to_string())?;
        let json = Json::from_valid(whole.get());
        if !json.is_object() {
            return Err(format!("expected a JSON object, found a JSON {}", json.kind().name()));
        }
        let place =
            |part: &str| u32::try_from(part.as_ptr() as usize - text.as_ptr() as usize).unwrap_or(u32::MAX);
        let member = |(key, value): (JsonKey<'_>, Json<'_>)| FieldOffsets {
            key: place(key.raw()) - 1,
            value: place(value.raw()),
        };
        let members: Vec<FieldOffsets> = json.members().map(member).collect();
        let count = members.len() as u32;
        fields.extend([FieldOffsets { key: count, value: count }, FieldOffsets { key: 0, value: 0 }]);
        fields.extend(members);
        Ok(LineProperties { max_depth: 1, may_have_surrogates: true, has_unusual_keys: true })
    }

    /// Returns the number of fields that [`LineIndex::append_to`] appends.
    pub(crate) fn length(self) -> usize {
        self.fields.len() + 2
    }

    /// Appends the index to `fields`, as [`LineIndex::build`] does.
    pub(crate) fn append_to(self, fields: &mut Vec<FieldOffsets>) {
        fields.push(FieldOffsets { key: self.top, value: self.fields.len() as u32 });
        fields.push(FieldOffsets { key: self.message.0, value: self.message.1 });
        fields.extend_from_slice(self.fields);
    }

    /// Returns the members of the line.
    pub(crate) fn top(self, text: LineText<'a>) -> IndexedFields<'a> {
        let fields = &self.fields[..self.top as usize];
        IndexedFields { text, end: text.length, fields, has_unusual_keys: self.has_unusual_keys }
    }

    /// Returns the members of the line's message, and its blocks.
    pub(crate) fn message(self, text: LineText<'a>) -> Option<(IndexedFields<'a>, IndexedBlocks<'a>)> {
        let (end, count) = self.message;
        if end == 0 {
            return None;
        }
        let rest = &self.fields[self.top as usize..];
        let (fields, blocks) = rest.split_at_checked(count as usize)?;
        let odd = self.has_unusual_keys;
        Some((
            IndexedFields { text, end: end as usize, fields, has_unusual_keys: odd },
            IndexedBlocks { text, fields: blocks, has_unusual_keys: odd },
        ))
    }

    /// Returns a key that occurs more than once at the top level of the line.
    pub(crate) fn duplicate_key(self, text: LineText<'a>) -> Option<Cow<'a, str>> {
        let top = self.top(text);
        if top.fields.len() > MANY_FIELDS {
            // Sorted positions take less memory than a set of names.
            let name = |position: &u32| Some(top.key(top.fields.get(*position as usize)?)?.name());
            let mut positions: Vec<u32> = (0..).zip(top.fields).map(|(position, _)| position).collect();
            positions.sort_unstable_by(|a, b| name(a).cmp(&name(b)).then(a.cmp(b)));
            let repeated = positions.windows(2).filter(|pair| name(&pair[0]) == name(&pair[1]));
            return name(repeated.map(|pair| &pair[1]).min()?);
        }
        let mut seen = [0u64; 16];
        for (i, field) in top.fields.iter().enumerate() {
            // Few keys share a hash: only those are compared.
            let key = top.key(field)?;
            let mark = key_hash(key.raw().as_bytes());
            let (word, bit) = (&mut seen[mark / 64 % 16], 1 << (mark % 64));
            let known = *word & bit != 0 || self.has_unusual_keys;
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

/// More keys than this are sorted.
const MANY_FIELDS: usize = 128;

/// A number below 1024 that is the same for equal keys, and mostly another for others.
fn key_hash(key: &[u8]) -> usize {
    let [Some(first), Some(last), Some(middle)] = [key.first(), key.last(), key.get(key.len() / 2)] else {
        return 0;
    };
    let word = u32::from_le_bytes([*first, *last, *middle, key.len() as u8]);
    (word.wrapping_mul(0x9e37_79b9) >> 22) as usize
}

/// A vector with inline storage for the first `N` elements.
struct InlineVec<const N: usize> {
    first: [FieldOffsets; N],
    count: usize,
    rest: Vec<FieldOffsets>,
}

impl<const N: usize> InlineVec<N> {
    const NONE: FieldOffsets = FieldOffsets { key: 0, value: 0 };
    const EMPTY: Self = Self { first: [Self::NONE; N], count: 0, rest: Vec::new() };

    #[inline(always)]
    fn push(&mut self, field: FieldOffsets) {
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

    /// Returns the inline and the allocated part of the vector.
    fn parts(&self) -> [&[FieldOffsets]; 2] {
        [&self.first[..self.count.min(N)], &self.rest]
    }
}

/// An index under construction.
struct IndexBuilder {
    start: usize,
    top: InlineVec<32>,
    message: InlineVec<16>,
    blocks: InlineVec<16>,
    message_end: Option<u32>,
}

impl IndexBuilder {
    fn at(&self, pos: usize) -> u32 {
        // Texts of 4 GiB or more were rejected by the caller.
        (self.start + pos) as u32
    }

    fn line(&mut self, walker: &mut JsonValidator<'_>) -> Result<(), JsonSyntaxError> {
        walker.object(|walker, key| {
            let field = FieldOffsets { key: self.at(key), value: self.at(walker.pos()) };
            self.top.push(field);
            if walker.key_is(key, "message") && walker.peek() == Some(b'{') {
                self.message(walker)
            } else {
                walker.value()
            }
        })
    }

    fn message(&mut self, walker: &mut JsonValidator<'_>) -> Result<(), JsonSyntaxError> {
        // If the line has two messages, the last one counts.
        self.message.clear();
        self.blocks.clear();
        walker.object(|walker, key| {
            let field = FieldOffsets { key: self.at(key), value: self.at(walker.pos()) };
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

    fn block(&mut self, walker: &mut JsonValidator<'_>) -> Result<(), JsonSyntaxError> {
        // Blocks are objects.
        if walker.peek() != Some(b'{') {
            return walker.value();
        }
        let header = self.blocks.count;
        let start = self.at(walker.pos());
        self.blocks.push(FieldOffsets { key: start, value: start });
        walker.object(|walker, key| {
            let field = FieldOffsets { key: self.at(key), value: self.at(walker.pos()) };
            self.blocks.push(field);
            walker.value()
        })?;
        self.blocks.set_value(header, self.at(walker.pos()));
        Ok(())
    }

    /// Appends the index to `fields`.
    fn finish(self, fields: &mut Vec<FieldOffsets>) {
        let (top, message) = (self.top.count, self.message.count);
        let count = top + message + self.blocks.count;
        // The index of a single line is kept as it is: no capacity is reserved for another line.
        if fields.is_empty() {
            fields.reserve_exact(2 + count);
        }
        fields.push(FieldOffsets { key: top as u32, value: count as u32 });
        let (end, message) = self.message_end.map_or((0, 0), |end| (end, message as u32));
        fields.push(FieldOffsets { key: end, value: message });
        for part in [self.top.parts(), self.message.parts(), self.blocks.parts()].into_iter().flatten() {
            fields.extend_from_slice(part);
        }
    }
}

/// The text of a line, which is a part of a longer text.
///
/// To check that the line as a whole is a part, its first and its last character would be read from memory
/// each time that one of its fields is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineText<'a> {
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) length: usize,
}

impl<'a> LineText<'a> {
    /// Returns a text that is one line.
    pub(crate) fn whole(text: &'a str) -> Self {
        Self { text, start: 0, length: text.len() }
    }

    #[inline(always)]
    fn get(self, range: Range<usize>) -> Option<&'a str> {
        self.text.get(self.start + range.start..self.start + range.end)
    }

    #[inline(always)]
    fn bytes(self, range: Range<usize>) -> Option<&'a [u8]> {
        self.text.as_bytes().get(self.start + range.start..self.start + range.end)
    }
}

/// The indexed members of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedFields<'a> {
    text: LineText<'a>,
    /// The offset of the object's end.
    end: usize,
    fields: &'a [FieldOffsets],
    has_unusual_keys: bool,
}

impl<'a> IndexedFields<'a> {
    /// Returns the value of `key`; the last one if the key occurs twice.
    pub(crate) fn get(self, key: &str) -> Option<Json<'a>> {
        if self.has_unusual_keys {
            let i = self.fields.iter().rposition(|field| self.key(field).is_some_and(|name| name.is(key)))?;
            return self.value(i);
        }
        // Exactly two quotes and a colon separate a key from its value, so the length rules out most keys.
        let span = key.len() as u32 + 3;
        let is_it = |field: &FieldOffsets| {
            let start = field.key as usize + 1;
            field.value.wrapping_sub(field.key) == span
                && self.text.bytes(start..start + key.len()) == Some(key.as_bytes())
        };
        self.value(self.fields.iter().rposition(is_it)?)
    }

    #[inline(always)]
    fn key(self, field: &FieldOffsets) -> Option<JsonKey<'a>> {
        let written = self.text.get(field.key as usize + 1..field.value as usize)?;
        // The only quote between a key and its value is the one that closes the key.
        let end = match self.has_unusual_keys {
            true => written.bytes().rposition(|byte| byte == b'"')?,
            false => written.len().checked_sub(2)?,
        };
        Some(JsonKey::new(&written[..end]))
    }

    /// Returns the `i`th value, which ends at the comma before the next key or at the closing brace.
    fn value(self, i: usize) -> Option<Json<'a>> {
        let start = self.fields.get(i)?.value as usize;
        let (limit, close) = match self.fields.get(i + 1) {
            Some(next) => (next.key as usize, b','),
            None => (self.end, b'}'),
        };
        let mut end = limit.checked_sub(1)?;
        let last_two = self.text.bytes(limit.checked_sub(2)?..limit)?;
        if !matches!(last_two, [before, last] if *before > b' ' && *last == close) {
            // There is white space around the separator.
            let written = self.text.bytes(start..limit)?;
            end = start + written[..memrchr(close, written)?].trim_ascii_end().len();
        }
        Some(Json::from_valid(self.text.get(start..end)?))
    }

    /// Returns the text from the first to the last brace: the object, if these are the members of a line.
    pub(crate) fn object(self) -> Option<Json<'a>> {
        let text = self.text.get(0..self.end)?;
        text.get(text.find('{')?..text.rfind('}')? + 1).map(Json::from_valid)
    }

    /// Returns the members in order.
    pub(crate) fn iter(self) -> impl Iterator<Item = (JsonKey<'a>, Json<'a>)> {
        (0..self.fields.len()).filter_map(move |i| Some((self.key(&self.fields[i])?, self.value(i)?)))
    }
}

/// The indexed content blocks of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedBlocks<'a> {
    text: LineText<'a>,
    fields: &'a [FieldOffsets],
    has_unusual_keys: bool,
}

impl<'a> Iterator for IndexedBlocks<'a> {
    type Item = (Json<'a>, IndexedFields<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.fields.split_first()?;
        let end = header.value;
        let count = rest.iter().take_while(|field| field.key < end).count();
        let (fields, rest) = rest.split_at(count);
        self.fields = rest;
        let json = Json::from_valid(self.text.get(header.key as usize..end as usize)?);
        Some((
            json,
            IndexedFields {
                text: self.text,
                end: end as usize,
                fields,
                has_unusual_keys: self.has_unusual_keys,
            },
        ))
    }
}
