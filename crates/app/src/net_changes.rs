//! Net changes: what a session did to files, as a patch shows it.

use std::collections::{HashMap, HashSet};

use threadline_evidence::CallPlace;
use threadline_session::{AgentIndex, EntryIndex, SessionFamily};
use threadline_view::{FileChange, TurnRange, changes, changes_by};

use crate::config::App;
use crate::load::{MainLines, OpenSession};

impl App {
    /// Returns the net change of each file by a session and its sub-agents, sorted by path, or by the calls of
    /// some turns only.
    pub fn net_changes(&self, loaded: &OpenSession, turns: Option<TurnRange>) -> Vec<FileChange> {
        let family = &loaded.family;
        let evidence = self.file_evidence(&loaded.file, family);
        let Some(turns) = turns else { return changes(&evidence, family) };
        let lines = lines_of_turns(family, turns);
        let is_inside = |call: &CallPlace| lines.contains(&(call.agent, call.entry_idx));
        changes_by(&evidence, family, &is_inside)
    }
}

/// Returns the lines of some turns, with those of the sub-agents that worked in them.
fn lines_of_turns(family: &SessionFamily, range: TurnRange) -> HashSet<(Option<AgentIndex>, EntryIndex)> {
    let turns = family.main.turns();
    let mut numbers: HashMap<EntryIndex, usize> = HashMap::new();
    for turn in &turns {
        numbers.extend(turn.entries.iter().map(|&idx| (idx, turn.number)));
    }
    let main_lines = MainLines::of(family);
    let mut lines = HashSet::new();
    for agent in std::iter::once(None).chain(family.agents.indices().map(Some)) {
        for idx in family.session(agent).entries().indices() {
            let number = main_lines.line(agent, idx).and_then(|line| numbers.get(&line));
            if number.is_some_and(|number| range.contains(*number, turns.len())) {
                lines.insert((agent, idx));
            }
        }
    }
    lines
}
