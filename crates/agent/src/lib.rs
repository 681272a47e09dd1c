//! The loop of the client: turns, tools, session lines, limits.
//!
//! An [`Agent`] sends the conversation to the API, runs the tools that the model calls, and writes every step
//! to the session's log before the next step depends on it. It reports [`AgentEvent`]s, which front ends
//! translate to text, JSON or a screen. It does not read the environment, and does not print.

mod agent;
mod agent_definition;
mod agent_tool;
mod background_agents;
mod clock;
mod compaction;
mod config;
mod conversation;
mod cost;
mod custom_command;
mod definition_file;
mod error_text;
mod event;
mod file_history;
mod front_matter;
mod git;
mod hook;
mod interactive;
mod json;
mod log_outline;
mod mcp;
mod memory;
mod model_access;
mod model_change;
mod partial_summary;
mod permission;
mod plan_mode;
mod progress;
mod resume;
mod rewind;
mod send_message;
mod server_prompt;
mod session_format;
mod session_hooks;
mod session_writer;
mod shell_call;
mod skill_tool;
mod slash_command;
mod stored_agent;
mod sub_agent;
mod summary;
mod system_prompt;
mod temp_dir;
mod tool_calls;
mod turn;
mod turn_input;

pub use agent::{Agent, AgentError};
pub use agent_definition::AgentDefinition;
pub use clock::{Clock, SystemClock};
pub use config::{AgentConfig, AgentPaths, SandboxConfig, SessionStart};
pub use cost::{ModelUsage, ModelUsageTotals};
pub use custom_command::CustomCommand;
pub use event::{
    AgentEvent, CompactionEvent, ContextUsage, DeferredCall, Denial, RetryKind, TurnEnd, TurnSummary,
};
pub use hook::{HookCallbacks, HookEvent, HookOutcome, HookRun, HookSettings, HookSettingsError};
pub use interactive::{MAX_IMAGE_BYTES, image_block};
pub use memory::{MemoryFile, MemoryKind, MemoryPaths, read_memory};
pub use model_change::ModelChange;
pub use partial_summary::{SummarizeError, SummaryPart};
pub use permission::{PermissionAnswer, PermissionPrompt, PermissionRequest, SharedPermissions};
pub use resume::{ResumeError, ResumedSession, fork_lines};
pub use rewind::RewindPoint;
pub use session_writer::{SessionWriter, WriteError, WrittenCompaction};
pub use shell_call::{ShellCall, ShellCallObserver};
pub use sub_agent::{SubAgentEvent, SubAgentSource, SubAgentUsage};
pub use summary::{SummaryError, summarize};
pub use turn_input::{QueuedPrompt, TurnInput};
// A part of [`Agent`] that front ends keep.
pub use threadline_tools::{BackgroundSwitch, FilePreview};
