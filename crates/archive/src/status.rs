//! Compares a home with its archived copy.

use std::collections::{BTreeMap, BTreeSet};

use threadline_entry::{Entry, LineReader};
use threadline_store::{Home, HomeFile, Store, open_regular, read_regular, session_of_file};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::manifest::{FileVersion, Manifest, Origin, read_manifest};
use crate::push::{millis, raw_stamp, session_of};
use crate::read::digest_of;

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
    /// Sessions that exist neither here nor in the archive, with prompts in the history: the id and the
    /// number of prompts.
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
    /// Compares a home with its copy in the archive. Files are compared by their sizes and times. Only those
    /// that were copied right after they were written are read, and the history of prompts, and new
    /// sub-agents that are not in the folder of their session.
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
            let known = |file: &HomeFile| manifest.files.get(&file.name).map(|known| &known.current);
            match log.and_then(known) {
                None => status.missing.push(session),
                Some(log) => {
                    let mut copied = files.iter().filter(|file| log.level.copies(&file.name));
                    match copied.all(|file| known(file).is_some_and(|known| is_copy_of(known, file))) {
                        true => status.archived.push(session),
                        false => status.changed.push(session),
                    }
                }
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

/// Returns whether an archived version is a copy of a file as it is now.
fn is_copy_of(version: &FileVersion, file: &HomeFile) -> bool {
    match (&version.stamp, version.level) {
        (Some(stamp), _) if raw_stamp(file).as_ref() == Some(stamp) => true,
        // Every byte was copied, so the contents can be compared.
        (_, PrivacyLevel::Full) => {
            file.size == version.size
                && open_regular(&file.path).and_then(digest_of).is_ok_and(|digest| digest == version.digest)
        }
        (None, _) => millis(file.modified) == version.modified,
        (Some(_), _) => false,
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
