//! The paths that commands use.

use std::path::{Component, Path, PathBuf};

use globset::GlobBuilder;

use super::sed;
use crate::files::Access;
use crate::shell::Word;

/// The paths of a command.
pub(super) struct PathUse {
    pub(super) access: Access,
    /// What the command does, as messages say it.
    pub(super) verb: &'static str,
    pub(super) paths: Vec<Word>,
    /// Why the paths cannot be determined.
    pub(super) unclear: Option<String>,
}

/// A command that uses paths: its access, the verb of messages, the number of operands before the paths, and
/// its options whose value is not a path.
struct PathCommand {
    name: &'static str,
    access: Access,
    verb: &'static str,
    skipped: usize,
    values: &'static [&'static str],
}

const fn reads(
    name: &'static str,
    verb: &'static str,
    skipped: usize,
    values: &'static [&'static str],
) -> PathCommand {
    PathCommand { name, access: Access::Read, verb, skipped, values }
}

const fn writes(name: &'static str, verb: &'static str) -> PathCommand {
    PathCommand { name, access: Access::Write, verb, skipped: 0, values: &[] }
}

const READ_FILES: &str = "read files from";

const COMMANDS: &[PathCommand] = &[
    reads("cd", "change directories to", 0, &[]),
    reads("ls", "list files in", 0, &["-I", "-w", "-T"]),
    reads("tree", "list files in", 0, &["-L", "-P", "-I"]),
    reads("cat", "concatenate files from", 0, &[]),
    reads("head", "read the beginning of files from", 0, &["-n", "-c"]),
    reads("tail", "read the end of files from", 0, &["-n", "-c", "-s"]),
    reads("wc", "count lines/words/bytes in files from", 0, &[]),
    reads("sort", "sort contents of files from", 0, &["-k", "-t", "-S"]),
    reads("uniq", "filter duplicate lines from files in", 0, &["-f", "-s", "-w"]),
    reads("cut", "extract columns from files in", 0, &["-d", "-f", "-c", "-b"]),
    reads("paste", "merge files from", 0, &["-d"]),
    reads("column", "format files from", 0, &["-s", "-o", "-c"]),
    reads("strings", "extract strings from files in", 0, &["-n", "-t", "-e"]),
    reads("hexdump", "display hex dump of files from", 0, &["-n", "-s", "-e"]),
    reads("od", "display octal dump of files from", 0, &["-A", "-j", "-N", "-t", "-w"]),
    reads("base64", "encode/decode files from", 0, &["-w"]),
    reads("nl", "number lines in files from", 0, &["-b", "-s", "-w", "-d"]),
    reads("md5sum", "compute MD5 checksums for files in", 0, &[]),
    reads("sha1sum", "compute SHA-1 checksums for files in", 0, &[]),
    reads("sha256sum", "compute SHA-256 checksums for files in", 0, &[]),
    reads("jq", "process JSON from files in", 1, &["--indent"]),
    reads("awk", "process text from files in", 1, &["-F", "-v"]),
    reads(
        "grep",
        "search for patterns in files from",
        1,
        &["-A", "-B", "-C", "-m", "--include", "--exclude"],
    ),
    reads("egrep", "search for patterns in files from", 1, &["-A", "-B", "-C", "-m"]),
    reads("fgrep", "search for patterns in files from", 1, &["-A", "-B", "-C", "-m"]),
    reads("rg", "search for patterns in files from", 1, &["-A", "-B", "-C", "-m", "-g", "-t", "-T", "-r"]),
    reads("diff", "compare files from", 0, &["-U", "-I", "-x"]),
    reads("cmp", "compare files from", 0, &["-n", "-i"]),
    reads("comm", "compare files from", 0, &[]),
    reads("stat", "read file stats from", 0, &["-c", "--printf"]),
    reads("file", "examine file types in", 0, &[]),
    reads("fd", "search files in", 1, &["-e", "-t", "-d", "-E"]),
    reads("fdfind", "search files in", 1, &["-e", "-t", "-d", "-E"]),
    reads("tac", READ_FILES, 0, &["-s"]),
    reads("rev", READ_FILES, 0, &[]),
    reads("fold", READ_FILES, 0, &["-w"]),
    reads("fmt", READ_FILES, 0, &["-w"]),
    reads("expand", READ_FILES, 0, &["-t"]),
    reads("unexpand", READ_FILES, 0, &["-t"]),
    reads("pr", READ_FILES, 0, &[]),
    reads("tsort", READ_FILES, 0, &[]),
    writes("mkdir", "create directories in"),
    writes("touch", "create or modify files in"),
    writes("rm", "remove files from"),
    writes("rmdir", "remove directories from"),
    writes("mv", "move files to/from"),
    writes("cp", "copy files to/from"),
];

/// Options of the searches that name the pattern, so that no operand is one.
const PATTERN_OPTIONS: &[&str] = &["-e", "-f", "--regexp", "--file", "--files"];

/// Returns the paths of a command; `None` if the command is not known to use any.
pub(super) fn path_use(name: &str, arguments: &[Word]) -> Option<PathUse> {
    match name {
        "find" => return Some(find_paths(arguments)),
        "sed" => return Some(sed_paths(arguments)),
        "git" => return git_paths(arguments),
        _ => {}
    }
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    let mut skipped = command.skipped;
    if arguments.iter().any(|word| {
        PATTERN_OPTIONS
            .iter()
            .any(|option| word.text == *option || word.text.starts_with(&format!("{option}=")))
    }) && command.skipped > 0
        && name != "awk"
        && name != "jq"
    {
        skipped = 0;
    }
    let mut paths = Vec::new();
    let mut unclear = None;
    let mut is_options = true;
    let mut is_value = false;
    for word in arguments {
        let text = word.text.as_str();
        if std::mem::take(&mut is_value) {
            continue;
        }
        if is_options && text == "--" {
            is_options = false;
        } else if is_options && text.starts_with('-') && text.len() > 1 {
            if ["cp", "mv"].contains(&name) {
                unclear.get_or_insert_with(|| {
                    format!(
                        "{name} with flags requires manual approval to ensure path safety. For security, Claude Code \
                         cannot automatically validate {name} commands that use flags, as some flags like \
                         --target-directory=PATH can bypass path validation."
                    )
                });
            }
            is_value = command.values.contains(&text);
            paths.extend(option_path(word));
        } else if skipped > 0 {
            skipped -= 1;
        } else if text != "-" {
            paths.push(word.clone());
        }
    }
    if name == "cd" && paths.is_empty() {
        paths.push(Word { text: "~".to_owned(), has_tilde: true, ..Word::default() });
    }
    if name == "cd" && arguments.iter().any(|word| word.text == "-") {
        unclear = None;
        paths.clear();
    }
    Some(PathUse { access: command.access, verb: command.verb, paths, unclear })
}

/// Returns the path inside of an option, such as `--file=/etc/passwd` or `-f/etc/passwd`.
fn option_path(word: &Word) -> Option<Word> {
    let at = word.text.find(['/', '~']).or_else(|| word.text.find(".."))?;
    let has_tilde = word.text[at..].starts_with('~');
    Some(Word { text: word.text[at..].to_owned(), has_tilde, ..word.clone() })
}

fn find_paths(arguments: &[Word]) -> PathUse {
    let is_expression = |word: &Word| {
        word.text.starts_with('-') && !["-H", "-L", "-P"].contains(&word.text.as_str())
            || ["(", "!", ")", ","].contains(&word.text.as_str())
    };
    let starts = arguments.iter().take_while(|word| !is_expression(word));
    let mut paths: Vec<Word> = starts.filter(|word| !word.text.starts_with('-')).cloned().collect();
    // These compare with another file.
    let mut is_file = false;
    for word in arguments {
        if std::mem::take(&mut is_file) {
            paths.push(word.clone());
        }
        is_file = word.text.starts_with("-newer")
            || ["-samefile", "-anewer", "-cnewer", "-files0-from"].contains(&word.text.as_str());
    }
    PathUse { access: Access::Read, verb: "search files in", paths, unclear: None }
}

fn sed_paths(arguments: &[Word]) -> PathUse {
    let sed = sed::parse(arguments);
    let access = if sed.is_line_printer { Access::Read } else { Access::Write };
    PathUse { access, verb: "edit files in", paths: sed.files, unclear: None }
}

/// Paths of `git diff --no-index`, the one command of git that reads files outside of the repository.
fn git_paths(arguments: &[Word]) -> Option<PathUse> {
    let is_diff = arguments.first().is_some_and(|word| word.text == "diff");
    let is_outside = arguments.iter().any(|word| word.text == "--no-index");
    if !(is_diff && is_outside) {
        return None;
    }
    let paths = arguments[1..].iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
    Some(PathUse { access: Access::Read, verb: "access files with git from", paths, unclear: None })
}

/// Returns why a path cannot be judged.
pub(super) fn unclear_path(word: &Word, access: Access) -> Option<&'static str> {
    if word.is_dynamic {
        return Some("Contains simple_expansion");
    }
    if word.has_tilde && word.text != "~" && !word.text.starts_with("~/") {
        return Some("Tilde expansion variants (~user, ~+, ~-) in paths require manual approval");
    }
    if word.is_pattern && access == Access::Write {
        return Some("Glob patterns are not allowed in write operations. Please specify an exact file path.");
    }
    // `a/..` is not this folder if `a` is a link.
    let mut has_name = word.text.starts_with("~/");
    for component in Path::new(&word.text).components() {
        match component {
            Component::Normal(_) => has_name = true,
            Component::ParentDir if has_name => {
                return Some(
                    "Path contains '..' traversal after a directory segment, which may follow a symlink outside the \
                     working directory",
                );
            }
            _ => {}
        }
    }
    None
}

/// Returns a path as the shell sees it, absolute and without `.` and `..`. `None` if it is not known.
pub(super) fn absolute(word: &Word, cwd: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let joined = if word.has_tilde {
        let rest = word.text.strip_prefix('~')?;
        let home = home?;
        match rest.strip_prefix('/') {
            Some(rest) => home.join(rest.trim_start_matches('/')),
            None if rest.is_empty() => home.to_owned(),
            None => return None,
        }
    } else {
        cwd.join(&word.text)
    };
    let mut path = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                // The parent of a link is that of its target.
                path = crate::files::resolve_links(&path);
                path.pop();
            }
            other => path.push(other),
        }
    }
    Some(path)
}

fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Returns the folder before the first pattern of a path.
pub(super) fn pattern_root(path: &Path) -> PathBuf {
    path.components().take_while(|part| !is_pattern(&part.as_os_str().to_string_lossy())).collect()
}

/// The most files that a pattern is expanded to.
const MAX_EXPANDED: usize = 2_000;

/// Returns the files that a pattern matches, and the pattern itself.
pub(super) fn expand(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let name = component.as_os_str().to_string_lossy().into_owned();
        if !is_pattern(&name) {
            for path in &mut found {
                path.push(component);
            }
            continue;
        }
        let Ok(glob) = GlobBuilder::new(&name).literal_separator(true).backslash_escape(false).build() else {
            return vec![path.to_owned()];
        };
        let matcher = glob.compile_matcher();
        let mut next = Vec::new();
        for folder in &found {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            next.extend(
                entries.filter(|entry| matcher.is_match(entry.file_name())).map(|entry| entry.path()),
            );
            if next.len() > MAX_EXPANDED {
                break;
            }
        }
        found = next;
    }
    found.push(path.to_owned());
    found
}
