//! Homes for tests: a temporary `~/.claude` that contains only the files a test writes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::notation::{LineDefaults, build_log};

/// An isolated Claude Code home, which is deleted when dropped.
pub struct TestHome {
    dir: tempfile::TempDir,
}

impl Default for TestHome {
    fn default() -> Self {
        Self::new()
    }
}

impl TestHome {
    /// Creates an empty home, with an empty `projects` folder.
    pub fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("threadline-home-").tempdir().expect("a temporary folder");
        fs::create_dir(dir.path().join("projects")).expect("a folder in a new home");
        Self { dir }
    }

    /// Returns the folder that takes the place of `~/.claude`.
    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a session of the project `/home/ada/loom` and returns its path.
    ///
    /// `name` is a UUID, or a short name that is converted to one: see [`session_uuid`].
    pub fn session(&self, name: &str, notation: &str) -> PathBuf {
        self.session_in("/home/ada/loom", name, notation)
    }

    /// Writes a session of the project at `cwd`, which may be a Windows path, and returns its path.
    pub fn session_in(&self, cwd: &str, name: &str, notation: &str) -> PathBuf {
        let session = session_uuid(name);
        let bytes = build_log(notation, &LineDefaults { session: &session, cwd, agent: None });
        self.file(format!("projects/{}/{session}.jsonl", slug(cwd)), bytes)
    }

    /// Writes the log of a sub-agent, and its `.meta.json` if given, to the folder of its session.
    ///
    /// Its lines are sidechain lines with this `agentId`. The project is that of the session if it exists
    /// already, otherwise `/home/ada/loom`.
    pub fn agent(&self, session: &str, agent_id: &str, notation: &str, meta_json: Option<&str>) -> PathBuf {
        let session = session_uuid(session);
        let project = self.project_of(&session).unwrap_or_else(|| slug("/home/ada/loom"));
        let stem = format!("projects/{project}/{session}/subagents/agent-{agent_id}");
        if let Some(meta_json) = meta_json {
            self.file(format!("{stem}.meta.json"), meta_json);
        }
        let defaults = LineDefaults { session: &session, cwd: "/home/ada/loom", agent: Some(agent_id) };
        self.file(format!("{stem}.jsonl"), build_log(notation, &defaults))
    }

    /// Writes any file inside the home and returns its path.
    pub fn file(&self, relative: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root().join(relative);
        fs::create_dir_all(path.parent().expect("a file has a folder")).expect("a folder in the home");
        fs::write(&path, bytes).expect("a file in the home");
        path
    }

    fn project_of(&self, session: &str) -> Option<String> {
        let projects = fs::read_dir(self.root().join("projects")).ok()?;
        let mut folders = projects.flatten().map(|entry| entry.path());
        let folder = folders.find(|folder| folder.join(format!("{session}.jsonl")).exists())?;
        Some(folder.file_name()?.to_str()?.to_owned())
    }
}

/// Returns the UUID of a session: `name` if it is one, otherwise a fixed one derived from the name.
pub fn session_uuid(name: &str) -> String {
    let is_uuid = name.len() == 36 && name.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit());
    if is_uuid {
        return name.to_owned();
    }
    let hash = |seed: u64| {
        name.bytes().fold(seed, |hash, b| (hash ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3))
    };
    let hex = format!("{:016x}{:016x}", hash(0xcbf2_9ce4_8422_2325), hash(0x6c62_272e_07bb_0142));
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Returns the folder name of a project: every UTF-16 unit that is not an ASCII letter or digit becomes a
/// dash.
pub fn slug(cwd: &str) -> String {
    let dashed = |c: char| std::iter::repeat_n('-', c.len_utf16());
    cwd.chars()
        .flat_map(|c| if c.is_ascii_alphanumeric() { std::iter::repeat_n(c, 1) } else { dashed(c) })
        .collect()
}
