use std::path::PathBuf;

use threadline_app::edit::MoveOptions;

use super::args::WriteArgs;
use super::finish::{finish, open, warn_if_recreated};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Move a session to another working directory
///
/// For a project that has moved: Claude Code finds a session only from the directory that it was created in.
/// The log and its side files are moved to the folder of the new project, and the lines name the new
/// directory.
#[derive(Debug, clap::Args)]
pub(crate) struct MoveArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Directory of the project now
    #[arg(long, value_name = "DIR")]
    cwd: PathBuf,

    /// Previous directory; by default the one that the session started in
    #[arg(long, value_name = "DIR")]
    from: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &MoveArgs) -> Result<CommandOutcome, CommandError> {
    let session = open(cx, &args.session)?;
    let options = MoveOptions { to: args.cwd.clone(), from: args.from.clone() };
    let outcome = finish(cx, &args.write, session.move_to(&options))?;
    if args.write.apply {
        warn_if_recreated(cx, &session);
    }
    Ok(outcome)
}
