//! A cache of the facts at both ends of logs, for a front end that searches repeatedly.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::SystemTime;

use parking_lot::Mutex;
use threadline_search::{LogEnds, SearchedSession, read_first_uuid};
use threadline_store::{LogFile, last_active_in, open_regular, read_last_active};

use crate::figures::LogVersion;

/// The maximum number of cached values.
const MAX_VALUES: usize = 1 << 16;

/// The facts at both ends of the logs that were read before.
#[derive(Debug, Default)]
pub(crate) struct LogEndsCache {
    first_uuids: VersionedCache<Option<[u8; 36]>>,
    last_active: VersionedCache<SystemTime>,
}

/// The versions of the logs of a listing that were not changed lately. Only these are cached.
#[derive(Debug, Default)]
pub(crate) struct SettledVersions(HashMap<PathBuf, LogVersion>);

impl SettledVersions {
    pub(crate) fn of<'l>(logs: impl Iterator<Item = &'l LogFile>, now: SystemTime) -> Self {
        let version = |log: &LogFile| LogVersion::of(log).filter(|version| version.is_settled(now));
        Self(logs.filter_map(|log| Some((log.path.clone(), version(log)?))).collect())
    }
}

impl LogEndsCache {
    /// Returns the facts at both ends of the log of a session.
    pub(crate) fn ends(&self, session: &SearchedSession, versions: &SettledVersions) -> LogEnds {
        let mut log = None;
        let first_uuid = self.first_uuids.get_or_read(session, versions, || {
            log = open_regular(&session.path).ok();
            log.as_mut().and_then(read_first_uuid)
        });
        let last_active =
            self.last_active.get_or_read(session, versions, || read_time_of_end(session, log.take()));
        LogEnds { last_active, first_uuid }
    }

    /// Returns when a session was last active.
    pub(crate) fn last_active(&self, session: &SearchedSession, versions: &SettledVersions) -> SystemTime {
        self.last_active.get_or_read(session, versions, || read_time_of_end(session, None))
    }
}

/// Reads when a session was last active; `log` is its own log, if it is open.
fn read_time_of_end(session: &SearchedSession, log: Option<File>) -> SystemTime {
    let log = log.or_else(|| open_regular(&session.path).ok());
    let own = log.and_then(|mut log| last_active_in(&mut log).ok());
    // Without its own log, a session was last active when one of its sub-agents was.
    let agents = || session.logs.iter().filter_map(|log| read_last_active(log).ok()).max();
    own.or_else(agents).unwrap_or(session.modified)
}

/// A value per version of a log.
#[derive(Debug)]
struct VersionedCache<T>(Mutex<HashMap<PathBuf, (LogVersion, T)>>);

impl<T> Default for VersionedCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Copy> VersionedCache<T> {
    /// Returns the value of the log of a session. Reads it if it is not cached for this version.
    fn get_or_read(
        &self,
        session: &SearchedSession,
        versions: &SettledVersions,
        read: impl FnOnce() -> T,
    ) -> T {
        let Some(version) = versions.0.get(&session.path) else { return read() };
        let cached = self.0.lock().get(&session.path).filter(|(known, _)| known == version).map(|it| it.1);
        cached.unwrap_or_else(|| {
            let value = read();
            let mut values = self.0.lock();
            if values.len() >= MAX_VALUES {
                values.clear();
            }
            values.insert(session.path.clone(), (version.clone(), value));
            value
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::OnceLock;
    use std::time::Duration;

    use threadline_store::logs_below;

    use super::*;

    #[test]
    fn a_value_is_read_again_when_its_log_changes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let session = SearchedSession {
            id: "a".to_owned(),
            folder: String::new(),
            path: path.clone(),
            modified: SystemTime::UNIX_EPOCH,
            logs: vec![path.clone()],
            ends: OnceLock::new(),
        };
        let n_read = Cell::new(0);
        let cache = VersionedCache::default();
        let get = |after: Duration| {
            let logs = logs_below(dir.path()).found;
            let now = logs[0].modified + after;
            cache.get_or_read(&session, &SettledVersions::of(logs.iter(), now), || {
                n_read.set(n_read.get() + 1);
                n_read.get()
            })
        };
        let later = Duration::from_secs(60);
        std::fs::write(&path, "{}\n").unwrap();
        // A log that was just written may change without another time.
        assert_eq!([get(Duration::ZERO), get(Duration::ZERO)], [1, 2]);
        assert_eq!([get(later), get(later)], [3, 3]);
        std::fs::write(&path, "{}\n{}\n").unwrap();
        assert_eq!([get(later), get(later)], [4, 4]);
    }
}
