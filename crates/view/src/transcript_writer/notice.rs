//! Notifications in place of a prompt: finished tasks, and messages of teammates.

use crate::card::tag_text;
use crate::humanize::{duration, plural, short_count};

/// Returns the notices and messages in a text without their tags, or `None` if it contains none.
pub(crate) fn notices(text: &str) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut rest = text;
    while let Some((before, block, after)) = next_block(rest) {
        parts.push(before.trim().to_owned());
        parts.push(if block.starts_with("<teammate") { message(block) } else { notice(block)? });
        rest = after;
    }
    if parts.is_empty() {
        return None;
    }
    parts.push(rest.trim().to_owned());
    parts.retain(|part| !part.is_empty());
    Some(parts.join("\n\n"))
}

/// Returns the text before the first notice or message, the block itself, and the text after it.
fn next_block(text: &str) -> Option<(&str, &str, &str)> {
    const NAMES: [&str; 3] = ["task-notification", "agent-notification", "teammate-message"];
    let name_at = |start: usize| NAMES.into_iter().find(|name| text[start + 1..].starts_with(name));
    let (start, name) = text.match_indices('<').find_map(|(start, _)| Some((start, name_at(start)?)))?;
    let close = format!("</{name}>");
    // A truncated block extends to the end.
    let end = text[start..].find(&close).map_or(text.len(), |at| start + at + close.len());
    Some((&text[..start], &text[start..end], &text[end..]))
}

/// Returns the outcome of a finished task, its figures and its result.
fn notice(block: &str) -> Option<String> {
    let ended = || Some(format!("Task {} {}", tag_text(block, "task-id")?, tag_text(block, "status")?));
    let mut notice_text = tag_text(block, "summary").map(unescaped).or_else(ended)?;
    // The result may contain any text, including tags.
    let result = block.find("<result>").zip(block.rfind("</result>")).filter(|(start, end)| start < end);
    let about = result.map_or(block, |(_, end)| &block[end..]);
    let number = |name: &str| tag_text(about, name)?.parse::<u64>().ok();
    let tokens = number("total_tokens").or_else(|| number("subagent_tokens"));
    let figures = [
        number("tool_uses").map(|calls| plural(calls, "call")),
        tokens.map(|tokens| format!("{} tokens", short_count(tokens))),
        number("duration_ms").map(|millis| duration(millis as i64)),
    ];
    let figures: Vec<String> = figures.into_iter().flatten().collect();
    if !figures.is_empty() {
        notice_text.push('\n');
        notice_text.push_str(&figures.join(" · "));
    }
    if let Some((start, end)) = result {
        notice_text.push_str("\n\n");
        notice_text.push_str(&unescaped(block[start + "<result>".len()..end].trim()));
    }
    Some(notice_text)
}

/// Returns a teammate's message: sender, summary if there is one, and text.
fn message(block: &str) -> String {
    let (head, body) = block.split_once('>').unwrap_or((block, ""));
    let attribute =
        |name: &str| head.split_once(&format!(" {name}=\""))?.1.split_once('"').map(|(text, _)| text);
    let body = body.trim().strip_suffix("</teammate-message>").unwrap_or(body).trim();
    let who = attribute("teammate_id").unwrap_or("unknown teammate");
    match attribute("summary").filter(|summary| !summary.is_empty()) {
        Some(summary) => format!("{who}: {summary}\n\n{body}"),
        None => format!("{who}: {body}"),
    }
}

/// Undoes the escaping of `<`, `>`, `"` and `&` that some versions apply inside tags.
fn unescaped(text: &str) -> String {
    // Text with an unescaped `<` was written by a version that does not escape.
    if text.contains('<') || !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}
