//! `usage`: output formats, inputs and unreadable logs.

use std::io::Write;
use std::process::Stdio;

use insta::assert_snapshot;
use serde_json::{Value, json};
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{RunOutput, at_home, command, threadline};

const LOG: &str = r#"
u1        user   "go" branch=main
a1 <- u1  reply  msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100000,"output_tokens":1}
a2 <- a1  reply  msg_1 tool t1 Bash {"command":"ls"} model=claude-opus-5 stop="tool_use" usage={"input_tokens":100000,"output_tokens":100}
r1 <- a2  result t1 "a"
a3 <- r1  reply  msg_2 text "b" model=claude-nova-9 usage={"input_tokens":7} @2026-01-02T10:00:00Z
"#;
const AGENT: &str = r#"
b1        reply  msg_3 text "c" model=claude-haiku-4-5 usage={"input_tokens":100,"cache_creation_input_tokens":10} @10:00:01
"#;

fn home() -> TestHome {
    let home = TestHome::new();
    home.session("one", LOG);
    home.agent("one", "a1b2c3", AGENT, None);
    home
}

#[test]
fn json_has_one_object_per_group_with_every_field() {
    let home = home();
    let lines = at_home(&home, &["usage", "--json"]).json_lines();
    assert_eq!(
        lines,
        [
            json!({"day": "2026-01-01", "calls": 2, "input_tokens": 100_100, "output_tokens": 100, "cache_read_tokens": 0,
                "cache_write_5m_tokens": 10, "cache_write_1h_tokens": 0, "web_searches": 0, "cost_usd": 0.502_612_5,
                "unpriced_models": []}),
            json!({"day": "2026-01-02", "calls": 1, "input_tokens": 7, "output_tokens": 0, "cache_read_tokens": 0,
                "cache_write_5m_tokens": 0, "cache_write_1h_tokens": 0, "web_searches": 0, "cost_usd": 0,
                "unpriced_models": ["claude-nova-9"]}),
        ]
    );
    let keys = |by: &str, key: &str| {
        let run = at_home(&home, &["usage", "--json", "--by", by]);
        run.json_lines().iter().map(|line| line[key].clone()).collect::<Vec<Value>>()
    };
    assert_eq!(keys("week", "week"), ["2026-W01"]);
    assert_eq!(keys("month", "month"), ["2026-01"]);
    assert_eq!(keys("session", "session"), [session_uuid("one")]);
    assert_eq!(keys("session", "inherited_calls"), [0]);
    assert_eq!(keys("project", "project"), ["/home/ada/loom"]);
    assert_eq!(keys("model", "model"), ["claude-opus-5", "claude-haiku-4-5", "claude-nova-9"]);
    assert_eq!(keys("tool", "tool"), ["Bash", "(none)"]);
    assert_eq!(keys("tool", "tool_calls"), [1, 0]);
    assert_eq!(keys("branch", "branch"), ["main"]);
}

#[test]
fn the_table_has_bars_a_total_and_notes() {
    assert_snapshot!(at_home(&home(), &["usage", "--by", "model"]), @r"
    exit: 0
    ----- stdout -----
    model      calls    input  output  cache read  cache write      cost
    opus-5         1  100,000     100           0            0     $0.50  ████████████████████
    haiku-4-5      1      100       0           0           10   $0.0001
    nova-9         1        7       0           0            0  no price
    total          3  100,107     100           0           10   ≥ $0.50
    ----- stderr -----
    no price for claude-nova-9: 1 call not included in the cost
    price list of 2026-11-15 (8e047b61b4c7)
    ");
}

#[test]
fn the_tool_table_counts_uses() {
    let home = TestHome::new();
    home.session(
        "one",
        "a1 reply msg_1 [tool t1 Bash, tool t2 Bash, tool t3 Read] model=claude-opus-5 usage={\"input_tokens\":100000}",
    );
    assert_snapshot!(at_home(&home, &["usage", "--by", "tool", "--quiet"]).out, @r"
    tool   uses  calls    input  output  cache read  cache write   cost
    Bash      2      1   50,000       0           0            0  $0.25  ████████████████████
    Read      1      0   50,000       0           0            0  $0.25  ████████████████████
    total     3      1  100,000       0           0            0  $0.50
    ");
}

#[test]
fn csv_has_the_same_fields() {
    assert_snapshot!(at_home(&home(), &["usage", "--csv", "--quiet"]).out, @r"
    day,calls,input_tokens,output_tokens,cache_read_tokens,cache_write_5m_tokens,cache_write_1h_tokens,web_searches,cost_usd,unpriced_models
    2026-01-01,2,100100,100,0,10,0,0,0.5026125,
    2026-01-02,1,7,0,0,0,0,0,0,claude-nova-9
    ");
}

#[test]
fn days_follow_the_time_zone_and_the_range() {
    let home = home();
    let days = |args: &[&str]| {
        let run = at_home(&home, &[&["usage", "--json"], args].concat());
        run.json_lines().iter().map(|line| line["day"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(days(&["--since", "2026-01-02"]), ["2026-01-02"]);
    assert_eq!(days(&["--until", "2026-01-01"]), ["2026-01-01"]);
    assert_eq!(days(&["--tz", "Pacific/Kiritimati"]), ["2026-01-02", "2026-01-03"]);
    assert_eq!(days(&["--since", "2026-01", "--until", "2026-01"]), days(&[]));
    assert_eq!(days(&["--since", "all"]), days(&[]));
    let none = at_home(&home, &["usage", "--since", "7d"]);
    assert_eq!((none.code, &*none.out, &*none.err), (1, "", "no model calls found\n"));
    assert_eq!(at_home(&home, &["usage", "--since", "soon"]).code, 2);
    assert_eq!(at_home(&home, &["usage", "--tz", "Mars/Base"]).code, 2);
}

#[test]
fn a_session_is_counted_without_inherited_calls() {
    let home = home();
    home.session(
        "two",
        &format!(
            "{}\n{}",
            LOG,
            "a9 reply msg_9 text \"x\" model=claude-opus-5 usage={\"input_tokens\":1} @2026-01-03T00:00:00Z"
        ),
    );
    let at = |name: &str| {
        at_home(&home, &["usage", "--json", "--by", "session", &session_uuid(name)]).json_lines()
    };
    let (one, two) = (at("one"), at("two"));
    let calls = [&one, &two].map(|lines| lines[0]["calls"].as_u64().unwrap());
    // Both sessions started at the same time, so the smaller id owns the shared calls.
    assert_eq!(calls.iter().sum::<u64>(), 4);
    let all = at_home(&home, &["usage", "--json", "--by", "session"]).json_lines();
    assert_eq!(all.len(), 2);
    assert!(one.iter().chain(&two).all(|line| all.contains(line)));
    let inherited: u64 = all.iter().map(|line| line["inherited_calls"].as_u64().unwrap()).sum();
    assert_eq!(inherited, 2);
}

#[test]
fn explain_lists_every_record() {
    let run = at_home(&home(), &["usage", "--explain", "--json"]);
    let rows: Vec<_> = run
        .json_lines()
        .iter()
        .map(|line| (line["line"].clone(), line["counted"].clone(), line["reason"].clone()))
        .collect();
    assert_eq!(
        rows,
        [
            (json!(2), json!(false), json!("same-reply")),
            (json!(3), json!(true), Value::Null),
            (json!(5), json!(true), Value::Null),
            (json!(1), json!(true), Value::Null),
        ]
    );
    let people = at_home(&home(), &["usage", "--explain"]);
    assert!(people.out.contains("not counted: same reply, counted at line 3"), "{people}");
    assert!(people.err.starts_with("3 records counted, 1 not counted; $0.50\n"), "{people}");
}

#[test]
fn records_that_are_not_calls_have_no_figures() {
    let home = TestHome::new();
    home.session("one", "a1 reply msg_1 text \"Sorry\" model=\"<synthetic>\" usage={\"input_tokens\":0}");
    let explained = at_home(&home, &["usage", "--explain"]).out;
    let line = explained.lines().nth(1).unwrap_or_default();
    assert_eq!(line.trim(), "1  –  –  not counted: synthetic message, no model call");
}

#[test]
fn every_total_can_be_explained() {
    let home = home();
    let lines = |by: &str, name: &str| {
        let run = at_home(&home, &["usage", "--by", by, "--only", name, "--explain", "--json"]);
        run.json_lines().iter().map(|line| line["line"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(lines("model", "claude-opus-5"), [2, 3]);
    assert_eq!(lines("model", "claude-haiku-4-5"), [1]);
    assert_eq!(lines("day", "2026-01-02"), [5]);
    assert_eq!(lines("tool", "Bash"), [2, 3]);
    assert_eq!(lines("tool", "(none)"), [5, 1]);
    assert_eq!(lines("branch", "main"), [2, 3, 5, 1]);
    let only = at_home(
        &home,
        &["usage", "--by", "model", "--only", "claude-nova-9", "--only", "claude-haiku-4-5", "--csv"],
    );
    assert_eq!(only.out.lines().count(), 3, "{only}");
    let never = at_home(&home, &["usage", "--by", "model", "--only", "never"]);
    assert!(never.code == 1 && never.err.starts_with("no model `never`; there are "), "{never}");
    assert!(!never.err.contains("no model calls found"), "{never}");
    let printed = at_home(&home, &["usage", "--by", "model", "--only", "haiku-4-5", "--csv"]);
    assert_eq!(printed.out.lines().count(), 2, "{printed}");
    let sessions = at_home(&home, &["usage", "--by", "session", "--json"]).json_lines();
    let id = sessions[0]["session"].as_str().unwrap();
    let prefix = at_home(&home, &["usage", "--by", "session", "--only", &id[..8], "--json"]);
    assert_eq!(prefix.json_lines()[0]["session"], id, "{prefix}");
}

#[test]
fn blocks_mark_estimated_ends() {
    let home = home();
    let lines = at_home(&home, &["usage", "--blocks", "--json"]).json_lines();
    assert_eq!(lines[0]["start"], "2026-01-01T10:00:00.000Z");
    assert_eq!(lines[0]["reset"], "estimate");
    assert_eq!(lines[0]["calls"], 2);
    home.session(
        "limit",
        "a1 reply msg_8 text \"You've hit your session limit · resets 11:30am (Etc/UTC)\" model=\"<synthetic>\" @11:00:00 +{\"isApiErrorMessage\":true}",
    );
    let lines = at_home(&home, &["usage", "--blocks", "--json"]).json_lines();
    assert_eq!(
        (&lines[0]["reset"], &lines[0]["end"]),
        (&json!("stated"), &json!("2026-01-01T11:30:00.000Z"))
    );
    assert_eq!(at_home(&home, &["usage", "--blocks"]).code, 0);
    home.session(
        "two",
        "a7 reply msg_7 text \"x\" model=claude-opus-5 usage={\"input_tokens\":1} -timestamp",
    );
    let undated = at_home(&home, &["usage", "--blocks"]).err;
    assert!(undated.contains("1 call without a timestamp, not in any window\n"), "{undated}");
}

#[test]
fn reconcile_compares_with_claude_codes_own_figure() {
    let home = home();
    assert_eq!(at_home(&home, &["usage", "--reconcile"]).code, 1);
    home.session(
        "priced",
        &format!("{LOG}\nentry cost-state {{\"totalCostUSD\":0.75,\"modelUsage\":{{}}}}")
            .replace("msg_", "msg_t"),
    );
    let line = at_home(&home, &["usage", "--reconcile", "--json"]).json();
    assert_eq!(line["session"], session_uuid("priced"));
    assert_eq!((&line["cost_usd"], &line["claude_code_cost_usd"]), (&json!(0.5025), &json!(0.75)));
    assert_eq!(at_home(&home, &["usage", "--reconcile"]).code, 0);
}

#[test]
fn custom_prices_override_the_embedded_ones() {
    let home = home();
    let prices = r#"{"prices":[{"model":"claude-nova-9","input":1000000,"output":1,"write_5m":1,"write_1h":1,"read":1}]}"#;
    let file = home.file("prices.json", prices);
    let run = at_home(&home, &["usage", "--json", "--by", "model", "--prices", file.to_str().unwrap()]);
    assert_eq!(run.json_lines()[0]["cost_usd"], 7);
    let config = home.root().join("config");
    home.file("config/threadline/prices.json", prices);
    let done = command(["--home", home.root().to_str().unwrap(), "usage", "--json", "--by", "model"])
        .env("XDG_CONFIG_HOME", &config)
        .output()
        .unwrap();
    assert!(String::from_utf8(done.stdout).unwrap().starts_with(r#"{"model":"claude-nova-9","calls":1"#));
    let wrong = home.file("wrong.json", r#"{"prices":[{"model":"x"}]}"#);
    let run = at_home(&home, &["usage", "--prices", wrong.to_str().unwrap()]);
    assert_snapshot!(run, @r"
    exit: 2
    ----- stdout -----
    ----- stderr -----
    error: cannot read `[home]/wrong.json`: price 1: expected dollars per million tokens in `input`
    ");
}

fn statusline(home: &TestHome, json: &str) -> RunOutput {
    let mut child = command(["--home", home.root().to_str().unwrap(), "usage", "statusline"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(json.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    RunOutput {
        code: done.status.code().unwrap(),
        out: String::from_utf8(done.stdout).unwrap(),
        err: String::from_utf8(done.stderr).unwrap(),
    }
}

#[test]
fn the_status_line_is_one_line() {
    let home = home();
    let path = home.session("status", &LOG.replace("msg_", "msg_s"));
    let status = json!({"session_id": session_uuid("status"), "transcript_path": path, "model": {"id": "claude-opus-5", "display_name": "Opus 5"},
        "context_window": {"context_window_size": 200_000, "used_percentage": 42.4}});
    let run = statusline(&home, &status.to_string());
    assert_snapshot!(run, @r"
    exit: 0
    ----- stdout -----
    Opus 5 · session $0.50 · today $0.00 · context 42% · some models unpriced
    ----- stderr -----
    ");
    let little = statusline(&home, "{}");
    assert_eq!((little.code, &*little.out), (0, "? · session $0.00 · today $0.00\n"));
    assert_eq!(statusline(&home, "nonsense").code, 2);
}

#[test]
fn unreadable_logs_are_reported_and_the_others_counted() {
    let home = home();
    // A folder with the name of a log is skipped.
    std::fs::create_dir_all(home.root().join("projects/-home-ada-loom/dir.jsonl")).unwrap();
    assert_eq!(at_home(&home, &["usage", "--json"]).json_lines().len(), 2);
    // A dangling link counts as a deleted log: it is reported, but is not a failure.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/no/such/log", home.root().join("projects/-home-ada-loom/gone.jsonl"))
            .unwrap();
        let run = at_home(&home, &["usage", "--json"]);
        assert_eq!((run.code, run.json_lines().len()), (0, 2));
        assert!(run.err.contains("gone.jsonl no longer exists"), "{}", run.err);
        // A link to itself exists and cannot be opened.
        let circle = home.root().join("projects/-home-ada-loom/circle.jsonl");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        let run = at_home(&home, &["usage", "--json"]);
        assert_eq!((run.code, run.json_lines().len()), (2, 2));
        assert!(
            run.err.contains("warning: cannot read `[home]/projects/-home-ada-loom/circle.jsonl`"),
            "{}",
            run.err
        );
    }
}

#[test]
#[cfg(unix)]
fn logs_given_twice_or_through_links_count_once() {
    let home = home();
    let plain = at_home(&home, &["usage", "--json", "--by", "model"]).out;
    let link = linked_home(&home);
    std::os::unix::fs::symlink(
        home.root().join("projects/-home-ada-loom"),
        home.root().join("projects/-again"),
    )
    .unwrap();
    let root = home.root().to_str().unwrap();
    let both = threadline([
        "--home",
        root,
        "--home",
        link.root().join("link").to_str().unwrap(),
        "usage",
        "--json",
        "--by",
        "model",
    ]);
    assert_eq!(both.out, plain);
    let folders =
        threadline(["usage", "--json", "--by", "model", root, link.root().join("link").to_str().unwrap()]);
    assert_eq!(folders.out, plain);
}

#[cfg(unix)]
fn linked_home(home: &TestHome) -> TestHome {
    let other = TestHome::new();
    std::os::unix::fs::symlink(home.root(), other.root().join("link")).unwrap();
    other
}

#[test]
fn a_growing_log_is_counted_up_to_its_last_complete_line() {
    let home = home();
    let path = home.session("grows", &LOG.replace("msg_", "msg_g"));
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 20]).unwrap();
    let run = at_home(&home, &["usage", "--json", "--by", "session"]);
    let calls: u64 = run.json_lines().iter().map(|line| line["calls"].as_u64().unwrap()).sum();
    assert_eq!((run.code, calls), (0, 4), "{run}");
    assert!(run.err.contains("1 log with an incomplete last line (perhaps still being written)"), "{run}");
}

#[test]
fn the_demo_has_figures() {
    let run = threadline(["--demo", "usage", "--json"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn groups_are_sorted_and_compact_tables_have_fewer_columns() {
    let home = home();
    let names = |order: &str| -> Vec<String> {
        let run = at_home(&home, &["usage", "--by", "model", "--sort", order]);
        let rows = run.out.lines().skip(1).filter_map(|line| line.split_whitespace().next());
        rows.map(str::to_owned).collect()
    };
    assert_eq!(names("name")[..3], ["haiku-4-5", "nova-9", "opus-5"]);
    assert_eq!(names("cost")[..3], ["opus-5", "haiku-4-5", "nova-9"]);
    assert_eq!(names("tokens")[..3], ["opus-5", "haiku-4-5", "nova-9"]);
    let compact = at_home(&home, &["usage", "--by", "model", "--sort", "cost", "--compact"]);
    assert_snapshot!(compact.out, @"
    model      calls  tokens      cost
    opus-5         1    100k     $0.50  ████████████████████
    haiku-4-5      1     110   $0.0001
    nova-9         1       7  no price
    total          3    100k   ≥ $0.50
    ");
}

#[test]
fn blocks_are_printed_with_estimates_marked() {
    let home = home();
    assert_snapshot!(at_home(&home, &["usage", "--blocks"]).out, @"
    from              to      calls    input  output  cache read  cache write      cost  per hour
    2026-01-01 10:00  ≈15:00      2  100,100     100           0           10     $0.50
    2026-01-02 10:00  ≈15:00      1        7       0           0            0  no price
    ");
}
