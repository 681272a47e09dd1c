//! Explanations of records, and comparison with Claude Code's own account.

use threadline_usage::{PriceBook, RecordVerdict, reconcile};

use crate::TestLogs;

fn explanations(home: &TestLogs) -> Vec<String> {
    let records = home.calls().explain(&PriceBook::embedded(), |_, _| true);
    let line = |record: &threadline_usage::RecordExplanation| {
        let verdict = match &record.verdict {
            RecordVerdict::Counted => format!("counted ${}", record.cost.unwrap_or_default()),
            RecordVerdict::Rejected(reason) => format!("{}: {reason}", reason.name()),
        };
        format!("{}:{} {verdict}", record.path, record.line)
    };
    records.iter().map(line).collect()
}

#[test]
fn every_record_is_explained() {
    let main = r#"
u1        user "go"
a1 <- u1  reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":1}
a2 <- a1  reply msg_1 text "b" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":9}
p1 <- a2  progress agent t1 {"message":{"type":"assistant","message":{"id":"msg_3","model":"claude-opus-5","usage":{"input_tokens":1}}}}
a3 <- p1  reply msg_4 text "no" model="<synthetic>"
a4 <- a3  reply msg_5 text "no" +{"isApiErrorMessage":true}
raw {"type":"assistant","message":{"id":"msg_6","model":"x","usage":null}}
raw {"type":"assistant","message":{"id":"msg_7","usage" oops
"#;
    let fork = r#"
a1        reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100,"output_tokens":1} @10:00:01
a2 <- a1  reply msg_2 text "b" model=claude-opus-5 usage={"input_tokens":1} @12:00:00
"#;
    let home = TestLogs::default().session("s1", main).session("s2", fork).agent(
        "s1",
        "a1",
        "b1 reply msg_3 text \"x\" model=claude-opus-5 usage={\"input_tokens\":1}",
    );
    assert_eq!(
        explanations(&home),
        [
            "s1.jsonl:2 same-reply: same reply, counted at line 3",
            "s1.jsonl:3 counted $0.000725",
            "s1.jsonl:4 progress: sub-agent progress, counted at s1/agent-a1.jsonl:1",
            "s1.jsonl:5 synthetic: synthetic message, no model call",
            "s1.jsonl:6 api-error: failed call",
            "s1.jsonl:7 no-figures: no usage data",
            "s1.jsonl:8 broken: invalid JSON",
            "s1/agent-a1.jsonl:1 counted $0.000005",
            "s2.jsonl:1 inherited: inherited, counted at s1.jsonl:3",
            "s2.jsonl:2 counted $0.000005",
        ]
    );
    assert_eq!(home.calls().n_invalid_lines(), 1);
}

#[test]
fn counted_records_add_up_to_the_total() {
    let home = TestLogs::default()
        .session("s1", "a1 reply msg_1 text \"a\" usage={\"input_tokens\":10}\na2 reply msg_1 text \"b\" usage={\"input_tokens\":10}")
        .session("s2", "a1 reply msg_1 text \"a\" usage={\"input_tokens\":10}\na2 reply msg_2 text \"b\" usage={\"input_tokens\":5}");
    let records = home.calls().explain(&PriceBook::embedded(), |_, _| true);
    let counted: Vec<_> = records.iter().filter(|record| record.verdict == RecordVerdict::Counted).collect();
    assert_eq!(counted.len() as u64, home.total().calls);
    assert_eq!(
        counted.iter().filter_map(|record| record.cost).sum::<threadline_usage::Money>(),
        home.total().cost
    );
}

#[test]
fn an_incomplete_last_line_is_not_a_record() {
    let whole = threadline_testkit::log_of("s1", "a1 reply msg_1 text \"a\" usage={\"input_tokens\":10}");
    let mut bytes = whole.clone();
    bytes.extend(&whole[..whole.len() - 30]);
    let calls = TestLogs::default().bytes("s1", bytes).calls();
    assert_eq!((calls.len(), calls.n_invalid_lines(), calls.n_incomplete_logs()), (1, 0, 1));
}

#[test]
fn our_totals_are_compared_with_claude_codes_account() {
    let log = r#"
a1        reply msg_1 text "a" model=claude-opus-5 usage={"input_tokens":100000,"output_tokens":10}
entry cost-state {"totalCostUSD":0.1,"modelUsage":{}}
entry cost-state {"totalCostUSD":0.61025,"hasUnknownModelCost":false,"modelUsage":{"claude-opus-5[1m]":{"inputTokens":100000,"outputTokens":10,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"costUSD":0.50025},"claude-haiku-4-5-20251001":{"inputTokens":100000,"outputTokens":2000,"costUSD":0.11}}}
"#;
    let home = TestLogs::default().session("s1", log).session("s2", "a1 reply msg_2 text \"a\"");
    let [session] = reconcile(&home.calls(), &PriceBook::embedded(), |_| true).try_into().unwrap();
    assert_eq!(
        (session.ours.cost.to_string(), session.theirs.cost.to_string()),
        ("0.50025".into(), "0.61025".into())
    );
    assert_eq!(
        session.reasons,
        ["claude-haiku-4-5: Claude Code reports +100000 input, +2000 output tokens (no calls in the log)"]
    );
}
