//! Reads the beginning and the end of a file into a reusable buffer.

use std::fs::Metadata;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use memchr::{memchr, memrchr};

/// The number of bytes read at each end.
pub(crate) const WINDOW_BYTES: usize = 64 << 10;

/// The maximum number of bytes read at the beginning, if less is not sufficient.
pub(crate) const MAX_HEAD_BYTES: usize = 4 << 20;

/// The whole lines at both ends of a file.
///
/// A line that is cut off by the edge of a window is left out; the last line of the file counts as whole even
/// without a newline. For a file no longer than both windows, the head is the whole file.
#[derive(Default)]
pub(crate) struct FileWindow {
    buffer: Vec<u8>,
    head: Range<usize>,
    tail: Range<usize>,
    /// The number of bytes read at the beginning.
    reached: usize,
    size: u64,
}

/// Returns whether the bytes first read at the beginning of a file of `size` bytes are the whole file.
pub(crate) fn head_is_whole_file(size: u64) -> bool {
    size <= 2 * WINDOW_BYTES as u64
}

/// Returns whether the tail of a file of `size` bytes is the whole file.
pub(crate) fn tail_is_whole_file(size: u64) -> bool {
    size <= WINDOW_BYTES as u64
}

impl FileWindow {
    /// Reads both ends of the file at `path`.
    pub(crate) fn read(&mut self, path: &Path) -> io::Result<(fs_err::File, Metadata)> {
        let mut file = crate::regular_file::open(path)?;
        let metadata = file.metadata()?;
        self.read_from(&mut file, metadata.len())?;
        Ok((file, metadata))
    }

    /// Reads both ends of a file of `size` bytes.
    fn read_from(&mut self, file: &mut (impl Read + Seek), size: u64) -> io::Result<()> {
        self.size = size;
        if self.buffer.len() != 2 * WINDOW_BYTES {
            self.buffer = vec![0; 2 * WINDOW_BYTES];
        }
        if head_is_whole_file(size) {
            let length = fill(file, &mut self.buffer[..usize::try_from(self.size).unwrap_or(0)])?;
            self.set_ranges(length, 0);
            return Ok(());
        }
        let head = fill(file, &mut self.buffer[..WINDOW_BYTES])?;
        file.seek(SeekFrom::Start(self.size - WINDOW_BYTES as u64))?;
        let tail = fill(file, &mut self.buffer[WINDOW_BYTES..])?;
        self.set_ranges(head, tail);
        Ok(())
    }

    /// Sets the ranges of whole lines, given the numbers of bytes at the beginning and at the end.
    fn set_ranges(&mut self, head: usize, tail: usize) {
        self.reached = head;
        if head_is_whole_file(self.size) {
            self.head = 0..head;
            self.tail = whole_lines_within(&self.buffer, head.saturating_sub(WINDOW_BYTES)..head);
        } else {
            self.head = whole_lines_from(&self.buffer[..head]);
            self.tail = whole_lines_within(&self.buffer, WINDOW_BYTES..WINDOW_BYTES + tail);
        }
    }

    /// Reads four times as much of the beginning; returns `false` if there is no more or the limit is
    /// reached. Discards the tail.
    pub(crate) fn grow(&mut self, file: &mut (impl Read + Seek)) -> io::Result<bool> {
        let target = (self.reached * 4).min(MAX_HEAD_BYTES);
        if self.head_is_whole_file() || target <= self.reached {
            return Ok(false);
        }
        self.buffer.resize(target, 0);
        file.seek(SeekFrom::Start(0))?;
        let read = fill(file, &mut self.buffer)?;
        let more = read > self.reached;
        self.reached = read;
        self.tail = 0..0;
        self.head = if self.head_is_whole_file() { 0..read } else { whole_lines_from(&self.buffer[..read]) };
        Ok(more)
    }

    /// Whether the head is the whole file.
    fn head_is_whole_file(&self) -> bool {
        self.reached as u64 >= self.size
    }

    /// Returns the whole lines at the beginning.
    pub(crate) fn head(&self) -> &[u8] {
        &self.buffer[self.head.clone()]
    }

    /// Returns all bytes read at the beginning, including an incomplete line.
    pub(crate) fn head_bytes(&self) -> &[u8] {
        &self.buffer[..self.reached]
    }

    /// Returns the whole lines at the end.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.buffer[self.tail.clone()]
    }
}

/// Collects both ends of files that are read in pieces for another purpose.
///
/// Blocks are usually longer than the ends, so most ends are parts of a single piece and are not copied.
#[derive(Default)]
pub(crate) struct EndCollector {
    /// The bytes of the start, in order, if they arrived in several pieces.
    head: Vec<u8>,
    tail: Vec<u8>,
    size: u64,
    /// The number of bytes so far, which have no gaps.
    n_bytes: u64,
}

/// The ends of a file that a piece has completed.
pub(crate) struct CompletedEnds<'a> {
    /// The bytes at the beginning.
    pub(crate) head: Option<&'a [u8]>,
    /// The whole lines at the end.
    pub(crate) tail: Option<&'a [u8]>,
}

impl EndCollector {
    /// Begins a file of `size` bytes.
    pub(crate) fn begin(&mut self, size: u64) {
        self.head.clear();
        self.tail.clear();
        (self.size, self.n_bytes) = (size, 0);
    }

    /// Adds the piece at `offset`, and returns the ends that it completes. Pieces must be added in order.
    /// After a gap, no end is completed.
    pub(crate) fn add<'a>(&'a mut self, offset: u64, piece: &'a [u8]) -> CompletedEnds<'a> {
        let Self { head, tail, size, n_bytes } = self;
        if offset != *n_bytes {
            return CompletedEnds { head: None, tail: None };
        }
        *n_bytes += piece.len() as u64;
        let tail_start = tail_start(*size);
        let tail = part(piece, offset, tail_start..*size, tail);
        CompletedEnds {
            head: part(piece, offset, 0..head_end(*size), head),
            tail: tail.map(|tail| if tail_start == 0 { tail } else { after_first_line(tail) }),
        }
    }

    /// Returns the size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns whether the pieces were the whole file.
    pub(crate) fn is_complete(&self) -> bool {
        self.n_bytes == self.size
    }
}

/// Returns the bytes of a file in `range`, if the piece at `offset` completes them. `before` has those of the
/// pieces before, and gets those of this one if it has only some of them.
fn part<'a>(piece: &'a [u8], offset: u64, range: Range<u64>, before: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let piece_end = offset + piece.len() as u64;
    let (start, end) = (range.start.max(offset), range.end.min(piece_end));
    let bytes = piece.get((start - offset) as usize..end.checked_sub(offset)? as usize)?;
    let is_end = end == range.end && !bytes.is_empty();
    if is_end && start == range.start {
        return Some(bytes);
    }
    before.extend_from_slice(bytes);
    is_end.then_some(before)
}

/// Returns the end of the bytes read at the beginning of a file.
fn head_end(size: u64) -> u64 {
    if head_is_whole_file(size) { size } else { WINDOW_BYTES as u64 }
}

/// Returns the start of the bytes read at the end of a file.
fn tail_start(size: u64) -> u64 {
    size.saturating_sub(WINDOW_BYTES as u64)
}

/// Returns the whole lines of the bytes read at the beginning of a file of `size` bytes.
pub(crate) fn head_lines(head: &[u8], size: u64) -> &[u8] {
    if head_is_whole_file(size) { head } else { &head[whole_lines_from(head)] }
}

fn after_first_line(bytes: &[u8]) -> &[u8] {
    memchr(b'\n', bytes).map_or(&[], |newline| &bytes[newline + 1..])
}

/// Returns the range of the whole lines in a piece at the beginning of a file.
fn whole_lines_from(bytes: &[u8]) -> Range<usize> {
    0..memrchr(b'\n', bytes).map_or(0, |newline| newline + 1)
}

/// Returns the range of the whole lines in a piece at the end of a file. Its first line is skipped, since it
/// may be incomplete, unless the piece starts at offset 0.
fn whole_lines_within(buffer: &[u8], piece: Range<usize>) -> Range<usize> {
    match (piece.start, memchr(b'\n', &buffer[piece.clone()])) {
        (0, _) => piece,
        (start, Some(newline)) => start + newline + 1..piece.end,
        (_, None) => piece.end..piece.end,
    }
}

/// Reads until `into` is full or the file ends.
pub(crate) fn fill(file: &mut impl Read, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read(&mut into[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Returns the lines of `bytes`, first to last.
pub(crate) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 1..).unwrap_or_default();
        Some(line)
    })
}

/// Returns the lines of `bytes`, last to first.
pub(crate) fn lines_back(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let mut done = bytes.is_empty();
    std::iter::from_fn(move || {
        if done {
            return None;
        }
        let newline = memrchr(b'\n', rest);
        let line = &rest[newline.map_or(0, |at| at + 1)..];
        done = newline.is_none();
        rest = &rest[..newline.unwrap_or(0)];
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_iterated_in_both_directions() {
        for text in [&b""[..], b"\n", b"a", b"a\n", b"a\nbb", b"\n\na\n\nbb\n"] {
            let forth: Vec<_> = lines(text).collect();
            let mut back: Vec<_> = lines_back(text).collect();
            back.reverse();
            assert_eq!(forth, back, "{}", text.escape_ascii());
        }
        assert_eq!(lines(b"a\n\nb").collect::<Vec<_>>(), [&b"a"[..], b"", b"b"]);
    }

    #[test]
    fn an_incomplete_line_is_in_neither_window() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let line = |n: usize, ch: char| format!("{}\n", ch.to_string().repeat(n));
        let text = [
            line(WINDOW_BYTES - 100, 'a'),
            line(WINDOW_BYTES, 'b'),
            line(WINDOW_BYTES, 'c'),
            line(WINDOW_BYTES - 100, 'd'),
        ]
        .concat();
        fs_err::write(&path, text.trim_end()).unwrap();
        let mut window = FileWindow::default();
        let (mut file, _) = window.read(&path).unwrap();
        assert_eq!(window.head(), line(WINDOW_BYTES - 100, 'a').as_bytes());
        assert_eq!(window.tail(), line(WINDOW_BYTES - 100, 'd').trim_end().as_bytes());
        assert!(window.grow(&mut file).unwrap());
        assert_eq!(window.head(), text.trim_end().as_bytes());
        assert!(!window.grow(&mut file).unwrap());
        fs_err::write(&path, &text[..2 * WINDOW_BYTES]).unwrap();
        window.read(&path).unwrap();
        assert_eq!(window.head(), &text.as_bytes()[..2 * WINDOW_BYTES]);
        assert_eq!(window.tail(), "c".repeat(98).as_bytes());
        fs_err::write(&path, &text[..WINDOW_BYTES]).unwrap();
        window.read(&path).unwrap();
        assert_eq!(
            (window.head(), window.tail()),
            (&text.as_bytes()[..WINDOW_BYTES], &text.as_bytes()[..WINDOW_BYTES])
        );
    }
}
