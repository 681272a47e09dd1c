//! Deletes a session with its side files.

use std::path::PathBuf;

use threadline_store::{Operation, Receipt};
use threadline_view::humanize::plural;

use super::apply::remove_step;
use super::side_files::own_files;
use super::{ApplyOptions, EditError, EditSession};
use crate::config::App;
use crate::operations::NewReceipt;

/// A planned deletion.
#[derive(Debug)]
pub struct Deletion<'s> {
    source: &'s EditSession,
    files: Vec<PathBuf>,
}

impl EditSession {
    /// Plans to delete the log and all side files.
    ///
    /// # Errors
    ///
    /// If a folder of the session cannot be read.
    pub fn delete(&self) -> Result<Deletion<'_>, EditError> {
        // The log is removed first: side files without a session are better than a session without side
        // files.
        let mut files = vec![self.file.path.clone()];
        files.extend(own_files(&self.file)?);
        Ok(Deletion { source: self, files })
    }
}

impl Deletion<'_> {
    /// The files, the log first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Moves the files to the folder of the operation. An undo restores them.
    ///
    /// # Errors
    ///
    /// [`EditError::Open`] and [`EditError::RecentlyWritten`] for an open session without `force`, and
    /// [`EditError::Operation`].
    pub fn apply(&self, app: &App, options: &ApplyOptions) -> Result<Receipt, EditError> {
        if !options.force {
            self.source.refuse_live()?;
        }
        let id = &self.source.file.id;
        let receipt = NewReceipt {
            operation: Operation::Delete,
            source: id,
            target: id,
            home: None,
            summary: format!("{} moved to the trash", plural(self.files.len() as u64, "file")),
            command: &options.command,
        };
        app.apply_steps(receipt, self.files.iter().map(|path| remove_step(path)).collect())
    }
}
