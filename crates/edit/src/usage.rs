//! Resets token counts of replies that follow removed content.
//!
//! Claude Code takes the last counts as the size of the context, and would compact a conversation that has
//! room again.

use threadline_entry::{Entry, Json, JsonKind, Kind};

use crate::arrange::is_boundary;
use crate::draft::{Body, Draft};
use crate::splice::Splice;
use crate::tokens::tokens;

/// The reason for a reset.
pub(crate) const WHY: &str = "token counts reset (content removed)";

/// The number of tokens that may be lost to small changes before counts are reset.
const HARDLY: u64 = 200;

/// Sets the token counts of all replies to zero from the first line that lost content.
pub(crate) fn zero(draft: &mut Draft<'_>, chain: &[usize]) {
    let spoken = |idx: usize| matches!(draft.session.entries()[idx].kind(), Kind::User | Kind::Assistant);
    let mut fewer = 0;
    let mut loses = |idx: usize| {
        let fate = &draft.fates[idx];
        if !fate.goes && fate.out.is_empty() && !matches!(fate.body, Body::Same) {
            // Small replacements barely change the count, so they are added up.
            fewer += tokens(&draft.session.entries()[idx]).saturating_sub(tokens(&draft.entry(idx)));
        }
        fate.goes || !fate.out.is_empty() || fewer > HARDLY
    };
    let lost = chain.iter().position(|&idx| spoken(idx) && loses(idx));
    // Lines above a new boundary are no longer sent.
    let mut boundaries = draft.added.iter().filter(|added| is_boundary(&added.entry));
    let told =
        boundaries.find_map(|added| chain.iter().position(|&idx| Some(idx) == added.after)).map(|at| at + 1);
    let Some(start) = [lost, told].into_iter().flatten().min() else { return };
    for &idx in &chain[start..] {
        let entry = &draft.session.entries()[idx];
        if draft.fates[idx].goes
            || entry.kind() != Kind::Assistant
            || matches!(draft.fates[idx].body, Body::Made(_))
        {
            continue;
        }
        let usage = entry.message().and_then(|message| message.usage());
        let Some(usage) = usage.map(|usage| threadline_entry::lens::Lens::object(usage).json()) else {
            continue;
        };
        let mut numbers = Vec::new();
        collect(usage, &mut numbers);
        let splices: Vec<Splice> =
            numbers.into_iter().map(|number| Splice::over(entry.text(), number.raw(), "0")).collect();
        draft.fates[idx].stale = true;
        for splice in splices {
            draft.splice(idx, splice, WHY);
        }
    }
}

/// Returns whether a line has non-zero token counts.
pub(crate) fn counts(entry: &Entry) -> bool {
    let usage = entry.message().and_then(|message| message.usage());
    let mut numbers = Vec::new();
    if let Some(usage) = usage {
        collect(threadline_entry::lens::Lens::object(usage).json(), &mut numbers);
    }
    !numbers.is_empty()
}

/// Collects the non-zero numbers in a value.
fn collect<'a>(json: Json<'a>, numbers: &mut Vec<Json<'a>>) {
    match json.kind() {
        JsonKind::Object => json.members().for_each(|(_, value)| collect(value, numbers)),
        JsonKind::Array => json.items().for_each(|item| collect(item, numbers)),
        JsonKind::Number if json.raw() != "0" => numbers.push(json),
        _ => {}
    }
}
