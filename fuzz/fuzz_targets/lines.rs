//! Checks that parsing keeps any bytes exactly.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_entry::{ChunkReader, Ending, LineReader, lens, parse_line};

fuzz_target!(|bytes: &[u8]| {
    let mut back = Vec::new();
    let mut lines = LineReader::new(bytes);
    while let Some(line) = lines.next().expect("reading from memory") {
        parse_line(&line, |entry, _| {
            lens::drift(&entry, &mut |_| {});
            let _ = entry.message().map(|message| message.blocks().count());
            back.extend_from_slice(entry.as_bytes());
            if entry.ending() == Ending::Newline {
                back.push(b'\n');
            }
        });
    }
    assert_eq!(back, bytes);
    back.clear();
    let mut chunks = ChunkReader::new(bytes);
    while let Some(chunk) = chunks.next().expect("reading from memory") {
        chunk.parse(|entry, _| {
            back.extend_from_slice(entry.as_bytes());
            if entry.ending() == Ending::Newline {
                back.push(b'\n');
            }
        });
    }
    assert_eq!(back, bytes);
});
