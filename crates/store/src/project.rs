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
/// process. These files are untrusted, since a folder may come from an archive: another folder is a worktree
/// only if its own files lead back to the repository. A deleted one is included if it was below the main
/// worktree.
pub fn worktrees(path: &Path) -> Vec<PathBuf> {
    let is_repository = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
    let Some(top) = path.ancestors().find(is_repository) else {
        return Vec::new();
    };
    let Some(common) = common_dir(top) else {
        return vec![top.to_owned()];
    };
    let mut all = Vec::new();
    match common.file_name() {
        // The parent of `.git` is the main worktree; a bare repository has none.
        Some(name) if name == ".git" => all.extend(common.parent().map(Path::to_owned)),
        _ => all.push(top.to_owned()),
    }
    let main = all.clone();
    let folder = common.join("worktrees");
    let admin = if is_real_dir(&folder) { fs_err::read_dir(folder).ok() } else { None };
    let admin = admin.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut linked: Vec<_> = admin
        .filter_map(|admin| {
            let worktree = linked_worktree(&admin).filter(|_| is_real_dir(&admin))?;
            let is_deleted_below =
                || worktree.symlink_metadata().is_err() && main.iter().any(|main| worktree.starts_with(main));
            (leads_to(&worktree, &admin) || is_deleted_below()).then_some(worktree)
        })
        .collect();
    linked.sort();
    for worktree in linked {
        if !all.contains(&worktree) {
            all.push(worktree);
        }
    }
    all
}

/// Returns the directory that the worktrees of a repository share, given one worktree; `None` if it shares
/// nothing, like a submodule, or if the directory does not belong to it.
fn common_dir(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        // A link may lead to the repository of another project.
        return is_real_dir(&git).then_some(git);
    }
    let admin = read_path(&git, "gitdir:", top)?;
    let common = read_path(&admin.join("commondir"), "", &admin)?;
    let is_inside = real(&admin)?.parent()? == real(&common)?.join("worktrees");
    (is_inside && real(&linked_worktree(&admin)?)? == real(top)?).then_some(common)
}

/// Returns the path of the worktree that the git directory `admin` describes.
fn linked_worktree(admin: &Path) -> Option<PathBuf> {
    read_path(&admin.join("gitdir"), "", admin)?.parent().map(Path::to_owned)
}

/// Returns whether the `.git` file of a worktree names this git directory.
fn leads_to(worktree: &Path, admin: &Path) -> bool {
    let named = read_path(&worktree.join(".git"), "gitdir:", worktree);
    named.is_some_and(|named| real(&named).is_some() && real(&named) == real(admin))
}

fn real(path: &Path) -> Option<PathBuf> {
    fs_err::canonicalize(path).ok()
}

/// Returns whether a path is a directory, and no link to one.
fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir())
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

    /// Writes files below a folder. `{}` in a text is the folder.
    fn put_all(folder: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = folder.join(path);
            fs_err::create_dir_all(path.parent().unwrap()).unwrap();
            fs_err::write(path, text.replace("{}", folder.to_str().unwrap())).unwrap();
        }
    }

    #[test]
    fn worktrees_are_found_from_any_worktree() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        let at = |path: &str| root.join(path);
        put_all(
            &root,
            &[
                ("main/.git/worktrees/one/gitdir", "{}/one/.git\n"),
                ("main/.git/worktrees/one/commondir", "../..\n"),
                ("main/.git/worktrees/two/gitdir", "../../../../deep/two/.git\n"),
                ("main/.git/worktrees/two/commondir", "../..\n"),
                ("main/.git/worktrees/broken/HEAD", "x"),
                ("main/.git/worktrees/gone/gitdir", "{}/main/.claude/worktrees/gone/.git\n"),
                ("one/.git", "gitdir: {}/main/.git/worktrees/one\n"),
                ("deep/two/.git", "gitdir: ../../main/.git/worktrees/two\n"),
                ("main/sub/.git", "gitdir: ../.git/modules/sub\n"),
            ],
        );
        fs_err::create_dir_all(at("main/src/inner")).unwrap();
        let all = [at("main"), at("deep/two"), at("main/.claude/worktrees/gone"), at("one")];
        for inside in ["main", "main/src/inner", "one", "deep/two"] {
            assert_eq!(worktrees(&at(inside)), all, "{inside}");
        }
        assert_eq!(worktrees(&at("main/sub")), [at("main/sub")]);
        assert!(worktrees(Path::new("/")).is_empty());
    }

    #[test]
    fn a_repository_cannot_claim_folders_that_do_not_belong_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs_err::canonicalize(dir.path()).unwrap();
        let at = |path: &str| root.join(path);
        put_all(
            &root,
            &[
                // Another project, with a worktree.
                ("home/other/.git/worktrees/tree/gitdir", "{}/home/tree/.git\n"),
                ("home/other/.git/worktrees/tree/commondir", "../..\n"),
                ("home/tree/.git", "gitdir: {}/home/other/.git/worktrees/tree\n"),
                // A folder, an existing worktree and a deleted folder that are not its own.
                ("home/a/.git/worktrees/x/gitdir", "{}/home/.git\n"),
                ("home/a/.git/worktrees/y/gitdir", "{}/home/tree/.git\n"),
                ("home/a/.git/worktrees/z/gitdir", "{}/home/deleted/.git\n"),
                // A shared directory that does not contain the git directory.
                ("home/b/.git", "gitdir: inner\n"),
                ("home/b/inner/gitdir", "{}/home/b/.git\n"),
                ("home/b/inner/commondir", "{}/home/.git\n"),
                ("home/c/.git", "gitdir: .hidden/worktrees/x\n"),
                ("home/c/.hidden/worktrees/x/gitdir", "{}/home/c/.git\n"),
                ("home/c/.hidden/worktrees/x/commondir", "{}/home/other/.git\n"),
                // The git directories of others.
                ("home/d/.git", "gitdir: {}/home/other/.git\n"),
                ("home/e/.git", "gitdir: {}/home/other/.git/worktrees/tree\n"),
            ],
        );
        let mut names = vec!["a", "b", "c", "d", "e"];
        #[cfg(unix)]
        {
            let link = |target: &str, path: &str| {
                fs_err::create_dir_all(at(path).parent().unwrap()).unwrap();
                fs_err::os::unix::fs::symlink(at(target), at(path)).unwrap();
            };
            link("home/other/.git", "home/f/.git");
            link("home/other/.git/worktrees", "home/g/.git/worktrees");
            link("home/tree/.git", "home/h/.git");
            link("home/other/.git/worktrees/tree", "home/i/.git/worktrees/tree");
            names.extend(["f", "g", "h", "i"]);
        }
        for name in names {
            let own = at("home").join(name);
            assert_eq!(worktrees(&own), [own], "{name}");
        }
        assert_eq!(worktrees(&at("home/tree")), [at("home/other"), at("home/tree")]);
    }
}
