//! The built-in tools of the client: input schema, validation, execution, result.
//!
//! A [`ToolSet`] contains the tools of a [`Profile`], which is the behaviour of one version of Claude Code.
//! For each call, [`ToolSet::get`] finds the [`Tool`], [`validate`] checks its input and returns it in the
//! form that is logged, and [`Tool::run`] executes it in a [`ToolContext`] and returns a [`ToolOutput`]: the
//! content for the model, the record for the log, and the changed files. Result texts and records are those
//! of the reference; descriptions are our own.
//!
//! This crate depends on neither the loop nor permissions: [`Tool::run`] takes the [`Permit`] of the call. It
//! has no clock and reads no environment; there is no async runtime, only threads and processes.

#![warn(missing_docs)]

mod background;
mod bash;
mod cancel;
mod context;
mod edit;
mod file_state;
mod glob;
mod grep;
mod json;
mod json_schema;
mod limits;
mod notebook_edit;
mod output;
mod patch;
mod paths;
mod preview;
mod process;
mod profile;
mod question;
mod read;
mod schema;
mod set;
mod shell_command;
mod side_output;
mod structured_output;
mod task_list;
mod task_output;
#[cfg(test)]
mod testing;
mod text_file;
mod tool;
mod web_fetch;
mod web_search;
mod write;

pub use background::{BackgroundSwitch, BackgroundTasks, FinishedTask, TaskStatus};
pub use cancel::{CancelGuard, CancelToken};
pub use context::{
    CommandLauncher, FileObserver, ModelAccess, NoModel, ShellState, ToolContext, ToolProgress, WebSearchHit,
    WebSearchPart, WebSearchReply, WebSearchRequest,
};
pub use file_state::{ChangedFile, FileStates};
pub use limits::Limits;
pub use output::{PullRequest, ResultContent, ToolOutput};
pub use paths::absolute_path;
pub use preview::FilePreview;
pub use profile::Profile;
pub use question::AskUserQuestion;
pub use schema::{Kind, Parameter};
pub use set::{ToolSelection, ToolSet};
pub use shell_command::{ShellCommand, ShellEnd, ShellResult};
pub use side_output::{SavedBinary, save_binary};
pub use structured_output::StructuredOutput;
pub use tool::{
    InputSchema, Permit, Tool, ToolDefinition, ToolInput, UnparsedInput, unparsed_input, validate,
};
