//! The behaviours that the tests of cc-langfuse 0.2.2 specify, each under the name of the original test.
//!
//! Two are left out because they assert mistakes: that the last generation ends at the time of sending, and
//! that a `turn_duration` belongs to the turn that is read next. Shapes that Claude Code never writes
//! (content outside the message, lines without a type) are not read here either. Lines before the first
//! prompt, which cc-langfuse drops, are sent: they were paid for.

use threadline_trace::{AttributeValue, SpanKind, TraceSpan};

use crate::render::{spans, tree, turn_parts};

fn of_kind(spans: &[TraceSpan], kind: SpanKind) -> Vec<&TraceSpan> {
    spans.iter().filter(|span| span.kind == kind).collect()
}

fn input(span: &TraceSpan) -> Option<&str> {
    span.text("langfuse.observation.input")
}

fn output(span: &TraceSpan) -> Option<&str> {
    span.text("langfuse.observation.output")
}

fn turns(notation: &str) -> usize {
    of_kind(&spans(notation), SpanKind::Turn).len()
}

/// Returns how far a log would be consumed: the number of lines up to the end of the last complete turn.
fn consumed(notation: &str) -> usize {
    let log = threadline_testkit::log(notation);
    let done: Vec<_> = turn_parts(&log).into_iter().filter(|piece| piece.is_complete()).collect();
    let to = done.last().map_or(0, |piece| piece.to.byte_offset as usize);
    log[..to].iter().filter(|byte| **byte == b'\n').count()
}

mod classify_message {
    use super::*;

    #[test]
    fn user_with_string_content_and_user_with_array_content() {
        for prompt in ["\"hello\"", "[text \"hello\"]"] {
            let spans = spans(&format!("u1 user {prompt}\na1 <- u1 reply m1 text \"hi\""));
            assert_eq!(input(&spans[0]), Some("{\"role\":\"user\",\"content\":\"hello\"}"));
        }
    }

    #[test]
    fn assistant_from_nested_message_with_array_content() {
        let spans = spans("u1 user \"q\"\na1 <- u1 reply m1 [text \"a\", text \"b\"]");
        assert_eq!(output(&spans[1]), Some("{\"role\":\"assistant\",\"content\":\"a\\nb\"}"));
    }

    #[test]
    fn system_message_keeps_subtype_and_duration() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"\ns1 <- a1 system turn_duration {\"durationMs\":3000}";
        assert_eq!(
            spans(log)[0].get("langfuse.trace.metadata.turn_duration_ms"),
            Some(&AttributeValue::Number(3000))
        );
    }

    #[test]
    fn null_for_meta_user_and_meta_assistant() {
        let log = "u1 user \"q\"\nm1 <- u1 user \"scaffold\" meta\nm2 <- m1 reply m9 text \"meta\" meta\na1 <- m2 reply m1 text \"a\"";
        let spans = spans(log);
        assert_eq!((spans.len(), input(&spans[0])), (2, Some("{\"role\":\"user\",\"content\":\"q\"}")));
    }

    #[test]
    fn null_for_lines_that_are_not_messages() {
        assert_eq!(
            turns(
                "raw {}\nraw [1]\nraw nothing\nu1 user \"q\"\nraw {\"type\":7}\na1 <- u1 reply m1 text \"a\""
            ),
            1
        );
    }

    #[test]
    fn empty_content_when_there_is_none() {
        let spans = spans("u1 user \"q\"\na1 <- u1 reply m1 []");
        assert_eq!(output(&spans[1]), Some("{\"role\":\"assistant\",\"content\":\"\"}"));
    }

    #[test]
    fn preserves_session_metadata_all_partial_and_none() {
        let log = |more: &str| format!("u1 user \"q\" {more}\na1 <- u1 reply m1 text \"a\" {more}");
        let all = spans(&log("+{\"slug\":\"s\"} branch=main version=2.1.0"));
        let get = |span: &TraceSpan, name: &str| {
            span.text(&format!("langfuse.trace.metadata.{name}")).map(str::to_owned)
        };
        let metadata =
            |span: &TraceSpan| ["version", "slug", "cwd", "git_branch"].map(|name| get(span, name));
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(metadata(&all[0]), [text("2.1.0"), text("s"), text("/home/ada/loom"), text("main")]);
        let none = spans(&log("-version -cwd -gitBranch"));
        assert_eq!(metadata(&none[0]), [None, None, None, None]);
    }

    #[test]
    fn model_defaults_to_unknown() {
        let line = r#"raw {"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","content":[]}}"#;
        assert_eq!(spans(&format!("u1 user \"q\"\n{line}"))[1].name, "unknown");
    }

    #[test]
    fn timestamp_is_that_of_the_line_and_its_absence_is_no_error() {
        let log = "u1 user \"q\" -timestamp\na1 <- u1 reply m1 tool t1 X -timestamp\nr1 <- a1 result t1 \"o\" -timestamp";
        assert!(spans(log).iter().all(|span| (span.start, span.end) == (0, 0)));
        assert_eq!(spans("u1 user \"q\" @10:00:05\na1 <- u1 reply m1 text \"a\"")[0].start % 60_000, 5000);
    }
}

mod blocks {
    use super::*;

    #[test]
    fn is_tool_result_true_with_one_false_without_and_false_when_empty() {
        assert_eq!(
            turns(
                "u1 user \"q\"\na1 <- u1 reply m1 tool t1 X\nr1 <- a1 result t1 \"o\"\na2 <- r1 reply m2 text \"a\""
            ),
            1
        );
        assert_eq!(
            turns(
                "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"\nu2 <- a1 user [text \"q\"]\na2 <- u2 reply m2 text \"a\""
            ),
            2
        );
        assert_eq!(
            turns(
                "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"\nu2 <- a1 user []\na2 <- u2 reply m2 text \"a\""
            ),
            2
        );
    }

    #[test]
    fn get_tool_calls_in_order_none_and_of_empty_content() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 [text \"x\", tool t1 Read, tool t2 Bash]";
        let spans = spans(log);
        let names: Vec<_> = of_kind(&spans, SpanKind::Tool).iter().map(|span| &*span.name).collect();
        assert_eq!(names, ["Read", "Bash"]);
        assert_eq!(
            spans[1].get("langfuse.observation.metadata.tool_count"),
            Some(&AttributeValue::Number(2))
        );
    }

    #[test]
    fn get_text_content_joins_text_and_skips_tool_use() {
        let spans = spans(
            "u1 user [text \"a\", text \"b\"]\na1 <- u1 reply m1 [text \"x\", tool t1 Read, text \"y\"]",
        );
        assert_eq!(input(&spans[0]), Some("{\"role\":\"user\",\"content\":\"a\\nb\"}"));
        assert!(output(&spans[1]).unwrap().starts_with("{\"role\":\"assistant\",\"content\":\"x\\ny\""));
    }
}

mod merge_assistant_parts {
    use super::*;

    #[test]
    fn content_is_concatenated_and_usage_is_from_the_last_part() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 text \"a\" usage={\"input_tokens\":10,\"output_tokens\":1}\na2 <- a1 reply m1 text \"b\" usage={\"input_tokens\":10,\"output_tokens\":9}";
        let spans = spans(log);
        assert_eq!(of_kind(&spans, SpanKind::Generation).len(), 1);
        assert_eq!(output(&spans[1]), Some("{\"role\":\"assistant\",\"content\":\"a\\nb\"}"));
        assert_eq!(spans[1].usage.unwrap().0.output, 9);
    }

    #[test]
    fn usage_falls_back_to_the_first_part() {
        let bare = r#"raw {"type":"assistant","uuid":"a2","parentUuid":"a1","message":{"id":"m1","model":"x","role":"assistant","content":[]}}"#;
        let log = format!(
            "u1 user \"q\"\na1 <- u1 reply m1 text \"a\" usage={{\"input_tokens\":10,\"output_tokens\":3}}\n{bare}"
        );
        assert_eq!(spans(&log)[1].usage.unwrap().0.output, 3);
    }
}

mod group_turns {
    use super::*;

    const SIMPLE: &str = "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"\n";

    #[test]
    fn simple_exchange() {
        assert_eq!(turns(SIMPLE), 1);
    }

    #[test]
    fn tool_results_stay_in_the_turn() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 tool t1 X\nr1 <- a1 result t1 \"o\"\na2 <- r1 reply m2 text \"a\"";
        let spans = spans(log);
        assert_eq!((turns(log), of_kind(&spans, SpanKind::Generation).len()), (1, 2));
    }

    #[test]
    fn a_new_turn_begins_with_a_new_user() {
        assert_eq!(turns(&format!("{SIMPLE}u2 <- a1 user \"q\"\na2 <- u2 reply m2 text \"b\"")), 2);
    }

    #[test]
    fn lines_of_one_message_id_are_one() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"\na2 <- a1 reply m1 tool t1 X\na3 <- a2 reply m2 text \"b\"";
        assert_eq!(of_kind(&spans(log), SpanKind::Generation).len(), 2);
    }

    #[test]
    fn empty_input_and_user_only_make_none() {
        assert_eq!((turns(""), consumed("")), (0, 0));
        assert_eq!((turns("u1 user \"q\""), consumed("u1 user \"q\"")), (0, 0));
    }

    #[test]
    fn consumed_counts_complete_turns_only() {
        assert_eq!(consumed(&format!("{SIMPLE}u2 <- a1 user \"q\"")), 2);
        assert_eq!(consumed(&format!("{SIMPLE}u2 <- a1 user \"q\"\na2 <- u2 reply m2 text \"b\"")), 4);
    }

    #[test]
    fn duration_goes_to_its_own_turn_and_is_absent_where_there_is_none() {
        let log = format!(
            "{SIMPLE}s1 <- a1 system turn_duration {{\"durationMs\":500}}\nu2 <- s1 user \"q\"\na2 <- u2 reply m2 text \"b\"\ns2 <- a2 system turn_duration {{\"durationMs\":800}}\nu3 <- s2 user \"q\"\na3 <- u3 reply m3 text \"c\""
        );
        let spans = spans(&log);
        let durations: Vec<_> = of_kind(&spans, SpanKind::Turn)
            .iter()
            .map(|span| span.get("langfuse.trace.metadata.turn_duration_ms").cloned())
            .collect();
        assert_eq!(durations, [Some(AttributeValue::Number(500)), Some(AttributeValue::Number(800)), None]);
    }

    #[test]
    fn turn_duration_counts_in_consumed() {
        assert_eq!(consumed(&format!("{SIMPLE}s1 <- a1 system turn_duration {{\"durationMs\":500}}")), 3);
    }

    #[test]
    fn a_result_alone_makes_no_turn() {
        assert_eq!(turns("r1 <- ?x result t1 \"o\""), 0);
    }
}

mod match_tool_results {
    use super::*;

    #[test]
    fn by_id_with_the_time_of_its_line() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 [tool t1 A, tool t2 B]\nr2 <- a1 result t2 \"two\" @10:00:05\nr1 <- a1 result t1 \"one\" @10:00:09";
        let spans = spans(log);
        let tools: Vec<_> = of_kind(&spans, SpanKind::Tool)
            .iter()
            .map(|span| (output(span).unwrap(), span.start % 60_000, span.end % 60_000))
            .collect();
        assert_eq!(tools, [("one", 1000, 9000), ("two", 1000, 5000)]);
    }

    #[test]
    fn output_is_null_when_missing() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 tool t1 A";
        let spans = spans(log);
        let tool = of_kind(&spans, SpanKind::Tool)[0];
        assert_eq!((output(tool), tool.start, &tool.error), (None, tool.end, &None));
    }

    #[test]
    fn is_error_true_false_and_false_by_default() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 [tool t1 A, tool t2 B]\nr1 <- a1 result t1 \"bad\" error\nr2 <- a1 result t2 \"good\"";
        let spans = spans(log);
        let errors: Vec<_> =
            of_kind(&spans, SpanKind::Tool).iter().map(|span| span.error.is_some()).collect();
        assert_eq!(errors, [true, false]);
    }
}

mod process_transcript {
    use super::*;

    const TWO: &str = "u1 user \"first\"\na1 <- u1 reply m1 tool t1 Read {\"p\":1} usage={\"input_tokens\":100,\"output_tokens\":50,\"cache_read_input_tokens\":20}\nr1 <- a1 result t1 \"data\"\na2 <- r1 reply m2 text \"answer\"\nu2 <- a2 user \"second\"\na3 <- u2 reply m3 text \"again\"";

    #[test]
    fn one_trace_per_turn_with_its_name() {
        let spans = spans(TWO);
        let names: Vec<_> = of_kind(&spans, SpanKind::Turn)
            .iter()
            .map(|span| (&*span.name, span.text("langfuse.trace.name").unwrap()))
            .collect();
        assert_eq!(names, [("Turn 1", "Turn 1"), ("Turn 2", "Turn 2")]);
        let traces: std::collections::BTreeSet<_> = spans.iter().map(|span| span.trace).collect();
        assert_eq!(traces.len(), 2);
    }

    #[test]
    fn tool_observation_has_name_input_and_output() {
        let spans = spans(TWO);
        let tool = of_kind(&spans, SpanKind::Tool)[0];
        assert_eq!((&*tool.name, input(tool), output(tool)), ("Read", Some("{\"p\":1}"), Some("data")));
        assert_eq!(tool.text("langfuse.observation.metadata.tool_name"), Some("Read"));
        assert_eq!(tool.text("langfuse.observation.metadata.tool_id"), Some("t1"));
    }

    #[test]
    fn input_only_on_the_first_generation() {
        let spans = spans(TWO);
        let inputs: Vec<_> =
            of_kind(&spans, SpanKind::Generation).iter().map(|span| input(span).is_some()).collect();
        assert_eq!(inputs, [true, false, true]);
    }

    #[test]
    fn the_root_is_an_agent_with_input_and_output_from_the_user_to_the_last_line() {
        let root = &spans(TWO)[0];
        assert_eq!(root.text("langfuse.observation.type"), Some("agent"));
        assert_eq!(input(root), Some("{\"role\":\"user\",\"content\":\"first\"}"));
        assert_eq!(output(root), Some("{\"role\":\"assistant\",\"content\":\"answer\"}"));
        assert_eq!((root.start % 60_000, root.end % 60_000), (0, 3000));
    }

    #[test]
    fn usage_details_without_a_total_and_none_without_usage() {
        let spans = spans(TWO);
        assert_eq!(
            spans[1].text("langfuse.observation.usage_details"),
            Some("{\"input\":100,\"output\":50,\"cache_read_input_tokens\":20}")
        );
        let bare = r#"raw {"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m1","role":"assistant","content":[]}}"#;
        let none = super::spans(&format!("u1 user \"q\"\n{bare}"));
        assert_eq!(none[1].text("langfuse.observation.usage_details"), None);
    }

    #[test]
    fn a_generation_ends_with_its_last_line_and_the_next_begins_with_its_input() {
        let spans = spans(TWO);
        let times: Vec<_> = of_kind(&spans, SpanKind::Generation)
            .iter()
            .map(|span| (span.start % 60_000, span.end % 60_000))
            .collect();
        assert_eq!(times, [(0, 1000), (2000, 3000), (4000, 5000)]);
    }

    #[test]
    fn two_tools_begin_with_their_own_lines() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 tool t1 A\na2 <- a1 reply m1 tool t2 B\nr1 <- a1 result t1 \"1\"\nr2 <- a2 result t2 \"2\"";
        let spans = spans(log);
        let starts: Vec<_> = of_kind(&spans, SpanKind::Tool).iter().map(|span| span.start % 60_000).collect();
        assert_eq!(starts, [1000, 2000]);
    }

    #[test]
    fn duration_sets_the_end_else_the_latest_time_does() {
        let log = "u1 user \"q\"\na1 <- u1 reply m1 text \"a\"";
        assert_eq!(spans(log)[0].end % 60_000, 1000);
        let timed = format!("{log}\ns1 <- a1 system turn_duration {{\"durationMs\":3000}}");
        assert_eq!(spans(&timed)[0].end % 60_000, 3000);
    }

    #[test]
    fn a_malformed_line_is_skipped() {
        let log = "u1 user \"q\"\nraw {\"type\":\"user\",\"mess\na1 <- u1 reply m1 text \"a\"";
        insta::assert_snapshot!(tree(&spans(log)), @r#"
turn Turn 1 0..2 < {"role":"user","content":"q"} > {"role":"assistant","content":"a"}
  generation claude-opus-4-8 0..2 0/0 < {"role":"user","content":"q"} > {"role":"assistant","content":"a"}
"#);
    }
}

mod filesystem {
    use std::fs;

    use threadline_testkit::session_uuid;
    use threadline_trace::{ExportState, HookRun};

    use crate::session::{TraceFixture, append};

    const ONE: &str = "u1 user \"one\"\na1 <- u1 reply msg_1 text \"eins\"\n";
    const TWO: &str = "u2 <- a1 user \"two\"\na2 <- u2 reply msg_2 text \"zwei\"\n";

    #[test]
    fn returns_all_then_null_then_only_new_turns() {
        let world = TraceFixture::new();
        let path = world.home.session("s", ONE);
        assert_eq!([world.send(&path).unwrap().turns, world.send(&path).unwrap().turns], [1, 0]);
        append(&path, TWO);
        assert_eq!(world.send(&path).unwrap().turns, 1);
        assert!(world.names().contains(&"Turn 2".to_owned()), "resumes from the last line");
    }

    #[test]
    fn returns_null_for_an_empty_file_and_when_all_new_lines_are_malformed() {
        let world = TraceFixture::new();
        let path = world.home.session("s", "");
        assert_eq!(world.send(&path).unwrap().turns, 0);
        fs::write(&path, "nothing\n{\"half\":\n").unwrap();
        assert_eq!(world.send(&path).unwrap().turns, 0);
    }

    #[test]
    fn line_offsets_are_correct_after_malformed_and_meta_lines() {
        let world = TraceFixture::new();
        let path = world.home.session("s", &format!("raw broken\nm1 user \"x\" meta\n{ONE}raw broken\n"));
        world.send(&path).unwrap();
        append(&path, TWO);
        let sent = world.send(&path).unwrap();
        assert_eq!((sent.turns, world.count()), (1, 4));
    }

    #[test]
    fn last_line_is_not_past_an_incomplete_turn_which_is_processed_again() {
        let world = TraceFixture::new();
        let path = world.home.session("s", &format!("{ONE}u2 <- a1 user \"two\"\n"));
        assert_eq!(world.send(&path).unwrap().turns, 1);
        let state = world.states.load(&session_uuid("s"));
        assert_eq!((state.turns, state.mark().unwrap().at.line_no), (1, 3));
        append(&path, "a2 <- u2 reply msg_2 text \"zwei\"\n");
        assert_eq!(world.send(&path).unwrap().turns, 1);
        let state = world.states.load(&session_uuid("s"));
        assert_eq!((state.turns, state.mark().unwrap().at.line_no), (2, 5));
    }

    #[test]
    fn save_state_saves_and_loads() {
        let world = TraceFixture::new();
        let mut state = ExportState::default();
        state.turns = 3;
        state.agents.insert("a1".to_owned(), 7);
        world.states.save("s", &state).unwrap();
        assert_eq!(world.states.load("s"), state);
    }

    /// Returns the sessions that a hook exported, given the first line of the log.
    fn exported_sessions(world: &TraceFixture, first: &str) -> Vec<String> {
        let path = world.home.session("s", &format!("{first}{TWO}"));
        let HookRun::Done(exports) = world.hook(&path, "Stop") else { panic!() };
        exports.into_iter().map(|exports| exports.session).collect()
    }

    #[test]
    fn find_previous_session_by_the_first_line_even_when_it_is_in_the_state() {
        let world = TraceFixture::new();
        let (own, before) = (session_uuid("s"), session_uuid("before"));
        let first = ONE.replace("\"one\"", &format!("\"one\" session={before}"));
        assert_eq!(exported_sessions(&world, &first), [&*own], "its log is missing");
        world.home.session("before", ONE);
        assert_eq!(exported_sessions(&world, &first), [&*before, &*own]);
        assert_eq!(exported_sessions(&world, &first), [&*before, &*own]);
        assert_eq!(exported_sessions(&world, ONE), [&*own], "it is the same session");
        assert_eq!(exported_sessions(&world, &format!("snapshot u1\n{ONE}")), [&*own], "it names no session");
    }
}

mod recovery {
    use threadline_testkit::session_uuid;

    use crate::session::TraceFixture;

    /// Returns the session id that each turn was sent under.
    fn sessions(world: &TraceFixture) -> Vec<String> {
        let received = world.receiver.received.lock();
        let roots = received.spans.values().filter(|span| span.parent_span_id.is_empty());
        let mut ids: Vec<String> = roots
            .map(|span| {
                let id = span.attributes.iter().find(|attribute| attribute.key == "session.id").unwrap();
                let text = format!("{id:?}");
                let known = ["before", "s"].into_iter().find(|name| text.contains(&session_uuid(name)));
                known.unwrap().to_owned()
            })
            .collect();
        ids.sort();
        ids
    }

    fn run(before: &str, current: &str) -> Vec<String> {
        let world = TraceFixture::new();
        world.home.session("before", before);
        let path = world
            .home
            .session("s", &current.replace("FIRST", &format!("session={}", session_uuid("before"))));
        world.hook(&path, "Stop");
        sessions(&world)
    }

    const DONE: &str = "u1 user \"one\"\na1 <- u1 reply msg_1 text \"eins\"\n";

    #[test]
    fn a_previous_prompt_answered_now_belongs_to_the_current_session() {
        let now = "u1 user \"one\" FIRST\na1 <- u1 reply msg_1 text \"eins\"\n";
        assert_eq!(run("u1 user \"one\"\n", now), ["s"]);
    }

    #[test]
    fn sessions_are_processed_independently_and_both_when_both_have_turns() {
        let now = "u2 user \"two\" FIRST\na2 <- u2 reply msg_2 text \"zwei\"\n";
        assert_eq!(run(DONE, now), ["before", "s"]);
    }

    #[test]
    fn zero_turns_when_both_are_empty() {
        assert!(run("", "u2 user \"two\" FIRST\n").is_empty());
    }
}

mod read_hook_input {
    use threadline_trace::HookInput;

    #[test]
    fn parses_valid_input_and_null_for_empty_invalid_or_incomplete_input() {
        let good = br#"{"session_id":"s","transcript_path":"/t.jsonl","hook_event_name":"Stop","more":1}"#;
        assert_eq!(HookInput::parse(good).unwrap().session_id, "s");
        for bad in
            [&b""[..], b"{", b"[]", br#"{"session_id":"s"}"#, br#"{"session_id":"","transcript_path":"/t"}"#]
        {
            assert_eq!(HookInput::parse(bad), None);
        }
    }
}
