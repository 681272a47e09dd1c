//! `trace`: sends turns to Langfuse or any OpenTelemetry receiver.

mod config;
pub(crate) mod hook;
pub(crate) mod install;
mod push;
mod status;
mod tree;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Send turns to Langfuse or any OpenTelemetry receiver
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TraceCommand {
    Push(push::PushArgs),
    Hook(hook::HookArgs),
    Status(status::StatusArgs),
    #[command(hide = true)]
    Install(install::InstallArgs),
    #[command(hide = true)]
    Uninstall(install::UninstallArgs),
}

pub(crate) fn run(cx: &Context, command: &TraceCommand) -> Result<CommandOutcome, CommandError> {
    match command {
        TraceCommand::Push(args) => push::run(cx, args),
        TraceCommand::Hook(args) => hook::run(cx, args),
        TraceCommand::Status(args) => status::run(cx, args),
        TraceCommand::Install(args) => install::run(cx, args),
        TraceCommand::Uninstall(args) => install::run_uninstall(cx, args),
    }
}
