//! What the lines of a log mean together.
//!
//! A [`Session`] grows by [`Session::push`], one entry after the other, whether they come from a file
//! or from a client at work. It keeps the tree, the replies, the tool calls; what depends on the whole
//! (the active conversation, its turns, other branches, what Claude Code would send) is computed when
//! asked. A [`Family`] is a session with its sub-agents.

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
