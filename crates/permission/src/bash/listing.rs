//! Files that commands find in folders: links that lead out of the working folders, and names for `xargs`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::paths::path_use;
use crate::files::{Access, Workspace, resolve_links};
use threadline_shell::command_line::Word;

/// Returns an entry below a folder for which `is_refused` returns `true`. Links to folders are followed.
fn find_below(folder: &Path, is_refused: &dyn Fn(&Path, bool) -> bool) -> Option<PathBuf> {
    let mut seen = HashSet::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let Ok(kind) = entry.file_type() else { continue };
            let path = entry.path();
            if is_refused(&path, kind.is_symlink()) {
                return Some(path);
            }
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_symlink() {
                let target = resolve_links(&path);
                if target.is_dir() && seen.insert(target.clone()) {
                    pending.push(target);
                }
            }
        }
    }
    None
}

/// Returns a link below a folder that leads out of the working folders.
pub(super) fn outward_link(workspace: &Workspace, folder: &Path) -> Option<PathBuf> {
    find_below(folder, &|path, is_link| is_link && !workspace.contains(path, Access::Read))
}

/// Returns a file that a pattern matches, and that is outside of the working folders because of a link.
pub(super) fn outward_match(workspace: &Workspace, matches: &[PathBuf]) -> Option<PathBuf> {
    let mut inside: Option<&Path> = None;
    for path in matches {
        let parent = path.parent()?;
        // Most matches are plain files of one folder.
        if inside != Some(parent) && workspace.contains(parent, Access::Read) {
            inside = Some(parent);
        }
        let is_plain = inside == Some(parent) && !path.is_symlink();
        if !is_plain && !workspace.contains(path, Access::Read) {
            return Some(path.clone());
        }
    }
    None
}

/// The command that `xargs` runs, with its options before it.
pub(super) struct XargsCall<'a> {
    pub(super) command: &'a [&'a str],
    /// Whether names end at a NUL or a line end only.
    has_whole_names: bool,
}

/// Commands that read the files that `xargs` gives them.
const READERS: &[&str] = &["wc", "grep", "head", "tail"];

impl<'a> XargsCall<'a> {
    /// Parses the arguments of `xargs`; `None` if an option is not known.
    pub(super) fn parse(words: &'a [&'a str]) -> Option<Self> {
        let mut has_whole_names = false;
        let mut at = 0;
        while let Some(word) = words.get(at).filter(|word| word.starts_with('-')) {
            match *word {
                "-0" | "--null" => {
                    has_whole_names = true;
                    at += 1;
                }
                "-r" | "-t" | "--no-run-if-empty" => at += 1,
                "-d" => {
                    has_whole_names |= words.get(at + 1) == Some(&"\\n");
                    at += 2;
                }
                "-n" | "-P" | "-L" => at += 2,
                _ => return None,
            }
        }
        Some(Self { command: words.get(at..).unwrap_or_default(), has_whole_names })
    }

    /// Whether the command reads files.
    pub(super) fn reads_files(&self) -> bool {
        self.command.first().is_some_and(|name| READERS.contains(name))
    }

    /// Whether the command before `xargs` prints only names of files in the working folders. `cwd` is the
    /// current folder.
    pub(super) fn gets_files_of(&self, before: &[Word], workspace: &Workspace, cwd: &Path) -> bool {
        let Some((name, arguments)) = before.split_first() else { return false };
        let Some(listing) = listing(&name.text, arguments) else { return false };
        let paths = match path_use(&name.text, arguments) {
            Some(found) => found.paths,
            // The paths of `git ls-files`.
            None => arguments.iter().skip(1).filter(|word| !word.text.starts_with('-')).cloned().collect(),
        };
        let mut folders: Vec<PathBuf> = paths.iter().map(|word| cwd.join(&word.text)).collect();
        if folders.is_empty() {
            folders.push(cwd.to_owned());
        }
        // A name with a space is several names for `xargs`, and the second one can be `/etc/passwd`.
        let is_split = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            !self.has_whole_names && name.contains([' ', '\t', '\n', '\'', '"', '\\'])
        };
        folders.iter().all(|folder| {
            let is_refused = |path: &Path, is_link: bool| {
                is_split(path)
                    || is_link && listing == Listing::Links && !workspace.contains(path, Access::Read)
            };
            find_below(folder, &is_refused).is_none()
        })
    }
}

/// The names that a command prints.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Listing {
    /// Those of files and of links.
    Links,
    /// Those of files only.
    Files,
}

/// Returns whether a command prints names of files and nothing else.
fn listing(name: &str, arguments: &[Word]) -> Option<Listing> {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let has_only = |known: &[&str]| {
        let mut options = texts.iter().filter(|text| text.starts_with("--"));
        options.all(|text| known.contains(&text.split('=').next().unwrap_or(text)))
    };
    let has_letter = |letter: char| {
        texts.iter().any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(letter))
    };
    match name {
        "find" if texts.iter().any(|text| ["-printf", "-ls"].contains(text)) => None,
        "find" if texts.windows(2).any(|pair| pair == ["-type", "f"]) => Some(Listing::Files),
        "find" => Some(Listing::Links),
        // The names are those of the current folder, where `xargs` looks for them.
        "ls" => {
            texts.iter().all(|text| ["-1", "-a", "-A", "-t", "-r"].contains(text)).then_some(Listing::Links)
        }
        "git" => (texts.first() == Some(&"ls-files")
            && has_only(&["--exclude-standard", "--others", "--cached"]))
        .then_some(Listing::Links),
        "grep" => {
            let known = ["--files-with-matches", "--include", "--exclude", "--exclude-dir"];
            let has_names = has_letter('l') || texts.contains(&"--files-with-matches");
            (has_names && has_only(&known)).then_some(Listing::Files)
        }
        "rg" => {
            let known = ["--files", "--files-with-matches", "--glob", "--type", "--hidden"];
            let has_names = has_letter('l') || texts.iter().any(|text| text.starts_with("--files"));
            (has_names && has_only(&known)).then_some(Listing::Files)
        }
        _ => None,
    }
}
