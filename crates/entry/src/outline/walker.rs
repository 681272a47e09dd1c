//! Walks a line from key to key to make its outline.

use super::{
    BlockForm, BlockKind, BlockText, N_BLOCK_TEXTS, NestedOutline, OutlineValues, Text, block_text_index,
};
use crate::json::{find_special, skip_value, skip_white, visit_members};
use crate::kind::Kind;

/// Makes the outline of one line after another, and reuses its memory.
#[derive(Debug, Default)]
pub(super) struct OutlineWalker {
    pub(super) values: OutlineValues,
    /// The values of the line that may differ in a line with the same layout, in order.
    pub(super) variables: Vec<VariableValue>,
    /// The number of bytes that the vectors may still grow by.
    spare_bytes: usize,
}

/// The size of the vectors for any line; longer lines may have as much as their length in addition.
const MIN_SPARE_BYTES: usize = 16 << 10;

/// A value that may differ in a line with the same layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct VariableValue {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) form: ValueForm,
}

/// The form that a value must have for a line to have the same layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueForm {
    /// The text of a string, without escapes and without the quotes.
    Text,
    /// A string.
    String,
    /// An array.
    Array,
    /// A number.
    Number,
    /// Any value.
    Any,
}

/// The keys of an object that matter and were visited, as a bit mask.
#[derive(Default)]
struct SeenKeys(u32);

impl SeenKeys {
    /// Adds a key. Returns `None` if the object has it twice: the last one would count, with all its
    /// contents.
    fn add(&mut self, key: u32) -> Option<()> {
        let is_new = !self.contains(key);
        self.0 |= 1 << key;
        is_new.then_some(())
    }

    fn contains(&self, key: u32) -> bool {
        self.0 >> key & 1 == 1
    }
}

impl OutlineWalker {
    /// Makes the outline of a line. Returns `None` if the line has none.
    pub(super) fn walk(&mut self, line: &[u8]) -> Option<()> {
        self.values.clear();
        self.variables.clear();
        self.spare_bytes = MIN_SPARE_BYTES + line.len();
        let mut seen = SeenKeys::default();
        let end = visit_members(line, 0, |key, start| match key {
            b"type" => {
                seen.add(0)?;
                let (kind, end) = read_kind(line, start)?;
                self.values.kind = Some(kind);
                Some(end)
            }
            b"uuid" => seen.add(1).and_then(|()| self.text(line, start, Text::Uuid as usize)),
            b"parentUuid" => seen.add(2).and_then(|()| self.text(line, start, Text::Parent as usize)),
            b"isSidechain" => {
                seen.add(3)?;
                Some(read_flag(line, start, &mut self.values.is_sidechain))
            }
            b"isApiErrorMessage" => {
                seen.add(4)?;
                Some(read_flag(line, start, &mut self.values.is_api_error))
            }
            b"message" => seen.add(5).and_then(|()| self.message(line, start)),
            b"data" | b"attachment" => seen.add(6).and_then(|()| self.body(line, start)),
            b"timestamp" => seen.add(7).and_then(|()| self.text(line, start, Text::Timestamp as usize)),
            b"requestId" => seen.add(8).and_then(|()| self.text(line, start, Text::RequestId as usize)),
            b"subtype" => seen.add(9).and_then(|()| self.text(line, start, Text::Subtype as usize)),
            b"userType" | b"cwd" | b"sessionId" | b"version" | b"gitBranch" => Some(self.skip(line, start)),
            _ => {
                self.values.has_other_keys = true;
                Some(self.skip(line, start))
            }
        })?;
        // A line that repeats another one has no request of its own.
        let has_two_requests = self.values.nested.is_some() && seen.contains(8);
        // Other writers leave out the type of a reply, or put the content next to the type.
        let is_of_other_form = match self.values.kind {
            None => self.values.has_message,
            Some(kind) => matches!(kind, Kind::User | Kind::Assistant) && !self.values.has_message,
        };
        let is_read = !has_two_requests && !is_of_other_form && self.spare_bytes > 0;
        (skip_white(line, end) == line.len() && is_read).then_some(())
    }

    /// Reads the body of an attachment or of a progress report, and returns its end.
    fn body(&mut self, line: &[u8], start: usize) -> Option<usize> {
        if line.get(start) != Some(&b'{') {
            return Some(self.skip_form(line, start));
        }
        let mut seen = SeenKeys::default();
        visit_members(line, start, |key, start| match key {
            b"type" => seen.add(0).and_then(|()| self.text(line, start, Text::BodyType as usize)),
            b"hookEvent" => seen.add(1).and_then(|()| self.text(line, start, Text::HookEvent as usize)),
            b"message" => seen.add(2).and_then(|()| self.nested(line, start)),
            b"agentId" => seen.add(3).and_then(|()| self.text(line, start, Text::AgentId as usize)),
            _ => Some(self.skip(line, start)),
        })
    }

    /// Reads the line that a progress line repeats, and returns its end.
    fn nested(&mut self, line: &[u8], start: usize) -> Option<usize> {
        if line.get(start) != Some(&b'{') {
            return Some(self.skip_form(line, start));
        }
        let mut nested = NestedOutline::default();
        let mut seen = SeenKeys::default();
        let end = visit_members(line, start, |key, start| match key {
            b"type" => {
                seen.add(0)?;
                let (kind, end) = read_kind(line, start)?;
                nested.kind = Some(kind);
                Some(end)
            }
            b"isApiErrorMessage" => {
                seen.add(1)?;
                Some(read_flag(line, start, &mut nested.is_api_error))
            }
            b"message" => seen.add(2).and_then(|()| self.message(line, start)),
            b"requestId" => seen.add(3).and_then(|()| self.text(line, start, Text::RequestId as usize)),
            _ => Some(self.skip(line, start)),
        })?;
        self.values.nested = Some(nested);
        Some(end)
    }

    /// Reads the message at `start` and returns its end.
    fn message(&mut self, line: &[u8], start: usize) -> Option<usize> {
        // A line that repeats another one has no message of its own.
        if std::mem::replace(&mut self.values.has_message, true) {
            return None;
        }
        let mut seen = SeenKeys::default();
        visit_members(line, start, |key, start| match key {
            b"id" => seen.add(0).and_then(|()| self.text(line, start, Text::MessageId as usize)),
            b"model" => seen.add(1).and_then(|()| self.text(line, start, Text::Model as usize)),
            b"stop_reason" => seen.add(2).and_then(|()| self.text(line, start, Text::StopReason as usize)),
            b"content" => {
                seen.add(3)?;
                let end = match line.get(start) {
                    Some(b'[') => self.blocks(line, start)?,
                    _ => self.skip_form(line, start),
                };
                self.set(Text::Content as usize, start, end);
                Some(end)
            }
            b"usage" => {
                self.values.has_figures = line.get(start) == Some(&b'{');
                self.figures(line, start, 0)
            }
            _ => Some(self.skip(line, start)),
        })
    }

    /// Reads the figures of a reply, and returns their end. Nothing of them is in the outline, but each
    /// number has a place in the layout, and no other value can contain figures.
    fn figures(&mut self, line: &[u8], start: usize, depth: usize) -> Option<usize> {
        const MAX_DEPTH: usize = 4;
        let form = match line.get(start)? {
            b'{' if depth < MAX_DEPTH => {
                return visit_members(line, start, |_, start| self.figures(line, start, depth + 1));
            }
            b'{' => ValueForm::Any,
            b'[' => ValueForm::Array,
            b'"' => ValueForm::String,
            b'0'..=b'9' | b'-' => ValueForm::Number,
            _ => return Some(skip_value(line, start)),
        };
        let end = skip_value(line, start);
        self.add_variable(start, end, form);
        Some(end)
    }

    /// Reads the blocks of the array at `start` and returns its end.
    fn blocks(&mut self, line: &[u8], start: usize) -> Option<usize> {
        let mut at = skip_white(line, start + 1);
        if line.get(at) == Some(&b']') {
            return Some(at + 1);
        }
        loop {
            at = match line.get(at) {
                Some(b'{') => self.block(line, at)?,
                _ => self.skip_form(line, at),
            };
            at = skip_white(line, at);
            match line.get(at) {
                Some(b',') => at = skip_white(line, at + 1),
                Some(b']') => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// Reads the block at `start` and returns its end.
    fn block(&mut self, line: &[u8], start: usize) -> Option<usize> {
        self.reserve(size_of::<BlockForm>() + 2 * N_BLOCK_TEXTS * size_of::<u32>()).then_some(())?;
        let n_blocks = self.values.blocks.len();
        let offsets = &mut self.values.offsets;
        offsets.resize(offsets.len() + 2 * N_BLOCK_TEXTS, 0);
        let mut form = BlockForm::default();
        let mut seen = SeenKeys::default();
        let text = |text: BlockText| block_text_index(n_blocks, text);
        let end = visit_members(line, start, |key, start| match key {
            b"type" => seen.add(0).and_then(|()| read_block_kind(line, start, &mut form.kind)),
            // A block has only one of these.
            b"id" | b"tool_use_id" => seen.add(1).and_then(|()| self.text(line, start, text(BlockText::Id))),
            b"name" => seen.add(2).and_then(|()| self.text(line, start, text(BlockText::Name))),
            b"is_error" => seen.add(3).map(|()| read_flag(line, start, &mut form.is_error)),
            b"input" => {
                seen.add(4)?;
                let end = self.skip(line, start);
                self.set(text(BlockText::Input), start, end);
                Some(end)
            }
            _ => Some(self.skip(line, start)),
        })?;
        self.values.blocks.push(form);
        Some(end)
    }

    /// Reads a string without escapes, or `null`, and returns its end.
    fn text(&mut self, line: &[u8], start: usize, index: usize) -> Option<usize> {
        match line.get(start)? {
            b'"' => {
                let end = find_special(line, start + 1).filter(|&end| line[end] == b'"')?;
                self.set(index, start + 1, end);
                self.add_variable(start + 1, end, ValueForm::Text);
                Some(end + 1)
            }
            b'n' => Some(skip_value(line, start)),
            _ => None,
        }
    }

    /// Skips a value that does not matter, and returns its end.
    fn skip(&mut self, line: &[u8], start: usize) -> usize {
        let end = skip_value(line, start);
        self.add_variable(start, end, ValueForm::Any);
        end
    }

    /// Does the same for a value that would matter if it were an object or an array.
    fn skip_form(&mut self, line: &[u8], start: usize) -> usize {
        let end = skip_value(line, start);
        if line.get(start) == Some(&b'"') {
            self.add_variable(start, end, ValueForm::String);
        }
        end
    }

    fn add_variable(&mut self, start: usize, end: usize, form: ValueForm) {
        if self.reserve(size_of::<VariableValue>()) {
            self.variables.push(VariableValue { start: start as u32, end: end as u32, form });
        }
    }

    /// Reserves bytes of the vectors. Returns `false` if the line has too many values for its length; it has
    /// no outline then.
    fn reserve(&mut self, n_bytes: usize) -> bool {
        self.spare_bytes = self.spare_bytes.saturating_sub(n_bytes);
        self.spare_bytes > 0
    }

    fn set(&mut self, index: usize, start: usize, end: usize) {
        self.values.offsets[2 * index] = start as u32;
        self.values.offsets[2 * index + 1] = end as u32;
    }
}

/// Reads the type of a line, and returns its end.
fn read_kind(line: &[u8], start: usize) -> Option<(Kind, usize)> {
    let end = find_special(line, start + 1).filter(|&end| line[start] == b'"' && line[end] == b'"')?;
    let name = std::str::from_utf8(&line[start + 1..end]).ok()?;
    Some((Kind::named(name), end + 1))
}

/// Reads the type of a block, a string without escapes or `null`, and returns its end.
fn read_block_kind(line: &[u8], start: usize, into: &mut BlockKind) -> Option<usize> {
    match line.get(start)? {
        b'"' => {
            let end = find_special(line, start + 1).filter(|&end| line[end] == b'"')?;
            *into = BlockKind::named(&line[start + 1..end]);
            Some(end + 1)
        }
        b'n' => Some(skip_value(line, start)),
        _ => None,
    }
}

/// Reads whether a value is `true`, and returns its end.
fn read_flag(line: &[u8], start: usize, into: &mut bool) -> usize {
    *into = line.get(start) == Some(&b't');
    skip_value(line, start)
}
