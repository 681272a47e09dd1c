//! The comparisons of a session, one per line.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use threadline_entry::Millis;
use threadline_store::{SessionId, open_own_file, read_file};

use super::content_store::ContentHash;
use super::file_index::OmittedText;
use super::recorder::RecordedEvent;

/// A comparison of a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoggedScan {
    pub(super) at: Millis,
    pub(super) event: RecordedEvent,
    pub(super) call: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<String>,
    pub(super) tool: String,
    pub(super) cwd: String,
    pub(super) root: String,
    pub(super) is_complete: bool,
    pub(super) changes: Vec<LoggedChange>,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LoggedChange {
    /// The path below the root.
    pub(super) path: String,
    pub(super) before: LoggedContent,
    pub(super) after: LoggedContent,
}

/// What is known of a content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LoggedContent {
    Absent,
    File {
        hash: ContentHash,
        length: u64,
        mode: u32,
        /// Why only the hash is kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        omitted: Option<OmittedText>,
    },
    Link {
        target: String,
    },
    Unknown,
}

impl LoggedContent {
    /// Returns the hash of a content that is stored.
    pub(super) fn stored(&self) -> Option<ContentHash> {
        match self {
            Self::File { hash, omitted: None, .. } => Some(*hash),
            _ => None,
        }
    }
}

impl LoggedScan {
    /// Returns the hashes of the contents that it names.
    pub(super) fn stored(&self) -> impl Iterator<Item = ContentHash> {
        self.changes.iter().flat_map(|change| [change.before.stored(), change.after.stored()]).flatten()
    }
}

/// Returns the path of the log of a session.
pub(super) fn path(folder: &Path, session: &SessionId) -> PathBuf {
    folder.join("sessions").join(format!("{session}.jsonl"))
}

/// Appends a line, in one write.
pub(super) fn append(path: &Path, scan: &LoggedScan) -> io::Result<()> {
    let mut line = serde_json::to_vec(scan)?;
    line.push(b'\n');
    open_own_file(path)?.write_all(&line)
}

/// Reads the lines of a file that can be read.
pub(super) fn read<T: DeserializeOwned>(path: &Path) -> Vec<T> {
    let bytes = read_file(path).unwrap_or_default();
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}
