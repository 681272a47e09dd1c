use threadline_app::edit::CloneOptions;
use threadline_edit::Cut;

use super::args::WriteArgs;
use super::finish::{finish, open};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Copy a session, or its first turns, to a new session
///
/// The new session and all its lines get new ids. Sub-agents, stored tool output and file history are
/// copied too; with --to, only those of the copied turns. Abandoned branches are not copied. Sub-agents
/// inside the log (1.0.x) are moved to their own logs.
#[derive(Debug, clap::Args)]
pub(crate) struct CloneArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// Last turn to copy: its number, or the uuid of a line
    #[arg(long, value_name = "TURN|UUID")]
    to: Option<String>,

    /// Title of the new session [default: the old title with “(fork)” appended]
    #[arg(long)]
    title: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &CloneArgs) -> Result<Outcome, CommandError> {
    let mut session = open(cx, &args.session)?;
    let to = args.to.as_ref().map(|to| to.parse().map_or_else(|_| Cut::Uuid(to.clone()), Cut::Turn));
    let options = CloneOptions { to, title: args.title.clone() };
    finish(cx, &args.write, session.clone_to_new(&options))
}
