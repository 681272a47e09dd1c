//! File system access for all writing operations, as a trait so that tests can make any call fail.

use std::fmt;
use std::fs::{File, Metadata, Permissions};
use std::io;
#[cfg(not(windows))]
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fs_err::OpenOptions;

use crate::regular_file::open_file;

/// Read access to a new file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Its owner only (0600 on Unix): logs and copies of logs.
    Private,
    /// As the umask of the process allows: files of a project.
    Shared,
}

/// The file system calls of an operation.
///
/// [`RealFileSystem`] performs them. Tests wrap it to stop after any call, to fail with a chosen error, to
/// write only a part, and to let another program write between two calls.
pub(crate) trait FileSystem: fmt::Debug + Send + Sync {
    /// Opens a regular file for reading.
    fn open(&self, path: &Path) -> io::Result<File> {
        open_file(path).map_err(|error| {
            io::Error::new(error.kind(), format!("failed to open file `{}`: {error}", path.display()))
        })
    }

    /// Opens an existing file for reading and appending.
    fn open_append(&self, path: &Path) -> io::Result<File> {
        Ok(append_options().open(path)?.into_parts().0)
    }

    /// Returns the metadata at `path`, of a symbolic link itself; `None` if nothing exists there.
    fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match fs_err::symlink_metadata(path) {
            Ok(metadata) => Ok(Some(metadata)),
            // A name that no file can have (with a NUL byte) counts as missing.
            Err(error) if is_absence(error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Creates a new file for reading and appending; fails if it exists.
    fn create_new(&self, path: &Path, visibility: Visibility) -> io::Result<File>;
    /// Appends to a file; may write only a part.
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize>;
    /// Truncates a file that no other program uses, or removes a partial write on a full disk.
    fn truncate(&self, file: &File, length: u64) -> io::Result<()>;
    /// Flushes a file's content to disk.
    fn sync(&self, file: &File) -> io::Result<()>;
    /// Flushes the entries of a directory to disk.
    fn sync_folder(&self, folder: &Path) -> io::Result<()>;
    /// Renames a file, replacing an existing one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames a file; fails with `AlreadyExists` if the new name exists.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Exchanges the names of two files in one step; fails with `Unsupported` where the system cannot.
    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()>;
    /// Creates a hard link.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Creates a symbolic link.
    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()>;
    /// Removes a file, or a symbolic link itself.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Creates a directory; its parent must exist.
    fn create_folder(&self, path: &Path, visibility: Visibility) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;
    /// Sets the permissions of a file.
    fn set_permissions(&self, file: &File, permissions: Permissions) -> io::Result<()>;
    /// Sets the modification time of a file.
    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()>;
    /// Sleeps.
    fn pause(&self, time: Duration);
    /// Calls `is_ready` until it returns `true`, for a short time. Returns whether it did.
    fn wait_until(&self, is_ready: &mut dyn FnMut() -> io::Result<bool>) -> io::Result<bool>;

    /// Whether another process has the file with this metadata open for writing, as far as this can be
    /// determined.
    fn is_written_elsewhere(&self, _: &Metadata) -> bool {
        false
    }
}

/// How long to wait for another program that may have crashed.
const WAIT: Duration = Duration::from_millis(50);
/// The part of it without sleeping.
const SPIN: Duration = Duration::from_millis(2);

/// Whether the operating system can exchange the names of two files; a file system of it may still not
/// support it.
pub(crate) const CAN_EXCHANGE: bool =
    cfg!(any(target_os = "linux", target_os = "android", target_vendor = "apple"));

/// Returns options for reading and appending.
///
/// Windows does not truncate a file that is opened in append mode, so there every write names the end of the
/// file instead.
fn append_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(cfg!(windows)).append(!cfg!(windows));
    options
}

/// Whether an error means that nothing exists at a path.
pub(crate) fn is_absence(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidInput)
}

/// Writes all bytes, in as few calls as possible.
pub(crate) fn write_all(fs: &dyn FileSystem, file: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match fs.write(file, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Creates a directory and its missing parents.
pub(crate) fn create_folders(fs: &dyn FileSystem, folder: &Path, visibility: Visibility) -> io::Result<()> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir()).collect();
    for folder in missing.into_iter().rev() {
        match fs.create_folder(folder, visibility) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            made => made?,
        }
    }
    Ok(())
}

/// The real file system.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn create_new(&self, path: &Path, visibility: Visibility) -> io::Result<File> {
        let mut options = append_options();
        options.create_new(true);
        #[cfg(unix)]
        if visibility == Visibility::Private {
            fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = visibility;
        Ok(options.open(path)?.into_parts().0)
    }

    #[cfg(not(windows))]
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    #[cfg(windows)]
    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        // The largest offset is the end of the file at the time of the write.
        std::os::windows::fs::FileExt::seek_write(file, bytes, u64::MAX)
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        file.set_len(length)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        file.sync_all()
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        fs_err::File::open(folder)?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs_err::rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        // `tempfile` implements this with the atomic call of each operating system.
        let from = tempfile::TempPath::try_from_path(from)?;
        from.persist_noclobber(to).map_err(|failed| {
            let error = io::Error::new(
                failed.error.kind(),
                format!("failed to create `{}`: {}", to.display(), failed.error),
            );
            // The file keeps its name; dropping the guard would remove it.
            let _ = failed.path.keep();
            error
        })
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
            // The file system or the kernel does not support it.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Err(io::ErrorKind::Unsupported.into()),
            exchanged => exchanged.map_err(|error| {
                let error = io::Error::from(error);
                let message = format!("failed to exchange `{}` with `{}`: {error}", a.display(), b.display());
                io::Error::new(error.kind(), message)
            }),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn exchange(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs_err::hard_link(from, to)
    }

    #[cfg(unix)]
    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        fs_err::os::unix::fs::symlink(target, path)
    }

    #[cfg(not(unix))]
    fn symlink(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_file(path)
    }

    fn create_folder(&self, path: &Path, visibility: Visibility) -> io::Result<()> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "folders have a mode on Unix only"))]
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        if visibility == Visibility::Private {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        }
        #[cfg(not(unix))]
        let _ = visibility;
        builder.create(path).map_err(|error| {
            io::Error::new(error.kind(), format!("failed to create `{}`: {error}", path.display()))
        })
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs_err::remove_dir(path)
    }

    fn set_permissions(&self, file: &File, permissions: Permissions) -> io::Result<()> {
        file.set_permissions(permissions)
    }

    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        // On Unix the owner may set the time of a file that is read-only; elsewhere that needs write access.
        let file = OpenOptions::new().read(cfg!(unix)).append(!cfg!(unix)).open(path)?.into_parts().0;
        file.set_modified(time).map_err(|error| {
            let message = format!("failed to set the time of `{}`: {error}", path.display());
            io::Error::new(error.kind(), message)
        })
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }

    fn wait_until(&self, is_ready: &mut dyn FnMut() -> io::Result<bool>) -> io::Result<bool> {
        let start = Instant::now();
        // A program that writes line after line in parts ends one and begins the next within microseconds.
        // If it runs on another processor, this is seen without sleeping; on the same one, only by waking up
        // in between, which the system does promptly for a process that sleeps most of the time.
        loop {
            match is_ready()? {
                false if start.elapsed() < SPIN => std::hint::spin_loop(),
                false if start.elapsed() < WAIT => std::thread::sleep(Duration::from_micros(20)),
                ready => return Ok(ready),
            }
        }
    }

    #[cfg(target_os = "linux")]
    fn is_written_elsewhere(&self, file: &Metadata) -> bool {
        use std::os::unix::fs::MetadataExt;
        let own = std::process::id().to_string();
        let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && name != own;
        entries(Path::new("/proc"))
            .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
            .flat_map(|process| entries(&process.path().join("fd")).map(move |open| (process.path(), open)))
            .any(|(process, open)| {
                let is_it = std::fs::metadata(open.path())
                    .is_ok_and(|open| (open.dev(), open.ino()) == (file.dev(), file.ino()));
                is_it && {
                    let info = std::fs::read_to_string(process.join("fdinfo").join(open.file_name()));
                    let info = info.unwrap_or_default();
                    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                    // The last octal digit contains the access mode: 0 means read-only.
                    flags.is_some_and(|flags| !flags.trim().ends_with(['0', '4']))
                }
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few polls with sleeps in between would miss a line that is complete for a moment.
    #[test]
    fn a_wait_looks_often_and_ends() {
        let mut n_looks = 0;
        let mut is_ready = || {
            n_looks += 1;
            Ok(n_looks == 1000)
        };
        assert!(RealFileSystem.wait_until(&mut is_ready).unwrap());
        assert!(!RealFileSystem.wait_until(&mut || Ok(false)).unwrap());
    }

    #[test]
    fn writes_append_and_a_file_can_be_truncated() {
        use std::io::{Seek, SeekFrom};

        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut file = RealFileSystem.create_new(&path, Visibility::Private).unwrap();
        write_all(&RealFileSystem, &mut file, b"one").unwrap();
        let mut other = RealFileSystem.open_append(&path).unwrap();
        write_all(&RealFileSystem, &mut other, b"two").unwrap();
        file.seek(SeekFrom::Start(1)).unwrap();
        write_all(&RealFileSystem, &mut file, b"three").unwrap();
        assert_eq!(file.stream_position().unwrap(), 11);
        RealFileSystem.truncate(&file, 4).unwrap();
        write_all(&RealFileSystem, &mut other, b"!").unwrap();
        assert_eq!(fs_err::read_to_string(&path).unwrap(), "onet!");
    }

    #[test]
    fn the_time_of_a_read_only_file_is_set_and_errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs_err::write(&path, "x").unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        #[cfg(unix)]
        {
            let mut permissions = fs_err::metadata(&path).unwrap().permissions();
            permissions.set_readonly(true);
            fs_err::set_permissions(&path, permissions).unwrap();
        }
        RealFileSystem.set_modified(&path, time).unwrap();
        assert_eq!(fs_err::metadata(&path).unwrap().modified().unwrap(), time);
        let error = RealFileSystem.set_modified(&dir.path().join("none"), time).unwrap_err();
        assert!(error.to_string().contains("none"), "{error}");
    }
}
