//! Splits a stream into batches of whole lines.

use std::io::{self, Read};

use memchr::{memchr, memrchr};
use threadline_app::MAX_LINE;

/// A batch has about this size, unless a line is longer.
const BATCH_SIZE: usize = 1 << 20;

/// Lines that are too long to be parsed are returned in parts of about this size.
const PART_SIZE: usize = 4 << 20;

/// The size of each read.
const READ_SIZE: usize = 256 << 10;

/// A part of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineBatch<'b> {
    /// Whole lines with their newlines.
    Lines(&'b [u8]),
    /// A part of a line that is longer than [`MAX_LINE`], and whether the line ends with it.
    LongLine(&'b [u8], bool),
    /// The rest of the stream, which does not end in a newline.
    Tail(&'b [u8]),
}

/// Splits a stream.
pub(super) struct LineSplitter<R> {
    reader: R,
    buffer: Vec<u8>,
    /// The number of bytes of the buffer that were returned.
    done: usize,
    last_newline: Option<usize>,
    in_long_line: bool,
    at_end: bool,
}

impl<R: Read> LineSplitter<R> {
    /// Creates a splitter of some bytes and the stream that follows them.
    pub(super) fn new(start: Vec<u8>, reader: R) -> Self {
        let last_newline = memrchr(b'\n', &start);
        Self { reader, buffer: start, done: 0, last_newline, in_long_line: false, at_end: false }
    }

    /// Returns the next batch; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<LineBatch<'_>>> {
        self.buffer.drain(..self.done);
        self.last_newline = self.last_newline.and_then(|at| at.checked_sub(self.done));
        self.done = 0;
        loop {
            let length = self.buffer.len();
            if self.in_long_line && (length >= PART_SIZE || self.at_end) {
                let end = memchr(b'\n', &self.buffer);
                self.done = end.map_or(length, |newline| newline + 1);
                self.in_long_line = end.is_none() && !self.at_end;
                return Ok(
                    (length > 0).then(|| LineBatch::LongLine(&self.buffer[..self.done], end.is_some()))
                );
            }
            match self.last_newline {
                Some(newline) if !self.in_long_line && (length >= BATCH_SIZE || self.at_end) => {
                    self.done = newline + 1;
                    return Ok(Some(LineBatch::Lines(&self.buffer[..self.done])));
                }
                None if length > MAX_LINE && !self.in_long_line => {
                    self.in_long_line = true;
                    continue;
                }
                _ => {}
            }
            if self.at_end {
                self.done = length;
                return Ok((length > 0).then_some(LineBatch::Tail(&self.buffer)));
            }
            self.buffer.resize(length + READ_SIZE, 0);
            let n_read = self.reader.read(&mut self.buffer[length..])?;
            self.buffer.truncate(length + n_read);
            let newline = memrchr(b'\n', &self.buffer[length..]).map(|at| length + at);
            self.last_newline = newline.or(self.last_newline);
            self.at_end = n_read == 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(start: &str, rest: &[u8]) -> Vec<(u8, usize, bool)> {
        let mut splitter = LineSplitter::new(start.as_bytes().to_vec(), rest);
        let mut all = Vec::new();
        let mut joined: Vec<u8> = Vec::new();
        while let Some(batch) = splitter.next().unwrap() {
            let (kind, bytes, ends) = match batch {
                LineBatch::Lines(bytes) => (b'l', bytes, true),
                LineBatch::LongLine(bytes, ends) => (b'p', bytes, ends),
                LineBatch::Tail(bytes) => (b't', bytes, false),
            };
            joined.extend(bytes);
            all.push((kind, bytes.len(), ends));
        }
        assert_eq!(joined, [start.as_bytes(), rest].concat());
        all
    }

    #[test]
    fn batches_end_with_lines() {
        assert_eq!(batches("", b""), []);
        assert_eq!(batches("ab", b"c\nd\nef"), [(b'l', 6, true), (b't', 2, false)]);
        assert_eq!(batches("ab\n", b""), [(b'l', 3, true)]);
        let line = [vec![b'x'; 700_000], vec![b'\n']].concat();
        assert_eq!(batches("", &line.repeat(3)).iter().map(|batch| batch.0).collect::<Vec<_>>(), b"lll");
    }

    #[test]
    fn lines_that_are_too_long_come_in_parts() {
        let long = [vec![b'x'; MAX_LINE + 9_000_000], b"\nshort\nta".to_vec()].concat();
        let all = batches("", &long);
        let parts: Vec<_> = all.iter().filter(|batch| batch.0 == b'p').collect();
        assert!(parts.len() > 1 && parts.iter().filter(|part| part.2).count() == 1, "{all:?}");
        assert_eq!(all[parts.len()..], [(b'l', 6, true), (b't', 2, false)]);
        let open = batches("", &long[..MAX_LINE + 5_000_000]);
        assert!(open.iter().all(|batch| batch.0 == b'p' && !batch.2), "{open:?}");
    }
}
