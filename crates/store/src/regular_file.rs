//! Opens regular files only.
//!
//! A path that ends in `.jsonl` may be a pipe, which blocks when opened, a device, which may be endless, or a
//! link to a target outside the home. All code that reads files in a home uses this module.

use std::fs::File;
#[cfg(unix)]
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Opens the regular file at `path` for reading. Never blocks.
///
/// Inside a home, which is the parent of a `projects` directory, a link is followed only to a target inside
/// that home. Elsewhere links are followed, since the user named the path.
///
/// # Errors
///
/// Returns the error of opening the file; [`io::ErrorKind::InvalidInput`] if it is not a regular file;
/// [`io::ErrorKind::PermissionDenied`] if it is a link that is not followed. The errors do not contain the
/// path.
pub fn open_regular(path: &Path) -> io::Result<File> {
    // Few logs are links, so the file is not examined before it is opened. Without the flag, opening a pipe
    // would block until there is a writer.
    #[cfg(unix)]
    if let Ok(file) = open_with_flags(path, libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW) {
        return if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_error()) };
    }
    check_regular(path)?;
    // A pipe may have replaced the file since the check.
    #[cfg(unix)]
    let file = open_with_flags(path, libc::O_NONBLOCK | libc::O_NOCTTY)?;
    #[cfg(not(unix))]
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_error()) }
}

#[cfg(unix)]
fn open_with_flags(path: &Path, flags: libc::c_int) -> io::Result<File> {
    std::os::unix::fs::OpenOptionsExt::custom_flags(OpenOptions::new().read(true), flags).open(path)
}

/// Opens the regular file at `path` for reading, also through links. Never blocks. For files that are found
/// by a fixed name outside of homes: settings, receipts, state and caches.
///
/// # Errors
///
/// Returns the error of opening the file; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open_file(path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    let file = open_with_flags(path, libc::O_NONBLOCK | libc::O_NOCTTY)?;
    #[cfg(not(unix))]
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_error()) }
}

/// Reads the regular file at `path`, as [`open_file`] opens it.
///
/// # Errors
///
/// Those of [`open_file`], and of reading.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the regular file at `path` as text, as [`open_file`] opens it.
///
/// # Errors
///
/// Those of [`read_file`], and [`io::ErrorKind::InvalidData`] if it is not UTF-8.
pub fn read_text_file(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open_file(path)?.read_to_string(&mut text)?;
    Ok(text)
}

/// Opens a file of our own for appending or as a lock, and creates it if needed. Never blocks, and follows no
/// link.
///
/// # Errors
///
/// Those of opening the file; [`io::ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open_own_file(path: &Path) -> io::Result<File> {
    let mut options = std::fs::OpenOptions::new();
    // Windows does not lock a file that is opened for appending only.
    options.read(true).create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW);
    }
    let file = options.open(path).map_err(|error| {
        io::Error::new(error.kind(), format!("failed to open `{}`: {error}", path.display()))
    })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular_error()) }
}

/// Reads the regular file at `path`, as [`open_regular`] opens it.
pub fn read_regular(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Does the same as [`open_regular`], with errors that contain the path.
pub fn open(path: &Path) -> io::Result<fs_err::File> {
    let file = open_regular(path).map_err(|error| with_path(path, &error))?;
    Ok(fs_err::File::from_parts(file, path))
}

/// Does the same as [`read_regular`], with errors that contain the path.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_regular(path).map_err(|error| with_path(path, &error))
}

/// Opens the regular file at `path` if it is inside `folder` after resolving all links.
pub(crate) fn open_inside(folder: &Path, path: &Path) -> io::Result<fs_err::File> {
    let real = fs_err::canonicalize(path)?;
    if !real.starts_with(fs_err::canonicalize(folder)?) {
        return Err(with_path(path, &outside_home_error()));
    }
    open(&real)
}

/// Returns an error unless `path` is a regular file, or a link to one that may be followed.
pub(crate) fn check_regular(path: &Path) -> io::Result<()> {
    let mut metadata = std::fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        if let Some(home) = home_of(path)
            && !is_inside(path, &real_roots(home))
        {
            // A dangling link is reported as not found.
            std::fs::metadata(path)?;
            return Err(outside_home_error());
        }
        metadata = std::fs::metadata(path)?;
    }
    if metadata.is_file() { Ok(()) } else { Err(not_regular_error()) }
}

/// Returns whether a path is below one of `roots` after resolving links.
pub(crate) fn is_inside(path: &Path, roots: &[PathBuf]) -> bool {
    std::fs::canonicalize(path).is_ok_and(|real| roots.iter().any(|root| real.starts_with(root)))
}

/// Returns the canonical directories of a home: its root, and `projects`, which may be a link.
pub(crate) fn real_roots(home: &Path) -> Vec<PathBuf> {
    [home.to_owned(), home.join("projects")]
        .iter()
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect()
}

/// Returns the error for a link that is not followed.
pub(crate) fn link_error(path: &Path) -> io::Error {
    with_path(path, &outside_home_error())
}

/// Returns the error for a linked folder that nothing is written below.
pub(crate) fn linked_folder_error(folder: &Path) -> io::Error {
    let error = outside_home_error();
    io::Error::new(error.kind(), format!("cannot write below `{}`: {error}", folder.display()))
}

/// Returns the home that contains a path, according to its name.
fn home_of(path: &Path) -> Option<&Path> {
    let is_projects = |dir: &&Path| dir.file_name().is_some_and(|name| name == "projects");
    path.parent()?.ancestors().find(is_projects)?.parent()
}

fn with_path(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot read `{}`: {error}", path.display()))
}

fn not_regular_error() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

fn outside_home_error() -> io::Error {
    io::Error::new(
        io::ErrorKind::PermissionDenied,
        "symbolic link to a target outside the home, not followed",
    )
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    fn kind(path: &Path) -> Option<io::ErrorKind> {
        open_regular(path).err().map(|error| error.kind())
    }

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("log.jsonl"), "{}\n").unwrap();
        fs_err::create_dir(at("dir.jsonl")).unwrap();
        let _socket = UnixListener::bind(at("socket.jsonl")).unwrap();
        // Opening a pipe without a writer would block this test forever.
        assert!(Command::new("mkfifo").arg(at("pipe.jsonl")).status().unwrap().success());
        symlink("/dev/zero", at("zero.jsonl")).unwrap();
        symlink(at("pipe.jsonl"), at("link.jsonl")).unwrap();
        symlink(at("log.jsonl"), at("good.jsonl")).unwrap();
        assert_eq!((kind(&at("log.jsonl")), kind(&at("good.jsonl"))), (None, None));
        for odd in ["dir.jsonl", "socket.jsonl", "pipe.jsonl", "zero.jsonl", "link.jsonl"] {
            assert_eq!(kind(&at(odd)), Some(io::ErrorKind::InvalidInput), "{odd}");
        }
        assert_eq!(kind(&at("none.jsonl")), Some(io::ErrorKind::NotFound));
        for odd in ["dir.jsonl", "pipe.jsonl", "zero.jsonl", "link.jsonl"] {
            assert_eq!(read_file(&at(odd)).unwrap_err().kind(), io::ErrorKind::InvalidInput, "{odd}");
            assert!(open_own_file(&at(odd)).is_err(), "{odd}");
        }
        assert_eq!(read_text_file(&at("good.jsonl")).unwrap(), "{}\n");
        assert!(open_own_file(&at("good.jsonl")).is_err(), "a lock is no link");
        open_own_file(&at("log.jsonl")).unwrap();
        open_own_file(&at("lock")).unwrap();
        assert_eq!(read_regular(&at("good.jsonl")).unwrap(), b"{}\n");
    }

    #[test]
    fn in_a_home_links_are_followed_inside_it() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("home/projects/-p");
        fs_err::create_dir_all(&folder).unwrap();
        fs_err::write(folder.join("a.jsonl"), "a").unwrap();
        fs_err::write(dir.path().join("secret"), "s").unwrap();
        symlink("a.jsonl", folder.join("inside.jsonl")).unwrap();
        symlink("../../../secret", folder.join("outside.jsonl")).unwrap();
        symlink("nowhere", folder.join("dangling.jsonl")).unwrap();
        assert_eq!(kind(&folder.join("inside.jsonl")), None);
        assert_eq!(kind(&folder.join("outside.jsonl")), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind(&folder.join("dangling.jsonl")), Some(io::ErrorKind::NotFound));
        // The same with a `projects` directory that is itself a link.
        fs_err::create_dir(dir.path().join("other")).unwrap();
        symlink(dir.path().join("home/projects"), dir.path().join("other/projects")).unwrap();
        assert_eq!(kind(&dir.path().join("other/projects/-p/inside.jsonl")), None);
        assert_eq!(
            kind(&dir.path().join("other/projects/-p/outside.jsonl")),
            Some(io::ErrorKind::PermissionDenied)
        );
    }
}
