//! Sessions as resources: `threadline://session/ID`, with templates for their parts.

use percent_encoding::percent_decode_str;
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::Map;

use crate::budget::{PagePlace, shorten};
use crate::error::HistoryError;
use crate::history::{History, one_line};
use crate::tool::tool_named;

/// The start of the address of a session.
const SESSION_URI: &str = "threadline://session/";

/// The number of sessions on one page of the list of resources.
const PAGE_SESSIONS: usize = 100;

/// The size of a resource in tokens.
const RESOURCE_TOKENS: u64 = 20_000;

/// The templates: address, name, title, description.
const TEMPLATES: [(&str, &str, &str, &str); 5] = [
    ("threadline://session/{session}", "session", "Outline of a session", "One line per turn"),
    (
        "threadline://session/{session}/turns/{turns}",
        "session-turns",
        "Turns of a session",
        "Prompts, replies and tool calls of turns such as 3, 2..4 or -1",
    ),
    (
        "threadline://session/{session}/item/{item}",
        "session-item",
        "One item of a session",
        "A whole prompt, reply or tool call, such as m42",
    ),
    (
        "threadline://session/{session}/agent/{agent}",
        "session-agent",
        "Sub-agent of a session",
        "The outline of the conversation of a sub-agent",
    ),
    (
        "threadline://session/{session}/changes",
        "session-changes",
        "Changes of a session",
        "The net change of each file that the session edited, as a patch",
    ),
];

/// Returns the templates of resources.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |(uri, name, title, description): (&str, &str, &str, &str)| {
        ResourceTemplate::new(uri, name)
            .with_title(title)
            .with_description(description)
            .with_mime_type(MIME_TYPE)
    };
    TEMPLATES.into_iter().map(template).collect()
}

const MIME_TYPE: &str = "text/markdown";

/// Returns one page of the sessions as resources, and the cursor of the next one.
pub(crate) fn list(
    history: &History,
    cursor: Option<&str>,
) -> Result<(Vec<Resource>, Option<String>), HistoryError> {
    // The list has no arguments, so all of its cursors belong to the same request.
    let start = cursor
        .map(|cursor| PagePlace::parse(cursor, 0).ok_or_else(|| HistoryError::new("the cursor is invalid")));
    let start = usize::try_from(start.transpose()?.unwrap_or_default().item).unwrap_or(usize::MAX);
    let sessions = history.app.list_in(&history.scope);
    let page = sessions.iter().skip(start).take(PAGE_SESSIONS).map(|session| {
        let title = session.title().unwrap_or_else(|| session.file.id.to_string());
        let title = history.mask(&shorten(&one_line(&title), 200).0);
        let active = history.shown_time(Some(threadline_app::time::millis(session.preview.last_active)));
        let about = format!("{} · last active {active}", one_line(session.project().unwrap_or("–")));
        Resource::new(format!("{SESSION_URI}{}", session.file.id), history.mask(&session.file.id))
            .with_title(title)
            .with_description(history.mask(&about))
            .with_mime_type(MIME_TYPE)
    });
    let end = start.saturating_add(PAGE_SESSIONS);
    let next = (end < sessions.len()).then(|| PagePlace { item: end as u64, byte: 0 }.cursor(0));
    Ok((page.collect(), next))
}

/// Reads a resource.
pub(crate) fn read(history: &History, uri: &str) -> Result<ResourceContents, HistoryError> {
    let unknown = || HistoryError::new(format!("no resource has the address `{uri}`"));
    let path = uri.strip_prefix(SESSION_URI).ok_or_else(unknown)?;
    let parts: Vec<_> = path.split('/').map(|part| percent_decode_str(part).decode_utf8_lossy()).collect();
    let parts: Vec<&str> = parts.iter().map(|part| &**part).collect();
    let (tool, arguments): (&str, Vec<(&str, &str)>) = match parts[..] {
        [session] => ("read_session", vec![("session", session)]),
        [session, "turns", turns] => ("read_session", vec![("session", session), ("turns", turns)]),
        [session, "item", item] => ("read_session", vec![("session", session), ("item", item)]),
        [session, "agent", agent] => ("read_session", vec![("session", session), ("agent", agent)]),
        [session, "changes"] => ("session_changes", vec![("session", session)]),
        _ => return Err(unknown()),
    };
    let mut object: Map<_, _> =
        arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
    object.insert("max_tokens".to_owned(), RESOURCE_TOKENS.into());
    let row = tool_named(tool).ok_or_else(unknown)?;
    let text = row.text(history, object)?;
    Ok(ResourceContents::text(text, history.mask(uri)).with_mime_type(MIME_TYPE))
}
