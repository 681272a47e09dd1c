//! Compaction: on request, near the window, and when it fails.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{Agent, SummarizeError, SummaryPart, TurnEnd};
use threadline_cancel::CancelToken;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

fn summary() -> ScriptedReply {
    ScriptedReply::text("<analysis>a</analysis><summary>THE SUMMARY</summary>")
}

fn last_request(api: &ScriptedApi) -> String {
    api.requests().last().unwrap().body["messages"].to_string()
}

#[test]
fn a_session_goes_on_from_its_summary_and_the_last_reply() {
    let stage = Stage::new();
    stage.run("first question", vec![ScriptedReply::text("first answer")]);
    stage.run("second question", vec![ScriptedReply::text("second answer")]);
    let (result, api) = stage.run("/compact keep names", vec![summary()]);
    assert_eq!((result.end, result.text.as_str()), (TurnEnd::NotSent, ""));
    let asked = last_request(&api);
    assert!(asked.contains("first answer") && asked.contains("keep names"), "{asked}");
    assert!(!asked.contains("second answer"), "{asked}");
    let (_, api) = stage.run("third question", vec![ScriptedReply::text("third answer")]);
    let sent = last_request(&api);
    assert!(
        sent.contains("THE SUMMARY") && sent.contains("second answer") && sent.contains("third question")
    );
    assert!(!sent.contains("first answer"), "{sent}");
    let lines = stage.lines();
    assert!(lines.iter().any(|line| line.contains("first answer")), "the log keeps the conversation");
}

#[test]
fn a_short_conversation_is_not_compacted() {
    let stage = Stage::new();
    stage.run("question", vec![ScriptedReply::text("answer")]);
    let (result, api) = stage.run("/compact", Vec::new());
    assert_eq!(result.text, "Not enough messages to compact.");
    assert!(api.requests().is_empty());
}

#[test]
fn a_failed_compaction_changes_nothing() {
    let stage = Stage::new();
    stage.run("first question", vec![ScriptedReply::text("first answer")]);
    stage.run("second question", vec![ScriptedReply::text("second answer")]);
    let (result, _) =
        stage.run("/compact", vec![ScriptedReply::error(400, "invalid_request_error", "too long")]);
    assert!(result.text.starts_with("Error during compaction"), "{}", result.text);
    let (_, api) = stage.run("third question", vec![ScriptedReply::text("third answer")]);
    assert!(last_request(&api).contains("first answer"));
}

#[test]
fn a_full_window_is_compacted_before_the_next_prompt() {
    let stage = Stage::new();
    stage.run("first question", vec![ScriptedReply::text("first answer")]);
    stage.run("second question", vec![ScriptedReply::text("second answer")]);
    // The scripted API reports few tokens; the log of a long session has many.
    let log = std::fs::read_to_string(stage.log()).unwrap();
    std::fs::write(stage.log(), log.replace(r#""input_tokens":100"#, r#""input_tokens":190000"#)).unwrap();
    let (result, api) = stage.run("third question", vec![summary(), ScriptedReply::text("third answer")]);
    assert_eq!((result.end, result.text.as_str()), (TurnEnd::Completed, "third answer"));
    let sent = last_request(&api);
    assert!(sent.contains("THE SUMMARY") && sent.contains("third question"), "{sent}");
    let boundary = stage.lines().into_iter().find(|line| line.contains("compact_boundary")).unwrap();
    let boundary: Value = serde_json::from_str(&boundary).unwrap();
    assert_eq!(boundary["compactMetadata"]["trigger"], "auto");
}

#[test]
fn a_conversation_that_is_too_long_is_summarised_without_old_output() {
    let stage = Stage::new();
    let file = stage.work().join("long.txt");
    std::fs::write(&file, "a long line\n".repeat(200)).unwrap();
    let read = ScriptedReply::call("Read", serde_json::json!({"file_path": file}));
    stage.run("first question", vec![read, ScriptedReply::text("first answer")]);
    stage.run("second question", vec![ScriptedReply::text("second answer")]);
    stage.run("third question", vec![ScriptedReply::text("third answer")]);
    let too_long = ScriptedReply::error(400, "invalid_request_error", "prompt is too long: 9 > 8");
    let (result, api) = stage.run("/compact", vec![too_long, summary()]);
    assert_eq!(result.end, TurnEnd::NotSent);
    let asked: Vec<String> =
        api.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(asked[0].contains("a long line") && !asked[1].contains("a long line"), "{}", asked[1]);
    assert!(asked[1].contains("first answer"));
    let (_, api) = stage.run("fourth question", vec![ScriptedReply::text("fourth answer")]);
    assert!(last_request(&api).contains("THE SUMMARY"));
}

/// A session of three prompts, and the ids of their lines.
fn three_turns(stage: &Stage, more: Vec<ScriptedReply>) -> (Agent, ScriptedApi, Vec<String>) {
    let replies = ["one", "two", "three"].map(ScriptedReply::text);
    let api = ScriptedApi::start([replies.to_vec(), more].concat());
    let mut config = stage.config(stage.start());
    config.is_interactive = true;
    let mut agent = stage.agent(&api, config).unwrap();
    for prompt in ["first", "second", "third"] {
        run(&mut agent, prompt);
    }
    let points = agent.rewind_points().unwrap().into_iter().map(|point| point.uuid).collect();
    (agent, api, points)
}

fn run(agent: &mut Agent, prompt: &str) {
    agent.run(&to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {});
}

/// The roles and the beginnings of the texts of a request.
fn sent(api: &ScriptedApi) -> Vec<String> {
    let body = api.requests().last().unwrap().body.clone();
    let messages = body["messages"].as_array().unwrap().iter();
    let texts = messages.map(|message| {
        let blocks = message["content"].as_array().unwrap().iter();
        let texts = blocks.map(|block| block["text"].as_str().unwrap().chars().take(20).collect::<String>());
        format!("{}: {}", message["role"].as_str().unwrap(), texts.collect::<Vec<_>>().join(" | "))
    });
    texts.collect()
}

#[test]
fn the_conversation_from_a_prompt_on_becomes_a_summary() {
    let stage = Stage::new();
    let replies = vec![summary(), ScriptedReply::text("four"), ScriptedReply::text("five")];
    let (mut agent, api, points) = three_turns(&stage, replies);
    let prompt =
        agent.summarize_part(&points[1], SummaryPart::From, &CancelToken::new(), &mut |_| {}).unwrap();
    assert_eq!(prompt, "second");
    let asked = last_request(&api);
    assert!(asked.contains("<message>\\nsecond\\n</message>") && asked.contains("three"), "{asked}");
    run(&mut agent, "second, again");
    let expected = ["user: first", "assistant: one", "user: This session is bein | second, again"];
    assert_eq!(sent(&api), expected);
    assert!(last_request(&api).contains("THE SUMMARY"));
    let lines: Vec<Value> = stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let find = |text: &str| lines.iter().find(|line| line["message"]["content"] == text).unwrap();
    let boundary = lines.iter().find(|line| line["subtype"] == "compact_boundary").unwrap();
    let duration = lines.iter().find(|line| line["subtype"] == "turn_duration").unwrap();
    let metadata = &boundary["compactMetadata"];
    assert_eq!(boundary["logicalParentUuid"], duration["uuid"]);
    assert_eq!(metadata["messagesSummarized"], 6, "two prompts, two replies, two durations");
    assert_eq!(metadata["preservedSegment"]["headUuid"], find("first")["uuid"]);
    assert_eq!(metadata["preservedSegment"]["tailUuid"], duration["uuid"]);
    assert_eq!(metadata["preservedMessages"]["anchorUuid"], boundary["uuid"]);
    let line = lines.iter().find(|line| line["isCompactSummary"] == true).unwrap();
    assert_eq!(line["parentUuid"], boundary["uuid"]);
    assert_eq!(line["summarizeMetadata"], json!({"messagesSummarized": 6, "direction": "from"}));
    assert_eq!(find("second, again")["parentUuid"], line["uuid"]);
    // The same conversation after a resume.
    let before = sent(&api);
    let mut resumed = stage.agent(&api, stage.config(stage.start())).unwrap();
    run(&mut resumed, "next");
    assert_eq!(sent(&api)[..before.len()], before[..]);
}

#[test]
fn the_conversation_up_to_a_prompt_becomes_a_summary() {
    let stage = Stage::new();
    let replies = vec![summary(), ScriptedReply::text("four"), ScriptedReply::text("five")];
    let (mut agent, api, points) = three_turns(&stage, replies);
    agent.summarize_part(&points[1], SummaryPart::UpTo, &CancelToken::new(), &mut |_| {}).unwrap();
    let asked = last_request(&api);
    assert!(asked.contains("first") && !asked.contains("second"), "{asked}");
    run(&mut agent, "fourth");
    let expected = [
        "user: This session is bein | second",
        "assistant: two",
        "user: third",
        "assistant: three",
        "user: fourth",
    ];
    assert_eq!(sent(&api), expected);
    let line = stage.lines().into_iter().find(|line| line.contains("summarizeMetadata")).unwrap();
    assert!(line.contains(r#""summarizeMetadata":{"messagesSummarized":3,"direction":"up_to"}"#), "{line}");
    let mut resumed = stage.agent(&api, stage.config(stage.start())).unwrap();
    run(&mut resumed, "next");
    assert_eq!(sent(&api)[..expected.len()], expected);
}

#[test]
fn a_part_without_a_summary_stays() {
    let stage = Stage::new();
    let failure = ScriptedReply::error(400, "invalid_request_error", "no");
    let (mut agent, api, points) = three_turns(&stage, vec![failure, ScriptedReply::text("four")]);
    let count = stage.lines().len();
    let mut summarize = |point: usize, part| {
        let result = agent.summarize_part(&points[point], part, &CancelToken::new(), &mut |_| {});
        assert!(matches!(result, Err(SummarizeError::Failed(_))), "{result:?}");
    };
    summarize(0, SummaryPart::UpTo);
    assert_eq!(api.requests().len(), 3, "there is nothing before the first prompt");
    summarize(1, SummaryPart::UpTo);
    assert_eq!(stage.lines().len(), count);
    run(&mut agent, "fourth");
    assert_eq!(sent(&api).len(), 7);
}

#[test]
fn parts_are_summarised_again() {
    let stage = Stage::new();
    let replies = vec![summary(), ScriptedReply::text("four"), summary(), ScriptedReply::text("five")];
    let (mut agent, api, points) = three_turns(&stage, replies);
    agent.summarize_part(&points[2], SummaryPart::From, &CancelToken::new(), &mut |_| {}).unwrap();
    run(&mut agent, "fourth");
    let points = agent.rewind_points().unwrap();
    let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["first", "second", "fourth"]);
    agent.summarize_part(&points[1].uuid, SummaryPart::From, &CancelToken::new(), &mut |_| {}).unwrap();
    run(&mut agent, "fifth");
    assert_eq!(sent(&api), ["user: first", "assistant: one", "user: This session is bein | fifth"]);
}
