//! Sub-agents that stand inside a session's own log, as 1.0.x wrote them: beside a new session they get logs of their own, as later
//! versions write them.

use std::path::Path;

use crate::draft::{Draft, SideFile};
use crate::fresh::Fresh;
use crate::splice::{self, Splice, quote, set};

/// Gives the sub-agents that stand inside the log logs of their own, in `folder`. Lines that go are left out.
///
/// To be called once everything else is said, for what the lines hold then is what comes to stand there.
pub fn set_agents_apart(draft: &mut Draft<'_>, folder: &Path, fresh: &Fresh) {
    let session = draft.session;
    for lines in session.inline_agents() {
        let first = session.entries()[lines[0]].uuid().unwrap_or_default();
        let id = fresh.uuid(&format!("agent {first}"))[..8].to_owned();
        let kept: Vec<usize> = lines.into_iter().filter(|&idx| !draft.goes(idx)).collect();
        if kept.is_empty() {
            continue;
        }
        let mut content = Vec::new();
        for &idx in &kept {
            let entry = draft.entry(idx);
            let mut splices: Vec<Splice> = set(&entry, "agentId", &quote(&id)).into_iter().collect();
            let above = session.ancestors(idx).skip(1).find(|above| kept.binary_search(above).is_ok());
            let parent = above.and_then(|above| session.entries()[above].uuid());
            if entry.parent_uuid() != parent {
                let parent = parent.map_or_else(|| "null".to_owned(), |parent| quote(&parent));
                splices.extend(set(&entry, "parentUuid", &parent));
            }
            content.extend(splice::apply(entry.text(), &mut splices).bytes());
            content.push(b'\n');
        }
        draft.agents_apart = true;
        draft.side(SideFile::MakeLog { path: folder.join(format!("agent-{id}.jsonl")), content });
    }
}
