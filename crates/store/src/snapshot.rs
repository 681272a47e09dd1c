//! Snapshots: which file it was, and how far it reached, when somebody looked.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::fingerprint::{Ends, Fingerprint};
use crate::identity::FileId;
use crate::op::FileDigest;
use crate::regular;

/// A file as it was at one moment, to tell later what has happened to it since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    path: PathBuf,
    id: FileId,
    modified: SystemTime,
    print: Fingerprint,
}

impl Snapshot {
    /// Remembers the file at `path`, which may be a link to it.
    pub fn take(path: impl AsRef<Path>) -> io::Result<Self> {
        // The check of links needs the path as it was given.
        regular::open(path.as_ref())?;
        let path = fs_err::canonicalize(path.as_ref())?;
        let mut file = regular::open(&path)?;
        let metadata = file.metadata()?;
        let ends = Ends::read(&mut file, metadata.len())?;
        let ends =
            ends.ok_or_else(|| io::Error::other(format!("{} shrank while it was read", path.display())))?;
        Ok(Self {
            id: FileId::of(&metadata),
            modified: metadata.modified()?,
            print: ends.fingerprint(),
            path,
        })
    }

    /// The file, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long the file was.
    pub fn size(&self) -> u64 {
        self.print.length
    }

    /// Reads the file as far as it reached then, however much was added since.
    pub fn reader(&self) -> io::Result<impl Read + use<>> {
        Ok(regular::open(&self.path)?.take(self.size()))
    }

    /// The digest of the file as far as it reached then; `None` if something other than growing happened since.
    pub fn digest(&self) -> io::Result<Option<FileDigest>> {
        let mut file = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        if !self.same_or_grown(&mut file)? {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(0))?;
        FileDigest::read_from(file.take(self.size())).map(Some)
    }

    /// Whether this is the metadata of the file that was remembered.
    pub(crate) fn is_of(&self, metadata: &Metadata) -> bool {
        FileId::of(metadata) == self.id
    }

    /// Whether `file` is the one that was remembered and, as far as its ends tell, still begins as it did.
    pub(crate) fn begins(&self, file: &mut File) -> io::Result<bool> {
        Ok(self.is_of(&file.metadata()?) && self.print.matches(file)?)
    }

    /// Whether nothing has happened to `file` since, or nothing but growing.
    pub(crate) fn same_or_grown(&self, file: &mut File) -> io::Result<bool> {
        let metadata = file.metadata()?;
        let touched = metadata.modified()? != self.modified;
        Ok(self.begins(file)? && (metadata.len() > self.size() || !touched))
    }
}
