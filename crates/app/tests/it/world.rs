//! A home with a folder for state, for tests that write.

use std::path::{Path, PathBuf};

use threadline_app::edit::{ApplyOptions, EditSession};
use threadline_app::{App, AppConfig};
use threadline_testkit::{TestHome, session_uuid};

/// A temporary home and state folder.
pub(crate) struct World {
    pub(crate) home: TestHome,
    pub(crate) app: App,
    state: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let (home, state) = (TestHome::new(), tempfile::tempdir().unwrap());
        let app = App::new(AppConfig {
            homes: vec![home.root().to_owned()],
            state_dir: Some(state.path().to_owned()),
            ..AppConfig::default()
        });
        Self { home, app, state }
    }

    /// The folder for state.
    pub(crate) fn state_dir(&self) -> &Path {
        self.state.path()
    }

    /// Opens the session with this short name.
    pub(crate) fn open(&self, name: &str) -> EditSession {
        let file = self.app.find(&session_uuid(name)).unwrap();
        self.app.open_for_edit(file).unwrap()
    }

    /// The number of receipts.
    pub(crate) fn receipts(&self) -> usize {
        std::fs::read_dir(self.state.path().join("operations")).map_or(0, Iterator::count)
    }

    /// Every file of the home, with its content.
    pub(crate) fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.home.root().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else {
                    found.push((self.relative(&entry.path()), std::fs::read(entry.path()).unwrap()));
                }
            }
        }
        found.sort();
        found
    }

    fn relative(&self, path: &Path) -> String {
        path.strip_prefix(self.home.root()).unwrap().to_string_lossy().into_owned()
    }

    /// Writes a session with a sub-agent, stored output and a backup of a file. Returns its log.
    pub(crate) fn session_with_side_files(&self, name: &str) -> PathBuf {
        let id = session_uuid(name);
        let path = self.home.session(
            name,
            &r#"
            u1        user   "look"
            a1 <- u1  reply  m1 thinking "Hm." "sig"
            a2 <- a1  reply  m1 tool t1 Task {"prompt":"count"}
            r1 <- a2  result t1 "see /x/SESSION/tool-results/o.txt" {"agentId":"a1b2c3"}
            a3 <- r1  reply  m2 text "Two."
            snapshot u1 {"/home/ada/loom/a.rs":{"backupFileName":"0123@v1","version":1}}
            "#
            .replace("SESSION", &id),
        );
        let agent = "x1 user \"count\"\nx2 <- x1 reply m9 text \"Two.\"";
        self.home.agent(name, "a1b2c3", agent, Some("{\"agentType\":\"Explore\"}"));
        self.home.file(format!("projects/-home-ada-loom/{id}/tool-results/o.txt"), "all of it");
        self.home.file(format!("file-history/{id}/0123@v1"), "fn main() {}");
        path
    }
}

/// Options of an application with a recorded command.
pub(crate) fn options() -> ApplyOptions {
    ApplyOptions { force: false, command: vec!["threadline".to_owned(), "edit".to_owned()] }
}
