use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Repair the faults that `check` finds
///
/// Removes torn lines, and splits lines that run together. Lines without an id, a time or a parent get one.
/// Calls without results, results without calls, empty messages, broken thinking and errors at the end are
/// removed. Other lines that can be read stay, whatever their form. The conversation, and that of every
/// sub-agent, becomes one straight chain. Each repair is listed with its lines.
///
/// Faults that need a decision are listed and not repaired: secrets (see `edit redact`), and conversations
/// that two processes wrote at the same time (a repaired copy has the active one).
#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &RepairArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    match session.find_repairs(args.target.target()) {
        Ok(repairs) => finish(cx, &args.write, repairs.plan()),
        Err(error) => finish(cx, &args.write, Err(error)),
    }
}
