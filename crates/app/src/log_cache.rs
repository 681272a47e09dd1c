//! Caches the content of each unchanged log, in a file beside the cache of figures.
//!
//! Calls are de-duplicated over all logs, so the figures of every session may change with one log. With this
//! cache, only the changed log is read again. It is read and written only if some log has changed.

use std::collections::HashMap;
use std::io;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use threadline_store::LogFile;

use crate::cache_file;
use crate::figures::LogVersion;

/// The cached content of logs, by path.
pub(crate) struct LogCache<T>(HashMap<String, (LogVersion, T)>);

impl<T> Default for LogCache<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Serialize + DeserializeOwned> LogCache<T> {
    /// Reads a cache file. Returns an empty cache if it does not exist, has another `key`, or is damaged.
    pub(crate) fn read(file: &Path, key: &str) -> Self {
        cache_file::read(file, key).map_or_else(Self::default, Self)
    }

    /// Returns what was read of this version of a log.
    pub(crate) fn get(&self, log: &LogFile) -> Option<&T> {
        let (version, content) = self.0.get(log.path.to_str()?)?;
        (LogVersion::of(log).as_ref() == Some(version)).then_some(content)
    }

    /// Writes a cache file with the content of some logs.
    pub(crate) fn write<'a>(
        file: &Path,
        key: &str,
        logs: impl Iterator<Item = (&'a LogFile, &'a T)>,
    ) -> io::Result<()>
    where
        T: 'a,
    {
        let entry = |(log, content)| {
            let log: &LogFile = log;
            Some((log.path.to_str()?, (LogVersion::of(log)?, content)))
        };
        cache_file::write(file, key, &logs.filter_map(entry).collect::<HashMap<_, _>>())
    }
}
