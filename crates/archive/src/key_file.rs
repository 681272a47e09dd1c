//! Key files of encrypted archives, in the format of `age-keygen`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use bech32::{Bech32, Hrp};

use crate::age_file::{KeyBytes, public_key, random};
use crate::error::ArchiveError;

/// The secret keys of a key file, which decrypt an archive. It is never copied into the archive.
#[derive(Clone)]
pub struct KeyFile {
    path: PathBuf,
    secrets: Vec<KeyBytes>,
}

impl std::fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyFile").field("path", &self.path).finish_non_exhaustive()
    }
}

const SECRET_PREFIX: &str = "age-secret-key-";
const PUBLIC_PREFIX: &str = "age";

impl KeyFile {
    /// Reads a key file: lines with `AGE-SECRET-KEY-1…`, and comments after `#`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, has no key, or a line that is not a key. Messages never quote a line.
    pub fn read(path: &Path) -> Result<Self, ArchiveError> {
        let wrong = |reason: String| ArchiveError::KeyFile { path: path.to_owned(), reason };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let mut secrets = Vec::new();
        for (line, number) in lines {
            let key = parse_key(line, SECRET_PREFIX).ok_or_else(|| {
                wrong(format!("line {number} is not a key that begins with AGE-SECRET-KEY-1"))
            })?;
            secrets.push(key);
        }
        match secrets.is_empty() {
            true => Err(wrong("it has no key".to_owned())),
            false => Ok(Self { path: path.to_owned(), secrets }),
        }
    }

    /// Creates a key file that only the user can read. One that exists is not changed.
    ///
    /// # Errors
    ///
    /// If the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, ArchiveError> {
        let wrong = |reason: String| ArchiveError::KeyFile { path: path.to_owned(), reason };
        let secret: KeyBytes =
            random().ok_or_else(|| wrong("the system has no random numbers".to_owned()))?;
        let key = Self { path: path.to_owned(), secrets: vec![secret] };
        let mut text = String::new();
        let encoded = encode_key(&secret, SECRET_PREFIX).to_uppercase();
        let _ = write!(text, "# public key: {}\n{encoded}\n", key.recipient());
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(|error| wrong(error.to_string()))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(|error| wrong(error.to_string()))?;
        Ok(key)
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the public key of the first secret key, `age1…`.
    pub fn recipient(&self) -> String {
        self.secrets.first().map(|secret| encode_key(&public_key(secret), PUBLIC_PREFIX)).unwrap_or_default()
    }

    pub(crate) fn secrets(&self) -> &[KeyBytes] {
        &self.secrets
    }
}

fn parse_key(text: &str, prefix: &str) -> Option<KeyBytes> {
    let (found, bytes) = bech32::decode(text).ok()?;
    (found.to_lowercase() == prefix).then_some(())?;
    bytes.try_into().ok()
}

fn encode_key(key: &KeyBytes, prefix: &str) -> String {
    let prefix = Hrp::parse(prefix).ok();
    prefix.and_then(|prefix| bech32::encode::<Bech32>(prefix, key).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_created_key_is_read_again_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let created = KeyFile::create(&path).unwrap();
        let read = KeyFile::read(&path).unwrap();
        assert_eq!(read.secrets, created.secrets);
        assert!(read.recipient().starts_with("age1"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.lines().any(|line| line.starts_with("AGE-SECRET-KEY-1")));
        assert!(KeyFile::create(&path).is_err(), "a key is never replaced");
        assert!(!format!("{read:?}").contains("SECRET"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn errors_do_not_quote_a_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        for text in
            ["", "# only a comment\n", "AGE-SECRET-KEY-1QQQQ\n", "age1qqqq\n", "-----BEGIN KEY-----\n"]
        {
            std::fs::write(&path, text).unwrap();
            let error = KeyFile::read(&path).unwrap_err().to_string();
            assert!(!error.contains("QQQQ") && !error.contains("qqqq"), "{error}");
        }
    }
}
