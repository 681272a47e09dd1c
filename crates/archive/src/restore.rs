//! Puts archived sessions back in their place.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{fs, io};

use threadline_app::{App, SessionFileCopy};
use threadline_store::{FileDigest, Home, Receipt, encode_project, open_file, open_regular};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::manifest::{FileVersion, Manifest, Origin};
use crate::read::{OriginFilter, copy_time};

/// An archived session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedSession {
    /// The id.
    pub id: String,
    /// The home it comes from.
    pub origin: Origin,
    /// The name of the project folder.
    pub folder: String,
    /// The number of files and their size in bytes.
    pub files: usize,
    /// The size of the files in bytes.
    pub size: u64,
    /// When its log was modified, in milliseconds since 1970.
    pub modified: i64,
    /// How much of it was copied.
    pub level: PrivacyLevel,
}

/// Where to restore a session.
#[derive(Clone, Debug)]
pub struct RestoreTarget {
    /// The home.
    pub home: Home,
    /// The directory of the project; that of the archived session if `None`.
    pub project: Option<PathBuf>,
    /// Replace files that differ.
    pub force: bool,
}

/// The files of a restored session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreReport {
    /// The session.
    pub session: ArchivedSession,
    /// The files that were written.
    pub written: Vec<PathBuf>,
    /// The files that had this content already.
    pub present: Vec<PathBuf>,
    /// The receipt of the operation; `None` if there was nothing to write.
    pub receipt: Option<Receipt>,
}

impl Archive {
    /// Returns the archived sessions of the selected homes, last modified first. A session of several
    /// machines is listed once for each.
    ///
    /// # Errors
    ///
    /// If a manifest cannot be read.
    pub fn sessions(&self, filter: &OriginFilter) -> Result<Vec<ArchivedSession>, ArchiveError> {
        let mut sessions: Vec<_> = self.manifests(filter)?.iter().flat_map(sessions_of).collect();
        sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.id.cmp(&b.id)));
        Ok(sessions)
    }

    /// Restores a session, given by its id or the beginning of it. Of several machines, the last modified
    /// copy is restored.
    ///
    /// # Errors
    ///
    /// If the archive has no such session or is damaged, if a file exists that differs, or if another program
    /// creates one meanwhile. Then nothing is written.
    pub fn restore(
        &self,
        name: &str,
        filter: &OriginFilter,
        target: &RestoreTarget,
        app: &App,
        command: &[String],
    ) -> Result<RestoreReport, ArchiveError> {
        app.finish_interrupted_operations();
        let manifests = self.manifests(filter)?;
        let (manifest, session) = find(&manifests, name)?;
        let folder = match &target.project {
            Some(project) => encode_project(&project.to_string_lossy()),
            None => session.folder.clone(),
        };
        let root = target.home.root();
        let mut files: Vec<FileToRestore<'_>> = Vec::new();
        let mut present = Vec::new();
        for name in manifest.files_of(&session.id) {
            let version = &manifest.files[name].current;
            let target_name = match name.strip_prefix(&format!("projects/{}/", session.folder)) {
                Some(rest) => format!("projects/{folder}/{rest}"),
                None => name.to_owned(),
            };
            let path = root.join(&target_name);
            let replaced = match path.symlink_metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error.into()),
                Ok(metadata) if !metadata.is_file() => {
                    return Err(ArchiveError::NotRegular { path: path.display().to_string() });
                }
                Ok(_) => Some(FileDigest::read_from(open_regular(&path)?)?),
            };
            if replaced.is_some_and(|replaced| replaced.to_hex() == version.digest) {
                present.push(path);
                continue;
            }
            if replaced.is_some() && !target.force {
                return Err(ArchiveError::Differs { path: path.display().to_string() });
            }
            files.push(FileToRestore { name: target_name, path, version, replaced });
        }
        // The log comes last: a program that sees it finds all side files in place.
        files.sort_by_key(|file| is_log(&file.name));
        let receipt = match files.is_empty() {
            true => None,
            false => Some(self.put_in_place(&session.id, &target.home, &files, app, command)?),
        };
        let written = files.into_iter().map(|file| file.path).collect();
        Ok(RestoreReport { session, written, present, receipt })
    }

    /// Reads the files into a private folder, and puts them in their place in one operation.
    fn put_in_place(
        &self,
        session: &str,
        home: &Home,
        files: &[FileToRestore<'_>],
        app: &App,
        command: &[String],
    ) -> Result<Receipt, ArchiveError> {
        let cache = app.config().cache_dir.clone().unwrap_or_else(std::env::temp_dir);
        fs::create_dir_all(&cache)?;
        let mut folder = tempfile::Builder::new();
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = folder.prefix("restore-").tempdir_in(cache)?;
        let versions: Vec<(&str, &FileVersion)> =
            files.iter().map(|file| (&*file.name, file.version)).collect();
        self.write_files(&versions, folder.path(), &|_| ())?;
        let mut copies = Vec::new();
        for FileToRestore { name, path, version, replaced } in files {
            copies.push(SessionFileCopy {
                path: path.clone(),
                content: Box::new(open_file(&folder.path().join(name))?),
                replaced: *replaced,
                modified: copy_time(version),
            });
        }
        Ok(app.restore_session(session, home, copies, command)?)
    }
}

/// An archived file that is not in its place.
struct FileToRestore<'m> {
    /// The name below the home.
    name: String,
    path: PathBuf,
    version: &'m FileVersion,
    /// The content of the file that it replaces; `None` if there is none.
    replaced: Option<FileDigest>,
}

/// Returns whether a name below a home is that of a log next to the folder of its session.
fn is_log(name: &str) -> bool {
    name.starts_with("projects/") && name.split('/').count() == 3
}

/// Finds the session with an id that is `name` or begins with it.
pub(crate) fn find<'m>(
    manifests: &'m [Manifest],
    name: &str,
) -> Result<(&'m Manifest, ArchivedSession), ArchiveError> {
    let all = manifests
        .iter()
        .flat_map(|manifest| sessions_of(manifest).into_iter().map(move |own| (manifest, own)));
    let mut found: Vec<_> = all.filter(|(_, session)| session.id.starts_with(name)).collect();
    if found.iter().any(|(_, session)| session.id == name) {
        found.retain(|(_, session)| session.id == name);
    }
    let ids: BTreeSet<&str> = found.iter().map(|(_, session)| &*session.id).collect();
    if ids.len() > 1 {
        return Err(ArchiveError::Ambiguous { name: name.to_owned(), count: ids.len() });
    }
    let last = found.into_iter().max_by_key(|(_, session)| (session.level, session.modified));
    last.ok_or_else(|| ArchiveError::NoSession { name: name.to_owned() })
}

/// Returns the sessions of a manifest that have an archived log.
fn sessions_of(manifest: &Manifest) -> Vec<ArchivedSession> {
    let mut sizes: BTreeMap<String, (usize, u64)> = BTreeMap::new();
    for (name, file) in &manifest.files {
        if let Some(id) = manifest.session_of(name) {
            let (files, size) = sizes.entry(id).or_default();
            *files += 1;
            *size += file.current.size;
        }
    }
    let log = |(name, file): (&String, &crate::manifest::ArchivedFile)| {
        let (folder, log) = name.strip_prefix("projects/")?.split_once('/')?;
        let id = log.strip_suffix(".jsonl").filter(|id| !id.contains('/') && !id.starts_with("agent-"))?;
        let (files, size) = sizes.get(id).copied()?;
        Some(ArchivedSession {
            id: id.to_owned(),
            origin: manifest.origin.clone(),
            folder: folder.to_owned(),
            files,
            size,
            modified: file.current.modified,
            level: file.current.level,
        })
    };
    manifest.files.iter().filter_map(log).collect()
}
