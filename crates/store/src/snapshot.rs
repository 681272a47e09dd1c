//! Snapshots: the identity and extent of a file at one point in time.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::append::wait_for_newline;
use crate::disk::RealFileSystem;
use crate::fingerprint::{Fingerprint, PrefixEnds};
use crate::identity::FileId;
use crate::op::FileDigest;
use crate::regular_file;

/// The state of a file at one point in time, to detect later changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSnapshot {
    path: PathBuf,
    id: FileId,
    modified: SystemTime,
    fingerprint: Fingerprint,
}

impl FileSnapshot {
    /// Takes a snapshot of the file at `path`, which may be a link.
    pub fn take(path: impl AsRef<Path>) -> io::Result<Self> {
        // The check of links needs the path as given.
        regular_file::open(path.as_ref())?;
        let path = fs_err::canonicalize(path.as_ref())?;
        let mut file = regular_file::open(&path)?;
        let metadata = file.metadata()?;
        let ends = PrefixEnds::read(&mut file, metadata.len())?;
        let ends = ends.ok_or_else(|| {
            io::Error::other(format!("`{}` was truncated while it was read", path.display()))
        })?;
        Ok(Self {
            id: FileId::of(&metadata),
            modified: metadata.modified()?,
            fingerprint: ends.fingerprint(),
            path,
        })
    }

    /// Takes a snapshot of a log as [`FileSnapshot::take`] does, after a short wait for the end of an
    /// incomplete last line, which another program may be writing.
    pub fn take_whole_lines(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut file = regular_file::open(path.as_ref())?.into_file();
        wait_for_newline(&RealFileSystem, &mut file)?;
        Self::take(path)
    }

    /// Returns the path of the file, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of the file at the time of the snapshot.
    pub fn size(&self) -> u64 {
        self.fingerprint.length
    }

    /// Returns a reader of the file up to that size; later additions are not read.
    pub fn reader(&self) -> io::Result<impl Read + use<>> {
        Ok(regular_file::open(&self.path)?.take(self.size()))
    }

    /// Returns the digest of the file up to that size; `None` if anything but growth happened since.
    pub fn digest(&self) -> io::Result<Option<FileDigest>> {
        let mut file = match regular_file::open_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if !self.same_or_grown(&mut file)? {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(0))?;
        FileDigest::read_from(file.take(self.size())).map(Some)
    }

    /// Whether this is the metadata of the same file.
    pub(crate) fn is_same_file(&self, metadata: &Metadata) -> bool {
        FileId::of(metadata) == self.id
    }

    /// Whether `file` is the same and still has the same beginning, according to its fingerprint.
    pub(crate) fn has_same_beginning(&self, file: &mut File) -> io::Result<bool> {
        Ok(self.is_same_file(&file.metadata()?) && self.fingerprint.matches(file)?)
    }

    /// Whether `file` is unchanged since the snapshot or has only grown.
    pub(crate) fn same_or_grown(&self, file: &mut File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        let touched = metadata.modified()? != self.modified;
        Ok(self.has_same_beginning(file)? && (metadata.len() > self.size() || !touched))
    }
}
