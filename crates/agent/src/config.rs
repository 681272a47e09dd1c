//! Settings of an agent.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use threadline_mcp_client::McpServers;
use threadline_tools::{CommandLauncher, Limits, Profile};

use crate::agent_definition::AgentDefinition;
use crate::custom_command::CustomCommand;
use crate::hook::HookSettings;
use crate::memory::MemoryFile;
use crate::permission::SharedPermissions;
use crate::shell_call::ShellCallObserver;

/// The folders and files of a session.
#[derive(Clone, Debug)]
pub struct AgentPaths {
    /// The working folder of the session.
    pub cwd: PathBuf,
    /// Further folders that tools may work in.
    pub additional_dirs: Vec<PathBuf>,
    /// Claude Code's home, such as `~/.claude`.
    pub claude_home: PathBuf,
    /// The home folder of the user.
    pub user_home: Option<PathBuf>,
    /// The folder for temporary files, such as `/tmp/claude-1000`.
    pub temp_dir: PathBuf,
}

/// How the session begins.
#[derive(Clone, Debug)]
pub enum SessionStart {
    /// A new session with this id.
    New {
        /// The id.
        session_id: String,
        /// The title, if one was given.
        title: Option<String>,
    },
    /// Continues the session in this log.
    Resume {
        /// The log.
        log: PathBuf,
    },
    /// Copies the session in this log to a new one, and continues that.
    Fork {
        /// The log.
        log: PathBuf,
        /// The id of the new session.
        session_id: String,
    },
}

/// The sandbox of shell commands.
#[derive(Clone, Debug)]
pub struct SandboxConfig {
    /// The program that starts shells in it.
    pub launcher: CommandLauncher,
    /// The protections that this system does not have, in words, for questions about commands.
    pub missing: Option<String>,
}

/// The settings of an agent.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The version of Claude Code that defines the session format and the tools.
    pub profile: &'static Profile,
    /// The folders.
    pub paths: AgentPaths,
    /// How the session begins.
    pub start: SessionStart,
    /// Whether the session is written to disk.
    pub is_persistent: bool,
    /// Whether the tools take backups of files before they change them.
    pub has_file_history: bool,
    /// The model, with its suffix such as `[1m]`.
    pub model: String,
    /// The model in plan mode, if it is another one.
    pub plan_model: Option<String>,
    /// The model that is used when the first one is overloaded.
    pub fallback_model: Option<String>,
    /// The model for small tasks; `None` for the default.
    pub small_model: Option<String>,
    /// Further beta features of the API.
    pub betas: Vec<String>,
    /// The limits of tools.
    pub limits: Limits,
    /// The effort that is asked for.
    pub effort: Option<String>,
    /// The maximum number of output tokens of a reply; `None` for that of the model.
    pub max_output_tokens: Option<u64>,
    /// The budget for thinking in tokens; `None` for the default, 0 for none.
    pub max_thinking_tokens: Option<u64>,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Is appended to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The tools that are offered: `None` for those of the profile.
    pub tools: Option<Vec<String>>,
    /// Tools that are not offered.
    pub disallowed_tools: Vec<String>,
    /// Kinds of sub-agents besides those that are built in; later ones replace earlier ones.
    pub agents: Vec<AgentDefinition>,
    /// The JSON schema of the answer.
    pub json_schema: Option<String>,
    /// The permissions of tools.
    pub permissions: SharedPermissions,
    /// The largest number of replies in one turn.
    pub max_turns: Option<u64>,
    /// The largest cost in dollars.
    pub max_budget_usd: Option<f64>,
    /// The environment of commands. It contains no credentials of ours.
    pub environment: Vec<(OsString, OsString)>,
    /// Memory files such as `CLAUDE.md`.
    pub memory: Vec<MemoryFile>,
    /// Commands and skills from files.
    pub commands: Vec<CustomCommand>,
    /// Whether a conversation that nearly fills the window is compacted.
    pub has_auto_compact: bool,
    /// Whether prompts that begin with a slash are commands.
    pub has_slash_commands: bool,
    /// The hooks.
    pub hooks: HookSettings,
    /// The environment of hooks.
    pub hook_environment: Vec<(OsString, OsString)>,
    /// The MCP servers. They end with the session.
    pub mcp: McpServers,
    /// The sandbox of shell commands; `None` for no sandbox.
    pub sandbox: Option<SandboxConfig>,
    /// Whether a person types the prompts at a screen, which session lines show.
    pub is_interactive: bool,
    /// The value of `entrypoint` in session lines.
    pub entrypoint: String,
    /// Where prompts come from, such as `sdk`.
    pub prompt_source: Option<String>,
    /// The operating system, for the system prompt.
    pub platform: String,
    /// The current day, for the system prompt.
    pub today: String,
    /// Watches the calls of the shell tool.
    pub shell_observer: Option<Arc<dyn ShellCallObserver>>,
}
