//! File system access for all writing operations, as a trait so that tests can make any call fail.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;
use std::fs::{File, Metadata, Permissions};
use std::io;
#[cfg(not(windows))]
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use fs_err::OpenOptions;

use crate::identity::FileId;
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
        open_file(path).map_err(|error| describe(error, format!("failed to open file `{}`", path.display())))
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
    /// Flushes the content of the file at `path` to disk. The error names the path.
    fn sync(&self, file: &File, path: &Path) -> io::Result<()>;
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

    /// Whether two existing paths are on different file systems, as far as this can be determined. Then a
    /// file cannot be renamed from one to the other.
    fn crosses_devices(&self, a: &Path, b: &Path) -> io::Result<bool> {
        let (a, b) = (self.metadata(a)?, self.metadata(b)?);
        Ok(a.zip(b).is_some_and(|(a, b)| FileId::of(&a).volume != FileId::of(&b).volume))
    }

    /// Returns which of the files with this metadata another process has open for writing, as far as this can
    /// be determined. Examines every process once, for any number of files.
    fn written_elsewhere(&self, _: &[Metadata]) -> HashSet<FileId> {
        HashSet::new()
    }

    /// Whether [`FileSystem::written_elsewhere`] finds every program that has a file open.
    fn finds_writers(&self) -> bool {
        false
    }

    /// Whether another process has the file with this metadata open for writing.
    fn is_written_elsewhere(&self, file: &Metadata) -> bool {
        !self.written_elsewhere(std::slice::from_ref(file)).is_empty()
    }
}

/// An error of the system with a message that names the files.
#[derive(Debug)]
struct DescribedError {
    message: String,
    source: io::Error,
}

impl fmt::Display for DescribedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.message, self.source)
    }
}

impl Error for DescribedError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.source)
    }
}

/// Puts a message before an error of the system, which stays its cause.
pub(crate) fn describe(source: io::Error, message: String) -> io::Error {
    io::Error::new(source.kind(), DescribedError { message, source })
}

fn flush_error(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| describe(error, format!("failed to flush `{}` to disk", path.display()))
}

/// The timeout of a wait for another program, which may have crashed.
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

    fn sync(&self, file: &File, path: &Path) -> io::Result<()> {
        file.sync_all().map_err(flush_error(path))
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(flush_error(folder))
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
            let error = describe(failed.error, format!("failed to create `{}`", to.display()));
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
                let message = format!("failed to exchange `{}` with `{}`", a.display(), b.display());
                describe(error.into(), message)
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
        builder
            .create(path)
            .map_err(|error| describe(error, format!("failed to create `{}`", path.display())))
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
        file.set_modified(time)
            .map_err(|error| describe(error, format!("failed to set the time of `{}`", path.display())))
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

    fn finds_writers(&self) -> bool {
        cfg!(target_os = "linux")
    }

    #[cfg(target_os = "linux")]
    fn written_elsewhere(&self, files: &[Metadata]) -> HashSet<FileId> {
        use std::collections::HashMap;
        use std::os::unix::fs::MetadataExt;
        let mut found = HashSet::new();
        let wanted: HashMap<(u64, u64), FileId> =
            files.iter().map(|file| ((file.dev(), file.ino()), FileId::of(file))).collect();
        if wanted.is_empty() {
            return found;
        }
        let own = std::process::id().to_string();
        let entries = |path: &Path| std::fs::read_dir(path).into_iter().flatten().flatten();
        let is_process = |name: &str| name.bytes().all(|byte| byte.is_ascii_digit()) && name != own;
        let processes = entries(Path::new("/proc"))
            .filter(|entry| entry.file_name().to_str().is_some_and(is_process))
            .map(|entry| entry.path());
        for process in processes {
            for open in entries(&process.join("fd")) {
                let Ok(metadata) = std::fs::metadata(open.path()) else { continue };
                let Some(id) = wanted.get(&(metadata.dev(), metadata.ino())) else { continue };
                let info = std::fs::read_to_string(process.join("fdinfo").join(open.file_name()));
                let info = info.unwrap_or_default();
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                // The last octal digit contains the access mode: 0 means read-only.
                if flags.is_some_and(|flags| !flags.trim().ends_with(['0', '4'])) {
                    found.insert(*id);
                    if found.len() == wanted.len() {
                        return found;
                    }
                }
            }
        }
        found
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
    #[cfg(target_os = "linux")]
    fn an_error_of_a_flush_names_the_file_and_keeps_its_cause() {
        let device = File::open("/dev/null").unwrap();
        let error = RealFileSystem.sync(&device, Path::new("/some/log")).unwrap_err();
        assert!(error.to_string().starts_with("failed to flush `/some/log` to disk: "), "{error}");
        let cause = error.get_ref().and_then(|error| error.source()).unwrap();
        assert!(cause.downcast_ref::<io::Error>().unwrap().raw_os_error().is_some());
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
