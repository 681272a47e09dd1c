//! Applied operations: list, undo, redo and forget them.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use threadline_store::{
    FileAction, FileDigest, FileKind, Home, Listing, NewOperation, OpError, Operation, Receipt, Reversal,
    Step, StepAction, Visibility, check_unlinked,
};
use threadline_view::humanize::plural;

use crate::config::App;
use crate::edit::EditError;
use crate::error::AppError;

/// The parts of a receipt that an edit provides. The id and the time are added when it is applied.
pub(crate) struct NewReceipt<'a> {
    pub(crate) operation: Operation,
    /// The session that is edited.
    pub(crate) source: &'a str,
    /// The session that results.
    pub(crate) target: &'a str,
    /// The home of the session, if the changed files are elsewhere.
    pub(crate) home: Option<&'a Path>,
    /// A short description of the changes.
    pub(crate) summary: String,
    /// The command that started it.
    pub(crate) command: &'a [String],
}

/// A copy of a file of a session, to be put in its place.
pub struct SessionFileCopy<'a> {
    /// The place.
    pub path: PathBuf,
    /// The content.
    pub content: Box<dyn Read + 'a>,
    /// The content of the file that it replaces; `None` if there is no file.
    pub replaced: Option<FileDigest>,
    /// The modification time.
    pub modified: SystemTime,
}

impl<'a> SessionFileCopy<'a> {
    fn into_step(self) -> Step<'a> {
        let Self { path, content, replaced, modified } = self;
        let action = match replaced {
            Some(read) => StepAction::Replace { read, content },
            None => StepAction::Create { content, visibility: Visibility::Private },
        };
        Step { kind: FileKind::of(&path), path, action, modified: Some(modified) }
    }
}

/// Why an operation could not be found, undone, redone or forgotten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// No receipt has this id, several do, or it cannot be read.
    #[error(transparent)]
    NotFound(OpError),
    /// The operation could not be undone, redone or forgotten.
    #[error("{source}")]
    Failed {
        /// The operation.
        id: String,
        /// Why.
        source: OpError,
    },
    /// Something else failed.
    #[error(transparent)]
    App(#[from] AppError),
}

impl App {
    /// Applies steps and leaves a receipt.
    pub(crate) fn apply_steps(
        &self,
        new: NewReceipt<'_>,
        mut steps: Vec<Step<'_>>,
    ) -> Result<Receipt, EditError> {
        for step in &mut steps {
            // A receipt is valid in any working directory.
            step.path = std::path::absolute(&step.path)?;
            self.store().check_write(&step.path)?;
            if let StepAction::Move { to, .. } = &mut step.action {
                *to = std::path::absolute(&*to)?;
                self.store().check_write(to)?;
            }
        }
        let now = jiff::Timestamp::now();
        let random = uuid::Uuid::new_v4().simple().to_string();
        let operation = NewOperation {
            id: format!("{}-{}", now.strftime("%Y%m%dT%H%M%S"), &random[..6]),
            operation: new.operation,
            command: new.command.to_vec(),
            made_at: format!("{now:.3}"),
            source: new.source.to_owned(),
            target: new.target.to_owned(),
            home: new.home.map(std::path::absolute).transpose()?,
            summary: new.summary,
        };
        Ok(self.operations()?.apply(operation, steps)?)
    }

    /// Finishes operations that were interrupted, as far as that is possible without their undo or redo. To
    /// be called before files are read for a change; see [`Operations::finish_interrupted`].
    ///
    /// [`Operations::finish_interrupted`]: threadline_store::Operations::finish_interrupted
    pub fn finish_interrupted_operations(&self) {
        if let Ok(operations) = self.operations() {
            operations.finish_interrupted();
        }
    }

    /// Puts copies of the files of a session in their place, all or none. Lines that other programs append
    /// meanwhile stay.
    ///
    /// # Errors
    ///
    /// If a file exists that the copy is not to replace, if it is not as it was read any more, or if a link
    /// leads out of the homes. Then nothing is changed.
    pub fn restore_session(
        &self,
        session: &str,
        home: &Home,
        files: Vec<SessionFileCopy<'_>>,
        command: &[String],
    ) -> Result<Receipt, EditError> {
        let summary = format!("{} from an archive", plural(files.len() as u64, "file"));
        let receipt = NewReceipt {
            operation: Operation::RestoreSession,
            source: session,
            target: session,
            home: Some(home.root()),
            summary,
            command,
        };
        self.apply_steps(receipt, files.into_iter().map(SessionFileCopy::into_step).collect())
    }

    /// Changes a settings file of Claude Code from one content to another; `None` is no file.
    ///
    /// # Errors
    ///
    /// If the file is not as it was before any more. Then nothing is changed.
    pub fn change_settings(
        &self,
        path: &Path,
        before: Option<&str>,
        after: Option<&str>,
        summary: String,
        command: &[String],
    ) -> Result<Receipt, EditError> {
        let content = |text: &str| Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
        let action = match (before, after) {
            (None, Some(after)) => {
                StepAction::Create { content: content(after), visibility: Visibility::Private }
            }
            (Some(before), Some(after)) => {
                StepAction::Replace { read: FileDigest::of(before.as_bytes()), content: content(after) }
            }
            (_, None) => StepAction::Remove,
        };
        // Of a link, the file that it leads to is changed.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let receipt = NewReceipt {
            operation: Operation::Setup,
            source: &name,
            target: &name,
            home: None,
            summary,
            command,
        };
        self.apply_steps(receipt, vec![Step { kind: FileKind::Plain, path, action, modified: None }])
    }

    /// Returns the receipts of operations in the homes, newest first, and the errors of those that cannot be
    /// read.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn list_operations(&self) -> Result<Listing<Receipt>, AppError> {
        let mut listing = self.operations()?.list();
        listing.found.retain(self.operation_scope());
        Ok(listing)
    }

    /// Returns a filter of the operations in the homes: those that changed a file there, or that restored
    /// files of a session there.
    ///
    /// A session id alone does not identify a home, since a copy of a home contains the same ids. It decides
    /// only for a restore by an earlier version, whose receipt does not name the home.
    fn operation_scope(&self) -> impl Fn(&Receipt) -> bool {
        let roots = self.store().homes().iter().map(Home::root).flat_map(spellings_of);
        let roots: Vec<PathBuf> = roots.chain(self.store().real_roots().iter().cloned()).collect();
        move |receipt: &Receipt| {
            let paths = receipt.files.iter().flat_map(|file| [Some(&file.path), file.target.as_ref()]);
            let mut paths = paths.flatten();
            if paths.any(|path| roots.iter().any(|root| path.starts_with(root))) {
                return true;
            }
            match &receipt.home {
                Some(home) => spellings_of(home).any(|home| roots.contains(&home)),
                None => {
                    receipt.operation == Operation::Restore && self.store().session(&receipt.source).is_some()
                }
            }
        }
    }

    /// Returns a filter of the operations that `id` can name: those in the homes, and one elsewhere if this
    /// is its whole id. So the commands that other output suggests need no `--home`.
    fn named_operations(&self, id: &str) -> impl Fn(&Receipt) -> bool {
        let is_in_homes = self.operation_scope();
        move |receipt: &Receipt| receipt.id == id || is_in_homes(receipt)
    }

    /// Finds a receipt by its id, or one of the homes by the beginning of its id; `last` is the newest
    /// operation in the homes that was interrupted, or else the newest that is not undone.
    ///
    /// # Errors
    ///
    /// [`OperationError::NotFound`] and [`AppError::NoStateDir`].
    pub fn find_operation(&self, id: &str) -> Result<Receipt, OperationError> {
        self.operations()?.find_in(id, &self.named_operations(id)).map_err(OperationError::NotFound)
    }

    /// Undoes an operation. With `partial`, files that have changed since are skipped.
    ///
    /// # Errors
    ///
    /// [`OperationError::NotFound`], and [`OperationError::Failed`] if a file has changed since, or if a link
    /// leads out of the homes.
    pub fn undo_operation(&self, id: &str, partial: bool) -> Result<Reversal, OperationError> {
        let operations = self.operations()?;
        let receipt = operations.find_in(id, &self.named_operations(id)).map_err(OperationError::NotFound)?;
        self.check_links(&receipt)?;
        operations.undo(&receipt, partial).map_err(failed(&receipt))
    }

    /// Finds a receipt of the homes like [`App::find_operation`]; `last` is the newest operation that was
    /// interrupted, or else the one undone last.
    ///
    /// # Errors
    ///
    /// The same as of [`App::find_operation`].
    pub fn find_undone_operation(&self, id: &str) -> Result<Receipt, OperationError> {
        self.operations()?.find_undone_in(id, &self.named_operations(id)).map_err(OperationError::NotFound)
    }

    /// Redoes an operation that was undone, or finishes one that was interrupted; `last` is that of
    /// [`App::find_undone_operation`]. With `partial`, files that have changed since are skipped.
    ///
    /// # Errors
    ///
    /// The same as of [`App::undo_operation`], and if the operation was interrupted before it changed a file.
    pub fn redo_operation(&self, id: &str, partial: bool) -> Result<Reversal, OperationError> {
        let operations = self.operations()?;
        let receipt = self.find_undone_operation(id)?;
        self.check_links(&receipt)?;
        operations.redo(&receipt, partial).map_err(failed(&receipt))
    }

    /// Refuses an operation with a file in a folder that has become a link out of the homes, or of restored
    /// files, any link. Older receipts of restored files may contain paths through links.
    fn check_links(&self, receipt: &Receipt) -> Result<(), OperationError> {
        let moved = receipt.files.iter().filter(|file| file.action == FileAction::Move);
        let targets = moved.filter_map(|file| file.target.as_ref());
        let mut paths = receipt.files.iter().map(|file| &file.path).chain(targets);
        let checked = paths.try_for_each(|path| match receipt.operation {
            Operation::Restore if receipt.has_unlinked_paths() => check_unlinked(path),
            _ => self.store().check_write(path),
        });
        // Other permissions would not help, so the error is of no kind that gets a hint about them.
        checked.map_err(|error| failed(receipt)(std::io::Error::other(error.to_string()).into()))
    }

    /// Deletes the receipts with these ids and the files that they keep. Returns their number.
    ///
    /// # Errors
    ///
    /// [`OperationError::NotFound`] before anything is deleted, and [`OperationError::Failed`].
    pub fn forget_operations(&self, ids: &[String]) -> Result<usize, OperationError> {
        let operations = self.operations()?;
        let find = |id: &String| {
            operations.find_in(id, &self.named_operations(id)).map_err(OperationError::NotFound)
        };
        self.forget(ids.iter().map(find).collect::<Result<Vec<_>, _>>()?)
    }

    /// Deletes all receipts of the homes that can be read, and the files that they keep. Returns their
    /// number.
    ///
    /// # Errors
    ///
    /// [`OperationError::Failed`].
    pub fn forget_all_operations(&self) -> Result<usize, OperationError> {
        self.forget(self.list_operations()?.found)
    }

    fn forget(&self, receipts: Vec<Receipt>) -> Result<usize, OperationError> {
        let operations = self.operations()?;
        for receipt in &receipts {
            operations.forget(receipt).map_err(failed(receipt))?;
        }
        Ok(receipts.len())
    }

    /// The path of a file's previous version, if the receipt keeps one.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn backup_path(&self, receipt: &Receipt, name: &str) -> Result<PathBuf, AppError> {
        Ok(self.operations()?.folder(&receipt.id).join(name))
    }
}

/// Returns a folder as an absolute path, and with its links resolved if it exists.
fn spellings_of(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    [std::path::absolute(folder).ok(), std::fs::canonicalize(folder).ok()].into_iter().flatten()
}

fn failed(receipt: &Receipt) -> impl FnOnce(OpError) -> OperationError {
    let id = receipt.id.clone();
    move |source| OperationError::Failed { id, source }
}
