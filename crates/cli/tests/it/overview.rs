//! `overview`: output formats, periods and exit codes.

use threadline_testkit::TestHome;

use crate::run::at_home;

const LOG: &str = r#"
u1        user   "weave" @2026-02-03T10:00:00Z
a1 <- u1  reply  msg_1 tool t1 Bash {"command":"cargo test"} model=claude-opus-5 usage={"output_tokens":9000}
r1 <- a1  result t1 "exit 101" error
a2 <- r1  reply  msg_2 tool t2 Edit {"file_path":"/home/ada/loom/src/main.rs"} model=claude-opus-5 usage={"output_tokens":10}
r2 <- a2  result t2 "ok"
title "Slow loom"
"#;

#[test]
fn the_figures_of_a_period_are_printed() {
    let home = TestHome::new();
    home.session("one", LOG);
    let run = at_home(&home, &["overview", "--since", "2026-02-01", "--until", "2026-02-28", "--json"]);
    let object = run.json();
    let figures = &object["selected"]["figures"];
    assert_eq!((&figures["prompts"], &figures["tool_calls"]), (&1.into(), &2.into()));
    assert_eq!((&figures["failed_tool_calls"], &figures["sessions"]), (&1.into(), &1.into()));
    assert_eq!(object["failing_commands"][0]["command"], "cargo test");
    assert_eq!(object["files"][0]["path"], "/home/ada/loom/src/main.rs");
    assert_eq!(object["bins"].as_array().unwrap().len(), 28);
    let usage = at_home(&home, &["usage", "--json", "--by", "month"]).json();
    assert_eq!(figures["usage"]["cost_usd"], usage["cost_usd"]);
    let text = at_home(&home, &["overview", "--since", "all"]).out;
    for shown in ["Overview all time", "cargo test", "Slow loom", "main.rs", "opus-5"] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
}

#[test]
fn a_period_without_activity_names_the_last_active_day() {
    let home = TestHome::new();
    home.session("one", LOG);
    let run = at_home(&home, &["overview"]);
    assert!(run.out.contains("No activity in the last 30 days. Last active 3 February 2026."), "{run}");
    assert_eq!(run.err, "all time: `threadline --home [home] overview --since all`\n");
    assert!(!at_home(&home, &["overview", "--since", "all"]).out.contains("No activity"));
}

#[test]
fn an_empty_home_and_a_wrong_date_are_reported() {
    let home = TestHome::new();
    let run = at_home(&home, &["overview"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("no sessions in [home]"), "{}", run.err);
    assert_eq!(at_home(&home, &["overview", "--since", "soon"]).code, 2);
}
