//! Digests of files, to detect changes.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::disk::is_absence;
use crate::regular_file::open_file;

/// The length of a file and the SHA-256 of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// The number of bytes.
    pub length: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

impl FileDigest {
    /// Computes the digest of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, sha256: Sha256::digest(bytes).into() }
    }

    /// Computes the digest of a file; `None` if it does not exist.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        match open_file(path) {
            Err(error) if is_absence(error.kind()) && !path.exists() => Ok(None),
            Err(error) => {
                let message = format!("failed to open file `{}`: {error}", path.display());
                Err(io::Error::new(error.kind(), message))
            }
            Ok(file) => Self::read_from(file).map(Some),
        }
    }

    /// Computes the digest of everything that a reader returns.
    pub fn read_from(reader: impl Read) -> io::Result<Self> {
        let mut content = Hashing::new(reader);
        io::copy(&mut content, &mut io::sink())?;
        Ok(content.digest())
    }

    /// Returns the SHA-256 in hexadecimal digits.
    pub fn to_hex(self) -> String {
        const_hex::encode(self.sha256)
    }

    pub(super) fn from_hex(length: u64, hex: &str) -> Option<Self> {
        Some(Self { length, sha256: const_hex::decode_to_array(hex).ok()? })
    }
}

/// A reader that computes the digest of the bytes read through it.
pub(super) struct Hashing<R> {
    inner: R,
    hash: Sha256,
    length: u64,
}

impl<R: Read> Hashing<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hash: Sha256::new(), length: 0 }
    }

    pub(super) fn digest(self) -> FileDigest {
        FileDigest { length: self.length, sha256: self.hash.finalize().into() }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.hash.update(&buf[..n]);
        self.length += n as u64;
        Ok(n)
    }
}

/// The digests of several prefixes of a file.
pub(super) struct Prefixes(Vec<FileDigest>);

impl Prefixes {
    /// Computes the digests of the prefixes of these lengths in one pass. Those longer than the file are left
    /// out.
    pub(super) fn read(file: &mut impl Read, lengths: impl Iterator<Item = u64>) -> io::Result<Self> {
        let mut lengths: Vec<u64> = lengths.collect();
        lengths.sort_unstable();
        lengths.dedup();
        let mut content = Hashing::new(file);
        let mut digests = Vec::new();
        for length in lengths {
            let rest = length - content.length;
            if io::copy(&mut content.by_ref().take(rest), &mut io::sink())? < rest {
                break;
            }
            digests.push(FileDigest { length, sha256: content.hash.clone().finalize().into() });
        }
        Ok(Self(digests))
    }

    /// Whether one of the prefixes has this digest.
    pub(super) fn has(&self, digest: &FileDigest) -> bool {
        self.0.contains(digest)
    }
}
