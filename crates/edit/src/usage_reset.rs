//! Resets token counts of replies that follow removed content.
//!
//! Claude Code takes the last counts as the size of the context, and would compact a conversation that has
//! room again.

use threadline_entry::{Entry, Json, JsonKind, Kind};

use threadline_session::EntryIndex;

use crate::arrange::is_boundary;
use crate::draft::{EditDraft, LineContent};
use crate::splice::Splice;
use crate::tokens::tokens;

/// The reason for a reset.
pub(crate) const RESET_REASON: &str = "token counts reset (content removed)";

/// The number of tokens that may be lost to small changes before counts are reset.
const MIN_LOST_TOKENS: u64 = 200;

/// Sets the token counts of all replies to zero from the first line that lost content.
pub(crate) fn reset_counts(draft: &mut EditDraft<'_>, chain: &[EntryIndex]) {
    let spoken =
        |idx: EntryIndex| matches!(draft.session.entries()[idx].kind(), Kind::User | Kind::Assistant);
    let mut fewer = 0;
    let mut loses = |idx: EntryIndex| {
        let line_edit = draft.line_edit(idx);
        if !draft.is_removed(idx)
            && line_edit.removed_blocks.is_empty()
            && !matches!(line_edit.content, LineContent::Unchanged)
        {
            // Small replacements barely change the count, so they are added up.
            fewer += tokens(&draft.session.entries()[idx]).saturating_sub(tokens(&draft.entry(idx)));
        }
        draft.is_removed(idx) || !line_edit.removed_blocks.is_empty() || fewer > MIN_LOST_TOKENS
    };
    let lost = chain.iter().position(|&idx| spoken(idx) && loses(idx));
    // Lines above a new boundary are no longer sent.
    let mut boundaries = draft.added.iter().filter(|added| is_boundary(&added.entry));
    let added_boundary =
        boundaries.find_map(|added| chain.iter().position(|&idx| Some(idx) == added.after)).map(|at| at + 1);
    let Some(start) = [lost, added_boundary].into_iter().flatten().min() else { return };
    for &idx in &chain[start..] {
        let entry = &draft.session.entries()[idx];
        if draft.is_removed(idx)
            || entry.kind() != Kind::Assistant
            || matches!(draft.line_edit(idx).content, LineContent::Replaced(_))
        {
            continue;
        }
        let usage = entry.message().and_then(|message| message.usage());
        let Some(usage) = usage.map(|usage| threadline_entry::lens::Lens::object(usage).json()) else {
            continue;
        };
        let mut numbers = Vec::new();
        nonzero_numbers(usage, &mut numbers);
        let splices: Vec<Splice> =
            numbers.into_iter().map(|number| Splice::replace(entry.text(), number.raw(), "0")).collect();
        draft.line_edit_mut(idx).stale_usage = true;
        for splice in splices {
            draft.splice(idx, splice, RESET_REASON);
        }
    }
}

/// Returns whether a line has non-zero token counts.
pub(crate) fn has_counts(entry: &Entry) -> bool {
    let usage = entry.message().and_then(|message| message.usage());
    let mut numbers = Vec::new();
    if let Some(usage) = usage {
        nonzero_numbers(threadline_entry::lens::Lens::object(usage).json(), &mut numbers);
    }
    !numbers.is_empty()
}

/// Collects the non-zero numbers in a value.
fn nonzero_numbers<'a>(json: Json<'a>, numbers: &mut Vec<Json<'a>>) {
    json.visit_nested(|value| {
        if value.kind() == JsonKind::Number {
            numbers.extend(Some(value.json()).filter(|number| number.raw() != "0"));
        }
        true
    });
}
