//! Reading a whole log: in stretches, which all cores turn into entries.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError, mpsc};

use threadline_entry::{Entry, Finding, Stretches};

/// A log smaller than this is read before others would have begun to help.
const SMALL: u64 = 4 << 20;

/// How many stretches a core may be ahead of what was taken.
const AHEAD: usize = 8;

/// Entries with what was found odd about them.
type Parsed = Vec<(Entry, Vec<Finding>)>;

/// Calls `sink` with every entry of the log at `path`, in the order of the file.
///
/// # Errors
///
/// Only those of reading. What was read before has been given to `sink`.
pub fn read_log(path: &Path, mut sink: impl FnMut(Entry, Vec<Finding>)) -> io::Result<()> {
    let file = File::open(path)?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cores < 2 || file.metadata()?.len() < SMALL {
        let mut stretches = Stretches::new(file);
        while let Some(stretch) = stretches.next()? {
            stretch.parse(&mut sink);
        }
        return Ok(());
    }
    let stretches = Mutex::new((0, Stretches::new(file)));
    std::thread::scope(|scope| {
        let (send, receive) = mpsc::sync_channel(cores * AHEAD);
        for _ in 0..cores {
            let send = send.clone();
            scope.spawn(|| parse_stretches(&stretches, send));
        }
        drop(send);
        let mut ahead: BTreeMap<usize, io::Result<Parsed>> = BTreeMap::new();
        let mut next = 0;
        for (number, parsed) in receive {
            ahead.insert(number, parsed);
            while let Some(parsed) = ahead.remove(&next) {
                for (entry, findings) in parsed? {
                    sink(entry, findings);
                }
                next += 1;
            }
        }
        Ok(())
    })
}

/// Reads stretches and parses them until there is none, or nobody waits for them any more.
fn parse_stretches(
    stretches: &Mutex<(usize, Stretches<File>)>,
    send: mpsc::SyncSender<(usize, io::Result<Parsed>)>,
) {
    loop {
        let (number, stretch) = {
            let mut held = stretches.lock().unwrap_or_else(PoisonError::into_inner);
            held.0 += 1;
            (held.0 - 1, held.1.next())
        };
        let parsed = match stretch {
            Ok(None) => return,
            Ok(Some(stretch)) => {
                let mut parsed = Vec::new();
                stretch.parse(|entry, findings| parsed.push((entry, findings)));
                Ok(parsed)
            }
            Err(error) => Err(error),
        };
        let failed = parsed.is_err();
        if send.send((number, parsed)).is_err() || failed {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_large_log_comes_in_order() {
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
