//! Reads the place of a line in the conversation, and the blocks of its message, without parsing it.
//!
//! For scans that count over all logs of a home. Texts are skipped, and a line is not read beyond the values
//! that matter, so most of the bytes of tool results are never looked at.

use crate::json::{find_special, skip_value, skip_white, visit_members};
use crate::key;
use crate::kind::Kind;

/// The members of a line that determine its place in the conversation. Texts are as written, and contain no
/// escapes.
#[derive(Debug, Default)]
pub struct LineOutline<'a> {
    /// The kind of the line; `None` if it has no type.
    pub kind: Option<Kind>,
    /// The uuid of the line.
    pub uuid: Option<&'a [u8]>,
    /// The uuid of its parent.
    pub parent: Option<&'a [u8]>,
    /// Whether it belongs to a sub-agent.
    pub is_sidechain: bool,
    /// Whether it is an error message of the API in place of a reply.
    pub is_api_error: bool,
    /// Its message.
    pub message: Option<MessageOutline<'a>>,
    /// The type of an attachment or of a progress report.
    pub body_type: Option<&'a [u8]>,
    /// The event of a hook that an attachment or a progress report is about.
    pub hook_event: Option<&'a [u8]>,
    /// The message that a progress line repeats.
    pub nested: Option<Box<Self>>,
}

/// The members of a message besides its blocks.
#[derive(Debug, Default)]
pub struct MessageOutline<'a> {
    /// The id that the API gave to the reply.
    pub id: Option<&'a [u8]>,
    /// The model.
    pub model: Option<&'a [u8]>,
    /// Why the reply ended.
    pub stop_reason: Option<&'a [u8]>,
    /// The content, as written.
    pub content: Option<&'a [u8]>,
}

/// A block of a message. Texts are as written, and contain no escapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockOutline<'a> {
    /// The type of the block.
    pub kind: Option<&'a [u8]>,
    /// The id of a call, or of the call that a result answers.
    pub id: Option<&'a [u8]>,
    /// The name of the tool that a call uses.
    pub name: Option<&'a [u8]>,
    /// Whether it is the result of a failed call.
    pub is_error: bool,
}

impl<'a> BlockOutline<'a> {
    /// Reads the content of a message, and calls `on_block` for every block.
    ///
    /// The result is exact for an array that is valid JSON, in which no block has a key twice. Returns
    /// `None` if the content is not an array, or if a value that matters contains escapes or has an
    /// unexpected type; `on_block` may have been called then.
    pub fn read_all(content: &'a [u8], mut on_block: impl FnMut(Self)) -> Option<()> {
        let is_array = content.first() == Some(&b'[');
        let end = is_array.then(|| read_blocks(content, 0, &mut on_block))??;
        (end == content.len()).then_some(())
    }
}

impl<'a> LineOutline<'a> {
    /// Reads a line, and calls `on_block` for every block of its message, or of the message that a progress
    /// line repeats.
    ///
    /// The result is exact for a line that is valid JSON and has no key twice. The data of a tool result and
    /// the values after it are left out if the place of the line is known. Returns `None` if the
    /// line is not an object, or if a value that matters contains escapes or has an unexpected type;
    /// `on_block` may have been called then.
    pub fn read(line: &'a [u8], mut on_block: impl FnMut(BlockOutline<'a>)) -> Option<Self> {
        let mut outline = Self::default();
        let mut is_placed = false;
        let end = visit_members(line, 0, |key, start| {
            is_placed = key == key::TOOL_USE_RESULT.as_bytes() && outline.is_placed(line);
            match key {
                _ if is_placed => None,
                b"data" | b"attachment" => outline.read_body(line, start, &mut on_block),
                _ => outline.member(line, key, start, &mut on_block),
            }
        });
        match end {
            Some(end) => (skip_white(line, end) == line.len()).then_some(outline),
            None => is_placed.then_some(outline),
        }
    }

    /// Returns whether the data of a tool result and the values after it do not matter. Takes the uuid from
    /// the end of the line if it was not read yet.
    fn is_placed(&mut self, line: &'a [u8]) -> bool {
        let is_known = self.kind == Some(Kind::User) && self.message.is_some();
        if is_known && self.uuid.is_none() {
            self.uuid = last_uuid(line);
        }
        is_known && self.uuid.is_some()
    }

    /// Reads a member and returns its end.
    fn member(
        &mut self,
        line: &'a [u8],
        key: &[u8],
        start: usize,
        on_block: &mut impl FnMut(BlockOutline<'a>),
    ) -> Option<usize> {
        match key {
            b"parentUuid" => read_text(line, start, &mut self.parent),
            b"uuid" => read_text(line, start, &mut self.uuid),
            b"type" => {
                let mut name = None;
                let end = read_text(line, start, &mut name)?;
                self.kind = Some(Kind::named(std::str::from_utf8(name?).ok()?));
                Some(end)
            }
            b"isSidechain" => read_flag(line, start, &mut self.is_sidechain),
            b"isApiErrorMessage" => read_flag(line, start, &mut self.is_api_error),
            b"message" => {
                let mut message = MessageOutline::default();
                let end = message.read(line, start, on_block)?;
                self.message = Some(message);
                Some(end)
            }
            _ => Some(skip_value(line, start)),
        }
    }

    /// Reads the body of an attachment or of a progress report, and returns its end.
    fn read_body(
        &mut self,
        line: &'a [u8],
        start: usize,
        on_block: &mut impl FnMut(BlockOutline<'a>),
    ) -> Option<usize> {
        if line.get(start) != Some(&b'{') {
            return Some(skip_value(line, start));
        }
        visit_members(line, start, |key, start| match key {
            b"type" => read_text(line, start, &mut self.body_type),
            b"hookEvent" => read_text(line, start, &mut self.hook_event),
            b"message" if line.get(start) == Some(&b'{') => {
                let mut nested = Self::default();
                let end =
                    visit_members(line, start, |key, start| nested.member(line, key, start, &mut *on_block));
                self.nested = Some(Box::new(nested));
                end
            }
            _ => Some(skip_value(line, start)),
        })
    }
}

impl<'a> MessageOutline<'a> {
    /// Returns whether the reply may have ended for an error.
    pub fn may_be_cut_off(&self) -> bool {
        !matches!(self.stop_reason, None | Some(b"end_turn" | b"tool_use" | b"stop_sequence"))
    }

    /// Reads the message at `start` and returns its end.
    fn read(
        &mut self,
        line: &'a [u8],
        start: usize,
        on_block: &mut impl FnMut(BlockOutline<'a>),
    ) -> Option<usize> {
        visit_members(line, start, |key, start| match key {
            b"id" => read_text(line, start, &mut self.id),
            b"model" => read_text(line, start, &mut self.model),
            b"stop_reason" => read_text(line, start, &mut self.stop_reason),
            b"content" => {
                let end = match line.get(start) {
                    Some(b'[') => read_blocks(line, start, on_block)?,
                    _ => skip_value(line, start),
                };
                self.content = line.get(start..end);
                Some(end)
            }
            _ => Some(skip_value(line, start)),
        })
    }
}

/// Reads the blocks of the array at `start` and returns its end.
fn read_blocks<'a>(
    line: &'a [u8],
    start: usize,
    on_block: &mut impl FnMut(BlockOutline<'a>),
) -> Option<usize> {
    let mut at = skip_white(line, start + 1);
    if line.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        if line.get(at) == Some(&b'{') {
            let mut block = BlockOutline::default();
            at = visit_members(line, at, |key, start| match key {
                b"type" => read_text(line, start, &mut block.kind),
                b"id" | b"tool_use_id" => read_text(line, start, &mut block.id),
                b"name" => read_text(line, start, &mut block.name),
                b"is_error" => read_flag(line, start, &mut block.is_error),
                _ => Some(skip_value(line, start)),
            })?;
            on_block(block);
        } else {
            at = skip_value(line, at);
        }
        at = skip_white(line, at);
        match line.get(at) {
            Some(b',') => at = skip_white(line, at + 1),
            Some(b']') => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Reads a string without escapes, or `null`, and returns its end.
#[inline(always)]
pub(crate) fn read_text<'a>(line: &'a [u8], start: usize, into: &mut Option<&'a [u8]>) -> Option<usize> {
    match line.get(start)? {
        b'"' => {
            let end = find_special(line, start + 1).filter(|&end| line[end] == b'"')?;
            *into = line.get(start + 1..end);
            Some(end + 1)
        }
        b'n' => {
            *into = None;
            Some(skip_value(line, start))
        }
        _ => None,
    }
}

/// Reads whether a value is `true`, and returns its end.
#[inline(always)]
pub(crate) fn read_flag(line: &[u8], start: usize, into: &mut bool) -> Option<usize> {
    *into = line.get(start) == Some(&b't');
    Some(skip_value(line, start))
}

/// Returns the uuid of a line that ends with its uuid and its timestamp.
///
/// The last brace closes the line, so these two are members of the line itself.
fn last_uuid(line: &[u8]) -> Option<&[u8]> {
    const UUID: &[u8] = b",\"uuid\":\"";
    const TIMESTAMP: &[u8] = b"\",\"timestamp\":\"";
    const UUID_LENGTH: usize = 36;
    const TIME_LENGTH: usize = "2026-03-01T10:00:00.000Z".len();
    let rest = line.strip_suffix(b"\"}")?;
    let (rest, time) = rest.split_at_checked(rest.len().checked_sub(TIME_LENGTH)?)?;
    let rest = rest.strip_suffix(TIMESTAMP)?;
    let (rest, uuid) = rest.split_at_checked(rest.len().checked_sub(UUID_LENGTH)?)?;
    let is_plain = |text: &[u8]| text.iter().fold(true, |all, byte| all & !matches!(byte, b'"' | b'\\'));
    (rest.ends_with(UUID) && is_plain(time) && is_plain(uuid)).then_some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(Kind, String, String, Vec<String>)> {
        let mut blocks = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let outline = LineOutline::read(line.as_bytes(), |block| {
            let error = if block.is_error { " error" } else { "" };
            let id = block.id.map(text).unwrap_or_default();
            blocks.push(format!("{} {id}{error}", block.kind.map(text).unwrap_or_default()));
        })?;
        let [uuid, parent] = [outline.uuid, outline.parent].map(|id| id.map(text).unwrap_or_default());
        Some((outline.kind?, uuid, parent, blocks))
    }

    #[test]
    fn a_result_is_read_up_to_its_data() {
        let head = r#"{"parentUuid":"p","isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t","type":"tool_result","content":[{"type":"text","text":"\"}]"}],"is_error":true}]}"#;
        let expected = Some((Kind::User, "u".into(), "p".into(), vec!["tool_result t error".into()]));
        assert_eq!(
            read(&format!(r#"{head},"uuid":"u","timestamp":"x","toolUseResult":{{"stdout":"…"#)),
            expected
        );
        assert_eq!(read(&format!(r#"{head},"toolUseResult":{{"uuid":"v"}},"uuid":"u"}}"#)), expected);
        let uuid = "0b5b3a5e-0000-4000-8000-000000000001";
        let time = "2026-03-01T10:00:00.000Z";
        let line = format!(r#"{head},"toolUseResult":{{"x":[}},"uuid":"{uuid}","timestamp":"{time}"}}"#);
        assert_eq!(read(&line).unwrap().1, uuid);
    }

    #[test]
    fn a_reply_is_read_to_its_end() {
        let line = r#"{"parentUuid":null,"message":{"model":"m","id":"i","content":[{"type":"tool_use","id":"t","input":{"id":"x"}},{"type":"text"},7]},"type":"assistant","uuid":"u","isApiErrorMessage":true}"#;
        let blocks = vec!["tool_use t".into(), "text ".into()];
        assert_eq!(read(line), Some((Kind::Assistant, "u".into(), String::new(), blocks)));
        assert!(LineOutline::read(line.as_bytes(), |_| ()).unwrap().is_api_error);
    }

    #[test]
    fn the_blocks_of_a_content_are_read() {
        let names = |content: &str| {
            let mut names = Vec::new();
            BlockOutline::read_all(content.as_bytes(), |block| {
                names.push(String::from_utf8_lossy(block.name.unwrap_or_default()).into_owned());
            })
            .map(|()| names)
        };
        let content =
            r#"[{"type":"tool_use","id":"t","name":"Bash","input":{"name":"x"}},7,{"type":"text"}]"#;
        assert_eq!(names(content), Some(vec!["Bash".to_owned(), String::new()]));
        assert_eq!(names("[]"), Some(Vec::new()));
        for odd in [r#""text""#, "", "[", "[] ", r#"[{"name":"\u0042ash"}]"#, r#"[{"name":7}]"#] {
            assert_eq!(names(odd), None, "{odd}");
        }
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
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
