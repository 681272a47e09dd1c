//! Tests of the context ledger: parts, cache misses, unused output.

use threadline_testkit::log;

use super::*;

fn ledger(notation: &str) -> ContextLedger {
    ContextLedger::of(&Session::from_bytes(&log(notation)))
}

/// Renders a call per line: window, parts, miss.
fn render(ledger: &ContextLedger) -> String {
    let call = |call: &ContextCall| {
        let parts: Vec<String> =
            call.parts.iter().map(|(part, tokens)| format!("{} {tokens}", part.label())).collect();
        assert_eq!(call.parts.iter().map(|(_, tokens)| tokens).sum::<u64>(), call.window());
        let miss = call
            .miss
            .map_or_else(String::new, |miss| format!(" missed {} ({})", miss.tokens, miss.reason.name()));
        format!("{} {} {:+}: {}{miss}", call.anchor, call.window(), call.growth, parts.join(", "))
    };
    ledger.calls.iter().map(call).collect::<Vec<_>>().join("\n")
}

#[test]
fn parts_add_up_to_the_recorded_window() {
    let text = "x".repeat(2000);
    let notation = format!(
        r#"
            u1        user   "look"
            a1 <- u1  reply  m1 tool t1 Read {{"file_path":"/a"}} usage={{"input_tokens":10000,"output_tokens":50}}
            r1 <- a1  result t1 "{text}"
            a2 <- r1  reply  m2 tool t2 Bash {{"command":"ls"}} usage={{"input_tokens":10800,"output_tokens":50}}
            r2 <- a2  result t2 "{text}{text}"
            a3 <- r2  reply  m3 text "Done." usage={{"input_tokens":12300,"output_tokens":50}}
            u2 <- a3  user   "thanks"
            a4 <- u2  reply  m4 text "Yes." usage={{"input_tokens":20000,"output_tokens":5}}
            "#
    );
    insta::assert_snapshot!(render(&ledger(&notation)), @r"
        m2 10000 +10000: system and tools 9999, prompts 1
        m4 10800 +800: system and tools 10000, prompts 1, tool calls 9, Read results 790
        m6 12300 +1500: system and tools 10001, prompts 1, tool calls 17, Bash results 1491, Read results 790
        m8 20000 +7700: system and tools 17697, prompts 3, replies 2, tool calls 17, Bash results 1491, Read results 790
        ");
}

#[test]
fn a_notification_of_a_task_has_a_title() {
    let notification = |end: &str| {
        let usage = r#"usage={"input_tokens":10000,"output_tokens":50}"#;
        let ledger = ledger(&format!(
            "u1 user \"<task-notification>\\n<task-id>b1</task-id>{end}\"\na1 <- u1 reply m1 text \"Good.\" {usage}"
        ));
        ledger.calls[0].added[0].label.clone()
    };
    assert_eq!(
        notification("<status>completed</status><summary>Loom built</summary></task-notification>"),
        "Background task finished: Loom built"
    );
    assert_eq!(notification("</task-notification>"), "Background task finished");
}

#[test]
fn cache_misses_have_reasons() {
    let usage = |read: u64, write: u64, hour: bool| {
        let (minutes, hours) = if hour { (0, write) } else { (write, 0) };
        format!(
            r#"usage={{"input_tokens":5,"cache_read_input_tokens":{read},"cache_creation_input_tokens":{write},"cache_creation":{{"ephemeral_5m_input_tokens":{minutes},"ephemeral_1h_input_tokens":{hours}}},"output_tokens":1}}"#
        )
    };
    let notation = format!(
        r#"
            u1        user   "one"
            a1 <- u1  reply  m1 text "1" {}
            u2 <- a1  user   "two" @+4m
            a2 <- u2  reply  m2 text "2" {}
            u3 <- a2  user   "three" @+6m
            a3 <- u3  reply  m3 text "3" {}
            u4 <- a3  user   "four" @+6m
            a4 <- u4  reply  m4 text "4" {}
            u5 <- a4  user   "five" @+61m
            a5 <- u5  reply  m5 text "5" {}
            u6 <- a5  user   "six"
            a6 <- u6  reply  m6 text "6" {}
            u7 <- a6  user   "seven"
            a7 <- u7  reply  m7 text "7" model=claude-haiku-4-5 {}
            "#,
        usage(0, 9000, false),
        usage(9000, 100, false),
        usage(0, 9200, true),
        usage(9200, 100, true),
        usage(0, 9400, true),
        usage(0, 9500, true),
        usage(0, 9600, true),
    );
    let found: Vec<_> =
        ledger(&notation).calls.iter().map(|call| call.miss.map(|miss| miss.reason.name())).collect();
    let expected =
        [None, None, Some("expired_5m"), None, Some("expired_1h"), Some("unknown"), Some("model_switch")];
    assert_eq!(found, expected);
}

#[test]
fn output_is_used_if_a_line_recurs_later() {
    let ledger = ledger(
        r#"
            u1        user   "look"
            a1 <- u1  reply  m1 tool t1 Read {"file_path":"/a"} usage={"input_tokens":10000,"output_tokens":50}
            r1 <- a1  result t1 "     1→let answer = 42;\n     2→let other = 1;"
            a2 <- r1  reply  m2 tool t2 Bash {"command":"ls"} usage={"input_tokens":10000,"output_tokens":50}
            r2 <- a2  result t2 "one file that nobody needs\nok"
            a3 <- r2  reply  m3 tool t3 Bash {"command":"date"} usage={"input_tokens":10000,"output_tokens":50}
            r3 <- a3  result t3 "ok"
            a4 <- r3  reply  m4 tool t4 Edit {"file_path":"/a","old_string":"  let answer = 42;","new_string":"x"} usage={"input_tokens":10000,"output_tokens":50}
            r4 <- a4  result t4 "done"
            a5 <- r4  reply  m5 text "Done." usage={"input_tokens":10000,"output_tokens":50}
            "#,
    );
    let unused: Vec<&str> = ledger.unused.iter().map(|item| &*item.anchor).collect();
    assert_eq!(unused, ["m4"]);
}

#[test]
fn the_results_of_very_many_tools_are_one_part() {
    let mut notation = "u1 user \"go\"\n".to_owned();
    let mut parent = "u1".to_owned();
    for n in 0..150 {
        notation.push_str(&format!(
            "a{n} <- {parent} reply m{n} tool t{n} mcp__a__{n} {{}} usage={{\"input_tokens\":{},\"output_tokens\":5}}\nr{n} <- a{n} result t{n} \"{}\"\n",
            10_000 + 300 * n,
            "x".repeat(1_000)
        ));
        parent = format!("r{n}");
    }
    let ledger = ledger(&notation);
    let last = ledger.calls.last().unwrap();
    assert_eq!(last.parts.len(), MAX_PARTS + 1);
    assert!(last.parts.iter().any(|(part, _)| part.label() == "other tools results"));
    assert_eq!(last.parts.iter().map(|(_, tokens)| tokens).sum::<u64>(), last.window());
}
