use threadline_edit::Cut;

use super::job::{Job, WriteArgs, new_session};
use super::side;
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Copy a session, or its beginning, into a new one
///
/// The new session has an id of its own, and so has every line in it; sub-agents, kept tool output and file history
/// come with it; where it is cut, those that belong to what is kept. It holds the active conversation; branches that it left stay behind.
/// Sub-agents that stand inside the log (1.0.x) get logs of their own.
#[derive(Debug, clap::Args)]
pub(crate) struct CloneArgs {
    /// Session id, unique prefix, title, `last`, or path to a log
    session: String,

    /// End with this turn, by its number, or with the line that has this uuid
    #[arg(long, value_name = "TURN|UUID")]
    to: Option<String>,

    /// The title of the new session; by default that of the old one with “(fork)” behind it
    #[arg(long)]
    title: Option<String>,

    #[command(flatten)]
    write: WriteArgs,
}

pub(crate) fn run(cx: &Context, args: &CloneArgs) -> Result<Outcome, CommandError> {
    let mut job = Job::open(cx, &args.session)?;
    let started = if args.to.is_some() { side::spawns(&mut job)? } else { Vec::new() };
    let mut draft = job.draft();
    let to = args.to.as_ref().map(|to| to.parse().map_or_else(|_| Cut::Uuid(to.clone()), Cut::Turn));
    threadline_edit::clone(&mut draft, to.as_ref(), args.title.as_deref()).map_err(|error| {
        CommandError::new(error.to_string()).hint("`threadline show --outline` lists the turns")
    })?;
    let target = new_session();
    job.copy_beside(&mut draft, &target)?;
    if to.is_some() {
        side::leave_behind(&mut draft, &started);
    }
    job.finish(cx, &args.write, "clone", draft, target)
}
