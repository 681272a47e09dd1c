//! The files of a home that belong to sessions, for copies of all of them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::agent_file::read_owner;
use crate::home::{Home, Store};
use crate::id::{SessionId, is_plain_name};
use crate::identity::{FileId, change_time};
use crate::listing::Listing;
use crate::log_file::MAX_DEPTH;
use crate::private_file::is_private_name;

/// A file of a home that belongs to a session, or the history of all prompts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeFile {
    /// The path of the file.
    pub path: PathBuf,
    /// The path below the home, with `/` as separator. Every part is a plain name.
    pub name: String,
    /// The size in bytes.
    pub size: u64,
    /// When the file was last modified.
    pub modified: SystemTime,
    /// The identity of the file.
    pub id: FileId,
    /// When the file or its metadata last changed; see [`LogFile::changed`](crate::LogFile::changed).
    pub changed: Option<i128>,
}

/// The folders of a home that contain files of sessions.
const PROJECTS: &str = "projects";
const FILE_HISTORY: &str = "file-history";
/// The folder that sub-agents of all sessions of a project shared in some versions.
const SUBAGENTS: &str = "subagents";

impl Store {
    /// Returns the files of a home that belong to sessions, sorted by name: logs, sub-agents, stored tool
    /// output, backups of edited files, and the history of prompts.
    ///
    /// Links are not followed. Opens no file.
    pub fn files_of(&self, home: &Home) -> Listing<HomeFile> {
        let mut listing = Listing::new();
        for folder in [PROJECTS, FILE_HISTORY] {
            add_files(&home.root().join(folder), folder, 0, &mut listing);
        }
        let history = home.history_file();
        if history.is_file() && !history.is_symlink() {
            add_file(history, "history.jsonl".to_owned(), &mut listing);
        }
        listing.found.sort_by(|a, b| a.name.cmp(&b.name));
        listing
    }
}

/// Returns the session that a file of a home belongs to, by its name below the home. `None` if the name does
/// not identify it, or is not that of a file of a session.
pub fn session_of_file(name: &str) -> Option<SessionId> {
    let mut parts = name.split('/');
    match (parts.next()?, parts.next()?, parts.next(), parts.next()) {
        (PROJECTS, _, Some(log), None) => {
            let id = log.strip_suffix(".jsonl").filter(|id| !id.starts_with("agent-"))?;
            SessionId::new(id)
        }
        (PROJECTS, _, Some(SUBAGENTS), Some(_)) => None,
        (PROJECTS, _, Some(id), Some(_)) | (FILE_HISTORY, id, Some(_), _) => SessionId::new(id),
        _ => None,
    }
}

/// Returns whether a name below a home is that of a sub-agent that is not in the folder of its session: next
/// to the log, or in a folder that all sessions of a project share. Its content names the session.
pub fn is_shared_agent_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    match parts[..] {
        [PROJECTS, _, file] | [PROJECTS, _, SUBAGENTS, file] => file.starts_with("agent-"),
        _ => false,
    }
}

/// Returns the session of a file of a home. Opens the file only if it [is a shared
/// agent](is_shared_agent_name).
///
/// # Errors
///
/// If the file must be read and cannot be.
pub fn read_session_of_file(file: &HomeFile) -> io::Result<Option<SessionId>> {
    if !is_shared_agent_name(&file.name) {
        return Ok(session_of_file(&file.name));
    }
    let log = match file.name.ends_with(".meta.json") {
        true => file.path.with_extension("").with_extension("jsonl"),
        false => file.path.clone(),
    };
    Ok(read_owner(&log)?.and_then(|id| SessionId::new(&id)))
}

/// Returns whether a name below a home is one that [`Store::files_of`] returns.
pub fn is_home_file_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').collect();
    let is_known = match parts[..] {
        [PROJECTS, _, log] => log.ends_with(".jsonl") || log.ends_with(".meta.json"),
        [PROJECTS, _, _, ..] | [FILE_HISTORY, _, ..] => true,
        _ => name == "history.jsonl",
    };
    is_known && parts.len() <= MAX_DEPTH + 2 && parts.iter().all(|part| is_plain_name(part))
}

fn add_files(dir: &Path, name: &str, depth: usize, listing: &mut Listing<HomeFile>) {
    if depth > MAX_DEPTH || (depth == 0 && !dir.exists()) {
        return;
    }
    let Some(entries) = listing.ok_or_record(fs_err::read_dir(dir)) else { return };
    for entry in entries {
        let Some(entry) = listing.ok_or_record(entry) else { continue };
        let file_name = entry.file_name();
        if is_private_name(&file_name) {
            continue;
        }
        let name = format!("{name}/{}", file_name.to_string_lossy());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => add_files(&entry.path(), &name, depth + 1, listing),
            Ok(kind) if kind.is_file() && is_home_file_name(&name) && file_name.to_str().is_some() => {
                add_file(entry.path(), name, listing);
            }
            _ => {}
        }
    }
}

fn add_file(path: PathBuf, name: String, listing: &mut Listing<HomeFile>) {
    let Some(metadata) = listing.ok_or_record(fs_err::symlink_metadata(&path)) else { return };
    listing.found.push(HomeFile {
        size: metadata.len(),
        modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
        id: FileId::of(&metadata),
        changed: change_time(&metadata),
        path,
        name,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_sessions_are_listed_and_others_are_not() {
        let dir = tempfile::tempdir().unwrap();
        for name in [
            "projects/-p/a.jsonl",
            "projects/-p/a/subagents/agent-1.jsonl",
            "projects/-p/a/tool-results/b.txt",
            "projects/-p/a/subagents/.threadline-20260101T000000-abcdef-0.old-before",
            "projects/-p/agent-2.jsonl",
            "projects/-p/agent-2.meta.json",
            "projects/-p/memory.md",
            "projects/-p/subagents/agent-3.jsonl",
            "projects/stray.jsonl",
            "file-history/a/c0ffee@v1",
            "history.jsonl",
            "settings.json",
            ".credentials.json",
        ] {
            let path = dir.path().join(name);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, "{\"sessionId\":\"b\"}\n").unwrap();
        }
        let store = Store::open([dir.path().to_owned()]);
        let names: Vec<_> =
            store.files_of(&store.homes()[0]).found.into_iter().map(|file| file.name).collect();
        assert_eq!(
            names,
            [
                "file-history/a/c0ffee@v1",
                "history.jsonl",
                "projects/-p/a.jsonl",
                "projects/-p/a/subagents/agent-1.jsonl",
                "projects/-p/a/tool-results/b.txt",
                "projects/-p/agent-2.jsonl",
                "projects/-p/agent-2.meta.json",
                "projects/-p/subagents/agent-3.jsonl",
            ]
        );
        let sessions: Vec<_> = names.iter().map(|name| session_of_file(name)).collect();
        let of_a = SessionId::new("a");
        assert_eq!(sessions[..5], [of_a.clone(), None, of_a.clone(), of_a.clone(), of_a]);
        assert_eq!(sessions[5..], [None, None, None]);
        let files = store.files_of(&store.homes()[0]).found;
        let read: Vec<_> = files[5..].iter().map(|file| read_session_of_file(file).unwrap()).collect();
        assert_eq!(read, [SessionId::new("b"), SessionId::new("b"), SessionId::new("b")]);
    }

    #[test]
    fn names_that_leave_the_home_are_refused() {
        for name in
            ["../x", "projects/../../x.jsonl", "/etc/passwd", "projects/-p/a/../../x", "projects//a.jsonl"]
        {
            assert!(!is_home_file_name(name), "{name}");
        }
    }
}
