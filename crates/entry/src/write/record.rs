//! Lines that are not part of the conversation, such as titles, tags, prompts in the queue and file history;
//! prompts in `history.jsonl`; and files that describe sub-agents.

use super::object::ObjectWriter;
use super::timestamp;
use crate::json::Json;
use crate::timestamp::Millis;

/// Starts a line of a type.
fn line(kind: &str) -> ObjectWriter {
    ObjectWriter::new().string("type", kind)
}

/// A `custom-title` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CustomTitleLine<'a> {
    /// The title.
    pub title: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl CustomTitleLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("custom-title").string("customTitle", self.title).string("sessionId", self.session_id).finish()
    }
}

/// An `agent-name` line, written together with a title that was given at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentNameLine<'a> {
    /// The name.
    pub name: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl AgentNameLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("agent-name").string("agentName", self.name).string("sessionId", self.session_id).finish()
    }
}

/// A `pr-link` line: a pull request that was made in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrLinkLine<'a> {
    /// The session.
    pub session_id: &'a str,
    /// The number of the pull request.
    pub number: u64,
    /// Its address.
    pub url: &'a str,
    /// The repository, as `owner/name`.
    pub repository: &'a str,
    /// The time.
    pub timestamp: Millis,
}

impl PrLinkLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("pr-link")
            .string("sessionId", self.session_id)
            .number("prNumber", self.number)
            .string("prUrl", self.url)
            .string("prRepository", self.repository)
            .string("timestamp", &timestamp(self.timestamp))
            .finish()
    }
}

/// A `tag` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagLine<'a> {
    /// The tag.
    pub tag: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl TagLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("tag").string("tag", self.tag).string("sessionId", self.session_id).finish()
    }
}

/// A `summary` line: a title for the conversation that ends at a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryLine<'a> {
    /// The title.
    pub summary: &'a str,
    /// The last line of the conversation.
    pub leaf_uuid: &'a str,
}

impl SummaryLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("summary").string("summary", self.summary).string("leafUuid", self.leaf_uuid).finish()
    }
}

/// A `last-prompt` line: the prompt that a resumed session continues after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastPromptLine<'a> {
    /// The text of the prompt; `None` if a hook blocked it.
    pub last_prompt: Option<&'a str>,
    /// The last line of the conversation.
    pub leaf_uuid: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl LastPromptLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("last-prompt")
            .optional_string("lastPrompt", self.last_prompt)
            .string("leafUuid", self.leaf_uuid)
            .string("sessionId", self.session_id)
            .finish()
    }
}

/// A `mode` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeLine<'a> {
    /// The mode, such as `normal`.
    pub mode: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl ModeLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("mode").string("mode", self.mode).string("sessionId", self.session_id).finish()
    }
}

/// A `permission-mode` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PermissionModeLine<'a> {
    /// The mode, such as `acceptEdits`.
    pub mode: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl PermissionModeLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("permission-mode")
            .string("permissionMode", self.mode)
            .string("sessionId", self.session_id)
            .finish()
    }
}

/// A line of `history.jsonl`: a prompt that a person typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptHistoryLine<'a> {
    /// The prompt as it was shown, with placeholders for long pastes.
    pub display: &'a str,
    /// The time.
    pub timestamp: Millis,
    /// The working folder.
    pub project: &'a str,
    /// The session.
    pub session_id: &'a str,
}

impl PromptHistoryLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        ObjectWriter::new()
            .string("display", self.display)
            .object("pastedContents", ObjectWriter::new())
            // Milliseconds here, unlike in session logs.
            .number("timestamp", u64::try_from(self.timestamp).unwrap_or_default())
            .string("project", self.project)
            .string("sessionId", self.session_id)
            .finish()
    }
}

/// The file next to the log of a sub-agent that describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentMetaFile<'a> {
    /// The kind of sub-agent.
    pub agent_type: &'a str,
    /// The task in a few words.
    pub description: &'a str,
    /// The call that started it.
    pub tool_use_id: &'a str,
    /// How deep it is nested, from 1.
    pub spawn_depth: u32,
}

impl AgentMetaFile<'_> {
    /// Returns the content of the file.
    pub fn to_json(self) -> String {
        ObjectWriter::new()
            .string("agentType", self.agent_type)
            .string("description", self.description)
            .string("toolUseId", self.tool_use_id)
            .number("spawnDepth", u64::from(self.spawn_depth))
            .finish()
    }
}

/// A `queue-operation` line: a prompt that was typed while the model worked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueOperationLine<'a> {
    /// `enqueue`, `dequeue`, `remove` or `popAll`.
    pub operation: &'a str,
    /// The time.
    pub timestamp: Millis,
    /// The session.
    pub session_id: &'a str,
    /// The prompt.
    pub content: Option<&'a str>,
}

impl QueueOperationLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        line("queue-operation")
            .string("operation", self.operation)
            .string("timestamp", &timestamp(self.timestamp))
            .string("sessionId", self.session_id)
            .optional_string("content", self.content)
            .finish()
    }
}

/// A `file-history-snapshot` line: the backups of the files at a prompt.
#[derive(Clone, Copy, Debug)]
pub struct FileHistorySnapshotLine<'a> {
    /// The prompt; in an update of its snapshot, the line that changed files.
    pub message_id: &'a str,
    /// The prompt.
    pub snapshot_message_id: &'a str,
    /// The backups by path: an object.
    pub tracked_file_backups: Json<'a>,
    /// The time of the snapshot.
    pub timestamp: Millis,
    /// Whether it replaces an earlier snapshot of the prompt.
    pub is_snapshot_update: bool,
}

impl FileHistorySnapshotLine<'_> {
    /// Returns the line, without a newline.
    pub fn to_line(self) -> String {
        let snapshot = ObjectWriter::new()
            .string("messageId", self.snapshot_message_id)
            .json("trackedFileBackups", self.tracked_file_backups)
            .string("timestamp", &timestamp(self.timestamp));
        line("file-history-snapshot")
            .string("messageId", self.message_id)
            .object("snapshot", snapshot)
            .bool("isSnapshotUpdate", self.is_snapshot_update)
            .finish()
    }
}

/// A backup of a file, in a `file-history-snapshot` line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBackup<'a> {
    /// The name of the backup; `None` if the file did not exist.
    pub backup_file_name: Option<&'a str>,
    /// The version of the backup.
    pub version: u64,
    /// The time of the backup, as it is written.
    pub backup_time: &'a str,
}

impl FileBackup<'_> {
    /// Returns the value as JSON.
    pub fn to_json(self) -> String {
        ObjectWriter::new()
            .nullable_string("backupFileName", self.backup_file_name)
            .number("version", self.version)
            .string("backupTime", self.backup_time)
            .finish()
    }
}
