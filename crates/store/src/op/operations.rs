//! The folder of operations: list, find, lock.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::executor::Executor;
use super::receipt::{self, Receipt};
use super::{OpError, OperationState};
use crate::disk::{FileSystem, RealFileSystem, Visibility, create_folders};
use crate::regular_file::open_own_file;

/// Number of attempts to get the lock while another operation is running.
const LOCK_ATTEMPTS: usize = 300;
/// Time between two attempts.
const LOCK_INTERVAL: Duration = Duration::from_millis(100);

/// The id that selects the last operation.
const LAST: &str = "last";

/// The operations of a user: applies, finds, undoes and redoes them.
#[derive(Clone, Debug)]
pub struct Operations {
    pub(super) dir: PathBuf,
    pub(super) fs: Arc<dyn FileSystem>,
}

/// Selects receipts.
pub type ReceiptFilter<'a> = &'a dyn Fn(&Receipt) -> bool;

/// A receipt that cannot be read.
struct BadReceipt {
    /// The name of its folder.
    id: String,
    error: OpError,
}

impl Operations {
    /// The operations with receipts in `dir`, which need not exist.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), fs: Arc::new(RealFileSystem) }
    }

    /// The folder of an operation.
    pub fn folder(&self, id: &str) -> PathBuf {
        self.dir.join(id)
    }

    /// Returns every receipt, newest first, and the errors of those that cannot be read.
    pub fn list(&self) -> crate::Listing<Receipt> {
        let (mut listing, bad) = self.read_all();
        listing.errors.extend(bad.into_iter().map(|bad| io::Error::other(bad.error.to_string())));
        listing
    }

    fn read_all(&self) -> (crate::Listing<Receipt>, Vec<BadReceipt>) {
        let (mut listing, mut bad) = (crate::Listing::new(), Vec::new());
        let Some(entries) = listing.ok_or_record(fs_err::read_dir(&self.dir)) else { return (listing, bad) };
        for entry in entries {
            let Some(entry) = listing.ok_or_record(entry) else { continue };
            if !entry.path().join(receipt::FILE).exists() {
                continue;
            }
            match Receipt::read(&entry.path()) {
                Ok(receipt) => listing.found.push(receipt),
                Err(error) => {
                    bad.push(BadReceipt { id: entry.file_name().to_string_lossy().into_owned(), error });
                }
            }
        }
        // Receipts of earlier versions all have number 0.
        listing
            .found
            .sort_by(|a, b| (b.apply_order, &b.made_at, &b.id).cmp(&(a.apply_order, &a.made_at, &a.id)));
        (listing, bad)
    }

    /// Finds a receipt in `scope` by its id or the beginning of it; `last` is the newest operation that was
    /// interrupted, or else the newest that is not undone.
    ///
    /// # Errors
    ///
    /// [`OpError::NoSuch`], [`OpError::Ambiguous`], and [`OpError::BadReceipt`] if the receipt that `id`
    /// names, or one that is newer than the last operation, cannot be read.
    pub fn find_in(&self, id: &str, scope: ReceiptFilter<'_>) -> Result<Receipt, OpError> {
        let (mut listing, bad) = self.read_all();
        listing.found.retain(scope);
        if id == LAST {
            let last = take_interrupted(&mut listing.found).or_else(|| {
                listing.found.into_iter().find(|receipt| receipt.state != OperationState::Undone)
            });
            // An unreadable receipt may be the one that is meant. Ids begin with the time.
            let newer = bad.into_iter().filter(|bad| last.as_ref().is_none_or(|last| bad.id > last.id));
            if let Some(bad) = newer.max_by(|a, b| a.id.cmp(&b.id)) {
                return Err(bad.error);
            }
            return last.ok_or_else(|| no_such(id));
        }
        find_by_id(id, listing.found, bad)
    }

    /// Finds a receipt in `scope` by its id or the beginning of it; `last` is the newest operation that was
    /// interrupted, or else the one that was undone last.
    ///
    /// # Errors
    ///
    /// The same as of [`Operations::find_in`].
    pub fn find_undone_in(&self, id: &str, scope: ReceiptFilter<'_>) -> Result<Receipt, OpError> {
        let (mut listing, bad) = self.read_all();
        listing.found.retain(scope);
        if id == LAST {
            let last = take_interrupted(&mut listing.found).or_else(|| {
                let is_undone = |receipt: &Receipt| receipt.state == OperationState::Undone;
                // Receipts of format 1 all have number 0: of these, the newest is first.
                let undone = listing.found.into_iter().filter(is_undone).rev();
                undone.max_by_key(|receipt| receipt.undo_order)
            });
            return last.ok_or_else(|| no_such(id));
        }
        find_by_id(id, listing.found, bad)
    }

    /// Finds a receipt like [`Operations::find_in`], among all.
    ///
    /// # Errors
    ///
    /// The same as of [`Operations::find_in`].
    pub fn find(&self, id: &str) -> Result<Receipt, OpError> {
        self.find_in(id, &|_| true)
    }

    /// Finds a receipt like [`Operations::find_undone_in`], among all.
    ///
    /// # Errors
    ///
    /// The same as of [`Operations::find_in`].
    pub fn find_undone(&self, id: &str) -> Result<Receipt, OpError> {
        self.find_undone_in(id, &|_| true)
    }

    pub(super) fn executor(&self, receipt: &Receipt) -> Executor<'_> {
        Executor::new(&*self.fs, receipt, self.folder(&receipt.id))
    }

    /// Writes the receipt with another state. On error it keeps the state that it had.
    pub(super) fn set_state(&self, receipt: &mut Receipt, state: OperationState) -> Result<(), OpError> {
        let before = std::mem::replace(&mut receipt.state, state);
        self.write(receipt).inspect_err(|_| receipt.state = before)
    }

    pub(super) fn write(&self, receipt: &Receipt) -> Result<(), OpError> {
        receipt.write(&*self.fs, &self.folder(&receipt.id))
    }

    /// Whether no other operation runs at the moment.
    pub(super) fn can_lock(&self) -> bool {
        open_own_file(&self.lock_path()).is_ok_and(|file| file.try_lock().is_ok())
    }

    fn lock_path(&self) -> PathBuf {
        self.dir.with_extension("lock")
    }

    /// Acquires the lock, so that one operation of a user runs at a time.
    pub(super) fn lock(&self) -> Result<File, OpError> {
        create_folders(&*self.fs, &self.dir, Visibility::Private)?;
        let file = open_own_file(&self.lock_path())?;
        for _ in 0..LOCK_ATTEMPTS {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                // The lock is the system's own, even where the file system is simulated.
                Err(std::fs::TryLockError::WouldBlock) => std::thread::sleep(LOCK_INTERVAL),
                // Some file systems have no locks.
                Err(std::fs::TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                    return Ok(file);
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(error.into()),
            }
        }
        Err(OpError::Busy)
    }
}

/// Takes the first receipt of an operation that was interrupted.
fn take_interrupted(receipts: &mut Vec<Receipt>) -> Option<Receipt> {
    let i = receipts.iter().position(|receipt| receipt.state.is_interrupted())?;
    Some(receipts.swap_remove(i))
}

/// Finds the receipt with the id `id`, or the only one with an id that begins with it.
fn find_by_id(id: &str, found: Vec<Receipt>, bad: Vec<BadReceipt>) -> Result<Receipt, OpError> {
    let matches = |candidate: &str| !id.is_empty() && candidate.starts_with(id);
    let mut found: Vec<Receipt> = found.into_iter().filter(|receipt| matches(&receipt.id)).collect();
    if let Some(exact) = found.iter().position(|receipt| receipt.id == id) {
        return Ok(found.swap_remove(exact));
    }
    let mut bad: Vec<BadReceipt> = bad.into_iter().filter(|bad| matches(&bad.id)).collect();
    match (found.len(), bad.len()) {
        (0, 0) => Err(no_such(id)),
        (1, 0) => Ok(found.swap_remove(0)),
        (0, 1) => Err(bad.swap_remove(0).error),
        (n, m) => Err(OpError::Ambiguous { id: id.to_owned(), n: n + m }),
    }
}

fn no_such(id: &str) -> OpError {
    OpError::NoSuch { id: id.to_owned() }
}
