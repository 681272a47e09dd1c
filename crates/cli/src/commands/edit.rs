//! `edit`: changes to sessions. Each operation has a file with its arguments; all of them are shown and
//! applied by `finish` and `report`. The operations themselves are in `threadline_app::edit`.

mod args;
mod clone;
mod compress;
mod delete;
mod diff;
mod error;
mod finish;
mod label;
mod redact;
mod relocate;
mod repair;
mod report;
mod strip;

pub(crate) use args::command_line;
pub(crate) use finish::copy_hint;

use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Change sessions: plan an edit, and write it with --apply
///
/// Every edit is a plan first: removed, changed and added lines, and how much smaller the result is. Nothing
/// is written without --apply. Most edits create a new session and do not change the old one; --in-place
/// changes the session itself. `threadline op log` lists applied edits, and `threadline op undo` reverts
/// them.
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

pub(crate) fn run(cx: &Context, command: &EditCommand) -> Result<CommandOutcome, CommandError> {
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
