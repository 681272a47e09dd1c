//! Repair: plants every defect that can be repaired, and checks that it is reported and repaired, and
//! nothing else changes.

use std::collections::BTreeSet;

use threadline_edit::{EditPlan, PlanTarget, REPAIRED_CODES, Repair};
use threadline_entry::{Code, Entry, Finding, Kind, Severity};
use threadline_session::{ClientVersion, Session};
use threadline_testkit::log;

use crate::support::{new, options};

const TALK: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
r1 <- a1  result t1 "ok"
a2 <- r1  reply  m2 text "Done."
u2 <- a2  user   "and?"
a3 <- u2  reply  m3 text "That is all."
"#;

fn with(old: &str, new: &str) -> Vec<u8> {
    assert!(TALK.contains(old));
    log(&TALK.replace(old, new))
}

fn appended(notation: &str) -> Vec<u8> {
    log(&format!("{TALK}{notation}"))
}

fn faults(session: &Session) -> Vec<Finding> {
    let findings = session.findings().iter();
    findings.filter(|finding| finding.severity > Severity::Note).cloned().collect()
}

fn repaired<T>(bytes: &[u8], target: PlanTarget, look: impl FnOnce(&EditPlan<'_>) -> T) -> T {
    let shape = options(target);
    let (session, repair) = Repair::start(Session::from_bytes(bytes), &shape.seed);
    look(&repair.draft(&session).plan(shape))
}

/// Returns whether there is nothing to repair.
fn is_untouched(bytes: &[u8]) -> bool {
    let (session, repair) = Repair::start(Session::from_bytes(bytes), &options(new()).seed);
    repair.draft(&session).is_untouched()
}

/// Returns the messages that a resume sends, as text.
fn sent(session: &Session) -> Vec<String> {
    let messages = session.replay(ClientVersion::NEWEST).unwrap_or_default();
    messages
        .iter()
        .map(|message| {
            let mut json = String::new();
            message.write_json(&mut json);
            json
        })
        .collect()
}

/// A log with one defect, the reason of its repair, and the messages sent afterwards.
struct Fault {
    code: Code,
    log: Vec<u8>,
    why: &'static str,
    sent: &'static [&'static str],
}

fn image(width: u32) -> String {
    // The header of a PNG with this width, in base64. Bytes 16 to 24 are the width and height.
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    png.extend(width.to_be_bytes());
    png.extend(10_u32.to_be_bytes());
    png.resize(66, 0);
    const SET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut data = String::new();
    for three in png.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        data.extend((0..4).rev().map(|at| SET[(bits >> (6 * at) & 63) as usize] as char));
    }
    format!(r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#)
}

fn planted() -> Vec<Fault> {
    let fault = |code, log, why, sent| Fault { code, log, why, sent };
    let all: &[&str] = &["go", "ok", "Done.", "and?", "That is all."];
    let whole = String::from_utf8(log(TALK)).unwrap();
    let torn_before =
        whole.replacen("\n{\"parentUuid\":\"r1\"", "\n{\"parentUuid\":\"x\",\"mess{\"parentUuid\":\"r1\"", 1);
    assert_ne!(torn_before, whole);
    let glued = whole.replacen("}\n{\"parentUuid\":\"r1\"", "}{\"parentUuid\":\"r1\"", 1);
    assert_ne!(glued, whole);
    let error = "e1 <- a3 reply e1 text \"API Error: 529\" model=<synthetic> +{\"isApiErrorMessage\":true}\n";
    let mut bytes = vec![0xEF, 0xBB, 0xBF];
    bytes.extend(whole.bytes());
    let retried = r#"
u1        user   "go"
e1 <- u1  system api_error {"error":{},"retryInMs":500.5,"retryAttempt":1,"maxRetries":10}
a1 <- u1  reply  m1 text "Done."
u2 <- e1  user   "and?"
a3 <- u2  reply  m3 text "That is all."
"#;
    let compacted = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short."
u2 <- a1  user   "go on"
a2 <- u2  reply  m2 text "On."
"#;
    vec![
        fault(
            Code::OrphanCall,
            with("r1 <- a1  result t1 \"ok\"\na2 <- r1", "a2 <- a1"),
            "tool call without a result",
            &["go", "Done.", "That is all."],
        ),
        fault(
            Code::OrphanCall,
            appended("a4 <- a3 reply m4 tool t9 Bash\n"),
            "tool call without a result",
            all,
        ),
        fault(
            Code::OrphanResult,
            with("a1 <- u1  reply  m1 tool t1 Bash\nr1 <- a1", "r1 <- u1"),
            "tool result without a call",
            &["go", "Done."],
        ),
        fault(
            Code::DanglingParent,
            with("u2 <- a2", "u2 <- ?gone"),
            "reattached to the previous line (parent missing)",
            all,
        ),
        fault(
            Code::LateParent,
            log(
                "u1 user \"go\"\na1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\"\na2 <- p1 reply m2 text \"Done.\"\np1 <- r1 progress hook t1\nu2 <- a2 user \"and?\"\na3 <- u2 reply m3 text \"That is all.\"\n",
            ),
            "re-parented (parent follows the line)",
            all,
        ),
        fault(
            Code::StaleTip,
            log(compacted),
            "re-parented after the compaction",
            &["In short.", "go on", "On."],
        ),
        fault(
            Code::LostRetry,
            log(retried),
            "re-parented to the reply of the retry",
            &["go", "Done.", "and?", "That is all."],
        ),
        fault(Code::DuplicateUuid, with("a3 <- u2", "a2 <- u2"), "new uuid (duplicate)", all),
        fault(
            Code::DuplicateUuid,
            appended("a3 <- u2  reply  m3 text \"That is all.\" @10:00:05\n"),
            "duplicate of line 6",
            all,
        ),
        fault(Code::DuplicateUuid, [log(TALK), log(TALK)].concat(), "duplicate of line 1", all),
        fault(Code::BrokenLine, appended("raw {\"type\":\"user\",\"mess\nraw 42\n"), "unreadable line", all),
        fault(Code::BrokenLine, torn_before.into_bytes(), "separated from a truncated line", all),
        fault(Code::BrokenLine, glued.into_bytes(), "moved to a separate line", all),
        fault(
            Code::HollowThinking,
            with(
                "a2 <- r1  reply  m2 text",
                "t1 <- r1  reply  m2 thinking \"So.\" \"c2ln\"\nt2 <- t1  reply  m2 thinking \"\" \"c2ln\"\na2 <- t2  reply  m2 text",
            ),
            "thinking without text",
            all,
        ),
        fault(
            Code::BadSignature,
            with(
                "a2 <- r1  reply  m2 text",
                "t1 <- r1  reply  m2 thinking \"So.\" \"\"\na2 <- t1  reply  m2 text",
            ),
            "thinking without a signature",
            all,
        ),
        fault(Code::LoneSurrogate, with("Done.", "Done. \\ud83d"), "unpaired surrogates replaced", all),
        fault(Code::LoneSurrogate, appended("title \"half \\udc00\"\n"), "unpaired surrogates replaced", all),
        fault(
            Code::LargeImage,
            with("user   \"go\"", &format!("user [text \"go\", {}]", image(9000))),
            "image too large",
            all,
        ),
        fault(
            Code::LargeImage,
            with("result t1 \"ok\"", &format!("result t1 [text \"ok\", {}]", image(9000))),
            "image too large",
            all,
        ),
        fault(
            Code::EmptyContent,
            with(
                "a2 <- r1  reply  m2 text \"Done.\"",
                "x1 <- r1  user \"\"\na2 <- x1  reply  m2 text \"Done.\"",
            ),
            "empty message",
            all,
        ),
        fault(
            Code::EmptyContent,
            with("reply  m2 text \"Done.\"", "reply  m2 [text \"\", text \"Done.\"]"),
            "empty text block",
            all,
        ),
        fault(
            Code::HiddenFromPicker,
            log(&format!("pr-link 7 ada/loom\n{TALK}")),
            "moved after the first prompt",
            all,
        ),
        fault(Code::ErrorTail, appended(error), "API error at the end", all),
        fault(Code::MissingField, with("\"and?\"", "\"and?\" -timestamp"), "timestamp added", all),
        fault(
            Code::MissingField,
            with(
                "u2 <- a2  user   \"and?\"\na3 <- u2",
                "u2 <- a2  user   \"and?\" -uuid -parentUuid\na3 <- ?u2",
            ),
            "uuid added",
            all,
        ),
        fault(Code::Cycle, with("u1        user", "u1 <- a3  user"), "cycle broken (now the root)", all),
        fault(Code::OddBytes, bytes, "rewritten as plain UTF-8", all),
        fault(
            Code::OddBytes,
            [log(TALK), b"{\"type\":\"mode\",\"mode\":\"\xff\"}\n".to_vec()].concat(),
            "rewritten as plain UTF-8",
            all,
        ),
        fault(
            Code::DuplicateKey,
            appended("raw {\"type\":\"mode\",\"mode\":1,\"mode\":2}\n"),
            "duplicate key removed",
            all,
        ),
    ]
}

#[test]
fn every_defect_is_reported_and_repaired() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for fault in planted() {
        let source = Session::from_bytes(&fault.log);
        assert!(
            source.findings().iter().any(|finding| finding.code == fault.code),
            "{} is not planted",
            fault.code
        );
        seen.insert(fault.code);
        for target in [PlanTarget::InPlace, new()] {
            let (bytes, refusals, reasons) = repaired(&fault.log, target.clone(), |plan| {
                let reasons: Vec<String> =
                    plan.changes().flat_map(|change| change.reasons).map(|why| why.into_owned()).collect();
                (plan.to_bytes(), plan.refusals().to_vec(), reasons)
            });
            let result = Session::from_bytes(&bytes);
            let left = faults(&result);
            let messages = sent(&result).join("\n");
            let mut problems = Vec::new();
            if !left.is_empty() || !refusals.is_empty() {
                problems.push(format!("left {left:?}, refused {refusals:?}"));
            }
            if !reasons.iter().any(|why| why == fault.why) {
                problems.push(format!("named {reasons:?}"));
            }
            let missing: Vec<_> = fault.sent.iter().filter(|text| !messages.contains(**text)).collect();
            if !missing.is_empty() {
                problems.push(format!(
                    "not sent: {missing:?} of {}",
                    messages.chars().take(1500).collect::<String>()
                ));
            }
            if !problems.is_empty() {
                wrong.push(format!("{} ({}) {target:?}: {}", fault.code, fault.why, problems.join("; ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    let missing: Vec<&Code> = REPAIRED_CODES.iter().filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "no fault planted of {missing:?}");
}

#[test]
fn real_sessions_have_no_repairable_defects_afterwards() {
    for (path, session) in crate::corpus::logs() {
        for target in [PlanTarget::InPlace, new()] {
            let shape = options(target.clone());
            let (readable, repair) = Repair::start(session.clone(), &shape.seed);
            let draft = repair.draft(&readable);
            if draft.is_untouched() {
                let left =
                    faults(&session).into_iter().filter(|finding| REPAIRED_CODES.contains(&finding.code));
                assert_eq!(left.collect::<Vec<_>>(), [], "{path}");
                continue;
            }
            let plan = draft.plan(shape);
            // If nothing was sent before, there may be no conversation to keep.
            if session.replay(ClientVersion::NEWEST).is_none_or(|messages| messages.is_empty())
                && !plan.refusals().is_empty()
            {
                continue;
            }
            assert_eq!(plan.refusals(), [] as [String; 0], "{path} {target:?}");
            let result = Session::from_bytes(&plan.to_bytes());
            let left: Vec<_> = faults(&result)
                .into_iter()
                .filter(|finding| REPAIRED_CODES.contains(&finding.code))
                .collect();
            assert_eq!(left, [], "{path} {target:?}");
        }
    }
}

#[test]
fn a_sound_session_is_unchanged() {
    for bytes in [log(TALK), appended("title \"Loom\"\n")] {
        assert!(is_untouched(&bytes));
    }
}

/// Returns the lines of the log after an in-place repair, and the reasons.
fn repaired_lines(bytes: &[u8]) -> (Vec<String>, Vec<String>) {
    repaired(bytes, PlanTarget::InPlace, |plan| {
        let lines = String::from_utf8(plan.to_bytes()).unwrap().lines().map(str::to_owned).collect();
        (lines, plan.changes_by_reason().into_iter().map(|group| group.why).collect())
    })
}

#[test]
fn lines_that_are_json_are_never_removed() {
    let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(500), "]".repeat(500));
    let call = format!("a1 <- u1 reply m1 tool t1 Bash {deep}\nr1 <- a1 result t1 \"ok\"\n");
    let long = format!("p1 <- u1 progress hook t1 {{\"text\":\"{}\"}}\n", "x".repeat(21 << 20));
    let plain =
        "a1 <- u1 reply m1 [] +{\"message\":{\"id\":\"m1\",\"role\":\"assistant\",\"content\":\"Hi.\"}}\n";
    for (notation, n_lines) in [(call, 3), (long, 2), (plain.to_owned(), 2)] {
        let bytes = log(&format!("u1 user \"go\"\n{notation}raw {{\"torn\n"));
        let (lines, why) = repaired_lines(&bytes);
        assert_eq!((lines.len(), &why[..]), (n_lines, &["unreadable line".to_owned()][..]));
    }
    let short = log("u1 user \"go\"\n").repeat(4000);
    let n_lines = repaired(&[&short[..], b"{torn\n"].concat(), PlanTarget::InPlace, |plan| {
        (plan.n_lines_before(), plan.len(), plan.counts())
    });
    assert_eq!(n_lines, (4001, 1, [4000, 0, 0]), "copies of one line, and one that is not JSON");
    let messages: String = (0..4000)
        .map(|i| format!("{{\"type\":\"user\",\"uuid\":\"u{i}\",\"message\":{{\"content\":\"{i}\"}}}}\n"))
        .collect();
    assert_eq!(repaired_lines(messages.as_bytes()).0.len(), 4000);
}

/// The log form of other writers: the role of a line is its type or that of its message, and its content is
/// in the message or next to the type.
const OTHER_FORM: &str = r#"{ "sessionId": "sess1", "type": "user", "content": "read a file" }
{ "message": { "id": "m1", "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "Read", "input": { "path": "/" } }] } }
{ "type": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "file data" }] }
{ "message": { "id": "m2", "role": "assistant", "content": [{ "type": "text", "text": "done" }] } }
"#;

#[test]
fn lines_of_other_writers_are_written_as_claude_code_reads_them() {
    let (lines, why) = repaired_lines(OTHER_FORM.as_bytes());
    let message = |line: &str| {
        let (entry, _) = Entry::parse(line.as_bytes());
        let message = entry.get("message").map(|json| json.raw().to_owned()).unwrap_or_default();
        (entry.type_name().map(|name| name.into_owned()), message)
    };
    let [prompt, call, result, reply] = &lines[..] else { panic!("{lines:#?}") };
    assert_eq!(
        message(prompt),
        (Some("user".into()), r#"{"role":"user","content":"read a file"}"#.to_owned())
    );
    assert_eq!(message(call).0.as_deref(), Some("assistant"));
    assert!(
        message(result).1.starts_with(r#"{"role":"user","content":[{ "type": "tool_result""#),
        "{result}"
    );
    assert_eq!(message(reply).0.as_deref(), Some("assistant"));
    for reason in ["type added", "content moved into a message", "uuid added", "timestamp added"] {
        assert!(why.iter().any(|why| why == reason), "{reason}: {why:?}");
    }
    let session = Session::from_bytes(lines.join("\n").as_bytes());
    assert_eq!(faults(&session), []);
    let sent = sent(&session).join("\n");
    for text in ["read a file", "file data", "done"] {
        assert!(sent.contains(text), "{text}: {sent}");
    }
}

#[test]
fn comments_are_left() {
    assert!(is_untouched(b"\n\n//\n"));
}

#[test]
fn objects_after_very_many_blank_lines_stay_readable() {
    let bytes = ["\n".repeat(70).as_bytes(), b"{}t\n"].concat();
    let result = repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes());
    assert!(Session::from_bytes(&result).entries().iter().all(|entry| entry.kind() != Kind::Bad));
}

#[test]
fn very_many_unreadable_lines_are_removed() {
    let mut bytes = b"x\n{}\n\n".repeat(500);
    bytes.extend(log(TALK));
    let result = repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes());
    assert_eq!(sent(&Session::from_bytes(&result)), sent(&Session::from_bytes(&log(TALK))));
    assert!(!result.split(|byte| *byte == b'\n').any(|line| line == b"x"));
}

#[test]
fn repair_is_idempotent() {
    for fault in planted() {
        let once = repaired(&fault.log, PlanTarget::InPlace, |plan| plan.to_bytes());
        assert!(is_untouched(&once), "{} ({})", fault.code, fault.why);
    }
}

#[test]
fn unlisted_lines_are_unchanged() {
    for fault in planted() {
        let (bytes, named) = repaired(&fault.log, PlanTarget::InPlace, |plan| {
            let named: BTreeSet<u64> = plan.changes().filter_map(|change| change.line_no).collect();
            (plan.to_bytes(), named)
        });
        let after: BTreeSet<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (at, line) in fault.log.split(|byte| *byte == b'\n').enumerate() {
            if !line.is_empty() && !named.contains(&(at as u64 + 1)) {
                assert!(after.contains(line), "{} ({}): line {}", fault.code, fault.why, at + 1);
            }
        }
    }
}

#[test]
fn many_defects_are_repaired_together() {
    let mut bytes = Vec::new();
    bytes.extend(b"\xef\xbb\xbf{\"type\":\"user\",\"mess\n");
    bytes.extend(log("pr-link 7 ada/loom\n"));
    bytes.extend(log(&TALK.replace("u2 <- a2", "u2 <- ?gone").replace("Done.", "Done. \\ud83d")));
    bytes.extend(log(
        "x1 user \"more\" -timestamp\nx2 <- x1 reply k1 tool q1 Bash\nx3 <- x2 reply k2 text \"\"\n",
    ));
    let result = Session::from_bytes(&repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes()));
    assert_eq!(faults(&result), []);
}

#[test]
fn one_of_very_many_keys_is_there_twice() {
    let keys: String = (0..100_000).map(|i| format!(r#","k{i}":{i}"#)).collect();
    let bytes = appended(&format!("raw {{\"type\":\"mode\"{keys},\"k7\":8}}\n"));
    let result = String::from_utf8(repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes())).unwrap();
    assert!(!result.contains(r#""k7":7"#) && result.contains(r#""k99999":99999,"k7":8"#));
}

#[test]
fn very_many_lines_have_the_uuid_of_a_long_line() {
    let long = "x".repeat(8 << 20);
    let copies: String = (0..3000).map(|i| format!("u1 user \"{i}\"\n")).collect();
    let bytes = log(&format!("u1 user \"{long}\"\n{copies}"));
    let result = repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes());
    let session = Session::from_bytes(&result);
    assert_eq!((session.entries().len(), session.uuids().count()), (3001, 3001));
}

#[test]
fn a_long_chain_of_parents_is_in_reverse() {
    let n = 5_000;
    let line = |i| format!("u{i} <- u{} user \"x\"\n", i + 1);
    let lines: String = (0..n).map(line).collect();
    let bytes = log(&format!("r user \"go\"\n{lines}u{n} <- r user \"end\"\nx <- ?gone user \"y\"\n"));
    let result = Session::from_bytes(&repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes()));
    assert_eq!((result.entries().len(), faults(&result)), (n + 3, Vec::new()));
}

#[test]
fn very_many_prompts_are_below_very_many_errors_and_a_long_retry() {
    let n = 2_000;
    let errors: String = (1..n).map(|i| format!("e{i} <- e{} system api_error\n", i - 1)).collect();
    let retry: String = (1..n).map(|i| format!("a{i} <- a{} reply m{i} text \"x\"\n", i - 1)).collect();
    let first: String = (0..n).map(|i| format!("p{i} <- e0 user \"p{i}\"\n")).collect();
    let last: String = (0..n).map(|i| format!("q{i} <- e{} user \"q{i}\"\n", n - 1)).collect();
    let bytes = log(&format!(
        "u1 user \"go\"\ne0 <- u1 system api_error\na0 <- u1 reply m0 text \"x\"\n{errors}{retry}{first}{last}"
    ));
    repaired(&bytes, PlanTarget::InPlace, |plan| {
        let why = "re-parented to the reply of the retry";
        let is_retry = |reasons: &[_]| reasons.iter().any(|reason| *reason == why);
        assert_eq!(plan.changes().filter(|change| is_retry(&change.reasons)).count(), n);
    });
}

#[test]
fn very_many_replies_in_turn_are_pending_without_their_thinking() {
    let n = 2_000;
    let turn = |i| {
        let above = if i == 0 { "u1".to_owned() } else { format!("r{}", i - 1) };
        format!(
            "a{i} <- {above} reply m{i} [thinking \"t\" \"\", tool t{i} Bash]\nr{i} <- a{i} result t{i} \"ok\"\n"
        )
    };
    let turns: String = (0..n).map(turn).collect();
    let bytes = log(&format!("u1 user \"go\"\n{turns}"));
    let result = Session::from_bytes(&repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes()));
    assert_eq!(sent(&result), sent(&Session::from_bytes(&log("u1 user \"go\"\n"))));
}

#[test]
fn a_line_has_very_many_thinking_blocks_and_unpaired_surrogates() {
    let n = 5_000;
    let thinking = vec![r#"thinking "some thinking of a length" "c2ln""#; n].join(", ");
    let notation =
        format!("u1 user \"go\"\na1 <- u1 reply m1 [{thinking}, text \"{}\"]\n", "\\ud83d".repeat(n));
    let result = Session::from_bytes(&repaired(&log(&notation), PlanTarget::InPlace, |plan| plan.to_bytes()));
    let text = result.entries().iter().map(|entry| entry.text()).collect::<String>();
    assert_eq!((text.matches("some thinking").count(), text.matches('\u{fffd}').count()), (n, n));
}

#[test]
fn an_abandoned_branch_is_very_long() {
    let n = 5_000;
    let branch: String = (1..n).map(|i| format!("b{i} <- b{} user \"x\"\n", i - 1)).collect();
    let bytes = log(&format!(
        "u1 user \"go\"\nb0 <- u1 user \"x\"\n{branch}u2 <- u1 user \"and\"\na2 <- u2 reply m2 text \"x\"\nx <- ?gone user \"y\"\n"
    ));
    let result = Session::from_bytes(&repaired(&bytes, PlanTarget::InPlace, |plan| plan.to_bytes()));
    assert_eq!((result.entries().len(), faults(&result)), (n + 4, Vec::new()));
}
