//! Reads the tool calls, the results and the time of a line without parsing it.
//!
//! For scans over all logs of a home that join calls with their results. Texts are skipped, and the data of a
//! result is not read at all if the line ends with its time.

use crate::json::{find_special, skip_value, skip_white, visit_members};
use crate::key;
use crate::kind::Kind;

/// The members of a line that say when it was written and to which message its blocks belong. Texts are as
/// written, and contain no escapes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallLine<'a> {
    /// The kind of the line; `None` if it has no type.
    pub kind: Option<Kind>,
    /// The uuid of the line. That of a result may be missing.
    pub uuid: Option<&'a [u8]>,
    /// When the line was written.
    pub timestamp: Option<&'a [u8]>,
    /// Whether it belongs to a sub-agent.
    pub is_sidechain: bool,
    /// The id that the API gave to the reply.
    pub message_id: Option<&'a [u8]>,
    /// The id of the request.
    pub request_id: Option<&'a [u8]>,
    /// The subtype of a system line.
    pub subtype: Option<&'a [u8]>,
    /// The type of an attachment or of a progress report.
    pub body_type: Option<&'a [u8]>,
}

/// A block of a message that may be a call or a result.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallBlock<'a> {
    /// The type of the block.
    pub kind: Option<&'a [u8]>,
    /// The id of a call, or of the call that a result answers.
    pub id: Option<&'a [u8]>,
    /// The name of the tool.
    pub name: Option<&'a [u8]>,
    /// The input of a call, as written.
    pub input: Option<&'a [u8]>,
    /// Whether it is the result of a failed call.
    pub is_error: bool,
}

impl<'a> CallLine<'a> {
    /// Reads a line, and calls `on_block` for every block of its message. For a progress line, these are the
    /// blocks, the ids and the time of the message that it repeats.
    ///
    /// The result is exact for a line that is valid JSON and has no key twice. Returns `None` if the line is
    /// not an object, or if a value that matters contains escapes or has an unexpected type; `on_block` may
    /// have been called then.
    pub fn read(line: &'a [u8], mut on_block: impl FnMut(CallBlock<'a>)) -> Option<Self> {
        let mut read = Self::default();
        let mut n_blocks = 0_usize;
        let mut is_complete = false;
        let mut count = |block: CallBlock<'a>| {
            n_blocks += 1;
            on_block(block);
        };
        let mut has_blocks = false;
        let end = visit_members(line, 0, |key, start| match key {
            _ if key == key::TOOL_USE_RESULT.as_bytes() && has_blocks && read.kind == Some(Kind::User) => {
                is_complete = read.timestamp.is_some() || read.take_last_time(line);
                if is_complete { None } else { Some(skip_value(line, start)) }
            }
            b"attachment" => read.body(line, start, &mut |_| ()),
            b"data" => read.body(line, start, &mut count),
            _ => {
                let end = read.member(line, key, start, &mut count);
                has_blocks |= key == b"message";
                end
            }
        });
        match end {
            Some(end) => (skip_white(line, end) == line.len()).then_some(read),
            None => (is_complete && n_blocks > 0).then_some(read),
        }
    }

    /// Reads a member of the line, or of the line that a progress line repeats, and returns its end.
    fn member(
        &mut self,
        line: &'a [u8],
        key: &[u8],
        start: usize,
        on_block: &mut impl FnMut(CallBlock<'a>),
    ) -> Option<usize> {
        match key {
            b"type" => {
                let mut name = None;
                let end = read_text(line, start, &mut name)?;
                self.kind = Some(Kind::named(std::str::from_utf8(name?).ok()?));
                Some(end)
            }
            b"uuid" => read_text(line, start, &mut self.uuid),
            b"timestamp" => read_text(line, start, &mut self.timestamp),
            b"requestId" => read_text(line, start, &mut self.request_id),
            b"subtype" => read_text(line, start, &mut self.subtype),
            b"isSidechain" => read_flag(line, start, &mut self.is_sidechain),
            b"message" if line.get(start) == Some(&b'{') => {
                visit_members(line, start, |key, start| match (key, line.get(start)) {
                    (b"id", _) => read_text(line, start, &mut self.message_id),
                    (b"content", Some(b'[')) => read_blocks(line, start, on_block),
                    _ => Some(skip_value(line, start)),
                })
            }
            _ => Some(skip_value(line, start)),
        }
    }

    /// Reads the body of an attachment or of a progress report, and returns its end.
    fn body(
        &mut self,
        line: &'a [u8],
        start: usize,
        on_block: &mut impl FnMut(CallBlock<'a>),
    ) -> Option<usize> {
        if line.get(start) != Some(&b'{') {
            return Some(skip_value(line, start));
        }
        visit_members(line, start, |key, start| match (key, line.get(start)) {
            (b"type", _) => read_text(line, start, &mut self.body_type),
            (b"message", Some(b'{')) => {
                let mut nested = Self::default();
                let end = visit_members(line, start, |key, start| nested.member(line, key, start, on_block));
                (self.message_id, self.request_id) = (nested.message_id, nested.request_id);
                end
            }
            _ => Some(skip_value(line, start)),
        })
    }

    /// Takes the time, and the uuid before it, from the end of the line. Returns whether the time is there.
    ///
    /// The last brace closes the line, so the last members are members of the line itself.
    fn take_last_time(&mut self, line: &'a [u8]) -> bool {
        const TIME_LENGTH: usize = "2026-03-01T10:00:00.000Z".len();
        const UUID_LENGTH: usize = 36;
        let is_plain = |text: &[u8]| !text.iter().any(|byte| matches!(byte, b'"' | b'\\'));
        let Some((rest, time)) = line.strip_suffix(b"\"}").and_then(|rest| split_end(rest, TIME_LENGTH))
        else {
            return false;
        };
        let Some(rest) = rest.strip_suffix(b",\"timestamp\":\"").filter(|_| is_plain(time)) else {
            return false;
        };
        self.timestamp = Some(time);
        let uuid = rest.strip_suffix(b"\"").and_then(|rest| split_end(rest, UUID_LENGTH));
        if let Some((rest, uuid)) = uuid.filter(|(_, uuid)| self.uuid.is_none() && is_plain(uuid)) {
            self.uuid = rest.ends_with(b",\"uuid\":\"").then_some(uuid);
        }
        true
    }
}

/// Reads a string without escapes, or `null`, and returns its end.
fn read_text<'a>(line: &'a [u8], start: usize, into: &mut Option<&'a [u8]>) -> Option<usize> {
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
fn read_flag(line: &[u8], start: usize, into: &mut bool) -> Option<usize> {
    *into = line.get(start) == Some(&b't');
    Some(skip_value(line, start))
}

/// Splits off the last `length` bytes.
fn split_end(bytes: &[u8], length: usize) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(bytes.len().checked_sub(length)?)
}

/// Reads the blocks of the array at `start` and returns its end.
fn read_blocks<'a>(line: &'a [u8], start: usize, on_block: &mut impl FnMut(CallBlock<'a>)) -> Option<usize> {
    let mut at = skip_white(line, start + 1);
    if line.get(at) == Some(&b']') {
        return Some(at + 1);
    }
    loop {
        if line.get(at) == Some(&b'{') {
            let mut block = CallBlock::default();
            at = visit_members(line, at, |key, start| match key {
                b"type" => read_text(line, start, &mut block.kind),
                b"id" | b"tool_use_id" => read_text(line, start, &mut block.id),
                b"name" => read_text(line, start, &mut block.name),
                b"is_error" => read_flag(line, start, &mut block.is_error),
                b"input" => {
                    let end = skip_value(line, start);
                    block.input = line.get(start..end);
                    Some(end)
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<(String, Vec<String>)> {
        let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or(b"-")).into_owned();
        let mut blocks = Vec::new();
        let read = CallLine::read(line.as_bytes(), |block| {
            let error = if block.is_error { " error" } else { "" };
            let [kind, id, name, input] = [block.kind, block.id, block.name, block.input].map(text);
            blocks.push(format!("{kind} {id} {name} {input}{error}"));
        })?;
        let [uuid, time, message, request] =
            [read.uuid, read.timestamp, read.message_id, read.request_id].map(text);
        Some((format!("{:?} {uuid} {time} {message} {request}", read.kind?), blocks))
    }

    #[test]
    fn a_call_has_its_name_and_input() {
        let line = r#"{"message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{"command":"ls \"a\""}}]},"requestId":"r","type":"assistant","uuid":"u","timestamp":"x"}"#;
        let block = r#"tool_use t Bash {"command":"ls \"a\""}"#;
        assert_eq!(read(line), Some(("Assistant u x m r".into(), vec![block.into()])));
    }

    #[test]
    fn the_data_of_a_result_is_not_read() {
        let head = r#"{"type":"user","message":{"content":[{"tool_use_id":"t","type":"tool_result","is_error":true}]},"toolUseResult":{"x":["#;
        let uuid = "0b5b3a5e-0000-4000-8000-000000000001";
        let time = "2026-03-01T10:00:00.000Z";
        let blocks = vec!["tool_result t - - error".to_owned()];
        let line = format!(r#"{head}}},"uuid":"{uuid}","timestamp":"{time}"}}"#);
        assert_eq!(read(&line), Some((format!("User {uuid} {time} - -"), blocks.clone())));
        let line = format!(r#"{head}]}},"timestamp":"{time}","uuid":"{uuid}"}}"#);
        assert_eq!(read(&line), Some((format!("User {uuid} {time} - -"), blocks)));
        assert_eq!(read(&format!(r#"{head}}},"uuid":"u"}}"#)), None);
    }

    #[test]
    fn a_progress_line_has_the_message_that_it_repeats() {
        let line = r#"{"type":"progress","data":{"type":"agent_progress","message":{"type":"assistant","timestamp":"y","message":{"id":"m","content":[{"type":"tool_use","id":"t","name":"Read"}]},"requestId":"r"}},"uuid":"u","timestamp":"x"}"#;
        assert_eq!(read(line), Some(("Progress u x m r".into(), vec!["tool_use t Read -".into()])));
    }

    #[test]
    fn odd_lines_are_not_read() {
        for line in ["", "7", r#"{"type":"user""#, r#"{"type":"us\u0065r"}"#, r#"{"type":"user","uuid":7}"#] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
