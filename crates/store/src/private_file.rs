//! Names and files of our own: private files of operations, temporary files, caches and state.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;

/// The beginning of the names of all private files that are created next to files of others.
pub(crate) const PRIVATE_PREFIX: &str = ".threadline-";

/// Returns whether a file name is that of a private file of an operation or of a file that is being written.
/// Such a file belongs to no session; the operation that created it removes it.
pub fn is_private_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(PRIVATE_PREFIX.as_bytes())
}

/// Creates a private file (0600 on Unix) with a random name in `folder`, for reading and appending. It is
/// removed when it is dropped.
///
/// # Errors
///
/// Those of creating a file.
pub fn create_temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    tempfile::Builder::new().prefix(PRIVATE_PREFIX).suffix(".tmp").append(true).tempfile_in(folder)
}

/// Replaces a file of our own, so that no reader sees a part of it. Creates its folder if needed. The file is
/// private (0600 on Unix).
///
/// # Errors
///
/// Those of creating and renaming a file.
pub fn replace_own_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut file = create_temporary(folder)?;
    file.write_all(bytes)?;
    file.persist(path).map(drop).map_err(|failed| failed.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_names_are_recognised() {
        for name in [".threadline-20260101T000000-abcdef-0.old-before", ".threadline-x1Y2.tmp"] {
            assert!(is_private_name(OsStr::new(name)), "{name}");
        }
        for name in ["threadline-notes.md", ".threadline", "s.jsonl"] {
            assert!(!is_private_name(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_link_in_place_of_our_file_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (precious, ours) = (dir.path().join("precious"), dir.path().join("cache/ours"));
        fs_err::write(&precious, "p").unwrap();
        fs_err::create_dir(dir.path().join("cache")).unwrap();
        fs_err::os::unix::fs::symlink(&precious, &ours).unwrap();
        replace_own_file(&ours, b"o").unwrap();
        assert_eq!(fs_err::read_to_string(&ours).unwrap(), "o");
        assert_eq!(fs_err::read_to_string(&precious).unwrap(), "p");
        assert_eq!(fs_err::read_dir(dir.path().join("cache")).unwrap().count(), 1);
    }
}
