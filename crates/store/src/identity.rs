//! Which file this is, whatever its name.

use std::fs::Metadata;
use std::time::SystemTime;

/// Tells one file from another that later takes its name.
///
/// A number may be given to a new file once the old one is gone, so the moment of birth is part of
/// the identity where the file system keeps it. Where there is no such number (not on Unix), the
/// birth is all there is; whoever must be sure compares a [`Fingerprint`](crate::Fingerprint) too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    /// The device; 0 where unknown.
    pub volume: u64,
    /// The inode; 0 where unknown.
    pub index: u64,
    /// When the file was made, if the file system says.
    pub born: Option<SystemTime>,
}

impl FileId {
    /// The identity of the file that `metadata` was read from.
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
