//! Session files on disk: find, preview, read, follow, append, replace. The only crate that writes session
//! files.
//!
//! # Concepts
//!
//! - A [`Home`] is a folder such as `~/.claude`, and a [`Store`] covers one or more of them. [`Store::find`]
//!   finds a session as a person names it: `last`, an id or its beginning, a title, a path. [`Store::list`]
//!   returns the sessions with a quick [`SessionPreview`] of each, and [`Store::logs`] every log without
//!   opening it.
//! - A [`SessionFile`] is the log of a session, with the [`AgentFile`]s of its sub-agents and its other side
//!   files. A [`SessionId`] is one plain file name: the only text of a log that becomes a part of a path.
//! - A [`Listing`] is the result of a walk over files, with the errors: one unreadable folder hides only its
//!   own content.
//! - [`read_log`] reads a log on all cores. A [`Follower`] reads one while it grows, and notices if it was
//!   replaced.
//! - Logs are written in two ways only: [`append`] adds whole lines, and [`Operations`] swap whole files.
//!   Nothing is truncated or overwritten in place. Each operation consists of [`Step`]s and leaves a
//!   [`Receipt`], so that it can be undone and redone, also if the process was killed.
//! - A [`FileSnapshot`] is the state of a file when it was read; a change is refused if the file has since
//!   changed otherwise than by growing.
//! - [`LiveRule`] determines whether a running Claude Code has a session open.
//!
//! # Example: list sessions
//!
//! ```no_run
//! use threadline_store::Store;
//!
//! let store = Store::open(["/home/me/.claude".into()]);
//! for (session, preview) in store.list().found {
//!     println!("{}  {}", session.id, preview.title().unwrap_or_default());
//! }
//! ```
//!
//! # Example: change a log, and undo it
//!
//! ```
//! use std::io::{Cursor, Read};
//! use threadline_store::{FileKind, FileSnapshot, NewOperation, Operation, Operations, Step, StepAction};
//!
//! # let home = threadline_testkit::TestHome::new();
//! # let log = home.session("slow", "u1 user \"why is it slow?\"");
//! # let receipts = home.root().join("receipts");
//! let snapshot = FileSnapshot::take(&log)?;
//! let mut text = String::new();
//! snapshot.reader()?.read_to_string(&mut text)?;
//! let read = snapshot.digest()?.expect("the log has not been rewritten");
//! let content = Box::new(Cursor::new(text.replace("slow", "fast")));
//! let action = StepAction::Replace { read, content };
//! let step = Step { path: snapshot.path().to_owned(), kind: FileKind::Log, action, modified: None };
//!
//! let operations = Operations::at(receipts);
//! let operation = NewOperation {
//!     id: "2026-11-01-1".to_owned(),
//!     operation: Operation::Redact,
//!     command: Vec::new(),
//!     made_at: "2026-11-01T10:00:00Z".to_owned(),
//!     source: "s1".to_owned(),
//!     target: "s1".to_owned(),
//!     home: None,
//!     summary: "a word was replaced".to_owned(),
//! };
//! let receipt = operations.apply(operation, vec![step])?;
//! assert!(std::fs::read_to_string(&log)?.contains("fast"));
//! operations.undo(&receipt, false)?;
//! assert_eq!(std::fs::read_to_string(&log)?, text);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Caveats
//!
//! - Only input and output return errors. The content of a log is returned as entries with findings.
//! - The caller passes the homes and the time: this crate reads neither the environment nor the clock.
//! - Only regular files are opened, without blocking, and a link only if it stays within the homes.

#![warn(missing_docs)]

mod agent_file;
mod append;
mod audit;
mod disk;
mod file_window;
mod fingerprint;
mod follow;
mod home;
mod home_file;
mod id;
mod identity;
mod last_active;
mod leading_members;
mod listing;
mod live;
mod log_file;
mod op;
mod preview;
mod private_file;
mod project;
mod prompt;
mod read;
mod reference;
mod regular_file;
mod session_file;
mod snapshot;
mod update;
mod write_obstacle;
mod write_root;

pub use agent_file::{AgentFile, AgentMeta, FolderAgents, agent_id};
pub use append::{AppendError, AppendOutcome, append, create_new};
pub use disk::Visibility;
pub use fingerprint::Fingerprint;
pub use follow::{FileMark, Follower, PollOutcome};
pub use home::{Home, Store};
pub use home_file::{
    HomeFile, is_home_file_name, is_shared_agent_name, read_session_of_file, session_of_file,
};
pub use id::{SessionId, is_plain_name};
pub use identity::{FileId, change_time};
pub use last_active::{last_active_in, read_last_active};
pub use listing::Listing;
pub use live::{LiveEvidence, LiveRule, detect_live, session_of_process};
pub use log_file::{LogFile, SessionLogs, logs_below};
pub use op::{
    Attempt, ChangedFile, FileAction, FileDigest, FileKind, NewOperation, OpError, Operation, OperationState,
    Operations, RECEIPT_FORMAT, Receipt, ReceiptFile, ReceiptFilter, Reversal, Step, StepAction,
};
pub use preview::{PreviewReader, SessionPreview, keep_last_active, preview_all, read_session_preview};
pub use private_file::{create_temporary, is_private_name, replace_own_file};
pub use project::{encode_project, folder_matches, worktrees};
pub use read::{map_blocks, read_chunks, read_log};
pub use reference::{FindError, SessionCandidate};
pub use regular_file::{
    open as open_log, open_file, open_own_file, open_regular, read_file, read_regular, read_text_file,
};
pub use session_file::SessionFile;
pub use snapshot::FileSnapshot;
pub use update::{FileUpdate, update_file};
pub use write_obstacle::write_obstacle;
pub use write_root::{UserContext, WriteRisk, WriteRoot, check_unlinked};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
