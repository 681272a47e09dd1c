//! The paths that commands use.

use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::sed;
use crate::files::Access;
use threadline_shell::command_line::Word;

/// The paths of a command.
pub(super) struct PathUse {
    pub(super) access: Access,
    /// The action of the command, as messages name it.
    pub(super) verb: &'static str,
    pub(super) paths: Vec<Word>,
    /// Why the paths cannot be determined.
    pub(super) unclear: Option<String>,
    /// Whether the command follows the links in folders.
    pub(super) follows_links: bool,
    /// Whether the command reads the files below folders.
    pub(super) reads_folders: bool,
    /// The files that it reads there.
    pub(super) filters: Vec<(NameFilter, String)>,
}

impl PathUse {
    fn read(verb: &'static str, paths: Vec<Word>) -> Self {
        Self {
            access: Access::Read,
            verb,
            paths,
            unclear: None,
            follows_links: false,
            reads_folders: false,
            filters: Vec::new(),
        }
    }
}

/// A command that uses paths. Every word that is not known to be something else counts as a path, also the
/// value of an option that is not listed: most values are harmless as a path.
struct PathCommand {
    name: &'static str,
    access: Access,
    /// The action of the command, as messages name it.
    verb: &'static str,
    /// The number of operands before the paths, such as a pattern.
    skipped: usize,
    options: &'static [(&'static str, OptionKind)],
}

/// How a search selects the files of a folder by their names.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameFilter {
    /// Only these are read.
    Include,
    /// These are not read.
    Exclude,
    /// Folders of these names are not read.
    ExcludeDir,
}

/// How an option of a command is read. An option belongs here only if it has a value on every system: one
/// that is thought to have a value hides the path that follows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OptionKind {
    /// It has a value that is no path.
    Text,
    /// It has a number. Another word is not its value.
    Number,
    /// Its value takes the place of the operands before the paths.
    Pattern,
    /// It names a file with what the operands before the paths would contain.
    PatternFile,
    /// It has no value, and there are no operands before the paths.
    NoPattern,
    /// It has no value, and the files in folders are read.
    Recursive,
    /// The same, and links in folders are followed.
    Follow,
    /// It has a pattern of names.
    Names(NameFilter),
}

use OptionKind::{Follow, Names, NoPattern, Number, Pattern, PatternFile, Recursive, Text};

type Options = &'static [(&'static str, OptionKind)];

const fn reads(name: &'static str, verb: &'static str, skipped: usize, options: Options) -> PathCommand {
    PathCommand { name, access: Access::Read, verb, skipped, options }
}

const fn writes(name: &'static str, verb: &'static str) -> PathCommand {
    PathCommand { name, access: Access::Write, verb, skipped: 0, options: &[] }
}

const READ_FILES: &str = "read files from";
const SEARCH_FILES: &str = "search for patterns in files from";

const GREP: Options = &[
    ("-A", Number),
    ("-B", Number),
    ("-C", Number),
    ("-m", Number),
    ("--after-context", Number),
    ("--before-context", Number),
    ("--context", Number),
    ("--max-count", Number),
    ("--include", Names(NameFilter::Include)),
    ("--exclude", Names(NameFilter::Exclude)),
    ("--exclude-dir", Names(NameFilter::ExcludeDir)),
    ("--label", Text),
    ("-e", Pattern),
    ("--regexp", Pattern),
    ("-f", PatternFile),
    ("--file", PatternFile),
    ("-r", Recursive),
    ("--recursive", Recursive),
    ("-R", Follow),
    ("--dereference-recursive", Follow),
];

const RG: Options = &[
    ("-A", Number),
    ("-B", Number),
    ("-C", Number),
    ("-m", Number),
    ("-j", Number),
    ("-d", Number),
    ("--after-context", Number),
    ("--before-context", Number),
    ("--context", Number),
    ("--max-count", Number),
    ("--max-depth", Number),
    ("--threads", Number),
    ("-g", Text),
    ("--glob", Text),
    ("-t", Text),
    ("--type", Text),
    ("-T", Text),
    ("--type-not", Text),
    ("-r", Text),
    ("--replace", Text),
    ("--color", Text),
    ("--sort", Text),
    ("-e", Pattern),
    ("--regexp", Pattern),
    ("-f", PatternFile),
    ("--file", PatternFile),
    ("--files", NoPattern),
    ("-L", Follow),
    ("--follow", Follow),
];

const FD: Options =
    &[("-e", Text), ("-t", Text), ("-d", Number), ("-E", Text), ("-L", Follow), ("--follow", Follow)];

const COMMANDS: &[PathCommand] = &[
    reads("cd", "change directories to", 0, &[]),
    reads("ls", "list files in", 0, &[("-I", Text)]),
    reads("tree", "list files in", 0, &[("-L", Number), ("-P", Text), ("-I", Text), ("-l", Follow)]),
    reads("du", "estimate sizes of files in", 0, &[("-L", Follow), ("--dereference", Follow)]),
    reads("cat", "concatenate files from", 0, &[]),
    reads("head", "read the beginning of files from", 0, &[]),
    reads("tail", "read the end of files from", 0, &[]),
    reads("wc", "count lines/words/bytes in files from", 0, &[]),
    reads(
        "sort",
        "sort contents of files from",
        0,
        &[("-k", Text), ("-t", Text), ("--field-separator", Text)],
    ),
    reads("uniq", "filter duplicate lines from files in", 0, &[]),
    reads("cut", "extract columns from files in", 0, &[("-d", Text), ("--delimiter", Text)]),
    reads("paste", "merge files from", 0, &[("-d", Text), ("--delimiters", Text)]),
    reads("column", "format files from", 0, &[("-s", Text), ("-o", Text)]),
    reads("strings", "extract strings from files in", 0, &[]),
    reads("hexdump", "display hex dump of files from", 0, &[("-e", Text)]),
    reads("od", "display octal dump of files from", 0, &[]),
    reads("base64", "encode/decode files from", 0, &[]),
    reads("nl", "number lines in files from", 0, &[("-s", Text), ("-d", Text)]),
    reads("md5sum", "compute MD5 checksums for files in", 0, &[]),
    reads("sha1sum", "compute SHA-1 checksums for files in", 0, &[]),
    reads("sha256sum", "compute SHA-256 checksums for files in", 0, &[]),
    reads("jq", "process JSON from files in", 1, &[("--indent", Number)]),
    reads(
        "awk",
        "process text from files in",
        1,
        &[("-F", Text), ("-v", Text), ("-f", PatternFile), ("--file", PatternFile)],
    ),
    reads("grep", SEARCH_FILES, 1, GREP),
    reads("egrep", SEARCH_FILES, 1, GREP),
    reads("fgrep", SEARCH_FILES, 1, GREP),
    reads("rg", SEARCH_FILES, 1, RG),
    reads(
        "diff",
        "compare files from",
        0,
        &[("-I", Text), ("-x", Text), ("-F", Text), ("-r", Follow), ("--recursive", Follow)],
    ),
    reads("cmp", "compare files from", 0, &[]),
    reads("comm", "compare files from", 0, &[]),
    reads("stat", "read file stats from", 0, &[("-c", Text), ("--format", Text), ("--printf", Text)]),
    reads("file", "examine file types in", 0, &[("-F", Text)]),
    reads("fd", "search files in", 1, FD),
    reads("fdfind", "search files in", 1, FD),
    reads("tac", READ_FILES, 0, &[("-s", Text)]),
    reads("rev", READ_FILES, 0, &[]),
    reads("fold", READ_FILES, 0, &[]),
    reads("fmt", READ_FILES, 0, &[]),
    reads("expand", READ_FILES, 0, &[]),
    reads("unexpand", READ_FILES, 0, &[]),
    reads("pr", READ_FILES, 0, &[]),
    reads("tsort", READ_FILES, 0, &[]),
    writes("mkdir", "create directories in"),
    writes("touch", "create or modify files in"),
    writes("rm", "remove files from"),
    writes("rmdir", "remove directories from"),
    writes("mv", "move files to/from"),
    writes("cp", "copy files to/from"),
];

/// The letters of options without a value, for the commands that have options with one. An option that is not
/// known may have a value, which may look like another option.
const FLAGS: &[(&str, &str)] = &[
    ("ls", "aAbcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1"),
    ("tree", "adfxqNQpugshDFvtcUrACSniJX"),
    ("sort", "bdfghiMnRVcCmsruz"),
    ("cut", "nsz"),
    ("paste", "sz"),
    ("column", "tx"),
    ("hexdump", "bcCdoxv"),
    ("nl", "p"),
    ("grep", "abcEFGHhiILlnoPqsTUuVvwxyZz0123456789"),
    ("egrep", "abcEFGHhiILlnoPqsTUuVvwxyZz0123456789"),
    ("fgrep", "abcEFGHhiILlnoPqsTUuVvwxyZz0123456789"),
    ("rg", "abcFhHiIlnNopPqsSuUvVwxXz0."),
    ("diff", "abBcdeEilnNpqstTuwvyZ"),
    ("stat", "Lft"),
    ("file", "bchikLNnprsSvzZ0"),
    ("fd", "HIusgFaplq01"),
    ("fdfind", "HIusgFaplq01"),
    ("tac", "br"),
];

/// Long options without a value, of any of these commands.
const LONG_FLAGS: &[&str] = &[
    "--all",
    "--brief",
    "--color",
    "--colour",
    "--complement",
    "--count",
    "--extended-regexp",
    "--files-with-matches",
    "--fixed-strings",
    "--heading",
    "--hidden",
    "--human-numeric-sort",
    "--ignore-all-space",
    "--ignore-blank-lines",
    "--ignore-case",
    "--invert-match",
    "--json",
    "--line-buffered",
    "--line-number",
    "--line-regexp",
    "--multiline",
    "--no-filename",
    "--no-heading",
    "--no-ignore",
    "--no-messages",
    "--null",
    "--numeric-sort",
    "--only-delimited",
    "--only-matching",
    "--perl-regexp",
    "--quiet",
    "--reverse",
    "--serial",
    "--smart-case",
    "--stable",
    "--stats",
    "--text",
    "--unique",
    "--version-sort",
    "--with-filename",
    "--word-regexp",
    "--zero-terminated",
];

/// Returns the paths of a command; `None` if the command is not known to use any.
pub(super) fn path_use(name: &str, arguments: &[Word]) -> Option<PathUse> {
    match name {
        "find" => return Some(find_paths(arguments)),
        "sed" => return Some(sed_paths(arguments)),
        "git" => return git_paths(arguments),
        _ => {}
    }
    let command = COMMANDS.iter().find(|command| command.name == name)?;
    let mut found = ArgumentReader::new(command).read(arguments);
    let has_option = || arguments.iter().any(|word| word.text.starts_with('-') && word.text.len() > 1);
    if ["cp", "mv"].contains(&name) && has_option() {
        found.unclear = Some(format!(
            "{name} with flags requires manual approval to ensure path safety. For security, Claude Code cannot \
             automatically validate {name} commands that use flags, as some flags like --target-directory=PATH can \
             bypass path validation."
        ));
    }
    if name == "strings" && arguments.iter().any(|word| word.text.starts_with('@')) {
        found.unclear = Some("strings takes further arguments from the file after '@'".to_owned());
    }
    if name == "cd" && found.paths.is_empty() {
        found.paths.push(Word { text: "~".to_owned(), has_tilde: true, ..Word::default() });
    }
    if name == "cd" && arguments.iter().any(|word| word.text == "-") {
        found.paths.clear();
    }
    Some(found)
}

/// Reads the arguments of a command from left to right.
struct ArgumentReader<'a> {
    command: &'a PathCommand,
    /// The kind of the option whose value is the next word.
    pending: Option<OptionKind>,
    /// Whether the current word may be the value of an option that is not known, although it looks like one.
    may_be_value: bool,
    skipped: usize,
    operands: Vec<Word>,
    found: PathUse,
}

impl<'a> ArgumentReader<'a> {
    fn new(command: &'a PathCommand) -> Self {
        let found = PathUse { access: command.access, ..PathUse::read(command.verb, Vec::new()) };
        Self {
            command,
            pending: None,
            may_be_value: false,
            skipped: command.skipped,
            operands: Vec::new(),
            found,
        }
    }

    fn read(mut self, arguments: &[Word]) -> PathUse {
        let mut is_options = true;
        for word in arguments {
            match self.pending.take() {
                Some(Text | Pattern) => continue,
                Some(Names(filter)) => {
                    self.found.filters.push((filter, word.text.clone()));
                    continue;
                }
                Some(PatternFile) => {
                    self.found.paths.push(word.clone());
                    continue;
                }
                Some(Number) if is_number(&word.text) => continue,
                _ => {}
            }
            let text = word.text.as_str();
            let may_be_value = std::mem::take(&mut self.may_be_value);
            if is_options && text == "--" {
                is_options = false;
            } else if is_options && text.starts_with("--") {
                self.long_option(word, may_be_value);
            } else if is_options && text.starts_with('-') && text.len() > 1 {
                self.short_options(word, may_be_value);
            } else {
                self.operands.push(word.clone());
            }
        }
        let mut operands: Vec<Word> = self.operands.into_iter().skip(self.skipped).collect();
        self.found.reads_folders |= self.command.name == "rg";
        if operands.is_empty() && (self.found.follows_links || self.found.reads_folders) {
            operands.push(current_folder());
        }
        self.found.paths.extend(operands.into_iter().filter(|word| word.text != "-"));
        self.found
    }

    fn kind(&self, option: &str) -> Option<OptionKind> {
        self.command.options.iter().find(|(name, _)| *name == option).map(|(_, kind)| *kind)
    }

    /// Applies an option. Returns whether it has a value.
    fn apply(&mut self, kind: OptionKind) -> bool {
        match kind {
            Pattern | PatternFile | NoPattern => self.skipped = 0,
            Recursive => self.found.reads_folders = true,
            Follow => (self.found.reads_folders, self.found.follows_links) = (true, true),
            Text | Number | Names(_) => {}
        }
        !matches!(kind, NoPattern | Recursive | Follow)
    }

    /// Waits for the value of an option. If the option may itself be a value, or the value of a letter before
    /// it, the next word counts as a path.
    fn wait_for_value(&mut self, kind: OptionKind, is_certain: bool) {
        self.pending = Some(kind).filter(|kind| is_certain || *kind == PatternFile);
    }

    fn long_option(&mut self, word: &Word, may_be_value: bool) {
        let (name, value) = match word.text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.text.as_str(), None),
        };
        if let Some(kind) = self.kind(name) {
            let has_value = self.apply(kind);
            match (kind, value) {
                (PatternFile, Some(value)) => self.found.paths.push(part_of(word, value)),
                (Names(filter), Some(value)) if !may_be_value => {
                    self.found.filters.push((filter, value.to_owned()));
                }
                (_, None) if has_value => self.wait_for_value(kind, !may_be_value),
                _ => {}
            }
            return;
        }
        self.may_be_value = value.is_none() && !LONG_FLAGS.contains(&name);
        // Programs accept the beginning of a name. The word after such an option counts as a path.
        let longer: Vec<OptionKind> = self
            .command
            .options
            .iter()
            .filter(|(option, _)| name.len() > 2 && option.starts_with(name))
            .map(|(_, kind)| *kind)
            .collect();
        for kind in longer {
            self.apply(kind);
        }
        self.found.paths.extend(value.map(|value| part_of(word, value)));
    }

    fn short_options(&mut self, word: &Word, may_be_value: bool) {
        let flags = FLAGS.iter().find(|(name, _)| *name == self.command.name).map_or("", |(_, flags)| flags);
        let mut is_certain = !may_be_value;
        for (at, letter) in word.text.char_indices().skip(1) {
            let value = &word.text[at + letter.len_utf8()..];
            let Some(kind) = self.kind(&format!("-{letter}")) else {
                let is_flag = flags.contains(letter);
                is_certain &= is_flag;
                self.may_be_value = !is_flag && value.is_empty();
                // The rest may be the value of this option.
                let may_have_value = self.command.access == Access::Read && !is_flag;
                if may_have_value && !is_number(value) && !value.is_empty() {
                    self.found.paths.push(part_of(word, value));
                }
                continue;
            };
            if self.apply(kind) {
                match value {
                    "" => self.wait_for_value(kind, is_certain),
                    value if kind == PatternFile => self.found.paths.push(part_of(word, value)),
                    _ => {}
                }
                return;
            }
        }
        if self.command.access == Access::Write {
            self.found.paths.extend(option_path(word));
        }
    }
}

fn current_folder() -> Word {
    Word { text: ".".to_owned(), ..Word::default() }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a part of a word as a word.
fn part_of(word: &Word, text: &str) -> Word {
    Word { text: text.to_owned(), has_tilde: text.starts_with('~'), ..word.clone() }
}

/// Returns the path inside of an option, such as `--file=/etc/passwd` or `-f/etc/passwd`.
fn option_path(word: &Word) -> Option<Word> {
    let at = word.text.find(['/', '~']).or_else(|| word.text.find(".."))?;
    Some(part_of(word, &word.text[at..]))
}

/// Returns the words of a command that is not known which may be paths: its operands, the values of its
/// options, and the path of `REVISION:PATH`.
pub(super) fn possible_paths(arguments: &[Word]) -> Vec<Word> {
    let mut paths = Vec::new();
    for word in arguments {
        let text = word.text.as_str();
        if let Some(option) = text.strip_prefix("--").filter(|option| !option.is_empty()) {
            paths.extend(option.split_once('=').map(|(_, value)| part_of(word, value)));
        } else if text.starts_with('-') {
            let rests = text.char_indices().skip(2).map(|(at, _)| &text[at..]);
            paths.extend(rests.map(|rest| part_of(word, rest)));
        } else {
            paths.extend(text.split_once(':').map(|(_, path)| part_of(word, path)));
            paths.push(word.clone());
        }
    }
    paths
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
    let follows_links = arguments.iter().any(|word| ["-L", "-follow"].contains(&word.text.as_str()));
    if paths.is_empty() && follows_links {
        paths.push(current_folder());
    }
    PathUse { follows_links, ..PathUse::read("search files in", paths) }
}

fn sed_paths(arguments: &[Word]) -> PathUse {
    let sed = sed::parse(arguments);
    let access = if sed.is_line_printer { Access::Read } else { Access::Write };
    PathUse { access, ..PathUse::read("edit files in", sed.files) }
}

/// Paths of the commands of git that read files outside of the repository: `git diff`, which compares any two
/// files if one of them is outside, and `git grep --no-index`.
fn git_paths(arguments: &[Word]) -> Option<PathUse> {
    let command = arguments.first().map(|word| word.text.as_str());
    let is_outside = arguments.iter().any(|word| word.text == "--no-index");
    if !(command == Some("diff") || command == Some("grep") && is_outside) {
        return None;
    }
    let paths = arguments[1..].iter().filter(|word| !word.text.starts_with('-')).cloned().collect();
    Some(PathUse::read("access files with git from", paths))
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

/// Returns the files that the shell replaces a pattern by: hidden ones only if it names them.
pub(super) fn shell_matches(path: &Path) -> Vec<PathBuf> {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    let hidden: Vec<bool> = path.components().map(|part| is_hidden(part.as_os_str())).collect();
    let mut matches = expand(path, true);
    matches.pop();
    matches.retain(|found| {
        found.components().zip(&hidden).all(|(part, is_named)| *is_named || !is_hidden(part.as_os_str()))
    });
    matches
}

/// Returns what a part of a path with a pattern matches; `None` for everything, if its meaning is not known.
/// A bracket can be quoted: with `is_wide`, it can mean anything.
pub(super) fn matcher(name: &str, is_wide: bool) -> Option<GlobMatcher> {
    let is_unknown = ["{", "\\", "[:", "[.", "[="].iter().any(|text| name.contains(text));
    if is_unknown || is_wide && name.contains('[') {
        return None;
    }
    let glob = GlobBuilder::new(name).literal_separator(true).backslash_escape(false).build();
    glob.ok().map(|glob| glob.compile_matcher())
}

/// Returns the files that a pattern matches, and the pattern itself.
pub(super) fn expand(path: &Path, is_wide: bool) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let name = component.as_os_str().to_string_lossy().into_owned();
        if !is_pattern(&name) {
            for path in &mut found {
                path.push(component);
            }
            continue;
        }
        let matcher = matcher(&name, is_wide);
        let mut next = Vec::new();
        for folder in &found {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            next.extend(
                entries
                    .filter(|entry| {
                        matcher.as_ref().is_none_or(|matcher| matcher.is_match(entry.file_name()))
                    })
                    .map(|entry| entry.path()),
            );
        }
        found = next;
    }
    found.push(path.to_owned());
    found
}
