//! Net changes: each file that a session changed, before its first and after its last change.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use foldhash::HashMap;

use threadline_evidence::{
    CallPlace, Certainty, ChangedPart, EvidenceSource, FileContent, FileEvidence, FileText, LineHunk,
    NetChange,
};
use threadline_session::SessionFamily;

use crate::anchor;
use crate::diff::{Hunk, line_hunks, unified};
use crate::visible::visible;

/// The net change of one file.
#[derive(Clone, Debug)]
pub struct FileChange {
    /// The absolute path.
    pub path: String,
    /// The content before; `None` if it is unknown.
    pub before: Option<FileContent>,
    /// The content after; `None` if it is unknown.
    pub after: Option<FileContent>,
    /// How certain both contents are.
    pub certainty: Certainty,
    /// Recorded changed lines in order, one list per call, if the content before or after is unknown.
    pub parts: Vec<Vec<LineHunk>>,
    /// Whether the parts are the whole change, each relative to the result of the one before.
    pub is_chain: bool,
    /// What the content after is known from.
    pub source: Option<EvidenceSource>,
    /// The file that was renamed to this one: one with the same content that the session removed.
    pub renamed_from: Option<String>,
    /// The calls that changed the file, or may have.
    pub calls: Vec<CallPlace>,
    /// Changes that are not recorded.
    pub notes: Vec<String>,
}

impl FileChange {
    fn new(change: NetChange, family: &SessionFamily) -> Self {
        let NetChange { path, before, after, calls, unrecorded, parts, is_chain } = change;
        let certainty = before.certainty.min(after.certainty);
        let mut file = Self {
            path,
            before: before.content,
            after: after.content,
            certainty,
            parts: parts.into_iter().map(part_hunks).filter(|hunks| !hunks.is_empty()).collect(),
            is_chain,
            source: after.source,
            renamed_from: None,
            calls,
            notes: Vec::new(),
        };
        if !file.has_whole() && !is_chain {
            let unrecorded = if unrecorded.is_empty() { &file.calls } else { &unrecorded };
            file.notes.push(format!("changed by {}; the text is not known", call_names(unrecorded, family)));
        }
        if file.is_whole_text() == Some(false) {
            file.notes.push("not text".to_owned());
        }
        file
    }

    /// Returns whether the contents before and after are known.
    pub fn has_whole(&self) -> bool {
        self.before.is_some() && self.after.is_some()
    }

    /// Returns whether the known contents before and after are text. `None` if they are not both known.
    fn is_whole_text(&self) -> Option<bool> {
        let is_text = |content: &FileContent| content.is_absent() || text_of(content).is_some();
        Some(is_text(self.before.as_ref()?) && is_text(self.after.as_ref()?))
    }

    /// Returns the text before, if it is known and text.
    pub fn text_before(&self) -> Option<Cow<'_, str>> {
        text_of(self.before.as_ref()?)
    }

    /// Returns the text after, if it is known and text.
    pub fn text_after(&self) -> Option<Cow<'_, str>> {
        text_of(self.after.as_ref()?)
    }

    /// Returns the hunks to show.
    pub fn hunks(&self) -> Vec<Hunk> {
        if self.has_whole() {
            let (before, after) = (self.text_before(), self.text_after());
            return crate::diff::hunks(&before.unwrap_or_default(), &after.unwrap_or_default());
        }
        self.parts.iter().flatten().map(Hunk::from_edit).collect()
    }

    /// Returns whether the session created the file.
    pub fn is_new(&self) -> bool {
        self.before == Some(FileContent::Absent)
    }

    /// Returns whether the session deleted the file.
    pub fn is_deleted(&self) -> bool {
        self.after == Some(FileContent::Absent)
    }

    /// Returns the name of the change in JSON.
    pub fn status(&self) -> &'static str {
        match (self.is_new(), self.is_deleted()) {
            (true, _) if self.renamed_from.is_some() => "renamed",
            (true, _) => "created",
            (_, true) => "deleted",
            _ => "changed",
        }
    }

    /// Names the calls that changed the file, or may have, by their anchors.
    pub fn call_names(&self, family: &SessionFamily) -> String {
        call_names(&self.calls, family)
    }

    /// Returns the number of calls that changed the file, or may have.
    pub fn edits(&self) -> usize {
        self.calls.len()
    }
}

/// Returns the changed lines of a part.
fn part_hunks(part: ChangedPart) -> Vec<LineHunk> {
    fn text(text: &FileText) -> Option<&str> {
        match text {
            FileText::Absent => Some(""),
            FileText::Text(text) => Some(text),
            FileText::Unknown => None,
        }
    }
    match (text(&part.before), text(&part.after)) {
        (Some(before), Some(after)) => line_hunks(before, after),
        _ => part.hunks,
    }
}

/// Returns the text of a file, or the target of a link, as a patch contains it.
fn text_of(content: &FileContent) -> Option<Cow<'_, str>> {
    match content {
        FileContent::Absent => None,
        FileContent::Link(target) => Some(Cow::Borrowed(target)),
        FileContent::File(file) => {
            std::str::from_utf8(&file.bytes).ok().filter(|text| !text.contains('\0')).map(Cow::Borrowed)
        }
    }
}

/// The most calls that a note names.
const MAX_NAMED: usize = 3;

/// Names calls by their anchors.
fn call_names(calls: &[CallPlace], family: &SessionFamily) -> String {
    let name = |call: &CallPlace| {
        let session = family.session(call.agent);
        let line = session.entries().get(call.entry_idx).map_or(0, |entry| entry.at().line_no);
        match call.agent {
            None => anchor(line, 0),
            // The id is a text of the log, and a newline in it would end a comment of the patch.
            Some(agent) => {
                let id = visible(&family.agents[agent].id).replace('\n', "^J");
                format!("{} of agent {id}", anchor(line, 0))
            }
        }
    };
    let mut names: Vec<String> = calls.iter().take(MAX_NAMED).map(name).collect();
    names.dedup();
    match calls.len().saturating_sub(MAX_NAMED) {
        0 => names.join(", "),
        more => format!("{} and {more} more calls", names.join(", ")),
    }
}

/// Returns the net change of each file by a session and its sub-agents, sorted by path.
pub fn changes(evidence: &FileEvidence, family: &SessionFamily) -> Vec<FileChange> {
    changes_by(evidence, family, &|_| true)
}

/// Returns the net change of each file by some of the calls of a session, as [`changes`] does.
pub fn changes_by(
    evidence: &FileEvidence,
    family: &SessionFamily,
    is_inside: &dyn Fn(&CallPlace) -> bool,
) -> Vec<FileChange> {
    let changes = evidence.net_changes(is_inside).into_iter();
    let mut changes: Vec<FileChange> = changes.map(|change| FileChange::new(change, family)).collect();
    find_renamed(&mut changes);
    changes
}

/// Finds the files that were removed and created again under another name with the same content.
fn find_renamed(changes: &mut [FileChange]) {
    let mut removed: HashMap<Arc<[u8]>, Vec<String>> = HashMap::default();
    for change in changes.iter().filter(|change| change.is_deleted()) {
        if let Some(file) =
            change.before.as_ref().and_then(FileContent::file).filter(|file| !file.bytes.is_empty())
        {
            removed.entry(file.bytes.clone()).or_default().push(change.path.clone());
        }
    }
    for change in changes.iter_mut().filter(|change| change.is_new()) {
        let content = change.after.as_ref().and_then(FileContent::file);
        change.renamed_from = content.and_then(|file| removed.get_mut(&file.bytes)?.pop());
    }
}

/// Formats the changes as a patch for `git apply`, with paths below `root` relative to it. What is known only
/// in part is a comment.
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
        if file.has_whole() {
            add_whole(&mut out, file, path);
        } else if file.is_chain {
            for hunks in &file.parts {
                let _ = writeln!(out, "diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}");
                hunks.iter().for_each(|hunk| add_hunk(&mut out, hunk));
            }
        }
    }
    out
}

/// Appends the change of a file whose contents are known.
fn add_whole(out: &mut String, file: &FileChange, path: &str) {
    if file.is_whole_text() != Some(true) {
        return;
    }
    let (before, after) = (file.text_before().unwrap_or_default(), file.text_after().unwrap_or_default());
    let mode = |content: &Option<FileContent>| match content {
        Some(FileContent::Absent) | None => None,
        Some(FileContent::Link(_)) => Some("120000"),
        Some(FileContent::File(_)) => Some("100644"),
    };
    let (from, to) = (format!("a/{path}"), format!("b/{path}"));
    let head = format!("diff --git {from} {to}\n");
    let created = |out: &mut String, mode: &str, after: &str| {
        let _ = write!(out, "{head}new file mode {mode}\n{}", unified("", after, ("/dev/null", &to)));
    };
    let deleted = |out: &mut String, mode: &str, before: &str| {
        let _ = write!(out, "{head}deleted file mode {mode}\n{}", unified(before, "", (&from, "/dev/null")));
    };
    match (mode(&file.before), mode(&file.after)) {
        (None, Some(mode)) => created(out, mode, &after),
        (Some(mode), None) => deleted(out, mode, &before),
        // A file that becomes a link is another file.
        (Some(old), Some(new)) if old != new => {
            deleted(out, old, &before);
            created(out, new, &after);
        }
        _ => {
            let _ = write!(out, "{head}{}", unified(&before, &after, (&from, &to)));
        }
    }
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
