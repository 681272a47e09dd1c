//! Operations: changes to files that leave a receipt and can be undone and redone.
//!
//! Each operation has a folder of its own with `receipt.json` and the versions of files that are not in
//! place. The receipt is on disk before anything is changed, with the digest of every new file, and a file
//! takes its name only when it is whole. Whenever the process ends, each file is either the old or the new
//! one, and [`Operations::undo`] and [`Operations::redo`] bring all of them to the same version.
//!
//! Other programs may append to logs at any time. Lines that they add are kept in every version, and a file
//! that an operation made is removed only if it is byte for byte what the operation wrote.

mod digest;
mod execute;
mod receipt;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

pub use digest::FileDigest;
pub use receipt::{FORMAT, FileAction, Receipt, ReceiptFile, State};

use self::execute::{Executor, Side, Status, changed};
use crate::append::AppendError;
use crate::disk::{Disk, FileSystem, Visibility, create_folders, write_all};

/// A change to a file.
pub struct Step<'a> {
    /// The file.
    pub path: PathBuf,
    /// Whether other programs append to it.
    pub kind: FileKind,
    /// What is to be done.
    pub action: Action<'a>,
}

/// How a file is written by other programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// Lines are appended to it at any time. They are kept whatever is done to the file.
    Log,
    /// It changes as a whole.
    Plain,
}

impl FileKind {
    /// The kind of a file in a Claude Code home: JSON lines are logs.
    pub fn of(path: &Path) -> Self {
        if path.extension().is_some_and(|ext| ext == "jsonl") { Self::Log } else { Self::Plain }
    }
}

/// What is to be done to a file.
pub enum Action<'a> {
    /// Make it. That it exists is an error.
    Create {
        /// What it will hold.
        content: Box<dyn Read + 'a>,
        /// Who may read it.
        visibility: Visibility,
    },
    /// Give it other content, if it still begins with what was read of it.
    Replace {
        /// What was read of it.
        read: FileDigest,
        /// What it will hold.
        content: Box<dyn Read + 'a>,
    },
    /// Append lines, given without newlines, if it still begins with what was read of it.
    Append {
        /// What was read of it.
        read: FileDigest,
        /// The lines.
        lines: Vec<String>,
    },
    /// Take it away and make another file, if it still begins with what was read of it.
    Move {
        /// What was read of it.
        read: FileDigest,
        /// The other file. That it exists is an error.
        to: PathBuf,
        /// What the other file will hold.
        content: Box<dyn Read + 'a>,
    },
    /// Take it away. The receipt keeps it.
    Remove,
    /// Take a symbolic link away, and leave the file that it names.
    Unlink,
}

/// A file that is not as an operation left it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedFile {
    /// The file.
    pub path: PathBuf,
    /// What is different.
    pub what: String,
}

/// The result of an undo or a redo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The operation as it is now.
    pub receipt: Receipt,
    /// How many files were changed.
    pub files: usize,
    /// How many had the wanted content already.
    pub untouched: usize,
    /// The files that other programs or people have changed since, which were left as they are.
    pub left: Vec<ChangedFile>,
    /// How many bytes that other programs appended to the changed files were kept.
    pub carried: u64,
}

/// Why an operation could not be done, undone, redone or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpError {
    /// Files are not as they were read, or as the operation left them. Nothing was changed.
    #[error("{}", list_changed(.files))]
    Changed {
        /// The files.
        files: Vec<ChangedFile>,
    },

    /// The operation failed, and no file is different for it.
    #[error("{source}")]
    NotDone {
        /// Why it failed.
        source: Box<Self>,
        /// How many files had been changed and were changed back.
        reverted: usize,
    },

    /// The operation, or its undo or redo, failed half-way.
    #[error("{source}")]
    Stopped {
        /// The operation.
        id: String,
        /// Why it failed.
        source: Box<Self>,
        /// The files that have their new version.
        changed: Vec<PathBuf>,
        /// The files that have their previous version.
        unchanged: Vec<PathBuf>,
    },

    /// Another program keeps writing to files that were replaced or removed.
    #[error("another program keeps writing to {}", list_paths(.paths))]
    StillWritten {
        /// Where those files are now.
        paths: Vec<PathBuf>,
    },

    /// No receipt has this id.
    #[error("no operation `{id}`")]
    NoSuch {
        /// What was asked for.
        id: String,
    },

    /// More than one receipt begins like this.
    #[error("`{id}` is the beginning of {n} operations")]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// How many there are.
        n: usize,
    },

    /// It was undone before.
    #[error("operation {id} is undone already")]
    AlreadyUndone {
        /// The operation.
        id: String,
    },

    /// It is done.
    #[error("operation {id} is not undone")]
    AlreadyDone {
        /// The operation.
        id: String,
    },

    /// It was interrupted before anything was changed, so its new content is not known.
    #[error("operation {id} was interrupted before it changed anything")]
    NeverApplied {
        /// The operation.
        id: String,
    },

    /// Another operation is running.
    #[error("another threadline operation is running")]
    Busy,

    /// A receipt cannot be read.
    #[error("the receipt {} cannot be read: {why}", .path.display())]
    BadReceipt {
        /// The receipt.
        path: PathBuf,
        /// Why.
        why: String,
    },

    /// No file can have this name. Nothing was changed.
    #[error("no file can be called {path:?}: {why}")]
    BadPath {
        /// The name.
        path: PathBuf,
        /// Why.
        why: &'static str,
    },

    /// Lines could not be added.
    #[error(transparent)]
    Append(#[from] AppendError),

    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

fn list_changed(files: &[ChangedFile]) -> String {
    let files = files.iter().map(|file| format!("{} has changed since: {}", file.path.display(), file.what));
    files.collect::<Vec<_>>().join("; ")
}

fn list_paths(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The receipts of a person's operations.
#[derive(Clone, Debug)]
pub struct Operations {
    dir: PathBuf,
    fs: Arc<dyn FileSystem>,
}

/// How often a running operation is waited for, and how long each time.
const LOCK_TRIES: usize = 300;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

impl Operations {
    /// The receipts in `dir`, which need not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), fs: Arc::new(Disk) }
    }

    /// The folder of an operation.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.dir.join(id)
    }

    /// Every receipt, the newest first, and what could not be read.
    pub fn list(&self) -> crate::Listing<Receipt> {
        let mut listing = crate::Listing::new();
        let Some(entries) = listing.note(fs_err::read_dir(&self.dir)) else { return listing };
        for entry in entries {
            let Some(entry) = listing.note(entry) else { continue };
            if !entry.path().join(receipt::FILE).exists() {
                continue;
            }
            match Receipt::read(&entry.path()) {
                Ok(receipt) => listing.found.push(receipt),
                Err(error) => listing.unread.push(io::Error::other(error.to_string())),
            }
        }
        listing.found.sort_by(|a, b| (&b.made_at, &b.id).cmp(&(&a.made_at, &a.id)));
        listing
    }

    /// The receipt with this id, or the beginning of it; `last` is the newest that changed something and is
    /// not undone.
    pub fn find(&self, id: &str) -> Result<Receipt, OpError> {
        let counts = |receipt: &Receipt| !matches!(receipt.state, State::Undone | State::Begun);
        self.find_where(id, |found| found.into_iter().find(counts))
    }

    /// The receipt with this id, or the beginning of it; `last` is the one that was undone last.
    pub fn find_undone(&self, id: &str) -> Result<Receipt, OpError> {
        let counts =
            |receipt: &Receipt| matches!(receipt.state, State::Undone | State::Undoing | State::Redoing);
        self.find_where(id, |found| {
            // Of receipts with the same number, all of format 1, the newest comes first.
            found.into_iter().filter(counts).rev().max_by_key(|receipt| receipt.undo_order)
        })
    }

    fn find_where(
        &self,
        id: &str,
        last: impl FnOnce(Vec<Receipt>) -> Option<Receipt>,
    ) -> Result<Receipt, OpError> {
        let found = self.list().found;
        let no_such = || OpError::NoSuch { id: id.to_owned() };
        if id == "last" {
            return last(found).ok_or_else(no_such);
        }
        let begins = |receipt: &Receipt| !id.is_empty() && receipt.id.starts_with(id);
        let mut found: Vec<Receipt> = found.into_iter().filter(begins).collect();
        if let Some(exact) = found.iter().position(|receipt| receipt.id == id) {
            return Ok(found.swap_remove(exact));
        }
        match found.len() {
            0 => Err(no_such()),
            1 => Ok(found.swap_remove(0)),
            n => Err(OpError::Ambiguous { id: id.to_owned(), n }),
        }
    }

    /// Does what `steps` say, in their order, and keeps a receipt of it.
    ///
    /// `receipt` says who and what; its files, folders and state are filled in here. If something cannot be
    /// done, what was done before it is undone and the receipt is removed ([`OpError::NotDone`]); if that
    /// fails too, the receipt stays and can be undone or redone ([`OpError::Stopped`]).
    pub fn apply(&self, mut receipt: Receipt, steps: Vec<Step<'_>>) -> Result<Receipt, OpError> {
        for step in &steps {
            check_path(&step.path)?;
            if let Action::Move { to, .. } = &step.action {
                check_path(to)?;
            }
        }
        let _lock = self.lock()?;
        self.clean_up();
        receipt.format = FORMAT;
        receipt.state = State::Begun;
        receipt.files =
            steps.iter().enumerate().map(|(i, step)| self.plan(i, step)).collect::<Result<_, _>>()?;
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
        let result = self.prepare(&mut receipt, steps, &executor).and_then(|()| {
            self.set_state(&mut receipt, State::Applying)?;
            self.bring(&mut receipt, Side::After, true, &mut executor)?;
            self.set_state(&mut receipt, State::Done)
        });
        match result {
            Ok(()) => Ok(receipt),
            Err(source) => Err(self.roll_back(receipt, executor, source)),
        }
    }

    /// Brings back what was before the operation.
    ///
    /// Lines that other programs appended to logs stay. If a file has changed otherwise, nothing is done
    /// ([`OpError::Changed`]), unless the operation's files are independent of each other or `partial` is
    /// set: then that file is left as it is.
    pub fn undo(&self, receipt: &Receipt, partial: bool) -> Result<Reversal, OpError> {
        self.reverse(receipt, Side::Before, partial)
    }

    /// Does an operation again that was undone, or finishes one that was interrupted.
    ///
    /// The same rules hold as for [`Operations::undo`].
    pub fn redo(&self, receipt: &Receipt, partial: bool) -> Result<Reversal, OpError> {
        self.reverse(receipt, Side::After, partial)
    }

    /// Throws a receipt away, with the files that it kept. It can then not be undone any more.
    pub fn forget(&self, receipt: &Receipt) -> Result<(), OpError> {
        let _lock = self.lock()?;
        let mut receipt = Receipt::read(&self.folder(&receipt.id))?;
        let mut executor = self.executor(&receipt);
        executor.recover(&mut receipt)?;
        executor.clear_staged(&receipt, false)?;
        self.discard(&receipt.id)
    }

    fn reverse(&self, receipt: &Receipt, to: Side, partial: bool) -> Result<Reversal, OpError> {
        let _lock = self.lock()?;
        // Another process may have changed it since the caller read it.
        let mut receipt = Receipt::read(&self.folder(&receipt.id))?;
        let id = receipt.id.clone();
        match (receipt.state, to) {
            (State::Undone, Side::Before) => return Err(OpError::AlreadyUndone { id }),
            (State::Done, Side::After) => return Err(OpError::AlreadyDone { id }),
            (State::Begun, Side::After) => return Err(OpError::NeverApplied { id }),
            (State::Begun, Side::Before) => {
                self.abandon(&receipt)?;
                receipt.state = State::Undone;
                let untouched = receipt.files.len();
                return Ok(Reversal { receipt, files: 0, untouched, left: Vec::new(), carried: 0 });
            }
            _ => {}
        }
        let mut executor = self.executor(&receipt);
        executor.recover(&mut receipt)?;
        // All of them are looked at before the first is touched.
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
        let (on_the_way, end) = match to {
            Side::Before => (State::Undoing, State::Undone),
            Side::After => (State::Redoing, State::Done),
        };
        if to == Side::Before {
            let orders = self.list().found.into_iter().map(|receipt| receipt.undo_order);
            receipt.undo_order = orders.max().unwrap_or(0) + 1;
        }
        self.set_state(&mut receipt, on_the_way)?;
        let result = self.bring(&mut receipt, to, false, &mut executor).and_then(|brought| {
            executor.clear_staged(&receipt, true)?;
            if to == Side::Before {
                executor.set_times(&receipt)?;
                self.remove_folders(&receipt);
            }
            self.set_state(&mut receipt, end)?;
            Ok(brought)
        });
        match result {
            Ok(brought) => {
                let Brought { files, left } = brought;
                let untouched = receipt.files.len() - files - left.len();
                Ok(Reversal { receipt, files, untouched, left, carried: executor.carried })
            }
            Err(source) => Err(self.stopped(&receipt, &executor, source)),
        }
    }

    /// Brings every file that can be to the version of a side. Files that have neither version are left; in
    /// the first run that is an error.
    fn bring(
        &self,
        receipt: &mut Receipt,
        to: Side,
        is_first: bool,
        executor: &mut Executor<'_>,
    ) -> Result<Brought, OpError> {
        let mut order: Vec<usize> = (0..receipt.files.len()).collect();
        if to == Side::Before {
            order.reverse();
        }
        let mut files = 0;
        let mut left = Vec::new();
        for i in order {
            let file = &receipt.files[i];
            match executor.status(i, file, to, is_first)? {
                Status::There => {}
                Status::Ready => {
                    executor.change(i, file, to, is_first)?;
                    files += 1;
                }
                Status::Blocked(what) if is_first => return Err(changed(file.current_path(to), &what)),
                Status::Blocked(what) => {
                    left.push(ChangedFile { path: file.current_path(to).to_owned(), what });
                }
            }
        }
        let put_back = executor.settle(receipt)?;
        files -= put_back.len();
        left.extend(put_back);
        if to == Side::After {
            for file in &receipt.files {
                if matches!(file.action, FileAction::Remove | FileAction::Move | FileAction::Unlink) {
                    self.remove_empty(file.path.parent().unwrap_or(Path::new("")), &receipt.source);
                }
            }
        }
        Ok(Brought { files, left })
    }

    /// Writes the receipt and all new content, each beside the file that it is for. No file is changed.
    fn prepare(
        &self,
        receipt: &mut Receipt,
        steps: Vec<Step<'_>>,
        executor: &Executor<'_>,
    ) -> Result<(), OpError> {
        self.set_state(receipt, State::Begun)?;
        for (i, (file, step)) in receipt.files.iter_mut().zip(steps).enumerate() {
            match step.action {
                Action::Create { mut content, visibility } => {
                    file.set_after(executor.stage(i, file, &mut content, visibility)?);
                }
                Action::Replace { mut content, .. } | Action::Move { mut content, .. } => {
                    file.set_after(executor.stage(i, file, &mut content, Visibility::Private)?);
                }
                Action::Append { lines, .. } => {
                    let lines = crate::append::join(lines)?;
                    let mut kept = self.fs.create_new(&executor.lines(i), Visibility::Private)?;
                    write_all(&*self.fs, &mut kept, &lines)?;
                    self.fs.sync(&kept)?;
                    // An undo has to write a new file beside the log. A folder where that cannot be done is
                    // found out now, not when the lines are to be taken back.
                    executor.probe(i, file)?;
                    file.length_after = file.length_before.map(|length| length + lines.len() as u64);
                }
                Action::Remove | Action::Unlink => {}
            }
        }
        Ok(())
    }

    /// What the receipt says of a file before anything is done to it.
    fn plan(&self, i: usize, step: &Step<'_>) -> Result<ReceiptFile, OpError> {
        let metadata = self.fs.metadata(&step.path)?;
        let modified = metadata.as_ref().and_then(|metadata| metadata.modified().ok());
        let modified = modified.and_then(|modified| modified.duration_since(UNIX_EPOCH).ok());
        let (action, target, read) = match &step.action {
            Action::Create { .. } => (FileAction::Create, None, None),
            Action::Replace { read, .. } => (FileAction::Replace, None, Some(*read)),
            Action::Append { read, .. } => (FileAction::Append, None, Some(*read)),
            Action::Move { read, to, .. } => (FileAction::Move, Some(to.clone()), Some(*read)),
            Action::Remove => {
                let read = FileDigest::read(&step.path)?;
                let gone = || changed(&step.path, "it is gone");
                (FileAction::Remove, None, Some(read.ok_or_else(gone)?))
            }
            Action::Unlink => (FileAction::Unlink, Some(fs_err::read_link(&step.path)?), None),
        };
        let has_backup = matches!(action, FileAction::Replace | FileAction::Remove | FileAction::Move);
        let mut file = ReceiptFile {
            path: step.path.clone(),
            action,
            target,
            grows: step.kind == FileKind::Log,
            backup: has_backup.then(|| format!("{i}.before")),
            length_before: None,
            sha256_before: None,
            modified_before: modified.and_then(|modified| i64::try_from(modified.as_millis()).ok()),
            length_after: None,
            sha256_after: None,
        };
        if let Some(read) = read {
            file.set_before(read);
        }
        Ok(file)
    }

    /// Undoes what a failed operation did so far.
    fn roll_back(&self, mut receipt: Receipt, mut executor: Executor<'_>, source: OpError) -> OpError {
        let reverted = self.revert(&mut receipt, &mut executor);
        match reverted {
            Ok(reverted) => OpError::NotDone { source: Box::new(source), reverted },
            // The receipt stays; it can be undone and redone.
            Err(_) => self.stopped(&receipt, &executor, source),
        }
    }

    fn revert(&self, receipt: &mut Receipt, executor: &mut Executor<'_>) -> Result<usize, OpError> {
        if receipt.state == State::Begun {
            self.abandon(receipt)?;
            return Ok(0);
        }
        executor.start_over();
        executor.recover(receipt)?;
        let touched = receipt.files.iter().enumerate().filter(|(i, _)| executor.has_touched(*i));
        let touched: Vec<PathBuf> =
            touched.map(|(_, file)| file.current_path(Side::Before).to_owned()).collect();
        let brought = self.bring(receipt, Side::Before, false, executor)?;
        // A file that was not touched yet may be blocked: that is what the operation stopped at.
        let mut left = brought.left;
        left.retain(|file| touched.contains(&file.path));
        if !left.is_empty() {
            return Err(OpError::Changed { files: left });
        }
        executor.set_times(receipt)?;
        self.abandon(receipt)?;
        Ok(brought.files)
    }

    /// Removes what an operation prepared, and its receipt.
    fn abandon(&self, receipt: &Receipt) -> Result<(), OpError> {
        self.executor(receipt).clear_staged(receipt, false)?;
        self.remove_folders(receipt);
        self.discard(&receipt.id)
    }

    fn stopped(&self, receipt: &Receipt, executor: &Executor<'_>, source: OpError) -> OpError {
        let (mut changed, mut unchanged) = (Vec::new(), Vec::new());
        for (i, file) in receipt.files.iter().enumerate() {
            match executor.status(i, file, Side::Before, false) {
                Ok(Status::There) => unchanged.push(file.path.clone()),
                _ => changed.push(file.path.clone()),
            }
        }
        OpError::Stopped { id: receipt.id.clone(), source: Box::new(source), changed, unchanged }
    }

    /// Finishes what interrupted operations left beside files: lines are brought over, and what was prepared
    /// for operations that changed nothing is removed. A failure is left for the undo of that operation to
    /// report.
    fn clean_up(&self) {
        for entry in fs_err::read_dir(&self.dir).into_iter().flatten().flatten() {
            // A folder without a receipt: the process ended before it was written, or after it was removed.
            let is_ours = |name: &str| name == "receipt.new" || name.ends_with(".lines");
            let folder = entry.path();
            let only_ours = fs_err::read_dir(&folder).is_ok_and(|mut entries| {
                entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_ours)))
            });
            if only_ours {
                drop(self.discard(&entry.file_name().to_string_lossy()));
            }
        }
        for mut receipt in self.list().found {
            match receipt.state {
                State::Done | State::Undone => {}
                State::Begun => drop(self.abandon(&receipt)),
                State::Applying | State::Undoing | State::Redoing => {
                    let mut executor = self.executor(&receipt);
                    drop(executor.recover(&mut receipt).and_then(|()| self.set_state_as_is(&receipt)));
                }
            }
        }
    }

    fn executor(&self, receipt: &Receipt) -> Executor<'_> {
        Executor::new(&*self.fs, receipt, self.folder(&receipt.id))
    }

    fn set_state(&self, receipt: &mut Receipt, state: State) -> Result<(), OpError> {
        let before = std::mem::replace(&mut receipt.state, state);
        self.set_state_as_is(receipt).inspect_err(|_| receipt.state = before)
    }

    fn set_state_as_is(&self, receipt: &Receipt) -> Result<(), OpError> {
        receipt.write(&*self.fs, &self.folder(&receipt.id))
    }

    /// Lets one operation of a person run at a time.
    fn lock(&self) -> Result<File, OpError> {
        create_folders(&*self.fs, &self.dir, Visibility::Private)?;
        let path = self.dir.with_extension("lock");
        let file = fs_err::OpenOptions::new().create(true).append(true).open(path)?.into_parts().0;
        for _ in 0..LOCK_TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                // The lock is the system's own, also where the file system is simulated.
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
                // Some file systems have no locks.
                Err(std::fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(file);
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(OpError::Busy)
    }

    /// Removes the folder of an operation. The receipt goes last.
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

    /// Removes the folders that an operation made, unless something is in them.
    fn remove_folders(&self, receipt: &Receipt) {
        for folder in receipt.folders.iter().rev() {
            let _ = self.fs.remove_folder(folder);
        }
    }

    /// Removes a folder, and those above it, as long as they are empty and the session's own.
    fn remove_empty(&self, folder: &Path, session: &str) {
        let own = |folder: &&Path| folder.iter().any(|name| name == session);
        for folder in folder.ancestors().take_while(own) {
            if self.fs.remove_folder(folder).is_err() {
                return;
            }
        }
    }
}

/// What [`Operations::bring`] did.
struct Brought {
    /// How many files were changed.
    files: usize,
    /// The files that have neither version, and stay as they are.
    left: Vec<ChangedFile>,
}

fn check_path(path: &Path) -> Result<(), OpError> {
    let bad = |why| Err(OpError::BadPath { path: path.to_owned(), why });
    match path.to_str() {
        None => bad("receipts hold names in UTF-8 only"),
        Some(text) if text.contains('\0') => bad("it has a NUL byte"),
        Some(_) if !path.is_absolute() => bad("it is not an absolute path"),
        Some(_) if path.file_name().is_none() => bad("it is a folder"),
        Some(_) => Ok(()),
    }
}

/// The folders above a file that are not there yet, the topmost first.
fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> =
        path.ancestors().skip(1).take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
    missing.retain(|folder| !folder.as_os_str().is_empty());
    missing.reverse();
    missing
}

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
