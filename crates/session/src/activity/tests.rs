use threadline_entry::LineReader;
use threadline_testkit::{log, shared_logs};

use super::*;
use crate::session::Session;

fn scan(bytes: &[u8]) -> LogActivity {
    let mut scan = ActivityScan::default();
    let mut lines = LineReader::new(bytes);
    while let Some(block) = lines.next_block().unwrap() {
        block.sketches().for_each(|(line, sketch)| scan.line(&line, sketch.as_ref()));
    }
    scan.finish()
}

/// Returns each call as `line tool detail duration outcome`.
fn calls(activity: &LogActivity) -> Vec<String> {
    let name = |id: u32| &*activity.names[id as usize];
    let text = |call: &CallActivity| {
        let detail = call.detail.map_or("-", name);
        let duration = call.duration.map_or_else(|| "-".to_owned(), |duration| duration.to_string());
        format!("{} {} {detail} {duration} {}", call.line, name(call.tool), call.outcome.name())
    };
    activity.calls.iter().map(text).collect()
}

#[test]
fn calls_are_joined_with_their_results() {
    let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"cd x && cargo test -q"}
r1 <- a1  result t1 "exit 2" error
a2 <- r1  reply  m2 tool t2 Edit {"file_path":"/x.rs","old_string":"a","new_string":"b"}
r2 <- a2  result t2 "ok"
a3 <- r2  reply  m3 tool t3 Bash {"command":"make"}
r3 <- a3  result t3 "The user doesn't want to proceed with this tool use." error
a4 <- r3  reply  m4 tool t4 Read {"file_path":"/y"}
"#);
    let activity = scan(&bytes);
    let expected = [
        "2 Bash cargo test 1000 error",
        "4 Edit /x.rs 1000 ok",
        "6 Bash make 1000 denied",
        "8 Read - - missing",
    ];
    assert_eq!(calls(&activity), expected);
    assert_eq!(activity.prompts.len(), 1);
    assert!(matches!(activity.ending, LogEnding::Called(_)), "{:?}", activity.ending);
    let states: Vec<_> = activity.pauses.iter().map(|pause| pause.state).collect();
    let (active, waiting) = (ActivityState::Active, ActivityState::Waiting);
    assert_eq!(states, [active, active, active, active, active, waiting, active]);
    assert!(activity.pauses.iter().all(|pause| pause.end - pause.start == 1000));
}

#[test]
fn files_that_commands_changed_are_named() {
    let file = |path: &str| format!(r#"{{"filePath":"{path}","hunks":[{{"lines":["+x"]}}]}}"#);
    let bytes = log(&format!(
        r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {{"command":"./weave"}}
r1 <- a1  result t1 "" {{"bashEditDiff":{{"files":[{},{}],"moreFiles":4,"changedFiles":["/w/a","/w/b","/w/c"]}}}}
a2 <- r1  reply  m2 tool t2 Bash {{"command":"echo bashEditDiff"}}
r2 <- a2  result t2 "\"bashEditDiff\":" {{"stdout":"\"bashEditDiff\":"}}
a3 <- r2  reply  m3 tool t3 Bash {{"command":"git stash"}}
r3 <- a3  result t3 "" {{"bashEditDiff":{{"files":[],"skipped":true}}}}
a4 <- r3  reply  m4 tool t4 Bash {{"command":"./weave again"}}
r4 <- a4  result t4 "" {{"bashEditDiff":{{"files":[{}]}}}}
"#,
        file("/w/a"),
        file("/w/b"),
        file("/w/a"),
    ));
    let activity = scan(&bytes);
    let edits = |call: &CallActivity| -> Vec<&str> {
        let (first, count) = (call.shell_edits.0 as usize, call.shell_edits.1 as usize);
        let paths = &activity.shell_edits[first..first + count];
        paths.iter().map(|path| &*activity.names[*path as usize]).collect()
    };
    let edits: Vec<Vec<&str>> = activity.calls.iter().map(edits).collect();
    assert_eq!(edits, [vec!["/w/a", "/w/b", "/w/c"], vec![], vec![], vec!["/w/a"]]);
    // A line with unusual syntax is read as well.
    let spaced =
        String::from_utf8(bytes).unwrap().replace("\"type\":", "\"type\" : ").replace("t1", "t\\u0031");
    assert_eq!(scan(spaced.as_bytes()).shell_edits, activity.shell_edits);
}

#[test]
fn each_object_of_a_line_counts_once() {
    let prompt = |text: &str| format!(r#"{{"type":"user","message":{{"role":"user","content":"{text}"}}}}"#);
    let line = format!("{}{}{}\n", prompt("warp"), prompt("weft"), prompt("warp"));
    assert_eq!(scan(line.as_bytes()).prompts.len(), 2);
}

#[test]
fn several_failed_results_on_a_line_have_their_own_outcomes() {
    let reply = r#"{"type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"A","input":{}},{"type":"tool_use","id":"t2","name":"B","input":{}}]}}"#;
    let denied = "The user doesn't want to proceed with this tool use.";
    let results = format!(
        r#"{{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{denied}","is_error":true}},{{"type":"tool_result","tool_use_id":"t2","content":"exit 2","is_error":true}}]}}}}"#
    );
    let activity = scan(format!("{reply}\n{results}\n").as_bytes());
    assert_eq!(calls(&activity), ["1 A - - denied", "1 B - - error"]);
}

#[test]
fn a_repeated_log_counts_once() {
    let once = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "ok"
"#);
    let twice = [&*once, &*once].concat();
    let (once, twice) = (scan(&once), scan(&twice));
    assert_eq!((&once.calls, &once.prompts, &once.pauses), (&twice.calls, &twice.prompts, &twice.pauses));
}

#[test]
fn pauses_and_questions_are_not_active() {
    let line = |at: &str, rest: &str| format!(r#"{{"timestamp":"2026-03-01T{at}.000Z",{rest}}}"#);
    let prompt = r#""type":"user","message":{"content":"weave"}"#;
    let reply = r#""type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"done"}]}"#;
    let question = r#""type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"t1","name":"AskUserQuestion","input":{}}]}"#;
    let answer =
        r#""type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"yes"}]}"#;
    let lines = [
        line("10:00:00", prompt),
        line("10:00:05", reply),
        line("10:10:00", prompt),
        line("10:10:05", question),
        line("10:11:05", answer),
        line("10:11:06", reply),
        line("12:00:00", prompt),
        line("12:00:01", reply),
    ];
    let activity = scan(lines.join("\n").as_bytes());
    let states: Vec<_> =
        activity.pauses.iter().map(|pause| (pause.state, (pause.end - pause.start) / 1000)).collect();
    use ActivityState::{Active, Idle, Waiting};
    let expected =
        [(Active, 5), (Waiting, 595), (Active, 5), (Waiting, 60), (Active, 1), (Idle, 6534), (Active, 1)];
    assert_eq!(states, expected);
    assert_eq!(activity.ending, LogEnding::Replied);
}

#[test]
fn odd_syntax_is_read_the_same_way() {
    let bytes = log(r#"
u1        user   "weave"
a1 <- u1  reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "exit 2" error
"#);
    let text = String::from_utf8(bytes.clone()).unwrap();
    let odd = text.replace("\"type\":", "\"typ\\u0065\": ");
    assert_ne!(odd, text);
    assert_eq!(scan(odd.as_bytes()), scan(&bytes));
}

/// The scan and the session agree on the calls of real logs.
#[test]
fn calls_of_real_logs_equal_those_of_the_session() {
    for path in shared_logs() {
        let bytes = std::fs::read(&path).unwrap();
        let session = Session::from_bytes(&bytes);
        let activity = scan(&bytes);
        let mut expected: Vec<(u64, String)> = session
            .tool_calls()
            .iter()
            .map(|call| {
                let line =
                    call.lines.iter().map(|&idx| session.entries()[idx].at().line_no).min().unwrap_or(0);
                (line, call.name.to_string())
            })
            .collect();
        expected.sort();
        let mut found: Vec<(u64, String)> = activity
            .calls
            .iter()
            .map(|call| (call.line.into(), activity.names[call.tool as usize].clone()))
            .collect();
        found.sort();
        // The session does not contain the messages that progress lines repeat.
        let progress = session.entries().iter().filter(|entry| entry.kind() == Kind::Progress);
        let lines: HashSet<u64> = progress.map(|entry| entry.at().line_no).collect();
        found.retain(|(line, _)| !lines.contains(line));
        assert_eq!(found, expected, "{path:?}");
    }
}
