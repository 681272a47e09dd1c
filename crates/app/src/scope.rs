//! The project that a front end is limited to.

use std::collections::HashSet;
use std::path::Path;

use threadline_entry::project_directory;
use threadline_store::{
    FindError, SessionCandidate, SessionFile, folder_matches, session_of_process, worktrees,
};

use crate::config::App;
use crate::error::AppError;
use crate::list::{ListFilter, SessionSummary};

/// The sessions of all projects, or of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProjectScope {
    /// All projects.
    #[default]
    All,
    /// Sessions that started in one of these folders or below it.
    Folders(Vec<String>),
    /// Sessions with this text in their working directory or project folder.
    Containing(String),
}

impl ProjectScope {
    /// The sessions with a text in their working directory or project folder.
    pub fn containing(text: &str) -> Self {
        Self::Containing(text.to_owned())
    }

    /// The sessions of the repository that contains a folder, with those of its worktrees; without a
    /// repository, those of the folder.
    pub fn of_repository(dir: &Path) -> Self {
        // A session contains the path that its shell showed, which may contain links.
        let real = std::fs::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
        let mut folders: Vec<String> = Vec::new();
        for dir in [dir, &real] {
            let trees = worktrees(dir);
            let trees = if trees.is_empty() { vec![dir.to_owned()] } else { trees };
            folders.extend(trees.into_iter().map(|tree| tree.to_string_lossy().into_owned()));
        }
        let mut seen = HashSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        Self::Folders(folders)
    }

    /// Returns the project that a person named: a folder, or a part of the name of one. Relative folders are
    /// below `base`.
    pub fn named(name: &str, base: &Path) -> Self {
        let dir = base.join(name);
        let is_path = name.contains(['/', '\\']) || name == "." || name == "..";
        match is_path && dir.is_dir() {
            true => Self::of_repository(&std::path::absolute(&dir).unwrap_or(dir)),
            false => Self::containing(name),
        }
    }

    /// Returns whether a session belongs to the project, given its working directory and the name of its
    /// project folder.
    pub fn contains(&self, cwd: Option<&str>, folder: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Containing(text) => [cwd, folder].into_iter().flatten().any(|name| name.contains(text)),
            Self::Folders(roots) => match (cwd, folder) {
                (Some(cwd), _) => {
                    roots.iter().any(|root| is_below(cwd, root) || is_below(project_directory(cwd), root))
                }
                // Only the folder's name is known, which encodes a path with losses.
                (None, Some(folder)) => roots.iter().any(|root| folder_matches(folder, root)),
                (None, None) => false,
            },
        }
    }

    /// Returns the name of the project.
    pub fn label(&self) -> &str {
        match self {
            Self::All => "all projects",
            Self::Folders(roots) => roots.first().map_or("no project", |root| root),
            Self::Containing(text) => text,
        }
    }
}

/// Returns whether a path is a folder or below it. Windows paths have either separator.
fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches(['/', '\\']);
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '\\']))
}

impl App {
    /// Returns the listed sessions of a project, last active first. Logs that cannot be read are left out.
    pub fn list_in(&self, scope: &ProjectScope) -> Vec<SessionSummary> {
        let mut found = self.list(&ListFilter::default()).found;
        found.retain(|session| session.is_in(scope));
        found
    }

    /// Returns the id of the session that a process of Claude Code has open.
    pub fn session_of_process(&self, pid: u32) -> Option<String> {
        self.store().homes().iter().find_map(|home| session_of_process(home.root(), pid))
    }

    /// Finds a session of a project by `last`, an id, a unique prefix of an id, or a title. Never uses the
    /// text as a path.
    ///
    /// # Errors
    ///
    /// Those of [`App::find_named`]. The name of a session of another project matches nothing.
    pub fn find_in(&self, needle: &str, scope: &ProjectScope) -> Result<SessionFile, AppError> {
        if needle == "last" && *scope != ProjectScope::All {
            let last = self.list_in(scope).into_iter().next();
            return last.map(|session| session.file).ok_or_else(|| AppError::NoSession { id: needle.into() });
        }
        let file = match self.find_named(needle) {
            Err(AppError::Find(error)) => self.only_inside(error, scope)?,
            found => found?,
        };
        let is_inside = *scope == ProjectScope::All
            || SessionSummary::of(file.clone()).is_ok_and(|session| session.is_in(scope));
        if is_inside {
            return Ok(file);
        }
        // A session of another project is treated as one that does not exist, also where its name is closer
        // to the text than that of one inside.
        self.find_among(needle, scope)
    }

    /// Finds a session by a prefix of its id or a part of its title, among those of a project.
    fn find_among(&self, needle: &str, scope: &ProjectScope) -> Result<SessionFile, AppError> {
        let wanted = needle.to_lowercase();
        let is_match = |session: &SessionSummary| {
            session.file.id.to_lowercase().starts_with(&wanted)
                || session.title().is_some_and(|title| title.to_lowercase().contains(&wanted))
        };
        let mut found = self.list_in(scope);
        found.retain(is_match);
        let candidate = |session: &SessionSummary| SessionCandidate::new(&session.file, &session.preview);
        let needle = needle.to_owned();
        match &found[..] {
            [] => Err(FindError::NoMatch { needle, similar: Vec::new(), errors: Vec::new() }.into()),
            [one] => Ok(one.file.clone()),
            many => Err(FindError::Ambiguous { needle, found: many.iter().map(candidate).collect() }.into()),
        }
    }

    /// Removes sessions of other projects from an error. Returns the session if only one remains of several
    /// that match.
    fn only_inside(&self, error: FindError, scope: &ProjectScope) -> Result<SessionFile, AppError> {
        let file_inside = |candidate: &SessionCandidate| {
            let file = self.session(&candidate.id).ok()?;
            SessionSummary::of(file).ok().filter(|session| session.is_in(scope)).map(|session| session.file)
        };
        match error {
            FindError::NoMatch { needle, mut similar, errors } => {
                similar.retain(|candidate| file_inside(candidate).is_some());
                Err(FindError::NoMatch { needle, similar, errors }.into())
            }
            FindError::Ambiguous { needle, mut found } => {
                found.retain(|candidate| file_inside(candidate).is_some());
                match &found[..] {
                    [] => Err(FindError::NoMatch { needle, similar: found, errors: Vec::new() }.into()),
                    [one] => file_inside(one).ok_or(AppError::NoSession { id: needle }),
                    _ => Err(FindError::Ambiguous { needle, found }.into()),
                }
            }
            error => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders(roots: &[&str]) -> ProjectScope {
        ProjectScope::Folders(roots.iter().map(|root| (*root).to_owned()).collect())
    }

    #[test]
    fn a_project_contains_its_folders_and_worktrees() {
        let scope = folders(&["/home/ada/loom"]);
        for inside in [
            "/home/ada/loom",
            "/home/ada/loom/src",
            "/home/ada/loom/.claude/worktrees/fix",
            "/home/ada/loom-worktrees/fix",
        ] {
            assert!(scope.contains(Some(inside), None), "{inside}");
        }
        for outside in ["/home/ada", "/home/ada/loomy", "/home/ada/other", ""] {
            assert!(!scope.contains(Some(outside), Some("-home-ada-loom")), "{outside}");
        }
        assert!(scope.contains(None, Some("-home-ada-loom")));
        assert!(!scope.contains(None, Some("-home-ada-other")) && !scope.contains(None, None));
    }

    #[test]
    fn other_scopes_compare_text() {
        assert!(ProjectScope::All.contains(None, None));
        let scope = ProjectScope::containing("loom");
        assert!(scope.contains(Some("/x/loomy"), None) && scope.contains(None, Some("-x-loom")));
        assert!(!scope.contains(Some("/x"), Some("-x")));
        assert_eq!(ProjectScope::named("loom", Path::new("/")), scope);
    }

    #[test]
    fn a_folder_without_a_repository_is_its_own_project() {
        let dir = tempfile::tempdir().unwrap();
        let ProjectScope::Folders(roots) = ProjectScope::named(".", dir.path()) else { panic!() };
        let real = std::fs::canonicalize(dir.path()).unwrap();
        assert!(roots.iter().any(|root| Path::new(root).components().eq(real.components())), "{roots:?}");
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_is_found_from_a_folder_in_it_and_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(dir.path()).unwrap();
        let repository = base.join("loom");
        std::fs::create_dir_all(repository.join("src")).unwrap();
        let status = std::process::Command::new("git").args(["init", "-q"]).arg(&repository).status();
        if !status.is_ok_and(|status| status.success()) {
            return;
        }
        std::os::unix::fs::symlink(&repository, base.join("link")).unwrap();
        let scope = ProjectScope::of_repository(&base.join("link/src"));
        for inside in [repository.join("tests"), base.join("link/src")] {
            assert!(scope.contains(inside.to_str(), None), "{inside:?} {scope:?}");
        }
        assert!(!scope.contains(base.to_str(), None));
    }
}
