//! `context`: the parts of the window at each model call.

use insta::assert_snapshot;
use threadline_testkit::TestHome;

use crate::run::at_home;

#[test]
fn only_misses_are_listed_on_request() {
    let home = TestHome::new();
    let notation = r#"
        u1        user   "weave"
        a1 <- u1  reply  m1 text "One." usage={"input_tokens":4,"cache_creation_input_tokens":10000,"output_tokens":50}
        u2 <- a1  user   "thanks" @+6m
        a2 <- u2  reply  m2 text "Two." usage={"input_tokens":10990,"output_tokens":5}
        "#;
    home.session("loom", notation);
    home.session("hit", "u1 user \"hit\"\na1 <- u1 reply m1 text \"One.\" usage={\"input_tokens\":4}");
    let misses = at_home(&home, &["context", "weave", "--misses", "--json"]).json_lines();
    let anchors: Vec<&str> = misses.iter().map(|call| call["anchor"].as_str().unwrap()).collect();
    assert_eq!(anchors, ["m4"]);
    for format in [&["--json"][..], &[]] {
        let none = at_home(&home, &[&["context", "hit", "--misses"], format].concat());
        assert_eq!((none.code, &*none.out, &*none.err), (1, "", "no cache misses\n"));
    }
}

#[test]
fn windows_are_shown_call_by_call() {
    let home = TestHome::new();
    let text = "a line of output\\n".repeat(200);
    let notation = format!(
        r#"
        u1        user   "look"
        a1 <- u1  reply  m1 tool t1 Read {{"file_path":"/a \u001b[31m.rs"}} usage={{"input_tokens":4,"cache_creation_input_tokens":10000,"output_tokens":50}}
        r1 <- a1  result t1 "{text}"
        a2 <- r1  reply  m2 text "Done." usage={{"input_tokens":4,"cache_read_input_tokens":10000,"cache_creation_input_tokens":900,"output_tokens":50}}
        u2 <- a2  user   "thanks" @+6m
        a3 <- u2  reply  m3 text "Yes." usage={{"input_tokens":10990,"output_tokens":5}}
        "#
    );
    home.session("loom", &notation);
    assert_snapshot!(at_home(&home, &["context", "last"]), @r"
    exit: 0
    ----- stdout -----
    call  turn  model     window  growth              cache miss               added
    m2       1  opus-4-8  10,004    +10k  ██████████                           prompts look 0
    m4       1  opus-4-8  10,904    +900  ██████████                           Read /a ^[[31m.rs 890, tool calls Read /a ^[[31m.rs 9
    m6       2  opus-4-8  10,990     +86  ██████████  11k expired after 5 min  replies Done. 1, prompts thanks 1

    Largest window: 10,990 tokens at m6, by part (estimate)
    part              tokens  share
    system and tools  10,088   92 %  ████████████████████████████
    Read results         890    8 %  ██
    tool calls             9  < 1 %  ▏
    prompts                2  < 1 %  ▏
    replies                1  < 1 %  ▏

    cache miss           calls  tokens  longest pause
    expired after 5 min      1  10,900     6 min 02 s

    Output of which no line recurs: 1 result with about 890 tokens (estimate)
    result  tokens  tool  call
    m2         890  Read  /a ^[[31m.rs
    ----- stderr -----
    sizes of windows are recorded; those of parts and items are estimates
    ");
    let lines = at_home(&home, &["context", "last", "--json"]).json_lines();
    assert_eq!(
        lines.iter().map(|line| line["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["call", "call", "call", "unused_output"]
    );
    assert_eq!(lines[2]["miss"]["reason"], "expired_5m");
    assert_eq!((&lines[3]["tool"], &lines[3]["anchor"]), (&"Read".into(), &"m2".into()));
    home.session("empty", "u1 user \"hello\" @+9d\n");
    assert_eq!(at_home(&home, &["context", "last"]).code, 1);
}

#[test]
fn sub_agents_have_windows_of_their_own() {
    let home = TestHome::new();
    let main = r#"
        u1        user   "count"
        a1 <- u1  reply  m1 tool t1 Task {"prompt":"count the threads","description":"count","subagent_type":"Explore"} usage={"input_tokens":9000,"output_tokens":50}
        r1 <- a1  result t1 "Two." {"agentId":"a1b2c3"}
        a2 <- r1  reply  m2 text "Two." usage={"input_tokens":9100,"output_tokens":5}
        "#;
    home.session("loom", main);
    let agent = r#"
        x1        user   "count the threads"
        x2 <- x1  reply  n1 tool t9 Bash {"command":"wc -l"} usage={"input_tokens":4,"cache_creation_input_tokens":20000,"output_tokens":50}
        x3 <- x2  result t9 "2" @+6m
        x4 <- x3  reply  n2 text "Two." usage={"input_tokens":20100,"output_tokens":5}
        "#;
    home.agent("loom", "a1b2c3", agent, Some(r#"{"agentType":"Explore","description":"count"}"#));
    let shown = at_home(&home, &["context", "last"]).out;
    let table = shown.lines().skip_while(|line| !line.starts_with("sub-agent"));
    assert_snapshot!(table.collect::<Vec<_>>().join("\n"), @r"
    sub-agent  calls  largest window  cache miss      cost  task
    a1b2c3         2          20,100  20k in 1 call  $0.23  Explore: count
    ");
    let lines = at_home(&home, &["context", "last", "--json"]).json_lines();
    let agent = lines.iter().find(|line| line["type"] == "agent").unwrap();
    assert_eq!(
        (&agent["agent"], &agent["calls"], &agent["misses"]),
        (&"a1b2c3".into(), &2.into(), &1.into())
    );
    assert_eq!((&agent["peak_tokens"], &agent["missed_tokens"]), (&20_100.into(), &20_000.into()));
    let calls = at_home(&home, &["context", "last", "--agent", "a1b", "--json"]).json_lines();
    let windows: Vec<_> =
        calls.iter().filter(|line| line["type"] == "call").map(|line| &line["window_tokens"]).collect();
    assert_eq!(windows, [&serde_json::Value::from(20_004), &20_100.into()]);
    let wrong = at_home(&home, &["context", "last", "--agent", "zz"]);
    assert!(wrong.code != 0 && wrong.err.contains("no sub-agent matches `zz`"), "{}", wrong.err);
}

#[test]
fn unreadable_sub_agents_are_reported() {
    let home = TestHome::new();
    let usage = r#"usage={"input_tokens":4,"output_tokens":5}"#;
    home.session("loom", &format!("u1 user \"hi\"\na1 <- u1 reply m1 text \"yes\" {usage}"));
    let id = threadline_testkit::session_uuid("loom");
    // A file in the place of the folder.
    home.file(format!("projects/-home-ada-loom/{id}/subagents"), "");
    let run = at_home(&home, &["context", "last"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.err.contains("warning: ") && run.err.contains("/subagents"), "{run}");
}
