//! The files that belong to a session besides its log: sub-agents, stored tool output, backups of files.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use threadline_edit::{EditDraft, PlanSeed, PlanTarget, SideFileOp, extract_inline_agents};
use threadline_entry::Kind;
use threadline_session::{AgentIndex, EntryIndex, IndexVec, SessionFamily, Spawn};
use threadline_store::{AgentFile, SessionFile, SessionId, is_private_name};

use super::{EditError, EditSession};
use crate::error::AppError;
use crate::load::read_agents;

impl EditSession {
    /// Adds copies of all side files to the draft of a new session. An edit in place needs none.
    pub(super) fn copy_side_files(
        &self,
        draft: &mut EditDraft<'_>,
        target: &PlanTarget,
    ) -> Result<(), AppError> {
        match target {
            PlanTarget::New(id) => {
                self.copy_side_files_to(draft, id, self.file.path.parent().unwrap_or(Path::new("")))
            }
            PlanTarget::InPlace | PlanTarget::KeepOrder => Ok(()),
        }
    }

    /// Adds copies of all side files to the draft of a new session with this id, whose log is in `folder`.
    pub(super) fn copy_side_files_to(
        &self,
        draft: &mut EditDraft<'_>,
        id: &str,
        folder: &Path,
    ) -> Result<(), AppError> {
        copy(&self.file, id, folder, draft)
    }

    /// Returns the start of each sub-agent that has a separate log.
    pub(super) fn agent_starts(&mut self) -> Result<IndexVec<AgentIndex, AgentStart>, AppError> {
        let files = self.file.agents().found;
        let agents = read_agents(&self.file)?;
        let times: Vec<_> = agents
            .iter()
            .map(|agent| agent.session.entries().indices().find_map(|idx| agent.session.timestamp(idx)))
            .collect();
        let family = SessionFamily::new(std::mem::take(&mut self.session), agents);
        let spawns = family.agents.iter().map(|agent| agent.spawn.clone());
        let starts = files.into_iter().zip(spawns).zip(times);
        let starts = starts.map(|((file, spawn), time)| AgentStart { log: file.path, spawn, time }).collect();
        self.session = family.main;
        Ok(starts)
    }
}

fn copy(file: &SessionFile, id: &str, folder: &Path, draft: &mut EditDraft<'_>) -> Result<(), AppError> {
    let Some(id) = SessionId::new(id) else {
        return Err(AppError::NoSession { id: id.to_owned() });
    };
    let own = file.side_dir();
    let target = id.dir_in(folder);
    extract_inline_agents(draft, &target.join("subagents"), &PlanSeed { seed: id.to_string(), now: 0 });
    if let Some(own) = &own {
        for from in files_below(own)? {
            let Ok(rest) = from.strip_prefix(own) else { continue };
            let to = target.join(rest);
            draft.add_side_file(side_copy(from, to));
        }
    }
    // Older versions put sub-agents into the folder of the sessions, where a copy would have the same name.
    let is_own = |agent: &AgentFile| own.as_ref().is_some_and(|own| agent.path.starts_with(own));
    for agent in file.agents().found.into_iter().filter(|agent| !is_own(agent)) {
        let to = target.join("subagents").join(agent.path.file_name().unwrap_or_default());
        let meta = meta_file(&agent.path);
        if is_file(&meta) {
            draft.add_side_file(side_copy(meta, meta_file(&to)));
        }
        draft.add_side_file(side_copy(agent.path, to));
    }
    if let (Some(home), Some(history)) = (&file.home, file.file_history_dir()) {
        for from in files_below(&history)? {
            let Ok(rest) = from.strip_prefix(&history) else { continue };
            let to = home.file_history_dir(&id).join(rest);
            draft.add_side_file(SideFileOp::Copy { from, to });
        }
    }
    Ok(())
}

/// The start of a sub-agent that has a separate log.
pub(super) struct AgentStart {
    log: PathBuf,
    /// The tool call that started it, if that is known.
    spawn: Option<Spawn>,
    /// The time of its first line.
    time: Option<i64>,
}

/// Drops the copies of side files that belong only to removed lines: sub-agents that were started later, and
/// output and backups that no remaining line names.
pub(super) fn drop_unreferenced_copies(draft: &mut EditDraft<'_>, agents: &IndexVec<AgentIndex, AgentStart>) {
    let session = draft.session();
    let remaining: Vec<EntryIndex> =
        session.entries().indices().filter(|&idx| !draft.is_removed(idx)).collect();
    let end = remaining.iter().filter_map(|&idx| session.timestamp(idx)).max();
    let kept = kept_agents(draft, agents, end);
    let is_kept_log: HashMap<&Path, bool> =
        agents.indices().map(|agent| (&*agents[agent].log, kept[agent])).collect();
    let log_of_meta = |path: &Path| {
        path.to_str()
            .and_then(|path| path.strip_suffix(".meta.json"))
            .map(|stem| PathBuf::from(format!("{stem}.jsonl")))
    };
    let name_of = |path: &Path| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let copied = draft.side_files().iter().filter_map(|side| match side {
        SideFileOp::Copy { from, .. } | SideFileOp::CopyLog { from, .. } => name_of(from),
        _ => None,
    });
    let texts = remaining.iter().filter_map(|&idx| {
        let entry = &session.entries()[idx];
        let may_name = matches!(entry.kind(), Kind::FileHistorySnapshot | Kind::FileHistoryDelta)
            || entry.text().contains("tool-results");
        may_name.then(|| entry.text())
    });
    let named = contained_names(copied.collect(), texts);
    let is_needed = |side: &SideFileOp| match side {
        SideFileOp::Copy { from, .. } | SideFileOp::CopyLog { from, .. } => {
            let log = log_of_meta(from).unwrap_or_else(|| from.clone());
            let is_kept = is_kept_log.get(&*log).copied();
            is_kept.unwrap_or_else(|| name_of(from).is_none_or(|name| named.contains(&name)))
        }
        _ => true,
    };
    let needed: Vec<bool> = draft.side_files().iter().map(is_needed).collect();
    let mut needed = needed.into_iter();
    draft.side_files_mut().retain(|_| needed.next().unwrap_or(true));
}

/// Returns whether each sub-agent is kept: a nested one with the one that started it, another one with its
/// call or, if that is unknown, if it started until `end`.
fn kept_agents(
    draft: &EditDraft<'_>,
    agents: &IndexVec<AgentIndex, AgentStart>,
    end: Option<i64>,
) -> IndexVec<AgentIndex, bool> {
    let session = draft.session();
    let mut kept: IndexVec<AgentIndex, Option<bool>> = IndexVec::filled(None, agents.len());
    let mut kept_calls: HashMap<&str, bool> = HashMap::new();
    for start in agents.indices() {
        let (mut agent, mut nested) = (start, Vec::new());
        // Agents that start each other in a circle are kept.
        let mut is_kept = true;
        while nested.len() < agents.len() {
            nested.push(agent);
            match (&agents[agent].spawn, kept[agent]) {
                (_, Some(known)) => is_kept = known,
                (Some(Spawn { agent: Some(parent), .. }), _) if *parent < agents.end() => {
                    agent = *parent;
                    continue;
                }
                (Some(Spawn { agent: None, tool_use_id }), _) => {
                    is_kept = *kept_calls.entry(&**tool_use_id).or_insert_with(|| {
                        let call = session.tool_call(tool_use_id);
                        call.is_some_and(|call| call.lines.iter().any(|&idx| !draft.is_removed(idx)))
                    });
                }
                _ => is_kept = agents[agent].time <= end,
            }
            break;
        }
        nested.into_iter().for_each(|agent| kept[agent] = Some(is_kept));
    }
    kept.into_iter().map(|kept| kept == Some(true)).collect()
}

/// Returns the names that one of the texts contains; all of them if they are too many to be searched for.
fn contained_names<'t>(names: HashSet<String>, texts: impl Iterator<Item = &'t str>) -> HashSet<String> {
    let names: Vec<String> = names.into_iter().collect();
    let Ok(automaton) = AhoCorasick::new(&names) else { return names.into_iter().collect() };
    let mut is_contained = vec![false; names.len()];
    for found in texts.flat_map(|text| automaton.find_overlapping_iter(text)) {
        is_contained[found.pattern()] = true;
    }
    names
        .into_iter()
        .zip(is_contained)
        .filter_map(|(name, is_contained)| is_contained.then_some(name))
        .collect()
}

/// A copy of a side file. Logs and JSON get the ids of the new session.
fn side_copy(from: PathBuf, to: PathBuf) -> SideFileOp {
    if has_json_lines(&from) { SideFileOp::CopyLog { from, to } } else { SideFileOp::Copy { from, to } }
}

/// Returns the side files of a session, in order. The file history comes last.
pub(super) fn own_files(file: &SessionFile) -> Result<Vec<PathBuf>, AppError> {
    let mut files = file.side_dir().map_or_else(|| Ok(Vec::new()), |dir| files_below(&dir))?;
    // Older versions put sub-agents into the folder of the sessions.
    let known: HashSet<PathBuf> = files.iter().cloned().collect();
    for agent in file.agents().found {
        if !known.contains(&agent.path) {
            let meta = meta_file(&agent.path);
            files.extend(is_file(&meta).then_some(meta));
            files.push(agent.path);
        }
    }
    if let Some(history) = file.file_history_dir() {
        files.extend(files_below(&history)?);
    }
    Ok(files)
}

/// Returns the files of the home that have content of every session: prompts, and texts pasted into them.
pub(super) fn shared_files(file: &SessionFile) -> Result<Vec<PathBuf>, AppError> {
    let Some(home) = &file.home else { return Ok(Vec::new()) };
    let mut found = files_below(&home.root().join("paste-cache"))?;
    found.extend(Some(home.history_file()).filter(|path| is_file(path)));
    Ok(found)
}

/// Returns every file below a folder, in order; none if the folder does not exist. Links are not followed,
/// and private files of operations are left out.
pub(super) fn files_below(dir: &Path) -> Result<Vec<PathBuf>, AppError> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries.map_err(AppError::read(&dir))?,
        };
        for entry in entries {
            let entry = entry?;
            if is_private_name(&entry.file_name()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a side file.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, EditError> {
    Ok(threadline_store::read_regular(path).map_err(AppError::read(path))?)
}

/// Whether this is a regular file. A link is not: its target may belong to something else.
pub(super) fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Whether a file contains lines of JSON.
pub(super) fn has_json_lines(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json")
}

/// The file with the metadata of a sub-agent's log.
fn meta_file(log: &Path) -> PathBuf {
    log.with_extension("meta.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_one_pass() {
        let names = ["a.txt", "aa.txt", "b", "none"].map(str::to_owned);
        let found = contained_names(HashSet::from(names), ["x/aa.txt", "b"].into_iter());
        assert_eq!(found, HashSet::from(["a.txt", "aa.txt", "b"].map(str::to_owned)));
        // Searched for one by one, they would be compared with the text 20,000 times.
        let names: HashSet<String> = (0..20_000).map(|i| format!("toolu_{i:05}.txt")).collect();
        let text: String = names.iter().map(String::as_str).collect();
        assert_eq!(contained_names(names.clone(), std::iter::once(&*text)), names);
    }

    #[test]
    fn a_nested_agent_is_kept_with_the_one_that_started_it() {
        let session = threadline_session::Session::default();
        let draft = EditDraft::new(&session);
        let agents = |n: usize, first: Option<AgentIndex>| -> IndexVec<AgentIndex, AgentStart> {
            let spawn = |agent| Spawn { agent: Some(agent), tool_use_id: "t".into() };
            let parent = |i: usize| if i == 0 { first } else { Some(AgentIndex::from_position(i - 1)) };
            let start = |i| AgentStart { log: PathBuf::new(), spawn: parent(i).map(spawn), time: Some(1) };
            (0..n).map(start).collect()
        };
        let all = |agents: &_, end| {
            let kept = kept_agents(&draft, agents, end);
            (kept.iter().any(|kept| *kept), kept.iter().all(|kept| *kept))
        };
        assert_eq!(all(&agents(50_000, None), Some(0)), (false, false));
        assert_eq!(all(&agents(50_000, None), Some(1)), (true, true));
        assert_eq!(all(&agents(50_000, Some(AgentIndex::from_position(49_999))), Some(0)), (true, true));
    }
}
