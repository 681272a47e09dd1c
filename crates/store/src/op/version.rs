//! The two versions of a file, and which of them is on disk.

use std::fs::{File, Metadata};
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use super::digest::Prefixes;
use super::{FileAction, FileDigest, ReceiptFile};
use crate::identity::FileId;

/// One of the two versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// As it was before the operation.
    Before,
    /// As the operation leaves it.
    After,
}

impl Version {
    /// The other version.
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Before => Self::After,
            Self::After => Self::Before,
        }
    }

    /// The name of the version in file names.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// The path of a version of a file, and the digest of its content where that is known.
pub(super) struct VersionFile<'r> {
    pub(super) path: &'r Path,
    pub(super) digest: Option<FileDigest>,
}

impl VersionFile<'_> {
    pub(super) fn length(&self) -> u64 {
        self.digest.map_or(0, |digest| digest.length)
    }
}

/// Returns the path and digest of a version as the receipt has them; `None` if no file exists in that
/// version.
pub(super) fn version_file(file: &ReceiptFile, version: Version) -> Option<VersionFile<'_>> {
    match (file.action, version) {
        (FileAction::Create | FileAction::Replace, Version::After) => {
            Some(VersionFile { path: &file.path, digest: file.after() })
        }
        (FileAction::Replace | FileAction::Remove | FileAction::Move, Version::Before) => {
            Some(VersionFile { path: &file.path, digest: file.before() })
        }
        (FileAction::Move, Version::After) => {
            Some(VersionFile { path: file.target.as_deref()?, digest: file.after() })
        }
        (FileAction::Create, Version::Before)
        | (FileAction::Remove, Version::After)
        | (FileAction::Append | FileAction::Unlink, _) => None,
    }
}

/// The result of comparing a file with its versions.
pub(super) enum ContentMatch {
    /// There is no file.
    Absent,
    /// This version, and the number of bytes after it.
    Version(Version, u64),
    /// Neither version. The text describes the difference.
    Other(String),
}

/// Returns which of `versions` a file has: the longest that matches. With `grows`, more bytes may follow.
pub(super) fn match_open_file(
    file: &mut File,
    versions: &[(Version, FileDigest)],
    grows: bool,
) -> io::Result<ContentMatch> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(0))?;
    let digests = Prefixes::read(file, versions.iter().map(|(_, digest)| digest.length))?;
    let matches = versions.iter().filter(|(_, digest)| digests.has(digest));
    let longest = matches.max_by_key(|(_, digest)| digest.length);
    Ok(match longest {
        Some((version, digest)) if grows || digest.length == length => {
            ContentMatch::Version(*version, length.saturating_sub(digest.length))
        }
        Some((_, digest)) => ContentMatch::Other(format!("{} bytes were added", length - digest.length)),
        None => ContentMatch::Other("its content is different".to_owned()),
    })
}

/// Whether both are the metadata of one file.
pub(super) fn is_same_file(a: &Metadata, b: &Metadata) -> bool {
    FileId::of(a) == FileId::of(b)
}

/// Whether this is the metadata of an open file. `None` is that of no file.
pub(super) fn is_metadata_of(metadata: Option<&Metadata>, file: &File) -> io::Result<bool> {
    let Some(metadata) = metadata else { return Ok(false) };
    Ok(is_same_file(metadata, &file.metadata()?))
}

/// Whether this is a symbolic link to `target`.
pub(super) fn is_link_to(path: &Path, target: Option<&Path>) -> bool {
    fs_err::read_link(path).is_ok_and(|now| Some(&*now) == target)
}
