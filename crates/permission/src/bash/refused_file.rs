//! Files that a rule refuses, and that a command reads without naming them: those below a folder that it
//! searches, and those whose content git prints.

use std::path::{Path, PathBuf};

use globset::GlobMatcher;
use ignore::WalkBuilder;

use super::paths::{NameFilter, matcher};
use crate::decide::Permissions;
use crate::files::{Access, resolve_links};
use crate::rule::RuleEffect;
use threadline_shell::command_line::Word;

/// Whether a rule refuses to read a file. `real` is the same path below a folder without links.
fn is_refused(permissions: &Permissions, path: &Path, real: &Path) -> bool {
    [path, real].iter().any(|path| permissions.own_path_rule(RuleEffect::Deny, Access::Read, path))
}

/// Returns a refused file below a folder that a search without `git` reads. `skips_ignored` is the behaviour
/// of `rg`: files that are hidden or ignored are not read.
pub(super) fn searched_file(
    permissions: &Permissions,
    folder: &Path,
    filters: &[(NameFilter, String)],
    skips_ignored: bool,
) -> Option<PathBuf> {
    let names = |kind: NameFilter| -> Vec<Option<GlobMatcher>> {
        filters.iter().filter(|(other, _)| *other == kind).map(|(_, name)| matcher(name, true)).collect()
    };
    let (included, excluded) = (names(NameFilter::Include), names(NameFilter::Exclude));
    let excluded_folders = names(NameFilter::ExcludeDir);
    // The order of both kinds matters to the program; then all files count.
    let is_mixed = !included.is_empty() && !excluded.is_empty();
    let walk = WalkBuilder::new(folder)
        .standard_filters(skips_ignored)
        .require_git(false)
        .filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_excluded = |name: &Option<GlobMatcher>| {
                name.as_ref().is_some_and(|name| name.is_match(entry.file_name()))
            };
            !(is_folder && entry.depth() > 0 && excluded_folders.iter().any(is_excluded))
        })
        .build();
    let files = walk.flatten().filter(|entry| !entry.file_type().is_some_and(|kind| kind.is_dir()));
    let mut read = files.filter(|entry| {
        let name = entry.file_name();
        let may_match =
            |filter: &Option<GlobMatcher>| filter.as_ref().is_none_or(|filter| filter.is_match(name));
        let must_match =
            |filter: &Option<GlobMatcher>| filter.as_ref().is_some_and(|filter| filter.is_match(name));
        is_mixed
            || (included.is_empty() || included.iter().any(may_match)) && !excluded.iter().any(must_match)
    });
    let real_folder = resolve_links(folder);
    read.find(|entry| {
        let real = entry.path().strip_prefix(folder).map(|rest| real_folder.join(rest));
        let real = real.unwrap_or_else(|_| entry.path().to_owned());
        is_refused(permissions, entry.path(), &real)
            || entry.path_is_symlink() && permissions.path_rule(RuleEffect::Deny, Access::Read, entry.path())
    })
    .map(ignore::DirEntry::into_path)
}

/// Returns a refused file that a command of git prints: one that is tracked, and below the paths that the
/// command names.
pub(super) fn tracked_file(permissions: &Permissions, arguments: &[Word], cwd: &Path) -> Option<PathBuf> {
    let words: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let (command, options) = words.split_first()?;
    let has =
        |known: &[&str]| options.iter().any(|word| known.contains(&word.split('=').next().unwrap_or(word)));
    let has_patch = has(&["-p", "-u", "--patch", "--unified", "--word-diff", "--color-words", "--cc", "-c"])
        || options.iter().any(|word| word.starts_with("-U") || word.starts_with("-L"));
    let has_summary = has(&[
        "--stat",
        "--shortstat",
        "--numstat",
        "--name-only",
        "--name-status",
        "--quiet",
        "-q",
        "-s",
        "--no-patch",
    ]);
    let prints_content = match *command {
        "diff" | "show" => has_patch || !has_summary,
        "log" | "stash" | "reflog" => has_patch,
        "grep" => true,
        _ => false,
    };
    if !prints_content {
        return None;
    }
    let root = cwd.ancestors().find(|folder| folder.join(".git").exists())?;
    let operands = options.iter().filter(|word| !word.starts_with('-')).map(|word| cwd.join(word));
    let named: Vec<PathBuf> = operands.filter(|path| path.exists()).collect();
    if has(&["--no-index", "--untracked"]) {
        let folders = if named.is_empty() { vec![cwd.to_owned()] } else { named.clone() };
        return folders.iter().find_map(|folder| searched_file(permissions, folder, &[], false));
    }
    let real_root = resolve_links(root);
    let names = index_names(&read_index(root));
    let mut files = names.iter().map(|name| (root.join(name), real_root.join(name)));
    let is_named = |file: &Path| named.is_empty() || named.iter().any(|folder| file.starts_with(folder));
    files.find(|(file, real)| is_named(file) && is_refused(permissions, file, real)).map(|(file, _)| file)
}

/// Reads the index of a repository; of a worktree, its own one.
fn read_index(root: &Path) -> Vec<u8> {
    let git = root.join(".git");
    let folder = match std::fs::read_to_string(&git) {
        Ok(text) => root.join(text.trim().strip_prefix("gitdir: ").unwrap_or_default()),
        Err(_) => git,
    };
    std::fs::read(folder.join("index")).unwrap_or_default()
}

/// Returns the names of the tracked files in an index of the versions 2 to 4.
fn index_names(index: &[u8]) -> Vec<String> {
    /// The bytes of an entry before its flags.
    const ENTRY: usize = 60;
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4).unwrap_or_default(), number(8).unwrap_or_default());
    let mut names = Vec::new();
    let mut at = 12;
    let mut previous: Vec<u8> = Vec::new();
    for _ in 0..count {
        let Some(flags) = index.get(at + ENTRY) else { break };
        let mut start = at + ENTRY + if flags & 0x40 == 0 { 2 } else { 4 };
        let mut kept = 0;
        if version == 4 {
            // The number of bytes to remove from the end of the name before.
            let mut removed = 0usize;
            while let Some(byte) = index.get(start) {
                start += 1;
                removed = (removed << 7) + usize::from(byte & 0x7f);
                if byte & 0x80 == 0 {
                    break;
                }
                removed += 1;
            }
            kept = previous.len().saturating_sub(removed);
        }
        let Some(length) = index.get(start..).and_then(|rest| rest.iter().position(|byte| *byte == 0)) else {
            break;
        };
        previous.truncate(kept);
        previous.extend(&index[start..start + length]);
        names.push(String::from_utf8_lossy(&previous).into_owned());
        let end = start + length;
        // Entries end with one to eight zero bytes, to a multiple of eight.
        at = if version == 4 { end + 1 } else { at + (end - at + 8) / 8 * 8 };
    }
    names
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn names_are_those_that_git_lists() {
        let dir = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let done = Command::new("git").args(args).current_dir(dir.path()).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            String::from_utf8(done.stdout).unwrap()
        };
        git(&["init", "--quiet", "."]);
        for name in ["a", "ab", "abcdefgh", "src/.env", "src/long/name of a file.txt", "src/main.rs", "é"] {
            let file = dir.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, name).unwrap();
        }
        git(&["add", "."]);
        // An extended entry, which version 3 has.
        for (version, intent) in [("2", false), ("4", false), ("2", true), ("4", true)] {
            if intent {
                std::fs::write(dir.path().join("intended"), "").unwrap();
                git(&["add", "--intent-to-add", "intended"]);
            }
            git(&["update-index", "--index-version", version]);
            let listed = git(&["ls-files", "-z"]);
            let listed: Vec<&str> = listed.split_terminator('\0').collect();
            assert_eq!(index_names(&read_index(dir.path())), listed, "version {version}");
        }
        for broken in [&b""[..], b"DIRC", b"DIRC\0\0\0\x02\xff\xff\xff\xff", &[0xff; 200]] {
            index_names(broken);
        }
    }
}
