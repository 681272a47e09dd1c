//! The files to search, and the session that each belongs to.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memchr::memmem;
use threadline_entry::decode;
use threadline_search::first_uuid;
use threadline_store::{SessionFile, SessionLogs, Store};

/// A session, with the logs that belong to it.
#[derive(Clone, Debug)]
pub(super) struct Searched {
    pub(super) id: String,
    /// The name of the project's folder.
    pub(super) folder: String,
    /// The session's own log, whether it is there or not.
    pub(super) path: PathBuf,
    pub(super) modified: SystemTime,
    /// Its own log first, then those of its sub-agents.
    pub(super) logs: Vec<PathBuf>,
}

impl Searched {
    /// The sub-agent that a log of this session belongs to.
    pub(super) fn agent_of(&self, log: &Path) -> Option<String> {
        let name = log.file_stem()?.to_str()?;
        (log != self.path).then(|| name.strip_prefix("agent-").unwrap_or(name).to_owned())
    }

    pub(super) fn file(&self) -> SessionFile {
        SessionFile::at(&self.path)
    }
}

/// The sessions of the store, the last modified first, and what could not be listed.
pub(super) fn sessions(store: &Store) -> (Vec<Searched>, Vec<io::Error>) {
    let listing = store.session_logs();
    (listing.found.into_iter().map(Searched::from).collect(), listing.unread)
}

impl From<SessionLogs> for Searched {
    fn from(session: SessionLogs) -> Self {
        let (modified, SessionLogs { file, own, agents }) = (session.modified(), session);
        let logs = own.into_iter().chain(agents).map(|log| log.path).collect();
        Self { id: file.id, folder: file.folder.unwrap_or_default(), path: file.path, modified, logs }
    }
}

/// How many threads to search with.
pub(super) fn n_threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// What `work` makes of each item. Short work that comes once: threads that look for more of it cost more.
fn on_all_cores<T: Sync, V: Send>(items: &[T], work: impl Fn(&T) -> V + Sync) -> Vec<V> {
    let share = items.len().div_ceil(n_threads()).max(1);
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = items
            .chunks(share)
            .map(|items| scope.spawn(move || items.iter().map(work).collect::<Vec<_>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}

/// How much of a log is looked at to know it, at first and at most.
const HEAD: usize = 1 << 12;
const MOST: usize = 1 << 20;

/// What `wanted` finds in the beginning of a log, within reason.
fn head<T>(log: &Path, wanted: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut file = File::open(log).ok()?;
    let mut head = vec![0; HEAD];
    let mut filled = 0;
    loop {
        let read = file.read(&mut head[filled..]).ok()?;
        filled += read;
        let found = wanted(&head[..filled]);
        if found.is_some() || read == 0 || filled == MOST {
            return found;
        }
        if filled == head.len() {
            head.resize(4 * filled, 0);
        }
    }
}

/// What each session has in common with its forks.
pub(super) fn roots(sessions: &[Searched]) -> Vec<Option<[u8; 36]>> {
    on_all_cores(sessions, |session| head(&session.path, |head| first_uuid(head)?.try_into().ok()))
}

/// The directory that each session began in.
pub(super) fn directories(sessions: &[Searched]) -> Vec<Option<String>> {
    on_all_cores(sessions, |session| head(session.logs.first()?, |head| string_of(head, "\"cwd\":\"")))
}

/// The first string behind a key.
fn string_of(head: &[u8], key: &str) -> Option<String> {
    let from = memmem::find(head, key.as_bytes())? + key.len();
    let mut escaped = false;
    let end = head[from..].iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    Some(decode(std::str::from_utf8(&head[from..from + end]).ok()?).into_owned())
}
