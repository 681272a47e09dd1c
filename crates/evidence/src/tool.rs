//! What the file tools of Claude Code record: texts that were read, written and edited.

use std::borrow::Cow;

use threadline_entry::Json;
use threadline_entry::lens::{
    EditResult, MultiEditResult, NotebookEditResult, ReadFile, ReadResult, ToolUseResult, WriteResult,
};
use threadline_session::{Session, ToolCall};

use crate::change::FileChangeKind;
use crate::content::{FileBytes, FileContent};
use crate::hunk::{line_hunks, reverse_hunks};
use crate::replacement::EditReplacement;
use crate::timeline::{EvidenceSource, Known};

/// A file that a tool read or changed.
pub(crate) struct ToolChange {
    /// The path as the tool got it.
    pub(crate) path: String,
    /// The content before, if the result has it.
    pub(crate) before: Option<Known>,
    pub(crate) change: FileChangeKind,
}

/// Returns what a successful call of a file tool did. `None` for other tools, and if the call or its result
/// lacks a required field.
pub(crate) fn tool_change(session: &Session, call: &ToolCall) -> Option<ToolChange> {
    let input = call.block(session)?.input()?;
    let record = call.results.first()?.record(session);
    match &*call.name {
        "Write" => write(input, record, &result_text(session, call)),
        "Edit" => edit(input, record),
        "MultiEdit" => multi_edit(input, record),
        "NotebookEdit" => notebook_edit(input, record),
        "Read" => read(session, call, input),
        _ => None,
    }
}

fn owned(text: Option<Cow<'_, str>>) -> Option<String> {
    text.map(Cow::into_owned)
}

fn result_text(session: &Session, call: &ToolCall) -> String {
    call.result(session)
        .and_then(|result| result.content())
        .map(|content| content.text().into_owned())
        .unwrap_or_default()
}

fn given(input: Json<'_>, key: &str) -> Option<String> {
    owned(input.get(key).and_then(Json::as_str))
}

/// A text as the tools show it.
fn shown(text: Option<Cow<'_, str>>, source: EvidenceSource) -> Option<Known> {
    Some(Known::exact(FileContent::shown(&text?)?, source))
}

fn write(input: Json<'_>, record: Option<ToolUseResult<'_>>, text: &str) -> Option<ToolChange> {
    let result: Option<WriteResult<'_>> = record.and_then(ToolUseResult::of);
    let path = owned(result.and_then(WriteResult::file_path)).or_else(|| given(input, "file_path"))?;
    let after = owned(result.and_then(WriteResult::content)).or_else(|| given(input, "content"))?;
    // The results of sub-agents have no record.
    let is_new = match result.and_then(WriteResult::kind) {
        Some(kind) => kind == "create",
        None => text.starts_with("File created"),
    };
    let original = || shown(result?.original_file(), EvidenceSource::Edit);
    let reversed = || {
        let hunks = line_hunks(result?.structured_patch());
        let after = FileBytes { bytes: after.as_bytes().into(), is_shown: true };
        let before = reverse_hunks(&after, &hunks).filter(|_| !hunks.is_empty())?;
        Some(Known::exact(FileContent::File(before.file), EvidenceSource::Edit))
    };
    let before = match is_new {
        true => Some(Known::exact(FileContent::Absent, EvidenceSource::Edit)),
        false => original().or_else(reversed),
    };
    let after = Known::exact(FileContent::bytes(after.into_bytes()), EvidenceSource::Write);
    Some(ToolChange { path, before, change: FileChangeKind::Become(after) })
}

fn edit(input: Json<'_>, record: Option<ToolUseResult<'_>>) -> Option<ToolChange> {
    let result: Option<EditResult<'_>> = record.and_then(ToolUseResult::of);
    let path = owned(result.and_then(EditResult::file_path)).or_else(|| given(input, "file_path"))?;
    let old = owned(result.and_then(EditResult::old_string)).or_else(|| given(input, "old_string"))?;
    let new = owned(result.and_then(EditResult::new_string)).or_else(|| given(input, "new_string"))?;
    let asked = || input.get("replace_all").and_then(Json::as_bool);
    let all = result.and_then(EditResult::replace_all).or_else(asked).unwrap_or(false);
    let before = shown(result.and_then(EditResult::original_file), EvidenceSource::Edit);
    // An `Edit` with an empty old string creates a file. If the file existed, the result contains its text.
    let created = || old.is_empty().then(|| Known::exact(FileContent::Absent, EvidenceSource::Edit));
    let before = before.or_else(created);
    let replacements = [EditReplacement { old, new, all }].into();
    let hunks = line_hunks(result.and_then(EditResult::structured_patch)).into();
    Some(ToolChange { path, before, change: FileChangeKind::Edit { replacements, hunks } })
}

fn multi_edit(input: Json<'_>, record: Option<ToolUseResult<'_>>) -> Option<ToolChange> {
    let result: Option<MultiEditResult<'_>> = record.and_then(ToolUseResult::of);
    let path = owned(result.and_then(MultiEditResult::file_path)).or_else(|| given(input, "file_path"))?;
    let listed = input.get("edits").into_iter().flat_map(Json::items);
    let replacements = listed.map(|edit| EditReplacement {
        old: given(edit, "old_string").unwrap_or_default(),
        new: given(edit, "new_string").unwrap_or_default(),
        all: edit.get("replace_all").and_then(Json::as_bool).unwrap_or(false),
    });
    let before = shown(result.and_then(MultiEditResult::original_file_contents), EvidenceSource::Edit);
    let hunks = line_hunks(result.and_then(MultiEditResult::structured_patch)).into();
    Some(ToolChange {
        path,
        before,
        change: FileChangeKind::Edit { replacements: replacements.collect(), hunks },
    })
}

fn notebook_edit(input: Json<'_>, record: Option<ToolUseResult<'_>>) -> Option<ToolChange> {
    let result: Option<NotebookEditResult<'_>> = record.and_then(ToolUseResult::of);
    let named = owned(result.and_then(NotebookEditResult::notebook_path));
    let path = named.or_else(|| given(input, "notebook_path"))?;
    let before = shown(result.and_then(NotebookEditResult::original_file), EvidenceSource::Edit);
    let after = shown(result.and_then(NotebookEditResult::updated_file), EvidenceSource::Write);
    Some(ToolChange { path, before, change: after.map_or(FileChangeKind::Changed, FileChangeKind::Become) })
}

fn read(session: &Session, call: &ToolCall, input: Json<'_>) -> Option<ToolChange> {
    let record = call.results.first()?.record(session);
    let file = record.and_then(|record| record.of::<ReadResult<'_>>()?.file());
    let (path, text) = match file {
        Some(file) => (owned(file.file_path())?, owned(file.content().filter(|_| is_whole(file)))?),
        // The results of sub-agents have no record.
        None if record.is_none() && input.get("offset").is_none() && input.get("limit").is_none() => {
            let text = call.result(session)?.content()?.text();
            (given(input, "file_path")?, unnumbered(&text)?)
        }
        None => return None,
    };
    let before = Some(Known::exact(FileContent::shown(&text)?, EvidenceSource::Read));
    Some(ToolChange { path, before, change: FileChangeKind::Seen })
}

fn is_whole(file: ReadFile<'_>) -> bool {
    file.start_line() == Some(1) && file.num_lines().is_some() && file.num_lines() == file.total_lines()
}

/// The number of lines and the length of a line from which on a result may be truncated.
const MAX_READ: (usize, usize) = (2000, 2000);

/// Returns the text of a file from its numbered lines in a result: `1`, a tab, the line, as Claude Code
/// writes them from 2.1.197 on. A newline at the end of the file is an empty last line there.
fn unnumbered(result: &str) -> Option<String> {
    let mut lines = Vec::new();
    for line in result.split('\n') {
        let (number, line) = line.split_once('\t').unwrap_or((line, ""));
        let is_next = number.parse::<usize>() == Ok(lines.len() + 1);
        if !is_next || line.len() >= MAX_READ.1 || lines.len() >= MAX_READ.0 {
            return None;
        }
        lines.push(line);
    }
    Some(lines.join("\n"))
}
