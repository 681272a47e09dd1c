//! A notation for logs, temporary homes for tests, and access to shared test data. Dev-only.
//!
//! [`log`] turns a few readable lines into the bytes of a session log, so that a test shows only the relevant
//! parts. It returns bytes and depends on no other crate of the workspace, so any crate can use it in tests.
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
//! Each line of the notation is one line of the log. Blank lines, and lines that begin with `#`, are skipped.
//! `"…"`, `{…}` and `[…]` are JSON and are copied to the log as written, including escapes and spaces. Where
//! their keys are merged into another object, the values are copied as written.
//!
//! ```text
//! ID [<- PARENT] FORM [MODIFIER…]     a line of the tree
//! RECORD [MODIFIER…]                  a line outside of the tree
//! raw BYTES…                          these bytes to the end of the line, and a newline
//! torn BYTES…                         the same without the newline, so that the next line follows directly
//! hex 7b ff 7d                        bytes in hexadecimal, and a newline
//! ```
//!
//! `ID` is the uuid as written. Without an arrow, `parentUuid` is null. A parent must be an id of this
//! notation; `<- ?x` refers to a missing one on purpose.
//!
//! ```text
//! FORM
//!   user "text"                         a prompt; content is a string
//!   user [BLOCK, …]                     content is an array
//!   reply M BLOCK                       one block of the reply with the message.id M
//!   reply M [BLOCK, …]                  several blocks on one line
//!   result T ["text" | [BLOCK, …]] [error] [RESULT]
//!                                       RESULT is toolUseResult: {…}, […] or a second "text"
//!   system SUBTYPE ["content"] [{more top-level keys}]
//!   boundary auto|manual [{more compactMetadata}]
//!                                       compact_boundary: parent null, the arrow is logicalParentUuid
//!   compact-summary "text"              the user line after a boundary
//!   progress hook|bash|agent|mcp|OTHER [T] [{more data keys}]
//!                                       T: toolUseID and parentToolUseID
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
//!   model=NAME  stop=REASON  req=ID  usage={…}        replies only; missing counts of usage are 0
//!   version=V  cwd=DIR  branch=NAME  session=ID  agent=ID  team=NAME  sidechain  meta
//!   +{…}   sets top-level keys, in place or at the end        -key   removes a top-level key
//!   @10:00:07.500   @2026-02-03T10:00:00Z   @+5m   @-2s       sets or moves the clock
//! ```
//!
//! The clock is 2026-01-01T10:00:00.000Z on the first line and advances by one second per line. Later lines
//! continue from a time set by `@`. `DIR` and names with spaces are written as JSON strings
//! (`cwd="/home/ada/my loom"`). Keys are in the order of Claude Code: the envelope is before the message up
//! to 2.1.80, and after it in later versions. Invalid notation panics with the line number.

pub mod api;
mod axe;
mod browser;
mod home;
mod notation;
#[cfg(unix)]
mod postgres_server;
mod samples;
mod secret;
mod shared;
mod skip;
#[cfg(unix)]
pub mod terminal;
mod token;

pub use axe::axe_script;
pub use browser::Browser;
pub use home::{TestHome, session_uuid, slug};
pub use notation::{log, log_of};
#[cfg(unix)]
pub use postgres_server::PostgresServer;
pub use samples::{Sample, samples};
pub use secret::{GeneratedSecret, SeededRandom, secrets, secrets_in_context, text_without_secrets};
pub use shared::{corpus, demo, shared, shared_logs};
pub use skip::report_skipped;
