use threadline_edit::{Fresh, Repair, Target};
use threadline_entry::Severity;
use threadline_session::Session;

use super::job::{Job, TargetArgs, WriteArgs};
use crate::context::Context;
use crate::error::{CommandError, Outcome};

/// Mend what `check` finds
///
/// Torn lines are set aside, glued ones set apart; lines without an id, a time or a parent get one; calls without results, results without
/// calls, empty messages, broken thinking and errors at the end go; the conversation becomes one straight chain. Each repair is named, with its lines. What only you
/// can decide stays, and is told: secrets (`edit redact`), conversations that two processes wrote at the same time (a repaired copy has the active one).
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
    let job = Job::open(cx, &args.session)?;
    let target = args.target.target();
    let seed = match &target {
        Target::New(id) => id.clone(),
        Target::InPlace | Target::AsItStands => uuid::Uuid::new_v4().to_string(),
    };
    let fresh = Fresh { seed, now: jiff::Timestamp::now().as_millisecond() };
    let repair = Repair::new(&job.session, &fresh);
    let draft = repair.draft();
    if draft.is_untouched() {
        let left = faults(&job.session);
        cx.ui.note(&match left.len() {
            0 => "there is nothing to mend".to_owned(),
            _ => format!("nothing here can be mended: {}", left.join(", ")),
        });
        return Ok(Outcome::No);
    }
    job.finish(cx, &args.write, "repair", draft, target)
}

/// The faults of a session by their codes, each once.
fn faults(session: &Session) -> Vec<String> {
    let findings = session.findings().into_iter().filter(|finding| finding.severity > Severity::Note);
    let mut codes: Vec<String> = findings.map(|finding| finding.code.to_string()).collect();
    codes.sort();
    codes.dedup();
    codes
}
