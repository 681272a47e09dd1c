//! Compaction: on request, near the window, and when it fails.

use serde_json::Value;
use threadline_agent::TurnEnd;
use threadline_testkit::api::ScriptedReply;

use crate::harness::Stage;

fn summary() -> ScriptedReply {
    ScriptedReply::text("<analysis>a</analysis><summary>THE SUMMARY</summary>")
}

fn last_request(api: &threadline_testkit::api::ScriptedApi) -> String {
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
