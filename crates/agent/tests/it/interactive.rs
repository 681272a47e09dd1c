//! Operations of a screen.

use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use threadline_agent::{Agent, AgentEvent, ModelChange, TurnSummary, image_block};
use threadline_cancel::CancelToken;
use threadline_permission::PermissionMode;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

fn interactive(stage: &Stage, api: &ScriptedApi) -> Agent {
    let mut config = stage.config(stage.start());
    config.is_interactive = true;
    config.prompt_source = Some("typed".to_owned());
    stage.agent(api, config).unwrap()
}

fn run(agent: &mut Agent, prompt: &str) -> TurnSummary {
    agent.run(&to_raw_value(prompt).unwrap(), &CancelToken::new(), &mut |_| {})
}

fn lines(stage: &Stage) -> Vec<Value> {
    stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The types of the lines, with their subtypes.
fn kinds(stage: &Stage) -> Vec<String> {
    let kind = |line: &Value| match line["subtype"].as_str() {
        Some(subtype) => subtype.to_owned(),
        None => line["type"].as_str().unwrap().to_owned(),
    };
    lines(stage).iter().map(kind).collect()
}

/// The texts of the messages of a request.
fn texts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let blocks = messages.iter().flat_map(|message| message["content"].as_array().unwrap());
    blocks.filter_map(|block| Some(block["text"].as_str()?.to_owned())).collect()
}

#[test]
fn an_interactive_session_has_the_lines_of_one() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("one"), ScriptedReply::text("two")]);
    let mut agent = interactive(&stage, &api);
    run(&mut agent, "first");
    agent.config().permissions.update(|permissions| permissions.mode = PermissionMode::AcceptEdits);
    run(&mut agent, "second");
    agent.finish(&mut |_| {}).unwrap();
    assert_eq!(
        kinds(&stage),
        [
            "mode",
            "permission-mode",
            "user",
            "file-history-snapshot",
            "assistant",
            "turn_duration",
            "permission-mode",
            "user",
            "file-history-snapshot",
            "assistant",
            "turn_duration",
            "last-prompt",
        ]
    );
    let lines = lines(&stage);
    assert_eq!(lines[2]["promptSource"], "typed");
    assert_eq!(lines[2]["origin"], json!({"kind": "human"}));
    assert_eq!(lines[5]["parentUuid"], lines[4]["uuid"]);
    assert_eq!(lines[6]["permissionMode"], "acceptEdits");
    assert_eq!(lines[7]["parentUuid"], lines[5]["uuid"], "a prompt continues the line of the duration");
}

#[test]
fn output_of_a_running_command_is_reported() {
    let stage = Stage::new();
    let command = "echo first; while [ ! -e go ]; do :; done; echo second";
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Bash", json!({"command": command})),
        ScriptedReply::text("done"),
    ]);
    let mut agent = interactive(&stage, &api);
    let mut seen = String::new();
    let file = stage.work().join("go");
    agent.run(&to_raw_value("go").unwrap(), &CancelToken::new(), &mut |event| {
        if let AgentEvent::ToolOutput { text, .. } = event {
            seen.push_str(text);
            // The command ends only after its first output was reported.
            std::fs::write(&file, "").unwrap();
        }
    });
    assert!(seen.starts_with("first\n"), "{seen}");
}

#[test]
fn a_shell_line_and_its_output_are_sent_with_the_next_prompt() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![ScriptedReply::text("I see.")]);
    let mut agent = interactive(&stage, &api);
    agent.config().permissions.update(|permissions| permissions.mode = PermissionMode::Default);
    let output = agent.run_shell_line("touch made && echo ok", &CancelToken::new(), &mut |_| {}).unwrap();
    let output = output.expect("output");
    assert_eq!((output.text(), output.is_error), ("ok", false));
    assert!(stage.work().join("made").exists());
    run(&mut agent, "what was that?");
    let texts = texts(&api.requests()[0].body);
    let position = |text: &str| texts.iter().position(|other| other.contains(text)).unwrap();
    assert!(position("<bash-input>touch made") < position("<bash-stdout>ok</bash-stdout>"), "{texts:?}");
    assert!(position("<bash-stdout>ok") < position("what was that?"), "{texts:?}");
    assert_eq!(
        kinds(&stage)[..5],
        ["mode", "permission-mode", "user", "user", "user"],
        "input, output, prompt"
    );
}

#[test]
fn the_conversation_returns_to_an_earlier_prompt() {
    let stage = Stage::new();
    let replies = ["one", "two", "three"].map(ScriptedReply::text);
    let api = ScriptedApi::start(replies.to_vec());
    let mut agent = interactive(&stage, &api);
    run(&mut agent, "first");
    run(&mut agent, "second  prompt\nof two lines");
    let points = agent.rewind_points().unwrap();
    let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["first", "second prompt of two lines"]);
    assert_eq!(agent.rewind(&points[1].uuid).unwrap(), "second  prompt\nof two lines");
    assert_eq!(agent.rewind_points().unwrap().len(), 1);
    run(&mut agent, "third");
    assert_eq!(texts(&api.requests()[2].body), ["first", "one", "third"]);
    let lines = lines(&stage);
    let prompt = |text: &str| lines.iter().find(|line| line["message"]["content"] == text).unwrap();
    assert_eq!(prompt("third")["parentUuid"], prompt("second  prompt\nof two lines")["parentUuid"]);
    // Back to the beginning, and in another process.
    agent.rewind(&points[0].uuid).unwrap();
    agent.finish(&mut |_| {}).unwrap();
    let api = ScriptedApi::start(vec![ScriptedReply::text("four")]);
    run(&mut interactive(&stage, &api), "fourth");
    assert_eq!(texts(&api.requests()[0].body), ["first", "one", "third", "three", "fourth"]);
}

#[test]
fn another_model_gets_no_thinking_of_the_first() {
    let stage = Stage::new();
    let thinking = vec![ScriptedReply::thinking("Hm."), json!({"type": "text", "text": "one"})];
    let api = ScriptedApi::start(vec![ScriptedReply::blocks(thinking), ScriptedReply::text("two")]);
    let mut agent = interactive(&stage, &api);
    run(&mut agent, "first");
    let (requested, uuid) = ("opus".to_owned(), agent.new_uuid());
    agent.set_model(ModelChange { requested, model: "claude-opus-4-8".to_owned(), plan_model: None, uuid });
    run(&mut agent, "second");
    let requests = api.requests();
    assert_eq!(requests[1].body["model"], "claude-opus-4-8");
    assert!(!requests[1].body["messages"].to_string().contains("Hm."));
    assert_eq!(requests[1].body["tools"], requests[0].body["tools"]);
}

#[test]
fn images_become_blocks() {
    let stage = Stage::new();
    let file = stage.work().join("a.PNG");
    std::fs::write(&file, b"\x89PNG").unwrap();
    let block: Value = serde_json::from_str(&image_block(&file).unwrap().to_json()).unwrap();
    assert_eq!(block["source"], json!({"type": "base64", "media_type": "image/png", "data": "iVBORw=="}));
    assert!(image_block(&stage.work().join("a.txt")).is_err());
}

#[test]
fn the_format_of_2_1_20_reports_commands_hooks_and_sub_agents_in_the_chain() {
    let stage = Stage::new();
    let hook = json!({"type": "command", "command": "true"});
    let hooks = json!({"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}).to_string();
    let mut config = stage.config(stage.start());
    config.profile = threadline_tools::Profile::find("2.1.20").unwrap();
    config.is_interactive = true;
    config.hooks.add(serde_json::from_str(&hooks).unwrap()).unwrap();
    let task = json!({"description": "d", "prompt": "Look", "subagent_type": "general-purpose"});
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Bash", json!({"command": "for i in 1 2 3; do echo $i; sleep 0.6; done"})),
        ScriptedReply::call("Task", task),
        ScriptedReply::text("from the sub-agent"),
        ScriptedReply::text("done"),
        ScriptedReply::text("resumed"),
    ]);
    let mut agent = stage.agent(&api, config.clone()).unwrap();
    run(&mut agent, "Go");
    agent.rename("A title").unwrap();
    agent.finish(&mut |_| {}).unwrap();
    let all = lines(&stage);
    let last = all.last().unwrap();
    assert_eq!((&last["type"], &last["summary"]), (&json!("summary"), &json!("A title")));
    assert_eq!(last["leafUuid"], all[all.len() - 2]["uuid"]);
    let reports: Vec<&Value> = all.iter().filter(|line| line["type"] == "progress").collect();
    let kinds: Vec<&str> = reports.iter().map(|line| line["data"]["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["hook_progress", "bash_progress", "agent_progress"]);
    assert_eq!(reports[1]["data"]["fullOutput"].as_str().unwrap().lines().next(), Some("1"));
    // The result of the command continues the reports about it.
    let result = all.iter().find(|line| line["message"]["content"][0]["type"] == "tool_result").unwrap();
    assert_eq!(result["parentUuid"], reports[1]["uuid"]);
    assert_eq!(reports[1]["parentUuid"], reports[0]["uuid"]);
    config.start = threadline_agent::SessionStart::Resume { log: stage.log() };
    run(&mut stage.agent(&api, config).unwrap(), "More");
    let sent = api.requests().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("from the sub-agent") && sent.contains("More"), "{sent}");
}
