use threadline_app::edit::CloneOptions;
use threadline_edit::CutPoint;

use super::args::WriteArgs;
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, CommandOutcome};

/// Copy a session, or its first turns, to a new session
///
/// The copy has new ids, the active conversation without abandoned branches, and copies of sub-agents, stored
/// tool output and file history. With --to, it has only those that the remaining turns use. Sub-agents inside
/// the log (1.0.x) get logs of their own. The copy of a log outside of a home, such as one from another
/// person, is written into the first home, where Claude Code finds it.
#[derive(Debug, clap::Args)]
pub(crate) struct CloneArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Last turn of the copy, by its number, or last line, by its uuid
    #[arg(long, value_name = "TURN|UUID")]
    to: Option<String>,

    /// Title of the new session; by default that of the old one followed by “(fork)”
    #[arg(long)]
    title: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &CloneArgs) -> Result<CommandOutcome, CommandError> {
    let mut session = open(cx, &args.session)?;
    let to =
        args.to.as_ref().map(|to| to.parse().map_or_else(|_| CutPoint::Uuid(to.clone()), CutPoint::Turn));
    let home = cx.store().homes().first().cloned();
    let options = CloneOptions { to, title: args.title.clone(), home };
    finish(cx, &args.write, session.clone_to_new(&options))
}
