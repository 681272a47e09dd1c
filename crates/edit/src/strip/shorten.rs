//! Shortens inputs and results of calls to their beginning, with a note that locates the full text.

use std::collections::BTreeMap;

use threadline_entry::lens::Lens;
use threadline_entry::{Entry, Json, JsonKind, key};
use threadline_session::{EntryIndex, ToolCall};

use crate::draft::EditDraft;
use crate::splice::{Splice, quote};

/// Strings of more than `LONG` characters are shortened to `PREVIEW` characters.
const LONG: usize = 1000;
const PREVIEW: usize = 400;

/// The beginning of a note. A text that contains it is not shortened again.
const NOTE: &str = "[threadline: ";

/// Shortens the long texts of calls and of their results.
pub(super) fn shorten_calls(draft: &mut EditDraft<'_>, calls: &[&ToolCall], origin: &str) {
    let session = draft.session;
    for (idx, block_idx, call) in super::call_blocks(session, calls) {
        let input = session.block(idx, block_idx).and_then(|block| block.input());
        if let Some(input) = input.filter(|_| !draft.is_removed(idx)) {
            shorten(draft, idx, input, origin, format!("input of {} truncated", call.name));
        }
    }
    let why = |call: &ToolCall| format!("result of {} truncated", call.name);
    let mut lines: BTreeMap<EntryIndex, &ToolCall> = BTreeMap::new();
    for call in calls {
        for result in &call.results {
            let content = result.block(session).and_then(|block| block.object().get(key::CONTENT));
            if let Some(content) = content.filter(|_| !draft.is_removed(result.entry_idx)) {
                shorten(draft, result.entry_idx, content, origin, why(call));
                lines.insert(result.entry_idx, call);
            }
        }
    }
    for (idx, call) in lines {
        if let Some(data) = session.entries()[idx].get(key::TOOL_USE_RESULT) {
            shorten(draft, idx, data, origin, why(call));
        }
    }
}

fn shorten(draft: &mut EditDraft<'_>, idx: EntryIndex, json: Json<'_>, origin: &str, why: String) {
    let entry = &draft.session.entries()[idx];
    let mut splices = Vec::new();
    find(entry, json, origin, &mut splices);
    for splice in splices {
        draft.splice(idx, splice, why.clone());
    }
}

/// Finds the long strings in a value. Skips encoded data, such as images, and signatures: a part of one is
/// invalid.
fn find(entry: &Entry, json: Json<'_>, origin: &str, out: &mut Vec<Splice>) {
    match json.kind() {
        JsonKind::Array => json.items().for_each(|item| find(entry, item, origin, out)),
        JsonKind::Object => {
            for (key, value) in json.members() {
                if !(key.is("data") || key.is("base64") || key.is("signature")) {
                    find(entry, value, origin, out);
                }
            }
        }
        JsonKind::String => {
            let Some(text) = json.as_str() else { return };
            let length = text.chars().count();
            if length <= LONG || text.contains(NOTE) {
                return;
            }
            let preview: String = text.chars().take(PREVIEW).collect();
            let line = entry.at().line_no;
            let note =
                format!("{NOTE}first {PREVIEW} of {length} characters; full text: line {line} of {origin}]");
            out.push(Splice::replace(
                entry.text(),
                json.raw(),
                quote(&format!("{}\n{note}", preview.trim_end())),
            ));
        }
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => {}
    }
}
