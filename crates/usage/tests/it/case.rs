//! Cases that other tools got wrong, each with its number in our list.

use jiff::tz::TimeZone;
use threadline_usage::{CallGroups, GroupBy, PriceBook, ScanOptions};

use crate::{TestLogs, figures};

const OPUS: &str = "model=claude-opus-5";

fn total(notation: &str) -> String {
    figures(&TestLogs::default().session("s1", &notation.replace("OPUS", OPUS)).total())
}

#[test]
fn u01_a_reply_on_several_lines_counts_once() {
    let log = r#"
a1        reply msg_1 thinking "hm" OPUS usage={"input_tokens":100,"output_tokens":10}
a2 <- a1  reply msg_1 text "yes" OPUS usage={"input_tokens":100,"output_tokens":10}
a3 <- a2  reply msg_1 tool t1 Bash {} OPUS usage={"input_tokens":100,"output_tokens":10}
"#;
    assert_eq!(total(log), "1 calls, 100 in, 10 out, $0.00075");
}

#[test]
fn u02_the_last_of_growing_lines_counts() {
    let log = r#"
a1        reply msg_1 text "a" OPUS usage={"input_tokens":100,"output_tokens":1}
a2 <- a1  reply msg_1 text "b" OPUS stop="end_turn" usage={"input_tokens":100,"output_tokens":900}
"#;
    assert_eq!(total(log), "1 calls, 100 in, 900 out, $0.023");
}

#[test]
fn u03_a_complete_line_may_precede_a_smaller_one() {
    let log = r#"
a1        reply msg_1 text "a" OPUS usage={"input_tokens":100,"output_tokens":900}
a2 <- a1  reply msg_1 text "b" OPUS usage={"input_tokens":100,"output_tokens":1}
"#;
    assert_eq!(total(log), "1 calls, 100 in, 900 out, $0.023");
    let stopped = log.replace("\"a\" OPUS", "\"a\" OPUS stop=\"end_turn\"").replace("900", "9");
    assert_eq!(
        total(&stopped.replace(":1}", ":50}")),
        "1 calls, 100 in, 9 out, $0.000725",
        "the one that came to its end"
    );
}

#[test]
fn u04_without_a_request_id_a_reply_still_counts_once() {
    let log = r#"
a1        reply msg_1 text "a" OPUS -requestId usage={"input_tokens":100}
a2 <- a1  reply msg_1 text "b" OPUS -requestId usage={"input_tokens":100}
b1 <- a2  reply chatcmpl-1 text "a" OPUS -requestId usage={"input_tokens":100}
b2 <- b1  reply chatcmpl-1 text "b" OPUS -requestId usage={"input_tokens":100}
"#;
    assert_eq!(total(log), "2 calls, 200 in, 0 out, $0.001");
}

#[test]
fn u05_a_placeholder_of_zeros_is_replaced() {
    let log = r#"
a1        reply msg_1 text "" OPUS
a2 <- a1  reply msg_1 text "b" OPUS usage={"input_tokens":100,"output_tokens":10}
a3 <- a2  reply msg_1 text "" OPUS
"#;
    assert_eq!(total(log), "1 calls, 100 in, 10 out, $0.00075");
}

#[test]
fn u06_a_copy_in_another_session_is_inherited() {
    let shared = r#"
queue enqueue "x" @09:00:00
a1        reply msg_1 text "a" model=claude-opus-5 branch=main usage={"input_tokens":100} @10:00:00
"#;
    let fork = r#"
queue enqueue "x" @12:00:00
a1        reply msg_1 text "a" model=claude-opus-5 branch=side usage={"input_tokens":100} @10:00:00
a2 <- a1  reply msg_2 text "b" model=claude-opus-5 branch=side usage={"input_tokens":10} @12:00:01
"#;
    // The fork has the smaller name, so that the order of names cannot decide.
    let home = TestLogs::default().session("a-fork", fork).session("b-origin", shared);
    assert_eq!(
        home.formatted_groups(GroupBy::Session),
        [
            "b-origin /home/ada/loom: 1 calls, 100 in, 0 out, $0.0005",
            "a-fork /home/ada/loom: 1 calls, 10 in, 0 out, $0.00005"
        ]
    );
    assert_eq!(
        home.formatted_groups(GroupBy::Branch),
        [
            "/home/ada/loom main: 1 calls, 100 in, 0 out, $0.0005",
            "/home/ada/loom side: 1 calls, 10 in, 0 out, $0.00005"
        ]
    );
    assert_eq!(home.calls().inherited()["a-fork"], 1);
}

#[test]
fn u06_a_line_marked_as_a_copy_owns_nothing() {
    let line = "a1 reply msg_1 text \"a\" model=claude-opus-5 usage={\"input_tokens\":100}";
    let fork = format!("{line} +{{\"forkedFrom\":{{\"sessionId\":\"b\",\"messageUuid\":\"a1\"}}}}");
    let home = TestLogs::default().session("a", &fork).session("b", line);
    assert_eq!(
        home.formatted_groups(GroupBy::Session),
        ["b /home/ada/loom: 1 calls, 100 in, 0 out, $0.0005"]
    );
}

#[test]
fn u06_a_copied_call_belongs_to_the_session_that_made_the_request() {
    // Lines of a fork have the times of their origin, and names cannot decide.
    let by = |session: &str| format!("+{{\"requestSessionId\":\"{session}\"}}");
    let line = |n: u32, more: &str| {
        format!(
            "a{n} reply msg_{n} text \"x\" model=claude-opus-5 usage={{\"input_tokens\":{n}00}} @10:00:0{n} {more}\n"
        )
    };
    let origin = line(1, "") + &line(2, "");
    let fork = line(1, &by("c-origin")) + &line(2, &by("c-origin")) + &line(3, "");
    let second =
        line(1, &by("c-origin")) + &line(2, &by("c-origin")) + &line(3, &by("b-fork")) + &line(4, "");
    let home = TestLogs::default()
        .session("a-second", &second)
        .session("b-fork", &fork)
        .session("c-origin", &origin);
    assert_eq!(
        home.formatted_groups(GroupBy::Session),
        [
            "c-origin /home/ada/loom: 2 calls, 300 in, 0 out, $0.0015",
            "b-fork /home/ada/loom: 1 calls, 300 in, 0 out, $0.0015",
            "a-second /home/ada/loom: 1 calls, 400 in, 0 out, $0.002"
        ]
    );
    let calls = home.calls();
    let ranks = calls.log_ranks();
    let rank = |session: &str| ranks[&*format!("{session}.jsonl")];
    assert!(rank("c-origin") < rank("b-fork") && rank("b-fork") < rank("a-second"));
}

#[test]
fn u07_a_gateways_id_in_two_sessions_is_two_calls() {
    let log = "a1 reply chatcmpl-1 text \"a\" model=claude-opus-5 -requestId usage={\"input_tokens\":100}";
    let home = TestLogs::default().session("s1", log).session("s2", log);
    assert_eq!(figures(&home.total()), "2 calls, 200 in, 0 out, $0.001");
    let asked = log.replace("-requestId", "req=r1");
    let home = TestLogs::default().session("s1", &asked).session("s2", &asked.replace("r1", "r2"));
    assert_eq!(home.total().calls, 2, "other requests are other calls");
    let home = TestLogs::default().session("s1", &asked).session("s2", &asked);
    assert_eq!(home.total().calls, 1, "the same request is the same call");
}

#[test]
fn u08_a_side_question_that_replays_the_conversation_counts_only_its_own_call() {
    let main =
        "a1 reply msg_1 text \"a\" model=claude-opus-5 usage={\"input_tokens\":100,\"output_tokens\":5}";
    let aside = r#"a1 reply msg_1 text "a" model=claude-opus-5 req=other usage={"input_tokens":100,"output_tokens":900}
q1 <- a1 reply msg_2 text "b" model=claude-opus-5 usage={"input_tokens":7}"#;
    let home = TestLogs::default().agent("s1", "aside_question-1", aside).session("s1", main);
    assert_eq!(figures(&home.total()), "2 calls, 107 in, 5 out, $0.00066");
    let compaction = home.agent("s1", "acompact-1", aside);
    assert_eq!(figures(&compaction.total()), "2 calls, 107 in, 5 out, $0.00066");
}

#[test]
fn u09_and_u10_agents_are_counted_with_their_session_and_hide_nothing_of_it() {
    let main = "a1 reply msg_1 text \"a\" model=claude-opus-5 usage={\"input_tokens\":100}";
    let agent = "b1 reply msg_2 text \"b\" model=claude-haiku-4-5 usage={\"input_tokens\":100}";
    let home = TestLogs::default().session("s1", main).agent("s1", "a1", agent);
    assert_eq!(
        home.formatted_groups(GroupBy::Session),
        ["s1 /home/ada/loom: 2 calls, 200 in, 0 out, $0.0006"]
    );
    let kinds: Vec<_> = home.calls().iter().map(|call| call.agent.is_some()).collect();
    assert_eq!(kinds, [false, true]);
}

#[test]
fn u09_calls_of_sub_agents_in_the_log_of_the_session_are_marked() {
    let inner = r#"{"message":{"type":"assistant","message":{"id":"msg_2","content":[],"usage":{"input_tokens":10}}},"agentId":"a1"}"#;
    let main = format!(
        "a1 reply msg_1 text \"a\" usage={{\"input_tokens\":1}}\np1 progress agent t1 {inner}\nb1 reply msg_3 text \"b\" usage={{\"input_tokens\":100}} sidechain"
    );
    let home = TestLogs::default().session("s1", &main);
    let calls = home.calls();
    let mut inputs: Vec<_> = calls.iter().map(|call| (call.tokens.input, call.agent.is_some())).collect();
    inputs.sort_unstable();
    assert_eq!(inputs, [(1, false), (10, true), (100, true)]);
}

#[test]
fn u09_progress_that_repeats_an_agent_counts_only_where_the_agents_log_is_missing() {
    let inner = r#"{"message":{"type":"assistant","uuid":"b1","requestId":"r","timestamp":"2026-01-01T10:00:00Z","message":{"id":"msg_2","model":"claude-opus-5","content":[],"usage":{"input_tokens":100,"output_tokens":1}}},"agentId":"a1"}"#;
    let main = format!("p1 progress agent t1 {inner}");
    let agent =
        "b1 reply msg_2 text \"b\" model=claude-opus-5 usage={\"input_tokens\":100,\"output_tokens\":9}";
    let alone = TestLogs::default().session("s1", &main);
    assert_eq!(figures(&alone.total()), "1 calls, 100 in, 1 out, $0.000525");
    let both = alone.agent("s1", "a1", agent);
    assert_eq!(figures(&both.total()), "1 calls, 100 in, 9 out, $0.000725");
    assert!(both.calls().iter().all(|call| call.agent.is_some()), "the call is the agent's");
}

#[test]
fn u11_and_u12_cache_writes_are_split_and_none_is_lost() {
    let log = r#"
a1        reply msg_1 text "a" OPUS usage={"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":100}}
a2 <- a1  reply msg_2 text "b" OPUS usage={"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":0,"ephemeral_1h_input_tokens":0}}
a3 <- a2  reply msg_3 text "c" OPUS usage={"cache_creation_input_tokens":100,"cache_creation":{"ephemeral_5m_input_tokens":30,"ephemeral_1h_input_tokens":50}}
"#;
    let total = TestLogs::default().session("s1", &log.replace("OPUS", OPUS)).total();
    assert_eq!((total.tokens.cache_write_5m, total.tokens.cache_write_1h), (150, 150));
    assert_eq!(total.cost.to_string(), "0.0024375");
}

// U13 (long context) and U14 (fast mode, region, web search, advisors) are rows of the table in `probe`.

#[test]
fn u14_an_advisor_is_a_separate_call() {
    let log = r#"a1 reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":10,"iterations":[{"type":"message","input_tokens":10},{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":7,"output_tokens":3}]}"#;
    let home = TestLogs::default().session("s1", &format!("{log}\n{}", log.replace("a1 ", "a2 ")));
    assert_eq!(
        home.formatted_groups(GroupBy::Model),
        [
            "claude-opus-5: 1 calls, 10 in, 0 out, $0.00005",
            "claude-haiku-4-5: 1 calls, 7 in, 3 out, $0.000022"
        ]
    );
}

#[test]
fn u15_synthetic_messages_and_failed_calls_are_not_usage() {
    let log = r#"
a1        reply msg_1 text "a" OPUS usage={"input_tokens":100}
a2 <- a1  reply msg_2 text "No response requested." model="<synthetic>" usage={"input_tokens":5}
a3 <- a2  reply msg_3 text "API Error" OPUS +{"isApiErrorMessage":true} usage={"input_tokens":5}
"#;
    assert_eq!(total(log), "1 calls, 100 in, 0 out, $0.0005");
}

#[test]
fn u16_a_call_belongs_to_the_day_of_its_first_line() {
    let log = r#"
a1        reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":1} @2026-01-01T23:59:59Z
a2 <- a1  reply msg_1 text "b" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":9} @2026-01-02T00:00:01Z
a3 <- a2  reply msg_2 text "c" model=claude-opus-5 usage={"input_tokens":100} @2026-01-02T00:00:02Z
"#;
    assert_eq!(
        TestLogs::default().session("s1", log).formatted_groups(GroupBy::Day),
        ["2026-01-01: 1 calls, 100 in, 9 out, $0.000725", "2026-01-02: 1 calls, 100 in, 0 out, $0.0005"]
    );
}

#[test]
fn u17_unusual_lines_are_counted() {
    let plain = r#"{"type":"assistant","uuid":"U","timestamp":"2026-01-01T10:00:00Z","version":"2.1.300","sessionId":"s1","message":{"id":"MSG","model":"claude-opus-5","content":[],"stop_reason":null,"usage":{"input_tokens":100,"output_tokens":0}}}"#;
    let line = |n: u32| plain.replace("MSG", &format!("msg_{n}")).replace("\"U\"", &format!("\"u{n}\""));
    let odd: Vec<Vec<u8>> = vec![
        line(1)
            .replace(
                "[]",
                r#"[{"type":"tool_use","id":"t","name":"X","input":{"id":null,"usage":{"input_tokens":9}}}]"#,
            )
            .into(),
        line(2)
            .replace("\"sessionId\"", "\"costUSD\":null,\"cwd\":null,\"requestId\":null,\"sessionId\"")
            .into(),
        line(3).replace("2.1.300", "dev").into(),
        line(4).replace("\":", "\" : ").replace(',', " , ").into(),
        line(5).replace("\"version\":\"2.1.300\",", "\"version\":null,").into(),
        // A byte order mark; invalid UTF-8; two objects on one line; an escaped key.
        [b"\xef\xbb\xbf", line(6).as_bytes()].concat(),
        line(7)
            .replace("[]", r#"[{"type":"text","text":"?"}]"#)
            .bytes()
            .flat_map(|b| if b == b'?' { vec![0xff] } else { vec![b] })
            .collect(),
        format!("{}{}", line(8), line(9)).into(),
        line(10).replace("input_tokens", "input_tok\\u0065ns").into(),
        format!("{}\r", line(11)).into(),
        line(12).replace(":100,", ":1e2,").into(),
        // No timestamp, no ids.
        line(13).replace("\"timestamp\":\"2026-01-01T10:00:00Z\",", "").into(),
        line(14).replace("\"id\":\"msg_14\",", "\"id\":null,").into(),
        line(15).replace("\"id\":\"msg_15\",", "").replace("\"uuid\":\"u15\",", "").into(),
    ];
    let mut bytes: Vec<u8> = odd.join(&b'\n');
    bytes.push(b'\n');
    let total = TestLogs::default().bytes("s1", bytes.clone()).total();
    assert_eq!(figures(&total), "15 calls, 1500 in, 0 out, $0.0075");
    let twice = TestLogs::default().bytes("s1", bytes.clone()).bytes("s1", bytes);
    assert_eq!(twice.total(), total);
}

#[test]
fn u18_versions_that_log_too_few_output_tokens_are_reported() {
    let log = r#"
a1        reply msg_1 text "a" version=2.1.58 usage={"output_tokens":1}
a2 <- a1  reply msg_2 text "b" version=1.0.108 usage={"output_tokens":1}
a3 <- a2  reply msg_3 text "c" version=2.1.59 usage={"output_tokens":1}
a4 <- a3  reply msg_4 text "d" version=dev usage={"output_tokens":1}
"#;
    assert_eq!(TestLogs::default().session("s1", log).total().under_reported, 2);
}

#[test]
fn u19_the_same_logs_twice_or_in_another_order_change_nothing() {
    let home = TestLogs::default()
        .session("s1", "a1 reply msg_1 text \"a\" model=claude-opus-5 usage={\"input_tokens\":100}")
        .session(
            "s2",
            "a1 reply msg_1 text \"a\" model=claude-opus-5 usage={\"input_tokens\":100,\"output_tokens\":7}",
        )
        .agent("s2", "a1", "b1 reply msg_2 tool t1 Bash {} model=claude-opus-5 usage={\"input_tokens\":5}");
    let by =
        [GroupBy::Day, GroupBy::Session, GroupBy::Project, GroupBy::Model, GroupBy::Tool, GroupBy::Branch];
    let groups = by.map(|by| home.groups(by));
    let mut twice = home.clone();
    twice.0.extend(home.0.iter().rev().cloned());
    let mut turned = home.clone();
    turned.0.reverse();
    assert_eq!(by.map(|by| twice.groups(by)), groups);
    assert_eq!(by.map(|by| turned.groups(by)), groups);
}

#[test]
fn u20_one_model_by_many_names_is_one_group() {
    let names = [
        "claude-opus-4-7",
        "claude-opus-4.7",
        "claude-opus-4-7-20260416",
        "claude-opus-4-7[1m]",
        "anthropic/claude-opus-4-7",
    ];
    let log: String = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            format!("a{n} reply msg_{n} text \"a\" model=\"{name}\" usage={{\"input_tokens\":100}}\n")
        })
        .collect();
    assert_eq!(
        TestLogs::default().session("s1", &log).formatted_groups(GroupBy::Model),
        ["claude-opus-4-7: 5 calls, 500 in, 0 out, $0.0025"]
    );
}

#[test]
fn u21_tools_on_later_lines_are_not_lost() {
    let log = r#"
a1        reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":101}
a2 <- a1  reply msg_1 tool t1 Bash {} model=claude-opus-5 usage={"input_tokens":101}
a3 <- a2  reply msg_1 tool t2 Bash {} model=claude-opus-5 usage={"input_tokens":101}
a4 <- a3  reply msg_1 tool t3 mcp__x__y {} model=claude-opus-5 usage={"input_tokens":101}
a5 <- a4  reply msg_2 text "b" model=claude-opus-5 usage={"input_tokens":10}
"#;
    let home = TestLogs::default().session("s1", log);
    // A call is counted with the first of its tools; tokens and cost are split.
    assert_eq!(
        home.formatted_groups(GroupBy::Tool),
        [
            "Bash: 1 calls, 51 in, 0 out, $0.0002525",
            "mcp__x__y: 0 calls, 50 in, 0 out, $0.0002525",
            "(none): 1 calls, 10 in, 0 out, $0.00005"
        ]
    );
    let uses: Vec<_> =
        home.groups(GroupBy::Tool).groups.iter().map(|group| group.totals.tool_calls).collect();
    assert_eq!(uses, [2, 1, 0]);
}

/// A session of 1000 tokens before a compaction, whose call is in no line.
fn compacted(more: &str) -> String {
    format!(
        r#"
u1        user  "go" version=2.1.325
a1 <- u1  reply msg_1 text "a" model=claude-opus-5 usage={{"input_tokens":1000,"output_tokens":10}}
b1 <- a1  boundary auto {{"preTokens":1010}}
c1 <- b1  compact-summary "In short."
a2 <- c1  reply msg_2 text "b" model=claude-opus-5 usage={{"input_tokens":100,"output_tokens":10}}
{more}"#
    )
}

/// Claude Code's own totals, from a process that began five seconds before the session.
fn cost_state(input: u64, output: u64) -> String {
    format!(
        r#"entry cost-state {{"totalCostUSD":1,"startTime":1767261595000,"modelUsage":{{"claude-opus-5":{{"inputTokens":{input},"outputTokens":{output},"costUSD":1}}}}}}"#
    )
}

#[test]
fn a_compaction_that_is_in_no_line_makes_the_cost_a_minimum() {
    let total = TestLogs::default().session("s1", &compacted("")).total();
    assert_eq!(figures(&total), "2 calls, 1100 in, 20 out, $0.006");
    assert_eq!((total.unlogged_compactions, total.is_lower_bound()), (1, true));
    assert_eq!(total.caveat().as_deref(), Some("1 compaction whose call is not logged"));
    // A fork that repeats the lines adds nothing.
    let fork = TestLogs::default().session("s1", &compacted("")).session("s2", &compacted("")).total();
    assert_eq!(fork, total);
}

#[test]
fn the_calls_of_compactions_come_from_the_totals_of_claude_code() {
    let log = compacted(&cost_state(2200, 320));
    let home = TestLogs::default().session("s1", &log);
    let total = home.total();
    assert_eq!(figures(&total), "3 calls, 2200 in, 320 out, $0.019");
    assert!(!total.is_lower_bound());
    // Totals of another time than the session say nothing.
    for other in [
        cost_state(900, 320),
        cost_state(2_000_000, 320),
        cost_state(2200, 320).replace("17672615", "17672605"),
    ] {
        let total = TestLogs::default().session("s1", &compacted(&other)).total();
        assert_eq!((total.calls, total.unlogged_compactions), (2, 1), "{other}");
    }
}

#[test]
fn absurd_numbers_of_compactions_and_totals_are_not_used() {
    let most = u64::MAX.to_string();
    let log =
        compacted(&cost_state(u64::MAX, u64::MAX).replace("1767261595000", "-1e300")).replace("1010", &most);
    let again = log.replace("b1", "b2").replace("msg_", "msg_9");
    let total = TestLogs::default().session("s1", &log).session("s2", &again).total();
    assert_eq!((total.calls, total.unlogged_compactions), (4, 2));
    let twice =
        log.replace("c1 <- b1", &format!("b3 <- a1 boundary auto {{\"preTokens\":{most}}}\nc1 <- b1"));
    assert_eq!(TestLogs::default().session("s1", &twice).total().unlogged_compactions, 2);
}

#[test]
fn totals_from_before_a_compaction_do_not_contain_it() {
    let log = compacted("").replace("b1 <- a1", &format!("{}\nb1 <- a1", cost_state(1000, 10)));
    let calls = TestLogs::default().session("s1", &log).calls_with(ScanOptions::default());
    let total =
        CallGroups::of(&calls, GroupBy::Day, &PriceBook::embedded(), &TimeZone::UTC, |_, _| true).total;
    assert_eq!((total.calls, total.unlogged_compactions), (2, 1));
}

#[test]
fn the_log_of_an_agent_that_compacts_contains_its_call() {
    let agent = "x1 user \"summarise\"\nx2 <- x1 reply msg_9 text \"In short.\" model=claude-opus-5 usage={\"input_tokens\":1010,\"output_tokens\":5}";
    let home = TestLogs::default().session("s1", &compacted("")).agent("s1", "acompact-1", agent);
    let total = home.total();
    assert_eq!((total.calls, total.unlogged_compactions), (3, 0));
}
