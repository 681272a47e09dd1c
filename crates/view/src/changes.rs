//! Net changes: what became of each file that a session touched.

use std::borrow::Cow;
use std::collections::BTreeMap;

use similar::TextDiff;
use threadline_entry::Json;
use threadline_entry::lens::{EditResult, MultiEditResult, WriteResult};
use threadline_session::{Family, Outcome, Session, ToolCall};

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
    let mut edits: Vec<(Option<i64>, usize, Edit)> = Vec::new();
    for agent in std::iter::once(None).chain((0..family.agents.len()).map(Some)) {
        let session = family.session(agent);
        for call in session.tool_calls() {
            if let Some(edit) = edit(session, call) {
                let at = call.results.first().and_then(|at| session.timestamp(at.entry_idx));
                edits.push((at, edits.len(), edit));
            }
        }
    }
    // Sub-agents work side by side: the order is that of time, and of the log where that is the same.
    edits.sort_by_key(|(at, order, _)| (*at, *order));
    let mut files: BTreeMap<String, FileChange> = BTreeMap::new();
    for (_, _, edit) in edits {
        match files.get_mut(&edit.path) {
            Some(file) => {
                if edit.before.as_ref().is_some_and(|before| *before != file.after) {
                    file.notes.push("the file was changed between two edits by something else".to_owned());
                }
                file.after = edit.after;
                file.edits += 1;
            }
            None => {
                let Edit { path, before, after } = edit;
                let file = FileChange { path: path.clone(), before, after, edits: 1, notes: Vec::new() };
                files.insert(path, file);
            }
        }
    }
    files.into_values().filter(|file| file.before.as_ref() != Some(&file.after)).collect()
}

/// One change of a file, from whole text to whole text.
struct Edit {
    path: String,
    before: Option<String>,
    after: String,
}

/// What a call did to a file, if the log holds the whole of it.
fn edit(session: &Session, call: &ToolCall) -> Option<Edit> {
    if call.outcome(session) != Outcome::Ok {
        return None;
    }
    let input = call.block(session)?.input()?;
    let data = session.entries()[call.results.first()?.entry_idx].tool_use_result()?;
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    match &*call.name {
        "Write" => {
            let result: WriteResult<'_> = data.of()?;
            let path = owned(result.file_path().or_else(|| input.get("file_path")?.as_str()))?;
            let after = owned(result.content().or_else(|| input.get("content")?.as_str()))?;
            Some(Edit { path, before: owned(result.original_file()), after })
        }
        "Edit" => {
            let result: EditResult<'_> = data.of()?;
            let before = result.original_file().unwrap_or_default();
            let (old, new) = (result.old_string()?, result.new_string()?);
            let after = apply(&before, &old, &new, result.replace_all().unwrap_or(false))?;
            let existed = result.original_file().is_some();
            Some(Edit {
                path: owned(result.file_path())?,
                before: existed.then(|| before.into_owned()),
                after,
            })
        }
        "MultiEdit" => {
            let result: MultiEditResult<'_> = data.of()?;
            let before = result.original_file_contents()?;
            let mut after = before.clone().into_owned();
            for edit in result.edits()?.iter() {
                let text = |key: &str| edit.get(key).and_then(Json::as_str).unwrap_or_default();
                let all = edit.get("replace_all").and_then(Json::as_bool).unwrap_or(false);
                after = apply(&after, &text("old_string"), &text("new_string"), all)?;
            }
            Some(Edit { path: owned(result.file_path())?, before: Some(before.into_owned()), after })
        }
        _ => None,
    }
}

/// The text with `old` replaced; `None` if it is not in it.
fn apply(text: &str, old: &str, new: &str, all: bool) -> Option<String> {
    if old.is_empty() {
        return Some(if text.is_empty() { new.to_owned() } else { format!("{new}{text}") });
    }
    // Deleting whole lines takes their newline along.
    let line = format!("{old}\n");
    let old = if new.is_empty() && !old.ends_with('\n') && text.contains(&line) { &line } else { old };
    if !text.contains(old) {
        return None;
    }
    Some(if all { text.replace(old, new) } else { text.replacen(old, new, 1) })
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
