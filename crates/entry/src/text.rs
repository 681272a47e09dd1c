//! Visits every string of a line, whatever key it is stored under.
//!
//! A lens reads only the fields it defines. The text of a session is also stored in many other places:
//! copies in progress lines, results for display, attachments of future versions. [`visit_strings`] visits
//! all of them.

use std::borrow::Cow;
use std::ops::Range;

use crate::json::{decode, find_special, skip_white};

/// One string of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineString<'a> {
    /// The text between the quotes, with its escapes.
    pub inner: &'a str,
    /// The range of `inner` in the line.
    pub range: Range<usize>,
    /// The role of the string in the format.
    pub role: StringRole,
    /// The key of the value, as written; for an item of an array, the key of the array. Empty at the top
    /// level.
    pub key: &'a str,
    /// The offset of the innermost object that contains the string.
    pub object: Option<usize>,
    /// The offset of the array that has this object as an item.
    pub array: Option<usize>,
}

impl<'a> LineString<'a> {
    /// Returns the decoded text, borrowed if it contains no escapes.
    pub fn decoded(&self) -> Cow<'a, str> {
        decode(self.inner)
    }
}

/// The role of a string in the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringRole {
    /// Text written by a person, a model or a tool.
    Prose,
    /// The key of a member.
    Key,
    /// An identifier, or a keyword of the format.
    Id,
    /// Opaque data that must not change and is not readable: signatures, encrypted thinking, images.
    Opaque,
}

/// Returns whether a key is that of an identifier or keyword. It is called for every value of a log, so it is
/// a `match`, which compares only keys of the same length.
fn is_id_key(key: &str) -> bool {
    matches!(
        key,
        "type"
            | "subtype"
            | "role"
            | "model"
            | "version"
            | "timestamp"
            | "stop_reason"
            | "media_type"
            | "name"
            | "id"
            | "uuid"
            | "parentUuid"
            | "logicalParentUuid"
            | "sessionId"
            | "session_id"
            | "requestId"
            | "request_id"
            | "leafUuid"
            | "messageId"
            | "messageUuid"
            | "tool_use_id"
            | "toolUseID"
            | "toolUseId"
            | "parentToolUseID"
            | "sourceToolAssistantUUID"
            | "sourceToolUseID"
            | "promptId"
            | "agentId"
            | "taskId"
            | "headUuid"
            | "anchorUuid"
            | "tailUuid"
            | "uuids"
            | "userType"
            | "operation"
    )
}

/// Returns whether a key is that of opaque data.
fn is_opaque_key(key: &str) -> bool {
    matches!(key, "signature" | "data" | "base64" | "encrypted_content")
}

/// The minimum length of a base64 string under such a key to be opaque data.
const MIN_OPAQUE_LENGTH: usize = 40;

/// An object or array that the scan is in.
struct Container<'a> {
    start: usize,
    is_object: bool,
    /// The key of the current member; `None` before a key. The elements of an array have the key of the
    /// array.
    key: Option<&'a str>,
    /// The position of the innermost object among the containers.
    object: Option<usize>,
}

/// Calls `visit` for every string of a JSON text, in order.
///
/// The text must be valid JSON. For other text the visited strings are unspecified, but nothing panics.
pub fn visit_strings<'a>(line: &'a str, mut visit: impl FnMut(LineString<'a>)) {
    let bytes = line.as_bytes();
    let mut open: Vec<Container<'a>> = Vec::new();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'{' => {
                open.push(Container { start: at, is_object: true, key: None, object: Some(open.len()) });
            }
            b'[' => {
                let (key, object) = open.last().map_or((None, None), |around| (around.key, around.object));
                open.push(Container { start: at, is_object: false, key, object });
            }
            b'}' | b']' => drop(open.pop()),
            b',' => {
                if let Some(object) = open.last_mut().filter(|container| container.is_object) {
                    object.key = None;
                }
            }
            b'"' => {
                let start = at + 1;
                let end = string_end(bytes, start);
                let inner = &line[start..end];
                let around = open.last();
                let is_key = around.is_some_and(|container| container.is_object && container.key.is_none());
                let key = around.and_then(|container| container.key).unwrap_or_default();
                let role = if is_key { StringRole::Key } else { role(key, inner, is_format_object(&open)) };
                let object = around.and_then(|container| container.object);
                let above = object.and_then(|object| open.get(object.checked_sub(1)?));
                visit(LineString {
                    inner,
                    range: start..end,
                    role,
                    key,
                    object: object.map(|object| open[object].start),
                    array: above.filter(|above| !above.is_object).map(|array| array.start),
                });
                if let Some(object) = open.last_mut().filter(|_| is_key) {
                    object.key = Some(inner);
                }
                at = end;
            }
            _ => {}
        }
        at = skip_white(bytes, at + 1);
    }
}

/// Where the string ends whose text begins at `start`: at its closing quote, or with the line.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(hit) = find_special(bytes, at) {
        if bytes[hit] == b'"' {
            return hit;
        }
        at = hit + 2;
    }
    bytes.len()
}

/// Whether the innermost object or array is one of the format's own: the line, its message, or a block of
/// that.
fn is_format_object(open: &[Container<'_>]) -> bool {
    let has = |position: usize, key: &str| open[position].is_object && open[position].key == Some(key);
    match open.len() {
        1 => true,
        2 => has(0, "message"),
        4 => has(0, "message") && has(1, "content"),
        _ => false,
    }
}

fn role(key: &str, inner: &str, in_frame: bool) -> StringRole {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let is_sealed =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'/' | b'=');
    if is_opaque_key(key) && inner.len() >= MIN_OPAQUE_LENGTH && inner.bytes().all(is_sealed) {
        StringRole::Opaque
    } else if is_id_key(key) && (in_frame || is_id(inner)) && inner.bytes().all(is_word) {
        StringRole::Id
    } else {
        StringRole::Prose
    }
}

/// Returns whether a string has the form of an id: a UUID, or an id with a prefix of the API.
fn is_id(inner: &str) -> bool {
    let is_uuid = || {
        inner.len() == 36
            && inner.bytes().enumerate().all(|(at, byte)| {
                if matches!(at, 8 | 13 | 18 | 23) { byte == b'-' } else { byte.is_ascii_hexdigit() }
            })
    };
    ["toolu_", "srvtoolu_", "mcptoolu_", "msg_", "req_", "call_"]
        .into_iter()
        .any(|start| inner.starts_with(start))
        || is_uuid()
}

#[cfg(test)]
mod tests {
    use super::{StringRole, visit_strings};

    fn visited(line: &str) -> String {
        let mut out = Vec::new();
        visit_strings(line, |text| {
            assert_eq!(&line[text.range.clone()], text.inner);
            let role = match text.role {
                StringRole::Prose => "",
                StringRole::Key => "key ",
                StringRole::Id => "id ",
                StringRole::Opaque => "sealed ",
            };
            let within = text.object.map(|at| &line[at..=at]).unwrap_or_default();
            let array = text.array.map(|at| &line[at..=at]).unwrap_or_default();
            if text.role != StringRole::Key {
                out.push(format!("{role}{}={} {within}{array}", text.key, text.inner));
            }
        });
        out.join("\n")
    }

    #[test]
    fn every_string_is_visited_with_its_key() {
        let sealed = "Er8K".repeat(20);
        let line = format!(
            r#"{{"type":"user", "uuid" : "u1","a":{{"b\"c":["x",["y\n"],{{"d":""}}]}},"message":{{"content":[{{"signature":"{sealed}","thinking":"hm"}}]}},"n":[1,true,null]}}"#
        );
        let expected = format!(
            "id type=user {{\nid uuid=u1 {{\nb\\\"c=x {{\nb\\\"c=y\\n {{\nd= {{[\nsealed signature={sealed} {{[\nthinking=hm {{["
        );
        assert_eq!(visited(&line), expected);
    }

    #[test]
    fn strings_in_very_deep_arrays_are_seen() {
        // Each string would go up all arrays around it if the object were looked for anew.
        let (deep, wide) = (200_000, 200_000);
        let line =
            format!(r#"{{"k":{}{}"last"{}}}"#, "[".repeat(deep), r#""x","#.repeat(wide), "]".repeat(deep));
        let mut count = 0;
        visit_strings(&line, |text| {
            count += usize::from(text.role != StringRole::Key);
            assert!(text.role == StringRole::Key || (text.key, text.object) == ("k", Some(0)));
        });
        assert_eq!(count, wide + 1);
    }

    #[test]
    fn truncated_text_does_not_panic() {
        for line in
            ["", "{", "\"", "{\"a", "{\"a\":\"b\\", "]}", "{\"a\":\"b\",", "é\"ü", "[\"x\"", "{\"k\":\"\\"]
        {
            visit_strings(line, |_| {});
        }
    }

    #[test]
    fn prose_under_an_id_key_is_prose() {
        assert_eq!(visited(r#"{"id":"two words","name":"é"}"#), "id=two words {\nname=é {");
        let line = r#"{"id":"a1","x":{"id":"a1","tool_use_id":"toolu_1","name":"b"},"message":{"id":"m","content":[{"name":"Bash","input":{"name":"c"}}]}}"#;
        let expected =
            "id id=a1 {\nid=a1 {\nid tool_use_id=toolu_1 {\nname=b {\nid id=m {\nid name=Bash {[\nname=c {";
        assert_eq!(visited(line), expected);
    }
}
