//! Tests of file history: snapshots, their updates and deltas, and edits.

use insta::assert_snapshot;
use threadline_evidence::{
    Certainty, EvidenceBasis, FileContent, FileEvidence, FileSources, HistoryPoint, LogOnly,
    uncertain_commands,
};
use threadline_session::{Session, SessionFamily};
use threadline_testkit::log;

/// Every backup exists, and contains its name.
struct Backups;

impl FileSources for Backups {
    fn backup(&self, name: &str) -> Option<Vec<u8>> {
        Some(format!("backup {name}").into_bytes())
    }
}

fn family(notation: &str) -> SessionFamily {
    SessionFamily::new(Session::from_bytes(&log(notation)), Vec::new())
}

fn shown(content: Option<&FileContent>) -> String {
    match content {
        None => "unknown".to_owned(),
        Some(FileContent::Absent) => "absent".to_owned(),
        Some(FileContent::Link(target)) => format!("link to {target}"),
        Some(FileContent::File(file)) => format!("{:?}", String::from_utf8_lossy(&file.bytes)),
    }
}

/// Renders the files at the start of each turn and at the end, one per line, and the changes of each turn.
fn files(notation: &str) -> String {
    files_with(notation, &LogOnly)
}

fn files_with(notation: &str, sources: &dyn FileSources) -> String {
    let family = family(notation);
    let history = FileEvidence::of(&family, sources);
    let turns = family.main.turns();
    let prompts = turns
        .iter()
        .map(|turn| (format!("turn {}", turn.number), HistoryPoint::Prompt(turn.prompt.unwrap())));
    let mut out = String::new();
    for (name, at) in prompts.chain([("end".to_owned(), HistoryPoint::End)]) {
        for state in history.states_at(at) {
            let certainty = if state.certainty == Certainty::Likely { "likely " } else { "" };
            let content = shown(state.content.as_ref());
            let basis = match state.basis {
                EvidenceBasis::Exact => String::new(),
                EvidenceBasis::Earlier(idx) => format!(" (before: line {})", idx.position() + 1),
                EvidenceBasis::Later(idx) => format!(" (after: line {})", idx.position() + 1),
                EvidenceBasis::Outside => " (outside)".to_owned(),
            };
            out.push_str(&format!("{name}: {} = {certainty}{content}{basis}\n", state.path));
        }
    }
    let starts: Vec<_> = turns.iter().map(|turn| turn.prompt.unwrap()).collect();
    for (turn, files) in turns.iter().zip(history.changes_from(&starts)) {
        for file in files {
            out.push_str(&format!("turn {} changed {}, {} edits\n", turn.number, file.path, file.edits));
        }
    }
    out
}

#[test]
fn a_snapshot_and_its_updates_are_the_files_at_the_prompt() {
    assert_snapshot!(files(r#"
        snapshot u1
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/home/ada/loom/a"}
        snapshot u1 update {"a":{"backupFileName":"00@v1","version":1}}
        r1 <- a1  result t1 "ok" {"filePath":"/home/ada/loom/a","oldString":"x","newString":"y","originalFile":"x\n"}
        snapshot u2 {"a":{"backupFileName":"00@v2","version":2}}
        u2 <- r1  user   "two"
        a2 <- u2  reply  m2 text "ok"
        "#), @r#"
    turn 1: /home/ada/loom/a = likely "x\n" (after: line 5)
    turn 2: /home/ada/loom/a = likely "y\n" (before: line 5)
    end: /home/ada/loom/a = likely "y\n" (before: line 5)
    turn 1 changed /home/ada/loom/a, 1 edits
    "#);
}

#[test]
fn a_delta_adds_to_the_snapshot_of_its_prompt() {
    assert_snapshot!(files_with(r#"
        snapshot u1
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Write {"file_path":"/home/ada/loom/b","content":"new"}
        entry file-history-delta {"messageId":"a1","snapshotMessageId":"u1","trackingPath":"b","backup":{"backupFileName":null,"version":1}}
        r1 <- a1  result t1 "ok" {"type":"create","filePath":"/home/ada/loom/b","content":"new","originalFile":null}
        snapshot u2 {"b":{"backupFileName":"00@v2","version":2}}
        u2 <- r1  user   "two"
        "#, &Backups), @r#"
    turn 1: /home/ada/loom/b = absent
    turn 2: /home/ada/loom/b = "backup 00@v2"
    end: /home/ada/loom/b = "backup 00@v2" (before: line 7)
    turn 1 changed /home/ada/loom/b, 1 edits
    "#);
}

#[test]
fn before_its_first_snapshot_a_file_has_that_content() {
    assert_snapshot!(files_with(r#"
        snapshot u1
        u1        user   "one"
        a1 <- u1  reply  m1 text "ok"
        snapshot u2 {"a":{"backupFileName":"00@v1","version":1}}
        u2 <- a1  user   "two"
        "#, &Backups), @r#"
    turn 1: /home/ada/loom/a = "backup 00@v1" (after: line 5)
    turn 2: /home/ada/loom/a = "backup 00@v1"
    end: /home/ada/loom/a = "backup 00@v1" (before: line 5)
    "#);
}

#[test]
fn without_snapshots_edits_determine_the_content() {
    assert_snapshot!(files(r#"
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/a"}
        r1 <- a1  result t1 "ok" {"filePath":"/a","oldString":"x","newString":"y","originalFile":"x x"}
        u2 <- r1  user   "two"
        a2 <- u2  reply  m2 tool t2 Edit {"file_path":"/a"}
        r2 <- a2  result t2 "ok" {"filePath":"/a","oldString":"x","newString":"z","originalFile":null}
        u3 <- r2  user   "three"
        a3 <- u3  reply  m3 tool t3 Write {"file_path":"/b","content":"b"}
        r3 <- a3  result t3 "ok" {"type":"update","filePath":"/b","content":"b","originalFile":null}
        "#), @r#"
    turn 1: /a = likely "x x" (after: line 3)
    turn 1: /b = unknown
    turn 2: /a = likely "y x" (before: line 3)
    turn 2: /b = unknown
    turn 3: /a = likely "y z" (before: line 6)
    turn 3: /b = unknown
    end: /a = likely "y z" (before: line 6)
    end: /b = "b" (before: line 9)
    turn 1 changed /a, 1 edits
    turn 2 changed /a, 1 edits
    turn 3 changed /b, 1 edits
    "#);
}

#[test]
fn content_beyond_an_edit_of_unknown_text_is_unknown() {
    assert_snapshot!(files_with(r#"
        u1        user   "one"
        u2 <- u1  user   "two"
        a1 <- u2  reply  m1 tool t1 Edit {"file_path":"/home/ada/loom/a","old_string":"x","new_string":"y"}
        r1 <- a1  result t1 "ok"
        snapshot u3 {"a":{"backupFileName":"00@v1","version":1}}
        u3 <- r1  user   "three"
        a2 <- u3  reply  m2 tool t2 Edit {"file_path":"/home/ada/loom/a","old_string":"z","new_string":"x"}
        r2 <- a2  result t2 "ok"
        "#, &Backups), @r#"
    turn 1: /home/ada/loom/a = unknown
    turn 2: /home/ada/loom/a = unknown
    turn 3: /home/ada/loom/a = "backup 00@v1"
    end: /home/ada/loom/a = unknown
    turn 2 changed /home/ada/loom/a, 1 edits
    turn 3 changed /home/ada/loom/a, 1 edits
    "#);
}

#[test]
fn external_changes_are_seen_in_the_next_snapshot() {
    assert_snapshot!(files_with(r#"
        snapshot u1 {"a":{"backupFileName":"00@v1","version":1}}
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Bash {"command":"date > a"}
        r1 <- a1  result t1 ""
        snapshot u2 {"a":{"backupFileName":"00@v2","version":2}}
        u2 <- r1  user   "two"
        "#, &Backups), @r#"
    turn 1: /home/ada/loom/a = "backup 00@v1"
    turn 2: /home/ada/loom/a = "backup 00@v2"
    end: /home/ada/loom/a = "backup 00@v2" (before: line 6)
    turn 1 changed /home/ada/loom/a, 1 edits
    "#);
}

#[test]
fn an_externally_changed_file_without_backup_is_unknown() {
    assert_snapshot!(files_with(r#"
        snapshot u1 {"a":{"backupFileName":"00@v1","version":1}}
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/home/ada/loom/a"}
        r1 <- a1  result t1 "ok" {"filePath":"/home/ada/loom/a","oldString":"x","newString":"y","originalFile":"x"}
        snapshot u2 {"a":{"backupFileName":"00@v2","version":2}}
        u2 <- r1  user   "two"
        snapshot u3 {"a":{"backupFileName":"00@v3","version":3}}
        u3 <- u2  user   "three"
        "#, &Backups), @r#"
    turn 1: /home/ada/loom/a = "backup 00@v1"
    turn 2: /home/ada/loom/a = "backup 00@v2"
    turn 3: /home/ada/loom/a = "backup 00@v3"
    end: /home/ada/loom/a = "backup 00@v3" (before: line 8)
    turn 1 changed /home/ada/loom/a, 1 edits
    turn 2 changed /home/ada/loom/a, 0 edits
    "#);
}

#[test]
fn a_failed_edit_changes_nothing() {
    assert_snapshot!(files(r#"
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"/a","old_string":"x","new_string":"y"}
        r1 <- a1  result t1 "no such text" error
        "#), @"");
}

#[test]
fn the_backup_name_identifies_the_directory() {
    // The name is a hash of the path. It matches the second of the two directories.
    let name = "d7616c0e3991cc3b@v1";
    let notation = format!(
        r#"
        u1        user   "one" cwd=/elsewhere
        snapshot u2 {{"a":{{"backupFileName":"{name}","version":1}}}}
        u2 <- u1  user   "two" cwd=/home/ada/loom
        "#
    );
    assert!(files(&notation).contains("turn 2: /home/ada/loom/a = "), "{}", files(&notation));
}

#[test]
fn paths_of_other_systems_are_unchanged() {
    assert_snapshot!(files_with(r#"
        snapshot u1 {"src\\a":{"backupFileName":"00@v1","version":1},"C:\\b":{"backupFileName":null,"version":1}}
        u1        user   "one" cwd="D:\\loom"
        "#, &Backups), @r#"
    turn 1: C:\b = absent
    turn 1: D:\loom\src\a = "backup 00@v1"
    end: C:\b = absent (before: line 2)
    end: D:\loom\src\a = "backup 00@v1" (before: line 2)
    "#);
}

#[test]
fn an_edit_with_a_relative_path_is_of_the_same_file() {
    assert_snapshot!(files(r#"
        snapshot u1
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Edit {"file_path":"a"}
        snapshot u1 update {"a":{"backupFileName":"00@v1","version":1}}
        r1 <- a1  result t1 "ok" {"filePath":"a","oldString":"x","newString":"y","originalFile":"x\n"}
        "#), @r#"
    turn 1: /home/ada/loom/a = likely "x\n" (after: line 5)
    end: /home/ada/loom/a = likely "y\n" (before: line 5)
    turn 1 changed /home/ada/loom/a, 1 edits
    "#);
}

#[test]
fn commands_that_list_their_changes_are_logged() {
    let family = family(
        r#"
            u1        user   "go"
            a1 <- u1  reply  m1 tool t1 Bash {"command":"sed -i s/a/b/ a.txt"}
            r1 <- a1  result t1 "" {"stdout":"","bashEditDiff":{"files":[{"filePath":"/w/a.txt","hunks":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-a","+b"]}]}],"moreFiles":0,"changedFiles":["/w/a.txt"]}}
            a2 <- r1  reply  m2 tool t2 Bash {"command":"make"}
            r2 <- a2  result t2 "" {"stdout":""}
            a3 <- r2  reply  m3 tool t3 Bash {"command":"make; false"}
            r3 <- a3  result t3 "Error: Exit code 1" error "Error: Exit code 1"
            a4 <- r3  reply  m4 tool t4 Bash {"command":"ls missing"}
            r4 <- a4  result t4 "Error: Exit code 2" error "Error: Exit code 2"
            "#,
    );
    assert_eq!(uncertain_commands(&family), 1, "only the failed one that may write");
}

#[test]
fn the_record_of_a_line_with_several_results_is_that_of_the_first() {
    let family = family(
        r#"
            u1        user   "go"
            a1 <- u1  reply  m1 [tool t1 Write {"file_path":"/w/a","content":"a"}, tool t2 Write {"file_path":"/w/b","content":"b"}]
            raw {"type":"user","uuid":"r1","parentUuid":"a1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"},{"type":"tool_result","tool_use_id":"t2","content":"ok"}]},"toolUseResult":{"type":"create","filePath":"/w/a","content":"long"}}
            "#,
    );
    let edits = FileEvidence::of(&family, &LogOnly).edits().into_iter();
    let edits: Vec<_> =
        edits.map(|edit| (edit.path.clone(), edit.after.as_text().map(str::to_owned))).collect();
    assert_eq!(edits, [("/w/a".into(), Some("long".into())), ("/w/b".into(), Some("b".into()))]);
}

/// A session that reads a file of ten lines and then runs commands: pairs of a command and its result.
fn commands_after_a_read(commands: &[(&str, &str)]) -> String {
    let text: String = (1..=10).map(|n| format!("{n}\\n")).collect();
    let mut log = format!(
        r#"
        u1        user   "go"
        a0 <- u1  reply  m0 tool t0 Read {{"file_path":"/home/ada/loom/a.txt"}}
        r0 <- a0  result t0 "…" {{"type":"text","file":{{"filePath":"/home/ada/loom/a.txt","content":"{text}","numLines":10,"startLine":1,"totalLines":10}}}}
        "#
    );
    // Edits of a file make it one of the session.
    let written = r#"
        e1 <- r0  reply  e1 tool w1 Write {"file_path":"/home/ada/loom/b.txt","content":"b\n"}
        s0 <- e1  result w1 "ok" {"type":"create","filePath":"/home/ada/loom/b.txt","content":"b\n","originalFile":null}
        "#;
    log.push_str(written);
    for (n, (command, result)) in commands.iter().enumerate() {
        let before = if n == 0 { "s0".to_owned() } else { format!("s{n}") };
        let n = n + 1;
        log.push_str(&format!(
            "a{n} <- {before} reply m{n} tool t{n} Bash {{\"command\":\"{command}\"}}\ns{n} <- a{n} result t{n} {result}\n"
        ));
    }
    log
}

/// The result of a command that changed `/home/ada/loom/a.txt`.
fn listed(lines: &str) -> String {
    format!(
        r#""" {{"stdout":"","bashEditDiff":{{"files":[{{"filePath":"/home/ada/loom/a.txt","hunks":[{{"oldStart":8,"newStart":8,"lines":[{lines}]}}]}}],"moreFiles":0}}}}"#
    )
}

#[test]
fn a_hunk_of_an_earlier_text_is_not_applied_in_the_middle_of_a_later_one() {
    let first = listed(r#"" 8"," 9"," 10","+x""#);
    // Relative to the text that was read, so it repeats the first change.
    let second = listed(r#"" 8"," 9"," 10","+x","+y""#);
    let files = files(&commands_after_a_read(&[("echo x >> a.txt", &first), ("echo y >> a.txt", &second)]));
    assert!(
        files.contains(r#"end: /home/ada/loom/a.txt = likely "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\nx\ny\n""#),
        "{files}"
    );
}

#[test]
fn a_text_is_unknown_after_a_command_that_may_have_changed_it() {
    let changed = listed(r#"" 8"," 9"," 10","+x""#);
    let after = |command: &str, result: &str| {
        let log = commands_after_a_read(&[("echo x >> a.txt", &changed), (command, result)]);
        let files = files(&log);
        let at_end =
            files.lines().find(|line| line.starts_with("end: /home/ada/loom/a.txt")).unwrap().to_owned();
        (at_end.contains("unknown"), at_end)
    };
    let skipped = r#""" {"stdout":"","bashEditDiff":{"files":[],"moreFiles":0,"skipped":true}}"#;
    let background = r#""running" {"stdout":"","backgroundTaskId":"b1"}"#;
    for (command, result) in [
        ("git restore a.txt", skipped),
        ("git stash", skipped),
        ("python3 change.py a.txt; false", r#""Error: Exit code 1" error "Error: Exit code 1""#),
        ("sleep 9; echo z >> a.txt", background),
    ] {
        let (is_unknown, at_end) = after(command, result);
        assert!(is_unknown, "{command}: {at_end}");
    }
    for (command, result) in [
        // Claude Code lists the changes of commands in this session, and this one made none.
        ("touch a.txt", r#""" {"stdout":""}"#),
        ("cat a.txt | grep z", r#""Error: Exit code 1" error "Error: Exit code 1""#),
        ("echo z >> c.txt; false", r#""Error: Exit code 1" error "Error: Exit code 1""#),
    ] {
        let (is_unknown, at_end) = after(command, result);
        assert!(!is_unknown, "{command}: {at_end}");
    }
    // A command that failed without a message did what its text says before it failed.
    let (_, at_end) = after("echo z >> a.txt; false", r#""Error: Exit code 1" error "Error: Exit code 1""#);
    assert!(at_end.contains(r"10\nx\nz\n"), "{at_end}");
}

#[test]
fn without_lists_of_changes_a_command_that_writes_to_a_file_makes_its_text_unknown() {
    let plain = r#""" {"stdout":""}"#;
    let at_end = |command: &str| {
        let files = files(&commands_after_a_read(&[(command, plain)]));
        files.lines().find(|line| line.starts_with("end: /home/ada/loom/b.txt")).unwrap().to_owned()
    };
    assert_eq!(at_end("cat b.txt"), r#"end: /home/ada/loom/b.txt = "b\n" (before: line 5)"#);
    assert_eq!(at_end("python3 change.py b.txt"), "end: /home/ada/loom/b.txt = unknown");
    assert!(at_end("sed -i s/b/c/ b.txt").starts_with(r#"end: /home/ada/loom/b.txt = "c\n""#));
}

#[test]
fn a_backup_from_the_middle_of_a_turn_is_not_its_beginning() {
    let log = r#"
        snapshot u1
        u1        user   "one"
        u2 <- u1  user   "two" @10:01:00
        a1 <- u2  reply  m1 tool t1 Bash {"command":"sed -i s/x/y/ a"} @10:01:01
        r1 <- a1  result t1 "" {"stdout":"","bashEditDiff":{"files":[{"filePath":"/home/ada/loom/a","hunks":[{"oldStart":1,"newStart":1,"lines":["-x","+y"]}]}],"moreFiles":0}} @10:01:02
        a2 <- r1  reply  m2 tool t2 Edit {"file_path":"/home/ada/loom/a"} @10:01:03
        snapshot u2 update {"a":{"backupFileName":"00@v1","version":1,"backupTime":"2026-01-01T10:01:03.500Z"}} @10:01:04
        r2 <- a2  result t2 "ok" {"filePath":"/home/ada/loom/a","oldString":"y","newString":"z","originalFile":"y\n"} @10:01:05
        "#;
    let states = files_with(log, &Backups);
    assert!(states.contains("turn 2: /home/ada/loom/a = unknown"), "{states}");
    // Made at once, it is the beginning.
    let early = files_with(&log.replace("10:01:03.500", "10:01:00.500"), &Backups);
    assert!(early.contains("turn 2: /home/ada/loom/a = \"backup 00@v1\""), "{early}");
}

#[test]
fn a_deleted_file_ends_as_it_was_read() {
    let deleted = |last: &str| {
        let lines: String = (1..=10).map(|n| format!("\"-{n}\",")).collect();
        format!(
            r#""" {{"stdout":"","bashEditDiff":{{"files":[{{"filePath":"/home/ada/loom/a.txt","hunks":[{{"oldStart":1,"newStart":1,"lines":[{lines}{last}]}}],"deleted":true}}],"moreFiles":0}}}}"#
        )
    };
    // Claude Code may list a deleted text without the newline at its end.
    let gone = deleted(r#""\\ No newline at end of file""#);
    let read = files(&commands_after_a_read(&[("rm a.txt", &gone)]));
    assert!(read.contains(r#"turn 1: /home/ada/loom/a.txt = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n""#), "{read}");
    let other =
        files(&commands_after_a_read(&[("rm a.txt", &gone)]).replace("\"content\":\"1", "\"content\":\"0"));
    assert!(other.contains("turn 1: /home/ada/loom/a.txt = \"0"), "as it was read: {other}");
}

#[test]
fn texts_are_unknown_if_very_many_commands_may_have_changed_very_many_files() {
    let mut log = "u1 user \"go\"\n".to_owned();
    for n in 0..400 {
        log.push_str(&format!(
            "w{n} <- u1 reply w{n} tool w{n} Write {{\"file_path\":\"/home/ada/loom/{n}.txt\",\"content\":\"a\"}}\n\
             x{n} <- w{n} result w{n} \"ok\" {{\"type\":\"create\",\"filePath\":\"/home/ada/loom/{n}.txt\",\"content\":\"a\"}}\n\
             b{n} <- x{n} reply b{n} tool b{n} Bash {{\"command\":\"git stash\"}}\n\
             c{n} <- b{n} result b{n} \"\" {{\"stdout\":\"\",\"bashEditDiff\":{{\"files\":[],\"skipped\":true}}}}\n"
        ));
    }
    let family = family(&log);
    let states = FileEvidence::of(&family, &LogOnly).states_at(HistoryPoint::End);
    assert_eq!(states.len(), 400);
    assert!(states.iter().all(|state| state.content.is_none()));
}
