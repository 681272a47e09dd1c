//! Copies a home at a privacy level, for programs that read sessions.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rayon::prelude::*;
use threadline_secret::Rules;
use threadline_store::{Home, HomeFile, Store, read_regular, read_session_of_file};

use crate::error::ArchiveError;
use crate::level::{PrivacyLevel, SessionReducer};

/// Copies the files of all sessions of a home into a folder, without the texts that the level excludes.
///
/// The copies are the same as those that [`Archive::push`](crate::Archive::push) makes. A file that cannot be
/// read is left out.
///
/// # Errors
///
/// If a copy cannot be written.
pub fn copy_reduced_home(
    store: &Store,
    home: &Home,
    level: PrivacyLevel,
    rules: &Rules,
    folder: &Path,
) -> Result<(), ArchiveError> {
    let mut sessions: BTreeMap<Option<String>, Vec<HomeFile>> = BTreeMap::new();
    for file in store.files_of(home).found.into_iter().filter(|file| level.copies(&file.name)) {
        let session = read_session_of_file(&file).ok().flatten().map(Into::into);
        sessions.entry(session).or_default().push(file);
    }
    sessions.par_iter().try_for_each(|(_, files)| {
        let mut reducer = SessionReducer::new(level, rules, files);
        for file in files {
            let Ok(content) = read_regular(&file.path) else { continue };
            let target = folder.join(&file.name);
            if let Some(parent) = target.parent() {
                fs::create_dir_all(parent)?;
            }
            fs::write(&target, reducer.reduce(&file.name, &content))?;
            fs::File::options().write(true).open(&target)?.set_modified(file.modified)?;
        }
        Ok(())
    })
}
