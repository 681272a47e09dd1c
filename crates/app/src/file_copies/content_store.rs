//! Contents of files by their hash.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use threadline_store::{read_file, replace_own_file};

/// The SHA-256 of the content of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(pub(super) [u8; 32]);

impl ContentHash {
    /// Returns the hash of a content.
    pub fn of(content: &[u8]) -> Self {
        Self(Sha256::digest(content).into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

/// The text is not a hash.
#[derive(Debug, thiserror::Error)]
#[error("not 64 hexadecimal digits")]
pub struct InvalidHash;

impl FromStr for ContentHash {
    type Err = InvalidHash;

    fn from_str(text: &str) -> Result<Self, InvalidHash> {
        let mut hash = [0; 32];
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(InvalidHash);
        }
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| InvalidHash)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| InvalidHash)?;
        }
        Ok(Self(hash))
    }
}

impl TryFrom<String> for ContentHash {
    type Error = InvalidHash;

    fn try_from(text: String) -> Result<Self, InvalidHash> {
        text.parse()
    }
}

/// The folder with the contents.
#[derive(Debug)]
pub(super) struct ContentStore {
    folder: PathBuf,
    added: AtomicU64,
}

impl ContentStore {
    pub(super) fn at(folder: PathBuf) -> Self {
        Self { folder, added: AtomicU64::new(0) }
    }

    /// Returns the path of the file with this content, which need not exist.
    pub(super) fn path(&self, hash: &ContentHash) -> PathBuf {
        let name = hash.to_string();
        self.folder.join(&name[..2]).join(name)
    }

    pub(super) fn contains(&self, hash: &ContentHash) -> bool {
        self.path(hash).is_file()
    }

    /// Adds a content that may be present already.
    pub(super) fn add(&self, content: &[u8]) -> io::Result<ContentHash> {
        let hash = ContentHash::of(content);
        let path = self.path(&hash);
        if !path.is_file() {
            create_private_folder(path.parent().unwrap_or(&self.folder))?;
            replace_own_file(&path, content)?;
            self.added.fetch_add(content.len() as u64, Ordering::Relaxed);
        }
        Ok(hash)
    }

    /// Reads a content. `None` if it is not stored, or not as it was stored.
    pub(super) fn read(&self, hash: &ContentHash) -> Option<Vec<u8>> {
        let content = read_file(&self.path(hash)).ok()?;
        (ContentHash::of(&content) == *hash).then_some(content)
    }

    pub(super) fn remove(&self, hash: &ContentHash) -> io::Result<()> {
        match std::fs::remove_file(self.path(hash)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the number of bytes that were added since the last call.
    pub(super) fn take_added(&self) -> u64 {
        self.added.swap(0, Ordering::Relaxed)
    }

    /// Returns the hashes and lengths of all contents.
    pub(super) fn list(&self) -> Vec<(ContentHash, u64)> {
        let folders = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten());
        let files = files.flatten().filter_map(|file| {
            let hash = file.file_name().to_str()?.parse().ok()?;
            Some((hash, file.metadata().ok()?.len()))
        });
        files.collect()
    }
}

/// Creates a folder, and those above it, that only the user can read.
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_private_and_verified() {
        let dir = tempfile::tempdir().unwrap();
        let contents = ContentStore::at(dir.path().join("files/objects"));
        let hash = contents.add(b"text").unwrap();
        assert_eq!(contents.add(b"text").unwrap(), hash);
        assert_eq!((contents.take_added(), contents.take_added()), (4, 0));
        assert_eq!(contents.read(&hash).as_deref(), Some(&b"text"[..]));
        assert_eq!(contents.list(), [(hash, 4)]);
        assert_eq!(hash.to_string().parse::<ContentHash>().unwrap(), hash);
        let path = contents.path(&hash);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        }
        std::fs::write(&path, b"other").unwrap();
        assert_eq!(contents.read(&hash), None);
        contents.remove(&hash).unwrap();
        contents.remove(&hash).unwrap();
        assert!(!contents.contains(&hash));
        assert!("xyz".parse::<ContentHash>().is_err() && "é".repeat(32).parse::<ContentHash>().is_err());
    }
}
