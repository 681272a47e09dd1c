//! Net changes: what became of each file that a session touched.

use std::collections::BTreeMap;

use similar::TextDiff;
use threadline_session::{Family, FileText};

/// A file that a session changed: as it was before its first change, and as it was after its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChange {
    /// Its path, as the tools were given it.
    pub path: String,
    /// Its text before; `None` if it did not exist.
    pub before: Option<String>,
    /// Its text after.
    pub after: String,
    /// How many calls changed it.
    pub edits: usize,
    /// What the log cannot know: changes between two edits that no edit made.
    pub notes: Vec<String>,
}

/// What became of each file, by path. Only changes that tools made through the log's own edits are known;
/// what a command did shows up only where an edit came after it.
pub fn changes(family: &Family) -> Vec<FileChange> {
    let mut files: BTreeMap<String, FileChange> = BTreeMap::new();
    for edit in family.file_edits() {
        let FileText::Text(after) = edit.after else { continue };
        let before = match edit.before {
            FileText::Text(before) => Some(before),
            FileText::Absent | FileText::Unknown => None,
        };
        match files.get_mut(&edit.path) {
            Some(file) => {
                if file.notes.is_empty() && before.is_some_and(|before| before != file.after) {
                    file.notes.push("the file was changed between two edits by something else".to_owned());
                }
                file.after = after;
                file.edits += 1;
            }
            None => {
                let path = edit.path.clone();
                files.insert(edit.path, FileChange { path, before, after, edits: 1, notes: Vec::new() });
            }
        }
    }
    files.into_values().filter(|file| file.before.as_ref() != Some(&file.after)).collect()
}

/// The changes as a patch that `git apply` takes, with paths below `root` made relative to it.
pub fn patch(changes: &[FileChange], root: Option<&str>) -> String {
    let mut out = String::new();
    for file in changes {
        let path = file.path.replace('\\', "/");
        let root = root.map(|root| root.replace('\\', "/").trim_end_matches('/').to_owned() + "/");
        let path =
            root.as_deref().and_then(|root| path.strip_prefix(root)).unwrap_or(path.trim_start_matches('/'));
        for note in &file.notes {
            out.push_str(&format!("# {path}: {note}\n"));
        }
        out.push_str(&format!("diff --git a/{path} b/{path}\n"));
        let from = match file.before {
            Some(_) => format!("a/{path}"),
            None => {
                out.push_str("new file mode 100644\n");
                "/dev/null".to_owned()
            }
        };
        let before = file.before.as_deref().unwrap_or_default();
        let diff = TextDiff::from_lines(before, &file.after);
        out.push_str(&diff.unified_diff().header(&from, &format!("b/{path}")).to_string());
    }
    out
}
