//! JSON of `archive`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

/// The result of `archive push`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchivePushObject<'a> {
    pub location: &'a str,
    pub new_files: usize,
    pub grown_files: usize,
    pub rewritten_files: usize,
    pub unchanged_files: usize,
    pub copied_bytes: u64,
    pub stored_bytes: u64,
}

/// A home, a folder in which Claude Code stores its sessions, in the result of `archive status`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveHomeObject<'a> {
    pub location: &'a str,
    pub home: &'a Path,
    pub cleanup_period_days: f64,
    pub sessions: Vec<ArchiveSessionObject<'a>>,
}

/// A session of such a home.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveSessionObject<'a> {
    pub id: &'a str,
    pub state: &'static str,
    pub size_bytes: Option<u64>,
    pub prompts: Option<usize>,
    pub deleted_at: Option<String>,
}

/// The result of `archive restore`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveRestoreObject<'a> {
    pub session: &'a str,
    pub machine: &'a str,
    pub level: &'static str,
    pub written: &'a [PathBuf],
    pub present: &'a [PathBuf],
    pub receipt: Option<&'a str>,
}

/// The result of `archive verify`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveVerifyObject<'a> {
    pub segments: usize,
    pub files: usize,
    pub bytes: u64,
    pub damaged: &'a [String],
    pub unlisted: &'a [String],
}

/// The result of `archive gc`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveGcObject {
    pub deleted_segments: usize,
    pub deleted_bytes: u64,
    pub joined_segments: usize,
    pub kept_segments: usize,
}

/// The result of `archive remove`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveRemoveObject<'a> {
    pub session: &'a str,
}

/// The result of `archive rebuild`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveRebuildObject<'a> {
    pub homes: usize,
    pub files: usize,
    pub incomplete: &'a [String],
    pub damaged: &'a [String],
}

/// The result of `archive key`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveKeyObject<'a> {
    pub path: &'a Path,
    pub recipient: &'a str,
}

/// The result of `archive tables`.
#[derive(Clone, Debug, Serialize)]
#[expect(missing_docs, reason = "docs/json.md explains the fields")]
pub struct ArchiveTablesObject<'a> {
    pub location: &'a str,
    pub level: &'a str,
    pub rows: &'a BTreeMap<&'static str, u64>,
    pub written_files: usize,
    pub deleted_files: usize,
    pub bytes: u64,
}
