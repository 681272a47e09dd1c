//! Working folders, links and protected files.

use std::path::{Component, Path, PathBuf};

/// Whether a file is read or changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is created, changed or removed.
    Write,
}

/// The folders of a session.
#[derive(Clone, Debug, Default)]
pub struct Workspace {
    /// The working folder.
    pub cwd: PathBuf,
    /// Further working folders.
    pub additional_dirs: Vec<PathBuf>,
    /// The home folder of the user.
    pub home: Option<PathBuf>,
    /// Folders of the client's own files, which may be read, such as large outputs.
    pub readable: Vec<PathBuf>,
    /// The file for the plan in plan mode, which may be read and written.
    pub plan_file: Option<PathBuf>,
}

/// Why a file is protected from edits that were not approved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    /// A program reads the file as its configuration and may run what it says.
    Sensitive,
    /// It configures the client itself.
    ClientConfig,
}

/// Folders whose content is protected.
const PROTECTED_DIRS: &[&str] = &[".git", ".vscode", ".idea", ".claude", ".husky", ".ssh", ".gnupg"];
/// Files that are protected.
const PROTECTED_FILES: &[&str] = &[
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".claude.json",
    ".envrc",
    ".gitconfig",
    ".gitmodules",
    ".inputrc",
    ".mcp.json",
    ".netrc",
    ".npmrc",
    ".pre-commit-config.yaml",
    ".profile",
    ".pypirc",
    ".ripgreprc",
    ".yarnrc",
    ".yarnrc.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

impl Workspace {
    /// Returns the working folders.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        std::iter::once(self.cwd.as_path()).chain(self.additional_dirs.iter().map(PathBuf::as_path))
    }

    /// Returns whether a path, as it is written and with its links resolved, is inside the working folders.
    #[must_use]
    pub fn contains(&self, path: &Path, access: Access) -> bool {
        let resolved = resolve_links(path);
        let is_below = |root: &Path| {
            let root = resolve_links(root);
            resolved.starts_with(&root)
        };
        self.roots().any(is_below)
            || access == Access::Read && self.readable.iter().any(|root| is_below(root))
    }

    /// Returns the working folders as messages list them.
    pub(crate) fn list(&self) -> String {
        self.roots().map(|root| format!("'{}'", root.display())).collect::<Vec<_>>().join(", ")
    }

    /// Returns whether a file is protected.
    pub(crate) fn protection(&self, path: &Path) -> Option<Protection> {
        let resolved = resolve_links(path);
        protection(path).or_else(|| protection(&resolved))
    }
}

/// Whether a file contains the environment of a process, and with it keys.
pub(crate) fn is_environment(path: &Path) -> bool {
    let resolved = resolve_links(path);
    resolved.starts_with("/proc") && resolved.ends_with("environ")
}

fn protection(path: &Path) -> Option<Protection> {
    let names: Vec<String> =
        path.components().map(|part| part.as_os_str().to_string_lossy().to_lowercase()).collect();
    for (i, name) in names.iter().enumerate() {
        if name == ".claude" {
            match names.get(i + 1).map(String::as_str) {
                // Checkouts of the project, which are worked on.
                Some("worktrees") => continue,
                Some("settings.json" | "settings.local.json" | "commands" | "agents" | "skills") => {
                    return Some(Protection::ClientConfig);
                }
                _ => return Some(Protection::Sensitive),
            }
        }
        let is_last = i + 1 == names.len();
        if PROTECTED_DIRS.contains(&name.as_str()) || is_last && PROTECTED_FILES.contains(&name.as_str()) {
            return Some(Protection::Sensitive);
        }
    }
    None
}

/// The most links that are followed for one path, as in Linux.
const MAX_LINKS: usize = 40;

/// Resolves the links of a path, also of the part that does not exist yet: a write through a dangling link
/// creates its target.
#[must_use]
pub fn resolve_links(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    let mut pending: Vec<std::ffi::OsString> =
        path.components().rev().map(|part| part.as_os_str().to_owned()).collect();
    let mut links = 0;
    while let Some(name) = pending.pop() {
        match Path::new(&name).components().next() {
            Some(Component::ParentDir) => {
                resolved.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::RootDir | Component::Prefix(_)) => {
                resolved.push(&name);
                continue;
            }
            Some(Component::Normal(_)) => {}
        }
        let next = resolved.join(&name);
        match std::fs::read_link(&next) {
            Ok(target) if links < MAX_LINKS => {
                links += 1;
                if target.is_absolute() {
                    resolved = PathBuf::new();
                }
                pending.extend(target.components().rev().map(|part| part.as_os_str().to_owned()));
            }
            _ => resolved = next,
        }
    }
    resolved
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_also_where_nothing_exists() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("work")).unwrap();
        let link = |target: &str, name: &str| {
            std::os::unix::fs::symlink(target, root.join("work").join(name)).unwrap()
        };
        link("../outside", "dangling");
        link("/etc", "etc");
        link("loop", "loop");
        link("dangling/x", "twice");
        let work = root.join("work");
        let cases = [
            ("a/b", "work/a/b"),
            ("dangling", "outside"),
            ("dangling/new", "outside/new"),
            ("twice", "outside/x"),
            ("a/../b", "work/b"),
            ("dangling/..", ""),
        ];
        for (name, expected) in cases {
            let expected = root.join(expected);
            assert_eq!(
                resolve_links(&work.join(name)).components().collect::<PathBuf>(),
                expected.components().collect::<PathBuf>(),
                "{name}"
            );
        }
        assert_eq!(resolve_links(&work.join("etc/x")), Path::new("/etc/x"));
        let workspace = Workspace { cwd: work.clone(), ..Workspace::default() };
        assert!(!workspace.contains(&work.join("dangling/new"), Access::Write));
        assert!(!workspace.contains(&work.join("../work2"), Access::Read));
        assert!(workspace.contains(&work.join("sub/new"), Access::Write));
        // A link to itself ends.
        assert!(resolve_links(&work.join("loop")).starts_with(&root));
    }

    #[test]
    fn configuration_is_protected_in_any_case() {
        let cases: &[(&str, Option<Protection>)] = &[
            ("/w/.git/config", Some(Protection::Sensitive)),
            ("/w/.GIT/config", Some(Protection::Sensitive)),
            ("/w/.git", Some(Protection::Sensitive)),
            ("/w/a/.Bashrc", Some(Protection::Sensitive)),
            ("/w/.claude/settings.json", Some(Protection::ClientConfig)),
            ("/w/.claude/agents/x.md", Some(Protection::ClientConfig)),
            ("/w/.claude/x", Some(Protection::Sensitive)),
            ("/w/.claude/worktrees/x/a.rs", None),
            ("/w/.claude/worktrees/x/.git/config", Some(Protection::Sensitive)),
            ("/w/.gitignore", None),
            ("/w/.github/workflows/x.yml", None),
            ("/w/.env", None),
        ];
        for (path, expected) in cases {
            assert_eq!(protection(Path::new(path)), *expected, "{path}");
        }
    }
}
