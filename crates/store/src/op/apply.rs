//! Applies an operation: writes the receipt, stages new content, changes the files.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::error::changed;
use super::executor::Executor;
use super::status::Status;
use super::version::{Version, version_file};
use super::{
    Attempt, ChangedFile, FileAction, FileDigest, FileKind, OpError, Operation, OperationState, Operations,
    RECEIPT_FORMAT, Receipt, ReceiptFile, Step, StepAction, receipt,
};
use crate::disk::{Visibility, write_all};

/// The description of an operation that is to be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOperation {
    /// The id, which becomes the name of its folder.
    pub id: String,
    /// The kind of operation.
    pub operation: Operation,
    /// The command that started it, as typed.
    pub command: Vec<String>,
    /// The time, in RFC 3339.
    pub made_at: String,
    /// The session that is edited.
    pub source: String,
    /// The session that results.
    pub target: String,
    /// The home of the session, if the changed files are elsewhere.
    pub home: Option<PathBuf>,
    /// A short description of the changes.
    pub summary: String,
}

impl NewOperation {
    fn into_receipt(self) -> Receipt {
        Receipt {
            format: RECEIPT_FORMAT,
            id: self.id,
            operation: self.operation,
            command: self.command,
            made_at: self.made_at,
            apply_order: 0,
            state: OperationState::Begun,
            undo_order: 0,
            independent: self.operation.has_independent_files(),
            source: self.source,
            target: self.target,
            home: self.home,
            summary: self.summary,
            files: Vec::new(),
            folders: Vec::new(),
        }
    }
}

impl Operations {
    /// Applies `steps` in their order and returns the receipt.
    ///
    /// # Errors
    ///
    /// If a step fails, the steps before it are undone and the receipt is removed ([`OpError::NotDone`]),
    /// unless it contains a file that another program has open or has written to. If that fails too, the
    /// receipt stays and can be undone or redone ([`OpError::Stopped`]).
    pub fn apply(&self, operation: NewOperation, steps: Vec<Step<'_>>) -> Result<Receipt, OpError> {
        for step in &steps {
            step.check_paths()?;
        }
        let _lock = self.lock()?;
        self.clean_up();
        let mut receipt = operation.into_receipt();
        let orders = self.list().found.into_iter().map(|receipt| receipt.apply_order);
        receipt.apply_order = orders.max().unwrap_or(0) + 1;
        receipt.files =
            steps.iter().enumerate().map(|(i, step)| self.receipt_file(i, step)).collect::<Result<_, _>>()?;
        receipt.folders = receipt
            .files
            .iter()
            .flat_map(|file| [Some(&file.path), file.target.as_ref()])
            .flatten()
            .flat_map(|path| missing_folders(path))
            .collect();
        receipt.folders.sort();
        receipt.folders.dedup();
        let folder = self.folder(&receipt.id);
        self.fs.create_folder(&folder, Visibility::Private)?;
        let mut executor = self.executor(&receipt);
        let result = self.stage(&mut receipt, steps, &executor).and_then(|()| {
            executor.copy_all_ahead(&receipt, Version::After)?;
            self.set_state(&mut receipt, OperationState::Applying)?;
            self.switch_to(&mut receipt, Version::After, true, &mut executor)?;
            // If the new content of a file is the old one, its staged copy still exists here.
            executor.clear_staged(&receipt, false)?;
            executor.set_times(&receipt, Version::After)?;
            self.set_state(&mut receipt, OperationState::Done)
        });
        match result {
            Ok(()) => Ok(receipt),
            Err(source) => Err(self.roll_back(receipt, executor, source)),
        }
    }

    /// Describes a file before anything is done to it.
    fn receipt_file(&self, i: usize, step: &Step<'_>) -> Result<ReceiptFile, OpError> {
        let metadata = self.fs.metadata(&step.path)?;
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let (action, target, read) = match &step.action {
            StepAction::Create { .. } => (FileAction::Create, None, None),
            StepAction::Replace { read, .. } => (FileAction::Replace, None, Some(*read)),
            StepAction::Append { read, .. } => (FileAction::Append, None, Some(*read)),
            StepAction::Move { read, to, .. } => (FileAction::Move, Some(to.clone()), Some(*read)),
            StepAction::Remove => {
                let read = FileDigest::read(&step.path)?;
                let gone = || changed(&step.path, "it is gone");
                (FileAction::Remove, None, Some(read.ok_or_else(gone)?))
            }
            StepAction::Unlink => (FileAction::Unlink, Some(fs_err::read_link(&step.path)?), None),
        };
        let has_backup = matches!(action, FileAction::Replace | FileAction::Remove | FileAction::Move);
        let mut file = ReceiptFile {
            path: step.path.clone(),
            action,
            target,
            grows: step.kind == FileKind::Log,
            backup: has_backup.then(|| format!("{i}.before")),
            length_before: None,
            size_before: None,
            sha256_before: None,
            modified_before: modified.and_then(millis),
            length_after: None,
            sha256_after: None,
            modified_after: step.modified.and_then(millis),
        };
        if let Some(read) = read {
            file.set_before(read);
            file.size_before =
                metadata.map(|metadata| metadata.len()).filter(|size| file.grows && *size > read.length);
        }
        Ok(file)
    }

    /// Writes the receipt, and all new content to private files. No file is changed.
    fn stage(
        &self,
        receipt: &mut Receipt,
        steps: Vec<Step<'_>>,
        executor: &Executor<'_>,
    ) -> Result<(), OpError> {
        self.set_state(receipt, OperationState::Begun)?;
        for (i, (file, step)) in receipt.files.iter_mut().zip(steps).enumerate() {
            match step.action {
                StepAction::Create { mut content, visibility } => {
                    file.set_after(executor.stage(i, file, &mut content, visibility)?);
                }
                StepAction::Replace { mut content, .. } | StepAction::Move { mut content, .. } => {
                    file.set_after(executor.stage(i, file, &mut content, Visibility::Private)?);
                }
                StepAction::Append { lines, .. } => {
                    let lines = crate::append::join(lines)?;
                    let path = executor.lines_path(i);
                    let mut kept = self.fs.create_new(&path, Visibility::Private)?;
                    write_all(&*self.fs, &mut kept, &lines)?;
                    self.fs.sync(&kept, &path)?;
                    // A read-only log is reported before the receipt states that files are changed. An
                    // undo creates a private file in the log's folder: a folder where that is impossible is
                    // reported now, too.
                    executor.check_can_append(i, file)?;
                    file.length_after = file.length_before.map(|length| length + lines.len() as u64);
                }
                StepAction::Remove | StepAction::Unlink => {}
            }
        }
        Ok(())
    }

    /// Changes every file that can be changed to version `to`. Files that have neither version are skipped;
    /// while the operation is applied for the first time, they are an error.
    pub(super) fn switch_to(
        &self,
        receipt: &mut Receipt,
        to: Version,
        is_first: bool,
        executor: &mut Executor<'_>,
    ) -> Result<Switched, OpError> {
        let mut order: Vec<usize> = (0..receipt.files.len()).collect();
        if to == Version::Before {
            order.reverse();
        }
        let mut files = 0;
        let mut skipped = Vec::new();
        for i in order {
            let file = &receipt.files[i];
            match executor.status(i, file, to, is_first)? {
                // Another operation has made the same change: an undo of both could not restore the file.
                Status::AlreadyThere
                    if is_first && file.before() != file.after() && file.after().is_some() =>
                {
                    return Err(changed(file.current_path(to), "another program has changed it"));
                }
                Status::AlreadyThere => executor.add_late_backup_lines(i, file, to)?,
                Status::Ready => {
                    executor.change(i, file, to, is_first)?;
                    files += 1;
                }
                Status::Blocked(what) if is_first => return Err(changed(file.current_path(to), &what)),
                Status::Blocked(what) => {
                    skipped.push(ChangedFile { path: file.current_path(to).to_owned(), what });
                }
            }
        }
        let put_back = executor.settle(receipt)?;
        files -= put_back.len();
        skipped.extend(put_back);
        if to == Version::After {
            for file in &receipt.files {
                if matches!(file.action, FileAction::Remove | FileAction::Move | FileAction::Unlink) {
                    self.remove_empty_folders(file.path.parent().unwrap_or(Path::new("")), &receipt.source);
                }
            }
        }
        Ok(Switched { files, skipped })
    }

    /// Undoes the changes of a failed operation.
    fn roll_back(&self, mut receipt: Receipt, mut executor: Executor<'_>, source: OpError) -> OpError {
        let reverted = self.revert(&mut receipt, &mut executor);
        match reverted {
            Ok(reverted) => OpError::NotDone { source: Box::new(source), reverted },
            // There is no receipt, so nothing was changed. A receipt that cannot be read proves nothing.
            Err(_) if matches!(self.fs.metadata(&self.folder(&receipt.id).join(receipt::FILE)), Ok(None)) => {
                OpError::NotDone { source: Box::new(source), reverted: 0 }
            }
            // The receipt stays; it can be undone and redone.
            Err(_) => self.stopped(&receipt, &executor, Attempt::Apply, source),
        }
    }

    fn revert(&self, receipt: &mut Receipt, executor: &mut Executor<'_>) -> Result<usize, OpError> {
        if receipt.state == OperationState::Begun {
            self.abandon(receipt)?;
            return Ok(0);
        }
        executor.forget_displaced();
        executor.recover(receipt)?;
        let touched = receipt.files.iter().enumerate().filter(|(i, _)| executor.has_touched(*i));
        let touched: Vec<PathBuf> =
            touched.map(|(_, file)| file.current_path(Version::Before).to_owned()).collect();
        let switched = self.switch_to(receipt, Version::Before, false, executor)?;
        // An untouched file may be blocked: that is where the operation failed.
        let mut skipped = switched.skipped;
        skipped.retain(|file| touched.contains(&file.path));
        if !skipped.is_empty() {
            return Err(OpError::Changed { files: skipped });
        }
        executor.set_times(receipt, Version::Before)?;
        if executor.has_foreign_bytes(receipt)? {
            executor.clear_staged(receipt, true)?;
            self.remove_created_folders(receipt);
            self.set_state(receipt, OperationState::Undone)?;
        } else {
            self.abandon(receipt)?;
        }
        Ok(switched.files)
    }

    /// The error for an attempt that failed half-way, with the files that it changed.
    pub(super) fn stopped(
        &self,
        receipt: &Receipt,
        executor: &Executor<'_>,
        attempt: Attempt,
        source: OpError,
    ) -> OpError {
        let from = if attempt == Attempt::Undo { Version::After } else { Version::Before };
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for (i, file) in receipt.files.iter().enumerate() {
            let is_at = |version| {
                let path = version_file(file, version).map(|version| version.path);
                let is_there = path.is_none_or(|path| self.fs.metadata(path).is_ok_and(|now| now.is_some()));
                is_there && matches!(executor.status(i, file, version, false), Ok(Status::AlreadyThere))
            };
            let is_staged_only = receipt.state == OperationState::Begun;
            if is_staged_only || is_at(from) || !executor.has_touched(i) && !is_at(from.opposite()) {
                unchanged.push(file.current_path(from.opposite()).to_owned());
            } else {
                changed.push(file.current_path(from).to_owned());
            }
        }
        // The receipt may have been written although the call failed.
        let state = Receipt::read(&self.folder(&receipt.id)).map_or(receipt.state, |receipt| receipt.state);
        let source = Box::new(source);
        OpError::Stopped { id: receipt.id.clone(), attempt, state, source, changed, unchanged }
    }
}

/// The result of [`Operations::switch_to`].
pub(super) struct Switched {
    /// The number of changed files.
    pub(super) files: usize,
    /// The files that have neither version, and were not changed.
    pub(super) skipped: Vec<ChangedFile>,
}

/// A time in milliseconds since 1970.
fn millis(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

/// The folders above a file that do not exist, topmost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.retain(|folder| !folder.as_os_str().is_empty());
    missing.reverse();
    missing
}
