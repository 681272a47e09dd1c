use super::args::{TargetArgs, WriteArgs};
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Repair problems found by `check`
///
/// Removes torn lines, splits lines with several objects, adds missing ids, timestamps and parents, removes
/// calls without results, results without calls, empty messages, broken thinking and trailing errors, and
/// links the conversation and the logs of sub-agents into one chain. Each repair is listed with its lines.
/// Problems that need a decision are listed but not repaired: secrets (see `edit redact`), and
/// conversations written by two processes at once (a repaired copy contains the active one).
#[derive(Debug, clap::Args)]
pub(crate) struct RepairArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    #[command(flatten)]
    target: TargetArgs,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &RepairArgs) -> Result<Outcome, CommandError> {
    let session = open(cx, &args.session)?;
    match session.find_repairs(args.target.target()) {
        Ok(repairs) => finish(cx, &args.write, repairs.plan()),
        Err(error) => finish(cx, &args.write, Err(error)),
    }
}
