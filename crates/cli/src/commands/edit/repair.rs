use std::collections::BTreeMap;
use std::path::PathBuf;

use threadline_edit::{Digest, Draft, Fresh, Repair, Shape, SideFile, Target};
use threadline_entry::{Finding, Lines, Severity, parse_line};
use threadline_session::Session;
use threadline_store::Operation;

use super::job::{Job, TargetArgs, WriteArgs};
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
    let job = Job::open(cx, &args.session)?;
    let target = args.target.target();
    let seed = match &target {
        Target::New(id) => id.clone(),
        Target::InPlace | Target::AsItStands => uuid::Uuid::new_v4().to_string(),
    };
    let fresh = Fresh { seed, now: jiff::Timestamp::now().as_millisecond() };
    let agents = load_agents(&job)?;
    let mut left = faults(&job.session);
    left.extend(agents.iter().flat_map(|agent| faults(&agent.session)));
    if left.is_empty() {
        cx.ui.note("there is nothing to mend");
        return Ok(Outcome::No);
    }
    let repair = Repair::new(&job.session, &fresh);
    let mut draft = repair.draft();
    let agents = repaired_agents(&agents, &fresh);
    if draft.is_untouched() && agents.is_empty() {
        left.sort();
        left.dedup();
        cx.ui.note(&format!("nothing here can be mended: {}", left.join(", ")));
        return Ok(Outcome::No);
    }
    job.copy_beside(&mut draft, &target)?;
    for agent in agents {
        agent.into_draft(&mut draft);
    }
    job.finish(cx, &args.write, Operation::Repair, draft, target)
}

/// A sub-agent's log that was mended.
struct MendedAgent {
    path: PathBuf,
    read: Digest,
    content: Vec<u8>,
    /// What was done, and to which lines.
    repairs: BTreeMap<String, Vec<u64>>,
    findings: Vec<Finding>,
}

/// A sub-agent's log.
struct AgentLog {
    id: String,
    path: PathBuf,
    read: Digest,
    session: Session,
}

fn load_agents(job: &Job) -> Result<Vec<AgentLog>, CommandError> {
    let load = |agent: threadline_store::AgentFile| {
        let log = threadline_store::read_regular(&agent.path)
            .map_err(|error| CommandError::new(format!("cannot read {}: {error}", agent.path.display())))?;
        let mut session = Session::with_id(&job.file.id);
        let mut lines = Lines::new(&*log);
        while let Some(line) = lines.next()? {
            parse_line(&line, |entry, findings| session.push(entry, findings));
        }
        Ok(AgentLog { id: agent.id, path: agent.path, read: Digest::of(&log), session })
    };
    job.file.agents().found.into_iter().map(load).collect()
}

/// The logs of sub-agents that have faults which can be mended.
fn repaired_agents(agents: &[AgentLog], fresh: &Fresh) -> Vec<MendedAgent> {
    let mut mended = Vec::new();
    for agent in agents.iter().filter(|agent| !faults(&agent.session).is_empty()) {
        let AgentLog { id, path, read, session } = agent;
        let fresh = Fresh { seed: fresh.uuid(id), now: fresh.now };
        let repair = Repair::new(session, &fresh);
        let draft = repair.draft();
        if draft.is_untouched() {
            continue;
        }
        let plan = draft.plan(Shape { operation: "repair", target: Target::InPlace, fresh });
        if plan.is_empty() || !plan.refusals().is_empty() {
            continue;
        }
        let mut repairs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for change in plan.changes() {
            for why in &change.why {
                repairs.entry(why.to_string()).or_default().extend(change.line_no);
            }
        }
        let findings = session.findings().into_iter().filter(|finding| finding.severity > Severity::Note);
        mended.push(MendedAgent {
            path: path.clone(),
            read: *read,
            content: plan.to_bytes(),
            repairs,
            findings: findings.collect(),
        });
    }
    mended
}

impl MendedAgent {
    /// Puts the mended log in the place of the copy that would go along, or of the log itself.
    fn into_draft(self, draft: &mut Draft<'_>) {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        for (why, lines) in &self.repairs {
            let shown: Vec<String> = lines.iter().take(4).map(u64::to_string).collect();
            let dots = if lines.len() > shown.len() { ", …" } else { "" };
            let word = if lines.len() == 1 { "line" } else { "lines" };
            draft.note_beside(format!("{name}: {why} ({word} {}{dots})", shown.join(", ")));
        }
        for finding in self.findings {
            let line = finding.at.map(|at| format!(", line {}", at.line_no)).unwrap_or_default();
            draft.finding(Finding {
                at: None,
                message: format!("{name}{line}: {}", finding.message).into(),
                ..finding
            });
        }
        let copy = draft.sides_mut().iter_mut().find_map(|side| match side {
            SideFile::CopyLog { from, to } if *from == self.path => Some((to.clone(), side)),
            _ => None,
        });
        match copy {
            Some((path, side)) => *side = SideFile::MakeLog { path, content: self.content },
            None => {
                draft.side(SideFile::Change { path: self.path, read: self.read, content: self.content });
            }
        }
    }
}

/// The faults of a session by their codes, each once.
fn faults(session: &Session) -> Vec<String> {
    let findings = session.findings().into_iter().filter(|finding| finding.severity > Severity::Note);
    let mut codes: Vec<String> = findings.map(|finding| finding.code.to_string()).collect();
    codes.sort();
    codes.dedup();
    codes
}
