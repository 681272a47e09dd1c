//! A notation for logs, homes for tests, and the way to shared material. Dev-only.
//!
//! [`log`] turns a few readable lines into the bytes of a session log, so that a test shows only what
//! it is about. It yields bytes and uses no other crate of ours, so any crate may use it in its tests.
//!
//! ```
//! let bytes = threadline_testkit::log(r#"
//! u1        user   "why is it slow?"
//! a1 <- u1  reply  m1 thinking "Perhaps a sleep."
//! a2 <- a1  reply  m1 tool t1 Grep {"pattern":"sleep"}
//! r1 <- a2  result t1 "src/main.rs:9"
//! "#);
//! assert_eq!(bytes.split(|b| *b == b'\n').count(), 5);
//! ```
//!
//! # Grammar
//!
//! A line of notation is a line of the log. Blank lines, and lines that begin with `#`, are skipped.
//! `"…"`, `{…}` and `[…]` are JSON and reach the log as they are written, escapes and blanks included
//! (where keys are added to others, their values do).
//!
//! ```text
//! ID [<- PARENT] FORM [MODIFIER…]     a line of the tree
//! RECORD [MODIFIER…]                  a line beside the tree
//! raw BYTES…                          these bytes to the end of the line, and a newline
//! torn BYTES…                         the same without the newline, so the next line is glued to it
//! hex 7b ff 7d                        bytes that are no text, and a newline
//! ```
//!
//! `ID` is the uuid as it stands. Without an arrow `parentUuid` is null. A parent must be an id of this
//! notation; `<- ?x` names one that is not, on purpose.
//!
//! ```text
//! FORM
//!   user "text"                         a prompt; content is a string
//!   user [BLOCK, …]                     content is an array
//!   reply M BLOCK                       one block of the reply whose message.id is M
//!   reply M [BLOCK, …]                  several blocks on one line
//!   result T ["text" | [BLOCK, …]] [error] [RESULT]   RESULT is toolUseResult: {…}, […] or a second "text"
//!   system SUBTYPE ["content"] [{more top-level keys}]
//!   boundary auto|manual [{more compactMetadata}]     compact_boundary: parent null, the arrow is logicalParentUuid
//!   compact-summary "text"              the user line after a boundary
//!   progress hook|bash|agent|mcp|OTHER [T] [{more data keys}]   T: toolUseID and parentToolUseID
//!   attach TYPE [{more attachment keys}]
//!
//! BLOCK
//!   text "…"   thinking "…" ["signature"]   redacted ["data"]   tool T NAME [{input}]   fallback FROM TO
//!   image [png|jpeg|…]   document   ref TOOL   result T ["text" | [BLOCK, …]] [error]   {any block as JSON}
//!
//! RECORD
//!   title "…"   ai-title "…"   tag "…"   agent-name NAME   mode NAME   permission-mode NAME
//!   summary "…" leaf ID   last-prompt "…" leaf ID   pr-link NUMBER OWNER/REPO
//!   queue enqueue|dequeue|remove|popAll ["…"]
//!   snapshot ID [update] [{trackedFileBackups}]
//!   entry TYPE [{more keys}]            any other line that has a type and a sessionId
//!
//! MODIFIER
//!   model=NAME  stop=REASON  req=ID  usage={…}        replies only; usage is laid over zeros
//!   version=V  cwd=DIR  branch=NAME  session=ID  agent=ID  team=NAME  sidechain  meta
//!   +{…}   sets top-level keys, in place or at the end        -key   removes a top-level key
//!   @10:00:07.500   @2026-02-03T10:00:00Z   @+5m   @-2s       sets or moves the clock
//! ```
//!
//! The clock stands at 2026-01-01T10:00:00.000Z on the first line and goes on a second with each line;
//! what `@` sets, later lines count on from. `DIR` and names with blanks are written as JSON strings
//! (`cwd="/home/ada/my loom"`). Keys have the order that Claude Code gives them: the envelope stands
//! before the message up to 2.1.80, behind it later. A mistake in the notation panics with its line.

mod browser;
mod home;
mod notation;
mod samples;
mod secret;
mod shared;
mod skip;
mod token;

pub use browser::Browser;
pub use home::{TestHome, session_uuid, slug};
pub use notation::{log, log_of};
pub use samples::{Sample, samples};
pub use secret::{Lot, Secret, harmless, planted, secrets};
pub use shared::{corpus, demo, shared, shared_logs};
pub use skip::skipped;
