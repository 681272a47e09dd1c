//! Extracts sub-agents that are stored inside the session's log, as written by 1.0.x, into separate logs,
//! as written by later versions.

use std::path::Path;

use threadline_session::{EntryIndex, IndexVec};

use crate::ancestor_search::AncestorSearch;
use crate::draft::{EditDraft, SideFileOp};
use crate::seed::PlanSeed;
use crate::splice::{self, Splice, quote, set};
use threadline_entry::key;

/// Moves the sub-agents inside the log to separate logs in `folder`. Lines that are to be removed are
/// skipped.
///
/// Call it after all other changes to the draft, because it copies the lines as they are drafted at that
/// time.
pub fn extract_inline_agents(draft: &mut EditDraft<'_>, folder: &Path, seed: &PlanSeed) {
    let session = draft.session;
    let agents = session.inline_agents();
    if agents.is_empty() {
        return;
    }
    let mut agent_of = IndexVec::filled(None, session.entries().len());
    for (agent, lines) in agents.iter().enumerate() {
        lines.iter().for_each(|&idx| agent_of[idx] = Some(agent as u32));
    }
    let mut search = AncestorSearch::new(session);
    for lines in agents {
        let first = session.entries()[lines[0]].uuid().unwrap_or_default();
        let id = seed.uuid(&format!("agent {first}"))[..8].to_owned();
        let kept: Vec<EntryIndex> = lines.into_iter().filter(|&idx| !draft.is_removed(idx)).collect();
        if kept.is_empty() {
            continue;
        }
        let mut content = Vec::new();
        for &idx in &kept {
            let entry = draft.entry(idx);
            let mut splices: Vec<Splice> = set(&entry, key::AGENT_ID, &quote(&id)).into_iter().collect();
            // If the nearest line of any sub-agent is of another one, there is none of this one above it.
            let is_kept = |above: EntryIndex| agent_of[above].is_some() && !draft.is_removed(above);
            let above = session.ancestors(idx).nth(1).and_then(|above| search.nearest(above, is_kept));
            let above = above.filter(|&above| agent_of[above] == agent_of[idx]);
            let parent = above.and_then(|above| session.entries()[above].uuid());
            if entry.parent_uuid() != parent {
                let parent = parent.map_or_else(|| "null".to_owned(), |parent| quote(&parent));
                splices.extend(set(&entry, key::PARENT_UUID, &parent));
            }
            content.extend(splice::apply(entry.text(), &mut splices).bytes());
            content.push(b'\n');
        }
        draft.extracts_agents = true;
        draft
            .add_side_file(SideFileOp::CreateLog { path: folder.join(format!("agent-{id}.jsonl")), content });
    }
}
