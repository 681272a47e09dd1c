//! Appended lines: writes them, finds them again, and removes them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use memchr::{memchr, memmem};

use super::displaced::Slot;
use super::error::changed;
use super::executor::Executor;
use super::foreign_lines::{Extent, lines, read_from, read_lines_from, whole_length};
use super::install::cannot_write;
use super::status::Status;
use super::version::{ContentMatch, Version, match_open_file};
use super::{OpError, ReceiptFile};
use crate::append::{is_incomplete_at, line_start, wait_for_newline, write_lines};
use crate::disk::{Visibility, write_all};
use crate::regular_file::read_file;

impl Executor<'_> {
    /// Returns whether the lines of an append can be added or removed.
    pub(super) fn append_status(&self, i: usize, file: &ReceiptFile, to: Version) -> Result<Status, OpError> {
        if self.fs.metadata(&file.path)?.is_none() {
            return Ok(Status::Blocked("it is gone".to_owned()));
        }
        let mut now = self.fs.open(&file.path)?;
        let found = match self.find_appended(i, file, &mut now)? {
            Ok(found) => found,
            Err(what) => return Ok(Status::Blocked(what)),
        };
        Ok(match (to, found) {
            (Version::Before, None) | (Version::After, Some(_)) => Status::AlreadyThere,
            (Version::Before, Some(_)) | (Version::After, None) => Status::Ready,
        })
    }

    /// Returns the byte range of the lines that the operation appended; `None` if they are not in the file.
    /// The inner error describes how the rest of the file differs from the content that was read.
    pub(super) fn find_appended(
        &self,
        i: usize,
        file: &ReceiptFile,
        now: &mut File,
    ) -> io::Result<Result<Option<(u64, u64)>, String>> {
        let start = file.length_before.unwrap_or(0);
        let length = now.metadata()?.len();
        if let Some(range) = self.partial.get(&i) {
            return Ok(Ok(Some(*range)));
        }
        let lines = match read_file(&self.lines_path(i)) {
            Ok(lines) => lines,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // A receipt of format 1: the digest is that of the whole file.
                let Some(after) = file.after() else { return Ok(Ok(None)) };
                return Ok(match match_open_file(now, &[(Version::After, after)], true)? {
                    ContentMatch::Version(..) => Ok(Some((start, after.length))),
                    _ if length == start => Ok(None),
                    _ => Err("its content is different".to_owned()),
                });
            }
            Err(error) => return Err(error),
        };
        if let Some(before) = file.before()
            && !matches!(match_open_file(now, &[(Version::Before, before)], true)?, ContentMatch::Version(..))
        {
            return Ok(Err("its content is different".to_owned()));
        }
        let torn = is_incomplete_at(now, start)?;
        let tail = read_from(now, start)?;
        let starts_line = |at: usize| if at == 0 { !torn } else { tail[at - 1] == b'\n' };
        let found = memmem::find_iter(&tail, &lines).find(|&at| starts_line(at));
        // Another program may have written the first part of its line at the same moment. No other line ends
        // with a whole object.
        let is_object = lines.starts_with(b"{");
        let found = found.or_else(|| memmem::find(&tail, &lines).filter(|_| is_object));
        Ok(Ok(found.map(|at| {
            let end = at + lines.len();
            // The newline that completed a torn line belongs to the operation, too, as long as nothing
            // follows.
            let at = if torn && at == 1 && end == tail.len() { 0 } else { at };
            (start + at as u64, start + end as u64)
        })))
    }

    /// Appends the operation's lines in one write.
    pub(super) fn append(&mut self, i: usize, file: &ReceiptFile) -> Result<(), OpError> {
        let added = read_file(&self.lines_path(i))?;
        // A program may have written to the log that an undo displaced.
        let kept = self.backup_path(i, file, Slot::Version(Version::After));
        if self.fs.metadata(&kept)?.is_some()
            && let Ok(Some(range)) = self.find_appended(i, file, &mut self.fs.open(&kept)?)?
        {
            let end = self.end_of_appended(&kept, range, &file.path)?;
            self.append_missing_lines(&kept, end, &file.path, range.0)?;
        }
        let mut log = crate::append::open_locked(self.fs, &file.path)?;
        let appended = match write_lines(self.fs, &mut log, &added) {
            Ok(appended) => appended,
            Err(failed) => {
                if let Some(range) = failed.left {
                    self.partial.insert(i, range);
                }
                return Err(cannot_write(&file.path, failed.error).into());
            }
        };
        if is_inside_line(&mut log, appended.byte_offset)? {
            drop(log);
            self.remove_appended(i, file)?;
            return Err(changed(&file.path, "another program wrote to it at the same moment"));
        }
        Ok(())
    }

    /// Returns the offset in `old` after the operation's own lines. If these are inside of a line of another
    /// program that is whole in `new`, it is the offset after that line.
    pub(super) fn end_of_appended(
        &self,
        old: &Path,
        (start, end): (u64, u64),
        new: &Path,
    ) -> io::Result<u64> {
        let mut old = self.fs.open(old)?;
        if !is_inside_line(&mut old, start)? {
            return Ok(end);
        }
        let line = line_start(&mut old, start)?;
        let mut whole = read_from(&mut old, line)?;
        whole.drain((start - line) as usize..(end - line) as usize);
        whole.truncate(memchr(b'\n', &whole).map_or(whole.len(), |newline| newline + 1));
        let (_, present) = read_lines_from(&mut self.fs.open(new)?, start)?;
        let is_joined = lines(&present).any(|line| line == whole);
        Ok(if is_joined { line + whole.len() as u64 + (end - start) } else { end })
    }

    /// Removes the operation's own lines from a log.
    pub(super) fn remove_appended(&mut self, i: usize, file: &ReceiptFile) -> Result<(), OpError> {
        let mut old = self.open_locked(&file.path)?;
        let (start, end) = match self.find_appended(i, file, &mut old)? {
            Ok(Some(range)) => range,
            Ok(None) => return Ok(()),
            Err(what) => return Err(changed(&file.path, &what)),
        };
        let staged = self.private_path(&file.path, i, "new-before");
        if self.fs.metadata(&staged)?.is_some() {
            self.fs.remove_file(&staged)?;
        }
        let mut new = self.fs.create_new(&staged, Visibility::Private)?;
        old.seek(SeekFrom::Start(0))?;
        self.copy(&mut (&mut old).take(start), &mut new)?;
        let offset = if is_inside_line(&mut old, start)? {
            // The lines are inside of a line of another program: its parts are joined.
            wait_for_newline(self.fs, &mut old)?;
            let mut rest = read_from(&mut old, end)?;
            rest.truncate(whole_length(&rest));
            write_all(self.fs, &mut new, &rest)?;
            self.foreign_bytes += rest.len() as u64;
            end + rest.len() as u64
        } else {
            self.append_rest(&mut old, end, &mut new, Extent::WholeLines)?
        };
        self.fs.set_permissions(&new, old.metadata()?.permissions())?;
        self.fs.sync(&new, &staged)?;
        self.swap(i, Slot::Version(Version::After), &old, None, &staged, &file.path, offset)?;
        self.partial.remove(&i);
        Ok(())
    }
}

/// Whether an appended range begins inside of a line of another program. The newline that completed a torn
/// line belongs to the range.
fn is_inside_line(file: &mut File, start: u64) -> io::Result<bool> {
    let mut first = Vec::new();
    file.seek(SeekFrom::Start(start))?;
    file.take(1).read_to_end(&mut first)?;
    Ok(first != b"\n" && is_incomplete_at(file, start)?)
}
