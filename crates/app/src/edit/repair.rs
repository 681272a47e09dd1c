//! Repairs faults of a session and of its sub-agents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use threadline_edit::{ContentDigest, EditDraft, PlanOptions, PlanSeed, PlanTarget, Repair, SideFileOp};
use threadline_entry::{ChunkReader, Code, Finding};
use threadline_session::Session;
use threadline_store::Operation;

use super::side_files::read;
use super::{EditError, EditSession, EditTarget, NothingToDo, PlannedEdit, new_seed};
use crate::check::all_findings;

/// A session with its faults, to be repaired.
///
/// It owns the session with readable lines that the plan borrows.
pub struct RepairableSession {
    source: EditSession,
    repair: Repair,
    agents: Vec<RepairedAgent>,
    target: PlanTarget,
    codes: Vec<String>,
}

impl EditSession {
    /// Finds the faults of the session and of its sub-agents, and how to repair them.
    ///
    /// Consumes the session, since the one with readable lines replaces it: both would need twice the memory.
    ///
    /// # Errors
    ///
    /// [`NothingToDo::NoFaults`] if there are none, and errors of reading sub-agents.
    pub fn find_repairs(mut self, target: EditTarget) -> Result<RepairableSession, EditError> {
        let target = target.plan_target();
        let seed = new_seed(&target);
        let agents = self.agent_logs()?;
        let mut codes = problem_codes(self.findings());
        codes.extend(agents.iter().flat_map(|agent| problem_codes(&agent.findings)));
        if codes.is_empty() {
            return Err(NothingToDo::NoFaults.into());
        }
        codes.sort();
        codes.dedup();
        let (readable, repair) = Repair::start(self.session, &seed);
        self.session = readable;
        let agents = repaired_agents(agents, &seed);
        Ok(RepairableSession { source: self, repair, agents, target, codes })
    }

    fn agent_logs(&self) -> Result<Vec<AgentLog>, EditError> {
        let load = |agent: threadline_store::AgentFile| {
            let log = read(&agent.path)?;
            let mut session = Session::with_id(&self.file.id);
            let mut chunks = ChunkReader::new(&*log);
            while let Some(chunk) = chunks.next()? {
                chunk.parse(|entry, findings| session.push(entry, findings));
            }
            let findings = all_findings(&session);
            Ok(AgentLog { id: agent.id, path: agent.path, read: ContentDigest::of(&log), session, findings })
        };
        self.file.agents().found.into_iter().map(load).collect()
    }
}

impl RepairableSession {
    /// Plans the repair.
    ///
    /// # Errors
    ///
    /// [`NothingToDo::NotRepairable`] if no fault can be repaired, and errors of reading side files.
    pub fn plan(&self) -> Result<PlannedEdit<'_>, EditError> {
        let mut draft = self.repair.draft(&self.source.session);
        if draft.is_untouched() && self.agents.is_empty() {
            return Err(NothingToDo::NotRepairable { codes: self.codes.clone() }.into());
        }
        self.source.copy_side_files(&mut draft, &self.target)?;
        for agent in &self.agents {
            agent.add_to(&mut draft);
        }
        Ok(self.source.plan(Operation::Repair, draft, self.target.clone()))
    }
}

/// The log of a sub-agent.
struct AgentLog {
    id: String,
    path: PathBuf,
    read: ContentDigest,
    session: Session,
    findings: Vec<Finding>,
}

/// The repaired log of a sub-agent.
struct RepairedAgent {
    path: PathBuf,
    read: ContentDigest,
    content: Vec<u8>,
    /// The repairs, and the lines of each.
    repairs: BTreeMap<String, Vec<u64>>,
    findings: Vec<Finding>,
}

/// Repairs the logs of sub-agents that have repairable faults.
fn repaired_agents(agents: Vec<AgentLog>, seed: &PlanSeed) -> Vec<RepairedAgent> {
    let mut repaired = Vec::new();
    for agent in agents.into_iter().filter(|agent| !problem_codes(&agent.findings).is_empty()) {
        let AgentLog { id, path, read, session, mut findings } = agent;
        let seed = PlanSeed { seed: seed.uuid(&id), now: seed.now };
        let (session, repair) = Repair::start(session, &seed);
        let draft = repair.draft(&session);
        if draft.is_untouched() {
            continue;
        }
        let options = PlanOptions { target: PlanTarget::InPlace, seed };
        let plan = draft.plan(options);
        if plan.is_empty() || !plan.refusals().is_empty() {
            continue;
        }
        let mut repairs: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for change in plan.changes() {
            for why in &change.reasons {
                repairs.entry(why.to_string()).or_default().extend(change.line_no);
            }
        }
        findings.retain(|finding| finding.severity.is_problem());
        repaired.push(RepairedAgent { path, read, content: plan.to_bytes(), repairs, findings });
    }
    repaired
}

impl RepairedAgent {
    /// Replaces the copy of the log in a draft, or the log itself.
    fn add_to(&self, draft: &mut EditDraft<'_>) {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        for (why, lines) in &self.repairs {
            let named: Vec<String> = lines.iter().take(4).map(u64::to_string).collect();
            let dots = if lines.len() > named.len() { ", …" } else { "" };
            let word = if lines.len() == 1 { "line" } else { "lines" };
            draft.add_side_note(format!("{name}: {why} ({word} {}{dots})", named.join(", ")));
        }
        for finding in self.findings.clone() {
            let line = finding.at.map(|at| format!(", line {}", at.line_no)).unwrap_or_default();
            draft.finding(Finding {
                at: None,
                message: format!("{name}{line}: {}", finding.message).into(),
                ..finding
            });
        }
        let content = self.content.clone();
        let copy = draft.side_files_mut().iter_mut().find_map(|side| match side {
            SideFileOp::CopyLog { from, to } if *from == self.path => Some((to.clone(), side)),
            _ => None,
        });
        match copy {
            Some((path, side)) => *side = SideFileOp::CreateLog { path, content },
            None => {
                draft.add_side_file(SideFileOp::Change { path: self.path.clone(), read: self.read, content })
            }
        }
    }
}

/// The codes of the findings that are problems, each once.
fn problem_codes(findings: &[Finding]) -> Vec<String> {
    let problems = findings.iter().filter(|finding| finding.severity.is_problem());
    let codes: BTreeSet<Code> = problems.map(|finding| finding.code).collect();
    let mut codes: Vec<String> = codes.iter().map(Code::to_string).collect();
    codes.sort();
    codes
}
