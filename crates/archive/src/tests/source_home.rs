//! A home to copy in tests, and the comparison of folders.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;
use threadline_app::{App, AppConfig, SessionSource as _, SourceSelection};
use threadline_secret::Rules;
use threadline_store::{Home, Store};

use crate::{
    Archive, ArchiveError, Origin, OriginFilter, PrivacyLevel, PushOptions, PushReport, RestoreReport,
    RestoreTarget,
};

pub(crate) const SESSION: &str = "0b5b3a5e-0000-4000-8000-000000000001";
pub(crate) const LOG: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001.jsonl";
pub(crate) const AGENT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/subagents/agent-a1.jsonl";
pub(crate) const OUTPUT: &str = "projects/-p/0b5b3a5e-0000-4000-8000-000000000001/tool-results/t.txt";
pub(crate) const BACKUP: &str = "file-history/0b5b3a5e-0000-4000-8000-000000000001/c0ffee@v1";
pub(crate) const OTHER: &str = "projects/-q/0b5b3a5e-0000-4000-8000-000000000002.jsonl";

/// A home in a temporary folder, and how it is pushed.
pub(crate) struct SourceHome {
    pub(crate) dir: TempDir,
    pub(crate) rules: Rules,
    pub(crate) level: PrivacyLevel,
}

impl SourceHome {
    /// Creates a home with two sessions: six files.
    pub(crate) fn new() -> Self {
        let home = Self::empty();
        for (name, lines) in
            [(LOG, 40), (AGENT, 10), (OUTPUT, 3), (BACKUP, 5), (OTHER, 20), ("history.jsonl", 2)]
        {
            home.write(name, text(name, lines));
        }
        home
    }

    pub(crate) fn empty() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), rules: Rules::new(), level: PrivacyLevel::Full }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Adds the real sessions, or the samples if there are none. Returns the number of files.
    pub(crate) fn add_logs(&self) -> usize {
        let mut logs = threadline_testkit::shared_logs();
        if logs.is_empty() {
            let samples = threadline_testkit::demo();
            logs = threadline_store::logs_below(&samples).found.into_iter().map(|log| log.path).collect();
        }
        for (i, log) in logs.iter().enumerate() {
            let name = format!("projects/-p{}/{i:08}-0000-4000-8000-000000000000.jsonl", i % 7);
            self.write(&name, fs::read(log).unwrap());
        }
        logs.len()
    }

    pub(crate) fn push_to(&self, archive: &Archive, machine: &str) -> Result<PushReport, ArchiveError> {
        self.push_at(archive, machine, far_future())
    }

    /// Pushes the home from a machine with the clock at `now`.
    pub(crate) fn push_at(
        &self,
        archive: &Archive,
        machine: &str,
        now: SystemTime,
    ) -> Result<PushReport, ArchiveError> {
        let store = Store::open([self.home()]);
        let options = PushOptions { level: self.level, rules: &self.rules, now };
        archive.push(&store, &store.homes()[0], &origin(machine), &options, &|_| ())
    }

    /// Fetches sessions into a cache. Returns its homes.
    pub(crate) fn fetch_from(&self, archive: &Archive, selection: &SourceSelection) -> Vec<PathBuf> {
        archive.fetch(selection, &self.dir.path().join("cache"), &|_| ()).unwrap()
    }

    /// Returns the application for the home.
    pub(crate) fn app(&self) -> App {
        self.app_at(self.home())
    }

    pub(crate) fn app_at(&self, home: PathBuf) -> App {
        App::new(AppConfig {
            homes: vec![home],
            state_dir: Some(self.dir.path().join("state")),
            cache_dir: Some(self.dir.path().join("cache")),
            ..AppConfig::default()
        })
    }

    /// Restores a session into the home.
    pub(crate) fn restore_from(&self, archive: &Archive, force: bool) -> Result<RestoreReport, ArchiveError> {
        let target = RestoreTarget { force, ..self.restore_target() };
        archive.restore(SESSION, &OriginFilter::default(), &target, &self.app(), &[])
    }

    /// Returns the home itself as the place to restore a session to.
    pub(crate) fn restore_target(&self) -> RestoreTarget {
        RestoreTarget { home: Home::new(self.home()), project: None, force: false }
    }

    /// Pushes changes with clocks and times of files that are wrong in both directions, and checks that the
    /// archive has every change.
    pub(crate) fn check_wrong_clocks(&self, archive: &Archive) {
        let mut n_lines = 40;
        let actual = fs::metadata(self.home()).and_then(|home| home.modified()).unwrap();
        for now in [UNIX_EPOCH, actual, far_future()] {
            for modified in [UNIX_EPOCH, far_future(), UNIX_EPOCH] {
                n_lines += 1;
                self.write(LOG, text(LOG, n_lines));
                // Rewritten with the same size and time.
                self.write(OTHER, text(&format!("{n_lines}"), 20));
                for name in [LOG, OTHER] {
                    let file = fs::File::options().write(true).open(self.home().join(name)).unwrap();
                    file.set_modified(modified).unwrap();
                }
                let report = self.push_at(archive, "laptop", now).unwrap();
                assert!(report.copied_bytes > 0 && report.unread.is_empty(), "{report:?}");
                let homes = self.fetch_from(archive, &SourceSelection::default());
                assert!(files_below(&homes[0]) == files_below(&self.home()), "{now:?} {modified:?}");
            }
        }
        assert_eq!(archive.verify(&|| ()).unwrap().damaged, [""; 0]);
    }
}

/// Returns a time at which every file is settled and every object is old.
pub(crate) fn far_future() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1 << 33)
}

pub(crate) fn origin(machine: &str) -> Origin {
    let text = str::to_owned;
    Origin {
        machine_id: format!("id-{machine}"),
        machine: text(machine),
        user: text("ada"),
        home: text("/h"),
    }
}

/// Returns the lines of a log, each with a call of a model.
pub(crate) fn text(name: &str, lines: usize) -> String {
    let line = |line: usize| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"{line}\",\"timestamp\":\"2026-11-01T10:00:00.000Z\",\
             \"cwd\":\"/p\",\"message\":{{\"id\":\"msg_{name}{line}\",\"model\":\"claude-opus-5\",\"content\":\
             [{{\"type\":\"text\",\"text\":\"word{line} of {name}\"}}],\"usage\":{{\"input_tokens\":{line}}}}}}}\n"
        )
    };
    (0..lines).map(line).collect()
}

/// Returns the files below a folder with their contents, sorted.
pub(crate) fn files_below(folder: &Path) -> Vec<(String, Vec<u8>)> {
    fn add(folder: &Path, root: &Path, files: &mut Vec<(String, Vec<u8>)>) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => add(&path, root, files),
                false => {
                    let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                    files.push((name, fs::read(&path).unwrap()));
                }
            }
        }
    }
    let mut files = Vec::new();
    add(folder, folder, &mut files);
    files.sort();
    files
}

/// Returns the names of the files below a folder, sorted.
pub(crate) fn names_below(folder: &Path) -> Vec<String> {
    files_below(folder).into_iter().map(|(name, _)| name).collect()
}
