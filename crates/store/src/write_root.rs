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
/// being asked to: hooks of version control, coding agents, editors, package managers. Not build files and
/// scripts, which are the code of a project. Hidden names are not listed: all of them need permission, except
/// for [`HARMLESS_HIDDEN`]. A file `HEAD` makes its folder a repository of Git, and its `config` can
/// name programs.
const COMMAND_SOURCES: &[&str] = &["_darcs", "head", "mise"];

/// The same for files with an extension of [`DATA_EXTENSIONS`]: their names up to the first dot.
const COMMAND_SOURCE_FILES: &[&str] = &["bunfig", "crush", "lefthook", "lefthook-local", "mise", "opencode"];

const DATA_EXTENSIONS: &[&str] = &[".json", ".jsonc", ".toml", ".yaml", ".yml"];

/// Hidden files and folders that only configure how text is checked, formatted, built or published, or that
/// only a program started by the user reads.
const HARMLESS_HIDDEN: &[&str] = &[
    ".babelrc",
    ".browserslistrc",
    ".changeset",
    ".circleci",
    ".clang-format",
    ".clang-tidy",
    ".coveragerc",
    ".dockerignore",
    ".editorconfig",
    ".env",
    ".eslintignore",
    ".eslintrc",
    ".flake8",
    ".github",
    ".gitignore",
    ".gitkeep",
    ".gitlab",
    ".gitlab-ci.yml",
    ".golangci.toml",
    ".golangci.yaml",
    ".golangci.yml",
    ".keep",
    ".markdownlint.json",
    ".markdownlint.yaml",
    ".markdownlint.yml",
    ".nojekyll",
    ".npmignore",
    ".prettierignore",
    ".prettierrc",
    ".rubocop.yml",
    ".rustfmt.toml",
    ".storybook",
    ".stylelintrc",
    ".travis.yml",
    ".well-known",
];

/// Why a file that a log names is written or removed only with the user's permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteRisk {
    /// Other programs may take commands from the file, or from the folder that it is in, and run them.
    CommandSource,
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
        // Folders that do not exist have the same names in the real path.
        let is_inside = |part: &&Path| resolve(part).is_some_and(|part| part.starts_with(&self.path));
        let existing = existing_part(path).filter(is_inside).into_iter().flat_map(Path::ancestors);
        let given = existing.take_while(|part| resolve(part).as_ref() != Some(&self.path));
        let given = given.filter_map(Path::file_name);
        let real = real.strip_prefix(&self.path).into_iter().flat_map(|below| below.components());
        let real = real.map(Component::as_os_str);
        let is_risky = given.chain(real.collect::<Vec<_>>()).any(is_command_source);
        is_risky.then_some(WriteRisk::CommandSource)
    }
}

/// Checks that no folder of a path is a symbolic link. If the folder does not exist, its nearest parent that
/// exists is checked.
///
/// # Errors
///
/// If a folder is a link.
pub fn check_unlinked(path: &Path) -> io::Result<()> {
    let existing = path.ancestors().skip(1).find(|folder| folder.symlink_metadata().is_ok());
    match existing {
        Some(folder) if std::fs::canonicalize(folder).ok().as_deref() != Some(folder) => {
            let message = format!("cannot write below `{}`: the path leads through a link", folder.display());
            Err(io::Error::other(message))
        }
        _ => Ok(()),
    }
}

/// Returns whether some file system may take `name` for that of a file that other programs run commands from.
fn is_command_source(name: &OsStr) -> bool {
    // macOS ignores some of these characters in names, Windows dots and spaces at the end, and the rest of a
    // name from a colon on.
    let is_ignored = |c: char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let name: String = name.to_string_lossy().chars().filter(|&c| !is_ignored(c)).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    // In upper case first: two letters have the same upper case as an ASCII letter, but not the same lower
    // case.
    let name = name.to_uppercase().to_lowercase();
    let data = DATA_EXTENSIONS.iter().find_map(|end| name.strip_suffix(end));
    if !name.starts_with('.') {
        // The short name that Windows gives a hidden file: `git~1`.
        let is_number = |text: &str| text.len() == 1 && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = name.len() <= 8 && name.split_once('~').is_some_and(|(_, number)| is_number(number));
        let stem = data.and_then(|data| data.split('.').next());
        return is_short
            || name.ends_with(".code-workspace")
            || COMMAND_SOURCES.contains(&&*name)
            || stem.is_some_and(|stem| COMMAND_SOURCE_FILES.contains(&stem));
    }
    let is_harmless = |name: &str| HARMLESS_HIDDEN.contains(&name);
    !(is_harmless(&name) || data.is_some_and(is_harmless) || name.starts_with(".env."))
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
    let existing = existing_part(path)?;
    let rest = path.strip_prefix(existing).ok()?;
    let real = fs_err::canonicalize(existing).ok()?;
    Some(if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// Returns the longest part of a path that exists.
pub(crate) fn existing_part(path: &Path) -> Option<&Path> {
    path.ancestors().find(|part| std::fs::symlink_metadata(part).is_ok())
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
    fn hidden_files_and_other_sources_of_commands_are_a_risk() {
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
        for name in [
            ".git",
            ".git/config",
            ".git/hooks/pre-commit",
            "sub/.GIT/config",
            "git~1/config",
            ".git./config",
            ".g\u{200c}it/config",
            ".git\u{200b}/config",
            "g/config",
            ".husky/pre-commit",
            ".hu\u{17f}ky/pre-commit",
            "sub/.claude/agents/a.md",
            ".Mcp.json",
            "sub/.envrc",
            ".vscode/tasks.json",
            "vscode~1/tasks.json",
            ".cargo/config.toml",
            "sub/.npmrc",
            ".tool-versions",
            ".eslintrc.js",
            ".venv/bin/python",
            "node_modules/.bin/tsc",
            ".some-tool-of-next-year/config",
            "loom.code-workspace",
            "Lefthook.yaml",
            "lefthook.toml",
            "opencode.json",
            "mise.local.toml",
            "mise/config.toml",
            "sub/HEAD",
        ] {
            assert_eq!(root.risk(&Path::new(&loom).join(name)), Some(WriteRisk::CommandSource), "{name}");
        }
        for name in [
            "src/a.rs",
            "git/config",
            "package.json",
            "Cargo.toml",
            "head.tsx",
            "crush/mise.rs",
            "a~b/c~1.txt",
            ".gitignore",
            ".github/workflows/a.yml",
            ".editorconfig",
            ".env",
            ".env.local",
            ".eslintrc.json",
            ".prettierrc",
        ] {
            assert_eq!(root.risk(&Path::new(&loom).join(name)), None, "{name}");
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
