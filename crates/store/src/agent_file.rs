//! Agent files: the transcripts of sub-agents, in all layouts that Claude Code has used.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use threadline_entry::{AgentKind, Entry, Json, key, walk};

use crate::listing::Listing;
use crate::regular_file::{self, check_regular};
use crate::session_file::side_dir;

/// The transcript of a sub-agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentFile {
    /// The agent's id: the file name without `agent-`.
    pub id: String,
    /// The path of the transcript.
    pub path: PathBuf,
    /// The kind of agent, according to the file name.
    pub kind: AgentKind,
    /// The id of the workflow run that the agent was part of.
    pub run: Option<String>,
}

/// Returns the id of the sub-agent that a log belongs to, according to its file name; `None` for the log of a
/// session.
pub fn agent_id(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()?.strip_prefix("agent-")?.strip_suffix(".jsonl")
}

impl AgentFile {
    pub(crate) fn new(path: PathBuf, run: Option<String>) -> Option<Self> {
        let id = agent_id(&path)?.to_owned();
        let kind = AgentKind::of(&id, run.is_some());
        Some(Self { id, path, kind, run })
    }

    /// Reads `agent-<id>.meta.json` next to the transcript; `None` if the file does not exist.
    pub fn read_meta(&self) -> io::Result<Option<AgentMeta>> {
        match regular_file::read(&self.path.with_extension("meta.json")) {
            Ok(bytes) => Ok(Some(AgentMeta { entry: Entry::parse(bytes.trim_ascii()).0 })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The metadata that Claude Code stores about an agent in a separate file.
#[derive(Clone, Debug)]
pub struct AgentMeta {
    entry: Entry,
}

impl AgentMeta {
    /// Returns the whole file as an entry.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    /// Returns the name of the agent's definition.
    pub fn agent_type(&self) -> Option<String> {
        self.text(key::AGENT_TYPE)
    }

    /// Returns the short description of its task.
    pub fn description(&self) -> Option<String> {
        self.text("description")
    }

    /// Returns the id of the tool call that started it.
    pub fn tool_use_id(&self) -> Option<String> {
        self.text(key::TOOL_USE_ID_CAMEL)
    }

    /// Returns the id of the agent that started it; `None` if it was the session itself.
    pub fn parent_agent_id(&self) -> Option<String> {
        self.text("parentAgentId")
    }

    fn text(&self, key: &str) -> Option<String> {
        Some(self.entry.get(key)?.as_str()?.into_owned())
    }
}

/// The number of lines of an agent file that are searched for the session id.
const OWNER_LINES: usize = 8;

/// The maximum depth of directories below `subagents`.
const MAX_DEPTH: usize = 8;

/// Returns the agents of the session `id` with the log at `path`.
pub(crate) fn agents_of(path: &Path, id: &str) -> Listing<AgentFile> {
    let mut listing = agents_in_side_dir(path);
    let Some(folder) = path.parent() else { return listing };
    let (shared, errors) = FolderAgents::cached(folder);
    listing.errors.extend(errors);
    listing.found.extend(shared.shared.get(id).into_iter().flatten().cloned());
    listing.found.sort_by(|a, b| a.path.cmp(&b.path));
    listing
}

/// The resolution of modification times, at the worst.
const CLOCK_RESOLUTION: Duration = Duration::from_secs(3);

/// When a folder and the `subagents` directory in it were modified, if they exist.
type FolderTimes = [Option<SystemTime>; 2];

/// The agents of folders that have not changed since these times.
type KnownFolders = Mutex<HashMap<PathBuf, (FolderTimes, Arc<FolderAgents>)>>;

/// The agents stored next to the session logs of a folder, read once for all sessions.
#[derive(Debug, Default)]
pub struct FolderAgents {
    /// By session id.
    shared: HashMap<String, Vec<AgentFile>>,
}

impl FolderAgents {
    /// Reads the agents in `folder`, a folder with session logs.
    pub fn of(folder: &Path) -> Self {
        Self::modified_since(folder, None)
    }

    /// Returns the agents in `folder`, and the errors. They are read again only if the folder has changed,
    /// because it may have very many sessions, each of which needs its agents.
    fn cached(folder: &Path) -> (Arc<Self>, Vec<io::Error>) {
        static KNOWN: LazyLock<KnownFolders> = LazyLock::new(Mutex::default);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let modified = |path: &Path| fs_err::metadata(path).and_then(|metadata| metadata.modified()).ok();
        let times = [modified(folder), modified(&folder.join("subagents"))];
        if let Some((_, agents)) = known().get(folder).filter(|(known, _)| *known == times) {
            return (Arc::clone(agents), Vec::new());
        }
        let mut agents = Self::default();
        let mut listing = shared_agents(folder);
        for (owner, agent) in listing.found.drain(..) {
            agents.shared.entry(owner).or_default().push(agent);
        }
        let agents = Arc::new(agents);
        // A file that is added within the resolution of the clock would not change the time.
        let is_settled = |at: SystemTime| at.elapsed().is_ok_and(|age| age > CLOCK_RESOLUTION);
        if times[0].is_some() && times.into_iter().flatten().all(is_settled) && listing.errors.is_empty() {
            known().insert(folder.to_owned(), (times, Arc::clone(&agents)));
        }
        (agents, listing.errors)
    }

    /// Reads the agents in `folder` that were modified at or after `since`; other files are not opened.
    pub fn modified_since(folder: &Path, since: Option<SystemTime>) -> Self {
        let is_new = |agent: &AgentFile| {
            let written = fs_err::metadata(&agent.path).and_then(|metadata| metadata.modified());
            since.is_none_or(|since| written.is_ok_and(|written| written >= since))
        };
        let mut agents = Self::default();
        for (owner, agent) in shared_agents_where(folder, is_new).found {
            agents.shared.entry(owner).or_default().push(agent);
        }
        agents
    }

    /// Returns the agents of the session `id` with the log at `path`: these, and those in its own directory.
    pub fn of_session(&self, path: &Path, id: &str) -> Listing<AgentFile> {
        let mut listing = agents_in_side_dir(path);
        listing.found.extend(self.shared.get(id).into_iter().flatten().cloned());
        listing.found.sort_by(|a, b| a.path.cmp(&b.path));
        listing
    }
}

/// Returns the agents in the session's own directory, where Claude Code stores them since 2.1.2.
fn agents_in_side_dir(path: &Path) -> Listing<AgentFile> {
    let mut listing = Listing::new();
    if let Some(dir) = side_dir(path) {
        walk_folder(&dir.join("subagents"), None, MAX_DEPTH, &mut listing);
    }
    listing
}

/// The number of agents of each session in a folder.
#[derive(Default)]
pub(crate) struct AgentCounts {
    /// The number of agents stored next to the session logs, by session id.
    shared: HashMap<String, usize>,
    /// The names of the directories, to avoid looking for ones that do not exist.
    folders: HashSet<OsString>,
}

impl AgentCounts {
    /// Reads `folder` once for all its sessions.
    pub(crate) fn of(folder: &Path) -> Self {
        let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_file()));
        let mut counts =
            Self { shared: HashMap::new(), folders: folders.map(|entry| entry.file_name()).collect() };
        for (owner, _) in shared_agents(folder).found {
            *counts.shared.entry(owner).or_default() += 1;
        }
        counts
    }

    /// Returns the number of agents of the session `id` with the log at `path`.
    pub(crate) fn count(&self, path: &Path, id: &str) -> usize {
        let has_own = path.file_stem().is_some_and(|name| self.folders.contains(name));
        let own = if has_own { agents_in_side_dir(path).found.len() } else { 0 };
        own + self.shared.get(id).copied().unwrap_or(0)
    }
}

/// Returns the agents that are not in a directory of their session, with the session id of each: those next
/// to the session logs (2.0.x), and those in a `subagents` directory that all sessions of the folder share.
fn shared_agents(folder: &Path) -> Listing<(String, AgentFile)> {
    shared_agents_where(folder, |_| true)
}

/// Returns those of [`shared_agents`] that `wanted` accepts. The other files are not opened.
fn shared_agents_where(folder: &Path, wanted: impl Fn(&AgentFile) -> bool) -> Listing<(String, AgentFile)> {
    let mut agents = Listing::new();
    walk_folder(folder, None, 0, &mut agents);
    walk_folder(&folder.join("subagents"), None, 0, &mut agents);
    let mut owned = Listing { found: Vec::new(), errors: agents.errors };
    for agent in agents.found.into_iter().filter(wanted) {
        if let Some(Some(owner)) = owned.ok_or_record(read_owner(&agent.path)) {
            owned.found.push((owner, agent));
        }
    }
    owned
}

/// Collects the transcripts in `folder` and up to `depth` levels below. `run` is the workflow run that the
/// folder belongs to. Links to directories are not followed.
fn walk_folder(folder: &Path, run: Option<&str>, depth: usize, listing: &mut Listing<AgentFile>) {
    let Some(entries) = listing.ok_or_record(fs_err::read_dir(folder)) else { return };
    let in_workflows = folder.file_name().is_some_and(|name| name == "workflows");
    for entry in entries {
        let Some(entry) = listing.ok_or_record(entry) else { continue };
        let Some(kind) = listing.ok_or_record(entry.file_type()) else { continue };
        let is_dir = kind.is_dir();
        if is_dir && depth > 0 {
            let name = entry.file_name();
            let inner_run = name.to_str().filter(|_| in_workflows);
            walk_folder(&entry.path(), run.or(inner_run), depth - 1, listing);
        } else if kind.is_file() || kind.is_symlink() && check_regular(&entry.path()).is_ok() {
            listing.found.extend(AgentFile::new(entry.path(), run.map(str::to_owned)));
        }
    }
}

/// Reads the session id from the first lines of an agent file.
pub(crate) fn read_owner(path: &Path) -> io::Result<Option<String>> {
    let file = regular_file::open(path)?;
    let mut reader = BufReader::new(file.take(crate::file_window::MAX_HEAD_BYTES as u64));
    let mut line = Vec::new();
    for _ in 0..OWNER_LINES {
        line.clear();
        if reader.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let owner = walk::pick(&line, [key::SESSION_ID]).and_then(|[id]| id.and_then(Json::as_str));
        if let Some(owner) = owner {
            return Ok(Some(owner.into_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionFile;

    fn put(path: PathBuf, text: &str) {
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    fn of(owner: &str) -> String {
        format!(
            "{{\"type\":\"file-history-snapshot\"}}\n{{\"isSidechain\":true,\"sessionId\":\"{owner}\"}}\n"
        )
    }

    #[test]
    fn an_agent_is_found_in_a_folder_that_had_none() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        put(at("s1.jsonl"), "{}\n");
        let count = || SessionFile::at(at("s1.jsonl")).agents().found.len();
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        fs_err::File::open(dir.path()).unwrap().into_file().set_modified(long_ago).unwrap();
        assert_eq!((count(), count()), (0, 0));
        put(at("agent-1234567.jsonl"), &of("s1"));
        assert_eq!(count(), 1);
        fs_err::remove_file(at("agent-1234567.jsonl")).unwrap();
        put(at("subagents/agent-7654321.jsonl"), &of("s1"));
        assert_eq!(count(), 1);
    }

    #[test]
    fn a_folder_is_read_once_for_all_its_sessions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        put(at("agent-1234567.jsonl"), &of("s1"));
        put(at("subagents/agent-7654321.jsonl"), &of("s2"));
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let set_time = |path: &Path| {
            fs_err::File::open(path).unwrap().into_file().set_modified(long_ago).unwrap();
        };
        let set_times = || [dir.path(), &at("subagents")].into_iter().for_each(set_time);
        let count = |id: &str| SessionFile::at(at(&format!("{id}.jsonl"))).agents().found.len();
        set_times();
        assert_eq!((count("s1"), count("s2"), count("s3")), (1, 1, 0));
        // With the same times, the files are not looked for again.
        fs_err::remove_file(at("agent-1234567.jsonl")).unwrap();
        fs_err::remove_file(at("subagents/agent-7654321.jsonl")).unwrap();
        set_times();
        assert_eq!((count("s1"), count("s2")), (1, 1));
        fs_err::write(at("s3.jsonl"), "").unwrap();
        assert_eq!((count("s1"), count("s2")), (0, 0));
    }

    #[test]
    fn agents_are_found_in_every_layout() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        put(at("s1.jsonl"), "{}\n");
        put(at("s2.jsonl"), "{}\n");
        put(at("agent-1234567.jsonl"), &of("s1"));
        put(at("agent-7654321.jsonl"), &of("s2"));
        put(at("agent-empty.jsonl"), "");
        put(at("subagents/agent-old.jsonl"), &of("s1"));
        put(at("s1/subagents/agent-a1b2c3.jsonl"), "");
        put(at("s1/subagents/agent-acompact-ff.jsonl"), "");
        put(at("s1/subagents/agent-aside_question-ff.jsonl"), "");
        put(at("s1/subagents/workflows/wf_9/agent-a9.jsonl"), "");
        put(at("s1/subagents/workflows/wf_9/journal.jsonl"), "");
        put(at("s1/subagents/workflows/wf_9/inner/agent-acompact-9.jsonl"), "");
        put(at("s1/subagents/agent-a1b2c3.meta.json"), "{}");
        put(at("s1/tool-results/x.txt"), "");

        let agents = SessionFile::at(at("s1.jsonl")).agents();
        assert!(agents.errors.is_empty());
        let mut listed: Vec<_> =
            agents.found.iter().map(|agent| (&*agent.id, agent.kind, agent.run.as_deref())).collect();
        listed.sort_unstable_by_key(|listed| listed.0);
        assert_eq!(
            listed,
            [
                ("1234567", AgentKind::Task, None),
                ("a1b2c3", AgentKind::Task, None),
                ("a9", AgentKind::Workflow, Some("wf_9")),
                ("acompact-9", AgentKind::Compaction, Some("wf_9")),
                ("acompact-ff", AgentKind::Compaction, None),
                ("aside_question-ff", AgentKind::SideQuestion, None),
                ("old", AgentKind::Task, None),
            ]
        );
        let others: Vec<_> = SessionFile::at(at("s2.jsonl")).agents().found;
        assert_eq!(others.iter().map(|agent| &*agent.id).collect::<Vec<_>>(), ["7654321"]);
        let counts = AgentCounts::of(dir.path());
        assert_eq!(
            [("s1.jsonl", "s1"), ("s2.jsonl", "s2")].map(|(name, id)| counts.count(&at(name), id)),
            [7, 1]
        );
        assert!(SessionFile::at(at("none/s3.jsonl")).agents().found.is_empty());
    }

    #[test]
    fn meta_is_read_and_kept_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent-a1.jsonl");
        let agent = AgentFile::new(path.clone(), None).unwrap();
        assert!(agent.read_meta().unwrap().is_none());
        let text = "{\n \"agentType\": \"Explore\",\n \"description\": \"look\", \"toolUseId\": \"toolu_1\",\n \"x\": 1\n}\n";
        put(path.with_extension("meta.json"), text);
        let meta = agent.read_meta().unwrap().unwrap();
        assert_eq!(meta.agent_type().as_deref(), Some("Explore"));
        assert_eq!(meta.description().as_deref(), Some("look"));
        assert_eq!(meta.tool_use_id().as_deref(), Some("toolu_1"));
        assert_eq!(meta.parent_agent_id(), None);
        assert_eq!(meta.entry().text(), text.trim());
        put(path.with_extension("meta.json"), "torn {");
        assert_eq!(agent.read_meta().unwrap().unwrap().agent_type(), None);
    }
}
