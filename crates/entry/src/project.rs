//! Paths as a log names them, and the project of a session.

/// Names of folders that contain worktrees, next to the files of their repository.
const WORKTREE_FOLDERS: &[&str] = &[".worktrees", ".trees", ".claude-worktrees"];

/// Suffixes of folders that contain worktrees, next to the folder of their repository.
const WORKTREE_SUFFIXES: &[&str] = &["-worktrees", ".worktrees"];

/// The same folders in the name of a project folder, where Claude Code replaces other characters with `-`.
const ENCODED_FOLDERS: &[&str] = &["--claude-worktrees-", "--worktrees-", "--trees-", "-worktrees-"];

/// Returns the project that a working directory belongs to: for a worktree, the directory of its repository.
///
/// `cwd` is a directory, or the name of a project folder if no directory is known. Only the text is
/// examined, since a worktree is usually gone when its sessions are read, and a log may come from another
/// machine. These are recognised: `REPO/.claude/worktrees/NAME`, `REPO/.worktrees/NAME`,
/// `REPO/.trees/NAME`, `REPO-worktrees/NAME`, and folders inside them. In a home directory the repository
/// is unknown; there, the project of `~/.claude-worktrees/REPO/NAME` is `~/.claude-worktrees/REPO`.
pub fn project_directory(cwd: &str) -> &str {
    let parts = components(cwd);
    if parts.len() == 1 && parts[0].1 == cwd {
        let ends = ENCODED_FOLDERS.iter().filter_map(|folder| cwd.find(folder));
        return ends.min().filter(|end| *end > 0).map_or(cwd, |end| &cwd[..end]);
    }
    match split_worktree(cwd, &parts) {
        Some((Some(root), _)) => root,
        Some((None, tree)) => tree,
        None => cwd,
    }
}

/// Returns the directory of the repository and that of the worktree that a path is in; `None` if the text of
/// the path names no worktree, or not the repository. See [`project_directory`].
pub fn worktree_of(path: &str) -> Option<(&str, &str)> {
    let (root, tree) = split_worktree(path, &components(path))?;
    Some((root?, tree))
}

/// Returns the directory of the repository, if it is known, and that of the worktree.
fn split_worktree<'p>(path: &'p str, parts: &[(usize, &str)]) -> Option<(Option<&'p str>, &'p str)> {
    for (i, &(start, part)) in parts.iter().enumerate() {
        let &(child, name) = parts.get(i + 1)?;
        let tree = &path[..child + name.len()];
        let parent = i.checked_sub(1).map(|i| parts[i]);
        let is_folder = WORKTREE_FOLDERS.contains(&part);
        if !is_folder && let Some(suffix) = WORKTREE_SUFFIXES.iter().find(|suffix| part.ends_with(**suffix)) {
            return Some((Some(&path[..start + part.len() - suffix.len()]), tree));
        }
        let end = match parent {
            Some((start, ".claude" | ".git")) if part == "worktrees" => start,
            _ if is_folder => start,
            _ => continue,
        };
        let root = path[..end].trim_end_matches(['/', '\\']);
        return Some(((!is_home(root)).then_some(root), tree));
    }
    None
}

/// Returns whether a path is absolute, in Unix or Windows notation: `/src`, `C:\src`, `C:/src`, `\\host\src`.
///
/// A log may come from another machine, so the notation of this one does not decide.
pub fn is_absolute_path(path: &str) -> bool {
    let has_drive = matches!(path.as_bytes(), [drive, b':', b'/' | b'\\', ..] if drive.is_ascii_alphabetic());
    has_drive || path.starts_with(['/', '\\'])
}

/// Returns the components of a path with their offsets.
fn components(path: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let mut start = 0;
    for part in path.split(['/', '\\']) {
        if !part.is_empty() {
            parts.push((start, part));
        }
        start += part.len() + 1;
    }
    parts
}

/// Returns whether a directory is a home directory, or above one.
fn is_home(path: &str) -> bool {
    let parts: Vec<&str> = components(path).into_iter().map(|(_, part)| part).collect();
    let parts = match &*parts {
        [drive, rest @ ..] if drive.ends_with(':') => rest,
        parts => parts,
    };
    matches!(parts, [] | ["root"] | ["home" | "Users"] | ["home" | "Users", _])
}

#[cfg(test)]
mod tests {
    use super::{is_absolute_path, project_directory, worktree_of};

    #[test]
    fn a_path_in_a_worktree_is_split() {
        for (path, expected) in [
            ("/home/ada/loom/.worktrees/3/src/a.rs", Some(("/home/ada/loom", "/home/ada/loom/.worktrees/3"))),
            ("/home/ada/loom-worktrees/x/a.rs", Some(("/home/ada/loom", "/home/ada/loom-worktrees/x"))),
            ("/home/ada/loom/src/a.rs", None),
            ("/home/ada/.worktrees/3/a.rs", None),
        ] {
            assert_eq!(worktree_of(path), expected, "{path}");
        }
    }

    #[test]
    fn absolute_paths_of_every_platform_are_recognised() {
        for path in ["/src/a.rs", r"C:\src\a.rs", "c:/src/a.rs", r"\\host\share\a.rs"] {
            assert!(is_absolute_path(path), "{path}");
        }
        for path in ["", "src/a.rs", r"src\a.rs", "C:", "C:a.rs", "1:/a.rs", "https://a.rs"] {
            assert!(!is_absolute_path(path), "{path}");
        }
    }

    #[test]
    fn a_worktree_belongs_to_its_repository() {
        for (cwd, project) in [
            ("/home/ada/loom", "/home/ada/loom"),
            ("/home/ada/loom/src", "/home/ada/loom/src"),
            ("/home/ada/loom/.claude/worktrees/brave-hare", "/home/ada/loom"),
            ("/home/ada/loom/.claude/worktrees/brave-hare/src/x", "/home/ada/loom"),
            (r"D:\loom\.claude\worktrees\agent-1\src", r"D:\loom"),
            ("/home/ada/loom/.worktrees/3", "/home/ada/loom"),
            ("/home/ada/loom/.trees/3", "/home/ada/loom"),
            ("/home/ada/loom-worktrees/fix-1", "/home/ada/loom"),
            ("/home/ada/loom.worktrees/fix-1/src", "/home/ada/loom"),
            ("/home/ada/.claude-worktrees/loom/fix-1", "/home/ada/.claude-worktrees/loom"),
            (r"C:\Users\Ada\.worktrees\fix\src", r"C:\Users\Ada\.worktrees\fix"),
            ("/home/ada/worktrees/fix", "/home/ada/worktrees/fix"),
            ("/home/ada/loom/.worktrees", "/home/ada/loom/.worktrees"),
            ("/home/ada/loom-worktrees", "/home/ada/loom-worktrees"),
            ("-home-ada-loom", "-home-ada-loom"),
            ("-home-ada-loom--worktrees-3", "-home-ada-loom"),
            ("-home-ada-loom--claude-worktrees-brave-hare", "-home-ada-loom"),
            ("-home-ada-loom-worktrees-fix-1", "-home-ada-loom"),
            ("/", "/"),
            ("", ""),
        ] {
            assert_eq!(project_directory(cwd), project, "{cwd}");
        }
    }
}
