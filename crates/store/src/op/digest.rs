//! Digests: whether a file holds what was written to it.

use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

/// The length of a file and the SHA-256 of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileDigest {
    /// How many bytes it has.
    pub length: u64,
    /// Their SHA-256.
    pub sha256: [u8; 32],
}

impl FileDigest {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, sha256: Sha256::digest(bytes).into() }
    }

    /// Of a file; `None` if there is none.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        let mut file = match fs_err::File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => Hashing::new(file?),
        };
        io::copy(&mut file, &mut io::sink())?;
        Ok(Some(file.digest()))
    }

    pub(super) fn to_hex(self) -> String {
        self.sha256.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn from_hex(length: u64, hex: &str) -> Option<Self> {
        let mut sha256 = [0; 32];
        if hex.len() != 64 {
            return None;
        }
        for (i, byte) in sha256.iter_mut().enumerate() {
            *byte = u8::from_str_radix(hex.get(2 * i..2 * i + 2)?, 16).ok()?;
        }
        Some(Self { length, sha256 })
    }
}

/// Hashes what is read through it.
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
