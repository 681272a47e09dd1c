//! Net changes: the text of each changed file before its first and after its last change.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use foldhash::HashMap;
use threadline_session::{FileEdit, FileText, LineHunk, SessionFamily};

use crate::diff::{Hunk, line_hunks, unified};

/// The net change of one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileChange {
    /// The path, as given to the tools.
    pub path: String,
    /// The text before; `None` if the file did not exist, or if only `parts` are known.
    pub before: Option<String>,
    /// The text after; `None` if the file was deleted, or if only `parts` are known.
    pub after: Option<String>,
    /// Changed lines in order, one list per call that changed them, if the log does not contain the whole
    /// text at some point.
    pub parts: Vec<Arc<[LineHunk]>>,
    /// Whether the first of the parts creates the file.
    pub(crate) is_created: bool,
    /// Whether `before` and `after` are set.
    pub(crate) has_whole: bool,
    /// The number of calls that changed the file.
    pub edits: usize,
    /// Changes that the log does not contain.
    pub notes: Vec<String>,
}

impl FileChange {
    /// Returns the hunks to show.
    pub fn hunks(&self) -> Vec<Hunk> {
        if self.parts.is_empty() {
            let (before, after) = (self.before.as_deref(), self.after.as_deref());
            return crate::diff::hunks(before.unwrap_or_default(), after.unwrap_or_default());
        }
        self.parts.iter().flat_map(|hunks| &**hunks).map(Hunk::from_edit).collect()
    }

    /// Returns whether the session created the file.
    pub fn is_new(&self) -> bool {
        self.is_created || self.before.is_none() && self.after.is_some()
    }

    /// Returns whether the session deleted the file.
    pub fn is_deleted(&self) -> bool {
        self.before.is_some() && self.after.is_none()
    }

    /// Adds the next change.
    fn add(&mut self, edit: FileEdit) {
        self.edits += 1;
        if !edit.hunks.is_empty() {
            self.split_whole_change();
            // A diff of a command may repeat the preceding changes.
            if edit.by_command {
                let counts = count_changed_lines(&edit.hunks);
                let recent = self.parts.split_off(self.parts.len().saturating_sub(MAX_COMPARED_PARTS));
                self.parts.extend(recent.into_iter().filter(|earlier| !repeats(&counts, earlier)));
            }
            return self.parts.push(edit.hunks);
        }
        let after = match edit.after {
            FileText::Text(after) => Some(after),
            FileText::Absent => None,
            FileText::Unknown if edit.by_command => {
                return self.note("changed by a shell command; the text is not logged");
            }
            FileText::Unknown => {
                return self.note("changed by an edit that is not in this patch: its lines are not logged");
            }
        };
        if edit.before == FileText::Unknown && after.is_none() && !self.has_whole {
            return self.note("deleted; its text is not logged");
        }
        let before = edit.before.as_text().map(str::to_owned);
        if !self.parts.is_empty() {
            if edit.before == FileText::Unknown {
                return self.note("written as a whole after the changes in this patch");
            }
            let hunks =
                line_hunks(before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
            return self.parts.extend((!hunks.is_empty()).then(|| hunks.into()));
        }
        if !self.has_whole {
            self.before = before;
        } else if before.is_some() && before != self.after {
            self.note("the file was changed by another program between two edits");
        }
        self.has_whole = true;
        self.after = after;
    }

    /// Turns the change of the whole text into the first part, because a change of some lines follows.
    fn split_whole_change(&mut self) {
        if std::mem::take(&mut self.has_whole) {
            let (before, after) = (self.before.take(), self.after.take());
            self.is_created = before.is_none();
            let hunks =
                line_hunks(before.as_deref().unwrap_or_default(), after.as_deref().unwrap_or_default());
            self.parts.extend((!hunks.is_empty()).then(|| hunks.into()));
        }
    }

    fn note(&mut self, note: &str) {
        if !self.notes.iter().any(|known| known == note) {
            self.notes.push(note.to_owned());
        }
    }
}

/// The number of last parts that are compared with a new one. Comparing all of very many parts would take
/// time in proportion to the square of their number.
const MAX_COMPARED_PARTS: usize = 256;

/// Returns how often each changed line occurs in some hunks.
fn count_changed_lines(hunks: &[LineHunk]) -> HashMap<&str, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::default();
    changed_lines(hunks).for_each(|line| *counts.entry(line).or_default() += 1);
    counts
}

fn changed_lines(hunks: &[LineHunk]) -> impl Iterator<Item = &str> {
    hunks.iter().flat_map(|hunk| &hunk.lines).map(String::as_str).filter(|line| line.starts_with(['+', '-']))
}

/// Returns whether hunks with these changed lines contain every changed line of `earlier`.
fn repeats(counts: &HashMap<&str, usize>, earlier: &[LineHunk]) -> bool {
    // Most parts have a line that the others lack.
    changed_lines(earlier).all(|line| counts.contains_key(line))
        && count_changed_lines(earlier)
            .iter()
            .all(|(line, count)| counts.get(line).is_some_and(|most| count <= most))
}

/// Returns the net change of each file, sorted by path.
///
/// Changes are read from the edits of tools, and from the diffs in the results of shell commands (from
/// 2.1.269). Other changes by commands are noticed only if an edit of the same file follows. An edit whose
/// lines are not in the log is a note.
pub fn changes(family: &SessionFamily) -> Vec<FileChange> {
    changes_of(family.file_edits())
}

/// Returns the net change of each file by some of the edits of a session, as [`changes`] does.
pub fn changes_of(edits: impl IntoIterator<Item = FileEdit>) -> Vec<FileChange> {
    let mut files: BTreeMap<String, FileChange> = BTreeMap::new();
    for edit in edits {
        let path = edit.path.clone();
        files.entry(path.clone()).or_insert_with(|| FileChange { path, ..FileChange::default() }).add(edit);
    }
    let is_change =
        |file: &FileChange| file.before != file.after || !file.parts.is_empty() || !file.notes.is_empty();
    files.into_values().filter(is_change).collect()
}

/// Formats the changes as a patch for `git apply`, with paths below `root` relative to it.
pub fn patch(changes: &[FileChange], root: Option<&str>) -> String {
    let mut out = String::new();
    let root = root.map(|root| root.replace('\\', "/").trim_end_matches('/').to_owned() + "/");
    for file in changes {
        let path = file.path.replace('\\', "/");
        let path =
            root.as_deref().and_then(|root| path.strip_prefix(root)).unwrap_or(path.trim_start_matches('/'));
        for note in &file.notes {
            out.push_str(&format!("# {path}: {note}\n"));
        }
        for (n, hunks) in file.parts.iter().enumerate() {
            let _ = writeln!(out, "diff --git a/{path} b/{path}");
            let _ = match file.is_created && n == 0 {
                true => writeln!(out, "new file mode 100644\n--- /dev/null\n+++ b/{path}"),
                false => writeln!(out, "--- a/{path}\n+++ b/{path}"),
            };
            hunks.iter().for_each(|hunk| add_hunk(&mut out, hunk));
        }
        if !file.parts.is_empty() || file.before == file.after {
            continue;
        }
        let _ = writeln!(out, "diff --git a/{path} b/{path}");
        let (mut from, mut to) = (format!("a/{path}"), format!("b/{path}"));
        if file.is_new() {
            out.push_str("new file mode 100644\n");
            from = "/dev/null".to_owned();
        } else if file.is_deleted() {
            out.push_str("deleted file mode 100644\n");
            to = "/dev/null".to_owned();
        }
        let (before, after) = (file.before.as_deref(), file.after.as_deref());
        out.push_str(&unified(before.unwrap_or_default(), after.unwrap_or_default(), (&from, &to)));
    }
    out
}

/// Appends a hunk in unified diff format.
fn add_hunk(out: &mut String, hunk: &LineHunk) {
    let count = |signs: [char; 2]| hunk.lines.iter().filter(|line| line.starts_with(signs)).count();
    let (old, new) = (count([' ', '-']), count([' ', '+']));
    let _ = writeln!(out, "@@ -{},{old} +{},{new} @@", hunk.old_start, hunk.new_start);
    for line in hunk.lines.iter() {
        out.push_str(line);
        out.push('\n');
    }
}
