//! `archive install` and `archive uninstall`: copies sessions when they end.

use std::path::PathBuf;

use threadline_settings::HookFeature;
use threadline_view::shell_word;

use super::push::{LevelName, level};
use super::timer;
use crate::commands::hook_settings::{self, HookSettingsArgs};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Copy every session when it ends, by a hook in Claude Code's settings, or every hour, by a timer
///
/// Shows the change; --apply writes it. Everything else in the settings stays unchanged. The timer is a
/// systemd user unit (Linux) or a launchd agent (macOS), which --apply also starts.
#[derive(Debug, clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    settings: HookSettingsArgs,

    /// Address of the archive [default: a folder in threadline's state folder]
    #[arg(long, value_name = "URL")]
    to: Option<String>,

    /// How much is copied; the default is `full` for file: and must be given for other archives
    #[arg(long, value_name = "LEVEL")]
    level: Option<LevelName>,

    /// Write a timer of the system instead of the hook
    #[arg(long, conflicts_with = "scope")]
    timer: bool,
}

/// Remove the hook from Claude Code's settings, or the timer
///
/// Shows the change; --apply writes it. The rest of the settings stays byte-identical.
#[derive(Debug, clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub(crate) settings: HookSettingsArgs,

    /// Remove the timer of the system instead of the hook
    #[arg(long, conflicts_with = "scope")]
    pub(crate) timer: bool,
}

impl InstallArgs {
    /// Returns the arguments that remove what these install.
    pub(crate) fn uninstall(&self) -> UninstallArgs {
        UninstallArgs { settings: self.settings.clone(), timer: self.timer }
    }
}

pub(crate) fn run(cx: &Context, args: &InstallArgs) -> Result<CommandOutcome, CommandError> {
    let mut words: Vec<String> = Vec::new();
    // Checks the address and the level before they are written.
    let location = super::location(cx, args.to.as_deref())?;
    if location.has_password() {
        return Err(CommandError::new("the address contains a password, which would be stored")
            .hint("leave it out, and add it to ~/.pgpass"));
    }
    let level = level(cx, args.level, &location)?;
    if let Some(to) = &args.to {
        words.extend(["--to".to_owned(), to.clone()]);
    }
    if args.level.is_some() || !location.is_local() {
        words.extend(["--level".to_owned(), level.name().to_owned()]);
    }
    if let Some(key) = &cx.source.key {
        let key = std::path::absolute(key)?;
        words.extend(["--key".to_owned(), key.to_string_lossy().into_owned()]);
    }
    if args.timer {
        let program = std::env::current_exe()?.to_string_lossy().into_owned();
        let push = ["archive", "push", "--quiet"].map(str::to_owned).to_vec();
        return timer::install(cx, &[vec![program], push, words].concat(), args.settings.applies());
    }
    let words: Vec<_> = words.iter().map(|word| shell_word(word)).collect();
    hook_settings::install(cx, &args.settings, HookFeature::ARCHIVE, &words.join(" "))
}

/// Returns the files of the timer that exist.
pub(crate) fn timer_files() -> Vec<PathBuf> {
    timer::installed_files()
}

pub(crate) fn run_uninstall(cx: &Context, args: &UninstallArgs) -> Result<CommandOutcome, CommandError> {
    if args.timer {
        return timer::uninstall(cx, args.settings.applies());
    }
    hook_settings::uninstall(cx, &args.settings, HookFeature::ARCHIVE)
}
