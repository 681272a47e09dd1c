//! Session files: the location of each session's log and of its side files.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memchr::{memchr, memmem};
use rayon::prelude::*;
use threadline_entry::{Json, key, walk};

use crate::agent_file::{self, AgentFile};
use crate::file_window;
use crate::home::{Home, Store};
use crate::id::{SessionId, is_plain_name};
use crate::listing::Listing;
use crate::project::{folder_matches, real_path, worktrees};
use crate::regular_file::{self, is_inside, link_error};

/// The log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SessionFile {
    /// The session's id, which is the file's name.
    pub id: SessionId,
    /// The path of the log.
    pub path: PathBuf,
    /// The name of the project folder, if the file is in a home.
    pub folder: Option<String>,
    /// The home, if the file is in one.
    pub home: Option<Home>,
}

impl SessionFile {
    /// Returns the session with the log at `path`, in a home or anywhere else. Does not access the disk.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let id = SessionId::of_log(&path);
        let folder = path.parent();
        let projects =
            folder.and_then(Path::parent).filter(|dir| dir.file_name() == Some(OsStr::new("projects")));
        let home = projects.and_then(Path::parent).map(Home::new);
        let folder = folder.and_then(Path::file_name).filter(|_| home.is_some());
        let folder = folder.map(|name| name.to_string_lossy().into_owned());
        Self { id, path, folder, home }
    }

    /// Whether the first line belongs to a sub-agent, so that the file is not a session.
    pub fn is_sidechain(&self) -> io::Result<bool> {
        let mut head = Vec::new();
        regular_file::open(&self.path)?.take(file_window::WINDOW_BYTES as u64).read_to_end(&mut head)?;
        Ok(starts_sidechain(&head))
    }

    /// Returns the transcripts of the session's sub-agents, in any layout.
    pub fn agents(&self) -> Listing<AgentFile> {
        agent_file::agents_of(&self.path, &self.id)
    }

    /// Returns the directory with tool output that was too long for the log, if it exists.
    pub fn tool_results_dir(&self) -> Option<PathBuf> {
        Some(self.side_dir()?.join("tool-results")).filter(|dir| is_unlinked_dir(dir))
    }

    /// Returns the session's own directory next to its log, if it exists. Links are ignored.
    pub fn side_dir(&self) -> Option<PathBuf> {
        side_dir(&self.path)
    }

    /// Opens tool output that was saved to a separate file; `None` if it does not exist.
    ///
    /// The log contains the path at the time of writing. Only its file name is used, and the file is opened
    /// in the session's own directory.
    pub fn open_tool_output(&self, path: &str) -> Option<impl Read + use<>> {
        let name = path.rsplit(['/', '\\']).next().filter(|name| is_plain_name(name))?;
        let folder = self.tool_results_dir()?;
        regular_file::open_inside(&folder, &folder.join(name)).ok()
    }

    /// Returns the directory with backups of the files that the session changed, if it exists.
    pub fn file_history_dir(&self) -> Option<PathBuf> {
        Some(self.home.as_ref()?.file_history_dir(&self.id)).filter(|dir| is_unlinked_dir(dir))
    }

    /// Reads the backup of a file; `None` if there is none with this name.
    pub fn backup(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        // The name comes from a log, so it must not refer to another directory.
        let Some(dir) = self.file_history_dir().filter(|_| is_plain_name(name)) else { return Ok(None) };
        let mut file = match regular_file::open_inside(&dir, &dir.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }
}

/// Returns the session's own directory next to the log at `path`, if it exists.
pub(crate) fn side_dir(path: &Path) -> Option<PathBuf> {
    let id = SessionId::new(path.file_stem()?.to_str()?)?;
    let dir = id.dir_in(path.parent()?);
    (path.extension()? == "jsonl" && is_unlinked_dir(&dir)).then_some(dir)
}

/// Returns whether this is a directory and not a link to one.
fn is_unlinked_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir())
}

/// Whether a file that begins with `head` is the log of a sub-agent.
pub(crate) fn starts_sidechain(head: &[u8]) -> bool {
    let end = memchr(b'\n', head);
    let line = &head[..end.unwrap_or(head.len())];
    const KEY: &[u8] = key::quoted::IS_SIDECHAIN.as_bytes();
    let is_true = |at: usize| {
        let value = line[at + KEY.len()..].strip_prefix(b":");
        value.is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    };
    if !memmem::find_iter(line, KEY).any(is_true) {
        return false;
    }
    // A line that is cut off by the end of `head` cannot be parsed.
    match walk::pick(line, [key::IS_SIDECHAIN]) {
        Some([flag]) => flag.and_then(Json::as_bool).unwrap_or(false),
        None => true,
    }
}

impl Store {
    /// Returns every session of the store, in unspecified order.
    ///
    /// Reads the beginning of each file, to exclude logs of sub-agents.
    pub fn sessions(&self) -> Listing<SessionFile> {
        without_sidechains(self.session_files(|_| true))
    }

    /// Returns the sessions of the project at `dir`, including those of its git worktrees.
    pub fn sessions_of(&self, dir: &Path) -> Listing<SessionFile> {
        let real = real_path(dir);
        let worktrees = worktrees(Path::new(&real));
        let mut dirs: Vec<_> = worktrees.iter().map(|dir| dir.to_string_lossy().into_owned()).collect();
        dirs.push(real);
        without_sidechains(self.session_files(|folder| dirs.iter().any(|dir| folder_matches(folder, dir))))
    }

    /// Returns the files that are named like sessions, in the folders that `wanted` accepts. Opens no file.
    pub(crate) fn session_files(&self, wanted: impl Fn(&str) -> bool) -> Listing<SessionFile> {
        self.list_files(&wanted, &|_| true)
    }

    /// Returns the files that are named like sessions with an id that `is_wanted` accepts. Opens no file.
    pub(crate) fn session_files_with_id(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<SessionFile> {
        self.list_files(&|_| true, is_wanted).found
    }

    /// Returns the files that are named like sessions, by the names of their folders and by their ids.
    fn list_files(
        &self,
        is_wanted_folder: &dyn Fn(&str) -> bool,
        is_wanted_id: &dyn Fn(&str) -> bool,
    ) -> Listing<SessionFile> {
        let mut listing = Listing::new();
        for (home, folder) in self.project_folders(&mut listing) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if is_wanted_folder(&name) {
                list_folder(home, &folder, &name, self.real_roots(), is_wanted_id, &mut listing);
            }
        }
        listing
    }

    /// Returns the folders of all projects, each once: links to a folder that is listed already are skipped.
    pub(crate) fn project_folders<T>(&self, listing: &mut Listing<T>) -> Vec<(&Home, PathBuf)> {
        let (mut folders, mut links) = (Vec::new(), Vec::new());
        for home in self.homes() {
            let Some(entries) = listing.ok_or_record(fs_err::read_dir(home.projects_dir())) else { continue };
            for entry in entries.filter_map(|entry| listing.ok_or_record(entry)) {
                match entry.file_type() {
                    Ok(kind) if kind.is_symlink() => links.push((home, entry.path())),
                    Ok(kind) if kind.is_dir() => folders.push((home, entry.path())),
                    _ => {}
                }
            }
        }
        folders.sort_by(|(_, a), (_, b)| a.cmp(b));
        // Paths are canonicalised only if there are links.
        if !links.is_empty() {
            let real = |path: &Path| fs_err::canonicalize(path).ok();
            let mut seen: HashSet<_> = folders.iter().filter_map(|(_, folder)| real(folder)).collect();
            links.sort_by(|(_, a), (_, b)| a.cmp(b));
            links.retain(|(_, link)| {
                let is_followed = link.is_dir() && is_inside(link, self.real_roots());
                if link.is_dir() && !is_followed {
                    listing.errors.push(link_error(link));
                }
                is_followed && real(link).is_none_or(|real| seen.insert(real))
            });
            folders.extend(links);
        }
        folders
    }
}

fn list_folder(
    home: &Home,
    folder: &Path,
    name: &str,
    roots: &[PathBuf],
    is_wanted: &dyn Fn(&str) -> bool,
    listing: &mut Listing<SessionFile>,
) {
    let Some(entries) = listing.ok_or_record(fs_err::read_dir(folder)) else { return };
    for entry in entries {
        let Some(entry) = listing.ok_or_record(entry) else { continue };
        let file_name = entry.file_name();
        let name_bytes = file_name.as_encoded_bytes();
        let is_session =
            name_bytes.ends_with(b".jsonl") && name_bytes.len() > 6 && !name_bytes.starts_with(b"agent-");
        let id = SessionId::of_log(Path::new(&file_name));
        if !is_session || !is_wanted(&id) {
            continue;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_file() => {}
            Ok(kind) if kind.is_symlink() => match std::fs::metadata(&path) {
                Ok(metadata) if !metadata.is_file() => continue,
                Ok(_) if !is_inside(&path, roots) => {
                    listing.errors.push(link_error(&path));
                    continue;
                }
                // Opening a dangling link reports the error.
                _ => {}
            },
            // Pipes, devices and directories are not logs.
            _ => continue,
        }
        listing.found.push(SessionFile { id, path, folder: Some(name.to_owned()), home: Some(home.clone()) });
    }
}

/// Removes the logs of sub-agents.
fn without_sidechains(files: Listing<SessionFile>) -> Listing<SessionFile> {
    let checked: Vec<_> = files.found.par_iter().map(SessionFile::is_sidechain).collect();
    let mut kept = Listing { found: Vec::new(), errors: files.errors };
    for (file, sidechain) in files.found.into_iter().zip(checked) {
        if kept.ok_or_record(sidechain) == Some(false) {
            kept.found.push(file);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = r#"{"type":"user","isSidechain":false,"message":{"role":"user","content":"hi"}}"#;
    const SIDE: &str = r#"{"parentUuid":null,"isSidechain":true,"sessionId":"a","type":"user"}"#;

    fn put(path: &Path, line: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, format!("{line}\n")).unwrap();
    }

    fn ids(listing: &Listing<SessionFile>) -> Vec<&str> {
        let mut ids: Vec<_> = listing.found.iter().map(|file| &*file.id).collect();
        ids.sort_unstable();
        ids
    }

    #[test]
    fn sessions_exclude_logs_of_sub_agents() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-p");
        put(&folder.join("a.jsonl"), PROMPT);
        put(&folder.join("b.jsonl"), "");
        put(&folder.join("side.jsonl"), SIDE);
        put(&folder.join("agent-1234567.jsonl"), SIDE);
        put(&folder.join("a/subagents/agent-a1.jsonl"), SIDE);
        put(&folder.join("sessions-index.json"), "{}");
        fs_err::create_dir(folder.join("dir.jsonl")).unwrap();
        put(&dir.path().join("projects/stray.jsonl"), PROMPT);
        put(&dir.path().join("history.jsonl"), PROMPT);
        let store = Store::open([dir.path().to_owned()]);
        let listing = store.sessions();
        assert_eq!(ids(&listing), ["a", "b"]);
        assert!(listing.errors.is_empty());
        let a = listing.found.iter().find(|file| file.id == "a").unwrap();
        assert_eq!(*a, SessionFile::at(folder.join("a.jsonl")));
        assert_eq!(a.folder.as_deref(), Some("-p"));
    }

    #[test]
    fn a_log_with_an_invalid_id_has_no_side_files() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-p");
        for name in ["..jsonl", "...jsonl", "con.jsonl", "a:b.jsonl"] {
            put(&folder.join(name), PROMPT);
        }
        put(&folder.join("subagents/agent-a1.jsonl"), SIDE);
        put(&dir.path().join("projects/subagents/agent-a2.jsonl"), SIDE);
        put(&dir.path().join("projects/tool-results/x.txt"), "secret");
        put(&dir.path().join("file-history/x@v1"), "secret");
        let store = Store::open([dir.path().to_owned()]);
        let listing = store.sessions();
        assert_eq!(listing.found.len(), 4);
        for file in &listing.found {
            assert!(file.id.ends_with("-unnamed"), "{}", file.id);
            assert_eq!(
                (file.side_dir(), file.tool_results_dir(), file.file_history_dir()),
                (None, None, None)
            );
            assert!(file.agents().found.is_empty() && file.open_tool_output("/x/x.txt").is_none());
            assert_eq!(
                store.session(&file.id).as_ref(),
                Some(file),
                "it is found by the id derived from its path"
            );
        }
        let logs = store.session_logs().found;
        let own = logs.iter().filter(|session| session.own.is_some());
        assert_eq!(own.filter(|session| session.agents.is_empty()).count(), 4);
    }

    #[test]
    #[cfg(unix)]
    fn only_regular_files_inside_the_home_are_logs() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("home/projects/-p");
        put(&folder.join("a.jsonl"), PROMPT);
        put(&dir.path().join("outside/b.jsonl"), PROMPT);
        put(&dir.path().join("outside/subagents/agent-x.jsonl"), SIDE);
        put(&dir.path().join("outside/tool-results/x.txt"), "secret");
        assert!(
            std::process::Command::new("mkfifo").arg(folder.join("pipe.jsonl")).status().unwrap().success()
        );
        assert!(
            std::process::Command::new("mkfifo")
                .arg(folder.join("agent-pipe.jsonl"))
                .status()
                .unwrap()
                .success()
        );
        symlink("/dev/zero", folder.join("zero.jsonl")).unwrap();
        symlink("/dev/zero", folder.join("agent-zero.jsonl")).unwrap();
        symlink("a.jsonl", folder.join("inside.jsonl")).unwrap();
        symlink(dir.path().join("outside/b.jsonl"), folder.join("out.jsonl")).unwrap();
        symlink(dir.path().join("outside"), folder.join("a")).unwrap();
        symlink(dir.path().join("outside"), dir.path().join("home/projects/-out")).unwrap();
        let store = Store::open([dir.path().join("home")]);
        let listing = store.sessions();
        assert_eq!(ids(&listing), ["a", "inside"]);
        // The folder and the log that link to targets outside the home.
        assert_eq!(listing.errors.len(), 2, "{:?}", listing.errors);
        let a = listing.found.iter().find(|file| file.id == "a").unwrap();
        assert_eq!((a.side_dir(), a.tool_results_dir()), (None, None));
        assert!(a.agents().found.is_empty());
        let logs = store.logs().found;
        assert_eq!(logs.iter().map(|log| log.path.file_name().unwrap()).collect::<Vec<_>>(), ["a.jsonl"]);
        assert!(store.find(folder.join("pipe.jsonl").to_str().unwrap()).is_err());
    }

    #[test]
    #[cfg(unix)]
    fn side_files_are_read_only_from_the_session_directory() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-p");
        put(&folder.join("a.jsonl"), PROMPT);
        put(&folder.join("a/tool-results/x.txt"), "kept");
        put(&dir.path().join("file-history/a/x@v1"), "backup");
        put(&dir.path().join("secret"), "secret");
        symlink(dir.path().join("secret"), folder.join("a/tool-results/link.txt")).unwrap();
        symlink(dir.path().join("secret"), dir.path().join("file-history/a/link@v1")).unwrap();
        let file = SessionFile::at(folder.join("a.jsonl"));
        let kept = |path: &str| file.open_tool_output(path).map(|kept| io::read_to_string(kept).unwrap());
        assert_eq!(kept("/elsewhere/x.txt").as_deref(), Some("kept\n"));
        assert_eq!(kept(r"C:\elsewhere\x.txt").as_deref(), Some("kept\n"));
        for path in ["/x/link.txt", "/x/..", "/x/.", "", "/x/", "/x/none.txt"] {
            assert_eq!(kept(path), None, "{path}");
        }
        assert_eq!(file.backup("x@v1").unwrap().as_deref(), Some(&b"backup\n"[..]));
        assert!(file.backup("link@v1").is_err());
        for name in ["../../secret", "..", ".", "", "a\0b", "/etc/passwd", r"..\..\secret"] {
            assert_eq!(file.backup(name).unwrap(), None, "{name:?}");
        }
    }

    #[test]
    fn a_file_outside_a_home_is_a_session_too() {
        let file = SessionFile::at("/tmp/some/log.jsonl");
        assert_eq!((&*file.id, &file.folder, &file.home), ("log", &None, &None));
    }

    #[test]
    fn side_directories_are_returned_if_they_exist() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("projects/-p");
        put(&folder.join("a.jsonl"), PROMPT);
        let file = SessionFile::at(folder.join("a.jsonl"));
        assert_eq!((file.tool_results_dir(), file.file_history_dir()), (None, None));
        fs_err::create_dir_all(folder.join("a/tool-results")).unwrap();
        fs_err::create_dir_all(dir.path().join("file-history/a")).unwrap();
        assert_eq!(file.tool_results_dir(), Some(folder.join("a/tool-results")));
        assert_eq!(file.file_history_dir(), Some(dir.path().join("file-history/a")));
    }

    #[test]
    fn a_projects_sessions_are_also_in_its_worktrees() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        let (main, tree) = (root.join("main"), root.join("tree"));
        fs_err::create_dir_all(main.join(".git/worktrees/t")).unwrap();
        fs_err::write(main.join(".git/worktrees/t/gitdir"), tree.join(".git").to_str().unwrap()).unwrap();
        let link = format!("gitdir: {}", main.join(".git/worktrees/t").display());
        put(&tree.join(".git"), &link);
        let home = root.join("home");
        let folder = |dir: &Path| home.join("projects").join(crate::encode_project(dir.to_str().unwrap()));
        put(&folder(&main).join("m.jsonl"), PROMPT);
        put(&folder(&tree).join("t.jsonl"), PROMPT);
        put(&folder(&root.join("other")).join("o.jsonl"), PROMPT);
        let store = Store::open([home]);
        assert_eq!(ids(&store.sessions_of(&main)), ["m", "t"]);
        assert_eq!(ids(&store.sessions_of(&root.join("other"))), ["o"]);
    }

    #[test]
    fn a_sidechain_is_recognised_in_an_incomplete_line() {
        for (head, expected) in [
            (&b""[..], false),
            (b"{\"isSidechain\":true,\"message\":{\"con", true),
            (b"{\"isSidechain\": true}\n", true),
            (b"{\"isSidechain\":false,\"data\":{\"isSidechain\":true}}\n", false),
            (b"{\"a\":1}\n{\"isSidechain\":true}\n", false),
        ] {
            assert_eq!(starts_sidechain(head), expected, "{}", head.escape_ascii());
        }
    }
}
