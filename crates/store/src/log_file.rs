//! Log files: every log of every home, from directory listings alone. No log is opened.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::agent_file::{self, AgentFile};
use crate::home::Store;
use crate::id::SessionId;
use crate::identity::{FileId, change_time};
use crate::listing::Listing;
use crate::regular_file::{is_inside, link_error};
use crate::session_file::{SessionFile, side_dir};

/// A log in a directory listing: of a session, or of a sub-agent in any layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// The path of the log.
    pub path: PathBuf,
    /// The project folder.
    pub dir: Arc<Path>,
    /// The session that the log belongs to; `None` if it is only recorded in the lines, as for agents of
    /// 2.0.x.
    pub session: Option<SessionId>,
    /// The size in bytes; 0 for a dangling link.
    pub size: u64,
    /// When the file was last modified.
    pub modified: SystemTime,
    /// The identity of the file.
    pub id: FileId,
    /// When the file or its metadata last changed, in nanoseconds since 1970. No program can set this time.
    /// `None` if the system does not record it.
    pub changed: Option<i128>,
}

impl LogFile {
    /// Returns the name of the project folder.
    pub fn folder(&self) -> String {
        self.dir.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the sub-agent that the log belongs to, if any.
    pub fn agent(&self) -> Option<AgentFile> {
        let mut parts = self.path.parent()?.iter();
        let run = parts.find(|part| *part == "workflows").and_then(|_| parts.next());
        AgentFile::new(self.path.clone(), run.map(|run| run.to_string_lossy().into_owned()))
    }

    fn new(path: PathBuf, dir: Arc<Path>, session: Option<SessionId>, metadata: Option<&Metadata>) -> Self {
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        Self {
            path,
            dir,
            session,
            size: metadata.map_or(0, Metadata::len),
            modified: modified.unwrap_or(SystemTime::UNIX_EPOCH),
            id: metadata.map_or(FileId { volume: 0, index: 0, born: None }, FileId::of),
            changed: metadata.and_then(change_time),
        }
    }

    fn is_agents(&self) -> bool {
        self.path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"))
    }

    fn is_of_session(&self) -> bool {
        !self.is_agents() && self.session.as_ref().is_some_and(|id| SessionId::of_log(&self.path) == *id)
    }
}

/// All logs of one session.
#[derive(Clone, Debug)]
pub struct SessionLogs {
    /// The session; its own log need not exist.
    pub file: SessionFile,
    /// Its own log; `None` if it was deleted or is in another folder.
    pub own: Option<LogFile>,
    /// The logs of its sub-agents, sorted by path.
    pub agents: Vec<LogFile>,
}

impl SessionLogs {
    /// Returns the logs, the session's own first.
    pub fn logs(&self) -> impl Iterator<Item = &LogFile> {
        self.own.iter().chain(&self.agents)
    }

    /// Returns the total size in bytes.
    pub fn size(&self) -> u64 {
        self.logs().map(|log| log.size).sum()
    }

    /// Returns when the session was last modified: the time of its own log, or else the latest of its
    /// sub-agents.
    pub fn modified(&self) -> SystemTime {
        let agents = || self.agents.iter().map(|log| log.modified).max();
        self.own.as_ref().map(|own| own.modified).or_else(agents).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// The maximum depth of directories below a project folder, `file-history`, or a given directory.
pub(crate) const MAX_DEPTH: usize = 12;

impl Store {
    /// Returns every log of the store, of sessions and of sub-agents in any layout, sorted by path.
    ///
    /// A file that is found twice, through links or several names, is listed once. Opens no file.
    pub fn logs(&self) -> Listing<LogFile> {
        let mut listing = Listing::new();
        let folders = self.project_folders(&mut listing);
        for part in map_in_parallel(&folders, |(_, folder)| in_project(folder, self.real_roots())) {
            listing.append(part);
        }
        sort_and_deduplicate(&mut listing.found);
        listing
    }

    /// Returns the logs modified at or after `moment`, sorted by path.
    ///
    /// This reads less than [`logs`](Self::logs): the directory of a session that was not modified since one
    /// day before `moment` is skipped, since a session is active while its sub-agents run. Opens no file.
    pub fn logs_since(&self, moment: SystemTime) -> Listing<LogFile> {
        let mut listing = Listing::new();
        let folders = self.project_folders(&mut listing);
        for part in
            map_in_parallel(&folders, |(_, folder)| in_project_since(folder, moment, self.real_roots()))
        {
            listing.append(part);
        }
        sort_and_deduplicate(&mut listing.found);
        listing
    }

    /// Returns the same logs as [`logs`](Self::logs) by session, most recently modified first.
    ///
    /// If the location of a sub-agent's log does not identify the session (2.0.x), its first lines are read.
    /// If they do not identify it either, the log is listed as a separate session.
    pub fn session_logs(&self) -> Listing<SessionLogs> {
        let logs = self.logs();
        let strays: Vec<&LogFile> = logs.found.iter().filter(|log| log.session.is_none()).collect();
        let mut owners = map_in_parallel(&strays, |log| agent_file::read_owner(&log.path)).into_iter();
        let mut listing = Listing { found: Vec::new(), errors: logs.errors };
        // The sessions of a project by id. Logs are sorted by path, so those of one project follow each
        // other.
        let (mut places, mut project): (HashMap<SessionId, usize>, Option<Arc<Path>>) = Default::default();
        for mut log in logs.found {
            if log.session.is_none() {
                // Errors are reported when the log is opened.
                let owner = owners.next().and_then(|owner| owner.ok().flatten());
                log.session = owner.and_then(|owner| SessionId::new(&owner));
            }
            let id = log.session.clone().unwrap_or_else(|| SessionId::of_log(&log.path));
            if project.as_ref().is_none_or(|dir| !Arc::ptr_eq(dir, &log.dir)) {
                project = Some(log.dir.clone());
                places.clear();
            }
            let place = *places.entry(id).or_insert_with_key(|id| {
                let file = SessionFile::at(id.log_in(&log.dir));
                listing.found.push(SessionLogs { file, own: None, agents: Vec::new() });
                listing.found.len() - 1
            });
            let session = &mut listing.found[place];
            match log.is_of_session() && session.own.is_none() {
                true => {
                    // The file's name may differ from the id, if it is not a valid id.
                    session.file.path.clone_from(&log.path);
                    session.own = Some(log);
                }
                false => session.agents.push(log),
            }
        }
        // Elements are large; a cached key moves each only once.
        listing.found.sort_by_cached_key(|session| Reverse(session.modified()));
        listing
    }
}

impl SessionFile {
    /// Returns the logs of the session: its own and those of its sub-agents.
    pub fn logs(&self) -> Listing<LogFile> {
        let agents = self.agents();
        let mut listing = Listing { found: Vec::new(), errors: agents.errors };
        let dir: Arc<Path> = self.path.parent().unwrap_or(Path::new("")).into();
        let agents = agents.found.into_iter().map(|agent| agent.path);
        for path in std::iter::once(self.path.clone()).chain(agents) {
            if let Some(metadata) = listing.ok_or_record(fs_err::metadata(&path)) {
                listing.found.push(LogFile::new(path, dir.clone(), Some(self.id.clone()), Some(&metadata)));
            }
        }
        listing
    }
}

/// Returns every log below any directory, sorted by path. Opens no file.
///
/// The session of a sub-agent's log is the directory that contains `subagents`.
pub fn logs_below(folder: &Path) -> Listing<LogFile> {
    let mut listing = Listing::new();
    let roots: Vec<PathBuf> = std::fs::canonicalize(folder).into_iter().collect();
    walk(folder, MAX_DEPTH, &roots, &mut listing, &mut |path, metadata| {
        let (dir, session) = project_and_session(&path);
        LogFile::new(path, dir, session, metadata)
    });
    sort_and_deduplicate(&mut listing.found);
    listing
}

/// Returns the project folder and the session, as far as the path of a log identifies them.
fn project_and_session(path: &Path) -> (Arc<Path>, Option<SessionId>) {
    let parent = path.parent().unwrap_or(Path::new(""));
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if !stem.starts_with("agent-") {
        return (parent.into(), Some(SessionId::of_log(path)));
    }
    // Since 2.1.2 a session has its own directory with `subagents` in it. In older versions only the lines
    // contain the session.
    let subagents =
        path.ancestors().skip(1).find(|dir| dir.file_name().is_some_and(|name| name == "subagents"));
    let Some(owner) = subagents.and_then(Path::parent) else { return (parent.into(), None) };
    let id = owner.file_name().unwrap_or_default().to_string_lossy();
    if is_uuid(&id) || owner.with_extension("jsonl").exists() {
        return (owner.parent().unwrap_or(owner).into(), SessionId::new(&id));
    }
    (owner.into(), None)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// Returns the logs of a project folder. Files in subdirectories belong to the session that the subdirectory
/// is named after.
fn in_project(folder: &Path, roots: &[PathBuf]) -> Listing<LogFile> {
    let mut listing = Listing::new();
    walk(folder, MAX_DEPTH, roots, &mut listing, &mut log_file_in(folder));
    sort_and_deduplicate(&mut listing.found);
    listing
}

fn in_project_since(folder: &Path, moment: SystemTime, roots: &[PathBuf]) -> Listing<LogFile> {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let mut place = log_file_in(folder);
    let mut listing = Listing::new();
    walk(folder, 0, roots, &mut listing, &mut place);
    let day_before = moment.checked_sub(DAY).unwrap_or(SystemTime::UNIX_EPOCH);
    let awake = listing.found.iter().filter(|log| log.modified >= day_before && log.session.is_some());
    let beside: Vec<_> = awake.filter_map(|log| side_dir(&log.path)).collect();
    for dir in beside.into_iter().chain([folder.join("subagents")]) {
        walk(&dir, MAX_DEPTH - 1, roots, &mut listing, &mut place);
    }
    listing.found.retain(|log| log.modified >= moment);
    listing
}

/// Returns a function that builds the `LogFile` of a file in a project folder.
fn log_file_in(folder: &Path) -> impl FnMut(PathBuf, Option<&Metadata>) -> LogFile {
    let dir: Arc<Path> = folder.into();
    move |path, metadata| {
        let first = path.strip_prefix(&dir).ok().and_then(|below| below.components().next());
        let name = first.map(|first| first.as_os_str().to_string_lossy()).unwrap_or_default();
        let session = match name.strip_suffix(".jsonl") {
            Some(stem) => (!stem.starts_with("agent-")).then(|| SessionId::of_log(&path)),
            None => SessionId::new(&name).filter(|_| name != "subagents"),
        };
        LogFile::new(path, dir.clone(), session, metadata)
    }
}

/// Collects the logs in `folder` and up to `depth` levels below; targets of links come last.
fn walk(
    folder: &Path,
    depth: usize,
    roots: &[PathBuf],
    listing: &mut Listing<LogFile>,
    make: &mut impl FnMut(PathBuf, Option<&Metadata>) -> LogFile,
) {
    let mut folders = vec![(folder.to_owned(), depth)];
    let mut links = Vec::new();
    loop {
        while let Some((folder, depth)) = folders.pop() {
            let Some(entries) = listing.ok_or_record(fs_err::read_dir(folder)) else { continue };
            for entry in entries {
                let Some(entry) = listing.ok_or_record(entry) else { continue };
                let Ok(kind) = entry.file_type() else { continue };
                let name = entry.file_name();
                if kind.is_symlink() {
                    links.push((entry.path(), depth));
                } else if kind.is_dir() {
                    // A link may refer to a parent directory; the depth limit ends the recursion.
                    if depth > 0 && may_contain_logs(&name) {
                        folders.push((entry.path(), depth - 1));
                    }
                } else if kind.is_file()
                    && is_log(&name)
                    && let Some(metadata) = listing.ok_or_record(entry.metadata())
                {
                    listing.found.push(make(entry.path(), Some(&metadata)));
                }
            }
        }
        if links.is_empty() {
            return;
        }
        for (path, depth) in std::mem::take(&mut links) {
            let name = path.file_name().unwrap_or_default();
            match fs_err::metadata(&path) {
                Ok(metadata) if !is_inside(&path, roots) => {
                    if metadata.is_file() && is_log(name)
                        || metadata.is_dir() && depth > 0 && may_contain_logs(name)
                    {
                        listing.errors.push(link_error(&path));
                    }
                }
                Ok(metadata) if metadata.is_dir() && depth > 0 && may_contain_logs(name) => {
                    folders.push((path, depth - 1));
                }
                Ok(metadata) if metadata.is_file() && is_log(name) => {
                    listing.found.push(make(path, Some(&metadata)));
                }
                Ok(_) => {}
                // Opening it reports the error.
                Err(_) if is_log(name) => listing.found.push(make(path, None)),
                Err(_) => {}
            }
        }
    }
}

/// Whether a file with this name is a transcript. The journal of a workflow is not.
fn is_log(name: &OsStr) -> bool {
    Path::new(name).extension().is_some_and(|ext| ext == "jsonl") && name != "journal.jsonl"
}

/// Whether a directory with this name may contain logs. Tool output is skipped.
fn may_contain_logs(name: &OsStr) -> bool {
    name != "tool-results"
}

/// Removes duplicates of a file, keeping the first name found, and sorts by path.
fn sort_and_deduplicate(logs: &mut Vec<LogFile>) {
    let mut seen = HashSet::with_capacity(logs.len());
    logs.retain(|log| log.id.index == 0 || seen.insert((log.id.volume, log.id.index)));
    // Comparing paths by component would be several times slower.
    logs.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
}

/// Applies `work` to each item in parallel and returns the results in order. Scoped threads are cheaper than
/// a thread pool for one short task.
fn map_in_parallel<T: Sync, V: Send>(items: &[T], work: impl Fn(&T) -> V + Sync) -> Vec<V> {
    let n_threads = std::thread::available_parallelism().map_or(2, usize::from).min(items.len());
    if n_threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut made = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return made };
            made.push((place, work(item)));
        }
    };
    let mut made = std::thread::scope(|scope| {
        let others: Vec<_> = (1..n_threads).map(|_| scope.spawn(worker)).collect();
        let mut made = worker();
        for other in others {
            match other.join() {
                Ok(part) => made.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    made.sort_by_key(|(place, _)| *place);
    made.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests;
