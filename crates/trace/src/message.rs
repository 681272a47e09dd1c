//! Messages as JSON, in the two forms that receivers read.

use std::fmt::Write;

use crate::generation::CalledTool;
use crate::span_options::quote;
use threadline_entry::value;

/// Returns `{"role":…,"content":…}`, the form that Langfuse displays.
pub(crate) fn plain(role: &str, text: &str) -> String {
    format!("{{\"role\":\"{role}\",\"content\":{}}}", quote(text))
}

/// Returns a reply in the same form, with thinking and tool calls.
pub(crate) fn plain_reply(text: &str, thinking: &str, calls: &[CalledTool<'_>]) -> String {
    let mut out = format!("{{\"role\":\"assistant\",\"content\":{}", quote(text));
    if !thinking.is_empty() {
        let _ = write!(out, ",\"thinking\":{}", quote(thinking));
    }
    for (n, (id, name)) in calls.iter().enumerate() {
        out.push_str(if n == 0 { ",\"tool_calls\":[" } else { "," });
        let _ = write!(out, "{{\"id\":{},\"name\":{}}}", quote(id), quote(name));
    }
    if !calls.is_empty() {
        out.push(']');
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
    calls: &[CalledTool<'_>],
    finish: Option<&str>,
) -> String {
    let mut out = "[{\"role\":\"assistant\",\"parts\":[".to_owned();
    let mut comma = "";
    for (kind, text) in [("reasoning", thinking), ("text", text)] {
        if !text.is_empty() {
            let _ = write!(out, "{comma}{{\"type\":\"{kind}\",\"content\":{}}}", quote(text));
            comma = ",";
        }
    }
    for (id, name) in calls {
        let (id, name) = (quote(id), quote(name));
        let _ = write!(out, "{comma}{{\"type\":\"tool_call\",\"id\":{id},\"name\":{name}}}");
        comma = ",";
    }
    let finish = match finish {
        Some(value::TOOL_USE) => "tool_call",
        Some("max_tokens" | "model_context_window_exceeded") => "length",
        Some("refusal") => "content_filter",
        _ => "stop",
    };
    let _ = write!(out, "],\"finish_reason\":\"{finish}\"}}]");
    out
}
