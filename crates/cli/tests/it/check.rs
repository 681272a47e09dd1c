//! `check`: exit codes and the format of a finding. The rules themselves are tested in their own crates.

use insta::assert_snapshot;
use serde_json::json;
use threadline_testkit::{TestHome, session_uuid};

use crate::run::{at_home, threadline};

const SOUND: &str = r#"
u1        user   "list"
a1 <- u1  reply  m1 tool t1 Bash {"command":"ls"}
r1 <- a1  result t1 "a"
a2 <- r1  reply  m2 text "One file."
"#;

#[test]
fn a_sound_session_is_clean() {
    let home = TestHome::new();
    home.session("sound", SOUND);
    assert_snapshot!(at_home(&home, &["check", "last"]), @r"
    exit: 0
    ----- stdout -----
    ----- stderr -----
    1 log checked, no problems found
    ");
}

#[test]
fn a_finding_has_a_location_a_message_and_a_repair() {
    let home = TestHome::new();
    let broken = SOUND.replace("r1 <- a1  result t1 \"a\"", "").replace("<- r1", "<- a1");
    let path = home.session("broken", &broken);
    let id = path.file_name().unwrap().to_str().unwrap()[..8].to_owned();
    let shown = at_home(&home, &["check", "last"]).to_string();
    assert_snapshot!(shown.replace(&session_uuid("broken"), "[session]").replace(&id, "[id]"), @r"
    exit: 1
    ----- stdout -----
    list  [id]
      line 2: warning F01 orphan-call: the call of Bash has no result (t1)
        repair: add an error result for the interrupted call, or remove the call
    ----- stderr -----
    1 log checked, 1 problem
    1 repairable in 1 session: `threadline --home [home] edit repair [session]`
    ");
    let finding = at_home(&home, &["check", "last", "--json"]).json();
    assert_eq!(finding["code"], "F01");
    assert_eq!(finding["line"], 2);
    let keys: Vec<_> = finding.as_object().unwrap().keys().cloned().collect();
    let mut expected = ["byte_offset", "code", "line", "message", "name", "path", "repair", "severity"];
    expected.sort_unstable();
    assert_eq!(keys, expected);
}

#[test]
fn notes_are_shown_on_request_and_are_not_failures() {
    let home = TestHome::new();
    home.session("moved", &SOUND.replace("m2 text \"One file.\"", "m2 text \"One file.\" cwd=/elsewhere"));
    assert_eq!(at_home(&home, &["check", "last", "--json"]).out, "");
    let run = at_home(&home, &["check", "last", "--json", "--notes"]);
    assert_eq!((run.code, run.json()["code"].clone()), (0, json!("F19")));
}

#[test]
fn titles_of_findings_are_masked_and_name_the_sub_agent() {
    let home = TestHome::new();
    let token = "ghp_0123456789abcdefABCDEF0123456789abcd";
    home.session("broken", &SOUND.replace("\"list\"", &format!("\"use {token}\"")));
    home.agent("broken", "x1", "b1 user \"look\"\nraw {\"type\":\"us", None);
    let shown = at_home(&home, &["check", "--redact", "last"]).out;
    assert!(!shown.contains(token) && shown.contains("use [secret:"), "{shown}");
    assert!(shown.contains(" · sub-agent x1"), "{shown}");
}

#[test]
fn an_unreadable_log_is_an_error() {
    assert_eq!(threadline(["check", "/no/such/log.jsonl"]).code, 2);
}

#[test]
fn all_demo_sessions_except_the_crashed_one_are_sound() {
    let run = threadline(["--demo", "check", "--json"]);
    for finding in run.json_lines() {
        let is_planted =
            finding["path"].as_str().unwrap().contains("3f91c2d4") && finding["name"] == "secret";
        assert!(is_planted || finding["path"].as_str().unwrap().contains("6ea14630"), "{finding}");
    }
    assert_eq!(run.code, 1);
}

#[test]
fn a_home_with_many_findings_is_summarised_by_code() {
    let home = TestHome::new();
    let broken = SOUND.replace("r1 <- a1  result t1 \"a\"", "").replace("<- r1", "<- a1");
    for n in 0..30 {
        home.session(&format!("broken {n}"), &broken);
    }
    home.session("moved", &SOUND.replace("m2 text \"One file.\"", "m2 text \"One file.\" cwd=/elsewhere"));
    assert_snapshot!(at_home(&home, &["check"]), @r"
    exit: 1
    ----- stdout -----
    findings  sessions  severity  code             repair
          30        30  warning   F01 orphan-call  add an error result for the interrupted call, or remove the call
    ----- stderr -----
    31 logs checked, 30 problems
    30 repairable in 30 sessions: `threadline --home [home] edit repair SESSION`
    list the findings of a code: `threadline --home [home] check --code CODE`
    1 harmless note not shown: --notes
    ");
    let listed = at_home(&home, &["check", "--code", "orphan-call"]).out;
    assert_eq!(
        listed.lines().filter(|line| line.starts_with("  line 2: warning F01")).count(),
        30,
        "{listed}"
    );
    assert_eq!(at_home(&home, &["check", "--code", "F19", "--json"]).json()["code"], "F19");
    assert_eq!(at_home(&home, &["check", "--code", "F99"]).code, 2);
}
