//! Lines without their texts: times, ids, models, tokens and names of tools.

use crate::entry::Entry;
use crate::json::Json;
use crate::key;
use crate::kind::Kind;

/// The members of a line that contain no text of a person, a model or a tool.
const LINE_MEMBERS: &[&str] = &[
    "parentUuid",
    "logicalParentUuid",
    "isSidechain",
    "sessionId",
    "agentId",
    "version",
    "type",
    "subtype",
    "uuid",
    "timestamp",
    "requestId",
    "isMeta",
    "isApiErrorMessage",
    "isCompactSummary",
    "durationMs",
    "leafUuid",
];

/// The members of a message. Its blocks are reduced, too.
const MESSAGE_MEMBERS: &[&str] = &["model", "id", "type", "role", "stop_reason", "usage"];

/// The members of a block.
const BLOCK_MEMBERS: &[&str] = &["type", "id", "tool_use_id", "name", "is_error"];

/// Returns a line without its texts; `None` if nothing of it would be left.
///
/// Working directories, branches, titles and snapshots of files are left out, too.
pub fn metadata_line(line: &[u8]) -> Option<Vec<u8>> {
    let (entry, _) = Entry::parse(line);
    let is_kept = matches!(
        entry.kind(),
        Kind::User | Kind::Assistant | Kind::System | Kind::Attachment | Kind::Progress
    );
    if !is_kept || entry.shares_line() {
        return None;
    }
    let line = Json::parse(entry.text())?;
    let mut out = String::new();
    write_members(line, LINE_MEMBERS, &mut out, |name, value, out| {
        if name != key::MESSAGE || !value.is_object() {
            return false;
        }
        begin_member(name, out);
        write_members(value, MESSAGE_MEMBERS, out, write_content);
        true
    });
    Some(out.into_bytes())
}

/// Writes the blocks of a message without their texts.
fn write_content(name: &str, value: Json<'_>, out: &mut String) -> bool {
    if name != key::CONTENT {
        return false;
    }
    begin_member(name, out);
    if value.quoted().is_some() {
        out.push_str("\"\"");
        return true;
    }
    out.push('[');
    for (i, block) in value.items().filter(|block| block.is_object()).enumerate() {
        if i > 0 {
            out.push(',');
        }
        write_members(block, BLOCK_MEMBERS, out, |_, _, _| false);
    }
    out.push(']');
    true
}

/// Writes an object with these members. `other` may write further ones, and returns whether it did.
fn write_members(
    object: Json<'_>,
    names: &[&str],
    out: &mut String,
    mut other: impl FnMut(&str, Json<'_>, &mut String) -> bool,
) {
    out.push('{');
    for (name, value) in object.members() {
        if names.contains(&name.raw()) {
            begin_member(name.raw(), out);
            out.push_str(value.raw());
        } else {
            other(name.raw(), value, out);
        }
    }
    out.push('}');
}

fn begin_member(name: &str, out: &mut String) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push('"');
    out.push_str(name);
    out.push_str("\":");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_left_out_and_figures_kept() {
        let line = r#"{"parentUuid":"p","cwd":"/secret","sessionId":"s","message":{"model":"m","id":"i","content":[{"type":"text","text":"secret"},{"type":"tool_use","id":"t","name":"Bash","input":{"command":"secret"}}],"usage":{"output_tokens":3}},"toolUseResult":"secret","type":"assistant","uuid":"u","timestamp":"2026-03-01T10:00:00.000Z"}"#;
        let reduced = String::from_utf8(metadata_line(line.as_bytes()).unwrap()).unwrap();
        assert_eq!(
            reduced,
            r#"{"parentUuid":"p","sessionId":"s","message":{"model":"m","id":"i","content":[{"type":"text"},{"type":"tool_use","id":"t","name":"Bash"}],"usage":{"output_tokens":3}},"type":"assistant","uuid":"u","timestamp":"2026-03-01T10:00:00.000Z"}"#
        );
        let prompt = metadata_line(br#"{"type":"user","message":{"role":"user","content":"secret"}}"#);
        assert_eq!(prompt.unwrap(), br#"{"type":"user","message":{"role":"user","content":""}}"#);
        assert_eq!(metadata_line(br#"{"type":"summary","summary":"secret"}"#), None);
        assert_eq!(metadata_line(b"secret"), None);
    }
}
