//! Homes: the folders that Claude Code keeps its sessions in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::id::SessionId;
use crate::regular::real_roots;

/// A folder such as `~/.claude`. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    root: Arc<Path>,
}

impl Home {
    /// The home at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    /// The folder itself, as it was given.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the session logs are, one folder a project.
    pub fn projects_dir(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Where the backups of the files that a session changed are.
    pub fn file_history_dir(&self, session: &SessionId) -> PathBuf {
        session.dir_in(&self.root.join("file-history"))
    }

    /// Every prompt ever typed, across sessions.
    pub fn history_file(&self) -> PathBuf {
        self.root.join("history.jsonl")
    }
}

/// All the homes that somebody's sessions are in.
#[derive(Clone, Debug)]
pub struct Store {
    homes: Vec<Home>,
    /// Where the files of the homes really are: links are followed to here and nowhere else.
    roots: Vec<PathBuf>,
}

impl Store {
    /// A store over these homes, in this order.
    ///
    /// A home that is reached twice, through a symbolic link or by another spelling, counts once. So
    /// do two homes that share one `projects` folder. A home that does not exist holds nothing.
    pub fn open(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut seen = Vec::new();
        let mut homes = Vec::new();
        for home in roots.into_iter().map(Home::new) {
            let projects = home.projects_dir();
            let real = fs_err::canonicalize(&projects)
                .or_else(|_| fs_err::canonicalize(home.root()).map(|root| root.join("projects")))
                .unwrap_or(projects);
            if !seen.contains(&real) {
                seen.push(real);
                homes.push(home);
            }
        }
        let roots = homes.iter().flat_map(|home| real_roots(home.root())).collect();
        Self { homes, roots }
    }

    pub(crate) fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// The homes.
    pub fn homes(&self) -> &[Home] {
        &self.homes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_seen_twice_counts_once_and_a_missing_one_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs_err::create_dir_all(real.join("projects")).unwrap();
        let roots = vec![real.clone(), dir.path().join("real/../real"), dir.path().join("none")];
        let store = Store::open(roots);
        let names: Vec<_> = store.homes().iter().map(Home::root).collect();
        assert_eq!(names, [real.as_path(), &dir.path().join("none")]);
        assert!(store.sessions().found.is_empty());
        assert!(store.sessions().unread.is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn links_to_a_home_or_to_its_projects_count_once() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs_err::create_dir_all(real.join("projects/-p")).unwrap();
        fs_err::write(real.join("projects/-p/s.jsonl"), "{}\n").unwrap();
        let link = dir.path().join("link");
        fs_err::os::unix::fs::symlink(&real, &link).unwrap();
        let other = dir.path().join("other");
        fs_err::create_dir(&other).unwrap();
        fs_err::os::unix::fs::symlink(real.join("projects"), other.join("projects")).unwrap();
        fs_err::os::unix::fs::symlink(real.join("projects/-p"), real.join("projects/-again")).unwrap();
        let store = Store::open([link, real, other]);
        assert_eq!(store.homes().len(), 1);
        assert_eq!(store.sessions().found.len(), 1);
    }
}
