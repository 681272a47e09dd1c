//! Contents of files from outside of a log: backups, commits and the disk.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use threadline_evidence::{FileContent, FileOnDisk, FileScan, FileSources, ScannedChange};
use threadline_store::{SessionFile, WriteRoot, read_regular};

use crate::file_copies::{CopiedContent, FileCopies, FileScanChange, ScanPhase};
use crate::git::{GitRunner, GitTree, TIME_LIMIT};
use crate::time::millis;

/// The sources of a session.
pub(crate) struct SessionSources<'s> {
    session: &'s SessionFile,
    /// The copies that a hook made around the calls of the session.
    copies: Option<FileCopies>,
    /// The project of the session, if its git repository and its files may be read.
    project: Option<ProjectSources>,
}

/// A project on disk.
struct ProjectSources {
    root: PathBuf,
    git: GitRunner,
    /// The working tree of git that contains the project, if git is to be asked.
    tree: Option<PathBuf>,
}

/// The largest file that is read as evidence.
const MAX_SIZE: u64 = 64 << 20;

impl<'s> SessionSources<'s> {
    /// Returns the backups of a session only.
    pub(crate) fn log_only(session: &'s SessionFile) -> Self {
        Self { session, copies: None, project: None }
    }

    /// Returns the backups of a session, and the files of its project.
    pub(crate) fn with_project(session: &'s SessionFile, root: &WriteRoot) -> Self {
        let git = GitRunner::new(TIME_LIMIT);
        Self {
            session,
            copies: None,
            project: Some(ProjectSources { root: root.path().to_owned(), git, tree: None }),
        }
    }

    /// Adds the copies that a hook made.
    #[must_use]
    pub(crate) fn with_copies(self, copies: Option<FileCopies>) -> Self {
        Self { copies, ..self }
    }

    /// Adds the git repository of the project.
    #[must_use]
    pub(crate) fn with_git(mut self) -> Self {
        if let Some(project) = &mut self.project {
            project.tree = GitTree::root(&project.git, &project.root);
        }
        self
    }
}

impl FileSources for SessionSources<'_> {
    fn backup(&self, name: &str) -> Option<Vec<u8>> {
        self.session.backup(name).ok().flatten()
    }

    fn scans(&self) -> Vec<FileScan> {
        let Some(copies) = &self.copies else { return Vec::new() };
        let content = |content: &CopiedContent| match content {
            CopiedContent::Absent => Some(FileContent::Absent),
            CopiedContent::Link { target } => Some(FileContent::Link(target.clone())),
            CopiedContent::File { .. } => copies.read(content).map(FileContent::bytes),
            CopiedContent::Unknown => None,
        };
        let change = |change: &FileScanChange| ScannedChange {
            path: change.path.clone(),
            before: content(&change.before),
            after: content(&change.after),
        };
        let scan = |scan: &crate::file_copies::FileScan| FileScan {
            call_id: scan.tool_use_id.clone(),
            is_after: scan.phase == ScanPhase::After,
            at: scan.at,
            is_complete: scan.is_complete,
            changes: scan.changes.iter().map(change).collect(),
        };
        copies.scans().iter().map(scan).collect()
    }

    fn is_scanned(&self, path: &str) -> bool {
        self.copies.as_ref().is_some_and(|copies| copies.is_watched(Path::new(path)))
    }

    fn disk(&self, path: &str) -> Option<FileOnDisk> {
        let project = self.project.as_ref()?;
        let path = Path::new(path);
        let absent = FileOnDisk { content: FileContent::Absent, modified_at: None };
        // A folder below the project may be a link to another place.
        let parent = path.parent()?;
        let Ok(real) = std::fs::canonicalize(parent) else {
            let is_below = path.starts_with(&project.root);
            return (is_below && !parent.exists()).then_some(absent);
        };
        if !real.starts_with(&project.root) {
            return None;
        }
        let metadata = match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(absent),
            metadata => metadata.ok()?,
        };
        let content = match metadata.file_type() {
            kind if kind.is_symlink() => {
                FileContent::Link(std::fs::read_link(path).ok()?.to_str()?.to_owned())
            }
            kind if kind.is_file() && metadata.len() <= MAX_SIZE => {
                FileContent::bytes(read_regular(path).ok()?)
            }
            _ => return None,
        };
        Some(FileOnDisk { content, modified_at: metadata.modified().ok().map(millis) })
    }

    fn committed(&self, commit: &str, paths: &[&str]) -> Vec<Option<FileContent>> {
        let none = vec![None; paths.len()];
        let Some((project, tree)) =
            self.project.as_ref().and_then(|project| Some((project, project.tree.as_ref()?)))
        else {
            return none;
        };
        let names: Vec<Option<&str>> = paths.iter().map(|path| name_below(path, tree)).collect();
        let asked: Vec<&str> = names.iter().flatten().copied().collect();
        let tree = GitTree { git: &project.git, root: tree };
        let Some(found) = tree.files(commit, &asked) else { return none };
        let mut found: HashMap<&str, Option<FileContent>> = asked.into_iter().zip(found).collect();
        names.into_iter().map(|name| found.remove(name?).flatten()).collect()
    }

    fn are_watched(&self, paths: &[&str]) -> Vec<Option<bool>> {
        let Some((project, tree)) =
            self.project.as_ref().and_then(|project| Some((project, project.tree.as_ref()?)))
        else {
            return vec![None; paths.len()];
        };
        let names: Vec<Option<&str>> = paths.iter().map(|path| name_below(path, tree)).collect();
        let asked: Vec<&str> = names.iter().flatten().copied().collect();
        let tree = GitTree { git: &project.git, root: tree };
        let Some(ignored) = tree.ignored(&asked) else { return vec![None; paths.len()] };
        names.into_iter().map(|name| Some(name.is_some_and(|name| !ignored.contains(name)))).collect()
    }
}

/// Returns the name of a file below a working tree.
fn name_below<'p>(path: &'p str, tree: &Path) -> Option<&'p str> {
    let name = Path::new(path).strip_prefix(tree).ok()?.to_str()?;
    (!name.is_empty() && !name.contains('\n')).then_some(name)
}
