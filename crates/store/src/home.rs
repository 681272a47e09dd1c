//! Homes: the directories where Claude Code stores its sessions.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::id::SessionId;
use crate::regular_file::{is_inside, linked_folder_error, real_roots};

/// A directory such as `~/.claude`. It need not exist.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Home {
    root: Arc<Path>,
}

impl Home {
    /// Returns the home at `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    /// Returns the directory, as it was given.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory of session logs, with one subdirectory per project.
    pub fn projects_dir(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Returns the directory with backups of the files that a session changed.
    pub fn file_history_dir(&self, session: &SessionId) -> PathBuf {
        session.dir_in(&self.root.join("file-history"))
    }

    /// Returns the file with all prompts of all sessions.
    pub fn history_file(&self) -> PathBuf {
        self.root.join("history.jsonl")
    }
}

/// The homes of a user.
#[derive(Clone, Debug)]
pub struct Store {
    homes: Vec<Home>,
    /// The canonical paths of the homes. Links are followed only to targets inside them.
    roots: Vec<PathBuf>,
}

impl Store {
    /// Opens a store over these homes, in this order.
    ///
    /// A home that is given twice, through a symbolic link or another spelling, counts once. So do two homes
    /// that share one `projects` directory. A home that does not exist is empty.
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

    /// Returns the directories of the homes with links resolved: their roots and their `projects`, which may
    /// be links.
    pub fn real_roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Checks that a write to `path`, which is absolute, does not leave the homes through a link, if it is
    /// below one of them. Of folders that do not exist yet, the first one that exists is checked.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::PermissionDenied`] if a folder is a link to a target outside the homes.
    pub fn check_write(&self, path: &Path) -> io::Result<()> {
        for home in &self.homes {
            let root = std::path::absolute(home.root())?;
            let below =
                path.ancestors().skip(1).take_while(|folder| folder.starts_with(&root) && *folder != root);
            let existing = below.into_iter().find(|folder| folder.symlink_metadata().is_ok());
            if let Some(folder) = existing
                && !is_inside(folder, &self.roots)
                && !is_inside(folder, &real_roots(&root))
            {
                return Err(linked_folder_error(folder));
            }
        }
        Ok(())
    }

    /// Returns the homes.
    pub fn homes(&self) -> &[Home] {
        &self.homes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_home_counts_once_and_a_missing_one_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs_err::create_dir_all(real.join("projects")).unwrap();
        let roots = vec![real.clone(), dir.path().join("real/../real"), dir.path().join("none")];
        let store = Store::open(roots);
        let names: Vec<_> = store.homes().iter().map(Home::root).collect();
        assert_eq!(names, [real.as_path(), &dir.path().join("none")]);
        assert!(store.sessions().found.is_empty());
        assert!(store.sessions().errors.is_empty());
    }

    #[test]
    #[cfg(unix)]
    fn a_write_through_a_link_out_of_the_homes_is_refused() {
        use fs_err::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["home/projects/-p", "home/file-history", "else/deep", "other/projects/-q"] {
            fs_err::create_dir_all(at(folder)).unwrap();
        }
        symlink(at("else"), at("home/projects/-out")).unwrap();
        symlink(at("gone"), at("home/projects/-gone")).unwrap();
        symlink(at("home/projects/-p"), at("home/projects/-in")).unwrap();
        symlink(at("other/projects/-q"), at("home/projects/-q")).unwrap();
        let store = Store::open([at("home"), at("other"), at("new")]);
        for good in [
            "home/projects/-p/s.jsonl",
            "home/projects/-p/s/subagents/a.jsonl",
            "home/projects/-new/s.jsonl",
            "home/projects/-in/s.jsonl",
            "home/projects/-q/s.jsonl",
            "home/history.jsonl",
            "new/projects/-p/s.jsonl",
            "else/deep/file",
        ] {
            store.check_write(&at(good)).unwrap();
        }
        for bad in ["-out/s.jsonl", "-out/deep/s.jsonl", "-out/new/s.jsonl", "-gone/s.jsonl"] {
            let error = store.check_write(&at("home/projects").join(bad)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{bad}");
        }
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
