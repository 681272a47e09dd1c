//! Sources of sessions other than the homes.

use std::path::{Path, PathBuf};

use threadline_entry::Millis;
use threadline_usage::ModelCalls;

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
    /// Only sessions with a line whose [`index_text`](threadline_search::index_text) contains all of these
    /// texts. The source may return others, too.
    pub texts: Option<Vec<String>>,
}

/// Which model calls to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallQuery {
    /// Only calls at or after this time.
    pub since: Option<Millis>,
    /// Only calls before this time.
    pub until: Option<Millis>,
    /// The numbers of input tokens above which a call has another price.
    pub context_limits: Vec<u64>,
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

    /// Returns whether the source can count model calls without copying sessions.
    fn counts_calls(&self) -> bool {
        false
    }

    /// Counts the model calls of the selected sessions, for sums of calls by period, session, project, branch
    /// or model. Calls outside of the period may be included. Returns `None` if the sessions must be copied
    /// for that.
    ///
    /// # Errors
    ///
    /// If the source cannot be read.
    fn model_calls(
        &self,
        _selection: &SourceSelection,
        _query: &CallQuery,
    ) -> Result<Option<ModelCalls>, AppError> {
        Ok(None)
    }
}
