//! The changes that a command made to files, as far as Claude Code recorded them.

use std::borrow::Cow;

use threadline_entry::lens::{BashEditDiff, BashEditFile, BashResult, List, ToolUseResult};

use crate::diff::Hunk;
use crate::humanize::{line_change, plural};
use crate::transcript_writer::relative_to;

/// The changes that a command made to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandChanges {
    /// The files that are named in the log, each once.
    pub files: Vec<CommandFileChange>,
    /// The number of other changed files.
    pub n_unnamed: u64,
    /// Whether the command changed files, and Claude Code did not record which.
    pub is_skipped: bool,
}

/// The change that a command made to one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFileChange {
    /// The path.
    pub path: String,
    /// The path relative to the working directory of the command, if it is inside.
    pub short_path: String,
    /// The kind of change.
    pub kind: CommandFileChangeKind,
    /// The changed lines; none if the log does not contain them.
    pub hunks: Vec<Hunk>,
}

/// The kind of change of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are self-explanatory")]
pub enum CommandFileChangeKind {
    Created,
    Edited,
    Deleted,
}

impl CommandFileChangeKind {
    /// Returns the kind in a word, also used in the public JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Edited => "edited",
            Self::Deleted => "deleted",
        }
    }
}

impl CommandFileChange {
    fn of(path: Cow<'_, str>, file: Option<BashEditFile<'_>>, cwd: &str) -> Self {
        let kind = match (file.and_then(BashEditFile::created), file.and_then(BashEditFile::deleted)) {
            (Some(true), _) => CommandFileChangeKind::Created,
            (_, Some(true)) => CommandFileChangeKind::Deleted,
            _ => CommandFileChangeKind::Edited,
        };
        let hunks = file.and_then(BashEditFile::hunks).into_iter().flat_map(List::iter);
        Self {
            short_path: relative_to(&path, cwd).unwrap_or_else(|| path.to_string()),
            path: path.into_owned(),
            kind,
            hunks: hunks.map(Hunk::from_patch).collect(),
        }
    }

    /// Returns whether more is known than that the file changed.
    pub fn has_details(&self) -> bool {
        self.kind != CommandFileChangeKind::Edited || !self.hunks.is_empty()
    }

    /// Returns the change in a few words: `+1 −1`, `created, 3 lines`, `deleted`.
    pub fn gist(&self) -> String {
        let (added, removed) = Hunk::counts(&self.hunks);
        let lines = |count: usize| plural(count as u64, "line");
        match self.kind {
            CommandFileChangeKind::Created if added > 0 => format!("created, {}", lines(added)),
            CommandFileChangeKind::Deleted if removed > 0 => format!("deleted, {}", lines(removed)),
            CommandFileChangeKind::Edited if added + removed > 0 => line_change(added, removed),
            CommandFileChangeKind::Edited => "changed".to_owned(),
            kind => kind.name().to_owned(),
        }
    }
}

impl CommandChanges {
    /// Returns the changes in the result of a command with this working directory.
    pub(super) fn of(diff: BashEditDiff<'_>, cwd: &str) -> Self {
        let files = diff.changed_files_once();
        let n_names_only = files.iter().filter(|(_, file)| file.is_none()).count() as u64;
        let files = files.into_iter().map(|(path, file)| CommandFileChange::of(path, file, cwd));
        Self {
            files: files.collect(),
            n_unnamed: diff.more_files().unwrap_or(0).saturating_sub(n_names_only),
            is_skipped: diff.skipped() == Some(true),
        }
    }

    /// Returns whether the log contains no changes of the command.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.n_unnamed == 0 && !self.is_skipped
    }

    /// Returns the files that are shown each with its lines.
    pub fn detailed(&self) -> impl Iterator<Item = &CommandFileChange> {
        self.files.iter().filter(|file| file.has_details())
    }

    /// Returns the short paths of the other files.
    pub fn names_only(&self) -> impl Iterator<Item = &str> {
        self.files.iter().filter(|file| !file.has_details()).map(|file| &*file.short_path)
    }

    /// Returns a label of the files that [`CommandChanges::detailed`] does not contain: `5 more files changed
    /// (lines not recorded)`. The names of [`CommandChanges::names_only`] belong to it.
    pub fn label_of_rest(&self) -> Option<String> {
        let n_named = self.names_only().count() as u64;
        let is_more = self.detailed().next().is_some();
        match n_named + self.n_unnamed {
            0 => self.is_skipped.then(|| "changed files; Claude Code did not record which".to_owned()),
            count => {
                let files = plural(count, if is_more { "more file" } else { "file" });
                let unnamed = match (n_named, self.n_unnamed) {
                    (_, 0) => String::new(),
                    (0, _) => "; Claude Code did not record which".to_owned(),
                    (_, unnamed) => format!("; {unnamed} without a name"),
                };
                Some(format!("{files} changed (lines not recorded{unnamed})"))
            }
        }
    }

    /// Returns the label with the names: `2 more files changed (lines not recorded): a.png, b.png`.
    pub fn rest(&self) -> Option<String> {
        let names: Vec<&str> = self.names_only().collect();
        let label = self.label_of_rest()?;
        Some(if names.is_empty() { label } else { format!("{label}: {}", names.join(", ")) })
    }

    /// Returns the numbers of added and removed lines.
    pub fn line_counts(&self) -> (usize, usize) {
        let counts = self.files.iter().map(|file| Hunk::counts(&file.hunks));
        counts.fold((0, 0), |sum, count| (sum.0 + count.0, sum.1 + count.1))
    }

    /// Returns all changes in a few words: `edited a.rs, +1 −1`, `changed 3 files, +10 −2`; empty without any.
    pub fn gist(&self) -> String {
        if let ([file], 0) = (&self.files[..], self.n_unnamed) {
            let name = file.path.rsplit(['/', '\\']).next().unwrap_or(&file.path);
            let gist = file.gist();
            let lines = gist.split_once(", ").map_or(&*gist, |(_, lines)| lines);
            let has_lines = lines.contains(|c: char| c.is_ascii_digit());
            let lines = if has_lines { format!(", {lines}") } else { String::new() };
            return format!("{} {name}{lines}", file.kind.name());
        }
        let count = self.files.len() as u64 + self.n_unnamed;
        if count == 0 {
            return if self.is_skipped { "changed files".to_owned() } else { String::new() };
        }
        let kind = self
            .files
            .first()
            .map(|file| file.kind)
            .filter(|kind| self.n_unnamed == 0 && self.files.iter().all(|file| file.kind == *kind));
        let verb = match kind {
            Some(kind @ (CommandFileChangeKind::Created | CommandFileChangeKind::Deleted)) => kind.name(),
            _ => "changed",
        };
        let lines = match self.line_counts() {
            (0, 0) => String::new(),
            (added, removed) => format!(", {}", line_change(added, removed)),
        };
        format!("{verb} {}{lines}", plural(count, "file"))
    }
}

/// The number of files that a command changed, and of their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommandChangeCounts {
    /// The files that the log names.
    pub(crate) files: usize,
    /// Added and removed lines.
    pub(crate) lines: (usize, usize),
}

impl CommandChangeCounts {
    /// Counts the changes of a card.
    pub(crate) fn of(changes: &CommandChanges) -> Self {
        Self { files: changes.files.len(), lines: changes.line_counts() }
    }

    /// Counts the changes in the result of a call, as [`CommandChangeCounts::of`] does for its card.
    pub(crate) fn of_result(tool: &str, data: Option<ToolUseResult<'_>>) -> Self {
        let Some(diff) = recorded_changes(tool, data) else { return Self::default() };
        let files = diff.changed_files_once();
        let hunks =
            files.iter().filter_map(|(_, file)| file.and_then(BashEditFile::hunks)).flat_map(List::iter);
        Self { files: files.len(), lines: Hunk::patch_counts(hunks) }
    }
}

/// Returns the changes in the result of a call of a tool that runs commands.
pub(super) fn recorded_changes<'a>(tool: &str, data: Option<ToolUseResult<'a>>) -> Option<BashEditDiff<'a>> {
    data.filter(|_| runs_commands(tool))?.of::<BashResult<'_>>()?.bash_edit_diff()
}

/// Returns whether Claude Code records the changes that a tool makes by commands.
pub(crate) fn runs_commands(tool: &str) -> bool {
    matches!(tool, "Bash" | "PowerShell")
}
