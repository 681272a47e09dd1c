//! Hooks: the effects of their answers, and the lines that record them.

use std::sync::Arc;

use serde_json::{Value, json};
use threadline_agent::{HookCallbacks, HookSettings, TurnEnd, TurnSummary};
use threadline_api::RawObject;
use threadline_cancel::CancelToken;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

/// Runs a prompt with hooks: pairs of an event, with a matcher after a colon, and a command.
fn run(stage: &Stage, hooks: &[(&str, &str)], replies: Vec<ScriptedReply>) -> (TurnSummary, ScriptedApi) {
    let mut settings = HookSettings::default();
    for (event, command) in hooks {
        let (event, matcher) = event.split_once(':').unwrap_or((event, ""));
        let rule = json!({"matcher": matcher, "hooks": [{"type": "command", "command": command}]});
        let json = json!({ event: [rule] }).to_string();
        settings.add(serde_json::from_str(&json).unwrap()).unwrap();
    }
    let api = ScriptedApi::start(replies);
    let mut config = stage.config(stage.start());
    config.hooks = settings;
    let summary = stage.run_with("Go", &api, config, &CancelToken::new());
    (summary, api)
}

/// The lines of the conversation: the kind of each, and the kind of its parent.
fn chain(stage: &Stage) -> Vec<String> {
    let lines: Vec<Value> = stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kind = |line: &Value| {
        let attachment = line["attachment"]["type"].as_str();
        let block = line["message"]["content"][0]["type"].as_str();
        let subtype = line["subtype"].as_str();
        attachment.or(block).or(subtype).unwrap_or_else(|| line["type"].as_str().unwrap()).to_owned()
    };
    let parent = |line: &Value| {
        let found =
            lines.iter().find(|other| other["uuid"] == line["parentUuid"] && other["uuid"].is_string());
        found.map_or_else(|| "none".to_owned(), kind)
    };
    let chained = lines.iter().filter(|line| line["uuid"].is_string());
    chained.map(|line| format!("{} < {}", kind(line), parent(line))).collect()
}

fn read(stage: &Stage) -> ScriptedReply {
    std::fs::write(stage.work().join("a.txt"), "hello\n").unwrap();
    ScriptedReply::call("Read", json!({"file_path": stage.work().join("a.txt")}))
}

#[test]
fn a_prompt_that_a_hook_blocks_is_not_sent_and_not_kept() {
    let stage = Stage::new();
    let (summary, api) = run(&stage, &[("UserPromptSubmit", "echo bad >&2; exit 2")], Vec::new());
    assert_eq!(summary.end, TurnEnd::NotSent);
    assert_eq!(
        summary.text,
        "UserPromptSubmit operation blocked by hook:\n[echo bad >&2; exit 2]: bad\n\nOriginal prompt: Go"
    );
    assert!(api.requests().is_empty());
    assert_eq!(chain(&stage), ["informational < none"]);
    let (summary, api) = stage.run("Next", vec![ScriptedReply::text("Fine.")]);
    assert_eq!(summary.end, TurnEnd::Completed);
    assert!(!api.requests()[0].body.to_string().contains("Original prompt"));
}

#[test]
fn context_of_the_start_and_of_the_prompt_reaches_the_model() {
    let stage = Stage::new();
    let hooks = [
        ("SessionStart:startup", "echo from the start"),
        ("SessionStart:resume", "echo never"),
        ("UserPromptSubmit", r#"echo '{"hookSpecificOutput":{"additionalContext":"of the prompt"}}'"#),
    ];
    let (_, api) = run(&stage, &hooks, vec![ScriptedReply::text("Fine.")]);
    let sent = api.requests()[0].body["messages"].to_string();
    assert!(sent.contains("from the start") && sent.contains("of the prompt") && !sent.contains("never"));
    assert_eq!(
        chain(&stage),
        [
            "hook_success < none",
            "user < hook_success",
            "hook_additional_context < user",
            "text < hook_additional_context"
        ]
    );
}

#[test]
fn a_hook_before_a_call_can_deny_it() {
    let stage = Stage::new();
    let replies = vec![read(&stage), ScriptedReply::text("Done.")];
    let (summary, api) = run(&stage, &[("PreToolUse:Read", "echo no >&2; exit 2")], replies);
    let result = &api.requests()[1].body["messages"][2]["content"][0];
    assert_eq!(result["content"], "PreToolUse:Read hook error: [echo no >&2; exit 2]: no");
    assert_eq!(summary.denials.len(), 1);
    assert_eq!(
        chain(&stage),
        ["user < none", "tool_use < user", "tool_result < tool_use", "text < tool_result"]
    );
}

#[test]
fn a_hook_before_a_call_can_change_its_input() {
    let stage = Stage::new();
    let answer = r#"echo '{"hookSpecificOutput":{"permissionDecision":"allow","updatedInput":{"command":"echo two"}}}'"#;
    let replies =
        vec![ScriptedReply::call("Bash", json!({"command": "echo one"})), ScriptedReply::text("Done.")];
    let (_, api) = run(&stage, &[("PreToolUse:Bash", answer)], replies);
    let messages = &api.requests()[1].body["messages"];
    assert_eq!(messages[1]["content"][0]["input"]["command"], "echo one");
    assert_eq!(messages[2]["content"][0]["content"], "two");
    assert_eq!(
        chain(&stage)[2..],
        ["hook_success < tool_use", "tool_result < tool_use", "text < tool_result"]
    );
}

#[test]
fn a_hook_after_a_call_gets_its_result_and_can_end_the_turn() {
    let stage = Stage::new();
    let command = r#"cat > got.json; echo '{"continue":false,"stopReason":"enough"}'"#;
    let replies = vec![read(&stage)];
    let (summary, _) = run(&stage, &[("PostToolUse:Read", command)], replies);
    assert_eq!(summary.end, TurnEnd::StoppedByHook { after_tool: true });
    let got: Value =
        serde_json::from_str(&std::fs::read_to_string(stage.work().join("got.json")).unwrap()).unwrap();
    assert_eq!(
        (&got["tool_name"], &got["tool_response"]["file"]["content"]),
        (&json!("Read"), &json!("hello\n"))
    );
    assert_eq!(chain(&stage)[3..], ["hook_stopped_continuation < tool_result"]);
}

#[test]
fn a_hook_that_fails_has_no_effect() {
    let stage = Stage::new();
    let replies = vec![read(&stage), ScriptedReply::text("Done.")];
    let hooks = [("PreToolUse", "exit 1"), ("PostToolUse", "echo odd >&2; exit 5"), ("Stop", "exit 1")];
    let (summary, _) = run(&stage, &hooks, replies);
    assert_eq!(summary.end, TurnEnd::Completed);
    assert_eq!(
        chain(&stage)[2..],
        [
            "hook_non_blocking_error < tool_use",
            "tool_result < tool_use",
            "hook_non_blocking_error < tool_result",
            "text < hook_non_blocking_error",
            "hook_non_blocking_error < text",
        ]
    );
}

#[test]
fn a_hook_makes_the_model_go_on_but_not_for_ever() {
    let stage = Stage::new();
    let replies = (0..9).map(|i| ScriptedReply::text(&i.to_string())).collect();
    let (summary, api) = run(&stage, &[("Stop", r#"echo '{"decision":"block","reason":"more"}'"#)], replies);
    assert_eq!((summary.end, summary.text.as_str(), summary.num_turns), (TurnEnd::Completed, "", 10));
    assert_eq!(api.requests().len(), 9);
    assert!(api.requests()[1].body["messages"].to_string().contains("Stop hook feedback:\\nmore"));
}

#[test]
fn a_function_of_the_program_can_be_a_hook() {
    struct Deny;
    impl HookCallbacks for Deny {
        fn call(&self, id: &str, input: &RawObject, _: &CancelToken) -> Result<String, String> {
            assert_eq!((id, input.get_str("tool_name").as_deref()), ("hook_0", Some("Read")));
            let answer = json!({"permissionDecision": "deny", "permissionDecisionReason": "not this file"});
            Ok(json!({ "hookSpecificOutput": answer }).to_string())
        }
    }
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![read(&stage), ScriptedReply::text("Done.")]);
    let mut config = stage.config(stage.start());
    let hooks = r#"{"PreToolUse":[{"matcher":"Read","hookCallbackIds":["hook_0"]}],"Stop":null}"#;
    config.hooks.add_callbacks(serde_json::from_str(hooks).unwrap(), Arc::new(Deny)).unwrap();
    stage.run_with("Go", &api, config, &CancelToken::new());
    let result = &api.requests()[1].body["messages"][2]["content"][0];
    assert_eq!(result["content"], "not this file");
}

#[test]
fn clear_ends_a_session_and_starts_another_for_the_hooks() {
    let stage = Stage::new();
    let mut settings = HookSettings::default();
    for (event, matcher) in [("SessionStart", "clear"), ("SessionEnd", "clear")] {
        let hook = json!({"type": "command", "command": format!("cat >> {event}; echo context of clear")});
        let json = json!({ event: [{"matcher": matcher, "hooks": [hook]}] }).to_string();
        settings.add(serde_json::from_str(&json).unwrap()).unwrap();
    }
    let api = ScriptedApi::start(vec![ScriptedReply::text("One."), ScriptedReply::text("Two.")]);
    let mut config = stage.config(stage.start());
    config.hooks = settings;
    config.has_slash_commands = true;
    let mut agent = stage.agent(&api, config).unwrap();
    for prompt in ["First", "/clear", "Second"] {
        let prompt = serde_json::value::to_raw_value(prompt).unwrap();
        agent.run(&prompt, &CancelToken::new(), &mut |_| {});
    }
    let ended: Value =
        serde_json::from_slice(&std::fs::read(stage.work().join("SessionEnd")).unwrap()).unwrap();
    let started: Value =
        serde_json::from_slice(&std::fs::read(stage.work().join("SessionStart")).unwrap()).unwrap();
    assert_eq!((&ended["reason"], &started["source"]), (&json!("clear"), &json!("clear")));
    assert_ne!(ended["session_id"], started["session_id"]);
    assert_eq!(started["session_id"], agent.session_id());
    let sent = api.requests()[1].body["messages"].to_string();
    assert!(sent.contains("context of clear") && !sent.contains("First"), "{sent}");
}

const DEFER: &str =
    r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}'"#;

#[test]
fn a_call_that_a_hook_defers_does_not_run_and_ends_the_turn() {
    let stage = Stage::new();
    let call = ScriptedReply::call("Bash", json!({"command": "touch ran"}));
    let (summary, api) = run(&stage, &[("PreToolUse:Bash", DEFER)], vec![call, ScriptedReply::text("Never")]);
    assert_eq!((&summary.end, api.requests().len()), (&TurnEnd::Deferred, 1));
    assert!(!summary.end.is_error());
    assert_eq!((summary.stop_reason.as_deref(), summary.text.as_str()), (Some("tool_deferred"), ""));
    let deferred = summary.deferred_call.unwrap();
    assert_eq!((deferred.name.as_str(), deferred.input.get()), ("Bash", r#"{"command":"touch ran"}"#));
    assert!(!stage.work().join("ran").exists());
    assert!(chain(&stage).contains(&"hook_deferred_tool < hook_success".to_owned()), "{:?}", chain(&stage));
    // The session can be continued.
    let (summary, _) = stage.run("Next", vec![ScriptedReply::text("Fine.")]);
    assert_eq!(summary.end, TurnEnd::Completed);
}

#[test]
fn a_call_beside_others_that_a_hook_defers_does_not_run() {
    let stage = Stage::new();
    let bash = |command: &str| json!({"type": "tool_use", "name": "Bash", "input": {"command": command}});
    let calls = ScriptedReply::blocks(vec![bash("touch one"), bash("touch two")]);
    let (summary, _) = run(&stage, &[("PreToolUse:Bash", DEFER)], vec![calls, ScriptedReply::text("Fine.")]);
    assert_eq!((summary.end, summary.denials.len()), (TurnEnd::Completed, 2));
    assert!(!stage.work().join("one").exists() && !stage.work().join("two").exists());
}

#[test]
fn a_refusal_is_stricter_than_a_deferral() {
    let stage = Stage::new();
    let deny = r#"echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'"#;
    let call = ScriptedReply::call("Bash", json!({"command": "touch ran"}));
    let hooks = [("PreToolUse:Bash", DEFER), ("PreToolUse", deny)];
    let (summary, _) = run(&stage, &hooks, vec![call, ScriptedReply::text("Fine.")]);
    assert_eq!(summary.end, TurnEnd::Completed);
    assert!(!stage.work().join("ran").exists());
}
