//! Compression: the summary of older turns, and the position of the boundary.

use insta::assert_snapshot;
use threadline_edit::{CompressError, CompressOptions, Compression, PlanTarget, SummaryBand, SummaryLevel};
use threadline_session::{ClientVersion, Session};
use threadline_testkit::log;

use crate::support::{new, plan, rendered, session};

const TALK: &str = r#"
u1         user   "Why is the loom slow? Look at src/shed.rs first."
a1 <- u1   reply  m1 text "Let me look at the file."
a2 <- a1   reply  m1 tool t1 Read {"file_path":"/home/ada/loom/src/shed.rs"}
r1 <- a2   result t1 "LONG"
a3 <- r1   reply  m2 tool t2 Bash {"command":"cargo bench\n--quiet"}
r2 <- a3   result t2 "Exit code 101\nerror: no bench target" error
a4 <- r2   reply  m3 tool t3 Edit {"file_path":"/home/ada/loom/src/shed.rs","old_string":"a","new_string":"b"}
r3 <- a4   result t3 "ok" {"filePath":"/home/ada/loom/src/shed.rs","oldString":"a","newString":"b","originalFile":"a","structuredPatch":[{"oldStart":1,"oldLines":1,"newStart":1,"newLines":1,"lines":["-a","+b"]}]}
a5 <- r3   reply  m4 text "The shed was lifted once a thread because `lift` took a lock each time. I have moved the lock out of the loop. There are many other things that could be said about looms in general, and about sheds, and about threads, which are all very interesting and have nothing to do with this. Weavers know them well. Looms are old."
u2 <- a5   user   "And now the tests?"
a6 <- u2   reply  m5 tool t4 Bash {"command":"cargo test"}
r4 <- a6   result t4 "running\ntest result: ok. 12 passed"
a7 <- r4   reply  m6 text "All 12 tests pass." usage={"input_tokens":90000,"cache_read_input_tokens":5}
u3 <- a7   user   "Good. Anything else?"
a8 <- u3   reply  m7 text "No." usage={"input_tokens":90000,"cache_read_input_tokens":5}
"#;

fn choose<'s>(
    session: &'s Session,
    bands: &[(SummaryLevel, u8)],
    budget: Option<u64>,
) -> Result<Compression<'s>, CompressError> {
    let bands = bands.iter().map(|&(level, until)| SummaryBand { level, until }).collect();
    Compression::choose(session, &CompressOptions { bands, budget, original: Some("/logs/s1.jsonl".into()) })
}

/// Expands `LONG` in the notation to a text that is worth removing.
fn long(notation: &str) -> Vec<u8> {
    log(&notation.replace("LONG", &"fn lift() {} ".repeat(200)))
}

/// Returns the summary without its first line.
fn body(session: &Session, bands: &[(SummaryLevel, u8)]) -> String {
    let summary = choose(session, bands, None).unwrap().summary();
    summary.split_once('\n').unwrap().1.trim().to_owned()
}

#[test]
fn prompts_are_kept_and_the_rest_is_summarised() {
    let session = session(&long(TALK));
    assert_snapshot!(body(&session, &[(SummaryLevel::Long, 60)]), @r#"
    <turn number="1">
    <asked>
    Why is the loom slow? Look at src/shed.rs first.
    </asked>
    <done>
    - Read src/shed.rs
    - Bash `cargo bench --quiet` → failed: Exit code 101, error: no bench target
    - Edit src/shed.rs → +1 −1
    </done>
    <answered>
    The shed was lifted once a thread because `lift` took a lock each time. I have moved the lock out of the loop. … Weavers know them well. Looms are old.
    </answered>
    </turn>

    <turn number="2">
    <asked>
    And now the tests?
    </asked>
    <done>
    - Bash `cargo test` → test result: ok. 12 passed
    </done>
    <answered>
    All 12 tests pass.
    </answered>
    </turn>

    <state>
    Files changed so far:
    - src/shed.rs (once)
    </state>
    "#);
    assert_snapshot!(body(&session, &[(SummaryLevel::Short, 30)]), @r#"
    <turn number="1">
    <asked>
    Why is the loom slow? Look at src/shed.rs first.
    </asked>
    <done>
    - Bash `cargo bench --quiet` → failed: Exit code 101, error: no bench target
    - Edit src/shed.rs → +1 −1
    - also: 1 file read
    </done>
    <answered>
    The shed was lifted once a thread because `lift` took a lock each time. I have moved the lock out of the loop. … Weavers know them well. Looms are old.
    </answered>
    </turn>

    <state>
    Files changed so far:
    - src/shed.rs (once)
    </state>
    "#);
    assert_snapshot!(body(&session, &[(SummaryLevel::Bare, 30)]), @r#"
    <turn number="1">
    <asked>
    Why is the loom slow? Look at src/shed.rs first.
    </asked>
    <done>
    - Edit src/shed.rs → +1 −1
    </done>
    <answered>
    The shed was lifted once a thread because `lift` took a lock each time. I have moved the lock out of the loop. … Weavers know them well. Looms are old.
    </answered>
    </turn>

    <state>
    Files changed so far:
    - src/shed.rs (once)
    </state>
    "#);
}

#[test]
fn a_new_session_contains_the_summary_and_the_last_turns() {
    let session = session(&long(TALK));
    let compression = choose(&session, &[(SummaryLevel::Short, 60)], None).unwrap();
    assert_eq!(compression.turns(), (2, 1));
    let plan = plan(&session, new(), |draft| compression.apply(draft, &compression.summary(), false));
    assert_snapshot!(rendered(&plan), @r"
    fresh @00:12.998 system
    fresh <- fresh @00:12.999 user
    u3' <- fresh @00:13 user
    a8' <- u3' @00:14 assistant text
    ");
    assert_eq!(plan.refusals(), [""; 0]);
    let bytes = plan.to_bytes();
    let text = String::from_utf8(bytes.clone()).unwrap();
    assert!(!text.contains("90000") && !text.contains("is_error"), "{text}");
    let replay = Session::from_bytes(&bytes);
    let replay = replay.replay(ClientVersion::NEWEST).unwrap();
    assert_eq!(replay.len(), 2, "the summary with the prompt, and the reply");
}

#[test]
fn in_place_the_lines_stay_above_the_boundary() {
    let session = session(&long(TALK));
    let compression = choose(&session, &[(SummaryLevel::Short, 60)], None).unwrap();
    let plan = plan(&session, PlanTarget::InPlace, |draft| compression.apply(draft, "In short.", true));
    assert_snapshot!(rendered(&plan), @r"
    u1 @00:00 user
    a1 <- u1 @00:01 assistant text
    a2 <- a1 @00:02 assistant tool_use
    r1 <- a2 @00:03 user tool_result
    a3 <- r1 @00:04 assistant tool_use
    r2 <- a3 @00:05 user tool_result
    a4 <- r2 @00:06 assistant tool_use
    r3 <- a4 @00:07 user tool_result
    a5 <- r3 @00:08 assistant text
    u2 <- a5 @00:09 user
    a6 <- u2 @00:10 assistant tool_use
    r4 <- a6 @00:11 user tool_result
    a7 <- r4 @00:12 assistant text
    fresh @00:12.998 system
    fresh <- fresh @00:12.999 user
    u3 <- fresh @00:13 user
    a8 <- u3 @00:14 assistant text
    ");
    assert_eq!(plan.refusals(), [""; 0]);
    let result = Session::from_bytes(&plan.to_bytes());
    let mut json = String::new();
    result.replay(ClientVersion::NEWEST).unwrap()[0].write_json(&mut json);
    assert_snapshot!(json, @r#"{"role":"user","content":[{"type":"text","text":"In short.\n"},{"type":"text","text":"Good. Anything else?"}]}"#);
    assert_eq!(result.turns().len(), 3, "a reader still sees every turn");
    assert!(result.findings().is_empty(), "{:?}", result.findings());
}

#[test]
fn a_branch_of_summarised_turns_stays_above_the_boundary() {
    let branches = "w1 <- u3 user \"Or?\"\nx1 <- a4 user \"Stop.\"\ny1 <- a7 user \"Wait.\"\na9 <- a8 reply m8 text \"Well.\"\n";
    let session = session(&long(&format!("{TALK}{branches}")));
    let compression = choose(&session, &[(SummaryLevel::Short, 60)], None).unwrap();
    let plan = plan(&session, PlanTarget::InPlace, |draft| compression.apply(draft, "In short.", true));
    let listed = rendered(&plan);
    let ids: Vec<&str> = listed.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(
        ids.join(" "),
        "u1 a1 a2 r1 a3 r2 a4 x1 r3 a5 u2 a6 r4 a7 fresh fresh u3 a8 w1 a9",
        "what left its last line has no place above it"
    );
    assert_eq!(plan.refusals(), [""; 0]);
    let result = Session::from_bytes(&plan.to_bytes());
    assert!(result.findings().is_empty(), "{:?}", result.findings());
}

#[test]
fn an_earlier_compaction_is_represented_by_its_summary() {
    let session = session(&long(
        r#"
        u1        user   "one"
        a1 <- u1  reply  m1 text "First."
        b1 <- a1  boundary manual
        s1 <- b1  compact-summary "What came before, in many words, so that there is something to gain from telling it again."
        u2 <- s1  user   "two"
        a2 <- u2  reply  m2 tool t1 Read {"file_path":"/x"}
        r1 <- a2  result t1 "LONG"
        a3 <- r1  reply  m3 text "Read."
        u3 <- a3  user   "three"
        a4 <- u3  reply  m4 text "Done."
        "#,
    ));
    assert_snapshot!(body(&session, &[(SummaryLevel::Short, 90)]), @r#"
    <turn number="1">
    <earlier-summary>
    What came before, in many words, so that there is something to gain from telling it again.
    </earlier-summary>
    </turn>

    <turn number="2">
    <asked>
    two
    </asked>
    <done>
    - 1 file read
    </done>
    <answered>
    Read.
    </answered>
    </turn>
    "#);
}

#[test]
fn text_next_to_a_result_is_a_prompt() {
    let session = session(&long(
        r#"
        u1        user   "one"
        a1 <- u1  reply  m1 tool t1 Read {"file_path":"/x"}
        r1 <- a1  user   [result t1 "LONG", text "and mind the gap"]
        a2 <- r1  reply  m2 text "Read."
        u2 <- a2  user   "two"
        a3 <- u2  reply  m3 text "Done."
        "#,
    ));
    assert!(body(&session, &[(SummaryLevel::Short, 90)]).contains("<asked>\nand mind the gap\n</asked>"));
}

#[test]
fn a_budget_keeps_the_newest_turns_and_all_prompts() {
    let mut notation = String::new();
    for turn in 1..=20 {
        let before = if turn == 1 { String::new() } else { format!("<- a{} ", turn - 1) };
        notation += &format!("u{turn} {before}user \"Question {turn}?\"\n");
        let words = format!("Sentence about topic{turn} and nothing else at all. ").repeat(40);
        notation += &format!("a{turn} <- u{turn} reply m{turn} text \"{words}\"\n");
    }
    let session = session(&log(&notation));
    for budget in [3000, 5000, 8000] {
        let compression = choose(&session, &[], Some(budget)).unwrap();
        let summary = compression.summary();
        let (summarised, kept) = compression.turns();
        assert_eq!(summarised + kept, 20);
        assert!((1..=summarised).all(|turn| summary.contains(&format!("Question {turn}?"))), "{summary}");
        let tokens = summary.len() as u64 / 4 + compression.kept_tokens();
        assert!(tokens <= budget && tokens > budget / 2, "{tokens} of {budget}");
    }
    let none = choose(&session, &[], Some(1)).unwrap();
    assert_eq!(none.turns(), (19, 1), "the last exchange stays whatever the budget");
}

#[test]
fn sessions_that_cannot_be_compressed_are_refused() {
    let short = session(&log("u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\""));
    assert_eq!(choose(&short, &[], None).err(), Some(CompressError::TooShort));
    let small = session(&log(
        "u1 user \"hi\"\na1 <- u1 reply m1 text \"Hello.\"\nu2 <- a1 user \"ho\"\na2 <- u2 reply m2 text \"Yes.\"",
    ));
    assert_eq!(choose(&small, &[], None).err(), Some(CompressError::NoGain));
    assert_eq!(choose(&session(b""), &[], None).err(), Some(CompressError::NoConversation));
}

#[test]
fn a_long_turn_is_split_between_replies() {
    let mut notation = "u0 user \"go\"\n".to_owned();
    let mut before = "u0".to_owned();
    for i in 1..=40 {
        let output = "output ".repeat(60);
        notation += &format!(
            "a{i} <- {before} reply m{i} tool t{i} Bash {{\"command\":\"step {i}\"}}\nr{i} <- a{i} result t{i} \"{output}\"\n"
        );
        before = format!("r{i}");
    }
    notation += &format!("a41 <- {before} reply m41 text \"Done.\"");
    let session = session(&log(&notation));
    let compression = choose(&session, &[], None).unwrap();
    let plan = plan(&session, new(), |draft| compression.apply(draft, &compression.summary(), false));
    assert_eq!(plan.refusals(), [""; 0]);
    let result = Session::from_bytes(&plan.to_bytes());
    assert!(result.findings().is_empty(), "{:?}", result.findings());
    assert!(result.tool_calls().iter().all(|call| call.results.len() == 1));
    assert!(
        plan.tokens_after() < plan.tokens_before() / 2,
        "{} → {}",
        plan.tokens_before(),
        plan.tokens_after()
    );
}
