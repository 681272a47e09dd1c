//! Labels of a session: its title and its tag.

use threadline_entry::write::{CustomTitleLine, TagLine};

use crate::draft::EditDraft;

/// Returns the line that sets the title of a session.
pub fn title_line(session_id: &str, title: &str) -> String {
    CustomTitleLine { title, session_id }.to_line()
}

/// Returns the line that sets the tag of a session.
pub fn tag_line(session_id: &str, tag: &str) -> String {
    TagLine { tag, session_id }.to_line()
}

/// Sets the title of the session. The last title in the log is used.
pub fn title(draft: &mut EditDraft<'_>, title: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&title_line(&id, title), "title");
}

/// Sets the tag of the session. The last tag in the log is used.
pub fn tag(draft: &mut EditDraft<'_>, tag: &str) {
    let id = draft.session.id().unwrap_or_default().into_owned();
    draft.append(&tag_line(&id, tag), "tag");
}
