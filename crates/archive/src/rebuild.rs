//! Rebuilds lost or damaged manifests from the tables of the segments.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use sha2::{Digest, Sha256};
use threadline_entry::{Entry, LineReader};
use threadline_store::{is_home_file_name, is_shared_agent_name};

use crate::archive::Archive;
use crate::digest::hex_digits;
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::manifest::{
    ArchivedFile, FilePiece, FileVersion, Manifest, Origin, SerialManifest, highest_serial, read_manifest,
};
use crate::segment::{SEGMENTS, Segment, SegmentPiece, SegmentTable, segment_digest};

/// The result of [`Archive::rebuild`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// The number of manifests that were written.
    pub homes: usize,
    /// The number of files in them.
    pub files: usize,
    /// Files of which only the beginning was found.
    pub incomplete: Vec<String>,
    /// Segments that cannot be read.
    pub damaged: Vec<String>,
}

/// The table of a segment.
pub(crate) struct FoundTable {
    pub(crate) segment: String,
    /// When the segment was written, in seconds since 1970.
    pub(crate) written: i64,
    pub(crate) table: SegmentTable,
}

/// A piece of a file, and the segment that contains it.
struct FoundPiece {
    segment: String,
    /// When the segment was written, in seconds since 1970.
    written: i64,
    piece: SegmentPiece,
}

/// The pieces of the files of a home, by the name and the version of the file.
type FoundFiles = BTreeMap<(String, u32), Vec<FoundPiece>>;

/// The number of lines of a sub-agent that are searched for the session.
const OWNER_LINES: usize = 8;

/// A home with files in the segments, and the files that its manifest lacks.
pub(crate) struct HomeFiles {
    pub(crate) origin: Origin,
    /// The manifest, with everything that only the segments contain.
    merged: SerialManifest,
    /// The files, with their versions, that the manifest does not contain, or not to their end.
    pub(crate) unlisted: BTreeSet<(String, u32)>,
    has_manifest: bool,
}

impl Archive {
    /// Writes manifests for homes with a lost or damaged one. If an earlier manifest can be read, the
    /// files and versions that only the segments contain are added to it.
    ///
    /// The list of removed sessions is lost with the last manifest, and the times of added files are those of
    /// the push.
    ///
    /// # Errors
    ///
    /// If the archive cannot be listed or written. Segments that cannot be read are reported.
    pub fn rebuild(&self) -> Result<RebuildReport, ArchiveError> {
        self.begin_writing()?;
        let mut report = RebuildReport::default();
        let tables = self.segment_tables(&mut report.damaged)?;
        for home in self.home_files(tables, &mut report)? {
            let HomeFiles { mut merged, unlisted, has_manifest, .. } = home;
            if has_manifest && unlisted.is_empty() {
                continue;
            }
            report.homes += 1;
            report.files += merged.manifest.files.len();
            if !merged.write(self.objects())? {
                return Err(ArchiveError::Busy);
            }
            if !has_manifest {
                // Remains of earlier manifests cannot be read.
                merged.delete_earlier(self.objects())?;
            }
        }
        report.incomplete.sort();
        report.incomplete.dedup();
        report.damaged.sort();
        report.damaged.dedup();
        Ok(report)
    }

    /// Reads the tables of all segments. Those that cannot be read are added to `damaged`.
    pub(crate) fn segment_tables(&self, damaged: &mut Vec<String>) -> Result<Vec<FoundTable>, ArchiveError> {
        let stored = self.objects().list(SEGMENTS)?;
        let segments: Vec<(&str, i64)> = stored
            .iter()
            .filter_map(|object| Some((segment_digest(&object.name)?, object.written)))
            .collect();
        let read = |(name, written): &(&str, i64)| {
            let table = self.segment(name)?.table;
            Ok(FoundTable { segment: (*name).to_owned(), written: *written, table })
        };
        let mut tables = Vec::new();
        for table in segments.par_iter().map(read).collect::<Vec<_>>() {
            match table {
                Ok(table) => tables.push(table),
                Err(error @ ArchiveError::Damaged { .. }) => damaged.push(error.to_string()),
                Err(error) => return Err(error),
            }
        }
        Ok(tables)
    }

    /// Compares the tables of segments with the manifests.
    pub(crate) fn home_files(
        &self,
        tables: Vec<FoundTable>,
        report: &mut RebuildReport,
    ) -> Result<Vec<HomeFiles>, ArchiveError> {
        let digests: BTreeSet<String> = tables.iter().map(|found| found.segment.clone()).collect();
        let mut homes = Vec::new();
        for (folder, (origin, found)) in found_pieces(tables) {
            let known = match read_manifest(self.objects(), &folder) {
                Ok(known) => known,
                Err(ArchiveError::Damaged { .. }) => None,
                Err(error) => return Err(error),
            };
            let has_manifest = known.is_some();
            let merged = match known {
                Some(known) => known,
                None => SerialManifest {
                    serial: highest_serial(self.objects(), &folder)?,
                    manifest: Manifest::new(origin.clone()),
                },
            };
            let mut home = HomeFiles { origin, merged, unlisted: BTreeSet::new(), has_manifest };
            for ((name, number), pieces) in found {
                if self.merge(&mut home.merged.manifest, &name, number, pieces, &digests, report) {
                    home.unlisted.insert((name, number));
                }
            }
            homes.push(home);
        }
        Ok(homes)
    }

    /// Adds a version of a file to a manifest, if that lacks it or its end. Returns whether it does.
    fn merge(
        &self,
        manifest: &mut Manifest,
        name: &str,
        number: u32,
        found: Vec<FoundPiece>,
        segments: &BTreeSet<String>,
        report: &mut RebuildReport,
    ) -> bool {
        let is_readable =
            |version: &FileVersion| version.pieces.iter().all(|piece| segments.contains(&piece.segment));
        let known = manifest.version(name, number).cloned();
        if known.as_ref().is_none_or(is_readable)
            && found.iter().all(|found| manifest.accounts_for(&found.piece))
        {
            return false;
        }
        let (pieces, is_complete) = chain(found);
        let version = self.version(name, number, &pieces, report);
        let Some(version) = version else {
            if known.is_none() {
                report.incomplete.push(name.to_owned());
            }
            return known.is_none();
        };
        if version.session.as_ref().is_some_and(|id| manifest.removed.contains(id)) {
            return false;
        }
        // Pieces of an interrupted push may belong to another content of the file, which was rewritten since.
        if known.as_ref().is_some_and(|known| {
            let is_longer = version.size > known.size || (version.size == known.size && !is_readable(known));
            !is_longer || !self.starts_with(&version, known.size, &known.digest)
        }) {
            return false;
        }
        if let Some(file) = manifest.files.get(name).filter(|_| known.is_none()) {
            let current = &file.current;
            // A copy without texts never replaces a full one. After the loss of all manifests, the numbers
            // begin again, so the newest copy may continue one with a higher number.
            if (version.level != PrivacyLevel::Full && current.level == PrivacyLevel::Full)
                || (version.level == current.level
                    && self.starts_with(current, version.size, &version.digest))
            {
                return false;
            }
        }
        if !is_complete {
            report.incomplete.push(name.to_owned());
        }
        put_version(manifest, name, version);
        true
    }

    /// Returns whether the first bytes of a version have this digest.
    fn starts_with(&self, version: &FileVersion, length: u64, expected: &str) -> bool {
        let mut hash = Sha256::new();
        let mut left = length;
        for piece in &version.pieces {
            let n_bytes = piece.length.min(left);
            let Ok(segment) = self.segment(&piece.segment) else { return false };
            let Some(bytes) = segment.bytes(piece.at, n_bytes) else { return false };
            hash.update(bytes);
            left -= n_bytes;
        }
        left == 0 && hex_digits(hash) == expected
    }

    /// Returns the version of a file that consists of these pieces; `None` if they cannot be read.
    fn version(
        &self,
        name: &str,
        number: u32,
        pieces: &[FoundPiece],
        report: &mut RebuildReport,
    ) -> Option<FileVersion> {
        let first = pieces.first()?;
        let mut hash = Sha256::new();
        let mut head = Vec::new();
        let mut last: Option<(String, Segment)> = None;
        for found in pieces {
            if last.as_ref().is_none_or(|(segment, _)| *segment != found.segment) {
                match self.segment(&found.segment) {
                    Ok(segment) => last = Some((found.segment.clone(), segment)),
                    Err(error) => {
                        report.damaged.push(error.to_string());
                        return None;
                    }
                }
            }
            let bytes = last.as_ref()?.1.bytes(found.piece.at, found.piece.length)?;
            hash.update(bytes);
            if head.is_empty() {
                head = bytes.to_vec();
            }
        }
        let modified = pieces.iter().map(|found| found.written).max().unwrap_or(0);
        Some(FileVersion {
            version: number,
            level: first.piece.level,
            size: pieces.iter().map(|found| found.piece.length).sum(),
            digest: hex_digits(hash),
            modified: modified.saturating_mul(1000),
            stamp: None,
            session: if is_shared_agent_name(name) { session_in(&head) } else { None },
            pieces: pieces
                .iter()
                .map(|found| FilePiece {
                    segment: found.segment.clone(),
                    at: found.piece.at,
                    length: found.piece.length,
                })
                .collect(),
        })
    }
}

/// Returns the pieces by the folder of the manifests of their home.
fn found_pieces(tables: Vec<FoundTable>) -> BTreeMap<String, (Origin, FoundFiles)> {
    let mut homes: BTreeMap<String, (Origin, FoundFiles)> = BTreeMap::new();
    for FoundTable { segment, written, table } in tables {
        let home = homes.entry(table.origin.folder());
        let (_, files) = home.or_insert_with(|| (table.origin, FoundFiles::new()));
        for piece in table.pieces.into_iter().filter(|piece| is_home_file_name(&piece.file)) {
            let found = files.entry((piece.file.clone(), piece.version)).or_default();
            found.push(FoundPiece { segment: segment.clone(), written, piece });
        }
    }
    homes
}

/// Selects pieces that follow each other from the beginning of the file. Returns whether none is missing.
///
/// An interrupted push, or one that joined segments, leaves several pieces for the same place. The one that
/// was written last is that of the last manifest.
fn chain(found: Vec<FoundPiece>) -> (Vec<FoundPiece>, bool) {
    let end = found.iter().map(|found| found.piece.offset + found.piece.length).max().unwrap_or(0);
    let mut by_offset: BTreeMap<u64, FoundPiece> = BTreeMap::new();
    for piece in found {
        let rank = |found: &FoundPiece| (found.written, found.piece.length);
        match by_offset.get(&piece.piece.offset) {
            Some(known) if rank(known) >= rank(&piece) => {}
            _ => {
                by_offset.insert(piece.piece.offset, piece);
            }
        }
    }
    let mut chain = Vec::new();
    let mut offset = 0;
    while let Some(piece) = by_offset.remove(&offset) {
        if piece.piece.length == 0 {
            break;
        }
        offset += piece.piece.length;
        chain.push(piece);
    }
    (chain, offset == end)
}

/// Adds a version of a file to a manifest, or replaces the one with its number. They come in the order of
/// their numbers.
fn put_version(manifest: &mut Manifest, name: &str, version: FileVersion) {
    let Some(file) = manifest.files.get_mut(name) else {
        manifest.files.insert(name.to_owned(), ArchivedFile { current: version, older: Vec::new() });
        return;
    };
    let mut known = std::iter::once(&mut file.current).chain(&mut file.older);
    if let Some(known) = known.find(|known| known.version == version.version) {
        // The session is known already.
        let session = version.session.or_else(|| known.session.take());
        *known = FileVersion { session, ..version };
        return;
    }
    let is_full = version.level == PrivacyLevel::Full && file.current.level == PrivacyLevel::Full;
    let current = std::mem::replace(&mut file.current, version);
    match is_full {
        true => file.older.push(current),
        // As for a push: earlier copies may contain texts that the level leaves out.
        false => file.older.clear(),
    }
}

/// Returns the session that the first lines of a sub-agent name.
fn session_in(head: &[u8]) -> Option<String> {
    let mut lines = LineReader::new(head);
    for _ in 0..OWNER_LINES {
        let line = lines.next().ok()??;
        if let Some(id) = Entry::parse(line.bytes).0.session_id() {
            return Some(id.into_owned());
        }
    }
    None
}
