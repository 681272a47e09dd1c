//! Sub-agents.

use serde_json::{Value, json};
use threadline_agent::{AgentDefinition, TurnEnd};
use threadline_cancel::CancelToken;
use threadline_testkit::api::{ScriptedApi, ScriptedReply};

use crate::harness::Stage;

fn task(kind: &str) -> ScriptedReply {
    ScriptedReply::call(
        "Agent",
        json!({"description": "Look inside", "prompt": "Look into a.txt", "subagent_type": kind}),
    )
}

/// The lines of the only sub-agent, and its description.
fn sub_agent(stage: &Stage) -> (Vec<Value>, Value) {
    let folder = stage.log().with_extension("").join("subagents");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let file = |end: &str| {
        let path = files.iter().find(|path| path.to_string_lossy().ends_with(end)).unwrap();
        std::fs::read_to_string(path).unwrap()
    };
    let lines = file(".jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (lines, serde_json::from_str(&file(".meta.json")).unwrap())
}

#[test]
fn a_sub_agent_has_its_own_log_and_returns_its_last_text() {
    let stage = Stage::new();
    let path = stage.work().join("a.txt");
    std::fs::write(&path, "inside\n").unwrap();
    let (summary, api) = stage.run(
        "delegate",
        vec![
            task("general-purpose"),
            ScriptedReply::call("Read", json!({"file_path": path})),
            ScriptedReply::text("It says inside."),
            ScriptedReply::text("Done."),
        ],
    );
    assert_eq!((summary.end, summary.text.as_str(), summary.num_turns), (TurnEnd::Completed, "Done.", 2));
    let (lines, meta) = sub_agent(&stage);
    let kinds: Vec<_> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant", "user", "assistant"]);
    assert!(lines.iter().all(|line| line["isSidechain"] == true && line["agentId"].is_string()));
    assert!(lines[2].get("toolUseResult").is_none());
    assert_eq!(lines[1]["attributionAgent"], "general-purpose");
    assert_eq!((&meta["agentType"], &meta["spawnDepth"]), (&json!("general-purpose"), &json!(1)));
    let requests = api.requests();
    assert_eq!(requests[1].body["messages"][0]["content"][0]["text"], "Look into a.txt");
    let result = &requests[3].body["messages"][2]["content"][0]["content"];
    assert_eq!(result[0]["text"], "It says inside.");
    assert!(result[1]["text"].as_str().unwrap().starts_with("agentId: a"), "{result}");
    let lines = stage.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let record = lines.map(|line| line["toolUseResult"].clone()).find(|record| record.is_object()).unwrap();
    assert_eq!((&record["status"], &record["totalToolUseCount"]), (&json!("completed"), &json!(1)));
    assert_eq!((&record["totalTokens"], &record["toolStats"]["readCount"]), (&json!(150), &json!(1)));
    assert!(record["totalDurationMs"].as_u64().unwrap() > 0);
    // The cost of the sub-agent is part of the cost of the session.
    assert_eq!(summary.totals.models[0].usage.input, 400);
}

#[test]
fn an_unknown_kind_is_an_error_and_a_kind_of_the_user_limits_its_tools() {
    let stage = Stage::new();
    let api = ScriptedApi::start(vec![
        task("nope"),
        task("reader"),
        ScriptedReply::text("read"),
        ScriptedReply::text("done"),
    ]);
    let mut config = stage.config(stage.start());
    let json = r#"{"reader": {"description": "Reads", "prompt": "Only read.", "tools": ["Read", "Grep"]}}"#;
    config.agents = AgentDefinition::parse_json(json).unwrap();
    let summary = stage.run_with("delegate", &api, config, &CancelToken::new());
    assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
    let requests = api.requests();
    let error = &requests[1].body["messages"][2]["content"][0];
    assert_eq!(error["is_error"], true);
    assert_eq!(
        error["content"],
        "Agent type 'nope' not found. Available agents: claude, Explore, general-purpose, Plan, reader, \
         statusline-setup"
    );
    let names = |tools: &Value| -> Vec<String> {
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&requests[2].body["tools"]), ["Grep", "Read"]);
    assert_eq!(requests[2].body["system"][0]["text"], "Only read.");
}

#[test]
fn sub_agents_are_nested_to_a_limit() {
    let stage = Stage::new();
    let mut replies: Vec<_> = (0..3).map(|_| task("claude")).collect();
    replies.extend((0..4).map(|_| ScriptedReply::text("done")));
    let (summary, api) = stage.run("delegate", replies);
    assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
    let has_agents = |i: usize| api.requests()[i].body["tools"].to_string().contains("\"Agent\"");
    assert_eq!([has_agents(0), has_agents(1), has_agents(2), has_agents(3)], [true, true, true, false]);
}

#[test]
fn a_sub_agent_in_the_background_reports_its_end_with_another_turn() {
    let stage = Stage::new();
    let input = json!({"description": "Look", "prompt": "MARK look", "run_in_background": true});
    // The sub-agent and the session take replies in any order; all of them are texts.
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Agent", input),
        ScriptedReply::text("a text"),
        ScriptedReply::text("a text"),
        ScriptedReply::text("a text"),
    ]);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let prompt = serde_json::value::to_raw_value("delegate").unwrap();
    let cancel = CancelToken::new();
    let summary = agent.run(&prompt, &cancel, &mut |_| {});
    assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
    let summary = agent.run_background(&cancel, &mut |_| {}).unwrap();
    assert_eq!(summary.origin.as_deref(), Some("task-notification"));
    agent.finish(&mut |_| {}).unwrap();
    let requests = api.requests();
    assert_eq!(requests.len(), 4);
    let last = requests.last().unwrap().body["messages"].to_string();
    assert!(last.contains("Async agent launched successfully"), "{last}");
    assert!(last.contains("<result>a text</result>"), "{last}");
    assert_eq!(sub_agent(&stage).0.len(), 2);
    assert_eq!(summary.totals.models[0].usage.input, 400);
}

#[test]
fn the_format_of_2_1_20_has_short_ids_and_no_description_of_sub_agents() {
    let stage = Stage::new();
    let path = stage.work().join("a.txt");
    std::fs::write(&path, "inside\n").unwrap();
    let input = json!({"description": "Look", "prompt": "Look", "subagent_type": "general-purpose"});
    let api = ScriptedApi::start(vec![
        ScriptedReply::call("Task", input),
        ScriptedReply::call("Read", json!({"file_path": path})),
        ScriptedReply::text("It says inside."),
        ScriptedReply::text("Done."),
    ]);
    let mut config = stage.config(stage.start());
    config.profile = threadline_tools::Profile::find("2.1.20").unwrap();
    let summary = stage.run_with("delegate", &api, config, &CancelToken::new());
    assert_eq!(summary.end, TurnEnd::Completed, "{}", summary.text);
    let lines: Vec<Value> = stage.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let result = lines.iter().find(|line| line["toolUseResult"].is_object()).unwrap();
    let record = result["toolUseResult"].as_object().unwrap();
    let keys: Vec<&str> = record.keys().map(String::as_str).collect();
    assert!(!keys.contains(&"agentType") && !keys.contains(&"toolStats"), "{keys:?}");
    let id = record["agentId"].as_str().unwrap();
    assert_eq!(id.len(), 7);
    let note = &result["message"]["content"][0]["content"][1]["text"];
    assert_eq!(note, &json!(format!("agentId: {id} (for resuming to continue this agent's work if needed)")));
    let folder = stage.log().with_extension("").join("subagents");
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files, [std::ffi::OsString::from(format!("agent-{id}.jsonl"))]);
    let log = std::fs::read_to_string(folder.join(&files[0])).unwrap();
    let last: Value = serde_json::from_str(log.lines().last().unwrap()).unwrap();
    assert!(last["slug"].is_string() && last["slug"] == result["slug"], "one plan for the session");
}

#[test]
fn a_message_continues_a_sub_agent_that_has_finished() {
    let stage = Stage::new();
    let replies = vec![
        task("general-purpose"),
        ScriptedReply::text("First look."),
        ScriptedReply::call("SendMessage", json!({"to": "nobody", "message": "Hello?"})),
        ScriptedReply::text("Done."),
    ];
    let api = ScriptedApi::start(replies);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let cancel = CancelToken::new();
    let run = |agent: &mut threadline_agent::Agent, prompt: &str| {
        agent.run(&serde_json::value::to_raw_value(prompt).unwrap(), &cancel, &mut |_| {})
    };
    run(&mut agent, "delegate");
    let unknown = api.requests()[3].body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(unknown.contains("No agent named 'nobody' is currently addressable."), "{unknown}");
    let (lines, _) = sub_agent(&stage);
    let id = lines[0]["agentId"].as_str().unwrap().to_owned();
    // The session and the sub-agent send their requests at the same time.
    api.extend(vec![
        ScriptedReply::call(
            "SendMessage",
            json!({"to": id, "summary": "Look again", "message": "Look again"}),
        ),
        ScriptedReply::text("Second look."),
        ScriptedReply::text("Second look."),
        ScriptedReply::text("Reported."),
    ]);
    run(&mut agent, "continue it");
    let summary = agent.run_background(&CancelToken::new(), &mut |_| {}).unwrap();
    assert_eq!(summary.text, "Reported.");
    let requests: Vec<String> =
        api.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(requests.iter().any(|messages| messages.contains("had no active task; resumed")), "{requests:?}");
    // The sub-agent has its context, and not that of the session.
    let has = |messages: &String, text: &str| messages.contains(text);
    let resumed = requests.iter().find(|messages| has(messages, "Look again") && !has(messages, "delegate"));
    assert!(has(resumed.unwrap(), "Look into a.txt") && has(resumed.unwrap(), "First look."), "{resumed:?}");
    let (lines, _) = sub_agent(&stage);
    let message = lines.iter().find(|line| line["message"]["content"] == "Look again").unwrap();
    assert_eq!((&message["isMeta"], &message["origin"]), (&json!(true), &json!({"kind": "coordinator"})));
    assert_eq!(message["parentUuid"], lines[1]["uuid"]);
}

#[test]
fn a_message_continues_a_sub_agent_of_an_earlier_run() {
    let stage = Stage::new();
    let path = stage.work().join("a.txt");
    std::fs::write(&path, "inside\n").unwrap();
    let first = vec![
        task("Explore"),
        ScriptedReply::call("Read", json!({"file_path": path})),
        ScriptedReply::text("First look."),
        ScriptedReply::text("Done."),
    ];
    stage.run("delegate", first);
    let (before, meta) = sub_agent(&stage);
    let id = before[0]["agentId"].as_str().unwrap().to_owned();
    let message = |to: &str| {
        ScriptedReply::call("SendMessage", json!({"to": to, "summary": "Again", "message": "Look again"}))
    };
    // The session and the sub-agent send their requests at the same time.
    let api = ScriptedApi::start(vec![
        message("../../x"),
        message(&id),
        ScriptedReply::text("Second look."),
        ScriptedReply::text("Second look."),
        ScriptedReply::text("Reported."),
    ]);
    let mut agent = stage.agent(&api, stage.config(stage.start())).unwrap();
    let prompt = serde_json::value::to_raw_value("continue it").unwrap();
    agent.run(&prompt, &CancelToken::new(), &mut |_| {});
    let summary = agent.run_background(&CancelToken::new(), &mut |_| {}).unwrap();
    assert_eq!(summary.text, "Reported.");
    agent.finish(&mut |_| {}).unwrap();
    let requests = api.requests();
    let bodies: Vec<String> = requests.iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(bodies[1].contains("No agent named '../../x' is currently addressable."), "{}", bodies[1]);
    let resumed = bodies.iter().position(|body| !body.contains("delegate")).expect("a request of its own");
    let texts = ["Look into a.txt", "tool_result", "First look.", "Look again"];
    let places =
        texts.map(|text| bodies[resumed].find(text).unwrap_or_else(|| panic!("{}", bodies[resumed])));
    assert!(places.is_sorted(), "{}", bodies[resumed]);
    // It is of the same kind: one that cannot write.
    assert!(!requests[resumed].body["tools"].to_string().contains("\"Write\""));
    let last = bodies.last().unwrap();
    assert!(last.contains("Agent \\\"Look inside\\\" finished"), "{last}");
    let calls = requests[2].body["messages"].as_array().unwrap().iter().rev();
    let call = calls.filter_map(|message| message["content"][0]["id"].as_str()).next().unwrap();
    assert!(last.contains(&format!("<tool-use-id>{call}</tool-use-id>")), "{last}");
    let (lines, meta_after) = sub_agent(&stage);
    assert_eq!(meta_after, meta);
    assert_eq!(lines[..before.len()], before[..]);
    let added = &lines[before.len()..];
    assert_eq!(added[0]["message"]["content"], "Look again");
    assert_eq!(added[0]["parentUuid"], before.last().unwrap()["uuid"]);
    assert_eq!(added[1]["parentUuid"], added[0]["uuid"]);
}
