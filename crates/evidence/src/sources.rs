//! What is known of files outside of the log. The caller reads it; this crate has no disk.

use threadline_entry::Millis;

use crate::content::FileContent;

/// Contents of files from outside of the log.
///
/// Every function may answer `None` if it does not know, or if the caller does not want to look.
pub trait FileSources {
    /// Returns the bytes of a backup of the file history, by its file name.
    fn backup(&self, name: &str) -> Option<Vec<u8>>;

    /// Returns the present state of a file.
    fn disk(&self, _path: &str) -> Option<FileOnDisk> {
        None
    }

    /// Returns the contents of some files in a commit, as they would be in the working tree.
    fn committed(&self, _commit: &str, paths: &[&str]) -> Vec<Option<FileContent>> {
        vec![None; paths.len()]
    }

    /// Returns the comparisons of files that a hook made around calls, in order of time.
    fn scans(&self) -> Vec<FileScan> {
        Vec::new()
    }

    /// Returns whether these comparisons contain every change of a path.
    fn is_scanned(&self, _path: &str) -> bool {
        false
    }

    /// Returns whether git tracks changes of some paths: whether they are in the repository of the session
    /// and not ignored.
    fn are_watched(&self, paths: &[&str]) -> Vec<Option<bool>> {
        vec![None; paths.len()]
    }
}

/// A comparison of files before or after a call with an earlier one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileScan {
    /// The id of the call; empty for a comparison that belongs to none.
    pub call_id: String,
    /// Whether it was made after the call.
    pub is_after: bool,
    /// When it was made.
    pub at: Millis,
    /// Whether all other files are the same as before the call. Only for comparisons after a call.
    pub is_complete: bool,
    /// The files that changed since the comparison before.
    pub changes: Vec<ScannedChange>,
}

/// A change of a file between two comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedChange {
    /// The absolute path.
    pub path: String,
    /// The content before; `None` if it is unknown.
    pub before: Option<FileContent>,
    /// The content after; `None` if it is unknown.
    pub after: Option<FileContent>,
}

/// The present state of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileOnDisk {
    /// The content.
    pub content: FileContent,
    /// When the content was changed last, if that is known.
    pub modified_at: Option<Millis>,
}

/// No other source than the log itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOnly;

impl FileSources for LogOnly {
    fn backup(&self, _name: &str) -> Option<Vec<u8>> {
        None
    }
}
