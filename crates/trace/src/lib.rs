//! Exports turns as OTLP spans, and implements the Claude Code hook that sends them.
//!
//! A [`TurnSplitter`] splits a log into turns while it is read, and [`spans_of`] converts one turn to
//! spans. Both are pure: ids and times are derived from the log alone, so sending a turn twice produces
//! identical spans.

#![warn(missing_docs)]

mod agent_runs;
pub mod attribute;
mod event;
mod export;
mod generation;
mod hook;
mod hook_log;
mod id;
mod install;
mod message;
mod otlp;
mod receiver_config;
mod sender;
mod sent_replies;
mod span;
mod span_options;
mod spool;
mod state;
mod turn;
mod turn_splitter;

pub use export::{ExportError, ExportSummary, Exporter};
pub use hook::{HookExport, HookInput, HookRun, run_hook};
pub use hook_log::HookLog;
pub use id::{SpanId, TraceId};
pub use install::{InstallError, SettingsChange, install, uninstall};
pub use otlp::Protocol;
pub use receiver_config::{ReceiverConfig, ReceiverConfigError, ReceiverOptions, ReceiverPreset, VARIABLES};
pub use sender::{DeliveryError, DeliverySummary, HttpSender, SpanCollector, SpanReceiver};
pub use sent_replies::SentReplies;
pub use span::{AttributeName, AttributeValue, SpanEvent, SpanKind, TraceSpan};
pub use span_options::{ContentPolicy, Dialect, Redact, SpanOptions};
pub use state::{ExportState, PendingAgent, SpoolFile, StateDir, StateLock};
pub use turn::{TurnSpanParent, spans_of, spans_of_agent, tool_span_id};
pub use turn_splitter::{LogOwner, TurnHeader, TurnPart, TurnProgress, TurnSplitter};
