//! Reads the ids and the time of a line, and the blocks of its message, without parsing it.
//!
//! For the scan of the activity in all logs of a home. A line is read from key to key, and values that do not
//! matter are skipped. A line with unusual syntax has no sketch, and must be parsed.

use crate::json::{find_special, skip_value, skip_white, visit_members};
use crate::kind::Kind;
use crate::value;

/// The members of a line that matter for its activity. Texts are as written, and contain no escapes.
#[derive(Clone, Debug, Default)]
pub struct LineSketch<'a> {
    /// The kind of the line; `None` if it has no type.
    pub kind: Option<Kind>,
    /// The uuid of the line.
    pub uuid: Option<&'a [u8]>,
    /// When it was written.
    pub timestamp: Option<&'a [u8]>,
    /// The subtype of a system line.
    pub subtype: Option<&'a [u8]>,
    /// Whether it belongs to a sub-agent.
    pub is_sidechain: bool,
    /// The type of an attachment or of a progress report.
    pub body_type: Option<&'a [u8]>,
    /// The id that the API gave to the reply. Like the following ones, it is that of the message of the line,
    /// or of the message that a progress line repeats.
    pub message_id: Option<&'a [u8]>,
    /// The id of the request that the reply answers.
    pub request_id: Option<&'a [u8]>,
    /// The structured result of a tool, as written.
    pub tool_use_result: Option<&'a [u8]>,
    /// The blocks of the message.
    pub blocks: Vec<BlockSketch<'a>>,
}

/// A block of a message. Texts are as written, and contain no escapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockSketch<'a> {
    /// The kind of the block.
    pub kind: BlockKind,
    /// Whether it is the result of a failed call.
    pub is_error: bool,
    /// The id of a call, or of the call that a result answers.
    pub id: Option<&'a [u8]>,
    /// The name of the tool that a call uses.
    pub name: Option<&'a [u8]>,
    /// The input of a call, as written.
    pub input: Option<&'a [u8]>,
}

impl<'a> LineSketch<'a> {
    /// Reads a line.
    ///
    /// The result is exact for a line that is valid JSON. Values that do not matter are not validated.
    /// Returns `None` if the line is not an object, if a key that matters occurs twice, or if its value
    /// contains escapes or has an unexpected type.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let mut reader = SketchReader { line, sketch: Self::default(), has_message: false, is_nested: false };
        reader.line()?;
        Some(reader.sketch)
    }
}

/// The sketch of a line, while it is read.
struct SketchReader<'a> {
    line: &'a [u8],
    sketch: LineSketch<'a>,
    has_message: bool,
    /// Whether the message is that of a line that a progress line repeats.
    is_nested: bool,
}

/// The number of the key with the id of the request, which is asked for after the line was read.
const REQUEST_ID: u32 = 8;

/// The keys of an object that matter and were visited, as a bit mask of numbers that each function gives its
/// keys.
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

impl<'a> SketchReader<'a> {
    /// Reads the line. Returns `None` if it has no sketch.
    fn line(&mut self) -> Option<()> {
        let line = self.line;
        let mut seen = SeenKeys::default();
        let end = visit_members(line, 0, |key, start| match key {
            b"type" => seen.add(0).and_then(|()| read_kind(line, start, &mut self.sketch.kind)),
            b"uuid" => seen.add(1).and_then(|()| read_text(line, start, &mut self.sketch.uuid)),
            b"isSidechain" => seen.add(3).map(|()| read_flag(line, start, &mut self.sketch.is_sidechain)),
            b"message" => seen.add(5).and_then(|()| self.message(start)),
            b"data" | b"attachment" => seen.add(6).and_then(|()| self.body(start)),
            b"timestamp" => seen.add(7).and_then(|()| read_text(line, start, &mut self.sketch.timestamp)),
            b"requestId" => {
                seen.add(REQUEST_ID).and_then(|()| read_text(line, start, &mut self.sketch.request_id))
            }
            b"subtype" => seen.add(9).and_then(|()| read_text(line, start, &mut self.sketch.subtype)),
            b"toolUseResult" => {
                seen.add(10)?;
                let end = skip_value(line, start);
                self.sketch.tool_use_result = line.get(start..end);
                Some(end)
            }
            _ => Some(skip_value(line, start)),
        })?;
        // A line that repeats another one has no request of its own.
        let has_two_requests = self.is_nested && seen.contains(REQUEST_ID);
        // Other writers leave out the type of a reply, or put the content next to the type.
        let is_from_other_writer = match self.sketch.kind {
            None => self.has_message,
            Some(kind) => matches!(kind, Kind::User | Kind::Assistant) && !self.has_message,
        };
        (skip_white(line, end) == line.len() && !has_two_requests && !is_from_other_writer).then_some(())
    }

    /// Reads the body of an attachment or of a progress report, and returns its end.
    fn body(&mut self, start: usize) -> Option<usize> {
        let line = self.line;
        if line.get(start) != Some(&b'{') {
            return Some(skip_value(line, start));
        }
        let mut seen = SeenKeys::default();
        visit_members(line, start, |key, start| match key {
            b"type" => seen.add(0).and_then(|()| read_text(line, start, &mut self.sketch.body_type)),
            b"message" => seen.add(2).and_then(|()| self.nested(start)),
            _ => Some(skip_value(line, start)),
        })
    }

    /// Reads the line that a progress line repeats, and returns its end.
    fn nested(&mut self, start: usize) -> Option<usize> {
        let line = self.line;
        if line.get(start) != Some(&b'{') {
            return Some(skip_value(line, start));
        }
        let mut seen = SeenKeys::default();
        let end = visit_members(line, start, |key, start| match key {
            b"message" => seen.add(2).and_then(|()| self.message(start)),
            b"requestId" => seen.add(3).and_then(|()| read_text(line, start, &mut self.sketch.request_id)),
            _ => Some(skip_value(line, start)),
        })?;
        self.is_nested = true;
        Some(end)
    }

    /// Reads the message at `start` and returns its end.
    fn message(&mut self, start: usize) -> Option<usize> {
        // A line that repeats another one has no message of its own.
        if std::mem::replace(&mut self.has_message, true) {
            return None;
        }
        let line = self.line;
        let mut seen = SeenKeys::default();
        visit_members(line, start, |key, start| match key {
            b"id" => seen.add(0).and_then(|()| read_text(line, start, &mut self.sketch.message_id)),
            b"content" => {
                seen.add(3)?;
                match line.get(start) {
                    Some(b'[') => self.blocks(start),
                    _ => Some(skip_value(line, start)),
                }
            }
            _ => Some(skip_value(line, start)),
        })
    }

    /// Reads the blocks of the array at `start` and returns its end.
    fn blocks(&mut self, start: usize) -> Option<usize> {
        let line = self.line;
        let mut at = skip_white(line, start + 1);
        if line.get(at) == Some(&b']') {
            return Some(at + 1);
        }
        loop {
            at = match line.get(at) {
                Some(b'{') => self.block(at)?,
                _ => skip_value(line, at),
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
    fn block(&mut self, start: usize) -> Option<usize> {
        let line = self.line;
        let mut block = BlockSketch::default();
        let mut seen = SeenKeys::default();
        let end = visit_members(line, start, |key, start| match key {
            b"type" => {
                let mut kind = None;
                let end = seen.add(0).and_then(|()| read_text(line, start, &mut kind))?;
                block.kind = kind.map(BlockKind::named).unwrap_or_default();
                Some(end)
            }
            // A block has only one of these.
            b"id" | b"tool_use_id" => seen.add(1).and_then(|()| read_text(line, start, &mut block.id)),
            b"name" => seen.add(2).and_then(|()| read_text(line, start, &mut block.name)),
            b"is_error" => seen.add(3).map(|()| read_flag(line, start, &mut block.is_error)),
            b"input" => {
                seen.add(4)?;
                let end = skip_value(line, start);
                block.input = line.get(start..end);
                Some(end)
            }
            _ => Some(skip_value(line, start)),
        })?;
        self.sketch.blocks.push(block);
        Some(end)
    }
}

/// Reads a string without escapes, or `null`, and returns its end.
#[inline(always)]
fn read_text<'a>(line: &'a [u8], start: usize, into: &mut Option<&'a [u8]>) -> Option<usize> {
    match line.get(start)? {
        b'"' => {
            let end = find_special(line, start + 1).filter(|&end| line[end] == b'"')?;
            *into = Some(&line[start + 1..end]);
            Some(end + 1)
        }
        b'n' => Some(skip_value(line, start)),
        _ => None,
    }
}

/// Reads the type of a line, and returns its end.
fn read_kind(line: &[u8], start: usize, into: &mut Option<Kind>) -> Option<usize> {
    let mut name = None;
    let end = read_text(line, start, &mut name)?;
    *into = Some(Kind::named(std::str::from_utf8(name?).ok()?));
    Some(end)
}

/// Reads whether a value is `true`, and returns its end.
fn read_flag(line: &[u8], start: usize, into: &mut bool) -> usize {
    *into = line.get(start) == Some(&b't');
    skip_value(line, start)
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockKind {
    /// Text.
    Text,
    /// Thinking.
    Thinking,
    /// A call of a tool of the client.
    ToolUse,
    /// The result of such a call.
    ToolResult,
    /// Another call.
    OtherCall,
    /// The result of another call.
    OtherResult,
    /// A block of another type, or without one.
    #[default]
    Other,
}

impl BlockKind {
    /// Returns the kind of blocks of this type.
    pub fn named(kind: &[u8]) -> Self {
        match std::str::from_utf8(kind) {
            Ok(value::TEXT) => Self::Text,
            Ok(value::THINKING) => Self::Thinking,
            Ok(value::TOOL_USE) => Self::ToolUse,
            Ok(value::TOOL_RESULT) => Self::ToolResult,
            Ok(value::MCP_TOOL_RESULT) => Self::OtherResult,
            _ if value::is_call(kind) => Self::OtherCall,
            _ => Self::Other,
        }
    }

    /// Returns whether the block is a call of a tool.
    #[inline]
    pub fn is_call(self) -> bool {
        matches!(self, Self::ToolUse | Self::OtherCall)
    }

    /// Returns whether the block is the result of a call.
    #[inline]
    pub fn is_result(self) -> bool {
        matches!(self, Self::ToolResult | Self::OtherResult)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes the sketch of a line.
    fn describe(sketch: &LineSketch<'_>) -> String {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"-")).into_owned();
        let mut out = format!("{:?} {} {}", sketch.kind, text(sketch.uuid), sketch.is_sidechain);
        for value in
            [sketch.timestamp, sketch.request_id, sketch.subtype, sketch.body_type, sketch.message_id]
        {
            out += &format!(" {}", text(value));
        }
        for block in &sketch.blocks {
            let BlockSketch { kind, is_error, id, name, input } = *block;
            out += &format!("; {kind:?} {} {} {} {is_error}", text(id), text(name), text(input));
        }
        out
    }

    fn read(line: &str) -> Option<String> {
        LineSketch::read(line.as_bytes()).map(|sketch| describe(&sketch))
    }

    #[test]
    fn a_result_has_the_id_of_its_call() {
        let line = r#"{"parentUuid":"p","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"\"}]"}],"is_error":true}]},"toolUseResult":{"uuid":"v"},"uuid":"u"}"#;
        assert_eq!(read(line).as_deref(), Some("Some(User) u false - - - - -; ToolResult t - - true"));
    }

    #[test]
    fn a_reply_is_read_to_its_end() {
        let content = r#"[{"type":"tool_use","id":"t","name":"Bash","input":{"id":"x"}},{"type":"text"},7]"#;
        let line = format!(
            r#"{{"parentUuid":null,"message":{{"model":"m","id":"i","content":{content},"stop_reason":"refusal"}},"type":"assistant","uuid":"u","isSidechain":true,"requestId":"r","timestamp":"time"}}"#
        );
        let blocks = r#"ToolUse t Bash {"id":"x"} false; Text - - - false"#;
        let expected = format!("Some(Assistant) u true time r - - i; {blocks}");
        assert_eq!(read(&line), Some(expected));
    }

    #[test]
    fn a_progress_line_has_the_message_that_it_repeats() {
        let line = r#"{"type":"progress","data":{"type":"agent_progress","message":{"type":"assistant","timestamp":"y","message":{"id":"m","content":[]},"requestId":"r"}},"uuid":"u","timestamp":"x"}"#;
        let expected = "Some(Progress) u false x r - agent_progress m";
        assert_eq!(read(line).as_deref(), Some(expected));
    }

    #[test]
    fn odd_lines_are_not_read() {
        for line in [
            "",
            "7",
            r#"{"type":"user""#,
            r#"{"type":"user"}{}"#,
            r#"{"type":"us\u0065r"}"#,
            r#"{"type":"user","uuid":7}"#,
            r#"{"typ\u0065":"user"}"#,
            r#"{"type":"user","message":"none"}"#,
            r#"{"type":"user","type":"assistant"}"#,
            r#"{"type":"user","message":{},"message":{}}"#,
            r#"{"type":"user","message":{"content":[{"id":"a","tool_use_id":"b"}]}}"#,
            r#"{"type":"progress","message":{},"data":{"message":{"message":{}}}}"#,
            r#"{"type":"progress","requestId":"r","data":{"message":{"message":{}}}}"#,
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
