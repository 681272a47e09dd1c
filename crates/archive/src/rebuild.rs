//! Rebuilds lost or damaged manifests from the tables of the segments.

use std::collections::BTreeMap;

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
use crate::segment::{SEGMENTS, Segment, SegmentPiece, segment_digest};

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

impl Archive {
    /// Writes manifests for homes whose manifest is lost or damaged. Manifests that can be read are not
    /// changed.
    ///
    /// The list of removed sessions is lost with a manifest, and the times of files are those of the push.
    ///
    /// # Errors
    ///
    /// If the archive cannot be listed or written. Segments that cannot be read are reported.
    pub fn rebuild(&self) -> Result<RebuildReport, ArchiveError> {
        self.begin_writing()?;
        let mut report = RebuildReport::default();
        for (origin, found) in self.found_pieces(&mut report)? {
            if matches!(read_manifest(self.objects(), &origin.folder()), Ok(Some(_))) {
                continue;
            }
            let mut manifest = Manifest::new(origin);
            for ((name, number), pieces) in found {
                let (pieces, is_complete) = chain(pieces);
                if !is_complete {
                    report.incomplete.push(name.clone());
                }
                if let Some(version) = self.version(&name, number, &pieces, &mut report) {
                    add_version(&mut manifest, name, version);
                }
            }
            report.homes += 1;
            report.files += manifest.files.len();
            let serial = highest_serial(self.objects(), &manifest.origin.folder())?;
            let mut new = SerialManifest { serial, manifest };
            if !new.write(self.objects())? {
                return Err(ArchiveError::Busy);
            }
            // Remains of earlier manifests cannot be read.
            new.delete_earlier(self.objects())?;
        }
        report.incomplete.sort();
        report.incomplete.dedup();
        report.damaged.sort();
        report.damaged.dedup();
        Ok(report)
    }

    /// Reads the tables of all segments.
    fn found_pieces(&self, report: &mut RebuildReport) -> Result<BTreeMap<Origin, FoundFiles>, ArchiveError> {
        let stored = self.objects().list(SEGMENTS)?;
        let segments: Vec<(&str, i64)> = stored
            .iter()
            .filter_map(|object| Some((segment_digest(&object.name)?, object.written)))
            .collect();
        let read = |(name, written): &(&str, i64)| {
            self.segment(name).map(|segment| ((*name).to_owned(), *written, segment.table))
        };
        let mut homes: BTreeMap<Origin, FoundFiles> = BTreeMap::new();
        for table in segments.par_iter().map(read).collect::<Vec<_>>() {
            let (segment, written, table) = match table {
                Ok(read) => read,
                Err(error) => {
                    report.damaged.push(error.to_string());
                    continue;
                }
            };
            let files = homes.entry(table.origin).or_default();
            for piece in table.pieces.into_iter().filter(|piece| is_home_file_name(&piece.file)) {
                let found = files.entry((piece.file.clone(), piece.version)).or_default();
                found.push(FoundPiece { segment: segment.clone(), written, piece });
            }
        }
        Ok(homes)
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

/// Adds a version to a manifest. They come in the order of their numbers.
fn add_version(manifest: &mut Manifest, name: String, version: FileVersion) {
    let older = match manifest.files.remove(&name) {
        // As for a push: earlier copies may contain texts that the level leaves out.
        Some(file) if version.level == PrivacyLevel::Full && file.current.level == PrivacyLevel::Full => {
            file.older.into_iter().chain([file.current]).collect()
        }
        _ => Vec::new(),
    };
    manifest.files.insert(name, ArchivedFile { current: version, older });
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
