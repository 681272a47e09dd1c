//! Compares a folder with an index of it, and lists files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

use foldhash::HashMap;
use ignore::{WalkBuilder, WalkState};
use parking_lot::Mutex;
use rayon::prelude::*;

use super::file_index::{FileIndex, FileStamp, IndexedFile, IndexedFolder, split_path};

/// When to give up.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanLimits {
    pub(super) until: Instant,
    pub(super) files: usize,
}

/// The kind of a name in a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Link,
}

/// The difference between a file and its entry in an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileDifference {
    /// It has another stamp.
    Changed(EntryKind, FileStamp),
    /// It has the same stamp, and may have been changed nevertheless.
    Racy(EntryKind),
    /// There is no such file.
    Gone,
}

/// The state of a folder.
#[derive(Debug, Default)]
pub(super) struct FolderState {
    /// The stamp; `None` if there is no such folder.
    pub(super) stamp: Option<FileStamp>,
    /// The files that differ, by their number in the folder.
    pub(super) differences: Vec<(usize, FileDifference)>,
}

/// Compares all folders and files of an index with those on disk. `None` if it took too long.
pub(super) fn compare(index: &FileIndex<'_>, root: &Path, limits: ScanLimits) -> Option<Vec<FolderState>> {
    let is_late = AtomicBool::new(false);
    let state = |folder: &IndexedFolder<'_>| {
        if is_late.load(Ordering::Relaxed) || Instant::now() > limits.until {
            is_late.store(true, Ordering::Relaxed);
            return FolderState::default();
        }
        let Some((opened, stamp)) = OpenFolder::open(root, &folder.path) else {
            return FolderState::default();
        };
        let difference = |file: &IndexedFile<'_>| match opened.stat(&file.name) {
            None => Some(FileDifference::Gone),
            Some((kind, stamp)) if stamp != file.stamp => Some(FileDifference::Changed(kind, stamp)),
            Some((kind, stamp)) => stamp.is_racy(index.taken_at).then_some(FileDifference::Racy(kind)),
        };
        let files = folder.files.iter().enumerate();
        let differences = files.filter_map(|(at, file)| Some((at, difference(file)?))).collect();
        FolderState { stamp: Some(stamp), differences }
    };
    let mut states: Vec<FolderState> = index.folders.par_iter().with_min_len(16).map(state).collect();
    if is_late.into_inner() {
        return None;
    }
    // A folder below one that has become a link is not the same any more.
    let mut gone: Option<Vec<u8>> = None;
    for (folder, state) in index.folders.iter().zip(&mut states) {
        let is_below = gone.as_ref().is_some_and(|gone| folder.path.starts_with(gone));
        if is_below {
            *state = FolderState::default();
        } else if state.stamp.is_none() && !folder.path.is_empty() {
            gone = Some([&folder.path, &b"/"[..]].concat());
        }
    }
    Some(states)
}

/// Returns a name or path below the root from its bytes in an index.
pub(super) fn os_path(bytes: &[u8]) -> PathBuf {
    #[cfg(unix)]
    return PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes));
    #[cfg(not(unix))]
    return PathBuf::from(String::from_utf8_lossy(bytes).into_owned());
}

/// Returns the bytes of a path below the root, with slashes.
pub(super) fn path_bytes(path: &Path) -> Vec<u8> {
    let parts: Vec<&[u8]> = path.iter().map(OsStr::as_encoded_bytes).collect();
    parts.join(&b'/')
}

/// A folder that is open, so that the files in it are found quickly.
#[cfg(unix)]
pub(super) struct OpenFolder(std::os::fd::OwnedFd);

#[cfg(unix)]
impl OpenFolder {
    /// Opens the folder with a path below the root, unless it is a link.
    pub(super) fn open(root: &Path, path: &[u8]) -> Option<(Self, FileStamp)> {
        use rustix::fs::{Mode, OFlags, fstat, open};
        #[cfg(target_os = "linux")]
        let kind = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        let kind = OFlags::RDONLY;
        let flags = kind | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The root itself may be given by a link.
        let flags = if path.is_empty() { flags } else { flags | OFlags::NOFOLLOW };
        let folder = open(root.join(os_path(path)), flags, Mode::empty()).ok()?;
        let stamp = stamp_of(&fstat(&folder).ok()?);
        Some((Self(folder), stamp))
    }

    /// Returns the stamp of a file or link; `None` if there is none.
    pub(super) fn stat(&self, name: &[u8]) -> Option<(EntryKind, FileStamp)> {
        use rustix::fs::{AtFlags, FileType, statat};
        let stat = statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Symlink => EntryKind::Link,
            _ => return None,
        };
        Some((kind, stamp_of(&stat)))
    }

    /// Opens a regular file for reading. Follows no link, and never blocks.
    pub(super) fn open_file(&self, name: &[u8]) -> Option<std::fs::File> {
        use rustix::fs::{Mode, OFlags, openat};
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        let file = std::fs::File::from(openat(&self.0, name, flags, Mode::empty()).ok()?);
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }

    /// Returns the target of a link.
    pub(super) fn read_link(&self, name: &[u8]) -> Option<Vec<u8>> {
        Some(rustix::fs::readlinkat(&self.0, name, Vec::new()).ok()?.into_bytes())
    }
}

#[cfg(unix)]
#[allow(clippy::unnecessary_cast, clippy::cast_lossless, reason = "the types depend on the system")]
fn stamp_of(stat: &rustix::fs::Stat) -> FileStamp {
    let nanoseconds = |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
    FileStamp {
        size: stat.st_size as u64,
        mtime: nanoseconds(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        ctime: nanoseconds(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        inode: stat.st_ino as u64,
        mode: stat.st_mode as u32,
    }
}

#[cfg(not(unix))]
pub(super) struct OpenFolder(PathBuf);

#[cfg(not(unix))]
impl OpenFolder {
    pub(super) fn open(root: &Path, path: &[u8]) -> Option<(Self, FileStamp)> {
        let folder = root.join(os_path(path));
        let metadata = if path.is_empty() { folder.metadata() } else { folder.symlink_metadata() };
        let metadata = metadata.ok().filter(std::fs::Metadata::is_dir)?;
        Some((Self(folder), FileStamp::of(&metadata)))
    }

    pub(super) fn stat(&self, name: &[u8]) -> Option<(EntryKind, FileStamp)> {
        let metadata = self.0.join(os_path(name)).symlink_metadata().ok()?;
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => return None,
        };
        Some((kind, FileStamp::of(&metadata)))
    }

    pub(super) fn open_file(&self, name: &[u8]) -> Option<std::fs::File> {
        let file = threadline_store::open_regular(&self.0.join(os_path(name))).ok()?;
        file.metadata().is_ok_and(|metadata| metadata.is_file()).then_some(file)
    }

    pub(super) fn read_link(&self, name: &[u8]) -> Option<Vec<u8>> {
        let target = std::fs::read_link(self.0.join(os_path(name))).ok()?;
        Some(target.as_os_str().as_encoded_bytes().to_vec())
    }
}

/// Returns the stamp of the file with a path below the root; `None` if there is none.
pub(super) fn stat(root: &Path, path: &[u8]) -> Option<(EntryKind, FileStamp)> {
    let (folder, name) = split_path(path);
    OpenFolder::open(root, folder)?.0.stat(name)
}

/// The names of files by folder, without those that git ignores. Paths are below the root.
#[derive(Debug, Default)]
pub(super) struct FileListing {
    pub(super) folders: HashMap<Vec<u8>, Vec<Vec<u8>>>,
}

impl FileListing {
    pub(super) fn add(&mut self, folder: &[u8], name: &[u8]) {
        self.folders.entry(folder.to_vec()).or_default().push(name.to_vec());
    }

    /// Adds all files below a folder. Returns whether all were found in time.
    pub(super) fn add_below(&mut self, root: &Path, folder: &[u8], limits: ScanLimits) -> bool {
        let (found, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let is_cut = AtomicBool::new(false);
        walker(root, folder).build_parallel().run(|| {
            Box::new(|entry| {
                let Some(listed) = entry.ok().and_then(|entry| listed(root, &entry)) else {
                    return WalkState::Continue;
                };
                if count.fetch_add(1, Ordering::Relaxed) > limits.files || Instant::now() > limits.until {
                    is_cut.store(true, Ordering::Relaxed);
                    return WalkState::Quit;
                }
                found.lock().push(listed);
                WalkState::Continue
            })
        });
        self.extend(found.into_inner());
        !is_cut.into_inner()
    }

    /// Adds the files directly in a folder, and returns the folders in it.
    pub(super) fn add_folder(&mut self, root: &Path, folder: &[u8]) -> Vec<Vec<u8>> {
        let entries = walker(root, folder).max_depth(Some(1)).build();
        let listed = entries.flatten().filter_map(|entry| listed(root, &entry));
        let (folders, files): (Vec<_>, Vec<_>) = listed.partition(|(_, is_folder)| *is_folder);
        self.extend(files);
        self.folders.entry(folder.to_vec()).or_default();
        folders.into_iter().map(|(path, _)| path).filter(|path| path != folder).collect()
    }

    fn extend(&mut self, found: Vec<(Vec<u8>, bool)>) {
        for (path, is_folder) in found {
            if is_folder {
                self.folders.entry(path).or_default();
            } else {
                let (folder, name) = split_path(&path);
                self.add(folder, name);
            }
        }
    }
}

fn walker(root: &Path, folder: &[u8]) -> WalkBuilder {
    let mut walker = WalkBuilder::new(root.join(os_path(folder)));
    walker.hidden(false).ignore(false).require_git(false).follow_links(false).same_file_system(true);
    walker.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walker.threads(rayon::current_num_threads().min(8));
    walker
}

/// Returns the path of an entry below the root, and whether it is a folder. `None` for what is neither a
/// file, nor a link, nor a folder.
fn listed(root: &Path, entry: &ignore::DirEntry) -> Option<(Vec<u8>, bool)> {
    let kind = entry.file_type()?;
    // The first folder may be given by a link.
    let is_folder = kind.is_dir() || entry.depth() == 0;
    if !is_folder && !kind.is_file() && !kind.is_symlink() {
        return None;
    }
    Some((path_bytes(entry.path().strip_prefix(root).ok()?), is_folder))
}
