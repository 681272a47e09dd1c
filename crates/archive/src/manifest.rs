//! Manifests: which segments contain the files of a home.
//!
//! Each home of each machine has an own manifest, and only that machine writes it. A manifest is never
//! changed: the next one gets the next serial number, and creating it fails if another process was faster.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use serde::{Deserialize, Serialize};
use threadline_store::{is_home_file_name, session_of_file};

use crate::digest::{DIGEST_LENGTH, digest, is_digest};
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::objects::Objects;
use crate::segment::SegmentPiece;

/// The home that files come from.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin {
    /// The random id of the machine.
    pub machine_id: String,
    /// The name of the machine.
    pub machine: String,
    /// The name of the user.
    pub user: String,
    /// The path of the home on that machine.
    pub home: String,
}

impl Origin {
    /// Returns the name of the folder of the manifests.
    pub(crate) fn folder(&self) -> String {
        let id = digest(format!("{}\n{}", self.machine_id, self.home).as_bytes());
        id[..32].to_owned()
    }
}

/// The archived files of one home.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    pub(crate) origin: Origin,
    pub(crate) files: BTreeMap<String, ArchivedFile>,
    /// The sessions that were removed and must not be copied again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) removed: BTreeSet<String>,
}

const FORMAT: u32 = 1;

/// The maximum size of a manifest, so that a damaged one cannot fill the memory.
const MAX_MANIFEST_SIZE: u64 = 1 << 30;

/// An archived file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct ArchivedFile {
    #[serde(flatten)]
    pub(crate) current: FileVersion,
    /// Earlier versions of a file that was rewritten.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) older: Vec<FileVersion>,
}

/// A version of a file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct FileVersion {
    pub(crate) version: u32,
    pub(crate) level: PrivacyLevel,
    /// The size and the digest of the copy.
    pub(crate) size: u64,
    pub(crate) digest: String,
    /// When the file was modified, in milliseconds since 1970.
    pub(crate) modified: i64,
    /// Identifies the state of the file that was copied; `None` if that may have changed unnoticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) stamp: Option<String>,
    /// The session, if the name of the file does not identify it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    pub(crate) pieces: Vec<FilePiece>,
}

/// A part of a file in a segment. The parts of a file follow each other.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct FilePiece {
    pub(crate) segment: String,
    pub(crate) at: u64,
    pub(crate) length: u64,
}

impl Manifest {
    pub(crate) fn new(origin: Origin) -> Self {
        Self { format: FORMAT, origin, files: BTreeMap::new(), removed: BTreeSet::new() }
    }

    /// Returns all versions of all files.
    pub(crate) fn versions(&self) -> impl Iterator<Item = (&str, &FileVersion)> {
        self.files.iter().flat_map(|(name, file)| {
            std::iter::once(&file.current).chain(&file.older).map(move |version| (&**name, version))
        })
    }

    /// Returns the names of the files of a session.
    pub(crate) fn files_of(&self, session: &str) -> Vec<&str> {
        let is_own = |name: &str| self.session_of(name).is_some_and(|id| id == session);
        self.files.keys().map(|name| &**name).filter(|name| is_own(name)).collect()
    }

    /// Returns the session that an archived file belongs to.
    pub(crate) fn session_of(&self, name: &str) -> Option<String> {
        let known = || self.files.get(name)?.current.session.clone();
        session_of_file(name).map(Into::into).or_else(known)
    }

    /// Returns the version of a file with this number.
    pub(crate) fn version(&self, name: &str, number: u32) -> Option<&FileVersion> {
        let file = self.files.get(name)?;
        std::iter::once(&file.current).chain(&file.older).find(|version| version.version == number)
    }

    /// Returns whether the manifest contains the bytes of this piece, or leaves them out on purpose: copies
    /// of a removed session, and earlier copies that a level with fewer texts has replaced.
    pub(crate) fn accounts_for(&self, piece: &SegmentPiece) -> bool {
        if session_of_file(&piece.file).is_some_and(|id| self.removed.contains(id.as_str())) {
            return true;
        }
        let end = piece.offset.saturating_add(piece.length);
        match self.version(&piece.file, piece.version) {
            Some(version) => version.size >= end,
            None => self.files.get(&piece.file).is_some_and(|file| file.current.version > piece.version),
        }
    }

    /// Returns the digests of the segments that are in use.
    pub(crate) fn segments(&self) -> BTreeSet<&str> {
        self.versions().flat_map(|(_, version)| &version.pieces).map(|piece| &*piece.segment).collect()
    }

    fn parse(object: &str, bytes: &[u8]) -> Result<Self, ArchiveError> {
        let damaged = |reason: String| ArchiveError::Damaged { object: object.to_owned(), reason };
        let mut plain = Vec::new();
        zstd::stream::Decoder::new(bytes)
            .and_then(|decoder| decoder.take(MAX_MANIFEST_SIZE).read_to_end(&mut plain))
            .map_err(|error| damaged(error.to_string()))?;
        // The digest of the rest comes first.
        let (known, plain) = plain.split_at_checked(DIGEST_LENGTH).unwrap_or_default();
        if digest(plain).as_bytes() != known {
            return Err(damaged("its content has another digest".to_owned()));
        }
        let manifest: Self = serde_json::from_slice(plain).map_err(|error| damaged(error.to_string()))?;
        if manifest.format != FORMAT {
            return Err(damaged(format!("format {} is not known", manifest.format)));
        }
        if let Some(name) = manifest.files.keys().find(|name| !is_home_file_name(name)) {
            return Err(damaged(format!("`{name}` is not the name of a file of a session")));
        }
        let is_sound = |version: &FileVersion| {
            version.pieces.iter().all(|piece| is_digest(&piece.segment))
                && version.pieces.iter().map(|piece| piece.length).try_fold(0_u64, u64::checked_add)
                    == Some(version.size)
        };
        if let Some((name, _)) = manifest.versions().find(|(_, version)| !is_sound(version)) {
            return Err(damaged(format!("the pieces of `{name}` do not match its size")));
        }
        Ok(manifest)
    }
}

/// The prefix of the names of manifests.
pub(crate) const MANIFESTS: &str = "manifests";

/// A manifest and its serial number; 0 if there is none yet.
pub(crate) struct SerialManifest {
    pub(crate) serial: u64,
    pub(crate) manifest: Manifest,
}

fn manifest_object(folder: &str, serial: u64) -> String {
    format!("{MANIFESTS}/{folder}/{serial:012}.zst")
}

fn serial_of(object: &str) -> Option<u64> {
    object.rsplit('/').next()?.strip_suffix(".zst")?.parse().ok()
}

/// Reads the newest manifest in a folder; `None` if there is none.
pub(crate) fn read_manifest(objects: &Objects, folder: &str) -> Result<Option<SerialManifest>, ArchiveError> {
    const ATTEMPTS: usize = 8;
    for _ in 0..ATTEMPTS {
        let listed = objects.list(&format!("{MANIFESTS}/{folder}"))?;
        let Some(serial) = listed.iter().filter_map(|object| serial_of(&object.name)).max() else {
            return Ok(None);
        };
        let object = manifest_object(folder, serial);
        // The writer of the next manifest deletes this one.
        if let Some(bytes) = objects.get(&object)? {
            return Ok(Some(SerialManifest { serial, manifest: Manifest::parse(&object, &bytes)? }));
        }
    }
    Err(ArchiveError::Busy)
}

/// Reads the newest manifests of all homes, with one request for each besides the listing.
pub(crate) fn read_manifests(objects: &Objects) -> Result<Vec<SerialManifest>, ArchiveError> {
    let listed = objects.list(MANIFESTS)?;
    let mut newest: BTreeMap<&str, u64> = BTreeMap::new();
    for object in &listed {
        if let (Some(folder), Some(serial)) = (object.name.split('/').nth(1), serial_of(&object.name)) {
            let known = newest.entry(folder).or_default();
            *known = serial.max(*known);
        }
    }
    let names: Vec<String> = newest.iter().map(|(folder, serial)| manifest_object(folder, *serial)).collect();
    let mut manifests = Vec::new();
    for (((folder, serial), name), bytes) in newest.iter().zip(&names).zip(objects.get_many(&names)) {
        match bytes? {
            Some(bytes) => {
                manifests.push(SerialManifest { serial: *serial, manifest: Manifest::parse(name, &bytes)? });
            }
            // The writer of the next manifest has deleted it.
            None => manifests.extend(read_manifest(objects, folder)?),
        }
    }
    Ok(manifests)
}

/// Returns the highest serial number in a folder, also that of a manifest that cannot be read.
pub(crate) fn highest_serial(objects: &Objects, folder: &str) -> Result<u64, ArchiveError> {
    let listed = objects.list(&format!("{MANIFESTS}/{folder}"))?;
    Ok(listed.iter().filter_map(|object| serial_of(&object.name)).max().unwrap_or(0))
}

/// Returns the folders of all manifests.
pub(crate) fn manifest_folders(objects: &Objects) -> Result<BTreeSet<String>, ArchiveError> {
    let listed = objects.list(MANIFESTS)?;
    Ok(listed.iter().filter_map(|object| object.name.split('/').nth(1)).map(str::to_owned).collect())
}

impl SerialManifest {
    /// Writes the manifest with the next serial number, and deletes the one before the last. Returns `false`
    /// if another process has written one.
    pub(crate) fn write(&mut self, objects: &Objects) -> Result<bool, ArchiveError> {
        const LEVEL: i32 = 3;
        let folder = self.manifest.origin.folder();
        let plain = serde_json::to_vec(&self.manifest).map_err(std::io::Error::from)?;
        let bytes = zstd::stream::encode_all(&*[digest(&plain).as_bytes(), &plain].concat(), LEVEL)?;
        if !objects.create(&manifest_object(&folder, self.serial + 1), bytes)? {
            return Ok(false);
        }
        self.serial += 1;
        // A reader may have listed the last one.
        self.delete_before(objects, self.serial - 1)?;
        Ok(true)
    }

    /// Deletes all earlier manifests.
    pub(crate) fn delete_earlier(&self, objects: &Objects) -> Result<(), ArchiveError> {
        self.delete_before(objects, self.serial)
    }

    fn delete_before(&self, objects: &Objects, limit: u64) -> Result<(), ArchiveError> {
        for object in objects.list(&format!("{MANIFESTS}/{}", self.manifest.origin.folder()))? {
            if serial_of(&object.name).is_some_and(|serial| serial < limit) {
                objects.delete(&object.name)?;
            }
        }
        Ok(())
    }
}
