//! Copies a session, or its beginning, to a new one.

use std::path::{Path, PathBuf};

use threadline_edit::{CutPoint, PlanTarget};
use threadline_session::IndexVec;
use threadline_store::{Home, Operation, encode_project};

use super::side_files::drop_unreferenced_copies;
use super::{EditError, EditSession, PlannedEdit, new_id};
use crate::load::cwd;

/// How a session is copied.
#[derive(Clone, Debug, Default)]
pub struct CloneOptions {
    /// The end of the copy; by default that of the session.
    pub to: Option<CutPoint>,
    /// The title of the copy; by default that of the session, followed by `(fork)`.
    pub title: Option<String>,
    /// The home of the copy, if the session is in none: the copy is written to the folder of its project. By
    /// default it is written next to the log.
    pub home: Option<Home>,
}

impl EditSession {
    /// Plans a new session with the active conversation and its side files.
    ///
    /// # Errors
    ///
    /// [`EditError::Cut`] if the session cannot be cut there, [`EditError::NoWorkingDirectory`] if the
    /// project of a log outside of all homes is unknown, and errors of reading side files.
    pub fn clone_to_new(&mut self, options: &CloneOptions) -> Result<PlannedEdit<'_>, EditError> {
        let agents = if options.to.is_some() { self.agent_starts()? } else { IndexVec::new() };
        let this = &*self;
        let mut draft = this.draft();
        threadline_edit::clone(&mut draft, options.to.as_ref(), options.title.as_deref())?;
        let id = new_id();
        let folder = this.folder_of_copy(options.home.as_ref())?;
        this.copy_side_files_to(&mut draft, &id, &folder)?;
        if options.to.is_some() {
            drop_unreferenced_copies(&mut draft, &agents);
        }
        let path = folder.join(format!("{id}.jsonl"));
        Ok(this.plan_at(Operation::Clone, draft, PlanTarget::New(id), path))
    }

    /// Returns the folder of the log's copy: that of the log, or, for a log outside of all homes, that of its
    /// project in `home`.
    fn folder_of_copy(&self, home: Option<&Home>) -> Result<PathBuf, EditError> {
        let Some(home) = home.filter(|_| self.file.home.is_none()) else {
            return Ok(self.file.path.parent().unwrap_or(Path::new("")).to_owned());
        };
        let cwd = cwd(&self.session).ok_or(EditError::NoWorkingDirectory)?;
        // Claude Code uses the real path of a directory. One of another machine is taken as given.
        let real = std::fs::canonicalize(&cwd).map_or(cwd, |real| real.to_string_lossy().into_owned());
        Ok(home.projects_dir().join(encode_project(&real)))
    }
}
