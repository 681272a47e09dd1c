//! `archive install` and `archive uninstall`: copies sessions when they end.

use threadline_settings::HookCommand;
use threadline_view::shell_word;

use crate::commands::hook_settings::{self, HookSettingsArgs, program_word};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Copy every session when it ends, by a hook in Claude Code's settings
///
/// Shows the change; --apply writes it. Everything else in the file stays unchanged.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,

    /// Address of the archive [default: a folder in threadline's state folder]
    #[arg(long, value_name = "URL")]
    to: Option<String>,
}

/// Remove the hook from Claude Code's settings
///
/// Shows the change; --apply writes it. The rest of the file stays byte-identical.
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,
}

pub(crate) fn run(cx: &Context, args: &InstallArgs) -> Result<CommandOutcome, CommandError> {
    let mut command = format!("{} archive push --quiet", program_word()?);
    if let Some(to) = &args.to {
        // Checks the address before it is written.
        super::location(cx, Some(to))?;
        command.push_str(&format!(" --to {}", shell_word(to)));
    }
    hook_settings::install(cx, &args.settings, HookCommand::ARCHIVE, &command)
}

pub(crate) fn run_uninstall(cx: &Context, args: &UninstallArgs) -> Result<CommandOutcome, CommandError> {
    hook_settings::uninstall(cx, &args.settings, HookCommand::ARCHIVE)
}
