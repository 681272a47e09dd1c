//! `mcp install` and `mcp uninstall`: the server in Claude Code's configuration.

use std::path::PathBuf;

use threadline_settings::{McpEntry, SettingsChange, config_file};
use threadline_view::shell_word;

use super::ScopeArgs;
use crate::commands::hook_settings::show_or_apply;
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Add the server to Claude Code's configuration
///
/// Shows the change; --apply writes it. Everything else in the file stays unchanged. Close Claude Code
/// before: it writes the same file, and may not read the change. --home is written as an option of the
/// server.
#[derive(Debug, clap::Args)]
pub(crate) struct McpInstallArgs {
    #[command(flatten)]
    file: McpFileArgs,

    #[command(flatten)]
    scope: ScopeArgs,
}

/// Remove the server from Claude Code's configuration
///
/// Shows the change; --apply writes it. The rest of the file stays byte-identical.
#[derive(Debug, clap::Args)]
pub(crate) struct McpUninstallArgs {
    #[command(flatten)]
    file: McpFileArgs,
}

/// Which file to change, and whether to write it.
#[derive(Clone, Debug, clap::Args)]
struct McpFileArgs {
    /// File to change
    #[arg(long, value_name = "SCOPE", default_value = "user")]
    scope: McpScope,

    /// Write the change
    #[arg(long)]
    apply: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum McpScope {
    /// All of your projects: ~/.claude.json
    User,
    /// Everyone who works on this project: .mcp.json in the working directory
    Project,
}

pub(crate) fn run(cx: &Context, args: &McpInstallArgs) -> Result<CommandOutcome, CommandError> {
    check_source(cx)?;
    let path = args.file.path(cx)?;
    let entry =
        McpEntry { program: args.file.program()?, arguments: args.scope.arguments(&home_arguments(cx)?) };
    show_or_apply(cx, &path, args.file.apply, |before| entry.install(before))
}

/// Refuses the options that are not about the user's own sessions.
fn check_source(cx: &Context) -> Result<(), CommandError> {
    if cx.is_demo {
        return Err(CommandError::new("the sample sessions of --demo cannot be installed as a server")
            .hint("omit --demo, or try it without installing: `threadline --demo mcp`"));
    }
    if let Some(from) = &cx.source.from {
        let command = format!("claude mcp add threadline -- threadline mcp --from {}", shell_word(from));
        return Err(CommandError::new("a server that reads an archive cannot be installed by this command")
            .hint(format!("add it with `{command}`")));
    }
    Ok(())
}

/// Returns the options for the folders given with `--home`.
fn home_arguments(cx: &Context) -> Result<Vec<String>, CommandError> {
    let mut arguments = Vec::new();
    for home in &cx.named_homes {
        let home = std::path::absolute(home)?;
        let home = home.to_str().ok_or_else(|| CommandError::new("the path of --home is not valid UTF-8"))?;
        arguments.extend(["--home".to_owned(), home.to_owned()]);
    }
    Ok(arguments)
}

pub(crate) fn uninstall(cx: &Context, args: &McpUninstallArgs) -> Result<CommandOutcome, CommandError> {
    check_source(cx)?;
    let path = args.file.path(cx)?;
    show_or_apply(cx, &path, args.file.apply, |before| match before {
        Some(text) => McpEntry::uninstall(text),
        None => Ok(SettingsChange::None),
    })
}

impl McpInstallArgs {
    /// Returns the arguments that remove what these install.
    pub(crate) fn uninstall(&self) -> McpUninstallArgs {
        McpUninstallArgs { file: self.file.clone() }
    }
}

/// Returns the configuration files that may contain the server.
pub(crate) fn config_files(cx: &Context) -> Result<[PathBuf; 2], CommandError> {
    Ok([McpScope::User.path(cx)?, McpScope::Project.path(cx)?])
}

impl McpScope {
    fn path(self, cx: &Context) -> Result<PathBuf, CommandError> {
        match self {
            Self::User => {
                let home = cx.store().homes().first();
                let home = home
                    .ok_or_else(|| CommandError::new("no Claude Code home found").hint("use --home DIR"))?;
                Ok(config_file(home.root(), cx.app.config().home_dir.as_deref()))
            }
            Self::Project => Ok(std::env::current_dir()?.join(".mcp.json")),
        }
    }
}

impl McpFileArgs {
    fn path(&self, cx: &Context) -> Result<PathBuf, CommandError> {
        self.scope.path(cx)
    }

    /// Returns the program to run. A file of the project is shared, so it names the program without its path.
    fn program(&self) -> Result<String, CommandError> {
        match self.scope {
            McpScope::Project => Ok("threadline".to_owned()),
            McpScope::User => {
                let program = std::env::current_exe()?;
                let text = program.to_str().map(str::to_owned);
                text.ok_or_else(|| CommandError::new("the path of this program is not valid UTF-8"))
            }
        }
    }
}

impl ScopeArgs {
    /// Returns the arguments with which the server is started.
    fn arguments(&self, homes: &[String]) -> Vec<String> {
        let mut arguments = vec!["mcp".to_owned()];
        arguments.extend_from_slice(homes);
        if let Some(project) = &self.project {
            arguments.extend(["--project".to_owned(), project.clone()]);
        }
        arguments.extend(self.all.then(|| "--all".to_owned()));
        arguments.extend(self.no_redact.then(|| "--no-redact".to_owned()));
        arguments
    }
}
