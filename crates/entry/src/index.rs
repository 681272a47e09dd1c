//! Offsets of the members of a line, of its message, and of the message's content blocks.
//!
//! The parser that validates a line visits every byte anyway. It records the offsets of those members here,
//! so that lenses need not scan the line again.

use std::borrow::Cow;
use std::ops::Range;

use foldhash::{HashSet, HashSetExt};
use memchr::memrchr;
use serde_json::value::RawValue;

use crate::json::{self, Json, JsonKey, JsonSyntaxError, JsonValidator};
use crate::limits;

/// The offsets of a member: the opening quote of its key, and the first byte of its value.
#[derive(Clone, Copy, Debug)]
struct FieldOffsets {
    key: u32,
    value: u32,
}

/// The index of a line that is an object.
#[derive(Debug, Default)]
pub(crate) struct LineIndex {
    /// The members of the line.
    fields: Vec<FieldOffsets>,
    message: Option<MessageIndex>,
    /// Whether any key may contain escapes or be followed by white space, which is rare.
    has_unusual_keys: bool,
}

/// The index of the message of a line.
#[derive(Debug, Default)]
struct MessageIndex {
    /// The offset of its end.
    end: u32,
    fields: Vec<FieldOffsets>,
    /// The content blocks that are objects.
    blocks: Vec<BlockOffsets>,
    /// The members of all blocks.
    block_fields: Vec<FieldOffsets>,
}

/// The offsets of a content block.
#[derive(Clone, Debug)]
struct BlockOffsets {
    range: Range<u32>,
    /// The positions of its members in the list of those of all blocks.
    fields: Range<u32>,
}

/// Properties of a line that the parser observed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineProperties {
    /// The number of levels of nested values.
    pub(crate) max_depth: usize,
    /// The number of values, at any depth.
    pub(crate) n_values: usize,
    /// The number of blocks of the message.
    pub(crate) n_blocks: usize,
    /// Whether the line may contain escaped surrogates.
    pub(crate) may_have_surrogates: bool,
}

/// The reason why a line has no index.
#[derive(Debug)]
pub(crate) enum UnreadableLine {
    /// It exceeds a [limit](crate::limits).
    OverLimit,
    /// It is not a JSON object. Contains an error message.
    NotAnObject(String),
}

impl LineIndex {
    /// Indexes the object that begins at `start` and extends to the end of the line.
    pub(crate) fn build(line: &str, start: usize) -> Result<(Self, LineProperties), UnreadableLine> {
        let mut builder = IndexBuilder { start, index: Self::default(), n_blocks: 0 };
        let mut walker = JsonValidator::new(&line[start..]);
        let walked = builder.line(&mut walker);
        if walked.is_err() || json::skip_white(line.as_bytes(), start + walker.pos()) != line.len() {
            return Err(UnreadableLine::NotAnObject(error_message(&line[start..])));
        }
        let seen = LineProperties {
            max_depth: walker.max_depth,
            n_values: walker.n_values,
            n_blocks: builder.n_blocks,
            may_have_surrogates: walker.may_have_surrogates(),
        };
        if limits::exceeds_parsed_limits(&seen) {
            return Err(UnreadableLine::OverLimit);
        }
        let mut index = builder.index;
        index.has_unusual_keys = walker.has_unusual_key;
        Ok((index, seen))
    }

    /// Returns the members of the line.
    pub(crate) fn line<'a>(&'a self, line: &'a str) -> IndexedFields<'a> {
        self.members(line, line.len(), &self.fields)
    }

    /// Returns the members of the line's message, and its blocks.
    pub(crate) fn message<'a>(&'a self, line: &'a str) -> Option<(IndexedFields<'a>, IndexedBlocks<'a>)> {
        let message = self.message.as_ref()?;
        let fields = self.members(line, message.end as usize, &message.fields);
        Some((fields, IndexedBlocks { text: line, index: self, message }))
    }

    fn members<'a>(&self, text: &'a str, end: usize, fields: &'a [FieldOffsets]) -> IndexedFields<'a> {
        IndexedFields { text, end, fields, has_unusual_keys: self.has_unusual_keys }
    }

    /// Returns a key that occurs more than once at the top level of the line.
    pub(crate) fn duplicate_key<'a>(&'a self, line: &'a str) -> Option<Cow<'a, str>> {
        let members = self.line(line);
        let mut names = HashSet::with_capacity(self.fields.len());
        self.fields.iter().filter_map(|field| Some(members.key(field)?.name())).find_map(|name| {
            let is_first = names.insert(name.clone());
            (!is_first).then_some(name)
        })
    }
}

/// Returns why a text is not a JSON object.
fn error_message(text: &str) -> String {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(value) => {
            let kind = Json::from_valid(value.get()).kind();
            format!("expected a JSON object, found a JSON {}", kind.name())
        }
        Err(error) => error.to_string(),
    }
}

/// An index under construction.
struct IndexBuilder {
    start: usize,
    index: LineIndex,
    n_blocks: usize,
}

impl IndexBuilder {
    fn at(&self, pos: usize) -> u32 {
        // Lines of 4 GiB or more are over the limit.
        (self.start + pos) as u32
    }

    fn field(&self, key: usize, walker: &JsonValidator<'_>) -> FieldOffsets {
        FieldOffsets { key: self.at(key), value: self.at(walker.pos()) }
    }

    fn line(&mut self, walker: &mut JsonValidator<'_>) -> Result<(), JsonSyntaxError> {
        walker.object(|walker, key| {
            let field = self.field(key, walker);
            self.index.fields.push(field);
            match walker.peek() {
                Some(b'{') if walker.key_is(key, "message") => self.message(walker),
                // The content of a line without a message. Its blocks are counted, but not indexed.
                Some(b'[') if walker.key_is(key, "content") => {
                    self.n_blocks = 0;
                    walker.array(|walker| {
                        self.n_blocks += 1;
                        walker.value()
                    })
                }
                _ => walker.value(),
            }
        })
    }

    fn message(&mut self, walker: &mut JsonValidator<'_>) -> Result<(), JsonSyntaxError> {
        // If the line has two messages, the last one counts.
        let mut message = MessageIndex::default();
        walker.object(|walker, key| {
            message.fields.push(self.field(key, walker));
            if walker.key_is(key, "content") && walker.peek() == Some(b'[') {
                message.blocks.clear();
                message.block_fields.clear();
                self.n_blocks = 0;
                walker.array(|walker| self.block(walker, &mut message))
            } else {
                walker.value()
            }
        })?;
        message.end = self.at(walker.pos());
        self.index.message = Some(message);
        Ok(())
    }

    fn block(
        &mut self,
        walker: &mut JsonValidator<'_>,
        message: &mut MessageIndex,
    ) -> Result<(), JsonSyntaxError> {
        self.n_blocks += 1;
        // Blocks are objects.
        if walker.peek() != Some(b'{') {
            return walker.value();
        }
        let (start, first_field) = (self.at(walker.pos()), message.block_fields.len() as u32);
        walker.object(|walker, key| {
            message.block_fields.push(self.field(key, walker));
            walker.value()
        })?;
        message.blocks.push(BlockOffsets {
            range: start..self.at(walker.pos()),
            fields: first_field..message.block_fields.len() as u32,
        });
        Ok(())
    }
}

/// The indexed members of one object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedFields<'a> {
    text: &'a str,
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
                && self.text.as_bytes().get(start..start + key.len()) == Some(key.as_bytes())
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
        let last_two = self.text.as_bytes().get(limit.checked_sub(2)?..limit)?;
        if !matches!(last_two, [before, last] if *before > b' ' && *last == close) {
            // There is white space around the separator.
            let written = self.text.as_bytes().get(start..limit)?;
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

/// The indexed content blocks of a message that are objects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedBlocks<'a> {
    text: &'a str,
    index: &'a LineIndex,
    message: &'a MessageIndex,
}

impl<'a> IndexedBlocks<'a> {
    /// Returns the number of blocks.
    pub(crate) fn len(self) -> usize {
        self.message.blocks.len()
    }

    /// Returns the block at a position.
    pub(crate) fn get(self, position: usize) -> Option<(Json<'a>, IndexedFields<'a>)> {
        let block = self.message.blocks.get(position)?;
        let fields = &self.message.block_fields[block.fields.start as usize..block.fields.end as usize];
        let (start, end) = (block.range.start as usize, block.range.end as usize);
        let json = Json::from_valid(self.text.get(start..end)?);
        Some((json, self.index.members(self.text, end, fields)))
    }
}
