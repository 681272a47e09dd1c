//! Copies of files around the shell calls of a session.
//!
//! A log does not contain what a shell command does to files. So a hook compares the folder that a session
//! works in with an index of it before and after each call, and keeps the texts of files that changed
//! ([`FileRecorder`]). [`App::file_copies`] reads them.
//!
//! Below the state folder, in `files`: `objects` has contents by their hash, `sessions` one file per session
//! with a line per comparison, and `indexes` the last state of each folder by session.

mod call_log;
mod content_store;
mod file_index;
mod git_index;
mod recorder;
mod retention;
mod scan;
mod sensitive_name;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::path::{Path, PathBuf};

use foldhash::{HashMap, HashSet};
use threadline_entry::Millis;
use threadline_secret::Rules;
use threadline_store::{SessionId, read_file};

pub use content_store::{ContentHash, InvalidHash};
pub use file_index::OmittedText;
pub use recorder::{FileRecorder, RecordOutcome, RecordedCall, RecordedEvent, SCAN_TIME};
pub use retention::{CleanedCopies, RedactedCopies};

use crate::config::App;
use crate::error::AppError;
use call_log::{LoggedContent, LoggedScan};
use content_store::ContentStore;
use file_index::FileIndex;

/// The number of bytes of copies that are kept by default.
pub const DEFAULT_LIMIT: u64 = 500 << 20;

/// Copies of files around the calls of a session and its sub-agents.
#[derive(Debug)]
pub struct FileCopies {
    scans: Vec<FileScan>,
    contents: ContentStore,
    /// The last index of each folder.
    indexes: Vec<(PathBuf, Vec<u8>)>,
}

/// A comparison of a folder with its state at the previous comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileScan {
    /// The id of the call; empty when a sub-agent ended.
    pub tool_use_id: String,
    /// The sub-agent that made the call; `None` for the main conversation.
    pub agent_id: Option<String>,
    /// Whether the call followed, or had ended.
    pub phase: ScanPhase,
    /// When it began.
    pub at: Millis,
    /// The folder that was compared.
    pub root: String,
    /// Whether every watched file without a change is the same as at the previous comparison; after a call,
    /// the same as before it. The first comparison of a folder is not complete: it has nothing to compare
    /// with.
    pub is_complete: bool,
    /// The files that changed since the previous comparison.
    pub changes: Vec<FileScanChange>,
}

/// When a folder was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanPhase {
    /// Before a call. The changes were made between calls, and it is not known by what. Also when a sub-agent
    /// ended.
    Before,
    /// After a call. The changes were made during it.
    After,
}

/// A file that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileScanChange {
    /// The absolute path. Bytes that are not UTF-8 are replaced by U+FFFD.
    pub path: String,
    /// The content at the previous comparison.
    pub before: CopiedContent,
    /// The content now.
    pub after: CopiedContent,
}

/// What is known of the content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopiedContent {
    /// There was no such file.
    Absent,
    /// A regular file.
    File {
        /// The hash of its content.
        hash: ContentHash,
        /// The length of its content.
        length: u64,
        /// Its permissions.
        mode: u32,
        /// Whether [`FileCopies::read`] returns the content.
        is_stored: bool,
    },
    /// A symbolic link.
    Link {
        /// The path that it contains.
        target: String,
    },
    /// There was such a file, or it is not known.
    Unknown,
}

impl App {
    /// Returns the copies of files around the calls of a session; none if no hook has made any.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn file_copies(&self, session_id: &str) -> Result<FileCopies, AppError> {
        let copies = FileCopies::load(&self.file_copies_folder()?, session_id);
        let others = self.config().hook_state_dirs.iter().filter(|_| copies.scans.is_empty());
        let mut others = others.map(|folder| FileCopies::load(&folder.join("files"), session_id));
        Ok(others.find(|other| !other.scans.is_empty()).unwrap_or(copies))
    }

    /// Returns a recorder of files. `rules` returns the rules for secrets, and is called when a text is to be
    /// stored; `limit` is the number of bytes of copies to keep.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn file_recorder(
        &self,
        limit: u64,
        rules: impl Fn() -> Rules + Send + Sync + 'static,
    ) -> Result<FileRecorder, AppError> {
        let folder = self.file_copies_folder()?;
        Ok(FileRecorder::new(folder, self.config().home_dir.clone(), limit, Box::new(rules)))
    }

    fn file_copies_folder(&self) -> Result<PathBuf, AppError> {
        Ok(self.state_dir()?.join("files"))
    }
}

impl FileCopies {
    fn load(folder: &Path, session_id: &str) -> Self {
        let contents = ContentStore::at(folder.join("objects"));
        let mut copies = Self { scans: Vec::new(), contents, indexes: Vec::new() };
        let Some(id) = SessionId::new(session_id) else { return copies };
        let scans: Vec<LoggedScan> = call_log::read(&call_log::path(folder, &id));
        let mut stored = HashMap::default();
        copies.scans = scans.into_iter().map(|scan| copies.file_scan(scan, &mut stored)).collect();
        let roots: HashSet<&str> = copies.scans.iter().map(|scan| &*scan.root).collect();
        let index = |root: &&str| {
            let bytes = read_file(&recorder::index_path(folder, Path::new(root), &id)).ok()?;
            Some((PathBuf::from(root), bytes))
        };
        copies.indexes = roots.iter().filter_map(index).collect();
        copies
    }

    /// Returns the comparisons in order of time.
    pub fn scans(&self) -> &[FileScan] {
        &self.scans
    }

    /// Returns a content. `None` if only its hash was kept, or if it was removed.
    pub fn read(&self, content: &CopiedContent) -> Option<Vec<u8>> {
        match content {
            CopiedContent::File { hash, .. } => self.contents.read(hash),
            _ => None,
        }
    }

    /// Returns whether the comparisons cover a file, so that it is unchanged where they are complete and do
    /// not list it. `false` for a file that is ignored, outside of all folders, or unknown.
    pub fn is_watched(&self, path: &Path) -> bool {
        self.indexes.iter().any(|(root, bytes)| {
            let Ok(rest) = path.strip_prefix(root) else { return false };
            FileIndex::parse(bytes).is_some_and(|index| index.file(&scan::path_bytes(rest)).is_some())
        }) || self.scans.iter().flat_map(|scan| &scan.changes).any(|change| Path::new(&change.path) == path)
    }

    fn file_scan(&self, scan: LoggedScan, stored: &mut HashMap<ContentHash, bool>) -> FileScan {
        let root = PathBuf::from(&scan.root);
        let mut content = |logged: LoggedContent| match logged {
            LoggedContent::Absent => CopiedContent::Absent,
            LoggedContent::Link { target } => CopiedContent::Link { target },
            LoggedContent::Unknown => CopiedContent::Unknown,
            LoggedContent::File { hash, length, mode, omitted } => {
                let is_stored =
                    omitted.is_none() && *stored.entry(hash).or_insert_with(|| self.contents.contains(&hash));
                CopiedContent::File { hash, length, mode, is_stored }
            }
        };
        let changes = scan.changes.into_iter().map(|change| FileScanChange {
            path: root.join(&change.path).to_string_lossy().into_owned(),
            before: content(change.before),
            after: content(change.after),
        });
        FileScan {
            changes: changes.collect(),
            tool_use_id: scan.call,
            agent_id: scan.agent,
            phase: if scan.event == RecordedEvent::After { ScanPhase::After } else { ScanPhase::Before },
            at: scan.at,
            root: scan.root,
            is_complete: scan.is_complete,
        }
    }
}
