//! The files that the model has seen, and in which state.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

use crate::sync::lock;

/// The state of each file that was read or written in this session: the basis of read-before-write.
///
/// The table is shared by parallel calls. A resumed session fills it from its log with
/// [`FileStates::restore`].
#[derive(Debug, Default)]
pub struct FileStates {
    files: Mutex<HashMap<PathBuf, FileState>>,
}

/// The state in which a file was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileState {
    /// The time of the last change, in milliseconds.
    pub(crate) modified_ms: u64,
    /// The digest of the content, if all of it was seen.
    pub(crate) digest: Option<ContentDigest>,
    /// The range of the last Read; `None` after a write.
    pub(crate) range: Option<ReadRange>,
}

/// The range of a Read call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadRange {
    pub(crate) offset: u64,
    pub(crate) limit: Option<u64>,
}

/// A digest of a text with line feeds as line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentDigest([u8; 32]);

impl ContentDigest {
    pub(crate) fn of(text: &str) -> Self {
        Self(Sha256::digest(text.as_bytes()).into())
    }
}

impl FileStates {
    /// Returns an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Records that the model knows the whole content of a file as of a time, in milliseconds since 1970.
    ///
    /// For a resumed session: the content of each Read without a range, Write and Edit in the log, with the
    /// time of its line.
    pub fn restore(&self, path: impl Into<PathBuf>, content: &str, modified_ms: u64) {
        let state = FileState { modified_ms, digest: Some(ContentDigest::of(content)), range: None };
        lock(&self.files).insert(path.into(), state);
    }

    /// Forgets every file, as after a compaction.
    pub fn clear(&self) {
        lock(&self.files).clear();
    }

    /// Returns the paths of the files that were seen, sorted.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = lock(&self.files).keys().cloned().collect();
        paths.sort();
        paths
    }

    pub(crate) fn get(&self, path: &Path) -> Option<FileState> {
        lock(&self.files).get(path).cloned()
    }

    pub(crate) fn insert(&self, path: &Path, state: FileState) {
        lock(&self.files).insert(path.to_owned(), state);
    }

    /// Records the content of a file that a tool has just written.
    pub(crate) fn written(&self, path: &Path, content: &str) {
        let modified_ms = std::fs::metadata(path).map(|metadata| modified_ms(&metadata)).unwrap_or_default();
        self.restore(path, content, modified_ms);
    }
}

/// Returns the time of the last change in whole milliseconds since 1970.
pub(crate) fn modified_ms(metadata: &Metadata) -> u64 {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
