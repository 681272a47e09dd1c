//! Labels that a person gives to a session: its title and its tag.

use crate::draft::Draft;
use crate::splice::quote;

/// The line that gives a session a title.
pub fn title_line(session_id: &str, title: &str) -> String {
    format!(
        "{{\"type\":\"custom-title\",\"customTitle\":{},\"sessionId\":{}}}",
        quote(title),
        quote(session_id)
    )
}

/// The line that gives a session a tag.
pub fn tag_line(session_id: &str, tag: &str) -> String {
    format!("{{\"type\":\"tag\",\"tag\":{},\"sessionId\":{}}}", quote(tag), quote(session_id))
}

/// Gives the session a title. The last one in the log counts.
pub fn title(draft: &mut Draft<'_>, title: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&title_line(&id, title), "the title");
}

/// Gives the session a tag. The last one in the log counts.
pub fn tag(draft: &mut Draft<'_>, tag: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&tag_line(&id, tag), "the tag");
}
