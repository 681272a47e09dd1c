//! Chunks of whole lines. Each chunk is one allocation, which its entries share.
//!
//! [`LineReader`](crate::LineReader) is for callers that process a line and drop it. A session keeps its
//! lines: read in chunks, they need no memory besides the buffer that the file was read into.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr_iter, memrchr};

use crate::abridge::abridge;
use crate::entry::{Ending, Entry, Position, parse_line, parse_shared};
use crate::finding::Finding;
use crate::lines::LogLine;

/// The number of bytes to read at a time.
const CHUNK_SIZE: usize = 1 << 20;

/// Splits a stream into chunks of whole lines.
pub struct ChunkReader<R> {
    reader: R,
    /// The beginning of a line that has not been read completely.
    rest: Vec<u8>,
    at: Position,
    /// Buffers of chunks that are no longer used.
    spare: Vec<Vec<u8>>,
}

/// A chunk of whole lines. The last line of a file may lack its newline.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    bytes: Vec<u8>,
    at: Option<Position>,
}

impl<R: Read> ChunkReader<R> {
    /// Reads from the start of a file.
    pub fn new(reader: R) -> Self {
        Self::from(reader, Position::START)
    }

    /// Reads from the middle of a file: `reader` is positioned at `at`, where a line begins.
    pub fn from(reader: R, at: Position) -> Self {
        Self { reader, rest: Vec::new(), at, spare: Vec::new() }
    }

    /// Returns the next chunk, or `None` at the end of the stream.
    #[expect(clippy::should_implement_trait, reason = "same interface as `Lines`")]
    pub fn next(&mut self) -> io::Result<Option<Chunk>> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        // Rounded up, so that the buffer of another chunk is large enough.
        bytes.reserve_exact((self.rest.len() + CHUNK_SIZE).next_multiple_of(CHUNK_SIZE / 16));
        bytes.append(&mut self.rest);
        loop {
            let before = bytes.len();
            // Doubling limits the buffer to twice the length of a huge line.
            let more = CHUNK_SIZE.max(before) as u64;
            if self.reader.by_ref().take(more).read_to_end(&mut bytes)? == 0 {
                break;
            }
            if let Some(newline) = memrchr(b'\n', &bytes[before..]) {
                self.rest = bytes.split_off(before + newline + 1);
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        // Entries keep their chunk in memory, and a session may have thousands of short logs or very long
        // lines.
        if bytes.len() <= CHUNK_SIZE / 8 {
            // The rest of a large block that is made small is rarely used again.
            let short = bytes.to_vec();
            self.spare.push(std::mem::replace(&mut bytes, short));
        } else if bytes.capacity() - bytes.len() > bytes.len() / 8 {
            bytes.shrink_to_fit();
        }
        let at = self.at;
        self.at.byte_offset += bytes.len() as u64;
        self.at.line_no += memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(Chunk { bytes, at: Some(at) }))
    }
}

impl<R> ChunkReader<R> {
    /// Reuses the buffer of a chunk for a later one, which is faster than to read into new memory.
    pub fn recycle(&mut self, chunk: Chunk) {
        if (CHUNK_SIZE..=2 * CHUNK_SIZE).contains(&chunk.bytes.capacity()) {
            self.spare.push(chunk.bytes);
        }
    }
}

impl Chunk {
    /// Returns the bytes of the lines.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the lines in order.
    pub fn lines(&self) -> impl Iterator<Item = LogLine<'_>> {
        lines(&self.bytes, self.at.unwrap_or(Position::START))
    }

    /// Parses the lines into entries as [`parse_line`](crate::parse_line) does. The entries share the memory
    /// of the chunk, if it is UTF-8.
    pub fn parse(self, mut sink: impl FnMut(Entry, Vec<Finding>)) {
        let at = self.at.unwrap_or(Position::START);
        match String::from_utf8(self.bytes) {
            Ok(text) => {
                let text = Arc::new(text);
                for line in lines(text.as_bytes(), at) {
                    let start = (line.at.byte_offset - at.byte_offset) as usize;
                    parse_shared(&text, start, &line, &mut sink);
                }
            }
            Err(error) => lines(error.as_bytes(), at).for_each(|line| parse_line(&line, &mut sink)),
        }
    }

    /// Parses the lines into entries with [`parse_abridged`].
    pub fn parse_abridged(&self, keep: usize, sink: impl FnMut(Entry, Vec<Finding>)) {
        let lines: Vec<LogLine<'_>> = self.lines().collect();
        parse_abridged(&lines, keep, sink);
    }
}

/// Parses lines, such as those of a [`Chunk`], into entries with long strings truncated by [`abridge`].
///
/// The entries share one buffer of truncated lines, and have the positions of the original lines.
pub fn parse_abridged(lines: &[LogLine<'_>], keep: usize, mut sink: impl FnMut(Entry, Vec<Finding>)) {
    // Pages that are never written cost nothing, and `shrink_to_fit` returns them.
    let mut short = Vec::with_capacity(lines.iter().map(|line| line.bytes.len()).sum());
    let abridged = lines.iter().map(|line| {
        let start = short.len();
        abridge(line.bytes, keep, &mut short);
        (start..short.len(), line)
    });
    let abridged: Vec<(Range<usize>, &LogLine<'_>)> = abridged.collect();
    short.shrink_to_fit();
    match String::from_utf8(short) {
        Ok(text) => {
            let text = Arc::new(text);
            for (range, line) in abridged {
                let line = LogLine { bytes: &text.as_bytes()[range.clone()], ..*line };
                parse_shared(&text, range.start, &line, &mut sink);
            }
        }
        Err(error) => {
            for (range, line) in abridged {
                parse_line(&LogLine { bytes: &error.as_bytes()[range], ..*line }, &mut sink);
            }
        }
    }
}

fn lines(bytes: &[u8], mut at: Position) -> impl Iterator<Item = LogLine<'_>> {
    let mut ends = memchr_iter(b'\n', bytes);
    let mut from = 0;
    std::iter::from_fn(move || {
        if from == bytes.len() {
            return None;
        }
        let (stop, ending) = match ends.next() {
            Some(newline) => (newline, Ending::Newline),
            None => (bytes.len(), Ending::None),
        };
        let line = LogLine { bytes: &bytes[from..stop], ending, at };
        let next = (stop + 1).min(bytes.len());
        at = Position { line_no: at.line_no + 1, byte_offset: at.byte_offset + (next - from) as u64 };
        from = next;
        Some(line)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kind::Kind;
    use crate::lines::LineReader;

    type ParsedEntry = (Vec<u8>, Ending, Position, Kind, Vec<Finding>);

    fn parsed_entry(entry: &Entry, findings: Vec<Finding>) -> ParsedEntry {
        (entry.as_bytes().to_vec(), entry.ending(), entry.at(), entry.kind(), findings)
    }

    fn parse_by_chunks(bytes: &[u8]) -> Vec<ParsedEntry> {
        let mut out = Vec::new();
        let mut chunks = ChunkReader::new(bytes);
        while let Some(chunk) = chunks.next().unwrap() {
            chunk.parse(|entry, findings| out.push(parsed_entry(&entry, findings)));
        }
        out
    }

    fn parse_by_lines(bytes: &[u8]) -> Vec<ParsedEntry> {
        let mut out = Vec::new();
        let mut lines = LineReader::new(bytes);
        while let Some(line) = lines.next().unwrap() {
            parse_line(&line, |entry, findings| out.push(parsed_entry(&entry, findings)));
        }
        out
    }

    #[test]
    fn every_line_has_an_entry_of_its_own_however_short() {
        let message = r#"{"type":"user","uuid":"1","message":{"role":"user","content":"x"}}"#;
        for line in ["", " ", "x", "{}", "{\"a\":1}", "织", "{", message] {
            let log = format!("{line}\n").repeat(30_000);
            let kind = Entry::parse(line.as_bytes()).0.kind();
            for entries in [parse_by_chunks(log.as_bytes()), parse_by_lines(log.as_bytes())] {
                assert_eq!(entries.len(), 30_000, "{line:?}");
                let is_the_line =
                    |(bytes, _, _, of, _): &ParsedEntry| bytes == line.as_bytes() && *of == kind;
                assert!(entries.iter().all(is_the_line), "{line:?}");
            }
        }
    }

    #[test]
    fn every_object_on_a_line_has_an_entry_of_its_own() {
        let user = r#"{"type":"user","uuid":"1"}"#;
        let log = format!("{}{user}{}{user}\n", "{}".repeat(5000), r#"{"a":1} "#.repeat(5000));
        let entries = parse_by_chunks(log.as_bytes());
        assert_eq!(entries.len(), 10_002);
        assert_eq!(entries.iter().filter(|(bytes, ..)| bytes == user.as_bytes()).count(), 2);
        let written: Vec<u8> = entries.iter().flat_map(|(bytes, ..)| bytes).copied().collect();
        assert!(log.trim_end().as_bytes() == written);
    }

    #[test]
    fn a_nested_object_parses_as_a_separate_entry() {
        let line = "{\"type\":\"progress\",\"data\":{\"message\":{\"type\":\"user\",\"uuid\":\"织机\"}}}\n";
        let mut found = Vec::new();
        let text = format!("{line}{line}");
        let chunk = ChunkReader::new(text.as_bytes()).next().unwrap().unwrap();
        chunk.parse(|entry, _| found.push(entry));
        found.push(Entry::parse_at(line.trim_end().as_bytes(), Ending::Newline, found[1].at()).0);
        for around in &found {
            let message = around.get("data").and_then(|data| data.get("message")).unwrap();
            let (inner, findings) = around.parse_nested(message);
            assert_eq!((inner.text(), inner.at(), inner.kind()), (message.raw(), around.at(), Kind::User));
            assert_eq!((inner.uuid().as_deref(), findings.len()), (Some("织机"), 0));
        }
        // An object of another line is parsed too.
        let (other, _) = found[0].parse_nested(found[2].get("data").unwrap());
        assert_eq!(other.text(), found[0].get("data").unwrap().raw());
    }

    #[test]
    fn abridging_a_chunk_equals_abridging_its_lines() {
        let long = "x".repeat(500);
        let text = format!(
            "{{\"type\":\"user\",\"x\":\"{long}\"}}\n{{\"type\":\"mode\"}}\n{{\"y\":\"{long}\\n\"}}\n"
        );
        let mut cut = Vec::new();
        let chunk = ChunkReader::new(text.as_bytes()).next().unwrap().unwrap();
        chunk.parse_abridged(20, |entry, findings| cut.push(parsed_entry(&entry, findings)));
        let mut expected = Vec::new();
        for line in chunk.lines() {
            let mut bytes = Vec::new();
            abridge(line.bytes, 20, &mut bytes);
            parse_line(&LogLine { bytes: &bytes, ..line }, |entry, findings| {
                expected.push(parsed_entry(&entry, findings))
            });
        }
        assert_eq!(cut, expected);
        assert!(cut[0].0.len() < 60 && cut[2].2.byte_offset > 500);
    }

    #[test]
    fn lines_longer_than_a_chunk_are_complete() {
        let long = format!("{{\"type\":\"user\",\"x\":\"{}\"}}\n", "x".repeat(3 * CHUNK_SIZE));
        let bytes = [
            &*long,
            "{\"type\":\"user\"}\n",
            &long,
            &"{\"type\":\"mode\",\"mode\":\"plan\"}\n".repeat(CHUNK_SIZE / 8),
            "{}{",
        ]
        .concat();
        let (ours, theirs) = (parse_by_chunks(bytes.as_bytes()), parse_by_lines(bytes.as_bytes()));
        assert!(ours == theirs);
    }

    #[test]
    fn a_short_log_takes_no_more_memory_than_its_length() {
        let chunk = ChunkReader::new(&b"{}\n{}\n"[..]).next().unwrap().unwrap();
        assert!(chunk.bytes.capacity() < 64, "{}", chunk.bytes.capacity());
        // The rest of a long log is short.
        let long = vec![b'\n'; CHUNK_SIZE + 3];
        let mut chunks = ChunkReader::new(&long[..]);
        let capacities: Vec<usize> =
            std::iter::from_fn(|| chunks.next().unwrap()).map(|chunk| chunk.bytes.capacity()).collect();
        assert!(capacities.len() == 2 && capacities[1] < 64, "{capacities:?}");
    }

    proptest! {
        #[test]
        fn chunks_and_lines_yield_the_same_entries(bytes in prop::collection::vec(prop_oneof![
            Just(b"{\"type\":\"user\",\"uuid\":\"u\"}".to_vec()),
            Just(b"{\"type\":\"user\"}{\"type\":\"mode\"}".to_vec()),
            Just(b"\n".to_vec()),
            Just(b"{\"a\":1,\"a\":2}\r\n".to_vec()),
            Just("{\"type\":\"织机\"}\n".as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..8),
        ], 0..30)) {
            let bytes = bytes.concat();
            prop_assert_eq!(parse_by_chunks(&bytes), parse_by_lines(&bytes));
            // No string is long enough to be truncated.
            let mut uncut = Vec::new();
            let mut chunks = ChunkReader::new(&bytes[..]);
            while let Some(chunk) = chunks.next().unwrap() {
                chunk.parse_abridged(64, |entry, findings| uncut.push(parsed_entry(&entry, findings)));
            }
            prop_assert_eq!(uncut, parse_by_lines(&bytes));
        }
    }
}
