//! Reads files from the archive.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use tempfile::{NamedTempFile, TempPath};
use threadline_app::{AppError, CallQuery, SessionSource, SourceSelection};
use threadline_store::{create_temporary, open_own_file};
use threadline_usage::ModelCalls;

use crate::archive::Archive;
use crate::digest::{digest, hex_digits};
use crate::error::ArchiveError;
use crate::manifest::{ArchivedFile, FileVersion, Manifest, Origin, read_manifests};
use crate::segment::{Segment, segment_object};

/// Which homes of an archive to read. Texts are matched as a whole.
#[derive(Clone, Debug, Default)]
pub struct OriginFilter {
    /// The name or the id of the machine.
    pub machine: Option<String>,
    /// The name of the user.
    pub user: Option<String>,
}

impl SessionSource for Archive {
    fn fetch(
        &self,
        selection: &SourceSelection,
        cache: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<PathBuf>, AppError> {
        self.fetch_homes(selection, cache, progress).map_err(source_error)
    }

    fn counts_calls(&self) -> bool {
        self.database().is_some()
    }

    fn model_calls(
        &self,
        selection: &SourceSelection,
        query: &CallQuery,
    ) -> Result<Option<ModelCalls>, AppError> {
        match self.database() {
            Some(database) => database.model_calls(selection, query).map_err(source_error),
            None => Ok(None),
        }
    }
}

fn source_error(error: ArchiveError) -> AppError {
    AppError::Source { message: error.to_string(), hints: error.hints() }
}

impl OriginFilter {
    pub(crate) fn accepts(&self, origin: &Origin) -> bool {
        let machine = self.machine.as_ref();
        machine.is_none_or(|name| *name == origin.machine || *name == origin.machine_id)
            && self.user.as_ref().is_none_or(|name| *name == origin.user)
    }
}

impl Archive {
    /// Reads the newest manifests of the selected homes.
    pub(crate) fn manifests(&self, filter: &OriginFilter) -> Result<Vec<Manifest>, ArchiveError> {
        if let Some(database) = self.database() {
            return database.manifests(filter);
        }
        let read = read_manifests(self.objects())?.into_iter().map(|read| read.manifest);
        let mut manifests: Vec<_> = read.filter(|read| filter.accepts(&read.origin)).collect();
        manifests.sort_by(|a, b| a.origin.cmp(&b.origin));
        Ok(manifests)
    }

    /// Reads a segment and checks its content.
    pub(crate) fn segment(&self, digest: &str) -> Result<Segment, ArchiveError> {
        let missing = || ArchiveError::Damaged {
            object: format!("segment {digest}"),
            reason: "it is missing".to_owned(),
        };
        let bytes = self.objects().get(&segment_object(digest))?.ok_or_else(missing)?;
        Segment::open(digest, &bytes, |content| self.objects().segment_name(content))
    }

    /// Reads versions of files and compares them with their digests. Returns those that differ or cannot be
    /// read.
    pub(crate) fn damaged_versions(&self, versions: &[(&str, &FileVersion)]) -> Vec<String> {
        // Files that begin in one segment are checked together, so that few segments are read twice.
        let mut groups: BTreeMap<&str, Vec<(&str, &FileVersion)>> = BTreeMap::new();
        for (name, version) in versions {
            let first = version.pieces.first().map_or("", |piece| &piece.segment);
            groups.entry(first).or_default().push((name, version));
        }
        let check = |group: &Vec<(&str, &FileVersion)>| {
            let mut last: Option<(String, Segment)> = None;
            let check = |(name, version): &(&str, &FileVersion)| {
                let result = self.check_version(name, version, &mut last);
                result.err().map(|error| format!("{name}: {error}"))
            };
            group.iter().filter_map(check).collect::<Vec<_>>()
        };
        groups.par_iter().flat_map_iter(|(_, group)| check(group)).collect()
    }

    /// Compares a version with its digest. `last` is the segment that was read last.
    fn check_version(
        &self,
        name: &str,
        version: &FileVersion,
        last: &mut Option<(String, Segment)>,
    ) -> Result<(), ArchiveError> {
        let mut hash = Sha256::new();
        for piece in &version.pieces {
            if last.as_ref().is_none_or(|(digest, _)| *digest != piece.segment) {
                *last = Some((piece.segment.clone(), self.segment(&piece.segment)?));
            }
            let bytes = last.as_ref().and_then(|(_, segment)| segment.bytes(piece.at, piece.length));
            hash.update(bytes.ok_or_else(|| wrong_content(name))?);
        }
        match hex_digits(hash) == version.digest {
            true => Ok(()),
            false => Err(wrong_content(name)),
        }
    }

    /// Copies the selected sessions into local folders, one per home, and returns these. Only files that are
    /// not there yet are read from the archive. If all sessions are selected, other files in the folders are
    /// deleted.
    fn fetch_homes(
        &self,
        selection: &SourceSelection,
        cache: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<PathBuf>, ArchiveError> {
        let SourceSelection { machine, user, session, texts: _ } = selection;
        let filter = OriginFilter { machine: machine.clone(), user: user.clone() };
        let cache = cache.join(&digest(self.location().to_string().as_bytes())[..16]);
        fs::create_dir_all(&cache)?;
        // Another process may fetch at the same time.
        let lock = open_own_file(&cache.join("lock"))?;
        lock.lock()?;
        let candidates = match self.database() {
            Some(database) => database.candidates(selection)?,
            None => None,
        };
        let mut homes = Vec::new();
        for manifest in self.manifests(&filter)? {
            let folder = manifest.origin.folder();
            let home = cache.join(&folder);
            let is_wanted = |name: &str| {
                let id = manifest.session_of(name);
                let has_id = |wanted: &String| id.as_ref().is_some_and(|id| id.starts_with(&**wanted));
                // The log of a sub-agent may not be named by its session.
                let is_candidate = |candidates: &HashSet<(String, String)>| match &id {
                    Some(id) => candidates.contains(&(folder.clone(), id.to_string())),
                    None => name != "history.jsonl",
                };
                session.as_ref().is_none_or(has_id) && candidates.as_ref().is_none_or(is_candidate)
            };
            self.fetch_home(&manifest, &is_wanted, session.is_none(), &home, progress)?;
            homes.push(home);
        }
        Ok(homes)
    }

    fn fetch_home(
        &self,
        manifest: &Manifest,
        is_wanted: &dyn Fn(&str) -> bool,
        deletes_others: bool,
        home: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ArchiveError> {
        let mut missing: Vec<(&str, &FileVersion)> = Vec::new();
        for (name, file) in manifest.files.iter().filter(|(name, _)| is_wanted(name)) {
            if !is_fetched(&home.join(name), &file.current) {
                missing.push((name, &file.current));
            }
        }
        if deletes_others {
            // Files that were fetched before may stay, if they are current.
            let is_kept = |(name, file): &(&String, &ArchivedFile)| {
                is_wanted(name) || is_fetched(&home.join(name), &file.current)
            };
            let kept = manifest.files.iter().filter(is_kept).map(|(name, _)| home.join(name)).collect();
            delete_others(home, &kept)?;
        }
        self.write_files(&missing, home, progress)
    }

    /// Writes files below a folder. Each appears when it is complete.
    pub(crate) fn write_files(
        &self,
        files: &[(&str, &FileVersion)],
        folder: &Path,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), ArchiveError> {
        if let Some(database) = self.database() {
            return database.write_files(files, folder, progress);
        }
        // The pieces by segment, so that each segment is read once.
        let mut segments: BTreeMap<&str, Vec<(usize, u64, u64, u64)>> = BTreeMap::new();
        let mut parts: Vec<TempPath> = Vec::new();
        for (i, (name, version)) in files.iter().enumerate() {
            let part = create_part(&folder.join(name))?;
            part.as_file().set_len(version.size)?;
            parts.push(part.into_temp_path());
            let mut offset = 0;
            for piece in &version.pieces {
                let pieces = segments.entry(&piece.segment).or_default();
                pieces.push((i, offset, piece.at, piece.length));
                offset += piece.length;
            }
        }
        let write = |(digest, pieces): (&&str, &Vec<(usize, u64, u64, u64)>)| {
            let segment = self.segment(digest)?;
            for (i, offset, at, length) in pieces {
                let bytes = segment.bytes(*at, *length).ok_or_else(|| wrong_content(digest))?;
                let mut file = File::options().write(true).open(&parts[*i])?;
                file.seek(SeekFrom::Start(*offset))?;
                file.write_all(bytes)?;
                progress(*length);
            }
            Ok::<(), ArchiveError>(())
        };
        segments.par_iter().try_for_each(write)?;
        files.par_iter().zip(parts).try_for_each(|((name, version), part)| {
            if file_digest(&part)? != version.digest {
                return Err(wrong_content(name));
            }
            File::options().write(true).open(&part)?.set_modified(copy_time(version))?;
            Ok(part.persist(folder.join(name)).map_err(|failed| failed.error)?)
        })
    }
}

pub(crate) fn wrong_content(name: &str) -> ArchiveError {
    ArchiveError::Damaged { object: name.to_owned(), reason: "its content has another digest".to_owned() }
}

/// Creates a private file with a random name, which gets the name `path` when it is complete. Creates the
/// folder if needed.
pub(crate) fn create_part(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    create_temporary(folder)
}

/// Returns the time of a copy of this version: that of the original in milliseconds, and a number below that
/// which depends on the content. So a fetched copy differs from that of another version, even if the original
/// was rewritten with the same size and time.
pub(crate) fn copy_time(version: &FileVersion) -> SystemTime {
    // Windows stores multiples of 100 ns.
    const STEP: Duration = Duration::from_nanos(100);
    const STEPS_PER_MILLISECOND: u32 = 10_000;
    let start = version.digest.get(..8).and_then(|start| u32::from_str_radix(start, 16).ok());
    let millis = Duration::from_millis(u64::try_from(version.modified).unwrap_or(0));
    UNIX_EPOCH + millis + STEP * (start.unwrap_or(0) % STEPS_PER_MILLISECOND)
}

/// Returns whether a file is the fetched copy of this version, by its size and time.
fn is_fetched(path: &Path, version: &FileVersion) -> bool {
    let Ok(metadata) = fs::symlink_metadata(path) else { return false };
    let same_time = metadata.modified().is_ok_and(|time| time == copy_time(version));
    metadata.is_file() && metadata.len() == version.size && same_time
}

pub(crate) fn file_digest(path: &Path) -> io::Result<String> {
    digest_of(File::open(path)?)
}

/// Returns the digest of the rest of a file.
pub(crate) fn digest_of(mut file: File) -> io::Result<String> {
    let mut hash = Sha256::new();
    io::copy(&mut file, &mut HashWriter(&mut hash))?;
    Ok(hex_digits(hash))
}

struct HashWriter<'a>(&'a mut Sha256);

impl Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Deletes the files below a folder that are not in `kept`.
fn delete_others(folder: &Path, kept: &BTreeSet<PathBuf>) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            delete_others(&path, kept)?;
        } else if !kept.contains(&path) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}
