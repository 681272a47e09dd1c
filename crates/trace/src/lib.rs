//! Exports turns as OTLP spans, and implements the Claude Code hook that sends them.
//!
//! A [`Cutter`] splits a log into turns while it is read, and [`spans_of`] converts one turn to spans. Both
//! are pure: ids and times are derived from the log alone, so sending a turn twice produces identical spans.

#![warn(missing_docs)]

mod agents;
pub mod attribute;
mod cut;
mod diary;
mod event;
mod export;
mod generation;
mod hook;
mod id;
mod install;
mod message;
mod otlp;
mod sender;
mod shape;
mod span;
mod spool;
mod state;
mod target;
mod told;
mod turn;

pub use cut::{Continued, Cutter, Head, Piece, Whose};
pub use diary::Diary;
pub use export::{ExportError, Exported, Exporter};
pub use hook::{HookInput, HookRun, Told as HookTold, run_hook};
pub use id::{SpanId, TraceId};
pub use install::{Change, InstallError, install, uninstall};
pub use otlp::Protocol;
pub use sender::{Collector, Receive, Received, Sender, Undelivered};
pub use shape::{Content, Dialect, Redact, Shape};
pub use span::{Event, Name, Span, SpanKind, Value};
pub use state::{Lock, Pending, Spooled, State, States};
pub use target::{Asked, Preset, Target, TargetError, VARIABLES};
pub use told::Told;
pub use turn::{Home, spans_of, spans_of_agent, tool_span};
