//! Our public JSON, documented in `docs/json.md`. Incompatible changes increment [`SCHEMA`].

mod archive;
mod blame;
mod card;
mod compare;
mod context;
mod export;
mod inventory;
mod operation;
mod overview;
mod show;
mod trace;
mod usage;
mod web;

use serde::Serialize;
use threadline_entry::{Finding, Millis};
use threadline_session::{ClientVersion, ReplayMessage};

pub use archive::{
    ArchiveGcObject, ArchiveHomeObject, ArchiveKeyObject, ArchivePushObject, ArchiveRebuildObject,
    ArchiveRemoveObject, ArchiveRestoreObject, ArchiveSessionObject, ArchiveTablesObject,
    ArchiveVerifyObject,
};
pub use blame::{BlameEditObject, BlameLineObject, CommitObject};
pub use card::{CardObject, LabelObject, MatchObject, SessionCountObject};
pub use compare::{
    CompareObject, ComparedFileObject, ComparedPromptObject, ComparedToolObject, ConversationObject,
    ProducedFileObject,
};
pub use context::{CacheMissObject, ContextObject, PartObject, WindowItemObject, context_objects};
pub use export::{ExportAllObject, ExportObject, ReplacedObject, ResumeObject};
pub use inventory::{DriftObject, InventoryObject, UnknownObject};
pub use operation::{NoSecretsObject, ReceiptFileObject, ReceiptObject, SkippedFileObject};
pub use overview::{
    BinObject, CalendarDayObject, CommandFiguresObject, FileFiguresObject, ModelUsageObject,
    OpenSessionObject, OverviewObject, OverviewRecordObject, PeriodFiguresObject, PeriodObject,
    ProjectFiguresObject, ToolFiguresObject, TopSessionObject,
};
pub use show::{
    BodyObject, CommandChangesObject, CommandFileObject, OutlineObject, ShowObject, ShowWriter, SpentObject,
    TimingObject, TokensObject, items, session, show, turn,
};
pub use trace::{InstallObject, PushObject, SessionStatusObject, SetupLogObject, SetupObject, SpanObject};
pub use usage::{
    AccountObject, FiguresObject, GroupObject, KeyObject, ReconciledObject, RecordObject, WindowObject, exact,
};
pub use web::{ChangeObject, ErrorObject, McpAddressObject, PaletteObject};

/// The version of the types below.
pub const SCHEMA: u32 = 2;

/// Formats a time as RFC 3339 with milliseconds.
pub fn moment(millis: Millis) -> String {
    jiff::Timestamp::from_millisecond(millis).map(|moment| format!("{moment:.3}")).unwrap_or_default()
}

/// One turn of `restore` that changed files.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct RestoreTurn {
    pub turn: u64,
    pub anchor: String,
    pub started_at: Option<String>,
    pub prompt: String,
    pub files: Vec<ChangedFileObject>,
}

/// A file that a turn changed.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ChangedFileObject {
    pub path: String,
    pub edits: u64,
}

/// One file of `restore --at`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct RestoredFile {
    pub path: String,
    pub target: String,
    pub action: &'static str,
    pub applied: bool,
    pub receipt: Option<String>,
    pub source: &'static str,
    pub backup: Option<String>,
    pub basis: &'static str,
    pub state: &'static str,
    pub evidence: Option<&'static str>,
    pub size_bytes: Option<u64>,
    pub lines_added: Option<u64>,
    pub lines_removed: Option<u64>,
    pub note: Option<String>,
    pub outside: bool,
    pub risk: Option<&'static str>,
}

/// One finding of `check`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct FindingObject<'a> {
    pub code: &'static str,
    pub name: &'static str,
    pub severity: &'static str,
    pub path: &'a str,
    pub line: Option<u64>,
    pub byte_offset: Option<u64>,
    pub message: &'a str,
    pub repair: &'static str,
}

impl<'a> FindingObject<'a> {
    /// Converts a finding in the file at `path`.
    pub fn new(finding: &'a Finding, path: &'a str) -> Self {
        Self {
            code: finding.code.id(),
            name: finding.code.name(),
            severity: finding.severity.name(),
            path,
            line: finding.at.map(|at| at.line_no),
            byte_offset: finding.at.map(|at| at.byte_offset),
            message: &finding.message,
            repair: finding.code.repair(),
        }
    }
}

/// One setting of `config`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct SettingObject<'a> {
    pub name: &'a str,
    pub value: Option<&'a str>,
    pub source: &'a str,
}

/// An edit that would change nothing.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct UnchangedObject<'a> {
    pub lines_removed: u64,
    pub lines_changed: u64,
    pub lines_added: u64,
    pub receipt: Option<&'a str>,
    pub reason: &'a str,
}

/// The plan of an edit, or its result.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct EditObject<'a> {
    pub operation: &'a str,
    pub source: &'a str,
    pub target: &'a str,
    pub path: &'a str,
    pub lines_removed: u64,
    pub lines_changed: u64,
    pub lines_added: u64,
    pub tokens_before: u64,
    pub tokens_after: u64,
    pub compatible_versions: Vec<String>,
    pub receipt: Option<&'a str>,
    pub findings: Vec<FindingObject<'a>>,
}

/// Returns the output of `replay`:
/// `{"schema":2,"session":…,"claude_code_version":"2.1.328","messages":[…]}`.
///
/// `version` is the version of Claude Code that is emulated. Blocks keep their bytes from the log, unless
/// that version changes them, so this returns text instead of a serialisable value.
pub fn replay(session: Option<&str>, version: ClientVersion, messages: &[ReplayMessage<'_>]) -> String {
    let session = serde_json::json!(session);
    let mut out = format!(
        "{{\"schema\":{SCHEMA},\"session\":{session},\"claude_code_version\":\"{version}\",\"messages\":["
    );
    for (i, message) in messages.iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        message.write_json(&mut out);
    }
    out.push_str("]}");
    out
}
