//! The messages of a request in a form that can be compared: roles, order, ids, contents.

use std::collections::HashMap;

use serde_json::Value;

/// The compared fields of one block of a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RequestBlock {
    pub(crate) role: String,
    pub(crate) kind: String,
    /// The id of a tool call, or of the call that a result answers.
    pub(crate) id: String,
    pub(crate) content: String,
    pub(crate) is_error: bool,
}

/// Texts that Claude Code adds to a request.
const ADDED_TEXTS: &[&str] = &["Continue from where you left off.", "No response requested.", "(no content)"];

/// Returns the blocks of messages, normalized for comparison.
///
/// Text that Claude Code adds, or rewrites at each resume, is removed or replaced by a constant. Parallel
/// calls and their results are sorted by id.
pub(crate) fn blocks(messages: &Value) -> Vec<RequestBlock> {
    let mut out: Vec<RequestBlock> = Vec::new();
    for message in messages.as_array().into_iter().flatten() {
        let role = message["role"].as_str().unwrap_or_default();
        if !matches!(role, "user" | "assistant") {
            continue;
        }
        match &message["content"] {
            Value::String(text) => {
                out.extend(block(role, &serde_json::json!({"type": "text", "text": text})))
            }
            Value::Array(content) => out.extend(content.iter().filter_map(|content| block(role, content))),
            _ => {}
        }
    }
    let mut at = 0;
    while at < out.len() {
        let run = out[at..].iter().take_while(|block| {
            block.role == out[at].role && block.kind == out[at].kind && block.kind.starts_with("tool_")
        });
        let length = run.count().max(1);
        out[at..at + length].sort_by(|a, b| a.id.cmp(&b.id));
        at += length;
    }
    out
}

fn block(role: &str, block: &Value) -> Option<RequestBlock> {
    let kind = block["type"].as_str().unwrap_or_default();
    let text = |key: &str| block[key].as_str().unwrap_or_default().trim().to_owned();
    let (id, content) = match kind {
        "text" => (String::new(), text("text")),
        "thinking" => (String::new(), text("thinking")),
        "tool_use" => (text("id"), sorted(&block["input"])),
        "tool_result" => (text("tool_use_id"), result(&block["content"])),
        _ => (String::new(), sorted(&block["source"])),
    };
    let own = kind == "text"
        && (content.is_empty()
            || ADDED_TEXTS.contains(&&*content)
            || content.starts_with("<system-reminder>")
            || is_lost_task(&content));
    let is_error = block["is_error"].as_bool().unwrap_or(false);
    (!own).then(|| RequestBlock { role: role.to_owned(), kind: kind.to_owned(), id, content, is_error })
}

/// Returns whether the text is a notification about a task that ended with the previous process.
fn is_lost_task(text: &str) -> bool {
    text.starts_with("<task-notification>")
        && (text.contains("<status>stopped</status>")
            || text.contains("was running when the previous Claude Code process exited"))
}

/// Returns the normalized content of a result.
///
/// References to deferred tools are rewritten at each resume, and trailing reminders are not part of the log.
fn result(content: &Value) -> String {
    let Value::Array(items) = content else {
        return content.as_str().map_or_else(|| sorted(content), |text| without_reminders(text).to_owned());
    };
    let is_reference = |item: &Value| {
        item["type"] == "tool_reference"
            || item["text"].as_str().is_some_and(|text| text.contains("Tool references removed"))
    };
    if items.iter().any(is_reference) {
        return "tool references".to_owned();
    }
    let texts: Option<Vec<&str>> =
        items.iter().map(|item| item["text"].as_str().filter(|_| item["type"] == "text")).collect();
    texts.map_or_else(|| sorted(content), |texts| without_reminders(&texts.join("\n")).to_owned())
}

/// Returns the text without trailing reminders.
fn without_reminders(text: &str) -> &str {
    let mut text = text.trim();
    while text.ends_with("</system-reminder>")
        && let Some(start) = text.rfind("<system-reminder>")
    {
        text = text[..start].trim_end();
    }
    text
}

/// Returns JSON text with sorted keys, so that equal values have equal text.
fn sorted(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().map(|(key, value)| (key, sorted_value(value))).collect();
            members.sort_by_key(|(key, _)| *key);
            let members: Vec<String> =
                members.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
            format!("{{{}}}", members.join(","))
        }
        value => sorted_value(value),
    }
}

fn sorted_value(value: &Value) -> String {
    match value {
        Value::Object(_) => sorted(value),
        Value::Array(items) => format!("[{}]", items.iter().map(sorted_value).collect::<Vec<_>>().join(",")),
        value => value.to_string(),
    }
}

/// Returns the blocks that only the first request contains, and those that only the second contains.
pub(crate) fn block_difference(
    ours: &[RequestBlock],
    theirs: &[RequestBlock],
) -> (Vec<RequestBlock>, Vec<RequestBlock>) {
    let mut counts: HashMap<&RequestBlock, i64> = HashMap::new();
    ours.iter().for_each(|block| *counts.entry(block).or_default() += 1);
    theirs.iter().for_each(|block| *counts.entry(block).or_default() -= 1);
    let over = |sign: i64| {
        let found = counts.iter().filter(|(_, count)| **count * sign > 0).map(|(block, _)| (*block).clone());
        found.collect::<Vec<_>>()
    };
    (over(1), over(-1))
}

/// Describes the first difference between two requests.
pub(crate) fn first_difference(ours: &[RequestBlock], theirs: &[RequestBlock]) -> Option<String> {
    let at = (0..ours.len().max(theirs.len())).find(|&at| ours.get(at) != theirs.get(at))?;
    let tell = |block: Option<&RequestBlock>| match block {
        Some(RequestBlock { role, kind, id, content, is_error }) => {
            let mut shown: String = content.chars().take(70).collect();
            if *is_error {
                shown.insert_str(0, "error ");
            }
            format!("{role} {kind} {id} {shown:?} ({} bytes)", content.len())
        }
        None => "end of messages".to_owned(),
    };
    Some(format!(
        "block {at} of {}: ours {}, theirs {}",
        ours.len(),
        tell(ours.get(at)),
        tell(theirs.get(at))
    ))
}
