//! Plain data for display: a session's transcript, outline, file changes, cost and inventory, without
//! width, colour or markup.
//!
//! A [`TranscriptBuilder`] builds the transcript of a session, as a whole
//! ([`TranscriptBuilder::transcript`]) or part by part ([`TranscriptBuilder::parts`]). [`outline()`]
//! summarises each turn in one line, [`Spending`] contains the cost of the calls, [`changes()`] returns the
//! net change of each file, [`Inventory`] counts the contents of the lines, and [`wire`] defines our public
//! JSON.
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
pub use card::{Choice, CommandCard, CommandOutput, Question, Todo, ToolCard, starts_agents};
pub use changes::{FileChange, changes, changes_of, patch};
pub use context::{AgentContext, CacheMiss, ContextCall, ContextLedger, MissReason, WindowItem, WindowPart};
pub use diff::{DiffChange, DiffLine, Hunk, hunks, line_counts, unified};
pub use error_count::count_errors;
pub use filter::{DetailLevel, TranscriptFilter};
pub use finding_summary::FindingSummary;
pub use inline_markdown::strip_markdown;
pub use inventory::{DriftCount, Inventory, NameCounts, SessionCounts};
pub use layout::{BranchLayout, Layout, TurnLayout, layout, layout_turns};
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
pub use session_card::{LogCountScan, LogCounts, LogTally, SessionCard, SessionCardFigures};
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
pub use turn_range::TurnRange;
pub use usage_board::{DayUsage, UsageBoard};
pub use visible::{is_hidden, visible, visible_name};
