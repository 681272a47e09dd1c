//! `edit`: changes to sessions. Each operation says what it wants in a file of its own; what they have in common,
//! from finding the session to writing the result, is in `job` and `report`.

mod beside;
mod clone;
mod compress;
mod delete;
mod diff;
mod job;
mod label;
mod redact;
mod relocate;
mod repair;
mod report;
mod side;
mod strip;

pub(crate) use job::{carry_out, op_error};

use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Change sessions: first a plan, and with --apply the change
///
/// Every edit is a plan first: what lines go, change or come, and what that saves. Nothing is written without --apply.
/// Most edits make a new session and leave the old one as it is; --in-place changes the session itself. What was
/// done is kept: `threadline op log` lists it, and `threadline op undo` brings back what was before.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum EditCommand {
    Clone(clone::CloneArgs),
    Compress(compress::CompressArgs),
    Strip(strip::StripArgs),
    Redact(redact::RedactArgs),
    Repair(repair::RepairArgs),
    Title(label::TitleArgs),
    Tag(label::TagArgs),
    Delete(delete::DeleteArgs),
    Move(relocate::MoveArgs),
}

pub(crate) fn run(cx: &Context, command: &EditCommand) -> Result<Outcome, CommandError> {
    match command {
        EditCommand::Clone(args) => clone::run(cx, args),
        EditCommand::Compress(args) => compress::run(cx, args),
        EditCommand::Strip(args) => strip::run(cx, args),
        EditCommand::Redact(args) => redact::run(cx, args),
        EditCommand::Repair(args) => repair::run(cx, args),
        EditCommand::Title(args) => label::run_title(cx, args),
        EditCommand::Tag(args) => label::run_tag(cx, args),
        EditCommand::Delete(args) => delete::run(cx, args),
        EditCommand::Move(args) => relocate::run(cx, args),
    }
}
