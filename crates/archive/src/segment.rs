//! Segments: compressed, immutable objects with pieces of files.
//!
//! A segment begins with the bytes of its pieces, one after another. A table of the pieces follows as JSON,
//! then its length in eight bytes and [`MAGIC`]. All of it is compressed. The name of a segment is the digest
//! of the uncompressed bytes. The table contains the home and the file of each piece, so manifests can
//! be rebuilt from the segments alone.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use zstd::stream::Encoder;
use zstd::zstd_safe::CParameter;

use crate::digest::{hex_digits, is_digest};
use crate::error::ArchiveError;
use crate::level::PrivacyLevel;
use crate::manifest::Origin;

/// The number of bytes after which a segment is finished.
pub(crate) const SEGMENT_SIZE: u64 = 16 << 20;

/// A segment is never larger than this, so that a damaged one cannot fill the memory.
const MAX_SEGMENT_SIZE: u64 = 4 * SEGMENT_SIZE;

/// The parameters of compression. Tool results are written twice in a log, far apart; with this window the
/// second copy is found. Fewer attempts than usual at this level, and no short matches, make it faster and
/// the result hardly larger.
const LEVEL: i32 = 8;
const WINDOW_LOG: u32 = 23;
const SEARCH_LOG: u32 = 3;
const MIN_MATCH: u32 = 6;

const MAGIC: &[u8; 8] = b"thrdseg1";

/// The pieces of a segment.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct SegmentTable {
    pub(crate) origin: Origin,
    pub(crate) pieces: Vec<SegmentPiece>,
}

/// A piece of a file.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub(crate) struct SegmentPiece {
    /// The file, below its home.
    pub(crate) file: String,
    /// The version of the file; a file that was rewritten gets the next number.
    pub(crate) version: u32,
    /// The offset in the archived copy of the file.
    pub(crate) offset: u64,
    /// The offset in the segment.
    pub(crate) at: u64,
    pub(crate) length: u64,
    pub(crate) level: PrivacyLevel,
}

/// Writes one segment.
pub(crate) struct SegmentWriter {
    encoder: Encoder<'static, Vec<u8>>,
    hash: Sha256,
    length: u64,
    table: SegmentTable,
}

/// A segment to store.
pub(crate) struct NewSegment {
    pub(crate) digest: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) pieces: Vec<SegmentPiece>,
}

impl SegmentWriter {
    pub(crate) fn new(origin: &Origin) -> io::Result<Self> {
        let mut encoder = Encoder::new(Vec::new(), LEVEL)?;
        encoder.window_log(WINDOW_LOG)?;
        encoder.set_parameter(CParameter::SearchLog(SEARCH_LOG))?;
        encoder.set_parameter(CParameter::MinMatch(MIN_MATCH))?;
        let table = SegmentTable { origin: origin.clone(), pieces: Vec::new() };
        Ok(Self { encoder, hash: Sha256::new(), length: 0, table })
    }

    /// Returns the number of bytes that fit into the segment.
    pub(crate) fn room(&self) -> u64 {
        SEGMENT_SIZE.saturating_sub(self.length)
    }

    /// Appends bytes of a file, at this offset of it.
    pub(crate) fn append(
        &mut self,
        file: &str,
        version: u32,
        offset: u64,
        level: PrivacyLevel,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.encoder.write_all(bytes)?;
        self.hash.update(bytes);
        let (at, length) = (self.length, bytes.len() as u64);
        self.length += length;
        match self.table.pieces.last_mut() {
            Some(last)
                if last.file == file && last.version == version && last.offset + last.length == offset =>
            {
                last.length += length;
            }
            _ => {
                let file = file.to_owned();
                self.table.pieces.push(SegmentPiece { file, version, offset, at, length, level });
            }
        }
        Ok(())
    }

    /// Finishes the segment; `None` if it has no pieces.
    pub(crate) fn finish(mut self) -> io::Result<Option<NewSegment>> {
        if self.table.pieces.is_empty() {
            return Ok(None);
        }
        let mut end = serde_json::to_vec(&self.table)?;
        let length = end.len() as u64;
        end.extend(length.to_le_bytes());
        end.extend(MAGIC);
        self.encoder.write_all(&end)?;
        self.hash.update(&end);
        let bytes = self.encoder.finish()?;
        Ok(Some(NewSegment { digest: hex_digits(self.hash), bytes, pieces: self.table.pieces }))
    }
}

/// A segment that was read, with its uncompressed bytes.
pub(crate) struct Segment {
    bytes: Vec<u8>,
    pub(crate) table: SegmentTable,
}

impl Segment {
    /// Decompresses a segment and checks that its name is that of its content.
    pub(crate) fn open(
        name: &str,
        compressed: &[u8],
        name_of: impl FnOnce(&[u8]) -> String,
    ) -> Result<Self, ArchiveError> {
        let damaged = |reason: &str| ArchiveError::Damaged {
            object: format!("segment {name}"),
            reason: reason.to_owned(),
        };
        let mut bytes = Vec::new();
        let decoder =
            zstd::stream::Decoder::new(compressed).map_err(|_| damaged("it cannot be decompressed"))?;
        let read = decoder.take(MAX_SEGMENT_SIZE + 1).read_to_end(&mut bytes);
        read.map_err(|_| damaged("it cannot be decompressed"))?;
        if bytes.len() as u64 > MAX_SEGMENT_SIZE {
            return Err(damaged("it is too large"));
        }
        if name_of(&bytes) != name {
            return Err(damaged("its content has another digest than its name"));
        }
        let table = read_table(&bytes).ok_or_else(|| damaged("its table of pieces cannot be read"))?;
        Ok(Self { bytes, table })
    }

    /// Returns the bytes at a range; `None` if the segment is shorter.
    pub(crate) fn bytes(&self, at: u64, length: u64) -> Option<&[u8]> {
        let start = usize::try_from(at).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
    }
}

fn read_table(bytes: &[u8]) -> Option<SegmentTable> {
    let rest = bytes.strip_suffix(MAGIC)?;
    let (rest, length) = rest.split_last_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    serde_json::from_slice(rest.get(rest.len().checked_sub(length)?..)?).ok()
}

/// Returns the name of the object of a segment.
pub(crate) fn segment_object(digest: &str) -> String {
    format!("{SEGMENTS}/{}/{digest}.zst", digest.get(..2).unwrap_or("00"))
}

/// The prefix of the names of segments.
pub(crate) const SEGMENTS: &str = "segments";

/// Returns the digest in the name of a segment's object.
pub(crate) fn segment_digest(object: &str) -> Option<&str> {
    let name = object.rsplit('/').next()?.strip_suffix(".zst")?;
    is_digest(name).then_some(name)
}
