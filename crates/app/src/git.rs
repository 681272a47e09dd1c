//! Git, run as a program, for the history of one file.
//!
//! A repository is untrusted: its configuration can name programs. Commands run without hooks, pagers,
//! filters, external diffs, prompts and the network, and read commits only: a file of the working tree might
//! pass through a filter. It can also name pipes, on which git waits for ever, so there is a time limit.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use threadline_entry::Millis;
use threadline_evidence::FileContent;

/// Runs git until a call exceeds the time limit.
#[derive(Debug)]
pub(crate) struct GitRunner {
    limit: Duration,
    is_stopped: AtomicBool,
}

/// A file in a git repository.
#[derive(Clone, Debug)]
pub(crate) struct GitFile<'g> {
    git: &'g GitRunner,
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

/// The time after which git is ended.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(30);

impl<'g> GitFile<'g> {
    /// Finds the repository of a file. `None` if there is none, or git is not installed, refuses or does not
    /// answer.
    pub(crate) fn find(git: &'g GitRunner, file: &Path) -> Option<Self> {
        let dir = file.parent()?;
        let found = git.run(dir, &["rev-parse", "--show-toplevel", "--show-prefix"], None)?;
        let found = String::from_utf8(found).ok()?;
        let mut found = found.split('\n');
        let (root, prefix) = (PathBuf::from(found.next()?), found.next()?);
        let name = format!("{prefix}{}", file.file_name()?.to_str()?);
        let listed = git.run(dir, &["worktree", "list", "--porcelain", "-z"], None).unwrap_or_default();
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let mut worktrees: Vec<PathBuf> =
            listed.split('\0').filter_map(|line| line.strip_prefix("worktree ")).map(PathBuf::from).collect();
        if !worktrees.contains(&root) {
            worktrees.push(root.clone());
        }
        Some(Self { git, root, name, worktrees })
    }

    /// Returns the commits of all lines in the current commit; `None` if it does not contain the file.
    pub(crate) fn committed_lines(&self) -> Option<CommittedLines> {
        let arguments = ["blame", "--porcelain", "--no-textconv", "HEAD", "--", &self.name];
        parse_blame(&self.git.run(&self.root, &arguments, None)?)
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
        let arguments = [&arguments[..], &[&self.name]].concat();
        let output = self.git.run(&self.root, &arguments, None).unwrap_or_default();
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
        let Some(answer) = self.git.run(&self.root, &["cat-file", "--batch"], Some(asked)) else {
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

/// The working tree of a repository, for the contents of many files.
pub(crate) struct GitTree<'g> {
    pub(crate) git: &'g GitRunner,
    /// The folder of the working tree.
    pub(crate) root: &'g Path,
}

/// Settings and attributes with which a file of the working tree differs from its blob.
const CONVERTING_ATTRIBUTES: &[&str] = &["text", "eol", "filter", "ident", "working-tree-encoding", "crlf"];

impl GitTree<'_> {
    /// Returns the folder of the working tree that contains `dir`.
    pub(crate) fn root(git: &GitRunner, dir: &Path) -> Option<PathBuf> {
        let found = git.run(dir, &["rev-parse", "--show-toplevel"], None)?;
        let root = String::from_utf8(found).ok()?;
        Some(PathBuf::from(root.strip_suffix('\n')?))
    }

    /// Returns the contents of some files in a commit, by their names below the root, as they would be in
    /// the working tree: [`FileContent::Absent`] if the commit has no such file, `None` where the content in
    /// the working tree may be another one.
    pub(crate) fn files(&self, commit: &str, names: &[&str]) -> Option<Vec<Option<FileContent>>> {
        let is_hash = commit.len() >= 4 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let listed = is_hash.then(|| self.run(&["ls-tree", "-r", "-z", commit], None)).flatten()?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let objects: HashMap<&str, (&str, &str)> = listed.split('\0').filter_map(tree_entry).collect();
        let converted = self.converted(names)?;
        let asked: String = names
            .iter()
            .filter_map(|name| objects.get(name))
            .map(|(_, object)| format!("{object}\n"))
            .collect();
        let blobs = self.run(&["cat-file", "--batch"], Some(asked))?;
        let mut blobs = BlobReader(&blobs);
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            let Some((mode, _)) = objects.get(name) else {
                found.push(Some(FileContent::Absent));
                continue;
            };
            let blob = blobs.next()?;
            found.push(match *mode {
                "120000" => std::str::from_utf8(blob).ok().map(|target| FileContent::Link(target.to_owned())),
                "100644" | "100755" if converted.contains(name) => None,
                "100644" | "100755" => Some(FileContent::bytes(blob)),
                _ => None,
            });
        }
        Some(found)
    }

    /// Returns the names of files that git converts when it writes them, or may convert.
    fn converted<'n>(&self, names: &[&'n str]) -> Option<HashSet<&'n str>> {
        let autocrlf = self.run(&["config", "--get", "core.autocrlf"], None).unwrap_or_default();
        if autocrlf.starts_with(b"true") || autocrlf.starts_with(b"input") {
            return Some(names.iter().copied().collect());
        }
        let asked: String = names.iter().map(|name| format!("{name}\0")).collect();
        let arguments = [&["check-attr", "-z", "--stdin"][..], CONVERTING_ATTRIBUTES].concat();
        let answer = self.run(&arguments, Some(asked))?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let fields: Vec<&str> = answer.split('\0').collect();
        let set = |fields: &[&str]| match fields {
            [name, _, value] if !matches!(*value, "unspecified" | "unset") => Some((*name).to_owned()),
            _ => None,
        };
        let converted: HashSet<String> = fields.chunks(3).filter_map(set).collect();
        Some(names.iter().copied().filter(|name| converted.contains(*name)).collect())
    }

    /// Returns which of some files git ignores.
    pub(crate) fn ignored(&self, names: &[&str]) -> Option<HashSet<String>> {
        if names.is_empty() {
            return Some(HashSet::new());
        }
        let asked: String = names.iter().map(|name| format!("{name}\0")).collect();
        let arguments = ["check-ignore", "-z", "--stdin", "--verbose", "--non-matching"];
        // The exit status is 1 if none is ignored.
        let (answer, status) = self.git.run_with_status(self.root, &arguments, Some(asked))?;
        status.code().filter(|code| matches!(code, 0 | 1))?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let fields: Vec<&str> = answer.split('\0').collect();
        let is_ignored = |fields: &[&str]| match fields {
            [_, _, pattern, name] if !pattern.is_empty() && !pattern.starts_with('!') => {
                Some((*name).to_owned())
            }
            _ => None,
        };
        Some(fields.chunks(4).filter_map(is_ignored).collect())
    }

    fn run(&self, arguments: &[&str], input: Option<String>) -> Option<Vec<u8>> {
        self.git.run(self.root, arguments, input)
    }
}

/// Returns the name, the mode and the object of an entry of `git ls-tree`.
fn tree_entry(line: &str) -> Option<(&str, (&str, &str))> {
    let (entry, name) = line.split_once('\t')?;
    let mut words = entry.split(' ');
    let (mode, _, object) = (words.next()?, words.next()?, words.next()?);
    Some((name, (mode, object)))
}

/// Reads the answers of `git cat-file --batch`.
struct BlobReader<'b>(&'b [u8]);

impl<'b> BlobReader<'b> {
    fn next(&mut self) -> Option<&'b [u8]> {
        let end = memchr::memchr(b'\n', self.0)?;
        let header = std::str::from_utf8(&self.0[..end]).ok()?;
        let length: usize = header.rsplit(' ').next()?.parse().ok()?;
        let blob = self.0.get(end + 1..end + 1 + length)?;
        self.0 = self.0.get(end + 2 + length..)?;
        Some(blob)
    }
}

/// Reads objects of the repository of a folder, by id. Those that are missing are left out.
pub(crate) fn read_objects(git: &GitRunner, folder: &Path, ids: &[String]) -> HashMap<String, Vec<u8>> {
    let asked: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let mut objects = HashMap::new();
    let Some(answer) = git.run(folder, &["cat-file", "--batch"], Some(asked)) else { return objects };
    let mut rest = &answer[..];
    for id in ids {
        let Some(end) = memchr::memchr(b'\n', rest) else { break };
        let header = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 1..];
        let length = header.rsplit(' ').next().and_then(|word| word.parse::<usize>().ok());
        let Some(length) = length else { continue };
        let Some(content) = rest.get(..length) else { break };
        if header.contains(" blob ") {
            objects.insert(id.clone(), content.to_vec());
        }
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    objects
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
    "mailmap.file=",
    "mailmap.blob=",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
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

impl GitRunner {
    pub(crate) fn new(limit: Duration) -> Self {
        Self { limit, is_stopped: AtomicBool::new(false) }
    }

    /// Returns whether git was ended because it did not answer in time.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Runs git in a folder, and returns its output. `None` if it fails, or if this or an earlier call did
    /// not end in time.
    fn run(&self, dir: &Path, arguments: &[&str], input: Option<String>) -> Option<Vec<u8>> {
        let (output, status) = self.run_with_status(dir, arguments, input)?;
        status.success().then_some(output)
    }

    /// Runs git in a folder, and returns its output and its exit status, as [`GitRunner::run`] does.
    fn run_with_status(
        &self,
        dir: &Path,
        arguments: &[&str],
        input: Option<String>,
    ) -> Option<(Vec<u8>, ExitStatus)> {
        if self.is_stopped() {
            return None;
        }
        let mut child = command(dir, arguments, input.is_some()).spawn().ok()?;
        // Git may write before it has read all of its input, so both happen at the same time.
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        std::thread::spawn(move || {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                let _ = stdin.write_all(input.as_bytes());
            }
        });
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            let mut output = Vec::new();
            let read = stdout.map(|stdout| stdout.take(MAX_OUTPUT).read_to_end(&mut output));
            let _ = sender.send(read.is_some_and(|read| read.is_ok()).then_some(output));
        });
        let end = Instant::now() + self.limit;
        let output = receiver.recv_timeout(self.limit);
        let is_complete = |output: &Vec<u8>| (output.len() as u64) < MAX_OUTPUT;
        if matches!(&output, Ok(output) if output.as_ref().is_none_or(|output| !is_complete(output))) {
            kill(&mut child);
            return None;
        }
        let status = match &output {
            Ok(_) => wait_until(&mut child, end),
            Err(_) => None,
        };
        let Some(status) = status else {
            self.is_stopped.store(true, Ordering::Relaxed);
            kill(&mut child);
            return None;
        };
        Some((output.ok().flatten()?, status))
    }
}

fn command(dir: &Path, arguments: &[&str], has_input: bool) -> Command {
    let mut command = Command::new("git");
    command.arg("--no-pager").arg("--literal-pathspecs").arg("-C").arg(dir);
    for setting in SAFE_SETTINGS {
        command.args([OsStr::new("-c"), OsStr::new(setting)]);
    }
    for variable in UNSAFE_VARIABLES {
        command.env_remove(variable);
    }
    // Programs that git starts are ended with it.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command
        .args(arguments)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("LC_ALL", "C")
        .stdin(if has_input { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// Waits for a process that has closed its output, so it is about to end. The standard library cannot wait
/// with a time limit, so the process is asked repeatedly.
fn wait_until(child: &mut Child, end: Instant) -> Option<ExitStatus> {
    const PAUSE: Duration = Duration::from_millis(1);
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < end => std::thread::sleep(PAUSE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Ends a process and those that it started.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
    let _ = child.wait();
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
    /// Creates a repository with a commit of `a`. `None` if git is not installed.
    fn repository(dir: &Path) -> Option<()> {
        std::fs::write(dir.join("a"), "one\n").unwrap();
        let user = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
        for arguments in [&["init", "-q"][..], &["add", "a"], &["commit", "-q", "-m", "First"]] {
            let mut command = Command::new("git");
            command.current_dir(dir).args(user).args(arguments).env("GIT_CONFIG_GLOBAL", "/dev/null");
            command.status().ok().filter(std::process::ExitStatus::success)?;
        }
        Some(())
    }

    fn set(dir: &Path, name: &str, value: &Path) {
        let status = Command::new("git").current_dir(dir).args(["config", name]).arg(value).status();
        assert!(status.unwrap().success());
    }

    #[cfg(unix)]
    fn pipe(path: &Path) {
        assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[cfg(unix)]
    #[test]
    fn a_repository_that_names_a_pipe_ends_the_calls_of_git() {
        let dir = tempfile::tempdir().unwrap();
        let Some(()) = repository(dir.path()) else { return };
        pipe(&dir.path().join("pipe"));
        set(dir.path(), "include.path", &dir.path().join("pipe"));
        let git = GitRunner::new(Duration::from_millis(100));
        assert!(GitFile::find(&git, &dir.path().join("a")).is_none());
        assert!(git.is_stopped());
        // A second call would wait again.
        assert_eq!(git.run(dir.path(), &["--version"], None), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_map_of_authors_that_the_configuration_names_is_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let Some(()) = repository(dir.path()) else { return };
        pipe(&dir.path().join("pipe"));
        set(dir.path(), "mailmap.file", &dir.path().join("pipe"));
        let git = GitRunner::new(TIME_LIMIT);
        let file = GitFile::find(&git, &dir.path().join("a")).unwrap();
        let lines = file.committed_lines().unwrap();
        assert_eq!(lines.commits[0].author, "Ada");
        std::fs::remove_file(dir.path().join("pipe")).unwrap();
        std::fs::write(dir.path().join("pipe"), "Other <other@example.com> <ada@example.com>\n").unwrap();
        assert_eq!(file.committed_lines().unwrap().commits[0].author, "Ada");
    }

    #[test]
    fn a_bare_repository_in_a_folder_is_not_used() {
        let dir = tempfile::tempdir().unwrap();
        let Some(()) = repository(dir.path()) else { return };
        let bare = dir.path().join("sub");
        let status = Command::new("git").args(["clone", "-q", "--bare"]).arg(dir.path()).arg(&bare).status();
        assert!(status.unwrap().success());
        set(&bare, "core.bare", Path::new("false"));
        set(&bare, "core.worktree", dir.path());
        let git = GitRunner::new(TIME_LIMIT);
        assert!(GitFile::find(&git, &bare.join("HEAD")).is_none());
        assert!(GitFile::find(&git, &dir.path().join("a")).is_some());
    }
}
