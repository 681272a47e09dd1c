//! Writes new lines, with the keys of the format in the order of Claude Code 2.1.
//!
//! There is a type per kind of line. Its `to_line` returns the line without a newline; the lenses read back
//! the values that were written. Optional values that are absent are left out, except `parentUuid`, which is
//! null.
//!
//! ```
//! use threadline_entry::write::{CustomTitleLine, LineContext, LineHeader, UserContent, UserLine};
//! use threadline_entry::Entry;
//!
//! let title = CustomTitleLine { title: "The loom", session_id: "s1" };
//! assert_eq!(title.to_line(), r#"{"type":"custom-title","customTitle":"The loom","sessionId":"s1"}"#);
//!
//! let header = LineHeader { uuid: "u1", parent_uuid: None, timestamp: 0 };
//! let context = LineContext { session_id: Some("s1".into()), ..LineContext::default() };
//! let line = UserLine::new(header, &context, UserContent::Text("hi")).to_line();
//! let (entry, _) = Entry::parse(line.as_bytes());
//! assert_eq!(entry.message().unwrap().content().unwrap().text(), "hi");
//! ```

mod conversation;
mod object;
mod progress;
mod record;
#[cfg(test)]
mod tests;

pub use conversation::{
    AssistantLine, Attachment, AttachmentLine, CompactBoundaryLine, CompactDetails, ForkOrigin, HookProcess,
    HookSource, InformationLine, LineContext, LineHeader, LocalCommandLine, SummarizedPart, SyntheticLine,
    TurnDurationLine, UserContent, UserLine,
};
pub use progress::{ProgressData, ProgressLine};
pub use record::{
    AgentMetaFile, AgentNameLine, CustomTitleLine, FileBackup, FileHistorySnapshotLine, LastPromptLine,
    ModeLine, PermissionModeLine, PrLinkLine, PromptHistoryLine, QueueOperationLine, SummaryLine, TagLine,
};

use crate::timestamp::Millis;

/// Returns a JSON string.
pub fn quote(text: &str) -> String {
    // Writing a string does not fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// Returns a time as Claude Code writes it: `2026-02-18T02:00:41.425Z`. Empty for a time that has no such
/// form.
pub fn timestamp(time: Millis) -> String {
    jiff::Timestamp::from_millisecond(time).map(|time| format!("{time:.3}")).unwrap_or_default()
}
