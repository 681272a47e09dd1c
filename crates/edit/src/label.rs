//! Labels of a session: its title and its tag.

use crate::draft::Draft;
use crate::splice::quote;

/// Returns the line that sets the title of a session.
pub fn title_line(session_id: &str, title: &str) -> String {
    format!(
        "{{\"type\":\"custom-title\",\"customTitle\":{},\"sessionId\":{}}}",
        quote(title),
        quote(session_id)
    )
}

/// Returns the line that sets the tag of a session.
pub fn tag_line(session_id: &str, tag: &str) -> String {
    format!("{{\"type\":\"tag\",\"tag\":{},\"sessionId\":{}}}", quote(tag), quote(session_id))
}

/// Sets the title of the session. The last title in the log is used.
pub fn title(draft: &mut Draft<'_>, title: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&title_line(&id, title), "title");
}

/// Sets the tag of the session. The last tag in the log is used.
pub fn tag(draft: &mut Draft<'_>, tag: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&tag_line(&id, tag), "tag");
}
