//! The data beside a log: what goes along when a session gets a copy.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use threadline_edit::{Draft, Fresh, SideFile, set_agents_apart};
use threadline_entry::Kind;
use threadline_session::{Family, Spawn};
use threadline_store::{AgentFile, SessionFile, SessionId};

use super::beside::is_file;
use super::job::Job;
use crate::error::CommandError;

/// Lets everything beside the log go along: sub-agents, tool output that was kept, backups of files.
pub(super) fn copy(file: &SessionFile, id: &str, draft: &mut Draft<'_>) -> Result<(), CommandError> {
    let Some(id) = SessionId::new(id) else {
        return Err(CommandError::new(format!("`{id}` is no id of a session")));
    };
    let own = file.side_dir();
    let target = id.dir_in(file.path.parent().unwrap_or(Path::new("")));
    set_agents_apart(draft, &target.join("subagents"), &Fresh { seed: id.to_string(), now: 0 });
    if let Some(own) = &own {
        for from in files_below(own)? {
            let Ok(rest) = from.strip_prefix(own) else { continue };
            let to = target.join(rest);
            draft.side(copied(from, to));
        }
    }
    // Older versions put sub-agents beside the sessions, where two of one name would meet.
    let is_own = |agent: &AgentFile| own.as_ref().is_some_and(|own| agent.path.starts_with(own));
    for agent in file.agents().found.into_iter().filter(|agent| !is_own(agent)) {
        let to = target.join("subagents").join(agent.path.file_name().unwrap_or_default());
        let meta = agent.path.with_extension("meta.json");
        if is_file(&meta) {
            draft.side(copied(meta, to.with_extension("meta.json")));
        }
        draft.side(copied(agent.path, to));
    }
    if let (Some(home), Some(history)) = (&file.home, file.file_history_dir()) {
        for from in files_below(&history)? {
            let Ok(rest) = from.strip_prefix(&history) else { continue };
            let to = home.file_history_dir(&id).join(rest);
            draft.side(SideFile::Copy { from, to });
        }
    }
    Ok(())
}

/// What started each sub-agent of a session that has a log of its own, by the log.
pub(super) fn spawns(job: &mut Job) -> Result<Vec<Started>, CommandError> {
    let files = job.file.agents().found;
    let agents = threadline_app::read_agents(&job.file)?;
    let times: Vec<_> = agents
        .iter()
        .map(|agent| (0..agent.session.entries().len()).find_map(|idx| agent.session.timestamp(idx)))
        .collect();
    let family = Family::new(std::mem::take(&mut job.session), agents);
    let spawns = family.agents.iter().map(|agent| agent.spawn.clone());
    let started = files.into_iter().zip(spawns).zip(times);
    let started = started.map(|((file, spawn), at)| Started { log: file.path, spawn, at }).collect();
    job.session = family.main;
    Ok(started)
}

/// A sub-agent's log, and what is known of its beginning.
pub(super) struct Started {
    log: PathBuf,
    spawn: Option<Spawn>,
    at: Option<i64>,
}

/// Leaves behind what came after the cut: sub-agents that were started later, output and backups that no line names any more.
pub(super) fn leave_behind(draft: &mut Draft<'_>, started: &[Started]) {
    let session = draft.session();
    let stays: Vec<usize> = (0..session.entries().len()).filter(|&idx| !draft.goes(idx)).collect();
    let end = stays.iter().filter_map(|&idx| session.timestamp(idx)).max();
    // A nested agent goes with the one that started it.
    let is_kept = |mut agent: usize| {
        for _ in 0..started.len() {
            match &started[agent].spawn {
                Some(Spawn { agent: Some(above), .. }) if *above < started.len() => agent = *above,
                Some(Spawn { agent: None, tool_use_id }) => {
                    let call = session.tool_call(tool_use_id);
                    return call.is_some_and(|call| call.lines().any(|idx| !draft.goes(idx)));
                }
                _ => return started[agent].at <= end,
            }
        }
        true
    };
    let gone: HashSet<&Path> =
        (0..started.len()).filter(|&agent| !is_kept(agent)).map(|agent| &*started[agent].log).collect();
    let meta_of = |path: &Path| {
        path.to_str()
            .and_then(|path| path.strip_suffix(".meta.json"))
            .map(|stem| PathBuf::from(format!("{stem}.jsonl")))
    };
    let is_named = |name: &str| {
        stays.iter().any(|&idx| {
            let entry = &session.entries()[idx];
            let may = matches!(entry.kind(), Kind::FileHistorySnapshot | Kind::FileHistoryDelta)
                || entry.text().contains("tool-results");
            may && entry.text().contains(name)
        })
    };
    let stays_along = |side: &SideFile| match side {
        SideFile::Copy { from, .. } | SideFile::CopyLog { from, .. } => {
            let log = meta_of(from).unwrap_or_else(|| from.clone());
            let is_agent = started.iter().any(|agent| agent.log == log);
            if is_agent {
                !gone.contains(&*log)
            } else {
                from.file_name().and_then(|name| name.to_str()).is_none_or(is_named)
            }
        }
        _ => true,
    };
    let kept: Vec<bool> = draft.sides().iter().map(stays_along).collect();
    let mut kept = kept.into_iter();
    draft.sides_mut().retain(|_| kept.next().unwrap_or(true));
}

/// A copy; what holds ids gets those of the new session.
fn copied(from: PathBuf, to: PathBuf) -> SideFile {
    let has_ids = from.extension().is_some_and(|extension| extension == "jsonl" || extension == "json");
    if has_ids { SideFile::CopyLog { from, to } } else { SideFile::Copy { from, to } }
}

/// Every file below a folder, in order; none if there is no such folder. Links are not followed.
pub(super) fn files_below(dir: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries = match std::fs::read_dir(&dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries
                .map_err(|error| CommandError::new(format!("cannot read {}: {error}", dir.display())))?,
        };
        for entry in entries {
            let entry = entry?;
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
