//! Messages as JSON, in the two forms that receivers read.

use std::fmt::Write;

use crate::span_options::quote;
use threadline_entry::value;

/// Returns `{"role":…,"content":…}`, the form that Langfuse displays.
pub(crate) fn plain(role: &str, text: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":{}}}", quote(text))
}

/// Returns a reply in the same form, with thinking and tool calls.
pub(crate) fn plain_reply(text: &str, thinking: &str, calls: &[(String, String)]) -> String {
    let mut out = format!("{{\"role\":\"assistant\",\"content\":{}", quote(text));
    if !thinking.is_empty() {
        let _ = write!(out, ",\"thinking\":{}", quote(thinking));
    }
    if !calls.is_empty() {
        let calls: Vec<String> = calls
            .iter()
            .map(|(id, name)| format!("{{\"id\":{},\"name\":{}}}", quote(id), quote(name)))
            .collect();
        let _ = write!(out, ",\"tool_calls\":[{}]", calls.join(","));
    }
    out.push('}');
    out
}

/// Returns `[{"role":…,"parts":[…]}]`, the form of the GenAI conventions.
pub(crate) fn parts(role: &str, text: &str) -> String {
    format!("[{{\"role\":\"{role}\",\"parts\":[{{\"type\":\"text\",\"content\":{}}}]}}]", quote(text))
}

/// Returns a reply in the same form, with thinking, tool calls and the finish reason.
pub(crate) fn parts_reply(
    text: &str,
    thinking: &str,
    calls: &[(String, String)],
    finish: Option<&str>,
) -> String {
    let mut parts = Vec::new();
    if !thinking.is_empty() {
        parts.push(format!("{{\"type\":\"reasoning\",\"content\":{}}}", quote(thinking)));
    }
    if !text.is_empty() {
        parts.push(format!("{{\"type\":\"text\",\"content\":{}}}", quote(text)));
    }
    for (id, name) in calls {
        parts.push(format!("{{\"type\":\"tool_call\",\"id\":{},\"name\":{}}}", quote(id), quote(name)));
    }
    let finish = match finish {
        Some(value::TOOL_USE) => "tool_call",
        Some("max_tokens" | "model_context_window_exceeded") => "length",
        Some("refusal") => "content_filter",
        _ => "stop",
    };
    format!("[{{\"role\":\"assistant\",\"parts\":[{}],\"finish_reason\":\"{finish}\"}}]", parts.join(","))
}
