//! Parses a stream of server-sent events.

use std::mem;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The name after `event:`; empty if there is none.
    pub name: String,
    /// The lines after `data:`, joined with newlines.
    pub data: String,
}

/// An incremental parser: bytes in, in pieces of any size; events out.
///
/// Lines end with `\n`, `\r\n` or `\r`. Comments and unknown fields are ignored, as is an event without
/// data. Bytes that are not UTF-8 are replaced.
#[derive(Debug, Default)]
pub struct SseParser {
    /// The bytes of a line that is not complete.
    partial: Vec<u8>,
    /// Whether the last byte was `\r`, so that a following `\n` belongs to it.
    after_cr: bool,
    /// Whether a line was parsed; a byte order mark is allowed before the first one only.
    has_started: bool,
    event: SseEvent,
    has_data: bool,
}

/// The longest line that is accepted. A longer one is an attack or a fault of the server.
const MAX_LINE: usize = 64 << 20;

impl SseParser {
    /// Creates a parser at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses the next bytes and calls `emit` for each event that is complete.
    ///
    /// Returns whether the stream is acceptable so far: `false` if a line is longer than 64 MB.
    pub fn push(&mut self, mut bytes: &[u8], emit: &mut dyn FnMut(SseEvent)) -> bool {
        if self.after_cr && bytes.first() == Some(&b'\n') {
            bytes = &bytes[1..];
        }
        if !bytes.is_empty() {
            self.after_cr = false;
        }
        while let Some(end) = memchr::memchr2(b'\n', b'\r', bytes) {
            let line = &bytes[..end];
            if self.partial.is_empty() {
                self.line(line, emit);
            } else {
                self.partial.extend_from_slice(line);
                let line = mem::take(&mut self.partial);
                self.line(&line, emit);
            }
            let is_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if is_cr {
                match bytes.first() {
                    Some(b'\n') => bytes = &bytes[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
        }
        self.partial.extend_from_slice(bytes);
        self.partial.len() <= MAX_LINE
    }

    fn line(&mut self, line: &[u8], emit: &mut dyn FnMut(SseEvent)) {
        let line = if mem::replace(&mut self.has_started, true) {
            line
        } else {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        };
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            if mem::take(&mut self.has_data) {
                emit(event);
            }
            return;
        }
        let (field, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"event" => self.event.name = String::from_utf8_lossy(value).into_owned(),
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&String::from_utf8_lossy(value));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = SseParser::new();
        let mut events = Vec::new();
        for piece in pieces {
            assert!(parser.push(piece, &mut |event| events.push((event.name, event.data))));
        }
        events
    }

    const STREAM: &str = "\u{feff}event: a\ndata: {\"x\":\"é\"}\n\n: comment\r\ndata: one\r\ndata:two\r\n\r\nid: 7\rdata: last\r\revent: empty\n\n";

    #[test]
    fn events_with_every_line_ending() {
        let events = parse(&[STREAM.as_bytes()]);
        let expected =
            [("a", "{\"x\":\"é\"}"), ("", "one\ntwo"), ("", "last")].map(|(a, b)| (a.into(), b.into()));
        assert_eq!(events, expected);
    }

    #[test]
    fn an_event_is_not_emitted_before_its_blank_line() {
        assert_eq!(parse(&[b"data: x\n"]), []);
        assert_eq!(parse(&[b"data: x\n", b"\n"]), [(String::new(), "x".to_owned())]);
    }

    #[test]
    fn the_result_does_not_depend_on_where_the_stream_is_split() {
        let whole = parse(&[STREAM.as_bytes()]);
        for at in 0..=STREAM.len() {
            let (head, tail) = STREAM.as_bytes().split_at(at);
            assert_eq!(parse(&[head, tail]), whole, "split at byte {at}");
        }
        let bytes: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(parse(&bytes), whole);
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0usize..200) {
            let (head, tail) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(parse(&[head, tail]), parse(&[&bytes]));
        }
    }
}
