//! Counts of everything in logs, with the figures of their sessions.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use threadline_store::{SessionFile, agent_id};
use threadline_view::{Inventory, SessionCounts};

use crate::error::AppError;
use crate::load::{OpenSession, load_unpriced, read_session};

/// The counts of one log.
#[derive(Debug)]
pub struct InspectedLog {
    /// The name of the file, without its extension.
    pub name: String,
    /// The counts.
    pub inventory: Inventory,
    /// Sub-agents of the session that could not be read.
    pub unread: Vec<AppError>,
}

/// Returns those of some logs that belong to sub-agents of others. Their calls count for the session.
pub fn logs_of_agents(logs: &[PathBuf]) -> HashSet<PathBuf> {
    let sessions = logs.par_iter().filter(|path| agent_id(path).is_none());
    let agents = sessions.flat_map_iter(|path| SessionFile::at(path).agents().found);
    agents.map(|agent| agent.path).collect()
}

/// Counts a log. With `of_agent`, it belongs to a session that is counted as well, and has no figures of a
/// session.
///
/// # Errors
///
/// If the log cannot be read.
pub fn inspect_log(path: &Path, of_agent: bool) -> Result<InspectedLog, AppError> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let size = std::fs::metadata(path).map_err(AppError::read(path))?.len();
    if of_agent {
        let inventory = Inventory::of(&read_session(path, &name)?, size);
        return Ok(InspectedLog { name, inventory, unread: Vec::new() });
    }
    let OpenSession { family, unread, .. } = load_unpriced(&SessionFile::at(path))?;
    let session = Some(SessionCounts::of(&family));
    let inventory = Inventory { session, ..Inventory::of(&family.main, size) };
    Ok(InspectedLog { name, inventory, unread })
}
