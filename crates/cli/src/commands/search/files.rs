//! The files to search, and the session that each belongs to.
//!
//! `store` lists sessions by looking into each; a search looks into them anyway, so here names must do.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use memchr::memmem;
use threadline_entry::decode;
use threadline_search::first_uuid;
use threadline_store::{SessionFile, Store};

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
    let mut unread = Vec::new();
    let mut folders = Vec::new();
    for home in store.homes() {
        match read_dir(&home.projects_dir()) {
            Ok(entries) => {
                folders.extend(entries.into_iter().filter(|entry| entry.1.is_dir).map(|entry| entry.0))
            }
            Err(error) => unread.push(error),
        }
    }
    // A link to a folder that is listed already.
    let mut seen = std::collections::HashSet::new();
    folders.sort_by_cached_key(|folder| (folder.is_symlink(), folder.clone()));
    folders.retain(|folder| seen.insert(fs::canonicalize(folder).unwrap_or_else(|_| folder.clone())));
    let listed = on_all_cores(&folders, |folder| in_folder(folder));
    let mut sessions = Vec::new();
    for listed in listed {
        match listed {
            Ok(found) => sessions.extend(found),
            Err(error) => unread.push(error),
        }
    }
    sessions.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    (sessions, unread)
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

fn in_folder(folder: &Path) -> io::Result<Vec<Searched>> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut sessions: HashMap<String, Searched> = HashMap::new();
    let mut agents = Vec::new();
    for (path, entry) in read_dir(folder)? {
        let Some(stem) = path.file_stem().and_then(OsStr::to_str).map(str::to_owned) else { continue };
        if entry.is_dir {
            // One folder for the agents of all, or one for each session.
            let (owner, below) =
                if stem == "subagents" { (None, path) } else { (Some(stem), path.join("subagents")) };
            agent_logs(&below, 8, &mut |log| agents.push((owner.clone(), log)));
        } else if path.extension() != Some(OsStr::new("jsonl")) {
            continue;
        } else if stem.starts_with("agent-") {
            agents.push((None, path));
        } else {
            let logs = vec![path.clone()];
            let modified = entry.modified();
            sessions.insert(stem.clone(), Searched { id: stem, folder: name.clone(), path, modified, logs });
        }
    }
    agents.sort();
    for (owner, log) in agents {
        let owner = owner.or_else(|| owner_of(&log)).unwrap_or_else(|| stem_of(&log));
        // The log of the session may be gone, or lie elsewhere.
        let session = sessions.entry(owner.clone()).or_insert_with(|| Searched {
            path: folder.join(format!("{owner}.jsonl")),
            id: owner,
            folder: name.clone(),
            modified: fs::metadata(&log).and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH),
            logs: Vec::new(),
        });
        session.logs.push(log);
    }
    Ok(sessions.into_values().collect())
}

fn stem_of(log: &Path) -> String {
    log.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn agent_logs(folder: &Path, depth: usize, sink: &mut impl FnMut(PathBuf)) {
    for (path, entry) in read_dir(folder).unwrap_or_default() {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if entry.is_dir && depth > 0 {
            agent_logs(&path, depth - 1, sink);
        } else if name.starts_with("agent-") && name.ends_with(".jsonl") {
            sink(path);
        }
    }
}

/// What a folder says of something in it.
struct Listed {
    is_dir: bool,
    entry: fs::DirEntry,
}

impl Listed {
    fn modified(&self) -> SystemTime {
        let modified = self.entry.metadata().and_then(|meta| meta.modified());
        modified.unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// What is in a folder; nothing if there is no such folder.
fn read_dir(folder: &Path) -> io::Result<Vec<(PathBuf, Listed)>> {
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot list {}: {error}", folder.display()));
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(named(error)),
    };
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry.map_err(named)?;
        let path = entry.path();
        let is_dir = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => path.is_dir(),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        listed.push((path, Listed { is_dir, entry }));
    }
    Ok(listed)
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

/// The session that the log of a sub-agent says it belongs to.
fn owner_of(log: &Path) -> Option<String> {
    head(log, |head| string_of(head, "\"sessionId\":\""))
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
