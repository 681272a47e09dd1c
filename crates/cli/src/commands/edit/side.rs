//! The data beside a log: what goes along when a session gets a copy.

use std::io;
use std::path::{Path, PathBuf};

use threadline_edit::{Draft, SideFile};
use threadline_store::SessionFile;

use crate::error::CommandError;

/// Lets everything beside the log go along: sub-agents, tool output that was kept, backups of files.
pub(super) fn copy(file: &SessionFile, id: &str, draft: &mut Draft<'_>) -> Result<(), CommandError> {
    let own = file.path.with_extension("");
    let target = file.path.with_file_name(id);
    for from in files_below(&own)? {
        let Ok(rest) = from.strip_prefix(&own) else { continue };
        let to = target.join(rest);
        draft.side(copied(from, to));
    }
    // Older versions put sub-agents beside the sessions, where two of one name would meet.
    for agent in file.agents().found.into_iter().filter(|agent| !agent.path.starts_with(&own)) {
        let to = target.join("subagents").join(agent.path.file_name().unwrap_or_default());
        let meta = agent.path.with_extension("meta.json");
        if meta.is_file() {
            draft.side(copied(meta, to.with_extension("meta.json")));
        }
        draft.side(copied(agent.path, to));
    }
    if let (Some(home), Some(history)) = (&file.home, file.file_history_dir()) {
        for from in files_below(&history)? {
            let Ok(rest) = from.strip_prefix(&history) else { continue };
            let to = home.file_history_dir(id).join(rest);
            draft.side(SideFile::Copy { from, to });
        }
    }
    Ok(())
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
