//! `search`: output formats, notes and exit codes. Matching itself is tested in the search crate.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::json;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{at_home, command, threadline};

const TALK: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 text "Let me look."
a2 <- a1  reply  m1 tool t1 Grep {"pattern":"slow"}
r1 <- a2  result t1 "src/main.rs:9: slow();\nsrc/main.rs:10: slower();"
a3 <- r1  reply  m2 text "It is slow\nbecause it *sleeps* slowly.\nThat is all."
title "Slow loom"
"#;

/// Creates a home with an older session of many matches and a newer one of a single match.
fn home() -> TestHome {
    let home = TestHome::new();
    home.session_in("/home/ada/loom", "aaaaaaaa-0000-4000-8000-000000000001", TALK);
    let other = "u9 user \"all is well\" @+240m\na9 <- u9 reply m9 text \"Not slow at all.\"";
    home.session_in("/home/ada/reed", "bbbbbbbb-0000-4000-8000-000000000002", other);
    home
}

#[test]
fn lines_format_has_one_line_per_match() {
    let home = home();
    let found = at_home(&home, &["search", "--lines", "slow"]);
    assert_snapshot!(found.out.replace('\t', " | "), @r"
    bbbbbbbb-0000-4000-8000-000000000002#m2 | 2026-01-01 14:00 | reply | Not slow at all.
    aaaaaaaa-0000-4000-8000-000000000001#m1 | 2026-01-01 10:00 | prompt | why is it slow?
    aaaaaaaa-0000-4000-8000-000000000001#m3 | 2026-01-01 10:00 | tool Grep | slow
    aaaaaaaa-0000-4000-8000-000000000001#m3 | 2026-01-01 10:00 | result Grep | src/main.rs:9: slow();
    aaaaaaaa-0000-4000-8000-000000000001#m5 | 2026-01-01 10:00 | reply | It is slow
    aaaaaaaa-0000-4000-8000-000000000001#m6 |  | title | Slow loom
    ");
    let coloured = at_home(&home, &["search", "--lines", "--color", "always", "-m", "1", "because"]).out;
    assert!(coloured.contains("\u{1b}["), "{coloured}");
    // The first column is a reference that `show` accepts.
    for place in found.out.lines().filter_map(|line| line.split('\t').next()) {
        assert_eq!(at_home(&home, &["show", place]).code, 0, "{place}");
    }
}

#[test]
fn colour_codes_in_output_are_removed_and_others_escaped() {
    let home = TestHome::new();
    let talk = r#"
a1        reply  m1 tool t1 Bash {"command":"make"}
r1 <- a1  result t1 "\u001b[31merror:\u001b[0m the \u001b[1mloom\u001b[22m broke\r\n\u001b[2Jdone"
"#;
    home.session_in("/home/ada/loom", "aaaaaaaa-0000-4000-8000-000000000001", talk);
    let found = at_home(&home, &["search", "-C", "1", "loom broke"]).out;
    assert!(found.contains("error: the loom broke\n") && found.contains("^[[2Jdone"), "{found}");
}

#[test]
fn matches_are_grouped_by_session_newest_first() {
    assert_snapshot!(at_home(&home(), &["search", "slow", "--sort", "newest"]), @r"
    exit: 0
    ----- stdout -----
    all is well
    bbbbbbbb-0000-4000-8000-000000000002 · 2026-01-01 14:00 · /home/ada/reed · 1 match
      m2      reply           Not slow at all.

    Slow loom
    aaaaaaaa-0000-4000-8000-000000000001 · 2026-01-01 10:00 · /home/ada/loom · 5 matches
      m1      prompt          why is it slow?
      m3      tool Grep       slow
      m3      result Grep     src/main.rs:9: slow();
      m5      reply           It is slow
      m6      title           Slow loom
    ----- stderr -----
    6 matches in 2 sessions
    show a match: `threadline --home [home] show 'bbbbbbbb-0000-4000-8000-000000000002#m2' --find slow`
    ");
    assert_snapshot!(at_home(&home(), &["search", "--sort", "rank", "-C", "1", "because", "slow"]), @r"
    exit: 0
    ----- stdout -----
    Slow loom
    aaaaaaaa-0000-4000-8000-000000000001 · 2026-01-01 10:00 · /home/ada/loom · 1 match
      m5      reply           It is slow
                              because it *sleeps* slowly.
                              That is all.

    ----- stderr -----
    1 match in 1 session
    show a match: `threadline --home [home] show 'aaaaaaaa-0000-4000-8000-000000000001#m5' --find 'because slow'`
    ");
}

#[test]
fn sessions_with_many_matches_and_matches_in_prompts_are_first() {
    let ranked = at_home(&home(), &["search", "--sort", "rank", "-l", "slow"]);
    assert_snapshot!(ranked, @r"
    exit: 0
    ----- stdout -----
    aaaaaaaa-0000-4000-8000-000000000001
    bbbbbbbb-0000-4000-8000-000000000002
    ----- stderr -----
    6 matches in 2 sessions
    ");
    assert_snapshot!(at_home(&home(), &["search", "-c", "slow"]), @r"
    exit: 0
    ----- stdout -----
    aaaaaaaa-0000-4000-8000-000000000001	5
    bbbbbbbb-0000-4000-8000-000000000002	1
    ----- stderr -----
    6 matches in 2 sessions
    ");
}

#[test]
fn json_has_every_field() {
    let home = TestHome::new();
    home.session("slow", TALK);
    home.agent("slow", "a1b2c3", "x1 user \"be slow\"", None);
    let run = at_home(&home, &["search", "slow", "--json", "kind:result", "kind:task"]);
    let [result, task] = run.json_lines().try_into().unwrap();
    let id = session_uuid("slow");
    let expected = json!({
        "session": id,
        "path": format!("[home]/projects/-home-ada-loom/{id}.jsonl"),
        "line": 4,
        "anchor": "m3",
        "kind": "result",
        "tool": "Grep",
        "timestamp": "2026-01-01T10:00:03.000Z",
        "text": "src/main.rs:9: slow();",
        "ranges": [[15, 19]],
        "role": "user",
        "agent": null,
        "matches": 2,
        "copies": 0,
    });
    assert_eq!(result, expected);
    assert_eq!((&task["session"], &task["agent"], &task["line"]), (&json!(id), &json!("a1b2c3"), &json!(1)));
    assert!(task["path"].as_str().unwrap().ends_with("/subagents/agent-a1b2c3.jsonl"));
    let counted = at_home(&home, &["search", "slow", "--json", "-c"]).json();
    assert_eq!(counted["count"], 6);
    assert_eq!(at_home(&home, &["search", "slow", "--json", "-n", "2"]).json_lines().len(), 2);
}

#[test]
fn project_and_session_filters_narrow_the_search() {
    let home = home();
    let ids = |args: &[&str]| at_home(&home, &[&["search", "-l", "slow"], args].concat()).out;
    assert_eq!(ids(&["--project", "reed"]), "bbbbbbbb-0000-4000-8000-000000000002\n");
    assert_eq!(ids(&["project:/home/ada/loom"]), "aaaaaaaa-0000-4000-8000-000000000001\n");
    assert_eq!(ids(&["session:aaaa"]), "aaaaaaaa-0000-4000-8000-000000000001\n");
    assert_eq!(ids(&["-n", "1"]), "aaaaaaaa-0000-4000-8000-000000000001\n");
    assert_eq!(ids(&["-n", "1", "--sort", "newest"]), "bbbbbbbb-0000-4000-8000-000000000002\n");
    assert_eq!(ids(&["project:nowhere"]), "");
    assert_eq!(ids(&["--", "-grep", "-not"]), "aaaaaaaa-0000-4000-8000-000000000001\n");
}

#[test]
fn since_and_until_are_options_and_fields() {
    let home = home();
    let ids = |args: &[&str]| at_home(&home, &[&["search", "slow", "-l"], args].concat()).out;
    let (old, new) = ("aaaaaaaa-0000-4000-8000-000000000001\n", "bbbbbbbb-0000-4000-8000-000000000002\n");
    assert_eq!(ids(&["--since", "2026-01-01T12:00:00Z"]), new);
    assert_eq!(ids(&["since:2026-01-01T12:00:00Z"]), new);
    assert_eq!(ids(&["--until", "2026-01-01T12:00:00Z"]), old);
    assert_eq!(ids(&["--since", "2026-01-01", "--until", "2026-01-01"]), [old, new].concat());
    let wrong = at_home(&home, &["search", "slow", "--since", "soon"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.err.contains("`soon` is not a date or time"), "{wrong}");
    let empty = at_home(&home, &["search", "slow", "--since", "2026-01-02", "--until", "2026-01-01"]);
    assert!(empty.code == 2 && empty.err.contains("`2026-01-02` is not before `2026-01-01`"), "{empty}");
    let empty = at_home(&home, &["search", "slow since:2026-01-02 until:2026-01-01"]);
    assert!(empty.code == 2 && empty.err.contains("is not before `until:2026-01-01`"), "{empty}");
    assert_eq!(at_home(&home, &["list", "-n", "0"]).out.lines().count(), 3, "as in search, 0 is no limit");
}

#[test]
fn lines_copied_by_a_fork_are_reported_once_in_their_origin() {
    let home = TestHome::new();
    let talk = TALK
        .replace("u1 ", "11111111-1111-4111-8111-111111111111 ")
        .replace("<- u1", "<- 11111111-1111-4111-8111-111111111111");
    home.session("aaaaaaaa-0000-4000-8000-000000000001", &talk);
    let fork = format!("{talk}u5 <- a3 user \"slow again\"");
    home.session("bbbbbbbb-0000-4000-8000-000000000002", &fork);
    let run = at_home(&home, &["search", "slow", "kind:prompt", "--sort", "newest"]);
    assert_snapshot!(run, @r"
    exit: 0
    ----- stdout -----
    Slow loom
    bbbbbbbb-0000-4000-8000-000000000002 · 2026-01-01 10:00 · /home/ada/loom · 1 match
      m7      prompt          slow again

    Slow loom
    aaaaaaaa-0000-4000-8000-000000000001 · 2026-01-01 10:00 · /home/ada/loom · 1 match
      m1      prompt          why is it slow?  (+1 in forks)
    ----- stderr -----
    2 matches in 2 sessions; 1 copy in forks omitted
    show a match: `threadline --home [home] show 'bbbbbbbb-0000-4000-8000-000000000002#m7' --find 'slow kind:prompt'`
    ");
    let matches = at_home(&home, &["search", "slow", "kind:prompt", "--json", "--sort", "rank"]).json_lines();
    let line_copies: Vec<_> =
        matches.iter().map(|found| (found["line"].as_u64(), found["copies"].as_u64())).collect();
    assert_eq!(line_copies.len(), 2);
    assert!(
        line_copies.contains(&(Some(1), Some(1))) && line_copies.contains(&(Some(7), Some(0))),
        "{line_copies:?}"
    );
}

#[test]
fn exit_codes_and_error_messages() {
    let home = home();
    assert_eq!(at_home(&home, &["search", "slow"]).code, 0);
    assert_snapshot!(at_home(&home, &["search", "nowhere to be found"]), @r"
    exit: 1
    ----- stdout -----
    ----- stderr -----
    no matches in 2 logs
    ");
    assert_snapshot!(at_home(&home, &["search", "slow brunch:main"]), @r"
    exit: 1
    ----- stdout -----
    ----- stderr -----
    no matches in 2 logs
    unknown field `brunch:`; searched for it as text
    ");
    assert_snapshot!(at_home(&home, &["search", "slow kind:promt"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: `kind:promt`: expected `prompt`, `reply`, `thinking`, `tool`, `result`, `output`, `task`, `summary`, `title` or `notice`
      slow kind:promt
           ^^^^^^^^^^
    hint: query syntax: `threadline search --help`
    ");
    assert_snapshot!(at_home(&home, &["search", "错误 /a(/"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: `/a(/` is not a valid regular expression: unclosed group
      错误 /a(/
           ^^^^
    hint: query syntax: `threadline search --help`
    ");
    assert_snapshot!(at_home(&home, &["search"]), @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: the query is empty
    hint: give a word to search for, such as `threadline --home [home] search timeout`
    ");
    assert_eq!(at_home(&home, &["search", "slow", "--json", "nothing-else"]).code, 1);
}

#[test]
#[cfg(unix)]
fn unreadable_logs_are_reported_and_the_others_searched() {
    let home = home();
    let folder = home.root().join("projects/-home-ada-loom");
    std::os::unix::fs::symlink("loop.jsonl", folder.join("loop.jsonl")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("gone.jsonl")).unwrap();
    let run = at_home(&home, &["search", "-c", "slow"]);
    assert_eq!(run.code, 2, "{run}");
    assert_eq!(run.out.lines().count(), 2, "{run}");
    assert!(run.err.contains("warning: cannot read `[home]/projects/-home-ada-loom/loop.jsonl`"), "{run}");
    assert!(run.err.contains("warning: [home]/projects/-home-ada-loom/gone.jsonl no longer exists"), "{run}");
    std::fs::remove_file(folder.join("loop.jsonl")).unwrap();
    assert_eq!(at_home(&home, &["search", "-c", "slow"]).code, 0, "a file that is gone is no failure");
}

#[test]
fn a_log_that_grows_during_a_search_is_read_without_errors() {
    let home = TestHome::new();
    let path = home.session("grows", "u0 user \"slow start\"");
    let line = threadline_testkit::log("u1 user \"slow and growing\"");
    let done = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let mut file = File::options().append(true).open(path).unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                // In two writes, so that a reader may see half a line.
                let (head, tail) = line.split_at(line.len() / 2);
                std::io::Write::write_all(&mut file, head).unwrap();
                std::io::Write::write_all(&mut file, tail).unwrap();
            }
        });
        for _ in 0..10 {
            let run = at_home(&home, &["search", "slow", "--json", "-n", "500"]);
            assert_eq!((run.code, &*run.err), (0, ""));
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        writer.join().unwrap();
    });
}

#[test]
fn a_log_deleted_during_a_search_does_not_affect_others() {
    let home = home();
    let path = home.session("cccccccc-0000-4000-8000-000000000003", "u1 user \"slow and short-lived\"");
    let log = std::fs::read(&path).unwrap();
    let done = &std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let deleter = scope.spawn(move || {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                std::fs::remove_file(&path).unwrap();
                std::fs::write(&path, &log).unwrap();
            }
        });
        for _ in 0..10 {
            let run = at_home(&home, &["search", "-c", "slow"]);
            assert_eq!(run.code, 0, "{run}");
            assert!(run.out.contains("bbbbbbbb-0000-4000-8000-000000000002\t1\n"), "{run}");
            assert!(run.out.contains("aaaaaaaa-0000-4000-8000-000000000001\t5\n"), "{run}");
            let run = at_home(&home, &["usage", "--json", "--by", "session"]);
            assert_eq!((run.code, run.json_lines().len()), (0, 2), "{run}");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        deleter.join().unwrap();
    });
}

#[test]
fn a_huge_line_is_searched_and_reported() {
    let home = home();
    let huge = format!("u1 user \"{} slow end\"", "x".repeat(25 << 20));
    home.session("cccccccc-0000-4000-8000-000000000003", &huge);
    let run = at_home(&home, &["search", "-c", "slow"]);
    assert_eq!((run.code, run.out.lines().count()), (0, 3), "{}", run.err);
    assert!(
        run.err.contains("cccccccc-0000-4000-8000-000000000003.jsonl: line 1 is 26.2 MB long"),
        "{}",
        run.err
    );
}

#[test]
fn an_oversized_line_is_skipped_and_the_rest_searched() {
    let home = home();
    let path = home.session("cccccccc-0000-4000-8000-000000000003", "u1 user \"slow start\"");
    // A sparse file: the gigabyte takes no space on disk.
    let mut file = File::options().append(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + (1 << 30)).unwrap();
    let end = [&b"\n"[..], &threadline_testkit::log("u2 user \"slow end\"")].concat();
    std::io::Write::write_all(&mut file, &end).unwrap();
    let run = at_home(&home, &["search", "slow", "session:cccccccc", "--json"]);
    assert_eq!(run.code, 2, "{}", run.err);
    let lines: Vec<_> = run.json_lines().iter().map(|found| found["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [1, 3]);
    assert!(run.err.contains("000003.jsonl: line 2 skipped: 1.1 GB long"), "{}", run.err);
    let run = at_home(&home, &["usage", "--json"]);
    assert!(run.err.contains("skipped: 1.1 GB long"), "{}", run.err);
    assert_eq!(run.code, 2, "{}", run.err);
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = TestHome::new();
    let long: String = (0..5000).map(|i| format!("u{i} user \"{}\"\n", "word ".repeat(40))).collect();
    home.session("long", &long);
    let root = home.root().to_str().unwrap();
    for form in [&["--json"][..], &["-m", "0"], &["--json", "--sort", "rank"]] {
        let args = [&["--home", root, "search", "word"], form].concat();
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let done = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
        assert_eq!(done.status.code(), Some(0));
    }
}

#[test]
fn hostile_text_is_escaped() {
    let home = TestHome::new();
    home.file(
        "projects/-x/h.jsonl",
        std::fs::read(threadline_testkit::corpus().join("hostile-text.jsonl")).unwrap(),
    );
    let run = at_home(&home, &["search", "-m", "0", "-C", "9", "/./"]);
    assert_eq!(run.code, 0);
    assert!(!run.out.contains('\u{1b}') && !run.out.contains('\u{202e}'), "{run}");
    assert!(run.out.contains("^["), "{run}");
    let painted = at_home(&home, &["search", "--color", "always", "a"]);
    assert!(painted.out.contains("\u{1b}["), "{painted}");
}

#[test]
fn an_anchor_opens_the_match() {
    let run = threadline(["--demo", "search", "panic", "--json", "kind:prompt", "kind:reply", "kind:result"]);
    assert!(run.json_lines().len() > 3, "{run}");
    for found in run.json_lines() {
        let place = format!("{}#{}", found["path"].as_str().unwrap(), found["anchor"].as_str().unwrap());
        let shown = threadline(["--demo", "show", &place]);
        assert_eq!(shown.code, 0, "{place}: {shown}");
    }
}

#[test]
fn a_match_is_visible_and_highlighted_when_it_is_opened() {
    let home = home();
    let session = "aaaaaaaa-0000-4000-8000-000000000001";
    for found in at_home(&home, &["search", "slow", "session:aaaa", "--json", "-kind:title"]).json_lines() {
        let place = format!("{session}#{}", found["anchor"].as_str().unwrap());
        let shown = at_home(&home, &["show", &place, "--find", "slow", "--color", "always"]).out;
        let text = found["text"].as_str().unwrap();
        let plain = shown.replace("\u{1b}[7m", "").replace("\u{1b}[27m", "");
        assert!(plain.contains("slow"), "{place}: {text}: {shown}");
        assert!(shown.contains("\u{1b}[7mslow\u{1b}[27m"), "{place}: {shown}");
    }
    let result = at_home(&home, &["show", &format!("{session}#m3")]).out;
    assert!(result.contains("slower();"), "the output of the call is shown: {result}");
    let reply = at_home(&home, &["show", &format!("{session}#m5")]).out;
    assert!(!reply.contains("slower();"), "the output of a call is not shown for a reply: {reply}");
}

#[test]
fn a_limit_within_a_session_is_no_total() {
    let home = TestHome::new();
    let prompts: String = (1..=20).map(|n| format!("u{n} user \"the slow loom {n}\"\n")).collect();
    home.session("loom", &prompts);
    let run = at_home(&home, &["search", "slow", "-n", "12"]);
    assert!(run.out.contains("  … at least 2 more\n"), "{run}");
    assert!(!run.out.contains("total") && !run.out.contains("12 matches"), "{run}");
    assert!(run.err.contains("12 matches in 1 session; limit reached"), "{run}");
    let run = at_home(&home, &["search", "slow"]);
    assert!(run.out.contains("  … 10 more (20 total)\n"), "{run}");
}
