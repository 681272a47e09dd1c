//! The cost of single calls: one rule per case.

use serde_json::{Value, json};
use threadline_testkit::shared;
use threadline_usage::{GroupBy, UsageTotals};

use crate::TestLogs;

/// Returns a line of a session as written by 2.1.300.
fn line(id: &str, model: &str, usage: Value) -> Value {
    json!({
        "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/home/ada/loom", "sessionId": "s1",
        "version": "2.1.300", "type": "assistant", "uuid": format!("u-{id}"), "timestamp": "2026-11-01T10:00:00.000Z",
        "message": {"id": id, "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn", "usage": usage},
        "requestId": format!("req-{id}"),
    })
}

fn usage(input: u64, output: u64, write: u64, read: u64) -> Value {
    json!({"input_tokens": input, "output_tokens": output, "cache_creation_input_tokens": write, "cache_read_input_tokens": read})
}

/// Returns the same figures with additional keys.
fn usage_and(input: u64, write: u64, more: Value) -> Value {
    let mut usage = usage(input, 0, write, 0);
    usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    usage
}

fn changed(mut line: Value, change: impl Fn(&mut Value)) -> Value {
    change(&mut line);
    line
}

fn without(line: Value, key: &str) -> Value {
    changed(line, |line| drop(line.as_object_mut().unwrap().remove(key)))
}

fn total(lines: &[Value]) -> UsageTotals {
    let bytes: String = lines.iter().map(|line| format!("{line}\n")).collect();
    TestLogs::default().bytes("s1", bytes).total()
}

/// The figures that Claude Code 2.1.325 wrote to `cost-state` for one call of each model.
#[test]
fn claude_code_itself_has_the_same_prices() {
    let call = |model: &str, input: u64, more: Value| {
        let mut usage = usage(input, 107, 353, 7001);
        usage["cache_creation"] = json!({"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 53});
        usage.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        total(&[line("msg_1", model, usage)]).cost.to_string()
    };
    // Standard, restricted to the United States, fast mode.
    for (model, plain, us, fast) in [
        ("claude-opus-5-5", "0.0094762", "0.01042382", "0.0189524"),
        ("claude-opus-5", "0.0135955", "0.01495505", "0.027191"),
        ("claude-opus-4-8", "0.0135955", "0.01495505", "0.027191"),
        ("claude-opus-4-7", "0.0135955", "0.01495505", "0.081573"),
        ("claude-opus-4-6", "0.0135955", "0.01495505", "0.081573"),
        ("claude-opus-4-5", "0.0135955", "", ""),
        ("claude-opus-4", "0.0407865", "", ""),
        ("claude-sonnet-5-5", "0.0047381", "0.00521191", ""),
        ("claude-sonnet-5", "0.0054382", "0.00598202", ""),
        ("claude-sonnet-4-6", "0.0081573", "0.00897303", ""),
        ("claude-sonnet-4-5", "0.0081573", "", ""),
        ("claude-sonnet-4", "0.0081573", "", ""),
        ("claude-haiku-5-5", "0.00027191", "0.000299101", ""),
        ("claude-haiku-4-5", "0.0027191", "", ""),
        ("claude-fable-5-1", "0.02194025", "0.024134275", ""),
        ("claude-fable-5", "0.027191", "0.0299101", ""),
        ("claude-mythos-5-1", "0.02194025", "0.024134275", ""),
        ("claude-mythos-5", "0.027191", "0.0299101", ""),
        ("claude-3-7-sonnet", "0.0081573", "", ""),
        ("claude-3-5-sonnet", "0.0081573", "", ""),
        ("claude-3-5-haiku", "0.00217528", "", ""),
    ] {
        assert_eq!(call(model, 1003, json!({})), plain, "{model}");
        if !us.is_empty() {
            assert_eq!(call(model, 1003, json!({"inference_geo": "us"})), us, "{model}");
        }
        if !fast.is_empty() {
            assert_eq!(call(model, 1003, json!({"speed": "fast"})), fast, "{model}");
        }
    }
    // More than 200,000 input tokens, at current prices.
    for (model, long) in [
        ("claude-opus-4-6", "1.2585805"),
        ("claude-sonnet-4-6", "0.7551483"),
        ("claude-sonnet-4-5", "0.7551483"),
        ("claude-sonnet-4", "0.7551483"),
        ("claude-haiku-5-5", "0.12585805"),
    ] {
        assert_eq!(call(model, 250_000, json!({})), long, "{model}");
    }
    let searched = json!({"server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 0}});
    assert_eq!(call("claude-opus-5", 1003, searched), "0.0435955");
}

#[test]
fn every_rule_of_the_price_list_holds() {
    let plain = |id: &str| line(id, "claude-opus-5", usage(100_000, 0, 0, 0));
    let parts = |short: u64, long: u64| json!({"cache_creation": {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": long}});
    let opus = |usage: Value| line("msg_1", "claude-opus-5", usage);
    let growing = |n: u64, uuid: &str| {
        changed(line("msg_1", "claude-opus-5", usage(0, n, 0, 0)), |line| line["uuid"] = uuid.into())
    };
    let later = |line: Value| changed(line, |line| line["timestamp"] = "2026-11-01T10:00:01.000Z".into());
    let tool = json!([{"type": "tool_use", "id": "toolu_1", "name": "X", "input": {"id": null, "q": "x"}}]);
    let steps = json!({"iterations": [
        {"type": "message", "input_tokens": 100_000, "output_tokens": 0},
        {"type": "advisor_message", "model": "claude-haiku-4-5", "input_tokens": 100_000, "output_tokens": 0}]});
    let cases: Vec<(&str, Vec<Value>, &str)> = vec![
        ("plain input", vec![plain("msg_1")], "0.5"),
        (
            "a tool input with id null",
            vec![changed(plain("msg_1"), |line| line["message"]["content"] = tool.clone())],
            "0.5",
        ),
        (
            "a long request is charged at the long rate throughout",
            vec![line("msg_1", "claude-haiku-5-5", usage(150_000, 0, 0, 0))],
            "0.075",
        ),
        (
            "a request that is long because of its cache",
            vec![line("msg_1", "claude-haiku-5-5", usage(10, 0, 0, 150_000))],
            "0.007505",
        ),
        ("one-hour cache", vec![opus(usage_and(0, 100_000, parts(0, 100_000)))], "1"),
        ("flat cache write", vec![opus(usage(0, 0, 100_000, 0))], "0.625"),
        ("zero parts and a flat write", vec![opus(usage_and(0, 100_000, parts(0, 0)))], "0.625"),
        (
            "parts that are less than the total",
            vec![opus(usage_and(0, 100_000, parts(10_000, 50_000)))],
            "0.8125",
        ),
        ("fast mode", vec![opus(usage_and(100_000, 0, json!({"speed": "fast"})))], "1"),
        ("in the United States", vec![opus(usage_and(100_000, 0, json!({"inference_geo": "us"})))], "0.55"),
        ("elsewhere", vec![opus(usage_and(100_000, 0, json!({"inference_geo": "not_available"})))], "0.5"),
        (
            "ten web searches",
            vec![opus(usage_and(
                100_000,
                0,
                json!({"server_tool_use": {"web_search_requests": 10, "web_fetch_requests": 3}}),
            ))],
            "0.6",
        ),
        ("three growing lines", vec![growing(1, "a"), growing(1, "b"), growing(100_000, "c")], "2.5"),
        (
            "no request id, two moments",
            vec![without(plain("msg_1"), "requestId"), later(without(plain("msg_1"), "requestId"))],
            "0.5",
        ),
        (
            "a gateway's id, two moments",
            vec![without(plain("chatcmpl-9"), "requestId"), later(without(plain("chatcmpl-9"), "requestId"))],
            "0.5",
        ),
        ("an odd version", vec![changed(plain("msg_1"), |line| line["version"] = "dev".into())], "0.5"),
        ("costUSD null", vec![changed(plain("msg_1"), |line| line["costUSD"] = Value::Null)], "0.5"),
        (
            "no long-context price any more",
            vec![line("msg_1", "claude-sonnet-4-5-20250929", usage(300_000, 1000, 0, 0))],
            "0.915",
        ),
        ("sonnet 5", vec![line("msg_1", "claude-sonnet-5", usage(100_000, 0, 0, 0))], "0.2"),
        ("cheap reads", vec![line("msg_1", "claude-fable-5-1", usage(0, 0, 0, 1_000_000))], "0.25"),
        (
            "a date in the name",
            vec![line("msg_1", "claude-haiku-4-5-20251001", usage(100_000, 0, 0, 0))],
            "0.1",
        ),
        (
            "Bedrock in one region",
            vec![line("msg_1", "us.anthropic.claude-opus-4-6-v1", usage(100_000, 0, 0, 0))],
            "0.55",
        ),
        ("the window in the name", vec![line("msg_1", "claude-opus-5[1m]", usage(100_000, 0, 0, 0))], "0.5"),
        ("an advisor with a different model", vec![opus(usage_and(100_000, 0, steps))], "0.6"),
    ];
    for (what, lines, cost) in cases {
        let total = total(&lines);
        assert_eq!(total.cost.to_string(), cost, "{what}");
        assert!(total.unpriced.is_empty(), "{what}");
    }
}

#[test]
fn spaces_in_the_json_change_nothing() {
    let line = line("msg_1", "claude-opus-5", usage(100_000, 0, 0, 0)).to_string();
    let spaced = line.replace("\":", "\": ").replace(",\"", ", \"");
    assert_eq!(TestLogs::default().bytes("s1", spaced).total().cost.to_string(), "0.5");
}

#[test]
fn one_message_in_two_sessions_is_counted_once_over_both() {
    let line = line("msg_O", "claude-opus-5", usage(100_000, 0, 0, 0));
    let other = changed(line.clone(), |line| line["sessionId"] = "s2".into());
    let home = TestLogs::default().bytes("s1", format!("{line}\n")).bytes("s2", format!("{other}\n"));
    assert_eq!(home.total().cost.to_string(), "0.5");
    assert_eq!(home.calls().inherited().into_iter().collect::<Vec<_>>(), [("s2", 1)]);
}

#[test]
fn a_workflow_agent_is_counted_in_addition_to_the_session() {
    let main = line("msg_Z", "claude-opus-5", usage(1, 0, 0, 0));
    let agent = changed(line("msg_Zs", "claude-opus-5", usage(100_000, 0, 0, 0)), |line| {
        line["isSidechain"] = true.into()
    });
    let mut home = TestLogs::default().bytes("s1", format!("{main}\n"));
    let kind = threadline_entry::AgentKind::Workflow;
    let source = threadline_usage::LogSource::session("s1/subagents/workflows/wf_1/agent-a1.jsonl", "s1")
        .agent("a1", kind);
    home.0.push((source, format!("{agent}\n").into()));
    assert_eq!(home.total().cost.to_string(), "0.500005");
    assert_eq!(
        home.formatted_groups(GroupBy::Session),
        ["s1 /home/ada/loom: 2 calls, 100001 in, 0 out, $0.500005"]
    );
}

#[test]
fn a_model_without_a_price_is_reported_and_not_guessed() {
    let total = total(&[
        line("msg_1", "claude-nova-9", usage(100_000, 0, 0, 0)),
        line("msg_2", "claude-opus-5", usage(100_000, 0, 0, 0)),
        line("msg_3", "claude-sonnet-5", usage_and(100_000, 0, json!({"speed": "fast"}))),
    ]);
    assert_eq!(total.unpriced.iter().collect::<Vec<_>>(), ["claude-nova-9", "claude-sonnet-5 (fast)"]);
    assert_eq!((total.unpriced_calls, total.cost.to_string()), (2, "0.5".to_owned()));
}

#[test]
fn prices_are_those_of_the_day() {
    let on = |day: &str, model: &str| {
        let line = line("msg_1", model, usage(300_000, 0, 0, 0));
        total(&[changed(line, |line| line["timestamp"] = format!("{day}T12:00:00Z").into())]).cost.to_string()
    };
    assert_eq!(on("2026-03-12", "claude-opus-4-6"), "3");
    assert_eq!(on("2026-03-13", "claude-opus-4-6"), "1.5");
    assert_eq!(on("2026-04-30", "claude-sonnet-4-5"), "1.8");
    assert_eq!(on("2026-05-01", "claude-sonnet-4-5"), "0.9");
    assert_eq!(on("2020-01-01", "claude-haiku-4-5"), "0.3");
}

/// The shared probe, read from its directory.
#[test]
fn the_shared_probe_comes_out_as_expected() {
    let Some(shared) = shared() else { return };
    let folder = shared.join("cost-probe");
    let Ok(expected) = std::fs::read_to_string(folder.join("expected.tsv")) else { return };
    for row in expected.lines().skip(1) {
        let mut cells = row.split('\t');
        let (case, cost) = (cells.next().unwrap(), cells.next().unwrap());
        let cases: Vec<String> = match case.strip_suffix("a+b") {
            Some(stem) => vec![format!("{stem}a"), format!("{stem}b")],
            None => vec![case.to_owned()],
        };
        let mut home = TestLogs::default();
        for case in cases {
            for path in crate::corpus::logs_below(&folder.join("projects").join(case)) {
                home.0.push((crate::corpus::source(&path), std::fs::read(&path).unwrap()));
            }
        }
        let total = home.total();
        match cost {
            "unpriced" => assert_eq!(total.unpriced_calls, total.calls, "{case}"),
            cost => {
                let number: f64 = cost.parse().unwrap();
                assert!((total.cost.to_f64() - number).abs() < 1e-12, "{case}: {} for {cost}", total.cost);
                assert_eq!(total.unpriced_calls, 0, "{case}");
            }
        }
    }
}
