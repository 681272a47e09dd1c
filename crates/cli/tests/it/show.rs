//! `show`.

use std::io::Read;
use std::process::Stdio;

use insta::assert_snapshot;
use threadline_testkit::TestHome;

use crate::run::{at_home, command, threadline};

const TALK: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  m1 thinking "Perhaps a sleep."
a2 <- a1  reply  m1 text "Let me look." usage={"input_tokens":10,"output_tokens":5}
a3 <- a2  reply  m1 tool t1 Grep {"pattern":"sleep"}
r1 <- a3  result t1 "src/main.rs:9"
a4 <- r1  reply  m2 text "A `sleep` on **line 9**."
u2 <- a4  user   "take it out"
a5 <- u2  reply  m3 tool t2 Bash {"command":"sed -i 9d src/main.rs"}
r2 <- a5  result t2 "sed: no such file" error
"#;

#[test]
fn a_conversation_is_shown_in_order() {
    let home = TestHome::new();
    home.session("slow", TALK);
    assert_snapshot!(at_home(&home, &["show", "last"]).out.replace(&threadline_testkit::session_uuid("slow"), "[id]"), @r"
    why is it slow?
    [id] · /home/ada/loom · main · Claude Code 2.1.197 · started 2026-01-01 10:00 · last active 2026-01-01 10:00 · 2 turns · 2 tool calls · 1 error · $0.0002

    ── 1 m1 · 2026-01-01 10:00 · opus-4-8 · 5.0 s (1.0 s in tools) · 10 in, 5 out · $0.0002

    > why is it slow?
    ~ Perhaps a sleep.

    Let me look.

    ▸ Grep  sleep  1 line · 1.0 s

    A `sleep` on **line 9**.

    ── 2 m7 · 10:00 · opus-4-8 · unfinished · 2.0 s (1.0 s in tools) · $0.00

    > take it out
    ✗ Bash  sed -i 9d src/main.rs  error · 1.0 s
        sed: no such file
    ");
}

#[test]
fn options_that_select_nothing_say_so() {
    let home = TestHome::new();
    home.session("slow", TALK);
    home.session("quiet", "u1 user \"hello\"\na1 <- u1 reply m1 text \"Hi.\"");
    let run = |args: &[&str]| {
        let run = at_home(&home, &[&["show"], args].concat());
        (run.code, run.err.trim().to_owned())
    };
    let answer = |code: i32, text: &str| (code, text.to_owned());
    assert_eq!(
        run(&["slow", "--tool", "Nope"]),
        answer(1, "no calls of `Nope`; the session used Bash, Grep")
    );
    assert_eq!(run(&["slow", "--tool", "Nope", "--json"]).0, 1);
    assert_eq!(run(&["slow", "--tool", "gr*", "--level", "prompts"]), answer(0, ""));
    assert_eq!(run(&["hello", "--tool", "Bash"]), answer(1, "no calls of `Bash`; the session used no tools"));
    assert_eq!(run(&["hello", "--errors"]), answer(1, "no errors"));
    assert_eq!(run(&["hello", "--errors", "--outline"]), answer(1, "no errors"));
    let nothing = answer(1, "nothing in the session matches these options");
    assert_eq!(run(&["slow", "--errors", "--turns", "1"]), nothing);
    assert_eq!(run(&["hello", "--patch"]), answer(1, "no file changes in the log"));
    assert_eq!(run(&["hello", "--patch", "--json"]), answer(1, "no file changes in the log"));
    let unseen = "no match of `zzzz` in what is shown; --level full shows more";
    assert_eq!(run(&["hello", "--find", "zzzz"]), answer(0, unseen));
    assert_eq!(run(&["hello", "--find", "hello"]), answer(0, ""));
    let errors = at_home(&home, &["show", "slow", "--errors", "--level", "prompts"]);
    assert!(errors.code == 0 && errors.out.contains("sed: no such file"), "{errors}");
}

#[test]
fn an_outline_is_one_object_per_turn() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let turns = at_home(&home, &["show", "last", "--outline", "--json"]).json_lines();
    let brief = |turn: &serde_json::Value| {
        ["number", "prompt", "tool_calls", "errors"].map(|key| turn[key].to_string()).join(" ")
    };
    let brief: Vec<String> = turns.iter().map(brief).collect();
    assert_eq!(brief, [r#"1 "why is it slow?" 1 0"#, r#"2 "take it out" 1 1"#]);
}

#[test]
fn output_in_a_file_of_its_own_is_shown_unless_it_is_too_large() {
    let home = TestHome::new();
    let mut talk = "u1 user \"hi\"\n".to_owned();
    for (name, above) in [("small", "u1"), ("large", "rsmall")] {
        let path = format!("/elsewhere/tool-results/{name}.txt");
        talk.push_str(&format!(
            "a{name} <- {above} reply m{name} tool t{name} Bash {{\"command\":\"x\"}}\nr{name} <- a{name} result t{name} \"preview of {name}\" {{\"stdout\":\"preview of {name}\",\"stderr\":\"\",\"persistedOutputPath\":\"{path}\"}}\n"
        ));
    }
    let folder = home.session("kept", &talk).with_extension("").join("tool-results");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("small.txt"), "all of small").unwrap();
    std::fs::write(folder.join("large.txt"), "all of large\n".repeat(400_000)).unwrap();
    let run = at_home(&home, &["show", "last", "--level", "full"]);
    assert!(run.out.contains("all of small"), "{run}");
    assert!(run.out.contains("preview of large") && !run.out.contains("all of large"), "{}", run.out.len());
}

#[test]
fn a_session_is_shown_without_a_sub_agent_that_cannot_be_read() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let agent = home.agent("slow", "a1b2c3", "u1 user \"look\"", None);
    std::fs::create_dir(agent.with_extension("meta.json")).unwrap();
    let run = at_home(&home, &["show", "last"]);
    assert!(run.out.contains("Let me look."), "{run}");
    assert!(run.err.contains("agent-a1b2c3.meta.json"), "{run}");
    assert_eq!(run.code, 2, "{run}");
}

#[test]
fn turns_and_anchors_select_turns() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let second = at_home(&home, &["show", "last", "--turns", "-1"]);
    assert!(second.out.contains("take it out") && !second.out.contains("> why is it slow"), "{second}");
    // Line 5 contains a result, which is shown with its call on line 4.
    for name in ["last#m4", "last#m5"] {
        let named = at_home(&home, &["show", name]);
        assert!(named.out.contains("why is it slow") && !named.out.contains("take it out"), "{named}");
    }
    assert_eq!(at_home(&home, &["show", "last#m99"]).code, 2);
    assert_eq!(at_home(&home, &["show", "last", "--turns", "x"]).code, 2);
}

#[test]
fn an_item_of_a_sub_agent_selects_the_turn_of_its_call() {
    let home = TestHome::new();
    let main = r#"
        u1        user   "first"
        a1 <- u1  reply  m1 text "One."
        u2 <- a1  user   "count"
        a2 <- u2  reply  m2 tool t1 Task {"prompt":"count the threads"}
        r1 <- a2  result t1 "Two." {"agentId":"x1"}
        a3 <- r1  reply  m3 text "Two."
        "#;
    home.session("loom", main);
    home.agent("loom", "x1", "x1 user \"count the threads\"\nx2 <- x1 reply n1 text \"Two threads.\"", None);
    let shown = at_home(&home, &["show", "last#a-x1-m2"]);
    assert!(shown.out.contains("Two threads.") && !shown.out.contains("One."), "{shown}");
    for unknown in ["last#a-x1-m9", "last#a-x2-m1"] {
        let wrong = at_home(&home, &["show", unknown]);
        assert!(wrong.code == 2 && wrong.err.contains("no item `a-x"), "{wrong}");
    }
}

#[test]
fn a_patch_as_json_is_one_object_per_file() {
    let home = TestHome::new();
    let token = "ghp_0123456789abcdefABCDEF0123456789abcd";
    let talk = r#"
        u1        user   "write it"
        a1 <- u1  reply  m1 tool t1 Write {"file_path":"/home/ada/loom/a.rs","content":"one TOKEN\n"}
        r1 <- a1  result t1 "created" {"type":"create","filePath":"/home/ada/loom/a.rs","content":"one TOKEN\n","structuredPatch":[],"originalFile":null}
        "#;
    home.session("write", &talk.replace("TOKEN", token));
    let change = at_home(&home, &["show", "last", "--patch", "--json"]).json();
    assert_eq!((&change["type"], &change["before"]), (&"change".into(), &serde_json::Value::Null));
    assert_eq!(change["after"], format!("one {token}\n"));
    let masked = at_home(&home, &["show", "last", "--patch", "--json", "--redact"]).json();
    assert!(masked["after"].as_str().unwrap().starts_with("one [secret:"), "{masked}");
    let patch = at_home(&home, &["show", "last", "--patch", "--redact"]).out;
    assert!(patch.contains("+one [secret:"), "{patch}");
}

#[test]
fn json_lists_turns_and_items() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let lines = at_home(&home, &["show", "last", "--json"]).json_lines();
    let texts: Vec<String> = lines
        .iter()
        .map(|line| {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {} {}", text("type"), text("anchor"), text("kind"), text("outcome"))
        })
        .collect();
    let expected = [
        "session   ",
        "turn m1  ",
        "item m1 input ",
        "item m2 thinking ",
        "item m3 text ",
        "item m4 call ok",
        "item m6 text ",
        "turn m7  ",
        "item m7 input ",
        "item m8 call error",
    ];
    assert_eq!(texts, expected);
    assert_eq!(lines[5]["input"]["pattern"], "sleep");
    assert_eq!(lines[5]["duration_ms"], 1000);
}

#[test]
fn hostile_text_is_escaped() {
    let path = threadline_testkit::corpus().join("hostile-text.jsonl");
    let run = crate::run::threadline(["show".as_ref(), path.as_os_str(), "--level=full".as_ref()]);
    assert_eq!(run.code, 0);
    assert!(!run.out.contains('\u{1b}') && !run.out.contains('\u{202e}'), "{run}");
    assert!(run.out.contains("^["), "{run}");
}

#[test]
fn colours_can_be_forced() {
    let home = TestHome::new();
    home.session("slow", TALK);
    assert!(!at_home(&home, &["show", "last"]).out.contains('\u{1b}'));
    assert!(at_home(&home, &["show", "last", "--color", "always"]).out.contains('\u{1b}'));
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let home = TestHome::new();
    let long: String = (0..3000).map(|i| format!("u{i} user \"{}\"\n", "word ".repeat(40))).collect();
    home.session("long", &long);
    let root = home.root().to_str().unwrap();
    let args = ["--home", root, "show", "last", "--json"];
    let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(done.stderr).unwrap(), "");
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn every_corpus_log_can_be_shown() {
    for entry in std::fs::read_dir(threadline_testkit::corpus()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ext| ext == "jsonl") {
            for level in ["prompts", "chat", "tools", "full", "raw"] {
                let args = [
                    "show".as_ref(),
                    path.as_os_str(),
                    "--color=always".as_ref(),
                    "--level".as_ref(),
                    level.as_ref(),
                ];
                let run = crate::run::threadline(args);
                assert_eq!(run.code, 0, "{}: {run}", path.display());
            }
        }
    }
}

#[test]
fn following_shows_new_content_once() {
    use std::io::{BufRead, BufReader, Write};

    let home = TestHome::new();
    let path = home.session("live", "u1 user \"first question\"");
    let root = home.root().to_str().unwrap();
    let args = ["--home", root, "show", "last", "--follow"];
    let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "> first question"));
    let more = threadline_testkit::log(
        "u1 user \"x\"\na1 <- u1 reply m1 text \"first answer\"\nu2 <- a1 user \"second question\"",
    );
    let (half, rest) = more.split_at(more.len() - 40);
    let start = half.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    let mut log = std::fs::File::options().append(true).open(&path).unwrap();
    log.write_all(&half[start..]).unwrap();
    let answer = lines.find(|line| !line.is_empty()).unwrap();
    assert_eq!(answer, "first answer");
    // Until now the log contained only half of the second prompt's line.
    log.write_all(rest).unwrap();
    let rest: Vec<String> = lines.by_ref().take_while(|line| line != "> second question").collect();
    assert!(rest.iter().all(|line| !line.contains("first")), "{rest:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn following_writes_the_lines_of_json() {
    use std::io::{BufRead, BufReader, Write};

    let home = TestHome::new();
    let path = home.session("live", "u1 user \"first question\"");
    let root = home.root().to_str().unwrap();
    let mut child = command(["--home", root, "show", "last", "--follow", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| {
        let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        let text = line["text"].as_str().map(str::to_owned);
        (line["type"].as_str().unwrap().to_owned(), line["number"].as_u64(), text)
    });
    let mut next = || lines.next().unwrap();
    assert_eq!(next().0, "session");
    assert_eq!(next(), ("turn".to_owned(), Some(1), None));
    assert_eq!(next(), ("item".to_owned(), None, Some("first question".to_owned())));
    let more = threadline_testkit::log(
        "u1 user \"x\"\na1 <- u1 reply m1 text \"first answer\" usage={\"output_tokens\":5}\nu2 <- a1 user \"second question\"",
    );
    let start = more.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&more[start..]).unwrap();
    assert_eq!(next(), ("item".to_owned(), None, Some("first answer".to_owned())));
    assert_eq!(next(), ("turn".to_owned(), Some(1), None), "as it ended");
    assert_eq!(next(), ("turn".to_owned(), Some(2), None));
    assert_eq!(next(), ("item".to_owned(), None, Some("second question".to_owned())));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn errors_are_objects_if_json_is_wanted() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let error = |args: &[&str]| -> serde_json::Value {
        let run = at_home(&home, args);
        assert_eq!((run.code, run.err.lines().count()), (2, 1), "{run}");
        serde_json::from_str(&run.err).unwrap()
    };
    let unknown = error(&["show", "nosuch", "--json"]);
    assert_eq!((&unknown["type"], &unknown["code"]), (&"error".into(), &"not_found".into()), "{unknown}");
    assert_eq!(unknown["message"], "no session matches `nosuch`");
    assert!(unknown["hint"].is_string(), "{unknown}");
    assert_eq!(error(&["list", "--json", "--since", "someday"])["code"], "usage");
    assert_eq!(error(&["list", "--json", "--nosuch"])["code"], "usage");
}

#[test]
fn following_reads_a_replaced_log_and_a_new_sub_agent() {
    use std::io::{BufRead, BufReader, Write};

    let home = TestHome::new();
    let path = home.session("live", "u1 user \"first question\"");
    let root = home.root().to_str().unwrap();
    let args = ["--home", root, "show", "last", "--follow", "--level", "full"];
    let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "> first question"));
    // Beside the log and not in the home, so that it is no session.
    let other = threadline_testkit::log_of("live", "n1 user \"another question\"");
    let beside = home.file("beside.jsonl", other);
    std::fs::rename(beside, &path).unwrap();
    assert!(lines.any(|line| line == "> another question"));
    home.agent("live", "one", "u1 user \"look closely\"", Some(r#"{"toolUseId":"t1"}"#));
    let more = threadline_testkit::log_of(
        "live",
        "a1 <- ?n1 reply m1 tool t1 Task {\"description\":\"look\",\"prompt\":\"look closely\"}\nr1 <- a1 result t1 \"seen\"",
    );
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&more).unwrap();
    let call = lines.find(|line| line.contains("Task")).unwrap();
    let work = lines.find(|line| line.contains("look closely")).unwrap();
    assert!(call.starts_with('▸') && !work.is_empty(), "{call} {work}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn following_from_a_turn_shows_calls_with_their_results() {
    use std::io::{BufRead, BufReader, Write};

    const LIVE: &str = r#"
u1        user   "first question"
a1 <- u1  reply  m1 text "first answer"
u2 <- a1  user   "second question"
a2 <- u2  reply  m2 tool t1 Bash {"command":"cargo test"}
r1 <- a2  result t1 "ok"
a3 <- r1  reply  m3 text "second answer"
u3 <- a3  user   "third question"
"#;
    let whole = threadline_testkit::log(LIVE);
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(i, _)| i + 1).collect();
    let home = TestHome::new();
    let path = home.session("live", "u1 user \"x\"");
    std::fs::write(&path, &whole[..ends[3]]).unwrap();
    let id = threadline_testkit::session_uuid("live");
    let pid = std::process::id();
    home.file(format!("sessions/{pid}.json"), format!("{{\"pid\":{pid},\"sessionId\":\"{id}\"}}"));
    let root = home.root().to_str().unwrap();
    let args = ["--home", root, "show", "last", "--follow", "--turns", "-1"];
    let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut lines = lines.filter(|line| !line.is_empty());
    assert_eq!(lines.next().as_deref(), Some("── 2 · m3"));
    assert_eq!(lines.next().as_deref(), Some("> second question"));
    // The call runs long enough to be shown as running.
    assert_eq!(lines.next().as_deref(), Some("◦ Bash  cargo test  running"));
    std::fs::File::options().append(true).open(&path).unwrap().write_all(&whole[ends[3]..]).unwrap();
    let rest: Vec<String> = lines.by_ref().take(5).collect();
    insta::assert_snapshot!(rest.join("\n"), @r"
    ▸ Bash  cargo test  1.0 s
    second answer
    ── 3.0 s (1.0 s in tools) · $0.00
    ── 3 · m7
    > third question
    ");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The cost of a session in `show` equals that in `usage`, and equals the sum of its turns and of the
/// sub-agents that no call started.
#[test]
fn costs_equal_those_of_usage() {
    // Debug builds are slow, so they read only small logs.
    let most = if cfg!(debug_assertions) { 300_000 } else { u64::MAX };
    for path in threadline_testkit::shared_logs() {
        let is_agent = path.file_name().unwrap().to_str().unwrap().starts_with("agent-");
        if is_agent || std::fs::metadata(&path).unwrap().len() > most {
            continue;
        }
        let path = path.to_str().unwrap();
        let shown = threadline(["show", path, "--level", "full", "--json"]).json_lines();
        let used = threadline(["usage", path, "--by", "session", "--json"]).json_lines();
        let figures = |value: &serde_json::Value, calls: &str| {
            (value[calls].as_u64().unwrap_or(0), value["cost_usd"].as_f64().unwrap_or(0.0))
        };
        let shown_figures = figures(&shown[0]["usage"], "model_calls");
        let counted = used.first().map_or((0, 0.0), |group| figures(group, "calls"));
        let close = |a: (u64, f64), b: (u64, f64)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-9;
        assert!(close(shown_figures, counted), "{path}: {shown_figures:?} in show, {counted:?} in usage");
        let is_part = |line: &&serde_json::Value| {
            (line["type"] == "turn" && line["agent"].is_null())
                || (line["type"] == "agent" && line["call"].is_null())
        };
        let parts = shown.iter().filter(is_part).map(|line| figures(&line["usage"], "model_calls"));
        let sum = parts.fold((0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
        assert!(
            close(shown_figures, sum),
            "{path}: {shown_figures:?} for the session, {sum:?} for its parts"
        );
    }
}

#[test]
fn raw_output_has_all_lines_or_those_of_a_turn() {
    let home = TestHome::new();
    home.session("slow", TALK);
    let whole = at_home(&home, &["show", "last", "--level", "raw"]).out;
    assert_eq!(whole.lines().count(), threadline_testkit::log(TALK).split(|b| *b == b'\n').count() - 1);
    let turn = at_home(&home, &["show", "last", "--level", "raw", "--turns", "1"]).out;
    assert!(turn.contains("tool_result") && !turn.contains("take it out"), "{turn}");
}

#[test]
fn a_turn_that_does_not_exist_is_an_error() {
    let home = TestHome::new();
    home.session("loom", "u1 user \"list\"\na1 <- u1 reply m1 text \"One.\"");
    for more in [&[][..], &["--outline"], &["--json"], &["--level", "raw"]] {
        let run = at_home(&home, &[&["show", "last", "--turns", "99"], more].concat());
        assert_eq!((run.code, &*run.out), (2, ""), "{run}");
        assert!(run.err.contains("no such turn: the session has 1 turn"), "{run}");
        assert_eq!(at_home(&home, &[&["show", "last", "--turns", "-1"], more].concat()).code, 0);
    }
}

#[test]
fn a_finished_background_task_is_not_shown_as_a_typed_prompt() {
    let home = TestHome::new();
    let notice = "<task-notification><summary>Tests passed</summary></task-notification>";
    home.session("loom", &format!("u1 user \"test\"\na1 <- u1 reply m1 text \"On it.\"\nu2 <- a1 user \"{notice}\"\na2 <- u2 reply m2 text \"Good.\""));
    let outline = at_home(&home, &["show", "last", "--outline"]).out;
    assert!(outline.contains("Background task finished: Tests passed"), "{outline}");
    let shown = at_home(&home, &["show", "last"]).out;
    assert!(shown.contains("background task finished"), "{shown}");
    let inspected = at_home(&home, &["inspect", "last", "--json"]).json();
    assert_eq!(inspected["turns"], 2, "as many as `show` numbers");
}

#[test]
fn deeply_nested_values_are_shown_edited_and_exported() {
    let secret = "postgres://ada:weft-3371-heddle@db.example/loom";
    let deep = format!("{}\"{secret}\"{}", "[".repeat(500), "]".repeat(500));
    let home = TestHome::new();
    home.session(
        "deep",
        &format!(
            "u1 user \"go\"\na1 <- u1 reply m1 tool t1 mcp__loom__weave {{\"x\":{deep}}}\n\
             r1 <- a1 result t1 \"ok\" {{\"y\":{deep}}}\na2 <- r1 reply m2 text \"Done.\"\n"
        ),
    );
    for args in [
        &["show", "last"][..],
        &["show", "last", "--json"],
        &["show", "last", "--json", "--redact"],
        &["inspect", "last", "--json"],
        &["edit", "redact", "last", "--diff"],
        &["edit", "clone", "last", "--json"],
        &["export", "html", "last", "-o", "-"],
        &["export", "markdown", "last", "-o", "-"],
    ] {
        let run = at_home(&home, args);
        assert!(run.code < 2 && !run.out.is_empty(), "{args:?}: {} {}", run.code, run.err);
        assert!(!run.out.contains("unreadable"), "{args:?}");
    }
}
