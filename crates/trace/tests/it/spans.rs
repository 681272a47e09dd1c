//! Spans of a session: tree, ids and times, usage, errors, events, sub-agents, content, limits.

use std::collections::BTreeMap;

use insta::assert_snapshot;
use threadline_entry::AgentKind;
use threadline_secret::Rules;
use threadline_session::{Session, Spawn, Subagent};
use threadline_testkit::log;
use threadline_trace::{ContentPolicy, Dialect, SentReplies, SpanKind, SpanOptions};
use threadline_usage::PriceBook;

use crate::render::{attributes, ids, options, spans, spans_again, spans_with, tree, turn_parts};

const TURN: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  msg_1 text "Let me look." usage={"input_tokens":10,"output_tokens":5} model=claude-opus-5
a2 <- a1  reply  msg_1 tool t1 Grep {"pattern":"sleep"} usage={"input_tokens":10,"output_tokens":50} stop=tool_use model=claude-opus-5
r1 <- a2  result t1 "src/main.rs:9"
a3 <- r1  reply  msg_2 text "A sleep." usage={"input_tokens":20,"output_tokens":7} stop=end_turn model=claude-opus-5
"#;

#[test]
fn a_turn_is_a_tree() {
    assert_snapshot!(tree(&spans(TURN)), @r#"
turn Turn 1 0..4 < {"role":"user","content":"why is it slow?"} > {"role":"assistant","content":"A sleep."}
  generation claude-opus-5 0..2 10/50 < {"role":"user","content":"why is it slow?"} > {"role":"assistant","content":"Let me look.","tool_calls":[{"id":"t1","name":"Grep"}]}
    tool Grep 2..3 < {"pattern":"sleep"} > src/main.rs:9
  generation claude-opus-5 3..4 20/7 > {"role":"assistant","content":"A sleep."}
"#);
}

#[test]
fn a_generation_lasts_from_the_previous_line_to_its_own_last_line() {
    let spans = spans(TURN);
    let generations: Vec<_> = spans.iter().filter(|span| span.kind == SpanKind::Generation).collect();
    // The prompt is at second 0, the reply's lines at 1 and 2, the result at 3, the last reply at 4.
    let seconds: Vec<_> = generations.iter().map(|span| (span.start % 60_000, span.end % 60_000)).collect();
    assert_eq!(seconds, [(0, 2000), (3000, 4000)]);
}

#[test]
fn ids_and_times_are_the_same_in_a_copy_with_other_uuids_and_another_session() {
    let copy = TURN
        .replace("u1", "x1")
        .replace("a1", "x2")
        .replace("a2", "x3")
        .replace("r1", "x4")
        .replace("a3", "x5");
    let (first, second) = (spans(TURN), spans(&copy));
    assert_eq!(ids(&first), ids(&second));
    assert_eq!(first[0].trace, second[0].trace);
    let times = |spans: &[threadline_trace::TraceSpan]| {
        spans.iter().map(|span| (span.start, span.end)).collect::<Vec<_>>()
    };
    assert_eq!(times(&first), times(&second));
}

#[test]
fn a_sub_agent_with_the_ids_of_the_conversation_makes_no_second_span() {
    let log = format!("{TURN}s1 user \"look\" sidechain\ns2 <- s1 reply msg_1 text \"Again.\" sidechain\n");
    let spans = spans(&log);
    let mut ids: Vec<_> = spans.iter().map(|span| (span.trace, span.id)).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), spans.len(), "{}", tree(&spans));
}

/// Three parts of one reply with different token counts, none of which has all maxima. The last two have the
/// same trace, so that the last span replaces the previous one.
const UNEVEN: &str = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  msg_1 text "A sleep." usage={"input_tokens":1,"output_tokens":19} model=claude-opus-5
u1        user   "why is it slow?"
a1 <- u1  reply  msg_1 text "A sleep." usage={"input_tokens":4,"output_tokens":12} model=claude-opus-5
u1        user   "why is it slow?"
a1 <- u1  reply  msg_1 text "A sleep." usage={"input_tokens":6,"output_tokens":2} model=claude-opus-5
"#;

#[test]
fn tokens_that_were_sent_are_not_sent_again_when_a_later_part_has_fewer() {
    let mut sent = SentReplies::default();
    let first = spans_again(UNEVEN, &mut sent);
    let received: BTreeMap<_, _> =
        first.iter().filter_map(|span| Some(((span.trace, span.id), span.usage?.0))).collect();
    let input: u64 = received.values().map(|used| used.input).sum();
    let output: u64 = received.values().map(|used| used.output).sum();
    assert_eq!((received.len(), input, output), (2, 6, 19), "{}", tree(&first));
    let again = spans_again(UNEVEN, &mut sent);
    let generations = again.iter().filter(|span| span.kind == SpanKind::Generation).count();
    assert_eq!(generations, 0, "sent twice: {}", tree(&again));
}

#[test]
fn a_part_without_figures_does_not_make_the_reply_new() {
    let log = r#"
u1        user   "why is it slow?"
a1 <- u1  reply  msg_1 text "Let me look." usage={"input_tokens":10,"output_tokens":50} model=claude-opus-5
u2 <- a1  user   "well?"
a2 <- u2  reply  msg_1 tool t1 Grep {"pattern":"sleep"} model=claude-opus-5
"#;
    let mut sent = SentReplies::default();
    let first = spans_again(log, &mut sent);
    assert!(first.iter().any(|span| span.kind == SpanKind::Tool), "{}", tree(&first));
    let again = spans_again(log, &mut sent);
    let twice =
        again.iter().filter(|span| matches!(span.kind, SpanKind::Generation | SpanKind::Tool)).count();
    assert_eq!(twice, 0, "sent twice: {}", tree(&again));
}

#[test]
fn no_string_of_a_span_has_a_secret() {
    let rules = Rules::new();
    let book = PriceBook::embedded();
    for token in threadline_testkit::secrets(3).iter().filter(|secret| secret.kind == "github-token") {
        let token = &token.secret;
        let log = format!(
            r#"
u1 user "go" branch="fix/{token}" cwd="/home/{token}" version="{token}"
a1 <- u1 reply msg_1 tool t1 {token} {{"{token}":{{"deep {token}":"{token}"}},"password":"Heddle42weft"}} model={token}
r1 <- a1 result t1 "no {token}" error
a2 <- r1 reply msg_2 text "{token}" stop={token}
"#
        );
        for (content, dialect) in [
            (ContentPolicy::Full, Dialect::Langfuse),
            (ContentPolicy::Full, Dialect::GenAi),
            (ContentPolicy::Metadata, Dialect::Langfuse),
        ] {
            let options = SpanOptions { content, dialect, redact: Some((&rules).into()), ..options(&book) };
            let spans = spans_with(&log, Vec::new(), &options);
            let text = format!("{spans:?}");
            assert!(spans.len() >= 4 && !text.contains(token) && !text.contains("Heddle42weft"), "{text}");
        }
    }
}

#[test]
fn a_log_with_repeated_lines_sends_nothing_twice() {
    let again = TURN
        .replace("u1", "x1")
        .replace("a1", "x2")
        .replace("a2", "x3")
        .replace("r1", "x4")
        .replace("a3", "x5");
    assert_eq!(ids(&spans(&format!("{TURN}{again}"))), ids(&spans(TURN)));
}

#[test]
fn a_reply_continued_after_the_next_prompt_is_sent_in_two_parts() {
    let log = r#"
u1 user "one"
a1 <- u1 reply msg_1 text "well" usage={"input_tokens":10,"output_tokens":2}
u2 <- a1 user "two"
a2 <- a1 reply msg_1 tool t1 Edit usage={"input_tokens":10,"output_tokens":9}
r2 <- a2 result t1 "ok"
a3 <- r2 reply msg_2 text "done" usage={"input_tokens":20,"output_tokens":3}
"#;
    assert_snapshot!(tree(&spans(log)), @r#"
turn Turn 1 0..1 < {"role":"user","content":"one"} > {"role":"assistant","content":"well"}
  generation claude-opus-4-8 0..1 10/2 < {"role":"user","content":"one"} > {"role":"assistant","content":"well"}
turn Turn 2 2..5 < {"role":"user","content":"two"} > {"role":"assistant","content":"done"}
  generation claude-opus-4-8 2..3 0/7 < {"role":"user","content":"two"} > {"role":"assistant","content":"","tool_calls":[{"id":"t1","name":"Edit"}]}
    tool Edit 3..4 < {} > ok
  generation claude-opus-4-8 4..5 20/3 > {"role":"assistant","content":"done"}
"#);
}

#[test]
fn the_web_searches_of_a_reply_in_two_parts_are_priced_once() {
    let costs = |searches: &str| -> Vec<_> {
        let log = format!(
            r#"
u1 user "one"
a1 <- u1 reply msg_1 text "well" usage={{"input_tokens":10,"output_tokens":2{searches}}} model=claude-opus-5
u2 <- a1 user "two"
a2 <- a1 reply msg_1 text "done" usage={{"input_tokens":10,"output_tokens":9{searches}}} model=claude-opus-5
"#
        );
        spans(&log).iter().filter_map(|span| span.usage?.1).collect()
    };
    let searched = costs(r#","server_tool_use":{"web_search_requests":2}"#);
    let plain = costs("");
    assert_eq!((searched.len(), plain.len()), (2, 2));
    assert!(searched[0] > plain[0]);
    assert_eq!(searched[1], plain[1]);
}

#[test]
fn a_generation_has_the_attributes_of_both_dialects() {
    let log = r#"
u1 user "hi"
a1 <- u1 reply msg_1 text "ho" stop=end_turn req=req_1 model=claude-opus-5 usage={"input_tokens":10,"output_tokens":50,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"speed":"standard","output_tokens_details":{"thinking_tokens":7}}
"#;
    assert_snapshot!(attributes(&spans(log)[1]), @r#"
gen_ai.conversation.id: s1
gen_ai.operation.name: chat
gen_ai.provider.name: anthropic
gen_ai.request.model: claude-opus-5
gen_ai.response.finish_reasons: List(["end_turn"])
gen_ai.response.id: msg_1
gen_ai.response.model: claude-opus-5
gen_ai.usage.cache_creation.input_tokens: Number(30)
gen_ai.usage.cache_read.input_tokens: Number(100)
gen_ai.usage.cache_write.input_tokens: Number(30)
gen_ai.usage.cost: Decimal(0.0016125)
gen_ai.usage.input_tokens: Number(140)
gen_ai.usage.output_tokens: Number(50)
gen_ai.usage.reasoning.output_tokens: Number(7)
langfuse.observation.cost_details: {"total":0.0016125}
langfuse.observation.input: {"role":"user","content":"hi"}
langfuse.observation.metadata.request_id: req_1
langfuse.observation.metadata.tool_count: Number(0)
langfuse.observation.model.name: claude-opus-5
langfuse.observation.output: {"role":"assistant","content":"ho"}
langfuse.observation.type: generation
langfuse.observation.usage_details: {"input":10,"output":50,"cache_read_input_tokens":100,"input_cache_creation_5m":10,"input_cache_creation_1h":20}
langfuse.trace.name: Turn 1
session.id: s1
"#);
}

#[test]
fn the_root_has_metadata_of_the_session() {
    let log = r#"
u1 user "hi" branch=main version=2.1.197 +{"slug":"calm-loom"}
a1 <- u1 reply msg_1 text "ho"
"#;
    assert_snapshot!(attributes(&spans(log)[0]), @r#"
gen_ai.agent.name: claude-code
gen_ai.agent.version: 2.1.197
gen_ai.conversation.id: s1
gen_ai.operation.name: invoke_agent
gen_ai.provider.name: anthropic
langfuse.observation.input: {"role":"user","content":"hi"}
langfuse.observation.output: {"role":"assistant","content":"ho"}
langfuse.observation.type: agent
langfuse.trace.metadata.cwd: /home/ada/loom
langfuse.trace.metadata.git_branch: main
langfuse.trace.metadata.session_id: s1
langfuse.trace.metadata.slug: calm-loom
langfuse.trace.metadata.source: claude-code
langfuse.trace.metadata.turn_number: Number(1)
langfuse.trace.metadata.version: 2.1.197
langfuse.trace.name: Turn 1
session.id: s1
"#);
}

#[test]
fn advisor_models_have_spans_below_the_reply() {
    let advice =
        r#"{"type":"advisor_message","model":"claude-haiku-4-5","input_tokens":2,"output_tokens":3}"#;
    let log = format!(
        "u1 user \"go\"\na1 <- u1 reply msg_1 text \"done\" usage={{\"input_tokens\":1,\"output_tokens\":9,\"iterations\":[{advice},{advice}]}} model=claude-opus-5\n"
    );
    assert_snapshot!(tree(&spans(&log)), @r#"
turn Turn 1 0..1 < {"role":"user","content":"go"} > {"role":"assistant","content":"done"}
  generation claude-opus-5 0..1 1/9 < {"role":"user","content":"go"} > {"role":"assistant","content":"done"}
    generation claude-haiku-4-5 0..1 2/3
    generation claude-haiku-4-5 0..1 2/3
"#);
}

#[test]
fn fast_mode_is_a_parameter_of_the_model() {
    let log =
        "u1 user \"hi\"\na1 <- u1 reply msg_1 text \"ho\" usage={\"input_tokens\":1,\"speed\":\"fast\"}";
    assert_eq!(spans(log)[1].text("langfuse.observation.model.parameters"), Some("{\"speed\":\"fast\"}"));
}

#[test]
fn a_failed_call_is_an_error_and_so_is_a_failed_request() {
    let log = r#"
u1 user "go"
a1 <- u1 reply m1 tool t1 Bash {"command":"false"}
r1 <- a1 result t1 "exit 1" error
s1 <- r1 system api_error +{"retryAttempt":1,"error":{"status":529}}
a2 <- s1 reply m2 text "API Error: overloaded" model=<synthetic> +{"isApiErrorMessage":true,"apiErrorStatus":529}
"#;
    assert_snapshot!(tree(&spans(log)), @r#"
turn Turn 1 0..4 ERROR API Error: overloaded [api_error 3] [api_error 4] < {"role":"user","content":"go"} > {"role":"assistant","content":"API Error: overloaded"}
  generation claude-opus-4-8 0..1 0/0 < {"role":"user","content":"go"} > {"role":"assistant","content":"","tool_calls":[{"id":"t1","name":"Bash"}]}
    tool Bash 1..2 ERROR exit 1 < {"command":"false"} > exit 1
"#);
}

#[test]
fn incidents_within_a_turn_are_events() {
    let log = r#"
u1 user "go"
h1 <- u1 attach hook_success {"hookName":"UserPromptSubmit","hookEvent":"UserPromptSubmit"}
a1 <- h1 reply m1 text "part one"
b1 <- a1 boundary auto {"preTokens":1000}
c1 <- b1 compact-summary "what was said"
a2 <- c1 reply m2 text "part two"
i1 <- a2 user [text "[Request interrupted by user]"]
s1 <- i1 system stop_hook_summary {"hookCount":2,"hookErrors":["no"]}
"#;
    assert_snapshot!(tree(&spans(log)), @r#"
turn Turn 1 0..6 [hook 1] [compaction 3] [interrupted 6] [hooks 7] < {"role":"user","content":"go"} > {"role":"assistant","content":"part two"}
  generation claude-opus-4-8 0..2 0/0 < {"role":"user","content":"go"} > {"role":"assistant","content":"part one"}
  generation claude-opus-4-8 4..5 0/0 > {"role":"assistant","content":"part two"}
"#);
}

fn agent(id: &str, call: Option<&str>, notation: &str) -> Subagent {
    let spawn = call.map(|call| Spawn { agent: None, tool_use_id: call.to_owned() });
    Subagent {
        id: id.to_owned(),
        kind: AgentKind::of(id, false),
        agent_type: Some("Explore".to_owned()),
        description: Some("look around".to_owned()),
        workflow_run: None,
        session: Session::from_bytes(&log(notation)),
        spawn,
    }
}

#[test]
fn sub_agents_are_children_of_their_calls_at_any_depth() {
    let main = r#"
u1 user "go"
a1 <- u1 reply m1 tool t1 Task {"prompt":"look"}
r1 <- a1 result t1 "found" @+10s
a2 <- r1 reply m2 text "done"
"#;
    let outer = r#"
x1 user "look" sidechain @10:00:02
x2 <- x1 reply n1 tool t2 Task {"prompt":"deeper"} sidechain
x3 <- x2 result t2 "deep" sidechain @+3s
x4 <- x3 reply n2 text "found" sidechain
"#;
    let inner = r#"
y1 user "deeper" sidechain @10:00:04
y2 <- y1 reply o1 text "deep" sidechain
"#;
    let stray = "z1 user \"sum up\" sidechain @10:00:05\nz2 <- z1 reply p1 text \"summary\" sidechain";
    let agents = vec![
        agent("a1", Some("t1"), outer),
        agent("a2", Some("t2"), inner),
        agent("acompact-1", None, stray),
    ];
    let book = PriceBook::embedded();
    assert_snapshot!(tree(&spans_with(main, agents, &options(&book))), @r#"
turn Turn 1 0..13 < {"role":"user","content":"go"} > {"role":"assistant","content":"done"}
  generation claude-opus-4-8 0..1 0/0 < {"role":"user","content":"go"} > {"role":"assistant","content":"","tool_calls":[{"id":"t1","name":"Task"}]}
    tool Task 1..12 < {"prompt":"look"} > found
      agent Explore 2..8 < {"role":"user","content":"look"} > {"role":"assistant","content":"found"}
        generation claude-opus-4-8 2..3 0/0 < {"role":"user","content":"look"} > {"role":"assistant","content":"","tool_calls":[{"id":"t2","name":"Task"}]}
          tool Task 3..7 < {"prompt":"deeper"} > deep
            agent Explore 4..5 < {"role":"user","content":"deeper"} > {"role":"assistant","content":"deep"}
              generation claude-opus-4-8 4..5 0/0 < {"role":"user","content":"deeper"} > {"role":"assistant","content":"deep"}
        generation claude-opus-4-8 7..8 0/0 > {"role":"assistant","content":"found"}
  generation claude-opus-4-8 12..13 0/0 > {"role":"assistant","content":"done"}
  agent Explore 5..6 < {"role":"user","content":"sum up"} > {"role":"assistant","content":"summary"}
    generation claude-opus-4-8 5..6 0/0 < {"role":"user","content":"sum up"} > {"role":"assistant","content":"summary"}
"#);
}

#[test]
fn the_spans_of_very_deeply_nested_sub_agents_are_below_the_turn() {
    let calls =
        |n: usize, of: &str| format!("s{n} user \"{of}\"\nq{n} <- s{n} reply m{n} tool t{n} Task {{}}");
    let agents =
        (1..4000).map(|n| agent(&format!("a{n}"), Some(&format!("t{}", n - 1)), &calls(n, "deeper")));
    let book = PriceBook::embedded();
    let spans = spans_with(&calls(0, "go"), agents.collect(), &options(&book));
    let agents: Vec<_> = spans.iter().filter(|span| span.kind == SpanKind::Agent).collect();
    assert_eq!(agents.len(), 3999);
    let root = spans.iter().find(|span| span.kind == SpanKind::Turn).unwrap().id;
    assert_eq!(agents.iter().filter(|agent| agent.parent == Some(root)).count(), 3999 / 100);
}

#[test]
fn sub_agents_inside_the_log_are_children_of_their_calls() {
    let log = r#"
u1 user "go"
a1 <- u1 reply m1 tool t1 Task {"prompt":"look"}
x1 user "look" sidechain
x2 <- x1 reply n1 text "found" sidechain
r1 <- a1 result t1 "found"
a2 <- r1 reply m2 text "done"
"#;
    assert_snapshot!(tree(&spans(log)), @r#"
turn Turn 1 0..5 < {"role":"user","content":"go"} > {"role":"assistant","content":"done"}
  generation claude-opus-4-8 0..1 0/0 < {"role":"user","content":"go"} > {"role":"assistant","content":"","tool_calls":[{"id":"t1","name":"Task"}]}
    tool Task 1..4 < {"prompt":"look"} > found
      agent agent 2..3 < {"role":"user","content":"look"} > {"role":"assistant","content":"found"}
        generation claude-opus-4-8 2..3 0/0 < {"role":"user","content":"look"} > {"role":"assistant","content":"found"}
  generation claude-opus-4-8 4..5 0/0 > {"role":"assistant","content":"done"}
"#);
}

#[test]
fn a_turn_continued_after_it_was_sent_keeps_its_ids() {
    let log = log(TURN);
    let whole = turn_parts(&log).remove(0);
    let continued = whole.progress();
    assert_eq!(continued.trace, whole.trace());
    assert_eq!(continued.last_at - continued.start, 4000);
}

#[test]
fn the_content_policy_is_respected() {
    let log = r#"
u1 user "PRIVATE prompt" branch=PRIVATE cwd="/home/PRIVATE"
a1 <- u1 reply m1 thinking "PRIVATE thought"
a2 <- a1 reply m1 text "PRIVATE answer"
a3 <- a2 reply m1 tool t1 Bash {"command":"PRIVATE"}
r1 <- a3 result t1 "PRIVATE output" error
s1 <- r1 system api_error +{"retryAttempt":1,"cause":{"code":"PRIVATE"}}
s2 <- s1 system stop_hook_summary {"hookCount":2,"hookErrors":["PRIVATE"]}
a4 <- s2 reply m2 text "PRIVATE error" model=<synthetic> +{"isApiErrorMessage":true}
"#;
    let book = PriceBook::embedded();
    for dialect in [Dialect::Langfuse, Dialect::GenAi] {
        let count = |content| {
            let spans = spans_with(log, Vec::new(), &SpanOptions { content, dialect, ..options(&book) });
            assert_eq!(spans.len(), 3);
            format!("{spans:?}").matches("PRIVATE").count()
        };
        assert_eq!(count(ContentPolicy::None), 0);
        // Directory, branch, the error code of a failed connection, the output of a hook.
        assert_eq!(count(ContentPolicy::Metadata), 4);
        assert!(count(ContentPolicy::Truncated) > 10);
    }
}

#[test]
fn long_values_are_truncated_with_a_note() {
    let long = "x".repeat(40_000);
    let log = format!(
        "u1 user \"{long}\"\na1 <- u1 reply m1 tool t1 Write {{\"content\":\"{long}\",\"path\":\"/a\"}}\nr1 <- a1 result t1 \"{long}\"\na2 <- r1 reply m2 text \"{long}\""
    );
    let book = PriceBook::embedded();
    let spans = spans_with(&log, Vec::new(), &SpanOptions { limit: Some(1000), ..options(&book) });
    let tool = spans.iter().find(|span| span.kind == SpanKind::Tool).unwrap();
    let input: serde_json::Value =
        serde_json::from_str(tool.text("langfuse.observation.input").unwrap()).unwrap();
    assert_eq!(input["path"], "/a");
    assert!(input["content"].as_str().unwrap().ends_with("bytes omitted]"));
    for span in &spans {
        for (name, value) in &span.attributes {
            if let threadline_trace::AttributeValue::Text(text) = value {
                assert!(text.len() < 1200, "{name}: {}", text.len());
            }
        }
    }
    assert!(tool.text("langfuse.observation.output").unwrap().ends_with("… [39000 bytes omitted]"));
    let full = spans_with(&log, Vec::new(), &SpanOptions { content: ContentPolicy::Full, ..options(&book) });
    assert!(full[0].text("langfuse.observation.input").unwrap().len() > 40_000);
}

#[test]
fn secrets_are_redacted_everywhere() {
    let token = ["gh", "p_", "k3Jd82hVnq0PzLw7", "Yt5RmXc1BfAe9UgS6oHi"].concat();
    let log = format!(
        r#"
u1 user "use {token}"
a1 <- u1 reply m1 thinking "so {token}"
a2 <- a1 reply m1 text "with {token}"
a3 <- a2 reply m1 tool t1 Bash {{"command":"echo \"{token}\"\n"}}
r1 <- a3 result t1 "said {token}" error
a4 <- r1 reply m2 text "done {token}"
"#
    );
    let rules = Rules::new();
    let book = PriceBook::embedded();
    for (dialect, content) in [
        (Dialect::Langfuse, ContentPolicy::Truncated),
        (Dialect::GenAi, ContentPolicy::Full),
        (Dialect::GenAi, ContentPolicy::Truncated),
    ] {
        let spans = spans_with(
            &log,
            Vec::new(),
            &SpanOptions { redact: Some((&rules).into()), dialect, content, ..options(&book) },
        );
        let all = format!("{spans:?}");
        assert!(!all.contains(&token), "{all}");
        assert!(all.matches("[secret:github-token]").count() >= 7, "{all}");
    }
}

#[test]
fn a_secret_is_redacted_where_nothing_identifies_it() {
    let password = "Zq7vT2mKx9Lwp";
    let log = format!(
        r#"
u1 user "run curl -u ada:{password} https://loom.internal"
a1 <- u1 reply m1 text "I used {password}"
a2 <- a1 reply m1 tool t1 Bash {{"command":"echo {password}"}}
r1 <- a2 result t1 "Wnh3: {password}"
"#
    );
    let (rules, book) = (Rules::new(), PriceBook::embedded());
    let options = SpanOptions { redact: Some((&rules).into()), ..options(&book) };
    let all = format!("{:?}", spans_with(&log, Vec::new(), &options));
    assert!(!all.contains(password), "{all}");
    assert!(all.contains("I used [secret:password]"), "{all}");
}

#[test]
fn images_are_replaced_by_placeholders() {
    let log = "u1 user [text \"what is this?\", image png]\na1 <- u1 reply m1 text \"A dot.\"";
    let spans = spans(log);
    let input = spans[0].text("langfuse.observation.input").unwrap();
    assert_eq!(input, "{\"role\":\"user\",\"content\":\"what is this?\\n[image, 72 bytes]\"}");
}
