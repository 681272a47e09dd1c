//! Removes copies: over the limit, with a session, and with secrets.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use foldhash::{HashMap, HashSet};
use jiff::Timestamp;
use threadline_store::{SessionId, read_file, replace_own_file};

use super::call_log::{self, LoggedScan};
use super::content_store::{ContentHash, ContentStore};
use super::file_index::{FileIndex, KnownContent};
use super::recorder::FileRecorder;
use crate::config::App;
use crate::error::AppError;

/// The age from which a content that no session names is removed: a younger one may be about to be named.
const GRACE: Duration = Duration::from_secs(600);

/// The age from which the index of a session is removed, unless it is the newest one of its folder.
const INDEX_AGE: Duration = Duration::from_secs(3 * 24 * 3600);

/// What a clean-up removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanedCopies {
    /// The number of sessions whose copies were removed.
    pub sessions: usize,
    /// The number of contents.
    pub contents: usize,
    /// Their size.
    pub bytes: u64,
}

/// The copies of a session that contain a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedactedCopies {
    /// The contents.
    pub contents: Vec<ContentHash>,
}

/// The copies of a session.
struct SessionCopies {
    id: SessionId,
    modified: SystemTime,
    contents: HashSet<ContentHash>,
}

/// Returns the copies of all sessions, that of the oldest session first.
fn sessions(folder: &Path) -> Vec<SessionCopies> {
    let mut indexed = indexed_contents(folder);
    let files = std::fs::read_dir(folder.join("sessions")).into_iter().flatten().flatten();
    let mut found: Vec<SessionCopies> = files
        .filter_map(|file| {
            let name = file.file_name();
            let id = SessionId::new(name.to_str()?.strip_suffix(".jsonl")?)?;
            let modified = file.metadata().ok()?.modified().ok()?;
            let scans: Vec<LoggedScan> = call_log::read(&file.path());
            let mut contents: HashSet<ContentHash> = scans.iter().flat_map(LoggedScan::stored).collect();
            contents.extend(indexed.remove(&*id).unwrap_or_default());
            Some(SessionCopies { id, modified, contents })
        })
        .collect();
    found.sort_by_key(|session| session.modified);
    found
}

/// Returns the contents that the indexes name, by session.
fn indexed_contents(folder: &Path) -> HashMap<String, HashSet<ContentHash>> {
    let mut found: HashMap<String, HashSet<ContentHash>> = HashMap::default();
    for path in indexes(folder) {
        let Some(session) = path.file_name().and_then(|name| name.to_str()) else { continue };
        let bytes = read_file(&path).unwrap_or_default();
        let Some(index) = FileIndex::parse(&bytes) else { continue };
        let files = index.folders.iter().flat_map(|folder| &folder.files);
        let stored = files.filter_map(|file| match file.content {
            KnownContent::Stored(hash) => Some(hash),
            _ => None,
        });
        found.entry(session.to_owned()).or_default().extend(stored);
    }
    found
}

/// Removes the files of a session, except for contents.
fn remove_session(folder: &Path, id: &SessionId) -> io::Result<()> {
    let ignore_absent = |done: io::Result<()>| match done {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    };
    for index in indexes(folder).into_iter().filter(|index| index.ends_with(&**id)) {
        ignore_absent(std::fs::remove_file(index))?;
    }
    let sessions = folder.join("sessions");
    ignore_absent(std::fs::remove_dir_all(sessions.join(format!("{id}.calls"))))?;
    ignore_absent(std::fs::remove_file(sessions.join(format!("{id}.lock"))))?;
    ignore_absent(std::fs::remove_file(call_log::path(folder, id)))
}

/// Returns the paths of all indexes.
fn indexes(folder: &Path) -> Vec<PathBuf> {
    let roots = std::fs::read_dir(folder.join("indexes")).into_iter().flatten().flatten();
    let files = roots.flat_map(|root| std::fs::read_dir(root.path()).into_iter().flatten()).flatten();
    files.map(|file| file.path()).collect()
}

fn is_older(path: &Path, age: Duration) -> bool {
    let now: SystemTime = Timestamp::now().into();
    let modified = path.metadata().and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| now.duration_since(modified).is_ok_and(|since| since > age))
}

impl FileRecorder {
    /// Removes copies until their size is well below the limit: contents that no session names, those of the
    /// oldest sessions, and at last the oldest of the newest session.
    ///
    /// # Errors
    ///
    /// If files cannot be removed.
    pub fn clean_up(&self) -> io::Result<CleanedCopies> {
        self.remove_old_indexes();
        let mut cleaned = CleanedCopies::default();
        let mut sizes: HashMap<ContentHash, u64> = self.contents().list().into_iter().collect();
        let mut size: u64 = sizes.values().sum();
        let target = self.limit / 10 * 8;
        let mut sessions = sessions(self.folder());
        let mut names: HashMap<ContentHash, usize> = HashMap::default();
        for hash in sessions.iter().flat_map(|session| &session.contents) {
            *names.entry(*hash).or_default() += 1;
        }
        let mut remove = |hash: &ContentHash, size: &mut u64| -> io::Result<()> {
            let Some(length) = sizes.remove(hash) else { return Ok(()) };
            self.contents().remove(hash)?;
            *size -= length;
            (cleaned.contents, cleaned.bytes) = (cleaned.contents + 1, cleaned.bytes + length);
            Ok(())
        };
        if size > self.limit {
            for (hash, _) in self.contents().list() {
                if !names.contains_key(&hash) && is_older(&self.contents().path(&hash), GRACE) {
                    remove(&hash, &mut size)?;
                }
            }
        }
        let mut removed = 0;
        while size > target && sessions.len() > 1 && (removed > 0 || size > self.limit) {
            let oldest = sessions.remove(0);
            remove_session(self.folder(), &oldest.id)?;
            removed += 1;
            for hash in &oldest.contents {
                let count = names.entry(*hash).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    remove(hash, &mut size)?;
                }
            }
        }
        if size > self.limit {
            for hash in by_age(self.contents()) {
                if size <= target {
                    break;
                }
                remove(&hash, &mut size)?;
            }
        }
        cleaned.sessions = removed;
        replace_own_file(&self.size_file(), size.to_string().as_bytes())?;
        Ok(cleaned)
    }

    /// Removes the indexes of sessions that have ended, except for the newest one of each folder.
    pub(super) fn remove_old_indexes(&self) {
        let mut newest: HashMap<PathBuf, (SystemTime, PathBuf)> = HashMap::default();
        for path in indexes(self.folder()) {
            let Ok(modified) = path.metadata().and_then(|metadata| metadata.modified()) else { continue };
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            let other = newest.insert(folder.clone(), (modified, path.clone()));
            let older = match other {
                Some(other) if other.0 > modified => {
                    newest.insert(folder, other);
                    Some(path)
                }
                other => other.map(|(_, path)| path),
            };
            if let Some(older) = older.filter(|older| is_older(older, INDEX_AGE)) {
                // It is removed by the next clean-up otherwise.
                let _ = std::fs::remove_file(older);
            }
        }
    }
}

/// Returns the stored contents, oldest first.
fn by_age(contents: &ContentStore) -> Vec<ContentHash> {
    let mut found: Vec<(Option<SystemTime>, ContentHash)> = contents
        .list()
        .into_iter()
        .map(|(hash, _)| (contents.path(&hash).metadata().and_then(|file| file.modified()).ok(), hash))
        .collect();
    found.sort();
    found.into_iter().map(|(_, hash)| hash).collect()
}

impl App {
    /// Returns the number and the size of the copies that only this session has.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn count_file_copies(&self, session_id: &str) -> Result<(usize, u64), AppError> {
        let folder = self.file_copies_folder()?;
        let contents = ContentStore::at(folder.join("objects"));
        let own = contents_of(&folder, session_id);
        let length = |hash: &ContentHash| Some(contents.path(hash).metadata().ok()?.len());
        let sizes: Vec<u64> = own.iter().filter_map(length).collect();
        Ok((sizes.len(), sizes.iter().sum()))
    }

    /// Removes the copies of a session: what was recorded of its calls, and the contents that no other session
    /// names. Returns the number of contents.
    ///
    /// # Errors
    ///
    /// If files cannot be removed.
    pub fn remove_file_copies(&self, session_id: &str) -> Result<usize, AppError> {
        let folder = self.file_copies_folder()?;
        let Some(id) = SessionId::new(session_id) else { return Ok(0) };
        let contents = ContentStore::at(folder.join("objects"));
        let own = contents_of(&folder, session_id);
        let mut removed = 0;
        for hash in own.iter().filter(|hash| contents.contains(hash)) {
            contents.remove(hash)?;
            removed += 1;
        }
        remove_session(&folder, &id)?;
        Ok(removed)
    }

    /// Returns the copies of a session whose text `is_secret`.
    ///
    /// # Errors
    ///
    /// [`AppError::NoStateDir`].
    pub fn find_secret_copies(
        &self,
        session_id: &str,
        is_secret: impl Fn(&str) -> bool,
    ) -> Result<RedactedCopies, AppError> {
        let folder = self.file_copies_folder()?;
        let contents = ContentStore::at(folder.join("objects"));
        let own = sessions(&folder).into_iter().filter(|session| *session.id == *session_id);
        let mut found: Vec<ContentHash> = own
            .flat_map(|session| session.contents)
            .filter(|hash| contents.read(hash).is_some_and(|text| is_secret(&String::from_utf8_lossy(&text))))
            .collect();
        found.sort();
        Ok(RedactedCopies { contents: found })
    }

    /// Removes the contents of copies, of which only the hashes remain. They are removed from all sessions.
    ///
    /// # Errors
    ///
    /// If files cannot be removed.
    pub fn redact_file_copies(&self, copies: &RedactedCopies) -> Result<(), AppError> {
        let contents = ContentStore::at(self.file_copies_folder()?.join("objects"));
        Ok(copies.contents.iter().try_for_each(|hash| contents.remove(hash))?)
    }
}

/// Returns the contents that only this session names.
fn contents_of(folder: &Path, session_id: &str) -> HashSet<ContentHash> {
    let (own, others): (Vec<_>, Vec<_>) =
        sessions(folder).into_iter().partition(|session| *session.id == *session_id);
    let others: HashSet<ContentHash> = others.into_iter().flat_map(|session| session.contents).collect();
    own.into_iter().flat_map(|session| session.contents).filter(|hash| !others.contains(hash)).collect()
}
