//! Replacing a whole session file at once, while somebody may be writing to it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err::OpenOptions;
use memchr::memrchr;

use crate::append::{lock, tears_at, temporary};
use crate::snapshot::Snapshot;

/// Why a file was not replaced, or not to the end. Unless said otherwise it is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// Something other than adding lines has happened to the file since the snapshot.
    #[error("{} has changed since it was read", .path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },

    /// The new file is in place, but lines that others added during the swap may be missing from it.
    #[error("{} was replaced, but lines added meanwhile may be missing", .path.display())]
    Unsettled {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },

    /// The file could not be read, or the new one not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What a replacement did beside replacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// How many bytes that others had added since the snapshot were carried over.
    pub carried: u64,
}

/// How long the old file must stay as it is before we believe that nobody writes to it any more.
const QUIET: Duration = Duration::from_millis(50);

/// How often we look at the old file after the swap.
const LOOKS: usize = 40;

/// Puts `content` in the place of the file that `snapshot` is of.
///
/// Whatever was added to the file since the snapshot comes after `content`, and so does what arrives
/// while the files are swapped. The new file is complete on disk before it takes the name; a reader
/// sees the old one or the new one. Permissions stay. With `backup`, the old file is copied there
/// first; that a file of this name exists is an error, and a copy stays even if the replacement then fails.
///
/// Waits for [`append`](crate::append)s in progress, and makes others wait. Claude Code knows nothing
/// of locks: what it writes through a file it opened before the swap is picked up for a moment longer.
pub fn replace(
    snapshot: &Snapshot,
    mut content: impl Read,
    backup: Option<&Path>,
) -> Result<Replaced, ReplaceError> {
    let mut old = match OpenOptions::new().read(true).write(true).open(snapshot.path()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(changed(snapshot)),
        old => old?,
    };
    lock(old.file())?;
    check(snapshot, &mut old)?;
    if let Some(backup) = backup {
        copy_to(&mut old, backup)?;
    }
    let folder = snapshot.path().parent().unwrap_or(Path::new(""));
    let mut new = temporary(folder)?;
    lock(new.as_file())?;
    io::copy(&mut content, &mut new)?;
    let mut carry = Carry::begin(snapshot, &mut old, new.as_file_mut())?;
    carry.whole_lines(&mut old, new.as_file_mut())?;
    new.as_file().set_permissions(old.metadata()?.permissions())?;
    new.as_file().sync_all()?;
    check(snapshot, &mut old)?;
    let (mut new, temporary_path) = new.into_parts();
    fs_err::rename(&temporary_path, snapshot.path())?;
    // The file has another name now; there is nothing left to clean up.
    let _ = temporary_path.keep();
    let settled = carry.rest(&mut old, &mut new).and_then(|()| sync_folder(folder));
    settled.map_err(|source| ReplaceError::Unsettled { path: snapshot.path().to_owned(), source })?;
    Ok(Replaced { carried: carry.carried })
}

fn changed(snapshot: &Snapshot) -> ReplaceError {
    ReplaceError::Changed { path: snapshot.path().to_owned() }
}

/// That the file has at most grown since the snapshot, and still has its name.
fn check(snapshot: &Snapshot, old: &mut fs_err::File) -> Result<(), ReplaceError> {
    let named = match fs_err::metadata(snapshot.path()) {
        Ok(metadata) => snapshot.is_of(&metadata),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    if named && snapshot.same_or_grown(old)? { Ok(()) } else { Err(changed(snapshot)) }
}

/// Brings what was added to the old file over to the new one.
struct Carry {
    /// How far the old file has been taken over.
    from: u64,
    carried: u64,
    /// Whether a newline must come before what is taken over.
    glue: bool,
}

impl Carry {
    /// Sees how the old file's further lines fit to the new file, whose content is written.
    fn begin(snapshot: &Snapshot, old: &mut fs_err::File, new: &mut File) -> Result<Self, ReplaceError> {
        let from = snapshot.size();
        let end = new.seek(SeekFrom::End(0))?;
        let (old_torn, new_torn) = (tears_at(old, from)?, tears_at(new, end)?);
        if old_torn && !new_torn && old.metadata()?.len() > from {
            // The rest of a line has arrived whose beginning the new content has done away with.
            return Err(changed(snapshot));
        }
        Ok(Self { from, carried: 0, glue: new_torn && !old_torn })
    }

    /// Takes over the whole lines that were added; half a line stays behind for now.
    fn whole_lines(&mut self, old: &mut fs_err::File, new: &mut File) -> io::Result<()> {
        let added = self.added(old)?;
        let whole = memrchr(b'\n', &added).map_or(0, |newline| newline + 1);
        self.take(&added[..whole], new)
    }

    /// After the swap: takes over what is still written to the old file, until nothing comes any more.
    fn rest(&mut self, old: &mut fs_err::File, new: &mut File) -> io::Result<()> {
        for _ in 0..LOOKS {
            self.whole_lines(old, new)?;
            std::thread::sleep(QUIET);
            if old.metadata()?.len() <= self.from {
                return new.sync_all();
            }
        }
        let added = self.added(old)?;
        self.take(&added, new)?;
        new.sync_all()
    }

    fn added(&self, old: &mut fs_err::File) -> io::Result<Vec<u8>> {
        let mut added = Vec::new();
        old.seek(SeekFrom::Start(self.from))?;
        old.read_to_end(&mut added)?;
        Ok(added)
    }

    fn take(&mut self, bytes: &[u8], new: &mut File) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.glue) {
            new.write_all(b"\n")?;
        }
        new.write_all(bytes)?;
        self.from += bytes.len() as u64;
        self.carried += bytes.len() as u64;
        Ok(())
    }
}

/// Copies the whole file to a name that nothing has yet, and waits until it is on disk.
pub(crate) fn copy_to(old: &mut fs_err::File, backup: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    fs_err::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut copy = options.open(backup)?;
    old.seek(SeekFrom::Start(0))?;
    io::copy(old, &mut copy)?;
    copy.sync_all()
}

/// Waits until the new name is on disk.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs_err::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests;
