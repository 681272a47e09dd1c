//! The subcommands of git.

use super::{Call, Options, change_any};
use crate::effect::{GitSource, GitStep, ShellEffect};
use crate::path::normalize;
use crate::walk::{Argument, Content, Outcome};

/// Subcommands that change no file of the working tree.
const READING: &[&str] = &[
    "annotate",
    "archive",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "config",
    "count-objects",
    "describe",
    "diff",
    "diff-index",
    "diff-tree",
    "fetch",
    "for-each-ref",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "hash-object",
    "help",
    "init",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "maintenance",
    "merge-base",
    "name-rev",
    "notes",
    "prune",
    "push",
    "range-diff",
    "reflog",
    "remote",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "status",
    "symbolic-ref",
    "tag",
    "update-ref",
    "var",
    "verify-commit",
    "version",
    "whatchanged",
];

/// Subcommands that may change any tracked file.
const CHANGING: &[&str] = &[
    "am",
    "bisect",
    "checkout-index",
    "cherry-pick",
    "clean",
    "filter-branch",
    "lfs",
    "merge",
    "mergetool",
    "pull",
    "read-tree",
    "rebase",
    "revert",
    "sparse-checkout",
    "submodule",
    "subtree",
    "worktree",
];

/// Follows a call of git.
pub(super) fn run(call: &mut Call<'_, '_>) -> Outcome {
    let mut at = 0;
    let mut folder = call.walk.cwd().map(str::to_owned);
    while let Some(argument) = call.arguments.get(at)
        && argument.text.starts_with('-')
    {
        at += 1;
        match argument.text.as_str() {
            "-C" => {
                let path = call.arguments.get(at).and_then(Argument::literal);
                folder = path.and_then(|path| normalize(path, folder.as_deref().unwrap_or_default()));
                at += 1;
            }
            "-c" => at += 1,
            "--no-pager" | "-p" | "-P" | "--paginate" | "--no-optional-locks" | "--version" | "--help" => {}
            _ => return call.unknown_program(),
        }
    }
    let Some(subcommand) = call.arguments.get(at) else { return Outcome::unknown() };
    let arguments = &call.arguments[at + 1..];
    let name = subcommand.literal().unwrap_or_default();
    if READING.contains(&name) {
        // `git diff --output=FILE`, `git format-patch` and `git archive -o FILE` write files that no commit
        // has.
        let writes = |text: &str| text.starts_with("--output") || text == "-o";
        if name == "format-patch" || arguments.iter().any(|argument| writes(&argument.text)) {
            change_any(call.walk, arguments);
        }
        return Outcome::new(Content::unknown(), false);
    }
    let mut git = GitCall { call, folder, arguments };
    git.subcommand(name);
    Outcome::new(Content::unknown(), true)
}

struct GitCall<'c, 'w, 'a> {
    call: &'c mut Call<'w, 'a>,
    folder: Option<String>,
    arguments: &'a [Argument],
}

impl<'a> GitCall<'_, '_, 'a> {
    fn step(&mut self, step: GitStep) {
        match self.folder.clone() {
            Some(folder) => self.call.walk.step(ShellEffect::Git { folder, step }, self.call.context),
            None => change_any(self.call.walk, self.arguments),
        }
    }

    /// Returns the absolute paths of operands. `None` if one is a pattern or is not known.
    fn paths(&self, operands: &[&Argument]) -> Option<Vec<String>> {
        let folder = self.folder.as_deref()?;
        let path = |operand: &&Argument| {
            operand
                .literal()
                .filter(|path| !path.contains(['*', '?', '[']))
                .filter(|path| !path.starts_with(':'))
                .and_then(|path| normalize(path, folder))
        };
        operands.iter().map(path).collect()
    }

    /// Makes a step with paths, or one that may change any tracked file.
    fn step_with_paths(&mut self, operands: &[&Argument], step: impl FnOnce(Vec<String>) -> GitStep) {
        let step = self.paths(operands).map_or(GitStep::Other, step);
        self.step(step);
    }

    fn options(&self, with_value: &[&str]) -> Options<'a> {
        Options::parse(self.arguments, with_value)
    }

    fn subcommand(&mut self, name: &str) {
        match name {
            "commit" => {
                let with_value = [
                    "-m",
                    "-F",
                    "-C",
                    "-c",
                    "-t",
                    "--message",
                    "--file",
                    "--author",
                    "--date",
                    "--fixup",
                    "--trailer",
                ];
                let options = self.options(&with_value);
                if options.has(&["--dry-run"]) {
                    return;
                }
                let is_all = options.has(&["-a", "--all"]);
                self.step_with_paths(&options.operands, |paths| GitStep::Commit { is_all, paths });
            }
            "add" | "stage" => {
                let options = self.options(&["--chmod"]);
                if options.has(&["-n", "--dry-run"]) {
                    return;
                }
                let is_all = options.operands.is_empty() && options.has(&["-A", "--all", "-u", "--update"]);
                if options.has(&["-p", "--patch", "-i", "-e"]) {
                    return self.step(GitStep::Other);
                }
                self.step_with_paths(&options.operands, |paths| GitStep::Add { paths, is_all });
            }
            "restore" => self.restore(),
            "checkout" => self.checkout(),
            "switch" => self.switch(),
            "reset" => self.reset(),
            "stash" => self.stash(),
            "apply" => self.apply(),
            "rm" => {
                let options = self.options(&[]);
                if options.has(&["-n", "--dry-run"]) {
                    return;
                }
                let is_cached = options.has(&["--cached"]);
                self.step_with_paths(&options.operands, |paths| GitStep::Remove { paths, is_cached });
            }
            "mv" => self.rename(),
            "clean" if self.arguments.iter().any(|argument| is_dry_run(&argument.text)) => {}
            "clone" => change_any(self.call.walk, self.arguments),
            "bisect" if self.arguments.first().is_some_and(|first| first.text == "log") => {}
            "worktree" | "submodule" | "lfs"
                if self.arguments.first().is_some_and(|first| matches!(&*first.text, "list" | "status")) => {}
            name if CHANGING.contains(&name) => self.step(GitStep::Other),
            // An alias may be any command.
            _ => change_any(self.call.walk, self.arguments),
        }
    }

    fn restore(&mut self) {
        let options = self.options(&["-s", "--source", "--pathspec-from-file"]);
        if options.has(&[
            "-p",
            "--patch",
            "--pathspec-from-file",
            "-m",
            "--merge",
            "--conflict",
            "--ours",
            "--theirs",
        ]) {
            return self.step(GitStep::Other);
        }
        let in_index = options.has(&["-S", "--staged"]);
        let in_worktree = !in_index || options.has(&["-W", "--worktree"]);
        let source = match options.value(&["-s", "--source"]) {
            Some(revision) if revision.literal().is_some() => GitSource::Revision(revision.text.clone()),
            Some(_) => return self.step(GitStep::Other),
            None if in_index => GitSource::Revision("HEAD".to_owned()),
            None => GitSource::Index,
        };
        self.step_with_paths(&options.operands, |paths| GitStep::Restore {
            paths,
            source,
            in_worktree,
            in_index,
        });
    }

    fn checkout(&mut self) {
        let options = self.options(&["-b", "-B", "--orphan", "--conflict"]);
        if options.has(&[
            "-p",
            "--patch",
            "--ours",
            "--theirs",
            "-m",
            "--merge",
            "--orphan",
            "--pathspec-from-file",
        ]) {
            return self.step(GitStep::Other);
        }
        if options.has(&["-b", "-B"]) {
            return match options.operands[..] {
                // A new branch at the current commit.
                [] => {}
                [start] => self.switch_to(start, &options),
                _ => self.step(GitStep::Other),
            };
        }
        let operands = &options.operands[..];
        let (revision, paths) = match options.separator {
            Some(0) => (None, operands),
            Some(1) => (operands.first().copied(), &operands[1..]),
            Some(_) => return self.step(GitStep::Other),
            None => match operands {
                [] => return,
                [only] if is_path(&only.text) => (None, operands),
                [only] => return self.switch_to(only, &options),
                [first, rest @ ..] if is_revision(&first.text) => (Some(*first), rest),
                [first, ..] if first.text.contains(['.', '/']) && !first.text.starts_with("origin/") => {
                    (None, operands)
                }
                _ => return self.step(GitStep::Other),
            },
        };
        if paths.is_empty() {
            if let Some(revision) = revision {
                self.switch_to(revision, &options);
            }
            return;
        }
        let source = match revision.map(|revision| (revision.literal(), revision)) {
            None => GitSource::Index,
            Some((Some(revision), _)) => GitSource::Revision(revision.to_owned()),
            Some((None, _)) => return self.step(GitStep::Other),
        };
        let in_index = source != GitSource::Index;
        self.step_with_paths(paths, |paths| GitStep::Restore { paths, source, in_worktree: true, in_index });
    }

    fn switch_to(&mut self, revision: &Argument, options: &Options<'_>) {
        let Some(text) = revision.literal() else { return self.step(GitStep::Other) };
        let path = self.folder.as_deref().and_then(|folder| normalize(text, folder));
        let path = path
            .filter(|_| options.separator.is_none() && !options.has(&["-b", "-B", "-c", "-C", "--detach"]));
        let is_forced = options.has(&["-f", "--force", "--discard-changes"]);
        self.step(GitStep::Switch { revision: text.to_owned(), is_forced, path });
    }

    fn switch(&mut self) {
        let options = self.options(&["-c", "-C", "--create", "--orphan"]);
        match options.operands[..] {
            _ if options.has(&["-m", "--merge", "--orphan"]) => self.step(GitStep::Other),
            [] => {}
            [revision] => {
                let Some(text) = revision.literal() else { return self.step(GitStep::Other) };
                let is_forced = options.has(&["-f", "--force", "--discard-changes"]);
                self.step(GitStep::Switch { revision: text.to_owned(), is_forced, path: None });
            }
            _ => self.step(GitStep::Other),
        }
    }

    fn reset(&mut self) {
        let options = self.options(&[]);
        if options.has(&["--hard"]) {
            let revision = match options.operands[..] {
                [] => "HEAD",
                [revision] if revision.literal().is_some() => revision.text.as_str(),
                _ => return self.step(GitStep::Other),
            };
            let revision = revision.to_owned();
            return self.step(GitStep::Switch { revision, is_forced: true, path: None });
        }
        if options.has(&["--keep", "--merge", "-p", "--patch"]) {
            return self.step(GitStep::Other);
        }
        let operands = &options.operands[..];
        let (revision, paths) = match (options.separator, operands) {
            (Some(0), paths) => (None, paths),
            (_, [first, rest @ ..]) if options.separator == Some(1) || is_revision(&first.text) => {
                (Some(*first), rest)
            }
            (_, paths) => (None, paths),
        };
        if options.has(&["--soft"]) {
            // Only the current commit changes.
            return self.step(GitStep::Commit { is_all: false, paths: Vec::new() });
        }
        let source =
            GitSource::Revision(revision.map_or_else(|| "HEAD".to_owned(), |revision| revision.text.clone()));
        let is_dynamic = revision.is_some_and(|revision| revision.literal().is_none());
        let root = Argument { text: "/".to_owned(), ..Argument::default() };
        let paths = if paths.is_empty() { &[&root][..] } else { paths };
        if is_dynamic {
            return self.step(GitStep::Other);
        }
        self.step_with_paths(paths, |paths| GitStep::Restore {
            paths,
            source,
            in_worktree: false,
            in_index: true,
        });
    }

    fn stash(&mut self) {
        let (name, rest) = match self.arguments.split_first() {
            None => ("push", self.arguments),
            Some((first, _)) if first.text.starts_with('-') => ("push", self.arguments),
            Some((first, rest)) => (first.text.as_str(), rest),
        };
        let options = Options::parse(rest, &["-m", "--message"]);
        match name {
            "push" | "save" => {
                if options.has(&["-p", "--patch", "-S", "--staged", "-k", "--keep-index"]) {
                    return self.step(GitStep::Other);
                }
                let with_untracked = options.has(&["-u", "--include-untracked", "-a", "--all"]);
                let operands = if name == "save" { &[] } else { &options.operands[..] };
                self.step_with_paths(operands, |paths| GitStep::Stash { paths, with_untracked });
            }
            "pop" | "apply" => {
                let is_last = options.operands.is_empty() || options.operands[0].text == "stash@{0}";
                let step = match is_last && !options.has(&["--index"]) {
                    true => GitStep::StashPop { is_kept: name == "apply" },
                    false => GitStep::Other,
                };
                self.step(step);
            }
            "list" | "show" => {}
            // The stashes are others afterwards.
            _ => self.step(GitStep::Other),
        }
    }

    fn apply(&mut self) {
        let options = self.options(&["-p", "--directory", "--exclude", "--include", "-C", "--whitespace"]);
        let only_shows = ["--check", "--stat", "--numstat", "--summary", "--cached"];
        if options.has(&only_shows) && !options.has(&["--apply"]) {
            return;
        }
        let understood = ["-p", "-R", "--reverse", "-v", "--verbose", "-q", "--index", "--allow-empty"];
        let strip = match options.value(&["-p"]) {
            Some(strip) => strip.text.parse::<usize>().ok(),
            None => Some(1),
        };
        let is_input = options.operands.iter().all(|operand| operand.text == "-");
        let is_plain = is_input && !options.has_others(&understood);
        let text = self.call.input_text();
        let (Some(text), Some(strip), Some(folder), true) = (text, strip, self.folder.clone(), is_plain)
        else {
            let words = self.call.input_words();
            self.call.walk.change_any(&words);
            return change_any(self.call.walk, self.arguments);
        };
        let is_reverse = options.has(&["-R", "--reverse"]);
        self.call.walk.step(ShellEffect::Patch { text, strip, folder, is_reverse }, self.call.context);
    }

    fn rename(&mut self) {
        let options = self.options(&[]);
        if options.has(&["-n", "--dry-run"]) {
            return;
        }
        let Some(mut paths) = self.paths(&options.operands) else { return self.step(GitStep::Other) };
        let Some(to) = paths.pop() else { return };
        let is_folder = paths.len() > 1 || options.operands.last().is_some_and(|to| to.text.ends_with('/'));
        for from in paths {
            let name = crate::path::file_name(&from).unwrap_or_default().to_owned();
            let to = if is_folder { normalize(&name, &to).unwrap_or_default() } else { to.clone() };
            self.step(GitStep::Move { from, to, may_be_folder: !is_folder });
        }
    }
}

fn is_dry_run(text: &str) -> bool {
    text == "--dry-run" || text.starts_with('-') && !text.starts_with("--") && text.contains('n')
}

/// Whether the only operand of `checkout` can be no branch.
fn is_path(text: &str) -> bool {
    text == "."
        || text == ".."
        || text.starts_with("./")
        || text.starts_with("../")
        || text.ends_with('/')
        || text.starts_with('/')
}

/// Whether an operand is a revision, judged by its form.
fn is_revision(text: &str) -> bool {
    let is_hash = (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash
        || text.starts_with("HEAD")
        || text.contains(['~', '^', '@'])
        || matches!(text, "main" | "master" | "develop" | "FETCH_HEAD" | "ORIG_HEAD")
        || text.starts_with("origin/")
}
