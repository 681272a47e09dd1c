//! Following a file while somebody else writes it.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::{memchr, memrchr};
use threadline_entry::{Ending, Entry, Finding, Line, Position, parse_line};

use crate::fingerprint::{Ends, Fingerprint};
use crate::identity::FileId;
use crate::regular;

/// How much is read at a time.
const CHUNK: usize = 256 << 10;

/// Reads a session file while it grows.
///
/// Each [`poll`](Self::poll) reads only what is new and delivers the lines that are whole; half a line
/// waits for the rest. That the file was replaced, cut or written anew shows in its identity and in a
/// [`Fingerprint`] of what was read. Only a rewrite in place that leaves both ends as they were, 4 KiB
/// each, goes unseen.
pub struct Follower {
    path: PathBuf,
    /// Kept open between polls, so that no other file can be given its number.
    file: Option<fs_err::File>,
    id: Option<FileId>,
    /// All that was read.
    read: Ends,
    /// All that was delivered.
    delivered: Ends,
    /// What was read and not delivered: half a line.
    pending: Vec<u8>,
    at: Position,
    /// The place to go on from, until it is known to be there.
    resume: Option<Mark>,
    /// Whether the file changed under our hands and must be read anew.
    stale: bool,
    /// Whether the caller still holds entries of a file that is gone, and has not been told.
    owed: bool,
}

/// What a poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// There is no whole line more than before.
    Unchanged,
    /// Lines were added and delivered.
    Appended,
    /// The file is another one now: everything from before is void, and what was delivered in this
    /// poll is the new file from its start.
    Replaced,
    /// There is no file: not yet, no longer, or not for the moment.
    Missing,
}

/// A place in a file that following can go on from, also in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Where the next line begins.
    pub at: Position,
    /// The file; `None` if none was there.
    pub file: Option<FileId>,
    /// What stands before that place.
    pub before: Fingerprint,
}

impl Mark {
    /// The place `at` in the file at `path`, which was read up to there by other means; `None` if the file does not
    /// reach so far any more.
    pub fn of(path: impl AsRef<Path>, at: Position) -> io::Result<Option<Self>> {
        let mut file = regular::open(path.as_ref())?;
        let id = FileId::of(&file.metadata()?);
        let ends = Ends::read(&mut file, at.byte_offset)?;
        Ok(ends.map(|ends| Self { at, file: Some(id), before: ends.fingerprint() }))
    }
}

impl Follower {
    /// Follows the file at `path` from its start. The file need not exist yet; nothing is read.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            file: None,
            id: None,
            read: Ends::default(),
            delivered: Ends::default(),
            pending: Vec::new(),
            at: Position::START,
            resume: None,
            stale: false,
            owed: false,
        }
    }

    /// Follows the file at `path` from a place that was reached before.
    ///
    /// If it is no longer the same file with the same beginning, the first poll says
    /// [`Change::Replaced`] and starts over.
    pub fn resume_at(path: impl Into<PathBuf>, mark: Mark) -> Self {
        let mut follower = Self::open(path);
        follower.resume = (mark.at.byte_offset > 0).then_some(mark);
        follower
    }

    /// The file that is followed.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place that was reached, for [`resume_at`](Self::resume_at). Half a line is still ahead of it.
    pub fn mark(&self) -> Mark {
        let here = Mark { at: self.at, file: self.id, before: self.delivered.fingerprint() };
        self.resume.unwrap_or(here)
    }

    /// Reads what is new and delivers the entries of whole lines.
    ///
    /// Reads no further than the file reached when the poll began, so that a fast writer cannot keep
    /// it busy. After an error the follower stands where it stood, and the next poll goes on.
    pub fn poll(&mut self, mut sink: impl FnMut(Entry, Vec<Finding>)) -> io::Result<Change> {
        let mut file = match regular::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Change::Missing),
            Err(error) => return Err(error),
        };
        let id = FileId::of(&file.metadata()?);
        if self.take_up(&mut file, id)? || self.stale || self.id.is_some_and(|old| old != id) {
            self.start_over();
        }
        self.id = Some(id);
        let before = self.at;
        let polled = self.read_on(&mut file, &mut sink);
        self.file = Some(file);
        if polled.is_err() && self.owed && self.at != Position::START {
            // Part of the new file was delivered without a word; it will be again, with one.
            self.stale = true;
        }
        polled?;
        Ok(match (std::mem::take(&mut self.owed), self.at != before) {
            (true, _) => Change::Replaced,
            (false, true) => Change::Appended,
            (false, false) => Change::Unchanged,
        })
    }

    /// Delivers the last line if it has no newline, and ends the following.
    pub fn finish(self, sink: impl FnMut(Entry, Vec<Finding>)) {
        if !self.pending.is_empty() {
            parse_line(&Line { bytes: &self.pending, ending: Ending::None, at: self.at }, sink);
        }
    }

    /// Goes to the place to resume at. Answers `true` if the file is not the one it was.
    fn take_up(&mut self, file: &mut fs_err::File, id: FileId) -> io::Result<bool> {
        let Some(mark) = self.resume else { return Ok(false) };
        let ends = Ends::read(file, mark.at.byte_offset)?;
        self.resume = None;
        self.at = mark.at;
        self.id = mark.file;
        self.read = ends.unwrap_or_default();
        self.delivered = self.read.clone();
        Ok(self.read.fingerprint() != mark.before || mark.file != Some(id))
    }

    /// Forgets the file. Nobody needs to know of it if nothing was delivered yet.
    fn start_over(&mut self) {
        let owed = self.owed || self.at != Position::START;
        *self =
            Self { file: self.file.take(), id: self.id, owed, ..Self::open(std::mem::take(&mut self.path)) };
    }

    fn read_on(
        &mut self,
        file: &mut fs_err::File,
        sink: &mut impl FnMut(Entry, Vec<Finding>),
    ) -> io::Result<()> {
        let mut end = file.metadata()?.len();
        let start = self.at;
        let mut restarted = false;
        loop {
            let old = self.pending.len();
            let fresh = self.read_chunk(file, end);
            // Looked at after reading: if what was read before still stands, the new bytes follow it.
            let same = self.read.still_in(file);
            if !matches!((&fresh, &same), (Ok(_), Ok(true))) {
                self.pending.truncate(old);
            }
            if !same? {
                if restarted || self.at != start {
                    self.stale = true;
                    return Ok(());
                }
                restarted = true;
                self.start_over();
                end = file.metadata()?.len();
                continue;
            }
            if fresh? == 0 {
                return Ok(());
            }
            self.read.push(&self.pending[old..]);
            self.deliver(old, sink);
        }
    }

    /// Reads the next bytes behind the pending ones, up to `end`.
    fn read_chunk(&mut self, file: &mut fs_err::File, end: u64) -> io::Result<usize> {
        let left = end.saturating_sub(self.read.length());
        let wanted = left.min(CHUNK as u64);
        file.seek(SeekFrom::Start(self.read.length()))?;
        file.by_ref().take(wanted).read_to_end(&mut self.pending)
    }

    /// Delivers the whole lines among the pending bytes; the first `searched` of these hold no newline.
    fn deliver(&mut self, searched: usize, sink: &mut impl FnMut(Entry, Vec<Finding>)) {
        let Some(last) = memrchr(b'\n', &self.pending[searched..]) else { return };
        let whole = searched + last + 1;
        let mut start = 0;
        let mut from = searched;
        while let Some(newline) = memchr(b'\n', &self.pending[from..whole]) {
            let stop = from + newline;
            parse_line(
                &Line { bytes: &self.pending[start..stop], ending: Ending::Newline, at: self.at },
                &mut *sink,
            );
            self.at.line_no += 1;
            self.at.byte_offset += (stop + 1 - start) as u64;
            start = stop + 1;
            from = start;
        }
        self.delivered.push(&self.pending[..whole]);
        self.pending.drain(..whole);
        if self.pending.capacity() > 16 * CHUNK && self.pending.len() < CHUNK {
            self.pending.shrink_to(CHUNK);
        }
    }
}

#[cfg(test)]
mod tests;
