//! Reads lines from a stream in large chunks into one reused buffer.

use std::io::{self, Read};

use memchr::{memchr, memmem, memrchr};

use crate::entry::{Ending, Position};
use crate::sketch::LineSketch;

/// The number of bytes to read at a time.
const CHUNK_SIZE: usize = 1 << 18;

/// One line, without its newline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'b> {
    /// The bytes, without the newline.
    pub bytes: &'b [u8],
    /// Whether a newline follows.
    pub ending: Ending,
    /// The position of the line in its file.
    pub at: Position,
}

/// Returns the lines of a log in memory, without copying them.
pub fn log_lines(log: &[u8]) -> impl Iterator<Item = LogLine<'_>> {
    let mut at = Position::START;
    std::iter::from_fn(move || {
        let rest = log.get(at.byte_offset as usize..).filter(|rest| !rest.is_empty())?;
        let newline = memchr(b'\n', rest);
        let bytes = &rest[..newline.unwrap_or(rest.len())];
        let ending = if newline.is_some() { Ending::Newline } else { Ending::None };
        let line = LogLine { bytes, ending, at };
        at.byte_offset += (bytes.len() + usize::from(newline.is_some())) as u64;
        at.line_no += 1;
        Some(line)
    })
}

/// Splits a stream into lines.
///
/// Memory stays at about one chunk, whatever the size of the file. Only a line longer than a chunk makes the
/// buffer grow, and the buffer shrinks again afterwards.
pub struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The bytes before this offset have been consumed.
    start: usize,
    /// The bytes before this offset have been read.
    end: usize,
    at: Position,
    at_end: bool,
    /// Whether positions count lines.
    counts_lines: bool,
    /// The length from which lines are skipped.
    max_length: usize,
    skipped: Vec<SkippedLine>,
}

/// A line that was skipped because it is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SkippedLine {
    /// The position of the line in its file.
    pub at: Position,
    /// The length in bytes, without the newline.
    pub length: u64,
}

impl<R: Read> LineReader<R> {
    /// Reads from the start of a file.
    pub fn new(reader: R) -> Self {
        Self::from(reader, Position::START)
    }

    /// Reads from the middle of a file: `reader` is positioned at `at`, where a line begins.
    pub fn from(reader: R, at: Position) -> Self {
        Self {
            reader,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            at,
            at_end: false,
            counts_lines: true,
            max_length: usize::MAX,
            skipped: Vec::new(),
        }
    }

    /// Skips lines of `max_length` bytes or more, which limits the buffer to that and one chunk.
    ///
    /// The limit is checked between reads, so a line that is longer by less than one chunk may still be
    /// returned. [`LineReader::skipped_lines`] returns the skipped lines.
    #[must_use]
    pub fn skip_longer_than(mut self, longest: usize) -> Self {
        self.max_length = longest;
        self
    }

    /// Returns the lines that were skipped so far.
    pub fn skipped_lines(&self) -> &[SkippedLine] {
        &self.skipped
    }

    /// Reuses the buffer of a previous file; [`LineReader::into_buffer`] returns it.
    #[must_use]
    pub fn with_buffer(mut self, buffer: Vec<u8>) -> Self {
        self.buffer = buffer;
        self
    }

    /// Returns the buffer, to be reused for the next file.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Stops counting lines, which makes scans faster that only need offsets.
    ///
    /// `line_no` keeps its current value from now on.
    pub fn stop_numbering(&mut self) {
        self.counts_lines = false;
    }

    /// Returns the position of the next line.
    pub fn at(&self) -> Position {
        self.at
    }

    /// Returns the next line, or `None` at the end of the stream.
    #[expect(
        clippy::should_implement_trait,
        reason = "a line borrows the buffer, which Iterator cannot express"
    )]
    pub fn next(&mut self) -> io::Result<Option<LogLine<'_>>> {
        let newline = self.find_newline(memchr)?;
        if self.start == self.end {
            return Ok(None);
        }
        let stop = newline.unwrap_or(self.end);
        let ending = if stop < self.end { Ending::Newline } else { Ending::None };
        let (from, at) = (self.start, self.at);
        self.start = (stop + 1).min(self.end);
        self.at.byte_offset += (self.start - from) as u64;
        self.at.line_no += u64::from(self.counts_lines);
        Ok(Some(LogLine { bytes: &self.buffer[from..stop], ending, at }))
    }

    /// Reads until the buffer contains a newline, and returns the offset of the one that `find` selects.
    ///
    /// Returns `None` at the end of the stream.
    #[inline]
    fn find_newline(&mut self, find: impl Fn(u8, &[u8]) -> Option<usize>) -> io::Result<Option<usize>> {
        let mut searched = self.start;
        loop {
            if let Some(hit) = find(b'\n', &self.buffer[searched..self.end]) {
                return Ok(Some(searched + hit));
            }
            let pending = self.end - self.start;
            if pending >= self.max_length {
                self.skip_pending_line()?;
                searched = self.start;
                continue;
            }
            if !self.fill()? {
                return Ok(None);
            }
            searched = self.start + pending;
        }
    }

    /// Returns the next block of whole lines, as many as the buffer contains.
    pub fn next_block(&mut self) -> io::Result<Option<LineBlock<'_>>> {
        let newline = self.find_newline(memrchr)?;
        if self.start == self.end {
            return Ok(None);
        }
        let stop = newline.map_or(self.end, |newline| newline + 1);
        let (from, at) = (self.start, self.at);
        self.start = stop;
        self.at.byte_offset += (stop - from) as u64;
        if self.counts_lines {
            self.at.line_no += memchr::memchr_iter(b'\n', &self.buffer[from..stop]).count() as u64;
        }
        Ok(Some(LineBlock { bytes: &self.buffer[from..stop], at }))
    }

    /// Reads to the end of the pending line and discards it.
    #[cold]
    fn skip_pending_line(&mut self) -> io::Result<()> {
        let at = self.at;
        let mut length = (self.end - self.start) as u64;
        self.buffer.truncate(CHUNK_SIZE);
        self.buffer.shrink_to(CHUNK_SIZE);
        loop {
            (self.start, self.end) = (0, 0);
            if !self.fill()? {
                break;
            }
            if let Some(newline) = memchr(b'\n', &self.buffer[..self.end]) {
                length += newline as u64;
                self.start = newline + 1;
                self.at.byte_offset += 1;
                break;
            }
            length += self.end as u64;
        }
        self.at.byte_offset += length;
        self.at.line_no += u64::from(self.counts_lines);
        self.skipped.push(SkippedLine { at, length });
        Ok(())
    }

    /// Reads more bytes after the pending ones; returns `false` at the end of the stream.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        let pending = self.end - self.start;
        self.buffer.copy_within(self.start..self.end, 0);
        self.start = 0;
        self.end = pending;
        if self.buffer.len() > 4 * CHUNK_SIZE && pending < CHUNK_SIZE {
            self.buffer.truncate(CHUNK_SIZE);
            self.buffer.shrink_to(CHUNK_SIZE);
        }
        // Room for a chunk, or for as much again as is pending: a huge line needs at most twice its length.
        if self.buffer.len() < pending + CHUNK_SIZE / 2 {
            let most = self.max_length.saturating_add(CHUNK_SIZE).max(pending + CHUNK_SIZE);
            let length = (pending + pending.max(CHUNK_SIZE)).min(most);
            // `resize` alone would reserve up to twice as much.
            self.buffer.reserve_exact(length.saturating_sub(self.buffer.len()));
            self.buffer.resize(length, 0);
        }
        while self.end < self.buffer.len() {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.at_end = true;
                    break;
                }
                Ok(n) => self.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if self.end > pending {
                break;
            }
        }
        Ok(self.end > pending)
    }
}

/// A block of whole lines. The last line of a file may lack its newline.
#[derive(Clone, Copy, Debug)]
pub struct LineBlock<'b> {
    /// The bytes, including newlines.
    pub bytes: &'b [u8],
    /// The position of the first line.
    pub at: Position,
}

impl<'b> LineBlock<'b> {
    /// Returns all lines. The line number of every line is that of the block's first line.
    pub fn lines(self) -> impl Iterator<Item = LogLine<'b>> {
        let mut start = 0;
        std::iter::from_fn(move || {
            (start < self.bytes.len()).then(|| {
                let line = self.line_at(start);
                start += line.bytes.len() + 1;
                line
            })
        })
    }

    /// Returns all lines with their sketches, as [`LineBlock::lines`] does.
    pub fn sketches(self) -> impl Iterator<Item = (LogLine<'b>, Option<LineSketch<'b>>)> {
        self.lines().map(|line| (line, LineSketch::read(line.bytes)))
    }

    /// Returns the line that begins at an offset in the block, with the number of the block's first line.
    fn line_at(&self, start: usize) -> LogLine<'b> {
        let rest = &self.bytes[start..];
        let end = start + memchr(b'\n', rest).unwrap_or(rest.len());
        LogLine {
            bytes: &self.bytes[start..end],
            ending: if end < self.bytes.len() { Ending::Newline } else { Ending::None },
            at: Position { byte_offset: self.at.byte_offset + start as u64, ..self.at },
        }
    }

    /// Returns each line that contains `needle` once, with the offset of the first match in the line.
    ///
    /// The search runs over the whole block, so that lines without a match are not visited individually. The
    /// line number of every returned line is that of the block's first line.
    pub fn hits<'n>(
        self,
        needle: &'n memmem::Finder<'_>,
    ) -> impl Iterator<Item = (LogLine<'b>, usize)> + use<'b, 'n> {
        let mut from = 0;
        std::iter::from_fn(move || {
            let hit = from + needle.find(&self.bytes[from..])?;
            let start = memrchr(b'\n', &self.bytes[from..hit]).map_or(from, |newline| from + newline + 1);
            let (stop, ending) = match memchr(b'\n', &self.bytes[hit..]) {
                Some(newline) => (hit + newline, Ending::Newline),
                None => (self.bytes.len(), Ending::None),
            };
            from = (stop + 1).min(self.bytes.len());
            let at = Position { byte_offset: self.at.byte_offset + start as u64, ..self.at };
            Some((LogLine { bytes: &self.bytes[start..stop], ending, at }, hit - start))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A reader that returns a few bytes at a time, in varying numbers.
    struct SmallReads<'a>(&'a [u8], usize);

    impl Read for SmallReads<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 % 7 + 1;
            let n = self.1.min(self.0.len()).min(into.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn all(bytes: &[u8]) -> Vec<(Vec<u8>, Ending, Position)> {
        let mut lines = LineReader::new(SmallReads(bytes, 3));
        let mut out = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            out.push((line.bytes.to_vec(), line.ending, line.at));
        }
        out
    }

    #[test]
    fn lines_in_memory_are_those_of_a_reader() {
        for log in ["", "\n", "a", "a\n", "a\r\n\nb", "\n\nä\nb\n"] {
            let mut reader = LineReader::new(log.as_bytes());
            let mut lines = log_lines(log.as_bytes());
            while let Some(line) = reader.next().unwrap() {
                assert_eq!(lines.next(), Some(line), "{log:?}");
            }
            assert_eq!(lines.next(), None, "{log:?}");
        }
    }

    #[test]
    fn a_line_longer_than_the_buffer_is_complete_and_the_buffer_shrinks_again() {
        let long = vec![b'x'; 9 * CHUNK_SIZE];
        let mut bytes = long.clone();
        bytes.extend(b"\nshort\n".iter().chain(&vec![b'\n'; 3 * CHUNK_SIZE]));
        let mut lines = LineReader::new(&bytes[..]);
        assert_eq!(lines.next().unwrap().unwrap().bytes, long);
        assert_eq!(lines.next().unwrap().unwrap().bytes, b"short");
        while lines.next().unwrap().is_some() {}
        assert!(lines.buffer.capacity() <= 4 * CHUNK_SIZE, "{}", lines.buffer.capacity());
    }

    #[test]
    fn a_too_long_line_is_skipped_and_reported_and_the_buffer_stays_small() {
        let long = vec![b'x'; 20 * CHUNK_SIZE];
        for (before, behind) in [("a\n", "\nb\n\nc"), ("", "\nb\n"), ("a\n", "\n"), ("a\n", ""), ("", "")] {
            let bytes = [before.as_bytes(), &long, behind.as_bytes()].concat();
            let lines = || LineReader::new(&bytes[..]).skip_longer_than(2 * CHUNK_SIZE);
            let mut plain = Vec::new();
            let mut one_by_one = lines();
            while let Some(line) = one_by_one.next().unwrap() {
                plain.push((line.at, line.bytes.to_vec()));
                assert_eq!(&bytes[line.at.byte_offset as usize..][..line.bytes.len()], line.bytes);
            }
            let mut in_blocks = lines();
            let mut blocks: Vec<u8> = Vec::new();
            while let Some(block) = in_blocks.next_block().unwrap() {
                blocks.extend(block.bytes);
            }
            let at =
                Position { line_no: 1 + u64::from(!before.is_empty()), byte_offset: before.len() as u64 };
            let left_out = [SkippedLine { at, length: long.len() as u64 }];
            for lines in [&one_by_one, &in_blocks] {
                assert_eq!(lines.skipped_lines(), left_out);
                assert_eq!(lines.at().byte_offset, bytes.len() as u64);
                assert!(lines.buffer.capacity() <= 5 * CHUNK_SIZE, "{}", lines.buffer.capacity());
            }
            assert_eq!(blocks, [before, behind.strip_prefix('\n').unwrap_or(behind)].concat().as_bytes());
            let numbers: Vec<_> = plain.iter().map(|(at, _)| at.line_no).collect();
            let expected: Vec<_> = (1..=plain.len() as u64 + 1).filter(|&n| n != at.line_no).collect();
            assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn the_buffer_never_exceeds_the_limit_by_more_than_a_chunk() {
        let limit = 6 * CHUNK_SIZE;
        for length in [limit - 1, limit, limit + 1, limit + CHUNK_SIZE - 1, limit + CHUNK_SIZE, 9 * limit] {
            let bytes = [&vec![b'x'; length][..], b"\nshort\n"].concat();
            let mut lines = LineReader::new(&bytes[..]).skip_longer_than(limit);
            let mut largest = 0;
            while let Some(line) = lines.next().unwrap() {
                assert!(line.bytes.len() < limit + CHUNK_SIZE, "{length}");
                largest = largest.max(lines.buffer.capacity());
            }
            assert!(largest <= limit + CHUNK_SIZE, "{length}: {largest}");
        }
    }

    #[test]
    fn hits_return_each_line_once() {
        let block = LineBlock { bytes: b"a usage usage\nnone\nusage", at: Position::START };
        let finder = memmem::Finder::new("usage");
        let hits: Vec<_> =
            block.hits(&finder).map(|(line, at)| (line.bytes, line.at.byte_offset, at)).collect();
        assert_eq!(hits, [(&b"a usage usage"[..], 0, 2), (&b"usage"[..], 19, 0)]);
    }

    proptest! {
        #[test]
        fn concatenated_lines_equal_the_file(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..200)) {
            let mut back = Vec::new();
            for (i, (line, ending, at)) in all(&bytes).into_iter().enumerate() {
                prop_assert_eq!(at, Position { line_no: i as u64 + 1, byte_offset: back.len() as u64 });
                back.extend(line);
                if ending == Ending::Newline { back.push(b'\n'); }
            }
            prop_assert_eq!(&back, &bytes);
            let mut blocks: Vec<u8> = Vec::new();
            let mut lines = LineReader::new(SmallReads(&bytes, 2));
            while let Some(block) = lines.next_block().unwrap() { blocks.extend(block.bytes); }
            prop_assert_eq!(blocks, bytes);
        }
    }
}
