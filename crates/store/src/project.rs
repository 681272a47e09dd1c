//! Projects: encodes a working directory as a folder name, and finds the directories that share a project.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The length at which a folder name is truncated.
const MAX_NAME: usize = 200;

/// Returns the name of the folder with the sessions of the working directory `path`.
///
/// Every UTF-16 unit other than an ASCII letter or digit becomes `-`. A name of more than 200 characters is
/// truncated, and a hash of the path is appended. Claude Code and its SDK use different hashes (this is the
/// SDK's), so use [`folder_matches`] to look for a folder. The encoding is lossy: to get the path of a
/// folder, read the `cwd` of the lines.
pub fn encode_project(path: &str) -> String {
    let path = composed(path);
    let mut name = dashed(&path);
    if name.len() > MAX_NAME {
        name.truncate(MAX_NAME);
        name.push('-');
        name.push_str(&hash(&path));
    }
    name
}

/// Whether `folder` may contain the sessions of the working directory `path`.
///
/// For a long path, only the first 200 characters are compared. Case matters, except for Windows paths.
pub fn folder_matches(folder: &str, path: &str) -> bool {
    // The path is also compared without normalisation: not every writer normalised it.
    let composed = dashed(&composed(path));
    let names = [composed, dashed(path)];
    let fold = is_windows_path(path);
    let same = |a: &str, b: &str| if fold { a.eq_ignore_ascii_case(b) } else { a == b };
    names.iter().any(|name| match name.get(..MAX_NAME) {
        Some(prefix) if name.len() > MAX_NAME => {
            folder.get(..MAX_NAME).is_some_and(|start| same(start, prefix))
                && folder.as_bytes().get(MAX_NAME) == Some(&b'-')
        }
        _ => same(folder, name),
    })
}

/// Returns the path in Unicode normalisation form C, as Claude Code writes it.
fn composed(path: &str) -> Cow<'_, str> {
    if is_nfc(path) { Cow::Borrowed(path) } else { Cow::Owned(path.nfc().collect()) }
}

fn dashed(path: &str) -> String {
    let mut name = String::with_capacity(path.len());
    for ch in path.chars() {
        if ch.is_ascii_alphanumeric() {
            name.push(ch);
        } else {
            name.extend(std::iter::repeat_n('-', ch.len_utf16()));
        }
    }
    name
}

/// Returns the absolute value of the 32-bit hash `h * 31 + unit`, in base 36.
fn hash(path: &str) -> String {
    let hash = path.encode_utf16().fold(0i32, |h, unit| h.wrapping_mul(31).wrapping_add(i32::from(unit)));
    let mut rest = hash.unsigned_abs();
    let mut digits = Vec::new();
    loop {
        digits.extend(char::from_digit(rest % 36, 36));
        rest /= 36;
        if rest == 0 {
            return digits.iter().rev().collect();
        }
    }
}

fn is_windows_path(path: &str) -> bool {
    let bytes = path.as_bytes();
    matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic())
}

/// Returns the path as Claude Code records it: links resolved, and without `\\?\` on Windows.
pub(crate) fn real_path(dir: &Path) -> String {
    let real = fs_err::canonicalize(dir).unwrap_or_else(|_| dir.to_owned());
    let text = real.to_string_lossy();
    match (text.strip_prefix(r"\\?\UNC\"), text.strip_prefix(r"\\?\")) {
        (Some(share), _) => format!(r"\\{share}"),
        (None, Some(plain)) => plain.to_owned(),
        _ => text.into_owned(),
    }
}

/// Returns the git worktrees of the repository that contains the absolute `path`, the main one first; empty
/// outside a repository.
///
/// The sessions of a project may be in the folder of any of its worktrees. Reads git's files and starts no
/// process. A worktree whose directory was deleted is included, since its sessions may still exist.
pub fn worktrees(path: &Path) -> Vec<PathBuf> {
    let Some((top, common)) = path.ancestors().find_map(|dir| Some((dir, common_dir(dir)?))) else {
        return Vec::new();
    };
    let mut all = Vec::new();
    match common.file_name() {
        // The parent of `.git` is the main worktree; a bare repository has none.
        Some(name) if name == ".git" => all.extend(common.parent().map(Path::to_owned)),
        _ => all.push(top.to_owned()),
    }
    let admin = fs_err::read_dir(common.join("worktrees")).into_iter().flatten().flatten();
    let mut linked: Vec<_> = admin.filter_map(|entry| linked_worktree(&entry.path())).collect();
    linked.sort();
    for worktree in linked {
        if !all.contains(&worktree) {
            all.push(worktree);
        }
    }
    all
}

/// Returns the directory that the worktrees of a repository share, given one worktree.
fn common_dir(dir: &Path) -> Option<PathBuf> {
    let git = dir.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let git_dir = read_path(&git, "gitdir:", dir)?;
    // The git directory of a submodule has no `commondir`: nothing is shared.
    Some(read_path(&git_dir.join("commondir"), "", &git_dir).unwrap_or(git_dir))
}

/// Returns the path of the worktree that the git directory `admin` describes.
fn linked_worktree(admin: &Path) -> Option<PathBuf> {
    read_path(&admin.join("gitdir"), "", admin)?.parent().map(Path::to_owned)
}

/// Reads the path in one of git's small files, relative to `base`.
fn read_path(file: &Path, label: &str, base: &Path) -> Option<PathBuf> {
    let text = String::from_utf8(crate::regular_file::read_regular(file).ok()?).ok()?;
    let path = text.strip_prefix(label)?.trim();
    (!path.is_empty()).then(|| flat(&base.join(path)))
}

/// Removes `.` and `..` from a path, which need not exist.
fn flat(path: &Path) -> PathBuf {
    let mut flat = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                flat.pop();
            }
            part => flat.push(part),
        }
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_working_directories() {
        for (path, name) in [
            ("/home/user/project", "-home-user-project"),
            ("/Users/me/a.b/.worktrees/c_d", "-Users-me-a-b--worktrees-c-d"),
            (r"D:\oh-my-posh", "D--oh-my-posh"),
            (r"E:\workspaces\project", "E--workspaces-project"),
            ("/tmp/with space", "-tmp-with-space"),
            ("/tmp/项目", "-tmp---"),
            ("/tmp/🦀x", "-tmp---x"),
            ("/tmp/cafe\u{301}", "-tmp-caf-"),
            ("/", "-"),
            ("", ""),
        ] {
            assert_eq!(encode_project(path), name, "{path}");
            assert!(folder_matches(name, path), "{path}");
        }
    }

    #[test]
    fn a_long_name_is_truncated_and_matched_by_its_first_200_characters() {
        let exact = format!("/{}", "a".repeat(199));
        assert_eq!(encode_project(&exact).len(), 200);
        let long = format!("/{}", "a".repeat(300));
        let name = encode_project(&long);
        let (prefix, hash) = name.split_at(200);
        assert_eq!(prefix, format!("-{}", "a".repeat(199)));
        assert_eq!(hash, "-vtkmfl");
        assert!(folder_matches(&name, &long));
        assert!(folder_matches(&format!("{prefix}-otherhash"), &long));
        assert!(!folder_matches(prefix, &long));
        assert!(!folder_matches(&name, &exact));
        // A crab has two UTF-16 units, and the name may be truncated between them.
        let crabs = "🦀".repeat(120);
        assert_eq!(&encode_project(&crabs)[..201], "-".repeat(201));
    }

    #[test]
    fn hashes_as_the_sdk_does() {
        for (text, expected) in [("", "0"), ("a", "2p"), ("hello", "1n1e4y"), ("/tmp/项目🦀", "aon9fm")] {
            assert_eq!(hash(text), expected, "{text}");
        }
    }

    #[test]
    fn case_matters_except_on_windows() {
        assert!(folder_matches("d--Work", r"D:\work"));
        assert!(!folder_matches("-Home-me", "/home/me"));
        assert!(!folder_matches("-home-me-more", "/home/me"));
        assert!(folder_matches("-tmp-cafe-", "/tmp/cafe\u{301}"), "the decomposed form matches");
    }

    #[test]
    fn worktrees_are_found_from_any_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        let put = |path: &str, text: String| {
            fs_err::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs_err::write(at(path), text).unwrap();
        };
        put("main/.git/worktrees/one/gitdir", format!("{}\n", at("one/.git").display()));
        put("main/.git/worktrees/one/commondir", "../..\n".into());
        put("main/.git/worktrees/two/gitdir", "../../../../deep/two/.git\n".into());
        put("main/.git/worktrees/broken/HEAD", "x".into());
        put("one/.git", format!("gitdir: {}\n", at("main/.git/worktrees/one").display()));
        fs_err::create_dir_all(at("main/src/inner")).unwrap();
        let all = [at("main"), at("deep/two"), at("one")];
        assert_eq!(worktrees(&at("main")), all);
        assert_eq!(worktrees(&at("main/src/inner")), all);
        assert_eq!(worktrees(&at("one")), all);
        put("main/sub/.git", "gitdir: ../.git/modules/sub\n".into());
        assert_eq!(worktrees(&at("main/sub")), [at("main/sub")]);
        assert!(worktrees(Path::new("/")).is_empty());
    }
}
