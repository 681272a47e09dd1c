//! Reads a whole log in chunks, which are parsed on all cores.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};

use memchr::memchr;
use rayon::prelude::*;
use threadline_entry::{Chunk, ChunkReader, Entry, Finding, LineBlock, LineReader, Position};

use crate::regular_file::open_regular;

/// A smaller log is read on one core: starting threads would take longer.
const PARALLEL_BYTES: u64 = 4 << 20;

/// The number of chunks per core that may be buffered.
const BUFFERED_CHUNKS: usize = 8;

/// Entries with their findings.
type ParsedEntries = Vec<(Entry, Vec<Finding>)>;

/// Calls `sink` with every entry of the log at `path`, in file order.
///
/// # Errors
///
/// Returns read errors only. Entries read before the error have been passed to `sink`.
pub fn read_log(path: &Path, mut sink: impl FnMut(Entry, Vec<Finding>)) -> io::Result<()> {
    let file = open_regular(path)?;
    let length = file.metadata()?.len();
    let parse = |chunk: &mut Chunk| {
        let mut parsed: ParsedEntries = Vec::new();
        std::mem::take(chunk).parse(|entry, findings| parsed.push((entry, findings)));
        parsed
    };
    read_chunks(ChunkReader::new(file), length, parse, |parsed| {
        for (entry, findings) in parsed {
            sink(entry, findings);
        }
    })
}

/// Applies `make` to every chunk of a log of about `length` bytes, on all cores, and passes the results to
/// `sink` in file order. The buffer of a chunk that `make` does not take is used again.
///
/// # Errors
///
/// Returns read errors only. Results before the error have been passed to `sink`.
pub fn read_chunks<R: Read + Send, T: Send>(
    mut chunks: ChunkReader<R>,
    length: u64,
    make: impl Fn(&mut Chunk) -> T + Sync,
    mut sink: impl FnMut(T),
) -> io::Result<()> {
    // Determining the number of cores reads several files.
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = if length < PARALLEL_BYTES { 1 } else { cores() };
    if cores < 2 {
        while let Some(mut chunk) = chunks.next()? {
            sink(make(&mut chunk));
            chunks.recycle(chunk);
        }
        return Ok(());
    }
    let chunks = Mutex::new((0, chunks));
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(cores * BUFFERED_CHUNKS);
        for _ in 0..cores {
            let send = send.clone();
            scope.spawn(|| make_all(&chunks, &make, send));
        }
        drop(send);
        let mut ahead: BTreeMap<usize, io::Result<T>> = BTreeMap::new();
        let mut next = 0;
        for (number, made) in receive {
            ahead.insert(number, made);
            while let Some(made) = ahead.remove(&next) {
                sink(made?);
                next += 1;
            }
        }
        Ok(())
    })
}

/// Reads and converts chunks until the log ends or the receiver is dropped.
fn make_all<R: Read, T>(
    chunks: &Mutex<(usize, ChunkReader<R>)>,
    make: &impl Fn(&mut Chunk) -> T,
    send: mpsc::SyncSender<(usize, io::Result<T>)>,
) {
    let mut used = Chunk::default();
    loop {
        let (number, chunk) = {
            let mut guard = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            guard.0 += 1;
            guard.1.recycle(std::mem::take(&mut used));
            (guard.0 - 1, guard.1.next())
        };
        let made = match chunk {
            Ok(None) => return,
            Ok(Some(mut chunk)) => {
                let made = make(&mut chunk);
                used = chunk;
                Ok(made)
            }
            Err(error) => Err(error),
        };
        let failed = made.is_err();
        if send.send((number, made)).is_err() || failed {
            return;
        }
    }
}

/// The number of bytes of a log that one core reads at a time.
const PART_BYTES: u64 = 4 << 20;

/// Applies `make` to blocks of whole lines of the log at `path`, on all cores, and returns the results in
/// file order. Lines are not numbered.
///
/// Each core reuses one buffer. So this is faster than [`read_chunks`] for callers that keep little of a
/// block.
///
/// # Errors
///
/// If the log cannot be read.
pub fn map_blocks<T: Send>(path: &Path, make: impl Fn(LineBlock<'_>) -> T + Sync) -> io::Result<Vec<T>> {
    map_parts(path, PART_BYTES, &make)
}

fn map_parts<T: Send>(
    path: &Path,
    part_bytes: u64,
    make: &(impl Fn(LineBlock<'_>) -> T + Sync),
) -> io::Result<Vec<T>> {
    let length = open_regular(path)?.metadata()?.len();
    let n_parts = length.div_ceil(part_bytes);
    if n_parts < 2 {
        return map_part(path, 0..length, &mut Vec::new(), make);
    }
    let parts = (0..n_parts).into_par_iter().map_init(Vec::new, |buffer, part| {
        let start = part * part_bytes;
        map_part(path, start..(start + part_bytes).min(length), buffer, make)
    });
    let parts: Vec<Vec<T>> = parts.collect::<io::Result<_>>()?;
    Ok(parts.into_iter().flatten().collect())
}

/// Applies `make` to the lines that begin in a range of the file.
fn map_part<T>(
    path: &Path,
    range: Range<u64>,
    buffer: &mut Vec<u8>,
    make: &impl Fn(LineBlock<'_>) -> T,
) -> io::Result<Vec<T>> {
    let mut file = open_regular(path)?;
    let Some(start) = first_line_start(&mut file, &range)? else { return Ok(Vec::new()) };
    file.seek(SeekFrom::Start(start))?;
    let mut lines = LineReader::from(file, Position { byte_offset: start, ..Position::START })
        .with_buffer(std::mem::take(buffer));
    lines.stop_numbering();
    let mut made = Vec::new();
    while lines.at().byte_offset < range.end
        && let Some(mut block) = lines.next_block()?
    {
        let left = usize::try_from(range.end - block.at.byte_offset).unwrap_or(usize::MAX);
        if let Some(newline) = block.bytes.get(left - 1..).and_then(|rest| memchr(b'\n', rest)) {
            block.bytes = &block.bytes[..left + newline];
        }
        made.push(make(block));
    }
    *buffer = lines.into_buffer();
    Ok(made)
}

/// Returns the offset of the first line that begins in a range of the file.
fn first_line_start(file: &mut File, range: &Range<u64>) -> io::Result<Option<u64>> {
    let Some(mut at) = range.start.checked_sub(1) else { return Ok(Some(0)) };
    file.seek(SeekFrom::Start(at))?;
    let mut buffer = [0; 1 << 12];
    while at + 1 < range.end {
        let length = match file.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if let Some(newline) = memchr(b'\n', &buffer[..length]) {
            return Ok(Some(at + newline as u64 + 1).filter(|start| *start < range.end));
        }
        at += length as u64;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn blocks_contain_every_line_once_and_in_order() {
        let long = "x".repeat(10_000);
        for text in
            ["", "\n", "a", "a\n", "a\nbb\n\n\nccc", "\n\nlong line\n", &format!("a\n{long}\nb\n{long}")]
        {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let lines = |block: LineBlock<'_>| -> Vec<(u64, Vec<u8>)> {
                block.lines().map(|line| (line.at.byte_offset, line.bytes.to_vec())).collect()
            };
            let whole = lines(LineBlock { bytes: text.as_bytes(), at: Position::START });
            for part_bytes in (1..20).chain([4096, 9_999, 10_003, 30_000]) {
                let parts = map_parts(file.path(), part_bytes, &lines).unwrap();
                assert_eq!(parts.concat(), whole, "{part_bytes} {}", text.len());
            }
        }
    }

    #[test]
    fn a_large_log_is_read_in_order() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let padding = "x".repeat(900);
        for i in 0..6000 {
            writeln!(file, "{{\"type\":\"user\",\"uuid\":\"u{i}\",\"x\":\"{padding}\"}}").unwrap();
        }
        file.write_all(b"{\"type\":\"torn").unwrap();
        let mut seen = 0;
        read_log(file.path(), |entry, _| {
            assert_eq!(entry.at().line_no, seen + 1);
            if seen < 6000 {
                assert_eq!(entry.uuid().unwrap(), format!("u{seen}"));
            }
            seen += 1;
        })
        .unwrap();
        assert_eq!(seen, 6001);
    }
}
