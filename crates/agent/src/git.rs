//! The branch of a repository, read from its files.

use std::path::{Path, PathBuf};

/// Returns the branch that is checked out, or `HEAD` for a commit. `None` outside of a repository.
pub(crate) fn branch(folder: &Path) -> Option<String> {
    let head = fs_err::read_to_string(git_dir(folder)?.join("HEAD")).ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/");
    Some(branch.unwrap_or("HEAD").to_owned())
}

/// Whether the folder is part of a repository.
pub(crate) fn is_repository(folder: &Path) -> bool {
    git_dir(folder).is_some()
}

/// Returns the `.git` folder of the repository that contains `folder`; of a worktree, its own one.
fn git_dir(folder: &Path) -> Option<PathBuf> {
    let git = folder.ancestors().map(|dir| dir.join(".git")).find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    let text = fs_err::read_to_string(&git).ok()?;
    let target = PathBuf::from(text.trim().strip_prefix("gitdir: ")?);
    Some(if target.is_absolute() { target } else { git.parent()?.join(target) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_branch_comes_from_head() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!((branch(dir.path()), is_repository(dir.path())), (None, false));
        std::fs::create_dir_all(dir.path().join(".git")).unwrap();
        std::fs::write(dir.path().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        std::fs::create_dir_all(dir.path().join("sub")).unwrap();
        assert_eq!(branch(&dir.path().join("sub")).as_deref(), Some("feature/x"));
        std::fs::write(dir.path().join(".git/HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(branch(dir.path()).as_deref(), Some("HEAD"));
    }
}
