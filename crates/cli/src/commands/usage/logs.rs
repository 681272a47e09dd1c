//! The logs that tokens are counted in: found quickly, read on all cores.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use rayon::prelude::*;
use threadline_entry::{AgentKind, Lines};
use threadline_store::{SessionFile, Store};
use threadline_usage::{Calls, Ledger, Scan, Source, Wants};

use crate::ui::Ui;

/// A log, and whose it is.
pub(super) struct Log {
    pub(super) path: PathBuf,
    /// The session, where the path does not tell.
    session: Option<String>,
    size: u64,
    pub(super) modified: Option<SystemTime>,
}

/// Logs, and what could not be looked into.
#[derive(Default)]
pub(super) struct Logs {
    pub(super) found: Vec<Log>,
    pub(super) unread: Vec<String>,
}

/// How deep folders may lie below the one that was named.
const MAX_DEPTH: usize = 12;

impl Logs {
    /// All logs of a store: those of sessions, and those of sub-agents in every layout.
    pub(super) fn of_store(store: &Store) -> Self {
        let mut logs = Self::default();
        let mut links = Vec::new();
        for home in store.homes() {
            let projects = home.projects_dir();
            let mut folders = Vec::new();
            logs.entries(&projects, |entry| {
                let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                let path = entry.path();
                if is_link && path.is_dir() {
                    links.extend(fs::canonicalize(path).ok());
                } else if !is_link && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(path);
                }
            });
            let parts: Vec<Self> = folders.par_iter().map(|folder| Self::below(folder)).collect();
            for part in parts {
                logs.append(part);
            }
        }
        // A link mostly leads to a folder that was looked into already.
        if !links.is_empty() {
            let roots: Vec<_> =
                store.homes().iter().filter_map(|home| fs::canonicalize(home.projects_dir()).ok()).collect();
            links.retain(|link| !roots.iter().any(|root| link.starts_with(root)));
            links.sort();
            links.dedup();
            for link in links {
                logs.append(Self::below(&link));
            }
        }
        logs
    }

    /// All logs below a folder.
    pub(super) fn below(folder: &Path) -> Self {
        let mut logs = Self::default();
        logs.walk(folder, MAX_DEPTH);
        logs
    }

    /// The logs of a session and its sub-agents.
    pub(super) fn of_session(file: &SessionFile) -> Self {
        let mut logs = Self::default();
        logs.add(file.path.clone());
        let agents = file.agents();
        logs.unread.extend(agents.unread.iter().map(ToString::to_string));
        for agent in agents.found {
            logs.add(agent.path);
            if let Some(log) = logs.found.last_mut() {
                log.session = Some(file.id.clone());
            }
        }
        logs
    }

    pub(super) fn append(&mut self, other: Self) {
        self.found.extend(other.found);
        self.unread.extend(other.unread);
    }

    /// Leaves out what was found twice. What is reached by another name is read again, and counted once all the same.
    pub(super) fn each_once(mut self) -> Self {
        let mut seen = HashSet::new();
        self.found.retain(|log| seen.insert(log.path.clone()));
        self
    }

    fn walk(&mut self, folder: &Path, depth: usize) {
        let mut folders = Vec::new();
        let mut logs = Vec::new();
        self.entries(folder, |entry| {
            let Ok(kind) = entry.file_type() else { return };
            let path = entry.path();
            if kind.is_dir() || (kind.is_symlink() && path.is_dir()) {
                folders.push(path);
            } else if path.extension().is_some_and(|ext| ext == "jsonl") {
                logs.push(path);
            }
        });
        for log in logs {
            self.add(log);
        }
        // A link may lead back up; the depth ends that.
        for folder in folders.into_iter().filter(|_| depth > 0) {
            self.walk(&folder, depth - 1);
        }
    }

    /// Calls `sink` with what is in a folder. A folder that is gone is no problem.
    fn entries(&mut self, folder: &Path, mut sink: impl FnMut(fs::DirEntry)) {
        let mut note = |error: io::Error| {
            if error.kind() != io::ErrorKind::NotFound {
                self.unread.push(format!("cannot read {}: {error}", folder.display()));
            }
        };
        match fs::read_dir(folder) {
            Ok(entries) => {
                for entry in entries {
                    entry.map_or_else(&mut note, &mut sink);
                }
            }
            Err(error) => note(error),
        }
    }

    /// Adds a log, unless it is a workflow's journal, which is no transcript.
    fn add(&mut self, path: PathBuf) {
        if path.file_stem().is_none_or(|stem| stem == "journal") {
            return;
        }
        let metadata = fs::metadata(&path).ok();
        let size = metadata.as_ref().map_or(0, fs::Metadata::len);
        let modified = metadata.and_then(|metadata| metadata.modified().ok());
        self.found.push(Log { path, session: None, size, modified });
    }

    /// Reads all of them.
    pub(super) fn read(mut self, ui: &Ui, wants: Wants) -> Read {
        // The largest first, so that no core is left with one at the end.
        self.found.sort_by(|a, b| b.size.cmp(&a.size).then_with(|| a.path.cmp(&b.path)));
        let ledger = Mutex::new(Ledger::default());
        let failed = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        let progress = ui.progress("reading log", self.found.len());
        rayon::broadcast(|_| {
            let mut buffer = Vec::new();
            while let Some(log) = self.found.get(next.fetch_add(1, Ordering::Relaxed)) {
                let scanned = scan(log, wants, &mut buffer);
                match scanned {
                    Ok(scan) => locked(&ledger).absorb(scan.finish()),
                    Err(error) => locked(&failed).push((log.path.clone(), error)),
                }
                progress.step();
            }
        });
        drop(progress);
        let mut failed = failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        failed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut gone = Vec::new();
        for (path, error) in failed {
            match error.kind() {
                io::ErrorKind::NotFound => gone.push(path),
                _ => self.unread.push(format!("cannot read {}: {error}", path.display())),
            }
        }
        let ledger = ledger.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        Read { calls: ledger.settle(), unread: self.unread, gone }
    }
}

/// What all logs hold, and what could not be read.
pub(super) struct Read {
    pub(super) calls: Calls,
    pub(super) unread: Vec<String>,
    /// Logs that were there when they were looked for, and not when they were opened.
    pub(super) gone: Vec<PathBuf>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Reads one log in stretches, into a buffer that serves all of them.
fn scan(log: &Log, wants: Wants, buffer: &mut Vec<u8>) -> io::Result<Scan> {
    let mut scan = Scan::new(source_of(log), wants);
    let mut lines = Lines::new(File::open(&log.path)?).with_buffer(std::mem::take(buffer));
    if !wants.records {
        lines.stop_numbering();
    }
    let result = loop {
        match lines.next_block() {
            Ok(Some(block)) => scan.block(&block),
            Ok(None) => break Ok(scan),
            Err(error) => break Err(error),
        }
    };
    *buffer = lines.into_buffer();
    result
}

/// Whose log this is, as far as its path tells.
fn source_of(log: &Log) -> Source {
    let path = &*log.path;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let folder = |path: Option<&Path>| Some(path?.file_name()?.to_string_lossy().into_owned());
    let mut source = Source { path: path.to_string_lossy().into_owned(), ..Source::default() };
    let Some(id) = stem.strip_prefix("agent-") else {
        source.session = Some(stem.into_owned());
        source.folder = folder(path.parent());
        return source;
    };
    let in_workflow = path.components().any(|part| part.as_os_str() == "workflows");
    source.agent = Some((id.to_owned(), AgentKind::of(id, in_workflow)));
    // Since 2.1.2 the session has a folder of its own, with `subagents` in it. Before, the lines tell.
    let subagents = path.ancestors().find(|dir| dir.file_name().is_some_and(|name| name == "subagents"));
    let owner = subagents.and_then(Path::parent);
    let has_log = |owner: &Path| owner.with_extension("jsonl").exists();
    let own = folder(owner).filter(|id| is_uuid(id) || owner.is_some_and(has_log));
    source.folder = match &own {
        Some(_) => folder(owner.and_then(Path::parent)),
        None => folder(owner.or(path.parent())),
    };
    source.session = log.session.clone().or(own);
    source
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}
