//! Why a file cannot be written, found out without writing.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use crate::disk::is_absence;
use crate::regular_file::open_regular;
use crate::write_root::existing_part;

/// The maximum number of folders above a new file. A path is examined folder by folder, and each
/// folder costs the length of the path.
const MAX_DEPTH: usize = 128;

/// Returns why no file can be created, replaced or removed at `path`; `None` if no reason is known.
///
/// An operation changes all its files or none, so one that cannot be written is left out of it.
pub fn write_obstacle(path: &Path) -> Option<String> {
    if path.as_os_str().as_encoded_bytes().contains(&0) {
        return Some("no file can have this name".to_owned());
    }
    if !path.is_absolute() {
        return Some("a path of another system".to_owned());
    }
    let Some(name) = path.file_name() else { return Some("a folder".to_owned()) };
    match std::fs::symlink_metadata(path) {
        Ok(_) => existing_obstacle(path),
        Err(error) if is_absence(error.kind()) => missing_obstacle(path, name),
        Err(error) => Some(error_text(&error)),
    }
}

fn existing_obstacle(path: &Path) -> Option<String> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Some("there is a folder of that name".to_owned()),
        Ok(metadata) if !metadata.is_file() => return Some("not a regular file".to_owned()),
        Ok(_) => {}
        Err(error) if is_absence(error.kind()) => {
            return Some("there is a link to a file that does not exist".to_owned());
        }
        Err(error) => return Some(error_text(&error)),
    }
    if let Err(error) = open_regular(path) {
        return Some(error_text(&error));
    }
    // The target of a link is changed, and the link itself removed.
    let real = std::fs::canonicalize(path).ok();
    [Some(path), real.as_deref()].into_iter().flatten().find_map(|path| folder_obstacle(path.parent()?))
}

/// The obstacle to a new file, and to the folders above it that are missing.
fn missing_obstacle(path: &Path, name: &OsStr) -> Option<String> {
    if path.components().count() > MAX_DEPTH {
        return Some("too many folders".to_owned());
    }
    let folder = existing_part(path.parent()?)?;
    match std::fs::metadata(folder) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => return Some(format!("{} is not a folder", folder.display())),
        Err(error) => return Some(format!("{}: {}", folder.display(), error_text(&error))),
    }
    // A name that is too long is reported only where the folder exists.
    let missing = path.strip_prefix(folder).into_iter().flat_map(Path::components);
    let mut names: Vec<_> = missing.map(|name| folder.join(name)).collect();
    // The content is written under a private name first, which makes a long path longer.
    let private = ".threadline-00000000T000000-000000-000000.new-before";
    if name.len() < private.len() {
        names.push(path.with_file_name(private));
    }
    let is_impossible = |path: &std::path::PathBuf| match std::fs::symlink_metadata(path) {
        Err(error) if !is_absence(error.kind()) => Some(error_text(&error)),
        _ => None,
    };
    names.iter().find_map(is_impossible).or_else(|| folder_obstacle(folder))
}

/// The reason why no file can be created in an existing folder.
#[cfg(unix)]
fn folder_obstacle(folder: &Path) -> Option<String> {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    let flags = Access::WRITE_OK | Access::EXEC_OK;
    let error = accessat(CWD, folder, flags, AtFlags::EACCESS).err()?;
    Some(format!("{}: {}", folder.display(), error_text(&error.into())))
}

#[cfg(not(unix))]
fn folder_obstacle(_: &Path) -> Option<String> {
    None
}

/// The text of an error of the system, without its number.
fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(unix)]
    fn files_that_cannot_be_written_have_a_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs_err::write(at("file"), "x").unwrap();
        fs_err::create_dir(at("folder")).unwrap();
        fs_err::os::unix::fs::symlink("none", at("dangling")).unwrap();
        fs_err::os::unix::fs::symlink("file", at("link")).unwrap();
        let status = std::process::Command::new("mkfifo").arg(at("fifo")).status().unwrap();
        assert!(status.success());
        let long = "x".repeat(300);
        for (name, reason) in [
            ("file", None),
            ("link", None),
            ("new", None),
            ("new/deep/file", None),
            ("folder/new", None),
            ("folder", Some("a folder")),
            ("fifo", Some("not a regular file")),
            ("dangling", Some("does not exist")),
            ("file/below", Some("file is not a folder")),
            ("file/below/deep", Some("file is not a folder")),
            (&long, Some("name too long")),
            (&format!("new/{long}/file"), Some("name too long")),
            (&"deep/".repeat(2000), Some("name too long")),
            (&"a/".repeat(500), Some("too many folders")),
            ("a\0b", Some("no file can have this name")),
            ("..", Some("a folder")),
        ] {
            let found = write_obstacle(&at(name));
            match reason {
                None => assert_eq!(found, None, "{name}"),
                Some(reason) => {
                    assert!(found.as_ref().is_some_and(|it| it.contains(reason)), "{name}: {found:?}")
                }
            }
        }
        assert!(write_obstacle(Path::new("C:\\x")).is_some());
        assert!(write_obstacle(Path::new("/")).is_some());
    }
}
