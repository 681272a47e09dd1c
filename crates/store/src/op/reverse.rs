//! Undoes and redoes operations.

use std::collections::HashMap;
use std::path::PathBuf;

use super::apply::Switched;
use super::executor::Executor;
use super::status::Status;
use super::version::Version;
use super::{Attempt, ChangedFile, OpError, OperationState, Operations, Receipt, ReceiptFile};

/// The result of an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The operation as it is now.
    pub receipt: Receipt,
    /// The number of changed files.
    pub files: usize,
    /// The number of files that had the target content already.
    pub untouched: usize,
    /// The files that other programs or people have changed since, which were not changed.
    pub skipped: Vec<ChangedFile>,
    /// The number of bytes that other programs have appended to the changed files since the operation, and
    /// that were kept.
    pub foreign_bytes: u64,
}

impl Operations {
    /// Restores the files as they were before the operation.
    ///
    /// Lines that other programs appended to logs stay.
    ///
    /// # Errors
    ///
    /// If a file has changed otherwise, nothing is done ([`OpError::Changed`]), unless the operation's files
    /// are independent of each other or `partial` is set: then that file is skipped.
    pub fn undo(&self, receipt: &Receipt, partial: bool) -> Result<Reversal, OpError> {
        self.reverse(receipt, Version::Before, partial)
    }

    /// Applies an operation again that was undone, or finishes one that was interrupted.
    ///
    /// # Errors
    ///
    /// The same as of [`Operations::undo`], and [`OpError::NeverApplied`] if the operation was interrupted
    /// before it changed a file: then its private files and its receipt are removed.
    pub fn redo(&self, receipt: &Receipt, partial: bool) -> Result<Reversal, OpError> {
        self.reverse(receipt, Version::After, partial)
    }

    fn reverse(&self, receipt: &Receipt, to: Version, partial: bool) -> Result<Reversal, OpError> {
        let _lock = self.lock()?;
        // Another process may have changed it since the caller read it.
        let mut receipt = Receipt::read(&self.folder(&receipt.id))?;
        let id = receipt.id.clone();
        let before = receipt.state;
        match (before, to) {
            (OperationState::Undone, Version::Before) => return Err(OpError::AlreadyUndone { id }),
            (OperationState::Done, Version::After) => return Err(OpError::AlreadyDone { id }),
            (OperationState::Begun, Version::After) => {
                self.abandon(&receipt)?;
                return Err(OpError::NeverApplied { id });
            }
            (OperationState::Begun, Version::Before) => {
                self.abandon(&receipt)?;
                receipt.state = OperationState::Undone;
                let untouched = receipt.files.len();
                return Ok(Reversal { receipt, files: 0, untouched, skipped: Vec::new(), foreign_bytes: 0 });
            }
            _ => {}
        }
        let mut executor = self.executor(&receipt);
        if to == Version::Before {
            executor.changed_later = self.changed_later_than(&receipt);
        }
        match self.switch_all(&mut receipt, to, partial, &mut executor) {
            Ok(Switched { files, skipped }) => {
                let untouched = receipt.files.len() - files - skipped.len();
                // Bytes that followed the content when the operation began were not appended since.
                let known: u64 = receipt.files.iter().map(ReceiptFile::rest_before).sum();
                let foreign_bytes = executor.foreign_bytes.saturating_sub(known);
                Ok(Reversal { receipt, files, untouched, skipped, foreign_bytes })
            }
            Err(error @ OpError::Changed { .. }) if receipt.state == before => Err(error),
            Err(source) => {
                if !matches!(source, OpError::StillWritten { .. }) {
                    // Files that have lost their name get it back, and private files are removed, if
                    // possible.
                    executor.forget_displaced();
                    let _ =
                        executor.recover(&mut receipt).and_then(|()| executor.clear_staged(&receipt, true));
                }
                let attempt = if to == Version::Before { Attempt::Undo } else { Attempt::Redo };
                let mut error = self.stopped(&receipt, &executor, attempt, source);
                if let OpError::Stopped { changed, state, .. } = &mut error
                    && changed.is_empty()
                    && self.set_state(&mut receipt, before).is_ok()
                {
                    *state = before;
                }
                Err(error)
            }
        }
    }

    /// Returns the files that operations after this one changed and have not been undone, with the id of the
    /// newest.
    fn changed_later_than(&self, receipt: &Receipt) -> HashMap<PathBuf, String> {
        let is_later = |later: &Receipt| {
            later.apply_order > receipt.apply_order && later.state != OperationState::Undone
        };
        let mut changed = HashMap::new();
        // Newest first.
        for later in self.list().found.into_iter().filter(is_later) {
            for file in later.files {
                changed.entry(file.path).or_insert_with(|| later.id.clone());
            }
        }
        changed
    }

    /// Changes all files to version `to`, and the state of the operation.
    fn switch_all(
        &self,
        receipt: &mut Receipt,
        to: Version,
        partial: bool,
        executor: &mut Executor<'_>,
    ) -> Result<Switched, OpError> {
        executor.recover(receipt)?;
        // All files are checked before the first is changed.
        if !receipt.independent && !partial {
            let mut files = Vec::new();
            for (i, file) in receipt.files.iter().enumerate() {
                if let Status::Blocked(what) = executor.status(i, file, to, false)? {
                    files.push(ChangedFile { path: file.current_path(to).to_owned(), what });
                }
            }
            if !files.is_empty() {
                return Err(OpError::Changed { files });
            }
        }
        executor.copy_all_ahead(receipt, to)?;
        let (intermediate, end) = match to {
            Version::Before => (OperationState::Undoing, OperationState::Undone),
            Version::After => (OperationState::Redoing, OperationState::Done),
        };
        if to == Version::Before {
            let orders = self.list().found.into_iter().map(|receipt| receipt.undo_order);
            receipt.undo_order = orders.max().unwrap_or(0) + 1;
        }
        self.set_state(receipt, intermediate)?;
        let switched = self.switch_to(receipt, to, false, executor)?;
        executor.clear_staged(receipt, true)?;
        executor.set_times(receipt, to)?;
        if to == Version::Before {
            self.remove_created_folders(receipt);
        }
        self.set_state(receipt, end)?;
        Ok(switched)
    }
}
