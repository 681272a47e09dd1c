//! The calls of unchanged logs, in a file beside the cache of figures.
//!
//! Calls are de-duplicated over all logs, so the figures of every session may change with one log. With this
//! file, only the changed log is read again. It is read and written only if some log has changed.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use threadline_store::{LogFile, read_file, replace_own_file};
use threadline_usage::ScannedLog;

use crate::figures::{LogVersion, escape, unescape};
use crate::usage::source_of;

/// The content of a cache file.
#[derive(Default)]
pub(crate) struct CallCache {
    bytes: Vec<u8>,
    logs: HashMap<PathBuf, (LogVersion, Range<usize>)>,
}

const END: &[u8] = b"end\n";

impl CallCache {
    /// Reads a cache file. Returns `None` if it does not exist, has another `key`, or is damaged.
    pub(crate) fn read(file: &Path, key: &str) -> Option<Self> {
        let bytes = read_file(file).ok()?;
        let mut logs = HashMap::new();
        let mut at = bytes.strip_prefix(key.as_bytes())?.strip_prefix(b"\n").map(|_| key.len() + 1)?;
        while bytes[at..] != *END {
            let end = at + memchr::memchr(b'\n', &bytes[at..])?;
            let head = std::str::from_utf8(&bytes[at..end]).ok()?;
            let mut fields = head.split('\t');
            let path = PathBuf::from(unescape(fields.next()?));
            let length: usize = fields.next()?.parse().ok()?;
            let version = LogVersion::parse(&fields.collect::<Vec<_>>())?;
            let range = end + 1..(end + 1).checked_add(length)?;
            at = range.end;
            bytes.get(at..)?;
            logs.insert(path, (version, range));
        }
        Some(Self { bytes, logs })
    }

    /// Returns the calls of this version of a log, as they were written.
    pub(crate) fn bytes(&self, log: &LogFile) -> Option<&[u8]> {
        let (version, range) = self.logs.get(&log.path)?;
        (LogVersion::of(log).as_ref() == Some(version)).then(|| &self.bytes[range.clone()])
    }

    /// Returns the calls of this version of a log.
    pub(crate) fn get(&self, log: &LogFile) -> Option<ScannedLog> {
        ScannedLog::read(source_of(log), self.bytes(log)?)
    }

    /// Writes a cache file with the calls of some logs.
    pub(crate) fn write<'a>(
        file: &Path,
        key: &str,
        logs: impl Iterator<Item = (&'a LogFile, &'a [u8])>,
    ) -> io::Result<()> {
        let mut out = format!("{key}\n").into_bytes();
        for (log, calls) in logs {
            let (Some(version), Some(path)) = (LogVersion::of(log), log.path.to_str()) else { continue };
            let head = format!("{}\t{}\t{}\n", escape(path), calls.len(), version.fields());
            out.extend(head.bytes().chain(calls.iter().copied()));
        }
        out.extend(END);
        replace_own_file(file, &out)
    }
}
