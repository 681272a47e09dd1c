//! The model of a session, built from the entries of its log.
//!
//! A [`Session`] grows by [`Session::push`], one entry at a time, whether the entries come from a file or
//! from a running client. It maintains the tree, the replies and the tool calls incrementally. Results that
//! depend on the whole log (the active conversation, its turns, the other branches, the messages Claude
//! Code would send) are computed on demand. A [`Family`] is a session with its sub-agents.

#![warn(missing_docs)]

mod agent;
mod check;
mod compaction;
mod file_edit;
mod file_history;
mod input;
mod lineage;
mod name;
mod queue;
mod replay;
mod reply;
mod secret;
mod session;
mod soundness;
mod thread;
mod tool_call;
mod turn;

pub use agent::{Agent, Family, Inside, Spawn};
pub use compaction::Compaction;
pub use file_edit::{FileEdit, FileText, LineHunk};
pub use file_history::{At, Basis, ChangedFile, FileContent, FileHistory, FileState};
pub use input::{Input, editor_context, is_caution};
pub use lineage::{Fork, fork};
pub use replay::{ClientVersion, ReplayBlock, ReplayMessage, ReplayRule, Role, VersionError};
pub use reply::Reply;
pub use session::{Parent, Session};
pub use soundness::{Baseline, Breach, Rule, Soundness};
pub use thread::{Branch, Thread};
pub use tool_call::{Outcome, ResultAt, ToolCall};
pub use turn::{Round, Turn};
