//! Applies every edit to every real session, and checks that the result is sound and replays as planned.

use std::borrow::Cow;
use std::collections::HashMap;

use threadline_edit::{
    ChangeKind, CutPoint, EditDraft, EditPlan, PlanTarget, StripOptions, StripPreset, ToolStripOptions,
    clone, strip,
};
use threadline_entry::{Code, LineReader, Severity, parse_line};
use threadline_session::{ClientVersion, MessageRole, ReplayBlock, ReplayMessage, Session};
use threadline_testkit::shared_logs;

use crate::support::{NEW, V197, new, plan};

const SANITIZED: &[&str] =
    &["duplicate tool call", "tool result without a call", "precedes the first prompt"];

/// Returns the logs; in debug builds a sample of the smaller ones.
pub(crate) fn logs() -> Vec<(String, Session)> {
    let mut logs: Vec<_> = shared_logs();
    logs.sort_by_key(|path| std::fs::metadata(path).map(|metadata| metadata.len()).unwrap_or(0));
    let n = logs.len();
    let step = if cfg!(debug_assertions) { 8 } else { 1 };
    let kept = if cfg!(debug_assertions) { n * 2 / 3 } else { n };
    logs.into_iter()
        .take(kept)
        .step_by(step)
        .map(|path| {
            let mut session = Session::with_id(path.file_stem().unwrap().to_string_lossy());
            let bytes = std::fs::read(&path).unwrap();
            let mut lines = LineReader::new(&bytes[..]);
            while let Some(line) = lines.next().unwrap() {
                parse_line(&line, |entry, findings| session.push(entry, findings));
            }
            (path.to_string_lossy().into_owned(), session)
        })
        .collect()
}

/// Returns the messages that a resume sends, without blank texts, which no result contains.
fn sent(session: &Session) -> Option<String> {
    let mut out = String::new();
    for message in session.replay(V197)? {
        out.push_str(message.role.name());
        for block in message.content {
            let white = block.kind() == "text"
                && block
                    .json()
                    .get("text")
                    .and_then(|text| text.as_str())
                    .is_none_or(|text| text.trim().is_empty());
            if !white {
                block.write_json(&mut out);
            }
        }
    }
    Some(out)
}

#[test]
fn clones_are_sound_and_replay_alike() {
    let mut differ = Vec::new();
    for (path, session) in logs() {
        let Some(before) = sent(&session).filter(|sent| !sent.is_empty()) else { continue };
        // Of lines without a uuid, Claude Code reads only the last one; the result contains all of them.
        let nameless = session.thread().entries.iter().any(|&idx| session.entries()[idx].uuid().is_none());
        for target in [new(), PlanTarget::InPlace] {
            let in_place = target == PlanTarget::InPlace;
            let plan = plan(&session, target, |draft| {
                if !in_place {
                    clone(draft, None, None).unwrap();
                }
            });
            if !plan.refusals().is_empty() {
                differ.push((path.clone(), in_place, plan.refusals().to_vec()));
                continue;
            }
            let after = sent(&Session::from_bytes(&plan.to_bytes())).unwrap_or_default();
            // Saved output is in a folder named after the session.
            let after = after.replace(NEW, &session.id().unwrap_or_default());
            // Content that the API would reject is removed, so less is sent.
            let mended =
                plan.changes().any(|change| change.reasons.iter().any(|why| SANITIZED.contains(&&**why)));
            if after != before && !mended && !nameless {
                differ.push((path.clone(), in_place, vec![first_difference(&before, &after)]));
            }
        }
    }
    let shown_lines: Vec<String> =
        differ.iter().map(|(path, in_place, why)| format!("{path} {in_place} {}", why.join("; "))).collect();
    assert!(differ.is_empty(), "{}", shown_lines.join("\n"));
}

/// Returns the text around the first difference of two requests.
fn first_difference(before: &str, after: &str) -> String {
    let same = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
    let piece = |text: &str| {
        let from = (0..=same.saturating_sub(60)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text[from..].chars().take(200).collect::<String>()
    };
    format!("before …{}… after …{}…", piece(before), piece(after))
}

/// An operation, with its name in failure messages.
type Operation = (&'static str, fn(&mut EditDraft<'_>));

const OPERATIONS: &[Operation] = &[
    ("clone --to 1", |draft| {
        // A log without a turn cannot be cut.
        let _ = clone(draft, Some(&CutPoint::Turn(1)), None);
    }),
    ("light", |draft| strip(draft, &StripPreset::Light.options(), "x")),
    ("standard", |draft| strip(draft, &StripPreset::Standard.options(), "x")),
    ("heavy", |draft| strip(draft, &StripPreset::Heavy.options(), "x")),
    ("extreme", |draft| strip(draft, &StripPreset::Extreme.options(), "x")),
    ("thinking", |draft| strip(draft, &StripOptions { thinking: true, ..StripOptions::default() }, "x")),
    ("Bash", |draft| {
        let tools = ToolStripOptions { names: vec!["Bash".into()], ..ToolStripOptions::default() };
        strip(draft, &StripOptions { tools: Some(tools), ..StripOptions::default() }, "x");
    }),
    ("older", |draft| {
        let tools = ToolStripOptions { older_than: Some(2), ..ToolStripOptions::default() };
        strip(draft, &StripOptions { tools: Some(tools), ..StripOptions::default() }, "x");
    }),
];

#[test]
fn every_operation_makes_sound_sessions() {
    let mut faults = Vec::new();
    for (path, session) in logs() {
        if sent(&session).is_none_or(|sent| sent.is_empty()) {
            continue;
        }
        let odd: Vec<Code> = session.findings().iter().map(|finding| finding.code).collect();
        for (name, edit) in OPERATIONS {
            for target in [new(), PlanTarget::InPlace] {
                let in_place = target == PlanTarget::InPlace;
                if in_place && name.starts_with("clone") {
                    continue;
                }
                let plan = plan(&session, target, |draft| edit(draft));
                if let Some(fault) = fault(&plan, &odd, in_place) {
                    faults.push(format!("{path} {name} in place {in_place}: {fault}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Returns the assistant texts, calls and results that a version sends, without content that each version
/// writes in its own form: reminders, inputs, and thinking of other models.
fn comparable_messages(session: &Session, version: ClientVersion) -> Vec<Vec<String>> {
    let about = |message: &ReplayMessage<'_>| {
        let block = |block: &ReplayBlock<'_>| {
            let field = |key: &str| block.json().get(key)?.as_str().map(Cow::into_owned);
            let text = field("text").filter(|_| message.role == MessageRole::Assistant);
            let id = field("id").or_else(|| field("tool_use_id"));
            id.or(text).map(|about| format!("{} {about}", block.kind()))
        };
        // The oldest version keeps the order of a reply's blocks, the others move its calls to the end.
        let mut blocks: Vec<String> = message.content.iter().filter_map(block).collect();
        blocks.sort_unstable();
        blocks
    };
    let messages = session.replay(version).unwrap_or_default();
    messages.iter().map(about).filter(|blocks| !blocks.is_empty()).collect()
}

#[test]
fn every_version_reads_a_result_alike() {
    let mut differ = Vec::new();
    for (path, session) in logs() {
        for (name, edit) in OPERATIONS {
            let plan = plan(&session, new(), |draft| edit(draft));
            if !plan.refusals().is_empty() {
                continue;
            }
            let result = Session::from_bytes(&plan.to_bytes());
            let newest = comparable_messages(&result, ClientVersion::NEWEST);
            let odd = ClientVersion::KNOWN
                .into_iter()
                .filter(|version| comparable_messages(&result, *version) != newest);
            differ.extend(odd.map(|version| format!("{path} {name} {version}")));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Returns the first problem of a plan, if any.
fn fault(plan: &EditPlan<'_>, odd: &[Code], in_place: bool) -> Option<String> {
    if let [first, ..] = plan.refusals() {
        // If the conversation consists of tool calls only, nothing remains without them.
        let nothing =
            first.contains("the conversation is empty") || first.contains("no conversation would remain");
        return (!nothing).then(|| plan.refusals().join("; "));
    }
    let bytes = plan.to_bytes();
    if plan.digest() != threadline_edit::ContentDigest::of(&bytes) {
        return Some("other bytes than the plan says".into());
    }
    let result = Session::from_bytes(&bytes);
    if result.replay(V197).is_none_or(|messages| messages.is_empty()) {
        return Some("nothing is sent".into());
    }
    // Defects of the session outside the conversation may stay in its own file.
    let findings = result.findings();
    let mut bad = findings.iter().filter(|finding| {
        finding.severity > Severity::Note
            && (!odd.contains(&finding.code) || !in_place && concerns_the_tree(finding.code))
    });
    if let Some(finding) = bad.next() {
        return Some(format!("{} {}", finding.code, finding.message));
    }
    unexpected_change(plan)
}

fn concerns_the_tree(code: Code) -> bool {
    !matches!(
        code,
        Code::Secret | Code::LargeImage | Code::HollowThinking | Code::BadSignature | Code::ErrorTail
    )
}

/// Checks that lines that the plan does not list are unchanged. New sessions are skipped, since all ids
/// change.
pub(crate) fn unexpected_change(plan: &EditPlan<'_>) -> Option<String> {
    if matches!(plan.options().target, PlanTarget::New(_)) {
        return None;
    }
    let named: HashMap<u64, ChangeKind> =
        plan.changes().filter_map(|change| Some((change.line_no?, change.kind))).collect();
    let mut line = Vec::new();
    for at in 0..plan.len() {
        let Some(source) = plan.source_of(at).map(|idx| &plan.session().entries()[idx]) else { continue };
        line.clear();
        plan.render(at, &mut line);
        if (line != source.as_bytes()) != named.contains_key(&source.at().line_no) && !source.shares_line() {
            return Some(format!("line {} is not as the plan says", source.at().line_no));
        }
    }
    None
}
