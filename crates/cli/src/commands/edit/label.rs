use super::args::WriteArgs;
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Set the title of a session
///
/// Adds a line to the session itself; of several titles the last one counts. For a new session with a title,
/// see `edit clone --title`.
#[derive(Debug, clap::Args)]
pub(crate) struct TitleArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,
    /// New title
    title: String,
    #[command(flatten)]
    write: WriteArgs,
}

/// Set the tag of a session
///
/// Appends a line to the log; the last tag counts. `threadline tag` keeps tags outside the log.
#[derive(Debug, clap::Args)]
pub(crate) struct TagArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,
    /// New tag
    tag: String,
    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run_title(cx: &Context, args: &TitleArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    finish(cx, &args.write, Ok(session.set_title(&args.title)))
}

pub(crate) fn run_tag(cx: &Context, args: &TagArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    finish(cx, &args.write, Ok(session.set_tag(&args.tag)))
}
