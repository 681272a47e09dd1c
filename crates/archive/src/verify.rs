//! Checks an archive, deletes unused objects, and removes sessions from it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rayon::prelude::*;
use threadline_store::session_of_file;

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::manifest::{FilePiece, Manifest, Origin, SerialManifest, manifest_folders, read_manifest};
use crate::objects::ObjectInfo;
use crate::read::OriginFilter;
use crate::rebuild::{FoundTable, RebuildReport};
use crate::restore::find;
use crate::segment::{NewSegment, SEGMENTS, SegmentPiece, SegmentWriter, segment_digest, segment_object};

/// The result of [`Archive::verify`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// The number of segments and of files that were checked.
    pub segments: usize,
    /// The number of files that were checked.
    pub files: usize,
    /// The number of uncompressed bytes.
    pub bytes: u64,
    /// Everything that is damaged, sorted.
    pub damaged: Vec<String>,
    /// Files that are in segments but, in part or as a whole, in no manifest, sorted: a manifest is lost, or
    /// a push is running or was interrupted. [`Archive::rebuild`] adds them.
    pub unlisted: Vec<String>,
}

/// The result of [`Archive::collect_garbage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GarbageReport {
    /// The number of segments that no manifest uses and that were deleted.
    pub deleted: usize,
    /// Their size in bytes.
    pub deleted_bytes: u64,
    /// The number of small segments that were joined into larger ones.
    pub joined: usize,
    /// The number of segments that no manifest uses, and that were not deleted, because they contain files
    /// that no manifest has, or because they cannot be read.
    pub kept: usize,
}

/// Segments are written before the manifest that uses them. One that is younger may be in use soon.
const UNUSED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// Segments of fewer compressed bytes are joined.
const SMALL_SEGMENT: u64 = 256 << 10;

/// Small segments are joined if a home has more than this many.
const MAX_SMALL_SEGMENTS: usize = 16;

impl Archive {
    /// Reads every segment, compares the content of every archived file with its digest, and the tables of
    /// the segments with the manifests.
    ///
    /// # Errors
    ///
    /// If the archive cannot be listed. Damage is reported.
    pub fn verify(&self, progress: &(dyn Fn() + Sync)) -> Result<VerifyReport, ArchiveError> {
        if let Some(database) = self.database() {
            return database.verify(progress);
        }
        let mut damaged = Vec::new();
        let mut manifests = Vec::new();
        for folder in manifest_folders(self.objects())? {
            match read_manifest(self.objects(), &folder) {
                Ok(read) => manifests.extend(read.map(|read| read.manifest)),
                Err(error) => damaged.push(error.to_string()),
            }
        }
        let stored = self.objects().list(SEGMENTS)?;
        let digests: BTreeMap<&str, i64> = stored
            .iter()
            .filter_map(|object| Some((segment_digest(&object.name)?, object.written)))
            .collect();
        for object in stored.iter().filter(|object| segment_digest(&object.name).is_none()) {
            damaged.push(format!("{} is not a segment", object.name));
        }
        let used: BTreeSet<&str> = manifests.iter().flat_map(Manifest::segments).collect();
        let all: BTreeSet<&str> = digests.keys().copied().chain(used).collect();
        let check = |digest: &&str| {
            let read = self.segment(digest);
            progress();
            let written = digests.get(*digest).copied().unwrap_or_default();
            read.map(|segment| FoundTable { segment: (*digest).to_owned(), written, table: segment.table })
        };
        let (mut bytes, mut tables) = (0, Vec::new());
        for checked in all.par_iter().map(check).collect::<Vec<_>>() {
            match checked {
                Ok(found) => {
                    bytes += found.table.pieces.iter().map(|piece| piece.length).sum::<u64>();
                    tables.push(found);
                }
                Err(error) => damaged.push(error.to_string()),
            }
        }
        let versions: Vec<_> = manifests.iter().flat_map(Manifest::versions).collect();
        damaged.extend(self.damaged_versions(&versions));
        damaged.sort();
        damaged.dedup();
        let mut unlisted = Vec::new();
        for home in self.home_files(tables, &mut RebuildReport::default())? {
            let Origin { machine, home: path, .. } = &home.origin;
            unlisted.extend(home.unlisted.iter().map(|(name, _)| format!("{machine}:{path}/{name}")));
        }
        unlisted.sort();
        unlisted.dedup();
        Ok(VerifyReport { segments: all.len(), files: versions.len(), bytes, damaged, unlisted })
    }

    /// Deletes segments that no manifest has used for a day, and joins small segments. Segments with files
    /// that no readable manifest accounts for are kept: their manifest may be lost.
    ///
    /// # Errors
    ///
    /// If the archive cannot be read or written. Nothing that is in use is deleted.
    pub fn collect_garbage(&self, now: SystemTime) -> Result<GarbageReport, ArchiveError> {
        if let Some(database) = self.database() {
            return database.collect_garbage();
        }
        let mut report = GarbageReport::default();
        let sizes: BTreeMap<String, u64> = self
            .objects()
            .list(SEGMENTS)?
            .iter()
            .filter_map(|object| Some((segment_digest(&object.name)?.to_owned(), object.size)))
            .collect();
        for folder in manifest_folders(self.objects())? {
            let Some(mut read) = read_manifest(self.objects(), &folder)? else { continue };
            let is_small = |digest: &&str| sizes.get(*digest).is_some_and(|size| *size < SMALL_SEGMENT);
            let small: BTreeSet<String> =
                read.manifest.segments().into_iter().filter(is_small).map(str::to_owned).collect();
            if small.len() > MAX_SMALL_SEGMENTS {
                report.joined += small.len();
                self.rewrite(&mut read, &small)?;
            }
        }
        // Listed first: a segment that is written later is never deleted.
        let stored = self.objects().list(SEGMENTS)?;
        let manifests = self.manifests(&OriginFilter::default())?;
        let used: BTreeSet<&str> = manifests.iter().flat_map(Manifest::segments).collect();
        let limit = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(UNUSED_FOR).as_secs();
        let is_candidate = |object: &&ObjectInfo| {
            let is_used = segment_digest(&object.name).is_none_or(|digest| used.contains(digest));
            !is_used && u64::try_from(object.written).unwrap_or(0) < limit
        };
        let candidates: Vec<&ObjectInfo> = stored.iter().filter(is_candidate).collect();
        let kept = self.segments_to_keep(&candidates, &manifests)?;
        report.kept = kept.len();
        for object in candidates.into_iter().filter(|object| !kept.contains(&object.name)) {
            // A push that needs it has written it again.
            if self.objects().written(&object.name)? == Some(object.written) {
                self.objects().delete(&object.name)?;
                report.deleted += 1;
                report.deleted_bytes += object.size;
            }
        }
        Ok(report)
    }

    /// Selects, of segments that no manifest uses, those with files that no manifest accounts for and those
    /// that cannot be read. Returns the names of the objects.
    fn segments_to_keep(
        &self,
        candidates: &[&ObjectInfo],
        manifests: &[Manifest],
    ) -> Result<BTreeSet<String>, ArchiveError> {
        let mut kept = BTreeSet::new();
        let mut unlisted: Option<BTreeSet<(String, String, u32)>> = None;
        for object in candidates {
            let table = match self.segment(segment_digest(&object.name).unwrap_or_default()) {
                Ok(segment) => segment.table,
                Err(ArchiveError::Damaged { .. }) => {
                    kept.insert(object.name.clone());
                    continue;
                }
                Err(error) => return Err(error),
            };
            let folder = table.origin.folder();
            let manifest = manifests.iter().find(|manifest| manifest.origin.folder() == folder);
            let is_accounted = |piece: &SegmentPiece| manifest.is_some_and(|known| known.accounts_for(piece));
            if table.pieces.iter().all(is_accounted) {
                continue;
            }
            // All segments are read only if one of these cannot come from joining or an interruption.
            if unlisted.is_none() {
                let mut found = BTreeSet::new();
                let tables = self.segment_tables(&mut Vec::new())?;
                for home in self.home_files(tables, &mut RebuildReport::default())? {
                    let folder = home.origin.folder();
                    let versions = home.unlisted.into_iter();
                    found.extend(versions.map(|(name, number)| (folder.clone(), name, number)));
                }
                unlisted = Some(found);
            }
            let is_unlisted = |piece: &SegmentPiece| {
                let version = (folder.clone(), piece.file.clone(), piece.version);
                unlisted.as_ref().is_some_and(|unlisted| unlisted.contains(&version))
            };
            if table.pieces.iter().any(is_unlisted) {
                kept.insert(object.name.clone());
            }
        }
        Ok(kept)
    }

    /// Erases a session from the archive: from the manifests of all machines, and from the segments. It is
    /// not copied again. Returns its id.
    ///
    /// # Errors
    ///
    /// If the archive has no such session, contains copies of it that no manifest names, or cannot be
    /// written. If it is interrupted after the manifests were written, [`Archive::collect_garbage`] deletes
    /// the segments a day later.
    pub fn remove(&self, name: &str) -> Result<String, ArchiveError> {
        if let Some(database) = self.database() {
            return database.remove(name);
        }
        let manifests = self.manifests(&OriginFilter::default())?;
        let (_, session) = find(&manifests, name)?;
        if self.has_unlisted_copy(&manifests, &session.id)? {
            return Err(ArchiveError::Unlisted { name: session.id });
        }
        for folder in manifest_folders(self.objects())? {
            let Some(mut read) = read_manifest(self.objects(), &folder)? else { continue };
            let names: Vec<String> =
                read.manifest.files_of(&session.id).into_iter().map(str::to_owned).collect();
            let mut segments = BTreeSet::new();
            for name in names {
                if let Some(file) = read.manifest.files.remove(&name) {
                    let versions = std::iter::once(file.current).chain(file.older);
                    segments.extend(versions.flat_map(|version| version.pieces).map(|piece| piece.segment));
                }
            }
            read.manifest.removed.insert(session.id.clone());
            self.rewrite(&mut read, &segments)?;
            read.delete_earlier(self.objects())?;
            for digest in &segments {
                self.objects().delete(&segment_object(digest))?;
            }
        }
        Ok(session.id)
    }

    /// Returns whether a segment that no manifest uses contains a copy of a session that none accounts for.
    fn has_unlisted_copy(&self, manifests: &[Manifest], session: &str) -> Result<bool, ArchiveError> {
        let used: BTreeSet<&str> = manifests.iter().flat_map(Manifest::segments).collect();
        for object in self.objects().list(SEGMENTS)? {
            let Some(digest) = segment_digest(&object.name).filter(|digest| !used.contains(digest)) else {
                continue;
            };
            let table = match self.segment(digest) {
                Ok(segment) => segment.table,
                Err(ArchiveError::Damaged { .. }) => continue,
                Err(error) => return Err(error),
            };
            let folder = table.origin.folder();
            let manifest = manifests.iter().find(|manifest| manifest.origin.folder() == folder);
            let is_unlisted = |piece: &SegmentPiece| {
                session_of_file(&piece.file).is_some_and(|id| id.as_str() == session)
                    && !manifest.is_some_and(|manifest| manifest.accounts_for(piece))
            };
            if table.pieces.iter().any(is_unlisted) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Copies the pieces that a manifest uses from these segments into new ones, and writes the manifest.
    fn rewrite(&self, read: &mut SerialManifest, segments: &BTreeSet<String>) -> Result<(), ArchiveError> {
        let manifest = &mut read.manifest;
        let origin = manifest.origin.clone();
        let mut writer = SegmentWriter::new(&origin)?;
        let mut finished: Vec<(String, Vec<crate::segment::SegmentPiece>)> = Vec::new();
        let store = |writer: SegmentWriter, finished: &mut Vec<_>| -> Result<(), ArchiveError> {
            if let Some(NewSegment { digest, bytes, pieces }) = writer.finish()? {
                let digest = self.objects().name_of_digest(digest);
                self.objects().create(&segment_object(&digest), bytes)?;
                finished.push((digest, pieces));
            }
            Ok(())
        };
        let damaged = |name: &str| ArchiveError::Damaged {
            object: name.to_owned(),
            reason: "its pieces are not where the manifest says".to_owned(),
        };
        for digest in segments {
            let segment = self.segment(digest)?;
            for (name, version) in manifest.versions() {
                let mut offset = 0;
                for piece in &version.pieces {
                    if piece.segment == *digest {
                        let bytes = segment.bytes(piece.at, piece.length).ok_or_else(|| damaged(name))?;
                        if writer.room() < piece.length {
                            store(
                                std::mem::replace(&mut writer, SegmentWriter::new(&origin)?),
                                &mut finished,
                            )?;
                        }
                        writer.append(name, version.version, offset, version.level, bytes)?;
                    }
                    offset += piece.length;
                }
            }
        }
        store(writer, &mut finished)?;
        let mut places: BTreeMap<(String, u32, u64), FilePiece> = BTreeMap::new();
        for (digest, pieces) in finished {
            for piece in pieces {
                let place = FilePiece { segment: digest.clone(), at: piece.at, length: piece.length };
                places.insert((piece.file, piece.version, piece.offset), place);
            }
        }
        for (name, file) in &mut manifest.files {
            for version in std::iter::once(&mut file.current).chain(&mut file.older) {
                let mut pieces = Vec::new();
                let mut offset = 0;
                let mut covered = 0;
                for piece in &version.pieces {
                    if !segments.contains(&piece.segment) {
                        pieces.push(piece.clone());
                    } else if offset >= covered
                        // Pieces that follow each other were joined.
                        && let Some(new) = places.get(&(name.clone(), version.version, offset))
                    {
                        covered = offset + new.length;
                        pieces.push(new.clone());
                    }
                    offset += piece.length;
                }
                if pieces.iter().map(|piece| piece.length).sum::<u64>() != version.size {
                    return Err(damaged(name));
                }
                version.pieces = pieces;
            }
        }
        match read.write(self.objects())? {
            true => Ok(()),
            false => Err(ArchiveError::Busy),
        }
    }
}
