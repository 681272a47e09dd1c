//! Session files on disk: list, preview, follow, append, replace. The only crate that writes session files.
//!
//! A [`Store`] covers one or more homes such as `~/.claude`. It lists [`SessionFile`]s, reads a quick
//! [`Glance`] of each, and [finds](Store::find) a session by id, title or path. A [`Follower`] reads a file
//! while it grows, and [`read_log`] reads a whole file on all cores. Logs are written in two ways only:
//! [`append`] adds whole lines, and [`Operations`] swap whole files; nothing is ever truncated or overwritten
//! in place. Operations keep a [`Receipt`] of each change, so that it can be undone and redone.
//!
//! The caller passes the homes and the time: this crate reads neither the environment nor the clock.
//!
//! ```no_run
//! use threadline_store::Store;
//!
//! let store = Store::open(["/home/me/.claude".into()]);
//! for (session, glance) in store.list().found {
//!     let _ = (session.id, glance.heading());
//! }
//! ```

#![warn(missing_docs)]

mod agent_file;
mod append;
mod audit;
mod disk;
mod fingerprint;
mod follow;
mod glance;
mod home;
mod id;
mod identity;
mod leading;
mod listing;
mod live;
mod log_file;
mod op;
mod project;
mod prompt;
mod read;
mod reference;
mod regular;
mod session_file;
mod snapshot;
mod window;
mod write_root;

pub use agent_file::{AgentFile, AgentMeta, FolderAgents};
pub use append::{AppendError, Appended, append, create_new};
pub use disk::Visibility;
pub use fingerprint::Fingerprint;
pub use follow::{Change, Follower, Mark};
pub use glance::{Glance, glance, glance_all};
pub use home::{Home, Store};
pub use id::{SessionId, is_plain_name};
pub use identity::FileId;
pub use listing::Listing;
pub use live::{Live, is_live};
pub use log_file::{LogFile, SessionLogs, logs_below};
pub use op::{
    ChangedFile, FileAction, FileDigest, FileKind, NewOperation, OpError, Operation, OperationState,
    Operations, RECEIPT_FORMAT, Receipt, ReceiptFile, Reversal, Step, StepAction,
};
pub use project::{encode_project, folder_matches, worktrees};
pub use read::{read_log, read_stretches};
pub use reference::{Candidate, FindError};
pub use regular::{open as open_log, open_regular, read_regular};
pub use session_file::SessionFile;
pub use snapshot::Snapshot;
pub use write_root::{Surroundings, WriteRoot};
