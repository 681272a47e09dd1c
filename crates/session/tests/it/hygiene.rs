//! Tests of unusual, large and truncated input, which is read as far as possible (the reading cases of H1
//! to H16).

use insta::assert_snapshot;
use threadline_entry::{Ending, Kind};
use threadline_session::{CallIndex, ClientVersion, EntryIndex, Session, TurnIndex};
use threadline_testkit::log;

use crate::render::{findings_of, name, replay, session, text, turns, turns_of};

#[test]
fn h01_a_lone_surrogate_is_replaced() {
    let notation = r#"
u1        user   "before \udcb2 after"
a1 <- u1  reply  m1 text "I see \ud83d here."
"#;
    let session = session(notation);
    assert_eq!(text(&session, EntryIndex::FIRST), "\"before \u{fffd} after\"");
    assert_snapshot!(replay(notation), @r"
    user: text before � after
    assistant: text I see � here.
    ");
}

#[test]
fn h02_a_line_of_many_megabytes_is_read() {
    let long = "y".repeat(4 << 20);
    let mut bytes = log("u1 user \"read it\"\na1 <- u1 reply m1 tool t1 Read\n");
    let result = r#"{"type":"tool_result","tool_use_id":"t1","content":"#;
    bytes.extend(format!("{{\"type\":\"user\",\"uuid\":\"r1\",\"parentUuid\":\"a1\",\"message\":{{\"content\":[{result}\"{long}\"}}]}}}}\n").bytes());
    bytes.extend(log("a2 <- ?r1 reply m2 text \"Read.\""));
    let session = Session::from_bytes(&bytes);
    assert_snapshot!(turns_of(&session), @r#"
    turn 1  new_session  "read it"
      [u1 a1 r1 a2]
      m1  Read(t1) -> ok
      m2  text
    "#);
    let result = session.tool_calls()[CallIndex::FIRST].result(&session).unwrap();
    assert_eq!(result.content().unwrap().text().len(), long.len());
}

#[test]
fn h03_a_turn_of_many_replies_is_read_quickly() {
    let mut notation = String::from("u0 user \"go\"\n");
    for i in 1..=6000 {
        let before = if i == 1 { "u0".into() } else { format!("r{}", i - 1) };
        notation += &format!("a{i} <- {before} reply m{i} tool t{i} Bash\nr{i} <- a{i} result t{i} \"ok\"\n");
    }
    let session = session(&notation);
    let turns = session.turns();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[TurnIndex::FIRST].replies(&session).len(), 6000);
    assert_eq!(turns[TurnIndex::FIRST].tool_calls(&session).len(), 6000);
    assert!(session.branches().is_empty());
    assert!(session.findings().is_empty());
    assert_eq!(session.replay(ClientVersion::NEWEST).unwrap().len(), 12001);
}

#[test]
fn h04_a_truncated_last_line_is_kept() {
    let whole = log("u1 user \"hällo\"\na1 <- u1 reply m1 text \"Grüße.\"");
    let expected = turns_of(&Session::from_bytes(&whole));
    let last = log("u2 <- ?a1 user \"ünd?\"");
    for cut in 1..last.len() - 1 {
        // The cut may be inside a multi-byte character.
        let session = Session::from_bytes(&[&whole[..], &last[..cut]].concat());
        assert_eq!(turns_of(&session), expected, "cut after {cut} bytes");
        let torn = &session.entries().as_slice()[2];
        assert_eq!((torn.kind(), torn.ending(), torn.as_bytes()), (Kind::Bad, Ending::None, &last[..cut]));
    }
}

#[test]
fn h04_a_last_line_without_newline_is_read() {
    let mut bytes = log("u1 user \"hi\"\na1 <- u1 reply m1 text \"Hi.\"");
    assert_eq!(bytes.pop(), Some(b'\n'));
    let session = Session::from_bytes(&bytes);
    assert_snapshot!(turns_of(&session), @r#"
    turn 1  new_session  "hi"
      [u1 a1]
      m1  text
    "#);
    assert_snapshot!(findings_of(&session), @"");
}

#[test]
fn h04_an_object_appended_to_a_torn_line_is_lost() {
    // The writer died in mid-line and the next one appended, so both objects are on one line, which Claude
    // Code skips. We skip it too, although the second object is complete.
    let session = session(
        r#"
u1        user   "hi"
torn {"type":"assistant","uuid":"a1","parentUuid":"u1","mess
a2 <- u1  reply  m2 text "Hi."
u2 <- u1  user   "still there?"
"#,
    );
    assert_snapshot!(turns_of(&session), @r#"
    turn 1  new_session  "hi"  open
      [u1]
    turn 2  new_round  "still there?"  open
      [u2]
    "#);
    assert_snapshot!(findings_of(&session), @"line 2  F09 broken-line  warning: the line is not JSON: expected `:` at line 1 column 58");
}

#[test]
fn concatenated_objects_are_both_read() {
    let session = session(
        r#"
u1        user   "hi"
torn {"type":"assistant","uuid":"a1","parentUuid":"u1","timestamp":"2026-01-01T10:00:01.000Z","message":{"id":"m1","content":[{"type":"text","text":"Hi."}]}}
snapshot u1
u2 <- ?a1 user   "bye"
"#,
    );
    assert_snapshot!(turns_of(&session), @r#"
    turn 1  new_session  "hi"
      [u1 a1]
      m1  text
    turn 2  new_round  "bye"  open
      [u2]
    "#);
    assert_snapshot!(findings_of(&session), @"line 2  F09 broken-line  warning: 2 values on one line; Claude Code reads only the first");
}

#[test]
fn h07_h08_paths_come_from_the_lines_and_are_not_decoded() {
    let session = session(
        r#"
u1        user "hi"               cwd="D:\\OneDrive - Comp\\Name"
a1 <- u1  reply m1 text "Hi."     cwd="D:\\OneDrive - Comp\\Name"
"#,
    );
    let cwd = session.entries().as_slice()[0].envelope().unwrap().cwd().unwrap().into_owned();
    assert_eq!(cwd, "D:\\OneDrive - Comp\\Name");
    assert!(session.findings().is_empty());
}

#[test]
fn h09_a_session_may_move() {
    let session = session(
        r#"
u1        user  "hi"              cwd=/a
a1 <- u1  reply m1 text "Hi."     cwd=/a/b
u2 <- a1  user  "back"            cwd=/a
a2 <- u2  reply m2 text "Here."   cwd=/c branch=other
"#,
    );
    assert_snapshot!(turns_of(&session), @r#"
    turn 1  new_session  "hi"
      [u1 a1]
      m1  text
    turn 2  new_round  "back"
      [u2 a2]
      m2  text
    "#);
    assert_eq!(session.first_cwd().as_deref(), Some("/a"));
    assert_eq!(Session::from_bytes(b"{}").first_cwd(), None);
    assert_snapshot!(findings_of(&session), @r"
    line 2  F19 moved-cwd  note: the working directory changes to /a/b
    line 4  F19 moved-cwd  note: the working directory changes to /c
    ");
}

#[test]
fn h16_an_empty_file_is_an_empty_session() {
    for bytes in [&b""[..], b"\n", b"\n\n  \n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n"] {
        let session = Session::from_bytes(bytes);
        assert!(session.turns().is_empty());
        assert!(session.branches().is_empty());
        assert!(session.replay(ClientVersion::NEWEST).is_none());
        assert!(session.active_leaf().is_none());
        assert_eq!((session.id(), session.title()), (None, None));
    }
}

#[test]
fn h16_a_file_with_one_snapshot_or_summary_has_no_messages() {
    for line in [
        "snapshot u1",
        "summary \"Old\" leaf x",
        "title \"Mine\"",
        "queue enqueue \"hi\"",
        "pr-link 7 ada/loom",
    ] {
        let session = session(line);
        assert_eq!(session.entries().len(), 1);
        assert!(session.turns().is_empty() && session.replay(ClientVersion::NEWEST).is_none(), "{line}");
    }
}

#[test]
fn h16_byte_order_marks_carriage_returns_and_nul_bytes_are_ignored() {
    let plain = log("u1 user \"hi\"\na1 <- u1 reply m1 text \"Hi.\"");
    let expected = turns_of(&Session::from_bytes(&plain));
    let crlf = String::from_utf8(plain.clone()).unwrap().replace('\n', "\r\n").into_bytes();
    let marked = [b"\xef\xbb\xbf", &plain[..]].concat();
    let padded = [&plain[..], &[0; 4096]].concat();
    let blanks = String::from_utf8(plain).unwrap().replace('\n', "\n\n \n").into_bytes();
    for bytes in [crlf, marked, padded, blanks] {
        let session = Session::from_bytes(&bytes);
        assert_eq!(turns_of(&session), expected);
        assert_eq!(session.replay(ClientVersion::NEWEST).unwrap().len(), 2);
    }
}

#[test]
fn h16_invalid_utf8_is_replaced() {
    let bytes = [
        &log("u1 user \"hi\"")[..],
        b"{\"type\":\"user\",\"uuid\":\"u2\",\"parentUuid\":\"u1\",\"message\":{\"content\":\"\xff!\"}}\n",
    ]
    .concat();
    let session = Session::from_bytes(&bytes);
    assert_eq!(name(&session, EntryIndex::FIRST.next()), "u2");
    assert_eq!(text(&session, EntryIndex::FIRST.next()), "\"\u{fffd}!\"");
}

#[test]
fn other_lines_do_not_break_a_conversation() {
    assert_snapshot!(turns(r#"
raw // Source: elsewhere
snapshot u1
u1        user   "hi"
raw [1,2]
raw "text"
raw {}
hex ff fe
a1 <- u1  reply  m1 text "Hi."
raw {"type":"assistant","uuid":7,"parentUuid":"a1","message":{"id":"m2","content":[{"type":"text","text":"odd"}]}}
"#), @r#"
    turn 1  new_session  "hi"
      [u1 a1 line9]
      m1  text
      m2  text
    "#);
}
