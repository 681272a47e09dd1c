//! The model of a session, built from the entries of its log.
//!
//! A [`Session`] grows by [`Session::push`], one entry at a time, whether the entries come from a file or
//! from a running client. It maintains the tree, the replies and the tool calls incrementally. Results that
//! depend on the whole log (the active conversation, its turns, the other branches, the messages Claude
//! Code would send) are computed on demand. A [`SessionFamily`] is a session with its sub-agents.
//!
//! ```
//! use threadline_session::{Session, ToolOutcome, TurnIndex};
//!
//! let log = concat!(
//!     r#"{"type":"user","uuid":"u1","parentUuid":null,"message":{"content":"List the files"}}"#,
//!     "\n",
//!     r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","content":["#,
//!     r#"{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]}}"#,
//!     "\n",
//!     r#"{"type":"user","uuid":"u2","parentUuid":"a1","message":{"content":["#,
//!     r#"{"type":"tool_result","tool_use_id":"t1","content":"loom.rs"}]}}"#,
//! );
//! let session = Session::from_bytes(log.as_bytes());
//! let turns = session.turns_of(&session.thread());
//! assert_eq!(turns.len(), 1);
//! let calls = turns[TurnIndex::FIRST].tool_calls(&session);
//! let calls = calls.into_iter().map(|call| &session.tool_calls()[call]);
//! let outcomes: Vec<_> = calls.map(|call| (&*call.name, call.outcome(&session))).collect();
//! assert_eq!(outcomes, [("Bash", ToolOutcome::Ok)]);
//! ```

#![warn(missing_docs)]

mod activity;
mod agent;
mod check;
mod command_effect;
mod command_group;
mod compaction;
mod file_edit;
mod file_history;
mod index;
mod input;
mod line_alignment;
mod line_origin;
mod lineage;
mod log_scan;
mod prompt_queue;
mod replay;
mod reply;
mod session;
mod soundness;
mod thread;
mod tool_call;
mod turn;

pub use activity::{
    ActivityPause, ActivityScan, ActivityState, CallActivity, LineMark, LogActivity, LogEnding, MAX_PAUSE,
};
pub use agent::{Agent, EmbeddedAgents, SessionFamily, Spawn};
pub use check::LineFault;
pub use command_group::command_group;
pub use compaction::Compaction;
pub use file_edit::{EditReplacement, FileEdit, FileText, LineHunk};
pub use file_history::{ContentEvidence, FileContent, FileHistory, FileState, HistoryPoint, ModifiedFile};
pub use index::{AgentIndex, CallIndex, EntryIndex, IndexRange, IndexType, IndexVec, ReplyIndex, TurnIndex};
pub use input::{InputKind, editor_context, is_command_caveat};
pub use line_origin::{LineHistory, LineOrigin, MAX_CANDIDATES, UnknownReason, same_lines};
pub use lineage::{ForkPoint, fork_point};
pub use log_scan::{LogScan, ScannedCounts};
pub use replay::{ClientVersion, MessageRole, ReplayBlock, ReplayMessage, ReplayRule, VersionError};
pub use reply::Reply;
pub use session::{ParentLink, Session};
pub use soundness::{RuleViolation, SoundnessBaseline, SoundnessChecker, SoundnessRule};
pub use thread::{Branch, Thread};
pub use tool_call::{BlockPosition, ServerCall, ToolCall, ToolOutcome, result_outcome};
pub use turn::{Round, Turn};
