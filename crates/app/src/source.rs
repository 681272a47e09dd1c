//! Sources of sessions other than the homes.

use std::path::{Path, PathBuf};

use crate::error::AppError;

/// Which sessions of a source to read. Texts are matched as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceSelection {
    /// The name or the id of the machine.
    pub machine: Option<String>,
    /// The name of the user.
    pub user: Option<String>,
    /// The beginning of the ids of the sessions; all sessions if `None`.
    pub session: Option<String>,
}

/// A source of sessions other than the homes, such as an archive.
pub trait SessionSource {
    /// Copies the selected sessions into folders below `cache`, and returns these, to be used as homes.
    /// `progress` is called with the number of bytes that were written.
    ///
    /// # Errors
    ///
    /// If the source cannot be read, or the folder cannot be written.
    fn fetch(
        &self,
        selection: &SourceSelection,
        cache: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<PathBuf>, AppError>;
}
