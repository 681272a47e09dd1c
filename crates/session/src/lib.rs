//! The model of a session, built from the entries of its log.
//!
//! A log is not a conversation: prompts that were rewound stay in it, a reply is spread over several lines, a
//! tool result may be far from its call, and a compaction replaces what was said before. A [`Session`]
//! relates the lines to each other.
//!
//! # Concepts
//!
//! - A [`Session`] grows by [`Session::push`], one entry at a time, whether the entries come from a file or
//!   from a running client. It maintains the tree, the [replies](Reply) (the lines of one message of the
//!   model) and the [tool calls](ToolCall) with their results. [`Session`] defines the terms.
//! - The [`Thread`] is the conversation that a resume would continue, across compactions. A [`Branch`] is a
//!   path that was abandoned. A [`Turn`] is a prompt and everything until the next one.
//! - A [`Compaction`] is a boundary, its summary, and the part of the conversation that was kept.
//! - [`Session::replay`] returns the messages that a [`ClientVersion`] would send if it resumed the session.
//! - A [`SessionFamily`] is a session with its sub-agents, whether they have logs of their own or not.
//! - Entries, replies, calls, turns and sub-agents are identified by typed indexes ([`EntryIndex`],
//!   [`CallIndex`], …) into an [`IndexVec`], so that one cannot be looked up as another.
//!
//! # Example: turns and tool calls
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
//! let turns = session.turns();
//! assert_eq!(turns.len(), 1);
//! let calls = turns[TurnIndex::FIRST].tool_calls(&session);
//! let calls = calls.into_iter().map(|call| &session.tool_calls()[call]);
//! let outcomes: Vec<_> = calls.map(|call| (&*call.name, call.outcome(&session))).collect();
//! assert_eq!(outcomes, [("Bash", ToolOutcome::Ok)]);
//! ```
//!
//! # Example: a rewind, and what a resume sends
//!
//! ```
//! use threadline_session::{ClientVersion, Session};
//!
//! // The prompt "Warp it" was replaced by "Weave it".
//! # let log = threadline_testkit::log(r#"
//! # u1        user   "hello"
//! # a1 <- u1  reply  m1 text "Hello."
//! # u2 <- a1  user   "Warp it"
//! # a2 <- u2  reply  m2 text "Warped."
//! # u3 <- a1  user   "Weave it"
//! # a3 <- u3  reply  m3 text "Woven."
//! # "#);
//! let session = Session::from_bytes(&log);
//! assert_eq!(session.turns().len(), 2);
//! let branches = session.branches();
//! assert_eq!((branches.len(), branches[0].entries.len()), (1, 2));
//! assert_eq!(branches[0].fork, session.find("a1"));
//!
//! let sent = session.replay(ClientVersion::NEWEST).expect("a conversation");
//! let roles: Vec<_> = sent.iter().map(|message| message.role.name()).collect();
//! assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
//! ```
//!
//! # Caveats
//!
//! - Nothing here fails because of the content of a log. Duplicates, missing parents, cycles, and calls
//!   without results are [`Session::findings`]; [`Session::replay`] returns `None` if Claude Code would
//!   refuse to resume.
//! - A `push` takes time in proportion to its line. Results that depend on the whole log (the thread, turns,
//!   branches, the replay) are computed on demand in linear time, from entries that are all kept in memory.
//! - This crate reads no files and no clock. Text that the log does not contain, such as the system prompt or
//!   content that was moved into other files, is in none of the results.

#![warn(missing_docs)]

mod activity;
mod agent;
mod check;
mod command_group;
mod compaction;
mod index;
mod input;
mod lineage;
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
pub use agent::{EmbeddedAgents, SessionFamily, Spawn, Subagent};
pub use check::{LineFault, MAX_NAMED_LINES, MAX_RETRY_LINES};
pub use command_group::command_group;
pub use compaction::Compaction;
pub use index::{AgentIndex, CallIndex, EntryIndex, IndexRange, IndexType, IndexVec, ReplyIndex, TurnIndex};
pub use input::{InputKind, editor_context, is_command_caveat};
pub use lineage::{ForkPoint, fork_point};
pub use replay::{ClientVersion, MessageRole, ReplayBlock, ReplayMessage, ReplayRule, VersionError};
pub use reply::Reply;
pub use session::{ParentLink, Session};
pub use soundness::{RuleViolation, SoundnessBaseline, SoundnessChecker, SoundnessRule};
pub use thread::{Branch, Thread};
pub use tool_call::{BlockPosition, ServerCall, ToolCall, ToolOutcome, result_outcome};
pub use turn::{Round, Turn};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
