//! Tests of compactions: the conversation continues across them, and no line is lost.

use std::fmt::Write;

use insta::assert_snapshot;
use threadline_session::EntryIndex;

use crate::render::{findings, name, names, paths, replay, session, turns};

/// Renders each compaction: its logical parent, its summary and its preserved tail.
fn compactions(notation: &str) -> String {
    let session = session(notation);
    let mut out = String::new();
    for compaction in session.compactions() {
        let named = |idx: Option<EntryIndex>| idx.map_or("nothing".into(), |idx| name(&session, idx));
        let trigger = compaction.metadata(&session).and_then(|metadata| metadata.trigger());
        writeln!(
            out,
            "{} ({}) continues {}, summary {}, keeps [{}]",
            name(&session, compaction.boundary),
            trigger.unwrap_or_default(),
            named(compaction.continues),
            named(compaction.summary),
            names(&session, &compaction.preserved),
        )
        .unwrap();
    }
    out
}

const PLAIN: &str = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short: long work."
u2 <- c1  user   "go on"
a2 <- u2  reply  m2 text "On."
"#;

#[test]
fn a_conversation_crosses_a_compaction() {
    assert_snapshot!(compactions(PLAIN), @"b1 (auto) continues a1, summary c1, keeps []");
    assert_snapshot!(turns(PLAIN), @r#"
    turn 1  new_session  "long"
      [u1 a1 b1 c1]
      m1  text
    turn 2  new_round  "go on"
      [u2 a2]
      m2  text
    "#);
    assert_snapshot!(paths(PLAIN), @"thread: u1 a1 b1 c1 u2 a2");
    assert_snapshot!(replay(PLAIN), @r"
    user: text In short: long work., text go on
    assistant: text On.
    ");
    assert_snapshot!(findings(PLAIN), @"");
}

#[test]
fn a_conversation_crosses_several_compactions() {
    let notation = r#"
u1        user   "one"
a1 <- u1  reply  m1 text "1"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "One."
u2 <- c1  user   "two"
a2 <- u2  reply  m2 text "2"
b2 <- a2  boundary manual
c2 <- b2  compact-summary "One, two."
u3 <- c2  user   "three"
"#;
    assert_snapshot!(compactions(notation), @r"
    b1 (auto) continues a1, summary c1, keeps []
    b2 (manual) continues a2, summary c2, keeps []
    ");
    assert_snapshot!(paths(notation), @"thread: u1 a1 b1 c1 u2 a2 b2 c2 u3");
    assert_snapshot!(replay(notation), @"user: text One, two., text three");
}

#[test]
fn a_boundary_without_logical_parent_continues_the_previous_line() {
    let notation = r#"
u1           user   "long"
a1 <- u1     reply  m1 text "work"
snapshot u1
b1 <- ?gone  boundary auto
c1 <- b1     compact-summary "In short."
u2 <- c1     user   "go on"
"#;
    assert_snapshot!(compactions(notation), @"b1 (auto) continues a1, summary c1, keeps []");
    assert_snapshot!(paths(notation), @"thread: u1 a1 b1 c1 u2");
    assert_snapshot!(findings(notation), @"");
}

#[test]
fn a_boundary_does_not_continue_its_own_summary() {
    let notation = r#"
u1           user   "long"
c1 <- ?b1    compact-summary "In short."
b1 <- ?gone  boundary auto
u2 <- c1     user   "go on"
"#;
    assert_snapshot!(compactions(notation), @"b1 (auto) continues u1, summary c1, keeps []");
    assert_snapshot!(paths(notation), @"thread: u1 c1 b1 u2");
}

#[test]
fn a_boundary_at_the_head_of_a_fork_continues_nothing() {
    let notation = r#"
b1 <- ?gone  boundary auto {"preservedSegment":{"headUuid":"h","anchorUuid":"c1","tailUuid":"t"}}
c1 <- b1     compact-summary "In short."
x1 <- c1     attach compact_file_reference {"filename":"/a"}
u1 <- x1     user   "go on"
a1 <- u1     reply  m1 text "On."
"#;
    assert_snapshot!(compactions(notation), @"b1 (auto) continues nothing, summary c1, keeps []");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  (no prompt)
      [c1 b1 x1]
    turn 2  new_round  "go on"
      [u1 a1]
      m1  text
    "#);
}

const PRESERVED: &str = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
u2 <- a1  user   "and this"
a2 <- u2  reply  m2 text "That too."
b1 <- a2  boundary auto {"preservedSegment":{"headUuid":"u2","anchorUuid":"c1","tailUuid":"a2"},"preservedMessages":{"anchorUuid":"c1","uuids":["u2","a2"]}}
c1 <- b1  compact-summary "In short: long work."
u3 <- a2  user   "go on"
a3 <- u3  reply  m3 text "On."
"#;

#[test]
fn the_summary_of_a_preserved_tail_is_in_the_conversation() {
    assert_snapshot!(compactions(PRESERVED), @"b1 (auto) continues a2, summary c1, keeps [u2 a2]");
    assert_snapshot!(paths(PRESERVED), @"thread: u1 a1 u2 a2 b1 c1 u3 a3");
    assert_snapshot!(turns(PRESERVED), @r#"
    turn 1  new_session  "long"
      [u1 a1]
      m1  text
    turn 2  new_round  "and this"
      [u2 a2 b1 c1]
      m2  text
    turn 3  new_round  "go on"
      [u3 a3]
      m3  text
    "#);
    assert_snapshot!(replay(PRESERVED), @r"
    user: text In short: long work., text and this
    assistant: text That too.
    user: text go on
    assistant: text On.
    ");
    assert_snapshot!(findings(PRESERVED), @"");
}

#[test]
fn a_compaction_may_end_the_conversation() {
    assert_snapshot!(paths(r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
c1 <- b1  compact-summary "In short."
"#), @"thread: u1 a1 b1 c1");
}

#[test]
fn a_microcompaction_is_an_ordinary_line() {
    let notation = r#"
u1        user   "long"
a1 <- u1  reply  m1 tool t1 Read
r1 <- a1  result t1 "A"
k1 <- r1  system microcompact_boundary "Context microcompacted" {"microcompactMetadata":{"compactedToolIds":["t1"]}}
a2 <- k1  reply  m2 text "On."
"#;
    assert_snapshot!(compactions(notation), @"");
    assert_snapshot!(paths(notation), @"thread: u1 a1 r1 k1 a2");
    assert_snapshot!(findings(notation), @"");
}

#[test]
fn a_rewind_across_a_compaction_makes_it_a_branch() {
    assert_snapshot!(paths(r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
u2 <- a1  user   "more"
a2 <- u2  reply  m2 text "work"
b1 <- a2  boundary auto
c1 <- b1  compact-summary "In short."
u3 <- c1  user   "go on"
u4 <- a1  user   "rather this"
a4 <- u4  reply  m4 text "On."
"#), @r"
    thread: u1 a1 u4 a4
    branch from a1: u2 a2 b1 c1 u3
    ");
}

#[test]
fn attachments_between_a_boundary_and_its_summary_do_not_hide_it() {
    let notation = r#"
u1        user   "long"
a1 <- u1  reply  m1 text "work"
b1 <- a1  boundary auto
x1 <- b1  attach date {"date":"2026-11-16"}
x2 <- x1  attach environment
c1 <- x2  compact-summary "In short: long work."
a2 <- c1  reply  m2 text "On."
"#;
    assert_snapshot!(compactions(notation), @"b1 (auto) continues a1, summary c1, keeps []");
    assert_snapshot!(paths(notation), @"thread: u1 a1 b1 x1 x2 c1 a2");
}

#[test]
fn a_summary_below_the_next_prompt_belongs_to_another_compaction() {
    assert_snapshot!(compactions(r#"
u1        user   "long"
b1 <- u1  boundary auto
u2 <- b1  user   "go on"
c1 <- u2  compact-summary "In short."
"#), @"b1 (auto) continues u1, summary nothing, keeps []");
}

#[test]
fn very_many_boundaries_below_each_other_are_read_once() {
    let boundary = |n: usize| {
        let parent = if n == 0 { "null".to_owned() } else { format!("\"b{}\"", n - 1) };
        format!("b{n} boundary auto +{{\"parentUuid\":{parent}}}\n")
    };
    let n_boundaries = 5_000;
    let notation: String = (0..n_boundaries).map(boundary).collect();
    let session = session(&format!("{notation}c1 <- b{} compact-summary \"So far.\"", n_boundaries - 1));
    let compactions = session.compactions();
    assert_eq!(compactions.iter().filter(|compaction| compaction.summary.is_some()).count(), 1);
    assert!(compactions.iter().skip(1).all(|compaction| compaction.continues.is_some()));
    assert_eq!(session.thread().entries.len(), n_boundaries + 1);
}

#[test]
fn very_many_boundaries_of_a_sub_agent_have_no_main_line() {
    let boundaries: String = (0..10_000).map(|n| format!("b{n} boundary auto sidechain\n")).collect();
    let session = session(&format!("u1 user \"go\" sidechain\n{boundaries}"));
    assert!(session.compactions().iter().all(|compaction| compaction.continues.is_none()));
}
