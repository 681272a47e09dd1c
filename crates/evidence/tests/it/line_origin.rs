//! Tests of line origins: edits of sessions, of people and of formatters, and lines without a known origin.

use std::collections::HashSet;
use std::sync::Arc;

use insta::assert_snapshot;
use proptest::prelude::*;
use threadline_evidence::{
    FileEdit, FileEvidence, LineHistory, LineOrigin, LogOnly, MAX_CANDIDATES, UnknownReason,
};
use threadline_session::{Session, SessionFamily};
use threadline_testkit::log;

/// The edits of a session that are described by the results of its calls.
fn edits(results: &[(&str, &str)]) -> Vec<FileEdit> {
    let mut notation = "u0 user \"go\"\n".to_owned();
    for (at, (tool, result)) in results.iter().enumerate() {
        let parent = if at == 0 { "u0".to_owned() } else { format!("r{}", at - 1) };
        notation += &format!("a{at} <- {parent} reply m{at} tool t{at} {tool} {{\"file_path\":\"/f\"}}\n");
        notation += &format!("r{at} <- a{at} result t{at} \"ok\" {result}\n");
    }
    let family = SessionFamily::new(Session::from_bytes(&log(&notation)), Vec::new());
    FileEvidence::of(&family, &LogOnly).edits()
}

fn write(before: Option<&str>, after: &str) -> (&'static str, String) {
    let kind = if before.is_some() { "update" } else { "create" };
    let json = format!(
        r#"{{"type":"{kind}","filePath":"/f","content":{},"originalFile":{}}}"#,
        quoted(after),
        before.map_or("null".to_owned(), quoted)
    );
    ("Write", json)
}

fn edit(original: Option<&str>, old: &str, new: &str) -> (&'static str, String) {
    let json = format!(
        r#"{{"filePath":"/f","oldString":{},"newString":{},"originalFile":{}}}"#,
        quoted(old),
        quoted(new),
        original.map_or("null".to_owned(), quoted)
    );
    ("Edit", json)
}

fn quoted(text: &str) -> String {
    format!(
        "\"{}\"",
        text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\r', "\\r")
    )
}

/// Replays edits, and renders the lines of the present version with their origins.
fn blame(results: &[(&'static str, String)], now: &str) -> String {
    let results: Vec<(&str, &str)> = results.iter().map(|(tool, json)| (*tool, &**json)).collect();
    let edits = edits(&results);
    assert_eq!(edits.len(), results.len());
    let mut history = LineHistory::new();
    for (number, edit) in edits.iter().enumerate() {
        history.edit(number, edit);
    }
    let origins = history.origins_in(now);
    let lines = now.lines().zip(origins).map(|(line, origin)| format!("{:<14}{line}", render(&origin)));
    lines.collect::<Vec<_>>().join("\n")
}

fn render(origin: &LineOrigin) -> String {
    match origin {
        LineOrigin::Edit { edit, is_moved } => format!("{edit}{}", if *is_moved { " moved" } else { "" }),
        LineOrigin::Unknown { reason, candidates, .. } if candidates.is_empty() => reason.name().to_owned(),
        LineOrigin::Unknown { reason, candidates, .. } => {
            format!("{} {candidates:?}", &reason.name()[..3])
        }
    }
}

#[test]
fn lines_belong_to_the_edits_that_added_them() {
    let results = [
        write(None, "fn one() {\n    1\n}\n"),
        edit(Some("fn one() {\n    1\n}\n"), "}", "}\n\nfn two() {\n    2\n}"),
        edit(None, "    1", "    11"),
    ];
    assert_snapshot!(blame(&results, "fn one() {\n    11\n}\n\nfn two() {\n    2\n}\n// by hand\n"), @r"
    0             fn one() {
    2                 11
    0             }
    1             
    1             fn two() {
    1                 2
    1             }
    outside       // by hand
    ");
}

#[test]
fn older_lines_and_lines_between_edits_are_unknown() {
    let results = [edit(Some("a\nb\n"), "b", "B"), edit(Some("a\nhand\nB\n"), "a", "A")];
    assert_snapshot!(blame(&results, "A\nhand\nB\n"), @r"
    1             A
    outside       hand
    0             B
    ");
    assert_snapshot!(blame(&[edit(Some("a\nb\n"), "b", "B")], "a\nB\n"), @r"
    older         a
    0             B
    ");
}

#[test]
fn a_formatter_leaves_candidates() {
    let results = [write(None, "if x {\nlet y=1;\n}\n")];
    assert_snapshot!(blame(&results, "if x {\n    let y = 1;\n}\n"), @r"
    0             if x {
    ref [0]           let y = 1;
    0             }
    ");
}

#[test]
fn a_line_that_was_removed_and_added_again_belongs_to_the_last_edit() {
    let results = [
        write(None, "a\nfirst version\nc\n"),
        edit(None, "first version\n", ""),
        edit(None, "a\n", "a\nfirst version\n"),
    ];
    assert_snapshot!(blame(&results, "a\nfirst version\nc\n"), @r"
    0             a
    2             first version
    0             c
    ");
    // The line was added again by hand.
    assert_snapshot!(blame(&results[..2], "a\nfirst version\nc\n"), @r"
    0             a
    outside       first version
    0             c
    ");
}

#[test]
fn a_block_that_was_moved_keeps_its_origin() {
    let block = "fn a_function_with_a_long_name() {\n    call_something_else();\n}\n";
    let results =
        [write(None, "a\nb\nc\nd\n"), edit(None, "a\n", &format!("{block}a\n")), edit(None, "d", "D")];
    let now = format!("by hand\na\nb\nc\nD\n{block}");
    assert_snapshot!(blame(&results, &now), @r"
    outside       by hand
    0             a
    0             b
    0             c
    2             D
    1 moved       fn a_function_with_a_long_name() {
    1 moved           call_something_else();
    1 moved       }
    ");
}

#[test]
fn a_repeated_line_may_have_several_origins() {
    let results = [write(None, "x\n}\n"), write(Some("x\n}\n"), "x\n}\ny\n}\n")];
    assert_snapshot!(blame(&results, "x\n}\ny\n}\n"), @r"
    0             x
    amb [0, 1]    }
    1             y
    amb [0, 1]    }
    ");
}

#[test]
fn an_edit_of_an_unknown_text_is_placed_by_its_patch() {
    let patch = r#"{"filePath":"/f","oldString":"b","newString":"b2","originalFile":null,"structuredPatch":[{"oldStart":1,"oldLines":3,"newStart":1,"newLines":3,"lines":[" a","-b","+b2"," c"]}]}"#;
    assert_snapshot!(blame(&[write(None, "a\nb\nc\n"), ("Edit", patch.to_owned())], "a\nb2\nc\n"), @r"
    0             a
    1             b2
    0             c
    ");
    // Without a version to apply it to, it is only a candidate.
    assert_snapshot!(blame(&[("Edit", patch.to_owned())], "a\nb2\nc\n"), @r"
    older         a
    amb [0]       b2
    older         c
    ");
    // A whole text without the one before it may contain lines of others.
    let update = r#"{"type":"update","filePath":"/f","content":"a\nnew\n","originalFile":null}"#;
    assert_snapshot!(blame(&[write(None, "a\n"), ("Write", update.to_owned())], "a\nnew\n"), @r"
    0             a
    amb [1]       new
    ");
}

#[test]
fn line_ends_and_the_last_newline_do_not_matter() {
    let results = [write(None, "织\nb\n"), edit(None, "b\n", "b\n梭 c\n")];
    assert_snapshot!(blame(&results, "\u{feff}织\r\nb\r\n梭 c").replace('\u{feff}', ""), @r"
    0             织
    0             b
    1             梭 c
    ");
}

/// A change of one contiguous range, by an edit or by hand.
#[derive(Clone, Debug)]
struct Change {
    by_edit: bool,
    as_write: bool,
    at: usize,
    n_removed: usize,
    added: Vec<u8>,
}

fn change() -> impl Strategy<Value = Change> {
    let added = proptest::collection::vec(0u8..5, 0..4);
    (any::<bool>(), any::<bool>(), 0usize..12, 0usize..4, added).prop_map(
        |(by_edit, as_write, at, n_removed, added)| Change { by_edit, as_write, at, n_removed, added },
    )
}

/// A line: its text, the edit that wrote it, and its identity.
type OwnedLine = (u8, Option<usize>, usize);

fn text(lines: &[OwnedLine]) -> String {
    lines.iter().map(|(line, ..)| format!("{}\n", char::from(b'a' + line))).collect()
}

/// Returns whether the lines that both versions share are as many as possible. A change that is longer than
/// needed, such as a line that is removed and typed again, cannot be seen in the versions.
fn is_shortest_change(old: &[OwnedLine], new: &[OwnedLine]) -> bool {
    let mut row = vec![0; new.len() + 1];
    for (line, ..) in old {
        let mut diagonal = 0;
        for (at, (other, ..)) in new.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if line == other { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[new.len()] == new.iter().filter(|line| old.contains(line)).count()
}

proptest! {
    /// With few different lines, most changes can be read in several ways. Whatever is assigned is right.
    #[test]
    fn an_assigned_line_was_written_by_that_edit(changes in proptest::collection::vec(change(), 1..12)) {
        let mut truth: Vec<OwnedLine> = Vec::new();
        // The last version that the log contains.
        let mut logged = truth.clone();
        let (mut results, mut n_lines) = (Vec::new(), 0);
        for Change { by_edit, as_write, at, n_removed, added } in changes {
            let start = at.min(truth.len());
            let end = (start + n_removed).min(truth.len());
            let owner = by_edit.then_some(results.len());
            let mut next = truth.clone();
            let lines = added.iter().enumerate().map(|(at, line)| (*line, owner, n_lines + at));
            next.splice(start..end, lines);
            n_lines += added.len();
            let from = if by_edit { &truth } else { &logged };
            if !is_shortest_change(from, &next) {
                continue;
            }
            let (before, after) = (text(&truth), text(&next));
            truth = next;
            if by_edit {
                let removed = &before[2 * start..2 * end];
                let is_first = before.find(removed) == Some(2 * start);
                results.push(match !as_write && !removed.is_empty() && is_first {
                    true => edit(Some(&before), removed, &after[2 * start..2 * (start + added.len())]),
                    false => write(Some(&before), &after),
                });
                logged = truth.clone();
            }
        }
        let results: Vec<(&str, &str)> = results.iter().map(|(tool, json)| (*tool, &**json)).collect();
        let edits = edits(&results);
        prop_assert_eq!(edits.len(), results.len());
        let mut history = LineHistory::new();
        for (number, edit) in edits.iter().enumerate() {
            history.edit(number, edit);
        }
        let now = text(&truth);
        let origins = history.origins_in(&now);
        prop_assert_eq!(origins.len(), truth.len());
        for ((_, owner, _), origin) in truth.iter().zip(&origins) {
            match origin {
                LineOrigin::Edit { edit, .. } => {
                    prop_assert_eq!(Some(*edit), *owner, "{:?} {:?}", truth, origins);
                }
                LineOrigin::Unknown { reason: UnknownReason::Ambiguous, candidates, is_one_of_them } => {
                    let is_candidate =
                        owner.map_or(!is_one_of_them, |owner| candidates.contains(&owner));
                    prop_assert!(is_candidate, "{:?} {:?}", truth, origins);
                }
                LineOrigin::Unknown { .. } => {
                    prop_assert_eq!(*owner, None, "{:?} {:?}", truth, origins);
                }
            }
        }
    }
}

#[test]
fn lines_share_a_limited_list_of_very_many_candidates() {
    let unplaced = edit(None, "q", "w");
    let edits = edits(&vec![(unplaced.0, &*unplaced.1); 1000]);
    let now: String = (0..20_000).map(|n| format!("{n}\n")).collect();
    let mut history = LineHistory::new();
    for (number, edit) in edits.iter().enumerate() {
        history.edit(number, edit);
    }
    let origins = history.origins_in(&now);
    let candidates: Vec<_> = origins.iter().map(candidates_of).collect();
    assert_eq!(**candidates[0], *(1000 - MAX_CANDIDATES..1000).collect::<Vec<_>>());
    assert!(candidates.iter().all(|list| Arc::ptr_eq(list, candidates[0])));
    // Lines that were one of several lines share their lists too.
    history.observe(&now);
    let twice = format!("{now}{now}");
    let origins = history.origins_in(&twice);
    let lists: HashSet<_> = origins.iter().map(|origin| candidates_of(origin).as_ptr()).collect();
    assert!(lists.len() <= 3, "{}", lists.len());
}

fn candidates_of(origin: &LineOrigin) -> &Arc<[usize]> {
    match origin {
        LineOrigin::Unknown { candidates, .. } => candidates,
        LineOrigin::Edit { .. } => panic!("{origin:?}"),
    }
}
