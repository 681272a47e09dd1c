//! Operations: changes to files that leave a receipt and can be undone and redone.
//!
//! Each operation has its own folder with `receipt.json` and the versions of files that are not installed.
//! The receipt is on disk before any file is changed, with the digest of every new file, and a file gets its
//! name only when it is complete. Wherever the process stops, each file is either the old or the new one, and
//! [`Operations::undo`] and [`Operations::redo`] change all of them to the same version.
//!
//! Other programs may append to logs at any time. Lines that they add are kept in every version, and a file
//! that an operation created is removed only if it is byte-identical to the content that the operation wrote.

mod append_step;
mod apply;
mod clean_up;
mod digest;
mod displaced;
mod error;
mod executor;
mod foreign_lines;
mod install;
mod operation;
mod operations;
mod receipt;
mod reverse;
mod status;
mod step;
mod version;

pub use apply::NewOperation;
pub use digest::FileDigest;
pub use error::{Attempt, ChangedFile, OpError};
pub use operation::{FileAction, Operation, OperationState};
pub use operations::{Operations, ReceiptFilter};
pub use receipt::{RECEIPT_FORMAT, Receipt, ReceiptFile};
pub use reverse::Reversal;
pub use step::{FileKind, Step, StepAction};

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
