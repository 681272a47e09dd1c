//! Builds plans of small logs, and renders their results.

use threadline_edit::{EditDraft, EditPlan, PlanOptions, PlanSeed, PlanTarget};
use threadline_entry::{Entry, Json};
use threadline_session::{ClientVersion, Session};

pub(crate) const NEW: &str = "5b0c9f1e-0000-4000-8000-000000000001";

/// The version used to compare a session with its edited copy. Like edits, it skips calls without a result.
pub(crate) const V197: ClientVersion = ClientVersion::new(2, 1, 197);

pub(crate) fn session(bytes: &[u8]) -> Session {
    let mut session = Session::with_id("s1");
    for entry in Session::from_bytes(bytes).entries() {
        session.push(entry.clone(), Vec::new());
    }
    session
}

pub(crate) fn options(target: PlanTarget) -> PlanOptions {
    let fresh = PlanSeed { seed: NEW.to_owned(), now: 1_767_261_600_000 };
    PlanOptions { target, seed: fresh }
}

/// Returns the plan of an operation on a session.
pub(crate) fn plan<'s>(
    session: &'s Session,
    target: PlanTarget,
    edit: impl FnOnce(&mut EditDraft<'s>),
) -> EditPlan<'s> {
    let mut draft = EditDraft::new(session);
    edit(&mut draft);
    draft.plan(options(target))
}

pub(crate) fn new() -> PlanTarget {
    PlanTarget::New(NEW.to_owned())
}

/// Renders each line of the result: uuid, parent, time and content. New uuids are shown as the old ones
/// with a prime.
pub(crate) fn rendered(plan: &EditPlan<'_>) -> String {
    let bytes = plan.to_bytes();
    let result = Session::from_bytes(&bytes);
    let mut names: Vec<(String, String)> = Vec::new();
    let fresh = &plan.options().seed;
    for uuid in plan.session().entries().iter().filter_map(Entry::uuid) {
        names.push((fresh.uuid(&uuid), uuid.into_owned()));
    }
    let name = |uuid: &str| {
        let known = names.iter().find(|(new, _)| new == uuid).map(|(_, old)| format!("{old}'"));
        known.unwrap_or_else(|| if uuid.len() == 36 { "fresh".to_owned() } else { uuid.to_owned() })
    };
    let mut out = String::new();
    for entry in result.entries() {
        let id = entry.uuid().map_or_else(|| "-".to_owned(), |uuid| name(&uuid));
        let parent = entry.parent_uuid().map_or_else(String::new, |uuid| format!(" <- {}", name(&uuid)));
        let time = entry.get("timestamp").and_then(Json::as_str).map_or_else(String::new, |time| {
            format!(
                " @{}",
                time.get(14..23).unwrap_or_default().trim_end_matches("000").trim_end_matches('.')
            )
        });
        let kind = entry.type_name().unwrap_or_default().into_owned();
        let blocks: Vec<String> = entry
            .message()
            .into_iter()
            .flat_map(|message| message.blocks())
            .map(|block| block.kind().unwrap_or_default().into_owned())
            .collect();
        out.push_str(format!("{id}{parent}{time} {kind} {}", blocks.join("+")).trim_end());
        out.push('\n');
    }
    out
}
