//! Plain data for display: a session's transcript, outline, file changes, cost and inventory, without
//! width, colour or markup.
//!
//! A [`Telling`] builds the transcript of a session ([`Telling::transcript`]). [`outline()`] summarises
//! each turn in one line, [`Spending`] contains the cost of the calls, [`changes()`] returns the net change
//! of each file, [`Inventory`] counts the contents of the lines, and [`wire`] defines our public JSON.

#![warn(missing_docs)]

mod card;
mod changes;
mod diff;
pub mod figure;
mod filter;
mod indented;
mod inventory;
mod layout;
mod markdown;
mod name;
mod note;
mod outline;
mod printed;
mod selection;
mod session_card;
mod shell;
mod spending;
mod teller;
mod telling;
mod transcript;
mod unmarked;
mod usage_board;
mod visible;
pub mod wire;

pub use card::{Card, Choice, CommandCard, Question, Todo};
pub use changes::{FileChange, changes, patch};
pub use diff::{Change, DiffLine, Hunk, hunks, line_counts, unified};
pub use filter::{Filter, Level};
pub use inventory::{Counts, Drift, Inventory};
pub use layout::{BranchLayout, Layout, TurnLayout, items, layout, layout_turns};
pub use markdown::{markdown, markdown_turns};
pub use name::{input_name, outcome_name, short_model, short_tool};
pub use note::Notes;
pub use outline::{OutlineLine, Outlining, outline};
pub use printed::{Printed, printed, uncoloured};
pub use selection::{Choices, Chosen, PAGE, Selection, SortBy, When};
pub use session_card::{Figures, SessionCard, Tally};
pub use shell::{resume_command, shell_word};
pub use spending::{Spending, SpendingCounter};
pub use telling::{Kept, Telling, Told, findings, transcript};
pub use threadline_entry::{Finding, Severity};
pub use threadline_session::{Input, Outcome, Round};
pub use threadline_usage::{Explained, Money, Totals, Verdict, Window};
pub use transcript::{
    AgentView, Attached, Body, BranchView, CallView, Item, Timing, Tokens, Transcript, TurnView, anchor,
    anchor_line,
};
pub use unmarked::unmarked;
pub use usage_board::{DayUse, UsageBoard};
pub use visible::{is_hidden, visible};
