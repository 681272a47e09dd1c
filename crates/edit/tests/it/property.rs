//! Properties of all sessions: sound ones, and ones with missing, duplicate or truncated lines.

use std::fmt::Write;

use proptest::prelude::*;
use threadline_edit::{EditPlan, PlanTarget, StripOptions, StripPreset, ToolStripOptions, clone, strip};
use threadline_entry::{Entry, Json};
use threadline_session::Session;
use threadline_testkit::log;

use crate::support::{V197, new, options, plan, session};

/// One step of a turn.
#[derive(Clone, Debug)]
enum Step {
    Think,
    Say,
    /// Several parallel calls, with results written as a fork, and optionally with progress lines.
    Call(usize, bool),
    /// A call without a result.
    Unanswered,
    Attach,
    Snapshot,
    Image,
    /// The person rewinds to the prompt and asks again.
    Rewind,
    Compact,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => Just(Step::Think),
        4 => Just(Step::Say),
        4 => (1usize..4, any::<bool>()).prop_map(|(n, progress)| Step::Call(n, progress)),
        1 => Just(Step::Unanswered),
        1 => Just(Step::Attach),
        1 => Just(Step::Snapshot),
        1 => Just(Step::Image),
        1 => Just(Step::Rewind),
        1 => Just(Step::Compact),
    ];
    prop::collection::vec(step, 1..8)
}

/// Returns a log of such turns, in `testkit` notation.
fn notation(turns: &[Vec<Step>]) -> String {
    let mut out = String::new();
    let mut n = 0;
    let mut tip: Option<String> = None;
    let line = |out: &mut String, tip: &mut Option<String>, id: &str, what: &str| {
        let arrow = tip.as_ref().map(|tip| format!(" <- {tip}")).unwrap_or_default();
        writeln!(out, "{id}{arrow} {what}").unwrap();
        *tip = Some(id.to_owned());
    };
    for (t, steps) in turns.iter().enumerate() {
        line(&mut out, &mut tip, &format!("u{t}"), &format!("user \"question {t}\""));
        let prompt = tip.clone();
        for step in steps {
            n += 1;
            match step {
                Step::Think => {
                    line(
                        &mut out,
                        &mut tip,
                        &format!("h{n}"),
                        &format!("reply m{n} thinking \"hm {n}\" \"sig\""),
                    );
                    line(
                        &mut out,
                        &mut tip,
                        &format!("s{n}"),
                        &format!(
                            "reply m{n} text \"So {n}.\" usage={{\"input_tokens\":{n},\"output_tokens\":9}}"
                        ),
                    );
                }
                Step::Say => {
                    line(&mut out, &mut tip, &format!("s{n}"), &format!("reply m{n} text \"Well {n}.\""))
                }
                Step::Call(calls, progress) => {
                    line(
                        &mut out,
                        &mut tip,
                        &format!("h{n}"),
                        &format!("reply m{n} thinking \"let me {n}\" \"sig\""),
                    );
                    for c in 0..*calls {
                        let call = format!("c{n}x{c}");
                        line(
                            &mut out,
                            &mut tip,
                            &call,
                            &format!("reply m{n} tool t{n}x{c} Bash {{\"command\":\"ls {n}\"}}"),
                        );
                        let mut result_tip = Some(call.clone());
                        if *progress {
                            line(
                                &mut out,
                                &mut result_tip,
                                &format!("p{n}x{c}"),
                                &format!("progress bash t{n}x{c}"),
                            );
                        }
                        let text = "long ".repeat(400);
                        line(
                            &mut out,
                            &mut result_tip,
                            &format!("r{n}x{c}"),
                            &format!("result t{n}x{c} \"{text}\""),
                        );
                        // The conversation continues from the last result; the others are leaves.
                        if c + 1 == *calls {
                            tip = result_tip;
                        }
                    }
                    line(&mut out, &mut tip, &format!("s{n}"), &format!("reply m{n}b text \"Done {n}.\""));
                }
                Step::Unanswered => line(
                    &mut out,
                    &mut tip,
                    &format!("c{n}"),
                    &format!("reply m{n} tool t{n} Read {{\"file_path\":\"/a\"}}"),
                ),
                Step::Attach => line(&mut out, &mut tip, &format!("a{n}"), "attach task_reminder"),
                Step::Snapshot => writeln!(out, "snapshot {}", prompt.as_deref().unwrap_or("u0")).unwrap(),
                Step::Image => line(
                    &mut out,
                    &mut tip,
                    &format!("i{n}"),
                    &format!("user [image png, text \"look {n}\"]"),
                ),
                Step::Rewind => {
                    tip = prompt.clone();
                    line(&mut out, &mut tip, &format!("s{n}"), &format!("reply m{n} text \"Again {n}.\""));
                }
                Step::Compact => {
                    line(&mut out, &mut tip, &format!("b{n}"), "boundary auto");
                    line(&mut out, &mut tip, &format!("y{n}"), &format!("compact-summary \"so far {n}\""));
                }
            }
        }
    }
    out
}

/// A log that is printed line by line in failures.
#[derive(Clone)]
struct Log(Vec<u8>);

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.0.split(|&byte| byte == b'\n') {
            let entry = Entry::parse(line).0;
            let blocks = entry.message().into_iter().flat_map(|message| message.blocks());
            let blocks: Vec<_> = blocks.filter_map(|block| block.kind()).collect();
            let (uuid, parent) = (entry.uuid().unwrap_or_default(), entry.parent_uuid().unwrap_or_default());
            writeln!(f, "{uuid} <- {parent} {:?} {}", entry.kind(), blocks.join("+"))?;
        }
        Ok(())
    }
}

/// Generates a log with up to `faults` lines removed, duplicated, truncated or swapped.
fn any_log(faults: usize) -> impl Strategy<Value = Log> {
    let fault = (any::<prop::sample::Index>(), 0..4u8);
    (prop::collection::vec(steps(), 1..5), prop::collection::vec(fault, 0..=faults)).prop_map(
        |(turns, faults)| {
            let bytes = log(&notation(&turns));
            let mut lines: Vec<Vec<u8>> =
                bytes.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            for (at, what) in faults {
                let at = at.index(lines.len());
                match what {
                    0 if lines.len() > 1 => drop(lines.remove(at)),
                    1 => lines.push(lines[at].clone()),
                    3 if at > 0 => lines.swap(at - 1, at),
                    _ => {
                        let half = lines[at].len() / 2;
                        lines[at].truncate(half);
                        lines[at].push(b'\n');
                    }
                }
            }
            Log(lines.concat())
        },
    )
}

fn any_strip() -> impl Strategy<Value = StripOptions> {
    let tools =
        prop::option::of((prop::option::of(0usize..3), prop::option::of(0usize..3), any::<bool>()).prop_map(
            |(older_than, keep_last, truncate)| ToolStripOptions {
                names: Vec::new(),
                older_than,
                keep_last,
                truncate,
            },
        ));
    let free = (tools, any::<[bool; 5]>()).prop_map(
        |(tools, [thinking, images, progress, attachments, snapshots])| StripOptions {
            tools,
            thinking,
            images,
            progress,
            attachments,
            snapshots,
        },
    );
    let preset = prop::sample::select(vec![
        StripPreset::Light,
        StripPreset::Standard,
        StripPreset::Heavy,
        StripPreset::Extreme,
    ]);
    prop_oneof![free, preset.prop_map(StripPreset::options)]
}

fn sent(bytes: &[u8]) -> String {
    let mut out = String::new();
    for message in Session::from_bytes(bytes).replay(V197).unwrap_or_default() {
        message.write_json(&mut out);
    }
    out
}

/// Returns whether the plan may be written. A plan that leaves nothing of the conversation may not.
fn is_sound(plan: &EditPlan<'_>) -> Result<bool, TestCaseError> {
    let is_empty = |refusal: &String| {
        refusal.contains("the conversation is empty") || refusal.contains("no conversation would remain")
    };
    let empty = plan.refusals().iter().any(is_empty);
    prop_assert!(empty || plan.refusals().is_empty(), "{:?}", plan.refusals());
    Ok(!empty)
}

/// Collects every string of a line, except inside `forkedFrom`.
fn strings(json: Json<'_>, out: &mut Vec<String>) {
    out.extend(json.as_str().map(Into::into));
    json.items().for_each(|item| strings(item, out));
    for (key, value) in json.members() {
        if !key.is("forkedFrom") {
            strings(value, out);
        }
    }
}

/// Returns the number of cases: 48, unless PROPTEST_CASES is set.
fn cases() -> u32 {
    match ProptestConfig::default().cases {
        256 => 48,
        asked => asked,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_uuid_of_the_source_is_in_a_clone(bytes in any_log(3)) {
        let session = session(&bytes.0);
        let plan = plan(&session, new(), |draft| clone(draft, None, None).unwrap());
        prop_assume!(is_sound(&plan)?);
        let result = Session::from_bytes(&plan.to_bytes());
        let mut found = Vec::new();
        for entry in result.entries() {
            strings(entry.object().unwrap().json(), &mut found);
        }
        for uuid in session.entries().iter().filter_map(Entry::uuid) {
            prop_assert!(!found.contains(&uuid.to_string()), "{uuid}");
        }
        prop_assert!(result.findings().iter().all(|finding| finding.severity == threadline_entry::Severity::Note), "{:?}", result.findings());
    }

    #[test]
    fn two_clones_of_a_clone_replay_alike(bytes in any_log(2)) {
        let source = session(&bytes.0);
        let plan_1 = plan(&source, new(), |draft| clone(draft, None, None).unwrap());
        prop_assume!(is_sound(&plan_1)?);
        let first = Session::from_bytes(&plan_1.to_bytes());
        let again = |id: &str| {
            let mut draft = threadline_edit::EditDraft::new(&first);
            clone(&mut draft, None, None).unwrap();
            let mut shape = options(PlanTarget::New(id.to_owned()));
            shape.seed.seed = id.to_owned();
            let plan = draft.plan(shape);
            assert_eq!(plan.refusals(), [""; 0]);
            plan.to_bytes()
        };
        let (a, b) = (again("a"), again("b"));
        prop_assert_eq!(sent(&a), sent(&b));
        prop_assert_eq!(sent(&a), sent(&plan_1.to_bytes()));
    }

    #[test]
    fn a_line_that_the_plan_does_not_list_is_unchanged(bytes in any_log(3), what in any_strip()) {
        let source = session(&bytes.0);
        let plan = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &what, "x"));
        is_sound(&plan)?;
        prop_assert_eq!(crate::corpus::unexpected_change(&plan), None);
    }

    #[test]
    fn a_strip_of_a_stripped_session_does_nothing(bytes in any_log(3), what in any_strip(), in_place in any::<bool>()) {
        let source = session(&bytes.0);
        let target = if in_place { PlanTarget::InPlace } else { new() };
        let once = plan(&source, target, |draft| strip(draft, &what, "x"));
        prop_assume!(is_sound(&once)?);
        let stripped = Session::from_bytes(&once.to_bytes());
        let twice = plan(&stripped, PlanTarget::InPlace, |draft| strip(draft, &what, "x"));
        let left: Vec<_> = twice.changes().collect();
        prop_assert!(left.is_empty(), "{left:?}");
    }
}
