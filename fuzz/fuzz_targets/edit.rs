//! Checks that every accepted plan has the digest of its bytes, that a strip breaks no line, that a redaction
//! leaves no secret, that a repair leaves no unreadable line, and that a clone keeps no id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use threadline_edit::{
    ContentDigest, EditDraft, EditPlan, PlanOptions, PlanSeed, PlanTarget, Redactor, Repair, StripPreset,
    clone, strip,
};
use threadline_entry::{Entry, Kind, StringRole, visit_strings};
use threadline_fuzz::log;
use threadline_secret::Rules;
use threadline_session::Session;

const NEW: &str = "5b0c9f1e-0000-4000-8000-000000000001";

thread_local!(static RULES: &'static Rules = Box::leak(Box::new(Rules::new())));

fn fresh() -> PlanSeed {
    PlanSeed { seed: NEW.to_owned(), now: 1_767_261_600_000 }
}

fn shape(target: PlanTarget) -> PlanOptions {
    PlanOptions { target, seed: fresh() }
}

/// Returns the bytes of a plan without refusals.
fn accepted(plan: &EditPlan<'_>) -> Option<Vec<u8>> {
    if !plan.refusals().is_empty() {
        return None;
    }
    let bytes = plan.to_bytes();
    assert_eq!(ContentDigest::of(&bytes), plan.digest(), "the digest of a plan");
    assert_eq!(bytes, plan.to_bytes(), "the same plan twice");
    Some(bytes)
}

fn stripped(bytes: &[u8], preset: StripPreset, target: PlanTarget) {
    let session = Session::from_bytes(bytes);
    let mut draft = EditDraft::new(&session);
    strip(&mut draft, &preset.options(), "x");
    let plan = draft.plan(shape(target));
    let Some(result) = accepted(&plan) else { return };
    // Not asserted: that a second strip does nothing, and that the estimate of tokens falls. The first
    // holds for logs of known types (`a_strip_of_a_stripped_session_does_nothing` in `crates/edit`). On
    // lines that the fuzzer broke or whose types it made up, neither does: the first strip also puts the
    // tree in order, which may bring lines into the conversation that were outside of it, and no promise is
    // made about those.
    let bad = |session: &Session| session.entries().iter().filter(|entry| entry.kind() == Kind::Bad).count();
    let stripped = Session::from_bytes(&result);
    assert!(bad(&stripped) <= bad(&session), "a strip broke a line");
}

fn redacted(bytes: &[u8]) {
    let rules = RULES.with(|rules| *rules);
    let session = Session::from_bytes(bytes);
    let mut redactor = Redactor::new(rules);
    redactor.learn(&session);
    redactor.finish_learning();
    let mut draft = EditDraft::new(&session);
    redactor.redact(&mut draft);
    let plan = draft.plan(shape(PlanTarget::KeepOrder));
    let Some(result) = accepted(&plan) else { return };
    let session = Session::from_bytes(&result);
    for entry in session.entries().iter().filter(|entry| entry.kind() != Kind::Bad) {
        visit_strings(entry.text(), |text| {
            if !matches!(text.role, StringRole::Id | StringRole::Opaque) {
                assert!(!rules.has_findings(&text.decoded()), "a secret is left in {}", entry.text());
            }
        });
    }
}

fn repaired(bytes: &[u8]) {
    let (session, repair) = Repair::start(Session::from_bytes(bytes), &fresh());
    let plan = repair.draft(&session).plan(shape(PlanTarget::InPlace));
    let Some(result) = accepted(&plan) else { return };
    let session = Session::from_bytes(&result);
    // Comments are harmless, and stay.
    let is_comment = |entry: &Entry| entry.text().trim_start_matches('\u{feff}').trim().starts_with("//");
    let is_readable = |entry: &Entry| entry.kind() != Kind::Bad || is_comment(entry);
    assert!(session.entries().iter().all(is_readable), "a line that nothing can read");
}

fn cloned(bytes: &[u8]) {
    let session = Session::from_bytes(bytes);
    let mut draft = EditDraft::new(&session);
    if clone(&mut draft, None, None).is_err() {
        return;
    }
    let plan = draft.plan(shape(PlanTarget::New(NEW.to_owned())));
    let Some(result) = accepted(&plan) else { return };
    let result = Session::from_bytes(&result);
    let old: std::collections::HashSet<_> = session.entries().iter().filter_map(Entry::uuid).collect();
    // A line of unknown type without a parent is copied unchanged. It is in no conversation, so nothing
    // refers to its uuid, and the meaning of its fields is unknown.
    let known = |entry: &&Entry| matches!(entry.kind(), Kind::User | Kind::Assistant | Kind::System);
    for uuid in result.entries().iter().filter(known).filter_map(Entry::uuid) {
        assert!(!old.contains(&uuid), "a clone keeps {uuid}");
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let bytes = log(data);
    let target = if how < 128 { PlanTarget::InPlace } else { PlanTarget::New(NEW.to_owned()) };
    match how % 7 {
        0 => cloned(&bytes),
        1 => stripped(&bytes, StripPreset::Light, target),
        2 => stripped(&bytes, StripPreset::Standard, target),
        3 => stripped(&bytes, StripPreset::Heavy, target),
        4 => stripped(&bytes, StripPreset::Extreme, target),
        5 => redacted(&bytes),
        _ => repaired(&bytes),
    }
});
