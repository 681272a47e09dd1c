//! The tokens that replies say they used: where content went before a reply, its figures count what is gone.
//!
//! Claude Code takes the last figures for how full the conversation is, and would compact one that has room again.

use threadline_entry::{Entry, Json, JsonKind, Kind};

use crate::arrange::is_boundary;
use crate::draft::{Body, Draft};
use crate::splice::Splice;
use crate::tokens::tokens;

/// Why a reply's figures are zero.
pub(crate) const WHY: &str = "tokens set to zero, for they count what is gone";

/// So many tokens less are no reason to forget what was counted.
const HARDLY: u64 = 200;

/// Sets the figures of replies to zero from the first place on where the conversation lost something.
pub(crate) fn zero(draft: &mut Draft<'_>, chain: &[usize]) {
    let spoken = |idx: usize| matches!(draft.session.entries()[idx].kind(), Kind::User | Kind::Assistant);
    let mut fewer = 0;
    let mut loses = |idx: usize| {
        let fate = &draft.fates[idx];
        if !fate.goes && fate.out.is_empty() && !matches!(fate.body, Body::Same) {
            // Other words for some make it hardly less.
            fewer += tokens(&draft.session.entries()[idx]).saturating_sub(tokens(&draft.entry(idx)));
        }
        fate.goes || !fate.out.is_empty() || fewer > HARDLY
    };
    let lost = chain.iter().position(|&idx| spoken(idx) && loses(idx));
    // What stands above a new boundary is not sent any more.
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

/// Whether a line counts tokens.
pub(crate) fn counts(entry: &Entry) -> bool {
    let usage = entry.message().and_then(|message| message.usage());
    let mut numbers = Vec::new();
    if let Some(usage) = usage {
        collect(threadline_entry::lens::Lens::object(usage).json(), &mut numbers);
    }
    !numbers.is_empty()
}

/// The numbers in a value that are not zero.
fn collect<'a>(json: Json<'a>, numbers: &mut Vec<Json<'a>>) {
    match json.kind() {
        JsonKind::Object => json.members().for_each(|(_, value)| collect(value, numbers)),
        JsonKind::Array => json.items().for_each(|item| collect(item, numbers)),
        JsonKind::Number if json.raw() != "0" => numbers.push(json),
        _ => {}
    }
}
