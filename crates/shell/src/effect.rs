//! The effects of a command on files.

use crate::sed::SedScript;

/// What a command line does to files, as far as its text says.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandEffects {
    /// The steps whose effects follow from the text, in order of execution.
    pub steps: Vec<ShellStep>,
    /// What else the command may change.
    pub other_changes: OtherChanges,
    /// Whether a part of it may go on after the command has ended.
    pub in_background: bool,
}

/// One effect of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct ShellStep {
    /// What happens.
    pub effect: ShellEffect,
    /// When it is certain to have happened.
    pub condition: StepCondition,
}

/// An effect on files. Paths are absolute, with `/`, and without `.` and `..`.
#[derive(Debug, Clone, PartialEq)]
pub enum ShellEffect {
    /// The file has exactly this text afterwards.
    Write {
        /// The file.
        path: String,
        /// Its text.
        text: String,
    },
    /// The text is added at the end of the file, which is created if there is none.
    Append {
        /// The file.
        path: String,
        /// The text.
        text: String,
    },
    /// The file has exactly the text of the parts afterwards, or the parts are added at its end. The texts of
    /// files are those before the step. At least one part is a file, and none is this file.
    Compose {
        /// The file.
        path: String,
        /// The parts of the text, in order.
        parts: Vec<TextPart>,
        /// Whether the parts are added at the end.
        is_append: bool,
    },
    /// The file or folder does not exist afterwards.
    Remove {
        /// The file.
        path: String,
        /// Whether it may be a folder, which is removed with everything in it.
        is_recursive: bool,
    },
    /// The file is copied.
    Copy {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// Whether `from/` is copied into the folder `to`, if `to` is a folder.
        may_be_folder: bool,
        /// Whether the source may be a folder.
        is_recursive: bool,
    },
    /// The file or folder is renamed.
    Move {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// Whether the source is moved into the folder `to`, if `to` is a folder.
        may_be_folder: bool,
    },
    /// A symbolic link is created.
    Link {
        /// The link.
        path: String,
        /// What it refers to, as written.
        target: String,
        /// Whether the link is created in the folder `path`, if that is a folder.
        may_be_folder: bool,
    },
    /// A hard link is created.
    HardLink {
        /// The new name.
        path: String,
        /// The existing name.
        from: String,
        /// Whether the link is created in the folder `path`, if that is a folder.
        may_be_folder: bool,
    },
    /// An empty file is created, unless the file exists.
    Touch {
        /// The file.
        path: String,
    },
    /// The file has this length in bytes afterwards. Zero bytes are added if it is shorter.
    Truncate {
        /// The file.
        path: String,
        /// The length.
        length: u64,
    },
    /// The text of the file is replaced by the output of a sed script.
    Substitute {
        /// The file, which must exist.
        path: String,
        /// The script.
        script: SedScript,
    },
    /// A unified diff is applied.
    Patch {
        /// The diff.
        text: String,
        /// The number of components that are removed from the start of its paths.
        strip: usize,
        /// The folder that the paths are relative to.
        folder: String,
        /// Whether the diff is applied in reverse.
        is_reverse: bool,
    },
    /// A git command.
    Git {
        /// The folder that it runs in. The root of the repository is this folder or above it.
        folder: String,
        /// What it does.
        step: GitStep,
    },
    /// The file changes in a way that the text does not determine, or may be created or removed.
    Change {
        /// The file.
        path: String,
    },
}

impl ShellEffect {
    /// Returns the files that it changes or removes.
    pub(crate) fn paths(&self) -> Vec<&str> {
        match self {
            Self::Write { path, .. }
            | Self::Append { path, .. }
            | Self::Compose { path, .. }
            | Self::Remove { path, .. }
            | Self::Link { path, .. }
            | Self::Touch { path }
            | Self::Truncate { path, .. }
            | Self::Substitute { path, .. }
            | Self::Change { path } => vec![path],
            Self::Copy { from, to, .. } | Self::Move { from, to, .. } => vec![from, to],
            Self::HardLink { path, from, .. } => vec![from, path],
            Self::Patch { .. } | Self::Git { .. } => Vec::new(),
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart {
    /// A literal text.
    Text(String),
    /// The text of the file at this path, which must exist.
    File(String),
}

/// What a git command does to files, the index or the current commit. Paths are absolute. A path may be a
/// folder, and then stands for all files below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitStep {
    /// `git commit`: no file changes, but the commit that `HEAD` names.
    Commit {
        /// Whether the changes of all tracked files are in the commit: `-a`.
        is_all: bool,
        /// If there are any, the commit takes the changes of these only.
        paths: Vec<String>,
    },
    /// `git add`: the index has the texts of the files.
    Add {
        /// The files.
        paths: Vec<String>,
        /// Whether all files of the repository are added: `-A` or `-u` without paths.
        is_all: bool,
    },
    /// The files get the texts of another version.
    Restore {
        /// The files.
        paths: Vec<String>,
        /// The version.
        source: GitSource,
        /// Whether the files of the working tree change. Otherwise only the index does.
        in_worktree: bool,
        /// Whether the index changes.
        in_index: bool,
    },
    /// `git stash`: tracked files get the texts of `HEAD`.
    Stash {
        /// If there are any, only these files change.
        paths: Vec<String>,
        /// Whether untracked files are removed too: `-u`.
        with_untracked: bool,
    },
    /// `git stash pop` and `git stash apply` of the last stash.
    StashPop {
        /// Whether the stash is kept.
        is_kept: bool,
    },
    /// `git rm`
    Remove {
        /// The files.
        paths: Vec<String>,
        /// Whether they are removed from the index only: `--cached`.
        is_cached: bool,
    },
    /// `git mv`
    Move {
        /// The source.
        from: String,
        /// The destination.
        to: String,
        /// Whether the source is moved into the folder `to`, if `to` is a folder.
        may_be_folder: bool,
    },
    /// Tracked files get the texts of a commit.
    Switch {
        /// The commit as written: a branch, `HEAD~1`.
        revision: String,
        /// Whether changes that are in no commit are discarded: `reset --hard`, `checkout -f`.
        is_forced: bool,
        /// The same word as a path, where git takes it for one if it is no revision: `git checkout a.txt`
        /// then restores this file from the index.
        path: Option<String>,
    },
    /// A command that may change any tracked file, and for `clean`, `apply` and `stash -u` others: merge,
    /// rebase, pull, cherry-pick, revert, …
    Other,
}

/// A version of files in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitSource {
    /// The index.
    Index,
    /// A commit as written.
    Revision(String),
}

/// When a step is certain to have happened, from the most certain on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepCondition {
    /// If the exit status of the whole command is 0.
    #[default]
    IfSucceeded,
    /// If, in addition, the command printed nothing: a step that failed would have printed an error.
    IfSilent,
    /// Never: it is after `||`, in `if` or a loop, its errors are discarded, …
    Maybe,
}

/// Changes that are no steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum OtherChanges {
    /// None: every program in the command only reads, or writes only what the steps say.
    #[default]
    None,
    /// These files may change: absolute paths where they are known, otherwise names as written. Names may
    /// contain patterns (`*`, `?`, `[…]`), and may name folders with everything in them.
    Named(Vec<String>),
    /// Any file may change. The words are those of the program that look like names of files, as written.
    Any(Vec<String>),
}

impl OtherChanges {
    /// Adds other changes.
    pub(crate) fn merge(&mut self, new: Self) {
        *self = match (std::mem::take(self), new) {
            (Self::None, new) => new,
            (old, Self::None) => old,
            (Self::Named(mut old), Self::Named(new)) => {
                old.extend(new);
                Self::Named(old)
            }
            (Self::Named(mut old) | Self::Any(mut old), Self::Named(new) | Self::Any(new)) => {
                old.extend(new);
                Self::Any(old)
            }
        };
    }

    /// Removes repeated names.
    pub(crate) fn deduplicate(&mut self) {
        if let Self::Named(names) | Self::Any(names) = self {
            let mut seen = std::collections::HashSet::new();
            names.retain(|name| seen.insert(name.clone()));
        }
    }
}
