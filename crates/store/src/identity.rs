//! Identifies a file independently of its name.

use std::fs::Metadata;
use std::time::SystemTime;

/// Identifies a file, to distinguish it from another one that later has the same name.
///
/// An inode number may be reused after a file is deleted, so the creation time is included if the file system
/// records it. On systems other than Unix, only the creation time is available; compare a
/// [`Fingerprint`](crate::Fingerprint) as well to be certain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device; 0 if unknown.
    pub volume: u64,
    /// The inode; 0 if unknown.
    pub index: u64,
    /// When the file was created, if the file system records it.
    pub born: Option<SystemTime>,
}

impl FileId {
    /// Returns the identity of the file that `metadata` was read from.
    pub fn of(metadata: &Metadata) -> Self {
        let (volume, index) = numbers(metadata);
        Self { volume, index, born: metadata.created().ok() }
    }
}

#[cfg(unix)]
fn numbers(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn numbers(_metadata: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Returns when a file or its metadata last changed, in nanoseconds since 1970.
#[cfg(unix)]
pub fn change_time(metadata: &Metadata) -> Option<i128> {
    use std::os::unix::fs::MetadataExt;
    Some(i128::from(metadata.ctime()) * 1_000_000_000 + i128::from(metadata.ctime_nsec()))
}

#[cfg(not(unix))]
pub fn change_time(_metadata: &Metadata) -> Option<i128> {
    None
}
