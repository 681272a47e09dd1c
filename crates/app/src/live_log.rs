//! A log that is followed: its lines with long texts truncated, and the offset of each line in the file.
//!
//! A log is read once from start to end, abridged on the way, and followed from there. Nothing else is
//! kept, so a log of a hundred megabytes takes a fraction of that; to show a part of it, its lines are read
//! again.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use threadline_entry::{
    Chunk, ChunkReader, Ending, Entry, Finding, Kind, LineReader, LogLine, Position, abridge, parse_abridged,
    parse_line,
};
use threadline_session::Session;
use threadline_store::{FileMark, Follower, PollOutcome, open_regular, read_chunks};

use crate::mask::Mask;

/// Strings longer than this many bytes are truncated in an abridged line.
pub(crate) const MAX_ABRIDGED_STRING: usize = 192;

/// Removes the length that abridging has added to a text: `the beginning…461` becomes `the beginning…`.
pub(crate) fn strip_abridged_length(text: &mut String) {
    let kept = text.trim_end_matches(|ch: char| ch.is_ascii_digit()).len();
    let is_length = text[kept..].parse().is_ok_and(|length: usize| length > MAX_ABRIDGED_STRING);
    if is_length && kept >= MAX_ABRIDGED_STRING / 2 && text[..kept].ends_with('…') {
        text.truncate(kept);
    }
}

/// Memory of an entry besides its text: itself, its place in the tree, its uuid, its index.
pub(crate) const ENTRY: usize = 600;

/// A log that is followed, abridged.
pub struct LiveLog {
    /// The file.
    pub path: PathBuf,
    /// Number of bytes at the end that are no complete line.
    pub torn: u64,
    id: String,
    /// The offset of each line, and of the end of the last one.
    starts: Vec<u64>,
    follower: Follower,
    /// The offset of a last line that is complete without its newline.
    tail: Option<u64>,
    /// Approximate memory of the entries, in bytes.
    pub(crate) weight: usize,
    /// Masks secrets in the lines that are read again.
    pub(crate) mask: Mask,
    /// The offset up to which secrets were learnt.
    learnt_to: u64,
}

/// A change of a log since the last poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogChange {
    /// None.
    Same,
    /// Lines were added.
    Grown,
    /// The file was replaced; everything read from it is invalid.
    Replaced,
    /// The file does not exist, for now or for good.
    Gone,
}

/// A chunk of abridged lines.
struct AbridgedChunk {
    entries: Vec<(Entry, Vec<Finding>)>,
    starts: Vec<u64>,
    weight: usize,
    /// The end of its complete lines.
    end: Position,
}

impl LiveLog {
    /// Reads a log into a session.
    pub(crate) fn open(path: &Path, id: &str) -> io::Result<(Self, Session)> {
        let mut session = Session::with_id(id);
        let mut log = Self {
            path: path.to_owned(),
            id: id.to_owned(),
            starts: vec![0],
            follower: Follower::open(path),
            tail: None,
            torn: 0,
            weight: 0,
            mask: Mask::default(),
            learnt_to: 0,
        };
        let length = std::fs::metadata(path)?.len();
        let chunks = ChunkReader::new(open_regular(path)?.take(length));
        let mut end = Position::START;
        read_chunks(
            chunks,
            length,
            |chunk| AbridgedChunk::of(chunk),
            |short| {
                log.weight += short.weight;
                end = short.end;
                log.starts.pop();
                log.starts.extend(short.starts);
                for (entry, findings) in short.entries {
                    session.push(entry, findings);
                }
            },
        )?;
        if let Some(mark) = FileMark::of(path, end)? {
            log.follower = Follower::resume_at(path, mark);
        }
        log.take_tail(&mut session)?;
        Ok((log, session))
    }

    /// Reads the lines that were added into `session`.
    pub(crate) fn follow(&mut self, session: &mut Session) -> io::Result<LogChange> {
        let mut fresh: Vec<(Entry, Vec<Finding>)> = Vec::new();
        let change = self.follower.poll(|entry, findings| fresh.push((entry, findings)))?;
        match change {
            PollOutcome::Missing => return Ok(LogChange::Gone),
            PollOutcome::Replaced => return Ok(LogChange::Replaced),
            PollOutcome::Unchanged | PollOutcome::Appended => {}
        }
        let (had_tail, was_torn) = (self.tail.is_some(), self.torn > 0);
        for (entry, findings) in fresh {
            if Some(entry.at().byte_offset) == self.tail.take() {
                // It was read before its newline. If it has grown since, it is another line.
                let last = session.entries().last().map(|last| last.as_bytes().to_vec());
                if last != Some(abridged(entry.as_bytes())) {
                    return Ok(LogChange::Replaced);
                }
                continue;
            }
            self.push(session, &entry, findings);
        }
        let end = self.follower.mark().at.byte_offset;
        match self.starts.last_mut() {
            Some(last) if self.tail.is_none() => *last = end,
            _ => {}
        }
        if had_tail && self.tail.is_some() {
            // Still without its newline. If it has grown since, it is another line.
            let length = std::fs::metadata(&self.path)?.len();
            return Ok(if self.starts.last() == Some(&length) {
                LogChange::Same
            } else {
                LogChange::Replaced
            });
        }
        let grown = self.take_tail(session)?;
        let torn = was_torn != (self.torn > 0);
        Ok(if change == PollOutcome::Appended || grown || torn { LogChange::Grown } else { LogChange::Same })
    }

    fn push(&mut self, session: &mut Session, entry: &Entry, findings: Vec<Finding>) {
        let at = entry.at();
        let known = self.starts.len() as u64;
        // A line may contain several entries.
        if at.line_no >= known {
            if let Some(last) = self.starts.last_mut() {
                *last = at.byte_offset;
            }
            self.starts.push(at.byte_offset);
        }
        let (short, _) = Entry::parse_at(&abridged(entry.as_bytes()), entry.ending(), at);
        self.weight += short.as_bytes().len() + ENTRY;
        session.push(short, findings);
    }

    /// Reads a last line without a newline, if it is complete: some writers never end theirs.
    fn take_tail(&mut self, session: &mut Session) -> io::Result<bool> {
        let at = self.follower.mark().at;
        let length = std::fs::metadata(&self.path)?.len();
        self.torn = length.saturating_sub(at.byte_offset);
        if self.torn == 0 || self.torn > LONGEST_TAIL {
            return Ok(false);
        }
        let bytes = read(&mut open_regular(&self.path)?, at.byte_offset, length)?;
        let (entry, findings) = Entry::parse_at(&bytes, Ending::None, at);
        if matches!(entry.kind(), Kind::Bad | Kind::Blank) {
            return Ok(false);
        }
        self.push(session, &entry, findings);
        if let Some(last) = self.starts.last_mut() {
            *last = length;
        }
        (self.tail, self.torn) = (Some(at.byte_offset), 0);
        Ok(true)
    }

    /// Reads lines again, by number and in order, into a session of their own.
    ///
    /// Long texts are truncated in lines over `longest` bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has become shorter.
    pub fn session_of(&self, lines: &[u64], longest: usize) -> io::Result<Session> {
        let mut session = Session::with_id(&self.id);
        let mut file = open_regular(&self.path)?;
        let mut at = 0;
        while at < lines.len() {
            // Adjacent lines are read at once.
            let mut end = at + 1;
            while end < lines.len()
                && lines[end] == lines[end - 1] + 1
                && self.span(lines[at], lines[end]) < READ
            {
                end += 1;
            }
            let Some((start, stop)) = self.range(lines[at], lines[end - 1]) else { break };
            let bytes = read(&mut file, start, stop)?;
            let from = Position { line_no: lines[at], byte_offset: start };
            let mut found = LineReader::from(&bytes[..], from);
            while let Some(line) = found.next()? {
                let masked = self.mask.line(&line);
                let line = LogLine { bytes: masked.as_deref().unwrap_or(line.bytes), ..line };
                let mut short = Vec::new();
                if line.bytes.len() > longest {
                    abridge(line.bytes, longest / 64, &mut short);
                }
                let line = LogLine { bytes: if short.is_empty() { line.bytes } else { &short }, ..line };
                parse_line(&line, |entry, findings| session.push(entry, findings));
            }
            at = end;
        }
        Ok(session)
    }

    /// The first bytes of a line as written, at most `most`, and the length of the line; `None` if there is
    /// no such line.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has become shorter.
    pub fn raw(&self, line_no: u64, most: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
        let Some((start, stop)) = self.range(line_no, line_no) else { return Ok(None) };
        let mut bytes = read(&mut open_regular(&self.path)?, start, stop.min(start + most))?;
        while bytes.last().is_some_and(|byte| *byte == b'\n') {
            bytes.pop();
        }
        if self.mask.is_on() {
            let mut lines = LineReader::new(&bytes[..]);
            let masked = lines.next()?.and_then(|line| self.mask.line(&line));
            bytes = masked.unwrap_or(bytes);
        }
        Ok(Some((bytes, stop - start)))
    }

    /// Returns the byte ranges of the lines whose secrets were not learnt yet, several lines each.
    pub(crate) fn new_ranges(&self) -> Vec<Range<u64>> {
        let mut at = self.starts.partition_point(|start| *start < self.learnt_to);
        let mut ranges = Vec::new();
        while at + 1 < self.starts.len() {
            let mut end = at + 1;
            while end + 1 < self.starts.len() && self.starts[end + 1] - self.starts[at] < LEARN {
                end += 1;
            }
            ranges.push(self.starts[at]..self.starts[end]);
            at = end;
        }
        ranges
    }

    /// Reads a range of bytes.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or has become shorter.
    pub(crate) fn read_range(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        read(&mut open_regular(&self.path)?, range.start, range.end)
    }

    /// Records that the secrets of all lines were learnt.
    pub(crate) fn set_learnt(&mut self) {
        self.learnt_to = self.starts.last().copied().unwrap_or(0);
    }

    /// Number of lines.
    pub fn n_lines(&self) -> u64 {
        self.starts.len() as u64 - 1
    }

    /// Size of the log in bytes.
    pub fn bytes(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0) + self.torn
    }

    /// Size of a line in bytes, with its newline.
    pub fn size(&self, line_no: u64) -> u64 {
        self.span(line_no, line_no)
    }

    fn span(&self, first: u64, last: u64) -> u64 {
        self.range(first, last).map_or(0, |(start, stop)| stop - start)
    }

    fn range(&self, first: u64, last: u64) -> Option<(u64, u64)> {
        let at = |line: u64| self.starts.get(usize::try_from(line).ok()?).copied();
        Some((at(first.checked_sub(1)?)?, at(last)?))
    }
}

/// Maximum number of bytes that are read at once.
const READ: u64 = 4 << 20;

/// The number of bytes whose secrets one thread learns at a time.
const LEARN: u64 = 1 << 20;

/// Maximum length of a last line without a newline that is parsed.
const LONGEST_TAIL: u64 = 64 << 20;

impl AbridgedChunk {
    fn of(chunk: &Chunk) -> Self {
        let mut short = Self { entries: Vec::new(), starts: Vec::new(), weight: 0, end: Position::START };
        let mut open = None;
        let lines: Vec<LogLine<'_>> = chunk.lines().collect();
        for line in &lines {
            short.starts.push(line.at.byte_offset);
            let next = line.at.byte_offset + line.bytes.len() as u64 + 1;
            short.end = Position { line_no: line.at.line_no + 1, byte_offset: next };
            if line.ending == Ending::None {
                (short.end, open) = (line.at, Some(line.at.line_no));
            }
        }
        if open.is_none() {
            short.starts.push(short.end.byte_offset);
        }
        parse_abridged(&lines, MAX_ABRIDGED_STRING, |entry, findings| {
            if Some(entry.at().line_no) != open {
                short.weight += entry.as_bytes().len() + ENTRY;
                short.entries.push((entry, findings));
            }
        });
        short
    }
}

fn abridged(line: &[u8]) -> Vec<u8> {
    let mut short = Vec::with_capacity(line.len().min(1 << 10));
    abridge(line, MAX_ABRIDGED_STRING, &mut short);
    short
}

fn read(file: &mut File, start: u64, stop: u64) -> io::Result<Vec<u8>> {
    let length = usize::try_from(stop.saturating_sub(start)).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
