//! Plain data for display: a session's transcript, outline, file changes, cost and inventory, without width,
//! colour or markup.
//!
//! Every front end of threadline (terminal, HTML, Markdown, JSON, MCP) shows the same data, and an item has
//! the same anchor in each of them.
//!
//! # Concepts
//!
//! - A [`TranscriptBuilder`] builds the transcript of a session: as a whole
//!   ([`TranscriptBuilder::transcript`]), or part by part ([`TranscriptBuilder::parts`]) to show the
//!   beginning of a large session at once.
//! - A [`Transcript`] consists of a header, [turns](TurnView), abandoned [branches](BranchView), sub-agents
//!   and findings. A turn consists of [items](TranscriptItem): prompts, replies, calls and events
//!   ([`ItemBody`]).
//! - A [`CallView`] is a tool call with its result. Its [`ToolCard`] contains what is worth showing of it, as
//!   data: a command and its output, the hunks of a diff, a list of to-do items.
//! - A [`TranscriptFilter`] removes what is not wanted, by [`DetailLevel`], tool, role or error.
//! - [`outline()`] summarises each turn in one line. [`Spending`] contains the cost of every reply, turn and
//!   sub-agent. [`changes()`] returns the net change of each file, [`ContextLedger`] what filled the context
//!   window, and [`Inventory`] the counts of lines, blocks and unknown types.
//! - [`SessionCard`] is a session in a list, and a [`Selection`] its filters and sort order. [`Overview`] and
//!   [`UsageBoard`] are the figures of a period.
//! - [`wire`] defines our public JSON, with a schema version. [`markdown()`] renders a transcript as
//!   Markdown.
//!
//! # Example: print a conversation
//!
//! ```
//! use threadline_session::{Session, SessionFamily};
//! use threadline_view::{ItemBody, TranscriptBuilder, TranscriptPart};
//!
//! let log = r#"
//! {"type":"user","uuid":"u1","parentUuid":null,"message":{"content":"Warp the loom"}}
//! {"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"content":"Done."}}
//! "#;
//! let family = SessionFamily::new(Session::from_bytes(log.trim().as_bytes()), Vec::new());
//! let mut printed = Vec::new();
//! for part in TranscriptBuilder::new(&family).parts() {
//!     let TranscriptPart::Turn(turn) = part else { continue };
//!     for item in turn.items {
//!         match item.body {
//!             ItemBody::Input { text, .. } => printed.push(format!("{}. {text}", turn.number)),
//!             ItemBody::Text(text) => printed.push(text),
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(printed, ["1. Warp the loom", "Done."]);
//! ```
//!
//! # Example: an outline with costs
//!
//! ```
//! use threadline_session::{Session, SessionFamily};
//! use threadline_usage::PriceBook;
//! use threadline_view::{Spending, TranscriptBuilder, outline};
//!
//! # let log = threadline_testkit::log(r#"
//! # u1        user   "why is it slow?"
//! # a1 <- u1  reply  m1 tool t1 Bash {"command":"make"} model=claude-opus-5 usage={"input_tokens":100000}
//! # r1 <- a1  result t1 "12 s"
//! # "#);
//! let family = SessionFamily::new(Session::from_bytes(&log), Vec::new());
//! let spending = Spending::of(&family, &PriceBook::embedded());
//! let builder = TranscriptBuilder { spending: Some(&spending), ..TranscriptBuilder::new(&family) };
//! let lines = outline(&builder.transcript().turns);
//! assert_eq!((lines[0].title.as_str(), lines[0].calls), ("why is it slow?", 1));
//! assert_eq!(lines[0].spent.cost.to_string(), "0.5");
//! ```
//!
//! # Caveats
//!
//! - Nothing fails because of content: an unreadable line is an item with its raw text
//!   ([`ItemBody::Unknown`]).
//! - Texts are as logged: a front end must make control characters visible ([`visible()`]) or escape them.
//! - No disk, clock or environment. Output that is in another file is read by a callback, and the time of a
//!   live session is a field of the builder.
//! - Time is linear in the log. Public JSON is [`wire`] alone.

#![warn(missing_docs)]

mod call_count;
mod card;
mod changes;
mod context;
mod diff;
mod error_count;
mod filter;
mod finding_summary;
pub mod humanize;
mod inline_markdown;
mod inventory;
mod json_indent;
mod layout;
mod line_note;
mod markdown;
mod name;
mod outline;
mod overview;
mod page_part;
mod program_output;
mod query_text;
mod selection;
mod session_card;
mod shell;
mod spending;
mod transcript;
mod transcript_builder;
mod transcript_parts;
mod transcript_writer;
mod turn_range;
mod usage_board;
mod visible;
pub mod wire;

pub use call_count::{count_tool_calls, count_tools};
pub use card::{
    Choice, CommandCard, CommandChanges, CommandFileChange, CommandFileChangeKind, CommandOutput, Question,
    Todo, ToolCard, starts_agents,
};
pub use changes::{FileChange, changes, changes_by, patch};
pub use context::{AgentContext, CacheMiss, ContextCall, ContextLedger, MissReason, WindowItem, WindowPart};
pub use diff::{DiffChange, DiffLine, Hunk, hunks, line_counts, unified};
pub use error_count::count_errors;
pub use filter::{DetailLevel, TranscriptFilter};
pub use finding_summary::FindingSummary;
pub use inline_markdown::strip_markdown;
pub use inventory::{DriftCount, Inventory, NameCounts, SessionCounts};
pub use layout::{BranchLayout, TranscriptLayout, TurnLayout, layout, layout_turns};
pub use line_note::LineNotes;
pub use markdown::{MarkdownRenderer, markdown};
pub use name::{input_name, outcome_name, short_model, short_path, short_tool};
pub use outline::{OutlineLine, input_title, line_title, outline, turn_title};
pub use overview::{
    BinSize, BranchFigures, CommandFigures, DayActivity, FigureChange, FileFigures, OpenSessionFigure,
    OpenState, Overview, OverviewPeriod, PeriodFigures, ProjectDetails, ProjectFigures, ToolFigures,
    TopSession, UsageBin, percentile,
};
pub use page_part::{OutlinePart, PagePart};
pub use program_output::{OutputPart, output_parts, strip_colours};
pub use query_text::add_condition;
pub use selection::{FilterChoices, PAGE_SIZE, SelectedPage, Selection, SortBy, TypedTime, take_in_order};
pub use session_card::{LogCounts, LogTally, SessionCard, SessionCardFigures};
pub use shell::{resume_command, resume_command_with, shell_word};
pub use spending::{InheritedCalls, Spending, SpendingCounter};
pub use threadline_entry::{Finding, Severity};
pub use threadline_session::{InputKind, Round, ToolOutcome};
pub use threadline_usage::{LimitWindow, Money, RecordExplanation, RecordVerdict, UsageTotals};
pub use transcript::{
    AgentView, AnchorParts, AttachedFile, BranchView, CallInput, CallView, ItemBody, MAX_SUBJECT, Transcript,
    TranscriptEnd, TranscriptHeader, TranscriptItem, TurnTiming, TurnTokens, TurnView, agent_anchor, anchor,
    anchor_line,
};
pub use transcript_builder::{OutputReader, OutputReads, TranscriptBuilder, transcript};
pub use transcript_parts::{TranscriptPart, TranscriptParts, TurnPredicate};
pub use transcript_writer::MAX_AGENT_DEPTH;
pub use turn_range::TurnRange;
pub use usage_board::{DayUsage, UsageBoard};
pub use visible::{is_hidden, visible, visible_name};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme_examples {}
