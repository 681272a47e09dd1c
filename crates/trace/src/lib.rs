//! Exports turns as OTLP spans, and implements the Claude Code hook that sends them.
//!
//! A [`TurnSplitter`] splits a log into turns while it is read, and [`spans_of`] converts one turn to
//! spans. Both are pure: ids and times are derived from the log alone, so sending a turn twice produces
//! identical spans.
//!
//! The spans of each turn of a log:
//!
//! ```
//! use threadline_entry::{LineReader, parse_line};
//! use threadline_session::SessionFamily;
//! use threadline_trace::{ContentPolicy, Dialect, LogOwner, SentReplies};
//! use threadline_trace::{SpanOptions, TurnSplitter, spans_of};
//! use threadline_usage::PriceBook;
//!
//! # let log = threadline_testkit::log_of("loom", r#"
//! # u1        user   "why is it slow?"
//! # a1 <- u1  reply  m1 tool t1 Bash {"command":"time loom"}
//! # r1 <- a1  result t1 "12 s"
//! # a2 <- r1  reply  m2 text "A sleep."
//! # u2 <- a2  user   "fix it"
//! # a3 <- u2  reply  m3 text "Done."
//! # "#);
//! let mut splitter = TurnSplitter::new(LogOwner::Session, 0);
//! let mut turns = Vec::new();
//! let mut lines = LineReader::new(&*log);
//! while let Some(line) = lines.next()? {
//!     parse_line(&line, |entry, findings| turns.extend(splitter.push(entry, findings)));
//! }
//! turns.extend(splitter.finish(lines.at()));
//! let prices = PriceBook::embedded();
//! let options = SpanOptions {
//!     content: ContentPolicy::Full,
//!     dialect: Dialect::GenAi,
//!     prices: &prices,
//!     limit: None,
//!     redact: None,
//!     user: None,
//!     tags: &[],
//!     environment: None,
//!     release: None,
//! };
//! let mut sent = SentReplies::default();
//! let kinds = turns.into_iter().map(|turn| {
//!     let header = turn.header();
//!     let family = SessionFamily::new(turn.session, Vec::new());
//!     let spans = spans_of(&header, &family, "loom", &mut sent, &options);
//!     spans.iter().map(|span| span.kind.name()).collect::<Vec<_>>()
//! });
//! let kinds: Vec<_> = kinds.collect();
//! assert_eq!(kinds, [vec!["turn", "generation", "tool", "generation"], vec!["turn", "generation"]]);
//! # Ok::<(), std::io::Error>(())
//! ```

#![warn(missing_docs)]

mod agent_runs;
pub mod attribute;
mod event;
mod export;
mod generation;
mod hook;
mod hook_log;
mod id;
mod message;
mod otlp;
mod receiver_config;
mod sender;
mod sent_replies;
mod session_secrets;
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
pub use otlp::Protocol;
pub use receiver_config::{ReceiverConfig, ReceiverConfigError, ReceiverOptions, ReceiverPreset, VARIABLES};
pub use sender::{DeliveryError, DeliverySummary, HttpSender, SpanCollector, SpanReceiver, SpanVisitor};
pub use sent_replies::SentReplies;
pub use span::{AttributeName, AttributeValue, SpanEvent, SpanKind, TraceSpan};
pub use span_options::{ContentPolicy, Dialect, SpanOptions, SpanRedaction};
pub use state::{ExportState, PendingAgent, SpoolFile, StateDir, StateLock};
pub use turn::{TurnSpanParent, spans_of, tool_span_id};
pub use turn_splitter::{LogOwner, TurnHeader, TurnPart, TurnProgress, TurnSplitter};
