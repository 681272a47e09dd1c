//! Edits of files: what the tools of a session and its sub-agents did to files, from whole text to whole text.

use std::borrow::Cow;

use rustc_hash::FxHashMap;
use threadline_entry::lens::{EditResult, MultiEditResult, WriteResult};
use threadline_entry::{Json, Millis};

use crate::agent::Family;
use crate::session::Session;
use crate::tool_call::{Outcome, ToolCall};

/// What is known of a file at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileText {
    /// It did not exist.
    Absent,
    /// It held this.
    Text(String),
    /// The log does not tell.
    Unknown,
}

impl FileText {
    /// The text; nothing for a file that is not there or not known.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Absent | Self::Unknown => None,
        }
    }
}

/// One change of a file by `Write`, `Edit`, `MultiEdit` or `NotebookEdit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEdit {
    /// The sub-agent that did it, by its place in [`Family::agents`]; `None` for the session itself.
    pub agent: Option<usize>,
    /// The line with the result, in the log of whoever did it.
    pub entry_idx: usize,
    /// When it was done.
    pub at: Option<Millis>,
    /// The file, as the tool was given it.
    pub path: String,
    /// The file before.
    pub before: FileText,
    /// The file after.
    pub after: FileText,
}

/// What a call says it replaced.
struct Replacement {
    old: String,
    new: String,
    all: bool,
}

impl Family {
    /// Every edit that went well, in the order they were made: by time, since sub-agents work side by side,
    /// and by the logs where that is the same.
    pub fn file_edits(&self) -> Vec<FileEdit> {
        let mut edits: Vec<(FileEdit, Vec<Replacement>)> = Vec::new();
        for agent in std::iter::once(None).chain((0..self.agents.len()).map(Some)) {
            let session = self.session(agent);
            edits.extend(session.tool_calls().iter().filter_map(|call| edit(session, agent, call)));
        }
        edits.sort_by_key(|(edit, _)| edit.at);
        // A result need not repeat the whole file: what is missing follows from the edit before.
        let mut known: FxHashMap<String, FileText> = FxHashMap::default();
        let mut out = Vec::with_capacity(edits.len());
        for (mut edit, replacements) in edits {
            if edit.before == FileText::Unknown
                && let Some(last) = known.get(&edit.path)
            {
                edit.before = last.clone();
            }
            if edit.after == FileText::Unknown && !replacements.is_empty() {
                edit.after = replaced(&edit.before, &replacements);
            }
            known.insert(edit.path.clone(), edit.after.clone());
            out.push(edit);
        }
        out
    }
}

/// What a call did to a file: as far as its own result tells, and what it replaced.
fn edit(session: &Session, agent: Option<usize>, call: &ToolCall) -> Option<(FileEdit, Vec<Replacement>)> {
    if !matches!(&*call.name, "Write" | "Edit" | "MultiEdit" | "NotebookEdit")
        || call.outcome(session) != Outcome::Ok
    {
        return None;
    }
    let input = call.block(session)?.input()?;
    let entry_idx = call.results.first()?.entry_idx;
    let data = session.entries()[entry_idx].tool_use_result();
    let owned = |text: Option<Cow<'_, str>>| text.map(Cow::into_owned);
    let given = |key: &str| input.get(key).and_then(Json::as_str);
    let known = |text: Option<String>| text.map_or(FileText::Unknown, FileText::Text);
    let mut replacements = Vec::new();
    let (path, before, after) = match &*call.name {
        "Write" => {
            let result: Option<WriteResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(WriteResult::file_path).or_else(|| given("file_path")))?;
            let after = owned(result.and_then(WriteResult::content).or_else(|| given("content")));
            let is_new = result.and_then(WriteResult::kind).as_deref() == Some("create");
            let before = owned(result.and_then(WriteResult::original_file));
            (path, if is_new { FileText::Absent } else { known(before) }, known(after))
        }
        "Edit" => {
            let result: Option<EditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(EditResult::file_path).or_else(|| given("file_path")))?;
            let old = owned(result.and_then(EditResult::old_string).or_else(|| given("old_string")))?;
            let new = owned(result.and_then(EditResult::new_string).or_else(|| given("new_string")))?;
            let asked = || input.get("replace_all").and_then(Json::as_bool);
            let all = result.and_then(EditResult::replace_all).or_else(asked).unwrap_or(false);
            let before = owned(result.and_then(EditResult::original_file));
            // Replacing nothing is how a file is made; one that was there has its text in the result.
            let before = if old.is_empty() && before.is_none() { FileText::Absent } else { known(before) };
            replacements.push(Replacement { old, new, all });
            (path, before, FileText::Unknown)
        }
        "MultiEdit" => {
            let result: Option<MultiEditResult<'_>> = data.and_then(|data| data.of());
            let path = owned(result.and_then(MultiEditResult::file_path).or_else(|| given("file_path")))?;
            let edits = input.get("edits").into_iter().flat_map(Json::items);
            replacements.extend(edits.map(|edit| {
                let text = |key: &str| owned(edit.get(key).and_then(Json::as_str)).unwrap_or_default();
                let all = edit.get("replace_all").and_then(Json::as_bool).unwrap_or(false);
                Replacement { old: text("old_string"), new: text("new_string"), all }
            }));
            let before = owned(result.and_then(MultiEditResult::original_file_contents));
            (path, known(before), FileText::Unknown)
        }
        _ => (owned(given("notebook_path"))?, FileText::Unknown, FileText::Unknown),
    };
    let at = session.timestamp(entry_idx);
    Some((FileEdit { agent, entry_idx, at, path, before, after }, replacements))
}

/// The file after some replacements, each in what the one before left.
fn replaced(before: &FileText, replacements: &[Replacement]) -> FileText {
    let mut text = match before {
        FileText::Absent => String::new(),
        FileText::Text(text) => text.clone(),
        FileText::Unknown => return FileText::Unknown,
    };
    for Replacement { old, new, all } in replacements {
        match apply(&text, old, new, *all) {
            Some(after) => text = after,
            None => return FileText::Unknown,
        }
    }
    FileText::Text(text)
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
