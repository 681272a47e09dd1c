//! Removes receipts, private files and folders that are not needed any more.

use std::path::Path;

use super::{OpError, OperationState, Operations, Receipt, receipt};

impl Operations {
    /// Deletes a receipt with the files that it keeps. The operation cannot be undone after that.
    ///
    /// # Errors
    ///
    /// [`OpError::OpenBackup`] if another program has one of these files open and may still write to it: then
    /// the receipt and its files stay.
    pub fn forget(&self, receipt: &Receipt) -> Result<(), OpError> {
        let _lock = self.lock()?;
        let mut receipt = Receipt::read(&self.folder(&receipt.id))?;
        let mut executor = self.executor(&receipt);
        executor.recover(&mut receipt)?;
        let open = executor.open_backups()?;
        if !open.is_empty() {
            return Err(OpError::OpenBackup { paths: open });
        }
        executor.clear_staged(&receipt, false)?;
        self.discard(&receipt.id)
    }

    /// Finishes operations that were interrupted, as far as that is possible without their undo or redo:
    /// files and lines of other programs that have a private name get their place. To be called before files
    /// are read for a plan, since it changes them.
    ///
    /// Does nothing while another operation runs. Errors are left for the undo of that operation to report.
    pub fn finish_interrupted(&self) {
        let is_interrupted = |receipt: &Receipt| receipt.state.is_interrupted();
        if self.dir.is_dir()
            && self.list().found.iter().any(is_interrupted)
            && self.can_lock()
            && let Ok(_lock) = self.lock()
        {
            self.clean_up();
        }
    }

    /// Finishes interrupted operations: lines of other programs are copied, and the private files
    /// of operations that changed nothing are removed. Errors are left for the undo of that operation to
    /// report.
    pub(super) fn clean_up(&self) {
        for entry in fs_err::read_dir(&self.dir).into_iter().flatten().flatten() {
            // A folder without a receipt: the process ended before it was written, or after it was removed.
            let is_ours = |name: &str| name == receipt::NEW_FILE || name.ends_with(".lines");
            let folder = entry.path();
            let only_ours = entry.file_type().is_ok_and(|kind| kind.is_dir())
                && fs_err::read_dir(&folder).is_ok_and(|mut entries| {
                    entries
                        .all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours)))
                });
            if only_ours {
                drop(self.discard(&entry.file_name().to_string_lossy()));
            }
        }
        for mut receipt in self.list().found {
            match receipt.state {
                OperationState::Done | OperationState::Undone => {}
                OperationState::Begun => drop(self.abandon(&receipt)),
                OperationState::Applying | OperationState::Undoing | OperationState::Redoing => {
                    let mut executor = self.executor(&receipt);
                    drop(executor.recover(&mut receipt).and_then(|()| self.write(&receipt)));
                }
            }
        }
    }

    /// Removes the private files, folders and the receipt of an operation that changed nothing.
    pub(super) fn abandon(&self, receipt: &Receipt) -> Result<(), OpError> {
        self.executor(receipt).clear_staged(receipt, false)?;
        self.remove_created_folders(receipt);
        self.discard(&receipt.id)
    }

    /// Removes the folder of an operation. The receipt is removed last.
    fn discard(&self, id: &str) -> Result<(), OpError> {
        let folder = self.folder(id);
        let receipt = folder.join(receipt::FILE);
        for entry in fs_err::read_dir(&folder)? {
            let path = entry?.path();
            if path != receipt {
                self.fs.remove_file(&path)?;
            }
        }
        if self.fs.metadata(&receipt)?.is_some() {
            self.fs.remove_file(&receipt)?;
        }
        Ok(self.fs.remove_folder(&folder)?)
    }

    /// Removes the folders that an operation created, unless they contain something.
    pub(super) fn remove_created_folders(&self, receipt: &Receipt) {
        for folder in receipt.folders.iter().rev() {
            let _ = self.fs.remove_folder(folder);
        }
    }

    /// Removes a folder and its parents while they are empty and belong to the session.
    pub(super) fn remove_empty_folders(&self, folder: &Path, session: &str) {
        let own = |folder: &&Path| folder.iter().any(|name| name == session);
        for folder in folder.ancestors().take_while(own) {
            if self.fs.remove_folder(folder).is_err() {
                return;
            }
        }
    }
}
