//! Reads a whole log in chunks, which are parsed on all cores.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};

use threadline_entry::{Chunk, ChunkReader, Entry, Finding};

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
    let parse = |chunk: Chunk| {
        let mut parsed: ParsedEntries = Vec::new();
        chunk.parse(|entry, findings| parsed.push((entry, findings)));
        parsed
    };
    read_chunks(ChunkReader::new(file), length, parse, |parsed| {
        for (entry, findings) in parsed {
            sink(entry, findings);
        }
    })
}

/// Applies `make` to every chunk of a log of about `length` bytes, on all cores, and passes the results to
/// `sink` in file order.
///
/// # Errors
///
/// Returns read errors only. Results before the error have been passed to `sink`.
pub fn read_chunks<R: Read + Send, T: Send>(
    mut chunks: ChunkReader<R>,
    length: u64,
    make: impl Fn(Chunk) -> T + Sync,
    mut sink: impl FnMut(T),
) -> io::Result<()> {
    // Determining the number of cores reads several files.
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = if length < PARALLEL_BYTES { 1 } else { cores() };
    if cores < 2 {
        while let Some(chunk) = chunks.next()? {
            sink(make(chunk));
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
    make: &impl Fn(Chunk) -> T,
    send: mpsc::SyncSender<(usize, io::Result<T>)>,
) {
    loop {
        let (number, chunk) = {
            let mut guard = chunks.lock().unwrap_or_else(PoisonError::into_inner);
            guard.0 += 1;
            (guard.0 - 1, guard.1.next())
        };
        let made = match chunk {
            Ok(None) => return,
            Ok(Some(chunk)) => Ok(make(chunk)),
            Err(error) => Err(error),
        };
        let failed = made.is_err();
        if send.send((number, made)).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
