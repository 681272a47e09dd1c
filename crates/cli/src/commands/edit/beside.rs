//! Files beside a log that may repeat its content: sub-agents, kept output, backups of files, and
//! what the home keeps of every session.

use std::path::{Path, PathBuf};

use threadline_store::SessionFile;

use super::side::files_below;
use crate::error::CommandError;

/// The files that belong to a session, but for the log itself.
pub(super) fn own(file: &SessionFile) -> Result<Vec<PathBuf>, CommandError> {
    let mut found = file.side_dir().map_or_else(|| Ok(Vec::new()), |dir| files_below(&dir))?;
    if let Some(history) = file.file_history_dir() {
        found.extend(files_below(&history)?);
    }
    // Older versions put sub-agents beside the log.
    for agent in file.agents().found {
        found.extend(
            [agent.path.with_extension("meta.json"), agent.path].into_iter().filter(|path| is_file(path)),
        );
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// The files of the home that hold something of every session: prompts, and what was pasted into them.
pub(super) fn shared(file: &SessionFile) -> Result<Vec<PathBuf>, CommandError> {
    let Some(home) = &file.home else { return Ok(Vec::new()) };
    let mut found = files_below(&home.root().join("paste-cache"))?;
    found.extend(Some(home.history_file()).filter(|path| is_file(path)));
    Ok(found)
}

/// Whether this is a regular file. A link is none: what it leads to need not be the session's.
pub(super) fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Whether a file holds lines of JSON.
pub(super) fn is_log(path: &Path) -> bool {
    path.extension().is_some_and(|ext| ext == "jsonl" || ext == "json")
}
