//! The shortcut for plain replies must not change any figure.

use proptest::prelude::*;
use threadline_usage::GroupBy;

use crate::TestLogs;

/// Generates mostly the first of these, so that lines share a layout until one differs.
fn mostly(texts: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop_oneof![60 => Just(texts[0]), 1 => prop::sample::select(texts)]
}

fn any_reply() -> impl Strategy<Value = String> {
    let line = (
        mostly(&[r#""assistant""#, r#""user""#, r#""assist\u0061nt""#]),
        prop::sample::select(
            &[
                r#""2026-11-01T10:00:00.000Z""#,
                r#""2026-11-02T10:00:00.500Z""#,
                r#""2026-11-02""#,
                "null",
                "7",
            ][..],
        ),
        mostly(&["false", "true", "null"]),
        mostly(&[r#""main""#, r#""other""#, r#""m\u0061in""#, r#""ünter""#, r#""""#]),
        mostly(&[r#""2.1.300""#, r#""2.1.20""#]),
        mostly(&[
            "",
            r#""isApiErrorMessage":true,"#,
            r#""isApiErrorMessage":false,"#,
            r#""forkedFrom":{"sessionId":"s0"},"#,
            r#""requestSessionId":"s0","#,
        ]),
    );
    let message = (
        prop_oneof![6 => (0..5u8).prop_map(|n| format!(r#""msg_{n}""#)), 1 => Just(r#""msg_\u0031""#.to_owned()), 1 => Just(r#""gen-1""#.to_owned()), 1 => Just("null".to_owned())],
        mostly(&[
            r#""claude-opus-4-6""#,
            r#""claude-haiku-4-5""#,
            r#""<synthetic>""#,
            r#""no-such-model""#,
            "null",
        ]),
        prop::sample::select(&["null", r#""end_turn""#, r#""tool_use""#][..]),
        mostly(&[
            r#"[{"type":"tool_use","id":"t1","name":"Bash","input":{"name":"x"}}]"#,
            "[]",
            r#"[{"type":"text","text":"},\"usage\":{\"a\":1}}"},{"type":"tool_use","id":"t2","name":"Read"}]"#,
        ]),
    );
    let usage = (
        prop::sample::select(&["0", "3", "1200", "5000000000", "1e2", "null", "-1"][..]),
        0..2000u32,
        mostly(&["0", "2", "\"1\""]),
        mostly(&[r#""standard""#, r#""fast""#]),
        mostly(&[r#""not_available""#, r#""us""#]),
        mostly(&[
            "[]",
            r#"[{"type":"advisor_message","model":"claude-opus-4-6","input_tokens":5,"output_tokens":6}]"#,
        ]),
    );
    (line, message, usage).prop_map(|(line, message, usage)| {
        let (kind, at, sidechain, branch, version, more) = line;
        let (id, model, stop, content) = message;
        let (input, output, searches, speed, geo, iterations) = usage;
        let usage = format!(
            r#"{{"input_tokens":{input},"cache_creation_input_tokens":{output},"server_tool_use":{{"web_search_requests":{searches}}},"speed":{speed},"inference_geo":{geo},"iterations":{iterations},"output_tokens":{output}}}"#
        );
        let message = format!(
            r#"{{"model":{model},"id":{id},"role":"assistant","content":{content},"stop_reason":{stop},"usage":{usage}}}"#
        );
        format!(
            r#"{{"isSidechain":{sidechain},"sessionId":"s1","version":{version},"gitBranch":{branch},"message":{message},{more}"type":{kind},"timestamp":{at}}}"#
        )
    })
}

proptest! {
    #[test]
    fn plain_and_full_scans_agree(
        lines in prop::collection::vec(any_reply(), 1..40),
        cut in 0..40usize
    ) {
        // The second log is scanned with the cache of the first.
        let (first, second) = lines.split_at(cut.min(lines.len()));
        let log = |lines: &[String]| lines.join("\n") + "\n";
        let second = log(second).replace("\"s1\"", "\"s2\"").replace("msg_", "msg_2");
        let read = TestLogs::default().bytes("s1", log(first)).bytes("s2", second).read();
        for by in [GroupBy::Day, GroupBy::Model, GroupBy::Branch, GroupBy::Session, GroupBy::Tool] {
            // `groups` compares the scans.
            read.groups(by);
        }
    }
}
