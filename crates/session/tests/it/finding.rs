//! Tests of findings: each planted fault is found on its line, and the log without the fault is sound.

use insta::assert_snapshot;
use threadline_entry::{Code, Severity};
use threadline_session::{ClientVersion, Session};
use threadline_testkit::log;

use crate::render::{findings, findings_of, is_sound, session};

/// Renders the findings of a faulty log, and asserts that the same log without the fault is sound.
fn planted(sound: &str, faulty: &str) -> String {
    let without = session(sound);
    assert!(is_sound(&without), "the log without the fault: {}", findings_of(&without));
    findings(faulty)
}

/// An answered call, and an answered prompt. Most faults are planted into this log.
const TALK: &str = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
r1 <- a1  result t1 "ok"
a2 <- r1  reply  m2 text "Done."
u2 <- a2  user   "and?"
a3 <- u2  reply  m3 text "That is all."
"#;

/// Returns `TALK` with `old` replaced by `new`.
fn with(old: &str, new: &str) -> String {
    assert!(TALK.contains(old));
    TALK.replace(old, new)
}

#[test]
fn f01_a_call_without_a_result() {
    assert_snapshot!(planted(TALK, &with("r1 <- a1  result t1 \"ok\"\na2 <- r1", "a2 <- a1")), @"line 2  F01 orphan-call  warning: the call of Bash has no result (t1)");
}

#[test]
fn f01_is_a_note_if_the_process_ended_during_the_call() {
    let killed = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m1 tool t2 Bash
r1 <- a1  result t1 "ok"
"#;
    assert_snapshot!(findings(killed), @"line 3  F01 orphan-call  note: the call of Bash has no result (t2)");
    let resumed = format!("{killed}u2 <- r1 user \"on\"\nb1 <- u2 reply m2 text \"On.\"\n");
    assert_snapshot!(findings(&resumed), @"line 3  F01 orphan-call  note: the call of Bash has no result (t2)");
    let lost = format!("{killed}b1 <- r1 reply m2 text \"Both are done.\"\n");
    assert_snapshot!(findings(&lost), @"line 3  F01 orphan-call  warning: the call of Bash has no result (t2)");
}

#[test]
fn f02_a_result_without_a_call() {
    assert_snapshot!(planted(TALK, &with("tool t1 Bash\nr1 <- a1  result t1", "tool t1 Bash\nr1 <- a1  user [result t1 \"ok\", result t2")
        .replace("result t2 \"ok\"", "result t2 \"ok\"]")), @"line 3  F02 orphan-result  warning: the result has no call in the log (t2)");
}

#[test]
fn f03_a_parent_that_is_not_in_the_log() {
    assert_snapshot!(planted(TALK, &with("u2 <- a2", "u2 <- ?gone")), @"line 5  F03 dangling-parent  warning: the parent gone is not in the log");
}

#[test]
fn f03_is_a_note_at_the_head_of_a_log_on_progress_and_in_an_agents_log() {
    let log = r#"
u1 <- ?before  user "go on"
a1 <- u1       reply m1 text "On."
p1 <- ?gone    progress hook
s1 <- ?main    user "look" sidechain
u2 <- p1       user "more"
"#;
    // A resume continues with the line before the progress line, so nothing is lost.
    let session = Session::from_bytes(&threadline_testkit::log(log));
    assert_eq!(session.replay(ClientVersion::NEWEST).unwrap().len(), 3);
    assert_snapshot!(findings(log), @r"
    line 1  F03 dangling-parent  note: the parent before is not in the log
    line 3  F03 dangling-parent  note: the parent gone is not in the log
    line 4  F03 dangling-parent  note: the parent main is not in the log
    ");
}

#[test]
fn f04_a_parent_that_is_written_later() {
    assert_snapshot!(planted(TALK, r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
r1 <- a1  result t1 "ok"
a2 <- p1  reply  m2 text "Done."
p1 <- r1  progress hook t1
"#), @"line 4  F04 late-parent  note: the parent comes later, on line 5");
}

const COMPACTED: &str = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short."
u2 <- c1  user   "go on"
a2 <- u2  reply  m2 text "On."
"#;

#[test]
fn f05_a_line_that_continues_from_before_the_compaction() {
    assert_snapshot!(planted(COMPACTED, &COMPACTED.replace("u2 <- c1", "u2 <- a1")), @"line 5  F05 stale-tip  warning: the parent precedes the compaction on line 3");
}

#[test]
fn f06_a_successful_retry_that_is_left_out() {
    let sound = r#"
u1        user   "go"
e1 <- u1  system api_error {"error":{},"retryInMs":500.5,"retryAttempt":1,"maxRetries":10}
e2 <- e1  system api_error {"error":{},"retryInMs":900.5,"retryAttempt":2,"maxRetries":10}
a1 <- e2  reply  m1 text "Done."
u2 <- a1  user   "and?"
"#;
    let lost = sound.replace("a1 <- e2", "a1 <- u1").replace("u2 <- a1", "u2 <- e2");
    assert_snapshot!(planted(sound, &lost), @"line 5  F06 lost-retry  warning: the prompt continues an API error and skips the successful retry on line 4");
}

#[test]
fn f07_a_uuid_on_two_lines() {
    assert_snapshot!(planted(TALK, &with("a3 <- u2", "a2 <- u2")), @"line 6  F07 duplicate-uuid  warning: same uuid as line 4");
    assert_snapshot!(findings(&format!("{TALK}a3 <- u2  reply  m3 text \"That is all.\" @10:00:05")), @"line 7  F07 duplicate-uuid  note: copy of line 6");
}

#[test]
fn f07_is_a_note_if_the_line_was_repeated_before_a_compaction() {
    let again = r#"
u1        user   "long"
h1 <- u1  attach date {"date":"2026-01-01"}
u1        user   "long" +{"slug":"calm-loom"}
h1 <- u1  attach date {"date":"2026-01-01"} +{"slug":"calm-loom"}
b1 <- h1  boundary auto
c1 <- b1  compact-summary "In short."
"#;
    assert_snapshot!(findings(again), @r"
    line 3  F07 duplicate-uuid  note: copy of line 1
    line 4  F07 duplicate-uuid  note: copy of line 2
    ");
}

#[test]
fn f08_two_conversations_written_at_the_same_time() {
    let sound = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Where?"
u2 <- a1  user   "left"
a2 <- u2  reply  m2 text "Left."
u4 <- a2  user   "further"
a4 <- u4  reply  m4 text "Further."
u3 <- a1  user   "right"
a3 <- u3  reply  m3 text "Right."
"#;
    let interleaved = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Where?"
u2 <- a1  user   "left"
u3 <- a1  user   "right"
a2 <- u2  reply  m2 text "Left."
a3 <- u3  reply  m3 text "Right."
u4 <- a2  user   "further"
a4 <- u4  reply  m4 text "Further."
u5 <- a3  user   "further"
"#;
    assert_snapshot!(planted(sound, interleaved), @"line 3  F08 forked-writers  warning: two processes wrote at the same time, here and from line 4");
}

#[test]
fn f09_a_line_that_is_not_exactly_one_object() {
    assert_snapshot!(planted(TALK, &format!("{TALK}raw {{\"type\":\"user\",\"mess\nraw 42\nraw // a comment\nraw {{\"type\":\"mode\"}}{{\"type\":\"mode\"}}")), @r"
    line 7  F09 broken-line  warning: the line is truncated: it ends inside an object
    line 8  F09 broken-line  warning: expected a JSON object, found a JSON number
    line 9  F09 broken-line  note: expected a JSON object, found a comment
    line 10  F09 broken-line  warning: 2 values on one line; Claude Code reads only the first
    ");
}

#[test]
fn f10_empty_thinking_among_other_thinking() {
    let sound = "a1 reply m1 thinking \"Hm.\" \"c2ln\"\na2 <- a1 reply m2 thinking \"So.\" \"c2ln\"";
    assert_snapshot!(planted(sound, &sound.replace("\"So.\"", "\"\"")), @"line 2  F10 hollow-thinking  warning: the thinking text is missing, only the signature remains");
    // Some versions log no thinking text at all. There is nothing to repair then.
    assert_snapshot!(findings(&sound.replace("\"So.\"", "\"\"").replace("\"Hm.\"", "\"\"")), @r"
    line 1  F10 hollow-thinking  note: the thinking text is missing, only the signature remains
    line 2  F10 hollow-thinking  note: the thinking text is missing, only the signature remains
    ");
}

#[test]
fn f11_thinking_without_a_signature() {
    let sound = "a1 reply m1 thinking \"Hm.\" \"c2ln\"";
    assert_snapshot!(planted(sound, "a1 reply m1 thinking \"Hm.\" \"\""), @"line 1  F11 bad-signature  warning: the thinking has no signature");
    // Models of other vendors do not sign their thinking.
    assert_snapshot!(findings("a1 reply m1 thinking \"Hm.\" \"\" model=glm-5.1"), @"line 1  F11 bad-signature  note: the thinking has no signature");
}

#[test]
fn f12_a_lone_surrogate() {
    assert_snapshot!(planted(&with("Done.", r"Done \ud83d\ude00."), &with("Done.", r"Done \ud83d.")), @"line 4  F12 lone-surrogate  warning: unpaired surrogate, which is not valid text");
}

/// Returns an image block of this size. The data contains only the header and padding.
fn image(width: u32, height: u32, bytes: usize) -> String {
    use base64::Engine;
    let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    png.extend(width.to_be_bytes());
    png.extend(height.to_be_bytes());
    png.resize(bytes.max(64), 0);
    let data = base64::engine::general_purpose::STANDARD.encode(png);
    format!(r#"{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}"#)
}

#[test]
fn f13_an_image_that_the_api_rejects() {
    let prompt = |image: String| format!("u1 user [text \"look\", {image}]");
    let shot =
        |image: String| format!("a1 reply m1 tool t1 Shot\nr1 <- a1 result t1 [text \"shot\", {image}]");
    assert_snapshot!(planted(&prompt(image(8000, 10, 0)), &prompt(image(8001, 10, 0))), @"line 1  F13 large-image  warning: the image is 8001 × 10 pixels; API limit: 8000");
    assert_snapshot!(planted(&shot(image(10, 8000, 0)), &shot(image(10, 9000, 0))), @"line 2  F13 large-image  warning: the image is 10 × 9000 pixels; API limit: 8000");
    assert_snapshot!(planted(&prompt(image(9, 9, 1 << 20)), &prompt(image(9, 9, 6 << 20))), @"line 1  F13 large-image  warning: the image is 6 MB; API limit: 5 MB");
    // With many images in a request, each must be smaller.
    let many = |n: usize| format!("u1 user [{}]", vec![image(3000, 9, 0); n].join(", "));
    assert!(is_sound(&session(&many(20))));
    assert_eq!(session(&many(21)).findings().len(), 21);
}

#[test]
fn f14_an_empty_message() {
    let user = |content: &str| {
        format!("raw {{\"type\":\"user\",\"uuid\":\"u1\",\"timestamp\":\"2026-01-01T10:00:00Z\"{content}}}")
    };
    let content = |content: &str| user(&format!(r#","message":{{"role":"user","content":{content}}}"#));
    assert!(is_sound(&session(&content(r#""hi""#))));
    assert_snapshot!(findings(&user("")), @"line 1  F14 empty-content  warning: the line has no message");
    assert_snapshot!(findings(&user(r#","message":{"role":"user"}"#)), @"line 1  F14 empty-content  warning: the message has no content");
    assert_snapshot!(findings(&content("[]")), @"line 1  F14 empty-content  warning: the content of the message is empty");
    assert_snapshot!(findings(&content("\"\"")), @"line 1  F14 empty-content  warning: the content of the message is empty");
    assert_snapshot!(findings(&content(r#"[{"type":"text","text":""}]"#)), @"line 1  F14 empty-content  warning: a text block is empty");
    assert_snapshot!(findings(&content(r#"[{"type":"text","text":" \n"}]"#)), @"line 1  F14 empty-content  note: a text block contains only white space");
}

#[test]
fn f15_lines_beyond_the_limits() {
    let line = |depth: usize| {
        format!("raw {{\"type\":\"mode\",\"mode\":{}{}}}\n", "[".repeat(depth), "]".repeat(depth))
    };
    let over_limit = line(600);
    assert!(is_sound(&Session::from_bytes(&log(&format!("{TALK}{}", line(500))))));
    assert_snapshot!(planted(TALK, &format!("{TALK}{over_limit}")), @"line 7  F15 over-limit  warning: 1 line beyond the limits is not parsed: 7");
    let many = format!("{TALK}{}", over_limit.repeat(12));
    assert_snapshot!(planted(TALK, &many), @"line 7  F15 over-limit  warning: 12 lines beyond the limits are not parsed: 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, …");
}

#[test]
fn f17_a_first_line_that_hides_the_session() {
    let line = "pr-link 7 ada/loom\n";
    assert_snapshot!(planted(&format!("{TALK}{line}"), &format!("{line}{TALK}")), @"line 1  F17 hidden-from-picker  warning: the first line is `pr-link`, which hides the session from the session picker");
}

#[test]
fn f19_a_change_of_working_directory_is_noted() {
    assert_snapshot!(findings(&with("\"and?\"", "\"and?\" cwd=/home/ada/loom/.worktrees/a")), @"line 5  F19 moved-cwd  note: the working directory changes to /home/ada/loom/.worktrees/a");
}

#[test]
fn f23_a_session_that_ends_in_an_api_error() {
    let tail = "e1 <- a3 reply e1 text \"API Error: 529\" model=<synthetic> +{\"isApiErrorMessage\":true}\n";
    let went_on = "u3 <- e1 user \"again\"\na4 <- u3 reply m4 text \"Here.\"";
    assert_snapshot!(planted(&format!("{TALK}{tail}{went_on}"), &format!("{TALK}{tail}")), @"line 7  F23 error-tail  note: the session ends in an API error");
}

#[test]
fn f25_a_line_without_timestamp_or_uuid() {
    assert_snapshot!(planted(TALK, &with("\"That is all.\"", "\"That is all.\" -timestamp")), @"line 6  F25 missing-field  warning: the line has no `timestamp`");
    assert_snapshot!(findings(&with("\"That is all.\"", "\"That is all.\" -uuid")), @"line 6  F25 missing-field  warning: the line has no `uuid`");
}

#[test]
fn f27_parents_that_form_a_cycle() {
    assert_snapshot!(planted(TALK, &with("u1        user", "u1 <- a3  user")), @"line 1  F27 cycle  error: the parents of the line form a cycle");
    assert_snapshot!(findings("u1 <- u1 user \"me\""), @"line 1  F27 cycle  error: the parents of the line form a cycle");
}

#[test]
fn f28_bytes_that_do_not_belong_in_a_log() {
    let plain = log(TALK);
    let session = |bytes: Vec<u8>| findings_of(&Session::from_bytes(&bytes));
    assert_snapshot!(session([b"\xef\xbb\xbf", &plain[..]].concat()), @"line 1  F28 odd-bytes  warning: the line begins with a byte order mark");
    assert_snapshot!(session([&plain[..], b"{\"type\":\"mode\",\"mode\":\"\xff\"}\n"].concat()), @"line 7  F28 odd-bytes  warning: the line is not UTF-8");
    assert_snapshot!(session([&plain[..], b"\0\0\0\0\n"].concat()), @"line 7  F09 broken-line  warning: expected a JSON object, found NUL bytes");
    assert_snapshot!(session([&plain[..], b"{\"type\":\"mode\"}\r\n"].concat()), @"line 7  F28 odd-bytes  note: the line ends with a carriage return");
}

#[test]
fn f29_a_duplicate_key() {
    assert_snapshot!(planted(TALK, &format!("{TALK}raw {{\"type\":\"mode\",\"mode\":1,\"mode\":2}}")), @"line 7  F29 duplicate-key  warning: duplicate key `mode`");
}

#[test]
fn findings_are_in_file_order_with_severity() {
    let session = session(&with("r1 <- a1  result t1 \"ok\"\na2 <- r1", "raw nonsense\na2 <- ?gone"));
    let findings = session.findings();
    let lines: Vec<u64> = findings.iter().filter_map(|finding| finding.at).map(|at| at.line_no).collect();
    assert!(lines.is_sorted(), "{lines:?}");
    let codes: Vec<(Code, Severity)> =
        findings.iter().map(|finding| (finding.code, finding.severity)).collect();
    let expected = [
        (Code::OrphanCall, Severity::Warning),
        (Code::BrokenLine, Severity::Warning),
        (Code::DanglingParent, Severity::Warning),
    ];
    assert_eq!(codes, expected);
}
