//! Blame: which session, turn and prompt wrote each line of a file.
//!
//! The logged edits of the file are replayed in order (see [`LineHistory`]), up to its present text. Git adds
//! the commit of each line. Where the replay does not reach, because a branch was switched or the edits were
//! made in another working tree of the repository, the text in the line's commit is compared with the replay
//! at the time of the commit.

mod edits;
mod object;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use threadline_entry::{Millis, is_absolute_path, worktree_of};
use threadline_evidence::{LineHistory, LineOrigin, MAX_CANDIDATES, UnknownReason};
use threadline_store::{SessionLogs, read_regular};

pub use edits::LoggedEdit;
use edits::{EditTexts, FoundEdits, load_edits, sessions_with_edits};

use crate::config::App;
use crate::error::AppError;
pub use crate::git::GitCommitInfo;
use crate::git::{CommittedLines, GitFile, GitRunner, TIME_LIMIT};

/// Why the lines of a file could not be assigned.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlameError {
    /// The path is absolute on another system, as in a log from another machine.
    #[error("{} is not on this machine", .path.display())]
    OtherMachine {
        /// The path as the log names it.
        path: PathBuf,
    },
    /// The path is not a file.
    #[error("not a file: {}", .path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No session edited the file.
    #[error("no session edited {}", .path.display())]
    NotEdited {
        /// The file.
        path: PathBuf,
    },
    /// The file is not text.
    #[error("not a text file: {}", .path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// The file is too large.
    #[error("{} is larger than 32 MiB", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// Something else failed.
    #[error(transparent)]
    App(#[from] AppError),
}

/// The maximum size of a file.
const MAX_SIZE: u64 = 32 << 20;

/// The maximum number of commits to compare with the replay.
const MAX_COMMITS: usize = 500;

/// Options of [`App::blame`].
#[derive(Clone, Copy, Debug, Default)]
pub struct BlameOptions {
    /// Use the logs only, not git.
    pub without_git: bool,
    /// Only read the file if a session edited it.
    pub only_edited: bool,
}

/// The lines of a file with their origins.
#[derive(Debug)]
pub struct FileBlame {
    /// The absolute path.
    pub path: PathBuf,
    /// The lines of the present text.
    pub lines: Vec<BlamedLine>,
    /// The edits of the file by sessions, in the order of their times, including those in other working
    /// trees and under earlier names.
    pub edits: Vec<LoggedEdit>,
    /// The commits that wrote the lines.
    pub commits: Vec<GitCommitInfo>,
    /// Whether the file is in a git repository.
    pub is_in_git: bool,
    /// Logs that could not be read, and git if it did not answer.
    pub unread: Vec<AppError>,
}

/// A line of a file with its origin.
#[derive(Clone, Debug)]
pub struct BlamedLine {
    /// The text, without the line end.
    pub text: String,
    /// The origin. Edits are indexes into [`FileBlame::edits`].
    pub origin: LineOrigin,
    /// The commit that wrote it, as an index into [`FileBlame::commits`]; `None` if it is not committed, or
    /// if it is unclear which line of the current commit it is.
    pub commit: Option<usize>,
}

/// A turn that wrote lines of a file.
#[derive(Clone, Copy, Debug)]
pub struct BlamedTurn {
    /// The first edit of the file in this turn, as an index into [`FileBlame::edits`].
    pub first_edit: usize,
    /// The number of lines.
    pub n_lines: usize,
}

impl FileBlame {
    /// Returns the turns that wrote some lines, in the order of their first edits.
    pub fn turns(&self, lines: Range<usize>) -> Vec<BlamedTurn> {
        // By edit: the first edit of the same turn.
        let mut first_edits: Vec<usize> = Vec::with_capacity(self.edits.len());
        let mut known: HashMap<(&str, usize), usize> = HashMap::new();
        for (at, edit) in self.edits.iter().enumerate() {
            let first = edit.turn.map(|turn| *known.entry((&*edit.session.id, turn)).or_insert(at));
            first_edits.push(first.unwrap_or(at));
        }
        let mut n_lines: BTreeMap<usize, usize> = BTreeMap::new();
        for line in self.lines.get(lines).unwrap_or_default() {
            if let LineOrigin::Edit { edit, .. } = line.origin {
                *n_lines.entry(first_edits[edit]).or_default() += 1;
            }
        }
        n_lines.into_iter().map(|(first_edit, n_lines)| BlamedTurn { first_edit, n_lines }).collect()
    }
}

/// The edits of one file by sessions.
#[derive(Debug)]
pub struct FileEdits {
    /// The absolute path, or the path as it is if it is absolute on another system only.
    pub path: PathBuf,
    /// The edits in the order of their times.
    pub edits: Vec<LoggedEdit>,
    /// Logs that could not be read, and git if it did not answer.
    pub unread: Vec<AppError>,
}

impl FileEdits {
    /// Returns whether the path is absolute on another system only, so the file is not on this machine.
    pub fn is_on_other_machine(&self) -> bool {
        !self.path.is_absolute()
    }
}

impl App {
    /// Returns the session, turn and prompt that wrote each line of a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is not text, or is on another machine. [`FileBlame::unread`] contains the
    /// errors of logs.
    pub fn blame(&self, file: &Path, options: BlameOptions) -> Result<FileBlame, BlameError> {
        let path = self.absolute(file)?;
        if !path.is_absolute() {
            return Err(BlameError::OtherMachine { path });
        }
        if !options.only_edited {
            check_file(&path)?;
        }
        let runner = GitRunner::new(TIME_LIMIT);
        let (git, sessions) = rayon::join(
            || if options.without_git { None } else { GitBlame::of(&runner, &path) },
            || self.store().session_logs(),
        );
        let names = FileNames::new(&path, git.as_ref());
        let mut unread: Vec<AppError> = sessions.errors.into_iter().map(AppError::from).collect();
        let found = self.edits_of(&sessions.found, &names, EditTexts::Keep, &mut unread);
        if options.only_edited && found.edits.is_empty() {
            return Err(BlameError::NotEdited { path });
        }
        let text = read_text(&path)?;
        let replay = Replay { edits: &found.edits, names: &names, git: git.as_ref() };
        let origins = replay.origins(&text);
        let committed = git.as_ref().map(|git| git.commits_of(&text)).unwrap_or_default();
        let lines = text.lines().zip(origins).enumerate().map(|(at, (line, origin))| BlamedLine {
            text: line.to_owned(),
            origin: narrow_to_turn(origin, &found.edits),
            commit: committed.get(at).copied().flatten(),
        });
        let lines = lines.collect();
        let is_in_git = git.is_some();
        unread.extend(git_error(&runner, &path));
        let commits = git.map(|git| git.lines.commits).unwrap_or_default();
        Ok(FileBlame { path, lines, edits: found.edits, commits, is_in_git, unread })
    }

    /// Returns the edits of a file by all sessions, without its texts. The file need not exist any more, and
    /// its path may be that of another machine, in the notation of any system.
    ///
    /// # Errors
    ///
    /// If the path cannot be resolved. [`FileEdits::unread`] contains the errors of logs.
    pub fn file_edits(&self, file: &Path) -> Result<FileEdits, BlameError> {
        let path = self.absolute(file)?;
        let runner = GitRunner::new(TIME_LIMIT);
        let (git, sessions) = rayon::join(|| GitBlame::of(&runner, &path), || self.store().session_logs());
        let names = FileNames::new(&path, git.as_ref());
        let mut unread: Vec<AppError> = sessions.errors.into_iter().map(AppError::from).collect();
        unread.extend(git_error(&runner, &path));
        let found = self.edits_of(&sessions.found, &names, EditTexts::Drop, &mut unread);
        Ok(FileEdits { path, edits: found.edits, unread })
    }

    fn edits_of(
        &self,
        sessions: &[SessionLogs],
        names: &FileNames,
        texts: EditTexts,
        unread: &mut Vec<AppError>,
    ) -> FoundEdits {
        let with_edits = sessions_with_edits(sessions, &names.suffixes(), unread);
        let mut found = load_edits(self, &with_edits, &|path| names.stream(path).is_some(), texts);
        found.edits.retain(|edit| names.is_valid_at(&edit.edit.path, edit.edit.at));
        unread.append(&mut found.unread);
        found
    }

    /// Returns the absolute path of a file, with links in its folder resolved. A path that is absolute on
    /// another system only is returned as it is, unless a file here has this name.
    fn absolute(&self, file: &Path) -> Result<PathBuf, AppError> {
        let base = self.config().current_dir.as_deref().unwrap_or(Path::new("/"));
        let is_foreign = !file.is_absolute() && file.to_str().is_some_and(is_absolute_path);
        if is_foreign && !base.join(file).exists() {
            return Ok(file.to_owned());
        }
        let path = std::path::absolute(base.join(file))?;
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return Ok(path) };
        Ok(std::fs::canonicalize(dir).map(|dir| dir.join(name)).unwrap_or(path))
    }
}

fn check_file(path: &Path) -> Result<(), BlameError> {
    let metadata = std::fs::metadata(path).map_err(AppError::read(path))?;
    if !metadata.is_file() {
        return Err(BlameError::NotAFile { path: path.to_owned() });
    }
    match metadata.len() {
        0..=MAX_SIZE => Ok(()),
        _ => Err(BlameError::TooLarge { path: path.to_owned() }),
    }
}

fn read_text(path: &Path) -> Result<String, BlameError> {
    check_file(path)?;
    let bytes = read_regular(path).map_err(AppError::read(path))?;
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(BlameError::NotText { path: path.to_owned() }),
    }
}

/// Returns the error to report if git did not answer.
fn git_error(runner: &GitRunner, file: &Path) -> Option<AppError> {
    runner.is_stopped().then(|| AppError::GitTimeout { file: file.to_owned(), limit: TIME_LIMIT })
}

/// The commits of a file.
struct GitBlame<'g> {
    file: GitFile<'g>,
    lines: CommittedLines,
    /// Earlier names of the file, and when it lost them.
    renames: Vec<(String, Millis)>,
}

impl<'g> GitBlame<'g> {
    fn of(git: &'g GitRunner, path: &Path) -> Option<Self> {
        let file = Some(path).filter(|path| path.is_absolute()).and_then(|path| GitFile::find(git, path))?;
        let lines = file.committed_lines().unwrap_or_default();
        let is_old = |commit: &GitCommitInfo| {
            commit.file != file.name || commit.previous_file.as_ref().is_some_and(|name| *name != file.name)
        };
        // A rename without changes is no commit of any line, so it must be asked for.
        let renames = if lines.commits.iter().any(is_old) { file.renames() } else { Vec::new() };
        Some(Self { file, lines, renames })
    }

    /// Returns the commit of each line of the present text; `None` for lines that are not committed.
    fn commits_of(&self, text: &str) -> Vec<Option<usize>> {
        self.committed_lines_of(text).into_iter().map(|line| Some(self.lines.lines[line?].0)).collect()
    }

    /// Returns the line of the current commit for each line of the present text.
    fn committed_lines_of(&self, text: &str) -> Vec<Option<usize>> {
        threadline_evidence::same_lines(&self.lines.text, text)
    }
}

/// The paths under which sessions may have edited a file.
struct FileNames {
    /// The absolute path.
    path: PathBuf,
    /// The names below the root of a working tree, the present one first, and until when each is valid.
    names: Vec<(String, Option<Millis>)>,
    /// The folders of working trees, the file's own first.
    roots: Vec<String>,
}

impl FileNames {
    fn new(path: &Path, git: Option<&GitBlame<'_>>) -> Self {
        let mut names = Vec::new();
        let mut roots = Vec::new();
        if let Some(git) = git {
            names.push((git.file.name.clone(), None));
            names.extend(git.renames.iter().map(|(name, until)| (name.clone(), Some(*until))));
            roots.push(git.file.root.to_string_lossy().into_owned());
            let others = git.file.worktrees.iter().filter(|root| **root != git.file.root);
            roots.extend(others.map(|root| root.to_string_lossy().into_owned()));
        }
        Self { path: path.to_owned(), names, roots }
    }

    /// Returns the ends of all paths: the names below the root of a working tree, or the name of the file.
    /// The folder of the file may have been reached through a link with another name.
    fn suffixes(&self) -> Vec<String> {
        if !self.names.is_empty() {
            let names: BTreeSet<&String> = self.names.iter().map(|(name, _)| name).collect();
            return names.into_iter().cloned().collect();
        }
        let name = match self.path.is_absolute() {
            true => self.path.file_name().and_then(|name| name.to_str()),
            false => self.path.to_str().and_then(|path| path.rsplit(['/', '\\']).next()),
        };
        name.map(str::to_owned).into_iter().collect()
    }

    /// Returns the folder and the name below it, if a path is one of the names of the file.
    fn split<'p>(&self, path: &'p str) -> Option<(&'p str, &'p str)> {
        let is_name = |name: &str| self.names.iter().any(|(known, _)| known == name);
        for root in &self.roots {
            let Some(name) = path.strip_prefix(&**root).and_then(|path| path.strip_prefix('/')) else {
                continue;
            };
            if is_name(name) {
                return Some((&path[..root.len()], name));
            }
        }
        // A working tree that was removed is recognised by its path.
        let (repository, tree) = worktree_of(path)?;
        let name = path[tree.len()..].strip_prefix('/')?;
        let is_own = self.roots.iter().any(|root| root == repository) && is_name(name);
        is_own.then_some((tree, name))
    }

    /// Returns the working tree that an edit of this path was made in, with the file's own as an empty name.
    /// `None` if it is another file.
    fn stream<'p>(&self, path: &'p str) -> Option<&'p str> {
        if Path::new(path) == self.path {
            return Some("");
        }
        if let Some((root, _)) = self.split(path) {
            return Some(if self.roots.first().is_some_and(|own| own == root) { "" } else { root });
        }
        // Without git, working trees are recognised by their paths alone.
        if self.names.is_empty() && Some(&*repository_path(path)) == self.repository_path().as_deref() {
            return Some(worktree_of(path).map_or("repository", |(_, tree)| tree));
        }
        // The folder may have been reached through a link.
        let path_name = Path::new(path).file_name()?;
        let same_name = Some(path_name) == self.path.file_name();
        let dir = Path::new(path).parent().filter(|dir| same_name && dir.is_absolute())?;
        let dir = std::fs::canonicalize(dir).ok()?;
        (Some(&*dir) == self.path.parent()).then_some("")
    }

    /// Returns the path that the file has in its repository, if it is in a working tree.
    fn repository_path(&self) -> Option<Cow<'_, str>> {
        self.path.to_str().map(repository_path)
    }

    /// Returns whether the file had this path at that time.
    fn is_valid_at(&self, path: &str, at: Option<Millis>) -> bool {
        let Some((_, name)) = self.split(path) else { return true };
        let until = self.names.iter().find(|(known, _)| known == name).and_then(|(_, until)| *until);
        until.is_none_or(|until| at.is_some_and(|at| at <= until))
    }
}

/// Returns the path that a file in a working tree has in the repository; other paths as they are.
fn repository_path(path: &str) -> Cow<'_, str> {
    match worktree_of(path) {
        Some((repository, tree)) => Cow::Owned(format!("{repository}{}", &path[tree.len()..])),
        None => Cow::Borrowed(path),
    }
}

/// The replay of all edits of a file.
struct Replay<'a> {
    edits: &'a [LoggedEdit],
    names: &'a FileNames,
    git: Option<&'a GitBlame<'a>>,
}

/// The origins of the lines of a file in a commit, by commit.
type CommitOrigins = HashMap<usize, Vec<LineOrigin>>;

impl Replay<'_> {
    /// Returns the origin of each line of the present text.
    fn origins(&self, text: &str) -> Vec<LineOrigin> {
        let mut streams: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, edit) in self.edits.iter().enumerate() {
            if let Some(stream) = self.names.stream(&edit.edit.path) {
                streams.entry(stream).or_default().push(number);
            }
        }
        let mut own = LineHistory::new();
        for &number in streams.get("").into_iter().flatten() {
            own.edit(number, &self.edits[number].edit);
        }
        let mut origins = own.origins_in(text);
        let Some(git) = self.git else { return origins };
        let lines = git.committed_lines_of(text);
        let commit_of = |at: usize| {
            let (commit, line) = git.lines.lines[(*lines.get(at)?)?];
            Some((commit, line, git.lines.commits[commit].at))
        };
        for (at, origin) in origins.iter_mut().enumerate() {
            if let (LineOrigin::Edit { edit, .. }, Some((_, _, committed))) = (&*origin, commit_of(at))
                && !self.is_before(*edit, committed)
            {
                // The line was committed earlier. It may have been on another branch, or removed meanwhile.
                let candidates = [*edit].into();
                let reason = UnknownReason::Ambiguous;
                *origin = LineOrigin::Unknown { reason, candidates, is_one_of_them: false };
            }
        }
        let is_unknown = |at: &usize| matches!(origins[*at], LineOrigin::Unknown { .. });
        let unknown: BTreeSet<usize> =
            (0..origins.len()).filter(is_unknown).filter_map(|at| Some(commit_of(at)?.0)).collect();
        let by_commit = self.origins_at_commits(git, &streams, &unknown);
        for (at, origin) in origins.iter_mut().enumerate() {
            if let (LineOrigin::Unknown { .. }, Some((commit, line, committed))) = (&*origin, commit_of(at)) {
                let found = by_commit.iter().filter_map(|origins| origins.get(&commit)?.get(line));
                self.add_evidence(origin, found, committed);
            }
        }
        origins
    }

    /// Replaces an unknown origin by that of the line in its commit, if all working trees agree on it.
    fn add_evidence<'o>(
        &self,
        origin: &mut LineOrigin,
        found: impl Iterator<Item = &'o LineOrigin>,
        committed: Millis,
    ) {
        let mut possible: Vec<&LineOrigin> = Vec::new();
        for found in found {
            let is_possible = match found {
                LineOrigin::Edit { edit, .. } => self.is_before(*edit, committed),
                LineOrigin::Unknown { candidates, .. } => !candidates.is_empty(),
            };
            if is_possible && !possible.contains(&found) {
                possible.push(found);
            }
        }
        let is_edit = |origin: &&LineOrigin| matches!(origin, LineOrigin::Edit { .. });
        let candidates = match origin {
            LineOrigin::Unknown { candidates, .. } => &candidates[..],
            LineOrigin::Edit { .. } => &[],
        };
        // A later edit that may have added the line again.
        let has_later = candidates.iter().any(|&edit| !self.is_before(edit, committed));
        match possible[..] {
            [] => {}
            [only] if is_edit(&only) && !has_later => *origin = only.clone(),
            // The replay up to the present is as good as that up to the commit.
            _ if !possible.iter().any(is_edit) && !candidates.is_empty() => {}
            _ => {
                let mut all = BTreeSet::new();
                for origin in possible.into_iter().chain([&*origin]) {
                    match origin {
                        LineOrigin::Edit { edit, .. } => all.extend([*edit]),
                        LineOrigin::Unknown { candidates, .. } => all.extend(candidates.iter()),
                    }
                }
                let n_omitted = all.len().saturating_sub(MAX_CANDIDATES);
                *origin = LineOrigin::Unknown {
                    reason: UnknownReason::Ambiguous,
                    candidates: all.into_iter().skip(n_omitted).collect(),
                    is_one_of_them: false,
                };
            }
        }
    }

    /// Returns whether an edit was made before a commit. The time of a commit has no fraction of a second.
    fn is_before(&self, edit: usize, committed: Millis) -> bool {
        self.edits[edit].edit.at.is_some_and(|at| at / 1000 <= committed / 1000)
    }

    /// Returns, for each working tree, the origins of the lines in some commits.
    fn origins_at_commits(
        &self,
        git: &GitBlame<'_>,
        streams: &HashMap<&str, Vec<usize>>,
        commits: &BTreeSet<usize>,
    ) -> Vec<CommitOrigins> {
        let first = self.edits.iter().filter_map(|edit| edit.edit.at).min();
        let is_later = |at: Millis| first.is_some_and(|first| first / 1000 <= at / 1000);
        let info = |commit: usize| &git.lines.commits[commit];
        let mut wanted: Vec<usize> =
            commits.iter().copied().filter(|&commit| is_later(info(commit).at)).collect();
        wanted.sort_by_key(|&commit| info(commit).at);
        wanted.truncate(MAX_COMMITS);
        if wanted.is_empty() {
            return Vec::new();
        }
        let asked: Vec<(&str, &str)> =
            wanted.iter().map(|&commit| (&*info(commit).id, &*info(commit).file)).collect();
        let texts = git.file.texts(&asked);
        let text_of = |commit: usize| texts.get(&(info(commit).id.clone(), info(commit).file.clone()));
        let replay = |numbers: &Vec<usize>| {
            let mut history = LineHistory::new();
            let mut at_commits = CommitOrigins::new();
            let mut numbers = numbers.iter().copied().peekable();
            for &commit in &wanted {
                while let Some(number) = numbers.next_if(|&number| self.is_before(number, info(commit).at)) {
                    history.edit(number, &self.edits[number].edit);
                }
                if let Some(text) = text_of(commit) {
                    at_commits.insert(commit, history.origins_in(text));
                }
            }
            at_commits
        };
        streams.par_iter().map(|(_, numbers)| replay(numbers)).collect()
    }
}

/// Assigns an ambiguous line to its turn, if all edits that may have written it are in one turn.
fn narrow_to_turn(origin: LineOrigin, edits: &[LoggedEdit]) -> LineOrigin {
    match origin {
        LineOrigin::Unknown { ref candidates, is_one_of_them: true, .. } => match candidates[..] {
            [first, ref others @ ..]
                if others.iter().all(|&other| edits[other].is_same_turn(&edits[first])) =>
            {
                LineOrigin::Edit { edit: first, is_moved: false }
            }
            _ => origin,
        },
        _ => origin,
    }
}
