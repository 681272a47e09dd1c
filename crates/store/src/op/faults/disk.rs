//! A file system that fails or stops at a chosen call, and another program that writes between two calls.

use std::collections::HashSet;
use std::fs::{File, Permissions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use crate::disk::{FileSystem, RealFileSystem, Visibility};
use crate::identity::FileId;

/// The kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The process ends: this call and all later ones do nothing.
    Stop,
    /// This call fails with an error of the system.
    Error(i32),
    /// This call and all later ones that write fail.
    Errors(i32),
    /// A write lets half of the bytes through, and the next one finds the disk full.
    Short,
}

pub(super) const ENOSPC: i32 = 28;
pub(super) const EIO: i32 = 5;

/// How another program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// It opens the log for every line, and makes it if it is not there.
    Reopening,
    /// It keeps the log open.
    Holding,
    /// It opens the log for every line, writes half of the line, and the rest before a later call.
    Halving,
    /// The same, and it may begin between the last check of the file and a write to it.
    Racing,
    /// It saves the file: it writes another one and renames it over the file.
    Saving,
    /// It saves the file once, and then appends to the file that has its name.
    SavingFirst,
}

/// The part of a line that a log may end with. The other program is writing that line, and completes it.
pub(super) const PART: &str = "{\"n\":2";

/// The number of calls until a half line is completed. An append waits longer.
const CALLS_PER_HALF: usize = 3;

/// Another program, which appends a line between two calls.
#[derive(Debug)]
pub(super) struct Writer {
    pub(super) log: PathBuf,
    pub(super) writing: Writing,
    /// The log, if it keeps it open.
    pub(super) open_file: Option<File>,
    /// The file that has half a line, the line, and the call before which it is completed.
    pub(super) half: Option<(File, String, usize)>,
    /// The first call before which it writes, and how many lines.
    pub(super) from: usize,
    pub(super) limit: usize,
    pub(super) written: Vec<String>,
}

impl Writer {
    fn before_call(&mut self, call: usize, is_write: bool) {
        if self.half.as_ref().is_some_and(|(_, _, end)| call >= *end) {
            self.complete();
            return;
        }
        if self.half.is_some() || call < self.from || self.written.len() >= self.limit {
            return;
        }
        // Lines of others that are copied at this moment are inside of its line.
        if self.writing == Writing::Halving && is_write {
            return;
        }
        let line = format!("{{\"by\":\"another program\",\"n\":{}}}\n", self.written.len());
        if self.writing == Writing::Saving || self.writing == Writing::SavingFirst && self.written.is_empty()
        {
            let new = self.log.with_extension("saved");
            // If the folder does not exist, it cannot write.
            if std::fs::write(&new, &line).is_err() {
                return;
            }
            std::fs::rename(&new, &self.log).unwrap();
            self.written.push(line);
            return;
        }
        let mut file = match &self.open_file {
            Some(open_file) => open_file.try_clone().unwrap(),
            None => {
                let mut options = std::fs::OpenOptions::new();
                options.read(true).append(true).create(self.writing != Writing::SavingFirst);
                let opened = options.open(&self.log);
                // If the folder does not exist, it cannot write.
                let Ok(file) = opened else { return };
                file
            }
        };
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        if text == PART || text.ends_with(&format!("\n{PART}")) {
            file.write_all(b"}\n").unwrap();
            self.written.push(format!("{PART}}}\n"));
        } else if matches!(self.writing, Writing::Halving | Writing::Racing) {
            file.write_all(&line.as_bytes()[..line.len() / 2]).unwrap();
            self.half = Some((file, line, call + CALLS_PER_HALF));
        } else {
            file.write_all(line.as_bytes()).unwrap();
            self.written.push(line);
        }
    }

    /// Writes the rest of a half line.
    pub(super) fn complete(&mut self) {
        if let Some((mut file, line, _)) = self.half.take() {
            file.write_all(&line.as_bytes()[line.len() / 2..]).unwrap();
            self.written.push(line);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) calls: usize,
    pub(super) writing_calls: usize,
    pub(super) fault: Option<(usize, Fault)>,
    pub(super) is_stopped: bool,
    pub(super) is_full: bool,
    /// How often all processes were examined.
    pub(super) process_scans: usize,
    pub(super) refusals: usize,
    pub(super) crosses_devices: bool,
    /// Whether the file system of the receipts has no space for copies of files.
    pub(super) has_no_space_for_copies: bool,
    pub(super) has_no_links: bool,
    pub(super) has_no_exchange: bool,
    /// A file that may be read and not written, and that belongs to another user.
    pub(super) read_only: Option<PathBuf>,
    pub(super) writer: Option<Writer>,
}

/// The file system, with a fault at a chosen call.
#[derive(Debug, Default)]
pub(super) struct FaultyDisk(Mutex<Plan>);

impl FaultyDisk {
    pub(super) fn plan(&self) -> std::sync::MutexGuard<'_, Plan> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn before_reading(&self) {
        self.before_call(false);
    }

    fn before_call(&self, is_write: bool) {
        let mut plan = self.plan();
        plan.calls += 1;
        let call = plan.calls;
        // On a full disk, the other program cannot write either.
        if !plan.is_stopped
            && !plan.is_full
            && let Some(writer) = &mut plan.writer
        {
            writer.before_call(call, is_write);
        }
    }

    /// Whether the call is to be half done.
    fn before_writing(&self, is_write: bool) -> io::Result<bool> {
        self.before_call(is_write);
        let mut plan = self.plan();
        if plan.is_stopped {
            return Err(io::Error::other("the process has ended"));
        }
        let n = plan.writing_calls;
        plan.writing_calls += 1;
        match plan.fault {
            Some((at, Fault::Stop)) if at == n => {
                plan.is_stopped = true;
                Err(io::Error::other("the process has ended"))
            }
            Some((at, Fault::Error(errno))) if at == n => Err(io::Error::from_raw_os_error(errno)),
            Some((at, Fault::Errors(errno))) if at <= n => Err(io::Error::from_raw_os_error(errno)),
            Some((at, Fault::Short)) if at == n => {
                plan.is_full = true;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether a call that cannot be half done fails instead.
    fn whole(&self) -> io::Result<()> {
        if self.before_writing(false)? {
            self.plan().is_full = false;
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        Ok(())
    }
}

impl FileSystem for FaultyDisk {
    fn open(&self, path: &Path) -> io::Result<File> {
        self.before_reading();
        RealFileSystem.open(path)
    }

    fn open_append(&self, path: &Path) -> io::Result<File> {
        self.before_reading();
        if self.plan().read_only.as_deref() == Some(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        RealFileSystem.open_append(path)
    }

    fn metadata(&self, path: &Path) -> io::Result<Option<std::fs::Metadata>> {
        self.before_reading();
        RealFileSystem.metadata(path)
    }

    fn create_new(&self, path: &Path, visibility: Visibility) -> io::Result<File> {
        self.whole()?;
        if self.plan().has_no_space_for_copies && path.extension().is_some_and(|name| name == "copy") {
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        RealFileSystem.create_new(path, visibility)
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<usize> {
        let half = self.before_writing(true)?;
        let mut plan = self.plan();
        if !half && plan.is_full {
            // Until a file is removed, or another program freed space.
            plan.is_full = plan.refusals == 0;
            plan.refusals += 1;
            return Err(io::Error::from_raw_os_error(ENOSPC));
        }
        drop(plan);
        RealFileSystem.write(file, if half { &bytes[..bytes.len() / 2] } else { bytes })
    }

    fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.truncate(file, length)?;
        self.plan().is_full = false;
        Ok(())
    }

    fn sync(&self, _: &File, _: &Path) -> io::Result<()> {
        // The machine does not lose power in these tests, so nothing has to reach the disk.
        self.whole()
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        self.whole()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.whole()?;
        if self.plan().crosses_devices && from.parent() != to.parent() {
            return Err(io::ErrorKind::CrossesDevices.into());
        }
        RealFileSystem.rename(from, to)
    }

    fn crosses_devices(&self, _: &Path, _: &Path) -> io::Result<bool> {
        self.before_reading();
        Ok(self.plan().crosses_devices)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.rename_new(from, to)
    }

    fn exchange(&self, a: &Path, b: &Path) -> io::Result<()> {
        self.whole()?;
        if self.plan().has_no_exchange {
            return Err(io::ErrorKind::Unsupported.into());
        }
        RealFileSystem.exchange(a, b)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.whole()?;
        if self.plan().has_no_links {
            return Err(io::ErrorKind::Unsupported.into());
        }
        RealFileSystem.link(from, to)
    }

    fn symlink(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.symlink(target, path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.remove_file(path)?;
        self.plan().is_full = false;
        Ok(())
    }

    fn create_folder(&self, path: &Path, visibility: Visibility) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.create_folder(path, visibility)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.remove_folder(path)
    }

    fn set_permissions(&self, file: &File, permissions: Permissions) -> io::Result<()> {
        self.whole()?;
        RealFileSystem.set_permissions(file, permissions)
    }

    fn set_modified(&self, path: &Path, time: SystemTime) -> io::Result<()> {
        self.whole()?;
        if self.plan().read_only.as_deref() == Some(path) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        RealFileSystem.set_modified(path, time)
    }

    fn pause(&self, _: Duration) {
        // The other program continues during the pause.
        self.before_reading();
    }

    fn wait_until(&self, is_ready: &mut dyn FnMut() -> io::Result<bool>) -> io::Result<bool> {
        for _ in 0..=CALLS_PER_HALF {
            if is_ready()? {
                return Ok(true);
            }
            self.before_reading();
        }
        is_ready()
    }

    fn finds_writers(&self) -> bool {
        // A program that keeps the file open is not found, as on systems without a list of open files.
        !self.plan().writer.as_ref().is_some_and(|writer| writer.writing == Writing::Holding)
    }

    fn written_elsewhere(&self, files: &[std::fs::Metadata]) -> HashSet<FileId> {
        let mut plan = self.plan();
        plan.process_scans += usize::from(!files.is_empty());
        let half = plan.writer.as_ref().and_then(|writer| writer.half.as_ref());
        let half = half.and_then(|(file, ..)| file.metadata().ok()).map(|file| FileId::of(&file));
        files.iter().map(FileId::of).filter(|file| Some(*file) == half).collect()
    }
}
