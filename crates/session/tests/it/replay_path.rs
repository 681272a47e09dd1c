//! Tests of the lines that a resume reads, for logs whose tree has an unusual form. Each has so many lines
//! that work proportional to their square would take minutes.

use threadline_session::Session;

use crate::render::session;

const MANY: usize = 5_000;

/// Returns the notation of very many lines.
fn lines(line: impl Fn(usize) -> String) -> String {
    (0..MANY).map(line).collect()
}

/// Returns the notation of very many lines below each other, with the ids `x0`, `x1` and so on.
fn chain(first_parent: &str, form: &str) -> String {
    lines(|n| {
        let parent = if n == 0 { first_parent.to_owned() } else { format!("x{}", n - 1) };
        format!("x{n} <- {parent} {form}\n")
    })
}

fn n_resumed(session: &Session) -> Option<usize> {
    session.resumed_lines().map(|lines| lines.len())
}

#[test]
fn very_many_prompts_below_a_chain_of_progress_lines() {
    let (last, progress) = (MANY - 1, chain("u0", "progress hook"));
    let prompts = lines(|n| format!("v{n} <- x{last} user \"on\"\n"));
    assert_eq!(n_resumed(&session(&format!("u0 user \"go\"\n{progress}{prompts}"))), Some(2));
}

#[test]
fn a_progress_line_that_is_its_own_ancestor_has_no_message_above() {
    let session = session(
        r#"
p1 <- p2  progress hook
p2 <- p1  progress hook
u1 <- p1  user "one" @10:00:00
u2 <- p2  user "two" @11:00:00
"#,
    );
    assert_eq!(n_resumed(&session), Some(1));
}

#[test]
fn a_very_long_preserved_segment() {
    let replies = chain("u0", "reply m1 text \"On.\"");
    let segment =
        format!(r#"{{"preservedSegment":{{"headUuid":"x0","tailUuid":"x{}","anchorUuid":"c1"}}}}"#, MANY - 1);
    let compaction =
        format!("b1 <- x{} boundary auto {segment}\nc1 <- b1 compact-summary \"So far.\"\n", MANY - 1);
    let session = session(&format!("u0 user \"go\"\n{replies}{compaction}u1 <- c1 user \"on\"\n"));
    // The boundary, the summary, the segment and the prompt.
    assert_eq!(n_resumed(&session), Some(MANY + 3));
}

#[test]
fn very_many_leaves_below_a_chain_of_system_lines() {
    let (last, system) = (MANY - 1, chain("u0", "system informational"));
    let leaves = lines(|n| format!("y{n} <- x{last} system informational\n"));
    let session = session(&format!("u0 user \"go\"\n{system}{leaves}"));
    assert_eq!(n_resumed(&session), Some(MANY + 2));
    let old = session.resume_path("2.1.20".parse().unwrap());
    assert_eq!(old.map(|lines| lines.len()), Some(MANY + 2));
}

#[test]
fn very_many_attachments_beside_the_path() {
    let attachments = chain("a1", "attach date {\"date\":\"2026-11-16\"} @10:00:00");
    let session = session(&format!(
        "u0 user \"go\" @10:00:00\na1 <- u0 reply m1 text \"On.\" @10:00:00\n{attachments}\
         u1 <- a1 user \"on\" @11:00:00\n"
    ));
    assert_eq!(n_resumed(&session), Some(MANY + 3));
}

#[test]
fn very_many_lines_at_one_time_without_their_parents() {
    let replies = lines(|n| format!("a{n} <- ?gone{n} reply m{n} text \"On.\" @10:00:00\n"));
    assert_eq!(n_resumed(&session(&replies)), Some(MANY));
}
