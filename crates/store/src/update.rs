//! Changes a file that other programs save as a whole, such as settings, without losing their changes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::{FileSystem, RealFileSystem, Visibility, create_folders, is_absence, write_all};
use crate::private_file::create_temporary;

/// The number of attempts while other programs keep saving the file.
const ATTEMPTS: usize = 100;

/// The number and the length of the waits for a program that has the replaced file open for writing.
const OPEN_POLLS: usize = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A change to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileUpdate {
    /// The file stays as it is.
    Keep,
    /// The file gets this content. It is created if it does not exist.
    Write(Vec<u8>),
    /// The file is removed.
    Remove,
}

/// Changes the file at `path`, following links and keeping its permissions. A new file is private.
///
/// `change` is called with the content, `None` if there is no file. If another program saves the file
/// meanwhile, its content stays, and `change` is called again with it. On systems that cannot exchange two
/// files, a save at the very moment of the change is replaced.
///
/// # Errors
///
/// The error of `change`, and errors of reading and writing. The file is as other programs left it then.
pub fn update_file<E: From<io::Error>>(
    path: &Path,
    change: impl FnMut(Option<&[u8]>) -> Result<FileUpdate, E>,
) -> Result<(), E> {
    update_with(&RealFileSystem, path, change)
}

pub(crate) fn update_with<E: From<io::Error>>(
    fs: &dyn FileSystem,
    path: &Path,
    mut change: impl FnMut(Option<&[u8]>) -> Result<FileUpdate, E>,
) -> Result<(), E> {
    for _ in 0..ATTEMPTS {
        let path = resolve(path)?;
        let before = read(fs, &path)?;
        let is_done = match change(before.as_deref())? {
            FileUpdate::Keep => true,
            FileUpdate::Write(content) if before.as_deref() == Some(&*content) => true,
            FileUpdate::Write(content) => write(fs, &path, before.as_deref(), &content)?,
            FileUpdate::Remove => match &before {
                Some(before) => remove(fs, &path, before)?,
                None => true,
            },
        };
        if is_done {
            return Ok(());
        }
    }
    Err(io::Error::other(format!("another program keeps saving `{}`", path.display())).into())
}

/// Returns the path of the file that a link leads to.
fn resolve(path: &Path) -> io::Result<PathBuf> {
    match std::fs::canonicalize(path) {
        Ok(real) => Ok(real),
        Err(error) if is_absence(error.kind()) && !path.is_symlink() => Ok(path.to_owned()),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))),
    }
}

fn read(fs: &dyn FileSystem, path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match fs.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content)?;
    Ok(Some(content))
}

/// Writes the content if the file still has the content `before`. Returns whether it had.
fn write(fs: &dyn FileSystem, path: &Path, before: Option<&[u8]>, content: &[u8]) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    create_folders(fs, folder, Visibility::Shared)?;
    let (mut file, new) = create_temporary(folder)?.keep().map_err(|error| error.error)?;
    let written = (|| {
        write_all(fs, &mut file, content)?;
        if let Some(metadata) = fs.metadata(path)?
            && metadata.is_file()
        {
            fs.set_permissions(&file, metadata.permissions())?;
        }
        fs.sync(&file, &new)?;
        match before {
            None => match fs.rename_new(&new, path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
                renamed => renamed.map(|()| true),
            },
            Some(before) => exchange(fs, &new, path, before, content),
        }
    })();
    if !matches!(written, Ok(true)) && read(fs, &new).ok().flatten().as_deref() == Some(content) {
        // The new file was not installed, or is not needed any more.
        let _ = fs.remove_file(&new);
    }
    if matches!(written, Ok(true)) {
        fs.sync_folder(folder)?;
    }
    written
}

/// Gives the new file the name of the one at `path`, if that has the content `before`. Otherwise the file of
/// the other program keeps its name. Returns whether the new file has it.
fn exchange(fs: &dyn FileSystem, new: &Path, path: &Path, before: &[u8], content: &[u8]) -> io::Result<bool> {
    match fs.exchange(new, path) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            if read(fs, path)?.as_deref() != Some(before) {
                return Ok(false);
            }
            return fs.rename(new, path).map(|()| true);
        }
        // Another program has removed the file.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        exchanged => exchanged?,
    }
    // A program may still write to the file that it has opened by its name.
    for _ in 0..OPEN_POLLS {
        match fs.metadata(new)? {
            Some(displaced) if fs.is_written_elsewhere(&displaced) => fs.pause(POLL_INTERVAL),
            _ => break,
        }
    }
    if read(fs, new)?.as_deref() == Some(before) {
        fs.remove_file(new)?;
        return Ok(true);
    }
    // The displaced file is a later one, of another program: it gets its name back.
    fs.exchange(new, path).map_err(|error| name_displaced(&error, new))?;
    if read(fs, new)?.as_deref() != Some(content) {
        // The program has saved it again: the last one keeps the name.
        fs.exchange(new, path)?;
        fs.remove_file(new)?;
    }
    Ok(false)
}

/// Removes the file if it has the content `before`. Returns whether it had.
fn remove(fs: &dyn FileSystem, path: &Path, before: &[u8]) -> io::Result<bool> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let (_, displaced) = create_temporary(folder)?.keep().map_err(|error| error.error)?;
    match fs.rename(path, &displaced) {
        // Another program has removed it.
        Err(error) if is_absence(error.kind()) => {
            fs.remove_file(&displaced)?;
            return Ok(false);
        }
        renamed => renamed?,
    }
    let content = read(fs, &displaced).map_err(|error| name_displaced(&error, &displaced))?;
    if content.as_deref() == Some(before) {
        fs.remove_file(&displaced)?;
        return Ok(true);
    }
    match fs.rename_new(&displaced, path) {
        // The program has saved it again: the last one keeps the name.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs.remove_file(&displaced)?,
        renamed => renamed.map_err(|error| name_displaced(&error, &displaced))?,
    }
    Ok(false)
}

/// Returns the error with the name of the file that the content of another program has now.
fn name_displaced(error: &io::Error, displaced: &Path) -> io::Error {
    let message = format!("{error}; the content that another program saved is in `{}`", displaced.display());
    io::Error::new(error.kind(), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_new(new: &str) -> impl FnMut(Option<&[u8]>) -> io::Result<FileUpdate> {
        move |_| Ok(FileUpdate::Write(new.as_bytes().to_vec()))
    }

    #[test]
    fn a_file_is_created_changed_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/settings.json");
        update_file(&path, write_new("a")).unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "a");
        update_file(&path, |before| Ok::<_, io::Error>(FileUpdate::Write([before.unwrap(), b"b"].concat())))
            .unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "ab");
        update_file(&path, |_| Err::<FileUpdate, _>(io::Error::other("no"))).unwrap_err();
        update_file(&path, |_| Ok::<_, io::Error>(FileUpdate::Remove)).unwrap();
        assert_eq!(fs_err::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }

    #[test]
    #[cfg(unix)]
    fn links_are_followed_and_permissions_stay() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs_err::write(&real, "a").unwrap();
        fs_err::set_permissions(&real, PermissionsExt::from_mode(0o640)).unwrap();
        fs_err::os::unix::fs::symlink(&real, &link).unwrap();
        update_file(&link, write_new("b")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs_err::read_to_string(&real).unwrap(), "b");
        assert_eq!(fs_err::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
        fs_err::remove_file(&real).unwrap();
        update_file(&link, write_new("c")).unwrap_err();
        assert!(link.is_symlink() && !real.exists());
    }
}
