//! Stripping: it is idempotent, and lines that were written more than once have one position.

use insta::assert_snapshot;
use threadline_edit::{PlanTarget, StripOptions, StripPreset, strip};
use threadline_session::{EntryIndex, Session};
use threadline_testkit::log;

use crate::support::{new, plan, rendered, session};

/// Returns the result of a strip that removes nothing, and checks that a second one changes nothing.
fn stripped(bytes: &[u8], target: PlanTarget) -> String {
    let source = session(bytes);
    let nothing = StripOptions::default();
    let once = plan(&source, target, |draft| strip(draft, &nothing, "x"));
    assert_eq!(once.refusals(), [""; 0]);
    let result = Session::from_bytes(&once.to_bytes());
    let twice = plan(&result, PlanTarget::InPlace, |draft| strip(draft, &nothing, "x"));
    assert_eq!(twice.changes().count(), 0);
    rendered(&once)
}

#[test]
fn a_duplicate_boundary_does_not_move_other_lines() {
    let bytes = log(r#"
u0             user "why?"
b2 <- ?a1      boundary auto @+1s
a1 <- u0       attach task_reminder @-2s
y2 <- b2       compact-summary "so far" @+1s
s3 <- y2       reply m3 text "Because."
b2 <- ?a1      boundary auto @-3s
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u0 @00:00 user
    a1 <- u0 @00:01 attachment
    b2 @00:02 system
    y2 <- b2 @00:03 user
    s3 <- y2 @00:04 assistant text
    ");
    stripped(&bytes, new());
}

#[test]
fn a_duplicate_line_does_not_move_later_lines() {
    let bytes = log(r#"
u1        user  "why?"
snapshot u1
s1 <- u1  reply m1 text "Because."
title "old"
u1        user  "why?" @-2s
title "new"
u2 <- s1  user  "really?" @+2s
s2 <- u2  reply m2 text "Yes."
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:02 user
    - file-history-snapshot
    s1 <- u1 @00:02.001 assistant text
    - custom-title
    - custom-title
    u2 <- s1 @00:06 user
    s2 <- u2 @00:07 assistant text
    ");
    let source = session(&bytes);
    let plan = plan(&source, new(), |draft| strip(draft, &StripOptions::default(), "x"));
    assert_eq!(Session::from_bytes(&plan.to_bytes()).title().as_deref(), Some("new"));
}

#[test]
fn lines_before_a_duplicate_tip_become_a_branch() {
    let bytes = log(r#"
u1        user  "why?"
s1 <- u1  reply m1 text "Because."
u2 <- s1  user  "really?"
s2 <- u2  reply m2 text "Yes."
s1 <- u1  reply m1 text "Because." @-2s
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    u2 <- u1 @00:02 user
    s2 <- u2 @00:03 assistant text
    s1 <- u1 @00:03.001 assistant text
    ");
}

#[test]
fn parents_in_a_branch_come_first() {
    let bytes = log(r#"
u0        user  "why?"
y2 <- ?b2 compact-summary "so far"
b2 <- u0  boundary auto
s3 <- y2  reply m3 text "Because."
u0        user  "why?" @-4s
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    b2 @00:02 system
    y2 <- b2 @00:01 user
    s3 <- y2 @00:03 assistant text
    u0 @00:03.001 user
    ");
}

#[test]
fn a_misplaced_result_before_a_compaction_is_not_reported() {
    let bytes = log(r#"
u1          user   "why?"
c1 <- u1    reply  m1 tool t1 Bash
s1 <- ?r1   reply  m2 text "Because." @+1s
r1 <- c1    result t1 "x" @-2s
b1 <- s1    boundary auto @+1s
y1 <- b1    compact-summary "so far"
s2 <- y1    reply  m3 text "Well."
"#);
    let source = session(&bytes);
    let plan = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &StripOptions::default(), "x"));
    assert_eq!(plan.changes().count(), 0);
    assert_snapshot!(rendered(&plan), @r"
    u1 @00:00 user
    c1 <- u1 @00:01 assistant tool_use
    r1 <- c1 @00:02 user tool_result
    s1 <- r1 @00:03 assistant text
    b1 @00:04 system
    y1 <- b1 @00:05 user
    s2 <- y1 @00:06 assistant text
    ");
}

#[test]
fn an_attachment_next_to_trailing_progress_is_the_end() {
    let bytes = log(r#"
u1          user   "why?"
c1 <- u1    reply  m1 tool t1 Bash
p1 <- c1    progress bash t1
r1 <- p1    result t1 "x"
a1 <- ?c2   attach task_reminder @+1s
c2 <- ?gone reply  m2 tool t2 Bash @-2s
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    c1 <- u1 @00:01 assistant tool_use
    r1 <- c1 @00:03 user tool_result
    p1 <- r1 @00:03.001 progress
    a1 <- p1 @00:05 attachment
    ");
}

#[test]
fn the_logical_parent_of_a_boundary_may_follow_it() {
    let bytes = log(r#"
u1         user "why?"
b1 <- ?u2  boundary auto @+1s
u2 <- u1   user "and why not?" @-2s
y1 <- b1   compact-summary "so far" @+1s
u3 <- y1   user "go on"
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    u2 <- u1 @00:01 user
    b1 @00:02 system
    y1 <- b1 @00:03 user
    u3 <- y1 @00:04 user
    ");
}

#[test]
fn a_branch_follows_its_parent_and_orphan_results_are_removed() {
    let bytes = log(r#"
u1          user   "why?"
c1 <- u1    reply  m1 tool t1 Bash
r1 <- c1    result t1 "x"
p2 <- ?gone progress bash t2
c3 <- ?gone reply  m1 tool t3 Bash
r2 <- p2    result t2 "x"
u2 <- p2    user   "or not?"
r3 <- c3    result t3 "x"
s1 <- r3    reply  m2 text "Because."
b1 <- s1    boundary auto
y1 <- b1    compact-summary "so far"
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    c1 <- u1 @00:01 assistant tool_use
    c3 <- c1 @00:04 assistant tool_use
    r1 <- c3 @00:04.001 user tool_result
    r3 <- r1 @00:07 user tool_result
    p2 <- r3 @00:07.001 progress
    u2 <- p2 @00:06 user
    s1 <- p2 @00:08 assistant text
    b1 @00:09 system
    y1 <- b1 @00:10 user
    ");
}

#[test]
fn replies_before_a_compaction_are_grouped() {
    let bytes = log(r#"
u1         user   "why?"
c1 <- ?h1  reply  m1 tool t1 Bash @+2s
u2 <- u1   user   "and why not?" @-2s
h1 <- u2   reply  m1 thinking "Hm." "sig"
r1 <- c1   result t1 "x" @+1s
s1 <- r1   reply  m2 text "Because."
b1 <- s1   boundary auto
y1 <- b1   compact-summary "so far"
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    u2 <- u1 @00:02 user
    h1 <- u2 @00:03 assistant thinking
    c1 <- h1 @00:03.001 assistant tool_use
    r1 <- c1 @00:05 user tool_result
    s1 <- r1 @00:06 assistant text
    b1 @00:07 system
    y1 <- b1 @00:08 user
    ");
}

#[test]
fn an_empty_result_is_the_only_refusal() {
    let bytes = log(r#"
c1 <- ?gone reply m1 tool t1 Bash
c2 <- c1    reply m2 tool t2 Bash
c3 <- c2    reply m3 tool t3 Bash
c4 <- c3    reply m4 tool t4 Bash
c2 <- c1    reply m2 tool t2 Bash @-3s
"#);
    let source = session(&bytes);
    let plan = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &StripOptions::default(), "x"));
    assert_eq!(plan.refusals(), ["no conversation would remain"]);
}

#[test]
fn progress_before_its_call_is_part_of_the_conversation() {
    let bytes = log(r#"
u1         user     "why?"
h1 <- u1   reply    m1 thinking "Hm." "sig"
p1 <- ?c1  progress bash t1 @+1s
c1 <- h1   reply    m1 tool t1 Bash @-2s
r1 <- p1   result   t1 "x" @+1s
s1 <- r1   reply    m2 text "Because."
h1 <- u1   reply    m1 thinking "Hm." "sig" @-5s
"#);
    assert_snapshot!(stripped(&bytes, PlanTarget::InPlace), @r"
    u1 @00:00 user
    p1 <- u1 @00:03 progress
    h1 <- p1 @00:03.001 assistant thinking
    c1 <- h1 @00:03.002 assistant tool_use
    r1 <- c1 @00:04 user tool_result
    ");
}

#[test]
fn an_attachment_to_a_duplicate_tip_stays_after_it() {
    let bytes = log(r#"
u1        user   "why?"
u2 <- u1  user   "why?"
a1 <- u2  attach task_reminder
s1 <- a1  reply  m1 text "Because."
u2 <- u1  user   "why?" @-3s
"#);
    assert_snapshot!(stripped(&bytes, new()), @r"
    u1' @00:00 user
    u2' <- u1' @00:01 user
    a1' <- u2' @00:02 attachment
    ");
}

#[test]
fn an_empty_text_in_an_abandoned_branch_is_accepted() {
    let bytes = log(r#"
u1        user  "why?"
e1 <- u1  reply m1 text "\n\n"
s1 <- e1  reply m1 text "Because."
u2 <- u1  user  "why not?"
s2 <- u2  reply m2 text "Well."
"#);
    assert_eq!(stripped(&bytes, PlanTarget::InPlace).lines().count(), 5);
}

#[test]
fn a_removed_line_has_only_its_removal_reason() {
    let bytes = log(r#"
u1        user   "why?"
h1 <- u1  reply  m1 thinking "Hm." "sig"
e1 <- h1  reply  m1 text " " usage={"input_tokens":7,"output_tokens":9}
s1 <- e1  reply  m1 text "Because." usage={"input_tokens":7,"output_tokens":9}
"#);
    let source = session(&bytes);
    let what = StripOptions { thinking: true, ..StripOptions::default() };
    let plan = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &what, "x"));
    let gone = plan.changes().filter(|change| change.kind == threadline_edit::ChangeKind::Removed);
    let why: Vec<String> = gone.map(|change| change.reasons.join("; ")).collect();
    assert_eq!(why, ["thinking removed", "empty text block"]);
}

#[test]
fn a_pr_link_is_never_the_first_line() {
    let bytes = log(r#"
mode default
pr-link 7 ada/loom
u1        user   "why?"
s1 <- u1  reply  m1 text "Because."
"#);
    let source = session(&bytes);
    let plan = plan(&source, new(), |draft| draft.remove(EntryIndex::FIRST, "not wanted"));
    assert_snapshot!(rendered(&plan), @r"
    u1' @00:02 user
    - @00:01 pr-link
    s1' <- u1' @00:03 assistant text
    ");
}

#[test]
fn calls_of_a_wide_line_go_with_the_line_that_repeats_them() {
    let call = |n: usize| format!(r#"{{"type":"tool_use","id":"t{n}","name":"Bash","input":{{}}}}"#);
    let result = |n: usize| format!(r#"{{"type":"tool_result","tool_use_id":"t{n}","content":"ok"}}"#);
    let line = |kind: &str, uuid: &str, parent: &str, content: &str| {
        let role = format!(
            r#""type":"{kind}","uuid":"{uuid}","parentUuid":{parent},"timestamp":"2026-01-01T10:00:00.000Z""#
        );
        let details = if kind == "user" { r#","toolUseResult":{"stdout":"secret"}"# } else { "" };
        format!(r#"{{{role},"message":{{"role":"{kind}","id":"m1","content":[{content}]}}{details}}}"#)
    };
    let calls: Vec<String> = (0..100).map(call).collect();
    let results: Vec<String> = (0..100).map(result).collect();
    let text = r#"{"type":"text","text":"hm"}"#;
    let bytes = [
        r#"{"type":"user","uuid":"u1","parentUuid":null,"timestamp":"2026-01-01T10:00:00.000Z","message":{"role":"user","content":"go"}}"#.to_owned(),
        line("assistant", "a1", "\"u1\"", &format!("{text},{}", calls.join(","))),
        line("assistant", "a2", "\"a1\"", &calls.join(",")),
        line("user", "r1", "\"a2\"", &format!("{},{text}", results.join(","))),
    ]
    .join("\n");
    let source = session(bytes.as_bytes());
    let plan = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &StripPreset::Extreme.options(), "x"));
    let text = String::from_utf8(plan.to_bytes()).unwrap();
    assert!(!text.contains("tool_use") && !text.contains("toolUseResult"), "{text}");
    assert_eq!(text.matches(r#""text":"hm""#).count(), 2, "{text}");
}

#[test]
fn deeply_nested_counts_do_not_overflow_the_stack() {
    let deep = |number: &str| "[".repeat(500) + number + &"]".repeat(500);
    let bytes = log(r#"
u1        user  "go"
a1 <- u1  reply m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
u2 <- r1  user  "and?"
a2 <- u2  reply m2 text "Done."
"#);
    let text = String::from_utf8(bytes).unwrap();
    let text = text.replace("\"usage\":{", &format!("\"usage\":{{\"deep\":{},", deep("7")));
    assert!(text.contains("deep"));
    let source = session(text.as_bytes());
    let options = StripPreset::Extreme.options();
    let stripped = plan(&source, PlanTarget::InPlace, |draft| strip(draft, &options, "x"));
    assert!(String::from_utf8(stripped.to_bytes()).unwrap().contains(&deep("0")));
}
