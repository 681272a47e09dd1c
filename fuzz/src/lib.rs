//! Converts the bytes of a fuzzer to logs that resemble those of Claude Code.
//!
//! Random bytes are hardly ever JSON, so most would fail in the parser. [`log`] interprets the bytes as a
//! program: each step writes one line, with a kind, a parent and texts from the bytes that follow. Bytes that
//! begin with `{` are used as they are, so that seeds may be real lines.

use serde_json::{Value, json};

/// The maximum number of lines. Longer logs cost time and show nothing new.
const MAX_LINES: usize = 40;

const TOOLS: &[&str] = &[
    "Bash",
    "Read",
    "Edit",
    "MultiEdit",
    "Write",
    "Grep",
    "Glob",
    "Task",
    "TodoWrite",
    "WebFetch",
    "WebSearch",
    "ExitPlanMode",
    "AskUserQuestion",
    "NotebookEdit",
    "Skill",
    "mcp__x__y",
];

const KEYS: &[&str] = &[
    "command",
    "description",
    "file_path",
    "old_string",
    "new_string",
    "content",
    "pattern",
    "path",
    "prompt",
    "subagent_type",
    "todos",
    "url",
    "query",
    "plan",
    "questions",
    "edits",
    "limit",
    "offset",
];

const SUBTYPES: &[&str] = &[
    "compact_boundary",
    "local_command",
    "api_error",
    "stop_hook_summary",
    "turn_duration",
    "informational",
    "x",
];

/// Returns the log that `data` describes.
pub fn log(data: &[u8]) -> Vec<u8> {
    if data.first() == Some(&b'{') {
        return data.to_vec();
    }
    let mut bytes = FuzzInput(data);
    let mut out = Vec::new();
    for line_no in 0..MAX_LINES {
        if bytes.0.is_empty() {
            break;
        }
        match bytes.byte() {
            // A line that is not JSON, or any JSON value.
            255 => out.extend(bytes.text().into_bytes()),
            _ => out.extend(line(&mut bytes, line_no).to_string().into_bytes()),
        }
        out.push(b'\n');
    }
    out
}

/// The remaining bytes.
pub struct FuzzInput<'d>(pub &'d [u8]);

impl FuzzInput<'_> {
    /// Returns the next byte, or 0 at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns one of several texts.
    pub fn pick<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[usize::from(self.byte()) % of.len()]
    }

    /// Returns a text of up to 255 bytes.
    pub fn text(&mut self) -> String {
        let length = usize::from(self.byte()).min(self.0.len());
        let (text, rest) = self.0.split_at(length);
        self.0 = rest;
        String::from_utf8_lossy(text).into_owned()
    }
}

fn line(bytes: &mut FuzzInput<'_>, line_no: usize) -> Value {
    let kind = bytes.byte() % 12;
    // Usually one of the two previous lines; sometimes another line, a missing one, or the line itself.
    let parent = match bytes.byte() {
        byte @ 0..200 => line_no.checked_sub(1 + usize::from(byte / 100)),
        byte @ 200..250 => Some(usize::from(byte) % MAX_LINES),
        _ => None,
    };
    let message = bytes.byte() % 8;
    let call = format!("toolu_{}", bytes.byte() % 6);
    let mut line = match kind {
        0 | 1 => json!({"type": "user", "message": {"role": "user", "content": bytes.text()}}),
        2 | 3 => {
            let content = match bytes.byte() % 3 {
                0 => json!(bytes.text()),
                1 => json!([{"type": "text", "text": bytes.text()}]),
                _ => {
                    json!([{"type": "image", "source": {"type": "base64", "media_type": bytes.text(), "data": bytes.text()}}])
                }
            };
            let error = bytes.byte().is_multiple_of(4);
            let result =
                json!({"type": "tool_result", "tool_use_id": call, "content": content, "is_error": error});
            let details = match bytes.byte() % 4 {
                0 => json!({"stdout": bytes.text(), "stderr": bytes.text(), "interrupted": false}),
                1 => {
                    json!({"filePath": bytes.text(), "structuredPatch": [{"oldStart": 1, "oldLines": 1, "newStart": 1,
                    "newLines": 1, "lines": [format!("-{}", bytes.text()), format!("+{}", bytes.text())]}]})
                }
                2 => {
                    json!({"file": {"filePath": bytes.text(), "content": bytes.text(), "numLines": 1, "startLine": 1, "totalLines": 1}})
                }
                _ => json!(bytes.text()),
            };
            json!({"type": "user", "message": {"role": "user", "content": [result]}, "toolUseResult": details})
        }
        4 | 5 => assistant(message, json!({"type": "text", "text": bytes.text()})),
        6 => assistant(message, json!({"type": "thinking", "thinking": bytes.text(), "signature": "c2ln"})),
        7 | 8 => {
            let mut input = serde_json::Map::new();
            for _ in 0..bytes.byte() % 4 {
                let key = if bytes.byte() < 240 { bytes.pick(KEYS).to_owned() } else { bytes.text() };
                let value = match bytes.byte() % 5 {
                    0 => json!([bytes.text(), {"content": bytes.text(), "status": "pending"}]),
                    1 => json!(bytes.byte()),
                    _ => json!(bytes.text()),
                };
                input.insert(key, value);
            }
            assistant(
                message,
                json!({"type": "tool_use", "id": call, "name": bytes.pick(TOOLS), "input": input}),
            )
        }
        9 => json!({"type": "system", "subtype": bytes.pick(SUBTYPES), "content": bytes.text(),
            "compactMetadata": {"trigger": "auto", "preTokens": 9}}),
        10 => json!({"type": "user", "isCompactSummary": bytes.byte() < 128, "isMeta": bytes.byte() < 64,
            "message": {"role": "user", "content": bytes.text()}}),
        _ => match bytes.byte() % 6 {
            0 => json!({"type": "summary", "summary": bytes.text(), "leafUuid": uuid(line_no / 2)}),
            1 => json!({"type": "queue-operation", "operation": "enqueue", "content": bytes.text()}),
            2 => {
                json!({"type": "file-history-snapshot", "messageId": uuid(line_no / 2), "snapshot": {"trackedFileBackups": {}}})
            }
            3 => {
                json!({"type": "progress", "toolUseID": call, "data": {"type": "hook_progress", "hookName": bytes.text()}})
            }
            4 => json!({"type": "attachment", "attachment": {"type": bytes.text(), "content": bytes.text()}}),
            _ => json!({"type": bytes.text(), "content": bytes.text()}),
        },
    };
    if let Some(object) = line.as_object_mut() {
        object.insert("uuid".into(), json!(uuid(line_no)));
        object.insert("parentUuid".into(), json!(parent.map(uuid)));
        object.insert("sessionId".into(), json!("s1"));
        object.insert("timestamp".into(), json!(format!("2026-01-01T10:00:{:02}.000Z", line_no % 60)));
        object.insert("isSidechain".into(), json!(bytes.byte() >= 250));
        object.insert("cwd".into(), json!("/loom"));
        object
            .insert("gitBranch".into(), json!(if bytes.byte() > 250 { bytes.text() } else { "main".into() }));
    }
    line
}

fn assistant(message: u8, block: Value) -> Value {
    let usage = json!({"input_tokens": 3, "output_tokens": 5});
    json!({"type": "assistant", "requestId": format!("req_{message}"), "message": {"id": format!("msg_{message}"),
        "role": "assistant", "model": "claude-opus-5", "content": [block], "usage": usage}})
}

fn uuid(line_no: usize) -> String {
    format!("{line_no:08}-0000-4000-8000-000000000000")
}
