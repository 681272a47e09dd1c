//! The directory that files of a session may be written to.

use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::home::Home;
use crate::project::folder_matches;
use crate::session_file::SessionFile;

/// A directory below which files may be written.
///
/// A log contains the paths of the files that its session changed, and a log may come from anyone. A file is
/// therefore written or removed only below a directory that is confirmed by something other than the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteRoot {
    path: PathBuf,
}

/// The user's environment, which a log cannot influence.
#[derive(Clone, Debug, Default)]
pub struct UserContext {
    /// The current directory.
    pub current_dir: Option<PathBuf>,
    /// The user's home directory.
    pub home_dir: Option<PathBuf>,
    /// The homes of Claude Code.
    pub homes: Vec<Home>,
}

/// Top-level directories of the operating system, which contain no projects.
const SYSTEM_DIRS: &[&str] =
    &["bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "proc", "run", "sbin", "sys", "usr"];

/// Names of files and folders from which other programs take commands, or the programs that they run, without
/// being asked to: version control and its hooks, coding agents (hooks, MCP servers), editors, environments
/// of shells, settings of package managers. Not build files and scripts, which are the code of a project.
const COMMAND_SOURCES: &[&str] = &[
    // Version control.
    ".git",
    ".gitattributes",
    ".gitmodules",
    ".hg",
    ".husky",
    ".jj",
    ".lefthook.yml",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    // Coding agents.
    ".claude",
    ".codex",
    ".cursor",
    ".gemini",
    ".mcp.json",
    ".windsurf",
    // Editors and debuggers.
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals.el",
    ".exrc",
    ".gdbinit",
    ".idea",
    ".lldbinit",
    ".nvim.lua",
    ".nvimrc",
    ".vimrc",
    ".vs",
    ".vscode",
    ".zed",
    // Environments. A version in `.tool-versions` may be a folder with programs.
    ".envrc",
    ".mise",
    ".mise.local.toml",
    ".mise.toml",
    ".tool-versions",
    "mise.local.toml",
    "mise.toml",
    // Package managers.
    ".bundle",
    ".cargo",
    ".mvn",
    ".npmrc",
    ".pnpmfile.cjs",
    ".yarn",
    ".yarnrc",
    ".yarnrc.yml",
];

/// Why a file that a log names is written or removed only with the user's permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteRisk {
    /// Other programs take commands from the file, or from the folder that it is in, and run them.
    CommandSource {
        /// The name of that file or folder.
        name: &'static str,
    },
    /// It is outside of the directory that the session's files belong to.
    Outside,
}

impl WriteRoot {
    /// Returns the root for a directory that the user named; it need not exist.
    pub fn from_user(dir: &Path) -> io::Result<Self> {
        let dir = std::path::absolute(dir)?;
        let resolved = resolve(&normalized(&dir));
        resolved.map(|path| Self { path }).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("cannot resolve `{}`", dir.display()))
        })
    }

    /// Returns the root for the working directory in a session's log, or the reason why it is not trusted.
    ///
    /// It must exist, and must not be the file system root, the home directory or a parent of it, nor contain
    /// a home of Claude Code or be inside one. In addition, either the current directory must be inside it,
    /// or the log must be in the project folder for it; in the latter case it must be neither a system
    /// directory nor a hidden directory of the user.
    pub fn from_session(
        dir: &str,
        session: &SessionFile,
        surroundings: &UserContext,
    ) -> Result<Self, &'static str> {
        let named = Path::new(dir);
        if !named.is_absolute() {
            return Err("not an absolute path on this system");
        }
        let Ok(path) = fs_err::canonicalize(named) else { return Err("the directory does not exist") };
        if !path.is_dir() {
            return Err("not a directory");
        }
        if path.parent().is_none() {
            return Err("root of the file system");
        }
        let real = |path: &Path| fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let home_dir = surroundings.home_dir.as_deref().map(real);
        if home_dir.as_ref().is_some_and(|home| home.starts_with(&path)) {
            return Err("your home directory, or a parent of it");
        }
        if surroundings.homes.iter().any(|home| {
            let home = real(home.root());
            path.starts_with(&home) || home.starts_with(&path)
        }) {
            return Err("contains a Claude Code home, or is inside one");
        }
        if surroundings.current_dir.as_deref().map(real).is_some_and(|current| current.starts_with(&path)) {
            return Ok(Self { path });
        }
        if !session.folder.as_deref().is_some_and(|folder| folder_matches(folder, dir)) {
            return Err(
                "the log is not in the project folder of this directory, and the current directory is outside it",
            );
        }
        let first = path.components().find_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        });
        if first.is_some_and(|first| SYSTEM_DIRS.contains(&first)) {
            return Err("system directory, and the current directory is outside it");
        }
        let below_home = home_dir.as_ref().and_then(|home| path.strip_prefix(home).ok());
        let is_hidden = |part: Component<'_>| part.as_os_str().to_string_lossy().starts_with('.');
        if below_home.is_some_and(|below| below.components().any(is_hidden)) {
            return Err("hidden directory, and the current directory is outside it");
        }
        Ok(Self { path })
    }

    /// Returns the directory, links resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether `path` is below the directory after resolving links. A path with `..` is not.
    pub fn contains(&self, path: &Path) -> bool {
        resolve(path).is_some_and(|path| path != self.path && path.starts_with(&self.path))
    }

    /// Returns why `path` is written only with the user's permission; `None` if that is not needed.
    ///
    /// Names are compared without case, both in the path as it is given and after resolving links.
    pub fn risk(&self, path: &Path) -> Option<WriteRisk> {
        let Some(real) = resolve(path).filter(|_| self.contains(path)) else {
            return Some(WriteRisk::Outside);
        };
        let given = path.ancestors().take_while(|part| resolve(part).as_ref() != Some(&self.path));
        let given = given.filter_map(Path::file_name);
        let real = real.strip_prefix(&self.path).into_iter().flat_map(|below| below.components());
        let real = real.map(Component::as_os_str);
        let name = given.chain(real.collect::<Vec<_>>()).find_map(command_source)?;
        Some(WriteRisk::CommandSource { name })
    }
}

/// Returns the entry of [`COMMAND_SOURCES`] that some file system may take for the file name `name`.
fn command_source(name: &OsStr) -> Option<&'static str> {
    // macOS ignores these characters in names, Windows dots and spaces at the end, and the rest of a name
    // from a colon on.
    let is_ignored = |c: char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let name: String = name.to_string_lossy().chars().filter(|&c| !is_ignored(c)).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    // In upper case first: two letters have the same upper case as an ASCII letter, but not the same lower
    // case.
    let name = name.to_uppercase().to_lowercase();
    // The short name that Windows gives `.git`.
    let name = if name == "git~1" { ".git" } else { &name };
    COMMAND_SOURCES.iter().find(|source| **source == name).copied()
}

/// Resolves `..` in a path by name alone.
fn normalized(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

/// Resolves the links in the existing part of a path; `None` if that fails, or for a relative path or one
/// with `..`.
fn resolve(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let exists = |path: &&Path| std::fs::symlink_metadata(path).is_ok();
    let existing = path.ancestors().find(exists)?;
    let rest = path.strip_prefix(existing).ok()?;
    let real = fs_err::canonicalize(existing).ok()?;
    Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::encode_project;

    struct WriteRootFixture {
        dir: tempfile::TempDir,
        surroundings: UserContext,
    }

    impl WriteRootFixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let me = dir.path().join("me");
            for name in ["work/loom/src", ".ssh", ".claude/projects", "other"] {
                fs_err::create_dir_all(me.join(name)).unwrap();
            }
            let surroundings = UserContext {
                current_dir: Some(me.join("other")),
                homes: vec![Home::new(me.join(".claude"))],
                home_dir: Some(me),
            };
            Self { dir, surroundings }
        }

        fn at(&self, name: &str) -> String {
            self.dir.path().join(name).to_str().unwrap().to_owned()
        }

        fn root(&self, dir: &str, folder: &str) -> Result<WriteRoot, &'static str> {
            let log = self.dir.path().join("me/.claude/projects").join(folder).join("s.jsonl");
            WriteRoot::from_session(dir, &SessionFile::at(log), &self.surroundings)
        }
    }

    #[test]
    fn a_directory_named_only_in_a_log_is_not_trusted() {
        let mut world = WriteRootFixture::new();
        let loom = world.at("me/work/loom");
        assert!(world.root(&loom, &encode_project(&loom)).is_ok());
        for (dir, folder, why) in [
            (loom.clone(), "-elsewhere".to_owned(), "not in the project folder"),
            (world.at("me"), encode_project(&world.at("me")), "home directory"),
            (world.at(""), encode_project(&world.at("")), "home directory"),
            ("/".to_owned(), "-".to_owned(), "root of the file system"),
            (world.at("me/.ssh"), encode_project(&world.at("me/.ssh")), "hidden"),
            (world.at("me/.claude"), encode_project(&world.at("me/.claude")), "Claude Code home"),
            (
                world.at("me/.claude/projects"),
                encode_project(&world.at("me/.claude/projects")),
                "Claude Code home",
            ),
            (world.at("me/nowhere"), encode_project(&world.at("me/nowhere")), "does not exist"),
            ("/etc".to_owned(), "-etc".to_owned(), "system directory"),
            ("C:\\\\x".to_owned(), "C--x".to_owned(), "not an absolute path"),
        ] {
            let refused = world.root(&dir, &folder).unwrap_err();
            assert!(refused.contains(why), "{dir}: {refused}");
        }
        // Being in the project confirms it.
        world.surroundings.current_dir = Some(world.at("me/work/loom/src").into());
        assert!(world.root(&loom, "-elsewhere").is_ok());
    }

    #[test]
    #[cfg(unix)]
    fn files_that_other_programs_take_commands_from_are_a_risk() {
        let world = WriteRootFixture::new();
        let loom = world.at("me/work/loom");
        for folder in [".git/hooks", "gitdir"] {
            fs_err::create_dir_all(Path::new(&loom).join(folder)).unwrap();
        }
        let link = |target: &str, name: &str| {
            fs_err::os::unix::fs::symlink(target, Path::new(&loom).join(name)).unwrap();
        };
        link(".git", "g");
        link("gitdir", ".husky");
        let root = WriteRoot::from_user(Path::new(&loom)).unwrap();
        for (name, source) in [
            ("src/a.rs", None),
            (".gitignore", None),
            (".github/workflows/a.yml", None),
            ("git/config", None),
            (".git", Some(".git")),
            (".git/config", Some(".git")),
            (".git/hooks/pre-commit", Some(".git")),
            ("sub/.GIT/config", Some(".git")),
            ("git~1/config", Some(".git")),
            (".git./config", Some(".git")),
            (".g\u{200c}it/config", Some(".git")),
            ("g/config", Some(".git")),
            (".husky/pre-commit", Some(".husky")),
            (".hu\u{17f}ky/pre-commit", Some(".husky")),
            (".claude/settings.local.json", Some(".claude")),
            ("sub/.claude/agents/a.md", Some(".claude")),
            (".Mcp.json", Some(".mcp.json")),
            ("sub/.envrc", Some(".envrc")),
            (".vscode/tasks.json", Some(".vscode")),
            (".cursor/mcp.json", Some(".cursor")),
            (".devcontainer/devcontainer.json", Some(".devcontainer")),
            (".cargo/config.toml", Some(".cargo")),
            (".mise.toml", Some(".mise.toml")),
            (".idea/workspace.xml", Some(".idea")),
            (".gitattributes", Some(".gitattributes")),
            ("sub/.npmrc", Some(".npmrc")),
            (".tool-versions", Some(".tool-versions")),
            ("package.json", None),
            ("Cargo.toml", None),
            (".editorconfig", None),
            (".env", None),
        ] {
            let risk = source.map(|name| WriteRisk::CommandSource { name });
            assert_eq!(root.risk(&Path::new(&loom).join(name)), risk, "{name}");
        }
        assert_eq!(root.risk(Path::new(&world.at("me/.ssh/config"))), Some(WriteRisk::Outside));
        assert_eq!(root.risk(&Path::new(&loom).join("../x")), Some(WriteRisk::Outside));
        // The directory itself may be in such a folder: a worktree of Claude Code.
        let worktree = world.at("me/work/loom/.claude/worktrees/w");
        fs_err::create_dir_all(&worktree).unwrap();
        let root = WriteRoot::from_user(Path::new(&worktree)).unwrap();
        assert_eq!(root.risk(&Path::new(&worktree).join("src/a.rs")), None);
    }

    #[test]
    #[cfg(unix)]
    fn paths_outside_by_name_or_by_link_are_rejected() {
        let world = WriteRootFixture::new();
        let loom = world.at("me/work/loom");
        let link = |target: &str, name: &str| {
            fs_err::os::unix::fs::symlink(target, world.at(&format!("me/work/loom/{name}"))).unwrap();
        };
        link("../../.ssh", "ssh");
        link("src", "in");
        link("/nonexistent/file", "dangling");
        let root = WriteRoot::from_user(Path::new(&loom)).unwrap();
        for (name, inside) in [
            ("a.rs", true),
            ("src/new/deep.rs", true),
            ("in/x.rs", true),
            ("", false),
            ("../x", false),
            ("src/../../x", false),
            ("ssh/authorized_keys", false),
            ("dangling", false),
        ] {
            assert_eq!(root.contains(&Path::new(&loom).join(name)), inside, "{name}");
        }
        assert!(!root.contains(Path::new(&world.at("me/.ssh/config"))));
        assert!(!root.contains(Path::new("relative")));
        let unmade = WriteRoot::from_user(Path::new(&world.at("me/other/out/../new"))).unwrap();
        assert!(unmade.contains(Path::new(&world.at("me/other/new/a"))));
    }
}
