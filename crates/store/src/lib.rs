//! Session files on disk: list, preview, follow, append, replace. The only crate that writes session files.
//!
//! A [`Store`] covers one or more homes such as `~/.claude`. It lists [`SessionFile`]s, reads a quick
//! [`SessionPreview`] of each, and [finds](Store::find) a session by id, title or path. A [`Follower`]
//! reads a file while it grows, and [`read_log`] reads a whole file on all cores. Logs are written in two
//! ways only: [`append`] adds whole lines, and [`Operations`] swap whole files; nothing is ever truncated
//! or overwritten in place. Operations keep a [`Receipt`] of each change, so that it can be undone and
//! redone.
//!
//! The caller passes the homes and the time: this crate reads neither the environment nor the clock.
//!
//! ```no_run
//! use threadline_store::Store;
//!
//! let store = Store::open(["/home/me/.claude".into()]);
//! for (session, preview) in store.list().found {
//!     let _ = (session.id, preview.title());
//! }
//! ```

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
pub use identity::FileId;
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
