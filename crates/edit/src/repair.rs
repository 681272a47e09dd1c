//! Repairs the defects that `check` finds, each with a reason.
//!
//! A repair takes two steps. First every line is made readable, unique, and linked to a parent, because the
//! conversation is not known before (`Repair::start`). The remaining repairs are drafted like any other edit
//! (`Repair::draft`).

mod readable;

use foldhash::HashMap;
use threadline_entry::lens::Lens;
use threadline_entry::{Code, Kind, value};
use threadline_session::{EntryIndex, IndexRange, LineFault, Session};

use crate::draft::{EditDraft, Reasons};
use crate::sanitize;
use crate::seed::PlanSeed;
use crate::splice::{Splice, set};

/// The changes that made the lines of a session readable.
#[derive(Debug, Default)]
pub struct Repair {
    /// The reasons of the changes to the lines of the session.
    reasons: HashMap<EntryIndex, Reasons>,
    /// The lines of the log that the session does not contain: their numbers, and the reasons.
    removed: Vec<(u64, String)>,
}

/// The findings that a repair fixes in a log, where possible.
pub const REPAIRED_CODES: &[Code] = &[
    Code::OrphanCall,
    Code::OrphanResult,
    Code::DanglingParent,
    Code::LateParent,
    Code::StaleTip,
    Code::LostRetry,
    Code::DuplicateUuid,
    Code::BrokenLine,
    Code::HollowThinking,
    Code::BadSignature,
    Code::LoneSurrogate,
    Code::LargeImage,
    Code::EmptyContent,
    Code::HiddenFromPicker,
    Code::ErrorTail,
    Code::MissingField,
    Code::Cycle,
    Code::OddBytes,
    Code::DuplicateKey,
];

impl Repair {
    /// Makes the lines of a session readable, and returns it with the changes. Lines without an id get a new
    /// one.
    ///
    /// Consumes the session, since both together would need twice the memory.
    pub fn start(source: Session, seed: &PlanSeed) -> (Session, Self) {
        readable::readable(source, seed)
    }

    /// Drafts the remaining repairs of the session that [`Repair::start`] returned, and notes the changes
    /// already made. There is nothing to repair if [`EditDraft::is_untouched`] returns true.
    pub fn draft<'s>(&'s self, session: &'s Session) -> EditDraft<'s> {
        let mut draft = EditDraft::new(session);
        draft.earlier_reasons = Some(&self.reasons);
        draft.already_removed = self.removed.clone();
        let mut orphans: Vec<(EntryIndex, u32)> = session
            .orphan_results()
            .flat_map(|(_, results)| results)
            .map(|result| (result.entry_idx, result.block_idx))
            .collect();
        orphans.sort_unstable();
        // A line may have very many calls without results. One repair is for all of them.
        let mut faults = session.line_faults();
        faults.dedup();
        for fault in faults {
            repair_fault(&mut draft, fault, &orphans);
        }
        move_pr_links(&mut draft);
        draft
    }
}

/// Repairs one fault. `orphans` contains the results without a call: entries and block indices, sorted.
fn repair_fault(draft: &mut EditDraft<'_>, fault: LineFault, orphans: &[(EntryIndex, u32)]) {
    let session = draft.session();
    let idx = fault.entry_idx;
    let is_harmless = !fault.severity.is_problem();
    match fault.code {
        Code::BrokenLine if !is_harmless => remove_line(draft, idx, "unreadable line"),
        Code::OrphanCall => {
            let calls = session
                .calls_on(idx)
                .map(|call| &session.tool_calls()[call])
                .filter(|call| call.results.is_empty());
            for call in calls.filter(|call| call.entry_idx == idx) {
                draft.remove_block(idx, call.block_idx as usize, "tool call without a result");
            }
        }
        Code::OrphanResult => {
            let start = orphans.partition_point(|&(of, _)| of < idx);
            for &(_, block_idx) in orphans[start..].iter().take_while(|&&(of, _)| of == idx) {
                draft.remove_block(idx, block_idx as usize, "tool result without a call");
            }
        }
        Code::HollowThinking if !is_harmless => {
            sanitize::remove_thinking(draft, idx, "thinking without text")
        }
        Code::BadSignature if !is_harmless => {
            sanitize::remove_thinking(draft, idx, "thinking without a signature")
        }
        Code::LoneSurrogate | Code::OddBytes if !is_harmless => sanitize::replace_invalid_text(draft, idx),
        Code::EmptyContent if !is_harmless => sanitize::remove_empty(draft, idx),
        Code::LargeImage => replace_images(draft, idx),
        Code::ErrorTail => remove_error_tail(draft, idx),
        _ => {}
    }
}

fn remove_line(draft: &mut EditDraft<'_>, idx: EntryIndex, why: &'static str) {
    if !draft.is_removed(idx) {
        draft.remove(idx, why);
    }
}

/// Replaces every image of a line with a text.
fn replace_images(draft: &mut EditDraft<'_>, idx: EntryIndex) {
    const PLACEHOLDER: &str = r#"{"type":"text","text":"[image removed: larger than the API accepts]"}"#;
    let entry = &draft.session().entries()[idx];
    let mut images: Vec<&str> = Vec::new();
    for block in entry.message().into_iter().flat_map(|message| message.blocks()) {
        let nested = block.content().into_iter().flat_map(|content| content.blocks());
        let all = std::iter::once(block).chain(nested).filter(|block| block.is(value::IMAGE));
        images.extend(all.map(|block| block.object().json().raw()));
    }
    for image in images {
        draft.splice(idx, Splice::replace(entry.text(), image, PLACEHOLDER), "image too large");
    }
}

/// Moves `pr-link` lines at the start after the first message. Claude Code does not list sessions that
/// begin with one.
fn move_pr_links(draft: &mut EditDraft<'_>) {
    let session = draft.session();
    let entries = session.entries();
    let Some(first) =
        entries.indices().find(|&idx| entries[idx].kind() != Kind::Blank && !draft.is_removed(idx))
    else {
        return;
    };
    let Some(prompt) =
        entries.indices().find(|&idx| matches!(entries[idx].kind(), Kind::User | Kind::Assistant))
    else {
        return;
    };
    let links = (first..prompt).indices().map(|idx| (idx, &entries[idx]));
    for (at, entry) in links.take_while(|(_, entry)| entry.kind() == Kind::PrLink) {
        draft.remove(at, "moved after the first prompt");
        draft.insert(Some(prompt), entry.text(), "moved after the first prompt");
    }
}

/// Removes the API errors at the end of a session.
fn remove_error_tail(draft: &mut EditDraft<'_>, last: EntryIndex) {
    let session = draft.session();
    for idx in (EntryIndex::FIRST..last.next()).indices().rev() {
        let entry = &session.entries()[idx];
        if !matches!(entry.kind(), Kind::User | Kind::Assistant)
            || session.is_sidechain(idx)
            || draft.is_removed(idx)
        {
            continue;
        }
        if !entry.is_api_error() {
            break;
        }
        draft.remove(idx, "API error at the end");
    }
}

/// Returns a line with a key set to a value, or the unchanged line if it is not an object.
fn with_value(entry: &threadline_entry::Entry, key: &str, value: &str) -> String {
    let mut splices: Vec<Splice> = set(entry, key, value).into_iter().collect();
    crate::splice::apply(entry.text(), &mut splices)
}
