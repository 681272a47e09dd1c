//! Compares a home with its archived copy.

use std::collections::{BTreeMap, BTreeSet};

use threadline_entry::{Entry, LineReader};
use threadline_store::{Home, HomeFile, Store, read_regular, session_of_file};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::manifest::{Manifest, Origin, read_manifest};
use crate::push::{raw_stamp, session_of};

/// The state of the sessions of a home.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HomeStatus {
    /// Sessions that are archived as they are.
    pub archived: Vec<LocalSession>,
    /// Sessions that have changed since they were archived, or may have.
    pub changed: Vec<LocalSession>,
    /// Sessions that are not archived.
    pub missing: Vec<LocalSession>,
    /// Sessions that exist in the archive only: their logs were deleted.
    pub archive_only: Vec<String>,
    /// Sessions that exist neither here nor in the archive, but whose prompts are in the history: the id and
    /// the number of prompts.
    pub prompts_only: Vec<(String, usize)>,
}

/// A session of a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalSession {
    /// The id.
    pub id: String,
    /// When its log was last modified.
    pub modified: std::time::SystemTime,
    /// The size of its files in bytes.
    pub size: u64,
}

impl Archive {
    /// Compares a home with its copy in the archive. Only the history of prompts and new sub-agents that
    /// are not in the folder of their session are opened.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read.
    pub fn status(&self, store: &Store, home: &Home, origin: &Origin) -> Result<HomeStatus, ArchiveError> {
        let manifest = match self.database() {
            Some(database) => database.manifest_of(origin)?,
            None => read_manifest(self.objects(), &origin.folder())?.map(|read| read.manifest),
        };
        let manifest = manifest.unwrap_or_else(|| Manifest::new(origin.clone()));
        let mut sessions: BTreeMap<String, Vec<HomeFile>> = BTreeMap::new();
        for file in store.files_of(home).found {
            if let Some(id) = session_of(&file, &manifest) {
                sessions.entry(id).or_default().push(file);
            }
        }
        // Backups and side files of a deleted log are no session.
        sessions.retain(|id, files| files.iter().any(|file| is_log(&file.name, id)));
        let mut status = HomeStatus::default();
        for (id, files) in &sessions {
            let log = files.iter().find(|file| is_log(&file.name, id));
            let session = LocalSession {
                id: id.clone(),
                modified: log.map_or(std::time::UNIX_EPOCH, |log| log.modified),
                size: files.iter().map(|file| file.size).sum(),
            };
            let known = |file: &&HomeFile| manifest.files.get(&file.name);
            let is_same = |file: &HomeFile| {
                known(&file).is_some_and(|known| {
                    known.current.stamp.is_some() && known.current.stamp == raw_stamp(file)
                })
            };
            match log.as_ref().and_then(known) {
                None => status.missing.push(session),
                Some(_) if files.iter().all(is_same) => status.archived.push(session),
                Some(_) => status.changed.push(session),
            }
        }
        let archived: BTreeSet<String> = manifest
            .files
            .keys()
            .filter_map(|name| Some((name, session_of_file(name)?)))
            .filter(|(name, id)| is_log(name, id))
            .map(|(_, id)| id.to_string())
            .collect();
        status.archive_only = archived.iter().filter(|id| !sessions.contains_key(*id)).cloned().collect();
        let history = read_regular(&home.history_file()).unwrap_or_default();
        status.prompts_only = prompts_by_session(&history)
            .into_iter()
            .filter(|(id, _)| !sessions.contains_key(id) && !archived.contains(id))
            .collect();
        Ok(status)
    }
}

/// Returns whether a file is the log of a session.
fn is_log(name: &str, id: &str) -> bool {
    name.starts_with("projects/") && name.ends_with(&format!("/{id}.jsonl")) && name.matches('/').count() == 2
}

/// Counts the prompts in the history by session.
fn prompts_by_session(history: &[u8]) -> BTreeMap<String, usize> {
    let mut prompts = BTreeMap::new();
    let mut lines = LineReader::new(history);
    while let Ok(Some(line)) = lines.next() {
        let (entry, _) = Entry::parse(line.bytes);
        if let Some(id) = entry.session_id() {
            *prompts.entry(id.into_owned()).or_default() += 1;
        }
    }
    prompts
}
