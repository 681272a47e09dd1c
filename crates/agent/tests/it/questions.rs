//! Questions to a person: plans, choices, and the hooks that answer questions about calls.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use threadline_agent::{
    AgentConfig, AgentEvent, HookSettings, PermissionAnswer, PermissionPrompt, PermissionRequest, TurnSummary,
};
use threadline_cancel::CancelToken;
use threadline_permission::PermissionMode;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

/// Answers in turn, and waits until it is cancelled when there is no answer left.
struct ScriptedPerson {
    answers: Mutex<Vec<PermissionAnswer>>,
    /// The tool and the input of each question.
    asked: Mutex<Vec<(String, Value)>>,
}

impl PermissionPrompt for ScriptedPerson {
    fn ask(&self, request: &PermissionRequest<'_>, cancel: &CancelToken) -> PermissionAnswer {
        let input = serde_json::from_str(request.input.get()).unwrap();
        self.asked.lock().push((request.tool.to_owned(), input));
        let mut answers = self.answers.lock();
        if answers.is_empty() {
            assert!(cancel.wait(std::time::Duration::from_secs(60)), "nobody answered");
            return PermissionAnswer::Interrupt;
        }
        answers.remove(0)
    }
}

struct Played {
    summary: TurnSummary,
    api: ScriptedApi,
    person: Arc<ScriptedPerson>,
    modes: Vec<PermissionMode>,
}

impl Played {
    /// The text of the result of the n-th call, from 1, as the model gets it.
    fn result(&self, n: usize) -> String {
        let request = &self.api.requests()[n].body["messages"];
        let last = request.as_array().unwrap().last().unwrap();
        let block = last["content"].as_array().unwrap().iter().find(|block| block["type"] == "tool_result");
        block.unwrap()["content"].as_str().unwrap().to_owned()
    }
}

fn play(
    stage: &Stage,
    config: AgentConfig,
    replies: Vec<ScriptedReply>,
    answers: Vec<PermissionAnswer>,
) -> Played {
    let api = ScriptedApi::start(replies);
    let person = Arc::new(ScriptedPerson { answers: Mutex::new(answers), asked: Mutex::default() });
    let mut agent = stage.agent(&api, config).unwrap();
    agent.set_prompt(Arc::clone(&person) as Arc<dyn PermissionPrompt>);
    let prompt = serde_json::value::to_raw_value("Go").unwrap();
    let mut modes = Vec::new();
    let summary = agent.run(&prompt, &CancelToken::new(), &mut |event| {
        if let AgentEvent::PermissionMode(mode) = event {
            modes.push(mode);
        }
    });
    Played { summary, api, person, modes }
}

fn config(stage: &Stage, mode: PermissionMode) -> AgentConfig {
    let config = stage.config(stage.start());
    config.permissions.set_mode(mode);
    config
}

fn allow() -> PermissionAnswer {
    PermissionAnswer::Allow { input: None }
}

fn attachments(stage: &Stage) -> Vec<String> {
    let lines = stage.lines();
    let lines = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter_map(|line| line["attachment"]["type"].as_str().map(str::to_owned)).collect()
}

#[test]
fn an_approved_plan_is_saved_and_ends_plan_mode() {
    let stage = Stage::new();
    let file = stage.work().join("n.txt");
    let write = ScriptedReply::call("Write", json!({"file_path": file, "content": "n\n"}));
    let played = play(
        &stage,
        config(&stage, PermissionMode::AcceptEdits),
        vec![
            ScriptedReply::call("EnterPlanMode", json!({})),
            ScriptedReply::call("ExitPlanMode", json!({"plan": "1. Write it"})),
            write,
            ScriptedReply::text("Done."),
        ],
        vec![allow()],
    );
    assert_eq!(played.modes, [PermissionMode::Plan, PermissionMode::AcceptEdits]);
    assert_eq!(attachments(&stage), ["plan_mode", "plan_mode_exit"]);
    let result = played.result(2);
    assert!(
        result.starts_with("User has approved your plan.")
            && result.ends_with("## Approved Plan:\n1. Write it")
    );
    let saved = result.split("saved to: ").nth(1).unwrap().lines().next().unwrap();
    assert_eq!(std::fs::read_to_string(saved).unwrap(), "1. Write it");
    // The plan is in the result, so the call is sent without it.
    let sent = played.api.requests()[2].body["messages"].to_string();
    assert!(
        sent.contains(r#""name":"ExitPlanMode","#) && !sent.contains(r#""plan":"1. Write it""#),
        "{sent}"
    );
    assert!(file.exists());
}

#[test]
fn the_plan_file_can_be_written_in_plan_mode_and_other_files_cannot() {
    let stage = Stage::new();
    let mut replies = vec![
        ScriptedReply::call("ExitPlanMode", json!({})),
        ScriptedReply::call("Write", json!({"file_path": stage.work().join("n.txt"), "content": "n\n"})),
        ScriptedReply::text("Done."),
    ];
    let denied = PermissionAnswer::Deny("Not yet".to_owned());
    let first = play(&stage, config(&stage, PermissionMode::Plan), replies.split_off(1), vec![denied]);
    assert_eq!(first.result(1), "Not yet");
    let lines = stage.lines();
    let plan = lines.iter().find_map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["attachment"]["planFilePath"].as_str().map(str::to_owned)
    });
    let plan = plan.unwrap();
    let mut resumed = config(&stage, PermissionMode::Plan);
    resumed.start = threadline_agent::SessionStart::Resume { log: stage.log() };
    let second = play(
        &stage,
        resumed,
        vec![
            ScriptedReply::call("Write", json!({"file_path": plan, "content": "The plan"})),
            replies.remove(0),
            ScriptedReply::text("Done."),
        ],
        vec![PermissionAnswer::Deny("Think again".to_owned())],
    );
    assert!(second.result(1).starts_with("File created successfully"), "{}", second.result(1));
    let (tool, input) = &second.person.asked.lock()[0];
    assert_eq!((tool.as_str(), input["plan"].as_str()), ("ExitPlanMode", Some("The plan")));
    assert_eq!(second.result(2), "Think again");
    assert!(second.modes.is_empty());
}

#[test]
fn a_plan_cannot_be_presented_outside_of_plan_mode() {
    let stage = Stage::new();
    let replies =
        vec![ScriptedReply::call("ExitPlanMode", json!({"plan": "p"})), ScriptedReply::text("Done.")];
    let played = play(&stage, config(&stage, PermissionMode::Default), replies, Vec::new());
    assert!(played.result(1).contains("You are not in plan mode."));
    assert!(played.person.asked.lock().is_empty());
}

#[test]
fn a_person_is_asked_a_question_in_every_mode_but_dont_ask() {
    let options = json!([{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}]);
    let questions = json!([{"question": "Which?", "header": "H", "multiSelect": false, "options": options}]);
    let replies = || {
        vec![
            ScriptedReply::call("AskUserQuestion", json!({"questions": questions})),
            ScriptedReply::text("Ok."),
        ]
    };
    let answer = json!({"questions": questions, "answers": {"Which?": "Blue"}});
    let answer = || PermissionAnswer::Allow { input: serde_json::value::to_raw_value(&answer).ok() };
    for mode in [PermissionMode::Default, PermissionMode::BypassPermissions, PermissionMode::Plan] {
        let stage = Stage::new();
        let played = play(&stage, config(&stage, mode), replies(), vec![answer()]);
        assert!(played.result(1).contains(r#""Which?"="Blue""#), "{mode:?}: {}", played.result(1));
    }
    let stage = Stage::new();
    let played = play(&stage, config(&stage, PermissionMode::DontAsk), replies(), Vec::new());
    assert!(played.result(1).contains("don't ask mode"));
    assert_eq!(played.summary.denials.len(), 1);
}

#[test]
fn tools_that_ask_are_not_offered_without_a_person() {
    let stage = Stage::new();
    let (_, api) = stage.run("Go", vec![ScriptedReply::text("Done.")]);
    let tools = api.requests()[0].body["tools"].to_string();
    for tool in ["AskUserQuestion", "EnterPlanMode", "ExitPlanMode"] {
        assert!(!tools.contains(tool), "{tool}");
    }
}

/// Sets a hook for questions about calls.
fn with_hook(stage: &Stage, command: &str) -> AgentConfig {
    let rule = json!({"matcher": "Bash", "hooks": [{"type": "command", "command": command}]});
    let json = json!({ "PermissionRequest": [rule] }).to_string();
    let mut settings = HookSettings::default();
    settings.add(serde_json::from_str(&json).unwrap()).unwrap();
    let mut config = config(stage, PermissionMode::Default);
    config.hooks = settings;
    config
}

#[test]
fn a_hook_answers_before_the_person() {
    let touch =
        || vec![ScriptedReply::call("Bash", json!({"command": "touch one"})), ScriptedReply::text("Ok.")];
    let answer = |decision: &str| format!(r#"echo '{{"hookSpecificOutput":{{"decision":{decision}}}}}'"#);
    let stage = Stage::new();
    let hook = answer(r#"{"behavior":"allow","updatedInput":{"command":"touch two"}}"#);
    play(&stage, with_hook(&stage, &hook), touch(), Vec::new());
    assert!(stage.work().join("two").exists() && !stage.work().join("one").exists());
    assert_eq!(attachments(&stage), ["hook_permission_decision"]);

    let stage = Stage::new();
    let played = play(
        &stage,
        with_hook(&stage, &answer(r#"{"behavior":"deny","message":"no"}"#)),
        touch(),
        Vec::new(),
    );
    assert_eq!(played.result(1), "no");
    assert!(!stage.work().join("one").exists());
}

#[test]
fn hooks_are_told_that_a_person_is_waited_for() {
    let stage = Stage::new();
    let hook = json!({"type": "command", "command": "cat > told"});
    let json = json!({ "Notification": [{"matcher": "idle_prompt", "hooks": [hook]}] }).to_string();
    let mut config = config(&stage, PermissionMode::Default);
    config.is_interactive = true;
    config.hooks.add(serde_json::from_str(&json).unwrap()).unwrap();
    stage.agent(&ScriptedApi::start(Vec::new()), config).unwrap().notify_idle();
    let told: Value = serde_json::from_slice(&std::fs::read(stage.work().join("told")).unwrap()).unwrap();
    assert_eq!(
        (&told["hook_event_name"], &told["notification_type"]),
        (&json!("Notification"), &json!("idle_prompt"))
    );
    assert_eq!(told["message"], "Claude is waiting for your input");
}

#[test]
fn the_person_answers_if_the_hook_does_not() {
    let stage = Stage::new();
    let touch =
        vec![ScriptedReply::call("Bash", json!({"command": "touch one"})), ScriptedReply::text("Ok.")];
    // The answer ends a hook that would take longer than the test.
    play(&stage, with_hook(&stage, "sleep 600"), touch, vec![allow()]);
    assert!(stage.work().join("one").exists());
    assert!(attachments(&stage).is_empty());
}

#[test]
fn the_name_of_a_plan_in_a_log_is_no_path() {
    let stage = Stage::new();
    let deny = || vec![PermissionAnswer::Deny("Not yet".to_owned())];
    let exit =
        || vec![ScriptedReply::call("ExitPlanMode", json!({"plan": "p"})), ScriptedReply::text("Done.")];
    play(&stage, config(&stage, PermissionMode::Plan), exit(), deny());
    let text = std::fs::read_to_string(stage.log()).unwrap();
    let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert!(text.contains("\"slug\":\""), "{line}");
    let hostile: Vec<String> = text
        .lines()
        .map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            if line.get("slug").is_some() {
                line["slug"] = json!("../../../outside");
            }
            line.to_string()
        })
        .collect();
    std::fs::write(stage.log(), hostile.join("\n") + "\n").unwrap();
    let mut resumed = config(&stage, PermissionMode::Plan);
    resumed.start = threadline_agent::SessionStart::Resume { log: stage.log() };
    let played = play(&stage, resumed, exit(), vec![allow()]);
    let saved = played.result(1);
    let saved = saved.split("saved to: ").nth(1).unwrap().lines().next().unwrap();
    assert!(!saved.contains("outside") && saved.contains("/plans/"), "{saved}");
}
