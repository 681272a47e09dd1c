//! Tests of tool calls and their outcomes.

use insta::assert_snapshot;
use serde_json::json;
use threadline_session::{CallIndex, EntryIndex, Session, TurnIndex};

use crate::render::{name, names, paths, session, turns};

/// Renders each call: its line, results, copies, outcome and duration.
fn calls(notation: &str) -> String {
    let session = session(notation);
    let call = |call: &threadline_session::ToolCall| {
        let results: Vec<EntryIndex> = call.results.iter().map(|at| at.entry_idx).collect();
        let others: Vec<EntryIndex> =
            call.lines.iter().copied().filter(|&line| line != call.entry_idx).collect();
        let copies = match &others[..] {
            [] => String::new(),
            copies => format!(" again on {}", names(&session, copies)),
        };
        let took = call.duration(&session).map_or(String::new(), |millis| format!(" in {millis} ms"));
        let at = name(&session, call.entry_idx);
        let (id, outcome) = (&call.id, call.outcome(&session).name());
        format!("{}({id}) on {at}{copies} -> [{}] {outcome}{took}\n", call.name, names(&session, &results))
    };
    session.tool_calls().iter().map(call).collect()
}

/// Returns the outcome of a call with this result.
fn outcome(result: &str) -> &'static str {
    let session = session(&format!("a1 reply m1 tool t1 Bash\nr1 <- a1 result t1 {result}"));
    session.tool_calls()[CallIndex::FIRST].outcome(&session).name()
}

#[test]
fn outcomes_of_real_results() {
    let refused =
        "\"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …\" error";
    let table = [
        (r#""ok""#, "ok"),
        (r#""""#, "ok"),
        (r#""ok" {"stdout":"ok","stderr":"","interrupted":false}"#, "ok"),
        (r#"[text "Screenshot taken", image] [{"type":"text","text":"x"}]"#, "ok"),
        (r#""ok" "File created successfully at: /tmp/a""#, "ok"),
        (r#""Exit code 1" error "Error: Exit code 1""#, "error"),
        (r#""<tool_use_error>File has not been read yet.</tool_use_error>" error "Error: File …""#, "error"),
        (
            r#""<tool_use_error>Sibling tool call errored</tool_use_error>" error "Sibling tool call errored""#,
            "error",
        ),
        (r#""MCP error -32602" error "Error: MCP error -32602""#, "error"),
        (&format!("{refused} \"User rejected tool use\""), "denied"),
        (&format!("{refused} \"Error: The user doesn't want to proceed with this tool use.\""), "denied"),
        (refused, "denied"),
        (r#""no" error +{"toolDenialKind":"automode-unavailable"}"#, "denied"),
        (r#""no" error +{"toolDenialKind":"user-rejected"}"#, "denied"),
        (r#""Permission to use Bash has been denied." error"#, "denied"),
        (
            r#""Claude requested permissions to write to /a, but you haven't granted it yet." error "Error: …""#,
            "denied",
        ),
        (r#""User chose to stay in plan mode and continue planning" error "Error: …""#, "denied"),
        (r#""The user doesn't want to take this action right now. STOP" error"#, "denied"),
        (r#""half" {"stdout":"half","stderr":"","interrupted":true}"#, "interrupted"),
        (
            r#""[Tool call interrupted: the session ended]" error +{"toolDenialKind":"interrupted"}"#,
            "interrupted",
        ),
        (r#""no" error +{"toolDenialKind":"interrupted"}"#, "interrupted"),
        (r#""[Tool call interrupted: the session ended]" error"#, "interrupted"),
        (r#""half" error {"stdout":"half","stderr":"","interrupted":true}"#, "interrupted"),
        (r#""[Request interrupted by user for tool use]" error"#, "interrupted"),
    ];
    for (result, want) in table {
        assert_eq!(outcome(result), want, "{result}");
    }
}

#[test]
fn a_call_without_a_result_is_missing_one() {
    assert_snapshot!(calls("a1 reply m1 tool t1 Bash"), @"Bash(t1) on a1 -> [] missing");
}

#[test]
fn duration_is_from_the_call_to_its_result() {
    assert_snapshot!(calls(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
a2 <- a1  reply  m1 tool t2 Bash
r2 <- a2  result t2 "quick"
r1 <- a1  result t1 "slow"    @+2.5s
a3 <- r1  reply  m2 tool t3 Bash
r3 <- a3  result t3 "before it began" @-10s
a4 <- r3  reply  m3 tool t4 Bash
r4 <- a4  result t4 "nobody looked at the clock" -timestamp
"#), @r"
    Bash(t1) on a1 -> [r1] ok in 5500 ms
    Bash(t2) on a2 -> [r2] ok in 1000 ms
    Bash(t3) on a3 -> [r3] ok in 0 ms
    Bash(t4) on a4 -> [r4] ok
    ");
}

#[test]
fn of_two_results_the_first_counts() {
    let notation = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Bash
r1 <- a1  result t1 "ok"
r2 <- a1  result t1 "no" error
a2 <- r1  reply  m2 text "Done."
"#;
    assert_snapshot!(calls(notation), @"Bash(t1) on a1 -> [r1 r2] ok in 1000 ms");
    assert_snapshot!(paths(notation), @r"
    thread: u1 a1 r1 a2
    branch from a1: r2
    ");
}

#[test]
fn a_result_before_its_call_is_found() {
    assert_snapshot!(calls(r#"
r1 <- ?a1 result t1 "early"
a1        reply  m1 tool t1 Bash
"#), @"Bash(t1) on a1 -> [r1] ok in 0 ms");
}

#[test]
fn a_duplicated_session_has_each_call_once() {
    // 2.1.11 to 2.1.14 in an IDE: new uuids, the same message ids, tool ids and times.
    let notation = r#"
u1        user   "go"
a1 <- u1  reply  m1 text "Let me."
a2 <- a1  reply  m1 tool t1 Bash
r1 <- a2  result t1 "ok"
a3 <- r1  reply  m2 text "Done."
v1        user   "go"               @10:00:00
b1 <- v1  reply  m1 text "Let me."
b2 <- b1  reply  m1 tool t1 Bash
s1 <- b2  result t1 "ok"
b3 <- s1  reply  m2 text "Done."
"#;
    assert_snapshot!(paths(notation), @r"
    thread: v1 b1 b2 s1 b3
    branch from nowhere: u1 a1 a2 r1 a3
    ");
    assert_snapshot!(calls(notation), @"Bash(t1) on b2 again on a2 -> [r1 s1] ok in 1000 ms");
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "go"
      [v1 b1 b2 s1 b3]
      m1  text, Bash(t1) -> ok
      m2  text
    "#);
}

#[test]
fn duplicated_parallel_calls_keep_their_results() {
    assert_snapshot!(paths(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Read
a2 <- a1  reply  m1 tool t2 Read
r1 <- a1  result t1 "A"
r2 <- a2  result t2 "B"
v1        user   "go"
b1 <- v1  reply  m1 tool t1 Read
b2 <- b1  reply  m1 tool t2 Read
s1 <- b1  result t1 "A"
s2 <- b2  result t2 "B"
b3 <- s2  reply  m2 text "Done."
"#), @r"
    thread: v1 b1 b2 s1 s2 b3
    branch from nowhere: u1 a1 a2 r1 r2
    ");
}

#[test]
fn results_of_parallel_calls_are_siblings_and_all_belong() {
    assert_snapshot!(paths(r#"
u1        user   "go"
a1 <- u1  reply  m1 tool t1 Read
a2 <- a1  reply  m1 tool t2 Read
a3 <- a2  reply  m1 tool t3 Read
r3 <- a3  result t3 "C"
r1 <- a1  result t1 "A"
x1 <- r1  attach hook_success {"toolUseID":"t1"}
r2 <- a2  result t2 "B"
a4 <- r3  reply  m2 text "Done."
"#), @"thread: u1 a1 a2 a3 r3 r1 x1 r2 a4");
}

#[test]
fn an_id_reused_by_another_reply_is_another_call() {
    // Seen with gateways that count their calls from zero in each reply.
    let notation = r#"
u1        user   "go"
a1 <- u1  reply  m1 tool call_0 Read {"file_path":"a"}
r1 <- a1  result call_0 "A"
a2 <- r1  reply  m2 tool call_0 Read {"file_path":"b"}
a3 <- a2  reply  m2 tool call_1 Read {"file_path":"c"}
r2 <- a2  result call_0 "B" error
r3 <- a3  result call_1 "C"
a4 <- r3  reply  m3 text "Done."
"#;
    assert_snapshot!(calls(notation), @r"
    Read(call_0) on a1 -> [r1] ok in 1000 ms
    Read(call_0) on a2 -> [r2] error in 2000 ms
    Read(call_1) on a3 -> [r3] ok in 2000 ms
    ");
    assert_snapshot!(paths(notation), @"thread: u1 a1 r1 a2 a3 r2 r3 a4");
    let session = session(notation);
    let on = |entry_idx: EntryIndex| {
        session.tool_call_on(entry_idx, "call_0").map(|call| call.entry_idx.position())
    };
    assert_eq!([1, 3, 4].map(EntryIndex::from_position).map(on), [Some(1), Some(3), None]);
    assert_snapshot!(turns(notation), @r#"
    turn 1  new_session  "go"
      [u1 a1 r1 a2 a3 r2 r3 a4]
      m1  Read(call_0) -> ok
      m2  Read(call_0) -> error, Read(call_1) -> ok
      m3  text
    "#);
}

#[test]
fn calls_without_ids_are_calls() {
    assert_snapshot!(calls(r#"
u1        user   "go"
a1 <- u1  reply  m1 [{"type":"tool_use","name":"Read"}, {"type":"tool_use","name":"Write","id":""}]
r1 <- a1  user   [{"type":"tool_result","content":"for whom?"}]
"#), @r"
    Read() on a1 -> [] missing
    Write() on a1 -> [] missing
    ");
}

#[test]
fn one_line_may_contain_several_calls_and_results() {
    assert_snapshot!(calls(r#"
u1        user   "go"
a1 <- u1  reply  m1 [text "Both.", tool t1 Read, tool t2 Read]
r1 <- a1  user   [result t2 "B", result t1 "A" error, text "and stop"]
"#), @r"
    Read(t1) on a1 -> [r1] error in 1000 ms
    Read(t2) on a1 -> [r1] ok in 1000 ms
    ");
}

#[test]
fn a_turn_is_open_while_a_call_is_pending_or_its_result_unread() {
    let open = |rest: &str| {
        let session = session(&format!("u1 user \"go\"\n{rest}"));
        session.turns()[TurnIndex::FIRST].is_open(&session)
    };
    assert!(open(""));
    assert!(!open("a1 <- u1 reply m1 text \"Done.\""));
    assert!(open("a1 <- u1 reply m1 tool t1 Bash"));
    assert!(open("a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\""));
    assert!(open("a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"no\" error"));
    assert!(!open(
        "a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"no\" error \"User rejected tool use\""
    ));
    assert!(!open("a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"\" {\"interrupted\":true}"));
    assert!(!open(
        "a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\"\ni1 <- r1 user [text \"[Request interrupted by user]\"]"
    ));
    assert!(!open("i1 <- u1 user [text \"[Request interrupted by user]\"]"));
    assert!(!open(
        "a1 <- u1 reply m1 tool t1 Bash\nr1 <- a1 result t1 \"ok\"\na2 <- r1 reply m2 text \"Done.\""
    ));
}

#[test]
fn a_later_line_distinguishes_interrupted_from_denied_calls() {
    // Both have the same result. Another call of the reply finished before.
    let stopped = |interrupted: &str| {
        calls(&format!(
            r#"
a1        reply  m1 tool t1 Bash
a2 <- a1  reply  m1 tool t2 Bash
r1 <- a1  result t1 "Exit code 1" error "Error: Exit code 1"
r2 <- a2  result t2 "The user doesn't want to proceed with this tool use." error "User rejected tool use"
i1 <- r2  user   [text "[Request interrupted by user for tool use]"] {interrupted}
"#
        ))
    };
    assert_snapshot!(stopped(r#"+{"interruptedMessageId":"m1"}"#), @r"
    Bash(t1) on a1 -> [r1] error in 2000 ms
    Bash(t2) on a2 -> [r2] interrupted in 2000 ms
    ");
    assert_snapshot!(stopped(""), @r"
    Bash(t1) on a1 -> [r1] error in 2000 ms
    Bash(t2) on a2 -> [r2] denied in 2000 ms
    ");
}

/// A reply of many calls on one line, each with its result on the next.
fn wide(reply: &str, uuids: (&str, &str), parent: Option<&str>) -> String {
    let id = |n: usize| format!("t{n}");
    let calls: Vec<_> =
        (0..100).map(|n| json!({"type": "tool_use", "id": id(n), "name": reply, "input": {}})).collect();
    let results: Vec<_> =
        (0..100).map(|n| json!({"type": "tool_result", "tool_use_id": id(n), "content": reply})).collect();
    let line = json!({"type": "assistant", "uuid": uuids.0, "parentUuid": parent,
        "message": {"id": reply, "role": "assistant", "content": calls}});
    let answer = json!({"type": "user", "uuid": uuids.1, "parentUuid": uuids.0,
        "message": {"role": "user", "content": results}});
    format!("{line}\n{answer}\n")
}

#[test]
fn a_call_of_a_wide_line_is_that_of_its_own_reply() {
    let log = wide("m1", ("a1", "r1"), None) + &wide("m2", ("a2", "r2"), Some("r1"));
    let session = Session::from_bytes(log.as_bytes());
    for (line, name) in [(0, "m1"), (2, "m2")] {
        let line = EntryIndex::from_position(line);
        let call = session.tool_call_on(line, "t70").unwrap();
        assert_eq!((&*call.name, call.entry_idx, call.block_idx), (name, line, 70));
        assert_eq!(call.result(&session).unwrap().content().unwrap().text(), name);
    }
    assert!(
        session.tool_call_on(EntryIndex::FIRST, "t100").is_none()
            && session.tool_call_on(EntryIndex::FIRST.next(), "t1").is_none()
    );
}

#[test]
fn a_result_belongs_to_few_of_the_blocks_with_its_call() {
    let session = session(
        r#"
u1        user   "go"
a1 <- u1  reply  m1 [tool t1 Bash, tool t1 Bash, tool t1 Bash]
a2 <- a1  reply  m1 [text "Again.", tool t1 Bash]
a3 <- a2  reply  m1 tool t1 Bash
r1 <- a3  result t1 "ok"
a4 <- r1  reply  m1 [tool t1 Bash, tool t1 Bash]
r2 <- a4  result t1 "no" error
a5 <- r2  reply  m1 tool t1 Bash
"#,
    );
    let call = &session.tool_calls()[CallIndex::FIRST];
    let results = |line: &EntryIndex| {
        let blocks = session.entries()[*line].message().unwrap().blocks().enumerate();
        let calls = blocks.filter(|(_, block)| block.is("tool_use"));
        let shown = calls.filter_map(|(block_idx, _)| {
            let result = call.result_of_block(*line, block_idx, &session)?;
            Some(format!("{}.{block_idx}: {}\n", name(&session, *line), name(&session, result.entry_idx)))
        });
        shown.collect::<String>()
    };
    // The last line continues the conversation.
    assert_snapshot!(call.lines.iter().map(results).collect::<String>(), @r"
    a3.0: r1
    a4.0: r2
    a5.0: r1
    ");
}
