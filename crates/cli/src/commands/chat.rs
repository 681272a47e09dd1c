//! `threadline chat`: continues a conversation with the model, or starts one.

mod acp;
mod clipboard;
mod config;
mod control;
mod demo;
mod file_copies;
mod files;
mod key_helper;
mod limited_process;
mod mcp;
mod output;
mod permissions;
mod rewind;
mod rule_files;
mod sandbox;
mod screen;
mod settings;
mod settings_file;
mod trust;

use std::io::Read;
use std::sync::Arc;

use clap::ValueEnum;
use serde_json::value::{RawValue, to_raw_value};
use threadline_agent::{Agent, AgentEvent, SystemClock, TurnSummary};
use threadline_cancel::CancelToken;
use threadline_term::text;

pub(in crate::commands) use self::config::client_and_model;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};
use crate::ui;

/// The format of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The last text of the model
    #[default]
    Text,
    /// One JSON object at the end
    Json,
    /// One JSON object per event
    StreamJson,
}

/// The format of standard input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// A prompt
    #[default]
    Text,
    /// One JSON object per message
    StreamJson,
}

/// Talk to the model in a session that Claude Code can read and continue
///
/// On a terminal, opens a screen; /help lists its keys and commands. With -p, prints the answer and exits.
///
/// Needs an API key in ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN. A Claude subscription cannot be used here;
/// `claude --resume` continues the same sessions with one.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  threadline chat
  threadline --demo chat
  threadline chat -p \"What does this project do?\"
  threadline chat -p \"Fix the typo in README.md\" --permission-mode acceptEdits
  threadline chat -p \"Go on\" --continue
  git diff | threadline chat -p \"Review this\" --output-format json")]
pub(crate) struct ChatArgs {
    /// The prompt; standard input is added to it
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,

    /// Print the answer and exit
    #[arg(short = 'p', long)]
    pub(crate) print: bool,

    /// Continue the newest session of this folder
    #[arg(short = 'c', long = "continue", help_heading = "Session")]
    pub(crate) continue_last: bool,

    /// Continue a session: its id, title or log
    #[arg(short = 'r', long, value_name = "SESSION", help_heading = "Session")]
    pub(crate) resume: Option<String>,

    /// Continue in a copy of the session
    #[arg(long, help_heading = "Session")]
    pub(crate) fork_session: bool,

    /// The id of the new session (a UUID)
    #[arg(long, value_name = "UUID", help_heading = "Session")]
    pub(crate) session_id: Option<String>,

    /// The title of the new session
    #[arg(short = 'n', long, value_name = "TITLE", help_heading = "Session")]
    pub(crate) name: Option<String>,

    /// Do not write the session to disk
    #[arg(long, help_heading = "Session")]
    pub(crate) no_session_persistence: bool,

    /// The version of Claude Code whose session format and tools to use
    #[arg(long, value_name = "VERSION", default_value = "2.1.197", help_heading = "Session")]
    pub(crate) session_format: String,

    /// Format of the output
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub(crate) output_format: OutputFormat,

    /// Format of standard input
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        default_value = "text",
        help_heading = "Input and output"
    )]
    pub(crate) input_format: InputFormat,

    /// Serve an editor over the Agent Client Protocol on the standard streams
    #[arg(long, conflicts_with_all = ["print", "prompt"], help_heading = "Input and output")]
    pub(crate) acp: bool,

    /// Include the events of the API's stream in stream-json output
    #[arg(long, help_heading = "Input and output")]
    pub(crate) include_partial_messages: bool,

    /// Include the hooks of all events in stream-json output
    #[arg(long, help_heading = "Input and output")]
    pub(crate) include_hook_events: bool,

    /// Repeat the messages of standard input in stream-json output
    #[arg(long, help_heading = "Input and output")]
    pub(crate) replay_user_messages: bool,

    /// Print the version of Claude Code whose behaviour this is
    #[arg(short = 'v', hide = true)]
    pub(crate) show_version: bool,

    /// Accepted for compatibility; stream-json output is always complete
    #[arg(long, hide = true)]
    pub(crate) verbose: bool,

    /// A JSON schema that the answer must match
    #[arg(long, value_name = "SCHEMA", help_heading = "Input and output")]
    pub(crate) json_schema: Option<String>,

    /// The model: a name such as claude-sonnet-5-5, or opus, sonnet, haiku, opusplan (opus in plan mode)
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) model: Option<String>,

    /// The model to use when the first one is overloaded
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    pub(crate) fallback_model: Option<String>,

    /// Further beta features of the API, separated by commas
    #[arg(long, value_name = "NAMES", help_heading = "Model")]
    pub(crate) betas: Vec<String>,

    /// How hard the model thinks: low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    pub(crate) effort: Option<String>,

    /// Replace the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) system_prompt: Option<String>,

    /// Add to the system prompt
    #[arg(long, value_name = "TEXT", help_heading = "Model")]
    pub(crate) append_system_prompt: Option<String>,

    /// Stop after this number of replies
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) max_turns: Option<u64>,

    /// Stop when this much has been spent
    #[arg(long, value_name = "USD", help_heading = "Limits")]
    pub(crate) max_budget_usd: Option<f64>,

    /// Permission mode: default, acceptEdits, plan, bypassPermissions or dontAsk (auto is default)
    #[arg(long, value_name = "MODE", help_heading = "Tools")]
    pub(crate) permission_mode: Option<String>,

    /// Same as --permission-mode bypassPermissions
    #[arg(long, hide = true)]
    pub(crate) dangerously_skip_permissions: bool,

    /// Where to send permission requests: `stdio` (stream-json), or a tool such as mcp__server__tool
    #[arg(long, value_name = "TOOL", help_heading = "Tools")]
    pub(crate) permission_prompt_tool: Option<String>,

    /// Rules for calls that may run, such as Edit, "Bash(git diff:*)" or "Read(~/notes/**)"
    #[arg(long = "allowedTools", alias = "allowed-tools", value_name = "TOOLS", num_args = 1.., help_heading = "Tools")]
    pub(crate) allowed_tools: Vec<String>,

    /// Rules for calls that are refused; the model is not given tools that are named alone
    #[arg(long = "disallowedTools", alias = "disallowed-tools", value_name = "TOOLS", num_args = 1.., help_heading = "Tools")]
    pub(crate) disallowed_tools: Vec<String>,

    /// The only tools that the model is given
    #[arg(long, value_name = "TOOLS", num_args = 1.., help_heading = "Tools")]
    pub(crate) tools: Vec<String>,

    /// Only append lines and read prompts as lines, for screen readers
    #[arg(long, help_heading = "Input and output")]
    pub(crate) screen_reader: bool,

    /// Treat prompts that begin with a slash like other prompts
    #[arg(long, help_heading = "Settings")]
    pub(crate) disable_slash_commands: bool,

    /// Further settings: a file, or JSON
    #[arg(long, value_name = "FILE|JSON", help_heading = "Settings")]
    pub(crate) settings: Option<String>,

    /// The settings files to read: user, project, local, separated by commas
    #[arg(long, value_name = "SOURCES", help_heading = "Settings")]
    pub(crate) setting_sources: Option<String>,

    /// Run shell commands in a sandbox: writes only below the working folders, no network
    #[arg(long, help_heading = "Tools")]
    pub(crate) sandbox: bool,

    /// Kinds of sub-agents, as JSON: {"name": {"description": "…", "prompt": "…", "tools": ["Read"]}}
    #[arg(long, value_name = "JSON", help_heading = "Tools")]
    pub(crate) agents: Option<String>,

    /// MCP servers: files, or JSON: {"mcpServers": {"name": {"command": "…", "args": ["…"]}}}
    #[arg(long, value_name = "FILE|JSON", num_args = 1.., help_heading = "Tools")]
    pub(crate) mcp_config: Vec<String>,

    /// Use only the MCP servers of --mcp-config
    #[arg(long, help_heading = "Tools")]
    pub(crate) strict_mcp_config: bool,

    /// Further folders that tools may work in
    #[arg(long, value_name = "DIR", num_args = 1.., help_heading = "Tools")]
    pub(crate) add_dir: Vec<std::path::PathBuf>,
}

impl ChatArgs {
    /// Whether a screen is opened. A program that writes messages to standard input needs none.
    fn is_interactive(&self) -> bool {
        !self.print && self.input_format != InputFormat::StreamJson
    }
}

/// Why a chat did not start, or ended.
pub(crate) enum ChatError {
    /// An end that Claude Code also has: this message on standard error, and exit code 1.
    Refused(String),
    /// An error as of any other command.
    Command(CommandError),
}

impl<E: Into<CommandError>> From<E> for ChatError {
    fn from(error: E) -> Self {
        Self::Command(error.into())
    }
}

impl ChatError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// Returns the error for a command other than `chat`.
    pub(crate) fn into_command_error(self) -> CommandError {
        match self {
            Self::Refused(message) => CommandError::new(message),
            Self::Command(error) => error,
        }
    }
}

/// Hides the environment of this process, which contains the key, from other processes of the user: commands
/// of the model could read it in `/proc`. Linux only.
fn hide_environment() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

pub(crate) fn run(cx: &mut Context, args: &ChatArgs) -> Result<CommandOutcome, CommandError> {
    hide_environment();
    if args.show_version {
        ui::write_stdout_line(&format!("{} (threadline)", args.session_format));
        return Ok(CommandOutcome::Done);
    }
    if args.acp {
        acp::run(cx, args)?;
        return Ok(CommandOutcome::Done);
    }
    let ended = if args.is_interactive() { screen::run(cx, args) } else { run_print(cx, args) };
    match ended {
        Ok(is_error) => Ok(if is_error { CommandOutcome::Negative } else { CommandOutcome::Done }),
        Err(ChatError::Refused(message)) => {
            ui::write_stderr(&text!("{message}\n"));
            Ok(CommandOutcome::Negative)
        }
        Err(ChatError::Command(error)) => Err(error),
    }
}

/// The value of `--permission-prompt-tool` for the program at the other end of the standard streams.
const STDIO: &str = "stdio";

/// Runs the prompts. Returns whether the last one failed.
fn run_print(cx: &mut Context, args: &ChatArgs) -> Result<bool, ChatError> {
    let cancel = CancelToken::new();
    cancel_on_signals(&cancel)?;
    let setup = config::ChatSetup::new(cx, args)?;
    let mut prompts = prompts(cx, args, &setup)?;
    let prices = (*cx.app.prices()?).clone();
    let agent = Agent::start(setup.agent, Arc::new(setup.client), prices, Arc::new(SystemClock));
    let mut agent = match agent {
        Ok(agent) => agent,
        Err(error) => return Err(ChatError::refused(format!("Error: {error}"))),
    };
    let mut program = None;
    if let Prompts::Stream(stream) = &prompts {
        stream.start(&agent.session_id(), &agent.log());
        if args.permission_prompt_tool.as_deref() == Some(STDIO) {
            agent.set_prompt(stream.prompt());
        }
        program = Some(stream.program());
    }
    let servers = setup.mcp.connect(agent.config(), program, &cancel);
    if let Prompts::Stream(stream) = &prompts {
        stream.set_servers(servers.clone());
    }
    agent.add_servers(servers);
    if let Some(tool) = args.permission_prompt_tool.as_deref().filter(|tool| *tool != STDIO)
        && let Err(reason) = agent.set_prompt_tool(tool)
    {
        agent.finish(&mut |_| {}).map_err(|error| CommandError::new(error.to_string()))?;
        return Err(ChatError::refused(format!("Error: {reason}")));
    }
    let mut printer = output::Printer::new(cx.ui.shared_output(), args, &agent, setup.api_key_source);
    let mut is_error = false;
    while let Some(prompt) = prompts.next()? {
        // An interrupt of the other program ends this turn only.
        let turn = cancel.child();
        if let Prompts::Stream(stream) = &prompts {
            stream.start_turn(&mut agent, &turn)?;
            printer.set_session(&agent);
        }
        let summary = agent.run(&prompt, &turn, &mut |event| {
            if let (AgentEvent::TurnEnd(summary), Prompts::Stream(stream)) = (&event, &prompts) {
                stream.end_turn(summary);
            }
            printer.event(&event);
        });
        is_error = is_failure(&summary);
        if cancel.is_cancelled() {
            break;
        }
        if let Some(summary) = agent.run_background(&cancel, &mut |event| printer.event(&event)) {
            is_error = is_failure(&summary);
        }
    }
    if let Err(error) = agent.finish(&mut |event| printer.event(&event)) {
        return Err(ChatError::refused(format!("Error: {error}")));
    }
    printer.finish()?;
    Ok(is_error)
}

fn is_failure(summary: &TurnSummary) -> bool {
    summary.end.is_error()
}

/// The prompts of the command, one after another.
enum Prompts {
    One(Option<Box<RawValue>>),
    Stream(control::ControlStream),
}

impl Prompts {
    fn next(&mut self) -> Result<Option<Box<RawValue>>, CommandError> {
        match self {
            Self::One(prompt) => Ok(prompt.take()),
            Self::Stream(stream) => stream.next(),
        }
    }
}

fn prompts(cx: &Context, args: &ChatArgs, setup: &config::ChatSetup) -> Result<Prompts, ChatError> {
    if args.input_format == InputFormat::StreamJson {
        let permissions = setup.agent.permissions.clone();
        return Ok(Prompts::Stream(control::ControlStream::new(permissions, setup.facts(cx))));
    }
    let piped = read_stdin()?;
    let prompt = match (&args.prompt, piped) {
        (Some(prompt), Some(piped)) => format!("{prompt}\n{piped}"),
        (Some(prompt), None) => prompt.clone(),
        (None, Some(piped)) => piped,
        (None, None) => String::new(),
    };
    if prompt.trim().is_empty() {
        let message =
            "Error: Input must be provided either through stdin or as a prompt argument when using --print";
        return Err(ChatError::refused(message));
    }
    Ok(Prompts::One(Some(to_raw_value(&prompt)?)))
}

/// Reads standard input if it is not a terminal.
fn read_stdin() -> Result<Option<String>, CommandError> {
    use std::io::IsTerminal;
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    stdin.lock().read_to_end(&mut bytes)?;
    Ok((!bytes.is_empty()).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Cancels the token on the first Ctrl-C or SIGTERM. The second one ends the process at once. On systems
/// without signals, Ctrl-C ends it at once.
pub(in crate::commands) fn cancel_on_signals(cancel: &CancelToken) -> Result<(), CommandError> {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        let cancel = cancel.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if cancel.is_cancelled() {
                    // The default action: the exit status names the signal.
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
                cancel.cancel();
            }
        })?;
    }
    #[cfg(not(unix))]
    let _ = cancel;
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn other_processes_cannot_read_the_environment() {
        use rustix::process::{DumpableBehavior, dumpable_behavior};
        super::hide_environment();
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
    }
}
