//! Follows a file while another program writes it.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::{memchr, memrchr};
use threadline_entry::{Ending, Entry, Finding, LogLine, Position, parse_line};

use crate::fingerprint::{Fingerprint, PrefixEnds};
use crate::identity::FileId;
use crate::regular_file;

/// The number of bytes read at a time.
const CHUNK: usize = 256 << 10;

/// Reads a session file while it grows.
///
/// Each [`poll`](Self::poll) reads only the new bytes and delivers whole lines; an incomplete line is kept
/// until the rest arrives. A replaced, truncated or rewritten file is detected by its identity and by a
/// [`Fingerprint`] of the bytes read. Only a rewrite in place that leaves 4 KiB at both ends unchanged is not
/// detected.
pub struct Follower {
    path: PathBuf,
    /// Kept open between polls, so that its inode number cannot be reused.
    file: Option<fs_err::File>,
    id: Option<FileId>,
    /// The bytes read so far.
    read: PrefixEnds,
    /// The bytes delivered so far.
    delivered: PrefixEnds,
    /// Bytes read and not delivered: an incomplete line.
    pending: Vec<u8>,
    at: Position,
    /// The mark to resume at, until it has been verified.
    resume_mark: Option<FileMark>,
    /// Whether the file changed during a poll and must be read again from the start.
    must_restart: bool,
    /// Whether the caller has entries of a file that was replaced, and [`PollOutcome::Replaced`] was
    /// not returned yet.
    must_report_replaced: bool,
}

/// The result of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollOutcome {
    /// No further line is complete.
    Unchanged,
    /// New lines were delivered.
    Appended,
    /// The file was replaced: all earlier entries are void, and the lines delivered in this poll are those of
    /// the new file from its start.
    Replaced,
    /// The file does not exist: not yet, not any more, or temporarily.
    Missing,
}

/// A position in a file from which following can be resumed, also in another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileMark {
    /// Where the next line begins.
    pub at: Position,
    /// The file; `None` if it did not exist.
    pub file: Option<FileId>,
    /// The fingerprint of the bytes before the position.
    pub fingerprint: Fingerprint,
}

impl FileMark {
    /// Returns the mark for position `at` in the file at `path`; `None` if the file is shorter than that.
    pub fn of(path: impl AsRef<Path>, at: Position) -> io::Result<Option<Self>> {
        let mut file = regular_file::open(path.as_ref())?;
        let id = FileId::of(&file.metadata()?);
        let ends = PrefixEnds::read(&mut file, at.byte_offset)?;
        Ok(ends.map(|ends| Self { at, file: Some(id), fingerprint: ends.fingerprint() }))
    }
}

impl Follower {
    /// Follows the file at `path` from its start. The file need not exist yet; nothing is read.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            file: None,
            id: None,
            read: PrefixEnds::default(),
            delivered: PrefixEnds::default(),
            pending: Vec::new(),
            at: Position::START,
            resume_mark: None,
            must_restart: false,
            must_report_replaced: false,
        }
    }

    /// Follows the file at `path` from a mark.
    ///
    /// If it is no longer the same file with the same beginning, the first poll returns
    /// [`PollOutcome::Replaced`] and starts over.
    pub fn resume_at(path: impl Into<PathBuf>, mark: FileMark) -> Self {
        let mut follower = Self::open(path);
        follower.resume_mark = (mark.at.byte_offset > 0).then_some(mark);
        follower
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the current position, for [`resume_at`](Self::resume_at). An incomplete line is after it.
    pub fn mark(&self) -> FileMark {
        let here = FileMark { at: self.at, file: self.id, fingerprint: self.delivered.fingerprint() };
        self.resume_mark.unwrap_or(here)
    }

    /// Reads new bytes and delivers the entries of whole lines.
    ///
    /// Reads up to the size of the file at the start of the poll, so that a fast writer cannot keep it busy.
    /// After an error the position is unchanged, and the next poll continues there.
    pub fn poll(&mut self, mut sink: impl FnMut(Entry, Vec<Finding>)) -> io::Result<PollOutcome> {
        let mut file = match regular_file::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(PollOutcome::Missing),
            Err(error) => return Err(error),
        };
        let id = FileId::of(&file.metadata()?);
        if self.resume_at_mark(&mut file, id)? || self.must_restart || self.id.is_some_and(|old| old != id) {
            self.start_over();
        }
        self.id = Some(id);
        let before = self.at;
        let polled = self.read_new_bytes(&mut file, &mut sink);
        self.file = Some(file);
        if polled.is_err() && self.must_report_replaced && self.at != Position::START {
            // A part of the new file was delivered without reporting the replacement, so it is delivered
            // again.
            self.must_restart = true;
        }
        polled?;
        Ok(match (std::mem::take(&mut self.must_report_replaced), self.at != before) {
            (true, _) => PollOutcome::Replaced,
            (false, true) => PollOutcome::Appended,
            (false, false) => PollOutcome::Unchanged,
        })
    }

    /// Delivers the last line if it has no newline, and consumes the follower.
    pub fn finish(self, sink: impl FnMut(Entry, Vec<Finding>)) {
        if !self.pending.is_empty() {
            parse_line(&LogLine { bytes: &self.pending, ending: Ending::None, at: self.at }, sink);
        }
    }

    /// Moves to the mark to resume at. Returns `true` if the file is not the same.
    fn resume_at_mark(&mut self, file: &mut fs_err::File, id: FileId) -> io::Result<bool> {
        let Some(mark) = self.resume_mark else { return Ok(false) };
        let ends = PrefixEnds::read(file, mark.at.byte_offset)?;
        self.resume_mark = None;
        self.at = mark.at;
        self.id = mark.file;
        self.read = ends.unwrap_or_default();
        self.delivered = self.read.clone();
        Ok(self.read.fingerprint() != mark.fingerprint || mark.file != Some(id))
    }

    /// Resets to the start of the file. The caller has to be notified only if something was delivered.
    fn start_over(&mut self) {
        let owed = self.must_report_replaced || self.at != Position::START;
        *self = Self {
            file: self.file.take(),
            id: self.id,
            must_report_replaced: owed,
            ..Self::open(std::mem::take(&mut self.path))
        };
    }

    fn read_new_bytes(
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
            // Checked after reading: if the earlier bytes are unchanged now, the new bytes do follow them.
            let same = self.read.is_prefix_of(file);
            if !matches!((&fresh, &same), (Ok(_), Ok(true))) {
                self.pending.truncate(old);
            }
            if !same? {
                if restarted || self.at != start {
                    self.must_restart = true;
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

    /// Reads the next bytes up to `end` and appends them to the pending ones.
    fn read_chunk(&mut self, file: &mut fs_err::File, end: u64) -> io::Result<usize> {
        let left = end.saturating_sub(self.read.length());
        let wanted = left.min(CHUNK as u64);
        file.seek(SeekFrom::Start(self.read.length()))?;
        file.by_ref().take(wanted).read_to_end(&mut self.pending)
    }

    /// Delivers the whole lines among the pending bytes; the first `searched` bytes contain no newline.
    fn deliver(&mut self, searched: usize, sink: &mut impl FnMut(Entry, Vec<Finding>)) {
        let Some(last) = memrchr(b'\n', &self.pending[searched..]) else { return };
        let whole = searched + last + 1;
        let mut start = 0;
        let mut from = searched;
        while let Some(newline) = memchr(b'\n', &self.pending[from..whole]) {
            let stop = from + newline;
            parse_line(
                &LogLine { bytes: &self.pending[start..stop], ending: Ending::Newline, at: self.at },
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
