//! Extracts sub-agents that are stored inside the session's log, as written by 1.0.x, into separate logs,
//! as written by later versions.

use std::path::Path;

use threadline_session::EntryIndex;

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
    for lines in session.inline_agents() {
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
            let above = session.ancestors(idx).skip(1).find(|above| kept.binary_search(above).is_ok());
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
