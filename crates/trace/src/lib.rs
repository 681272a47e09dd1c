//! Turns as OTLP spans; the hook, its state, its delivery.
//!
//! A [`Cutter`] cuts a log into turns as it is read, [`spans_of`] makes spans of one. Both are pure: ids and
//! times follow from the log alone, so that what is sent twice is the same thing twice.

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
