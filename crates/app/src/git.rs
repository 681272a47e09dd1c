//! Git, run as a program, for the history of one file.
//!
//! A repository is untrusted: its configuration can name programs. Commands run without hooks, pagers,
//! filters, external diffs, prompts and the network, and read commits only: a file of the working tree might
//! pass through a filter.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use threadline_entry::Millis;

/// A file in a git repository.
#[derive(Clone, Debug)]
pub(crate) struct GitFile {
    /// The folder of the working tree.
    pub(crate) root: PathBuf,
    /// The path below the root, with slashes.
    pub(crate) name: String,
    /// The folders of all working trees of the repository.
    pub(crate) worktrees: Vec<PathBuf>,
}

/// The lines of a file in the current commit, and the commits that wrote them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CommittedLines {
    pub(crate) commits: Vec<GitCommitInfo>,
    /// By line: the index of the commit, and the number of the line in the file of that commit, from 0.
    pub(crate) lines: Vec<(usize, usize)>,
    /// The text in the current commit.
    pub(crate) text: String,
}

/// A commit that wrote a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitCommitInfo {
    /// The id.
    pub id: String,
    /// The name of the author.
    pub author: String,
    /// The time of the commit.
    pub at: Millis,
    /// The first line of its message.
    pub summary: String,
    /// The name of the file in this commit, below the root of the repository.
    pub file: String,
    /// The name of the file in the previous commit, if that is another one.
    pub(crate) previous_file: Option<String>,
}

/// The maximum size of the output of git.
const MAX_OUTPUT: u64 = 256 << 20;

impl GitFile {
    /// Finds the repository of a file. `None` if there is none, or git is not installed or refuses.
    pub(crate) fn find(file: &Path) -> Option<Self> {
        let dir = file.parent()?;
        let found = run(dir, &["rev-parse", "--show-toplevel", "--show-prefix"], None)?;
        let found = String::from_utf8(found).ok()?;
        let mut found = found.split('\n');
        let (root, prefix) = (PathBuf::from(found.next()?), found.next()?);
        let name = format!("{prefix}{}", file.file_name()?.to_str()?);
        let listed = run(dir, &["worktree", "list", "--porcelain", "-z"], None).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let mut worktrees: Vec<PathBuf> =
            listed.split('\0').filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect();
        if !worktrees.contains(&root) {
            worktrees.push(root.clone());
        }
        Some(Self { root, name, worktrees })
    }

    /// Returns the commits of all lines in the current commit; `None` if it does not contain the file.
    pub(crate) fn committed_lines(&self) -> Option<CommittedLines> {
        let arguments = ["blame", "--porcelain", "--no-textconv", "HEAD", "--", &self.name];
        parse_blame(&run(&self.root, &arguments, None)?)
    }

    /// Returns the earlier names of the file, and the times of the commits that renamed it.
    pub(crate) fn renames(&self) -> Vec<(String, Millis)> {
        let arguments = [
            "log",
            "--follow",
            "--diff-filter=R",
            "--name-status",
            "--no-ext-diff",
            "--format=@%ct",
            "HEAD",
            "--",
        ];
        let output = run(&self.root, &[&arguments[..], &[&self.name]].concat(), None).unwrap_or_default();
        let output = String::from_utf8_lossy(&output).into_owned();
        let (mut renames, mut at) = (Vec::new(), 0);
        for line in output.lines() {
            if let Some(time) = line.strip_prefix('@') {
                at = time.parse::<Millis>().map_or(0, |time| time.saturating_mul(1000));
            } else if let [status, old, _] = line.split('\t').collect::<Vec<_>>()[..]
                && status.starts_with('R')
            {
                renames.push((unquoted(old), at));
            }
        }
        renames
    }

    /// Reads the file in some commits, by commit id and name. Those that are missing or not text are left
    /// out.
    pub(crate) fn texts(&self, commits: &[(&str, &str)]) -> HashMap<(String, String), String> {
        // A name with a newline would be read as two.
        let commits: Vec<_> = commits.iter().filter(|(_, name)| !name.contains('\n')).collect();
        let asked: String = commits.iter().map(|(id, name)| format!("{id}:{name}\n")).collect();
        let Some(answer) = run(&self.root, &["cat-file", "--batch"], Some(asked)) else {
            return HashMap::new();
        };
        let mut texts = HashMap::new();
        let mut rest = &answer[..];
        for (id, name) in commits {
            let Some(end) = memchr::memchr(b'\n', rest) else { break };
            let header = String::from_utf8_lossy(&rest[..end]).into_owned();
            rest = &rest[end + 1..];
            let mut words = header.rsplit(' ');
            let length: Option<usize> = words.next().and_then(|word| word.parse().ok());
            let Some(length) = length.filter(|_| words.next() == Some("blob")) else { continue };
            let Some(content) = rest.get(..length) else { break };
            if let Ok(text) = std::str::from_utf8(content) {
                texts.insert(((*id).to_owned(), (*name).to_owned()), text.to_owned());
            }
            rest = rest.get(length + 1..).unwrap_or_default();
        }
        texts
    }
}

/// Parses the output of `git blame --porcelain`.
fn parse_blame(output: &[u8]) -> Option<CommittedLines> {
    let mut blame = CommittedLines::default();
    let mut by_id: HashMap<(String, String), usize> = HashMap::new();
    let mut known: HashMap<String, GitCommitInfo> = HashMap::new();
    let mut current: Option<(String, usize)> = None;
    for line in output.split_inclusive(|byte| *byte == b'\n') {
        if let Some(text) = line.strip_prefix(b"\t") {
            let (id, line_no) = current.take()?;
            let commit = known.get(&id)?;
            let at = *by_id.entry((id, commit.file.clone())).or_insert_with(|| {
                blame.commits.push(commit.clone());
                blame.commits.len() - 1
            });
            blame.lines.push((at, line_no));
            blame.text.push_str(&String::from_utf8_lossy(text));
            continue;
        }
        let line = String::from_utf8_lossy(line);
        let line = line.trim_end_matches('\n');
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match &current {
            None => {
                let line_no: usize = value.split(' ').next()?.parse().ok()?;
                current = Some((word.to_owned(), line_no.checked_sub(1)?));
                known.entry(word.to_owned()).or_insert_with(|| GitCommitInfo {
                    id: word.to_owned(),
                    author: String::new(),
                    at: 0,
                    summary: String::new(),
                    file: String::new(),
                    previous_file: None,
                });
            }
            Some((id, _)) => {
                let commit = known.get_mut(id)?;
                match word {
                    "author" => value.clone_into(&mut commit.author),
                    "committer-time" => commit.at = value.parse::<Millis>().ok()?.checked_mul(1000)?,
                    "summary" => value.clone_into(&mut commit.summary),
                    "filename" => commit.file = unquoted(value),
                    "previous" => {
                        commit.previous_file = value.split_once(' ').map(|(_, name)| unquoted(name));
                    }
                    _ => {}
                }
            }
        }
    }
    Some(blame)
}

/// Returns a name without the quotes that git puts around one with special characters. With
/// `core.quotePath=false`, only `"`, `\` and control characters are escaped.
fn unquoted(name: &str) -> String {
    let Some(inner) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return name.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(first @ b'0'..=b'3') => {
                let digit = |byte: Option<u8>| byte.map_or(0, |byte| u32::from(byte.saturating_sub(b'0')));
                let code = u32::from(first - b'0') * 64 + digit(rest.next()) * 8 + digit(rest.next());
                bytes.push(u8::try_from(code).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Settings that name programs or files, switched off.
const SAFE_SETTINGS: &[&str] = &[
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.quotePath=false",
    "core.attributesFile=/dev/null",
    "log.showSignature=false",
    "blame.ignoreRevsFile=",
    "blame.markIgnoredLines=false",
    "blame.markUnblamableLines=false",
    "blame.showRoot=true",
    "protocol.allow=never",
];

/// Variables that would make git use another repository, or start a program.
const UNSAFE_VARIABLES: &[&str] = &[
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_EXTERNAL_DIFF",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_TRACE",
    "GIT_LITERAL_PATHSPECS",
];

/// Runs git in a folder, and returns its output. `None` if it fails.
fn run(dir: &Path, arguments: &[&str], input: Option<String>) -> Option<Vec<u8>> {
    let mut command = Command::new("git");
    command.arg("--no-pager").arg("--literal-pathspecs").arg("-C").arg(dir);
    for setting in SAFE_SETTINGS {
        command.args([OsStr::new("-c"), OsStr::new(setting)]);
    }
    for variable in UNSAFE_VARIABLES {
        command.env_remove(variable);
    }
    command
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    // Git may write before it has read all of its input, so both happen at the same time.
    let stdin = child.stdin.take();
    let writer = std::thread::spawn(move || {
        if let (Some(mut stdin), Some(input)) = (stdin, input) {
            let _ = stdin.write_all(input.as_bytes());
        }
    });
    let mut output = Vec::new();
    let read = child.stdout.take()?.take(MAX_OUTPUT).read_to_end(&mut output);
    if output.len() as u64 >= MAX_OUTPUT {
        let _ = child.kill();
    }
    let status = child.wait();
    let _ = writer.join();
    (read.is_ok() && status.is_ok_and(|status| status.success())).then_some(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_blame_is_parsed() {
        let output = "\
aaaa 3 1 2
author Ada
committer-time 1700000000
summary First
filename \"a \\\"b\\\" \\303\\251\"
\tone
aaaa 4 2
\t\ttwo
bbbb 1 3 1
author Bob
committer-time 1700000001
summary
previous aaaa old name
filename new
\t最
";
        let blame = parse_blame(output.as_bytes()).unwrap();
        assert_eq!(blame.text, "one\n\ttwo\n最\n");
        assert_eq!(blame.lines, [(0, 2), (0, 3), (1, 0)]);
        assert_eq!(blame.commits[0].file, "a \"b\" é");
        assert_eq!((&*blame.commits[1].author, blame.commits[1].at), ("Bob", 1_700_000_001_000));
        assert_eq!(blame.commits[1].previous_file.as_deref(), Some("old name"));
        assert_eq!(parse_blame(b"broken\n").map(|blame| blame.lines.len()), None);
    }
}
