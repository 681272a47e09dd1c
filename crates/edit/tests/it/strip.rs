//! Stripping: what is stripped once is stripped, and lines that were written again have one place.

use insta::assert_snapshot;
use threadline_edit::{Strip, Target, strip};
use threadline_session::Session;
use threadline_testkit::log;

use crate::support::{new, plan, session, told};

/// The result of a strip that names nothing, and how many changes a second one makes of it.
fn stripped_twice(bytes: &[u8], target: Target) -> (String, usize) {
    let source = session(bytes);
    let nothing = Strip::default();
    let once = plan(&source, target, |draft| strip(draft, &nothing, "x"));
    assert_eq!(once.refusals(), [""; 0]);
    let stripped = Session::from_bytes(&once.to_bytes());
    let twice = plan(&stripped, Target::InPlace, |draft| strip(draft, &nothing, "x"));
    (told(&once), twice.changes().count())
}

#[test]
fn what_stands_behind_a_boundary_stays_there_where_the_boundary_is_written_again() {
    let bytes = log(r#"
u0             user "why?"
b2 <- ?a1      boundary auto @+1s
a1 <- u0       attach task_reminder @-2s
y2 <- b2       compact-summary "so far" @+1s
s3 <- y2       reply m3 text "Because."
b2 <- ?a1      boundary auto @-3s
"#);
    let (told, changes) = stripped_twice(&bytes, Target::InPlace);
    assert_snapshot!(told, @r"
    u0 @00:00 user
    b2 @00:02 system
    a1 <- u0 @00:01 attachment
    y2 <- b2 @00:03 user
    s3 <- y2 @00:04 assistant text
    ");
    assert_eq!(changes, 0);
    assert_eq!(stripped_twice(&bytes, new()).1, 0);
}

#[test]
fn a_line_that_is_written_again_takes_nothing_from_the_end_to_its_place() {
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
    let (told, changes) = stripped_twice(&bytes, Target::InPlace);
    assert_snapshot!(told, @r"
    u1 @00:02 user
    - file-history-snapshot
    s1 <- u1 @00:02.001 assistant text
    - custom-title
    - custom-title
    u2 <- s1 @00:06 user
    s2 <- u2 @00:07 assistant text
    ");
    assert_eq!(changes, 0);
    let source = session(&bytes);
    let plan = plan(&source, new(), |draft| strip(draft, &Strip::default(), "x"));
    assert_eq!(Session::from_bytes(&plan.to_bytes()).title().as_deref(), Some("new"));
}

#[test]
fn what_follows_a_line_that_is_written_again_at_the_end_stays_as_a_branch() {
    let bytes = log(r#"
u1        user  "why?"
s1 <- u1  reply m1 text "Because."
u2 <- s1  user  "really?"
s2 <- u2  reply m2 text "Yes."
s1 <- u1  reply m1 text "Because." @-2s
"#);
    let (told, changes) = stripped_twice(&bytes, Target::InPlace);
    assert_snapshot!(told, @r"
    u1 @00:00 user
    u2 <- u1 @00:02 user
    s2 <- u2 @00:03 assistant text
    s1 <- u1 @00:03.001 assistant text
    ");
    assert_eq!(changes, 0);
}

#[test]
fn of_a_branch_what_is_hung_on_comes_first() {
    let bytes = log(r#"
u0        user  "why?"
y2 <- ?b2 compact-summary "so far"
b2 <- u0  boundary auto
s3 <- y2  reply m3 text "Because."
u0        user  "why?" @-4s
"#);
    let (told, changes) = stripped_twice(&bytes, Target::InPlace);
    assert_snapshot!(told, @r"
    b2 @00:02 system
    y2 <- b2 @00:01 user
    s3 <- y2 @00:03 assistant text
    u0 @00:03.001 user
    ");
    assert_eq!(changes, 0);
}
