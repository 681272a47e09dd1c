//! Shortens inputs and results of calls to their beginning, with a note that locates the full text.

use threadline_entry::lens::Lens;
use threadline_entry::{Entry, Json, JsonKind};
use threadline_session::ToolCall;

use crate::draft::Draft;
use crate::splice::{Splice, quote};

/// Strings of more than `LONG` characters are shortened to `PREVIEW` characters.
const LONG: usize = 1000;
const PREVIEW: usize = 400;

/// The beginning of a note. A text that contains it is not shortened again.
const NOTE: &str = "[threadline: ";

/// Shortens the long strings of a call and of its results.
pub(super) fn call(draft: &mut Draft<'_>, call: &ToolCall, origin: &str) {
    let session = draft.session;
    for idx in call.lines().filter(|&idx| !draft.goes(idx)).collect::<Vec<_>>() {
        let entry = &session.entries()[idx];
        let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
        let own = blocks.filter(|block| block.is("tool_use") && block.id().is_some_and(|id| id == call.id));
        let inputs: Vec<_> = own.filter_map(|block| block.input()).collect();
        for input in inputs {
            shorten(draft, idx, input, origin, format!("input of {} shortened", call.name));
        }
    }
    for result in &call.results {
        let idx = result.entry_idx;
        let entry = &session.entries()[idx];
        let why = || format!("result of {} shortened", call.name);
        let content = result.block(session).and_then(|block| block.object().get("content"));
        if draft.goes(idx) || content.is_none() {
            continue;
        }
        if let Some(content) = content {
            shorten(draft, idx, content, origin, why());
        }
        if let Some(data) = entry.get("toolUseResult") {
            shorten(draft, idx, data, origin, why());
        }
    }
}

fn shorten(draft: &mut Draft<'_>, idx: usize, json: Json<'_>, origin: &str, why: String) {
    let entry = &draft.session.entries()[idx];
    let mut splices = Vec::new();
    find(entry, json, origin, &mut splices);
    for splice in splices {
        draft.splice(idx, splice, why.clone());
    }
}

/// Finds the long strings in a value. Binary data, such as images, is skipped.
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
            let Some(text) = json.as_str().filter(|text| text.len() > LONG) else { return };
            let length = text.chars().count();
            if length <= LONG || text.contains(NOTE) {
                return;
            }
            let preview: String = text.chars().take(PREVIEW).collect();
            let line = entry.at().line_no;
            let note =
                format!("{NOTE}first {PREVIEW} of {length} characters; full text: line {line} of {origin}]");
            out.push(Splice::over(
                entry.text(),
                json.raw(),
                quote(&format!("{}\n{note}", preview.trim_end())),
            ));
        }
        JsonKind::Null | JsonKind::Bool | JsonKind::Number => {}
    }
}
